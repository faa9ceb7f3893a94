// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The end of a connection that is a test's. */
#include "fg_forger.h"

#include <stdlib.h>

#include "fg_link.h"
#include "fg_ram.h"

struct fg_forger {
	struct fg_wire *wire;
	struct fg_link link;
	bool closed;
};

static struct fg_forger *forger_create(struct fg_wire *wire, unsigned int host,
				       unsigned int other, bool early_acks)
{
	struct fg_forger *forger = calloc(1, sizeof(*forger));

	if (!forger)
		fg_die("no memory for a forger");
	forger->wire = wire;
	forger->link.env = fg_wire_link_env(wire);
	forger->link.in_remote = fg_wire_remote(wire, host, other);
	fg_link_open_in(&forger->link, early_acks);
	return forger;
}

struct fg_forger *fg_forger_create(struct fg_wire *wire, unsigned int host, unsigned int other)
{
	return forger_create(wire, host, other, false);
}

struct fg_forger *fg_forger_create_early(struct fg_wire *wire, unsigned int host,
					 unsigned int other)
{
	return forger_create(wire, host, other, true);
}

void fg_forger_destroy(struct fg_forger *forger)
{
	fg_link_exit(&forger->link);
	free(forger);
}

/* What is there once the host has nothing more to do; what it has said before it closed stays. */
static void forger_pump(struct fg_forger *forger)
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
	pvr_in_destroy(link->in);
	link->in = NULL;
	forger->closed = true;
}

void fg_forger_send(struct fg_forger *forger, const void *bytes, size_t size)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, size };

	while (iov.iov_len && !forger->closed) {
		ssize_t n = fg_stream_send(&forger->link.request, &iov, 1);

		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		forger_pump(forger);
		if (!n && !fg_stream_can_send(&forger->link.request))
			return;
	}
}

size_t fg_forger_recv(struct fg_forger *forger, void *bytes, size_t size)
{
	struct iovec iov = { bytes, size };
	ssize_t n;

	if (!forger->closed)
		forger_pump(forger);
	n = fg_stream_recv(&forger->link.answer, &iov, 1);
	return n > 0 ? (size_t)n : 0;
}

bool fg_forger_is_closed(const struct fg_forger *forger)
{
	return forger->closed;
}
