/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * HTTP requests on an event loop, with libcurl: POSTs with a response, and bidirectional
 * streams.
 *
 * Callbacks come from the loop, never from within these functions, and may call all of
 * them. Bounded are: the size of a response, the length of a line of a stream, and the
 * time until a response.
 */
#ifndef PVR_DIRECTORY_HTTP_H
#define PVR_DIRECTORY_HTTP_H

#include <stddef.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/loop.h"

#define PVR_HTTP_REPLY_MAX (1u << 20)
#define PVR_HTTP_LINE_MAX (1u << 20)
#define PVR_HTTP_TIMEOUT_MS 5000l /* usual */
#define PVR_HTTP_TOKEN_MAX 4096
#define PVR_HTTP_CONNECT_MS 3000l

struct pvr_http;
struct pvr_http_call;

/* Paths; "": none. The files are read for each new connection. */
struct pvr_http_tls {
	const char *ca, *cert, *key;
};

struct pvr_http_counters {
	uint64_t requests, tx_bytes, rx_bytes; /* bytes without HTTP headers */
};

struct pvr_http_reply {
	long status; /* HTTP status; 0: no response, see @error */
	const char *error;
	const char *body; /* NUL-terminated */
	size_t len;
};

struct pvr_http_stream_ops {
	/* One line with a NUL instead of its newline. */
	void (*line)(void *opaque, const char *line, size_t len);
	/* All queued data was sent. */
	void (*drained)(void *opaque);
	/* The stream has ended and is freed. @status: the HTTP status; 0: no response. */
	void (*ended)(void *opaque, long status, const char *why);
};

/* The strings of @tls must stay valid. Return: NULL with @err filled on failure. */
struct pvr_http *pvr_http_create(struct pvr_loop *loop, const struct pvr_http_tls *tls,
				 struct pvr_error *err);
/* Calls done() of all POSTs in progress, but no callback of streams. */
void pvr_http_destroy(struct pvr_http *http);

/*
 * @token: for the Authorization header, or "", below PVR_HTTP_TOKEN_MAX. done() is called once. Return: NULL
 * without memory; done() is not called then.
 */
struct pvr_http_call *pvr_http_post(struct pvr_http *http, const char *url, const char *token,
				    const char *body, size_t len, long timeout_ms,
				    void (*done)(void *opaque, const struct pvr_http_reply *reply),
				    void *opaque);
struct pvr_http_call *pvr_http_stream(struct pvr_http *http, const char *url, const char *token,
				      const struct pvr_http_stream_ops *ops, void *opaque);
/* Queues a copy. Return: false without memory. */
bool pvr_http_send(struct pvr_http_call *stream, const char *data, size_t len);
size_t pvr_http_unsent(const struct pvr_http_call *stream);
/* No callback is called any more. */
void pvr_http_cancel(struct pvr_http_call *call);

/* Sends a last POST, blocks up to @timeout_ms, and ignores the response. */
void pvr_http_post_now(struct pvr_http *http, const char *url, const char *token, const char *body,
		       long timeout_ms);

const struct pvr_http_counters *pvr_http_counters(const struct pvr_http *http);

#endif /* PVR_DIRECTORY_HTTP_H */
