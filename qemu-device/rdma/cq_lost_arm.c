// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Notification of CQs whose arm doorbell may have been overwritten. */
#include "rdma/cq_lost_arm.h"

#include "rdma/cq.h"

#define LOST_ARM_NS 50000ull
#define ANSWER_NS 2000000ull
#define NO_DMA_NS 100000000ull
#define BACKOFF_MAX PVR_CQ_BACKOFF_MAX
#define BACKOFF_STEP 4 /* subtracted after an answer */

static void set_timer(struct pvr_cq *cq, uint64_t ns)
{
	struct pvr_adapter *adapter = cq->uc->adapter;

	pvr_timer_set(&adapter->timers, &cq->late.timer, pvr_now(adapter->engine) + ns);
}

/* Start the timer: the guest has until then to consume all present completions. */
static void watch(struct pvr_cq *cq)
{
	cq->late.watched = cq->produced;
	set_timer(cq, LOST_ARM_NS << cq->late.backoff);
}

static void judge_answer(struct pvr_cq_lost_arm *late, bool answered)
{
	late->notified = false;
	if (!answered)
		late->backoff += late->backoff < BACKOFF_MAX;
	else
		late->backoff -= late->backoff < BACKOFF_STEP ? late->backoff : BACKOFF_STEP;
}

static void notify(struct pvr_cq *cq)
{
	pvr_cq_notify(cq->uc->adapter, cq);
	cq->late.notified = true;
	set_timer(cq, ANSWER_NS);
}

static void expired(struct pvr_timer *timer)
{
	struct pvr_cq *cq = (struct pvr_cq *)((char *)timer - offsetof(struct pvr_cq, late.timer));
	struct pvr_cq_lost_arm *late = &cq->late;
	uint32_t unread;

	if (cq->error)
		return;
	/* After a failure, and between the steps of a reset, DMA does not begin again. */
	if (!pvr_adapter_dma_ok(cq->uc->adapter)) {
		if (!cq->uc->adapter->dma_on)
			set_timer(cq, NO_DMA_NS);
		return;
	}
	unread = pvr_cq_unread(cq);
	if (late->notified)
		judge_answer(late, cq->produced - unread >= late->watched);
	else if (cq->produced - unread < late->watched && cq->notified < cq->produced) {
		notify(cq);
		return;
	}
	if (unread && cq->notified < cq->produced)
		pvr_cq_lost_arm_pushed(cq);
}

int pvr_cq_lost_arm_init(struct pvr_cq *cq)
{
	cq->late.doorbells = cq->uc->cq_doorbells;
	return pvr_timer_init(&cq->uc->adapter->timers, &cq->late.timer, expired);
}

void pvr_cq_lost_arm_exit(struct pvr_cq *cq)
{
	pvr_timer_exit(&cq->uc->adapter->timers, &cq->late.timer);
}

void pvr_cq_lost_arm_pushed(struct pvr_cq *cq)
{
	if (cq->late.doorbells == cq->uc->cq_doorbells || cq->arm_seen ||
	    pvr_timer_is_set(&cq->late.timer))
		return;
	watch(cq);
}

void pvr_cq_lost_arm_rung(struct pvr_cq *cq)
{
	if (cq->error || pvr_cq_check_arming(cq->uc->adapter, cq))
		return;
	if (cq->notified < cq->produced && pvr_cq_unread(cq))
		pvr_cq_lost_arm_pushed(cq);
}
