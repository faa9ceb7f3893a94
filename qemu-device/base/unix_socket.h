/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Listening Unix stream sockets. */
#ifndef PVR_BASE_UNIX_SOCKET_H
#define PVR_BASE_UNIX_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/error.h"

#define PVR_SOCKET_PATH_MAX 107 /* sun_path less its NUL */

/**
 * pvr_unix_listen() - create a listening, non-blocking socket at @path
 * @replaced: set to true if a stale socket was replaced
 *
 * Replaces a socket without a listening process. Fails if any other file is at @path.
 *
 * Return: the descriptor, or -1 with @err filled.
 */
int pvr_unix_listen(const char *path, bool *replaced, struct pvr_error *err);

/* Return: a connected blocking socket, or -1 with errno set. */
int pvr_unix_connect(const char *path);

/*
 * The user and process that connected @fd, as of then. Return: false if @fd is no connected socket.
 */
bool pvr_unix_peer(int fd, struct ucred *cred);

/* Return: the PID of the peer, or 0 if it is unknown. */
pid_t pvr_unix_peer_pid(int fd);

#endif /* PVR_BASE_UNIX_SOCKET_H */
