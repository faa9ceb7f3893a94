// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A connection of pvrdmactl to pvrdmad: requests and replies, one JSON object a line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/unix_socket.h"
#include "daemon/ctl_client.h"

#define CTL_PATIENCE 10 /* seconds */
#define RECEIVE_BYTES 4096

static bool no_daemon(const char *path, struct pvr_error *err)
{
	if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
		return pvr_fail(err,
				"no pvrdmad at %s: start it with 'pvrdmad --control %s "
				"...' or 'systemctl start pvrdmad', or give --control PATH",
				path, path);
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
