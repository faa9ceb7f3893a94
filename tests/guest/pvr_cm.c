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
#define _GNU_SOURCE
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

static struct rdma_event_channel *channel_create(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	if (!channel)
		die("rdma_create_event_channel:");
	return channel;
}

static struct rdma_cm_id *id_create(struct rdma_event_channel *channel, void *context,
				    enum rdma_port_space space)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, context, space))
		die("rdma_create_id:");
	return id;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp:");
}

static void id_end(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	if (rdma_destroy_id(id))
		die("rdma_destroy_id:");
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

/* ------------------------------------------------------------------ many at once */

static void resolve(struct rdma_cm_id *id, const char *server)
{
	struct addrinfo *found;
	int err = getaddrinfo(server, PORT, NULL, &found);

	if (err)
		die("%s: %s", server, gai_strerror(err));
	if (rdma_resolve_addr(id, NULL, found->ai_addr, RESOLVE_MS))
		die("rdma_resolve_addr:");
	freeaddrinfo(found);
}

/* Handles the next event of a connection. Returns its result if it has ended. */
static enum outcome advance(struct rdma_cm_event *event)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return rdma_resolve_route(event->id, RESOLVE_MS) ? FAILED : PENDING;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_qp(event->id);
		return rdma_connect(event->id, &param) ? FAILED : PENDING;
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

static void tell(const struct connection *all, size_t count)
{
	size_t numbers[OUTCOMES] = { 0 }, i;

	for (i = 0; i < count; i++)
		numbers[all[i].outcome]++;
	printf("flood:");
	for (i = 0; i < OUTCOMES; i++)
		printf(" %zu %s", numbers[i], outcome_names[i]);
	printf("\n");
}

static bool over(enum outcome outcome)
{
	return outcome != PENDING && outcome != CONNECTED;
}

static void flood(const char *server, size_t count)
{
	struct rdma_event_channel *channel = channel_create();
	struct connection *all = calloc(count, sizeof(*all));
	double end = now() + HANG_SECONDS;
	size_t i, left = count;

	if (!all)
		die("no memory");
	for (i = 0; i < count; i++) {
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
	tell(all, count);
	for (i = 0; i < count; i++)
		id_end(all[i].id);
	free(all);
	rdma_destroy_event_channel(channel);
	if (left)
		die("%zu connections have not come to an end", left);
}

/* ------------------------------------------------------------------ a listener that goes */

static struct rdma_cm_id *listen_at(struct rdma_event_channel *channel, enum rdma_port_space space)
{
	struct addrinfo *found, hints = { .ai_flags = AI_PASSIVE, .ai_family = AF_INET };
	struct rdma_cm_id *id = id_create(channel, NULL, space);
	int err = getaddrinfo(NULL, PORT, &hints, &found);

	if (err)
		die("%s", gai_strerror(err));
	if (rdma_bind_addr(id, found->ai_addr))
		die("rdma_bind_addr:");
	if (rdma_listen(id, BACKLOG))
		die("rdma_listen:");
	freeaddrinfo(found);
	return id;
}

static void accept_one(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };

	make_qp(id);
	if (rdma_accept(id, &param))
		die("rdma_accept:");
}

static void close_amid_requests(size_t count)
{
	struct rdma_event_channel *channel = channel_create();
	struct rdma_cm_id *listener = listen_at(channel, RDMA_PS_TCP);
	struct rdma_cm_id **taken = calloc(2 * count, sizeof(struct rdma_cm_id *));
	size_t requests = 0, i;

	if (!taken)
		die("no memory");
	while (requests < 2 * count) {
		struct rdma_cm_event *event = event_before(channel, now() + HANG_SECONDS);

		if (!event)
			die("only %zu requests have come", requests);
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			taken[requests++] = event->id;
			if (requests <= count)
				accept_one(event->id);
		}
		rdma_ack_cm_event(event);
	}
	id_end(listener);
	printf("listener: closed after %zu requests\n", requests);
	for (i = 0; i < requests; i++) {
		if (i < count)
			rdma_disconnect(taken[i]);
		id_end(taken[i]);
	}
	free(taken);
	rdma_destroy_event_channel(channel);
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

static void fill(uint8_t *data, size_t len, uint8_t first)
{
	size_t i;

	for (i = 0; i < len; i++)
		data[i] = first + i;
}

static void check(const struct rdma_cm_event *event, size_t want, uint8_t first)
{
	bool ud = event->id->ps == RDMA_PS_UDP;
	const uint8_t *data = ud ? event->param.ud.private_data : event->param.conn.private_data;
	size_t len = ud ? event->param.ud.private_data_len : event->param.conn.private_data_len;
	uint8_t expected[256];

	fill(expected, want, first);
	if (len < want || memcmp(data, expected, want))
		die("%zu bytes of private data, or others than the %zu that were sent", len, want);
}

static int connect_with(struct rdma_cm_id *id, size_t len)
{
	uint8_t data[256];
	struct rdma_conn_param param = { .private_data = data,
					 .private_data_len = len,
					 .retry_count = 7,
					 .rnr_retry_count = 7 };

	fill(data, len, 1);
	return rdma_connect(id, &param) ? errno : 0;
}

static int accept_with(struct rdma_cm_id *id, size_t len)
{
	uint8_t data[256];
	struct rdma_conn_param param = { .private_data = data,
					 .private_data_len = len,
					 .rnr_retry_count = 7,
					 .qp_num = id->qp ? id->qp->qp_num : 0 };

	fill(data, len, 101);
	return rdma_accept(id, &param) ? errno : 0;
}

static struct rdma_cm_event *next_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = event_before(channel, now() + HANG_SECONDS);

	if (!event)
		die("nothing happens for %.0f s", HANG_SECONDS);
	return event;
}

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
	if (rdma_resolve_route(id, RESOLVE_MS))
		die("rdma_resolve_route:");
	await(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id);
	return id;
}

/* The maximum in both directions. */
static void send_most(struct rdma_event_channel *channel, const char *server,
		      const struct space *space)
{
	struct rdma_cm_id *id = ready_to_connect(channel, server, space);
	int err = connect_with(id, space->request);
	struct rdma_cm_event *event;

	if (err)
		die("rdma_connect: %s", strerror(err));
	event = need(channel, RDMA_CM_EVENT_ESTABLISHED);
	check(event, space->reply, 101);
	rdma_ack_cm_event(event);
	if (space->space == RDMA_PS_TCP && rdma_disconnect(id))
		die("rdma_disconnect:");
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
	int err = connect_with(id, 0);

	if (err)
		die("rdma_connect: %s", strerror(err));
	event = next_event(channel);
	if (event->event != RDMA_CM_EVENT_REJECTED && event->event != RDMA_CM_EVENT_UNREACHABLE)
		die("%s instead of a rejection", rdma_event_str(event->event));
	rdma_ack_cm_event(event);
	id_end(id);
}

static void send_private(const char *server)
{
	struct rdma_event_channel *channel = channel_create();
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

static void answer_most(struct rdma_event_channel *channel, const struct space *space)
{
	struct rdma_cm_event *event = need(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = event->id;
	int err;

	check(event, space->request, 1);
	rdma_ack_cm_event(event);
	make_qp(id);
	err = accept_with(id, space->reply);
	if (err)
		die("rdma_accept: %s", strerror(err));
	if (space->space == RDMA_PS_TCP) {
		await(channel, RDMA_CM_EVENT_ESTABLISHED);
		await(channel, RDMA_CM_EVENT_DISCONNECTED);
	}
	id_end(id);
}

static void answer_too_much(struct rdma_event_channel *channel, const struct space *space)
{
	struct rdma_cm_event *event = need(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = event->id;

	rdma_ack_cm_event(event);
	make_qp(id);
	refused("rdma_accept", space, space->reply + 1, accept_with(id, space->reply + 1));
	id_end(id);
}

static void answer_private(void)
{
	struct rdma_event_channel *channels[SPACES];
	struct rdma_cm_id *listeners[SPACES];
	size_t i;

	for (i = 0; i < SPACES; i++) {
		channels[i] = channel_create();
		listeners[i] = listen_at(channels[i], spaces[i].space);
	}
	for (i = 0; i < SPACES; i++) {
		answer_most(channels[i], &spaces[i]);
		answer_too_much(channels[i], &spaces[i]);
		id_end(listeners[i]);
		rdma_destroy_event_channel(channels[i]);
	}
}

/* ------------------------------------------------------------------ an idle connection */

static void stay(void)
{
	struct rdma_event_channel *channel = channel_create();
	struct rdma_cm_id *listener = listen_at(channel, RDMA_PS_TCP);
	struct rdma_cm_event *event = need(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = event->id;

	rdma_ack_cm_event(event);
	accept_one(id);
	await(channel, RDMA_CM_EVENT_ESTABLISHED);
	await(channel, RDMA_CM_EVENT_DISCONNECTED);
	id_end(id);
	id_end(listener);
	rdma_destroy_event_channel(channel);
}

static void expect_message(struct rdma_cm_id *id)
{
	struct ibv_recv_wr *bad, wr = { 0 };
	int err = ibv_post_recv(id->qp, &wr, &bad);

	if (err)
		die("ibv_post_recv: %s", strerror(err));
	if (ibv_req_notify_cq(id->recv_cq, 0))
		die("ibv_req_notify_cq:");
}

static void tell_completion(struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(id->recv_cq, 1, &wc) != 1)
		die("an event without a completion");
	printf("watch: completion, %s\n", ibv_wc_status_str(wc.status));
}

static void tell_async(struct rdma_cm_id *id)
{
	struct ibv_async_event event;

	if (ibv_get_async_event(id->verbs, &event))
		die("ibv_get_async_event:");
	printf("watch: async event, %s\n", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
}

static void tell_cm(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = next_event(channel);

	printf("watch: rdma_cm, %s\n", rdma_event_str(event->event));
	rdma_ack_cm_event(event);
}

static void watch(const char *server)
{
	struct rdma_event_channel *channel = channel_create();
	struct rdma_cm_id *id = ready_to_connect(channel, server, &spaces[0]);
	struct pollfd wait[3] = {
		{ .fd = id->recv_cq_channel->fd, .events = POLLIN },
		{ .fd = id->verbs->async_fd, .events = POLLIN },
		{ .fd = channel->fd, .events = POLLIN },
	};

	expect_message(id);
	if (connect_with(id, 0))
		die("rdma_connect:");
	await(channel, RDMA_CM_EVENT_ESTABLISHED);
	printf("watch: connected\n");
	fflush(stdout);
	if (poll(wait, 3, (int)(HANG_SECONDS * 1000)) <= 0)
		die("nothing happens for %.0f s", HANG_SECONDS);
	/* The others may arrive later. */
	sleep(1);
	poll(wait, 3, 0);
	if (wait[0].revents)
		tell_completion(id);
	if (wait[1].revents)
		tell_async(id);
	if (wait[2].revents)
		tell_cm(channel);
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
