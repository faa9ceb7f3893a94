// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory in place of BAR2, which the guest of one client maps. */
#include "attach/uar_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Sealed: the client has the descriptor and could truncate it, which would raise SIGBUS
 * here.
 */
static int open_sealed(void)
{
	int fd = memfd_create("pvrdma-uar", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (ftruncate(fd, PVR_BAR_UAR_SIZE) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	close(fd);
	return -1;
}

bool pvr_uar_map_adopt(struct pvr_uar_map *map, int fd, struct pvr_error *err)
{
	map->fd = fd;
	map->va = mmap(NULL, PVR_BAR_UAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, map->fd, 0);
	if (map->va != MAP_FAILED)
		return true;
	pvr_fail(err, "cannot map its doorbell pages: %s", strerror(errno));
	map->va = NULL;
	pvr_uar_map_close(map);
	return false;
}

bool pvr_uar_map_open(struct pvr_uar_map *map, struct pvr_error *err)
{
	int fd = open_sealed();

	map->va = NULL;
	map->fd = -1;
	if (fd < 0)
		return pvr_fail(err, "cannot make its doorbell pages: %s", strerror(errno));
	return pvr_uar_map_adopt(map, fd, err);
}

void pvr_uar_map_close(struct pvr_uar_map *map)
{
	if (map->va)
		munmap(map->va, PVR_BAR_UAR_SIZE);
	if (map->fd >= 0)
		close(map->fd);
	map->va = NULL;
	map->fd = -1;
}
