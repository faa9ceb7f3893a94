// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Streams over queue pairs of an RDMA NIC: credits and buffers, over two queue pairs that are made up. */
#include <stdlib.h>

#include "test.h"
#include "net/verbs_stream.h"

#define IN_FLIGHT 64

/* The network between the two: messages in order; a NIC takes them when it has a buffer. */
struct message {
	uint32_t len, taken;
	uint8_t *data;
};

struct fake_qp {
	struct pvr_verbs_stream stream;
	struct fake_qp *other;
	uint8_t *tx, *rx;
	uint32_t free[PVR_VERBS_RECEIVES], num_free; /* receive requests */
	struct message wire[IN_FLIGHT]; /* towards this one */
	unsigned int num_wire;
	struct pvr_verbs_done done[2 * IN_FLIGHT];
	unsigned int num_done, sends, arms, send_arms;
	bool hold; /* what is sent is not completed */
	unsigned int held[IN_FLIGHT], num_held;
	int broken, post_error;
};

static void complete(struct fake_qp *qp, const struct pvr_verbs_done *done)
{
	assert_true(qp->num_done < 2 * IN_FLIGHT);
	qp->done[qp->num_done++] = *done;
}

/* A receive request takes the oldest message. */
static void deliver(struct fake_qp *qp)
{
	struct message *message = &qp->wire[0];
	uint32_t slot;

	while (qp->num_wire && qp->num_free) {
		slot = qp->free[0];
		memmove(qp->free, qp->free + 1, --qp->num_free * sizeof(qp->free[0]));
		if (message->len)
			memcpy(qp->rx + (size_t)slot * PVR_VERBS_BUFFER, message->data,
			       message->len);
		complete(qp, &(struct pvr_verbs_done){ true, slot, message->len, message->taken });
		free(message->data);
		memmove(message, message + 1, --qp->num_wire * sizeof(*message));
	}
}

static int fake_send(void *opaque, uint32_t slot, uint32_t len, uint32_t taken)
{
	struct fake_qp *qp = opaque, *to = qp->other;
	struct message *message = &to->wire[to->num_wire];

	if (qp->post_error)
		return qp->post_error;
	assert_true(to->num_wire < IN_FLIGHT);
	to->num_wire++;
	*message = (struct message){ len, taken, len ? malloc(len) : NULL };
	if (len)
		memcpy(message->data, qp->tx + (size_t)slot * PVR_VERBS_BUFFER, len);
	qp->sends++;
	if (qp->hold)
		qp->held[qp->num_held++] = len;
	else
		complete(qp, &(struct pvr_verbs_done){ .len = len });
	deliver(to);
	/* With credits there is always a buffer for what comes. */
	assert_int_equal(to->num_wire, 0);
	return 0;
}

static int fake_receive(void *opaque, uint32_t slot)
{
	struct fake_qp *qp = opaque;

	assert_true(qp->num_free < PVR_VERBS_RECEIVES);
	qp->free[qp->num_free++] = slot;
	return 0;
}

static int fake_poll(void *opaque, struct pvr_verbs_done *done, int max)
{
	struct fake_qp *qp = opaque;
	unsigned int num = qp->num_done < (unsigned int)max ? qp->num_done : (unsigned int)max;

	if (!num)
		return qp->broken;
	memcpy(done, qp->done, num * sizeof(*done));
	qp->num_done -= num;
	memmove(qp->done, qp->done + num, qp->num_done * sizeof(*done));
	return (int)num;
}

static int fake_arm(void *opaque, bool sends)
{
	struct fake_qp *qp = opaque;

	qp->arms++;
	qp->send_arms += sends;
	return 0;
}

static const struct pvr_verbs_qp_ops fake_ops = {
	.send = fake_send,
	.receive = fake_receive,
	.poll = fake_poll,
	.arm = fake_arm,
};

static void open_one(struct fake_qp *qp, struct fake_qp *other)
{
	qp->other = other;
	qp->tx = malloc(PVR_VERBS_TX_SIZE);
	qp->rx = malloc(PVR_VERBS_RX_SIZE);
	pvr_verbs_stream_init(&qp->stream, &fake_ops, qp, qp->tx, qp->rx);
	assert_int_equal(pvr_verbs_stream_post(&qp->stream), 0);
	pvr_verbs_stream_set_peer(&qp->stream, PVR_VERBS_BUFFERS, PVR_VERBS_BUFFER);
}

static int set_up(void **state)
{
	struct fake_qp *pair = calloc(2, sizeof(*pair));

	open_one(&pair[0], &pair[1]);
	open_one(&pair[1], &pair[0]);
	*state = pair;
	return 0;
}

static int tear_down(void **state)
{
	struct fake_qp *pair = *state;

	for (int i = 0; i < 2; i++) {
		pvr_verbs_stream_exit(&pair[i].stream);
		for (unsigned int n = 0; n < pair[i].num_wire; n++)
			free(pair[i].wire[n].data);
		free(pair[i].tx);
		free(pair[i].rx);
	}
	free(pair);
	return 0;
}

#define TEST_PAIR(name) TEST_WITH(struct fake_qp *pair, set_up, tear_down, name)

static ssize_t put(struct fake_qp *qp, const void *data, size_t size)
{
	const struct iovec iov = { (void *)data, size };

	return pvr_verbs_stream_send(&qp->stream, &iov, 1);
}

static ssize_t take(struct fake_qp *qp, void *data, size_t size)
{
	const struct iovec iov = { data, size };

	return pvr_verbs_stream_recv(&qp->stream, &iov, 1);
}

static ssize_t put_byte(struct fake_qp *qp)
{
	return put(qp, "x", 1);
}

static ssize_t take_byte(struct fake_qp *qp)
{
	char byte;

	return take(qp, &byte, 1);
}

/* The byte at @pos of all that is ever sent. */
static uint8_t pattern(uint64_t pos)
{
	return (uint8_t)(pos * 2654435761u >> 13);
}

static void fill(uint8_t *data, size_t size, uint64_t from)
{
	for (size_t i = 0; i < size; i++)
		data[i] = pattern(from + i);
}

static void check(const uint8_t *data, size_t size, uint64_t from)
{
	for (size_t i = 0; i < size; i++)
		assert_int_equal(data[i], pattern(from + i));
}

/* Takes up to @size bytes, which must be those that follow *@got. Return: whether there were any. */
static bool take_next(struct fake_qp *qp, uint8_t *data, size_t size, uint64_t *got)
{
	ssize_t n = take(qp, data, size);

	assert_true(n >= 0);
	check(data, (size_t)n, *got);
	*got += (uint64_t)n;
	return n;
}

/* Odd sizes on both sides, many times around the buffers, in both directions at once. */
TEST_PAIR(test_order)
{
	uint64_t sent[2] = { 0 }, got[2] = { 0 };
	static uint8_t data[300001];
	ssize_t n;

	for (unsigned int turn = 0; turn < 400; turn++) {
		for (unsigned int from = 0; from < 2; from++) {
			size_t size = 1 + turn * 7919 % (turn % 3 ? sizeof(data) : 100);

			fill(data, size, sent[from]);
			n = put(&pair[from], data, size);
			assert_true(n >= 0);
			sent[from] += (uint64_t)n;
			take_next(&pair[!from], data, 1 + turn * 104729 % sizeof(data), &got[from]);
		}
	}
	for (unsigned int from = 0; from < 2; from++) {
		while (take_next(&pair[!from], data, sizeof(data), &got[from]))
			;
		assert_int_equal(sent[from], got[from]);
		assert_true(sent[from] > 10 * PVR_VERBS_TX_SIZE);
	}
}

TEST_PAIR(test_segments_of_a_vector)
{
	uint8_t in[10], out[10] = "123456789";
	struct iovec from[] = { { out, 3 }, { out + 3, 0 }, { out + 3, 7 } };
	struct iovec to[] = { { in, 1 }, { in + 1, 0 }, { in + 1, 4 }, { in + 5, 5 } };

	assert_int_equal(pvr_verbs_stream_send(&pair[0].stream, from, 3), 10);
	assert_int_equal(pair[0].sends, 1);
	assert_int_equal(take(&pair[1], in, 0), 0);
	assert_int_equal(pvr_verbs_stream_recv(&pair[1].stream, to, 4), 10);
	assert_memory_equal(in, out, 10);
}

static void send_until_full(struct fake_qp *qp)
{
	for (unsigned int i = 0; i < PVR_VERBS_BUFFERS; i++)
		assert_int_equal(put_byte(qp), 1);
	assert_int_equal(put_byte(qp), 0);
}

/* No message is sent without a buffer at the other side; credit updates report buffers. */
TEST_PAIR(test_credits)
{
	send_until_full(&pair[0]);
	assert_false(pvr_verbs_stream_has_room(&pair[0].stream));
	assert_true(pair[0].send_arms);
	for (unsigned int i = 0; i < PVR_VERBS_BUFFERS / 2 - 1; i++)
		assert_int_equal(take_byte(&pair[1]), 1);
	assert_int_equal(pair[1].sends, 0);
	assert_false(pvr_verbs_stream_has_room(&pair[0].stream));
	assert_int_equal(take_byte(&pair[1]), 1);
	assert_int_equal(pair[1].sends, 1);
	assert_true(pvr_verbs_stream_has_room(&pair[0].stream));
	for (unsigned int i = 0; i < PVR_VERBS_BUFFERS / 2; i++)
		assert_int_equal(put_byte(&pair[0]), 1);
	assert_int_equal(put_byte(&pair[0]), 0);
}

/* A side that sends data needs no credit updates. */
TEST_PAIR(test_credits_go_with_messages)
{
	for (unsigned int i = 0; i < 10 * PVR_VERBS_BUFFERS; i++) {
		assert_int_equal(put_byte(&pair[0]), 1);
		assert_int_equal(take_byte(&pair[1]), 1);
		assert_int_equal(put_byte(&pair[1]), 1);
		assert_int_equal(take_byte(&pair[0]), 1);
	}
	assert_int_equal(pair[0].sends + pair[1].sends, 20 * PVR_VERBS_BUFFERS);
}

/*
 * A buffer that the NIC still sends from is not written to, independent of the credits.
 */
TEST_PAIR(test_buffers_in_use)
{
	pair[0].hold = true;
	send_until_full(&pair[0]);
	while (take_byte(&pair[1]) == 1)
		;
	assert_int_equal(put_byte(&pair[0]), 0);
	complete(&pair[0], &(struct pvr_verbs_done){ .len = 1 });
	assert_true(pvr_verbs_stream_has_room(&pair[0].stream));
	assert_int_equal(put_byte(&pair[0]), 1);
	assert_int_equal(put_byte(&pair[0]), 0);
}

/* A receive that finds nothing arms the CQ last. */
TEST_PAIR(test_armed_when_empty)
{
	char bytes[2];

	assert_int_equal(put(&pair[0], "ab", 2), 2);
	assert_int_equal(take(&pair[1], bytes, 1), 1);
	assert_int_equal(take(&pair[1], bytes, 2), 1);
	assert_int_equal(pair[1].arms, 0);
	assert_int_equal(take(&pair[1], bytes, 2), 0);
	assert_int_equal(pair[1].arms, 1);
}

/* Bytes from before the break are not lost; then both directions return the error. */
TEST_PAIR(test_broken)
{
	assert_int_equal(put_byte(&pair[0]), 1);
	pair[1].broken = -ECONNRESET;
	assert_int_equal(take_byte(&pair[1]), 1);
	assert_int_equal(take_byte(&pair[1]), -ECONNRESET);
	assert_int_equal(put_byte(&pair[1]), -ECONNRESET);
	assert_true(pvr_verbs_stream_has_room(&pair[1].stream));
}

TEST_PAIR(test_cannot_post)
{
	pair[0].post_error = -ENOMEM;
	assert_int_equal(put_byte(&pair[0]), -ENOMEM);
	assert_int_equal(put_byte(&pair[0]), -ENOMEM);
}

static void receive_note(struct fake_qp *qp, uint32_t len, uint32_t taken)
{
	qp->num_free--;
	complete(qp, &(struct pvr_verbs_done){ true, qp->free[qp->num_free], len, taken });
}

static const struct {
	const char *label;
	uint32_t len, taken;
} bad_notes[] = {
	{ "more taken than was sent", 1, 3 },
	{ "fewer taken than before", 1, 0 },
	{ "no bytes and no credits", 0, 1 },
};

TEST_CASES_WITH(struct fake_qp *pair, set_up, tear_down, test_bad_note_is_refused, bad_notes)
{
	assert_int_equal(put_byte(&pair[0]), 1);
	assert_int_equal(put_byte(&pair[0]), 1);
	receive_note(&pair[0], 1, 1);
	assert_int_equal(take_byte(&pair[0]), 1);
	receive_note(&pair[0], row->len, row->taken);
	assert_int_equal(take_byte(&pair[0]), -EPROTO);
}

/* All sent messages have arrived or are lost. */
TEST_PAIR(test_proved)
{
	pair[0].hold = true;
	assert_int_equal(put_byte(&pair[0]), 1);
	assert_int_equal(pvr_verbs_stream_is_proved(&pair[0].stream), 0);
	assert_int_equal(pair[0].send_arms, 1);
	complete(&pair[0], &(struct pvr_verbs_done){ .len = 1 });
	assert_int_equal(pvr_verbs_stream_is_proved(&pair[0].stream), 1);
	pair[1].broken = -ECONNRESET;
	assert_int_equal(pvr_verbs_stream_is_proved(&pair[1].stream), -ECONNRESET);
}

/* It may have fewer and smaller buffers than we. */
TEST_PAIR(test_modest_peer)
{
	static uint8_t data[3 * 4096];

	pvr_verbs_stream_set_peer(&pair[0].stream, 2, 4096);
	assert_int_equal(put(&pair[0], data, sizeof(data)), 2 * 4096);
	assert_int_equal(pair[1].done[0].len, 4096);
}
