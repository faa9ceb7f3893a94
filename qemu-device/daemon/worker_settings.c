// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Settings of the workers: their number and CPUs. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/worker_settings.h"
#include "engine.h"

#define LIST_TEXT 128

static bool set_num(struct pvr_worker_settings *settings, const char *value, struct pvr_error *err)
{
	char *end;
	unsigned long num = strtoul(value, &end, 10);

	if (!strcmp(value, "auto")) {
		settings->balanced |= !settings->num;
		return true;
	}
	if (*value < '0' || *value > '9' || *end || !num || num > PVR_MAX_WORKERS)
		return pvr_fail(err, "workers '%.64s' is not a number from 1 to %d, or auto", value,
				PVR_MAX_WORKERS);
	if (!settings->num && !settings->balanced)
		settings->num = (unsigned int)num;
	return true;
}

static bool set_cpus(struct pvr_worker_settings *settings, const char *value, struct pvr_error *err)
{
	struct pvr_cpu_list cpus;

	if (!pvr_cpu_list_parse(&cpus, value, err))
		return false;
	if (!settings->cpus.num)
		settings->cpus = cpus;
	return true;
}

static bool set_node(struct pvr_worker_settings *settings, const char *value, struct pvr_error *err)
{
	char *end;
	unsigned long node = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || node > 1023)
		return pvr_fail(err, "numa-node '%.64s' is not a number from 0 to 1023", value);
	if (!settings->has_node)
		settings->node = (unsigned int)node;
	settings->has_node = true;
	return true;
}

bool pvr_worker_settings_set(struct pvr_worker_settings *settings, const char *key,
			     const char *value, struct pvr_error *err)
{
	if (!strcmp(key, "workers"))
		return set_num(settings, value, err);
	if (!strcmp(key, "worker-cpus"))
		return set_cpus(settings, value, err);
	return set_node(settings, value, err);
}

static unsigned int usable_cpus(void)
{
	int num = 1;
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof(set), &set))
		num = CPU_COUNT(&set);
	return num < PVR_MAX_WORKERS ? (unsigned int)num : PVR_MAX_WORKERS;
}

unsigned int pvr_worker_settings_num(const struct pvr_worker_settings *settings)
{
	if (settings->num)
		return settings->num;
	if (settings->cpus.num)
		return (unsigned int)settings->cpus.num;
	return settings->balanced ? usable_cpus() : 1;
}

static bool check_cpus(const struct pvr_worker_settings *settings, struct pvr_error *err)
{
	unsigned int num = pvr_worker_settings_num(settings);
	char text[LIST_TEXT];

	if (!settings->cpus.num)
		return true;
	if (num > PVR_MAX_WORKERS)
		return pvr_fail(err, "worker-cpus names %u CPUs, and there can be %d workers", num,
				PVR_MAX_WORKERS);
	if (settings->cpus.num < num)
		return pvr_fail(err, "%u workers need as many CPUs, and worker-cpus %s is %zu", num,
				pvr_cpu_list_format(&settings->cpus, text, sizeof(text)),
				settings->cpus.num);
	return pvr_cpu_list_check(&settings->cpus, err);
}

static bool check_node(const struct pvr_worker_settings *settings, struct pvr_error *err)
{
	struct pvr_cpu_list cpus;
	char text[LIST_TEXT];
	size_t i;

	if (!settings->has_node)
		return true;
	if (!pvr_cpu_list_of_node(&cpus, settings->node, err))
		return false;
	for (i = 0; i < settings->cpus.num; i++) {
		if (!pvr_cpu_list_contain(&cpus, settings->cpus.cpu[i]))
			return pvr_fail(
				err, "CPU %u of worker-cpus is not on NUMA node %u, which has %s",
				settings->cpus.cpu[i], settings->node,
				pvr_cpu_list_format(&cpus, text, sizeof(text)));
	}
	return pvr_numa_prefer(settings->node, err);
}

bool pvr_worker_settings_check(const struct pvr_worker_settings *settings, struct pvr_error *err)
{
	return check_cpus(settings, err) && check_node(settings, err);
}

void pvr_worker_settings_cpus(const struct pvr_worker_settings *settings, unsigned int worker,
			      struct pvr_cpu_list *cpus)
{
	struct pvr_error err;

	cpus->num = 0;
	if (settings->cpus.num) {
		cpus->num = 1;
		cpus->cpu[0] = settings->cpus.cpu[worker];
	} else if (settings->has_node && !pvr_cpu_list_of_node(cpus, settings->node, &err)) {
		cpus->num = 0; /* the node was there at the check and is offline now */
	}
}
