/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A connection of pvrdmactl to pvrdmad. */
#ifndef PVR_DAEMON_CTL_CLIENT_H
#define PVR_DAEMON_CTL_CLIENT_H

#include <json-c/json.h>
#include <stdbool.h>

#include "base/error.h"

/* Connect to the control socket @path. Return: a socket, or -1 with @err filled. */
int pvr_ctl_connect(const char *path, struct pvr_error *err);

/*
 * Send a request and receive its reply. @path is for the error. Return: NULL with @err filled,
 * else the caller's.
 */
struct json_object *pvr_ctl_ask(int fd, const char *path, struct json_object *request,
				struct pvr_error *err);

/*
 * The same for a request that is answered in pages: sends it with "cursor" for each of them, and
 * joins the lists of the replies. The list "peers" is sorted by "name", and "hosts" by "host".
 */
struct json_object *pvr_ctl_ask_pages(int fd, const char *path, struct json_object *request,
				      struct pvr_error *err);

/* The same as pvr_ctl_ask(), and no byte behind the line of the reply is received. */
struct json_object *pvr_ctl_ask_line(int fd, const char *path, struct json_object *request,
				     struct pvr_error *err);

/* Return: false with @err filled if pvrdmad has refused the request. */
bool pvr_ctl_is_ok(struct json_object *reply, struct pvr_error *err);

/* Return: the adapter of this name in the reply to "adapters", or NULL. */
struct json_object *pvr_ctl_find_adapter(struct json_object *reply, const char *name);

/*
 * Put a setting of an adapter into the request @request, a struct json_object, if it is a known one:
 * an argument of pvr_adapter_words(). pvrdmad gets the number of a user. Return: false with @err
 * filled.
 */
bool pvr_ctl_put_setting(void *request, const char *key, const char *value, struct pvr_error *err);

#endif /* PVR_DAEMON_CTL_CLIENT_H */
