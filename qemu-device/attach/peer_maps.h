/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How another process maps a file: for diagnosis only, it may lie or be unreadable. */
#ifndef PVR_ATTACH_PEER_MAPS_H
#define PVR_ATTACH_PEER_MAPS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * The process maps the file, and only privately: what it writes there, nobody else
 * sees. False also if /proc does not say. Reads a bounded amount.
 */
bool pvr_peer_maps_privately(pid_t pid, dev_t dev, ino_t ino);

#endif /* PVR_ATTACH_PEER_MAPS_H */
