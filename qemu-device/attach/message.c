// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* vfio-user messages in a client's socket: peek, receive, reply. Never blocks. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attach/message.h"
#include "base/closer.h"

union fd_space {
	struct cmsghdr align;
	char space[CMSG_SPACE(PVR_MESSAGE_FDS_SENT * sizeof(int))];
};

ssize_t pvr_window_open(struct pvr_window *window, int fd)
{
	struct iovec iov = { .iov_base = window->data, .iov_len = sizeof(window->data) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);

	window->len = n > 0 ? (size_t)n : 0;
	window->has_fds = msg.msg_flags & MSG_CTRUNC;
	return n < 0 ? -errno : n;
}

bool pvr_window_is_short(const struct pvr_window *window, size_t size)
{
	return window->len < size && window->len < sizeof(window->data) && !window->has_fds;
}

int pvr_message_skip(int fd, size_t len)
{
	char scratch[PVR_MESSAGE_MAX];
	ssize_t n;

	while (len) {
		n = recv(fd, scratch, len < sizeof(scratch) ? len : sizeof(scratch), MSG_DONTWAIT);
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		len -= (size_t)n;
	}
	return 0;
}

size_t pvr_message_queued(int fd)
{
	int queued = 0;

	if (ioctl(fd, FIONREAD, &queued) < 0 || queued < 0)
		return 0;
	return (size_t)queued;
}

static void keep_fds(struct pvr_message *msg, struct msghdr *hdr)
{
	struct cmsghdr *cmsg;
	size_t num;

	for (cmsg = CMSG_FIRSTHDR(hdr); cmsg; cmsg = CMSG_NXTHDR(hdr, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		num = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(msg->fds + msg->num_fds, CMSG_DATA(cmsg), num * sizeof(int));
		msg->num_fds += num;
	}
}

/*
 * Receives the header or the body, with its descriptors. There is room for all of them:
 * the kernel would close others here.
 */
static ssize_t take_part(int fd, struct pvr_message *msg, struct iovec *iov)
{
	union fd_space fds;
	struct msghdr hdr = {
		.msg_iov = iov,
		.msg_iovlen = 1,
		.msg_control = &fds,
		.msg_controllen = sizeof(fds),
	};
	ssize_t n;

	n = recvmsg(fd, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return n ? -errno : -ECONNRESET;
	keep_fds(msg, &hdr);
	return hdr.msg_flags & MSG_CTRUNC || msg->num_fds > PVR_MESSAGE_FDS ? -EMFILE : n;
}

static int take_all(int fd, struct pvr_message *msg, void *buf, size_t len)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	ssize_t n;

	while (iov.iov_len) {
		n = take_part(fd, msg, &iov);
		if (n < 0)
			return (int)n;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
	}
	return 0;
}

int pvr_message_take(int fd, size_t size, struct pvr_message *msg, void *large,
		     struct pvr_closer *closer)
{
	void *body;
	int ret;

	msg->num_fds = 0;
	msg->reply = (struct pvr_mig_reply){ NULL, 0 };
	msg->len = size - sizeof(msg->hdr);
	body = msg->len > sizeof(msg->small) ? large : msg->small;
	msg->body = body;
	ret = take_all(fd, msg, &msg->hdr, sizeof(msg->hdr));
	if (!ret)
		ret = take_all(fd, msg, body, msg->len);
	if (ret)
		pvr_message_close(msg, closer);
	return ret;
}

int pvr_message_drop(int fd, size_t len, size_t *num, struct pvr_closer *closer)
{
	struct pvr_message msg;
	int ret = pvr_message_take(fd, len, &msg, NULL, closer);

	if (ret)
		return ret;
	*num = msg.num_fds;
	pvr_message_close(&msg, closer);
	return 0;
}

bool pvr_fd_is_memory(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

static void close_fd(int fd, struct pvr_closer *closer)
{
	if (pvr_fd_is_memory(fd))
		pvr_closer_close_memory(closer, fd);
	else
		pvr_closer_close(closer, fd);
}

void pvr_message_close(struct pvr_message *msg, struct pvr_closer *closer)
{
	size_t i;

	for (i = 0; i < msg->num_fds; i++) {
		if (msg->fds[i] >= 0)
			close_fd(msg->fds[i], closer);
	}
	msg->num_fds = 0;
}

bool pvr_message_drop_all(int fd, struct pvr_closer *closer)
{
	struct pvr_message msg;
	struct iovec iov = { .iov_base = msg.small, .iov_len = sizeof(msg.small) };
	ssize_t n;

	do {
		msg.num_fds = 0;
		n = take_part(fd, &msg, &iov);
		pvr_message_close(&msg, closer);
	} while (n > 0 && !pvr_closer_is_full(closer));
	return !pvr_message_queued(fd);
}

int pvr_message_reply(int fd, const struct vfio_user_header *hdr, int err, const void *body,
		      size_t len)
{
	struct vfio_user_header reply = {
		.msg_id = hdr->msg_id,
		.cmd = hdr->cmd,
		.msg_size = (uint32_t)(sizeof(reply) + len),
		.flags = { .type = VFIO_USER_F_TYPE_REPLY, .error = err != 0 },
		.error_no = (uint32_t)err,
	};
	struct iovec iov[] = {
		{ .iov_base = &reply, .iov_len = sizeof(reply) },
		{ .iov_base = (void *)(uintptr_t)body, .iov_len = len },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = len ? 2 : 1 };
	ssize_t n;

	if (hdr->flags.no_reply)
		return 0;
	n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	return (size_t)n == reply.msg_size ? 0 : -ECONNRESET;
}
