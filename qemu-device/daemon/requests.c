// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The commands of the control socket. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/capture.h"
#include "daemon/control.h"
#include "daemon/fault_requests.h"
#include "daemon/json_put.h"
#include "daemon/launcher.h"
#include "daemon/log.h"
#include "daemon/network_requests.h"
#include "daemon/path_requests.h"
#include "daemon/qos_requests.h"
#include "daemon/qp_requests.h"
#include "daemon/reload.h"
#include "daemon/run_requests.h"
#include "daemon/stats_requests.h"
#include "daemon/upgrade.h"

struct request {
	struct pvr_daemon *daemon;
	struct json_object *args;
	struct json_object *reply;
	struct pvr_request_effect *effect;
	struct pvr_error err;
};

/* ------------------------------------------------------------------- arguments */

/* Return: NULL if @key is missing or is no string. */
static const char *text_arg(const struct request *request, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(request->args, key, &value) ||
	    !json_object_is_type(value, json_type_string))
		return NULL;
	return json_object_get_string(value);
}

static const char *need_arg(struct request *request, const char *key)
{
	const char *text = text_arg(request, key);

	if (!text)
		pvr_fail(&request->err, "the request has no \"%s\"", key);
	return text;
}

static struct pvr_attach *need_adapter(struct request *request)
{
	const char *name = need_arg(request, "name");

	return name ? pvr_daemon_find_adapter(request->daemon, name, &request->err) : NULL;
}

/*
 * The loop that runs a command also serves the VMs: a client that asks for all adapters or
 * queue pairs repeatedly gives "cursor", gets a page, and repeats with "next" of the reply.
 */
#define ADAPTERS_PER_PAGE 64
#define DESCRIPTIONS_PER_PAGE 16 /* of adapters, with up to 128 GIDs each */
#define WORKERS_PER_PAGE 16
#define QPS_PER_CALL 32
#define QP_CALLS_PER_PAGE 8

static bool has_cursor(const struct request *request)
{
	return json_object_object_get_ex(request->args, "cursor", NULL);
}

static bool need_cursor(struct request *request, uint32_t *cursor)
{
	struct json_object *value = NULL;
	int64_t number = -1;

	json_object_object_get_ex(request->args, "cursor", &value);
	if (json_object_is_type(value, json_type_int))
		number = json_object_get_int64(value);
	if (number < 0 || number > UINT32_MAX)
		return pvr_fail(&request->err, "cursor is no number from 0 to %" PRIu32,
				UINT32_MAX);
	*cursor = (uint32_t)number;
	return true;
}

struct range {
	size_t begin, end;
};

/*
 * Finds the rows of the reply: with "cursor" @max of them at most, and adds "next" if more follow;
 * else all @num. Return: false with the error filled.
 */
static bool need_range(struct request *request, size_t num, size_t max, struct range *range)
{
	uint32_t cursor = 0;

	*range = (struct range){ .end = num };
	if (!has_cursor(request))
		return true;
	if (!need_cursor(request, &cursor))
		return false;
	range->begin = cursor < num ? cursor : num;
	if (num - range->begin > max) {
		range->end = range->begin + max;
		put_number(request->reply, "next", range->end);
	}
	return true;
}

/* ------------------------------------------------------------------- adapters */

static void put_mac(struct json_object *obj, const uint8_t *mac)
{
	char text[PVR_MAC_TEXT];

	put_text(obj, "mac", pvr_mac_text(mac, text));
}

static void put_gid(void *opaque, uint32_t index, const uint8_t gid[16], uint8_t gid_type)
{
	char text[GID_TEXT];

	json_object_array_add(opaque, json_object_new_string(format_gid(gid, text)));
}

static void put_gids(struct json_object *obj, struct pvr_adapter *adapter)
{
	struct json_object *gids = json_object_new_array();

	pvr_adapter_for_each_gid(adapter, put_gid, gids);
	put(obj, "gids", gids);
}

static struct json_object *describe(const struct pvr_attach *attach)
{
	struct pvr_adapter *adapter = pvr_attach_adapter(attach);
	struct json_object *obj = json_object_new_object();
	struct pvr_attach_stats client;
	struct pvr_adapter_stats stats;

	pvr_adapter_get_stats(adapter, &stats);
	pvr_attach_get_stats(attach, &client);
	put_text(obj, "name", pvr_adapter_name(adapter));
	put_text(obj, "fabric", pvr_adapter_fabric(adapter));
	put_mac(obj, pvr_adapter_mac(adapter));
	put_text(obj, "hwversion", pvr_adapter_hwversion(adapter));
	put_text(obj, "roce", pvr_adapter_gid_type(adapter) == PVR_GID_TYPE_ROCE_V1 ? "v1" : "v2");
	put_text(obj, "uar", pvr_adapter_is_uar_mapped(adapter) ? "mapped" : "trapped");
	put_number(obj, "worker", pvr_adapter_worker(adapter));
	put_text(obj, "socket", pvr_attach_path(attach));
	put_text(obj, "state", pvr_adapter_state_name(stats.state));
	pvr_put_run_state(obj, &stats);
	put_bool(obj, "link_up", stats.link_up);
	put_bool(obj, "attached", client.attached);
	put_number(obj, "qemu_pid", client.attached ? (uint64_t)client.client : 0);
	put_number(obj, "ram_bytes", client.ram_bytes);
	put_number(obj, "ram_counted_bytes", client.ram_counted);
	put_number(obj, "ram_limit_bytes", client.ram_limit);
	put_gids(obj, adapter);
	return obj;
}

static bool list_adapters(struct request *request, size_t max,
			  struct json_object *(*each)(const struct pvr_attach *attach))
{
	const struct pvr_daemon *daemon = request->daemon;
	struct json_object *list;
	struct range range;
	size_t i;

	if (!need_range(request, daemon->num_adapters, max, &range))
		return false;
	list = json_object_new_array();
	for (i = range.begin; i < range.end; i++)
		json_object_array_add(list, each(daemon->adapters[i].attach));
	put(request->reply, "adapters", list);
	return true;
}

static bool run_adapters(struct request *request)
{
	return list_adapters(request, DESCRIPTIONS_PER_PAGE, describe);
}

/* Calls @each for one adapter if "name" is given, else for all. */
static bool run_each(struct request *request,
		     struct json_object *(*each)(const struct pvr_attach *attach))
{
	struct json_object *list;
	struct pvr_attach *attach = NULL;
	size_t i;

	if (text_arg(request, "name")) {
		attach = need_adapter(request);
		if (!attach)
			return false;
	}
	list = json_object_new_array();
	for (i = 0; i < request->daemon->num_adapters; i++) {
		if (!attach || attach == request->daemon->adapters[i].attach)
			json_object_array_add(list, each(request->daemon->adapters[i].attach));
	}
	put(request->reply, "adapters", list);
	return true;
}

static bool run_stats(struct request *request)
{
	if (text_arg(request, "name"))
		return run_each(request, pvr_describe_stats);
	return list_adapters(request, ADAPTERS_PER_PAGE, pvr_describe_stats);
}

/* Calls pvr_adapter_get_qps() up to @calls times. Return: false if there are no more. */
static bool list_qps(struct pvr_adapter *adapter, struct json_object *list, uint32_t *cursor,
		     unsigned int calls)
{
	struct pvr_qp_info infos[QPS_PER_CALL];
	bool more = true;
	size_t num, i;

	while (more && calls--) {
		more = pvr_adapter_get_qps(adapter, cursor, infos, QPS_PER_CALL, &num);
		for (i = 0; i < num; i++)
			json_object_array_add(list, pvr_describe_qp(&infos[i]));
	}
	return more;
}

static struct json_object *named_qps(struct pvr_adapter *adapter, struct json_object *list)
{
	struct json_object *obj = json_object_new_object();

	put_text(obj, "name", pvr_adapter_name(adapter));
	put(obj, "qps", list);
	return obj;
}

static struct json_object *describe_qps(const struct pvr_attach *attach)
{
	struct pvr_adapter *adapter = pvr_attach_adapter(attach);
	struct json_object *list = json_object_new_array();
	uint32_t cursor = 0;

	list_qps(adapter, list, &cursor, UINT_MAX);
	return named_qps(adapter, list);
}

static bool run_qps_page(struct request *request)
{
	struct pvr_attach *attach = need_adapter(request);
	struct json_object *adapters, *list;
	uint32_t cursor;

	if (!attach || !need_cursor(request, &cursor))
		return false;
	adapters = json_object_new_array();
	list = json_object_new_array();
	if (list_qps(pvr_attach_adapter(attach), list, &cursor, QP_CALLS_PER_PAGE))
		put_number(request->reply, "next", cursor);
	json_object_array_add(adapters, named_qps(pvr_attach_adapter(attach), list));
	put(request->reply, "adapters", adapters);
	return true;
}

static bool run_qps(struct request *request)
{
	return has_cursor(request) ? run_qps_page(request) : run_each(request, describe_qps);
}

static bool run_qp(struct request *request)
{
	struct pvr_attach *attach = need_adapter(request);
	const char *number = attach ? need_arg(request, "qpn") : NULL;

	return number &&
	       pvr_put_qp(pvr_attach_adapter(attach), number, request->reply, &request->err);
}

static bool run_paths(struct request *request)
{
	uint32_t cursor;

	if (!has_cursor(request)) {
		pvr_put_paths(request->daemon, request->reply);
		return true;
	}
	if (!need_cursor(request, &cursor))
		return false;
	if (pvr_put_paths_page(request->daemon, &cursor, request->reply))
		put_number(request->reply, "next", cursor);
	return true;
}

static bool run_peers(struct request *request)
{
	uint32_t cursor;

	if (!has_cursor(request)) {
		pvr_put_peers(request->daemon, request->reply);
		return true;
	}
	if (!need_cursor(request, &cursor))
		return false;
	if (pvr_put_peers_page(request->daemon, &cursor, request->reply))
		put_number(request->reply, "next", cursor);
	return true;
}

static uint64_t count_adapters(const struct pvr_daemon *daemon, unsigned int worker)
{
	uint64_t num = 0;
	size_t i;

	for (i = 0; i < daemon->num_adapters; i++)
		num += pvr_adapter_worker(pvr_attach_adapter(daemon->adapters[i].attach)) == worker;
	return num;
}

static void put_poll(struct json_object *obj, const struct pvr_poll_policy *policy)
{
	static const char *const modes[] = {
		[PVR_POLL_AUTO] = "auto",
		[PVR_POLL_OFF] = "off",
		[PVR_POLL_ALWAYS] = "always",
	};
	struct pvr_poll_stats stats;

	pvr_poll_get_stats(policy, &stats);
	put_text(obj, "poll", modes[policy->mode]);
	put_number(obj, "window_us", policy->window / 1000);
	put_number(obj, "poll_windows", stats.poll_windows);
	put_number(obj, "poll_hits", stats.poll_hits);
	put_number(obj, "sleeps", stats.sleeps);
	put_number(obj, "backoffs", stats.backoffs);
	put_number(obj, "cpu_contended", stats.cpu_contended);
}

static struct json_object *describe_worker(const struct pvr_daemon *daemon, unsigned int worker)
{
	const struct pvr_pool_thread *thread = &daemon->pool.threads[worker];
	struct json_object *obj = json_object_new_object();
	struct pvr_worker_stats stats;
	char cpus[128];

	pvr_engine_worker_stats(daemon->engine, worker, &stats);
	put_number(obj, "worker", worker);
	put_text(obj, "cpus",
		 thread->cpus.num ? pvr_cpu_list_format(&thread->cpus, cpus, sizeof(cpus)) : "any");
	put_number(obj, "adapters", count_adapters(daemon, worker));
	put_number(obj, "cpu_ms", pvr_pool_thread_cpu_time(thread) / PVR_MSEC);
	put_number(obj, "messages", stats.messages);
	put_number(obj, "bytes", stats.bytes);
	put_number(obj, "quanta", stats.quanta);
	put_number(obj, "lock_contended", stats.lock_contended);
	put_poll(obj, &thread->worker_loop.policy);
	return obj;
}

static bool run_workers(struct request *request)
{
	struct json_object *list;
	struct range range;
	size_t i;

	if (!need_range(request, request->daemon->pool.num, WORKERS_PER_PAGE, &range))
		return false;
	list = json_object_new_array();
	for (i = range.begin; i < range.end; i++)
		json_object_array_add(list, describe_worker(request->daemon, (unsigned int)i));
	put(request->reply, "workers", list);
	return true;
}

/* -------------------------------------------------------------------- changes */

static bool run_add_adapter(struct request *request)
{
	static const char *const keys[] = {
		"name", "socket",   "mac",	"fabric",	 "hwversion",
		"roce", "uar",	    "memory",	"object-memory", "worker",
		"wire", "wire-gso", "wire-ecn", "user",		 "interrupts",
		"rate", "messages", "burst",	"weight",
	};
	struct pvr_adapter_settings settings = { .has_mac = false };
	const char *value;
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		value = text_arg(request, keys[i]);
		if (value && !strcmp(keys[i], "user") && !pvr_adapter_is_user_number(value))
			return pvr_fail(&request->err, "user '%.64s' is not a number", value);
		if (value && !pvr_adapter_settings_set(&settings, keys[i], value, &request->err))
			return false;
	}
	return pvr_adapter_settings_check(&settings, &request->err) &&
	       pvr_daemon_add_adapter(request->daemon, &settings, &request->err);
}

static bool run_remove_adapter(struct request *request)
{
	struct pvr_attach *attach = need_adapter(request);

	if (attach)
		pvr_daemon_remove_adapter(request->daemon, attach);
	return attach != NULL;
}

static bool run_adapter(struct request *request)
{
	struct pvr_attach *attach = need_adapter(request);
	const char *action = attach ? need_arg(request, "action") : NULL;

	return action && pvr_run_change(request->daemon, attach, action, &request->err);
}

static bool run_move_adapter(struct request *request)
{
	struct pvr_attach *attach = need_adapter(request);
	const char *text = attach ? need_arg(request, "worker") : NULL;
	unsigned long worker;
	char *end;

	if (!text)
		return false;
	worker = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || worker >= PVR_MAX_WORKERS)
		return pvr_fail(&request->err, "worker '%.64s' is not a number from 0 to %d", text,
				PVR_MAX_WORKERS - 1);
	return pvr_daemon_move_adapter(request->daemon, attach, (unsigned int)worker,
				       &request->err);
}

static bool run_link(struct request *request)
{
	struct pvr_attach *attach = need_adapter(request);
	const char *state = attach ? need_arg(request, "state") : NULL;
	bool up = state && !strcmp(state, "up");

	if (!state)
		return false;
	if (!up && strcmp(state, "down"))
		return pvr_fail(&request->err, "link state '%s' is neither up nor down", state);
	pvr_adapter_set_link(pvr_attach_adapter(attach), up);
	return true;
}

/* Return: false if "snaplen" is out of range. */
static bool get_snaplen(struct request *request, uint32_t *snaplen)
{
	struct json_object *value;
	int64_t bytes = PVR_CAPTURE_SNAPLEN_MAX;

	if (json_object_object_get_ex(request->args, "snaplen", &value))
		bytes = json_object_is_type(value, json_type_int) ? json_object_get_int64(value)
								  : -1;
	*snaplen = (uint32_t)bytes;
	return (bytes > 0 && bytes <= PVR_CAPTURE_SNAPLEN_MAX) ||
	       pvr_fail(&request->err, "\"snaplen\" is no number from 1 to %u",
			PVR_CAPTURE_SNAPLEN_MAX);
}

static bool run_capture(struct request *request)
{
	struct pvr_attach *attach = need_adapter(request);
	struct json_object *value;
	uint32_t snaplen;
	bool payload;

	payload = json_object_object_get_ex(request->args, "payload", &value) &&
		  json_object_get_boolean(value);
	if (!attach || !get_snaplen(request, &snaplen))
		return false;
	request->effect->capture =
		pvr_capture_start(request->daemon, attach, snaplen, payload, &request->err);
	return request->effect->capture != NULL;
}

static bool run_fault_add(struct request *request)
{
	struct json_object *texts = NULL;

	json_object_object_get_ex(request->args, "faults", &texts);
	return pvr_faults_add(request->daemon, texts, request->reply, &request->err);
}

static bool run_fault_list(struct request *request)
{
	pvr_faults_list(request->daemon, request->reply);
	return true;
}

static bool run_fault_clear(struct request *request)
{
	struct json_object *id;

	if (json_object_object_get_ex(request->args, "id", &id) && !text_arg(request, "id"))
		return pvr_fail(&request->err, "\"id\" is not a string");
	return pvr_faults_clear(request->daemon, text_arg(request, "id"), request->reply,
				&request->err);
}

static bool run_qos(struct request *request)
{
	struct range range;

	if (!need_range(request, request->daemon->num_adapters, ADAPTERS_PER_PAGE, &range))
		return false;
	if (!range.begin)
		pvr_put_fabric_qos(request->daemon, request->reply);
	return list_adapters(request, ADAPTERS_PER_PAGE, pvr_describe_qos);
}

static bool run_qos_set(struct request *request)
{
	return pvr_qos_change(request->daemon, request->args, text_arg(request, "name"),
			      text_arg(request, "fabric"), &request->err);
}

static bool run_reload(struct request *request)
{
	return pvr_reload(request->daemon, request->reply, &request->err);
}

static bool run_log_level(struct request *request)
{
	const char *name = need_arg(request, "level");
	enum pvr_log_level level;

	if (!name)
		return false;
	if (!pvrd_log_parse_level(name, &level))
		return pvr_fail(&request->err,
				"log level '%s' is none of error, warn, info, "
				"debug",
				name);
	pvr_daemon_set_log_level(request->daemon, level);
	return true;
}

/* The reply of an upgrade that begins comes at its end. */
static bool run_upgrade(struct request *request)
{
	struct json_object *value;

	if (json_object_object_get_ex(request->args, "if_changed", &value) &&
	    json_object_get_boolean(value) && !pvr_launcher_is_replaced()) {
		put_bool(request->reply, "changed", false);
		return true;
	}
	request->effect->upgrade = pvr_upgrade_begin(request->daemon, &request->err);
	return request->effect->upgrade;
}

static bool run_version(struct request *request)
{
	put_text(request->reply, "version", PVR_PACKAGE_VERSION);
	put_number(request->reply, "device_version", PVR_VERSION);
	put_number(request->reply, "features", PVR_ENGINE_EXT);
	return true;
}

/* ------------------------------------------------------------------- dispatch */

static const struct {
	const char *name;
	bool (*run)(struct request *request);
	bool is_change;
} commands[] = {
	{ "adapters", run_adapters, false },
	{ "paths", run_paths, false },
	{ "peers", run_peers, false },
	{ "qp", run_qp, false },
	{ "qps", run_qps, false },
	{ "qos", run_qos, false },
	{ "stats", run_stats, false },
	{ "workers", run_workers, false },
	{ "add-adapter", run_add_adapter, true },
	{ "remove-adapter", run_remove_adapter, true },
	{ "adapter", run_adapter, true },
	{ "move-adapter", run_move_adapter, true },
	{ "link", run_link, true },
	{ "capture", run_capture, true },
	{ "fault-add", run_fault_add, true },
	{ "fault-list", run_fault_list, false },
	{ "fault-clear", run_fault_clear, true },
	{ "qos-set", run_qos_set, true },
	{ "log-level", run_log_level, true },
	{ "reload", run_reload, true },
	{ "upgrade", run_upgrade, true },
	{ "version", run_version, false },
};

static bool run_command(struct request *request)
{
	const char *name;
	size_t i;

	if (!json_object_is_type(request->args, json_type_object))
		return pvr_fail(&request->err, "the request is not a JSON object");
	name = need_arg(request, "command");
	if (!name)
		return false;
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(name, commands[i].name))
			continue;
		request->effect->is_change = commands[i].is_change;
		if (commands[i].is_change && request->daemon->upgrade)
			return pvr_fail(&request->err,
					"an upgrade is in progress: repeat this after it");
		return commands[i].run(request);
	}
	return pvr_fail(&request->err, "unknown command '%.64s'", name);
}

struct json_object *pvr_request_run(struct pvr_daemon *daemon, struct json_object *args,
				    struct pvr_request_effect *effect)
{
	struct request request = {
		.daemon = daemon,
		.args = args,
		.reply = json_object_new_object(),
		.effect = effect,
	};
	bool ok;

	*effect = (struct pvr_request_effect){ .capture = NULL };
	if (!request.reply)
		return NULL;
	ok = run_command(&request);
	put_bool(request.reply, "ok", ok);
	if (!ok)
		put_text(request.reply, "error", request.err.text);
	return request.reply;
}
