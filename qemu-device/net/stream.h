/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Bytes to and from another daemon: a socket, with TLS or without, or an RDMA NIC's queue pair
 * that was agreed upon there.
 *
 * Sending and receiving may go on at the same time, by two threads; each by one at a time.
 * Functions return how many bytes have moved, 0 if none can now, or -errno; the end of
 * the stream is -ECONNRESET.
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
	struct pvr_verbs *verbs; /* NULL: the socket is it */
	uint64_t tx_bytes, rx_bytes; /* written by who sends, who receives; read by any thread */
	size_t left; /* bytes that were received, and are still in the socket: see stream.c */
	bool was_small; /* the last time that anything came */
};

ssize_t pvr_stream_send(struct pvr_stream *stream, const struct iovec *iov, int count);
ssize_t pvr_stream_recv(struct pvr_stream *stream, const struct iovec *iov, int count);
/* Beside the queue pair: is the socket's other end still there? Nothing is said any more. */
bool pvr_stream_check(struct pvr_stream *stream);
/* What was taken by send() may still be here, as TLS writes whole records. */
bool pvr_stream_is_flushed(struct pvr_stream *stream);
/* False: the connection is broken. Any thread. */
bool pvr_stream_flush(struct pvr_stream *stream);
/* Say what there is to say, and close. */
void pvr_stream_close(struct pvr_stream *stream);

/* ------------------------------------------------------------------- sockets */

/* A socket that is connecting, or -1 with @err filled. */
int pvr_socket_dial(const struct pvr_address *address, uint8_t dscp, struct pvr_error *err);
/* From which address we would dial it. Nothing is sent. */
bool pvr_socket_local(const struct pvr_address *to, struct pvr_address *local,
		      struct pvr_error *err);
/* Of what is sent from now on. */
void pvr_socket_set_dscp(int fd, const struct pvr_address *address, uint8_t dscp);
/* The outcome: 0 or an errno. */
int pvr_socket_error(int fd);
int pvr_socket_listen(const struct pvr_address *address, struct pvr_error *err);
/* For payload: no delay, little that is unsent, and dead peers are noticed. */
void pvr_socket_tune(int fd, uint32_t keepalive_ms);

#endif /* PVR_NET_STREAM_H */
