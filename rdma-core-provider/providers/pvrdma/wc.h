/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Translation of CQEs to verbs. */
#ifndef PVR_WC_H
#define PVR_WC_H

#include <endian.h>

#include <ccan/array_size.h>
#include <infiniband/verbs.h>
#include <util/compiler.h>

#include "pvrdma_abi_wqe.h"

/*
 * The device uses the kernel's opcodes; some of user space have other values. Opcodes not
 * in the table become IBV_WC_SEND, which is 0.
 */
static inline enum ibv_wc_opcode pvr_wc_opcode(const struct pvr_cqe *cqe)
{
	static const uint8_t opcodes[] = {
		[PVRDMA_WC_SEND] = IBV_WC_SEND,
		[PVRDMA_WC_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[PVRDMA_WC_RDMA_READ] = IBV_WC_RDMA_READ,
		[PVRDMA_WC_COMP_SWAP] = IBV_WC_COMP_SWAP,
		[PVRDMA_WC_FETCH_ADD] = IBV_WC_FETCH_ADD,
		[PVRDMA_WC_BIND_MW] = IBV_WC_BIND_MW,
		[PVRDMA_WC_LSO] = IBV_WC_TSO,
		[PVRDMA_WC_LOCAL_INV] = IBV_WC_LOCAL_INV,
		[PVR_WC_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
		[PVR_WC_FLUSH] = IBV_WC_FLUSH,
		[PVRDMA_WC_RECV] = IBV_WC_RECV,
		[PVRDMA_WC_RECV_RDMA_WITH_IMM] = IBV_WC_RECV_RDMA_WITH_IMM,
	};
	uint32_t opcode = le32toh(cqe->opcode);

	return likely(opcode < ARRAY_SIZE(opcodes)) ? opcodes[opcode] : IBV_WC_SEND;
}

static inline enum ibv_wc_status pvr_wc_status(const struct pvr_cqe *cqe)
{
	uint32_t status = le32toh(cqe->status);

	/* Both sides use the same values up to IBV_WC_GENERAL_ERR. */
	return status <= PVRDMA_WC_GENERAL_ERR ? (enum ibv_wc_status)status : IBV_WC_GENERAL_ERR;
}

/* The packet type in the service level: headers of RoCE v2 and, in the bits below, the IP. */
#define PVR_WC_SL_UDP (1u << 3)
#define PVR_WC_SL_IPV6 1u
#define PVR_WC_SL_IPV4 2u

/*
 * RoCE has no service levels on the wire. UCX takes the type of a datagram from here, as the
 * mlx5 provider reports it, and needs it to find the source address behind the GRH flag.
 * Address handles ignore the service level.
 */
static inline uint8_t pvr_wc_sl(const struct pvr_cqe *cqe)
{
	if (likely(!(cqe->wc_flags & htole32(PVRDMA_WC_GRH))))
		return cqe->sl;
	switch (cqe->network_hdr_type) {
	case PVRDMA_NETWORK_IPV4:
		return PVR_WC_SL_UDP | PVR_WC_SL_IPV4;
	case PVRDMA_NETWORK_IPV6:
		return PVR_WC_SL_UDP | PVR_WC_SL_IPV6;
	default: /* RoCE v1: a GRH and no UDP header */
		return cqe->sl;
	}
}

static inline unsigned int pvr_wc_flags(const struct pvr_cqe *cqe)
{
	static const struct {
		uint32_t pvr;
		unsigned int ibv;
	} map[] = {
		{ PVRDMA_WC_GRH, IBV_WC_GRH },
		{ PVRDMA_WC_WITH_IMM, IBV_WC_WITH_IMM },
		{ PVRDMA_WC_WITH_INVALIDATE, IBV_WC_WITH_INV },
		{ PVRDMA_WC_IP_CSUM_OK, IBV_WC_IP_CSUM_OK },
	};
	uint32_t flags = le32toh(cqe->wc_flags);
	unsigned int ibv = 0;
	size_t i;

	if (likely(!flags))
		return 0;
	for (i = 0; i < ARRAY_SIZE(map); i++)
		if (flags & map[i].pvr)
			ibv |= map[i].ibv;
	return ibv;
}

/* Immediate data, or the invalidated rkey; verbs have both in one field. */
static inline __be32 pvr_wc_imm_data(const struct pvr_cqe *cqe)
{
	if (unlikely(cqe->wc_flags & htole32(PVRDMA_WC_WITH_INVALIDATE)))
		return (__force __be32)le32toh(cqe->invalidated_rkey);
	return cqe->imm_data;
}

#endif /* PVR_WC_H */
