/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory in place of BAR2, which the guest of one client maps (uar=mapped). */
#ifndef PVR_ATTACH_UAR_MAP_H
#define PVR_ATTACH_UAR_MAP_H

#include "base/error.h"
#include "engine.h"

struct pvr_uar_map {
	int fd; /* for the client; -1: not open */
	void *va;
};

/* The client cannot change the size. The kernel allocates pages on first access. */
bool pvr_uar_map_open(struct pvr_uar_map *map, struct pvr_error *err);
/* The same with memory that pvr_uar_map_open() of another process has made; owns @fd. */
bool pvr_uar_map_adopt(struct pvr_uar_map *map, int fd, struct pvr_error *err);
/* Also allowed on a map that is not open. */
void pvr_uar_map_close(struct pvr_uar_map *map);

#endif /* PVR_ATTACH_UAR_MAP_H */
