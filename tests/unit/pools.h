/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two hosts of two workers each, whose workers and connections have threads of their own.
 * Each worker has a guest; those of the same worker of both hosts are a pair, which one
 * thread of the test uses. All share one connection each way.
 */
#ifndef UNIT_POOLS_H
#define UNIT_POOLS_H

#include "common.h"
#include "fg_worker_pool.h"

struct t_pools {
	struct fg_wire *wire;
	struct fg_worker_pool *pool[2];
	struct fg_guest *guest[2][2]; /* [worker][host] */
	bool nics;
};

/* The guests have booted, no thread runs. */
void t_pools_init(struct t_pools *pools);
/* Their hosts have RDMA NICs that read, too, and it is their connections that break then. */
void t_pools_init_nics(struct t_pools *pools);
/* cmocka teardown: *state is test_malloc()ed, and begins with struct t_pools. */
int t_pools_teardown(void **state);
/* From here on nothing may call fg_run(), until t_pools_talk() has returned. */
void t_pools_start(struct t_pools *pools);

/*
 * Each worker's pair has @turn(@pair[worker]) called in a thread of its own until that
 * returns true; a hang ends the test. Meanwhile connections break, and come back, @cuts
 * times. Then all threads stop, and nothing that has come was refused.
 */
void t_pools_talk(struct t_pools *pools, bool (*turn)(void *pair), void *const pair[2],
		  unsigned int cuts);

#endif /* UNIT_POOLS_H */
