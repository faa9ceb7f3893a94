/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Port 1, the only port: QUERY_PORT and QUERY_PKEY. */
#include <errno.h>

#include "core/objects.h"
#include "ctrl/ctrl.h"

int pvr_cmd_query_port(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		       union pvr_cmd_resp *resp)
{
	if (req->query_port.port_num != 1)
		return -EINVAL;
	resp->query_port.attrs = (struct pvr_port_attr){
		.state = adapter->link_up ? PVR_PORT_ACTIVE : PVR_PORT_DOWN,
		.max_mtu = PVR_MAX_MTU,
		.active_mtu = PVR_MAX_MTU,
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
