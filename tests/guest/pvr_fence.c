// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: pvr_fence [-p PORT] [-r ROUNDS] [-f FENCE] [PEER]
 *
 * Checks each verb by which a program takes its memory back from a peer. The client sends
 * requests to the memory of the server without pause. In the middle of them the server calls the
 * verb. After it has returned, no request changes the memory, no READ returns data that was
 * stored later, and no request that the server posts later is executed.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oob.h"
#include "rdma.h"

#define PAGE 4096ul
#define BYTES (1ul << 20)
#define DEPTH 32
#define WATCH_SECONDS 0.02 /* after the fence */
#define PAUSE_USEC 20000 /* at most, before the fence */
#define MARK 0xfefefefefefefefeull
#define RIGHTS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define LATE_ID 1000 /* of the request that is posted behind the fence */

struct side {
	struct node node;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_mw *mw; /* or NULL */
	struct place peer;
};

enum op { OP_WRITE, OP_READ, OP_ATOMIC, OPS };

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
} ops[OPS] = {
	[OP_WRITE] = { "WRITE", IBV_WR_RDMA_WRITE, BYTES },
	[OP_READ] = { "READ", IBV_WR_RDMA_READ, BYTES },
	[OP_ATOMIC] = { "atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, 8 },
};

struct fence {
	const char *name;
	void (*take_back)(struct side *side);
	bool window; /* the peer has the key of a window */
	bool process; /* the server's side is another process, which the fence kills */
};

/* ------------------------------------------------------------------------------ fences */

static void to_state(struct side *side, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	MUST(ibv_modify_qp(side->qp, &attr, IBV_QP_STATE));
}

static void to_error(struct side *side)
{
	to_state(side, IBV_QPS_ERR);
}

static void to_reset(struct side *side)
{
	to_state(side, IBV_QPS_RESET);
}

static void destroy_qp(struct side *side)
{
	MUST(ibv_destroy_qp(side->qp));
	side->qp = NULL;
}

static void take_rights(struct side *side)
{
	struct ibv_qp_attr attr = { .qp_access_flags = 0 };

	MUST(ibv_modify_qp(side->qp, &attr, IBV_QP_ACCESS_FLAGS));
}

static void deregister(struct side *side)
{
	MUST(ibv_dereg_mr(side->mr));
	side->mr = NULL;
}

static void reregister(struct side *side)
{
	MUST(ibv_rereg_mr(side->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			  IBV_ACCESS_LOCAL_WRITE));
}

static void free_window(struct side *side)
{
	MUST(ibv_dealloc_mw(side->mw));
	side->mw = NULL;
}

static void invalidate_window(struct side *side)
{
	post_send(side->qp, .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = side->mw->rkey);
	cq_expect(side->cq, IBV_WC_SUCCESS, "LOCAL_INV");
}

static const struct fence fences[] = {
	{ "modify to ERR", to_error },
	{ "modify to RESET", to_reset },
	{ "destroy_qp", destroy_qp },
	{ "modify access flags", take_rights },
	{ "dereg_mr", deregister },
	{ "rereg_mr", reregister },
	{ "dealloc_mw", free_window, .window = true },
	{ "local invalidate", invalidate_window, .window = true },
	{ "end of the process", NULL, .process = true },
};

#define FENCES (sizeof(fences) / sizeof(fences[0]))

/* --------------------------------------------------------------------------- both sides */

static void open_side(struct side *side, void *memory)
{
	*side = (struct side){ 0 };
	node_open(&side->node);
	side->cq = MUST_HAVE(ibv_create_cq(side->node.ctx, 4 * DEPTH, NULL, NULL, 0));
	side->mr = MUST_HAVE(ibv_reg_mr(side->node.pd, memory, BYTES, RIGHTS | IBV_ACCESS_MW_BIND));
	side->qp = qp_create_rc(&side->node, side->cq, DEPTH);
}

static void bind_window(struct side *side)
{
	side->mw = MUST_HAVE(ibv_alloc_mw(side->node.pd, IBV_MW_TYPE_2));
	post_send(side->qp, .opcode = IBV_WR_BIND_MW,
		  .bind_mw = {
			  .mw = side->mw,
			  .rkey = side->mw->rkey,
			  .bind_info = { .mr = side->mr,
					 .addr = (uintptr_t)side->mr->addr,
					 .length = BYTES,
					 .mw_access_flags = RIGHTS & ~IBV_ACCESS_LOCAL_WRITE } });
	cq_expect(side->cq, IBV_WC_SUCCESS, "BIND_MW");
}

/* The window is bound after the connection, so its key follows. */
static void connect_side(struct side *side, int fd, bool window)
{
	struct place mine = {
		.address = qp_address(&side->node, side->qp),
		.memory = (uintptr_t)side->mr->addr,
		.rkey = side->mr->rkey,
	};

	oob_exchange(fd, &mine, &side->peer, sizeof(mine));
	qp_connect(&side->node, side->qp, &side->peer.address);
	if (window)
		bind_window(side);
	if (side->mw)
		mine.rkey = side->mw->rkey;
	oob_exchange(fd, &mine, &side->peer, sizeof(mine));
}

static void close_side(struct side *side)
{
	if (side->qp)
		MUST(ibv_destroy_qp(side->qp));
	if (side->mw)
		MUST(ibv_dealloc_mw(side->mw));
	if (side->mr)
		MUST(ibv_dereg_mr(side->mr));
	MUST(ibv_destroy_cq(side->cq));
	node_close(&side->node);
}

static volatile uint64_t *word(void *memory, size_t page)
{
	return (volatile uint64_t *)((uint8_t *)memory + page * PAGE);
}

static void mark(void *memory)
{
	for (size_t page = 0; page < BYTES / PAGE; page++)
		*word(memory, page) = MARK;
}

static size_t count_marks(void *memory)
{
	size_t count = 0;

	for (size_t page = 0; page < BYTES / PAGE; page++)
		count += *word(memory, page) == MARK;
	return count;
}

/* The other side's await_word() returns. */
static void tell(int fd)
{
	if (send(fd, "", 1, MSG_NOSIGNAL) != 1)
		die("sending to the peer:");
}

static void await_word(int fd)
{
	char byte;

	if (recv(fd, &byte, 1, MSG_WAITALL) != 1)
		die("the peer has closed the connection");
}

/* --------------------------------------------------------------------------- the server */

/* WRITEs of a side in error must be flushed. A word of the peer's memory is not in use. */
static void post_late(struct side *side)
{
	post_send(side->qp, .wr_id = LATE_ID, .opcode = IBV_WR_RDMA_WRITE,
		  ONE_SGE(side->mr, side->mr->addr, 8),
		  .wr.rdma = { .remote_addr = side->peer.memory + 8, .rkey = side->peer.rkey });
}

static uint64_t check_late(struct side *side)
{
	struct ibv_wc wc;

	do
		wc = cq_wait(side->cq);
	while (wc.wr_id != LATE_ID);
	if (wc.status != IBV_WC_WR_FLUSH_ERR)
		printf("a request that was posted in ERR: %s\n", ibv_wc_status_str(wc.status));
	return wc.status != IBV_WC_WR_FLUSH_ERR;
}

/* Return: changes of the memory after the fence. */
static uint64_t watch(void *memory, enum op op)
{
	double end = now() + WATCH_SECONDS;
	uint64_t late = 0, count;

	if (op != OP_ATOMIC)
		mark(memory);
	count = *word(memory, 0);
	while (now() < end)
		usleep(100);
	if (op == OP_WRITE)
		late = BYTES / PAGE - count_marks(memory);
	else if (op == OP_ATOMIC)
		late = *word(memory, 0) - count;
	return late;
}

/* Until it is connected, the other process alone uses @fd. */
static void run_process(void *memory, int fd, int connected)
{
	struct side side;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_side(&side, memory);
	connect_side(&side, fd, false);
	tell(connected);
	pause();
	_exit(1);
}

/* Another process has the server's side. */
static pid_t start_process(void *memory, int fd)
{
	int ends[2];
	pid_t pid;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	pid = fork();
	if (pid < 0)
		die("fork:");
	if (!pid)
		run_process(memory, fd, ends[1]);
	close(ends[1]);
	await_word(ends[0]);
	close(ends[0]);
	return pid;
}

static void end_process(pid_t pid)
{
	MUST(kill(pid, SIGKILL));
	if (waitpid(pid, NULL, 0) != pid)
		die("waitpid:");
}

/* The fence comes in the middle of a request, wherever that is. */
static void await_requests(int fd)
{
	await_word(fd);
	usleep(random() % PAUSE_USEC);
}

/* Return: late changes. */
static uint64_t serve(const struct fence *fence, enum op op, void *memory, int fd)
{
	bool posts = fence->take_back == to_error;
	uint64_t late = 0;
	struct side side;
	pid_t pid;

	if (fence->process) {
		pid = start_process(memory, fd);
		await_requests(fd);
		end_process(pid);
		return watch(memory, op);
	}
	open_side(&side, memory);
	connect_side(&side, fd, fence->window);
	await_requests(fd);
	fence->take_back(&side);
	if (posts)
		post_late(&side);
	late = watch(memory, op);
	if (posts)
		late += check_late(&side);
	close_side(&side);
	return late;
}

/* --------------------------------------------------------------------------- the client */

static void post(struct side *side, enum op op, uint64_t number)
{
	struct ibv_sge sge = { (uintptr_t)side->mr->addr, ops[op].bytes, side->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = number, .opcode = ops[op].opcode, .sg_list = &sge, .num_sge = 1
	};

	if (op == OP_ATOMIC) {
		wr.wr.atomic.remote_addr = side->peer.memory;
		wr.wr.atomic.rkey = side->peer.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = side->peer.memory;
		wr.wr.rdma.rkey = side->peer.rkey;
	}
	if (op == OP_WRITE)
		for (size_t page = 0; page < BYTES / PAGE; page++)
			*word(side->mr->addr, page) = number;
	post_send_wr(side->qp, &wr);
}

static bool is_over(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* Sends until the server has checked its memory. *done: requests that succeeded. */
static void send_all(struct side *side, enum op op, int fd, uint64_t *done)
{
	uint64_t posted = 0, ended = 0;
	bool failed = false, begun = false;
	struct ibv_wc wc;

	while (!is_over(fd)) {
		while (!failed && posted - ended < DEPTH)
			post(side, op, posted++);
		if (!cq_poll_for(side->cq, &wc, 0.001))
			continue;
		ended++;
		failed |= wc.status != IBV_WC_SUCCESS;
		if (failed)
			continue;
		++*done;
		if (!begun)
			tell(fd);
		begun = true;
	}
}

/* Return: pages with data that was stored after the fence. */
static uint64_t request(enum op op, void *memory, int fd, uint64_t *done)
{
	struct side side;

	open_side(&side, memory);
	connect_side(&side, fd, false);
	send_all(&side, op, fd, done);
	close_side(&side);
	return op == OP_READ ? count_marks(memory) : 0;
}

/* ------------------------------------------------------------------------------ rounds */

static void exchange(int fd, uint64_t *mine)
{
	uint64_t theirs;

	oob_exchange(fd, mine, &theirs, sizeof(theirs));
	*mine += theirs;
}

/* Return: whether nothing was late. */
static bool check(const struct fence *fence, enum op op, int rounds, bool server, int fd)
{
	uint8_t *memory =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t late, bad = 0, done = 0;

	if (memory == MAP_FAILED)
		die("mmap of %lu bytes:", BYTES);
	for (int i = 0; i < rounds; i++) {
		memset(memory, 0, BYTES);
		late = server ? serve(fence, op, memory, fd) : 0;
		if (!server)
			late = request(op, memory, fd, &done);
		if (server)
			tell(fd);
		else
			await_word(fd);
		exchange(fd, &late);
		bad += late != 0;
	}
	exchange(fd, &done);
	printf("%s, %s: %llu of %d rounds bad, %llu requests\n", fence->name, ops[op].name,
	       (unsigned long long)bad, rounds, (unsigned long long)done);
	MUST(munmap(memory, BYTES));
	return !bad;
}

int main(int argc, char **argv)
{
	const char *port = "18700", *only = "";
	int rounds = 3, option, fd;
	bool good = true;

	while ((option = getopt(argc, argv, "p:r:f:")) != -1) {
		if (option == 'p')
			port = optarg;
		else if (option == 'r')
			rounds = atoi(optarg);
		else if (option == 'f')
			only = optarg;
		else
			die("usage: pvr_fence [-p PORT] [-r ROUNDS] [-f FENCE] [PEER]");
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	fd = oob_open(argv[optind], port);
	for (size_t i = 0; i < FENCES; i++)
		for (enum op op = 0; strstr(fences[i].name, only) && op < OPS; op++)
			good &= check(&fences[i], op, rounds, !argv[optind], fd);
	return !good;
}
