// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* rsp_conns: requests received and responses sent. */
#include "path/pipe/rsp_conn.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/adapter.h"
#include "rdma/worker.h"
#include "gid/fabric.h"
#include "path/pipe/move.h"

/*
 * Guests of all tenants share a connection, and one of them can send from many GIDs that are
 * unknown here. So frames share the time that they may stall it: at most STALL_NS, of which
 * 1 ns returns per STALL_RETURN ns. No stall begins with less than STALL_MIN_NS.
 */
#define STALL_NS 500000000ull
#define STALL_MIN_NS 50000000ull
#define STALL_RETURN 32
/* Destinations repeat TAKE after 20 ms. */
#define ADDRESS_AGAIN_NS 10000000ull
/*
 * Maximum delay of an ACK in polls of the worker, about 1 us each: before it was
 * piggybacked, and after.
 */
#define HOLD_LOOKS 4
#define HOLD_LOOKS_PIGGYBACK 256

struct pvr_rsp_conn *pvr_rsp_conn_create(struct pvr_host *host, enum pvr_pipe_kind kind,
					 unsigned int worker, const struct pvr_stream_ops *ops,
					 void *opaque, const struct pvr_stream_limits *limits)
{
	struct pvr_rsp_conn *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	in->host = host;
	in->kind = kind;
	in->worker = worker;
	in->stall_left = STALL_NS;
	in->stall_counted = pvr_now(host->engine);
	in->qp_gone_agreed = limits->qp_gone;
	in->atomic_write_agreed = limits->atomic_write;
	in->xrc_agreed = limits->xrc;
	in->page_agreed = limits->page;
	in->fault_agreed = limits->fault;
	in->move_agreed = limits->move;
	in->load_agreed = limits->load;
	in->refer_agreed = limits->refer;
	in->address_agreed = limits->address;
	if (pvr_pipe_tx_open(&in->answers, ops, opaque, limits->chunk, &in->count))
		goto err_in;
	if (pvr_pipe_rx_open(&in->box, ops, opaque,
			     limits->piggyback_ack ? PVR_FRAME_RESPONDER_PIGGYBACK
						   : PVR_FRAME_RESPONDER,
			     limits->chunk, &in->count))
		goto err_answers;
	pvr_lock(&host->lock);
	LIST_INSERT_HEAD(&host->ins, in, link);
	pvr_unlock(&host->lock);
	return in;

err_answers:
	pvr_pipe_tx_close(&in->answers);
err_in:
	free(in);
	return NULL;
}

void pvr_rsp_conn_destroy(struct pvr_rsp_conn *in)
{
	struct pvr_host *host = in->host;

	pvr_lock(&host->lock);
	LIST_REMOVE(in, link);
	pvr_link_count_add(&host->gone, &in->count);
	pvr_unlock(&host->lock);
	pvr_piggyback_withdraw(&host->piggyback, in);
	pvr_pipe_rx_close(&in->box);
	pvr_pipe_tx_close(&in->answers);
	pvr_fabric_ids_forget(&in->fabrics);
	free(in);
}

struct pvr_host *pvr_rsp_conn_host(const struct pvr_rsp_conn *in)
{
	return in->host;
}

bool pvr_rsp_conn_has_page(const struct pvr_rsp_conn *in)
{
	return in->page_agreed;
}

bool pvr_rsp_conn_has_held(const struct pvr_rsp_conn *in)
{
	return in->move_agreed;
}

struct pvr_rsp_conn_acks *pvr_rsp_conn_acks(struct pvr_rsp_conn *in)
{
	return &in->acks;
}

enum pvr_gid_state pvr_rsp_conn_check_sender(struct pvr_rsp_conn *in, const char *fabric,
					     const uint8_t gid[16], uint8_t gid_type,
					     const uint8_t dgid[16])
{
	return pvr_gid_check_host(in->host->engine, in->host, fabric, gid, gid_type, dgid,
				  &in->lookups);
}

/* Recently connected, and not now: it has died, or the way to it is cut. */
static bool is_silent(struct pvr_host *host)
{
	uint64_t heard = pvr_stat_get(&host->heard);
	unsigned int kind;
	bool is_up;

	for (kind = 0; kind < PVR_PIPE_KINDS; kind++)
		if (__atomic_load_n(&host->out[kind].up, __ATOMIC_RELAXED))
			return false;
	pvr_lock(&host->lock);
	is_up = !LIST_EMPTY(&host->ins);
	pvr_unlock(&host->lock);
	return !is_up && heard && pvr_now(host->engine) - heard < host->engine->hold_ns;
}

bool pvr_rsp_conn_replaces_sender(struct pvr_rsp_conn *in, const char *fabric,
				  const uint8_t gid[16])
{
	struct pvr_host *owner =
		pvr_gid_doubt(in->host->engine, in->host, fabric, gid, &in->lookups);

	return owner && is_silent(owner) &&
	       pvr_gid_may_have(in->host->engine, in->host, fabric, gid);
}

/* Charges or returns the time since the last call. */
static void count_stall(struct pvr_rsp_conn *in)
{
	uint64_t now = pvr_now(in->host->engine), passed = now - in->stall_counted;

	if (in->stalled)
		in->stall_left -= passed < in->stall_left ? passed : in->stall_left;
	else if (passed < STALL_RETURN)
		return; /* counted together with later time */
	else if (passed / STALL_RETURN < STALL_NS - in->stall_left)
		in->stall_left += passed / STALL_RETURN;
	else
		in->stall_left = STALL_NS;
	in->stall_counted = now;
}

bool pvr_rsp_conn_may_stall(struct pvr_rsp_conn *in)
{
	count_stall(in);
	in->stalled = in->stall_left > (in->stalled ? 0 : STALL_MIN_NS);
	return in->stalled;
}

static void end_stall(struct pvr_rsp_conn *in)
{
	if (!in->stalled)
		return;
	count_stall(in);
	in->stalled = false;
}

int pvr_rsp_conn_recv_payload(struct pvr_rsp_conn *in, const struct pvr_qp *qp,
			      const struct pvr_sg *to, uint64_t offset, uint32_t len, uint32_t skip)
{
	return pvr_pipe_rx_recv_payload(&in->box, qp, to, offset, len, skip);
}

const struct pvr_ext_dma *pvr_rsp_conn_ext_dma(const struct pvr_rsp_conn *in)
{
	return &in->box.rdma_read.use;
}

/* ---------------------------------------------------------------------- answers */

static void reply(struct pvr_rsp_conn *in, const struct pvr_tx_frame *out)
{
	struct pvr_pipe_tx *box = &in->answers;

	if (!pvr_pipe_tx_send(box, out) && !pvr_pipe_tx_put(box, out))
		box->broken = true;
}

void pvr_rsp_conn_reply(struct pvr_rsp_conn *in, union pvr_any_frame *header, size_t header_size,
			const struct pvr_qp *from, const struct pvr_sg *payload, uint64_t offset,
			uint32_t len)
{
	const struct pvr_tx_frame out = {
		.header = header,
		.header_size = header_size,
		.payload = payload,
		.offset = offset,
		.len = len,
		.expose_qp = from,
	};

	reply(in, &out);
}

static void reply_flat(struct pvr_rsp_conn *in, union pvr_any_frame *any, size_t size)
{
	pvr_rsp_conn_reply(in, any, size, NULL, NULL, 0, 0);
}

bool pvr_rsp_conn_output(struct pvr_rsp_conn *in)
{
	pvr_pipe_tx_flush(&in->answers);
	return !in->answers.broken;
}

void pvr_rsp_conn_send_close(struct pvr_rsp_conn *in, enum pvr_close_reason reason,
			     const char *text)
{
	union pvr_any_frame any;

	pvr_pipe_request_end(in);
	pvr_frame_fill_close(&any, reason, text);
	reply_flat(in, &any, sizeof(any.close));
	pvr_pipe_tx_flush(&in->answers);
}

/* --------------------------------------------------------------------- requests */

static const char *got_fabric(struct pvr_rsp_conn *in, const struct pvr_frame_fabric *fabric)
{
	if (le16toh(fabric->frame.fabric) != in->fabrics.count + 1)
		return "fabric number is not the next one";
	if (!pvr_fabric_ids_add(&in->fabrics, 0, fabric->name))
		return "out of memory for a fabric";
	return NULL;
}

static void recv_gid_query(struct pvr_rsp_conn *in, const char *fabric,
			   const union pvr_any_frame *query)
{
	union pvr_any_frame reply = { .gid_query = query->gid_query };
	uint8_t mac[6];

	reply.frame.type = PVR_FRAME_GID_REPLY;
	if (pvr_engine_find_gid(in->host->engine, fabric, reply.gid_query.gid,
				&reply.gid_query.gid_type, mac)) {
		reply_flat(in, &reply, sizeof(reply.gid_query));
	} else if (in->refer_agreed &&
		   pvr_pipe_fill_referral(in->host, fabric, &query->gid_query, &reply.referral)) {
		reply_flat(in, &reply, sizeof(reply.referral));
	} else {
		reply.gid_query.gid_type = 0;
		reply_flat(in, &reply, sizeof(reply.gid_query));
	}
}

static void got_ping(struct pvr_rsp_conn *in, const union pvr_any_frame *ping)
{
	union pvr_any_frame pong = { .ping = ping->ping };

	pong.frame.type = PVR_FRAME_PONG;
	reply_flat(in, &pong, sizeof(pong.ping));
}

/* An ACK of requests on a req_conn of this host. Only the syndrome ACK is piggybacked. */
static void recv_piggyback_ack(struct pvr_rsp_conn *in, const char *fabric,
			       const struct pvr_frame_ack *ack, const char **why)
{
	const struct pvr_route route = { .host = in->host };

	if (ack->syndrome == PVR_FRAME_SYN_ACK)
		pvr_pipe_ack(&route, fabric, ack);
	else
		*why = "piggybacked syndrome other than ACK";
}

static const char *recv_qp_gone(struct pvr_rsp_conn *in, const char *fabric,
				const struct pvr_frame_qp_gone *left)
{
	if (!in->qp_gone_agreed)
		return "QP_GONE, but that was not negotiated";
	pvr_pipe_recv_qp_gone(in, fabric, left);
	return NULL;
}

/* Nothing here bounds their number, and each one is work of the embedder. */
static const char *recv_address(struct pvr_rsp_conn *in, const struct pvr_frame_address *frame)
{
	uint64_t now = pvr_now(in->host->engine);

	if (!in->address_agreed)
		return "ADDRESS, but that was not negotiated";
	if (in->address_at && now - in->address_at < ADDRESS_AGAIN_NS)
		return NULL;
	in->address_at = now;
	pvr_pipe_recv_address(in, frame);
	return NULL;
}

/* @payload: of a TAKE that has one: the number of the load */
static const char *recv_move(struct pvr_rsp_conn *in, const char *fabric,
			     const union pvr_any_frame *any, const uint8_t *payload)
{
	bool has_load = le32toh(any->frame.size) > sizeof(any->take);
	__le64 load = 0;

	if (!in->move_agreed)
		return "MOVED or TAKE, but that was not negotiated";
	if (any->frame.type == PVR_FRAME_TAKE && has_load && !in->load_agreed)
		return "number of a load, but that was not negotiated";
	if (any->frame.type == PVR_FRAME_TAKE && has_load)
		memcpy(&load, payload, sizeof(load));
	if (any->frame.type == PVR_FRAME_TAKE)
		pvr_pipe_recv_take(in, fabric, &any->take, le64toh(load));
	else
		pvr_pipe_recv_moved(in, fabric, &any->moved);
	return NULL;
}

static enum pvr_handled recv_fault(struct pvr_rsp_conn *in, const char *fabric,
				   const struct pvr_frame_request *frame, const char **why)
{
	if (!in->fault_agreed) {
		*why = "FAULT, but that was not negotiated";
		return PVR_HANDLED;
	}
	return frame->frame.flags & PVR_REQUEST_F_UD ? pvr_pipe_datagram_fault(in, fabric, frame)
						     : pvr_pipe_request_fault(in, fabric, frame);
}

/* Return: the reason why the connection does not accept the request, or NULL. */
static const char *check_request(const struct pvr_rsp_conn *in,
				 const struct pvr_frame_request *request)
{
	/* The response of a READ must fit into a frame, too. */
	if (le32toh(request->chunk) > in->box.chunk)
		return "fragment above the negotiated chunk size";
	if (request->op >= PVR_FRAME_OP_ATOMIC_WRITE && !in->atomic_write_agreed)
		return "ATOMIC_WRITE or FLUSH, but that was not negotiated";
	if (request->frame.flags & PVR_REQUEST_F_XRC && !in->xrc_agreed)
		return "XRC request, but XRC was not negotiated";
	return NULL;
}

static enum pvr_handled dispatch(struct pvr_rsp_conn *in, const char *fabric,
				 const union pvr_any_frame *any, uint8_t *payload, const char **why)
{
	switch (any->frame.type) {
	case PVR_FRAME_GID_QUERY:
		recv_gid_query(in, fabric, any);
		return PVR_HANDLED;
	case PVR_FRAME_REQUEST:
		*why = check_request(in, &any->request);
		return *why ? PVR_HANDLED : pvr_pipe_request(in, fabric, &any->request, payload);
	case PVR_FRAME_ACK:
		recv_piggyback_ack(in, fabric, &any->ack, why);
		return PVR_HANDLED;
	case PVR_FRAME_QP_GONE:
		*why = recv_qp_gone(in, fabric, &any->qp_gone);
		return PVR_HANDLED;
	case PVR_FRAME_MOVED:
	case PVR_FRAME_TAKE:
		*why = recv_move(in, fabric, any, payload);
		return PVR_HANDLED;
	case PVR_FRAME_ADDRESS:
		*why = recv_address(in, &any->address);
		return PVR_HANDLED;
	case PVR_FRAME_FAULT:
		return recv_fault(in, fabric, &any->request, why);
	default:
		return pvr_pipe_datagram(in, fabric, &any->datagram, payload);
	}
}

static enum pvr_handled got_frame(void *owner, const union pvr_any_frame *any, uint8_t *payload,
				  const char **why)
{
	struct pvr_rsp_conn *in = owner;
	enum pvr_handled handled;
	const char *fabric;

	switch (any->frame.type) {
	case PVR_FRAME_HELLO:
	case PVR_FRAME_VERBS_QP:
	case PVR_FRAME_CLOSE:
		*why = pvr_pipe_rx_end(&in->box, any);
		return PVR_HANDLED;
	case PVR_FRAME_PING:
		got_ping(in, any);
		return PVR_HANDLED;
	case PVR_FRAME_PONG:
		return PVR_HANDLED;
	case PVR_FRAME_FABRIC:
		*why = got_fabric(in, &any->fabric);
		return PVR_HANDLED;
	}
	fabric = pvr_fabric_ids_name(&in->fabrics, le16toh(any->frame.fabric));
	if (!fabric) {
		*why = "fabric number was not declared";
		return PVR_HANDLED;
	}
	handled = dispatch(in, fabric, any, payload, why);
	if (handled != PVR_HANDLED_STALLED)
		end_stall(in);
	return handled;
}

/* Return: true if the next response has space. */
static bool ready(void *owner)
{
	struct pvr_rsp_conn *in = owner;

	if (in->answers.tail - in->answers.head > PVR_PIPE_TX_GATHER && !in->answers.blocked)
		pvr_pipe_tx_flush(&in->answers);
	return !in->answers.blocked && !in->answers.broken;
}

/*
 * Delay the ACK while the worker polls: the guest's reply can carry it, or precede it.
 * Without polling no reply is detected in time.
 */
static bool may_hold(const struct pvr_rsp_conn *in)
{
	const struct pvr_worker *worker = &in->host->engine->workers[in->worker];

	if (!__atomic_load_n(&worker->polls, __ATOMIC_RELAXED) || in->late >= HOLD_LOOKS_PIGGYBACK)
		return false;
	if (pvr_piggyback_is_sent(&in->host->piggyback, in))
		return true;
	return in->held < HOLD_LOOKS;
}

/*
 * Offers the pending ACK for piggybacking. If the last one was sent so, the ACK may wait
 * again.
 */
static void offer(struct pvr_rsp_conn *in)
{
	const struct pvr_frame_ack *ack = &in->acks.frame;

	if (pvr_piggyback_is_sent(&in->host->piggyback, in))
		in->held = 0;
	in->offered = in->acks.count;
	pvr_piggyback_offer(&in->host->piggyback, in,
			    pvr_fabric_ids_name(&in->fabrics, le16toh(ack->frame.fabric)), ack);
}

static void hold(struct pvr_rsp_conn *in)
{
	if (in->offered != in->acks.count)
		offer(in);
	in->held++;
	in->late++;
}

static void nothing_held(struct pvr_rsp_conn *in)
{
	if (!in->late)
		return;
	in->late = in->held = 0;
	pvr_piggyback_withdraw(&in->host->piggyback, in);
}

static void rest(void *owner)
{
	struct pvr_rsp_conn *in = owner;

	if (!may_hold(in))
		pvr_pipe_request_end(in);
	if (!in->answers.blocked)
		pvr_pipe_tx_flush(&in->answers);
}

/* Its space is reserved: no frame is handled while the box is blocked. */
static void rndv_over(void *owner)
{
	struct pvr_rsp_conn *in = owner;
	union pvr_any_frame any = { .rndv_done = {
					    .frame.type = PVR_FRAME_RNDV_DONE,
					    .count = htole32(++in->rndv_done_count),
				    } };

	reply_flat(in, &any, sizeof(any.rndv_done));
}

static const char *rndv_done(void *owner, const struct pvr_frame_rndv_done *frame)
{
	struct pvr_rsp_conn *in = owner;

	return pvr_rndv_tx_done(in->answers.rndvs, frame);
}

static const struct pvr_pipe_rx_ops request_ops = {
	.ready = ready,
	.frame = got_frame,
	.rest = rest,
	.rndv_over = rndv_over,
	.rndv_done = rndv_done,
};

/* Ends a run: the pending ACK is sent now or held for the next run. */
static enum pvr_input end_run(struct pvr_rsp_conn *in, enum pvr_input result)
{
	if (in->acks.ack_pending && result == PVR_INPUT_IDLE && may_hold(in)) {
		hold(in);
		return PVR_INPUT_MORE;
	}
	if (in->acks.ack_pending) {
		pvr_pipe_request_end(in);
		if (!in->answers.blocked)
			pvr_pipe_tx_flush(&in->answers);
	}
	nothing_held(in);
	return result;
}

enum pvr_input pvr_rsp_conn_input(struct pvr_rsp_conn *in, struct pvr_input_error *err)
{
	uint64_t before = in->count.rx_bytes;
	enum pvr_input result = pvr_pipe_rx_run(&in->box, &request_ops, in, err);

	result = end_run(in, result);
	if (in->count.rx_bytes != before)
		pvr_host_heard(in->host);
	if (result == PVR_INPUT_BROKEN && err->reason >= 0)
		pvr_rsp_conn_send_close(in, err->reason, err->why);
	return result;
}
