/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Fake guests that are plugged into running daemons: engine.h's functions that fake
 * guests use, by vfio-user, as QEMU would. There is no engine in this process.
 */
#ifndef HOSTS_PLUG_H
#define HOSTS_PLUG_H

#include <stdbool.h>
#include <stddef.h>

struct pvr_adapter;

/* The socket of the adapter of the next fg_guest_create(). */
void plug_set_socket(const char *path);
/* After the end of the daemon the device of the guest does nothing. */
bool plug_is_gone(struct pvr_adapter *adapter);

/*
 * A guest moves to another device of its MAC: plug_save(), plug_load(), then plug_start() and, before
 * or after it, plug_leave(), which ends the connection to the first device. Or plug_cancel() after
 * plug_load(), which may have failed: it goes on at the first one. Its RAM is the same. Each returns false if the daemon is
 * gone or refuses.
 */
struct plug_state {
	size_t size;
	char data[1 << 20];
};

bool plug_save(struct pvr_adapter *adapter, struct plug_state *state);
bool plug_load(struct pvr_adapter *adapter, const char *path, const struct plug_state *state);
bool plug_start(struct pvr_adapter *adapter);
void plug_leave(struct pvr_adapter *adapter);
bool plug_cancel(struct pvr_adapter *adapter);

#endif /* HOSTS_PLUG_H */
