// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Attachments of QPs to multicast groups by the driver, in user space. */
#include "pvrdma.h"
#include "test.h"

#define LID 0xc000

static struct {
	struct pvr_dev dev;
	struct pvr_qp qp;
	union ib_gid gid;
	bool attached; /* at the device */
	u32 commands;
	int err; /* of the next command */
} w;

int pvr_cmd(struct pvr_dev *dev, union pvr_cmd_req *req, union pvr_cmd_resp *resp)
{
	(void)dev;
	(void)resp;
	assert_memory_equal(req->mcast.mgid, w.gid.raw, sizeof(w.gid.raw));
	w.commands++;
	if (w.err)
		return w.err;
	if (req->hdr.cmd == PVR_CMD_DETACH_MCAST && !w.attached)
		return -EINVAL;
	w.attached = req->hdr.cmd == PVR_CMD_ATTACH_MCAST;
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.gid.raw[0] = 0xff;
	w.qp.ibqp.device = &w.dev.ibdev;
	mutex_init(&w.qp.groups_lock);
	INIT_LIST_HEAD(&w.qp.groups);
	return 0;
}

#define TEST_MCAST(name) TEST_SETUP(set_up, NULL, name)

static int attach(u16 lid)
{
	return pvr_attach_mcast(&w.qp.ibqp, &w.gid, lid);
}

static int detach(u16 lid)
{
	return pvr_detach_mcast(&w.qp.ibqp, &w.gid, lid);
}

/* ib_core destroys no QP of which a detachment has failed. */
TEST_MCAST(test_group_attached_by_two_lids_is_detached_by_both)
{
	assert_int_equal(attach(0), 0);
	assert_int_equal(attach(LID), 0);
	assert_int_equal(detach(0), 0);
	assert_true(w.attached);
	assert_int_equal(detach(LID), 0);
	assert_false(w.attached);
	assert_true(list_empty(&w.qp.groups));
}

TEST_MCAST(test_group_that_is_not_attached_cannot_be_detached)
{
	assert_int_equal(detach(0), -EINVAL);
	assert_int_equal(w.commands, 0);
}

TEST_MCAST(test_refused_attachment_leaves_nothing)
{
	w.err = -ENOMEM;
	assert_int_equal(attach(0), -ENOMEM);
	assert_true(list_empty(&w.qp.groups));
	assert_int_equal(detach(0), -EINVAL);
}

TEST_MCAST(test_dead_device_detaches)
{
	assert_int_equal(attach(0), 0);
	w.err = -EIO;
	assert_int_equal(detach(0), 0);
	assert_true(list_empty(&w.qp.groups));
}
