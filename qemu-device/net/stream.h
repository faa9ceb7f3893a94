/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Bytes to and from another daemon: a socket, with or without TLS, or a queue pair of an
 * RDMA NIC that the two sides have negotiated over the socket.
 *
 * One thread may send while another thread receives. Functions return the number of bytes
 * moved, 0 if they would block, or -errno; -ECONNRESET at the end of the stream.
 */
#ifndef PVR_NET_STREAM_H
#define PVR_NET_STREAM_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/address.h"
#include "base/error.h"

struct pvr_tls;
struct pvr_verbs;

struct pvr_stream {
	int fd;
	struct pvr_tls *tls; /* NULL: plain */
	struct pvr_verbs *verbs; /* NULL: the socket carries the data */
	uint64_t tx_bytes, rx_bytes; /* written by sender and receiver; any thread reads */
	size_t left; /* bytes received but still in the socket: see stream.c */
	bool was_small; /* the last receive was small */
};

ssize_t pvr_stream_send(struct pvr_stream *stream, const struct iovec *iov, int count);
ssize_t pvr_stream_recv(struct pvr_stream *stream, const struct iovec *iov, int count);
/*
 * Return: true if the last receive stopped at a limit, not because the socket is empty. Then
 * the socket may raise no event: receive again.
 */
bool pvr_stream_has_more(const struct pvr_stream *stream);
/*
 * With a queue pair: return whether the socket's peer is still there. No data is expected
 * on it.
 */
bool pvr_stream_check(struct pvr_stream *stream);
/* Return: false if TLS records are still buffered after send(). */
bool pvr_stream_is_flushed(struct pvr_stream *stream);
/* Return: false if the connection is broken. Any thread. */
bool pvr_stream_flush(struct pvr_stream *stream);
/* Sends buffered data and closes. */
void pvr_stream_close(struct pvr_stream *stream);

/* ------------------------------------------------------------------- sockets */

/* Return: a connecting socket, or -1 with @err filled. */
int pvr_socket_dial(const struct pvr_address *address, uint8_t dscp, struct pvr_error *err);
/* Finds the local address of a connection to @to. Sends nothing. */
bool pvr_socket_local(const struct pvr_address *to, struct pvr_address *local,
		      struct pvr_error *err);
/* For packets sent from now on. */
void pvr_socket_set_dscp(int fd, const struct pvr_address *address, uint8_t dscp);
/* Return: 0 or the pending errno of the socket. */
int pvr_socket_error(int fd);
int pvr_socket_listen(const struct pvr_address *address, struct pvr_error *err);
/*
 * Sets options for payload: no delay, little unsent data, detection of dead peers.
 * @congestion: TCP's congestion control; "": the kernel's default
 */
void pvr_socket_tune(int fd, uint32_t keepalive_ms, const char *congestion);
/* Return: false with @err filled if this process cannot use it. @name: "" can always be used. */
bool pvr_socket_check_congestion(const char *name, struct pvr_error *err);

#endif /* PVR_NET_STREAM_H */
