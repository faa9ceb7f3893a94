/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The 40 bytes in front of a received datagram. */
#ifndef PVR_GRH_H
#define PVR_GRH_H

#include <stdbool.h>
#include <stdint.h>

#include "pvrdma_abi.h"

#define PVR_GRH_SIZE 40

/* enum pvrdma_network_type of a packet to @dgid; @gid_type: PVR_GID_TYPE_* */
uint8_t pvr_grh_network_type(uint8_t gid_type, const uint8_t dgid[16]);

/*
 * RoCE v1 (IBTA annex A16): InfiniBand's own GRH. RoCE v2 (annex A17): over IPv6 the
 * IPv6 header; over IPv4 twenty zero bytes and the IPv4 header.
 */
void pvr_grh_build(uint8_t grh[PVR_GRH_SIZE], uint8_t gid_type, const struct pvrdma_av *av,
		   const uint8_t sgid[16], uint32_t payload, bool immediate);

#endif /* PVR_GRH_H */
