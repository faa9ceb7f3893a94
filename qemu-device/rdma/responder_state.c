// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* State of a responder to requests from another process. */
#include "rdma/responder_state.h"

#include <errno.h>

#include "core/charge.h"
#include "core/state.h"

/* Half of the 2^24 PSNs: the other half counts as earlier. */
#define PSNS_HALF (1u << 23)

void pvr_responder_state_free(struct pvr_qp *qp)
{
	struct pvr_responder_state *rq = qp->responder_state;

	if (!rq)
		return;
	pvr_charge_free(qp->adapter, rq->replay, sizeof(*rq->replay));
	pvr_charge_free(qp->adapter, rq, sizeof(*rq));
	qp->responder_state = NULL;
}

struct pvr_host *pvr_responder_state_host(const struct pvr_qp *qp)
{
	return qp->responder_state ? qp->responder_state->from : NULL;
}

bool pvr_host_rq_get(struct pvr_qp *to, struct pvr_host *from, bool atomic)
{
	struct pvr_responder_state *rq = to->responder_state;

	if (!rq) {
		rq = pvr_charge_alloc(to->adapter, sizeof(*rq));
		if (!rq)
			return false;
		rq->base = to->rq_psn;
		to->responder_state = rq;
	}
	/* That of a loaded state is not known. */
	if (!rq->from)
		rq->from = from;
	if (atomic && !rq->replay)
		rq->replay = pvr_charge_alloc(to->adapter, sizeof(*rq->replay));
	return !atomic || rq->replay;
}

/* True for an executed PSN. The base moves along, so that the distance does not wrap. */
static bool was_executed(struct pvr_qp *to, uint32_t psn)
{
	struct pvr_responder_state *rq = to->responder_state;

	if (((to->rq_psn - rq->base) & 0xffffff) > PSNS_HALF)
		rq->base = (to->rq_psn - PSNS_HALF) & 0xffffff;
	return ((to->rq_psn - psn) & 0xffffff) <= ((to->rq_psn - rq->base) & 0xffffff);
}

enum pvr_psn_class pvr_psn_classify(struct pvr_qp *to, const struct pvr_request *request)
{
	uint32_t ahead = (request->from->psn - to->rq_psn) & 0xffffff;

	if (ahead && ahead < PSNS_HALF)
		return PVR_PSN_AHEAD;
	if (ahead)
		return was_executed(to, request->from->psn) ? PVR_PSN_DUPLICATE : PVR_PSN_INVALID;
	if (request->offset == to->rq_offset)
		return PVR_PSN_EXPECTED;
	if (request->offset > to->rq_offset)
		return PVR_PSN_AHEAD;
	return request->offset + request->chunk > to->rq_offset ? PVR_PSN_STRADDLES
								: PVR_PSN_DUPLICATE;
}

void pvr_replay_record(struct pvr_qp *to, uint32_t psn, uint64_t value)
{
	struct pvr_atomic_replay *replay = to->responder_state->replay;
	uint32_t i = replay->count++ % PVR_MAX_RD_ATOMIC;

	replay->last[i].psn = psn;
	replay->last[i].value = value;
}

bool pvr_replay_find(const struct pvr_qp *to, uint32_t psn, uint64_t *value)
{
	const struct pvr_atomic_replay *replay = to->responder_state->replay;
	uint32_t i, n;

	if (!replay)
		return false;
	n = replay->count < PVR_MAX_RD_ATOMIC ? replay->count : PVR_MAX_RD_ATOMIC;
	for (i = 1; i <= n; i++) {
		uint32_t at = (replay->count - i) % PVR_MAX_RD_ATOMIC;

		if (replay->last[at].psn != psn)
			continue;
		*value = replay->last[at].value;
		return true;
	}
	return false;
}

/* --------------------------------------------------------------------------- state */

static void rq_fields(struct pvr_codec *codec, struct pvr_responder_state *rq)
{
	pvr_codec_bool(codec, "NAK sent", &rq->nak_sent);
	pvr_codec_u32_max(codec, "base", &rq->base, 0xffffff);
	pvr_codec_bool(codec, "refused", &rq->has_refused);
	pvr_codec_u8(codec, "status", &rq->status);
	pvr_codec_u32_max(codec, "refused psn", &rq->psn, 0xffffff);
}

/* The oldest is first. */
static void replay_fields(struct pvr_codec *codec, struct pvr_atomic_replay *replay)
{
	uint32_t i, n = replay->count < PVR_MAX_RD_ATOMIC ? replay->count : PVR_MAX_RD_ATOMIC, at;

	for (i = 0; i < n; i++) {
		at = (replay->count - n + i) % PVR_MAX_RD_ATOMIC;
		pvr_codec_u32_max(codec, "atomic's psn", &replay->last[at].psn, 0xffffff);
		pvr_codec_u64(codec, "atomic's value", &replay->last[at].value);
	}
}

void pvr_responder_state_save(struct pvr_codec *codec, struct pvr_qp *qp)
{
	struct pvr_responder_state *rq = qp->responder_state;
	uint32_t atomics;

	if (!rq)
		return;
	atomics = rq->replay ? rq->replay->count : 0;
	pvr_codec_begin(codec, PVR_STATE_RESPONDER);
	pvr_codec_u32(codec, "qp", &qp->handle);
	rq_fields(codec, rq);
	pvr_codec_u32(codec, "atomics", &atomics);
	if (atomics)
		replay_fields(codec, rq->replay);
	pvr_codec_end(codec);
}

void pvr_responder_state_load(struct pvr_codec *codec)
{
	uint32_t handle, atomics = 0;
	struct pvr_qp *qp;

	pvr_codec_u32(codec, "qp", &handle);
	qp = codec->err ? NULL : pvr_qp_get(codec->adapter, handle);
	if (!qp || !pvr_qp_is_connected(qp) || qp->responder_state) {
		pvr_codec_fault(codec, -EINVAL, "queue pair %u is no responder", handle);
		return;
	}
	if (!pvr_host_rq_get(qp, NULL, false)) {
		pvr_codec_fault(codec, -ENOMEM, "the guest needs more memory than its limit");
		return;
	}
	rq_fields(codec, qp->responder_state);
	pvr_codec_u32(codec, "atomics", &atomics);
	if (codec->err || !atomics)
		return;
	if (!pvr_host_rq_get(qp, NULL, true)) {
		pvr_codec_fault(codec, -ENOMEM, "the guest needs more memory than its limit");
		return;
	}
	qp->responder_state->replay->count = atomics;
	replay_fields(codec, qp->responder_state->replay);
}
