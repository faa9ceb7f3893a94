// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A connection between two hosts of a wire. */
#include "fg_link.h"

#include <stdio.h>

#include "fg_ram.h"

#define STALL_NS (10 * FG_MS)

/* ------------------------------------------------------------------- stream ops */

static ssize_t out_send(void *opaque, const struct iovec *iov, int count)
{
	return fg_stream_send(&((struct fg_link *)opaque)->request, iov, count);
}

static ssize_t out_recv(void *opaque, const struct iovec *iov, int count)
{
	return fg_stream_recv(&((struct fg_link *)opaque)->answer, iov, count);
}

static void out_want(void *opaque)
{
	__atomic_store_n(&((struct fg_link *)opaque)->out_wants, true, __ATOMIC_RELAXED);
}

static ssize_t in_send(void *opaque, const struct iovec *iov, int count)
{
	return fg_stream_send(&((struct fg_link *)opaque)->answer, iov, count);
}

static ssize_t in_recv(void *opaque, const struct iovec *iov, int count)
{
	return fg_stream_recv(&((struct fg_link *)opaque)->request, iov, count);
}

static void in_want(void *opaque)
{
	__atomic_store_n(&((struct fg_link *)opaque)->in_wants, true, __ATOMIC_RELAXED);
}

static const struct pvr_stream_ops out_ops = {
	.send = out_send,
	.recv = out_recv,
	.want_output = out_want,
};
static const struct pvr_stream_ops in_ops = {
	.send = in_send,
	.recv = in_recv,
	.want_output = in_want,
};

/* --------------------------------------------------------------- opening, closing */

static void link_break(struct fg_link *link)
{
	if (!link->made)
		return;
	fg_stream_break(&link->request);
	fg_stream_break(&link->answer);
}

static void refused(struct fg_link_env *env, const struct pvr_input_error *err)
{
	if (err->reason < 0)
		return;
	pthread_mutex_lock(&env->lock);
	env->refused++;
	snprintf(env->why, sizeof(env->why), "%s", err->why);
	pthread_mutex_unlock(&env->lock);
}

static void out_close(struct fg_link *link)
{
	link_break(link);
	if (link->out_up)
		pvr_out_down(link->out_remote, link->kind, link->slot);
	link->out_up = false;
}

static void in_close(struct fg_link *link)
{
	link_break(link);
	if (link->in)
		pvr_in_destroy(link->in);
	link->in = NULL;
}

static void streams_make(struct fg_link *link)
{
	fg_stream_init(&link->request, &link->env->weather, link->env->buffer);
	fg_stream_init(&link->answer, &link->env->weather, link->env->buffer);
	link->made = true;
}

static void streams_free(struct fg_link *link)
{
	if (!link->made)
		return;
	fg_stream_exit(&link->request);
	fg_stream_exit(&link->answer);
	link->made = false;
}

void fg_link_open_in(struct fg_link *link, bool early_acks)
{
	const struct pvr_stream_limits limits = {
		.chunk = link->env->chunk,
		.early_acks = early_acks,
		.left = !link->env->old,
	};

	streams_free(link);
	streams_make(link);
	link->in_wants = false;
	link->in_state = PVR_INPUT_IDLE;
	link->in = pvr_in_create(link->in_remote, link->kind, 0, &in_ops, link, &limits);
	if (!link->in)
		fg_die("no memory for a connection");
}

void fg_link_open(struct fg_link *link)
{
	const struct pvr_stream_limits limits = {
		.chunk = link->env->chunk,
		.early_acks = true,
		.left = !link->env->old,
	};

	fg_link_open_in(link, true);
	link->out_wants = link->out_more = false;
	link->out_up = true;
	pvr_out_up(link->out_remote, link->kind, link->slot, &out_ops, link, &limits);
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

static bool take_flag(bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(flag, false, __ATOMIC_RELAXED);
}

static bool out_output(struct fg_link *link)
{
	if (!fg_stream_can_send(&link->request) || !take_flag(&link->out_wants))
		return false;
	if (!pvr_out_output(link->out_remote, link->kind, link->slot))
		out_close(link);
	return true;
}

bool fg_link_pump_out(struct fg_link *link)
{
	struct pvr_input_error err;
	bool done;

	if (!link->out_up)
		return false;
	done = out_output(link);
	if (!link->out_up || (!link->out_more && !fg_stream_can_recv(&link->answer)))
		return done;
	link->out_more = false;
	switch (pvr_out_input(link->out_remote, link->kind, link->slot, &err)) {
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
	if (!fg_stream_can_send(&link->answer) || !take_flag(&link->in_wants))
		return false;
	if (!pvr_in_output(link->in))
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
	switch (link->in_state) {
	case PVR_INPUT_MORE:
		return true;
	case PVR_INPUT_OUTPUT:
		return false;
	case PVR_INPUT_STALLED:
		return now(link) >= link->stalled;
	default:
		return fg_stream_can_recv(&link->request);
	}
}

bool fg_link_in_take(struct fg_link *link)
{
	struct pvr_input_error err;

	link->in_state = pvr_in_input(link->in, &err);
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
