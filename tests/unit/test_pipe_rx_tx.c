// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Output queue and input of a connection, over a stream with faults. */
#include "hosts.h"
#include "fg_stream.h"
#include "core/objects.h"
#include "path/pipe/rx.h"
#include "path/pipe/tx.h"

#define CHUNK 65536u
#define AREA (1u << 20) /* of each end's memory */
#define FRAMES_MAX 2048

/* A frame as the receiver has seen it. */
struct seen {
	uint32_t psn, len;
	bool staged; /* its payload was there as a whole */
	unsigned int calls;
};

struct pipe {
	struct t_env *env;
	struct fg_netem netem;
	uint64_t now;
	struct fg_stream stream;
	struct pvr_pipe_tx out;
	struct pvr_pipe_rx in;
	struct pvr_link_count out_count, in_count;
	unsigned int wants;
	int send_error, recv_error; /* what send() and recv() fail with, unless 0 */
	size_t pulled; /* bytes of memory that frames have filled so far */
	bool no_recv_payload, not_ready;
	enum pvr_handled first; /* what the first call for each frame returns */
	unsigned int rests;
	struct seen seen[FRAMES_MAX];
	unsigned int count; /* of frames that are done */
};

/* ------------------------------------------------------------------------ streams */

static bool is_ours(const struct pvr_pipe_tx *out, const void *at)
{
	return (const uint8_t *)at >= out->data && (const uint8_t *)at < out->data + out->size;
}

static ssize_t do_send(void *opaque, const struct iovec *iov, int count)
{
	struct pipe *pipe = opaque;

	/* A bad address is one of the guest's. */
	if (pipe->send_error == -EFAULT && count == 1 && is_ours(&pipe->out, iov->iov_base))
		return fg_stream_send(&pipe->stream, iov, count);
	return pipe->send_error ? pipe->send_error : fg_stream_send(&pipe->stream, iov, count);
}

static ssize_t do_recv(void *opaque, const struct iovec *iov, int count)
{
	struct pipe *pipe = opaque;

	if (pipe->recv_error == -EFAULT && count == 1)
		return fg_stream_recv(&pipe->stream, iov, count);
	return pipe->recv_error ? pipe->recv_error : fg_stream_recv(&pipe->stream, iov, count);
}

static void do_want(void *opaque)
{
	((struct pipe *)opaque)->wants++;
}

static const struct pvr_stream_ops stream_ops = {
	.send = do_send,
	.recv = do_recv,
	.want_output = do_want,
};

static int setup(void **state)
{
	struct pipe *pipe = test_calloc(1, sizeof(*pipe));
	void *env;

	t_setup_guests(&env);
	pipe->env = env;
	hosts_open(env, &pipe->env->a, &pipe->env->b, PVR_QPT_RC, AREA / 4096);
	pipe->netem.now = &pipe->now;
	fg_stream_init(&pipe->stream, &pipe->netem, 100000);
	assert_int_equal(pvr_pipe_tx_open(&pipe->out, &stream_ops, pipe, CHUNK, &pipe->out_count),
			 0);
	assert_int_equal(pvr_pipe_rx_open(&pipe->in, &stream_ops, pipe, PVR_FRAME_RESPONDER, CHUNK,
					  &pipe->in_count),
			 0);
	*state = pipe;
	return 0;
}

static int teardown(void **state)
{
	struct pipe *pipe = *state;
	void *env = pipe->env;

	pvr_pipe_tx_close(&pipe->out);
	pvr_pipe_rx_close(&pipe->in);
	fg_stream_exit(&pipe->stream);
	t_teardown(&env);
	test_free(pipe);
	return 0;
}

#define TEST_PIPE(name) TEST_WITH(struct pipe *pipe, setup, teardown, name)

/* ------------------------------------------------------------------------- frames */

/* All of an end's memory. */
static void memory(struct pvr_sg *sg, struct fg_end *end)
{
	struct pvr_qp *qp = t_device_qp(end);
	const struct pvrdma_sge sge = fg_sge(&end->mr, 0, AREA);

	assert_int_equal(pvr_sg_build(sg, qp, qp->pd, &sge, 1, PVR_ACCESS_LOCAL_WRITE), 0);
}

static union pvr_any_frame request(uint32_t psn, uint32_t len)
{
	return (union pvr_any_frame){
		.request = { .frame = { .type = PVR_FRAME_REQUEST,
					.flags = PVR_REQUEST_F_LAST,
					.fabric = 1 },
			     .op = PVR_FRAME_OP_WRITE,
			     .gid_type = PVR_GID_TYPE_ROCE_V2,
			     .psn = psn,
			     .psns = 1,
			     .length = len,
			     .chunk = len },
	};
}

/* The bytes at @offset of a's memory. */
static bool post(struct pipe *pipe, uint32_t psn, uint32_t offset, uint32_t len, bool put)
{
	union pvr_any_frame any = request(psn, len);
	struct pvr_sg sg;
	const struct pvr_tx_frame out = {
		.header = &any,
		.header_size = sizeof(any.request),
		.payload = &sg,
		.offset = offset,
		.len = len,
	};

	memory(&sg, &pipe->env->a);
	return put ? pvr_pipe_tx_put(&pipe->out, &out) : pvr_pipe_tx_send(&pipe->out, &out);
}

/* The payload goes behind that of the frame before, in b's memory. */
static enum pvr_handled got_frame(void *owner, const union pvr_any_frame *any, uint8_t *payload,
				  const char **why)
{
	struct pipe *pipe = owner;
	struct seen *seen = &pipe->seen[pipe->count];
	struct pvr_sg sg;

	(void)why;
	assert_true(pipe->count < FRAMES_MAX);
	seen->psn = any->request.psn;
	seen->len = any->request.chunk;
	seen->staged |= payload != NULL;
	if (!seen->calls++ && pipe->first != PVR_HANDLED)
		return pipe->first;
	memory(&sg, &pipe->env->b);
	if (!pipe->no_recv_payload &&
	    !pvr_pipe_rx_recv_payload(&pipe->in, NULL, &sg, pipe->pulled, seen->len, 0))
		return PVR_HANDLED_PARTLY;
	pipe->pulled += seen->len;
	pipe->count++;
	return PVR_HANDLED;
}

static bool ready(void *owner)
{
	return !((struct pipe *)owner)->not_ready;
}

static void rest(void *owner)
{
	((struct pipe *)owner)->rests++;
}

static const struct pvr_pipe_rx_ops inbox_ops = {
	.ready = ready,
	.frame = got_frame,
	.rest = rest,
};

static enum pvr_input input(struct pipe *pipe)
{
	struct pvr_input_error err;

	return pvr_pipe_rx_run(&pipe->in, &inbox_ops, pipe, &err);
}

/* Until all has got through. */
static void pump(struct pipe *pipe)
{
	unsigned int rounds = 0;
	enum pvr_input result;

	do {
		assert_true(rounds++ < 1000000);
		pvr_pipe_tx_flush(&pipe->out);
		result = input(pipe);
	} while (result == PVR_INPUT_MORE || result == PVR_INPUT_STALLED || pipe->out.blocked ||
		 fg_stream_used(&pipe->stream));
	assert_int_equal(result, PVR_INPUT_IDLE);
}

static void expect_all(struct pipe *pipe, unsigned int frames, uint32_t bytes)
{
	assert_int_equal(pipe->count, frames);
	for (unsigned int i = 0; i < frames; i++)
		assert_int_equal(pipe->seen[i].psn, i);
	assert_int_equal(pipe->pulled, bytes);
	assert_int_equal(fg_mismatch(pipe->env->b.mr.va, bytes, 3), bytes);
	assert_int_equal(pipe->out_count.tx_frames, frames);
	assert_int_equal(pipe->in_count.rx_frames, frames);
	assert_int_equal(pipe->out_count.tx_bytes, frames * 120 + bytes);
	assert_int_equal(pipe->in_count.rx_bytes, frames * 120 + bytes);
}

/* Begins the counts and the memory of frames anew. */
static void forget(struct pipe *pipe)
{
	pipe->count = 0;
	pipe->pulled = 0;
	pipe->out_count = pipe->in_count = (struct pvr_link_count){ 0 };
	memset(pipe->seen, 0, sizeof(pipe->seen));
	memset(pipe->env->b.mr.va, 0, AREA);
}

static const uint32_t sizes[] = { 0,	1,     100,   4095,  4096, 4097, 65536, 0,
				  5000, 16383, 16384, 65535, 8,	   8,	 20000, 1 };

/* All of @sizes, as fast as the box takes them. */
static void send_all(struct pipe *pipe)
{
	uint32_t done = 0;

	fg_fill(pipe->env->a.mr.va, AREA, 3);
	for (uint32_t i = 0; i < COUNT(sizes); i++) {
		while (!post(pipe, i, done, sizes[i], false))
			pump(pipe);
		done += sizes[i];
	}
	pump(pipe);
	expect_all(pipe, COUNT(sizes), done);
}

/* -------------------------------------------------------------------------- tests */

TEST_PIPE(test_frames_of_all_sizes_arrive)
{
	send_all(pipe);
	assert_true(pipe->seen[4].staged);
	assert_true(pipe->rests > 0);
}

TEST_PIPE(test_frames_arrive_bit_by_bit)
{
	static const size_t limits[][2] = {
		{ 1, 1 }, { 7, 0 }, { 0, 3 }, { 119, 121 }, { 4096, 5 }
	};

	for (size_t i = 0; i < COUNT(limits); i++) {
		pipe->netem.send_limit = limits[i][0];
		pipe->netem.recv_limit = limits[i][1];
		forget(pipe);
		send_all(pipe);
	}
}

TEST_PIPE(test_output_that_the_stream_refuses_is_kept_and_bounded)
{
	uint32_t puts = 0, done;

	fg_fill(pipe->env->a.mr.va, AREA, 3);
	/* One that gets through in part. */
	assert_true(post(pipe, 0, 0, CHUNK, false));
	assert_true(post(pipe, 1, CHUNK, CHUNK, false));
	assert_true(pipe->out.blocked);
	assert_int_equal(pipe->wants, 1);
	assert_false(post(pipe, 2, 0, 8, false));
	done = 2 * CHUNK;
	/* What cannot wait still has room, but not for ever. */
	while (post(pipe, 2 + puts, done, 1000, true)) {
		done += 1000;
		assert_true(++puts < 1000);
	}
	assert_in_range(puts, PVR_PIPE_TX_RESERVE / 1120, 200);
	/* Guest memory is not needed any more. */
	memset(pipe->env->a.mr.va, 0xee, AREA);
	pipe->out_count.tx_frames--; /* of the one that had no room */
	pump(pipe);
	expect_all(pipe, 2 + puts, done);
	assert_true(post(pipe, 2 + puts, 0, 8, false));
}

TEST_PIPE(test_small_frames_are_gathered)
{
	fg_fill(pipe->env->a.mr.va, AREA, 3);
	for (uint32_t i = 0; i < 10; i++)
		assert_true(post(pipe, i, i * 100, 100, false));
	assert_int_equal(fg_stream_used(&pipe->stream), 0);
	pvr_pipe_tx_flush(&pipe->out);
	assert_int_equal(fg_stream_used(&pipe->stream), 2200);
	pump(pipe);
	/* No more than so many bytes. */
	for (uint32_t i = 10; i < 160; i++)
		assert_true(post(pipe, i, i * 100, 100, false));
	assert_in_range(fg_stream_used(&pipe->stream), 1, 33000);
	pump(pipe);
	expect_all(pipe, 160, 16000);
}

/* A system call refuses memory whose owner has truncated it; a copy has a way to survive. */
TEST_PIPE(test_memory_that_system_calls_refuse_is_copied)
{
	pipe->send_error = -EFAULT;
	pipe->recv_error = -EFAULT;
	send_all(pipe);
}

TEST_PIPE(test_broken_stream_stays_broken)
{
	struct pvr_input_error err;

	pipe->send_error = -ECONNRESET;
	assert_true(post(pipe, 0, 0, 8, false));
	pvr_pipe_tx_flush(&pipe->out);
	assert_true(pipe->out.broken);
	assert_int_equal(pipe->wants, 1);
	pipe->send_error = 0;
	assert_false(post(pipe, 0, 0, 8, false));
	assert_false(post(pipe, 0, 0, 8, true));
	pvr_pipe_tx_flush(&pipe->out);
	assert_int_equal(fg_stream_used(&pipe->stream), 0);
	pipe->recv_error = -ETIMEDOUT;
	assert_int_equal(pvr_pipe_rx_run(&pipe->in, &inbox_ops, pipe, &err), PVR_INPUT_BROKEN);
	assert_int_equal(err.reason, -1);
	assert_string_equal(err.why, strerror(ETIMEDOUT));
	pipe->recv_error = 0;
	assert_int_equal(pvr_pipe_rx_run(&pipe->in, &inbox_ops, pipe, &err), PVR_INPUT_BROKEN);
}

TEST_PIPE(test_unwanted_payload_is_discarded)
{
	fg_fill(pipe->env->a.mr.va, AREA, 3);
	pipe->no_recv_payload = true;
	for (uint32_t i = 0; i < COUNT(sizes); i++)
		while (!post(pipe, i, 0, sizes[i], false))
			pump(pipe);
	pump(pipe);
	assert_int_equal(pipe->count, COUNT(sizes));
	pipe->no_recv_payload = false;
	pipe->pulled = 0;
	assert_true(post(pipe, COUNT(sizes), 0, 50000, false));
	pump(pipe);
	assert_int_equal(fg_mismatch(pipe->env->b.mr.va, 50000, 3), 50000);
}

TEST_PIPE(test_stalled_frame_comes_again)
{
	pipe->first = PVR_HANDLED_STALLED;
	assert_true(post(pipe, 0, 0, 100, false));
	pvr_pipe_tx_flush(&pipe->out);
	assert_int_equal(input(pipe), PVR_INPUT_STALLED);
	assert_int_equal(pipe->count, 0);
	assert_int_equal(input(pipe), PVR_INPUT_IDLE);
	assert_int_equal(pipe->count, 1);
	assert_int_equal(pipe->seen[0].calls, 2);
	/* With payloads of all sizes. */
	forget(pipe);
	send_all(pipe);
}

TEST_PIPE(test_nothing_is_handled_before_there_is_room_for_answers)
{
	pipe->not_ready = true;
	assert_true(post(pipe, 0, 0, 100, false));
	pvr_pipe_tx_flush(&pipe->out);
	assert_int_equal(input(pipe), PVR_INPUT_OUTPUT);
	assert_int_equal(pipe->count, 0);
	pipe->not_ready = false;
	assert_int_equal(input(pipe), PVR_INPUT_IDLE);
	assert_int_equal(pipe->count, 1);
}

TEST_PIPE(test_work_of_a_call_is_bounded)
{
	for (uint32_t i = 0; i < 500; i++)
		assert_true(post(pipe, i, 0, 0, false));
	pvr_pipe_tx_flush(&pipe->out);
	assert_int_equal(input(pipe), PVR_INPUT_MORE);
	assert_in_range(pipe->count, 1, 64);
	pump(pipe);
	assert_int_equal(pipe->count, 500);
}

TEST_PIPE(test_no_memory_is_a_broken_connection)
{
	struct pvr_pipe_rx closed = { 0 };
	struct pvr_input_error err;

	assert_int_equal(pvr_pipe_rx_run(&closed, &inbox_ops, pipe, &err), PVR_INPUT_BROKEN);
	assert_int_equal(err.reason, -1);
}
