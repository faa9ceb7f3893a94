/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Calls to etcd by its JSON gateway: to one of several URLs, after having logged in.
 *
 * A URL that fails is left for the next one; when all have failed, with pauses of up to
 * five seconds. Whoever has something to do does it in ready(), as far as
 * pvr_etcd_client_usable() says that it can be done, and does it again when a call has
 * failed: nothing is repeated here.
 */
#ifndef PVR_DIRECTORY_ETCD_CLIENT_H
#define PVR_DIRECTORY_ETCD_CLIENT_H

#include "directory/etcd_settings.h"
#include "directory/etcd_text.h"
#include "directory/http.h"

enum pvr_etcd_result {
	PVR_ETCD_OK, /* @reply is an object */
	PVR_ETCD_REFUSED, /* it says why not: @reply may be one, too */
	PVR_ETCD_FAILED, /* there was no answer that makes sense */
};

typedef void (*pvr_etcd_done)(void *opaque, enum pvr_etcd_result result, struct json_object *reply);

struct pvr_etcd_client {
	struct pvr_loop *loop;
	struct pvr_http *http;
	struct pvr_etcd_settings settings;
	char password[256], token[512];
	size_t current; /* URL */
	unsigned int failures; /* one after the other */
	bool connected, authenticating, ending;
	uint64_t retry_at; /* not before; 0: at once */
	struct pvr_loop_timer timer;
	void (*ready)(void *opaque); /* something may be possible now that was not */
	/* Whether it answers has changed; then the answers that were lost are missed. */
	void (*changed)(void *opaque, bool connected, const char *why);
	void *opaque;
	uint64_t failed; /* calls */
};

/* @ready, @changed and @opaque have been set. False with @err filled. */
bool pvr_etcd_client_init(struct pvr_etcd_client *client, struct pvr_loop *loop,
			  const struct pvr_etcd_settings *settings, struct pvr_error *err);
void pvr_etcd_client_exit(struct pvr_etcd_client *client);

/* It is not waiting, and has logged in, which is begun here if it is necessary. */
bool pvr_etcd_client_usable(struct pvr_etcd_client *client);
const char *pvr_etcd_client_url(const struct pvr_etcd_client *client);

/* Frees @body. False: no memory, or that was bad; then done() is not called. */
bool pvr_etcd_call(struct pvr_etcd_client *client, const char *path, struct pvr_text *body,
		   pvr_etcd_done done, void *opaque);
/* NULL: no memory. Its end is to be told by pvr_etcd_stream_ended(). */
struct pvr_http_call *pvr_etcd_stream(struct pvr_etcd_client *client, const char *path,
				      const struct pvr_http_stream_ops *ops, void *opaque);
void pvr_etcd_stream_ended(struct pvr_etcd_client *client, long status, const char *why);
/* Before the end: waits. */
void pvr_etcd_call_now(struct pvr_etcd_client *client, const char *path, const char *body);

#endif /* PVR_DIRECTORY_ETCD_CLIENT_H */
