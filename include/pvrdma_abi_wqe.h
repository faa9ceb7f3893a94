/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The PVRDMA device interface: work requests and completions with a byte order, for guests.
 *
 * The uapi header declares them in the byte order of the CPU. These have the same layouts,
 * and types that sparse checks. The rules of pvrdma_abi.h apply.
 */
#ifndef PVRDMA_ABI_WQE_H
#define PVRDMA_ABI_WQE_H

#include "pvrdma_abi.h"

#define PVR_ABI_SAME_SIZE(ours, uapi) \
	PVR_ABI_ASSERT(sizeof(struct ours) == sizeof(struct uapi), "size of " #ours)
#define PVR_ABI_SAME(ours, uapi, field)                                                \
	PVR_ABI_ASSERT(offsetof(struct ours, field) == offsetof(struct uapi, field) && \
			       sizeof(((struct ours *)0)->field) ==                    \
				       sizeof(((struct uapi *)0)->field),              \
		       #ours "." #field)

/* struct pvrdma_sge: a scatter/gather entry */
struct pvr_sge {
	__aligned_le64 addr;
	__le32 length;
	__le32 lkey;
};
PVR_ABI_SAME_SIZE(pvr_sge, pvrdma_sge);
PVR_ABI_SAME(pvr_sge, pvrdma_sge, addr);
PVR_ABI_SAME(pvr_sge, pvrdma_sge, length);
PVR_ABI_SAME(pvr_sge, pvrdma_sge, lkey);

/* struct pvrdma_rq_wqe_hdr: a receive request; num_sge entries follow */
struct pvr_rq_wqe {
	__aligned_le64 wr_id;
	__le32 num_sge;
	__le32 total_len; /* reserved */
};
PVR_ABI_SAME_SIZE(pvr_rq_wqe, pvrdma_rq_wqe_hdr);
PVR_ABI_SAME(pvr_rq_wqe, pvrdma_rq_wqe_hdr, wr_id);
PVR_ABI_SAME(pvr_rq_wqe, pvrdma_rq_wqe_hdr, num_sge);
PVR_ABI_SAME(pvr_rq_wqe, pvrdma_rq_wqe_hdr, total_len);

/* struct pvrdma_av: the address of a datagram */
struct pvr_av {
	__le32 port_pd; /* PVR_AV_PD_MASK; the port above it */
	__le32 sl_tclass_flowlabel;
	__u8 dgid[16];
	__u8 src_path_bits; /* PVR_AV_GRH */
	__u8 gid_index;
	__u8 stat_rate;
	__u8 hop_limit;
	__u8 dmac[6];
	__u8 reserved[6];
};
PVR_ABI_SAME_SIZE(pvr_av, pvrdma_av);
PVR_ABI_SAME(pvr_av, pvrdma_av, port_pd);
PVR_ABI_SAME(pvr_av, pvrdma_av, sl_tclass_flowlabel);
PVR_ABI_SAME(pvr_av, pvrdma_av, dgid);
PVR_ABI_SAME(pvr_av, pvrdma_av, src_path_bits);
PVR_ABI_SAME(pvr_av, pvrdma_av, gid_index);
PVR_ABI_SAME(pvr_av, pvrdma_av, stat_rate);
PVR_ABI_SAME(pvr_av, pvrdma_av, hop_limit);
PVR_ABI_SAME(pvr_av, pvrdma_av, dmac);

/* struct pvrdma_sq_wqe_hdr: a send request; num_sge entries, or inline data, follow */
struct pvr_sq_wqe {
	__aligned_le64 wr_id;
	__le32 num_sge;
	__le32 total_len; /* of inline data */
	__le32 opcode; /* enum pvrdma_wr_opcode, PVR_WR_* */
	__le32 send_flags; /* PVR_SEND_* */
	union {
		__be32 imm_data;
		__le32 invalidate_rkey;
	} ex;
	__le32 remote_srqn; /* PVR_EXT_XRC: of XRC_INI queue pairs; otherwise reserved */
	union {
		struct {
			__aligned_le64 remote_addr;
			__le32 rkey;
			__u8 reserved[4];
		} rdma;
		struct {
			__aligned_le64 remote_addr;
			__aligned_le64 compare_add;
			__aligned_le64 swap;
			__le32 rkey;
			__le32 reserved;
		} atomic;
		struct {
			__aligned_le64 iova_start;
			__aligned_le64 pl_pdir_dma;
			__le32 page_shift;
			__le32 page_list_len;
			__le32 length;
			__le32 access_flags;
			__le32 rkey;
			__le32 reserved;
		} fast_reg;
		struct {
			__le32 remote_qpn;
			__le32 remote_qkey;
			struct pvr_av av;
		} ud;
	} wr;
};
PVR_ABI_SAME_SIZE(pvr_sq_wqe, pvrdma_sq_wqe_hdr);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr_id);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, num_sge);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, total_len);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, opcode);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, send_flags);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, ex.imm_data);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, ex.invalidate_rkey);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.rdma.remote_addr);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.rdma.rkey);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.atomic.remote_addr);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.atomic.compare_add);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.atomic.swap);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.atomic.rkey);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.fast_reg.iova_start);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.fast_reg.pl_pdir_dma);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.fast_reg.page_shift);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.fast_reg.page_list_len);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.fast_reg.length);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.fast_reg.access_flags);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.fast_reg.rkey);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.ud.remote_qpn);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.ud.remote_qkey);
PVR_ABI_SAME(pvr_sq_wqe, pvrdma_sq_wqe_hdr, wr.ud.av);

/* struct pvrdma_cqe: a completion */
struct pvr_cqe {
	__aligned_le64 wr_id;
	__aligned_le64 qp; /* handle */
	__le32 opcode; /* enum pvrdma_wc_opcode, PVR_WC_* */
	__le32 status; /* enum pvrdma_wc_status */
	__le32 byte_len;
	union {
		__be32 imm_data;
		__le32 invalidated_rkey;
	};
	__le32 src_qp;
	__le32 wc_flags; /* enum pvrdma_wc_flags */
	__le32 vendor_err;
	__le16 pkey_index;
	__le16 slid;
	__u8 sl;
	__u8 dlid_path_bits;
	__u8 port_num;
	__u8 smac[6];
	__u8 network_hdr_type;
	__u8 reserved2[6]; /* PVR_CQE_VLAN, or a timestamp */
};
PVR_ABI_SAME_SIZE(pvr_cqe, pvrdma_cqe);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, wr_id);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, qp);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, opcode);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, status);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, byte_len);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, imm_data);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, src_qp);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, wc_flags);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, vendor_err);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, pkey_index);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, slid);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, sl);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, dlid_path_bits);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, port_num);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, smac);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, network_hdr_type);
PVR_ABI_SAME(pvr_cqe, pvrdma_cqe, reserved2);

#endif /* PVRDMA_ABI_WQE_H */
