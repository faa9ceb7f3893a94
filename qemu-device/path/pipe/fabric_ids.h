/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Fabric IDs of a connection: FABRIC frames declare which name each number stands for.
 * Numbers start at 1, have no gaps, and keep their meaning while the connection exists.
 */
#ifndef PVR_FABRIC_IDS_H
#define PVR_FABRIC_IDS_H

#include "path/pipe/frame.h"

struct pvr_fabric_id {
	uint64_t id; /* ID of struct pvr_fabric at the last lookup; 0: none */
	char name[PVR_FRAME_FABRIC_MAX];
};

/*
 * One thread at a time adds. Other threads may call pvr_fabric_ids_name() at the same
 * time.
 */
struct pvr_fabric_ids {
	uint32_t count; /* atomic */
	struct pvr_fabric_id *fabric[PVR_FRAME_FABRICS];
};

/*
 * @id: of struct pvr_fabric, or 0. Return: the number, or 0 if the name is not declared.
 */
unsigned int pvr_fabric_ids_find(struct pvr_fabric_ids *fabric_ids, uint64_t id, const char *name);
/* Return: the new number; 0: no memory, or PVR_FRAME_FABRICS reached. */
unsigned int pvr_fabric_ids_add(struct pvr_fabric_ids *fabric_ids, uint64_t id, const char *name);
/* Return: the name, or NULL if the number is not declared. */
const char *pvr_fabric_ids_name(const struct pvr_fabric_ids *fabric_ids, unsigned int number);
void pvr_fabric_ids_forget(struct pvr_fabric_ids *fabric_ids);

#endif /* PVR_FABRIC_IDS_H */
