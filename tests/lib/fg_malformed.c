// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The end of a connection that a test controls. */
#include "fg_malformed.h"

#include <stdio.h>
#include <stdlib.h>

#include "fg_link.h"
#include "fg_ram.h"

struct fg_malformed {
	LIST_ENTRY(fg_malformed) list;
	struct fg_wire *wire;
	struct fg_link link;
	struct fg_nic_stats nics;
	bool accepts; /* the responder's end */
	bool closed;
};

static struct fg_malformed *malformed_new(struct fg_wire *wire, unsigned int host,
					  unsigned int other, bool exposes)
{
	struct fg_malformed *malformed = calloc(1, sizeof(*malformed));

	if (!malformed)
		fg_die("no memory for a malformed peer");
	malformed->wire = wire;
	malformed->link.env = fg_wire_link_env(wire);
	LIST_INSERT_HEAD(&malformed->link.env->malformed, malformed, list);
	malformed->link.requester.host = malformed->link.responder.host =
		fg_wire_remote_host(wire, host, other);
	malformed->link.exposes = exposes;
	malformed->link.requester.stats = malformed->link.responder.stats = &malformed->nics;
	return malformed;
}

struct fg_malformed *fg_malformed_create(struct fg_wire *wire, unsigned int host,
					 unsigned int other)
{
	struct fg_malformed *malformed = malformed_new(wire, host, other, false);

	fg_link_open_in(&malformed->link, false);
	return malformed;
}

struct fg_malformed *fg_malformed_create_piggyback(struct fg_wire *wire, unsigned int host,
						   unsigned int other)
{
	struct fg_malformed *malformed = malformed_new(wire, host, other, false);

	fg_link_open_in(&malformed->link, true);
	return malformed;
}

struct fg_malformed *fg_malformed_create_rndv(struct fg_wire *wire, unsigned int host,
					      unsigned int other)
{
	struct fg_malformed *malformed = malformed_new(wire, host, other, true);

	malformed->link.responder.stats = fg_wire_nic(wire, host);
	malformed->link.kind = PVR_PIPE_VERBS;
	fg_link_open_in(&malformed->link, false);
	return malformed;
}

struct fg_malformed *fg_malformed_accept(struct fg_wire *wire, unsigned int host,
					 unsigned int other, enum pvr_pipe_kind kind)
{
	struct fg_malformed *malformed = malformed_new(wire, host, other, kind == PVR_PIPE_VERBS);

	malformed->accepts = true;
	malformed->link.requester.stats = fg_wire_nic(wire, host);
	malformed->link.kind = kind;
	fg_link_open_out(&malformed->link);
	return malformed;
}

static struct fg_nic *nic_of(struct fg_malformed *malformed)
{
	return &malformed->link.nics.nic[malformed->accepts];
}

void fg_malformed_destroy(struct fg_malformed *malformed)
{
	fg_nic_forget_rndvs(nic_of(malformed));
	fg_link_exit(&malformed->link);
	LIST_REMOVE(malformed, list);
	free(malformed);
}

void fg_malformed_destroy_all(struct fg_link_env *env)
{
	while (!LIST_EMPTY(&env->malformed))
		fg_malformed_destroy(LIST_FIRST(&env->malformed));
}

/* Received bytes after the host is idle, also those from before a close. */
static void pump_in(struct fg_malformed *malformed)
{
	struct fg_link *link = &malformed->link;

	do {
		fg_wire_run(malformed->wire);
		if (!link->in)
			return;
		fg_link_in_output(link);
		if (!fg_link_in_is_ready(link))
			return;
	} while (fg_link_in_take(link));
	pvr_rsp_conn_destroy(link->in);
	link->in = NULL;
	malformed->closed = true;
}

static void pump_out(struct fg_malformed *malformed)
{
	do
		fg_wire_run(malformed->wire);
	while (fg_link_pump_out(&malformed->link));
	malformed->closed = !malformed->link.out_up;
}

void fg_malformed_run(struct fg_malformed *malformed)
{
	if (malformed->accepts)
		pump_out(malformed);
	else
		pump_in(malformed);
}

static struct fg_stream *stream_to(struct fg_malformed *malformed)
{
	return malformed->accepts ? &malformed->link.answer : &malformed->link.request;
}

static struct fg_stream *stream_from(struct fg_malformed *malformed)
{
	return malformed->accepts ? &malformed->link.request : &malformed->link.answer;
}

void fg_malformed_send(struct fg_malformed *malformed, const void *bytes, size_t size)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, size };

	while (iov.iov_len && !malformed->closed) {
		ssize_t n = fg_stream_send(stream_to(malformed), &iov, 1);

		if (n < 0) {
			fg_malformed_run(malformed);
			return;
		}
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		fg_malformed_run(malformed);
		if (!n && !fg_stream_can_send(stream_to(malformed)))
			return;
	}
}

void fg_malformed_send_fabric(struct fg_malformed *malformed, const char *fabric)
{
	struct pvr_frame_fabric frame = { .frame = FG_FRAME(PVR_FRAME_FABRIC, sizeof(frame)) };

	snprintf(frame.name, sizeof(frame.name), "%s", fabric);
	fg_malformed_send(malformed, &frame, sizeof(frame));
}

size_t fg_malformed_recv(struct fg_malformed *malformed, void *bytes, size_t size)
{
	struct iovec iov = { bytes, size };
	ssize_t n;

	if (!malformed->closed)
		fg_malformed_run(malformed);
	n = fg_stream_recv(stream_from(malformed), &iov, 1);
	return n > 0 ? (size_t)n : 0;
}

bool fg_malformed_is_closed(const struct fg_malformed *malformed)
{
	return malformed->closed;
}

void *fg_malformed_expose(struct fg_malformed *malformed, void *va, size_t len,
			  struct pvr_frame_rndv_seg *rndv)
{
	const struct iovec iov = { va, len };
	struct pvr_rndv_seg part = { 0 };
	void *exposed = fg_nic_expose(nic_of(malformed), &iov, 1, &part);

	*rndv = (struct pvr_frame_rndv_seg){ htole64(part.addr), htole32(part.rkey),
					     htole32(part.len) };
	return exposed;
}

void fg_malformed_revoke(struct fg_malformed *malformed, void *exposed)
{
	fg_nic_revoke(nic_of(malformed), exposed);
}
