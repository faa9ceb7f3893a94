/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Check that the CPUs suffice for workers that never sleep. */
#ifndef PVR_DAEMON_CPUS_H
#define PVR_DAEMON_CPUS_H

#include "base/error.h"

struct pvr_cpus {
	unsigned int allowed; /* CPUs that this process may use; 0: unknown */
	unsigned int online; /* CPUs of the machine; 0: unknown */
};

struct pvr_cpus pvr_cpus_get(void);

/*
 * @polling workers never sleep. Return: true if they and the guests have CPUs to run on;
 * otherwise false, and @why describes the effect.
 */
bool pvr_cpus_suffice(struct pvr_cpus cpus, unsigned int polling, struct pvr_error *why);

#endif /* PVR_DAEMON_CPUS_H */
