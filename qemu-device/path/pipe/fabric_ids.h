/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The fabrics that a connection has names for: a frame has a number, and FABRIC frames
 * have said what that is short for. Numbers are given out from 1, without gaps, and mean
 * the same as long as the connection lives.
 */
#ifndef PVR_DECLARED_H
#define PVR_DECLARED_H

#include "path/pipe/frame.h"

struct pvr_declared_fabric {
	uint64_t id; /* of struct pvr_fabric when it was asked for last; 0: never */
	char name[PVR_WIRE_FABRIC_MAX];
};

/* One thread at a time adds; others may ask for names meanwhile. */
struct pvr_declared {
	uint32_t count; /* atomic */
	struct pvr_declared_fabric *fabric[PVR_WIRE_FABRICS];
};

/* Return: its number, or 0 if there is none yet. @id: of struct pvr_fabric, or 0. */
unsigned int pvr_declared_find(struct pvr_declared *declared, uint64_t id, const char *name);
/* Return: the number that it has now, or 0: no memory, or too many. */
unsigned int pvr_declared_add(struct pvr_declared *declared, uint64_t id, const char *name);
/* Return: the name, or NULL: nothing was declared under that number. */
const char *pvr_declared_name(const struct pvr_declared *declared, unsigned int number);
void pvr_declared_forget(struct pvr_declared *declared);

#endif /* PVR_DECLARED_H */
