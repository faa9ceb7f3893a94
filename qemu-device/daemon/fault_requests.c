// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: rules that an operator adds and removes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/fault_requests.h"
#include "daemon/json_put.h"
#include "daemon/log.h"
#include "daemon/network.h"
#include "fault/rule.h"

/* The queue pair of connection managers, which the driver creates when it loads. */
#define GSI_QPN 1

_Static_assert(PVR_FAULT_NAME_MAX >= PVR_HOST_NAME_MAX, "a rule has the name of any host");

static bool check_allowed(const struct pvr_daemon *daemon, struct pvr_error *err)
{
	return daemon->faults_allowed ||
	       pvr_fail(err, "pvrdmad does not allow faults: start it with --faults allowed");
}

/* -------------------------------------------------------------------------- names */

static bool check_fabric(const struct pvr_daemon *daemon, const char *fabric, struct pvr_error *err)
{
	size_t i;

	for (i = 0; i < daemon->num_adapters; i++)
		if (!strcmp(pvr_adapter_fabric(pvr_attach_adapter(daemon->adapters[i].attach)),
			    fabric))
			return true;
	return pvr_fail(err, "no adapter has the fabric '%s': see 'pvrdmactl adapters'", fabric);
}

/* @fabric: of the rule; "": set to the adapter's */
static bool check_adapter(struct pvr_daemon *daemon, const char *name, const char **fabric,
			  struct pvr_error *err)
{
	struct pvr_attach *attach = pvr_daemon_find_adapter(daemon, name, err);
	const char *own;

	if (!attach)
		return false;
	own = pvr_adapter_fabric(pvr_attach_adapter(attach));
	if (**fabric && strcmp(*fabric, own) != 0)
		return pvr_fail(err,
				"adapter '%s' is of fabric '%s', not of '%s': no message matches",
				name, own, *fabric);
	*fabric = own;
	return true;
}

struct search {
	const char *name;
	bool found;
};

static void compare_peer(void *opaque, const struct pvr_peer_info *info)
{
	struct search *search = opaque;

	search->found |= !strcmp(info->name, search->name);
}

/* Return: whether another host of this name is known. */
static bool is_host(const struct pvr_daemon *daemon, const char *name)
{
	struct search search = { .name = name };

	if (daemon->network)
		pvr_peers_for_each(pvr_net_peers(daemon->network->net), compare_peer, &search);
	return search.found;
}

static bool check_to(struct pvr_daemon *daemon, const char *name, const char **fabric,
		     struct pvr_error *err)
{
	struct pvr_error why;

	if (pvr_daemon_find_adapter(daemon, name, &why))
		return check_adapter(daemon, name, fabric, err);
	return is_host(daemon, name) ||
	       pvr_fail(err,
			"there is no adapter or other host '%s': see 'pvrdmactl adapters' and "
			"'pvrdmactl peers'",
			name);
}

static bool check_qp(struct pvr_daemon *daemon, const struct pvr_fault_match *match,
		     struct pvr_error *err)
{
	struct pvr_attach *attach = pvr_daemon_find_adapter(daemon, match->from, err);
	struct pvr_qp_info infos[32];
	uint32_t cursor = 0;
	size_t num, i;
	bool more;

	if (!attach)
		return false;
	if (match->qpn == GSI_QPN)
		return true;
	do {
		more = pvr_adapter_get_qps(pvr_attach_adapter(attach), &cursor, infos, 32, &num);
		for (i = 0; i < num; i++)
			if (infos[i].qpn == match->qpn)
				return true;
	} while (more);
	return pvr_fail(err, "adapter '%s' has no queue pair %u: see 'pvrdmactl qps %s'",
			match->from, match->qpn, match->from);
}

static bool check_match(struct pvr_daemon *daemon, const struct pvr_fault_match *match,
			struct pvr_error *err)
{
	const char *fabric = match->fabric;

	if (*fabric && !check_fabric(daemon, fabric, err))
		return false;
	if (*match->from && !check_adapter(daemon, match->from, &fabric, err))
		return false;
	if (*match->to && !check_to(daemon, match->to, &fabric, err))
		return false;
	return !match->qpn || check_qp(daemon, match, err);
}

/* --------------------------------------------------------------------------- adding */

/* Adds one rule, while no worker runs. */
static bool add(struct pvr_daemon *daemon, const char *text, uint32_t *id, struct pvr_error *err)
{
	struct pvr_fault_rule rule;

	if (!pvr_fault_parse(&rule, text, err) || !check_match(daemon, &rule.match, err))
		return false;
	switch (pvr_engine_add_fault(daemon->engine, &rule, id)) {
	case 0:
		pvrd_log(PVR_LOG_WARN, NULL, "fault %u: %s", *id, text);
		return true;
	case -EEXIST:
		return pvr_fail(err,
				"contradicts fault %u, which has the same messages and kind: "
				"'pvrdmactl fault clear %u' removes it",
				*id, *id);
	case -ENOSPC:
		return pvr_fail(err, "more than %d faults", PVR_FAULTS_MAX);
	default:
		return pvr_fail(err, "out of memory");
	}
}

/* Removes the rules that a failed request has added. */
static void undo(struct pvr_daemon *daemon, struct json_object *ids)
{
	size_t i;

	for (i = 0; i < json_object_array_length(ids); i++)
		pvr_engine_clear_faults(daemon->engine, (uint32_t)json_object_get_int64(
								json_object_array_get_idx(ids, i)));
}

static bool add_all(struct pvr_daemon *daemon, struct json_object *texts, struct json_object *ids,
		    struct pvr_error *err)
{
	struct pvr_error why;
	const char *text;
	uint32_t id;
	size_t i;

	for (i = 0; i < json_object_array_length(texts); i++) {
		/* The text of anything but a string is JSON, which is no rule. */
		text = json_object_get_string(json_object_array_get_idx(texts, i));
		text = text ? text : "null";
		if (!add(daemon, text, &id, &why)) {
			undo(daemon, ids);
			return pvr_fail(err, "fault '%.256s': %.640s", text, why.text);
		}
		json_object_array_add(ids, json_object_new_int64(id));
	}
	return true;
}

bool pvr_faults_add(struct pvr_daemon *daemon, struct json_object *texts, struct json_object *reply,
		    struct pvr_error *err)
{
	struct json_object *ids;
	bool ok;

	if (!check_allowed(daemon, err))
		return false;
	if (!json_object_is_type(texts, json_type_array) || !json_object_array_length(texts))
		return pvr_fail(err, "the request has no array \"faults\"");
	ids = json_object_new_array();
	pvr_worker_pool_pause(&daemon->pool);
	ok = add_all(daemon, texts, ids, err);
	pvr_worker_pool_resume(&daemon->pool);
	if (ok)
		put(reply, "ids", ids);
	else
		json_object_put(ids);
	return ok;
}

/* --------------------------------------------------------------- listing and removing */

static void put_fault(void *opaque, const struct pvr_fault_info *info)
{
	struct json_object *obj = json_object_new_object();

	put_number(obj, "id", info->id);
	put_text(obj, "fault", info->text);
	put_number(obj, "messages", info->messages);
	put_number(obj, "dropped", info->dropped);
	put_number(obj, "delayed", info->delayed);
	put_number(obj, "failed", info->failed);
	put_number(obj, "rnr_naks", info->rnr);
	put_number(obj, "seq_naks", info->seq_naks);
	put_number(obj, "reordered", info->reordered);
	put_number(obj, "duplicated", info->duplicated);
	put_number(obj, "corrupted", info->corrupted);
	put_number(obj, "port_downs", info->port_downs);
	put_number(obj, "stalled", info->stalled);
	put_number(obj, "refused", info->refused);
	json_object_array_add(opaque, obj);
}

void pvr_faults_list(struct pvr_daemon *daemon, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();

	pvr_engine_for_each_fault(daemon->engine, put_fault, list);
	put_bool(reply, "allowed", daemon->faults_allowed);
	put(reply, "faults", list);
}

bool pvr_faults_clear(struct pvr_daemon *daemon, const char *id, struct json_object *reply,
		      struct pvr_error *err)
{
	unsigned long number = 0;
	unsigned int cleared;
	char *end;

	if (!check_allowed(daemon, err))
		return false;
	if (id) {
		number = *id >= '1' && *id <= '9' ? strtoul(id, &end, 10) : 0;
		if (!number || *end || number > UINT32_MAX)
			return pvr_fail(err, "'%.64s' is not the number of a fault", id);
	}
	pvr_worker_pool_pause(&daemon->pool);
	cleared = pvr_engine_clear_faults(daemon->engine, (uint32_t)number);
	pvr_worker_pool_resume(&daemon->pool);
	if (id && !cleared)
		return pvr_fail(err, "there is no fault %s: see 'pvrdmactl fault list'", id);
	if (cleared)
		pvrd_log(PVR_LOG_WARN, NULL, "%u fault%s cleared", cleared, cleared > 1 ? "s" : "");
	put_number(reply, "cleared", cleared);
	return true;
}
