/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The mappings of another process: for diagnosis only, as they may be wrong or
 * unreadable.
 */
#ifndef PVR_ATTACH_PEER_MAPS_H
#define PVR_ATTACH_PEER_MAPS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Return: true if the process maps the file only with MAP_PRIVATE, so that its writes are
 * not shared; false also if /proc cannot be read. Reads a bounded amount.
 */
bool pvr_peer_maps_privately(pid_t pid, dev_t dev, ino_t ino);

#endif /* PVR_ATTACH_PEER_MAPS_H */
