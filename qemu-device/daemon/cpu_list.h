/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Lists of CPUs, as people and sysfs write them: 0-3,8. */
#ifndef PVR_DAEMON_CPU_LIST_H
#define PVR_DAEMON_CPU_LIST_H

#include <sched.h>
#include <stddef.h>

#include "base/error.h"

struct pvr_cpu_list {
	size_t num;
	unsigned int cpu[CPU_SETSIZE]; /* in the order they were given in, none twice */
};

bool pvr_cpu_list_parse(struct pvr_cpu_list *cpus, const char *text, struct pvr_error *err);
/* May this process use all of them? */
bool pvr_cpu_list_check(const struct pvr_cpu_list *cpus, struct pvr_error *err);

/* Those of a NUMA node that this process may use; there is at least one. */
bool pvr_cpu_list_of_node(struct pvr_cpu_list *cpus, unsigned int node, struct pvr_error *err);
/* Memory of this process, from now on, if that node has some left. */
bool pvr_numa_prefer(unsigned int node, struct pvr_error *err);

bool pvr_cpu_list_contain(const struct pvr_cpu_list *cpus, unsigned int cpu);
void pvr_cpu_list_to_set(const struct pvr_cpu_list *cpus, cpu_set_t *set);
/* As pvr_cpu_list_parse() takes it; cut off if it does not fit. */
const char *pvr_cpu_list_format(const struct pvr_cpu_list *cpus, char *buf, size_t size);

#endif /* PVR_DAEMON_CPU_LIST_H */
