/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* One direction of a connection in memory: bytes that arrive in order, some time later. */
#ifndef FG_STREAM_H
#define FG_STREAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* How all streams of a wire behave; tests change it at any time. */
struct fg_netem {
	size_t send_limit, recv_limit; /* bytes of one call; 0: all */
	uint64_t delay;
	const uint64_t *now; /* for delays */
};

struct fg_parcel {
	struct fg_parcel *next;
	uint64_t arrives;
	size_t size, taken;
	uint8_t data[];
};

/* Any thread may use it. */
struct fg_stream {
	const struct fg_netem *netem;
	pthread_mutex_t lock; /* protects what follows */
	size_t room, used;
	bool held, broken;
	struct fg_parcel *first, **last;
};

void fg_stream_init(struct fg_stream *stream, const struct fg_netem *netem, size_t room);
/* Bytes in flight are lost. */
void fg_stream_exit(struct fg_stream *stream);
void fg_stream_break(struct fg_stream *stream);
/* As in pvr_stream_ops. */
ssize_t fg_stream_send(struct fg_stream *stream, const struct iovec *iov, int count);
ssize_t fg_stream_recv(struct fg_stream *stream, const struct iovec *iov, int count);
bool fg_stream_can_send(struct fg_stream *stream);
bool fg_stream_can_recv(struct fg_stream *stream);
/* Return: the next arrival; UINT64_MAX: no bytes in flight, or they are held. */
uint64_t fg_stream_deadline(struct fg_stream *stream);
void fg_stream_hold(struct fg_stream *stream, bool hold);
/* Bytes in flight or not read yet. */
size_t fg_stream_used(struct fg_stream *stream);

#endif /* FG_STREAM_H */
