// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Multicast: attachment of UD QPs to groups. */
#include "pvrdma.h"

/*
 * ib_core tells attachments of a QP to a group apart by their LID, which RoCE does not have. The
 * device has one for all of them, which ends with the last one: a QP that ib_core cannot detach
 * stays for ever.
 */
struct pvr_group {
	struct list_head entry; /* of pvr_qp.groups */
	union ib_gid gid;
	u32 count; /* of attachments, 1 or more */
};

static int mcast(struct ib_qp *ibqp, const union ib_gid *gid, enum pvr_cmd cmd)
{
	union pvr_cmd_req req = {};

	req.hdr.cmd = cpu_to_le32(cmd);
	req.mcast.qp_handle = cpu_to_le32(to_pvr_qp(ibqp)->handle);
	memcpy(req.mcast.mgid, gid->raw, sizeof(req.mcast.mgid));
	return pvr_cmd(to_pvr_dev(ibqp->device), &req, NULL);
}

static struct pvr_group *find(struct pvr_qp *qp, const union ib_gid *gid)
{
	struct pvr_group *group;

	lockdep_assert_held(&qp->groups_lock);
	list_for_each_entry(group, &qp->groups, entry)
		if (!memcmp(group->gid.raw, gid->raw, sizeof(gid->raw)))
			return group;
	return NULL;
}

static int attach_first(struct pvr_qp *qp, const union ib_gid *gid)
{
	struct pvr_group *group = kzalloc(sizeof(*group), GFP_KERNEL);
	int err;

	if (!group)
		return -ENOMEM;
	err = mcast(&qp->ibqp, gid, PVR_CMD_ATTACH_MCAST);
	if (err) {
		kfree(group);
		return err;
	}
	group->gid = *gid;
	group->count = 1;
	list_add(&group->entry, &qp->groups);
	return 0;
}

/* ib_core has checked that the QP is UD and that the GID is a multicast GID. */
int pvr_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	struct pvr_group *group;
	int err = 0;

	mutex_lock(&qp->groups_lock);
	group = find(qp, gid);
	if (group)
		group->count++;
	else
		err = attach_first(qp, gid);
	mutex_unlock(&qp->groups_lock);
	return err;
}

/*
 * Only a dead device, or one that has lost the QP, does not detach a QP that is attached. It
 * delivers nothing.
 */
int pvr_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	struct pvr_group *group;

	mutex_lock(&qp->groups_lock);
	group = find(qp, gid);
	if (group && !--group->count) {
		mcast(ibqp, gid, PVR_CMD_DETACH_MCAST);
		list_del(&group->entry);
		kfree(group);
	}
	mutex_unlock(&qp->groups_lock);
	return group ? 0 : -EINVAL;
}
