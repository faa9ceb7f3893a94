// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* HTTP requests on an event loop, with libcurl. */
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "directory/http.h"
#include "directory/key.h"

#define CONNECTIONS_MAX 8l
#define CONNECTION_IDLE 60l

struct http_buffer {
	char *data; /* NUL-terminated, when there is any */
	size_t len, size;
};

struct pvr_http_call {
	struct pvr_http *http;
	CURL *easy;
	struct curl_slist *headers;
	struct http_buffer in, out;
	size_t sent; /* of out */
	bool paused; /* the read callback returned CURL_READFUNC_PAUSE */
	bool over; /* the server has ended the stream; curl would go on sending */
	bool fresh; /* in the list of calls with new events */
	bool busy, dead; /* in a callback; cancelled by a callback */
	char error[CURL_ERROR_SIZE];
	const char *refused; /* why this side ended it, or NULL */
	void (*done)(void *opaque, const struct pvr_http_reply *reply);
	const struct pvr_http_stream_ops *ops; /* NULL: no stream */
	void *opaque;
	TAILQ_ENTRY(pvr_http_call) link, fresh_link;
};

TAILQ_HEAD(call_list, pvr_http_call);

struct http_socket {
	struct pvr_source source;
	struct pvr_http *http;
	LIST_ENTRY(http_socket) link;
};

struct pvr_http {
	CURLM *multi;
	struct pvr_loop *loop;
	struct pvr_loop_timer timer;
	struct pvr_http_tls tls;
	struct call_list calls, fresh;
	LIST_HEAD(, http_socket) sockets;
	struct pvr_http_counters counters;
};

static bool append(struct http_buffer *buffer, const char *data, size_t len)
{
	size_t size = buffer->size ? buffer->size : 512;
	char *grown;

	while (size <= buffer->len + len)
		size *= 2;
	if (size != buffer->size) {
		grown = realloc(buffer->data, size);
		if (!grown)
			return false;
		buffer->data = grown;
		buffer->size = size;
	}
	memcpy(buffer->data + buffer->len, data, len);
	buffer->len += len;
	buffer->data[buffer->len] = '\0';
	return true;
}

static void take(struct http_buffer *buffer, size_t len)
{
	buffer->len -= len;
	memmove(buffer->data, buffer->data + len, buffer->len + 1);
}

/* -------------------------------------------------------- callbacks of curl */

static long status_of(struct pvr_http_call *call)
{
	long status = 0;

	curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static void set_fresh(struct pvr_http_call *call, bool fresh)
{
	if (fresh == call->fresh)
		return;
	if (fresh)
		TAILQ_INSERT_TAIL(&call->http->fresh, call, fresh_link);
	else
		TAILQ_REMOVE(&call->http->fresh, call, fresh_link);
	call->fresh = fresh;
}

static size_t write_cb(char *data, size_t one, size_t len, void *opaque)
{
	struct pvr_http_call *call = opaque;
	size_t max = call->ops ? PVR_HTTP_LINE_MAX : PVR_HTTP_REPLY_MAX;

	call->http->counters.rx_bytes += len;
	if (call->in.len + len > max) {
		call->refused = call->ops ? "it sends a line without an end"
					  : "its answer is too long";
		return 0;
	}
	if (!append(&call->in, data, len)) {
		call->refused = "out of memory";
		return 0;
	}
	if (call->ops)
		set_fresh(call, true);
	return len;
}

static size_t read_cb(char *data, size_t one, size_t room, void *opaque)
{
	struct pvr_http_call *call = opaque;
	size_t len = call->out.len - call->sent;

	if (!len) {
		call->paused = true;
		return CURL_READFUNC_PAUSE;
	}
	if (len > room)
		len = room;
	memcpy(data, call->out.data + call->sent, len);
	call->sent += len;
	call->http->counters.tx_bytes += len;
	if (call->sent == call->out.len) {
		call->sent = call->out.len = 0;
		set_fresh(call, true); /* drained */
	}
	return len;
}

static void process(struct pvr_http *http);

static void socket_ready(struct pvr_source *source, uint32_t events)
{
	struct http_socket *sock = pvr_container_of(source, struct http_socket, source);
	struct pvr_http *http = sock->http;
	int mask = (events & EPOLLIN ? CURL_CSELECT_IN : 0) |
		   (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		   (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0),
	    running;

	curl_multi_socket_action(http->multi, source->fd, mask, &running);
	process(http);
}

static struct http_socket *make_socket(struct pvr_http *http, curl_socket_t fd, uint32_t events)
{
	struct http_socket *sock = calloc(1, sizeof(*sock));

	if (!sock)
		return NULL;
	sock->http = http;
	sock->source.fd = fd;
	sock->source.ready = socket_ready;
	if (pvr_loop_add(http->loop, &sock->source, events) < 0) {
		free(sock);
		return NULL;
	}
	LIST_INSERT_HEAD(&http->sockets, sock, link);
	return sock;
}

static void drop_socket(struct http_socket *sock)
{
	LIST_REMOVE(sock, link);
	pvr_loop_remove(&sock->source);
	free(sock);
}

/*
 * The server has ended its response. curl reports that only after the request body is
 * complete, and a stream's never is.
 */
static void note_end(CURL *easy)
{
	struct pvr_http_call *call = NULL;

	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &call);
	if (!call || !call->ops || !status_of(call))
		return;
	call->over = true;
	set_fresh(call, true);
}

static int socket_cb(CURL *easy, curl_socket_t fd, int what, void *opaque, void *socket_opaque)
{
	struct pvr_http *http = opaque;
	struct http_socket *sock = socket_opaque;
	uint32_t events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
			  (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);

	if (!(what & CURL_POLL_IN))
		note_end(easy);
	if (what == CURL_POLL_REMOVE) {
		if (sock)
			drop_socket(sock);
		return 0;
	}
	if (sock)
		return pvr_loop_modify(&sock->source, events) < 0 ? -1 : 0;
	sock = make_socket(http, fd, events);
	curl_multi_assign(http->multi, fd, sock);
	return sock ? 0 : -1;
}

static int timer_cb(CURLM *multi, long ms, void *opaque)
{
	struct pvr_http *http = opaque;

	if (ms < 0)
		pvr_loop_timer_disarm(&http->timer);
	else
		pvr_loop_timer_arm(http->loop, &http->timer, (uint64_t)ms * PVR_MSEC);
	return 0;
}

static void timer_expired(struct pvr_loop_timer *timer)
{
	struct pvr_http *http = pvr_container_of(timer, struct pvr_http, timer);
	int running;

	curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	process(http);
}

/* --------------------------------------------------------------- completion */

static void free_call(struct pvr_http_call *call)
{
	struct pvr_http *http = call->http;

	set_fresh(call, false);
	TAILQ_REMOVE(&http->calls, call, link);
	if (call->easy) {
		curl_easy_setopt(call->easy, CURLOPT_PRIVATE, NULL); /* see note_end() */
		curl_multi_remove_handle(http->multi, call->easy);
		curl_easy_cleanup(call->easy);
	}
	curl_slist_free_all(call->headers);
	free(call->in.data);
	free(call->out.data);
	free(call);
}

void pvr_http_cancel(struct pvr_http_call *call)
{
	call->dead = true;
	if (!call->busy)
		free_call(call);
}

static void give_lines(struct pvr_http_call *call)
{
	size_t len, used = 0;
	char *begin, *end;

	while (!call->dead && used < call->in.len) {
		begin = call->in.data + used;
		end = memchr(begin, '\n', call->in.len - used);
		if (!end)
			break;
		len = (size_t)(end - begin);
		*end = '\0';
		used += len + 1;
		call->ops->line(call->opaque, begin, len);
	}
	if (used)
		take(&call->in, used);
}

static const char *error_of(const struct pvr_http_call *call, CURLcode code)
{
	return call->refused	? call->refused
	       : call->error[0] ? call->error
				: curl_easy_strerror(code);
}

/* The body of an error response up to a NUL, if there is any. */
static const char *refusal_of(const struct pvr_http_call *call)
{
	return call->in.len && call->in.data[0] ? call->in.data : "refused";
}

static void end_stream(struct pvr_http_call *call, CURLcode code)
{
	const struct pvr_http_stream_ops *ops = call->ops;
	long status = status_of(call);
	void *opaque = call->opaque;
	char why[CURL_ERROR_SIZE];

	snprintf(why, sizeof(why), "%s",
		 code || call->refused ? error_of(call, code)
		 : status != 200       ? refusal_of(call)
				       : "it has ended the stream");
	free_call(call);
	ops->ended(opaque, status, why);
}

static void give_news(struct pvr_http_call *call)
{
	call->busy = true;
	/* ended() reports the body of an error response. */
	if (status_of(call) == 200)
		give_lines(call);
	if (!call->dead && !call->over && !call->paused && !call->out.len)
		call->ops->drained(call->opaque);
	call->busy = false;
	if (call->dead)
		free_call(call);
	else if (call->over)
		end_stream(call, CURLE_OK);
}

static void end_post(struct pvr_http_call *call, CURLcode code)
{
	struct pvr_http_reply reply = { .status = 0 };

	if (code || call->refused) {
		reply.error = error_of(call, code);
	} else {
		reply.status = status_of(call);
		reply.body = call->in.data ? call->in.data : "";
		reply.len = call->in.len;
	}
	call->busy = true;
	call->done(call->opaque, &reply);
	free_call(call);
}

static void process(struct pvr_http *http)
{
	struct pvr_http_call *call;
	CURLMsg *message;
	int left;

	while ((call = TAILQ_FIRST(&http->fresh))) {
		set_fresh(call, false);
		give_news(call);
	}
	while ((message = curl_multi_info_read(http->multi, &left))) {
		CURLcode code = message->data.result;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
		if (call->ops)
			end_stream(call, code);
		else
			end_post(call, code);
	}
}

/* ----------------------------------------------------------------------- requests */

static bool add_header(struct pvr_http_call *call, const char *text)
{
	struct curl_slist *longer = curl_slist_append(call->headers, text);

	if (longer)
		call->headers = longer;
	return longer;
}

static bool set_headers(struct pvr_http_call *call, const char *token)
{
	char line[PVR_HTTP_TOKEN_MAX + 32];

	/*
	 * A server that keeps the connection would read the whole request before it
	 * responds.
	 */
	if (call->ops && (!add_header(call, "Connection: close") ||
			  !add_header(call, "Transfer-Encoding: chunked")))
		return false;
	if (*token) {
		snprintf(line, sizeof(line), "Authorization: %s", token);
		if (!add_header(call, line))
			return false;
	}
	return add_header(call, "Content-Type: application/json") && add_header(call, "Expect:");
}

static void set_tls(CURL *easy, const struct pvr_http_tls *tls)
{
	if (*tls->ca)
		curl_easy_setopt(easy, CURLOPT_CAINFO, tls->ca);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Otherwise curl keeps the authorities that it has read for a day. */
	curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0l);
#endif
	if (*tls->cert)
		curl_easy_setopt(easy, CURLOPT_SSLCERT, tls->cert);
	if (*tls->key)
		curl_easy_setopt(easy, CURLOPT_SSLKEY, tls->key);
}

static void set_common(struct pvr_http *http, CURL *easy, const char *url)
{
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1l);
	curl_easy_setopt(easy, CURLOPT_POST, 1l);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, PVR_HTTP_CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1l);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 5l);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5l);
	curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, CONNECTION_IDLE);
	set_tls(easy, &http->tls);
}

static void set_call(struct pvr_http_call *call, const char *url)
{
	CURL *easy = call->easy;

	set_common(call->http, easy, url);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->error);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_cb);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	if (!call->ops) {
		curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, PVR_HTTP_TIMEOUT_MS);
		return;
	}
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_cb);
	curl_easy_setopt(easy, CURLOPT_READDATA, call);
}

static struct pvr_http_call *make_call(struct pvr_http *http, const char *url, const char *token,
				       const struct pvr_http_stream_ops *ops)
{
	struct pvr_http_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->http = http;
	call->ops = ops;
	TAILQ_INSERT_TAIL(&http->calls, call, link);
	call->easy = curl_easy_init();
	if (!call->easy || !set_headers(call, token)) {
		free_call(call);
		return NULL;
	}
	set_call(call, url);
	return call;
}

static struct pvr_http_call *begin(struct pvr_http_call *call)
{
	if (curl_multi_add_handle(call->http->multi, call->easy)) {
		free_call(call);
		return NULL;
	}
	call->http->counters.requests++;
	return call;
}

struct pvr_http_call *pvr_http_post(struct pvr_http *http, const char *url, const char *token,
				    const char *body, size_t len, long timeout_ms,
				    void (*done)(void *opaque, const struct pvr_http_reply *reply),
				    void *opaque)
{
	struct pvr_http_call *call = make_call(http, url, token, NULL);

	if (!call)
		return NULL;
	call->done = done;
	call->opaque = opaque;
	curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE, (long)len);
	curl_easy_setopt(call->easy, CURLOPT_COPYPOSTFIELDS, body);
	http->counters.tx_bytes += len;
	return begin(call);
}

struct pvr_http_call *pvr_http_stream(struct pvr_http *http, const char *url, const char *token,
				      const struct pvr_http_stream_ops *ops, void *opaque)
{
	struct pvr_http_call *call = make_call(http, url, token, ops);

	if (!call)
		return NULL;
	call->opaque = opaque;
	return begin(call);
}

bool pvr_http_send(struct pvr_http_call *stream, const char *data, size_t len)
{
	if (stream->sent) {
		take(&stream->out, stream->sent);
		stream->sent = 0;
	}
	if (!append(&stream->out, data, len))
		return false;
	if (stream->paused) {
		stream->paused = false;
		curl_easy_pause(stream->easy, CURLPAUSE_CONT);
	}
	return true;
}

size_t pvr_http_unsent(const struct pvr_http_call *stream)
{
	return stream->out.len - stream->sent;
}

static size_t discard_cb(char *data, size_t one, size_t len, void *opaque)
{
	return len;
}

void pvr_http_post_now(struct pvr_http *http, const char *url, const char *token, const char *body,
		       long timeout_ms)
{
	CURL *easy = curl_easy_init();
	struct curl_slist *headers = NULL;
	char line[600];

	if (!easy)
		return;
	set_common(http, easy, url);
	snprintf(line, sizeof(line), "Authorization: %s", token);
	if (*token)
		headers = curl_slist_append(NULL, line);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard_cb);
	curl_easy_perform(easy);
	curl_slist_free_all(headers);
	curl_easy_cleanup(easy);
}

const struct pvr_http_counters *pvr_http_counters(const struct pvr_http *http)
{
	return &http->counters;
}

/* --------------------------------------------------------------------- life cycle */

struct pvr_http *pvr_http_create(struct pvr_loop *loop, const struct pvr_http_tls *tls,
				 struct pvr_error *err)
{
	struct pvr_http *http = calloc(1, sizeof(*http));

	if (http && !curl_global_init(CURL_GLOBAL_DEFAULT))
		http->multi = curl_multi_init();
	if (!http || !http->multi) {
		free(http);
		pvr_fail(err, "cannot start libcurl");
		return NULL;
	}
	http->loop = loop;
	http->tls = *tls;
	http->timer.expired = timer_expired;
	TAILQ_INIT(&http->calls);
	TAILQ_INIT(&http->fresh);
	curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, socket_cb);
	curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
	curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, timer_cb);
	curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
	curl_multi_setopt(http->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, CONNECTIONS_MAX);
	return http;
}

void pvr_http_destroy(struct pvr_http *http)
{
	struct pvr_http_call *call;

	if (!http)
		return;
	while ((call = TAILQ_FIRST(&http->calls))) {
		call->refused = "it is over";
		if (call->ops)
			free_call(call);
		else
			end_post(call, CURLE_OK);
	}
	curl_multi_cleanup(http->multi);
	while (!LIST_EMPTY(&http->sockets))
		drop_socket(LIST_FIRST(&http->sockets));
	pvr_loop_timer_disarm(&http->timer);
	free(http);
	curl_global_cleanup();
}
