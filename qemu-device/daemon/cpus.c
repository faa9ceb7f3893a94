// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Check that the CPUs suffice for workers that never sleep. */
#include "daemon/cpus.h"

#include <sched.h>
#include <unistd.h>

/* 0, unknown, if there are more CPUs than cpu_set_t holds: there is no shortage then. */
struct pvr_cpus pvr_cpus_get(void)
{
	struct pvr_cpus cpus = { 0, 0 };
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		cpus.allowed = (unsigned int)CPU_COUNT(&set);
	if (online > 0)
		cpus.online = (unsigned int)online;
	return cpus;
}

bool pvr_cpus_suffice(struct pvr_cpus cpus, unsigned int polling, struct pvr_error *why)
{
	if (cpus.allowed && polling > cpus.allowed)
		return pvr_fail(
			why,
			"%u workers have adapters with uar=mapped, and this process may use "
			"%u CPUs: these workers wait for each other, and their guests "
			"with them; use fewer workers, or uar=trapped",
			polling, cpus.allowed);
	if (cpus.online && polling && polling >= cpus.online)
		return pvr_fail(why,
				"%u workers have adapters with uar=mapped, and this machine has %u "
				"CPUs: no CPU is left for the guests, so these workers poll "
				"doorbells every 50 us only; use fewer workers, or uar=trapped",
				polling, cpus.online);
	return true;
}
