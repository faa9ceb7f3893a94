/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Fake guests that are plugged into running daemons: engine.h's functions that fake
 * guests use, by vfio-user, as QEMU would. There is no engine in this process.
 */
#ifndef HOSTS_PLUG_H
#define HOSTS_PLUG_H

#include <stdbool.h>

/* Where the adapter of this name is to be had: before fg_guest_create(). */
void plug_set_socket(const char *adapter, const char *path);
/* Once the daemon has gone the guest's device does nothing any more. */
bool plug_is_gone(const char *adapter);

#endif /* HOSTS_PLUG_H */
