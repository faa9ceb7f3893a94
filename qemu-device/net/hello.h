/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* HELLO, the first frame in each direction: identity and negotiation. */
#ifndef PVR_NET_HELLO_H
#define PVR_NET_HELLO_H

#include "base/error.h"
#include "path/pipe/frame.h"

#define PVR_HELLO_CHUNK (256u << 10) /* largest chunk accepted, in bytes */
/* Lower bound of the keep-alive time that a peer can request. */
#define PVR_KEEPALIVE_MIN_MS 1000u

struct pvr_hello {
	uint16_t version_min, version_max;
	uint64_t instance;
	uint32_t features; /* PVR_HELLO_F_* */
	uint32_t chunk;
	uint8_t index, count, dscp;
	uint32_t keepalive_ms;
	char name[PVR_FRAME_NAME_MAX];
};

void pvr_hello_write(union pvr_any_frame *any, const struct pvr_hello *hello);
/* @any must have passed pvr_frame_check(). */
void pvr_hello_read(const union pvr_any_frame *any, struct pvr_hello *hello);
/*
 * Return: whether the version range contains this daemon's version. False with @err
 * filled.
 */
bool pvr_hello_has_version(const struct pvr_hello *hello, struct pvr_error *err);

#endif /* PVR_NET_HELLO_H */
