/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * vfio-user messages in a client's socket.
 *
 * DOC: whole messages
 *
 * A window is what can be seen of a socket's queue without taking it (MSG_PEEK). What
 * was seen cannot change any more, so a message can be checked here and then be left
 * for libvfio-user to read. Descriptors are only delivered with the byte that they
 * were sent with, when it is taken.
 */
#ifndef PVR_ATTACH_MESSAGE_H
#define PVR_ATTACH_MESSAGE_H

#include "attach/client.h"

struct pvr_window {
	size_t len;
	bool fds_near; /* descriptors are in, or right after, what was seen */
	uint8_t data[PVR_MESSAGE_MAX];
};

struct pvr_message {
	struct vfio_user_header hdr;
	uint8_t body[PVR_MESSAGE_MAX] __attribute__((aligned(8)));
	size_t len; /* of body */
	int fds[PVR_MESSAGE_FDS];
	size_t num_fds;
};

/* Return: bytes seen, 0: the client has closed, -EAGAIN: nothing there, -errno. */
ssize_t pvr_window_open(struct pvr_window *window, int fd);

/*
 * Takes @len bytes, which are known to be there. Descriptors sent with them vanish.
 * Return: 0 or -errno.
 */
int pvr_message_skip(int fd, size_t len);

/**
 * pvr_message_take() - take the next message, which is known to be there as a whole
 *
 * Return: 0, and the caller must pvr_message_close(); or -errno, for a message that
 * is not worth a reply.
 */
int pvr_message_take(int fd, size_t size, struct pvr_message *msg);
void pvr_message_close(struct pvr_message *msg);

/* Bytes in the queue. */
size_t pvr_message_queued(int fd);

/* Does the next message, of @size bytes, carry no more than PVR_MESSAGE_FDS? */
bool pvr_message_few_fds(int fd, size_t size);

/*
 * Reply with @err (0 or an errno) and @len bytes at @body, unless the client wants
 * none. Return: 0 or -errno.
 */
int pvr_message_reply(int fd, const struct vfio_user_header *hdr, int err, const void *body,
		      size_t len);

#endif /* PVR_ATTACH_MESSAGE_H */
