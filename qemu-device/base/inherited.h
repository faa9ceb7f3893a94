/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Listening sockets that pass from one process of the daemon to the next one. A client that
 * connects meanwhile stays in the backlog of the socket.
 *
 * Context: the first thread.
 */
#ifndef PVR_BASE_INHERITED_H
#define PVR_BASE_INHERITED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/*
 * Keeps a listening socket of the earlier process for pvr_inherited_take(). Takes ownership of
 * @fd; a descriptor that does not listen is closed.
 */
void pvr_inherited_add(int fd);
/* Return: the kept socket that listens at @address, which is the caller's now; -1: none. */
int pvr_inherited_take(const struct sockaddr *address, socklen_t len);
/* Closes the sockets that nothing has taken. */
void pvr_inherited_close(void);

/*
 * Finds the listening sockets of this process. Return: their number, at most @max of which are in
 * @fds; they stay the property of their owners.
 */
size_t pvr_listening_find(int *fds, size_t max);

#endif /* PVR_BASE_INHERITED_H */
