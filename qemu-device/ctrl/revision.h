/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Which of VMware's devices an adapter is, by virtual hardware version of the VM. */
#ifndef PVR_REVISION_H
#define PVR_REVISION_H

#include <stdbool.h>
#include <stdint.h>

struct pvr_revision {
	const char *name; /* of the virtual hardware version, or "latest" */
	uint32_t version; /* enum pvr_version */
	uint8_t gid_types; /* PVR_GID_TYPE_* to choose from; the highest is the default */
	bool srq;
	uint32_t ext; /* PVR_EXT_* offered; 0: not even the registers are there */
};

/* For messages. */
#define PVR_REVISION_NAMES "13, 14, 18, 20, latest"

/* NULL if there is no such revision; @name NULL: the latest. */
const struct pvr_revision *pvr_revision_find(const char *name);

#endif /* PVR_REVISION_H */
