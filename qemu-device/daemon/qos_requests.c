// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Requests about quality of service: limits and weights. */
#include "daemon/qos_requests.h"

#include <string.h>

#include "daemon/json_put.h"
#include "daemon/log.h"

/* ------------------------------------------------------------------------- listing */

static void put_qos(struct json_object *obj, const struct pvr_qos *qos)
{
	put_number(obj, "rate", qos->rate);
	put_number(obj, "messages", qos->messages);
	put_number(obj, "burst", qos->burst);
}

struct json_object *pvr_describe_qos(const struct pvr_attach *attach)
{
	struct pvr_adapter *adapter = pvr_attach_adapter(attach);
	struct json_object *obj = json_object_new_object();
	struct pvr_adapter_stats stats;
	struct pvr_qos qos;

	pvr_adapter_get_qos(adapter, &qos);
	pvr_adapter_get_stats(adapter, &stats);
	put_text(obj, "name", pvr_adapter_name(adapter));
	put_text(obj, "fabric", pvr_adapter_fabric(adapter));
	put_qos(obj, &qos);
	put_number(obj, "weight", qos.weight);
	put_number(obj, "waits", stats.qos_waits);
	put_number(obj, "wait_us", stats.qos_wait_ns / 1000);
	return obj;
}

static void put_fabric(void *opaque, const char *fabric, const struct pvr_qos *qos)
{
	struct json_object *obj;

	if (!qos->rate && !qos->messages)
		return;
	obj = json_object_new_object();
	put_text(obj, "name", fabric);
	put_qos(obj, qos);
	json_object_array_add(opaque, obj);
}

void pvr_put_fabric_qos(const struct pvr_daemon *daemon, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();

	pvr_engine_for_each_fabric_qos(daemon->engine, put_fabric, list);
	put(reply, "fabrics", list);
}

/* ------------------------------------------------------------------------- changes */

/* Set the keys of @args, but for those of the request itself. */
static bool read_settings(struct json_object *args, struct pvr_qos *qos, bool is_fabric,
			  struct pvr_error *err)
{
	bool any = false;

	json_object_object_foreach(args, key, value)
	{
		if (!strcmp(key, "command") || !strcmp(key, "name") || !strcmp(key, "fabric"))
			continue;
		any = true;
		if (!json_object_is_type(value, json_type_string))
			return pvr_fail(err, "\"%.64s\" is not a string", key);
		if (!(is_fabric ? pvr_fabric_qos_set
				: pvr_qos_set)(qos, key, json_object_get_string(value), err))
			return false;
	}
	if (!any)
		return pvr_fail(err, "there is nothing to set: give rate=, messages= or burst=%s",
				is_fabric ? "" : ", or weight=");
	return pvr_qos_check(qos, err);
}

static bool change_adapter(struct pvr_daemon *daemon, struct json_object *args, const char *name,
			   struct pvr_error *err)
{
	struct pvr_attach *attach = pvr_daemon_find_adapter(daemon, name, err);
	struct pvr_qos qos;
	int ret;

	if (!attach)
		return false;
	pvr_adapter_get_qos(pvr_attach_adapter(attach), &qos);
	if (!read_settings(args, &qos, false, err))
		return false;
	pvr_worker_pool_pause(&daemon->pool);
	ret = pvr_adapter_set_qos(pvr_attach_adapter(attach), &qos);
	pvr_worker_pool_resume(&daemon->pool);
	return !ret || pvr_fail(err, "out of memory");
}

struct count {
	const char *fabric;
	unsigned int others;
};

static void count_other(void *opaque, const char *fabric, const struct pvr_qos *qos)
{
	struct count *count = opaque;

	count->others += strcmp(count->fabric, fabric) != 0;
}

/* The engine keeps the limits of a fabric that has no adapter. */
static bool check_number(const struct pvr_daemon *daemon, const char *fabric, struct pvr_error *err)
{
	struct count count = { .fabric = fabric };

	pvr_engine_for_each_fabric_qos(daemon->engine, count_other, &count);
	return count.others < PVR_ADAPTERS_MAX ||
	       pvr_fail(err, "more than %d fabrics with settings", PVR_ADAPTERS_MAX);
}

static bool change_fabric(struct pvr_daemon *daemon, struct json_object *args, const char *name,
			  struct pvr_error *err)
{
	struct pvr_qos qos = { .rate = 0 };
	char fabric[PVR_NAME_MAX];
	int ret;

	if (!pvr_set_fabric_name(fabric, name, err))
		return false;
	pvr_engine_get_fabric_qos(daemon->engine, fabric, &qos);
	if (!read_settings(args, &qos, true, err) || !check_number(daemon, fabric, err))
		return false;
	pvr_worker_pool_pause(&daemon->pool);
	ret = pvr_engine_set_fabric_qos(daemon->engine, fabric, &qos);
	pvr_worker_pool_resume(&daemon->pool);
	return !ret || pvr_fail(err, "out of memory");
}

bool pvr_qos_change(struct pvr_daemon *daemon, struct json_object *args, const char *name,
		    const char *fabric, struct pvr_error *err)
{
	if (!name == !fabric)
		return pvr_fail(err,
				"the request has not exactly one of \"name\" and \"fabric\": give "
				"an adapter or a fabric");
	return name ? change_adapter(daemon, args, name, err)
		    : change_fabric(daemon, args, fabric, err);
}

bool pvr_qos_start(struct pvr_daemon *daemon, const struct pvr_settings *settings,
		   struct pvr_error *err)
{
	size_t i;

	for (i = 0; i < settings->num_fabrics; i++)
		if (pvr_engine_set_fabric_qos(daemon->engine, settings->fabrics[i].name,
					      &settings->fabrics[i].qos))
			return pvr_fail(err, "out of memory");
	return true;
}
