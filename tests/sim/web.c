// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What is between hosts and etcd, in place of directory/http.c. */
#include "web.h"

#include <stdlib.h>
#include <string.h>

#include "directory/key.h"
#include "sim.h"

#define REFUSED_NS (100 * FG_US) /* until an error comes back */
#define RETRANSMIT_NS (50 * FG_MS) /* of a stream to a host that is cut off */

/* A POST on its way to etcd, which its client may have given up. */
struct sim_web_request {
	LIST_ENTRY(sim_web_request) link;
	struct sim_web *web;
	struct pvr_http_call *call; /* NULL: given up */
	unsigned int host;
	struct pvr_loop_timer timer; /* of etcd's loop */
	char path[32];
	struct pvr_text body;
};

struct pvr_http_call {
	TAILQ_ENTRY(pvr_http_call) link;
	struct pvr_http *http;
	void *opaque;
	struct pvr_loop_timer timer; /* of the host's loop: the answer, the end of the time, lines */
	bool busy, dead; /* in a callback; cancelled by a callback */
	/* A POST. */
	void (*done)(void *opaque, const struct pvr_http_reply *reply);
	struct sim_web_request *request; /* on its way; NULL: none */
	long status; /* of the answer; 0: none */
	const char *error;
	struct pvr_text answer;
	uint64_t until; /* ns: it gives up */
	/* A stream. */
	const struct pvr_http_stream_ops *ops;
	struct sim_etcd_stream *far; /* NULL: not connected */
	struct pvr_loop_timer far_timer; /* of etcd's loop: lines of the host arrive */
	struct pvr_text to_etcd, to_host;
	bool drained, over;
};

struct pvr_http {
	LIST_ENTRY(pvr_http) link;
	struct sim_web *web;
	unsigned int host;
	struct pvr_loop *loop;
	TAILQ_HEAD(, pvr_http_call) calls;
	struct pvr_http_counters counters;
};

static bool happens(struct sim_web *web, uint32_t of_1000)
{
	return of_1000 && sim_below(&web->rng, 1000) < of_1000;
}

static uint64_t one_way(struct sim_web *web)
{
	return web->rules.delay + (web->rules.jitter ? sim_draw(&web->rng) % web->rules.jitter : 0);
}

static bool is_reached(const struct sim_web *web, unsigned int host)
{
	return !web->rules.down && !web->rules.silent && !web->rules.cut[host];
}

static void *new_object(size_t size)
{
	void *object = calloc(1, size);

	if (!object)
		fg_die("no memory for HTTP");
	return object;
}

static void append(struct pvr_text *text, const char *data, size_t len)
{
	pvr_text_add(text, "%.*s", (int)len, data);
	if (text->bad)
		fg_die("no memory for HTTP");
}

static struct pvr_text take(struct pvr_text *text)
{
	struct pvr_text taken = *text;

	*text = (struct pvr_text){ .len = 0 };
	return taken;
}

/* ---------------------------------------------------------------------------- calls */

static struct pvr_http_call *make_call(struct pvr_http *http, void *opaque)
{
	struct pvr_http_call *call = new_object(sizeof(*call));

	call->http = http;
	call->opaque = opaque;
	TAILQ_INSERT_TAIL(&http->calls, call, link);
	http->counters.requests++;
	return call;
}

static void free_call(struct pvr_http_call *call)
{
	if (call->request)
		call->request->call = NULL;
	if (call->far)
		sim_etcd_stream_close(call->far);
	pvr_loop_timer_disarm(&call->timer);
	pvr_loop_timer_disarm(&call->far_timer);
	free(call->answer.data);
	free(call->to_etcd.data);
	free(call->to_host.data);
	TAILQ_REMOVE(&call->http->calls, call, link);
	free(call);
}

void pvr_http_cancel(struct pvr_http_call *call)
{
	call->dead = true;
	if (!call->busy)
		free_call(call);
}

/* ---------------------------------------------------------------------------- POSTs */

static void end_post(struct pvr_http_call *call)
{
	const struct pvr_http_reply reply = {
		.status = call->status,
		.error = call->status  ? NULL
			 : call->error ? call->error
				       : "it takes too long",
		.body = call->answer.data ? call->answer.data : "",
		.len = call->answer.len,
	};

	call->busy = true;
	call->http->counters.rx_bytes += reply.len;
	call->done(call->opaque, &reply);
	free_call(call);
}

static void post_is_due(struct pvr_loop_timer *timer)
{
	end_post(pvr_container_of(timer, struct pvr_http_call, timer));
}

/* An answer, or an error. */
static void come_back(struct pvr_http_call *call, uint64_t after)
{
	uint64_t now = pvr_loop_now();

	if (now + after < call->until)
		pvr_loop_timer_arm(call->http->loop, &call->timer, after);
	else
		call->status = 0;
}

static void fail_post(struct pvr_http_call *call, const char *why)
{
	call->error = why;
	come_back(call, REFUSED_NS);
}

/* The client learns of it at once, or when its time has passed. */
static void lose(struct sim_web *web, struct pvr_http_call *call)
{
	if (call && sim_one_in(&web->rng, 2))
		fail_post(call, "the connection is reset");
}

static void execute(struct sim_web *web, const struct sim_web_request *request)
{
	struct pvr_http_call *call = request->call;
	struct pvr_text answer = { .len = 0 };
	long status = sim_etcd_post(web->etcd, request->path, request->body.data, request->body.len,
				    &answer);

	if (happens(web, web->rules.lose_answers)) {
		sim_trace(&web->sim->trace, "etcd: the answer to host%u is lost",
			  request->host + 1);
		lose(web, call);
	} else if (call && happens(web, web->rules.refuse)) {
		sim_trace(&web->sim->trace, "etcd: an executed request of host%u gets 503",
			  request->host + 1);
		call->status = 503;
		come_back(call, one_way(web));
	} else if (call) {
		call->status = status;
		call->answer = take(&answer);
		come_back(call, one_way(web));
	}
	free(answer.data);
}

static void free_request(struct sim_web_request *request)
{
	if (request->call)
		request->call->request = NULL;
	pvr_loop_timer_disarm(&request->timer);
	LIST_REMOVE(request, link);
	free(request->body.data);
	free(request);
}

static void request_arrives(struct pvr_loop_timer *timer)
{
	struct sim_web_request *request = pvr_container_of(timer, struct sim_web_request, timer);
	struct sim_web *web = request->web;
	bool lost = !is_reached(web, request->host) || happens(web, web->rules.lose_requests);

	if (lost)
		lose(web, request->call);
	else
		execute(web, request);
	free_request(request);
}

struct pvr_http_call *pvr_http_post(struct pvr_http *http, const char *url, const char *token,
				    const char *body, size_t len, long timeout_ms,
				    void (*done)(void *opaque, const struct pvr_http_reply *reply),
				    void *opaque)
{
	struct pvr_http_call *call = make_call(http, opaque);
	struct sim_web *web = http->web;
	struct sim_web_request *request;
	uint64_t patience = (uint64_t)timeout_ms * PVR_MSEC;

	call->done = done;
	call->timer.expired = post_is_due;
	if (!is_reached(web, http->host)) {
		patience = web->rules.down && !web->rules.silent
				   ? REFUSED_NS
				   : (uint64_t)PVR_HTTP_CONNECT_MS * PVR_MSEC;
		call->error = "the connection is refused";
	}
	call->until = pvr_loop_now() + patience;
	pvr_loop_timer_arm(http->loop, &call->timer, patience);
	if (call->error)
		return call;
	request = new_object(sizeof(*request));
	request->web = web;
	request->host = http->host;
	request->call = call;
	call->request = request;
	snprintf(request->path, sizeof(request->path), "%s", strchr(url + strlen("http://"), '/'));
	append(&request->body, body, len);
	request->timer.expired = request_arrives;
	LIST_INSERT_HEAD(&web->requests, request, link);
	pvr_loop_timer_arm(web->loop, &request->timer, one_way(web));
	http->counters.tx_bytes += len;
	return call;
}

void pvr_http_post_now(struct pvr_http *http, const char *url, const char *token, const char *body,
		       long timeout_ms)
{
	struct sim_web *web = http->web;
	struct pvr_text answer = { .len = 0 };

	if (is_reached(web, http->host))
		sim_etcd_post(web->etcd, strchr(url + strlen("http://"), '/'), body, strlen(body),
			      &answer);
	free(answer.data);
}

/* -------------------------------------------------------------------------- streams */

static void arm_once(struct pvr_loop *loop, struct pvr_loop_timer *timer, uint64_t after)
{
	if (!timer->loop)
		pvr_loop_timer_arm(loop, timer, after);
}

static void end_stream(struct pvr_http_call *call)
{
	const struct pvr_http_stream_ops *ops = call->ops;
	void *opaque = call->opaque;

	free_call(call);
	ops->ended(opaque, 0, "the stream is broken");
}

static void give_lines(struct pvr_http_call *call)
{
	struct pvr_text text = take(&call->to_host);
	char *line = text.data, *end;

	while (!call->dead && line && (end = memchr(line, '\n', strlen(line)))) {
		*end = '\0';
		call->ops->line(call->opaque, line, (size_t)(end - line));
		line = end + 1;
	}
	free(text.data);
}

/* Lines of etcd have arrived, or its end. */
static void stream_is_due(struct pvr_loop_timer *timer)
{
	struct pvr_http_call *call = pvr_container_of(timer, struct pvr_http_call, timer);

	if (!call->over && !is_reached(call->http->web, call->http->host)) {
		arm_once(call->http->loop, timer, RETRANSMIT_NS);
		return;
	}
	call->busy = true;
	if (!call->over)
		give_lines(call);
	if (!call->dead && !call->over && call->drained) {
		call->drained = false;
		call->ops->drained(call->opaque);
	}
	call->busy = false;
	if (call->dead)
		free_call(call);
	else if (call->over)
		end_stream(call);
}

/* A line of etcd. */
static void line_leaves(void *opaque, const char *text, size_t len)
{
	struct pvr_http_call *call = opaque;

	append(&call->to_host, text, len);
	call->http->counters.rx_bytes += len;
	arm_once(call->http->loop, &call->timer, one_way(call->http->web));
}

static void break_stream(struct pvr_http_call *call)
{
	if (call->far)
		sim_etcd_stream_close(call->far);
	call->far = NULL;
	call->over = true;
	pvr_loop_timer_disarm(&call->far_timer);
	arm_once(call->http->loop, &call->timer, REFUSED_NS);
}

/* Its request has arrived, and no answer is on its way. */
static bool is_unanswered(const struct pvr_http_call *call)
{
	return !call->ops && !call->request && !call->status;
}

static void end_connection(struct pvr_http_call *call)
{
	if (call->ops && !call->over)
		break_stream(call);
	else if (is_unanswered(call))
		fail_post(call, "the connection is reset");
}

static void lines_arrive(struct pvr_loop_timer *timer)
{
	struct pvr_http_call *call = pvr_container_of(timer, struct pvr_http_call, far_timer);
	struct sim_web *web = call->http->web;
	struct pvr_text text;
	char *line, *end;

	if (!is_reached(web, call->http->host)) {
		break_stream(call);
		return;
	}
	if (!call->far)
		call->far = sim_etcd_stream_open(web->etcd, line_leaves, call);
	text = take(&call->to_etcd);
	for (line = text.data; line && (end = strchr(line, '\n')); line = end + 1)
		sim_etcd_stream_take(call->far, line, (size_t)(end - line));
	free(text.data);
	call->drained = true;
	arm_once(call->http->loop, &call->timer, one_way(web));
}

struct pvr_http_call *pvr_http_stream(struct pvr_http *http, const char *url, const char *token,
				      const struct pvr_http_stream_ops *ops, void *opaque)
{
	struct pvr_http_call *call = make_call(http, opaque);

	call->ops = ops;
	call->timer.expired = stream_is_due;
	call->far_timer.expired = lines_arrive;
	pvr_loop_timer_arm(http->web->loop, &call->far_timer, one_way(http->web));
	return call;
}

bool pvr_http_send(struct pvr_http_call *stream, const char *data, size_t len)
{
	append(&stream->to_etcd, data, len);
	stream->http->counters.tx_bytes += len;
	if (!stream->over)
		arm_once(stream->http->web->loop, &stream->far_timer, one_way(stream->http->web));
	return true;
}

size_t pvr_http_unsent(const struct pvr_http_call *stream)
{
	return stream->to_etcd.len;
}

void sim_web_end_connections(struct sim_web *web, unsigned int host)
{
	struct pvr_http_call *call;
	struct pvr_http *http;

	LIST_FOREACH(http, &web->clients, link)
		TAILQ_FOREACH(call, &http->calls, link)
			if (host == FG_WIRE_HOSTS || host == http->host)
				end_connection(call);
}

/* --------------------------------------------------------------------------- a life */

struct pvr_http *pvr_http_create(struct pvr_loop *loop, const struct pvr_http_tls *tls,
				 struct pvr_error *err)
{
	const struct sim_web_end *end = sim_loop_owner(loop);
	struct pvr_http *http = new_object(sizeof(*http));

	http->web = end->web;
	http->host = end->host;
	http->loop = loop;
	TAILQ_INIT(&http->calls);
	LIST_INSERT_HEAD(&http->web->clients, http, link);
	return http;
}

/* Requests that have left go on. */
void pvr_http_destroy(struct pvr_http *http)
{
	struct pvr_http_call *call;

	if (!http)
		return;
	while ((call = TAILQ_FIRST(&http->calls))) {
		call->status = 0;
		call->error = "it is over";
		if (call->ops)
			free_call(call);
		else
			end_post(call);
	}
	LIST_REMOVE(http, link);
	free(http);
}

const struct pvr_http_counters *pvr_http_counters(const struct pvr_http *http)
{
	return &http->counters;
}

void sim_web_init(struct sim_web *web, struct sim *sim)
{
	web->sim = sim;
	web->loop = sim_loop_create(web);
	web->etcd = sim_etcd_create(sim, web->loop);
	web->rng = sim_rng_of(sim->seed, UINT64_MAX - 2);
	web->calm.delay = sim_scale(&web->rng, 10 * FG_US, 4 * FG_MS);
	web->calm.jitter = sim_scale(&web->rng, 10 * FG_US, 4 * FG_MS);
	web->rules = web->calm;
	LIST_INIT(&web->clients);
	LIST_INIT(&web->requests);
}

void sim_web_exit(struct sim_web *web)
{
	while (!LIST_EMPTY(&web->requests))
		free_request(LIST_FIRST(&web->requests));
	sim_etcd_destroy(web->etcd);
	pvr_loop_destroy(web->loop);
}
