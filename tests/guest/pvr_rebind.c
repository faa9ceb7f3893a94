// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * pvr_rebind SECONDS: one thread binds windows to a region that another thread deregisters at the
 * same time, and the registrations of a third keep both waiting for the command slot. A region with
 * windows is busy; no other error is allowed, and no program but this one may notice. The windows
 * are of one protection domain after the other: the first window of each meets a deregistration.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rdma.h"

#define PAGE 4096
#define LONG_BYTES (6 << 20) /* below an ordinary user's limit of locked memory */
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND)
#define WINDOWS 64 /* of each protection domain */

struct rebind {
	struct node node;
	struct ibv_pd *pd; /* of this round */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	char *memory;
	/* Of the current region; the program may see it for a moment after its end. */
	uint32_t lkey, rkey;
	bool is_over, ends_round;
	unsigned long regions, windows, bound, busy, longs;
};

static bool is(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void set(bool *flag, bool value)
{
	__atomic_store_n(flag, value, __ATOMIC_RELEASE);
}

static void *register_long(void *opaque)
{
	struct rebind *rebind = opaque;
	struct ibv_pd *pd = MUST_HAVE(ibv_alloc_pd(rebind->node.ctx));
	char *memory = map_memory(LONG_BYTES, MAP_POPULATE);

	for (; !is(&rebind->is_over); rebind->longs++)
		MUST(ibv_dereg_mr(
			MUST_HAVE(ibv_reg_mr(pd, memory, LONG_BYTES, IBV_ACCESS_LOCAL_WRITE))));
	MUST(munmap(memory, LONG_BYTES));
	MUST(ibv_dealloc_pd(pd));
	return NULL;
}

static void pause_some(unsigned int *seed)
{
	for (int i = rand_r(seed) % 400; i; i--)
		__asm__ volatile("pause");
}

/* Windows may keep a region busy; they end with their round at the latest. */
static void deregister(struct rebind *rebind, struct ibv_mr *mr)
{
	int err;

	while ((err = ibv_dereg_mr(mr)) == EBUSY)
		rebind->busy++;
	if (err)
		die("ibv_dereg_mr: %s", strerror(err));
	rebind->regions++;
}

static void *register_short(void *opaque)
{
	struct rebind *rebind = opaque;
	unsigned int seed = 1;
	struct ibv_mr *mr;

	while (!is(&rebind->ends_round)) {
		mr = MUST_HAVE(ibv_reg_mr(rebind->pd, rebind->memory, PAGE, ACCESS));
		__atomic_store_n(&rebind->lkey, mr->lkey, __ATOMIC_RELAXED);
		__atomic_store_n(&rebind->rkey, mr->rkey, __ATOMIC_RELAXED);
		pause_some(&seed);
		deregister(rebind, mr);
	}
	return NULL;
}

static void create_qp(struct rebind *rebind)
{
	struct ibv_pd *pd = rebind->node.pd;

	rebind->node.pd = rebind->pd;
	rebind->qp = qp_create_rc(&rebind->node, rebind->cq, 4);
	rebind->node.pd = pd;
	qp_connect_to_itself(&rebind->node, rebind->qp);
}

/* A region that has ended fails the bind, and the bind fails its QP. */
static void bind(struct rebind *rebind, struct ibv_mw *mw)
{
	struct ibv_mr mr = {
		.context = rebind->node.ctx,
		.pd = rebind->pd,
		.addr = rebind->memory,
		.length = PAGE,
		.lkey = __atomic_load_n(&rebind->lkey, __ATOMIC_RELAXED),
		.rkey = __atomic_load_n(&rebind->rkey, __ATOMIC_RELAXED),
	};
	struct ibv_wc wc;

	post_send(rebind->qp, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		  .bind_mw = { .mw = mw,
			       .rkey = ibv_inc_rkey(mw->rkey),
			       .bind_info = { .mr = &mr,
					      .addr = (uintptr_t)rebind->memory,
					      .length = PAGE,
					      .mw_access_flags = IBV_ACCESS_REMOTE_WRITE } });
	wc = cq_wait(rebind->cq);
	if (wc.status == IBV_WC_SUCCESS) {
		rebind->bound++;
		return;
	}
	MUST(ibv_destroy_qp(rebind->qp));
	create_qp(rebind);
}

/* A new protection domain had no window before. */
static void run_round(struct rebind *rebind)
{
	struct ibv_mw *mw;
	pthread_t thread;

	rebind->pd = MUST_HAVE(ibv_alloc_pd(rebind->node.ctx));
	create_qp(rebind);
	set(&rebind->ends_round, false);
	MUST(pthread_create(&thread, NULL, register_short, rebind));
	for (int i = 0; i < WINDOWS; i++, rebind->windows++) {
		mw = MUST_HAVE(ibv_alloc_mw(rebind->pd, IBV_MW_TYPE_2));
		bind(rebind, mw);
		MUST(ibv_dealloc_mw(mw));
	}
	set(&rebind->ends_round, true);
	MUST(pthread_join(thread, NULL));
	MUST(ibv_destroy_qp(rebind->qp));
	MUST(ibv_dealloc_pd(rebind->pd));
}

int main(int argc, char **argv)
{
	struct rebind rebind = { 0 };
	pthread_t thread;
	double end;

	if (argc != 2)
		die("usage: pvr_rebind SECONDS");
	node_open(&rebind.node);
	rebind.cq = MUST_HAVE(ibv_create_cq(rebind.node.ctx, 16, NULL, NULL, 0));
	rebind.memory = map_memory(PAGE, MAP_POPULATE);
	MUST(pthread_create(&thread, NULL, register_long, &rebind));
	end = now() + atof(argv[1]);
	while (now() < end)
		run_round(&rebind);
	set(&rebind.is_over, true);
	MUST(pthread_join(thread, NULL));
	MUST(ibv_destroy_cq(rebind.cq));
	node_close(&rebind.node);
	printf("rebind: %lu regions, %lu times busy, %lu windows, %lu bound, %lu long registrations\n",
	       rebind.regions, rebind.busy, rebind.windows, rebind.bound, rebind.longs);
	return !rebind.bound;
}
