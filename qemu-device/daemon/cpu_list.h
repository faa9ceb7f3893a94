/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* CPU lists in the syntax of sysfs: 0-3,8. */
#ifndef PVR_DAEMON_CPU_LIST_H
#define PVR_DAEMON_CPU_LIST_H

#include <sched.h>
#include <stddef.h>

#include "base/error.h"

struct pvr_cpu_list {
	size_t num;
	unsigned int cpu[CPU_SETSIZE]; /* in the order given, without duplicates */
};

bool pvr_cpu_list_parse(struct pvr_cpu_list *cpus, const char *text, struct pvr_error *err);
/* Return: false with @err filled unless this process may run on all of them. */
bool pvr_cpu_list_check(const struct pvr_cpu_list *cpus, struct pvr_error *err);

/*
 * The CPUs of a NUMA node on which this process may run. At least one, or false with @err
 * filled.
 */
bool pvr_cpu_list_of_node(struct pvr_cpu_list *cpus, unsigned int node, struct pvr_error *err);
/* Sets the memory policy of this process to prefer the node (MPOL_PREFERRED). */
bool pvr_numa_prefer(unsigned int node, struct pvr_error *err);

bool pvr_cpu_list_contain(const struct pvr_cpu_list *cpus, unsigned int cpu);
void pvr_cpu_list_to_set(const struct pvr_cpu_list *cpus, cpu_set_t *set);
/* Writes the syntax that pvr_cpu_list_parse() reads; truncated to @size. */
const char *pvr_cpu_list_format(const struct pvr_cpu_list *cpus, char *buf, size_t size);

#endif /* PVR_DAEMON_CPU_LIST_H */
