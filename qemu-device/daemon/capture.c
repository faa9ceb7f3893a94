// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Captures: packets of an adapter as a pcapng stream on a control connection.
 *
 * Source of the format: IETF draft-ietf-opsawg-pcapng.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/capture.h"
#include "daemon/log.h"

#define RING_BYTES (4u << 20)
#define FLUSH_NS (10 * PVR_MSEC)

/* Blocks, and their options. */
#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET 6u
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINKTYPE_ETHERNET 1u
#define OPT_END 0
#define OPT_COMMENT 1
#define OPT_IF_NAME 2
#define OPT_IF_TSRESOL 9
#define OPT_USERAPPL 4
#define OPT_EPB_FLAGS 2
#define OPT_EPB_DROPCOUNT 4
#define FLAGS_INBOUND 1u
#define FLAGS_OUTBOUND 2u
#define NANOSECONDS 9 /* 10^-9 s */
/* A packet block without its data: header, options, comment. */
#define PACKET_EXTRA_MAX 256u

/* A block that is built in memory. */
struct block {
	uint8_t data[PVR_CAPTURE_SNAPLEN_MAX + PACKET_EXTRA_MAX];
	size_t bytes;
};

struct pvr_capture_session {
	struct pvr_source source;
	struct pvr_loop_timer flush;
	struct pvr_capture capture;
	struct pvr_daemon *daemon;
	struct pvr_attach *attach;
	LIST_ENTRY(pvr_capture_session) link;
	uint64_t sent; /* bytes */
	bool is_streaming;
	bool is_ending; /* the client wants no more packets: send those in the ring */

	pthread_mutex_t lock; /* protects the members below; held for a copy of a packet */
	uint8_t *ring;
	size_t head, used; /* the bytes to send */
	uint64_t packets, dropped;
	uint64_t dropped_before; /* since the last packet in the ring */
	uint64_t time; /* of the last packet; packets have increasing times */
	struct block block; /* that is being built */
};

/* ---------------------------------------------------------------------- pcapng blocks */

static void add(struct block *block, const void *data, size_t bytes)
{
	memcpy(block->data + block->bytes, data, bytes);
	block->bytes += bytes;
	while (block->bytes % 4)
		block->data[block->bytes++] = 0;
}

static void add32(struct block *block, uint32_t value)
{
	add(block, &value, sizeof(value));
}

static void add_option(struct block *block, uint16_t code, const void *data, size_t bytes)
{
	const uint16_t head[2] = { code, (uint16_t)bytes };

	add(block, head, sizeof(head));
	add(block, data, bytes);
}

static void begin(struct block *block, uint32_t type)
{
	block->bytes = 0;
	add32(block, type);
	add32(block, 0);
}

static void end(struct block *block)
{
	uint32_t bytes;

	add_option(block, OPT_END, "", 0);
	bytes = (uint32_t)block->bytes + sizeof(bytes);
	memcpy(block->data + 4, &bytes, sizeof(bytes));
	add32(block, bytes);
}

static void build_section(struct block *block)
{
	static const char program[] = "pvrdmad " PVR_PACKAGE_VERSION;
	const uint16_t version[2] = { 1, 0 };
	const uint64_t unknown = UINT64_MAX;

	begin(block, BLOCK_SECTION);
	add32(block, BYTE_ORDER_MAGIC);
	add(block, version, sizeof(version));
	add(block, &unknown, sizeof(unknown));
	add_option(block, OPT_USERAPPL, program, strlen(program));
	end(block);
}

static void build_interface(struct block *block, const char *name, uint32_t snaplen)
{
	const uint8_t resolution = NANOSECONDS;

	begin(block, BLOCK_INTERFACE);
	add32(block, LINKTYPE_ETHERNET);
	add32(block, snaplen);
	add_option(block, OPT_IF_NAME, name, strlen(name));
	add_option(block, OPT_IF_TSRESOL, &resolution, sizeof(resolution));
	end(block);
}

static void build_packet(struct block *block, const struct pvr_captured *packet, uint64_t time,
			 uint64_t dropped)
{
	const uint32_t flags = packet->outgoing ? FLAGS_OUTBOUND : FLAGS_INBOUND;

	begin(block, BLOCK_PACKET);
	add32(block, 0); /* the interface */
	add32(block, (uint32_t)(time >> 32));
	add32(block, (uint32_t)time);
	add32(block, packet->bytes);
	add32(block, packet->original);
	add(block, packet->data, packet->bytes);
	add_option(block, OPT_EPB_FLAGS, &flags, sizeof(flags));
	if (dropped)
		add_option(block, OPT_EPB_DROPCOUNT, &dropped, sizeof(dropped));
	if (packet->comment)
		add_option(block, OPT_COMMENT, packet->comment, strlen(packet->comment));
	end(block);
}

/* ---------------------------------------------------------------------------- the ring */

/* Return: false if it has no room. */
static bool append(struct pvr_capture_session *session, const struct block *block)
{
	size_t tail = (session->head + session->used) % RING_BYTES, first = RING_BYTES - tail;

	if (block->bytes > RING_BYTES - session->used)
		return false;
	if (first > block->bytes)
		first = block->bytes;
	memcpy(session->ring + tail, block->data, first);
	memcpy(session->ring, block->data + first, block->bytes - first);
	session->used += block->bytes;
	return true;
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * PVR_SEC + (uint64_t)now.tv_nsec;
}

/* Called by workers. */
static void take_packet(void *opaque, const struct pvr_captured *packet)
{
	struct pvr_capture_session *session = opaque;
	uint64_t now = clock_ns();

	pthread_mutex_lock(&session->lock);
	session->time = now > session->time ? now : session->time + 1;
	build_packet(&session->block, packet, session->time, session->dropped_before);
	if (append(session, &session->block)) {
		session->packets++;
		session->dropped_before = 0;
	} else {
		session->dropped++;
		session->dropped_before++;
	}
	pthread_mutex_unlock(&session->lock);
}

/* Return: the bytes to send from session->ring + *@at on. */
static size_t pending(struct pvr_capture_session *session, size_t *at)
{
	size_t bytes;

	pthread_mutex_lock(&session->lock);
	*at = session->head;
	bytes = session->used;
	if (bytes > RING_BYTES - session->head)
		bytes = RING_BYTES - session->head;
	pthread_mutex_unlock(&session->lock);
	return bytes;
}

static void consume(struct pvr_capture_session *session, size_t bytes)
{
	pthread_mutex_lock(&session->lock);
	session->head = (session->head + bytes) % RING_BYTES;
	session->used -= bytes;
	pthread_mutex_unlock(&session->lock);
	session->sent += bytes;
}

/* At most the whole ring is sent. Return: false if the client is gone, or has all. */
static bool send_pending(struct pvr_capture_session *session)
{
	size_t budget = RING_BYTES, bytes, at;
	ssize_t n;

	while (budget && (bytes = pending(session, &at))) {
		if (bytes > budget)
			bytes = budget;
		n = send(session->source.fd, session->ring + at, bytes,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return pvr_loop_modify(&session->source, session->is_ending
									 ? EPOLLOUT
									 : EPOLLIN | EPOLLOUT) == 0;
		if (n <= 0)
			return false;
		consume(session, (size_t)n);
		budget -= (size_t)n;
	}
	return !session->is_ending && pvr_loop_modify(&session->source, EPOLLIN) == 0;
}

/* ------------------------------------------------------------------------- a session */

static void set(struct pvr_capture_session *session, const struct pvr_capture *capture)
{
	pvr_worker_pool_pause(&session->daemon->pool);
	pvr_adapter_set_capture(pvr_attach_adapter(session->attach), capture);
	pvr_worker_pool_resume(&session->daemon->pool);
}

/* A client sends nothing: input, or the end of it, ends the capture. */
static void client_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_capture_session *session = (struct pvr_capture_session *)source;

	if (events & EPOLLIN && !session->is_ending) {
		session->is_ending = true;
		set(session, NULL);
	}
	if (events & (EPOLLERR | EPOLLHUP) || !send_pending(session))
		pvr_capture_end(session);
}

static void flush_expired(struct pvr_loop_timer *timer)
{
	struct pvr_capture_session *session =
		(struct pvr_capture_session *)((char *)timer -
					       offsetof(struct pvr_capture_session, flush));

	pvr_loop_timer_arm(session->daemon->loop, timer, FLUSH_NS);
	if (!send_pending(session))
		pvr_capture_end(session);
}

static const char *name_of(const struct pvr_capture_session *session)
{
	return pvr_adapter_name(pvr_attach_adapter(session->attach));
}

static bool may_start(const struct pvr_daemon *daemon, const struct pvr_attach *attach,
		      struct pvr_error *err)
{
	const struct pvr_capture_session *session;
	unsigned int num = 0;

	LIST_FOREACH(session, &daemon->captures, link) {
		if (session->attach == attach)
			return pvr_fail(err, "adapter '%s' has a capture already",
					name_of(session));
		num++;
	}
	return num < PVR_CAPTURES_MAX ||
	       pvr_fail(err, "pvrdmad has %u captures already, which is the limit", num);
}

static struct pvr_capture_session *create(struct pvr_daemon *daemon, struct pvr_attach *attach)
{
	struct pvr_capture_session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	session->ring = malloc(RING_BYTES);
	if (!session->ring) {
		free(session);
		return NULL;
	}
	pthread_mutex_init(&session->lock, NULL);
	session->daemon = daemon;
	session->attach = attach;
	session->source.fd = -1;
	session->source.ready = client_ready;
	session->flush.expired = flush_expired;
	return session;
}

struct pvr_capture_session *pvr_capture_start(struct pvr_daemon *daemon, struct pvr_attach *attach,
					      uint32_t snaplen, bool payload, struct pvr_error *err)
{
	struct pvr_capture_session *session;

	if (!may_start(daemon, attach, err))
		return NULL;
	session = create(daemon, attach);
	if (!session) {
		pvr_fail(err, "out of memory");
		return NULL;
	}
	LIST_INSERT_HEAD(&daemon->captures, session, link);
	build_section(&session->block);
	append(session, &session->block);
	build_interface(&session->block, name_of(session), snaplen);
	append(session, &session->block);
	session->capture = (struct pvr_capture){
		.snaplen = snaplen,
		.payload = payload,
		.packet = take_packet,
		.opaque = session,
	};
	set(session, &session->capture);
	pvrd_log(payload ? PVR_LOG_WARN : PVR_LOG_INFO, name_of(session), "capture of %s begins",
		 payload ? "headers and payload" : "headers");
	return session;
}

void pvr_capture_stream(struct pvr_capture_session *session, int fd)
{
	session->source.fd = fd;
	session->is_streaming = !pvr_loop_add(session->daemon->loop, &session->source, EPOLLIN);
	if (!session->is_streaming) {
		pvr_capture_end(session);
		return;
	}
	pvr_loop_timer_arm(session->daemon->loop, &session->flush, 0);
}

void pvr_capture_end(struct pvr_capture_session *session)
{
	if (!session)
		return;
	set(session, NULL);
	pvrd_log(PVR_LOG_INFO, name_of(session),
		 "capture ends: %llu packets, %llu dropped because the client was too slow",
		 (unsigned long long)session->packets, (unsigned long long)session->dropped);
	LIST_REMOVE(session, link);
	if (session->is_streaming) {
		pvr_loop_timer_disarm(&session->flush);
		pvr_loop_remove(&session->source);
	}
	if (session->source.fd >= 0)
		close(session->source.fd);
	pthread_mutex_destroy(&session->lock);
	free(session->ring);
	free(session);
}

void pvr_captures_end(struct pvr_daemon *daemon, const struct pvr_attach *attach)
{
	struct pvr_capture_session *session, *next;

	for (session = LIST_FIRST(&daemon->captures); session; session = next) {
		next = LIST_NEXT(session, link);
		if (!attach || session->attach == attach)
			pvr_capture_end(session);
	}
}
