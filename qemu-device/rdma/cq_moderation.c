// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion event moderation: fewer notifications of a CQ. */
#include "rdma/cq_moderation.h"

#include "rdma/cq.h"

static void set_timer(struct pvr_cq *cq)
{
	struct pvr_adapter *adapter = cq->uc->adapter;

	pvr_timer_set(&adapter->timers, &cq->moderation.timer,
		      pvr_now(adapter->engine) + cq->moderation.period_us * 1000ull);
}

/* After a failure, and between the steps of a reset, DMA does not begin again. */
static void expired(struct pvr_timer *timer)
{
	struct pvr_cq *cq =
		(struct pvr_cq *)((char *)timer - offsetof(struct pvr_cq, moderation.timer));

	if (cq->error)
		return;
	if (pvr_adapter_dma_ok(cq->uc->adapter))
		pvr_cq_notify_late(cq->uc->adapter, cq);
	else if (!cq->uc->adapter->dma_on)
		set_timer(cq);
}

bool pvr_cq_moderation_holds_back(struct pvr_cq *cq)
{
	struct pvr_cq_moderation *moderation = &cq->moderation;

	if (moderation->count && cq->produced - cq->notified >= moderation->count) {
		pvr_timer_cancel(&cq->uc->adapter->timers, &moderation->timer);
		return false;
	}
	if (!pvr_timer_is_set(&moderation->timer))
		set_timer(cq);
	return true;
}

/* The timer exists from the first moderation on. */
int pvr_cq_moderation_set(struct pvr_cq *cq, uint16_t count, uint16_t period_us)
{
	struct pvr_cq_moderation *moderation = &cq->moderation;
	struct pvr_adapter *adapter = cq->uc->adapter;
	int err;

	if (!moderation->has_timer && period_us) {
		err = pvr_timer_init(&adapter->timers, &moderation->timer, expired);
		if (err)
			return err;
		moderation->has_timer = true;
	}
	moderation->count = count;
	moderation->period_us = period_us;
	/* A notification that waits follows the new rules. */
	if (moderation->has_timer && pvr_timer_is_set(&moderation->timer)) {
		pvr_timer_cancel(&adapter->timers, &moderation->timer);
		pvr_cq_notify_late(adapter, cq);
	}
	return 0;
}

void pvr_cq_moderation_exit(struct pvr_cq *cq)
{
	if (cq->moderation.has_timer)
		pvr_timer_exit(&cq->uc->adapter->timers, &cq->moderation.timer);
}
