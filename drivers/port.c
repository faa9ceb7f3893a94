// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The port: its attributes and its state changes. */
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "pvrdma.h"

static int query_port(struct pvr_dev *dev, struct pvr_port_attr *attr)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = PVR_CMD_QUERY_PORT;
	req.query_port.port_num = 1;
	err = pvr_cmd(dev, &req, &resp);
	if (!err)
		*attr = resp.query_port.attrs;
	return err;
}

/* The port is active if both the device's link and the paired NIC are up. */
static void set_state(struct pvr_dev *dev, const struct pvr_port_attr *from,
		      struct ib_port_attr *to)
{
	if (le32_to_cpu(from->state) == PVR_PORT_ACTIVE &&
	    pvr_netdev_ready(dev)) {
		to->state = IB_PORT_ACTIVE;
		to->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	} else {
		to->state = IB_PORT_DOWN;
		to->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	}
}

static enum ib_mtu checked_mtu(__le32 mtu)
{
	return clamp_t(u32, le32_to_cpu(mtu), IB_MTU_256, IB_MTU_4096);
}

int pvr_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct pvr_dev *dev = to_pvr_dev(ibdev);
	struct pvr_port_attr from;
	int err;

	err = query_port(dev, &from);
	if (err)
		return err;
	set_state(dev, &from, attr);
	attr->max_mtu = checked_mtu(from.max_mtu);
	attr->active_mtu = min(checked_mtu(from.active_mtu), attr->max_mtu);
	attr->gid_tbl_len =
		min(le32_to_cpu(from.gid_tbl_len), dev->caps.gid_tbl_len);
	attr->ip_gids = true;
	attr->port_cap_flags = le32_to_cpu(from.port_cap_flags) |
			       IB_PORT_CM_SUP;
	attr->max_msg_sz = le32_to_cpu(from.max_msg_sz);
	attr->bad_pkey_cntr = le32_to_cpu(from.bad_pkey_cntr);
	attr->qkey_viol_cntr = le32_to_cpu(from.qkey_viol_cntr);
	attr->pkey_tbl_len = clamp_t(u16, le16_to_cpu(from.pkey_tbl_len), 1,
				     dev->caps.max_pkeys);
	attr->lid = le16_to_cpu(from.lid);
	attr->sm_lid = le16_to_cpu(from.sm_lid);
	attr->lmc = from.lmc;
	attr->max_vl_num = from.max_vl_num;
	attr->sm_sl = from.sm_sl;
	attr->subnet_timeout = from.subnet_timeout;
	attr->init_type_reply = from.init_type_reply;
	attr->active_width = from.active_width;
	attr->active_speed = from.active_speed;
	return 0;
}

int pvr_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	struct pvr_dev *dev = to_pvr_dev(ibdev);
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	if (index >= dev->caps.max_pkeys || index > U8_MAX)
		return -EINVAL;
	req.hdr.cmd = cpu_to_le32(PVR_CMD_QUERY_PKEY);
	req.query_pkey.port_num = port;
	req.query_pkey.index = index;
	err = pvr_cmd(dev, &req, &resp);
	if (!err)
		*pkey = le16_to_cpu(resp.query_pkey.pkey);
	return err;
}

int pvr_port_immutable(struct ib_device *ibdev, u32 port,
		       struct ib_port_immutable *imm)
{
	struct pvr_dev *dev = to_pvr_dev(ibdev);
	struct ib_port_attr attr;
	int err;

	imm->core_cap_flags = dev->caps.gid_types == PVR_GID_TYPE_ROCE_V2
				      ? RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP
				      : RDMA_CORE_PORT_IBA_ROCE;
	err = ib_query_port(ibdev, port, &attr);
	if (err)
		return err;
	imm->pkey_tbl_len = attr.pkey_tbl_len;
	imm->gid_tbl_len = attr.gid_tbl_len;
	imm->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

enum rdma_link_layer pvr_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

void pvr_port_kick(struct pvr_dev *dev)
{
	rcu_read_lock(); /* pairs with pvr_ib_unregister() */
	if (test_bit(PVR_DEV_LIVE, &dev->flags))
		queue_work(system_long_wq, &dev->port_work);
	rcu_read_unlock();
}

/*
 * ib_core reports changes of the NIC, as does the notifier of netdev.c. The work merges
 * them.
 */
void pvr_report_port_event(struct ib_device *ibdev, struct net_device *ndev,
			   unsigned long event)
{
	pvr_port_kick(to_pvr_dev(ibdev));
}

static void report(struct pvr_dev *dev, bool up)
{
	if (up == dev->port_up)
		return;
	dev->port_up = up;
	ibdev_info(&dev->ibdev, "port 1: %s\n", up ? "active" : "down");
	pvr_dispatch(dev, up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
}

/* Some devices quiesce when their NIC goes down, and stay so until UNQUIESCE. */
static void unquiesce(struct pvr_dev *dev)
{
	int err = pvr_cmd_ctl(dev, PVR_CTL_UNQUIESCE);

	if (err)
		ibdev_warn(&dev->ibdev, "device refused UNQUIESCE: %pe\n",
			   ERR_PTR(err));
}

/* A single work item: never runs concurrently with itself, and only while registered. */
void pvr_port_work(struct work_struct *work)
{
	struct pvr_dev *dev = container_of(work, struct pvr_dev, port_work);
	struct ib_port_attr attr = {};

	if (pvr_dev_dead(dev)) {
		report(dev, false);
		return;
	}
	if (test_and_clear_bit(PVR_DEV_RESCAN_GIDS, &dev->flags))
		rdma_roce_rescan_device(&dev->ibdev);
	if (!dev->port_up && pvr_netdev_ready(dev))
		unquiesce(dev);
	if (pvr_query_port(&dev->ibdev, 1, &attr))
		return;
	report(dev, attr.state == IB_PORT_ACTIVE);
}
