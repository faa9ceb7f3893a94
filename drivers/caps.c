// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Capabilities: check and limit the values that the device reports. */
#include "pvrdma.h"

#define MAX_SGE 128 /* a WQE with more SGEs would cross a page */

/* A value below min fails the probe. A value above max is lowered to max. */
struct cap_range {
	const char *name;
	size_t offset;
	u32 min;
	u32 max;
};

#define CAP(field, lo, hi)                                                 \
	{                                                                  \
		.name = #field,                                            \
		.offset = offsetof(struct pvr_dev_caps, field), .min = lo, \
		.max = hi                                                  \
	}

/* The maxima are the limits of handles, page directories and signed ints of ib_core. */
static const struct cap_range cap_ranges[] = {
	CAP(max_qp, 2, 0xffff),
	CAP(max_qp_wr, 1, 1 << 16),
	CAP(max_sge, 1, MAX_SGE),
	CAP(max_sge_rd, 0, MAX_SGE),
	CAP(max_cq, 1, 1 << 24),
	CAP(max_cqe, 1, 1 << 22),
	CAP(max_mr, 1, S32_MAX),
	CAP(max_pd, 1, 1 << 24),
	CAP(max_ah, 0, S32_MAX),
	CAP(max_qp_rd_atom, 0, U8_MAX),
	CAP(max_qp_init_rd_atom, 0, U8_MAX),
	CAP(max_mw, 0, S32_MAX),
	CAP(max_mcast_grp, 0, S32_MAX),
	CAP(max_mcast_qp_attach, 0, S32_MAX),
	CAP(max_total_mcast_qp_attach, 0, S32_MAX),
	CAP(max_srq, 0, 1 << 24),
	CAP(max_srq_wr, 0, 1 << 16),
	CAP(max_srq_sge, 0, MAX_SGE),
	CAP(max_uar, 1, 1 << 24),
	CAP(gid_tbl_len, 1, 256),
	CAP(max_fast_reg_page_list_len, 0, 1 << 16),
};

static int check_range(struct pvr_dev *dev, const struct cap_range *range)
{
	u32 *val = (void *)&dev->caps + range->offset;

	if (*val < range->min) {
		dev_err(&dev->pdev->dev,
			"device offers %s = %u, expected %u or more: check the adapter's limits on the host\n",
			range->name, *val, range->min);
		return -ENODEV;
	}
	*val = min(*val, range->max);
	return 0;
}

static int check_ranges(struct pvr_dev *dev)
{
	int i, err;

	for (i = 0; i < ARRAY_SIZE(cap_ranges); i++) {
		err = check_range(dev, &cap_ranges[i]);
		if (err)
			return err;
	}
	return 0;
}

static int check_kind(struct pvr_dev *dev)
{
	const struct pvr_dev_caps *caps = &dev->caps;

	if (caps->mode != PVR_MODE_ROCE) {
		dev_err(&dev->pdev->dev,
			"device mode is %u, expected %d (RoCE): this driver has no other\n",
			caps->mode, PVR_MODE_ROCE);
		return -ENODEV;
	}
	if (caps->phys_port_cnt != 1) {
		dev_err(&dev->pdev->dev,
			"device has %u ports, expected 1: this driver has no other\n",
			caps->phys_port_cnt);
		return -ENODEV;
	}
	return 0;
}

static int check_gid_types(struct pvr_dev *dev)
{
	u8 types = dev->caps.gid_types;

	if (types == PVR_GID_TYPE_ROCE_V1)
		return 0;
	if (types == PVR_GID_TYPE_ROCE_V2 && dev->version >= PVR_VERSION_ROCEV2)
		return 0;
	dev_err(&dev->pdev->dev,
		"device version %u offers GID types %#x, expected %#x (RoCE v1) or, from version %d on, %#x (RoCE v2)\n",
		dev->version, types, PVR_GID_TYPE_ROCE_V1, PVR_VERSION_ROCEV2,
		PVR_GID_TYPE_ROCE_V2);
	return -ENODEV;
}

/* Set the fields that this device version lacks, and the limits derived from others. */
static void settle(struct pvr_dev *dev)
{
	struct pvr_dev_caps *caps = &dev->caps;
	u64 pages = pci_resource_len(dev->pdev, PVR_BAR_UAR) >> PVR_PAGE_SHIFT;

	if (dev->version < PVR_VERSION_ROCEV2) {
		caps->max_sge_rd = caps->max_sge;
		caps->max_fast_reg_page_list_len = 128;
	}
	if (!caps->max_srq_wr || !caps->max_srq_sge)
		caps->max_srq = 0;
	caps->max_pkeys = max_t(u16, caps->max_pkeys, 1);
	if (!(dev->features & PVR_EXT_LONG_FAST_REG))
		caps->max_fast_reg_page_list_len =
			min_t(u32, caps->max_fast_reg_page_list_len,
			      PVR_PDIR_ENTRIES);
	if (!(dev->features & PVR_EXT_MR_LAYOUT))
		caps->max_mr_size =
			min_t(u64, caps->max_mr_size,
			      (u64)PVR_PDIR_MAX_PAGES * PVR_PAGE_SIZE);
	dev->num_uars = min_t(u64, caps->max_uar, pages);
}

void pvr_caps_read(struct pvr_dev_caps *to, const struct pvr_caps *from)
{
	struct pvr_caps raw;

	memcpy(&raw, from, sizeof(raw));
	to->fw_ver = le64_to_cpu(raw.fw_ver);
	to->node_guid = raw.node_guid;
	to->sys_image_guid = raw.sys_image_guid;
	to->max_mr_size = le64_to_cpu(raw.max_mr_size);
	to->vendor_id = le32_to_cpu(raw.vendor_id);
	to->hw_ver = le32_to_cpu(raw.hw_ver);
	to->max_qp = le32_to_cpu(raw.max_qp);
	to->max_qp_wr = le32_to_cpu(raw.max_qp_wr);
	to->device_cap_flags = le32_to_cpu(raw.device_cap_flags);
	to->max_sge = le32_to_cpu(raw.max_sge);
	to->max_sge_rd = le32_to_cpu(raw.max_sge_rd);
	to->max_cq = le32_to_cpu(raw.max_cq);
	to->max_cqe = le32_to_cpu(raw.max_cqe);
	to->max_mr = le32_to_cpu(raw.max_mr);
	to->max_pd = le32_to_cpu(raw.max_pd);
	to->max_qp_rd_atom = le32_to_cpu(raw.max_qp_rd_atom);
	to->max_qp_init_rd_atom = le32_to_cpu(raw.max_qp_init_rd_atom);
	to->max_mw = le32_to_cpu(raw.max_mw);
	to->max_mcast_grp = le32_to_cpu(raw.max_mcast_grp);
	to->max_mcast_qp_attach = le32_to_cpu(raw.max_mcast_qp_attach);
	to->max_total_mcast_qp_attach =
		le32_to_cpu(raw.max_total_mcast_qp_attach);
	to->max_ah = le32_to_cpu(raw.max_ah);
	to->max_srq = le32_to_cpu(raw.max_srq);
	to->max_srq_wr = le32_to_cpu(raw.max_srq_wr);
	to->max_srq_sge = le32_to_cpu(raw.max_srq_sge);
	to->max_uar = le32_to_cpu(raw.max_uar);
	to->gid_tbl_len = le32_to_cpu(raw.gid_tbl_len);
	to->max_fast_reg_page_list_len =
		le32_to_cpu(raw.max_fast_reg_page_list_len);
	to->max_pkeys = le16_to_cpu(raw.max_pkeys);
	to->local_ca_ack_delay = raw.local_ca_ack_delay;
	to->phys_port_cnt = raw.phys_port_cnt;
	to->mode = raw.mode;
	to->atomic_ops = raw.atomic_ops;
	to->bmme_flags = raw.bmme_flags;
	to->gid_types = raw.gid_types;
}

int pvr_caps_check(struct pvr_dev *dev)
{
	int err;

	err = check_kind(dev);
	if (!err)
		err = check_gid_types(dev);
	if (!err)
		err = check_ranges(dev);
	if (err)
		return err;
	settle(dev);
	return 0;
}
