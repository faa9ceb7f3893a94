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

/* --------------------------------------------------------------- those of the NICs */

static struct fg_nic *out_nic(void *opaque)
{
	return &((struct fg_link *)opaque)->nics.nic[0];
}

static struct fg_nic *in_nic(void *opaque)
{
	return &((struct fg_link *)opaque)->nics.nic[1];
}

static void *out_expose(void *opaque, const struct iovec *iov, int count, struct pvr_rndv_seg *part)
{
	return fg_nic_expose(out_nic(opaque), iov, count, part);
}

static void *in_expose(void *opaque, const struct iovec *iov, int count, struct pvr_rndv_seg *part)
{
	return fg_nic_expose(in_nic(opaque), iov, count, part);
}

static void out_revoke(void *opaque, void *rndv)
{
	fg_nic_revoke(out_nic(opaque), rndv);
}

static void in_revoke(void *opaque, void *rndv)
{
	fg_nic_revoke(in_nic(opaque), rndv);
}

static int out_read(void *opaque, const struct pvr_rndv_seg *part, int parts,
		    const struct iovec *iov, int count)
{
	return fg_nic_read(out_nic(opaque), part, parts, iov, count);
}

static int in_read(void *opaque, const struct pvr_rndv_seg *part, int parts,
		   const struct iovec *iov, int count)
{
	return fg_nic_read(in_nic(opaque), part, parts, iov, count);
}

static int out_rdma_read_poll(void *opaque, uint8_t **data)
{
	return fg_nic_rdma_read_poll(out_nic(opaque), data);
}

static int in_rdma_read_poll(void *opaque, uint8_t **data)
{
	return fg_nic_rdma_read_poll(in_nic(opaque), data);
}

static void out_rdma_read_cancel(void *opaque)
{
	fg_nic_rdma_read_cancel(out_nic(opaque));
}

static void in_rdma_read_cancel(void *opaque)
{
	fg_nic_rdma_read_cancel(in_nic(opaque));
}

static const struct pvr_stream_ops out_rndv_ops = {
	.send = out_send,
	.recv = out_recv,
	.want_output = out_want,
	.expose = out_expose,
	.revoke = out_revoke,
	.read = out_read,
	.rdma_read_poll = out_rdma_read_poll,
	.rdma_read_cancel = out_rdma_read_cancel,
};
static const struct pvr_stream_ops in_rndv_ops = {
	.send = in_send,
	.recv = in_recv,
	.want_output = in_want,
	.expose = in_expose,
	.revoke = in_revoke,
	.read = in_read,
	.rdma_read_poll = in_rdma_read_poll,
	.rdma_read_cancel = in_rdma_read_cancel,
};

/* --------------------------------------------------------------- opening, closing */

static void link_break(struct fg_link *link)
{
	if (!link->made)
		return;
	fg_nic_pair_break(&link->nics);
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
		pvr_req_conn_down(link->out_host, link->kind, link->slot);
	link->out_up = false;
	if (link->made)
		fg_nic_expect_idle(out_nic(link));
}

static void in_close(struct fg_link *link)
{
	link_break(link);
	if (link->in)
		pvr_rsp_conn_destroy(link->in);
	link->in = NULL;
	if (link->made)
		fg_nic_expect_idle(in_nic(link));
}

static void streams_make(struct fg_link *link)
{
	struct fg_nic_stats *stats[] = { link->out_nics, link->in_nics };

	fg_stream_init(&link->request, &link->env->netem, link->env->buffer);
	fg_stream_init(&link->answer, &link->env->netem, link->env->buffer);
	fg_nic_pair_init(&link->nics, &link->env->nics, &link->request, &link->answer, stats);
	link->made = true;
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
	streams_free(link);
	streams_make(link);
}

static void open_in(struct fg_link *link, bool piggyback_ack)
{
	const struct pvr_stream_limits limits = {
		.chunk = link->env->chunk,
		.piggyback_ack = piggyback_ack,
		.qp_gone = !link->env->old,
	};

	link->in_wants = link->in_read = false;
	link->in_state = PVR_INPUT_IDLE;
	link->in = pvr_rsp_conn_create(link->in_host, link->kind, 0,
				       link->exposes ? &in_rndv_ops : &in_ops, link, &limits);
	if (!link->in)
		fg_die("no memory for a connection");
}

static void open_out(struct fg_link *link)
{
	const struct pvr_stream_limits limits = {
		.chunk = link->env->chunk,
		.piggyback_ack = true,
		.qp_gone = !link->env->old,
	};

	link->out_wants = link->out_more = false;
	link->out_up = true;
	pvr_req_conn_up(link->out_host, link->kind, link->slot,
			link->exposes ? &out_rndv_ops : &out_ops, link, &limits);
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

static bool take_flag(bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(flag, false, __ATOMIC_RELAXED);
}

static bool out_output(struct fg_link *link)
{
	if (!fg_stream_can_send(&link->request) || !take_flag(&link->out_wants))
		return false;
	if (!pvr_req_conn_output(link->out_host, link->kind, link->slot))
		out_close(link);
	return true;
}

/* Received frames wait until the NIC's read is done. */
static bool out_is_ready(struct fg_link *link)
{
	link->out_more |= fg_nic_work(out_nic(link));
	return link->out_more ||
	       (!fg_nic_rdma_read_is_busy(out_nic(link)) && fg_stream_can_recv(&link->answer));
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
	switch (pvr_req_conn_input(link->out_host, link->kind, link->slot, &err)) {
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
	link->in_read |= fg_nic_work(in_nic(link));
	switch (link->in_state) {
	case PVR_INPUT_MORE:
		return true;
	case PVR_INPUT_OUTPUT:
		return false;
	case PVR_INPUT_STALLED:
		return now(link) >= link->stalled;
	default:
		return link->in_read || (!fg_nic_rdma_read_is_busy(in_nic(link)) &&
					 fg_stream_can_recv(&link->request));
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
	link->out_more |= fg_nic_work(out_nic(link));
	link->in_read |= fg_nic_work(in_nic(link));
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
