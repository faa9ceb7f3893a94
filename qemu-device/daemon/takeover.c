// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Start of a daemon that replaces a running one. */
#include "daemon/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/inherited.h"
#include "base/unix_socket.h"
#include "daemon/handover_message.h"
#include "daemon/json_get.h"
#include "daemon/json_put.h"
#include "daemon/launcher.h"
#include "daemon/log.h"

struct pvr_takeover {
	struct pvr_handover_channel channel; /* its store has the file that is to be discarded */
	bool link_down[PVR_ADAPTERS_MAX]; /* of each adapter */
	size_t num_links;
	struct json_object *vms; /* messages "vm" */
	struct pvr_handover handover;
	struct pvr_fd_message raw;
};

struct pvr_takeover *pvr_takeover_find(void)
{
	static struct pvr_takeover takeover;
	const char *text = getenv(PVR_LAUNCHER_ENV);

	takeover.channel.fd = text ? (int)strtol(text, NULL, 10) : -1;
	unsetenv(PVR_LAUNCHER_ENV);
	if (pvr_handover_store_find(&takeover.channel.store))
		return &takeover;
	if (!text)
		return NULL;
	fcntl(takeover.channel.fd, F_SETFD, FD_CLOEXEC);
	return &takeover;
}

/* The running process, if it lives. */
static bool send_message(struct pvr_takeover *takeover, struct json_object *message,
			 struct pvr_error *err)
{
	int ret = pvr_handover_send(&takeover->channel, message, NULL, 0, PVR_NEVER);

	return !ret || pvr_fail(err, "the running pvrdmad cannot be reached: %s", strerror(-ret));
}

/* Return: NULL with @err filled. */
static struct json_object *receive(struct pvr_takeover *takeover, bool *ended,
				   struct pvr_error *err)
{
	struct json_object *message;

	message = pvr_handover_receive(&takeover->channel, &takeover->raw, PVR_NEVER, ended, err);
	if (!message || !pvr_handover_is(message, "abort"))
		return message;
	json_object_put(message);
	pvr_fail(err, "the running pvrdmad goes on");
	return NULL;
}

/* ------------------------------------------------------------- sockets and adapters */

static bool greet(struct pvr_takeover *takeover, struct pvr_error *err)
{
	struct json_object *hello = pvr_handover_message("hello");

	put_number(hello, "handover", PVR_HANDOVER_VERSION);
	put_number(hello, "pid", (uint64_t)getpid());
	put_text(hello, "version", PVR_PACKAGE_VERSION);
	put_bool(hello, "store", true);
	put_bool(hello, "paused", true);
	return send_message(takeover, hello, err);
}

static bool add_adapters(struct pvr_takeover *takeover, struct json_object *message,
			 struct pvr_settings *settings, struct pvr_error *err)
{
	struct pvr_adapter_settings adapter;
	struct json_object *list, *obj;
	size_t num, i;

	list = list_of(message, "adapters", &num);
	for (i = 0; i < num; i++) {
		obj = json_object_array_get_idx(list, i);
		if (!pvr_handover_get_adapter(obj, &adapter, err) ||
		    !pvr_settings_add_adapter(settings, &adapter, err))
			return false;
		takeover->link_down[takeover->num_links++] = !truth_of(obj, "link_up");
	}
	return true;
}

/* The limits of fabrics that are in the settings already are replaced. */
static bool set_fabric(struct pvr_settings *settings, struct json_object *obj,
		       struct pvr_error *err)
{
	struct pvr_fabric_settings fabric = { .name = "" };
	struct json_object *qos = NULL;
	size_t i;

	if (!pvr_set_fabric_name(fabric.name, text_of(obj, "name"), err))
		return false;
	json_object_object_get_ex(obj, "qos", &qos);
	pvr_handover_get_qos(qos, &fabric.qos);
	for (i = 0; i < settings->num_fabrics; i++) {
		if (strcmp(settings->fabrics[i].name, fabric.name))
			continue;
		settings->fabrics[i].qos = fabric.qos;
		return true;
	}
	return pvr_settings_add_fabric(settings, &fabric, err);
}

static bool create(struct json_object *message, struct pvr_settings *settings,
		   struct pvr_error *err)
{
	struct json_object *list;
	enum pvr_log_level level;
	size_t num, i;

	list = list_of(message, "fabrics", &num);
	for (i = 0; i < num; i++) {
		if (!set_fabric(settings, json_object_array_get_idx(list, i), err))
			return false;
	}
	if (pvrd_log_parse_level(text_of(message, "log_level"), &level))
		pvrd_log_set_level(level);
	return true;
}

/* @done: whether this was the last message before the adapters are created */
static bool prepare_by(struct pvr_takeover *takeover, struct json_object *message,
		       struct pvr_settings *settings, bool *done, struct pvr_error *err)
{
	size_t i;
	int *file = &takeover->channel.store.file;

	if (pvr_handover_is(message, "store") && takeover->raw.num_fds == 1 && *file < 0)
		*file = takeover->raw.fds[--takeover->raw.num_fds];
	for (i = 0; i < takeover->raw.num_fds; i++)
		pvr_inherited_add(takeover->raw.fds[i]);
	if (pvr_handover_is(message, "vm"))
		json_object_array_add(takeover->vms, json_object_get(message));
	if (pvr_handover_is(message, "adapters"))
		return add_adapters(takeover, message, settings, err);
	*done = pvr_handover_is(message, "create");
	return !*done || create(message, settings, err);
}

bool pvr_takeover_prepare(struct pvr_takeover *takeover, struct pvr_settings *settings,
			  struct pvr_error *err)
{
	bool done = false, ok = greet(takeover, err), ended;
	struct json_object *message;

	takeover->vms = json_object_new_array();
	free(settings->adapters);
	settings->adapters = NULL;
	settings->num_adapters = 0;
	while (ok && !done) {
		message = receive(takeover, &ended, err);
		ok = message && prepare_by(takeover, message, settings, &done, err);
		json_object_put(message);
	}
	return ok;
}

/* ----------------------------------------------------------------------------- VMs */

/* A VM may leave, and another one come, before the pause. */
static void prepare_vms(struct pvr_takeover *takeover, struct pvr_daemon *daemon)
{
	uint8_t version[PVR_MESSAGE_MAX];
	struct json_object *message;
	struct pvr_attach *attach;
	struct pvr_error err;
	size_t i, len;

	for (i = 0; i < json_object_array_length(takeover->vms); i++) {
		message = json_object_array_get_idx(takeover->vms, i);
		attach = pvr_daemon_find_adapter(daemon, text_of(message, "adapter"), &err);
		len = pvr_handover_get_vm(message, version, sizeof(version));
		if (attach && len)
			pvr_handover_prepare(attach, version, len);
	}
	json_object_put(takeover->vms);
}

static void set_stopped(struct pvr_daemon *daemon, const struct pvr_attach *attach, bool is)
{
	size_t i;

	for (i = 0; i < daemon->num_adapters; i++)
		if (daemon->adapters[i].attach == attach)
			daemon->adapters[i].was_stopped = is;
}

static bool import_client(struct pvr_takeover *takeover, struct pvr_daemon *daemon,
			  struct json_object *message, struct pvr_error *err)
{
	const char *name = text_of(message, "adapter");
	struct pvr_attach *attach = pvr_daemon_find_adapter(daemon, name, err);
	struct pvr_error why = { "" };
	struct json_object *ram;
	bool ended, ok;
	int state;

	if (!attach)
		return false;
	ok = pvr_handover_get_client(message, &takeover->raw, &takeover->handover, &state, &why);
	ram = ok ? receive(takeover, &ended, &why) : NULL;
	ok = ram && pvr_handover_get_ram(ram, &takeover->raw, &takeover->handover, &why) &&
	     pvr_handover_import(attach, &takeover->handover, state, &why);
	if (ok)
		set_stopped(daemon, attach, takeover->handover.was_stopped);
	json_object_put(ram);
	if (state >= 0)
		close(state);
	return ok || pvr_fail(err, "adapter %.64s: %.400s", name, why.text);
}

/* Return: whether all clients have come. The service manager's copy ends where "load" would be. */
static bool import_all(struct pvr_takeover *takeover, struct pvr_daemon *daemon,
		       struct pvr_error *err)
{
	struct json_object *message;
	bool ok = true, done = false, ended;

	while (ok && !done) {
		message = receive(takeover, &ended, err);
		done = message ? pvr_handover_is(message, "load")
			       : ended && takeover->channel.fd < 0;
		ok = message || done;
		if (message && pvr_handover_is(message, "client"))
			ok = import_client(takeover, daemon, message, err);
		json_object_put(message);
	}
	return ok;
}

/*
 * Without a service manager, the end of the running daemon after "loaded" is as good as its message.
 * With one, the third process gets the VMs.
 */
static bool wait_go(struct pvr_takeover *takeover, struct pvr_error *err)
{
	struct json_object *message;
	bool ended = false, ok;

	if (takeover->channel.fd < 0)
		return true;
	message = receive(takeover, &ended, err);
	ok = (ended && takeover->channel.store.file < 0) ||
	     (message && pvr_handover_is(message, "go"));
	if (ended && ok)
		pvrd_log(PVR_LOG_WARN, NULL, "the earlier pvrdmad has died; its VMs are served");
	json_object_put(message);
	return ok;
}

static void start(struct pvr_daemon *daemon)
{
	size_t i;
	int ret;

	for (i = 0; i < daemon->num_adapters; i++) {
		ret = pvr_handover_resume(daemon->adapters[i].attach,
					  daemon->adapters[i].was_stopped);
		if (ret)
			pvrd_log(PVR_LOG_ERR,
				 pvr_adapter_name(pvr_attach_adapter(daemon->adapters[i].attach)),
				 "cannot start after the upgrade: %s", strerror(-ret));
	}
}

static void end(struct pvr_takeover *takeover)
{
	if (takeover->channel.fd < 0)
		pvrd_log(PVR_LOG_WARN, NULL,
			 "the earlier pvrdmad was killed in an upgrade; its VMs are served");
	else
		close(takeover->channel.fd);
	pvr_handover_store_end(&takeover->channel.store);
}

bool pvr_takeover_run(struct pvr_takeover *takeover, struct pvr_daemon *daemon,
		      struct pvr_error *err)
{
	size_t i;

	pvr_inherited_close();
	for (i = 0; i < takeover->num_links && i < daemon->num_adapters; i++) {
		if (takeover->link_down[i])
			pvr_adapter_set_link(pvr_attach_adapter(daemon->adapters[i].attach), false);
	}
	prepare_vms(takeover, daemon);
	if (!send_message(takeover, pvr_handover_message("ready"), err) ||
	    !import_all(takeover, daemon, err) ||
	    !send_message(takeover, pvr_handover_message("loaded"), err) || !wait_go(takeover, err))
		return false;
	pvr_handover_store_discard(takeover->channel.store.file);
	start(daemon);
	for (i = 0; i < daemon->num_adapters; i++)
		pvr_handover_discard(daemon->adapters[i].attach);
	end(takeover);
	return true;
}
