// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups of UD QPs. The kernel checks GID and QP and fails with EOPNOTSUPP if
 * driver or device have no multicast.
 */
#include "pvrdma.h"

int pvr_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_cmd_attach_mcast(ibqp, gid, lid);
}

int pvr_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_cmd_detach_mcast(ibqp, gid, lid);
}
