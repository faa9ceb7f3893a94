/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * HTTP requests on an event loop, by libcurl: POSTs that are answered, and streams that
 * go both ways for as long as they last.
 *
 * Callbacks come from the loop, never out of these functions, and may call all of them.
 * What a server sends is bounded: an answer, a line of a stream, and the time for an
 * answer.
 */
#ifndef PVR_DIRECTORY_HTTP_H
#define PVR_DIRECTORY_HTTP_H

#include <stddef.h>
#include <sys/queue.h>

#include "base/error.h"
#include "base/loop.h"

#define PVR_HTTP_REPLY_MAX (1u << 20)
#define PVR_HTTP_LINE_MAX (1u << 20)
#define PVR_HTTP_TIMEOUT_MS 5000l
#define PVR_HTTP_CONNECT_MS 3000l

struct pvr_http;
struct pvr_http_call;

/* Files; "": none. They are read at each new connection. */
struct pvr_http_tls {
	const char *ca, *cert, *key;
};

struct pvr_http_counters {
	uint64_t requests, tx_bytes, rx_bytes; /* bytes: without HTTP's headers */
};

struct pvr_http_reply {
	long status; /* 0: no answer, and @error says why */
	const char *error;
	const char *body; /* NUL-terminated */
	size_t len;
};

struct pvr_http_stream_ops {
	/* One line, NUL-terminated, without its newline. */
	void (*line)(void *opaque, const char *line, size_t len);
	/* All that was to be sent is on its way. */
	void (*drained)(void *opaque);
	/* It is over, and has been freed. @status: HTTP's, 0 if there was none. */
	void (*ended)(void *opaque, long status, const char *why);
};

/* NULL with @err filled. Strings of @tls must last. */
struct pvr_http *pvr_http_create(struct pvr_loop *loop, const struct pvr_http_tls *tls,
				 struct pvr_error *err);
/* Calls done() of whoever waits for an answer, but no more of streams. */
void pvr_http_destroy(struct pvr_http *http);

/* @token: for an Authorization header, or "". NULL: no memory; else done() is called once. */
struct pvr_http_call *pvr_http_post(struct pvr_http *http, const char *url, const char *token,
				    const char *body, size_t len,
				    void (*done)(void *opaque, const struct pvr_http_reply *reply),
				    void *opaque);
struct pvr_http_call *pvr_http_stream(struct pvr_http *http, const char *url, const char *token,
				      const struct pvr_http_stream_ops *ops, void *opaque);
/* Copies. False: no memory. */
bool pvr_http_send(struct pvr_http_call *stream, const char *data, size_t len);
size_t pvr_http_unsent(const struct pvr_http_call *stream);
/* Its callbacks are not called any more. */
void pvr_http_cancel(struct pvr_http_call *call);

/* A last POST, waited for, @timeout_ms at most; nobody cares about the answer. */
void pvr_http_post_now(struct pvr_http *http, const char *url, const char *token, const char *body,
		       long timeout_ms);

const struct pvr_http_counters *pvr_http_counters(const struct pvr_http *http);

#endif /* PVR_DIRECTORY_HTTP_H */
