// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The driver's flush of a kernel SRQ, compiled for user space with the fuzzer's kernel. */
#include <time.h>

#include "pvrdma.h"
#include "srq_wq.h"

#include <setjmp.h>
#include <cmocka.h>

/* Of files that are not compiled here. */
void *pvr_pdir_at(const struct pvr_pdir *pdir, size_t offset)
{
	(void)pdir;
	(void)offset;
	abort();
}

void writel(u32 value, void *reg)
{
	(void)value;
	(void)reg;
}

#define N 131072u /* requests; a quadratic flush takes seconds of CPU time */
#define TAKEN (N / 2) /* by QPs, not completed */

struct srq {
	struct pvr_srq_wq wq;
	struct pvr_ring ring;
};

/* The driver's part of posting, without the element that the device reads. */
static void post(struct srq *srq, u64 wr_id)
{
	struct pvr_srq_wq *wq = &srq->wq;
	u32 idx = wq->free;

	wq->slots[pvr_ring_slot(wq->tail, wq->n)] = idx;
	wq->free = wq->wrs[idx].next;
	wq->wrs[idx].wr_id = wr_id;
	wq->wrs[idx].posted = true;
	wq->wrs[idx].waits = wq->ended;
	wq->used++;
	wq->tail = pvr_ring_next(wq->tail, wq->n);
}

static void srq_init(struct srq *srq)
{
	memset(srq, 0, sizeof(*srq));
	assert_int_equal(pvr_srq_wq_init(&srq->wq, &srq->ring, N, 1, 32), 0);
}

/* Requests that QPs took are flushed, each once and in linear time; the others stay. */
static void test_flush_is_linear(void **state)
{
	clock_t begin = clock();
	struct srq srq;
	u64 wr_id;
	u32 i;

	(void)state;
	srq_init(&srq);
	for (i = 0; i < N; i++)
		post(&srq, i);
	srq.ring.cons_head = TAKEN;
	for (i = 0; i < TAKEN; i++) {
		assert_true(pvr_srq_wq_flush(&srq.wq, &wr_id));
		assert_int_equal(wr_id, i);
	}
	assert_false(pvr_srq_wq_flush(&srq.wq, &wr_id));
	assert_int_equal(srq.wq.used, N - TAKEN);
	assert_true(clock() - begin < CLOCKS_PER_SEC);
	pvr_srq_wq_exit(&srq.wq);
}

/* No QP takes a request that is posted to a dead device. */
static void test_later_requests_stay(void **state)
{
	struct srq srq;
	u64 wr_id;

	(void)state;
	srq_init(&srq);
	post(&srq, 1);
	post(&srq, 2);
	srq.ring.cons_head = 1;
	assert_true(pvr_srq_wq_flush(&srq.wq, &wr_id));
	assert_int_equal(wr_id, 1);
	post(&srq, 3);
	assert_false(pvr_srq_wq_flush(&srq.wq, &wr_id));
	assert_int_equal(srq.wq.used, 2);
	pvr_srq_wq_exit(&srq.wq);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flush_is_linear),
		cmocka_unit_test(test_later_requests_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
