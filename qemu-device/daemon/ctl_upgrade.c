// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* pvrdmactl upgrade. */
#include "daemon/ctl_upgrade.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "daemon/ctl_client.h"
#include "daemon/json_get.h"

#define PATIENCE 30 /* seconds: more than pvrdmad waits for the new one */

/* Return: the reply, or NULL with @err filled. */
static struct json_object *ask(const char *control, struct json_object *request,
			       struct pvr_error *err)
{
	const struct timeval patience = { .tv_sec = PATIENCE };
	struct json_object *reply = NULL;
	int fd = pvr_ctl_connect(control, err);

	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		reply = pvr_ctl_ask(fd, control, request, err);
		close(fd);
	}
	json_object_put(request);
	if (reply && !pvr_ctl_is_ok(reply, err)) {
		json_object_put(reply);
		return NULL;
	}
	return reply;
}

static struct json_object *request_of(const char *command)
{
	struct json_object *request = json_object_new_object();

	json_object_object_add(request, "command", json_object_new_string(command));
	return request;
}

void pvr_print_upgrade(struct json_object *reply)
{
	if (!truth_of(reply, "changed"))
		printf("the running pvrdmad is the installed one\n");
	else
		printf("pvrdmad %s, process %" PRIu64
		       ", serves the VMs, which waited for %.1f ms\n",
		       text_of(reply, "version"), number_of(reply, "pid"),
		       (double)number_of(reply, "pause_us") / 1000);
}

struct json_object *pvr_ctl_upgrade(const char *control, bool if_changed, struct pvr_error *err)
{
	struct json_object *request = request_of("upgrade"), *reply, *version;

	json_object_object_add(request, "if_changed", json_object_new_boolean(if_changed));
	reply = ask(control, request, err);
	if (!reply)
		return NULL;
	/* The new process answers in its main loop. */
	version = ask(control, request_of("version"), err);
	if (!version) {
		json_object_put(reply);
		return NULL;
	}
	json_object_put(version);
	return reply;
}
