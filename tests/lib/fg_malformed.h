/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A malformed peer: the test reads and writes the bytes of one end of a connection.
 * fg_wire_destroy() destroys the peers that are left.
 */
#ifndef FG_MALFORMED_H
#define FG_MALFORMED_H

#include <endian.h>
#include <stddef.h>

#include "fg_wire.h"

struct fg_malformed;

/* The header of a frame of @size_ bytes in the fabric that was declared as number 1. */
#define FG_FRAME(type_, size_)                                                \
	{                                                                     \
		.size = htole32(size_), .type = (type_), .fabric = htole16(1) \
	}

/* A row of TEST_CASES(): a frame whose little-endian field at @offset has other @bits. */
struct fg_flip {
	const char *label;
	size_t offset;
	uint32_t bits;
};

#define FG_FLIP(type, field, bits) offsetof(type, field), bits

static inline void fg_flip(void *frame, const struct fg_flip *flip)
{
	uint8_t *at = (uint8_t *)frame + flip->offset;

	for (uint32_t bits = flip->bits; bits; bits >>= 8)
		*at++ ^= (uint8_t)bits;
}

/* An incoming connection at @host from "host<other>". */
struct fg_malformed *fg_malformed_create(struct fg_wire *wire, unsigned int host,
					 unsigned int other);
/* The same, with PVR_HELLO_F_PIGGYBACK_ACK negotiated, as between real hosts. */
struct fg_malformed *fg_malformed_create_piggyback(struct fg_wire *wire, unsigned int host,
						   unsigned int other);
/* Of PVR_PIPE_VERBS, with NICs that read. */
struct fg_malformed *fg_malformed_create_rndv(struct fg_wire *wire, unsigned int host,
					      unsigned int other);
/*
 * An outgoing connection of @host to "host<other>": its guests' requests go to the test, and
 * answers come from there. With NICs that read if it is of PVR_PIPE_VERBS. The wire's own
 * one of slot 0 must be down.
 */
struct fg_malformed *fg_malformed_accept(struct fg_wire *wire, unsigned int host,
					 unsigned int other, enum pvr_pipe_kind kind);
void fg_malformed_destroy(struct fg_malformed *malformed);
void fg_malformed_destroy_all(struct fg_link_env *env);
/* Sends the FABRIC frame that gives @fabric the number 1. */
void fg_malformed_send_fabric(struct fg_malformed *malformed, const char *fabric);
void fg_malformed_send(struct fg_malformed *malformed, const void *bytes, size_t size);
/* Takes received bytes, up to @size. Return: their number. */
size_t fg_malformed_recv(struct fg_malformed *malformed, void *bytes, size_t size);
/* Runs hosts and streams until all are idle; sending and receiving include a run. */
void fg_malformed_run(struct fg_malformed *malformed);
/* Whether the host has closed it. */
bool fg_malformed_is_closed(const struct fg_malformed *malformed);
/* Exposes memory to the host's NIC, until revoked or until @malformed is destroyed. */
void *fg_malformed_expose(struct fg_malformed *malformed, void *va, size_t len,
			  struct pvr_frame_rndv_seg *rndv);
void fg_malformed_revoke(struct fg_malformed *malformed, void *exposed);

#endif /* FG_MALFORMED_H */
