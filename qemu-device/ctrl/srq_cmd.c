// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Commands of shared receive queues. */
#include <errno.h>

#include "core/charge.h"
#include "core/state.h"
#include "ctrl/uar_poll.h"
#include "core/wq.h"
#include "rdma/db_suppress.h"
#include "core/objects.h"
#include "ctrl/ctrl.h"
#include "rdma/qp.h"
#include "rdma/xrc.h"
#include "ctrl/revision.h"
/* The caller has checked @max_sge. */
static int ring_check(uint32_t max_wr, uint32_t max_sge, uint32_t nchunks)
{
	if (!max_wr || max_wr > PVR_MAX_SRQ_WR || (max_wr & (max_wr - 1)))
		return -EINVAL;
	if (!nchunks || nchunks > PVR_PDIR_MAX_PAGES ||
	    nchunks - 1 < pvr_wq_pages(max_wr, pvr_rq_stride(max_sge)))
		return -EINVAL;
	return 0;
}

static bool type_ok(const struct pvr_adapter *adapter, uint8_t type)
{
	return type == PVR_SRQT_BASIC || (type == PVR_SRQT_XRC && adapter->features & PVR_EXT_XRC);
}

static int srq_check(const struct pvr_adapter *adapter, const struct pvr_cmd_create_srq *cmd)
{
	const struct pvr_srq_attr *attr = &cmd->attrs;

	if (!adapter->revision->srq || !type_ok(adapter, cmd->srq_type))
		return -EOPNOTSUPP;
	if (attr->max_sge > PVR_MAX_SGE || attr->srq_limit > attr->max_wr)
		return -EINVAL;
	return ring_check(attr->max_wr, attr->max_sge, cmd->nchunks);
}

/* Initialize a queue whose slots follow the header page. */
static void ring_init(struct pvr_wq *wq, const struct pvr_pages *pages, uint32_t max_wr,
		      uint32_t max_sge)
{
	struct pvr_ring_state *state_shm;

	state_shm = (struct pvr_ring_state *)pvr_pages_ptr(pages, 0);
	pvr_wq_init(wq, pages, &state_shm->rx, 1, max_wr, pvr_rq_stride(max_sge), max_sge);
}

/*
 * The header page and the pages of the slots. The directory may have more pages, which
 * the device does not use and therefore does not translate.
 */
static uint32_t ring_pages(uint32_t max_wr, uint32_t max_sge)
{
	return 1 + pvr_wq_pages(max_wr, pvr_rq_stride(max_sge));
}

/* Find the objects of an XRC SRQ; PD and CQ must have the same context. */
static int xrc_resolve(struct pvr_adapter *adapter, const struct pvr_cmd_create_srq *cmd,
		       struct pvr_srq *srq)
{
	if (cmd->srq_type != PVR_SRQT_XRC)
		return 0;
	srq->xrcd = pvr_xrcd_get(adapter, cmd->xrcd_handle);
	srq->cq = pvr_cq_get(adapter, cmd->cq_handle);
	return srq->xrcd && srq->cq && srq->cq->uc == srq->pd->uc ? 0 : -EINVAL;
}

static int srq_attach(struct pvr_adapter *adapter, const struct pvr_cmd_create_srq *cmd,
		      struct pvr_srq *srq)
{
	int err;

	err = pvr_pages_map(adapter, cmd->pdir_dma,
			    ring_pages(cmd->attrs.max_wr, cmd->attrs.max_sge), true, &srq->pages);
	if (err)
		return err;
	ring_init(&srq->wq, &srq->pages, cmd->attrs.max_wr, cmd->attrs.max_sge);
	pvr_db_init_srq(srq);
	srq->limit = cmd->attrs.srq_limit;
	return 0;
}

/* Count the uses of objects, so that they cannot be destroyed before the SRQ. */
static void srq_link(struct pvr_srq *srq)
{
	srq->pd->users++;
	pvr_uc_own(srq->pd->uc, PVR_OWNED_SRQ, &srq->owned);
	if (srq->xrcd) {
		srq->xrcd->users++;
		srq->cq->users++;
	}
}

static void srq_unlink(struct pvr_srq *srq)
{
	if (srq->xrcd) {
		srq->cq->users--;
		srq->xrcd->users--;
	}
	pvr_uc_disown(srq->pd->uc, PVR_OWNED_SRQ, &srq->owned);
	srq->pd->users--;
}

int pvr_cmd_create_srq(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		       union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_create_srq *cmd = &req->create_srq;
	struct pvr_pd *pd = pvr_pd_get(adapter, cmd->pd_handle);
	struct pvr_srq *srq;
	int err;

	err = pd ? srq_check(adapter, cmd) : -EINVAL;
	if (err)
		return err;
	srq = pvr_charge_alloc(adapter, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->adapter = adapter;
	srq->pd = pd;
	TAILQ_INIT(&srq->waiting);
	LIST_INIT(&srq->targets);
	err = xrc_resolve(adapter, cmd, srq);
	if (!err)
		err = srq_attach(adapter, cmd, srq);
	if (err)
		goto err_free;
	err = pvr_table_add(&adapter->srqs, srq, &srq->handle);
	if (err)
		goto err_unmap;
	srq_link(srq);
	resp->create_srq.srqn = srq->handle;
	return 0;

err_unmap:
	pvr_pages_unmap(adapter, &srq->pages);
err_free:
	pvr_charge_free(adapter, srq, sizeof(*srq));
	return err;
}

static void set_limit(struct pvr_srq *srq, const struct pvr_cmd_modify_srq *cmd)
{
	if (cmd->attr_mask & PVR_SRQ_LIMIT)
		srq->limit = cmd->attrs.srq_limit;
}

/*
 * Posted requests move to the new ring; QPs hold copies of the requests that they have
 * taken. Only commands destroy an SRQ, and none runs before this one ends.
 */
static int resize_step(struct pvr_adapter *adapter, union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_modify_srq *cmd = &adapter->job.req.modify_srq;
	struct pvr_srq *srq = pvr_srq_get(adapter, cmd->srq_handle);
	struct pvr_ring_move *move = &adapter->job.move;
	struct pvr_wq wq;
	int err;

	ring_init(&wq, &move->pages, move->size, srq->wq.max_sge);
	err = srq->error ? -EIO : pvr_wq_move_run(adapter, &srq->wq, move, &wq);
	if (err == -EINPROGRESS)
		return err;
	if (err) {
		pvr_pages_unmap(adapter, &move->pages);
		return err;
	}
	pvr_pages_unmap(adapter, &srq->pages);
	srq->pages = move->pages;
	srq->wq = wq;
	srq->wq.pages = &srq->pages;
	pvr_db_init_srq(srq);
	set_limit(srq, cmd);
	return 0;
}

static int resize_begin(struct pvr_adapter *adapter, const struct pvr_cmd_modify_srq *cmd,
			const struct pvr_srq *srq)
{
	struct pvr_ring_move *move = &adapter->job.move;
	uint32_t max_wr = cmd->attrs.max_wr, max_sge = srq->wq.max_sge;
	int err;

	/* The memory of the ring may be unplugged. */
	if (srq->error)
		return -EIO;
	err = ring_check(max_wr, max_sge, cmd->nchunks);
	if (!err)
		err = pvr_pages_map(adapter, cmd->pdir_dma, ring_pages(max_wr, max_sge), true,
				    &move->pages);
	if (err)
		return err;
	move->size = max_wr;
	err = pvr_wq_move_begin(&srq->wq, move);
	if (err)
		pvr_pages_unmap(adapter, &move->pages);
	return err;
}

int pvr_cmd_modify_srq(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		       union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_modify_srq *cmd = &req->modify_srq;
	struct pvr_srq *srq = pvr_srq_get(adapter, cmd->srq_handle);
	bool resize = cmd->attr_mask & PVR_SRQ_MAX_WR;
	uint32_t limit;
	int err;

	if (!srq || (cmd->attr_mask & ~(PVR_SRQ_MAX_WR | PVR_SRQ_LIMIT)))
		return -EINVAL;
	if (resize && !(adapter->features & PVR_EXT_RESIZE))
		return -EOPNOTSUPP;
	limit = cmd->attr_mask & PVR_SRQ_LIMIT ? cmd->attrs.srq_limit : srq->limit;
	if (limit > (resize ? cmd->attrs.max_wr : srq->wq.count))
		return -EINVAL;
	if (!resize) {
		set_limit(srq, cmd);
		return 0;
	}
	err = resize_begin(adapter, cmd, srq);
	if (err)
		return err;
	return pvr_cmd_begin(adapter, req, resize_step, pvr_cmd_cancel_move, resp);
}

int pvr_cmd_query_srq(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	struct pvr_srq *srq = pvr_srq_get(adapter, req->handle.handle);

	if (!srq)
		return -EINVAL;
	resp->query_srq.attrs = (struct pvr_srq_attr){
		.max_wr = srq->wq.count,
		.max_sge = srq->wq.max_sge,
		.srq_limit = srq->limit,
	};
	return 0;
}

void pvr_srq_destroy(struct pvr_adapter *adapter, struct pvr_srq *srq)
{
	srq_unlink(srq);
	pvr_table_del(&adapter->srqs, srq->handle);
	pvr_pages_unmap(adapter, &srq->pages);
	pvr_charge_free(adapter, srq, sizeof(*srq));
}

static int destroy_step(struct pvr_adapter *adapter, union pvr_cmd_resp *resp)
{
	struct pvr_srq *srq = pvr_srq_get(adapter, adapter->job.req.handle.handle);

	if (!pvr_xrc_release_some(srq))
		return -EINPROGRESS;
	pvr_srq_destroy(adapter, srq);
	return 0;
}

int pvr_cmd_destroy_srq(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
			union pvr_cmd_resp *resp)
{
	struct pvr_srq *srq = pvr_srq_get(adapter, req->handle.handle);

	if (!srq)
		return -EINVAL;
	if (srq->users)
		return -EBUSY;
	return pvr_cmd_begin(adapter, req, destroy_step, NULL, resp);
}

/* --------------------------------------------------------------------------- state */

/* @cmd: the command that would create it. */
static void srq_fields(struct pvr_codec *codec, struct pvr_srq *srq, struct pvr_cmd_create_srq *cmd)
{
	pvr_codec_u32(codec, "handle", &srq->handle);
	pvr_codec_u32(codec, "pd", &cmd->pd_handle);
	pvr_codec_u8(codec, "type", &cmd->srq_type);
	pvr_codec_u32(codec, "xrcd", &cmd->xrcd_handle);
	pvr_codec_u32(codec, "cq", &cmd->cq_handle);
	pvr_codec_u32(codec, "requests", &cmd->attrs.max_wr);
	pvr_codec_u32(codec, "SGEs", &cmd->attrs.max_sge);
	pvr_codec_u32(codec, "limit", &srq->limit);
	pvr_codec_u32(codec, "head", &srq->wq.head);
	pvr_codec_bool(codec, "error", &srq->error);
	pvr_codec_bool(codec, "doorbell suppression", &srq->db_suppress);
}

void pvr_srq_save(struct pvr_codec *codec, void *object)
{
	struct pvr_srq *srq = object;
	struct pvr_cmd_create_srq cmd = {
		.pd_handle = srq->pd->handle,
		.srq_type = srq->xrcd ? PVR_SRQT_XRC : PVR_SRQT_BASIC,
		.xrcd_handle = srq->xrcd ? srq->xrcd->handle : 0,
		.cq_handle = srq->cq ? srq->cq->handle : 0,
		.attrs.max_wr = srq->wq.count,
		.attrs.max_sge = srq->wq.max_sge,
	};

	srq_fields(codec, srq, &cmd);
	pvr_codec_ring_pages(codec, &srq->pages, ring_pages(srq->wq.count, srq->wq.max_sge));
}

/* The checks of CREATE_SRQ, for the number of pages that the ring needs. */
static void check_loaded(struct pvr_codec *codec, struct pvr_srq *srq,
			 struct pvr_cmd_create_srq *cmd)
{
	struct pvr_adapter *adapter = codec->adapter;

	cmd->attrs.srq_limit = srq->limit;
	cmd->nchunks = PVR_PDIR_MAX_PAGES;
	srq->pd = pvr_pd_get(adapter, cmd->pd_handle);
	if (!srq->pd)
		pvr_codec_fault(codec, -EINVAL, "PD %u does not exist", cmd->pd_handle);
	else if (srq_check(adapter, cmd))
		pvr_codec_fault(
			codec, -EINVAL,
			"CREATE_SRQ refuses its type, sizes or limit: %u requests of %u SGEs",
			cmd->attrs.max_wr, cmd->attrs.max_sge);
	else if (xrc_resolve(adapter, cmd, srq))
		pvr_codec_fault(codec, -EINVAL, "XRC domain %u or CQ %u does not exist",
				cmd->xrcd_handle, cmd->cq_handle);
	else if (srq->wq.head >= 2 * cmd->attrs.max_wr)
		pvr_codec_fault(codec, -EINVAL, "head is %u, expected below %u", srq->wq.head,
				2 * cmd->attrs.max_wr);
}

static void load_ring(struct pvr_codec *codec, struct pvr_srq *srq,
		      const struct pvr_cmd_create_srq *cmd)
{
	uint32_t max_wr = cmd->attrs.max_wr, max_sge = cmd->attrs.max_sge, head = srq->wq.head;

	pvr_codec_ring_pages(codec, &srq->pages, ring_pages(max_wr, max_sge));
	if (codec->err)
		return;
	if (srq->pages.broken && !srq->error)
		pvr_codec_fault(codec, -EINVAL, "its pages are broken, and it is not in error");
	ring_init(&srq->wq, &srq->pages, max_wr, max_sge);
	srq->wq.head = head;
	pvr_db_attach_srq(srq);
}

void pvr_srq_load(struct pvr_codec *codec)
{
	struct pvr_adapter *adapter = codec->adapter;
	struct pvr_srq *srq = pvr_state_alloc(codec, sizeof(*srq));
	struct pvr_cmd_create_srq cmd = { 0 };

	if (!srq)
		return;
	srq->adapter = adapter;
	TAILQ_INIT(&srq->waiting);
	LIST_INIT(&srq->targets);
	srq_fields(codec, srq, &cmd);
	if (!codec->err)
		check_loaded(codec, srq, &cmd);
	if (!codec->err)
		load_ring(codec, srq, &cmd);
	if (!codec->err)
		pvr_state_enter(codec, &adapter->srqs, srq, srq->handle);
	if (!codec->err) {
		srq_link(srq);
		return;
	}
	pvr_pages_unmap(adapter, &srq->pages);
	pvr_charge_free(adapter, srq, sizeof(*srq));
}
