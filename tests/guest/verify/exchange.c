// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Messages between the two processes over TCP: parameters, addresses, progress. */
#include <string.h>

#include "oob.h"
#include "verify.h"

/* The client's parameters count; what a device limits is the smaller of both. */
void agree(struct run *run, bool client)
{
	struct params *mine = &run->params, theirs, both;

	oob_exchange(run->fd, mine, &theirs, sizeof(theirs));
	if (memcmp(theirs.magic, mine->magic, sizeof(theirs.magic)))
		die("the peer is not a pvr_verify of this version");
	both = client ? *mine : theirs;
	both.max_sge = smaller(mine->max_sge, theirs.max_sge);
	both.max_sge_read = smaller(mine->max_sge_read, theirs.max_sge_read);
	both.mtu = smaller(mine->mtu, theirs.mtu);
	both.offers = mine->offers & theirs.offers;
	both.inline_max = smaller(mine->inline_max, theirs.inline_max);
	*mine = both;
}

void trade(struct run *run, const void *const mine[2], void *const theirs[2], size_t len)
{
	for (int side = run->first; side <= run->last; side++) {
		if (run->fd < 0)
			memcpy(theirs[!side], mine[side], len);
		else
			oob_exchange(run->fd, mine[side], theirs[side], len);
	}
}

static struct contact contact_of(const struct run *run, const struct end *end)
{
	struct contact contact = {
		.address = qp_address(&run->node, end->qp),
		.memory = (uintptr_t)end->memory,
	};

	for (int i = 0; i < REGION_NUM; i++)
		contact.rkeys[i] = end->mrs[i]->rkey;
	return contact;
}

void introduce_ends(struct run *run)
{
	struct contact mine[2];

	for (int side = run->first; side <= run->last; side++)
		mine[side] = contact_of(run, &run->ends[side]);
	trade(run, (const void *[]){ &mine[0], &mine[1] },
	      (void *[]){ &run->ends[0].peer, &run->ends[1].peer }, sizeof(mine[0]));
}

void meet(struct run *run)
{
	uint64_t mine[2] = { run->round, run->errors }, theirs[2];

	if (run->fd < 0)
		return;
	oob_exchange(run->fd, mine, theirs, sizeof(mine));
	if (theirs[0] != mine[0])
		die("the peer is in round %llu, expected %llu", (unsigned long long)theirs[0],
		    (unsigned long long)mine[0]);
	if (theirs[1])
		die("the peer has found %llu errors by round %llu", (unsigned long long)theirs[1],
		    (unsigned long long)run->round);
}
