// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * pvr_cost CASE MESSAGES COUNTS FLAG -p PORT [SERVER]
 *
 * What a guest executes for each message of 8 bytes: instructions, accesses to devices,
 * interrupts and halts. COUNTS is the file of tests/bench/qemu_counts.c for this VM. The client
 * is the requester. It makes the file FLAG.begin before the messages and FLAG.end after them,
 * and waits until FLAG.begin.seen and FLAG.end.seen exist.
 *
 * An empty poll is not work of a message: with more time a program polls more often. So the
 * instructions of an empty poll are measured before, and the empty polls are counted. The
 * instructions of this program itself, between the calls of verbs, are measured before, too: by the
 * same loop with verbs that do nothing.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../bench/qemu_counts.h"
#include "oob.h"
#include "rdma.h"

#define BYTES 8
#define DEPTH 512
#define BATCH 16 /* completions per poll */
#define EMPTY_POLLS 100000
#define DRY_MESSAGES (BATCH * 10000)
#define FLAG_WAIT_US 20000
#define ALWAYS_INLINE inline __attribute__((always_inline))

struct cost_case {
	const char *name;
	enum ibv_wr_opcode opcode;
	int window; /* requests in flight */
	unsigned int flags;
	bool by_function; /* ibv_wr_rdma_write() instead of ibv_post_send() */
};

static const struct cost_case cases[] = {
	{ "write_stream", IBV_WR_RDMA_WRITE, 64 },
	{ "write_inline", IBV_WR_RDMA_WRITE, 64, .flags = IBV_SEND_INLINE },
	{ "write_function", IBV_WR_RDMA_WRITE, 64, .by_function = true },
	{ "write_single", IBV_WR_RDMA_WRITE, 1 },
	{ "send_stream", IBV_WR_SEND, 64 },
	{ "read_stream", IBV_WR_RDMA_READ, 8 },
};

struct lab {
	const struct cost_case *test;
	uint32_t messages;
	int counts, oob;
	struct node node;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct place peer;
	struct ibv_sge sge;
	struct ibv_send_wr send;
	struct ibv_recv_wr recv;
	struct ibv_wc wc[BATCH];
	uint64_t empty_polls;
};

static struct qemu_counts read_counts(const struct lab *lab)
{
	struct qemu_counts all[QEMU_COUNTS_CPUS], sum = {};

	if (pread(lab->counts, all, sizeof(all), 0) != sizeof(all))
		die("reading the counts of QEMU:");
	for (int i = 0; i < QEMU_COUNTS_CPUS; i++) {
		sum.instructions += all[i].instructions;
		sum.user_instructions += all[i].user_instructions;
		sum.accesses += all[i].accesses;
		sum.interrupts += all[i].interrupts;
		sum.halts += all[i].halts;
	}
	return sum;
}

/*
 * Polls until there are completions, or @limit times. Return: their number. An empty poll takes the
 * same instructions in each use.
 */
static __attribute__((noinline)) uint32_t poll_some(struct lab *lab, uint64_t limit)
{
	uint64_t empty = 0;
	int n;

	while (!(n = ibv_poll_cq(lab->cq, BATCH, lab->wc)) && ++empty < limit)
		;
	if (n < 0)
		die("ibv_poll_cq: %d", n);
	lab->empty_polls += empty;
	for (int i = 0; i < n; i++)
		if (lab->wc[i].status != IBV_WC_SUCCESS)
			die("%s: %s", lab->test->name, ibv_wc_status_str(lab->wc[i].status));
	return (uint32_t)n;
}

static uint64_t user_instructions(const struct lab *lab)
{
	return read_counts(lab).user_instructions;
}

/* Return: instructions of an empty poll. */
static double empty_poll_cost(struct lab *lab)
{
	uint64_t begin, none, polls;

	begin = user_instructions(lab);
	none = user_instructions(lab);
	poll_some(lab, EMPTY_POLLS);
	polls = user_instructions(lab);
	lab->empty_polls = 0;
	return ((double)(polls - none) - (double)(none - begin)) / EMPTY_POLLS;
}

static ALWAYS_INLINE int post_by_function(struct lab *lab)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(lab->qp);

	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, lab->peer.rkey, lab->peer.memory);
	ibv_wr_set_sge(qp, lab->sge.lkey, lab->sge.addr, lab->sge.length);
	return ibv_wr_complete(qp);
}

static ALWAYS_INLINE int post_by_list(struct lab *lab)
{
	struct ibv_send_wr *bad;

	return ibv_post_send(lab->qp, &lab->send, &bad);
}

static ALWAYS_INLINE void request_by(struct lab *lab, uint32_t messages, int (*post)(struct lab *))
{
	const uint32_t window = (uint32_t)lab->test->window;
	uint32_t posted = 0, completed = 0;
	int err;

	while (completed < messages) {
		for (; posted < messages && posted - completed < window; posted++) {
			err = post(lab);
			if (err)
				die("%s: %s", lab->test->name, strerror(err));
		}
		completed += poll_some(lab, UINT64_MAX);
	}
}

static void request(struct lab *lab, uint32_t messages)
{
	if (lab->test->by_function)
		request_by(lab, messages, post_by_function);
	else
		request_by(lab, messages, post_by_list);
}

/* ------------------------------------------------------------- verbs that do nothing */

static int completions; /* of each poll */

static int no_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)qp, (void)wr, (void)bad;
	return 0;
}

static int no_poll(struct ibv_cq *cq, int num, struct ibv_wc *wc)
{
	(void)cq, (void)num, (void)wc;
	return completions;
}

static void no_start(struct ibv_qp_ex *qp)
{
	(void)qp;
}

static void no_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	(void)qp, (void)rkey, (void)addr;
}

static void no_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	(void)qp, (void)lkey, (void)addr, (void)length;
}

static int no_complete(struct ibv_qp_ex *qp)
{
	(void)qp;
	return 0;
}

static void replace_functions(struct ibv_qp_ex *qp)
{
	qp->wr_start = no_start;
	qp->wr_rdma_write = no_write;
	qp->wr_set_sge = no_sge;
	qp->wr_complete = no_complete;
}

/*
 * Return: instructions of the program's own for each message, and of the wrappers of libibverbs. All
 * statuses in lab->wc are success before.
 */
static double program_cost(struct lab *lab)
{
	struct ibv_context_ops *ops = &lab->node.ctx->ops, saved_ops = *ops;
	struct ibv_qp_ex *qp = lab->test->by_function ? ibv_qp_to_qp_ex(lab->qp) : NULL;
	struct ibv_qp_ex saved_qp = {};
	uint64_t begin, none, end;

	completions = lab->test->window < BATCH ? lab->test->window : BATCH;
	ops->post_send = no_post;
	ops->poll_cq = no_poll;
	if (qp) {
		saved_qp = *qp;
		replace_functions(qp);
	}
	begin = user_instructions(lab);
	none = user_instructions(lab);
	request(lab, DRY_MESSAGES);
	end = user_instructions(lab);
	*ops = saved_ops;
	if (qp)
		*qp = saved_qp;
	return ((double)(end - none) - (double)(none - begin)) / DRY_MESSAGES;
}

/* --------------------------------------------------------------------- the messages */

static void respond(struct lab *lab, uint32_t messages)
{
	uint32_t received = 0, n;

	while (lab->test->opcode == IBV_WR_SEND && received < messages) {
		n = poll_some(lab, UINT64_MAX);
		received += n;
		while (n--)
			post_recv_wr(lab->qp, &lab->recv);
	}
}

static void raise_flag(const char *flag, const char *name)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s.%s", flag, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		die("%s:", path);
	close(fd);
	snprintf(path, sizeof(path), "%s.%s.seen", flag, name);
	while (access(path, F_OK))
		usleep(FLAG_WAIT_US);
}

static void meet(struct lab *lab)
{
	char mine = 0, theirs;

	oob_exchange(lab->oob, &mine, &theirs, 1);
}

/* Made once: a program that makes them for each message has instructions of its own. */
static void make_requests(struct lab *lab)
{
	lab->sge = (struct ibv_sge){ .addr = (uintptr_t)lab->mr->addr,
				     .length = BYTES,
				     .lkey = lab->mr->lkey };
	lab->recv = (struct ibv_recv_wr){ .sg_list = &lab->sge, .num_sge = 1 };
	lab->send = (struct ibv_send_wr){
		.opcode = lab->test->opcode,
		.send_flags = IBV_SEND_SIGNALED | lab->test->flags,
		.sg_list = &lab->sge,
		.num_sge = 1,
		.wr.rdma = { .remote_addr = lab->peer.memory, .rkey = lab->peer.rkey },
	};
}

static struct ibv_qp *create_qp(struct lab *lab)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = lab->cq,
		.recv_cq = lab->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = BYTES },
	};
	struct ibv_qp *qp;

	if (lab->test->by_function) {
		attr.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	}
	qp = qp_create_ex(&lab->node, &attr);
	if (lab->test->by_function)
		ibv_qp_to_qp_ex(qp)->wr_flags = IBV_SEND_SIGNALED;
	return qp;
}

static void connect_qp(struct lab *lab)
{
	struct place mine;

	node_open(&lab->node);
	lab->mr = mr_create(&lab->node, 4096,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				    IBV_ACCESS_REMOTE_READ);
	lab->cq = MUST_HAVE(ibv_create_cq(lab->node.ctx, 2 * DEPTH, NULL, NULL, 0));
	lab->qp = create_qp(lab);
	mine = (struct place){ .address = qp_address(&lab->node, lab->qp),
			       .memory = (uintptr_t)lab->mr->addr,
			       .rkey = lab->mr->rkey };
	oob_exchange(lab->oob, &mine, &lab->peer, sizeof(mine));
	make_requests(lab);
	for (int i = 0; i < DEPTH; i++)
		post_recv_wr(lab->qp, &lab->recv);
	qp_connect(&lab->node, lab->qp, &lab->peer.address);
	meet(lab);
}

/* The messages, and what they took. A warm-up of a tenth comes before. */
static void run(struct lab *lab, const char *flag, bool client)
{
	void (*work)(struct lab *, uint32_t) = client ? request : respond;
	double empty = empty_poll_cost(lab), program = client ? program_cost(lab) : 0, all_empty;
	struct qemu_counts begin, end;

	meet(lab); /* no message comes during the other one's empty polls */
	work(lab, lab->messages / 10);
	if (client)
		raise_flag(flag, "begin");
	meet(lab);
	lab->empty_polls = 0;
	begin = read_counts(lab);
	work(lab, lab->messages);
	if (!client)
		meet(lab);
	end = read_counts(lab);
	if (client) {
		meet(lab);
		raise_flag(flag, "end");
	}
	all_empty = empty * (double)lab->empty_polls;
	printf("cost messages=%" PRIu32
	       " instructions=%.1f user_instructions=%.1f accesses=%" PRIu64 " interrupts=%" PRIu64
	       " halts=%" PRIu64 " empty_polls=%" PRIu64
	       " empty_poll_instructions=%.1f program_instructions=%.1f\n",
	       lab->messages, (double)(end.instructions - begin.instructions) - all_empty,
	       (double)(end.user_instructions - begin.user_instructions) - all_empty,
	       end.accesses - begin.accesses, end.interrupts - begin.interrupts,
	       end.halts - begin.halts, lab->empty_polls, empty, program);
	fflush(stdout);
}

static const struct cost_case *find_case(const char *name)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, name))
			return &cases[i];
	die("no case is called %s", name);
}

int main(int argc, char **argv)
{
	struct lab lab = {};

	if (argc < 7 || argc > 8 || strcmp(argv[5], "-p") != 0)
		die("usage: pvr_cost CASE MESSAGES COUNTS FLAG -p PORT [SERVER]");
	lab.test = find_case(argv[1]);
	lab.messages = (uint32_t)strtoul(argv[2], NULL, 10);
	lab.counts = open(argv[3], O_RDONLY | O_CLOEXEC);
	if (lab.counts < 0)
		die("%s:", argv[3]);
	lab.oob = oob_open(argv[7], argv[6]);
	connect_qp(&lab);
	run(&lab, argv[4], argc == 8);
	MUST(ibv_destroy_qp(lab.qp));
	MUST(ibv_destroy_cq(lab.cq));
	mr_destroy(lab.mr);
	node_close(&lab.node);
	return 0;
}
