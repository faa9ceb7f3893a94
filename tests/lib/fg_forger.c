// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The end of a connection that is a test's. */
#include "fg_forger.h"

#include <endian.h>
#include <stdlib.h>

#include "fg_link.h"
#include "fg_ram.h"

struct fg_forger {
	struct fg_wire *wire;
	struct fg_link link;
	struct fg_nic_stats nics;
	bool accepts; /* it is the responder */
	bool closed;
};

static struct fg_forger *forger_new(struct fg_wire *wire, unsigned int host, unsigned int other,
				    bool exposes)
{
	struct fg_forger *forger = calloc(1, sizeof(*forger));

	if (!forger)
		fg_die("no memory for a forger");
	forger->wire = wire;
	forger->link.env = fg_wire_link_env(wire);
	forger->link.out_host = forger->link.in_host = fg_wire_remote_host(wire, host, other);
	forger->link.exposes = exposes;
	forger->link.out_nics = forger->link.in_nics = &forger->nics;
	return forger;
}

struct fg_forger *fg_forger_create(struct fg_wire *wire, unsigned int host, unsigned int other)
{
	struct fg_forger *forger = forger_new(wire, host, other, false);

	fg_link_open_in(&forger->link, false);
	return forger;
}

struct fg_forger *fg_forger_create_piggyback(struct fg_wire *wire, unsigned int host,
					     unsigned int other)
{
	struct fg_forger *forger = forger_new(wire, host, other, false);

	fg_link_open_in(&forger->link, true);
	return forger;
}

struct fg_forger *fg_forger_create_rndv(struct fg_wire *wire, unsigned int host, unsigned int other)
{
	struct fg_forger *forger = forger_new(wire, host, other, true);

	forger->link.in_nics = fg_wire_nic(wire, host);
	forger->link.kind = PVR_PIPE_VERBS;
	fg_link_open_in(&forger->link, false);
	return forger;
}

struct fg_forger *fg_forger_accept(struct fg_wire *wire, unsigned int host, unsigned int other,
				   enum pvr_pipe_kind kind)
{
	struct fg_forger *forger = forger_new(wire, host, other, kind == PVR_PIPE_VERBS);

	forger->accepts = true;
	forger->link.out_nics = fg_wire_nic(wire, host);
	forger->link.kind = kind;
	fg_link_open_out(&forger->link);
	return forger;
}

static struct fg_nic *nic_of(struct fg_forger *forger)
{
	return &forger->link.nics.nic[forger->accepts];
}

void fg_forger_destroy(struct fg_forger *forger)
{
	fg_nic_forget_rndvs(nic_of(forger));
	fg_link_exit(&forger->link);
	free(forger);
}

/* What is there once the host has nothing more to do; what it has said before it closed stays. */
static void pump_in(struct fg_forger *forger)
{
	struct fg_link *link = &forger->link;

	do {
		fg_wire_run(forger->wire);
		if (!link->in)
			return;
		fg_link_in_output(link);
		if (!fg_link_in_is_ready(link))
			return;
	} while (fg_link_in_take(link));
	pvr_rsp_conn_destroy(link->in);
	link->in = NULL;
	forger->closed = true;
}

static void pump_out(struct fg_forger *forger)
{
	do
		fg_wire_run(forger->wire);
	while (fg_link_pump_out(&forger->link));
	forger->closed = !forger->link.out_up;
}

void fg_forger_run(struct fg_forger *forger)
{
	if (forger->accepts)
		pump_out(forger);
	else
		pump_in(forger);
}

static struct fg_stream *stream_to(struct fg_forger *forger)
{
	return forger->accepts ? &forger->link.answer : &forger->link.request;
}

static struct fg_stream *stream_from(struct fg_forger *forger)
{
	return forger->accepts ? &forger->link.request : &forger->link.answer;
}

void fg_forger_send(struct fg_forger *forger, const void *bytes, size_t size)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, size };

	while (iov.iov_len && !forger->closed) {
		ssize_t n = fg_stream_send(stream_to(forger), &iov, 1);

		if (n < 0) {
			fg_forger_run(forger);
			return;
		}
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		fg_forger_run(forger);
		if (!n && !fg_stream_can_send(stream_to(forger)))
			return;
	}
}

size_t fg_forger_recv(struct fg_forger *forger, void *bytes, size_t size)
{
	struct iovec iov = { bytes, size };
	ssize_t n;

	if (!forger->closed)
		fg_forger_run(forger);
	n = fg_stream_recv(stream_from(forger), &iov, 1);
	return n > 0 ? (size_t)n : 0;
}

bool fg_forger_is_closed(const struct fg_forger *forger)
{
	return forger->closed;
}

void *fg_forger_expose(struct fg_forger *forger, void *va, size_t len,
		       struct pvr_frame_rndv_seg *rndv)
{
	const struct iovec iov = { va, len };
	struct pvr_rndv_seg part = { 0 };
	void *exposed = fg_nic_expose(nic_of(forger), &iov, 1, &part);

	*rndv = (struct pvr_frame_rndv_seg){ htole64(part.addr), htole32(part.rkey),
					     htole32(part.len) };
	return exposed;
}

void fg_forger_revoke(struct fg_forger *forger, void *exposed)
{
	fg_nic_revoke(nic_of(forger), exposed);
}
