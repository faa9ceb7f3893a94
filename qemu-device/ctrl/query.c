// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queries of the device: capabilities, QUERY_PORT, QUERY_PKEY. */
#include <errno.h>
#include <endian.h>
#include <string.h>

#include "gid/mcast_group.h"
#include "core/adapter.h"
#include "ctrl/ctrl.h"
#include "ctrl/revision.h"
#include "core/objects.h"

#define FW_VER (3ull << 32) /* printed as 3.0.0 */

/* The adapter's MAC with 00:00 in the middle, as in devices of ESXi. */
static uint64_t node_guid(const uint8_t mac[6])
{
	uint8_t guid[8] = { mac[0], mac[1], mac[2], 0, 0, mac[3], mac[4], mac[5] };
	uint64_t raw;

	memcpy(&raw, guid, sizeof(raw));
	return raw;
}

/*
 * Limits above those of stock devices, and capabilities that stock devices do not have.
 */
static void fill_extensions(uint32_t features, struct pvr_caps *caps)
{
	if (features & PVR_EXT_MR_LAYOUT) {
		caps->max_mr_size = PVR_MAX_MR_SIZE_LAYOUT;
		caps->page_size_cap = (2ull << PVR_MAX_MR_PAGE_SHIFT) - PVR_PAGE_SIZE;
	}
	/* Windows and regions share one table. */
	if (features & PVR_EXT_MW)
		caps->max_mw = PVR_MAX_MR - 1;
	if (features & PVR_EXT_LONG_FAST_REG)
		caps->max_fast_reg_page_list_len = PVR_MAX_FAST_REG_PAGES_LONG;
	if (features & PVR_EXT_MCAST) {
		caps->max_mcast_grp = PVR_MAX_MCAST_GRP;
		caps->max_mcast_qp_attach = PVR_MAX_MCAST_QP_ATTACH;
		caps->max_total_mcast_qp_attach = PVR_MAX_MCAST_TOTAL;
	}
}

void pvr_caps_fill(const struct pvr_adapter *adapter, struct pvr_caps *caps)
{
	bool srq = adapter->revision->srq;

	*caps = (struct pvr_caps){
		.fw_ver = FW_VER,
		.node_guid = node_guid(adapter->mac),
		.sys_image_guid = node_guid(adapter->mac),
		.max_mr_size = PVR_MAX_MR_SIZE,
		.page_size_cap = PVR_PAGE_SIZE,
		.vendor_id = PVR_PCI_VENDOR_ID,
		.vendor_part_id = PVR_PCI_DEVICE_ID,
		.hw_ver = 1,
		.max_qp = PVR_MAX_QP,
		.max_qp_wr = PVR_MAX_QP_WR,
		.max_sge = PVR_MAX_SGE,
		.max_sge_rd = PVR_MAX_SGE,
		.max_cq = PVR_MAX_CQ,
		.max_cqe = PVR_MAX_CQE,
		.max_mr = PVR_MAX_MR - 1,
		.max_pd = PVR_MAX_PD - 1,
		.max_qp_rd_atom = PVR_MAX_RD_ATOMIC,
		.max_res_rd_atom = PVR_MAX_RD_ATOMIC,
		.max_qp_init_rd_atom = PVR_MAX_RD_ATOMIC,
		.max_ah = 1u << 16,
		.max_srq = srq ? PVR_MAX_SRQ : 0,
		.max_srq_wr = srq ? PVR_MAX_SRQ_WR : 0,
		.max_srq_sge = srq ? PVR_MAX_SGE : 0,
		.max_uar = PVR_MAX_UAR,
		.gid_tbl_len = PVR_GID_TABLE_LEN,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
		.mode = PVR_MODE_ROCE,
		.atomic_ops = PVR_ATOMIC_CMP_SWAP | PVR_ATOMIC_FETCH_ADD,
		.bmme_flags = PVR_BMME_LOCAL_INV | PVR_BMME_REMOTE_INV | PVR_BMME_FAST_REG_WR,
		.gid_types = adapter->gid_type,
		.max_fast_reg_page_list_len = PVR_MAX_FAST_REG_PAGES,
	};
	fill_extensions(adapter->features, caps);
}

/* ---------------------------------------------------------------------------------- port */

int pvr_cmd_query_port(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		       union pvr_cmd_resp *resp)
{
	if (req->query_port.port_num != 1)
		return -EINVAL;
	resp->query_port.attrs = (struct pvr_port_attr){
		.state = adapter->link_up ? PVR_PORT_ACTIVE : PVR_PORT_DOWN,
		.max_mtu = PVR_MAX_MTU,
		.active_mtu = adapter->active_mtu,
		.gid_tbl_len = PVR_GID_TABLE_LEN,
		.max_msg_sz = PVR_MAX_MSG_SIZE,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		/* 4x EDR, 100 Gbit/s: the order of the rate of a memcpy. */
		.active_width = 2,
		.active_speed = 32,
		.phys_state = adapter->link_up ? PVR_PORT_PHYS_LINK_UP : PVR_PORT_PHYS_DISABLED,
	};
	return 0;
}

int pvr_cmd_query_pkey(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		       union pvr_cmd_resp *resp)
{
	if (req->query_pkey.port_num != 1 || req->query_pkey.index != 0)
		return -EINVAL;
	resp->query_pkey.pkey = PVR_PKEY;
	return 0;
}
