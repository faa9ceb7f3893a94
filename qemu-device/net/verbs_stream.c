// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A byte stream over an RC queue pair: buffers and credits. */
#include <errno.h>
#include <string.h>

#include "net/verbs_stream.h"

#define POLL_BATCH 16
/* Buffers consumed but not reported: at this number a credit update is sent. */
#define NOTE_AFTER (PVR_VERBS_BUFFERS / 2)

static uint32_t get(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static int error_of(const struct pvr_verbs_stream *stream)
{
	return __atomic_load_n(&stream->error, __ATOMIC_RELAXED);
}

static void fail(struct pvr_verbs_stream *stream, int err)
{
	int none = 0;

	__atomic_compare_exchange_n(&stream->error, &none, err, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

void pvr_verbs_stream_init(struct pvr_verbs_stream *stream, const struct pvr_verbs_qp_ops *ops,
			   void *qp, uint8_t *tx, uint8_t *rx)
{
	*stream = (struct pvr_verbs_stream){ .ops = ops, .qp = qp, .tx = tx, .rx = rx };
	pthread_mutex_init(&stream->tx_lock, NULL);
	pthread_mutex_init(&stream->lock, NULL);
}

void pvr_verbs_stream_exit(struct pvr_verbs_stream *stream)
{
	pthread_mutex_destroy(&stream->tx_lock);
	pthread_mutex_destroy(&stream->lock);
}

int pvr_verbs_stream_post(struct pvr_verbs_stream *stream)
{
	uint32_t slot;
	int err = 0;

	for (slot = 0; slot < PVR_VERBS_RECEIVES && !err; slot++)
		err = stream->ops->receive(stream->qp, slot);
	return err;
}

void pvr_verbs_stream_set_peer(struct pvr_verbs_stream *stream, uint32_t buffers, uint32_t size)
{
	/* Bounded by the own buffers, but buffers still in the send queue count, too. */
	stream->limit = buffers;
	stream->size = size < PVR_VERBS_BUFFER ? size : PVR_VERBS_BUFFER;
}

/* ------------------------------------------------------------------------ news */

/* Takes the peer's count of consumed messages. Return: false if it is invalid. */
static bool credit(struct pvr_verbs_stream *stream, const struct pvr_verbs_done *done)
{
	uint32_t more = done->taken - stream->credited;

	if (more > get(&stream->sent) - stream->credited || (!done->len && !more))
		return false;
	set(&stream->credited, done->taken);
	return true;
}

static void received(struct pvr_verbs_stream *stream, const struct pvr_verbs_done *done)
{
	uint32_t at = stream->tail % PVR_VERBS_RECEIVES;
	int err;

	if (done->len > PVR_VERBS_BUFFER || !credit(stream, done)) {
		fail(stream, -EPROTO);
		return;
	}
	if (!done->len) {
		err = stream->ops->receive(stream->qp, done->slot);
		if (err)
			fail(stream, err);
		return;
	}
	stream->got[at].slot = done->slot;
	stream->got[at].len = done->len;
	set(&stream->tail, stream->tail + 1);
}

static void take(struct pvr_verbs_stream *stream, const struct pvr_verbs_done *done)
{
	if (done->received)
		received(stream, done);
	else if (done->len)
		set(&stream->sent_done, stream->sent_done + 1);
	else
		set(&stream->notes_done, stream->notes_done + 1);
}

/*
 * Bounded by the number of own requests: new messages use only buffers returned before.
 */
static void poll_all(struct pvr_verbs_stream *stream)
{
	struct pvr_verbs_done done[POLL_BATCH];
	int n, i;

	pthread_mutex_lock(&stream->lock);
	do {
		n = error_of(stream) ? 0 : stream->ops->poll(stream->qp, done, POLL_BATCH);
		for (i = 0; i < n; i++)
			take(stream, &done[i]);
		if (n < 0)
			fail(stream, n);
	} while (n > 0);
	pthread_mutex_unlock(&stream->lock);
}

/* Polls again after arming: completions in between would raise no event. */
static void arm(struct pvr_verbs_stream *stream, bool sends)
{
	int err = stream->ops->arm(stream->qp, sends);

	if (err)
		fail(stream, err);
	poll_all(stream);
}

int pvr_verbs_stream_poll(struct pvr_verbs_stream *stream, bool wait)
{
	if (wait)
		arm(stream, true);
	else
		poll_all(stream);
	return error_of(stream);
}

void pvr_verbs_stream_break(struct pvr_verbs_stream *stream, int err)
{
	fail(stream, err);
}

/* --------------------------------------------------------------------- sending */

/* A send buffer and a receive buffer of the peer are free. */
static bool has_room(const struct pvr_verbs_stream *stream)
{
	uint32_t sent = get(&stream->sent);

	return sent - get(&stream->sent_done) < PVR_VERBS_BUFFERS &&
	       sent - get(&stream->credited) < stream->limit;
}

bool pvr_verbs_stream_has_room(struct pvr_verbs_stream *stream)
{
	if (!has_room(stream))
		arm(stream, true);
	return has_room(stream) || error_of(stream);
}

int pvr_verbs_stream_is_proved(struct pvr_verbs_stream *stream)
{
	poll_all(stream);
	if (!get(&stream->sent_done))
		arm(stream, true);
	return error_of(stream) ? error_of(stream) : get(&stream->sent_done) != 0;
}

static bool poll_room(struct pvr_verbs_stream *stream)
{
	if (!has_room(stream))
		poll_all(stream);
	return has_room(stream) && !error_of(stream);
}

struct bounce_cursor {
	const struct iovec *iov;
	int count;
	size_t pos; /* in the first entry */
};

/* Return: bytes copied to or from @buf. */
static size_t move(struct bounce_cursor *cursor, uint8_t *buf, size_t size, bool to_buf)
{
	size_t done = 0, n;
	uint8_t *at;

	while (done < size && cursor->count) {
		at = (uint8_t *)cursor->iov->iov_base + cursor->pos;
		n = cursor->iov->iov_len - cursor->pos;
		n = n < size - done ? n : size - done;
		if (n)
			memcpy(to_buf ? buf + done : at, to_buf ? at : buf + done, n);
		done += n;
		cursor->pos += n;
		if (cursor->pos < cursor->iov->iov_len)
			continue;
		cursor->iov++;
		cursor->count--;
		cursor->pos = 0;
	}
	return done;
}

static int post(struct pvr_verbs_stream *stream, uint32_t slot, uint32_t len)
{
	uint32_t taken = get(&stream->taken);
	int err;

	/* Before the send: its credit can arrive at once. */
	set(len ? &stream->sent : &stream->notes, (len ? stream->sent : stream->notes) + 1);
	err = stream->ops->send(stream->qp, slot, len, taken);
	if (err)
		fail(stream, err);
	else
		set(&stream->told, taken);
	return err;
}

static size_t send_some(struct pvr_verbs_stream *stream, struct bounce_cursor *from)
{
	uint32_t slot = stream->sent % PVR_VERBS_BUFFERS;
	size_t n = move(from, stream->tx + (size_t)slot * PVR_VERBS_BUFFER, stream->size, true);

	return n && !post(stream, slot, (uint32_t)n) ? n : 0;
}

ssize_t pvr_verbs_stream_send(struct pvr_verbs_stream *stream, const struct iovec *iov, int count)
{
	struct bounce_cursor from = { .iov = iov, .count = count };
	size_t total = 0, n;

	pthread_mutex_lock(&stream->tx_lock);
	do {
		n = poll_room(stream) ? send_some(stream, &from) : 0;
		total += n;
	} while (n && from.count);
	pthread_mutex_unlock(&stream->tx_lock);
	return total ? (ssize_t)total : error_of(stream);
}

/* ------------------------------------------------------------------- receiving */

static void give_back(struct pvr_verbs_stream *stream)
{
	if (get(&stream->taken) - get(&stream->told) < NOTE_AFTER)
		return;
	pthread_mutex_lock(&stream->tx_lock);
	if (stream->taken - stream->told >= NOTE_AFTER &&
	    stream->notes - get(&stream->notes_done) < PVR_VERBS_NOTES)
		post(stream, 0, 0);
	pthread_mutex_unlock(&stream->tx_lock);
}

static bool has_message(const struct pvr_verbs_stream *stream)
{
	return get(&stream->tail) != stream->head;
}

static void end_message(struct pvr_verbs_stream *stream, uint32_t slot)
{
	int err = stream->ops->receive(stream->qp, slot);

	stream->used = 0;
	stream->head++;
	set(&stream->taken, stream->taken + 1);
	if (err)
		fail(stream, err);
	give_back(stream);
}

static size_t recv_some(struct pvr_verbs_stream *stream, struct bounce_cursor *to)
{
	uint32_t at = stream->head % PVR_VERBS_RECEIVES;
	uint32_t slot = stream->got[at].slot, len = stream->got[at].len;
	uint8_t *from = stream->rx + (size_t)slot * PVR_VERBS_BUFFER + stream->used;
	size_t n = move(to, from, len - stream->used, false);

	stream->used += (uint32_t)n;
	if (stream->used == len)
		end_message(stream, slot);
	return n;
}

static bool poll_message(struct pvr_verbs_stream *stream, bool wait)
{
	if (!has_message(stream))
		poll_all(stream);
	if (!has_message(stream) && wait)
		arm(stream, false);
	return has_message(stream);
}

ssize_t pvr_verbs_stream_recv(struct pvr_verbs_stream *stream, const struct iovec *iov, int count)
{
	struct bounce_cursor to = { .iov = iov, .count = count };
	size_t total = 0;

	while (to.count && poll_message(stream, !total))
		total += recv_some(stream, &to);
	if (!total)
		give_back(stream);
	return total ? (ssize_t)total : error_of(stream);
}
