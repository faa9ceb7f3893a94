// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <string.h>

#include "oob.h"
#include "verify.h"

#define STALL_SECONDS 60

struct ibv_cq *cq_open(struct run *run, int entries)
{
	struct ibv_cq *cq = ibv_create_cq(run->node.ctx, entries, NULL, NULL, 0);

	if (!cq)
		die("ibv_create_cq of %d entries:", entries);
	return cq;
}

struct ibv_wc cq_wait(struct run *run, struct ibv_cq *cq)
{
	double limit = now() + STALL_SECONDS;
	struct ibv_wc wc;
	int num;

	while (!(num = ibv_poll_cq(cq, 1, &wc)))
		if (now() > limit)
			die("%s: nothing completes for %d s", run->phase, STALL_SECONDS);
	if (num < 0)
		die("ibv_poll_cq returns %d", num);
	return wc;
}

void trade(struct run *run, const void *const mine[2], void *const theirs[2], size_t len)
{
	int side;

	for (side = 0; side < 2; side++) {
		if (!run->here[side])
			continue;
		if (run->here[!side])
			memcpy(theirs[!side], mine[side], len);
		else
			oob_exchange(run->fd, mine[side], theirs[side], len);
	}
}
