/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Fake guests that are plugged into running daemons: engine.h's functions that fake
 * guests use, by vfio-user, as QEMU would. There is no engine in this process.
 */
#ifndef HOSTS_PLUG_H
#define HOSTS_PLUG_H

#include <stdbool.h>

struct pvr_adapter;

/* The socket of the adapter of the next fg_guest_create(). */
void plug_set_socket(const char *path);
/* After the end of the daemon the device of the guest does nothing. */
bool plug_is_gone(struct pvr_adapter *adapter);

#endif /* HOSTS_PLUG_H */
