// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_CQ_ARM_DBREC: the arm record, and the doorbells that are still needed. */
#include "fake_kernel.h"

#define STEP PVR_CQ_ARM_STEP
#define ANY PVR_CQ_ARM_ANY
#define SOL PVR_CQ_ARM_SOLICITED

static struct ibv_cq *cq;
static struct ibv_qp *qp;

/* The CQs of fake_setup() have no features. */
static void arm_begin(void)
{
	fake.ctx.features = PVR_EXT_CQ_ARM_DBREC | PVR_EXT_RESIZE | PVR_EXT_NO_POLL_DB;
	qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	cq = fake_cq(8);
}

static void *arm_dbrec(void)
{
	return (uint8_t *)to_pvr_cq(cq)->buf.addr + PVR_CQ_ARM_DBREC_OFFSET;
}

static _Atomic uint32_t *word(void)
{
	return arm_dbrec();
}

/* Whether the device has announced all CQEs. */
static void set_notified(uint32_t notified)
{
	((struct pvr_cq_arm_dbrec *)arm_dbrec())->notified = notified;
}

static void complete(void)
{
	FAKE_COMPLETE(cq, .qp = fake_handle(qp));
}

static void poll_all(void)
{
	struct ibv_wc wcs[8];

	assert_true(pvr_poll_cq(cq, 8, wcs) >= 0);
}

/* Arms, and checks the arm record and the doorbell; flag 0: no doorbell. */
static void arm(bool solicited, uint32_t expected, uint32_t flag)
{
	assert_int_equal(pvr_req_notify_cq(cq, solicited), 0);
	assert_int_equal(*word(), expected);
	assert_int_equal(fake_rung(PVRDMA_UAR_CQ_OFFSET), flag ? flag | to_pvr_cq(cq)->handle : 0);
}

TEST(arm, test_each_arming_is_another_word)
{
	assert_int_equal(*word(), 0);
	arm(true, STEP | SOL, 0);
	arm(true, 2 * STEP | SOL, 0);
	arm(false, 3 * STEP | ANY, 0);
	arm(false, 4 * STEP | ANY, 0);
}

static const struct {
	const char *label;
	bool solicited;
	uint32_t kind, flag;
} kinds[] = {
	{ "any", false, ANY, PVR_DB_CQ_ARM },
	{ "solicited", true, SOL, PVR_DB_CQ_ARM_SOL },
};

TEST_CASES(arm, test_arming_with_an_unread_completion_rings, kinds)
{
	complete();
	arm(row->solicited, STEP | row->kind, row->flag);
	poll_all();
	arm(row->solicited, 2 * STEP | row->kind, 0);
}

/* A program that got an event arms and then polls. */
TEST(arm, test_arming_with_an_announced_completion_does_not_ring)
{
	complete();
	set_notified(1);
	arm(false, STEP | ANY, 0);
	arm(true, STEP | ANY, PVR_DB_CQ_ARM_SOL);
	set_notified(0);
	complete();
	arm(false, 2 * STEP | ANY, PVR_DB_CQ_ARM);
	poll_all();
	set_notified(0x80000000);
	complete();
	arm(false, 3 * STEP | ANY, 0);
}

/*
 * CQEs that a running poll has not returned count as unread, and the poller's lock does not
 * block arming.
 */
TEST(arm, test_arming_during_a_poll_rings)
{
	struct ibv_poll_cq_attr poll_attr = {};
	struct ibv_cq_ex *ex = FAKE_CQ_EX(.cqe = 8);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = ibv_cq_ex_to_cq(ex),
		.cap = { .max_send_wr = 8 },
	};

	assert_non_null(ex);
	cq = ibv_cq_ex_to_cq(ex);
	qp = fake_create_qp(&attr);
	complete();
	complete();
	assert_int_equal(ibv_start_poll(ex, &poll_attr), 0);
	arm(false, STEP | ANY, PVR_DB_CQ_ARM);
	assert_int_equal(ibv_next_poll(ex), 0);
	arm(false, 2 * STEP | ANY, 0);
	ibv_end_poll(ex);
}

/*
 * The device may not have read the first arming: its event must come for any completion.
 */
TEST(arm, test_arming_for_solicited_ones_does_not_revoke_any)
{
	arm(false, STEP | ANY, 0);
	arm(true, STEP | ANY, PVR_DB_CQ_ARM_SOL);
	arm(false, 2 * STEP | ANY, 0);
}

TEST(arm, test_counter_of_the_word_wraps)
{
	to_pvr_cq(cq)->arm = -STEP | SOL;
	arm(true, SOL, 0);
	arm(false, STEP | ANY, 0);
}

/* The provider keeps a private copy of the arm record. */
TEST(arm, test_word_is_not_read_back)
{
	arm(true, STEP | SOL, 0);
	*word() = 0xfffffffe;
	arm(true, 2 * STEP | SOL, 0);
}

TEST(arm, test_arming_without_the_extension_rings_each_time)
{
	fake.ctx.features = PVR_EXT_RESIZE;
	cq = fake_cq(8);
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
	assert_int_equal(*word(), 0);
	arm(true, STEP | SOL, 0);
	complete();
	arm(true, 2 * STEP | SOL, PVR_DB_CQ_ARM_SOL);
}

TEST(arm, test_failed_resizing_keeps_the_word)
{
	arm(false, STEP | ANY, 0);
	fake.fail = ENOMEM;
	assert_int_equal(pvr_resize_cq(cq, 16), ENOMEM);
	arm(false, 2 * STEP | ANY, 0);
}

#define ARMINGS 200000

static void arm_often(uintptr_t number)
{
	int i;

	for (i = 0; i < ARMINGS; i++)
		pvr_req_notify_cq(cq, false);
}

/* Two armings that store the same value would count as one. */
TEST(arm, test_armings_of_several_threads_all_count)
{
	fake_threads_start(arm_often);
	fake_threads_join();
	assert_int_equal(*word(), FAKE_THREADS * ARMINGS * STEP | ANY);
}

static struct {
	uint32_t tail, seen; /* of the ring; the word before */
	bool saw; /* the arming, after its CQE */
} device;

static void complete_once(void)
{
	device.tail = pvr_ring_next(device.tail, to_pvr_cq(cq)->num);
	atomic_store_explicit(&to_pvr_cq(cq)->ring_shm->prod_tail, device.tail,
			      memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	device.saw = atomic_load_explicit(word(), memory_order_relaxed) != device.seen;
	device.seen = ((device.seen + STEP) & ~PVR_CQ_ARM_KIND) | ANY;
}

/* Without the fence, some completion is not announced sooner or later. */
TEST(arm, test_device_that_completes_misses_no_arming)
{
	struct pvr_cq *pcq = to_pvr_cq(cq);
	uint32_t lost = 0;

	memset(&device, 0, sizeof(device));
	fake_race_start(complete_once);
	while (fake_race_next()) {
		fake_race_begin();
		pvr_req_notify_cq(cq, false);
		fake_race_wait();
		lost += !fake_rung(PVRDMA_UAR_CQ_OFFSET) && !device.saw;
		pcq->ring_shm->cons_head = pcq->ring_shm->prod_tail;
	}
	pcq->head = pcq->ring_shm->prod_tail;
	assert_int_equal(lost, 0);
}
