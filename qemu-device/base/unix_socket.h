/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Unix stream sockets that listen at a path people chose. */
#ifndef PVR_BASE_UNIX_SOCKET_H
#define PVR_BASE_UNIX_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

#define PVR_SOCKET_PATH_MAX 107 /* sun_path less its NUL */

/**
 * pvr_unix_listen() - make a listening, non-blocking socket at @path
 * @replaced: set if a socket that nobody listened at was in the way
 *
 * Replaces a stale socket; refuses anything else that is in the way.
 *
 * Return: the descriptor, or -1 with @err filled.
 */
int pvr_unix_listen(const char *path, bool *replaced, struct pvr_error *err);

/* Return: a connected blocking socket, or -1 with errno set. */
int pvr_unix_connect(const char *path);

/* Process at the other end, 0 if unknown. */
pid_t pvr_unix_peer_pid(int fd);

#endif /* PVR_BASE_UNIX_SOCKET_H */
