/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A segment by a Unix socket, as QEMU's "-netdev stream" has it: each frame behind its length,
 * four bytes in network order. It needs no privilege.
 *
 * The daemon listens and QEMU connects; a hub of QEMU joins this socket, the VM's NIC and its
 * network. One connection at a time: a new one replaces the last one.
 */
#ifndef PVR_SEGMENT_STREAM_H
#define PVR_SEGMENT_STREAM_H

#include "base/error.h"
#include "base/loop.h"
#include "port.h"

struct pvr_segment_stream;

/* The MTU of the VM's NIC, which QEMU does not tell: RoCE packets have 1024 bytes. */
#define PVR_SEGMENT_STREAM_MTU 1500

/*
 * Listen at @path. @loop: its thread gives the frames to the engine; @name: of the adapter, for
 * logs. Context: no worker runs. Return: NULL with @err filled.
 */
struct pvr_segment_stream *pvr_segment_stream_create(struct pvr_loop *loop,
						     struct pvr_engine *engine,
						     const struct pvr_engine_ops *ops, void *opaque,
						     const char *name, const char *path,
						     struct pvr_error *err);
/* The port of its adapters, which are destroyed before. */
struct pvr_port *pvr_segment_stream_port(const struct pvr_segment_stream *stream);
/* @stream may be NULL. */
void pvr_segment_stream_destroy(struct pvr_segment_stream *stream);

#endif /* PVR_SEGMENT_STREAM_H */
