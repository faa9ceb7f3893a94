// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Multicast: attachment of UD QPs to groups. */
#include "pvrdma.h"

/* ib_core has checked that the QP is UD and that the GID is a multicast GID. */
static int mcast(struct ib_qp *ibqp, const union ib_gid *gid, enum pvr_cmd cmd)
{
	union pvr_cmd_req req = {};

	req.hdr.cmd = cpu_to_le32(cmd);
	req.mcast.qp_handle = cpu_to_le32(to_pvr_qp(ibqp)->handle);
	memcpy(req.mcast.mgid, gid->raw, sizeof(req.mcast.mgid));
	return pvr_cmd(to_pvr_dev(ibqp->device), &req, NULL);
}

int pvr_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	return mcast(ibqp, gid, PVR_CMD_ATTACH_MCAST);
}

/* Detaching succeeds on a dead device, which delivers nothing. */
int pvr_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	int err = mcast(ibqp, gid, PVR_CMD_DETACH_MCAST);

	return pvr_dev_dead(to_pvr_dev(ibqp->device)) ? 0 : err;
}
