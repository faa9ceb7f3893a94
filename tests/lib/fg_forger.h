/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A forged host: one end of a connection that is the test's. Bytes go in, bytes come out. */
#ifndef FG_FORGER_H
#define FG_FORGER_H

#include "fg_wire.h"

struct fg_forger;

/* An incoming connection at @host from "host<other>". */
struct fg_forger *fg_forger_create(struct fg_wire *wire, unsigned int host, unsigned int other);
/* That has agreed on PVR_HELLO_F_PIGGYBACK_ACK, as all but forgers have. */
struct fg_forger *fg_forger_create_piggyback(struct fg_wire *wire, unsigned int host,
					     unsigned int other);
/* Of PVR_PIPE_VERBS, with NICs that read. */
struct fg_forger *fg_forger_create_rndv(struct fg_wire *wire, unsigned int host,
					unsigned int other);
/*
 * An outgoing connection of @host to "host<other>": its guests' requests go to the test, and
 * answers come from there. With NICs that read if it is of PVR_PIPE_VERBS. The wire's own
 * one of slot 0 must be down.
 */
struct fg_forger *fg_forger_accept(struct fg_wire *wire, unsigned int host, unsigned int other,
				   enum pvr_pipe_kind kind);
void fg_forger_destroy(struct fg_forger *forger);
void fg_forger_send(struct fg_forger *forger, const void *bytes, size_t size);
/* What came back and was not taken yet. Return: bytes, up to @size. */
size_t fg_forger_recv(struct fg_forger *forger, void *bytes, size_t size);
/* Until all is quiet; who sends and receives does that, too. */
void fg_forger_run(struct fg_forger *forger);
/* Whether the host has closed it. */
bool fg_forger_is_closed(const struct fg_forger *forger);
/* What the host's NIC may read, until it is taken back or the forger goes. */
void *fg_forger_expose(struct fg_forger *forger, void *va, size_t len,
		       struct pvr_frame_rndv_seg *rndv);
void fg_forger_revoke(struct fg_forger *forger, void *exposed);

#endif /* FG_FORGER_H */
