/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The GRH area: 40 bytes before the payload of a received datagram. */
#ifndef PVR_GRH_H
#define PVR_GRH_H

#include <stdbool.h>
#include <stdint.h>

#include "pvrdma_abi.h"

#define PVR_GRH_SIZE 40

/* @gid_type: PVR_GID_TYPE_*. Return: enum pvrdma_network_type of a packet to @dgid. */
uint8_t pvr_grh_network_type(uint8_t gid_type, const uint8_t dgid[16]);

/*
 * Build the GRH area of a received datagram:
 *
 *	RoCE v1 (IBTA annex A16)		GRH
 *	RoCE v2 over IPv6 (annex A17)		IPv6 header
 *	RoCE v2 over IPv4 (annex A17)		20 zero bytes, IPv4 header
 */
void pvr_grh_build(uint8_t grh[PVR_GRH_SIZE], uint8_t gid_type, const struct pvrdma_av *av,
		   const uint8_t sgid[16], uint32_t payload, bool immediate);

#endif /* PVR_GRH_H */
