// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Payload that a connection has exposed to the peer. */
#include "path/pipe/rndv.h"

#include <endian.h>
#include <stdlib.h>

struct pvr_rndv_tx *pvr_rndv_tx_create(const struct pvr_stream_ops *ops, void *opaque)
{
	struct pvr_rndv_tx *rndvs = calloc(1, sizeof(*rndvs));

	if (!rndvs)
		return NULL;
	rndvs->ops = ops;
	rndvs->opaque = opaque;
	return rndvs;
}

static struct pvr_rndv *rndv_at(struct pvr_rndv_tx *rndvs, uint32_t number)
{
	return &rndvs->rndv[number % PVR_FRAME_RNDV_MAX];
}

static void give_back(struct pvr_rndv_tx *rndvs, uint32_t count)
{
	for (; count; count--, rndvs->rndv_done++)
		pvr_ext_dma_end(&rndv_at(rndvs, rndvs->rndv_done)->use);
}

void pvr_rndv_tx_destroy(struct pvr_rndv_tx *rndvs)
{
	if (!rndvs)
		return;
	give_back(rndvs, rndvs->exposed - rndvs->rndv_done);
	free(rndvs);
}

static void revoke(struct pvr_ext_dma *use)
{
	struct pvr_rndv *rndv = (struct pvr_rndv *)use;

	rndv->of->ops->revoke(rndv->of->opaque, rndv->handle);
}

static_assert(offsetof(struct pvr_rndv, use) == 0, "revoke() casts");

static void fill_use(struct pvr_ext_dma *use, const struct pvr_qp *qp,
		     const union pvr_any_frame *header)
{
	bool request = header->frame.type == PVR_FRAME_REQUEST;

	use->qp = qp;
	use->kind = request ? PVR_EXT_DMA_REQ_SRC : PVR_EXT_DMA_RESP_SRC;
	use->psn = le32toh(request ? header->request.psn : header->read_data.psn);
	use->stop = revoke;
}

/* Return: number of runs; 0 if too many. */
static int find_runs(const struct pvr_sg *payload, uint64_t offset, uint32_t len,
		     struct iovec iov[PVR_FRAME_RNDV_SEGS])
{
	int count = pvr_sg_iov(payload, offset, len, iov, PVR_FRAME_RNDV_SEGS), i;

	for (i = 0; i < count; i++)
		len -= (uint32_t)iov[i].iov_len;
	return count > 0 && !len ? count : 0;
}

static void fill_wire(struct pvr_frame_rndv_seg *wire, const struct pvr_rndv_seg *part, int count)
{
	for (; count; count--, wire++, part++)
		*wire = (struct pvr_frame_rndv_seg){
			.addr = htole64(part->addr),
			.rkey = htole32(part->rkey),
			.len = htole32(part->len),
		};
}

unsigned int pvr_rndv_tx_expose(struct pvr_rndv_tx *rndvs, const struct pvr_qp *qp,
				const union pvr_any_frame *header, const struct pvr_sg *payload,
				uint64_t offset, uint32_t len,
				struct pvr_frame_rndv_seg wire[PVR_FRAME_RNDV_SEGS])
{
	struct pvr_rndv *rndv = rndv_at(rndvs, rndvs->exposed);
	struct pvr_rndv_seg part[PVR_FRAME_RNDV_SEGS];
	struct iovec iov[PVR_FRAME_RNDV_SEGS];
	int count;

	if (rndvs->exposed - rndvs->rndv_done == PVR_FRAME_RNDV_MAX ||
	    !pvr_ext_dma_is_allowed(payload->adapter))
		return 0;
	count = find_runs(payload, offset, len, iov);
	if (!count)
		return 0;
	rndv->handle = rndvs->ops->expose(rndvs->opaque, iov, count, part);
	if (!rndv->handle)
		return 0;
	rndv->of = rndvs;
	fill_use(&rndv->use, qp, header);
	if (!pvr_ext_dma_begin(&rndv->use, payload, offset, len)) {
		revoke(&rndv->use);
		return 0;
	}
	rndvs->exposed++;
	fill_wire(wire, part, count);
	return (unsigned int)count;
}

const char *pvr_rndv_tx_done(struct pvr_rndv_tx *rndvs, const struct pvr_frame_rndv_done *frame)
{
	uint32_t count;

	if (!rndvs)
		return "RNDV_DONE, but rendezvous was not negotiated";
	count = le32toh(frame->count) - rndvs->rndv_done;
	if (!count || count > rndvs->exposed - rndvs->rndv_done)
		return "RNDV_DONE for more rendezvous than were sent";
	give_back(rndvs, count);
	return NULL;
}
