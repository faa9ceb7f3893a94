// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* req_conns: slots, and frames sent. */
#include "path/pipe/req_conn.h"

#include <endian.h>
#include <stdlib.h>

#include "core/adapter.h"
#include "gid/fabric.h"

/* ------------------------------------------------------------------------ slots */

struct pvr_req_conn *pvr_req_conn_get(struct pvr_host *host, enum pvr_pipe_kind kind,
				      unsigned int slot)
{
	struct pvr_req_conn *out = pvr_req_conn_find(host, kind, slot);

	if (out)
		return out;
	out = calloc(1, sizeof(*out));
	if (!out)
		return NULL;
	out->host = host;
	out->kind = kind;
	out->slot = slot;
	/* Statistics readers traverse the slots under this lock. */
	pvr_lock(&host->lock);
	__atomic_store_n(&host->out[kind].slot[slot], out, __ATOMIC_RELEASE);
	pvr_unlock(&host->lock);
	return out;
}

void pvr_req_conn_free(struct pvr_req_conn *out)
{
	if (!out)
		return;
	pvr_pipe_tx_close(&out->box);
	pvr_pipe_rx_close(&out->in);
	pvr_fabric_ids_forget(&out->fabrics);
	free(out);
}

static uint64_t new_generation(struct pvr_pipe *pipe)
{
	return __atomic_add_fetch(&pipe->generations, 1, __ATOMIC_RELAXED);
}

static int out_open(struct pvr_req_conn *out, const struct pvr_stream_ops *ops, void *opaque,
		    uint32_t chunk)
{
	int err = pvr_pipe_tx_open(&out->box, ops, opaque, chunk, &out->count);

	if (err)
		return err;
	err = pvr_pipe_rx_open(&out->in, ops, opaque, PVR_FRAME_REQUESTER, chunk, &out->count);
	if (err)
		pvr_pipe_tx_close(&out->box);
	return err;
}

/* A change allows want() again at once: queue pairs that it resumes may wait for the call. */
static void set_up(struct pvr_req_conn *out, bool up)
{
	uint32_t *word = &out->host->out[out->kind].up;

	__atomic_store_n(&out->host->wanted, 0, __ATOMIC_RELAXED);

	if (up)
		__atomic_fetch_or(word, 1u << out->slot, __ATOMIC_RELEASE);
	else
		__atomic_fetch_and(word, ~(1u << out->slot), __ATOMIC_RELEASE);
}

/* Called before the connection is up. */
static void set_class(struct pvr_req_conn *out, uint8_t dscp)
{
	struct pvr_req_conn_set *set = &out->host->out[out->kind];

	__atomic_store_n(&out->dscp, dscp, __ATOMIC_RELAXED);
	if (dscp) {
		__atomic_fetch_or(&set->classed, 1u << out->slot, __ATOMIC_RELAXED);
		return;
	}
	__atomic_fetch_and(&set->classed, ~(1u << out->slot), __ATOMIC_RELAXED);
	pvr_lock(&out->host->lock);
	if (out->slot >= set->slots)
		__atomic_store_n(&set->slots, out->slot + 1u, __ATOMIC_RELAXED);
	pvr_unlock(&out->host->lock);
}

/*
 * Called with the lock held. External DMAs end before a queue pair uses another
 * connection.
 */
static void out_close(struct pvr_req_conn *out)
{
	pvr_pipe_tx_close(&out->box);
	pvr_pipe_rx_close(&out->in);
	set_up(out, false);
	__atomic_store_n(&out->generation, 0, __ATOMIC_RELEASE);
	out->rndv_done_count = out->rndv_done_sent = out->rndv_done_unflushed = 0;
	pvr_fabric_ids_forget(&out->fabrics);
	out->refused = false;
	out->limit_logged = false;
	out->gid_queries = 0;
}

static void send_qps_gone(struct pvr_req_conn *out);

void pvr_req_conn_up(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot,
		     const struct pvr_stream_ops *ops, void *opaque,
		     const struct pvr_stream_limits *limits)
{
	struct pvr_req_conn *out = pvr_req_conn_get(host, kind, slot);

	if (!out)
		return;
	pvr_lock(&out->lock);
	out_close(out);
	if (!out_open(out, ops, opaque, limits->chunk)) {
		__atomic_store_n(&out->chunk, limits->chunk, __ATOMIC_RELAXED);
		out->piggyback_ack = limits->piggyback_ack;
		set_class(out, limits->dscp);
		out->qp_gone_agreed = limits->qp_gone;
		out->move_agreed = limits->move;
		out->address_agreed = limits->address;
		out->takes = 0;
		__atomic_store_n(&out->atomic_write_agreed, limits->atomic_write, __ATOMIC_RELAXED);
		__atomic_store_n(&out->xrc_agreed, limits->xrc, __ATOMIC_RELAXED);
		__atomic_store_n(&out->fault_agreed, limits->fault, __ATOMIC_RELAXED);
		__atomic_store_n(&out->load_agreed, limits->load, __ATOMIC_RELAXED);
		__atomic_store_n(&out->refer_agreed, limits->refer, __ATOMIC_RELAXED);
		__atomic_store_n(&out->tail_agreed, limits->tail, __ATOMIC_RELAXED);
		__atomic_store_n(&out->generation, new_generation(pvr_host_pipe(host)),
				 __ATOMIC_RELEASE);
		set_up(out, true);
		send_qps_gone(out);
		pvr_pipe_tx_flush(&out->box);
	}
	pvr_unlock(&out->lock);
	pvr_host_resume(host->engine, host);
}

void pvr_req_conn_down(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot)
{
	struct pvr_req_conn *out = pvr_req_conn_find(host, kind, slot);

	if (!out)
		return;
	pvr_lock(&out->lock);
	out_close(out);
	pvr_unlock(&out->lock);
	pvr_host_resume(host->engine, host);
}

/* ---------------------------------------------------------------------- sending */

static bool put_flat(struct pvr_req_conn *out, union pvr_any_frame *any, size_t size)
{
	const struct pvr_tx_frame frame = { .header = any, .header_size = size };

	return pvr_pipe_tx_put(&out->box, &frame);
}

/* The limit of fabrics per connection, or of memory, is reached. */
static void cannot_add_fabric_id(struct pvr_req_conn *out, const char *name)
{
	if (!out->limit_logged)
		pvr_log(out->host->engine, NULL, PVR_LOG_ERR,
			"%s: a connection cannot have more fabrics than %u: %s is cut off",
			out->host->name, out->fabrics.count, name);
	out->limit_logged = true;
}

/* Return: the number of the fabric on this connection; 0: not available. */
static unsigned int declare(struct pvr_req_conn *out, uint64_t id, const char *name)
{
	union pvr_any_frame any = { .fabric = { .frame = { .type = PVR_FRAME_FABRIC } } };
	unsigned int number = pvr_fabric_ids_find(&out->fabrics, id, name);

	if (number)
		return number;
	number = pvr_fabric_ids_add(&out->fabrics, id, name);
	if (!number) {
		cannot_add_fabric_id(out, name);
		return 0;
	}
	any.frame.fabric = htole16((uint16_t)number);
	strncpy(any.fabric.name, name, sizeof(any.fabric.name) - 1);
	/* Without the FABRIC frame the peer refuses all frames of this fabric. */
	out->box.broken |= !put_flat(out, &any, sizeof(any.fabric));
	return number;
}

static enum pvr_sent refuse(struct pvr_req_conn *out)
{
	if (out->box.broken)
		return PVR_SENT_DOWN;
	out->refused = true;
	return PVR_SENT_BLOCKED;
}

static bool is_lossy(uint8_t type)
{
	return type == PVR_FRAME_QP_GONE || type == PVR_FRAME_DATAGRAM || type == PVR_FRAME_MOVED ||
	       type == PVR_FRAME_TAKE || type == PVR_FRAME_ADDRESS;
}

static bool is_agreed(const struct pvr_req_conn *out, uint8_t type)
{
	if (type == PVR_FRAME_QP_GONE)
		return out->qp_gone_agreed;
	if (type == PVR_FRAME_ADDRESS)
		return out->address_agreed;
	return type == PVR_FRAME_DATAGRAM || out->move_agreed;
}

/*
 * Called with the lock held. A lossy frame uses the reserved space while the
 * connection is blocked. That space is enough for connection managers while bulk data
 * fills the stream.
 */
static enum pvr_sent send(struct pvr_req_conn *out, uint64_t fabric_id, const char *fabric,
			  const struct pvr_tx_frame *frame)
{
	uint8_t type = frame->header->frame.type;
	bool lossy = is_lossy(type);
	unsigned int number;

	if (lossy && !is_agreed(out, type))
		return PVR_SENT_DOWN;
	if (out->box.broken || (out->box.blocked && !lossy))
		return refuse(out);
	number = declare(out, fabric_id, fabric);
	if (!number)
		return PVR_SENT_DOWN;
	frame->header->frame.fabric = htole16((uint16_t)number);
	if (!(out->box.blocked ? pvr_pipe_tx_put(&out->box, frame)
			       : pvr_pipe_tx_send(&out->box, frame)))
		return refuse(out);
	out->takes += type == PVR_FRAME_TAKE;
	return PVR_SENT;
}

static struct pvr_qp_gone_kept *take_qp_gone(struct pvr_host *host)
{
	struct pvr_qp_gone_kept *kept;

	pvr_lock(&host->lock);
	kept = pvr_qp_gone_queue_take(&host->qp_gone, pvr_host_pipe(host), pvr_now(host->engine));
	pvr_unlock(&host->lock);
	return kept;
}

static void put_qp_gone_back(struct pvr_host *host, struct pvr_qp_gone_kept *kept)
{
	pvr_lock(&host->lock);
	pvr_qp_gone_queue_put_back(&host->qp_gone, kept);
	pvr_unlock(&host->lock);
}

/* Return: false if it has to wait. One that was not negotiated is dropped. */
static bool send_qp_gone(struct pvr_req_conn *out, const struct pvr_qp_gone_kept *kept)
{
	union pvr_any_frame any = { .qp_gone = kept->frame };
	const struct pvr_tx_frame frame = { .header = &any, .header_size = sizeof(any.qp_gone) };

	return send(out, 0, kept->fabric, &frame) != PVR_SENT_BLOCKED && !out->box.broken;
}

/*
 * Called with the lock held, when the connection has come up or has space: sends the QP_GONE
 * frames that wait for that.
 */
static void send_qps_gone(struct pvr_req_conn *out)
{
	struct pvr_qp_gone_kept *kept;

	while ((kept = take_qp_gone(out->host))) {
		if (!send_qp_gone(out, kept)) {
			put_qp_gone_back(out->host, kept);
			return;
		}
		pvr_qp_gone_kept_free(kept, pvr_host_pipe(out->host));
	}
}

enum pvr_sent pvr_link_send(const struct pvr_route *route, const struct pvr_fabric *fabric,
			    union pvr_any_frame *header, size_t header_size,
			    const struct pvr_qp *expose_qp, const struct pvr_sg *payload,
			    uint64_t offset, uint32_t len)
{
	const struct pvr_tx_frame frame = {
		.header = header,
		.header_size = header_size,
		.payload = payload,
		.offset = offset,
		.len = len,
		.expose_qp = expose_qp,
	};
	struct pvr_req_conn *out = pvr_req_conn_find(route->host, route->kind, route->slot);
	enum pvr_sent sent = PVR_SENT_DOWN;

	if (!out)
		return PVR_SENT_DOWN;
	pvr_lock(&out->lock);
	if (out->generation == route->generation && route->generation)
		sent = send(out, fabric->id, fabric->name, &frame);
	pvr_unlock(&out->lock);
	return sent;
}

bool pvr_link_keep_qp_gone(const struct pvr_route *route, const struct pvr_fabric *fabric,
			   const struct pvr_frame_qp_gone *frame)
{
	struct pvr_host *host = route->host;
	bool kept;

	pvr_lock(&host->lock);
	kept = pvr_qp_gone_queue_add(&host->qp_gone, pvr_host_pipe(host), pvr_now(host->engine),
				     fabric->name, frame);
	pvr_unlock(&host->lock);
	return kept;
}

void pvr_link_send_kept(const struct pvr_route *route)
{
	struct pvr_req_conn *out = pvr_req_conn_find(route->host, route->kind, route->slot);

	if (!out)
		return;
	pvr_lock(&out->lock);
	if (out->generation && out->generation == route->generation)
		send_qps_gone(out);
	pvr_unlock(&out->lock);
}

/* Without space, the ACK is sent by its rsp_conn only. */
static void take_ack_along(struct pvr_req_conn *out)
{
	union pvr_any_frame any;

	if (out->piggyback_ack && pvr_piggyback_take(&out->host->piggyback, &out->fabrics, &any))
		put_flat(out, &any, sizeof(any.ack));
}

void pvr_link_flush(const struct pvr_route *route)
{
	struct pvr_req_conn *out = pvr_req_conn_find(route->host, route->kind, route->slot);

	if (!out)
		return;
	pvr_lock(&out->lock);
	if (out->generation == route->generation && !out->box.blocked) {
		take_ack_along(out);
		pvr_pipe_tx_flush(&out->box);
	}
	pvr_unlock(&out->lock);
}

void pvr_req_conn_send_rndv_done(struct pvr_req_conn *out)
{
	union pvr_any_frame any = { .rndv_done = {
					    .frame.type = PVR_FRAME_RNDV_DONE,
					    .count = htole32(out->rndv_done_count),
				    } };

	if (out->rndv_done_sent != out->rndv_done_count &&
	    put_flat(out, &any, sizeof(any.rndv_done)))
		out->rndv_done_sent = out->rndv_done_count;
}

/* Return: whether queue pairs are to be resumed. */
static bool flush_all(struct pvr_req_conn *out)
{
	bool resume;

	pvr_req_conn_send_rndv_done(out);
	pvr_pipe_tx_flush(&out->box);
	if (!out->box.blocked && !out->box.broken) {
		send_qps_gone(out);
		pvr_pipe_tx_flush(&out->box);
	}
	resume = out->refused && !out->box.blocked;
	if (resume)
		out->refused = false;
	return resume;
}

bool pvr_req_conn_output(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot)
{
	struct pvr_req_conn *out = pvr_req_conn_find(host, kind, slot);
	bool resume = false, works = false;

	if (!out)
		return false;
	pvr_lock(&out->lock);
	if (out->generation) {
		resume = flush_all(out);
		works = !out->box.broken;
	}
	pvr_unlock(&out->lock);
	if (resume)
		pvr_host_resume(host->engine, host);
	return works;
}

/* ------------------------------------------------------ control frames */

/* Return: the slot's connection, locked; NULL if it is down. */
static struct pvr_req_conn *lock_up(struct pvr_host *host, enum pvr_pipe_kind kind,
				    unsigned int slot)
{
	struct pvr_req_conn *out = pvr_req_conn_find(host, kind, slot);

	if (!out)
		return NULL;
	pvr_lock(&out->lock);
	if (out->generation && !out->box.broken)
		return out;
	pvr_unlock(&out->lock);
	return NULL;
}

bool pvr_req_conn_send_now(struct pvr_req_conn *out, union pvr_any_frame *any, size_t size)
{
	bool room = put_flat(out, any, size);

	if (!out->box.blocked)
		pvr_pipe_tx_flush(&out->box);
	return room;
}

void pvr_req_conn_ping(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot)
{
	union pvr_any_frame any = { .ping = { .frame = { .type = PVR_FRAME_PING } } };
	struct pvr_req_conn *out = lock_up(host, kind, slot);

	if (!out)
		return;
	out->ping = pvr_now(host->engine);
	any.ping.cookie = htole64(out->ping);
	pvr_req_conn_send_now(out, &any, sizeof(any.ping));
	pvr_unlock(&out->lock);
}

bool pvr_req_conn_gid_query(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot,
			    const char *fabric, const uint8_t gid[16])
{
	union pvr_any_frame any = { .gid_query = { .frame = { .type = PVR_FRAME_GID_QUERY } } };
	struct pvr_req_conn *out = lock_up(host, kind, slot);
	unsigned int number;
	bool sent;

	if (!out)
		return false;
	number = declare(out, 0, fabric);
	any.frame.fabric = htole16((uint16_t)number);
	memcpy(any.gid_query.gid, gid, sizeof(any.gid_query.gid));
	sent = number && pvr_req_conn_send_now(out, &any, sizeof(any.gid_query));
	out->gid_queries += sent;
	pvr_unlock(&out->lock);
	return sent;
}

void pvr_req_conn_send_close(struct pvr_host *host, enum pvr_pipe_kind kind, unsigned int slot,
			     enum pvr_close_reason reason, const char *text)
{
	struct pvr_req_conn *out = lock_up(host, kind, slot);
	union pvr_any_frame any;

	if (!out)
		return;
	pvr_frame_fill_close(&any, reason, text);
	pvr_req_conn_send_now(out, &any, sizeof(any.close));
	pvr_unlock(&out->lock);
}
