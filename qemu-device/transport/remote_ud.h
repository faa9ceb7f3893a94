/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Datagrams to and from other hosts. They may get lost: where a connection is missing or
 * has no room, and where it is not known who has the GID; then the embedder is asked, for
 * the next ones.
 */
#ifndef PVR_REMOTE_UD_H
#define PVR_REMOTE_UD_H

#include "datapath/ud_receive.h"

/*
 * To the host that has the destination, if one has. @from: its adapter is held. Return:
 * false if it got lost for want of an answer from the directory, or of a connection.
 */
bool pvr_remote_ud_send(struct pvr_qp *from, uint32_t dst_qpn, const struct pvr_datagram *dgram);
/* To each host with members of the group, once. Return: to how many. */
uint32_t pvr_remote_ud_send_group(struct pvr_qp *from, const struct pvr_datagram *dgram);

#endif /* PVR_REMOTE_UD_H */
