/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The rules of an engine, shared by the files of this folder. */
#ifndef PVR_FAULT_INTERNAL_H
#define PVR_FAULT_INTERNAL_H

#include "path/fault/fault.h"

/* A rule in use. Each message loops over all rules of its queue pair, so there are few. */
struct pvr_fault {
	uint32_t id; /* never reused */
	struct pvr_fault_rule rule;
	/* Any worker increments them. */
	uint64_t messages;
	uint64_t injected[PVR_FAULT_KINDS];
};

/* Changes only while no worker runs. */
struct pvr_faults {
	uint64_t gen; /* incremented by each change */
	uint32_t last_id;
	uint32_t num;
	struct pvr_fault *list[PVR_FAULTS_MAX]; /* the oldest is first */
};

static inline void pvr_fault_count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

#endif /* PVR_FAULT_INTERNAL_H */
