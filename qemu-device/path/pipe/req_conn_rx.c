// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Frames that a req_conn receives: responses, and control frames of the peer. */
#include "path/pipe/req_conn.h"
#include "path/pipe/move.h"

#include <endian.h>

#include "core/adapter.h"

static struct pvr_route route_of(const struct pvr_req_conn *out)
{
	return (struct pvr_route){
		.host = out->host,
		.kind = out->kind,
		.slot = out->slot,
		.generation = out->generation,
		.chunk = out->chunk,
	};
}

static void answer_ping(struct pvr_req_conn *out, const union pvr_any_frame *ping)
{
	union pvr_any_frame pong = *ping;

	pong.frame.type = PVR_FRAME_PONG;
	pvr_lock(&out->lock);
	pvr_req_conn_send_now(out, &pong, sizeof(pong.ping));
	pvr_unlock(&out->lock);
}

static void got_pong(struct pvr_req_conn *out, const struct pvr_frame_ping *pong)
{
	uint64_t sent;

	pvr_lock(&out->lock);
	sent = out->ping;
	out->ping = 0;
	pvr_unlock(&out->lock);
	/* Ignore a PONG without a PING. */
	if (sent && le64toh(pong->cookie) == sent)
		__atomic_store_n(&out->host->rtt_ns, pvr_now(out->host->engine) - sent,
				 __ATOMIC_RELAXED);
}

/* @count: of requests without a reply. Return: whether the reply has one. */
static bool take_reply(struct pvr_req_conn *out, uint32_t *count)
{
	bool asked;

	pvr_lock(&out->lock);
	asked = *count;
	*count -= asked;
	pvr_unlock(&out->lock);
	return asked;
}

/*
 * The embedder queues replies of all hosts. A query has one reply, so this host's own queries
 * bound what another host adds to the queue.
 */
static void recv_gid_reply(struct pvr_req_conn *out, const char *fabric,
			   const struct pvr_frame_gid_query *here, const char **why)
{
	const struct pvr_pipe *pipe = pvr_host_pipe(out->host);

	if (!take_reply(out, &out->gid_queries))
		*why = "GID_REPLY, but no GID was queried";
	if (*why)
		return;
	pvr_pipe_recv_gid_reply(out->host, fabric, here);
	if (pipe->ops && pipe->ops->located)
		pipe->ops->located(pipe->opaque, out->host, fabric, here->gid, here->gid_type);
}

/* It answers GID_QUERY, too: that host does not have the GID. */
static void recv_referral(struct pvr_req_conn *out, const char *fabric,
			  const struct pvr_frame_referral *frame, const char **why)
{
	const struct pvr_pipe *pipe = pvr_host_pipe(out->host);

	if (!__atomic_load_n(&out->refer_agreed, __ATOMIC_RELAXED))
		*why = "REFERRAL, but that was not negotiated";
	else if (!take_reply(out, &out->gid_queries))
		*why = "REFERRAL, but no GID was queried";
	if (*why)
		return;
	pvr_pipe_recv_referral(out->host, fabric, frame);
	if (pipe->ops && pipe->ops->located)
		pipe->ops->located(pipe->opaque, out->host, fabric, frame->gid, 0);
}

static enum pvr_handled dispatch_answer(struct pvr_req_conn *out, const union pvr_any_frame *any,
					const char *fabric, const char **why)
{
	const struct pvr_route route = route_of(out);

	switch (any->frame.type) {
	case PVR_FRAME_GID_REPLY:
		recv_gid_reply(out, fabric, &any->gid_query, why);
		break;
	case PVR_FRAME_REFERRAL:
		recv_referral(out, fabric, &any->referral, why);
		break;
	case PVR_FRAME_TAKEN:
		if (take_reply(out, &out->takes))
			pvr_pipe_recv_taken(out->host, fabric, &any->take);
		else
			*why = "TAKEN, but no adapter was asked for";
		break;
	case PVR_FRAME_ACK:
		pvr_pipe_ack(&route, fabric, &any->ack);
		break;
	case PVR_FRAME_ATOMIC_ACK:
		pvr_pipe_atomic_ack(&route, fabric, &any->atomic_ack);
		break;
	case PVR_FRAME_READ_DATA:
		return pvr_pipe_read_data(&route, fabric, &any->read_data);
	}
	return PVR_HANDLED;
}

static enum pvr_handled got_frame(void *owner, const union pvr_any_frame *any, uint8_t *payload,
				  const char **why)
{
	struct pvr_req_conn *out = owner;
	const char *fabric;

	(void)payload; /* read by pvr_req_conn_recv_payload() */
	switch (any->frame.type) {
	case PVR_FRAME_HELLO:
	case PVR_FRAME_VERBS_QP:
	case PVR_FRAME_CLOSE:
		*why = pvr_pipe_rx_end(&out->in, any);
		return PVR_HANDLED;
	case PVR_FRAME_PING:
		answer_ping(out, any);
		return PVR_HANDLED;
	case PVR_FRAME_PONG:
		got_pong(out, &any->ping);
		return PVR_HANDLED;
	}
	fabric = pvr_fabric_ids_name(&out->fabrics, le16toh(any->frame.fabric));
	if (fabric)
		return dispatch_answer(out, any, fabric, why);
	*why = "fabric number was not declared";
	return PVR_HANDLED;
}

/* RNDV_DONE precedes the guest's next request on this connection. */
static void rndv_over(void *owner)
{
	struct pvr_req_conn *out = owner;

	pvr_lock(&out->lock);
	out->rndv_done_count++;
	pvr_req_conn_send_rndv_done(out);
	pvr_unlock(&out->lock);
}

static const char *rndv_done(void *owner, const struct pvr_frame_rndv_done *frame)
{
	struct pvr_req_conn *out = owner;
	const char *why;

	pvr_lock(&out->lock);
	why = pvr_rndv_tx_done(out->box.rndvs, frame);
	pvr_unlock(&out->lock);
	return why;
}

/* Sends pending RNDV_DONE frames, if no sender has flushed the box. */
static void rest(void *owner)
{
	struct pvr_req_conn *out = owner;

	if (out->rndv_done_unflushed == out->rndv_done_count)
		return;
	out->rndv_done_unflushed = out->rndv_done_count;
	pvr_lock(&out->lock);
	if (!out->box.blocked)
		pvr_pipe_tx_flush(&out->box);
	pvr_unlock(&out->lock);
}

static const struct pvr_pipe_rx_ops answer_ops = {
	.frame = got_frame,
	.rest = rest,
	.rndv_over = rndv_over,
	.rndv_done = rndv_done,
};

enum pvr_input pvr_req_conn_input(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot,
				  struct pvr_input_error *err)
{
	struct pvr_req_conn *out = pvr_req_conn_get(host, kind, slot);
	uint64_t before;
	enum pvr_input result;

	if (!out)
		return pvr_pipe_rx_run(&(struct pvr_pipe_rx){ 0 }, &answer_ops, NULL, err);
	before = out->count.rx_bytes;
	result = pvr_pipe_rx_run(&out->in, &answer_ops, out, err);
	if (out->count.rx_bytes != before)
		pvr_host_heard(host);
	if (result == PVR_INPUT_BROKEN && err->reason >= 0)
		pvr_req_conn_send_close(host, kind, slot, err->reason, err->why);
	return result;
}

int pvr_req_conn_recv_payload(const struct pvr_route *route, const struct pvr_qp *qp,
			      const struct pvr_sg *to, uint64_t offset, uint32_t len, uint32_t skip)
{
	struct pvr_req_conn *out = pvr_req_conn_find(route->host, route->kind, route->slot);

	return pvr_pipe_rx_recv_payload(&out->in, qp, to, offset, len, skip);
}

const struct pvr_ext_dma *pvr_req_conn_ext_dma(const struct pvr_route *route)
{
	return &pvr_req_conn_find(route->host, route->kind, route->slot)->in.rdma_read.use;
}
