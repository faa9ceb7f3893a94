// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tests of rdma_cm with misbehaving peers:
 *
 *  pvr_cm -l COUNT          accepts COUNT connections, leaves as many requests without a response, closes
 *                           its listener while others arrive
 *  pvr_cm -f COUNT SERVER   COUNT connections at once: each must end, with or without success
 *  pvr_cm -e                accepts with the maximum of private data, and with more
 *  pvr_cm -p SERVER         connects with the maximum, and with more
 *  pvr_cm -s                accepts a connection and leaves it idle
 *  pvr_cm -w SERVER         connects, idles, and reports how it detects that the peer is gone
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/rdma_cma.h>

#include "oob.h"
#include "rdma.h"

#define PORT "18700"
#define BACKLOG 128
#define RESOLVE_MS 5000
/* The CM retries for about one minute. */
#define HANG_SECONDS 150.0

enum outcome { PENDING, CONNECTED, DISCONNECTED, REJECTED, UNREACHABLE, FAILED, OUTCOMES };

static const char *const outcome_names[OUTCOMES] = {
	[PENDING] = "without end", [CONNECTED] = "connected",	  [DISCONNECTED] = "disconnected",
	[REJECTED] = "rejected",   [UNREACHABLE] = "unreachable", [FAILED] = "failed",
};

struct connection {
	struct rdma_cm_id *id;
	enum outcome outcome;
};

static struct rdma_cm_id *id_create(struct rdma_event_channel *channel, void *context,
				    enum rdma_port_space space)
{
	struct rdma_cm_id *id;

	MUST(rdma_create_id(channel, &id, context, space));
	return id;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	MUST(rdma_create_qp(id, NULL, &attr));
}

static void id_end(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	MUST(rdma_destroy_id(id));
}

/* The IPv4 addresses of a host, or NULL: all addresses of this one. */
static struct addrinfo *address_of(const char *host)
{
	struct addrinfo hints = { .ai_flags = host ? 0 : AI_PASSIVE, .ai_family = AF_INET };
	struct addrinfo *found;
	int err = getaddrinfo(host, PORT, &hints, &found);

	if (err)
		die("%s: %s", host ? host : "any address", gai_strerror(err));
	return found;
}

static struct rdma_cm_id *listen_at(struct rdma_event_channel *channel, enum rdma_port_space space)
{
	struct rdma_cm_id *id = id_create(channel, NULL, space);
	struct addrinfo *any = address_of(NULL);

	MUST(rdma_bind_addr(id, any->ai_addr));
	MUST(rdma_listen(id, BACKLOG));
	freeaddrinfo(any);
	return id;
}

static void resolve(struct rdma_cm_id *id, const char *server)
{
	struct addrinfo *found = address_of(server);

	MUST(rdma_resolve_addr(id, NULL, found->ai_addr, RESOLVE_MS));
	freeaddrinfo(found);
}

/* Returns the next event, or NULL if there is none before a time of now(). */
static struct rdma_cm_event *event_before(struct rdma_event_channel *channel, double until)
{
	struct pollfd wait = { .fd = channel->fd, .events = POLLIN };
	double left = until - now();
	struct rdma_cm_event *event;

	if (poll(&wait, 1, left > 0 ? (int)(left * 1000) : 0) <= 0)
		return NULL;
	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event:");
	return event;
}

static struct rdma_cm_event *next_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = event_before(channel, now() + HANG_SECONDS);

	if (!event)
		die("nothing happens for %.0f s", HANG_SECONDS);
	return event;
}

/* ------------------------------------------------------------------ private data */

/* Private data of the CM's messages that are left to users of rdma_cm. */
static const struct space {
	const char *name;
	enum rdma_port_space space;
	uint8_t request, reply;
} spaces[] = {
	{ "RC", RDMA_PS_TCP, 92 - 36, 196 },
	{ "UD", RDMA_PS_UDP, 216 - 36, 136 },
};
#define SPACES (sizeof(spaces) / sizeof(spaces[0]))

/* First byte of the private data of requests and of replies; each next byte is one more. */
#define OF_REQUEST 1
#define OF_REPLY 101

static void fill(uint8_t *data, size_t len, uint8_t first)
{
	for (size_t i = 0; i < len; i++)
		data[i] = first + i;
}

static void check(const struct rdma_cm_event *event, size_t expected_len, uint8_t first)
{
	bool ud = event->id->ps == RDMA_PS_UDP;
	const uint8_t *data = ud ? event->param.ud.private_data : event->param.conn.private_data;
	size_t len = ud ? event->param.ud.private_data_len : event->param.conn.private_data_len;
	uint8_t expected[256];

	fill(expected, expected_len, first);
	if (len < expected_len || memcmp(data, expected, expected_len))
		die("%zu bytes of private data, or others than the %zu that were sent", len,
		    expected_len);
}

/* Return: the errno of rdma_connect() or rdma_accept() with so many bytes of private data. */
static int call_with(int (*call)(struct rdma_cm_id *, struct rdma_conn_param *),
		     struct rdma_cm_id *id, size_t len, uint8_t first)
{
	uint8_t data[256];
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = len,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = id->qp ? id->qp->qp_num : 0,
	};

	fill(data, len, first);
	return call(id, &param) ? errno : 0;
}

static int connect_with(struct rdma_cm_id *id, size_t len)
{
	return call_with(rdma_connect, id, len, OF_REQUEST);
}

static int accept_with(struct rdma_cm_id *id, size_t len)
{
	make_qp(id);
	return call_with(rdma_accept, id, len, OF_REPLY);
}

/* ------------------------------------------------------------------ many at once */

/* Handles the next event of a connection. Returns its result if it has ended. */
static enum outcome advance(struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return rdma_resolve_route(event->id, RESOLVE_MS) ? FAILED : PENDING;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_qp(event->id);
		return connect_with(event->id, 0) ? FAILED : PENDING;
	case RDMA_CM_EVENT_ESTABLISHED:
		return CONNECTED;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(event->id);
		return DISCONNECTED;
	case RDMA_CM_EVENT_REJECTED:
		return REJECTED;
	case RDMA_CM_EVENT_UNREACHABLE:
		return UNREACHABLE;
	default:
		return FAILED;
	}
}

static void print_outcomes(const struct connection *all, size_t count)
{
	size_t numbers[OUTCOMES] = { 0 };

	for (size_t i = 0; i < count; i++)
		numbers[all[i].outcome]++;
	printf("flood:");
	for (size_t i = 0; i < OUTCOMES; i++)
		printf(" %zu %s", numbers[i], outcome_names[i]);
	printf("\n");
}

static bool over(enum outcome outcome)
{
	return outcome != PENDING && outcome != CONNECTED;
}

static void flood(const char *server, size_t count)
{
	struct rdma_event_channel *channel = MUST_HAVE(rdma_create_event_channel());
	struct connection *all = MUST_HAVE(calloc(count, sizeof(*all)));
	double end = now() + HANG_SECONDS;
	size_t left = count;

	for (size_t i = 0; i < count; i++) {
		all[i].id = id_create(channel, &all[i], RDMA_PS_TCP);
		resolve(all[i].id, server);
	}
	while (left) {
		struct rdma_cm_event *event = event_before(channel, end);
		struct connection *connection;
		enum outcome outcome;

		if (!event)
			break;
		connection = event->id->context;
		outcome = advance(event);
		if (outcome != PENDING && !over(connection->outcome)) {
			connection->outcome = outcome;
			left -= over(outcome);
		}
		rdma_ack_cm_event(event);
	}
	print_outcomes(all, count);
	for (size_t i = 0; i < count; i++)
		id_end(all[i].id);
	free(all);
	rdma_destroy_event_channel(channel);
	if (left)
		die("%zu connections have not come to an end", left);
}

/* ------------------------------------------------------------------ a listener that goes */

static void close_amid_requests(size_t count)
{
	struct rdma_event_channel *channel = MUST_HAVE(rdma_create_event_channel());
	struct rdma_cm_id *listener = listen_at(channel, RDMA_PS_TCP);
	struct rdma_cm_id **taken = MUST_HAVE(calloc(2 * count, sizeof(*taken)));
	size_t requests = 0;

	while (requests < 2 * count) {
		struct rdma_cm_event *event = next_event(channel);

		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			taken[requests++] = event->id;
			if (requests <= count)
				MUST(accept_with(event->id, 0));
		}
		rdma_ack_cm_event(event);
	}
	id_end(listener);
	printf("listener: closed after %zu requests\n", requests);
	for (size_t i = 0; i < requests; i++) {
		if (i < count)
			rdma_disconnect(taken[i]);
		id_end(taken[i]);
	}
	free(taken);
	rdma_destroy_event_channel(channel);
}

/* ------------------------------------------------------------------ one at a time */

static struct rdma_cm_event *need(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_event(channel);

	if (event->event != type)
		die("%s, status %d, expected %s", rdma_event_str(event->event), event->status,
		    rdma_event_str(type));
	return event;
}

static void await(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(need(channel, type));
}

static void refused(const char *what, const struct space *space, size_t len, int err)
{
	if (err != EINVAL)
		die("%s with %zu bytes of private data for %s: %s, expected EINVAL", what, len,
		    space->name, strerror(err));
}

static struct rdma_cm_id *ready_to_connect(struct rdma_event_channel *channel, const char *server,
					   const struct space *space)
{
	struct rdma_cm_id *id = id_create(channel, NULL, space->space);

	resolve(id, server);
	await(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	MUST(rdma_resolve_route(id, RESOLVE_MS));
	await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id);
	return id;
}

/* The maximum in both directions. */
static void send_most(struct rdma_event_channel *channel, const char *server,
		      const struct space *space)
{
	struct rdma_cm_id *id = ready_to_connect(channel, server, space);
	struct rdma_cm_event *event;

	MUST(connect_with(id, space->request));
	event = need(channel, RDMA_CM_EVENT_ESTABLISHED);
	check(event, space->reply, OF_REPLY);
	rdma_ack_cm_event(event);
	if (space->space == RDMA_PS_TCP)
		MUST(rdma_disconnect(id));
	id_end(id);
}

static void send_too_much(struct rdma_event_channel *channel, const char *server,
			  const struct space *space, size_t len)
{
	struct rdma_cm_id *id = ready_to_connect(channel, server, space);

	refused("rdma_connect", space, len, connect_with(id, len));
	id_end(id);
}

/* The server tries to accept with too much. */
static void be_rejected(struct rdma_event_channel *channel, const char *server,
			const struct space *space)
{
	struct rdma_cm_id *id = ready_to_connect(channel, server, space);
	struct rdma_cm_event *event;

	MUST(connect_with(id, 0));
	event = next_event(channel);
	if (event->event != RDMA_CM_EVENT_REJECTED && event->event != RDMA_CM_EVENT_UNREACHABLE)
		die("%s instead of a rejection", rdma_event_str(event->event));
	rdma_ack_cm_event(event);
	id_end(id);
}

static void send_private(const char *server)
{
	struct rdma_event_channel *channel = MUST_HAVE(rdma_create_event_channel());
	const struct space *space;

	for (space = spaces; space < spaces + SPACES; space++) {
		send_too_much(channel, server, space, space->request + 1);
		send_too_much(channel, server, space, 255);
		send_most(channel, server, space);
		be_rejected(channel, server, space);
		printf("private data: %s, %u there, %u back\n", space->name, space->request,
		       space->reply);
	}
	rdma_destroy_event_channel(channel);
}

/* The next connection request, which has so many bytes of private data or more. */
static struct rdma_cm_id *next_request(struct rdma_event_channel *channel, size_t len)
{
	struct rdma_cm_event *event = need(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = event->id;

	check(event, len, OF_REQUEST);
	rdma_ack_cm_event(event);
	return id;
}

static void serve_until_disconnected(struct rdma_event_channel *channel)
{
	await(channel, RDMA_CM_EVENT_ESTABLISHED);
	await(channel, RDMA_CM_EVENT_DISCONNECTED);
}

static void answer_private(void)
{
	struct rdma_event_channel *channels[SPACES];
	struct rdma_cm_id *listeners[SPACES], *id;
	const struct space *space;

	for (size_t i = 0; i < SPACES; i++) {
		channels[i] = MUST_HAVE(rdma_create_event_channel());
		listeners[i] = listen_at(channels[i], spaces[i].space);
	}
	for (size_t i = 0; i < SPACES; i++) {
		space = &spaces[i];
		id = next_request(channels[i], space->request);
		MUST(accept_with(id, space->reply));
		if (space->space == RDMA_PS_TCP)
			serve_until_disconnected(channels[i]);
		id_end(id);
		id = next_request(channels[i], 0);
		refused("rdma_accept", space, space->reply + 1, accept_with(id, space->reply + 1));
		id_end(id);
		id_end(listeners[i]);
		rdma_destroy_event_channel(channels[i]);
	}
}

/* ------------------------------------------------------------------ an idle connection */

static void stay(void)
{
	struct rdma_event_channel *channel = MUST_HAVE(rdma_create_event_channel());
	struct rdma_cm_id *listener = listen_at(channel, RDMA_PS_TCP);
	struct rdma_cm_id *id = next_request(channel, 0);

	MUST(accept_with(id, 0));
	serve_until_disconnected(channel);
	id_end(id);
	id_end(listener);
	rdma_destroy_event_channel(channel);
}

static void print_completion(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(id->recv_cq, 1, &wc) != 1)
		die("an event without a completion");
	printf("watch: completion, %s\n", ibv_wc_status_str(wc.status));
}

static void print_async_event(struct rdma_cm_id *id)
{
	struct ibv_async_event event;

	MUST(ibv_get_async_event(id->verbs, &event));
	printf("watch: async event, %s\n", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
}

static void print_cm_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = next_event(channel);

	printf("watch: rdma_cm, %s\n", rdma_event_str(event->event));
	rdma_ack_cm_event(event);
}

static void watch(const char *server)
{
	struct rdma_event_channel *channel = MUST_HAVE(rdma_create_event_channel());
	struct rdma_cm_id *id = ready_to_connect(channel, server, &spaces[0]);
	struct pollfd wait[3] = {
		{ .fd = id->recv_cq_channel->fd, .events = POLLIN },
		{ .fd = id->verbs->async_fd, .events = POLLIN },
		{ .fd = channel->fd, .events = POLLIN },
	};

	post_recv(id->qp, .num_sge = 0);
	MUST(ibv_req_notify_cq(id->recv_cq, 0));
	MUST(connect_with(id, 0));
	await(channel, RDMA_CM_EVENT_ESTABLISHED);
	printf("watch: connected\n");
	fflush(stdout);
	if (poll(wait, 3, (int)(HANG_SECONDS * 1000)) <= 0)
		die("nothing happens for %.0f s", HANG_SECONDS);
	/* The others may arrive later. */
	sleep(1);
	poll(wait, 3, 0);
	if (wait[0].revents)
		print_completion(id);
	if (wait[1].revents)
		print_async_event(id);
	if (wait[2].revents)
		print_cm_event(channel);
	rdma_disconnect(id);
	id_end(id);
	rdma_destroy_event_channel(channel);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "-f") && argc == 4)
		flood(argv[3], strtoul(argv[2], NULL, 10));
	else if (!strcmp(mode, "-l") && argc == 3)
		close_amid_requests(strtoul(argv[2], NULL, 10));
	else if (!strcmp(mode, "-p") && argc == 3)
		send_private(argv[2]);
	else if (!strcmp(mode, "-w") && argc == 3)
		watch(argv[2]);
	else if (!strcmp(mode, "-s") && argc == 2)
		stay();
	else if (!strcmp(mode, "-e") && argc == 2)
		answer_private();
	else
		die("usage: pvr_cm -l COUNT | -f COUNT SERVER | -e | -p SERVER | -s | -w SERVER");
	return 0;
}
