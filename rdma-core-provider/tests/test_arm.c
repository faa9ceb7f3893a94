// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_CQ_ARM_DBREC: the arm record, and the doorbells that are still needed. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "fake_kernel.h"

#define STEP PVR_CQ_ARM_STEP
#define ANY PVR_CQ_ARM_ANY
#define SOL PVR_CQ_ARM_SOLICITED

static struct ibv_cq *cq;
static struct ibv_qp *qp;

/* The CQs of fake_setup() have no features. */
static int arm_setup(void **state)
{
	if (fake_setup(state))
		return -1;
	fake.ctx.features = PVR_EXT_CQ_ARM_DBREC | PVR_EXT_RESIZE | PVR_EXT_NO_POLL_DB;
	qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	cq = pvr_create_cq(&fake.ctx.ibv_ctx.context, 8, NULL, 0);
	return cq ? 0 : -1;
}

static int arm_teardown(void **state)
{
	pvr_destroy_cq(cq);
	return fake_teardown(state);
}

static _Atomic uint32_t *word_of(struct ibv_cq *ibcq)
{
	return (void *)((uint8_t *)to_pvr_cq(ibcq)->buf.addr + PVR_CQ_ARM_DBREC_OFFSET);
}

/* Sets told: whether the device has announced all CQEs. */
static void tell(uint32_t told)
{
	struct pvr_cq_arm_dbrec *arm_dbrec =
		(void *)((uint8_t *)to_pvr_cq(cq)->buf.addr + PVR_CQ_ARM_DBREC_OFFSET);

	arm_dbrec->notified = told;
}

static void complete(void)
{
	struct pvrdma_cqe cqe = { .qp = to_pvr_qp(qp)->handle };

	fake_complete(cq, &cqe);
}

static void poll_all(void)
{
	struct ibv_wc wcs[8];

	assert_true(pvr_poll_cq(cq, 8, wcs) >= 0);
}

/* Arms, and checks the arm record and the doorbell; flag 0: no doorbell. */
static void arm(bool solicited, uint32_t word, uint32_t flag)
{
	assert_int_equal(pvr_req_notify_cq(cq, solicited), 0);
	assert_int_equal(*word_of(cq), word);
	assert_int_equal(fake_rung(PVRDMA_UAR_CQ_OFFSET), flag ? flag | to_pvr_cq(cq)->handle : 0);
}

TEST(arm, test_each_arming_is_another_word)
{
	assert_int_equal(*word_of(cq), 0);
	arm(true, STEP | SOL, 0);
	arm(true, 2 * STEP | SOL, 0);
	arm(false, 3 * STEP | ANY, 0);
	arm(false, 4 * STEP | ANY, 0);
}

TEST(arm, test_an_unread_completion_rings)
{
	complete();
	arm(false, STEP | ANY, PVR_DB_CQ_ARM);
	poll_all();
	arm(false, 2 * STEP | ANY, 0);
}

TEST(arm, test_an_unread_completion_rings_for_solicited_ones)
{
	complete();
	arm(true, STEP | SOL, PVR_DB_CQ_ARM_SOL);
	poll_all();
	arm(true, 2 * STEP | SOL, 0);
}

/* A program that got an event arms and then polls. */
TEST(arm, test_what_was_announced_rings_no_more)
{
	complete();
	tell(1);
	arm(false, STEP | ANY, 0);
	arm(true, STEP | ANY, PVR_DB_CQ_ARM_SOL);
	tell(0);
	complete();
	arm(false, 2 * STEP | ANY, PVR_DB_CQ_ARM);
	poll_all();
	tell(0x80000000);
	complete();
	arm(false, 3 * STEP | ANY, 0);
}

/* CQEs of a running poll count as unread, and the poller's lock does not block arming. */
TEST(arm, test_arming_while_one_polls)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 8 };
	struct ibv_poll_cq_attr poll_attr = {};
	struct ibv_cq_ex *ex = pvr_create_cq_ex(&fake.ctx.ibv_ctx.context, &attr);

	assert_non_null(ex);
	pvr_destroy_cq(cq);
	cq = ibv_cq_ex_to_cq(ex);
	complete();
	assert_int_equal(ibv_start_poll(ex, &poll_attr), 0);
	arm(false, STEP | ANY, PVR_DB_CQ_ARM);
	ibv_end_poll(ex);
	arm(false, 2 * STEP | ANY, 0);
}

/*
 * The device may not have read the first arming: its event must come for any completion.
 */
TEST(arm, test_solicited_does_not_take_back_any)
{
	arm(false, STEP | ANY, 0);
	arm(true, STEP | ANY, PVR_DB_CQ_ARM_SOL);
	arm(false, 2 * STEP | ANY, 0);
}

TEST(arm, test_the_counter_wraps)
{
	to_pvr_cq(cq)->arm = -STEP | SOL;
	arm(true, SOL, 0);
	arm(false, STEP | ANY, 0);
}

/* The provider keeps a private copy of the arm record. */
TEST(arm, test_the_word_is_not_read_back)
{
	arm(true, STEP | SOL, 0);
	*word_of(cq) = 0xfffffffe;
	arm(true, 2 * STEP | SOL, 0);
}

TEST(arm, test_without_the_extension_every_arming_rings)
{
	pvr_destroy_cq(cq);
	fake.ctx.features = PVR_EXT_RESIZE;
	cq = pvr_create_cq(&fake.ctx.ibv_ctx.context, 8, NULL, 0);
	arm(false, 0, PVR_DB_CQ_ARM);
	arm(true, 0, PVR_DB_CQ_ARM_SOL);
}

/*
 * The arm record of the new ring starts at 0; that of the old ring is not used any more.
 */
TEST(arm, test_resizing_begins_a_new_word)
{
	arm(false, STEP | ANY, 0);
	assert_int_equal(pvr_resize_cq(cq, 16), 0);
	assert_true(fake.resized_locked);
	assert_int_equal(*word_of(cq), 0);
	arm(true, STEP | SOL, 0);
	complete();
	arm(true, 2 * STEP | SOL, PVR_DB_CQ_ARM_SOL);
}

TEST(arm, test_a_resizing_that_fails_keeps_the_word)
{
	arm(false, STEP | ANY, 0);
	fake.fail = ENOMEM;
	assert_int_equal(pvr_resize_cq(cq, 16), ENOMEM);
	arm(false, 2 * STEP | ANY, 0);
}

#define THREADS 4
#define ARMINGS 200000

static pthread_barrier_t start;

static void *arm_often(void *arg)
{
	int i;

	pthread_barrier_wait(&start);
	for (i = 0; i < ARMINGS; i++)
		pvr_req_notify_cq(cq, false);
	return NULL;
}

/* Two armings that store the same value would count as one. */
TEST(arm, test_armings_of_several_threads_all_count)
{
	pthread_t threads[THREADS];
	int i;

	pthread_barrier_init(&start, NULL, THREADS);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, arm_often, NULL), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&start);
	assert_int_equal(*word_of(cq), THREADS * ARMINGS * STEP | ANY);
}

#define ROUNDS 200000

/* A device that writes a CQE in each round, while the test arms. */
static struct {
	_Atomic uint32_t begun, ended; /* rounds */
	bool saw; /* the arming, after its CQE */
} device;

static void *complete_in_each_round(void *arg)
{
	struct pvr_ring_shm *ring_shm = to_pvr_cq(cq)->ring_shm;
	uint32_t round, seen = 0, word, tail = 0;

	for (round = 1; round <= ROUNDS; round++) {
		while (atomic_load(&device.begun) != round)
			;
		tail = pvr_ring_next(tail, to_pvr_cq(cq)->num);
		atomic_store_explicit(&ring_shm->prod_tail, tail, memory_order_release);
		atomic_thread_fence(memory_order_seq_cst);
		word = atomic_load_explicit(word_of(cq), memory_order_relaxed);
		device.saw = word != seen;
		atomic_store(&device.ended, round);
		seen += STEP;
		seen = (seen & ~PVR_CQ_ARM_KIND) | ANY;
	}
	return NULL;
}

/* Without the fence, some completion is not announced sooner or later. */
TEST(arm, test_a_device_that_completes_misses_no_arming)
{
	struct pvr_cq *pcq = to_pvr_cq(cq);
	uint32_t round, lost = 0;
	pthread_t thread;

	memset(&device, 0, sizeof(device));
	assert_int_equal(pthread_create(&thread, NULL, complete_in_each_round, NULL), 0);
	for (round = 1; round <= ROUNDS; round++) {
		atomic_store(&device.begun, round);
		pvr_req_notify_cq(cq, false);
		while (atomic_load(&device.ended) != round)
			;
		lost += !fake_rung(PVRDMA_UAR_CQ_OFFSET) && !device.saw;
		pcq->ring_shm->cons_head = pcq->ring_shm->prod_tail;
	}
	pthread_join(thread, NULL);
	pcq->head = pcq->ring_shm->prod_tail;
	assert_int_equal(lost, 0);
}
