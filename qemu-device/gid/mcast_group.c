/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Multicast groups of a fabric: which queue pairs get what is sent to a group's GID. */
#include "gid/mcast_group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gid/resolve.h"
#include "core/objects.h"
#include "gid/fabric.h"

static struct pvr_group *find_in(const struct pvr_fabric *fabric, const uint8_t mgid[16],
				 uint8_t gid_type)
{
	struct pvr_group *group;

	LIST_FOREACH(group, &fabric->groups[pvr_fabric_bucket(mgid)], link)
	if (group->gid_type == gid_type && !memcmp(group->mgid, mgid, 16))
		return group;
	return NULL;
}

static struct pvr_group *group_find(const struct pvr_adapter *adapter, const uint8_t mgid[16])
{
	return find_in(adapter->fabric, mgid, adapter->gid_type);
}

static uint32_t group_share(const struct pvr_group *group)
{
	uint32_t share = PVR_MCAST_FANOUT / group->count;

	return share ? share : 1;
}

static struct pvr_party *party_find(const struct pvr_group *group,
				    const struct pvr_adapter *adapter)
{
	struct pvr_party *party;

	LIST_FOREACH(party, &group->parties, link)
	if (party->adapter == adapter)
		return party;
	return NULL;
}

static struct pvr_member *member_find(const struct pvr_qp *qp, const uint8_t mgid[16])
{
	struct pvr_member *member;

	LIST_FOREACH(member, &qp->groups, of_qp)
	if (!memcmp(member->party->group->mgid, mgid, 16))
		return member;
	return NULL;
}

static struct pvr_group *group_get(struct pvr_adapter *adapter, const uint8_t mgid[16])
{
	struct pvr_group *group = group_find(adapter, mgid);

	if (group)
		return group;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	memcpy(group->mgid, mgid, sizeof(group->mgid));
	group->gid_type = adapter->gid_type;
	LIST_INIT(&group->parties);
	LIST_INSERT_HEAD(&adapter->fabric->groups[pvr_fabric_bucket(mgid)], group, link);
	return group;
}

static void group_put(struct pvr_group *group)
{
	if (group->count)
		return;
	LIST_REMOVE(group, link);
	free(group);
}

/* The first adapter is in the group, or the last one has left. */
static void announce(const struct pvr_adapter *adapter, const struct pvr_group *group, bool present)
{
	static const uint8_t nobody[6];

	pvr_announce(adapter->engine, adapter->fabric->name, group->mgid, group->gid_type, nobody,
		     present);
}

static struct pvr_party *party_get(struct pvr_adapter *adapter, struct pvr_group *group)
{
	struct pvr_party *party = party_find(group, adapter);

	if (party || adapter->mcast_groups == PVR_MAX_MCAST_GRP)
		return party;
	party = calloc(1, sizeof(*party));
	if (!party)
		return NULL;
	party->group = group;
	party->adapter = adapter;
	party->number = ++adapter->engine->fabrics->parties;
	TAILQ_INIT(&party->members);
	LIST_INSERT_HEAD(&group->parties, party, link);
	if (!group->count++)
		announce(adapter, group, true);
	adapter->mcast_groups++;
	return party;
}

static void party_put(struct pvr_party *party)
{
	if (party->count)
		return;
	LIST_REMOVE(party, link);
	if (!--party->group->count)
		announce(party->adapter, party->group, false);
	party->adapter->mcast_groups--;
	free(party);
}

static int member_add(struct pvr_party *party, struct pvr_qp *qp)
{
	struct pvr_member *member;

	if (party->count == PVR_MAX_MCAST_QP_ATTACH ||
	    party->adapter->mcast_attached == PVR_MAX_MCAST_TOTAL)
		return -ENOMEM;
	member = calloc(1, sizeof(*member));
	if (!member)
		return -ENOMEM;
	member->party = party;
	member->qp = qp;
	TAILQ_INSERT_TAIL(&party->members, member, of_party);
	LIST_INSERT_HEAD(&qp->groups, member, of_qp);
	party->count++;
	party->adapter->mcast_attached++;
	return 0;
}

static void member_del(struct pvr_member *member)
{
	struct pvr_party *party = member->party;
	struct pvr_group *group = party->group;

	TAILQ_REMOVE(&party->members, member, of_party);
	LIST_REMOVE(member, of_qp);
	party->count--;
	party->adapter->mcast_attached--;
	free(member);
	party_put(party);
	group_put(group);
}

static int attach(struct pvr_qp *qp, const uint8_t mgid[16])
{
	struct pvr_group *group;
	struct pvr_party *party;
	int err = -ENOMEM;

	if (member_find(qp, mgid))
		return 0;
	group = group_get(qp->adapter, mgid);
	if (!group)
		return -ENOMEM;
	party = party_get(qp->adapter, group);
	if (!party)
		goto err_group;
	err = member_add(party, qp);
	if (err)
		goto err_party;
	return 0;

err_party:
	party_put(party);
err_group:
	group_put(group);
	return err;
}

static struct pvr_lock *lock_of(const struct pvr_adapter *adapter)
{
	return &adapter->engine->fabrics->lock;
}

int pvr_group_attach(struct pvr_qp *qp, const uint8_t mgid[16])
{
	int err;

	pvr_lock(lock_of(qp->adapter));
	err = attach(qp, mgid);
	pvr_unlock(lock_of(qp->adapter));
	return err;
}

int pvr_group_detach(struct pvr_qp *qp, const uint8_t mgid[16])
{
	struct pvr_member *member = member_find(qp, mgid);

	if (!member)
		return -EINVAL;
	pvr_lock(lock_of(qp->adapter));
	member_del(member);
	pvr_unlock(lock_of(qp->adapter));
	return 0;
}

void pvr_group_detach_all(struct pvr_qp *qp)
{
	if (LIST_EMPTY(&qp->groups))
		return;
	pvr_lock(lock_of(qp->adapter));
	while (!LIST_EMPTY(&qp->groups))
		member_del(LIST_FIRST(&qp->groups));
	pvr_unlock(lock_of(qp->adapter));
}

static const struct pvr_group *find_of_any_type(const struct pvr_fabric *fabric,
						const uint8_t mgid[16])
{
	const struct pvr_group *group;

	LIST_FOREACH(group, &fabric->groups[pvr_fabric_bucket(mgid)], link)
	if (group->count && !memcmp(group->mgid, mgid, 16))
		return group;
	return NULL;
}

bool pvr_group_exists(struct pvr_engine *engine, const char *name, const uint8_t mgid[16],
		      uint8_t *gid_type)
{
	const struct pvr_group *group = NULL;
	const struct pvr_fabric *fabric;

	pvr_lock(&engine->fabrics->lock);
	LIST_FOREACH(fabric, &engine->fabrics->list, link)
	if (!strcmp(fabric->name, name))
		group = find_of_any_type(fabric, mgid);
	if (group)
		*gid_type = group->gid_type;
	pvr_unlock(&engine->fabrics->lock);
	return group;
}

/* ------------------------------------------------------------ going through */

/* The first with a number below @below, 0: of all. */
static bool find_step(const struct pvr_group *group, uint64_t below, struct pvr_group_step *step)
{
	struct pvr_party *party;

	LIST_FOREACH(party, &group->parties, link)
	{
		if (below && party->number >= below)
			continue;
		*step = (struct pvr_group_step){
			.number = party->number,
			.adapter = party->adapter,
			.first = TAILQ_FIRST(&party->members),
			.share = group_share(group),
		};
		return true;
	}
	return false;
}

bool pvr_group_next(const struct pvr_adapter *adapter, const uint8_t mgid[16], uint64_t after,
		    struct pvr_group_step *step)
{
	struct pvr_group *group;
	bool found;

	pvr_lock(lock_of(adapter));
	group = group_find(adapter, mgid);
	found = group && find_step(group, after, step);
	pvr_unlock(lock_of(adapter));
	return found;
}

bool pvr_group_next_of(struct pvr_engine *engine, const struct pvr_group_name *name, uint64_t after,
		       struct pvr_group_step *step)
{
	const struct pvr_group *group = NULL;
	const struct pvr_fabric *fabric;
	bool found;

	pvr_lock(&engine->fabrics->lock);
	LIST_FOREACH(fabric, &engine->fabrics->list, link)
	if (!strcmp(fabric->name, name->fabric))
		group = find_in(fabric, name->mgid, name->gid_type);
	found = group && find_step(group, after, step);
	pvr_unlock(&engine->fabrics->lock);
	return found;
}

bool pvr_group_at(const struct pvr_adapter *adapter, const uint8_t mgid[16],
		  struct pvr_group_step *step)
{
	uint64_t number = step->number;

	return pvr_group_next(adapter, mgid, number + 1, step) && step->number == number;
}
