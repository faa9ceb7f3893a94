// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A connection between two hosts of a wire. */
#include "fg_link.h"

#include <stdio.h>

#include "fg_lock.h"
#include "fg_ram.h"

#define STALL_NS (10 * FG_MS)

static const struct pvr_stream_ops *ops_of(const struct fg_link *link)
{
	return link->exposes ? &fg_nic_ops : &fg_nic_copy_ops;
}

/* --------------------------------------------------------------- opening, closing */

static void refused(struct fg_link_env *env, const struct pvr_input_error *err)
{
	FG_GUARD(&env->lock);

	if (err->reason < 0)
		return;
	env->refused++;
	snprintf(env->why, sizeof(env->why), "%s", err->why);
}

/* The streams and NICs of both ends break. */
static void link_break(struct fg_link *link)
{
	if (link->made)
		fg_nic_pair_break(&link->nics);
}

static void out_close(struct fg_link *link)
{
	link_break(link);
	if (link->out_up)
		pvr_req_conn_down(link->requester.host, link->kind, link->slot);
	link->out_up = false;
	if (link->made)
		fg_nic_expect_idle(link->requester.nic);
}

static void in_close(struct fg_link *link)
{
	link_break(link);
	if (link->in)
		pvr_rsp_conn_destroy(link->in);
	link->in = NULL;
	if (link->made)
		fg_nic_expect_idle(link->responder.nic);
}

static void streams_free(struct fg_link *link)
{
	if (!link->made)
		return;
	fg_nic_pair_exit(&link->nics);
	fg_stream_exit(&link->request);
	fg_stream_exit(&link->answer);
	link->made = false;
}

static void streams_anew(struct fg_link *link)
{
	struct fg_nic_stats *stats[] = { link->requester.stats, link->responder.stats };

	streams_free(link);
	fg_stream_init(&link->request, &link->env->netem, link->env->buffer);
	fg_stream_init(&link->answer, &link->env->netem, link->env->buffer);
	fg_nic_pair_init(&link->nics, &link->env->nics, &link->request, &link->answer, stats);
	link->requester.nic = &link->nics.nic[0];
	link->responder.nic = &link->nics.nic[1];
	link->made = true;
}

static struct pvr_stream_limits limits_of(const struct fg_link *link, bool piggyback_ack)
{
	return (struct pvr_stream_limits){
		.chunk = link->env->chunk,
		.piggyback_ack = piggyback_ack,
		.qp_gone = !link->env->old,
		.atomic_write = !link->env->old,
		.xrc = !link->env->old,
		.page = !link->env->old,
		.move = !link->env->old,
		.fault = !link->env->old,
		.load = !link->env->old && !link->env->no_load,
		.address = !link->env->old && !link->env->no_address,
		.refer = !link->env->old && !link->env->no_refer,
		.tail = !link->env->old,
	};
}

static void open_in(struct fg_link *link, bool piggyback_ack)
{
	const struct pvr_stream_limits limits = limits_of(link, piggyback_ack);

	link->in_read = false;
	link->in_state = PVR_INPUT_IDLE;
	link->in = pvr_rsp_conn_create(link->responder.host, link->kind, 0, ops_of(link),
				       link->responder.nic, &limits);
	if (!link->in)
		fg_die("no memory for a connection");
}

static void open_out(struct fg_link *link)
{
	const struct pvr_stream_limits limits = limits_of(link, true);

	link->out_more = false;
	link->out_up = true;
	pvr_req_conn_up(link->requester.host, link->kind, link->slot, ops_of(link),
			link->requester.nic, &limits);
}

void fg_link_open_in(struct fg_link *link, bool piggyback_ack)
{
	streams_anew(link);
	open_in(link, piggyback_ack);
}

void fg_link_open_out(struct fg_link *link)
{
	streams_anew(link);
	open_out(link);
}

void fg_link_open(struct fg_link *link)
{
	streams_anew(link);
	open_in(link, true);
	open_out(link);
}

void fg_link_close(struct fg_link *link)
{
	out_close(link);
	in_close(link);
}

void fg_link_exit(struct fg_link *link)
{
	fg_link_close(link);
	streams_free(link);
}

/* ------------------------------------------------------------------------ pumping */

/* Return: whether the end has waited for room that there is now. */
static bool take_want(struct fg_nic *nic)
{
	return fg_stream_can_send(nic->tx) && __atomic_load_n(&nic->wants, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(&nic->wants, false, __ATOMIC_RELAXED);
}

static bool out_output(struct fg_link *link)
{
	if (!take_want(link->requester.nic))
		return false;
	if (!pvr_req_conn_output(link->requester.host, link->kind, link->slot))
		out_close(link);
	return true;
}

/* Received frames wait until the NIC's read is done. */
static bool can_read(struct fg_nic *nic)
{
	return !fg_nic_rdma_read_is_busy(nic) && fg_stream_can_recv(nic->rx);
}

static bool out_is_ready(struct fg_link *link)
{
	link->out_more |= fg_nic_work(link->requester.nic);
	return link->out_more || can_read(link->requester.nic);
}

bool fg_link_pump_out(struct fg_link *link)
{
	struct pvr_input_error err;
	bool done;

	if (!link->out_up)
		return false;
	done = out_output(link);
	if (!link->out_up || !out_is_ready(link))
		return done;
	link->out_more = false;
	switch (pvr_req_conn_input(link->requester.host, link->kind, link->slot, &err)) {
	case PVR_INPUT_BROKEN:
		refused(link->env, &err);
		out_close(link);
		break;
	case PVR_INPUT_MORE:
		link->out_more = true;
		break;
	default:
		break;
	}
	return true;
}

bool fg_link_in_output(struct fg_link *link)
{
	if (!take_want(link->responder.nic))
		return false;
	if (!pvr_rsp_conn_output(link->in))
		in_close(link);
	else if (link->in_state == PVR_INPUT_OUTPUT)
		link->in_state = PVR_INPUT_MORE;
	return true;
}

static uint64_t now(const struct fg_link *link)
{
	const struct fg_host *host = link->env->clock;

	return host->real_now ? host->real_now() : host->now;
}

bool fg_link_in_is_ready(struct fg_link *link)
{
	link->in_read |= fg_nic_work(link->responder.nic);
	switch (link->in_state) {
	case PVR_INPUT_MORE:
		return true;
	case PVR_INPUT_OUTPUT:
		return false;
	case PVR_INPUT_STALLED:
		return now(link) >= link->stalled;
	default:
		return link->in_read || can_read(link->responder.nic);
	}
}

bool fg_link_in_take(struct fg_link *link)
{
	struct pvr_input_error err;

	link->in_read = false;
	link->in_state = pvr_rsp_conn_input(link->in, &err);
	if (link->in_state == PVR_INPUT_STALLED)
		link->stalled = now(link) + STALL_NS;
	if (link->in_state == PVR_INPUT_BROKEN)
		refused(link->env, &err);
	return link->in_state != PVR_INPUT_BROKEN;
}

bool fg_link_pump_in(struct fg_link *link)
{
	bool done;

	if (!link->in)
		return false;
	done = fg_link_in_output(link);
	if (!link->in || !fg_link_in_is_ready(link))
		return done;
	if (!fg_link_in_take(link))
		in_close(link);
	return true;
}

void fg_link_nics_work(struct fg_link *link)
{
	if (!link->made)
		return;
	link->out_more |= fg_nic_work(link->requester.nic);
	link->in_read |= fg_nic_work(link->responder.nic);
}

uint64_t fg_link_deadline(struct fg_link *link)
{
	uint64_t first = UINT64_MAX;

	if (link->out_up)
		first = fg_sooner(first, fg_stream_deadline(&link->answer));
	if (link->in && link->in_state == PVR_INPUT_STALLED)
		first = fg_sooner(first, link->stalled);
	else if (link->in && link->in_state != PVR_INPUT_OUTPUT)
		first = fg_sooner(first, fg_stream_deadline(&link->request));
	return first;
}
