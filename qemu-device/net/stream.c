// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Bytes to and from another daemon: a socket, with or without TLS.
 *
 * DOC: small messages
 *
 * When a read empties a TCP socket of small segments, the kernel sends an ACK from within
 * the system call, at least for every second one. That takes as long as sending a message
 * and delays the receiver. So small data is received with MSG_PEEK and stays in the
 * socket. It is removed when more data has arrived: then the socket is not empty.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/stream.h"
#include "net/tls.h"
#include "net/verbs.h"

#define CLOSE_DRAIN (64 << 10)
#define SMALL 512

/* Return: the result of a system call as ops return it. */
static ssize_t result(ssize_t n)
{
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static void count(uint64_t *counter, ssize_t n)
{
	if (n > 0)
		__atomic_store_n(counter, *counter + (uint64_t)n, __ATOMIC_RELAXED);
}

static ssize_t plain_send(int fd, const struct iovec *iov, int num)
{
	const struct msghdr msg = {
		.msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = (size_t)num,
	};

	return result(sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT));
}

static ssize_t recv_some(int fd, const struct iovec *iov, int num, int flags)
{
	struct msghdr msg = {
		.msg_iov = (struct iovec *)(uintptr_t)iov,
		.msg_iovlen = (size_t)num,
	};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | flags);

	return n == 0 ? -ECONNRESET : result(n);
}

/* Removes the bytes that were left in the socket. Return: 0 or -errno. */
static ssize_t clear_qp_gone(struct pvr_stream *stream)
{
	ssize_t n;

	while (stream->left) {
		/* cppcheck-suppress nullPointer ; tcp(7): with MSG_TRUNC, no byte is copied. */
		n = recv(stream->fd, NULL, stream->left, MSG_DONTWAIT | MSG_TRUNC);
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		stream->left -= (size_t)n;
	}
	return 0;
}

static ssize_t plain_recv(struct pvr_stream *stream, const struct iovec *iov, int num)
{
	bool leave = stream->was_small && num == 1;
	ssize_t n = clear_qp_gone(stream);

	if (!n)
		n = recv_some(stream->fd, iov, num, leave ? MSG_PEEK : 0);
	if (n <= 0)
		return n;
	stream->was_small = n <= SMALL;
	if (!leave)
		return n;
	stream->left = (size_t)n;
	if (!stream->was_small && clear_qp_gone(stream))
		return -ECONNRESET;
	return n;
}

static ssize_t socket_recv(struct pvr_stream *stream, const struct iovec *iov, int num)
{
	return stream->tls ? pvr_tls_recv(stream->tls, iov, num) : plain_recv(stream, iov, num);
}

bool pvr_stream_check(struct pvr_stream *stream)
{
	char byte;
	const struct iovec iov = { .iov_base = &byte, .iov_len = sizeof(byte) };

	return !socket_recv(stream, &iov, 1);
}

ssize_t pvr_stream_send(struct pvr_stream *stream, const struct iovec *iov, int num)
{
	ssize_t n = stream->verbs ? pvr_verbs_send(stream->verbs, iov, num)
		    : stream->tls ? pvr_tls_send(stream->tls, iov, num)
				  : plain_send(stream->fd, iov, num);

	count(&stream->tx_bytes, n);
	return n;
}

ssize_t pvr_stream_recv(struct pvr_stream *stream, const struct iovec *iov, int num)
{
	ssize_t n = stream->verbs ? pvr_verbs_recv(stream->verbs, iov, num)
				  : socket_recv(stream, iov, num);

	count(&stream->rx_bytes, n);
	return n;
}

bool pvr_stream_has_more(const struct pvr_stream *stream)
{
	return stream->tls && pvr_tls_has_more(stream->tls);
}

bool pvr_stream_is_flushed(struct pvr_stream *stream)
{
	return stream->verbs || !stream->tls || pvr_tls_is_flushed(stream->tls);
}

bool pvr_stream_flush(struct pvr_stream *stream)
{
	return stream->verbs || !stream->tls || pvr_tls_flush(stream->tls);
}

/* close() with unread data would send a reset, perhaps before the peer has read CLOSE. */
static void drain(int fd)
{
	char dropped[4096];
	size_t left = CLOSE_DRAIN;

	shutdown(fd, SHUT_WR);
	while (left && recv(fd, dropped, sizeof(dropped), MSG_DONTWAIT) > 0)
		left -= sizeof(dropped);
}

void pvr_stream_close(struct pvr_stream *stream)
{
	if (stream->fd < 0)
		return;
	pvr_tls_destroy(stream->tls);
	stream->tls = NULL;
	drain(stream->fd);
	close(stream->fd);
	stream->fd = -1;
}
