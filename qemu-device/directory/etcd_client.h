/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Calls to etcd through its JSON gateway, by one of several URLs and with authentication.
 *
 * After a failure the next URL is tried; after all have failed, with pauses of up to 5 s. A login
 * costs etcd as much as thousands of other calls. So the client keeps its token until etcd refuses
 * it, waits longer for a login, and pauses for up to 2 minutes after one that has failed. All
 * pauses are random: many hosts that lose etcd together return one by one.
 * The user starts its calls in ready() while pvr_etcd_client_usable() is true, and
 * repeats failed calls itself: the client repeats none.
 */
#ifndef PVR_DIRECTORY_ETCD_CLIENT_H
#define PVR_DIRECTORY_ETCD_CLIENT_H

#include "directory/etcd_settings.h"
#include "directory/etcd_text.h"
#include "directory/http.h"

enum pvr_etcd_result {
	PVR_ETCD_OK, /* @reply is an object */
	PVR_ETCD_REFUSED, /* etcd reports an error; @reply may be an object */
	PVR_ETCD_FAILED, /* no valid response */
};

typedef void (*pvr_etcd_done)(void *opaque, enum pvr_etcd_result result, struct json_object *reply);

struct pvr_etcd_client {
	struct pvr_loop *loop;
	struct pvr_http *http;
	struct pvr_etcd_settings settings;
	char password[256], token[PVR_HTTP_TOKEN_MAX];
	unsigned int logins, worked; /* number of the token; of the last one that was accepted */
	size_t current; /* index of the URL */
	unsigned int failures; /* consecutive */
	unsigned int
		login_failures; /* consecutive, of logins that etcd has refused or not done in time */
	uint64_t random;
	bool connected, authenticating, ending;
	uint64_t retry_at; /* earliest time of the next attempt; 0: now */
	struct pvr_loop_timer timer;
	void (*ready)(void *opaque); /* calls may have become possible */
	/* The connection went up or down. Responses in flight are lost. */
	void (*changed)(void *opaque, bool connected, const char *why);
	void *opaque;
	uint64_t failed; /* calls */
};

/* Set @ready, @changed and @opaque before. False with @err filled. */
bool pvr_etcd_client_init(struct pvr_etcd_client *client, struct pvr_loop *loop,
			  const struct pvr_etcd_settings *settings, struct pvr_error *err);
void pvr_etcd_client_exit(struct pvr_etcd_client *client);

/* Return: false while it pauses or logs in. Starts the login if needed. */
bool pvr_etcd_client_usable(struct pvr_etcd_client *client);
const char *pvr_etcd_client_url(const struct pvr_etcd_client *client);

/*
 * Frees @body. Return: false without memory, also for @body; done() is not called then.
 */
bool pvr_etcd_call(struct pvr_etcd_client *client, const char *path, struct pvr_text *body,
		   pvr_etcd_done done, void *opaque);
/* Return: NULL without memory. When the stream ends, call pvr_etcd_stream_ended(). */
struct pvr_http_call *pvr_etcd_stream(struct pvr_etcd_client *client, const char *path,
				      const struct pvr_http_stream_ops *ops, void *opaque);
void pvr_etcd_stream_ended(struct pvr_etcd_client *client, long status, const char *why);
/* The token is not accepted any more: the next pvr_etcd_client_usable() logs in again. */
void pvr_etcd_client_log_out(struct pvr_etcd_client *client);
/* Ends a pause: the operator may have corrected something. */
void pvr_etcd_client_retry(struct pvr_etcd_client *client);
/* Blocks; for the end of the daemon. */
void pvr_etcd_call_now(struct pvr_etcd_client *client, const char *path, const char *body);

#endif /* PVR_DIRECTORY_ETCD_CLIENT_H */
