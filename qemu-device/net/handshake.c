// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The handshake of a connection: connect, TLS, HELLO and its answer. */
#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "net/handshake.h"
#include "net/tls.h"

static enum pvr_handshake_result fail(struct pvr_error *err, const char *why)
{
	pvr_fail(err, "%s", why);
	return PVR_HANDSHAKE_FAILED;
}

static enum pvr_handshake_result broken(const struct pvr_stream *stream, struct pvr_error *err,
					ssize_t ret)
{
	if (stream->tls && pvr_tls_error(stream->tls)[0])
		return fail(err, pvr_tls_error(stream->tls));
	return fail(err, ret == -ECONNRESET ? "it has closed the connection" : strerror((int)-ret));
}

static enum pvr_handshake_result go(struct pvr_handshake *handshake, enum pvr_handshake_step step)
{
	handshake->step = step;
	handshake->pos = 0;
	return PVR_HANDSHAKE_GO_ON;
}

static enum pvr_handshake_result run_connect(struct pvr_handshake *handshake,
					     struct pvr_stream *stream, struct pvr_error *err)
{
	struct pollfd pfd = { .fd = stream->fd, .events = POLLOUT };
	int error;

	if (poll(&pfd, 1, 0) < 1)
		return PVR_HANDSHAKE_WAIT;
	error = pvr_socket_error(stream->fd);
	if (error)
		return fail(err, strerror(error));
	return go(handshake, PVR_STEP_SECURE);
}

static enum pvr_handshake_result run_secure(struct pvr_handshake *handshake,
					    struct pvr_stream *stream, struct pvr_error *err)
{
	if (stream->tls) {
		switch (pvr_tls_handshake(stream->tls, err)) {
		case PVR_TLS_WAIT:
			return PVR_HANDSHAKE_WAIT;
		case PVR_TLS_FAILED:
			return PVR_HANDSHAKE_FAILED;
		case PVR_TLS_DONE:
			break;
		}
	}
	return go(handshake, handshake->outgoing ? PVR_STEP_SEND : PVR_STEP_READ);
}

static enum pvr_handshake_result run_send(struct pvr_handshake *handshake,
					  struct pvr_stream *stream, struct pvr_error *err)
{
	union pvr_any_frame *frame = &handshake->out[handshake->num_sent];
	size_t size = le32toh(frame->frame.size);
	struct iovec iov = {
		.iov_base = (char *)frame + handshake->pos,
		.iov_len = size - handshake->pos,
	};
	ssize_t n;

	if (handshake->pos < size) {
		n = pvr_stream_send(stream, &iov, 1);
		if (n < 0)
			return broken(stream, err, n);
		handshake->pos += (size_t)n;
	}
	if (!pvr_stream_flush(stream))
		return broken(stream, err, -ECONNRESET);
	if (handshake->pos < size || !pvr_stream_is_flushed(stream))
		return PVR_HANDSHAKE_WAIT;
	if (++handshake->num_sent < handshake->num_out)
		return go(handshake, PVR_STEP_SEND);
	return go(handshake, handshake->outgoing ? PVR_STEP_READ : PVR_STEP_DONE);
}

/* The size of the frame being read. 0 with @why: the frame is not allowed now. */
static size_t expected_size(const struct pvr_handshake *handshake, const char **why)
{
	const struct pvr_frame *frame = &handshake->in[handshake->num_got].frame;
	const uint8_t *bytes = (const uint8_t *)frame;
	size_t size;

	if (handshake->pos < sizeof(*frame))
		return sizeof(*frame);
	if (bytes[0] == 0x16 && bytes[1] == 0x03) {
		*why = "it begins with TLS, and here TLS is off";
		return 0;
	}
	size = pvr_frame_header_size(
		frame, handshake->outgoing ? PVR_FRAME_REQUESTER : PVR_FRAME_RESPONDER,
		PVR_FRAME_CHUNK_MIN, why);
	if (size && frame->type != (handshake->num_got ? PVR_FRAME_VERBS_QP : PVR_FRAME_HELLO) &&
	    frame->type != PVR_FRAME_CLOSE) {
		*why = handshake->num_got ? "its second frame is not VERBS_QP"
					  : "its first frame is not HELLO";
		return 0;
	}
	return size;
}

/* Checks READs of VERBS_QP against the features of HELLO. */
static bool check_reads(const struct pvr_handshake *handshake)
{
	uint32_t features = le32toh(handshake->in[0].hello.features);

	return handshake->num_got != 1 ||
	       !handshake->in[1].verbs_qp.reads == !(features & PVR_HELLO_F_RNDV);
}

static enum pvr_handshake_result take_frame(struct pvr_handshake *handshake, struct pvr_error *err)
{
	const union pvr_any_frame *in = &handshake->in[handshake->num_got];
	const char *why = "";
	size_t payload;

	if (!pvr_frame_check(in, handshake->pos, &payload, &why))
		return fail(err, why);
	if (in->frame.type == PVR_FRAME_CLOSE) {
		pvr_fail(err, "the peer refuses the connection (%s): %s",
			 pvr_close_name(le32toh(in->close.reason)), in->close.text);
		return PVR_HANDSHAKE_FAILED;
	}
	if (!check_reads(handshake))
		return fail(err,
			    "a queue pair with RDMA READs and no RNDV, or the other way round");
	if (!handshake->num_got++ && le32toh(in->hello.features) & PVR_HELLO_F_VERBS)
		return go(handshake, PVR_STEP_READ);
	return go(handshake, handshake->outgoing ? PVR_STEP_DONE : PVR_STEP_DECIDE);
}

static enum pvr_handshake_result run_read(struct pvr_handshake *handshake,
					  struct pvr_stream *stream, struct pvr_error *err)
{
	const char *why = "it is not a pvrdma daemon";
	size_t size = expected_size(handshake, &why);
	struct iovec iov;
	ssize_t n;

	if (!size)
		return fail(err, why);
	iov.iov_base = (char *)&handshake->in[handshake->num_got] + handshake->pos;
	iov.iov_len = size - handshake->pos;
	n = pvr_stream_recv(stream, &iov, 1);
	if (n < 0)
		return broken(stream, err, n);
	if (!n)
		return PVR_HANDSHAKE_WAIT;
	handshake->pos += (size_t)n;
	if (handshake->pos < size || size == sizeof(struct pvr_frame))
		return PVR_HANDSHAKE_GO_ON;
	return take_frame(handshake, err);
}

static enum pvr_handshake_result run_decide(struct pvr_handshake *handshake,
					    struct pvr_stream *stream, struct pvr_error *err)
{
	return PVR_HANDSHAKE_HELLO;
}

static enum pvr_handshake_result run_done(struct pvr_handshake *handshake,
					  struct pvr_stream *stream, struct pvr_error *err)
{
	return PVR_HANDSHAKE_DONE;
}

static const struct {
	const char *name; /* the step that is not done yet */
	enum pvr_handshake_result (*run)(struct pvr_handshake *handshake, struct pvr_stream *stream,
					 struct pvr_error *err);
} steps[] = {
	[PVR_STEP_CONNECT] = { "connect", run_connect },
	[PVR_STEP_SECURE] = { "TLS handshake", run_secure },
	[PVR_STEP_SEND] = { "HELLO", run_send },
	[PVR_STEP_READ] = { "HELLO", run_read },
	[PVR_STEP_DECIDE] = { "answer", run_decide },
	[PVR_STEP_DONE] = { "nothing", run_done },
};

static_assert(sizeof(steps) / sizeof(steps[0]) == PVR_STEPS, "a step is missing");

const char *pvr_handshake_step_name(enum pvr_handshake_step step)
{
	return steps[step].name;
}

void pvr_handshake_init(struct pvr_handshake *handshake, const struct pvr_hello *hello)
{
	memset(handshake, 0, sizeof(*handshake));
	handshake->outgoing = hello != NULL;
	handshake->step = hello ? PVR_STEP_CONNECT : PVR_STEP_SECURE;
	handshake->num_out = 1;
	if (hello)
		pvr_hello_write(&handshake->out[0], hello);
}

void pvr_handshake_add(struct pvr_handshake *handshake, const union pvr_any_frame *frame)
{
	handshake->out[handshake->num_out++] = *frame;
}

const union pvr_any_frame *pvr_handshake_queue_pair(const struct pvr_handshake *handshake)
{
	return handshake->num_got > 1 ? &handshake->in[1] : NULL;
}

enum pvr_handshake_result pvr_handshake_run(struct pvr_handshake *handshake,
					    struct pvr_stream *stream, struct pvr_error *err)
{
	enum pvr_handshake_result result;

	do {
		result = steps[handshake->step].run(handshake, stream, err);
	} while (result == PVR_HANDSHAKE_GO_ON);
	return result;
}

void pvr_handshake_answer(struct pvr_handshake *handshake, const struct pvr_hello *hello)
{
	pvr_hello_write(&handshake->out[0], hello);
	go(handshake, PVR_STEP_SEND);
}
