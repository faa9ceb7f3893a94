// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: a hostile HTTP server for directory/http.c, with libcurl, over
 * loopback. The first byte of an input holds HTTP_* flags. Steps follow: a byte of enum
 * step and the number of a connection, a length of one byte, and as many bytes.
 *
 * With FUZZ_SEEDS=FOLDER in the environment it writes the seeds there and exits.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "directory/http.h"

#define HTTP_CANCELS 0x01 /* the stream, from within its second line */
#define HTTP_SENDS 0x02 /* from within each callback */
#define CONNS 4
#define CALLS 6
#define STEPS_MAX 64
#define HEAD "HTTP/1.1 %03u Text\r\nTransfer-Encoding: chunked\r\n\r\n"

enum step {
	STEP_POST,
	STEP_STREAM,
	STEP_SEND, /* on the stream */
	STEP_CANCEL,
	/* Of the server. */
	STEP_HEAD, /* the first byte is the status less 200 */
	STEP_CHUNK,
	STEP_BYTES,
	STEP_CLOSE,
	STEP_NUM,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct {
	int listener, conns[CONNS];
	char url[64];
	uint8_t flags;
	struct pvr_loop *loop;
	struct pvr_http *http;
	struct pvr_http_call *stream;
	bool waits[CALLS]; /* for done() */
	unsigned int calls, lines;
} w;

static void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

/* ------------------------------------------------------------------------- the client */

static void done(void *opaque, const struct pvr_http_reply *reply)
{
	bool *waits = opaque;

	if (!*waits)
		die("a POST that is done twice");
	*waits = false;
	if (reply->status ? reply->body[reply->len] || reply->len > PVR_HTTP_REPLY_MAX
			  : !reply->error)
		die("an answer without an end, or a failure without a reason");
}

static void send_some(void)
{
	if (w.stream && w.flags & HTTP_SENDS && w.lines < 64)
		pvr_http_send(w.stream, "{}\n", 3);
}

static void line(void *opaque, const char *text, size_t len)
{
	(void)opaque;
	if (text[len] || memchr(text, '\n', len) || len > PVR_HTTP_LINE_MAX)
		die("a line that is none");
	w.lines++;
	send_some();
	if (!(w.flags & HTTP_CANCELS) || w.lines < 2)
		return;
	pvr_http_cancel(w.stream);
	w.stream = NULL;
}

static void drained(void *opaque)
{
	(void)opaque;
	w.lines++;
	send_some();
}

static void ended(void *opaque, long status, const char *why)
{
	(void)opaque;
	(void)status;
	if (!w.stream || !*why)
		die("a stream that ends twice, or without a reason");
	w.stream = NULL;
}

static const struct pvr_http_stream_ops stream_ops = {
	.line = line,
	.drained = drained,
	.ended = ended,
};

static void post(const char *body, size_t len)
{
	bool *waits = &w.waits[w.calls];

	if (w.calls == CALLS)
		return;
	w.calls++;
	*waits = true;
	if (!pvr_http_post(w.http, w.url, "token", body, len, PVR_HTTP_TIMEOUT_MS, done, waits))
		die("no memory");
}

static void open_stream(void)
{
	if (w.stream || w.calls == CALLS)
		return;
	w.calls++;
	w.stream = pvr_http_stream(w.http, w.url, "", &stream_ops, NULL);
	if (!w.stream)
		die("no memory");
}

static void cancel(void)
{
	if (w.stream)
		pvr_http_cancel(w.stream);
	w.stream = NULL;
}

/* ------------------------------------------------------------------------- the server */

static void tune(int fd)
{
	const struct linger linger = { .l_onoff = 1 };
	const int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* Accepts what connects, and drops what it receives. */
static void serve(void)
{
	char dropped[4096];

	for (int i = 0; i < CONNS; i++) {
		if (w.conns[i] < 0) {
			w.conns[i] = accept4(w.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
			if (w.conns[i] >= 0)
				tune(w.conns[i]);
		}
		while (w.conns[i] >= 0 && recv(w.conns[i], dropped, sizeof(dropped), 0) > 0)
			;
	}
}

static void reply(int fd, const void *data, size_t size)
{
	if (fd >= 0 && send(fd, data, size, MSG_NOSIGNAL) < 0)
		return;
}

static void reply_head(int fd, uint8_t status)
{
	char head[80];
	size_t len = (size_t)snprintf(head, sizeof(head), HEAD, 200u + status);

	reply(fd, head, len);
}

static void reply_chunk(int fd, const uint8_t *data, size_t size)
{
	char chunk[300];
	size_t len = (size_t)snprintf(chunk, sizeof(chunk), "%zx\r\n", size);

	if (size)
		memcpy(chunk + len, data, size);
	memcpy(chunk + len + size, "\r\n", 2);
	reply(fd, chunk, len + size + 2);
}

static void hang_up(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---------------------------------------------------------------------------- a run */

static void run(void)
{
	for (int i = 0; i < 4; i++) {
		pvr_loop_wait(w.loop, 0);
		pvr_loop_dispatch(w.loop);
		serve();
	}
}

static void step(uint8_t op, const uint8_t *data, size_t size)
{
	int *fd = &w.conns[op / STEP_NUM % CONNS];

	switch (op % STEP_NUM) {
	case STEP_POST:
		post((const char *)data, size);
		break;
	case STEP_STREAM:
		open_stream();
		break;
	case STEP_SEND:
		if (w.stream && size)
			pvr_http_send(w.stream, (const char *)data, size);
		break;
	case STEP_CANCEL:
		cancel();
		break;
	case STEP_HEAD:
		reply_head(*fd, size ? data[0] : 0);
		break;
	case STEP_CHUNK:
		reply_chunk(*fd, data, size);
		break;
	case STEP_BYTES:
		reply(*fd, data, size);
		break;
	default:
		hang_up(fd);
	}
	run();
}

static void steps(const uint8_t *data, size_t size)
{
	for (int i = 0; i < STEPS_MAX && size >= 2; i++) {
		size_t len = data[1] < size - 2 ? data[1] : size - 2;

		step(data[0], data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
}

static void check_over(void)
{
	for (int i = 0; i < CALLS; i++)
		if (w.waits[i])
			die("a POST that is never done");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct pvr_http_tls tls = { "", "", "" };
	struct pvr_error err;

	if (!size)
		return 0;
	w.flags = data[0];
	w.calls = w.lines = 0;
	w.loop = pvr_loop_create();
	w.http = w.loop ? pvr_http_create(w.loop, &tls, &err) : NULL;
	if (!w.http)
		die("no memory");
	memset(w.waits, 0, sizeof(w.waits));
	steps(data + 1, size - 1);
	w.stream = NULL;
	pvr_http_destroy(w.http);
	check_over();
	pvr_loop_destroy(w.loop);
	serve();
	for (int i = 0; i < CONNS; i++)
		hang_up(&w.conns[i]);
	return 0;
}

/* ---------------------------------------------------------------------------- seeds */

static struct {
	uint8_t data[1024];
	size_t size;
} seed;

static void add(enum step step, const char *text)
{
	size_t size = strlen(text);

	seed.data[seed.size++] = (uint8_t)step;
	seed.data[seed.size++] = (uint8_t)size;
	memcpy(seed.data + seed.size, text, size);
	seed.size += size;
}

static void save(const char *name, uint8_t flags)
{
	char path[512];
	FILE *file;

	seed.data[0] = flags;
	snprintf(path, sizeof(path), "%s/%s", getenv("FUZZ_SEEDS"), name);
	file = fopen(path, "wb");
	if (!file || fwrite(seed.data, seed.size, 1, file) != 1 || fclose(file))
		die("cannot write a seed");
	memset(&seed, 0, sizeof(seed));
	seed.size = 1;
}

static void write_seeds(void)
{
	seed.size = 1;
	add(STEP_POST, "{}");
	add(STEP_HEAD, "");
	add(STEP_CHUNK, "{\"header\":{}}");
	add(STEP_CHUNK, "");
	save("post", 0);
	add(STEP_POST, "{}");
	add(STEP_BYTES, "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n{}");
	add(STEP_POST, "{}");
	add(STEP_CLOSE, "");
	save("refused", 0);
	for (uint8_t flags = 0; flags < 4; flags++) {
		char name[16];

		add(STEP_STREAM, "");
		add(STEP_SEND, "{\"create_request\":{}}\n");
		add(STEP_HEAD, "");
		add(STEP_CHUNK, "{\"result\":{}}\n{\"res");
		add(STEP_CHUNK, "ult\":{}}\n\n");
		add(STEP_SEND, "{}\n");
		add(STEP_CHUNK, "");
		snprintf(name, sizeof(name), "stream-%u", flags);
		save(name, flags);
	}
	add(STEP_STREAM, "");
	add(STEP_HEAD, "\x64");
	add(STEP_CHUNK, "no leader");
	add(STEP_CHUNK, "");
	add(STEP_STREAM, "");
	add(STEP_CANCEL, "");
	save("stream-refused", 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	(void)argc;
	(void)argv;
	memset(w.conns, 0xff, sizeof(w.conns));
	w.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (bind(w.listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(w.listener, 64) || getsockname(w.listener, (struct sockaddr *)&address, &len))
		die("cannot listen at loopback");
	snprintf(w.url, sizeof(w.url), "http://127.0.0.1:%u/v3/x", ntohs(address.sin_port));
	if (!getenv("FUZZ_SEEDS"))
		return 0;
	write_seeds();
	exit(0);
}
