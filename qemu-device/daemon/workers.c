// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How many workers there are, and where they run: what the operator wants of it. */
#include <stdlib.h>
#include <string.h>

#include "daemon/workers.h"
#include "engine.h"

#define LIST_TEXT 128

static bool set_num(struct pvr_workers *workers, const char *value, struct pvr_error *err)
{
	char *end;
	unsigned long num = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || !num || num > PVR_MAX_WORKERS)
		return pvr_fail(err, "workers '%.64s' is no number from 1 to %d", value,
				PVR_MAX_WORKERS);
	if (!workers->num)
		workers->num = (unsigned int)num;
	return true;
}

static bool set_cpus(struct pvr_workers *workers, const char *value, struct pvr_error *err)
{
	struct pvr_cpu_list cpus;

	if (!pvr_cpu_list_parse(&cpus, value, err))
		return false;
	if (!workers->cpus.num)
		workers->cpus = cpus;
	return true;
}

static bool set_node(struct pvr_workers *workers, const char *value, struct pvr_error *err)
{
	char *end;
	unsigned long node = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || node > 1023)
		return pvr_fail(err, "numa-node '%.64s' is no number from 0 to 1023", value);
	if (!workers->has_node)
		workers->node = (unsigned int)node;
	workers->has_node = true;
	return true;
}

bool pvr_workers_set(struct pvr_workers *workers, const char *key, const char *value,
		     struct pvr_error *err)
{
	if (!strcmp(key, "workers"))
		return set_num(workers, value, err);
	if (!strcmp(key, "worker-cpus"))
		return set_cpus(workers, value, err);
	return set_node(workers, value, err);
}

unsigned int pvr_workers_num(const struct pvr_workers *workers)
{
	if (workers->num)
		return workers->num;
	return workers->cpus.num ? (unsigned int)workers->cpus.num : 1;
}

static bool check_cpus(const struct pvr_workers *workers, struct pvr_error *err)
{
	unsigned int num = pvr_workers_num(workers);
	char text[LIST_TEXT];

	if (!workers->cpus.num)
		return true;
	if (num > PVR_MAX_WORKERS)
		return pvr_fail(err, "worker-cpus names %u CPUs, and there can be %d workers", num,
				PVR_MAX_WORKERS);
	if (workers->cpus.num < num)
		return pvr_fail(err, "%u workers need as many CPUs, and worker-cpus %s is %zu", num,
				pvr_cpu_list_format(&workers->cpus, text, sizeof(text)),
				workers->cpus.num);
	return pvr_cpu_list_check(&workers->cpus, err);
}

static bool check_node(const struct pvr_workers *workers, struct pvr_error *err)
{
	struct pvr_cpu_list cpus;
	char text[LIST_TEXT];
	size_t i;

	if (!workers->has_node)
		return true;
	if (!pvr_cpu_list_of_node(&cpus, workers->node, err))
		return false;
	for (i = 0; i < workers->cpus.num; i++) {
		if (!pvr_cpu_list_contain(&cpus, workers->cpus.cpu[i]))
			return pvr_fail(
				err, "CPU %u of worker-cpus is not on NUMA node %u, which has %s",
				workers->cpus.cpu[i], workers->node,
				pvr_cpu_list_format(&cpus, text, sizeof(text)));
	}
	return pvr_numa_prefer(workers->node, err);
}

bool pvr_workers_check(const struct pvr_workers *workers, struct pvr_error *err)
{
	return check_cpus(workers, err) && check_node(workers, err);
}

void pvr_workers_place(const struct pvr_workers *workers, unsigned int worker,
		       struct pvr_cpu_list *cpus)
{
	struct pvr_error err;

	cpus->num = 0;
	if (workers->cpus.num) {
		cpus->num = 1;
		cpus->cpu[0] = workers->cpus.cpu[worker];
	} else if (workers->has_node && !pvr_cpu_list_of_node(cpus, workers->node, &err)) {
		cpus->num = 0; /* it has been checked, and is gone just now */
	}
}
