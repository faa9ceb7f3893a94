/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Datagrams to and from other hosts. They get lost where a connection has no room. Where it
 * is missing, or it is not known who has the GID, the embedder is asked to see to it, and
 * whoever sends may try again.
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
 * The hosts with members of the group. Return: whether these are all, and each can be sent
 * to; else it would get lost on its way to some of them.
 */
bool pvr_pipe_ud_find_group(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			    struct pvr_host_group *group);
/* To each of them, once. */
void pvr_pipe_ud_send_group(struct pvr_adapter *from, const struct pvr_datagram *dgram,
			    const struct pvr_host_group *group);

#endif /* PVR_PIPE_UD_H */
