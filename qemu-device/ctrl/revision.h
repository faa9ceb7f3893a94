/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Revisions of VMware's device, named by the virtual hardware version of the VM. */
#ifndef PVR_REVISION_H
#define PVR_REVISION_H

#include <stdbool.h>
#include <stdint.h>

struct pvr_revision {
	const char *name; /* of the virtual hardware version, or "latest" */
	uint32_t version; /* enum pvr_version */
	uint8_t gid_types; /* PVR_GID_TYPE_* to choose from; the highest is the default */
	bool srq;
	uint32_t ext; /* offered PVR_EXT_*; 0: no extension registers */
};

/* All names, for messages. */
#define PVR_REVISION_NAMES "13, 14, 18, 20, latest"

/* @name: NULL for the latest. Return: the revision, or NULL if @name is unknown. */
const struct pvr_revision *pvr_revision_find(const char *name);

#endif /* PVR_REVISION_H */
