// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Reload of files at run time: SIGHUP and 'pvrdmactl reload'. */
#include "daemon/json_put.h"
#include "daemon/log.h"
#include "daemon/network.h"
#include "daemon/reload.h"

struct report {
	struct json_object *read, *disconnected, *warnings;
};

static void add_pair(struct json_object *list, const char *key, const char *value,
		     const char *other_key, const char *other)
{
	struct json_object *obj = json_object_new_object();

	put_text(obj, key, value);
	put_text(obj, other_key, other);
	json_object_array_add(list, obj);
}

static void note_read(void *opaque, const char *file, const char *what)
{
	struct report *report = opaque;

	pvrd_log(PVR_LOG_INFO, NULL, "read again: %s: %s", file, what);
	add_pair(report->read, "file", file, "what", what);
}

static void note_disconnected(void *opaque, const char *host, const char *why)
{
	struct report *report = opaque;

	pvrd_log_host(PVR_LOG_WARN, host, "host %s is disconnected: %s", host, why);
	add_pair(report->disconnected, "host", host, "reason", why);
}

static void note_warning(void *opaque, const char *text)
{
	struct report *report = opaque;

	pvrd_log(PVR_LOG_WARN, NULL, "%s", text);
	json_object_array_add(report->warnings, json_object_new_string(text));
}

static const struct pvr_reload_ops ops = {
	.read = note_read,
	.disconnected = note_disconnected,
	.warn = note_warning,
};

bool pvr_reload(struct pvr_daemon *daemon, struct json_object *reply, struct pvr_error *err)
{
	struct report report = {
		.read = json_object_new_array(),
		.disconnected = json_object_new_array(),
		.warnings = json_object_new_array(),
	};
	struct pvr_error why;
	bool ok;

	put(reply, "read", report.read);
	put(reply, "disconnected", report.disconnected);
	put(reply, "warnings", report.warnings);
	ok = pvr_network_reload(daemon, &ops, &report, &why);
	if (!ok) {
		pvr_fail(err, "%.440s; keys and hosts stay as they were", why.text);
		pvrd_log(PVR_LOG_ERR, NULL, "%s", err->text);
	} else if (!json_object_array_length(report.read)) {
		pvrd_log(PVR_LOG_INFO, NULL, "there is no file to read again");
	}
	return ok;
}
