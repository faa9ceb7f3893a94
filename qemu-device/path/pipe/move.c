// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* TAKE, TAKEN, MOVED and REFERRAL frames: adapters that move to another host, see core/move.h. */
#include "path/pipe/move.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "core/adapter.h"
#include "gid/fabric.h"
#include "gid/referral.h"
#include "gid/resolve.h"
#include "path/pipe/host.h"
#include "path/pipe/internal.h"

static_assert((int)PVR_TAKE_NO == PVR_FRAME_TAKE_NO && (int)PVR_TAKE_YES == PVR_FRAME_TAKE_YES &&
		      (int)PVR_TAKE_STALE == PVR_FRAME_TAKE_STALE &&
		      (int)PVR_TAKE_DONE == PVR_FRAME_TAKE_DONE,
	      "answers are numbers of frames");

/* All connections carry it. */
#define ANY_QPN 0
#define NO_DSCP 0

/* ------------------------------------------------------------------------ TAKE, TAKEN */

static bool is_token(const uint8_t token[PVR_TOKEN_BYTES])
{
	static const uint8_t none[PVR_TOKEN_BYTES];

	return memcmp(token, none, sizeof(none)) != 0;
}

/* The source refers peers to this host, also if the directory does not respond. */
static void tell_address(const struct pvr_adapter *adapter, const struct pvr_route *route)
{
	union pvr_any_frame any = { .address.frame.type = PVR_FRAME_ADDRESS };
	const char *address = adapter->engine->pipe->address;

	if (!address[0])
		return;
	memcpy(any.address.address, address, sizeof(any.address.address));
	pvr_link_send(route, adapter->fabric, &any, sizeof(any.address), NULL, NULL, 0, 0);
}

void pvr_pipe_recv_address(struct pvr_rsp_conn *in, const struct pvr_frame_address *frame)
{
	struct pvr_host *from = pvr_rsp_conn_host(in);
	const struct pvr_pipe *pipe = pvr_host_pipe(from);

	if (pipe->ops && pipe->ops->referred)
		pipe->ops->referred(pipe->opaque, from, frame->address);
}

static void ask(struct pvr_adapter *adapter, struct pvr_host *host,
		const uint8_t token[PVR_TOKEN_BYTES], bool bound)
{
	union pvr_any_frame any = { .take.frame.type = PVR_FRAME_TAKE };
	__le64 load = htole64(adapter->move.load);
	struct pvr_route route;
	bool has_load;
	struct pvr_sg sg;

	/* Without a connection this requests one, for the next try. */
	if (!pvr_link_route(host, ANY_QPN, NO_DSCP, &route))
		return;
	if (is_token(token))
		tell_address(adapter, &route);
	memcpy(any.take.token, token, sizeof(any.take.token));
	memcpy(any.take.mac, adapter->mac, sizeof(any.take.mac));
	any.take.bound = bound;
	has_load = route.has_load && load && is_token(token);
	pvr_sg_build_flat(&sg, adapter, (uint8_t *)&load, sizeof(load));
	if (pvr_link_send(&route, adapter->fabric, &any, sizeof(any.take), NULL,
			  has_load ? &sg : NULL, 0, has_load ? sizeof(load) : 0) == PVR_SENT)
		pvr_link_flush(&route);
}

bool pvr_pipe_ask(struct pvr_adapter *adapter, const char *name,
		  const uint8_t token[PVR_TOKEN_BYTES], bool bound)
{
	struct pvr_host *host = pvr_host_find(adapter->engine, name);

	if (host)
		ask(adapter, host, token, bound);
	return host;
}

void pvr_pipe_ask_others(struct pvr_adapter *adapter, const char *name,
			 const uint8_t token[PVR_TOKEN_BYTES],
			 bool (*may)(const struct pvr_adapter *adapter, struct pvr_host *host))
{
	struct pvr_host *host = NULL;

	while ((host = pvr_host_next(adapter->engine, host)))
		if (strcmp(pvr_host_name(host), name) && may(adapter, host))
			ask(adapter, host, token, false);
}

void pvr_pipe_recv_take(struct pvr_rsp_conn *in, const char *fabric,
			const struct pvr_frame_take *frame, uint64_t load)
{
	struct pvr_host *from = pvr_rsp_conn_host(in);
	struct pvr_engine *engine = pvr_host_engine(from);
	const struct pvr_taker taker = {
		.fabric = fabric,
		.mac = frame->mac,
		.token = frame->token,
		.host = from,
		.name = pvr_host_name(from),
		.bound = frame->bound,
		.load = load,
	};
	union pvr_any_frame any = { .take = *frame };
	enum pvr_take answer;

	any.frame.type = PVR_FRAME_TAKEN;
	any.take.bound = 0;
	answer = engine->move_ops->give(engine, &taker);
	if (answer == PVR_TAKE_NONE)
		return;
	any.take.answer = answer;
	pvr_rsp_conn_reply(in, &any, sizeof(any.take), NULL, NULL, 0, 0);
}

void pvr_pipe_recv_taken(struct pvr_host *from, const char *fabric,
			 const struct pvr_frame_take *frame)
{
	struct pvr_engine *engine = pvr_host_engine(from);

	engine->move_ops->taken(engine, fabric, frame->mac, frame->token, from, frame->answer);
}

/* ----------------------------------------------------------------------------- MOVED */

static void tell_gid(struct pvr_adapter *adapter, const struct pvr_route *route,
		     const uint8_t gid[16])
{
	union pvr_any_frame any = { .moved.frame.type = PVR_FRAME_MOVED };

	memcpy(any.moved.gid, gid, sizeof(any.moved.gid));
	any.moved.gid_type = adapter->gid_type;
	pvr_link_send(route, adapter->fabric, &any, sizeof(any.moved), NULL, NULL, 0, 0);
}

/* Work of a frame without a system call, and of a host without a connection. */
#define WORK_FRAME 8u

/* A host without connection asks, when it sends to the GID. Return: the work. */
static uint32_t tell_host(struct pvr_adapter *adapter, struct pvr_host *host)
{
	uint32_t work = PVR_WORK_FRAME, i;
	struct pvr_route route;
	unsigned int kind;
	bool is_up = false;

	for (kind = 0; kind < PVR_PIPE_KINDS; kind++)
		is_up |= __atomic_load_n(&host->out[kind].up, __ATOMIC_RELAXED) != 0;
	if (!is_up || !pvr_link_route(host, ANY_QPN, NO_DSCP, &route))
		return WORK_FRAME;
	for (i = 0; i < PVR_GID_TABLE_LEN; i++) {
		if (!adapter->gids[i].bound)
			continue;
		tell_gid(adapter, &route, adapter->gids[i].gid);
		work += WORK_FRAME;
	}
	pvr_link_flush(&route);
	return work;
}

struct pvr_host *pvr_pipe_tell_moved(struct pvr_adapter *adapter, struct pvr_host *told,
				     uint32_t *work)
{
	struct pvr_host *host = pvr_host_next(adapter->engine, told);

	*work = host ? tell_host(adapter, host) : 0;
	return host;
}

/*
 * Ignored unless the GID was located at the sender. An adapter here may have the GID already: if it
 * came from there, the old location must not come back when it leaves. The directory finds a new one.
 */
void pvr_pipe_recv_moved(struct pvr_rsp_conn *in, const char *fabric,
			 const struct pvr_frame_moved *frame)
{
	struct pvr_host *from = pvr_rsp_conn_host(in);

	pvr_gid_left_host(pvr_host_engine(from), from, fabric, frame->gid);
}

/* -------------------------------------------------------------------------- REFERRAL */

void pvr_pipe_query(struct pvr_host *host, const char *fabric, const uint8_t gid[16])
{
	struct pvr_route route;

	/* Without a connection this requests one, for the next query. */
	if (pvr_link_route(host, ANY_QPN, NO_DSCP, &route) && route.has_refer)
		pvr_req_conn_gid_query(host, route.kind, route.slot, fabric, gid);
}

bool pvr_pipe_fill_referral(const struct pvr_host *asker, const char *fabric,
			    const struct pvr_frame_gid_query *query,
			    struct pvr_frame_referral *referral)
{
	uint8_t gid_type;
	struct pvr_host *to = pvr_referral_to(asker->engine, fabric, query->gid, &gid_type);

	if (!to || to == asker)
		return false;
	*referral = (struct pvr_frame_referral){ .frame = query->frame, .gid_type = gid_type };
	referral->frame.type = PVR_FRAME_REFERRAL;
	memcpy(referral->gid, query->gid, sizeof(referral->gid));
	memcpy(referral->name, to->name, sizeof(referral->name));
	pvr_host_get_address(to, referral->address);
	return true;
}

static void answered(struct pvr_host *from, const char *fabric, const uint8_t gid[16],
		     uint8_t gid_type, struct pvr_host *to)
{
	struct pvr_engine *engine = pvr_host_engine(from);

	if (pvr_referral_answered(engine, fabric, gid, gid_type, from, to))
		pvr_host_resume_fabric(engine, fabric);
}

void pvr_pipe_recv_gid_reply(struct pvr_host *from, const char *fabric,
			     const struct pvr_frame_gid_query *frame)
{
	answered(from, fabric, frame->gid, frame->gid_type, frame->gid_type ? from : NULL);
}

/* Only a host that is believed can make this host know another one. */
void pvr_pipe_recv_referral(struct pvr_host *from, const char *fabric,
			    const struct pvr_frame_referral *frame)
{
	struct pvr_engine *engine = pvr_host_engine(from);
	const struct pvr_pipe *pipe = pvr_host_pipe(from);
	struct pvr_host *to;

	if (!strcmp(frame->name, engine->name) || !strcmp(frame->name, from->name) ||
	    !pvr_referral_believes(engine, fabric, frame->gid, from))
		return;
	/* Perhaps this host has not been told. It need not be asked: this is its response. */
	pvr_gid_forget_host(engine, from, fabric, frame->gid);
	if (!pvr_gid_name_may_have(engine, frame->name, fabric, frame->gid))
		return;
	to = pvr_host_get_referred(engine, frame->name);
	if (!to)
		return;
	if (pipe->ops && pipe->ops->referred)
		pipe->ops->referred(pipe->opaque, to, frame->address);
	answered(from, fabric, frame->gid, frame->gid_type, to);
}
