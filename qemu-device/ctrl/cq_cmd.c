// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands of completion queues. */
#include <errno.h>

#include "core/charge.h"
#include "core/state.h"
#include "ctrl/uar_poll.h"
#include "core/wq.h"
#include "rdma/cq.h"
#include "rdma/cq_lost_arm.h"
#include "rdma/cq_moderation.h"
#include "rdma/sched.h"
#include "core/objects.h"
#include "ctrl/ctrl.h"
#include "rdma/qp.h"
#include "rdma/event.h"
static int ring_check(uint32_t cqe, uint32_t nchunks)
{
	uint64_t bytes = (uint64_t)cqe * sizeof(struct pvrdma_cqe);

	if (!cqe || cqe > PVR_MAX_CQE || (cqe & (cqe - 1)))
		return -EINVAL;
	/* The header page, and enough pages for the entries. */
	if (nchunks < 2 || nchunks > PVR_PDIR_MAX_PAGES ||
	    (uint64_t)(nchunks - 1) * PVR_PAGE_SIZE < bytes)
		return -EINVAL;
	return 0;
}

/*
 * The header page and the pages of the entries. The directory may have more pages, which
 * the device does not use and therefore does not translate.
 */
static uint32_t ring_pages(uint32_t cqe)
{
	return 1 + pvr_wq_pages(cqe, sizeof(struct pvrdma_cqe));
}

static int cq_attach(struct pvr_adapter *adapter, const struct pvr_cmd_create_cq *cmd,
		     struct pvr_cq *cq)
{
	int err;

	err = pvr_pages_map(adapter, cmd->pdir_dma, ring_pages(cmd->cqe), true, &cq->pages);
	if (err)
		return err;
	pvr_cq_use_ring(adapter, cq);
	cq->cqe = cmd->cqe;
	return 0;
}

/*
 * Stock drivers do not initialize comp_vector. Return: false for a vector without a ring.
 */
static bool choose_vector(const struct pvr_adapter *adapter, const struct pvr_cmd_create_cq *cmd,
			  struct pvr_cq *cq)
{
	if (adapter->features & PVR_EXT_CQ_VECTORS)
		cq->comp_vector = cmd->comp_vector;
	return pvr_events_have_vector(adapter, cq->comp_vector);
}

/* Other drivers do not initialize flags. Return: false for an unknown flag. */
static bool take_flags(const struct pvr_adapter *adapter, const struct pvr_cmd_create_cq *cmd,
		       struct pvr_cq *cq)
{
	if (!(adapter->features & PVR_EXT_CQ_TIMESTAMP))
		return true;
	cq->has_timestamps = cmd->flags & PVR_CQ_TIMESTAMP;
	return !(cmd->flags & ~PVR_CQ_TIMESTAMP);
}

int pvr_cmd_create_cq(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_create_cq *cmd = &req->create_cq;
	struct pvr_uc *uc = pvr_uc_get(adapter, cmd->ctx_handle);
	struct pvr_cq *cq;
	int err;

	err = uc ? ring_check(cmd->cqe, cmd->nchunks) : -EINVAL;
	if (err)
		return err;
	cq = pvr_charge_alloc(adapter, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->uc = uc;
	err = -EINVAL;
	if (choose_vector(adapter, cmd, cq) && take_flags(adapter, cmd, cq))
		err = cq_attach(adapter, cmd, cq);
	if (err)
		goto err_free;
	err = pvr_cq_lost_arm_init(cq);
	if (err)
		goto err_unmap;
	err = pvr_table_add(&adapter->cqs, cq, &cq->handle);
	if (err)
		goto err_cq_lost_arm;
	pvr_uc_own(uc, PVR_OWNED_CQ, &cq->owned);
	resp->create_cq.cq_handle = cq->handle;
	resp->create_cq.cqe = cq->cqe;
	return 0;

err_cq_lost_arm:
	pvr_cq_lost_arm_exit(cq);
err_unmap:
	pvr_pages_unmap(adapter, &cq->pages);
err_free:
	pvr_charge_free(adapter, cq, sizeof(*cq));
	return err;
}

/* Only commands destroy a CQ, and none runs before this one ends. */
static int resize_step(struct pvr_adapter *adapter, union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_resize_cq *cmd = &adapter->job.req.resize_cq;
	int err = pvr_cq_move_run(adapter, pvr_cq_get(adapter, cmd->cq_handle), &adapter->job.move);

	if (err == -EINPROGRESS)
		return err;
	pvr_pages_unmap(adapter, &adapter->job.move.pages);
	resp->resize_cq.cqe = cmd->cqe;
	return err;
}

static int resize_begin(struct pvr_adapter *adapter, const struct pvr_cmd_resize_cq *cmd,
			const struct pvr_cq *cq)
{
	struct pvr_ring_move *move = &adapter->job.move;
	int err = ring_check(cmd->cqe, cmd->nchunks);

	if (!err)
		err = pvr_pages_map(adapter, cmd->pdir_dma, ring_pages(cmd->cqe), true,
				    &move->pages);
	if (err)
		return err;
	move->size = cmd->cqe;
	err = pvr_cq_move_begin(cq, move);
	if (err)
		pvr_pages_unmap(adapter, &move->pages);
	return err;
}

int pvr_cmd_resize_cq(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	const struct pvr_cq *cq = pvr_cq_get(adapter, req->resize_cq.cq_handle);
	int err;

	if (!cq)
		return -EINVAL;
	if (!(adapter->features & PVR_EXT_RESIZE))
		return -EOPNOTSUPP;
	/*
	 * Doorbells before this command may still wait for their quantum. Their
	 * completions must be counted before the check of the new size; else the new ring
	 * could overflow.
	 *
	 * These quanta are as many as an adapter gets in a run of its worker, with the
	 * same limits of requests and bytes. They run no timers and no commands, and
	 * destroy no objects. So a guest gains nothing by this command that doorbells do
	 * not give it.
	 */
	pvr_sched_run_adapter(adapter);
	/* The memory of the ring may be unplugged. */
	err = cq->error ? -EIO : resize_begin(adapter, &req->resize_cq, cq);
	if (err)
		return err;
	return pvr_cmd_begin(adapter, req, resize_step, pvr_cmd_cancel_move, resp);
}

void pvr_cq_destroy(struct pvr_adapter *adapter, struct pvr_cq *cq)
{
	pvr_event_forget_cq(adapter, cq);
	pvr_uc_disown(cq->uc, PVR_OWNED_CQ, &cq->owned);
	pvr_cq_lost_arm_exit(cq);
	pvr_cq_moderation_exit(cq);
	pvr_table_del(&adapter->cqs, cq->handle);
	pvr_pages_unmap(adapter, &cq->pages);
	pvr_charge_free(adapter, cq, sizeof(*cq));
}

int pvr_cmd_destroy_cq(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		       union pvr_cmd_resp *resp)
{
	struct pvr_cq *cq = pvr_cq_get(adapter, req->handle.handle);

	if (!cq)
		return -EINVAL;
	if (cq->users)
		return -EBUSY;
	pvr_cq_destroy(adapter, cq);
	return 0;
}

int pvr_cmd_modify_cq(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_modify_cq *cmd = &req->modify_cq;
	struct pvr_cq *cq = pvr_cq_get(adapter, cmd->cq_handle);

	if (!cq || (cmd->count > 1 && !cmd->period_us))
		return -EINVAL;
	return pvr_cq_moderation_set(cq, cmd->count, cmd->period_us);
}

/* Vector 0 has the ring of the DSR. A vector with a ring keeps it. */
int pvr_cmd_set_cq_ring(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
			union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_set_cq_ring *cmd = &req->set_cq_ring;

	if (!cmd->comp_vector || cmd->comp_vector >= PVR_CQ_VECTORS_MAX)
		return -EINVAL;
	if (pvr_events_have_vector(adapter, cmd->comp_vector))
		return -EBUSY;
	return pvr_events_attach_vector(adapter, cmd->comp_vector, &cmd->ring);
}

/* --------------------------------------------------------------------------- state */

static void counters_fields(struct pvr_codec *codec, struct pvr_cq *cq)
{
	uint8_t armed = cq->armed;

	pvr_codec_u64(codec, "produced", &cq->produced);
	pvr_codec_u64_max(codec, "notified", &cq->notified, cq->produced);
	pvr_codec_u64_max(codec, "solicited", &cq->solicited, cq->produced);
	pvr_codec_u8_max(codec, "armed", &armed, PVR_CQ_ARMED_ANY);
	pvr_codec_u32(codec, "arm_seen", &cq->arm_seen);
	pvr_codec_bool(codec, "arm_notified", &cq->arm_notified);
	cq->armed = armed;
	cq->published = cq->produced;
}

/* The timers exist. */
static void notice_fields(struct pvr_codec *codec, struct pvr_cq *cq)
{
	struct pvr_cq_moderation *moderation = &cq->moderation;
	uint16_t count = moderation->count, period_us = moderation->period_us;
	uint64_t none = 0;

	pvr_codec_u64_max(codec, "watched", &cq->late.watched, cq->produced);
	pvr_codec_u64(codec, "doorbells", &cq->late.doorbells);
	pvr_codec_u8_max(codec, "backoff", &cq->late.backoff, PVR_CQ_BACKOFF_MAX);
	pvr_codec_bool(codec, "late notification", &cq->late.notified);
	pvr_codec_timer(codec, "late timer", &cq->late.timer);
	pvr_codec_u16(codec, "moderation count", &count);
	pvr_codec_u16(codec, "moderation period", &period_us);
	if (count > 1 && !period_us)
		pvr_codec_fault(codec, -EINVAL, "moderation of %u completions has no period",
				count);
	if (codec->loads && !codec->err && pvr_cq_moderation_set(cq, count, period_us))
		pvr_codec_fault(codec, -ENOMEM, "out of memory");
	if (moderation->has_timer)
		pvr_codec_timer(codec, "moderation timer", &moderation->timer);
	else
		pvr_codec_u64_max(codec, "moderation timer", &none, 0);
}

static void cq_fields(struct pvr_codec *codec, struct pvr_cq *cq)
{
	pvr_codec_u32_max(codec, "vector", &cq->comp_vector, PVR_CQ_VECTORS_MAX - 1);
	pvr_codec_bool(codec, "timestamps", &cq->has_timestamps);
	pvr_codec_bool(codec, "error", &cq->error);
	counters_fields(codec, cq);
	notice_fields(codec, cq);
	pvr_codec_u32(codec, "entries", &cq->cqe);
	if (ring_check(cq->cqe, cq->cqe ? ring_pages(cq->cqe) : 0))
		pvr_codec_fault(codec, -EINVAL, "%u entries, expected a power of two up to %u",
				cq->cqe, PVR_MAX_CQE);
	else
		pvr_codec_ring_pages(codec, &cq->pages, ring_pages(cq->cqe));
}

static void cq_refs(struct pvr_codec *codec, struct pvr_cq *cq, uint32_t *context)
{
	pvr_codec_u32(codec, "handle", &cq->handle);
	pvr_codec_u32(codec, "context", context);
}

void pvr_cq_save(struct pvr_codec *codec, void *object)
{
	struct pvr_cq *cq = object;
	uint32_t context = cq->uc->handle;

	cq_refs(codec, cq, &context);
	cq_fields(codec, cq);
}

static void cq_check(struct pvr_codec *codec, const struct pvr_cq *cq)
{
	const struct pvr_adapter *adapter = codec->adapter;

	if (adapter->state == PVR_ADAPTER_ACTIVE &&
	    !pvr_events_have_vector(adapter, cq->comp_vector))
		pvr_codec_fault(codec, -EINVAL, "vector %u has no ring", cq->comp_vector);
	if (cq->has_timestamps && !(adapter->features & PVR_EXT_CQ_TIMESTAMP))
		pvr_codec_fault(codec, -EINVAL, "the driver does not use timestamps");
	if (cq->pages.broken && !cq->error)
		pvr_codec_fault(codec, -EINVAL, "its pages are broken, and it is not in error");
}

/* Its context is set, and all else is zero. */
static void cq_load(struct pvr_codec *codec, struct pvr_cq *cq)
{
	struct pvr_adapter *adapter = codec->adapter;
	uint32_t arm_seen;

	if (pvr_cq_lost_arm_init(cq)) {
		pvr_codec_fault(codec, -ENOMEM, "out of memory");
		pvr_charge_free(adapter, cq, sizeof(*cq));
		return;
	}
	cq_fields(codec, cq);
	cq_check(codec, cq);
	if (!codec->err)
		pvr_state_enter(codec, &adapter->cqs, cq, cq->handle);
	if (codec->err) {
		pvr_cq_lost_arm_exit(cq);
		pvr_cq_moderation_exit(cq);
		pvr_pages_unmap(adapter, &cq->pages);
		pvr_charge_free(adapter, cq, sizeof(*cq));
		return;
	}
	arm_seen = cq->arm_seen;
	pvr_cq_use_ring(adapter, cq);
	cq->arm_seen = arm_seen;
	pvr_uc_own(cq->uc, PVR_OWNED_CQ, &cq->owned);
}

void pvr_cq_load(struct pvr_codec *codec)
{
	struct pvr_cq *cq = pvr_state_alloc(codec, sizeof(*cq));
	uint32_t context;

	if (!cq)
		return;
	cq_refs(codec, cq, &context);
	cq->uc = pvr_state_get_uc(codec, context);
	if (codec->err)
		pvr_charge_free(codec->adapter, cq, sizeof(*cq));
	else
		cq_load(codec, cq);
}
