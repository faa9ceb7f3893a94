/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Are there CPUs enough for workers that never sleep? */
#ifndef PVR_DAEMON_CPUS_H
#define PVR_DAEMON_CPUS_H

#include "base/error.h"

struct pvr_cpus {
	unsigned int allowed; /* to this process; 0: unknown */
	unsigned int online; /* in the machine; 0: unknown */
};

struct pvr_cpus pvr_cpus_get(void);

/*
 * @polling workers poll without pause. Return: true if they and the guests can all run;
 * otherwise @why says what happens.
 */
bool pvr_cpus_suffice(struct pvr_cpus cpus, unsigned int polling, struct pvr_error *why);

#endif /* PVR_DAEMON_CPUS_H */
