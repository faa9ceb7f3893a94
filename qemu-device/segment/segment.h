/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The Ethernet segment of an adapter, as the setting "wire" names it:
 *
 *   unix:PATH       a Unix socket to QEMU, segment/stream.c
 *   eth:INTERFACE   a network interface of this host, segment/packet.c
 *   tap:NAME        a tap device of this host, segment/tap.c
 */
#ifndef PVR_SEGMENT_SEGMENT_H
#define PVR_SEGMENT_SEGMENT_H

#include "base/error.h"
#include "base/loop.h"
#include "port.h"

struct pvr_segment;

/* Whether frames of several packets are sent ("wire-gso"). */
enum pvr_segment_gso {
	PVR_SEGMENT_GSO_AUTO, /* by an interface of this kernel that is no NIC */
	PVR_SEGMENT_GSO_ON,
	PVR_SEGMENT_GSO_OFF,
};

struct pvr_segment_env {
	struct pvr_loop *loop; /* its thread gives the frames to the engine */
	struct pvr_engine *engine;
	const struct pvr_engine_ops *ops; /* log() is used */
	void *opaque;
	const char *name; /* of the adapter, for logs */
	const uint8_t *mac; /* of the adapter, 6 bytes */
	enum pvr_segment_gso gso;
};

/*
 * Open the segment. Context: no worker runs. The members of @env that are pointers stay valid,
 * except @name and @mac. Return: NULL with @err filled.
 */
struct pvr_segment *pvr_segment_create(const struct pvr_segment_env *env, const char *wire,
				       struct pvr_error *err);
/* The port of its adapter, which is destroyed before. */
struct pvr_port *pvr_segment_port(const struct pvr_segment *segment);
/* @segment may be NULL. */
void pvr_segment_destroy(struct pvr_segment *segment);

#endif /* PVR_SEGMENT_SEGMENT_H */
