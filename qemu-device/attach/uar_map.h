/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory in the place of BAR2, which the guest of one client maps (async=on). */
#ifndef PVR_ATTACH_UAR_MAP_H
#define PVR_ATTACH_UAR_MAP_H

#include "base/error.h"
#include "engine.h"

struct pvr_uar_map {
	int fd; /* for the client; -1: none */
	void *va;
};

/* No client can change its size. Pages take memory once they are touched. */
bool pvr_uar_map_open(struct pvr_uar_map *map, struct pvr_error *err);
/* Of one that is not open, too. */
void pvr_uar_map_close(struct pvr_uar_map *map);

#endif /* PVR_ATTACH_UAR_MAP_H */
