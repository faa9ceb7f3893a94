/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The fabrics that a connection has names for: a frame has a number, and FABRIC frames
 * have said what that is short for. Numbers are given out from 1, without gaps, and mean
 * the same as long as the connection lives.
 */
#ifndef PVR_FABRIC_IDS_H
#define PVR_FABRIC_IDS_H

#include "path/pipe/frame.h"

struct pvr_fabric_id {
	uint64_t id; /* of struct pvr_fabric when it was asked for last; 0: never */
	char name[PVR_FRAME_FABRIC_MAX];
};

/* One thread at a time adds; others may ask for names meanwhile. */
struct pvr_fabric_ids {
	uint32_t count; /* atomic */
	struct pvr_fabric_id *fabric[PVR_FRAME_FABRICS];
};

/* Return: its number, or 0 if there is none yet. @id: of struct pvr_fabric, or 0. */
unsigned int pvr_fabric_ids_find(struct pvr_fabric_ids *fabric_ids, uint64_t id, const char *name);
/* Return: the number that it has now, or 0: no memory, or too many. */
unsigned int pvr_fabric_ids_add(struct pvr_fabric_ids *fabric_ids, uint64_t id, const char *name);
/* Return: the name, or NULL: nothing was declared under that number. */
const char *pvr_fabric_ids_name(const struct pvr_fabric_ids *fabric_ids, unsigned int number);
void pvr_fabric_ids_forget(struct pvr_fabric_ids *fabric_ids);

#endif /* PVR_FABRIC_IDS_H */
