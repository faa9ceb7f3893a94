// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A connection of pvrdmactl to pvrdmad: requests and replies, one JSON object a line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/unix_socket.h"
#include "daemon/adapter_settings.h"
#include "daemon/ctl_client.h"
#include "daemon/json_get.h"
#include "daemon/json_put.h"

#define CTL_PATIENCE 10 /* seconds */
#define RECEIVE_BYTES 4096

/* Return: the service whose control socket has this path: that of an instance, or pvrdmad. */
static const char *service_of(const char *path, char service[PVR_NAME_MAX + 8])
{
	const char *folder = strstr(path, "/run/pvrdma-");
	char name[PVR_NAME_MAX];

	if (!folder || sscanf(folder, "/run/pvrdma-%31[^/]/control", name) != 1)
		return "pvrdmad";
	snprintf(service, PVR_NAME_MAX + 8, "pvrdmad@%s", name);
	return service;
}

static bool no_daemon(const char *path, struct pvr_error *err)
{
	char service[PVR_NAME_MAX + 8];

	if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
		return pvr_fail(err,
				"no pvrdmad at %s: start it with 'pvrdmad --control %s "
				"...' or 'systemctl start %s', or give --control PATH",
				path, path, service_of(path, service));
	if (errno == EACCES)
		return pvr_fail(err,
				"no access to %s: run pvrdmactl as the user that pvrdmad "
				"runs as, or as root",
				path);
	if (errno == ENAMETOOLONG)
		return pvr_fail(err, "socket path %s has %zu characters, the limit is %d", path,
				strlen(path), PVR_SOCKET_PATH_MAX);
	return pvr_fail(err, "cannot reach pvrdmad at %s: %s", path, strerror(errno));
}

static bool send_line(int fd, const char *text)
{
	size_t len = strlen(text);

	return send(fd, text, len, MSG_NOSIGNAL) == (ssize_t)len &&
	       send(fd, "\n", 1, MSG_NOSIGNAL) == 1;
}

int pvr_ctl_connect(const char *path, struct pvr_error *err)
{
	const struct timeval patience = { .tv_sec = CTL_PATIENCE };
	int fd = pvr_unix_connect(path);

	if (fd < 0) {
		no_daemon(path, err);
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

/* @step: bytes to receive at a time */
static struct json_object *receive_reply(int fd, size_t step)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *reply = NULL;
	char buf[RECEIVE_BYTES];
	ssize_t n;

	while (tokener && (n = recv(fd, buf, step, 0)) > 0) {
		reply = json_tokener_parse_ex(tokener, buf, (int)n);
		if (reply || json_tokener_get_error(tokener) != json_tokener_continue)
			break;
	}
	json_tokener_free(tokener);
	return reply;
}

static struct json_object *ask(int fd, const char *path, struct json_object *request, size_t step,
			       struct pvr_error *err)
{
	struct json_object *reply = NULL;

	if (send_line(fd, json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN)))
		reply = receive_reply(fd, step);
	if (!reply)
		pvr_fail(err,
			 "no reply from pvrdmad at %s within %d s: does another "
			 "program listen there?",
			 path, CTL_PATIENCE);
	return reply;
}

struct json_object *pvr_ctl_ask(int fd, const char *path, struct json_object *request,
				struct pvr_error *err)
{
	return ask(fd, path, request, RECEIVE_BYTES, err);
}

struct json_object *pvr_ctl_ask_line(int fd, const char *path, struct json_object *request,
				     struct pvr_error *err)
{
	struct json_object *reply = ask(fd, path, request, 1, err);
	char newline;

	/* The reply ends with its brace; the newline follows. */
	if (reply)
		(void)!recv(fd, &newline, sizeof(newline), 0);
	return reply;
}

bool pvr_ctl_is_ok(struct json_object *reply, struct pvr_error *err)
{
	struct json_object *value;

	if (json_object_object_get_ex(reply, "ok", &value) && json_object_get_boolean(value))
		return true;
	if (!json_object_object_get_ex(reply, "error", &value))
		return pvr_fail(err, "the reply of pvrdmad has neither \"ok\" nor \"error\"");
	return pvr_fail(err, "%s", json_object_get_string(value));
}

/* -------------------------------------------------------------------- pages */

/* Adds the lists of the reply @page to those of @all. */
static void join(struct json_object *all, struct json_object *page)
{
	struct json_object *list;
	size_t i;

	json_object_object_foreach(page, key, more)
	{
		if (!json_object_is_type(more, json_type_array) ||
		    !json_object_object_get_ex(all, key, &list))
			continue;
		for (i = 0; i < json_object_array_length(more); i++)
			json_object_array_add(list,
					      json_object_get(json_object_array_get_idx(more, i)));
	}
}

static const char *text_in(const void *item, const char *key)
{
	struct json_object *const *obj = item, *text;

	return json_object_object_get_ex(*obj, key, &text) ? json_object_get_string(text) : "";
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(text_in(a, "name"), text_in(b, "name"));
}

static int compare_hosts(const void *a, const void *b)
{
	return strcmp(text_in(a, "host"), text_in(b, "host"));
}

static void sort(struct json_object *reply, const char *key,
		 int (*compare)(const void *a, const void *b))
{
	struct json_object *list;

	if (json_object_object_get_ex(reply, key, &list) &&
	    json_object_is_type(list, json_type_array))
		json_object_array_sort(list, compare);
}

/* Return: whether @page has a page after it, and its cursor in @request. */
static bool set_cursor(struct json_object *request, struct json_object *page, uint64_t *cursor)
{
	struct json_object *next;
	uint64_t last = *cursor;

	if (!json_object_object_get_ex(page, "next", &next))
		return false;
	*cursor = json_object_get_uint64(next);
	json_object_object_add(request, "cursor", json_object_new_uint64(*cursor));
	return *cursor > last; /* pages that do not advance would have no end */
}

struct json_object *pvr_ctl_ask_pages(int fd, const char *path, struct json_object *request,
				      struct pvr_error *err)
{
	struct json_object *all, *page;
	uint64_t cursor = 0;

	json_object_object_add(request, "cursor", json_object_new_uint64(0));
	all = page = pvr_ctl_ask(fd, path, request, err);
	while (page && set_cursor(request, page, &cursor)) {
		if (page != all)
			json_object_put(page);
		page = pvr_ctl_ask(fd, path, request, err);
		if (page && pvr_ctl_is_ok(page, err)) {
			join(all, page);
			continue;
		}
		json_object_put(all);
		return page;
	}
	if (!all)
		return NULL;
	if (page != all)
		json_object_put(page);
	json_object_object_del(all, "next");
	sort(all, "peers", compare_names);
	sort(all, "hosts", compare_hosts);
	return all;
}

/* ------------------------------------------------------------------ adapters */

struct json_object *pvr_ctl_find_adapter(struct json_object *reply, const char *name)
{
	struct json_object *list, *obj;
	size_t i, len;

	list = list_of(reply, "adapters", &len);
	for (i = 0; i < len; i++) {
		obj = json_object_array_get_idx(list, i);
		if (!strcmp(text_of(obj, "name"), name))
			return obj;
	}
	return NULL;
}

bool pvr_ctl_put_setting(void *request, const char *key, const char *value, struct pvr_error *err)
{
	struct pvr_adapter_settings scratch = { .name = "" };
	char number[16];

	if (!pvr_adapter_settings_set(&scratch, key, value, err))
		return false;
	if (scratch.has_user) {
		snprintf(number, sizeof(number), "%u", (unsigned int)scratch.user);
		value = number;
	}
	put_text(request, key, value);
	return true;
}
