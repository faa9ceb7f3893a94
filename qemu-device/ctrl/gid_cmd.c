// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The GID table and multicast groups: their commands. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "core/objects.h"
#include "ctrl/ctrl.h"
#include "rdma/worker.h"
#include "rdma/event.h"
#include "gid/fabric.h"
#include "gid/mcast_group.h"

static const char *gid_name(const uint8_t gid[16], char buf[INET6_ADDRSTRLEN])
{
	return inet_ntop(AF_INET6, gid, buf, INET6_ADDRSTRLEN);
}

static bool ipv4_usable(const uint8_t ip[4])
{
	static const uint8_t any[4];

	/* 224.0.0.0 and above are multicast, reserved and broadcast. */
	return memcmp(ip, any, sizeof(any)) && ip[0] < 224 && ip[0] != 127;
}

bool pvr_gid_is_usable(const uint8_t gid[16])
{
	static const uint8_t any[16], loopback[16] = { [15] = 1 };

	if (pvr_gid_is_ipv4(gid))
		return ipv4_usable(gid + 12);
	return memcmp(gid, any, sizeof(any)) && memcmp(gid, loopback, sizeof(loopback)) &&
	       gid[0] != 0xff;
}
/* Stock drivers do not initialize cmd->vlan. */
static uint32_t vlan_of(const struct pvr_adapter *adapter, const struct pvr_cmd_create_bind *cmd)
{
	return adapter->features & PVR_EXT_VLAN ? cmd->vlan : PVR_VLAN_NONE;
}

int pvr_cmd_create_bind(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
			union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_create_bind *cmd = &req->create_bind;
	char name[INET6_ADDRSTRLEN];
	struct pvr_gid_entry *entry;
	struct pvr_adapter *loser;
	int err;

	if (cmd->index >= PVR_GID_TABLE_LEN || !pvr_gid_is_usable(cmd->new_gid) ||
	    cmd->gid_type != adapter->gid_type || vlan_of(adapter, cmd) > PVR_VLAN_NONE)
		return -EINVAL;
	pvr_gid_forget_lost(adapter);
	entry = &adapter->gids[cmd->index];
	if (entry->bound)
		return memcmp(entry->gid, cmd->new_gid, sizeof(entry->gid)) ? -EBUSY : 0;
	err = pvr_fabric_bind(adapter, cmd->new_gid, &loser);
	if (loser)
		pvr_worker_check(loser->worker);
	if (err) {
		pvr_log_guest(adapter, "gid %u: %s refused: %s", cmd->index,
			      gid_name(cmd->new_gid, name),
			      err == -EADDRINUSE ? "another adapter of the fabric has this GID"
			      : err == -EPERM	 ? "the GID is that of another adapter's MAC"
						 : strerror(-err));
		return err;
	}
	entry->bound = true;
	entry->type = cmd->gid_type;
	entry->vlan = vlan_of(adapter, cmd);
	memcpy(entry->gid, cmd->new_gid, sizeof(entry->gid));
	pvr_debug(adapter, "gid %u: bound %s", cmd->index, gid_name(entry->gid, name));
	return 0;
}

static void unbind(struct pvr_adapter *adapter, struct pvr_gid_entry *entry)
{
	pvr_fabric_unbind(adapter, entry->gid);
	entry->bound = false;
}

int pvr_cmd_destroy_bind(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
			 union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_destroy_bind *cmd = &req->destroy_bind;
	const struct pvr_gid_entry *entry;

	pvr_gid_forget_lost(adapter);
	entry = pvr_gid_get(adapter, cmd->index);
	if (!entry || memcmp(entry->gid, cmd->dest_gid, sizeof(entry->gid)))
		return -EINVAL;
	unbind(adapter, &adapter->gids[cmd->index]);
	return 0;
}

void pvr_gid_unbind_all(struct pvr_adapter *adapter)
{
	uint32_t i;

	pvr_gid_forget_lost(adapter);
	for (i = 0; i < PVR_GID_TABLE_LEN; i++)
		if (adapter->gids[i].bound)
			unbind(adapter, &adapter->gids[i]);
}

static void forget_lost(struct pvr_adapter *adapter, const uint8_t gid[16])
{
	char name[INET6_ADDRSTRLEN];
	uint32_t i;

	for (i = 0; i < PVR_GID_TABLE_LEN; i++)
		if (adapter->gids[i].bound && !memcmp(adapter->gids[i].gid, gid, 16))
			adapter->gids[i].bound = false;
	pvr_log_guest(adapter, "gid %s removed: the adapter with its MAC is here now",
		      gid_name(gid, name));
	pvr_event_async(adapter, PVR_EVENT_GID_CHANGE, 1);
}

void pvr_gid_forget_lost(struct pvr_adapter *adapter)
{
	uint8_t gid[16];

	while (pvr_fabric_take_lost(adapter, gid))
		forget_lost(adapter, gid);
}

/* ----------------------------------------------------------------------------- multicast */

int pvr_cmd_attach_mcast(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
			 union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_mcast *cmd = &req->mcast;
	struct pvr_qp *qp = pvr_qp_get(adapter, cmd->qp_handle);

	if (!qp || qp->type != PVR_QPT_UD || !pvr_gid_is_multicast(cmd->mgid))
		return -EINVAL;
	return pvr_group_attach(qp, cmd->mgid);
}

int pvr_cmd_detach_mcast(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
			 union pvr_cmd_resp *resp)
{
	struct pvr_qp *qp = pvr_qp_get(adapter, req->mcast.qp_handle);

	return qp ? pvr_group_detach(qp, req->mcast.mgid) : -EINVAL;
}
