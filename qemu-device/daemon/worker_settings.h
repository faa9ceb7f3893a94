/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Settings of the workers: their number and CPUs. */
#ifndef PVR_DAEMON_WORKER_SETTINGS_H
#define PVR_DAEMON_WORKER_SETTINGS_H

#include "daemon/cpu_list.h"

struct pvr_worker_settings {
	unsigned int num; /* 0: one per CPU of the list, or one without a list */
	bool balanced; /* "auto": one per CPU, and adapters move between them, see balance.h */
	struct pvr_cpu_list cpus; /* one per worker; empty: anywhere */
	bool has_node;
	unsigned int node; /* NUMA node for all workers and all memory */
};

/* @key: "workers", "worker-cpus" or "numa-node". An earlier value is kept. */
bool pvr_worker_settings_set(struct pvr_worker_settings *settings, const char *key,
			     const char *value, struct pvr_error *err);
/* Checks the settings against each other and the machine, and sets the memory policy. */
bool pvr_worker_settings_check(const struct pvr_worker_settings *settings, struct pvr_error *err);

/* The number of workers, after pvr_worker_settings_check(). */
unsigned int pvr_worker_settings_num(const struct pvr_worker_settings *settings);
/* The CPUs of one worker; empty: anywhere. */
void pvr_worker_settings_cpus(const struct pvr_worker_settings *settings, unsigned int worker,
			      struct pvr_cpu_list *cpus);

#endif /* PVR_DAEMON_WORKER_SETTINGS_H */
