// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A segment by a Unix socket, as QEMU's "-netdev stream" has it: each frame behind its length,
 * four bytes in network order. It needs no privilege.
 *
 * The daemon listens and QEMU connects; a hub of QEMU joins this socket, the VM's NIC and its
 * network. One connection at a time: a new one replaces the last one.
 */
#include "segment/kind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unix_socket.h"

#define LENGTH_BYTES 4u
/* The largest frame that QEMU sends is one of a NIC with segmentation offload. */
#define FRAME_MAX (68u << 10)
#define INPUT_BYTES (256u << 10)
#define OUTPUT_BYTES (16u << 10)
/* Frames that are handled at once, and receptions before other sources have their turn. */
#define BATCH 64u
#define RECEPTIONS 4u
#define SOCKET_BUFFER (1 << 20)
/* The MTU of the VM's NIC, which QEMU does not tell: RoCE packets have 1024 bytes. */
#define MTU 1500

struct stream {
	struct pvr_segment segment;
	struct pvr_source listener;
	struct pvr_source source;
	/* The thread of the loop uses it alone. */
	uint8_t *input;
	size_t filled;
	bool has_more; /* whole frames are left for the next turn */
	/* Protects the members below, which send() uses in any thread. */
	pthread_mutex_t lock;
	int fd; /* -1: no connection; also that of @source */
	uint8_t output[OUTPUT_BYTES]; /* the rest of a frame that was sent in part */
	size_t rest;
};

/* ------------------------------------------------------------------------------- output */

/* The lock is held. Return: whether nothing is left. */
static bool flush(struct stream *stream)
{
	ssize_t n;

	if (!stream->rest)
		return true;
	n = send(stream->fd, stream->output, stream->rest, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n <= 0)
		return false;
	stream->rest -= (size_t)n;
	memmove(stream->output, stream->output + n, stream->rest);
	return !stream->rest;
}

/* Keeps what the socket has not taken of a frame. */
static void keep_rest(struct stream *stream, const struct iovec iov[2], size_t sent)
{
	size_t skip;
	int i;

	stream->rest = 0;
	for (i = 0; i < 2; i++) {
		skip = sent < iov[i].iov_len ? sent : iov[i].iov_len;
		sent -= skip;
		memcpy(stream->output + stream->rest, (const uint8_t *)iov[i].iov_base + skip,
		       iov[i].iov_len - skip);
		stream->rest += iov[i].iov_len - skip;
	}
}

/* Sends a batch in one system call. Return: frames that were taken, of which one may be kept. */
static unsigned int send_batch(struct stream *stream, const struct pvr_port_frame *frames,
			       unsigned int count)
{
	uint32_t lengths[BATCH];
	struct iovec iov[2 * BATCH];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 * (size_t)count };
	unsigned int i;
	ssize_t n;
	size_t left;

	for (i = 0; i < count; i++) {
		lengths[i] = htonl(frames[i].bytes);
		iov[2 * i] = (struct iovec){ &lengths[i], sizeof(lengths[i]) };
		iov[2 * i + 1] = (struct iovec){ frames[i].data, frames[i].bytes };
	}
	n = sendmsg(stream->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == ENOBUFS ? 0 : count;
	left = (size_t)n;
	for (i = 0; i < count && left >= LENGTH_BYTES + frames[i].bytes; i++)
		left -= LENGTH_BYTES + frames[i].bytes;
	if (i == count || !left)
		return i;
	keep_rest(stream, &iov[2 * i], left);
	return i + 1;
}

static unsigned int send_locked(struct stream *stream, const struct pvr_port_frame *frames,
				unsigned int count)
{
	unsigned int done = 0, n, taken;

	/* Without a connection frames are lost, as on a cable that is not plugged in. */
	if (stream->fd < 0)
		return count;
	do {
		if (!flush(stream))
			return done;
		n = count - done < BATCH ? count - done : BATCH;
		taken = send_batch(stream, frames + done, n);
		done += taken;
	} while (done < count && taken == n && !stream->rest);
	return done;
}

static unsigned int port_send(void *opaque, const struct pvr_port_frame *frames, unsigned int count)
{
	struct stream *stream = opaque;
	unsigned int taken;

	pthread_mutex_lock(&stream->lock);
	taken = send_locked(stream, frames, count);
	pthread_mutex_unlock(&stream->lock);
	return taken;
}

static const struct pvr_port_ops port_ops = { .send = port_send };

/* -------------------------------------------------------------------------------- input */

static void disconnect(struct stream *stream)
{
	int fd = stream->fd;

	if (fd < 0)
		return;
	pvr_loop_remove(&stream->source);
	pthread_mutex_lock(&stream->lock);
	stream->fd = -1;
	stream->rest = 0;
	pthread_mutex_unlock(&stream->lock);
	close(fd);
	stream->source.fd = -1;
	stream->filled = 0;
	stream->has_more = false;
}

/* Lists whole frames. Return: their number, or -1 for a bad length. */
static int list_frames(const struct stream *stream, struct pvr_port_frame frames[BATCH])
{
	size_t used = 0;
	uint32_t length;
	int n = 0;

	while (n < (int)BATCH && stream->filled - used >= LENGTH_BYTES) {
		memcpy(&length, stream->input + used, sizeof(length));
		length = ntohl(length);
		if (length > FRAME_MAX)
			return -1;
		if (stream->filled - used - LENGTH_BYTES < length)
			break;
		frames[n++] = (struct pvr_port_frame){
			.data = stream->input + used + LENGTH_BYTES,
			.bytes = length,
		};
		used += LENGTH_BYTES + length;
	}
	return n;
}

/* Return: false if the peer does not send frames. */
static bool take_frames(struct stream *stream)
{
	struct pvr_port_frame frames[BATCH];
	int n, done = 0;
	size_t used;

	do {
		n = list_frames(stream, frames);
		if (n <= 0)
			break;
		done = (int)pvr_port_input(stream->segment.port, frames, (unsigned int)n);
		used = (size_t)(frames[done - 1].data - stream->input) + frames[done - 1].bytes;
		stream->filled -= used;
		memmove(stream->input, stream->input + used, stream->filled);
	} while (n == (int)BATCH && done == n);
	stream->has_more = n > 0 && done < n;
	return n >= 0;
}

/* Return: whether more may be there. */
static bool receive(struct stream *stream)
{
	ssize_t n = recv(stream->fd, stream->input + stream->filled, INPUT_BYTES - stream->filled,
			 MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		pvr_segment_say(&stream->segment, PVR_LOG_INFO, "the segment has disconnected", "");
		disconnect(stream);
		return false;
	}
	stream->filled += (size_t)n;
	return true;
}

/* Return: false if the connection has ended. */
static bool take(struct stream *stream)
{
	if (take_frames(stream))
		return true;
	pvr_segment_say(&stream->segment, PVR_LOG_WARN,
			"a frame longer than 68 KiB: closed the connection;",
			" expected QEMU's -netdev stream there");
	disconnect(stream);
	return false;
}

/* Edge-triggered, so that the end of a full socket is an event, too. */
static void stream_ready(struct pvr_source *source, uint32_t events)
{
	struct stream *stream = (struct stream *)((char *)source - offsetof(struct stream, source));
	unsigned int i;

	(void)events;
	pthread_mutex_lock(&stream->lock);
	flush(stream);
	pthread_mutex_unlock(&stream->lock);
	for (i = 0; i < RECEPTIONS; i++) {
		/* Frames that the last turn has left come first. */
		if ((!stream->has_more && !receive(stream)) || !take(stream))
			return;
		pvr_loop_worked(stream->segment.loop);
		if (stream->has_more)
			break;
	}
	pvr_loop_again(source);
}

static void listener_ready(struct pvr_source *source, uint32_t events)
{
	struct stream *stream =
		(struct stream *)((char *)source - offsetof(struct stream, listener));
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int buffer = SOCKET_BUFFER;

	(void)events;
	if (fd < 0)
		return;
	disconnect(stream);
	/* A larger buffer is for speed only. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)) < 0)
		pvr_segment_say(&stream->segment, PVR_LOG_DEBUG,
				"cannot set the socket's buffer: ", strerror(errno));
	stream->source.fd = fd;
	if (pvr_loop_add(stream->segment.loop, &stream->source, EPOLLIN | EPOLLOUT | EPOLLET) < 0) {
		pvr_segment_say(&stream->segment, PVR_LOG_ERR,
				"cannot watch a connection: ", strerror(errno));
		close(fd);
		stream->source.fd = -1;
		return;
	}
	pthread_mutex_lock(&stream->lock);
	stream->fd = fd;
	pthread_mutex_unlock(&stream->lock);
	pvr_segment_say(&stream->segment, PVR_LOG_INFO, "the segment has connected", "");
}

/* -------------------------------------------------------------------------------- a life */

static bool open_stream(struct stream *stream, struct pvr_engine *engine, struct pvr_error *err)
{
	const char *path = stream->segment.where;
	bool replaced;

	stream->input = malloc(INPUT_BYTES);
	stream->segment.port = pvr_port_create(engine, path, MTU, &port_ops, stream);
	if (!stream->input || !stream->segment.port)
		return pvr_fail(err, "out of memory");
	stream->listener.fd = pvr_unix_listen(path, &replaced, err);
	if (stream->listener.fd < 0)
		return false;
	if (pvr_loop_add(stream->segment.loop, &stream->listener, EPOLLIN) < 0)
		return pvr_fail(err, "cannot watch the socket %s: %s", path, strerror(errno));
	return true;
}

static void destroy(struct pvr_segment *segment)
{
	struct stream *stream = (struct stream *)segment;

	disconnect(stream);
	pvr_loop_remove(&stream->listener);
	if (stream->listener.fd >= 0) {
		close(stream->listener.fd);
		unlink(segment->where);
	}
	pvr_port_destroy(segment->port);
	pthread_mutex_destroy(&stream->lock);
	free(stream->input);
	free(stream);
}

static struct pvr_segment *create(const struct pvr_segment_env *env, const char *where,
				  struct pvr_error *err)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream) {
		pvr_fail(err, "out of memory");
		return NULL;
	}
	pvr_segment_init(&stream->segment, &pvr_segment_stream, env, where);
	pthread_mutex_init(&stream->lock, NULL);
	stream->fd = -1;
	stream->listener = (struct pvr_source){ .fd = -1, .ready = listener_ready };
	stream->source = (struct pvr_source){ .fd = -1, .ready = stream_ready };
	if (open_stream(stream, env->engine, err))
		return &stream->segment;
	destroy(&stream->segment);
	return NULL;
}

const struct pvr_segment_kind pvr_segment_stream = {
	.prefix = "unix:",
	.create = create,
	.destroy = destroy,
};
