/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * vfio-user messages in a client's socket.
 *
 * DOC: whole messages
 *
 * A window is the data of a socket that MSG_PEEK returns. It cannot change any more: a
 * message is checked there, and libvfio-user receives the same bytes. Descriptors are
 * delivered only when the byte that they were sent with is received.
 */
#ifndef PVR_ATTACH_MESSAGE_H
#define PVR_ATTACH_MESSAGE_H

#include "attach/client.h"

struct pvr_closer;

#define PVR_MESSAGE_FDS_SENT 253 /* the most that one sendmsg() passes */

struct pvr_window {
	size_t len;
	bool has_fds; /* descriptors are in the window or anywhere behind it, see pvr_window_open() */
	uint8_t data[PVR_MESSAGE_MAX];
};

struct pvr_message {
	struct vfio_user_header hdr;
	const uint8_t *body; /* aligned to 8 bytes */
	size_t len; /* of body */
	uint8_t small[PVR_MESSAGE_MAX] __attribute__((aligned(8)));
	int fds[PVR_MESSAGE_FDS + PVR_MESSAGE_FDS_SENT];
	size_t num_fds;
	struct pvr_mig_reply reply; /* initially none */
};

/*
 * MSG_PEEK ends with the first bytes that have descriptors. But a full buffer does not end it:
 * Linux then looks for descriptors in the rest of the queue. So this does not tell to which
 * message they belong. Only receiving it tells.
 * Return: bytes in the window; 0: the client has closed; -EAGAIN: no data; -errno.
 */
ssize_t pvr_window_open(struct pvr_window *window, int fd);

/*
 * Return: whether a complete message of @size bytes is not in the window because a part of it
 * arrived later.
 */
bool pvr_window_is_short(const struct pvr_window *window, size_t size);

/*
 * Receives @len bytes, which must be available and without descriptors. Return: 0 or
 * -errno.
 */
int pvr_message_skip(int fd, size_t len);

/*
 * The same with descriptors, whose number is stored in @num. @len is sizeof(struct
 * vfio_user_header) to PVR_MESSAGE_MAX. Return: 0; -EMFILE: too many descriptors; -errno.
 */
int pvr_message_drop(int fd, size_t len, size_t *num, struct pvr_closer *closer);

/**
 * pvr_message_take() - receive the next message, which must be complete
 * @large: space for a body of more than PVR_MESSAGE_MAX bytes; otherwise unused
 *
 * Return: 0, and the caller must call pvr_message_close(); or -errno for a message that
 * gets no reply.
 */
int pvr_message_take(int fd, size_t size, struct pvr_message *msg, void *large,
		     struct pvr_closer *closer);
/* Closes the descriptors that are not -1, by @closer. */
void pvr_message_close(struct pvr_message *msg, struct pvr_closer *closer);

/*
 * Return: whether @fd is a memfd or a file of tmpfs or hugetlbfs. Only memory may back
 * guest RAM: a page fault on another file can block every VM, on a disk or on a server
 * that its owner stops. fstat() and fstatfs() block on such a server, too. Only memory has
 * seals, and the kernel reads them without a call of the file system.
 */
bool pvr_fd_is_memory(int fd);

/*
 * Drops the data that is queued, of a client that sends no more. Return: whether none is
 * left. Some remains if @closer is full.
 */
bool pvr_message_drop_all(int fd, struct pvr_closer *closer);

/* Return: bytes in the receive buffer. */
size_t pvr_message_queued(int fd);

/*
 * Replies with @err (0 or an errno) and @len bytes at @body, unless the client requested
 * no reply. Return: 0 or -errno.
 */
int pvr_message_reply(int fd, const struct vfio_user_header *hdr, int err, const void *body,
		      size_t len);

#endif /* PVR_ATTACH_MESSAGE_H */
