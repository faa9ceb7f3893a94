// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* One direction of a connection in memory. */
#include "fg_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fg_lock.h"
#include "fg_ram.h"

void fg_stream_init(struct fg_stream *stream, const struct fg_netem *netem, size_t room)
{
	*stream = (struct fg_stream){ .netem = netem, .room = room };
	pthread_mutex_init(&stream->lock, NULL);
	stream->last = &stream->first;
}

static void drop_first(struct fg_stream *stream)
{
	struct fg_parcel *parcel = stream->first;

	stream->used -= parcel->size - parcel->taken;
	stream->first = parcel->next;
	if (!stream->first)
		stream->last = &stream->first;
	free(parcel);
}

static void drop_all(struct fg_stream *stream)
{
	while (stream->first)
		drop_first(stream);
}

void fg_stream_exit(struct fg_stream *stream)
{
	drop_all(stream);
	pthread_mutex_destroy(&stream->lock);
}

void fg_stream_break(struct fg_stream *stream)
{
	FG_GUARD(&stream->lock);

	drop_all(stream);
	stream->broken = true;
}

void fg_stream_hold(struct fg_stream *stream, bool hold)
{
	FG_GUARD(&stream->lock);

	stream->held = hold;
}

size_t fg_stream_used(struct fg_stream *stream)
{
	FG_GUARD(&stream->lock);

	return stream->used;
}

static size_t iov_size(const struct iovec *iov, int count)
{
	size_t size = 0;

	for (int i = 0; i < count; i++)
		size += iov[i].iov_len;
	return size;
}

static size_t at_most(size_t size, size_t limit)
{
	return limit && size > limit ? limit : size;
}

static void gather(uint8_t *to, size_t size, const struct iovec *iov)
{
	for (size_t n; size; iov++, to += n, size -= n) {
		n = size < iov->iov_len ? size : iov->iov_len;
		memcpy(to, iov->iov_base, n);
	}
}

ssize_t fg_stream_send(struct fg_stream *stream, const struct iovec *iov, int count)
{
	FG_GUARD(&stream->lock);
	size_t size = at_most(iov_size(iov, count), stream->netem->send_limit);
	size_t room = stream->room - stream->used;
	struct fg_parcel *parcel;

	if (stream->broken)
		return -ECONNRESET;
	size = size < room ? size : room;
	if (!size)
		return 0;
	parcel = malloc(sizeof(*parcel) + size);
	if (!parcel)
		fg_die("no memory for a parcel");
	*parcel = (struct fg_parcel){
		.arrives = stream->netem->delay ? *stream->netem->now + stream->netem->delay : 0,
		.size = size,
	};
	gather(parcel->data, size, iov);
	*stream->last = parcel;
	stream->last = &parcel->next;
	stream->used += size;
	return (ssize_t)size;
}

bool fg_stream_can_send(struct fg_stream *stream)
{
	FG_GUARD(&stream->lock);

	return stream->broken || stream->used < stream->room;
}

static uint64_t deadline_locked(const struct fg_stream *stream)
{
	return stream->first && !stream->held ? stream->first->arrives : UINT64_MAX;
}

uint64_t fg_stream_deadline(struct fg_stream *stream)
{
	FG_GUARD(&stream->lock);

	return deadline_locked(stream);
}

/* Without delays no clock is looked at. */
static bool has_arrived(const struct fg_stream *stream)
{
	uint64_t deadline = deadline_locked(stream);

	return !deadline || (deadline != UINT64_MAX && deadline <= *stream->netem->now);
}

bool fg_stream_can_recv(struct fg_stream *stream)
{
	FG_GUARD(&stream->lock);

	return stream->broken || has_arrived(stream);
}

/* Return: bytes of the first parcel that go to the place @done bytes behind the start. */
static size_t take(struct fg_stream *stream, const struct iovec *iov, size_t done, size_t size)
{
	struct fg_parcel *parcel = stream->first;
	size_t n = parcel->size - parcel->taken;

	while (done >= iov->iov_len)
		done -= iov++->iov_len;
	n = n < size ? n : size;
	n = n < iov->iov_len - done ? n : iov->iov_len - done;
	memcpy((uint8_t *)iov->iov_base + done, parcel->data + parcel->taken, n);
	parcel->taken += n;
	stream->used -= n;
	if (parcel->taken == parcel->size)
		drop_first(stream);
	return n;
}

ssize_t fg_stream_recv(struct fg_stream *stream, const struct iovec *iov, int count)
{
	FG_GUARD(&stream->lock);
	size_t size = at_most(iov_size(iov, count), stream->netem->recv_limit), done = 0;

	if (stream->broken)
		return -ECONNRESET;
	while (done < size && has_arrived(stream))
		done += take(stream, iov, done, size - done);
	return (ssize_t)done;
}
