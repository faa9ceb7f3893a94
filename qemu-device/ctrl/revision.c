// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Revisions of the device.
 *
 * VMware documents the features of each virtual hardware version, but not the values of
 * the VERSION register. The values here follow the order in which the interface grew. An
 * earlier revision shows a driver no feature of a later one.
 */
#include "ctrl/revision.h"

#include <stddef.h>
#include <string.h>

#include "engine.h"

static const struct pvr_revision revisions[] = {
	{ .name = "13", .version = PVR_VERSION_ROCEV1, .gid_types = PVR_GID_TYPE_ROCE_V1 },
	{ .name = "14",
	  .version = PVR_VERSION_ROCEV2,
	  .gid_types = PVR_GID_TYPE_ROCE_V1 | PVR_GID_TYPE_ROCE_V2,
	  .srq = true },
	{ .name = "18",
	  .version = PVR_VERSION_PPN64,
	  .gid_types = PVR_GID_TYPE_ROCE_V1 | PVR_GID_TYPE_ROCE_V2,
	  .srq = true },
	{ .name = "20",
	  .version = PVR_VERSION_QPHANDLE,
	  .gid_types = PVR_GID_TYPE_ROCE_V1 | PVR_GID_TYPE_ROCE_V2,
	  .srq = true },
	{ .name = "latest",
	  .version = PVR_VERSION,
	  .gid_types = PVR_GID_TYPE_ROCE_V1 | PVR_GID_TYPE_ROCE_V2,
	  .srq = true,
	  .ext = PVR_ENGINE_EXT },
};

const struct pvr_revision *pvr_revision_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(revisions) / sizeof(revisions[0]); i++)
		if (!strcmp(revisions[i].name, name ? name : "latest"))
			return &revisions[i];
	return NULL;
}
