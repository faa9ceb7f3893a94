// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Requests that stop and start adapters. */
#include "daemon/run_requests.h"

#include <errno.h>
#include <string.h>

#include "attach/handover.h"
#include "daemon/json_put.h"

void pvr_put_run_state(struct json_object *obj, const struct pvr_adapter_stats *stats)
{
	put_text(obj, "run_state", pvr_run_state_name(stats->run_state));
	if (stats->run_state == PVR_RUN_STOPPED || stats->run_state == PVR_RUN_LOADED)
		put_number(obj, "stopped_ms", stats->stopped_ns / 1000000);
}

static int start(struct pvr_attach *attach, struct pvr_error *err)
{
	int ret = pvr_handover_check(attach, err);

	return ret ? ret : pvr_handover_start(attach);
}

static int reclaim(struct pvr_attach *attach, struct pvr_error *err)
{
	return pvr_adapter_reclaim(pvr_attach_adapter(attach));
}

static const struct {
	const char *name;
	int (*run)(struct pvr_attach *attach, struct pvr_error *err);
} actions[] = {
	{ "stop", pvr_handover_stop },
	{ "start", start },
	{ "reclaim", reclaim },
};

static bool report(int ret, const struct pvr_error *why, const char *name, const char *action,
		   struct pvr_error *err)
{
	if (!ret)
		return true;
	if (ret == -EAGAIN || ret == -EINPROGRESS)
		return pvr_fail(err, "adapter '%s' is busy with a command or a reset: repeat this",
				name);
	return pvr_fail(err, "adapter '%s' does not %s: %.300s", name, action,
			why->text[0] ? why->text : strerror(-ret));
}

bool pvr_run_change(struct pvr_daemon *daemon, struct pvr_attach *attach, const char *action,
		    struct pvr_error *err)
{
	struct pvr_error why = { "" };
	size_t i;
	int ret;

	for (i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(action, actions[i].name))
			continue;
		pvr_worker_pool_pause(&daemon->pool);
		ret = actions[i].run(attach, &why);
		pvr_worker_pool_resume(&daemon->pool);
		return report(ret, &why, pvr_adapter_name(pvr_attach_adapter(attach)), action, err);
	}
	return pvr_fail(err, "'adapter %.64s' is none of 'adapter stop', 'start', 'reclaim'",
			action);
}
