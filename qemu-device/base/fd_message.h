/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Messages with descriptors between two processes, by a Unix socket of type SOCK_SEQPACKET. */
#ifndef PVR_BASE_FD_MESSAGE_H
#define PVR_BASE_FD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PVR_FD_MESSAGE_FDS 253 /* the most that the kernel passes at a time */
#define PVR_FD_MESSAGE_BYTES 65536

struct pvr_fd_message {
	size_t len;
	size_t num_fds;
	int fds[PVR_FD_MESSAGE_FDS]; /* after a receive, the caller closes them */
	char data[PVR_FD_MESSAGE_BYTES + 1]; /* a NUL follows the received bytes */
};

/*
 * Both wait until @deadline at most, see pvr_loop_now(), or PVR_NEVER; then they return
 * -ETIMEDOUT. A signal does not end them.
 */

/* Return: 0 or -errno. The descriptors stay the caller's. */
int pvr_fd_message_send(int socket, const void *data, size_t len, const int *fds, size_t num_fds,
			uint64_t deadline);
/* Return: 1; 0: the other process has closed the socket; -EMSGSIZE: it is cut; -errno. */
int pvr_fd_message_receive(int socket, struct pvr_fd_message *msg, uint64_t deadline);

#endif /* PVR_BASE_FD_MESSAGE_H */
