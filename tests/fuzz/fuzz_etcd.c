// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: a hostile etcd, and hostile hosts, against the etcd backend of the
 * directory. The functions of http.h are replaced here, and the clock is a variable.
 *
 * An input is text. Its first line holds options as letters: 'u' logs in to etcd, 'c' has a
 * cache of two entries, 'a' publishes no address. Each later line is one step: a letter, an argument
 * character, and a text:
 *
 *	q r	resolves or announces the GID of the argument; R withdraws it
 *	A	answers the oldest POST. The argument is the first digit of the HTTP status;
 *		'0' is a failed connection
 *	B	the same for the newest POST
 *	L	is a line on the watch stream
 *	E	ends that stream, with a status as A
 *	D	all bytes for that stream are sent
 *	T	the argument's number of seconds pass
 *	u d	the connection to a host goes up or down
 *	c	the adapter of the argument claims a state; upper case: and waits. The text begins with a
 *		byte of its token
 *	l m w	a host reports that it has a GID or has lost it, or it is needed
 *	f	another host refers to the host, at the address in the text
 *	h	the host has taken an adapter with the GID
 *	n N	the host is needed, or not any more
 *
 * In texts, {{...}} becomes the base64 of what it encloses, @I the ID of the newest watch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "directory/directory.h"
#include "directory/etcd_settings.h"
#include "directory/etcd_text.h"
#include "directory/http.h"

#define STEPS_MAX 400
#define TEXT_MAX 8192
#define GIDS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

static void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

/* ------------------------------------------------------------------------ the clock */

static uint64_t now_ns;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	ts->tv_sec = (time_t)(now_ns / PVR_SEC);
	ts->tv_nsec = (long)(now_ns % PVR_SEC);
	return 0;
}

/* ----------------------------------------------------------------------------- HTTP */

struct pvr_http_call {
	TAILQ_ENTRY(pvr_http_call) link;
	bool stream, busy, dead;
	void (*done)(void *opaque, const struct pvr_http_reply *reply);
	const struct pvr_http_stream_ops *ops;
	void *opaque;
	size_t unsent;
};

struct pvr_http {
	TAILQ_HEAD(, pvr_http_call) calls;
	struct pvr_http_counters counters;
	unsigned long long watch_id; /* of the newest request */
};

static struct pvr_http http;

struct pvr_http *pvr_http_create(struct pvr_loop *loop, const struct pvr_http_tls *tls,
				 struct pvr_error *err)
{
	(void)loop;
	(void)tls;
	(void)err;
	memset(&http, 0, sizeof(http));
	TAILQ_INIT(&http.calls);
	return &http;
}

static struct pvr_http_call *make_call(void *opaque)
{
	struct pvr_http_call *call = calloc(1, sizeof(*call));

	if (!call)
		die("no memory");
	call->opaque = opaque;
	TAILQ_INSERT_TAIL(&http.calls, call, link);
	http.counters.requests++;
	return call;
}

static void free_call(struct pvr_http_call *call)
{
	TAILQ_REMOVE(&http.calls, call, link);
	free(call);
}

static void end_post(struct pvr_http_call *call, const struct pvr_http_reply *reply)
{
	call->busy = true;
	call->done(call->opaque, reply);
	free_call(call);
}

void pvr_http_destroy(struct pvr_http *self)
{
	const struct pvr_http_reply over = { .error = "it is over" };
	struct pvr_http_call *call;

	if (!self)
		return;
	while ((call = TAILQ_FIRST(&http.calls))) {
		if (call->stream)
			free_call(call);
		else
			end_post(call, &over);
	}
}

struct pvr_http_call *pvr_http_post(struct pvr_http *self, const char *url, const char *token,
				    const char *body, size_t len, long timeout_ms,
				    void (*done)(void *opaque, const struct pvr_http_reply *reply),
				    void *opaque)
{
	struct json_object *object = pvr_json_parse(body, len);
	struct pvr_http_call *call = make_call(opaque);

	(void)self;
	(void)timeout_ms;
	if (!object || strncmp(url, "http://", 7) || strpbrk(token, "\r\n"))
		die("a malformed request");
	json_object_put(object);
	call->done = done;
	return call;
}

struct pvr_http_call *pvr_http_stream(struct pvr_http *self, const char *url, const char *token,
				      const struct pvr_http_stream_ops *ops, void *opaque)
{
	struct pvr_http_call *call = make_call(opaque);

	(void)self;
	(void)url;
	(void)token;
	call->stream = true;
	call->ops = ops;
	return call;
}

bool pvr_http_send(struct pvr_http_call *stream, const char *data, size_t len)
{
	const char *id = memmem(data, len, "watch_id\":\"", 11);

	if (!stream->stream || stream->dead)
		die("data for a stream that has ended");
	if (id)
		http.watch_id = strtoull(id + 11, NULL, 10);
	stream->unsent += len;
	return true;
}

size_t pvr_http_unsent(const struct pvr_http_call *stream)
{
	return stream->unsent;
}

void pvr_http_cancel(struct pvr_http_call *call)
{
	if (call->dead)
		die("a call is cancelled twice");
	call->dead = true;
	if (!call->busy)
		free_call(call);
}

void pvr_http_post_now(struct pvr_http *self, const char *url, const char *token, const char *body,
		       long timeout_ms)
{
	(void)self;
	(void)url;
	(void)token;
	(void)body;
	(void)timeout_ms;
}

const struct pvr_http_counters *pvr_http_counters(const struct pvr_http *self)
{
	return &self->counters;
}

static struct pvr_http_call *find_stream(void)
{
	struct pvr_http_call *call;

	TAILQ_FOREACH(call, &http.calls, link) {
		if (call->stream)
			return call;
	}
	return NULL;
}

static struct pvr_http_call *find_post(bool newest)
{
	struct pvr_http_call *call, *found = NULL;

	TAILQ_FOREACH(call, &http.calls, link) {
		if (call->stream)
			continue;
		found = call;
		if (!newest)
			break;
	}
	return found;
}

/* --------------------------------------------------------------- the daemon's part */

static char fabric[] = "red";
static const char *const hosts[] = { "a", "b", "c", "self" };
static const char *host_of(char arg)
{
	return hosts[(unsigned char)arg % 4];
}

static void gid_of(char arg, uint8_t gid[16])
{
	memset(gid, 0, 16);
	gid[0] = arg & 4 ? 0xff : 0xfd;
	gid[1] = arg & 4 ? 0x1e : 0;
	gid[15] = (unsigned char)arg % GIDS;
}

static void check_host(const char *host)
{
	size_t len = strlen(host);

	if (!len || len >= PVR_HOST_NAME_MAX || strpbrk(host, " /\n\r\"") || !strcmp(host, "self"))
		die("the directory reports a host that is none");
}

static int set_gid(void *opaque, const struct pvr_key *key, uint8_t type, enum pvr_gid_state state,
		   const char *host)
{
	(void)opaque;
	(void)key;
	if (host)
		check_host(host);
	if ((state == PVR_GID_AT_HOST || state == PVR_GID_AT_HOST_MORE) != (host && type) &&
	    state != PVR_GID_LEFT_HOST)
		die("a GID without its host or type");
	return 0;
}

static bool set_peer(void *opaque, const char *host, const char *address, struct pvr_error *err)
{
	(void)opaque;
	check_host(host);
	return address[0] != '!' || pvr_fail(err, "it is refused");
}

static void forget_peer(void *opaque, const char *host)
{
	(void)opaque;
	check_host(host);
}

static bool want(void *opaque, const char *host)
{
	(void)opaque;
	check_host(host);
	return host[0] == 'a';
}

static bool ask(void *opaque, const char *host, const struct pvr_key *key)
{
	(void)opaque;
	(void)key;
	check_host(host);
	return host[0] == 'a';
}

static bool is_up(void *opaque, const char *host)
{
	(void)opaque;
	return host[0] == 'a';
}

static void claimed(void *opaque, const struct pvr_state_claim *claim, enum pvr_claim result,
		    const char *detail)
{
	(void)opaque;
	if (strcmp(claim->fabric, fabric) || result < PVR_CLAIM_WON)
		die("a claim without a result");
	if (result == PVR_CLAIM_LOST && strcmp(detail, "?"))
		check_host(detail);
}

static void log_line(void *opaque, enum pvr_log_level level, const char *text)
{
	(void)opaque;
	(void)level;
	if (getenv("FUZZ_LOG"))
		fprintf(stderr, "%s\n", text);
}

static struct pvr_directory *make_directory(struct pvr_loop *loop, const char *options)
{
	struct pvr_etcd_settings etcd = {
		.urls = { "http://127.0.0.1:1", "http://127.0.0.1:2" },
		.num_urls = 2,
	};
	const struct pvr_directory_settings settings = {
		.etcd = &etcd,
		.cache = strchr(options, 'c') ? 2 : 0,
	};
	const struct pvr_directory_env env = {
		.loop = loop,
		.name = "self",
		.address = strchr(options, 'a') ? "" : "192.0.2.99:7471",
		.set_gid = set_gid,
		.check_peer = set_peer,
		.set_peer = set_peer,
		.forget_peer = forget_peer,
		.want = want,
		.state = ask,
		.is_up = is_up,
		.claimed = claimed,
		.log = log_line,
	};
	struct pvr_directory *directory;
	struct pvr_error err;

	if (strchr(options, 'u'))
		strcpy(etcd.user, "user");
	directory = pvr_directory_create(&env, &settings, &err);
	if (!directory)
		die(err.text);
	return directory;
}

/* ---------------------------------------------------------------------------- steps */

/* Replaces {{...}} and @I. */
static size_t expand(char *to, const char *from)
{
	const char *end;
	size_t len = 0;

	while (*from && len < TEXT_MAX - 64) {
		end = strncmp(from, "{{", 2) ? NULL : strstr(from, "}}");
		if (end && PVR_BASE64_SIZE((size_t)(end - from)) < TEXT_MAX - len) {
			pvr_base64_encode(to + len, from + 2, (size_t)(end - from) - 2);
			len += strlen(to + len);
			from = end + 2;
		} else if (!strncmp(from, "@I", 2)) {
			len += (size_t)snprintf(to + len, 32, "%llu", http.watch_id);
			from += 2;
		} else {
			to[len++] = *from++;
		}
	}
	to[len] = '\0';
	return len;
}

static long status_of(char arg)
{
	return arg < '0' || arg > '9' ? 200 : (arg - '0') * 100 + (arg == '4');
}

/* The text is in a block of its own size, where ASan sees each byte beyond. */
static void answer(bool newest, char arg, const char *text, size_t len)
{
	struct pvr_http_call *call = find_post(newest);
	struct pvr_http_reply reply = { .status = status_of(arg) };
	char *body;

	if (!call)
		return;
	body = malloc(len + 1);
	if (!body)
		die("no memory");
	memcpy(body, text, len + 1);
	if (reply.status) {
		reply.body = body;
		reply.len = len;
	} else {
		reply.error = body;
	}
	http.counters.rx_bytes += len;
	end_post(call, &reply);
	free(body);
}

static void send_line(const char *text, size_t len)
{
	struct pvr_http_call *call = find_stream();
	char *line;

	if (!call)
		return;
	line = malloc(len + 1);
	if (!line)
		die("no memory");
	memcpy(line, text, len + 1);
	call->busy = true;
	call->ops->line(call->opaque, line, len);
	call->busy = false;
	if (call->dead)
		free_call(call);
	free(line);
}

static void drain(void)
{
	struct pvr_http_call *call = find_stream();

	if (!call)
		return;
	call->unsent = 0;
	call->busy = true;
	call->ops->drained(call->opaque);
	call->busy = false;
	if (call->dead)
		free_call(call);
}

static void end_stream(char arg, const char *text)
{
	struct pvr_http_call *call = find_stream();
	const struct pvr_http_stream_ops *ops;
	void *opaque;

	if (!call)
		return;
	ops = call->ops;
	opaque = call->opaque;
	free_call(call);
	ops->ended(opaque, status_of(arg), text);
}

static void claim_state(struct pvr_directory *directory, char arg, char token)
{
	struct pvr_state_claim claim = {
		.mac = { 2, [5] = arg & 3 },
		.token = { (uint8_t)token },
		.life = 60 * (arg & 7),
		.waits = arg >= 'A' && arg <= 'Z',
	};

	strcpy(claim.fabric, fabric);
	pvr_directory_claim(directory, &claim);
}

static void step(struct pvr_directory *directory, char op, char arg, const char *text, size_t len)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
	uint8_t gid[16];

	gid_of(text[0], gid);
	switch (op) {
	case 'q':
		gid_of(arg, gid);
		pvr_directory_resolve(directory, fabric, gid);
		break;
	case 'r':
	case 'R':
		gid_of(arg, gid);
		pvr_directory_announce(directory, fabric, gid, 1 + (arg & 1), mac, op == 'r');
		break;
	case 'A':
	case 'B':
		answer(op == 'B', arg, text, len);
		break;
	case 'L':
		send_line(text, len);
		break;
	case 'E':
		end_stream(arg, text);
		break;
	case 'D':
		drain();
		break;
	case 'T':
		now_ns += (uint64_t)(arg & 15) * PVR_SEC;
		break;
	case 'u':
	case 'd':
		pvr_directory_changed(directory, host_of(arg), op == 'u');
		break;
	case 'c':
		claim_state(directory, arg, text[0]);
		break;
	case 'l':
		pvr_directory_located(directory, host_of(arg), fabric, gid, text[0] & 3);
		break;
	case 'm':
		pvr_directory_moved(directory, host_of(arg), fabric, gid);
		break;
	case 'f':
		pvr_directory_refer(directory, host_of(arg), text);
		break;
	case 'w':
		pvr_directory_wanted(directory, host_of(arg));
		break;
	case 'h':
		pvr_directory_handed_over(directory, host_of(arg), fabric, gid);
		break;
	case 'n':
	case 'N':
		pvr_directory_need(directory, host_of(arg), op == 'n');
		break;
	}
}

static void run(struct pvr_loop *loop)
{
	for (int i = 0; i < 4; i++) {
		now_ns += PVR_MSEC;
		pvr_loop_wait(loop, 0);
		pvr_loop_dispatch(loop);
	}
}

static void steps(struct pvr_directory *directory, struct pvr_loop *loop, char *text)
{
	static char expanded[TEXT_MAX];
	char *line;

	for (int i = 0; i < STEPS_MAX && (line = strsep(&text, "\n")); i++) {
		size_t len = strlen(line) < 2 ? 0 : expand(expanded, line + 2);

		if (strlen(line) >= 2)
			step(directory, line[0], line[1], len ? expanded : "", len);
		run(loop);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pvr_directory_stats stats;
	struct pvr_directory *directory;
	struct pvr_loop *loop = pvr_loop_create();
	char *copy = malloc(size + 1), *text = copy;

	if (!copy || !loop)
		die("no memory");
	memcpy(copy, data, size);
	copy[size] = '\0';
	now_ns = 1000 * PVR_SEC;
	directory = make_directory(loop, strsep(&text, "\n"));
	if (text)
		steps(directory, loop, text);
	pvr_directory_get_stats(directory, &stats);
	pvr_directory_leave(directory);
	pvr_directory_destroy(directory);
	pvr_loop_destroy(loop);
	free(copy);
	return 0;
}
