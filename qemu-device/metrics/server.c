// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The HTTP server of the metrics: its thread, clients, limits. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/loop.h"
#include "base/workq.h"
#include "metrics/format.h"
#include "metrics/server.h"

#define COLLECT_INTERVAL (100 * PVR_MSEC)
#define SWEEP_INTERVAL PVR_SEC
#define CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* The text of one snapshot for all requests that have waited for it. */
struct metrics_reply {
	unsigned int refs;
	struct MHD_Response *response; /* NULL: no memory */
};

/* A request that has arrived; owned by its connection in MHD. */
struct metrics_request {
	struct MHD_Connection *connection;
	bool waits; /* in the list of the server, and suspended */
	struct metrics_reply *reply; /* NULL: not yet */
	TAILQ_ENTRY(metrics_request) link;
};

/* A connection, from accept() to close(). */
struct metrics_client {
	struct pvr_metrics *metrics;
	int fd;
	uint64_t since;
	bool shut;
	TAILQ_ENTRY(metrics_client) link; /* in the order of since */
};

/* All members belong to the server's thread, except as noted. */
struct pvr_metrics {
	struct pvr_metrics_env env;
	struct pvr_loop *loop;
	struct pvr_source http; /* the epoll descriptor of MHD */
	struct MHD_Daemon *daemon;
	int listener;
	pthread_t thread;
	bool has_thread, stop; /* stop: atomic, of any thread */
	struct pvr_workq inbox;
	struct pvr_work delivery; /* queued by pvr_metrics_deliver() */
	struct pvr_metrics_snapshot *delivered; /* passed with delivery */
	bool collecting;
	uint64_t collected; /* time of the last call of collect() */
	struct pvr_loop_timer pause, sweep;
	TAILQ_HEAD(, metrics_request) waiting;
	TAILQ_HEAD(, metrics_client) clients;
};

static bool is_stopping(const struct pvr_metrics *metrics)
{
	return __atomic_load_n(&metrics->stop, __ATOMIC_ACQUIRE);
}

static int fd_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

/* ----------------------------------------------------------------- collecting */

static void collect(struct pvr_metrics *metrics)
{
	uint64_t now = pvr_loop_now(), since = now - metrics->collected;

	if (metrics->collecting || is_stopping(metrics) || TAILQ_EMPTY(&metrics->waiting))
		return;
	if (since < COLLECT_INTERVAL) {
		pvr_loop_timer_arm(metrics->loop, &metrics->pause, COLLECT_INTERVAL - since);
		return;
	}
	metrics->collecting = true;
	metrics->collected = now;
	metrics->env.collect(metrics->env.opaque);
}

static void pause_over(struct pvr_loop_timer *timer)
{
	collect((struct pvr_metrics *)((char *)timer - offsetof(struct pvr_metrics, pause)));
}

static bool add_headers(struct MHD_Response *response, const char *content_type)
{
	/* One response per connection: its time limit is then that of the request. */
	return MHD_add_response_header(response, "Content-Type", content_type) == MHD_YES &&
	       MHD_add_response_header(response, "Connection", "close") == MHD_YES;
}

/* Return: NULL without memory. */
static struct MHD_Response *format(const struct pvr_metrics_snapshot *snapshot)
{
	struct pvr_metrics_text text = { .data = NULL };
	struct MHD_Response *response = NULL;

	pvr_metrics_format_daemon(&text, snapshot);
	pvr_metrics_format_adapters(&text, snapshot);
	pvr_metrics_format_hosts(&text, snapshot);
	if (!text.failed)
		response =
			MHD_create_response_from_buffer(text.len, text.data, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		pvr_metrics_text_free(&text);
		return NULL;
	}
	if (add_headers(response, CONTENT_TYPE))
		return response;
	MHD_destroy_response(response);
	return NULL;
}

static void put_reply(struct metrics_reply *reply)
{
	if (!reply || --reply->refs)
		return;
	if (reply->response)
		MHD_destroy_response(reply->response);
	free(reply);
}

/* Gives @reply to all requests that wait. NULL: no memory; their connections end. */
static void answer(struct pvr_metrics *metrics, struct metrics_reply *reply)
{
	struct metrics_request *request;

	while ((request = TAILQ_FIRST(&metrics->waiting))) {
		TAILQ_REMOVE(&metrics->waiting, request, link);
		request->waits = false;
		request->reply = reply;
		if (reply)
			reply->refs++;
		else
			shutdown(fd_of(request->connection), SHUT_RDWR);
		MHD_resume_connection(request->connection);
	}
	/* MHD calls the handler of the resumed connections. */
	MHD_run(metrics->daemon);
}

static void take_delivery(struct pvr_work *work)
{
	struct pvr_metrics *metrics =
		(struct pvr_metrics *)((char *)work - offsetof(struct pvr_metrics, delivery));
	struct pvr_metrics_snapshot *snapshot = metrics->delivered;
	struct metrics_reply *reply = calloc(1, sizeof(*reply));

	metrics->collecting = false;
	if (reply) {
		reply->refs = 1;
		reply->response = snapshot ? format(snapshot) : NULL;
	}
	pvr_metrics_snapshot_free(snapshot);
	answer(metrics, reply);
	put_reply(reply);
	collect(metrics);
}

void pvr_metrics_deliver(struct pvr_metrics *metrics, struct pvr_metrics_snapshot *snapshot)
{
	metrics->delivered = snapshot;
	pvr_workq_queue(&metrics->inbox, &metrics->delivery);
}

/* ------------------------------------------------------------------- requests */

static enum MHD_Result respond_text(struct MHD_Connection *connection, unsigned int status,
				    const char *text)
{
	/* MHD does not write to it. */
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result ret = MHD_NO;

	if (!response)
		return MHD_NO;
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	if (add_headers(response, "text/plain"))
		ret = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return ret;
}

static enum MHD_Result respond_metrics(const struct metrics_request *request)
{
	if (request->reply->response)
		return MHD_queue_response(request->connection, MHD_HTTP_OK,
					  request->reply->response);
	return respond_text(request->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
			    "pvrdmad has no memory for its metrics\n");
}

static enum MHD_Result wait_for_snapshot(struct pvr_metrics *metrics,
					 struct metrics_request *request)
{
	if (is_stopping(metrics))
		return MHD_NO;
	request->waits = true;
	TAILQ_INSERT_TAIL(&metrics->waiting, request, link);
	MHD_suspend_connection(request->connection);
	collect(metrics);
	return MHD_YES;
}

/* The first call for a request. */
static enum MHD_Result begin(struct MHD_Connection *connection, void **context)
{
	struct metrics_request *request = calloc(1, sizeof(*request));

	if (!request)
		return MHD_NO;
	request->connection = connection;
	*context = request;
	return MHD_YES;
}

/* Called by MHD when the headers are there, for each part of a body, and after its end. */
static enum MHD_Result handle(void *opaque, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *body,
			      size_t *body_size, void **context)
{
	struct metrics_request *request = *context;

	if (!request)
		return begin(connection, context);
	if (*body_size) { /* ignored, and limited by the time of the connection */
		*body_size = 0;
		return MHD_YES;
	}
	if (request->reply)
		return respond_metrics(request);
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return respond_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				    "only GET and HEAD are allowed\n");
	if (strcmp(url, "/metrics") != 0)
		return respond_text(connection, MHD_HTTP_NOT_FOUND,
				    "pvrdmad: the metrics are at /metrics\n");
	return wait_for_snapshot(opaque, request);
}

static void completed(void *opaque, struct MHD_Connection *connection, void **context,
		      enum MHD_RequestTerminationCode code)
{
	struct pvr_metrics *metrics = opaque;
	struct metrics_request *request = *context;

	if (!request)
		return;
	if (request->waits)
		TAILQ_REMOVE(&metrics->waiting, request, link);
	put_reply(request->reply);
	free(request);
	*context = NULL;
}

/* -------------------------------------------------------------------- clients */

static void add_client(struct pvr_metrics *metrics, struct MHD_Connection *connection,
		       void **context)
{
	struct metrics_client *client = calloc(1, sizeof(*client));

	if (!client) { /* a connection without a time limit is not accepted */
		shutdown(fd_of(connection), SHUT_RDWR);
		return;
	}
	client->fd = fd_of(connection);
	client->since = pvr_loop_now();
	if (TAILQ_EMPTY(&metrics->clients))
		pvr_loop_timer_arm(metrics->loop, &metrics->sweep, SWEEP_INTERVAL);
	TAILQ_INSERT_TAIL(&metrics->clients, client, link);
	*context = client;
}

static void connection_changed(void *opaque, struct MHD_Connection *connection, void **context,
			       enum MHD_ConnectionNotificationCode code)
{
	struct pvr_metrics *metrics = opaque;
	struct metrics_client *client = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		add_client(metrics, connection, context);
	} else if (client) {
		TAILQ_REMOVE(&metrics->clients, client, link);
		free(client);
		*context = NULL;
	}
}

/* MHD's own limit begins again with each byte. */
static void sweep(struct pvr_loop_timer *timer)
{
	struct pvr_metrics *metrics =
		(struct pvr_metrics *)((char *)timer - offsetof(struct pvr_metrics, sweep));
	uint64_t now = pvr_loop_now();
	struct metrics_client *client;

	TAILQ_FOREACH(client, &metrics->clients, link) {
		if (now - client->since < PVR_METRICS_CLIENT_NS)
			break;
		if (!client->shut)
			shutdown(client->fd, SHUT_RDWR);
		client->shut = true;
	}
	if (!TAILQ_EMPTY(&metrics->clients))
		pvr_loop_timer_arm(metrics->loop, timer, SWEEP_INTERVAL);
}

/* ----------------------------------------------------------------- the thread */

static void http_ready(struct pvr_source *source, uint32_t events)
{
	struct pvr_metrics *metrics =
		(struct pvr_metrics *)((char *)source - offsetof(struct pvr_metrics, http));

	MHD_run(metrics->daemon);
}

static uint64_t http_deadline(struct pvr_metrics *metrics)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(metrics->daemon, &ms) != MHD_YES)
		return PVR_NEVER;
	return pvr_loop_now() + ms * PVR_MSEC;
}

static void *serve(void *opaque)
{
	struct pvr_metrics *metrics = opaque;

	while (!is_stopping(metrics)) {
		pvr_loop_wait(metrics->loop, http_deadline(metrics));
		if (!pvr_loop_dispatch(metrics->loop))
			MHD_run(metrics->daemon); /* its timeouts */
	}
	return NULL;
}

/* ----------------------------------------------------------------- life cycle */

static bool start_http(struct pvr_metrics *metrics, struct pvr_error *err)
{
	const union MHD_DaemonInfo *info;
	int ret;

	metrics->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, metrics,
		MHD_OPTION_LISTEN_SOCKET, (MHD_socket)metrics->listener,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)PVR_METRICS_CLIENTS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)PVR_METRICS_CLIENT_MEMORY,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)(PVR_METRICS_CLIENT_NS / PVR_SEC),
		MHD_OPTION_NOTIFY_COMPLETED, completed, metrics, MHD_OPTION_NOTIFY_CONNECTION,
		connection_changed, metrics, MHD_OPTION_END);
	if (!metrics->daemon)
		return pvr_fail(err, "cannot start the HTTP server of the metrics: %s",
				strerror(errno));
	metrics->listener = -1; /* MHD closes it */
	info = MHD_get_daemon_info(metrics->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	metrics->http.fd = info ? info->epoll_fd : -1;
	ret = pvr_loop_add(metrics->loop, &metrics->http, EPOLLIN);
	return ret == 0 ||
	       pvr_fail(err, "cannot watch the HTTP server of the metrics: %s", strerror(-ret));
}

static bool start_thread(struct pvr_metrics *metrics, struct pvr_error *err)
{
	sigset_t set, before;
	int ret;

	/* Signals of the process are for the first thread. */
	sigfillset(&set);
	sigdelset(&set, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &set, &before);
	ret = pthread_create(&metrics->thread, NULL, serve, metrics);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ret)
		return pvr_fail(err, "cannot start the thread of the metrics: %s", strerror(ret));
	pthread_setname_np(metrics->thread, "pvrdmad/metrics");
	metrics->has_thread = true;
	return true;
}

static bool start(struct pvr_metrics *metrics, struct pvr_error *err)
{
	metrics->loop = pvr_loop_create();
	if (!metrics->loop || pvr_workq_init(&metrics->inbox, metrics->loop) < 0)
		return pvr_fail(err, "cannot make an event loop for the metrics: %s",
				strerror(errno));
	return start_http(metrics, err) && start_thread(metrics, err);
}

struct pvr_metrics *pvr_metrics_create(const struct pvr_metrics_env *env, int fd,
				       struct pvr_error *err)
{
	struct pvr_metrics *metrics = calloc(1, sizeof(*metrics));

	if (!metrics) {
		pvr_fail(err, "out of memory");
		close(fd);
		return NULL;
	}
	metrics->env = *env;
	metrics->listener = fd;
	metrics->inbox.source.fd = -1;
	metrics->http.ready = http_ready;
	metrics->pause.expired = pause_over;
	metrics->sweep.expired = sweep;
	metrics->delivery.run = take_delivery;
	TAILQ_INIT(&metrics->waiting);
	TAILQ_INIT(&metrics->clients);
	if (start(metrics, err))
		return metrics;
	pvr_metrics_destroy(metrics);
	return NULL;
}

static void stop_thread(struct pvr_metrics *metrics)
{
	__atomic_store_n(&metrics->stop, true, __ATOMIC_RELEASE);
	if (!metrics->has_thread)
		return;
	pvr_loop_wake(metrics->loop);
	pthread_join(metrics->thread, NULL);
}

/* The thread has ended. */
static void stop_http(struct pvr_metrics *metrics)
{
	pvr_loop_remove(&metrics->http);
	if (!metrics->daemon)
		return;
	/* MHD requires that no connection is suspended. */
	pvr_workq_drain(&metrics->inbox);
	answer(metrics, NULL);
	MHD_stop_daemon(metrics->daemon);
}

void pvr_metrics_destroy(struct pvr_metrics *metrics)
{
	if (!metrics)
		return;
	stop_thread(metrics);
	stop_http(metrics);
	if (metrics->listener >= 0)
		close(metrics->listener);
	if (metrics->inbox.source.fd >= 0)
		pvr_workq_exit(&metrics->inbox);
	pvr_loop_destroy(metrics->loop);
	free(metrics);
}
