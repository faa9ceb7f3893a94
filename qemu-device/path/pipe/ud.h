/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Datagrams to and from other hosts. A datagram is dropped if its connection has no
 * space. If no connection is up or the GID is not resolved, the embedder is asked for it,
 * and the sender may try again.
 */
#ifndef PVR_PIPE_UD_H
#define PVR_PIPE_UD_H

#include "rdma/path.h"
#include "rdma/ud.h"
#include "gid/resolve.h"

/* See struct pvr_path_ops. */
enum pvr_ud_result pvr_pipe_ud_send(struct pvr_adapter *from, uint32_t dst_qpn,
				    const struct pvr_datagram *dgram);
/*
 * Finds the hosts with members of the group. Return: whether all are known and each has a
 * connection; otherwise a datagram would be lost on its way to some.
 */
bool pvr_pipe_ud_find_group(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			    struct pvr_host_group *group);
/* Sends one copy to each host of the group. */
void pvr_pipe_ud_send_group(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			    const struct pvr_host_group *group);

#endif /* PVR_PIPE_UD_H */
