// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* GIDs. ib_core owns the table; the driver copies each entry to the device. */
#include <rdma/ib_cache.h>

#include "pvrdma.h"

#define BIND_MTU 1024 /* bytes; the device uses its own MTU */

/*
 * Return: the VLAN of the network interface that has the address, or PVR_VLAN_NONE.
 */
static u32 vlan_of(struct pvr_dev *dev, const struct ib_gid_attr *attr)
{
	u16 vlan;

	if (!(dev->features & PVR_EXT_VLAN) ||
	    rdma_read_gid_l2_fields(attr, &vlan, NULL))
		return PVR_VLAN_NONE;
	return vlan < PVR_VLAN_NONE ? vlan : PVR_VLAN_NONE;
}

int pvr_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct pvr_dev *dev = to_pvr_dev(attr->device);
	union pvr_cmd_req req = {};
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_CREATE_BIND);
	req.create_bind.mtu = cpu_to_le32(BIND_MTU);
	req.create_bind.vlan = cpu_to_le32(vlan_of(dev, attr));
	req.create_bind.index = cpu_to_le32(attr->index);
	memcpy(req.create_bind.new_gid, &attr->gid, sizeof(attr->gid));
	req.create_bind.gid_type = attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP
					   ? PVR_GID_TYPE_ROCE_V2
					   : PVR_GID_TYPE_ROCE_V1;
	err = pvr_cmd(dev, &req, NULL);
	if (err)
		dev_err_ratelimited(
			&dev->pdev->dev,
			"device refused GID %pI6c at index %u: %pe\n",
			&attr->gid, attr->index, ERR_PTR(err));
	return err;
}

int pvr_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct pvr_dev *dev = to_pvr_dev(attr->device);
	union pvr_cmd_req req = {};
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_DESTROY_BIND);
	req.destroy_bind.index = cpu_to_le32(attr->index);
	memcpy(req.destroy_bind.dest_gid, &attr->gid, sizeof(attr->gid));
	err = pvr_cmd(dev, &req, NULL);
	if (err && !pvr_dev_dead(dev))
		dev_err_ratelimited(&dev->pdev->dev,
				    "device kept GID %pI6c at index %u: %pe\n",
				    &attr->gid, attr->index, ERR_PTR(err));
	return 0; /* ib_core cannot handle the error */
}
