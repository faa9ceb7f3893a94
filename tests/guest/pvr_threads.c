// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * pvr_threads objects | unacked | fork | fork-init
 *
 * objects: two threads on each kind of object, at the same time.
 * unacked: an asynchronous event that is never acknowledged, while other objects are
 *	created, used and destroyed. Only the destruction of the event's own QP waits.
 * fork: a child that writes the memory of its parent's regions, while receives are posted,
 *	and has a device of its own. Linux copies pinned pages to the child.
 * fork-init: the same with ibv_fork_init(), without the writes.
 *
 * One device talks to itself. The caller compares "rdma resource show" before and after.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma.h"

#define ROUNDS 300
#define REQUESTS 2000 /* of each thread */
#define DEPTH 64
#define BYTES 8192
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

struct lab {
	struct node node;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp; /* its own peer; receives from srq */
	uint32_t sent[2], received[2]; /* completions by poster */
};

static struct ibv_qp *self_qp(struct lab *lab, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = lab->cq,
		.recv_cq = lab->cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = qp_create(&lab->node, &attr);

	qp_connect_to_itself(&lab->node, qp);
	return qp;
}

static void open_lab(struct lab *lab)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };

	node_open(&lab->node);
	lab->mr = mr_create(&lab->node, BYTES, ACCESS);
	lab->channel = MUST_HAVE(ibv_create_comp_channel(lab->node.ctx));
	lab->cq = MUST_HAVE(ibv_create_cq(lab->node.ctx, 4 * DEPTH, NULL, lab->channel, 0));
	lab->srq = MUST_HAVE(ibv_create_srq(lab->node.pd, &attr));
	lab->qp = self_qp(lab, lab->srq);
}

static void close_lab(struct lab *lab)
{
	MUST(ibv_destroy_qp(lab->qp));
	MUST(ibv_destroy_srq(lab->srq));
	MUST(ibv_destroy_cq(lab->cq));
	MUST(ibv_destroy_comp_channel(lab->channel));
	mr_destroy(lab->mr);
	node_close(&lab->node);
}

/* ----------------------------------------------------------------- two threads */

struct worker {
	pthread_t thread;
	struct lab *lab;
	unsigned int number;
	void (*run)(struct worker *worker);
};

static void *start(void *opaque)
{
	struct worker *worker = opaque;

	worker->run(worker);
	return NULL;
}

static void in_two_threads(struct lab *lab, const char *what, void (*run)(struct worker *worker))
{
	struct worker workers[2];

	for (unsigned int i = 0; i < 2; i++) {
		workers[i] = (struct worker){ .lab = lab, .number = i, .run = run };
		MUST(pthread_create(&workers[i].thread, NULL, start, &workers[i]));
	}
	for (unsigned int i = 0; i < 2; i++)
		MUST(pthread_join(workers[i].thread, NULL));
	printf("threads: %s\n", what);
	fflush(stdout);
}

static void count(struct lab *lab, const struct ibv_wc *wc)
{
	unsigned int poster = wc->wr_id & 1;

	if (wc->status != IBV_WC_SUCCESS)
		die("request %llu: %s", (unsigned long long)wc->wr_id,
		    ibv_wc_status_str(wc->status));
	__atomic_fetch_add(wc->opcode & IBV_WC_RECV ? &lab->received[poster] : &lab->sent[poster],
			   1, __ATOMIC_RELAXED);
}

static void poll_some(struct lab *lab)
{
	struct ibv_wc wc[4];
	int n = ibv_poll_cq(lab->cq, 4, wc);

	if (n < 0)
		die("ibv_poll_cq: %d", n);
	for (int i = 0; i < n; i++)
		count(lab, &wc[i]);
}

static uint32_t total(const uint32_t done[2])
{
	return __atomic_load_n(&done[0], __ATOMIC_RELAXED) +
	       __atomic_load_n(&done[1], __ATOMIC_RELAXED);
}

/* Return: 0, or ENOMEM if the queue is full. */
static int try_recv(struct lab *lab, uint64_t wr_id)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, ONE_SGE(lab->mr, lab->mr->addr, 64) }, *bad;
	int err = ibv_post_srq_recv(lab->srq, &wr, &bad);

	if (err && err != ENOMEM)
		die("ibv_post_srq_recv: %s", strerror(err));
	return err;
}

static int try_send(struct lab *lab, uint64_t wr_id)
{
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .opcode = IBV_WR_SEND,
				  ONE_SGE(lab->mr, lab->mr->addr, 64) };
	struct ibv_send_wr *bad;
	int err = ibv_post_send(lab->qp, &wr, &bad);

	if (err && err != ENOMEM)
		die("ibv_post_send: %s", strerror(err));
	return err;
}

/* Each thread posts receives and sends, and polls completions of both. */
static void use_queues(struct worker *worker)
{
	uint32_t posted_recvs = 0, posted_sends = 0;
	struct lab *lab = worker->lab;
	double limit = now() + 120;

	while (total(lab->sent) + total(lab->received) < 4 * REQUESTS) {
		if (posted_recvs < REQUESTS && !try_recv(lab, worker->number))
			posted_recvs++;
		if (posted_sends < posted_recvs && !try_send(lab, worker->number))
			posted_sends++;
		poll_some(lab);
		if (now() > limit)
			die("%u sends and %u receives of %u are complete", total(lab->sent),
			    total(lab->received), 2 * REQUESTS);
	}
}

static void use_regions(struct worker *worker)
{
	struct lab *lab = worker->lab;

	for (int i = 0; i < ROUNDS; i++)
		MUST(ibv_dereg_mr(
			MUST_HAVE(ibv_reg_mr(lab->node.pd, lab->mr->addr, BYTES, ACCESS))));
}

static void use_many_objects(struct worker *worker)
{
	struct lab *lab = worker->lab;
	struct address address = qp_address(&lab->node, lab->qp);

	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_cq *cq =
			MUST_HAVE(ibv_create_cq(lab->node.ctx, 4, NULL, lab->channel, 0));
		struct ibv_qp *qp = self_qp(lab, worker->number ? lab->srq : NULL);
		struct ibv_ah *ah = ah_create(&lab->node, &address);

		MUST(ibv_req_notify_cq(cq, 0));
		MUST(ibv_resize_cq(cq, 100));
		MUST(ibv_destroy_ah(ah));
		MUST(ibv_destroy_qp(qp));
		MUST(ibv_destroy_cq(cq));
	}
}

/* The state changes below the other thread. Both get 0 or EINVAL. */
static void change_one_qp(struct worker *worker)
{
	struct ibv_qp_attr attr = { .port_num = TEST_PORT };
	struct ibv_qp_init_attr init;
	int err;

	for (int i = 0; i < ROUNDS; i++) {
		attr.qp_state = i % 2 ? IBV_QPS_INIT : IBV_QPS_RESET;
		err = ibv_modify_qp(worker->lab->qp, &attr,
				    i % 2 ? IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						    IBV_QP_ACCESS_FLAGS
					  : IBV_QP_STATE);
		if (err && err != EINVAL)
			die("ibv_modify_qp: %s", strerror(err));
		MUST(ibv_query_qp(worker->lab->qp, &attr, IBV_QP_STATE, &init));
		attr.port_num = TEST_PORT;
	}
}

static int objects(struct lab *lab)
{
	in_two_threads(lab, "send queue, shared receive queue, completion queue", use_queues);
	if (lab->sent[0] != REQUESTS || lab->received[1] != REQUESTS)
		die("%u+%u sends and %u+%u receives, expected %u each", lab->sent[0], lab->sent[1],
		    lab->received[0], lab->received[1], REQUESTS);
	in_two_threads(lab, "protection domain", use_regions);
	in_two_threads(lab, "context, channel", use_many_objects);
	in_two_threads(lab, "queue pair", change_one_qp);
	return 0;
}

/* --------------------------------------------------------------------- unacked */

static bool destroyed;

static void *destroy(void *qp)
{
	MUST(ibv_destroy_qp(qp));
	__atomic_store_n(&destroyed, true, __ATOMIC_RELEASE);
	return NULL;
}

/* A QP that has reported an event by its own WRITE with a wrong rkey. */
static struct ibv_qp *failed_qp(struct lab *lab, struct ibv_async_event *event)
{
	struct ibv_qp *qp = self_qp(lab, NULL);

	post_send(qp, .opcode = IBV_WR_RDMA_WRITE, ONE_SGE(lab->mr, lab->mr->addr, 8),
		  .wr.rdma = { .remote_addr = (uintptr_t)lab->mr->addr,
			       .rkey = lab->mr->rkey ^ 0x100 });
	/* Its responder fails first, so its requester is flushed. */
	cq_expect(lab->cq, IBV_WC_WR_FLUSH_ERR, "WRITE with a wrong rkey");
	MUST(ibv_get_async_event(lab->node.ctx, event));
	if (event->event_type != IBV_EVENT_QP_ACCESS_ERR || event->element.qp != qp)
		die("%s, expected an access error of the QP",
		    ibv_event_type_str(event->event_type));
	return qp;
}

static void use_others(struct lab *lab)
{
	for (int i = 0; i < 50; i++) {
		struct ibv_qp *qp = self_qp(lab, NULL);

		post_send(qp, .opcode = IBV_WR_RDMA_WRITE, ONE_SGE(lab->mr, lab->mr->addr, 8),
			  .wr.rdma = { .remote_addr = (uintptr_t)lab->mr->addr,
				       .rkey = lab->mr->rkey });
		cq_expect(lab->cq, IBV_WC_SUCCESS, "WRITE of another QP");
		MUST(ibv_dereg_mr(
			MUST_HAVE(ibv_reg_mr(lab->node.pd, lab->mr->addr, BYTES, ACCESS))));
		MUST(ibv_destroy_qp(qp));
	}
}

static int unacked(struct lab *lab)
{
	struct ibv_async_event event;
	struct ibv_qp *qp = failed_qp(lab, &event);
	pthread_t thread;

	use_others(lab);
	puts("unacked: others work");
	fflush(stdout);
	MUST(pthread_create(&thread, NULL, destroy, qp));
	usleep(200000);
	use_others(lab);
	if (__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE))
		die("the QP is destroyed before its event is acknowledged");
	puts("unacked: others work while the destruction waits");
	fflush(stdout);
	ibv_ack_async_event(&event);
	MUST(pthread_join(thread, NULL));
	puts("unacked: the destruction ends");
	return 0;
}

/* ------------------------------------------------------------------------ fork */

static void child(struct lab *lab, bool with_fork_init)
{
	struct lab own = {};

	/* ibv_fork_init() has taken regions out of children's memory. */
	if (!with_fork_init)
		memset(lab->mr->addr, 0xee, BYTES);
	open_lab(&own);
	use_others(&own);
	close_lab(&own);
	_exit(0);
}

static int forked(struct lab *lab, bool with_fork_init)
{
	char *memory = lab->mr->addr;
	int status;
	pid_t pid;

	memset(memory, 0x11, BYTES);
	for (int i = 0; i < 8; i++)
		MUST(try_recv(lab, 0));
	pid = fork();
	if (pid < 0)
		die("fork:");
	if (!pid)
		child(lab, with_fork_init);
	if (waitpid(pid, &status, 0) != pid || status)
		die("the child ended with status %#x", status);
	/* The device and the parent see the same pages, whichever of both processes wrote first. */
	memset(memory + 4096, 0x22, 64);
	post_send(lab->qp, .wr_id = 2, .opcode = IBV_WR_SEND, ONE_SGE(lab->mr, memory + 4096, 64));
	for (int i = 0; i < 2; i++)
		cq_expect(lab->cq, IBV_WC_SUCCESS, "SEND after fork");
	for (int i = 0; i < 64; i++)
		if (memory[i] != 0x22 || memory[128 + i] != 0x11)
			die("byte %d is %#x, byte %d is %#x", i, memory[i], 128 + i,
			    memory[128 + i]);
	puts("fork: parent and child work");
	return 0;
}

static int fork_plain(struct lab *lab)
{
	return forked(lab, false);
}

static int fork_init(struct lab *lab)
{
	return forked(lab, true);
}

static const struct {
	const char *name;
	int (*run)(struct lab *lab);
} tests[] = {
	{ "objects", objects },
	{ "unacked", unacked },
	{ "fork", fork_plain },
	{ "fork-init", fork_init },
};

int main(int argc, char **argv)
{
	struct lab lab = {};
	int status;

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (argc != 2 || strcmp(argv[1], tests[i].name))
			continue;
		if (tests[i].run == fork_init)
			MUST(ibv_fork_init());
		open_lab(&lab);
		status = tests[i].run(&lab);
		close_lab(&lab);
		return status;
	}
	die("usage: pvr_threads objects | unacked | fork | fork-init");
}
