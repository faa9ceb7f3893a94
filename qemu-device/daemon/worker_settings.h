/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* How many workers there are, and where they run: what the operator wants of it. */
#ifndef PVR_DAEMON_WORKER_SETTINGS_H
#define PVR_DAEMON_WORKER_SETTINGS_H

#include "daemon/cpu_list.h"

struct pvr_worker_settings {
	unsigned int num; /* 0: one, or one for each of the CPUs */
	struct pvr_cpu_list cpus; /* one for each worker; none: anywhere */
	bool has_node;
	unsigned int node; /* NUMA: all workers run there, and all memory is there */
};

/* "workers", "worker-cpus" or "numa-node"; what was set before stays. */
bool pvr_worker_settings_set(struct pvr_worker_settings *settings, const char *key,
			     const char *value, struct pvr_error *err);
/* Does all of it fit together and this machine? Then memory comes from the node. */
bool pvr_worker_settings_check(const struct pvr_worker_settings *settings, struct pvr_error *err);

/* What is checked comes to: */
unsigned int pvr_worker_settings_num(const struct pvr_worker_settings *settings);
/* Where this one may run; none: anywhere. */
void pvr_worker_settings_cpus(const struct pvr_worker_settings *settings, unsigned int worker,
			      struct pvr_cpu_list *cpus);

#endif /* PVR_DAEMON_WORKER_SETTINGS_H */
