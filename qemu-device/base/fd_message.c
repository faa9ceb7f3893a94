// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Messages with descriptors between two processes. */
#include "base/fd_message.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/loop.h"

union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(PVR_FD_MESSAGE_FDS * sizeof(int))];
};

/* Return: 0: a call would not wait; or -errno. */
static int wait_for(int socket, short events, uint64_t deadline)
{
	struct pollfd pfd = { .fd = socket, .events = events };
	uint64_t now;
	int timeout = -1, num;

	do {
		if (deadline != PVR_NEVER) {
			now = pvr_loop_now();
			timeout = now < deadline ? (int)((deadline - now) / PVR_MSEC) + 1 : 0;
		}
		num = poll(&pfd, 1, timeout);
	} while (num < 0 && errno == EINTR);
	return num > 0 ? 0 : num ? -errno : -ETIMEDOUT;
}

int pvr_fd_message_send(int socket, const void *data, size_t len, const int *fds, size_t num_fds,
			uint64_t deadline)
{
	int ret = wait_for(socket, POLLOUT, deadline);
	union control control;
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (ret)
		return ret;
	if (num_fds > PVR_FD_MESSAGE_FDS || len > PVR_FD_MESSAGE_BYTES)
		return -EMSGSIZE;
	if (num_fds) {
		memset(&control, 0, sizeof(control));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(num_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, num_fds * sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
	}
	return sendmsg(socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static void take_fds(struct pvr_fd_message *to, struct msghdr *msg)
{
	struct cmsghdr *head;
	size_t num;

	for (head = CMSG_FIRSTHDR(msg); head; head = CMSG_NXTHDR(msg, head)) {
		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		num = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(to->fds + to->num_fds, CMSG_DATA(head), num * sizeof(int));
		to->num_fds += num;
	}
}

int pvr_fd_message_receive(int socket, struct pvr_fd_message *to, uint64_t deadline)
{
	union control control;
	struct iovec iov = { to->data, PVR_FD_MESSAGE_BYTES };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int ret = wait_for(socket, POLLIN, deadline);
	ssize_t n;

	to->num_fds = 0;
	to->len = 0;
	if (ret)
		return ret;
	n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	take_fds(to, &msg);
	to->len = (size_t)n;
	to->data[n] = '\0';
	if (!(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 1;
	while (to->num_fds)
		close(to->fds[--to->num_fds]);
	return -EMSGSIZE;
}
