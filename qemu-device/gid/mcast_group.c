// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups of a fabric: the queue pairs that receive datagrams to a group's GID.
 */
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

	LIST_FOREACH(group, &fabric->groups[pvr_fabric_bucket(fabric, mgid)], link)
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

static struct pvr_mcast_adapter *mcast_adapter_find(const struct pvr_group *group,
						    const struct pvr_adapter *adapter)
{
	struct pvr_mcast_adapter *mcast_adapter;

	LIST_FOREACH(mcast_adapter, &group->mcast_adapters, link)
		if (mcast_adapter->adapter == adapter)
			return mcast_adapter;
	return NULL;
}

static struct pvr_mcast_qp *mcast_qp_find(const struct pvr_qp *qp, const uint8_t mgid[16])
{
	struct pvr_mcast_qp *mcast_qp;

	LIST_FOREACH(mcast_qp, &qp->groups, of_qp)
		if (!memcmp(mcast_qp->mcast_adapter->group->mgid, mgid, 16))
			return mcast_qp;
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
	LIST_INIT(&group->mcast_adapters);
	LIST_INSERT_HEAD(&adapter->fabric->groups[pvr_fabric_bucket(adapter->fabric, mgid)], group,
			 link);
	return group;
}

static void group_put(struct pvr_group *group)
{
	if (group->count)
		return;
	LIST_REMOVE(group, link);
	free(group);
}

/* Report that the first adapter has joined the group, or that the last one has left. */
static void announce(const struct pvr_adapter *adapter, const struct pvr_group *group, bool present)
{
	static const uint8_t no_mac[6];

	pvr_announce(adapter->engine, adapter->fabric->name, group->mgid, group->gid_type, no_mac,
		     present);
}

static struct pvr_mcast_adapter *mcast_adapter_get(struct pvr_adapter *adapter,
						   struct pvr_group *group)
{
	struct pvr_mcast_adapter *mcast_adapter = mcast_adapter_find(group, adapter);

	if (mcast_adapter || adapter->mcast_groups == PVR_MAX_MCAST_GRP)
		return mcast_adapter;
	mcast_adapter = calloc(1, sizeof(*mcast_adapter));
	if (!mcast_adapter)
		return NULL;
	mcast_adapter->group = group;
	mcast_adapter->adapter = adapter;
	mcast_adapter->number =
		__atomic_add_fetch(&adapter->engine->fabrics->mcast_adapters, 1, __ATOMIC_RELAXED);
	TAILQ_INIT(&mcast_adapter->mcast_qps);
	LIST_INSERT_HEAD(&group->mcast_adapters, mcast_adapter, link);
	if (!group->count++)
		announce(adapter, group, true);
	adapter->mcast_groups++;
	return mcast_adapter;
}

static void mcast_adapter_put(struct pvr_mcast_adapter *mcast_adapter)
{
	if (mcast_adapter->count)
		return;
	LIST_REMOVE(mcast_adapter, link);
	if (!--mcast_adapter->group->count)
		announce(mcast_adapter->adapter, mcast_adapter->group, false);
	mcast_adapter->adapter->mcast_groups--;
	free(mcast_adapter);
}

static int mcast_qp_add(struct pvr_mcast_adapter *mcast_adapter, struct pvr_qp *qp)
{
	struct pvr_mcast_qp *mcast_qp;

	if (mcast_adapter->count == PVR_MAX_MCAST_QP_ATTACH ||
	    mcast_adapter->adapter->mcast_attached == PVR_MAX_MCAST_TOTAL)
		return -ENOMEM;
	mcast_qp = calloc(1, sizeof(*mcast_qp));
	if (!mcast_qp)
		return -ENOMEM;
	mcast_qp->mcast_adapter = mcast_adapter;
	mcast_qp->qp = qp;
	TAILQ_INSERT_TAIL(&mcast_adapter->mcast_qps, mcast_qp, of_mcast_adapter);
	LIST_INSERT_HEAD(&qp->groups, mcast_qp, of_qp);
	mcast_adapter->count++;
	mcast_adapter->adapter->mcast_attached++;
	return 0;
}

static void mcast_qp_del(struct pvr_mcast_qp *mcast_qp)
{
	struct pvr_mcast_adapter *mcast_adapter = mcast_qp->mcast_adapter;
	struct pvr_group *group = mcast_adapter->group;

	TAILQ_REMOVE(&mcast_adapter->mcast_qps, mcast_qp, of_mcast_adapter);
	LIST_REMOVE(mcast_qp, of_qp);
	mcast_adapter->count--;
	mcast_adapter->adapter->mcast_attached--;
	free(mcast_qp);
	mcast_adapter_put(mcast_adapter);
	group_put(group);
}

static int attach(struct pvr_qp *qp, const uint8_t mgid[16])
{
	struct pvr_group *group;
	struct pvr_mcast_adapter *mcast_adapter;
	int err = -ENOMEM;

	if (mcast_qp_find(qp, mgid))
		return 0;
	group = group_get(qp->adapter, mgid);
	if (!group)
		return -ENOMEM;
	mcast_adapter = mcast_adapter_get(qp->adapter, group);
	if (!mcast_adapter)
		goto err_group;
	err = mcast_qp_add(mcast_adapter, qp);
	if (err)
		goto err_mcast_adapter;
	return 0;

err_mcast_adapter:
	mcast_adapter_put(mcast_adapter);
err_group:
	group_put(group);
	return err;
}

static struct pvr_lock *lock_of(const struct pvr_adapter *adapter)
{
	return &adapter->fabric->lock;
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
	struct pvr_mcast_qp *mcast_qp = mcast_qp_find(qp, mgid);

	if (!mcast_qp)
		return -EINVAL;
	pvr_lock(lock_of(qp->adapter));
	mcast_qp_del(mcast_qp);
	pvr_unlock(lock_of(qp->adapter));
	return 0;
}

void pvr_group_detach_all(struct pvr_qp *qp)
{
	if (LIST_EMPTY(&qp->groups))
		return;
	pvr_lock(lock_of(qp->adapter));
	while (!LIST_EMPTY(&qp->groups))
		mcast_qp_del(LIST_FIRST(&qp->groups));
	pvr_unlock(lock_of(qp->adapter));
}

static const struct pvr_group *find_of_any_type(const struct pvr_fabric *fabric,
						const uint8_t mgid[16])
{
	const struct pvr_group *group;

	LIST_FOREACH(group, &fabric->groups[pvr_fabric_bucket(fabric, mgid)], link)
		if (group->count && !memcmp(group->mgid, mgid, 16))
			return group;
	return NULL;
}

bool pvr_group_exists(struct pvr_engine *engine, const char *name, const uint8_t mgid[16],
		      uint8_t *gid_type)
{
	struct pvr_fabric *fabric = pvr_fabric_by_name(engine, name);
	const struct pvr_group *group;

	if (!fabric)
		return false;
	pvr_lock(&fabric->lock);
	group = find_of_any_type(fabric, mgid);
	if (group)
		*gid_type = group->gid_type;
	pvr_unlock(&fabric->lock);
	return group;
}

/* ---------------------------------------------------------------- iteration */

static void iter_set(struct pvr_mcast_iter *iter, const struct pvr_group *group,
		     const struct pvr_mcast_adapter *member)
{
	*iter = (struct pvr_mcast_iter){
		.number = member->number,
		.adapter = member->adapter,
		.first = TAILQ_FIRST(&member->mcast_qps),
		.share = group_share(group),
	};
}

/* Find the first adapter with a number below @below; 0: the first of all. */
static bool find_iter(const struct pvr_group *group, uint64_t below, struct pvr_mcast_iter *iter)
{
	struct pvr_mcast_adapter *mcast_adapter;

	LIST_FOREACH(mcast_adapter, &group->mcast_adapters, link) {
		if (below && mcast_adapter->number >= below)
			continue;
		iter_set(iter, group, mcast_adapter);
		return true;
	}
	return false;
}

bool pvr_group_next(const struct pvr_adapter *adapter, const uint8_t mgid[16], uint64_t after,
		    struct pvr_mcast_iter *iter)
{
	struct pvr_group *group;
	bool found;

	pvr_lock(lock_of(adapter));
	group = group_find(adapter, mgid);
	found = group && find_iter(group, after, iter);
	pvr_unlock(lock_of(adapter));
	return found;
}

bool pvr_group_next_of(struct pvr_engine *engine, const struct pvr_group_name *name, uint64_t after,
		       struct pvr_mcast_iter *iter)
{
	struct pvr_fabric *fabric = pvr_fabric_by_name(engine, name->fabric);
	const struct pvr_group *group;
	bool found;

	if (!fabric)
		return false;
	pvr_lock(&fabric->lock);
	group = find_in(fabric, name->mgid, name->gid_type);
	found = group && find_iter(group, after, iter);
	pvr_unlock(&fabric->lock);
	return found;
}

bool pvr_group_member(const struct pvr_adapter *adapter, const uint8_t mgid[16],
		      struct pvr_mcast_iter *iter)
{
	const struct pvr_mcast_adapter *member = NULL;
	const struct pvr_group *group;

	pvr_lock(lock_of(adapter));
	group = group_find(adapter, mgid);
	if (group)
		member = mcast_adapter_find(group, adapter);
	if (member)
		iter_set(iter, group, member);
	pvr_unlock(lock_of(adapter));
	return member;
}

bool pvr_group_at(const struct pvr_adapter *adapter, const uint8_t mgid[16],
		  struct pvr_mcast_iter *iter)
{
	uint64_t number = iter->number;

	return pvr_group_next(adapter, mgid, number + 1, iter) && iter->number == number;
}
