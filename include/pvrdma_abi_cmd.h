/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The PVRDMA device interface: commands, by which a driver creates, changes and destroys
 * objects. The rules of pvrdma_abi.h apply. docs/abi.rst has the checks of each command.
 */
#ifndef PVRDMA_ABI_CMD_H
#define PVRDMA_ABI_CMD_H

#include "pvrdma_abi.h"

enum pvr_cmd {
	PVR_CMD_QUERY_PORT,
	PVR_CMD_QUERY_PKEY,
	PVR_CMD_CREATE_PD,
	PVR_CMD_DESTROY_PD,
	PVR_CMD_CREATE_MR,
	PVR_CMD_DESTROY_MR,
	PVR_CMD_CREATE_CQ,
	PVR_CMD_RESIZE_CQ,
	PVR_CMD_DESTROY_CQ,
	PVR_CMD_CREATE_QP,
	PVR_CMD_MODIFY_QP,
	PVR_CMD_QUERY_QP,
	PVR_CMD_DESTROY_QP,
	PVR_CMD_CREATE_UC,
	PVR_CMD_DESTROY_UC,
	PVR_CMD_CREATE_BIND,
	PVR_CMD_DESTROY_BIND,
	PVR_CMD_CREATE_SRQ,
	PVR_CMD_MODIFY_SRQ,
	PVR_CMD_QUERY_SRQ,
	PVR_CMD_DESTROY_SRQ,
	PVR_CMD_STOCK_NUM, /* commands of stock drivers are below */
	PVR_CMD_SET_CQ_RING = PVR_CMD_STOCK_NUM, /* PVR_EXT_CQ_VECTORS */
	PVR_CMD_ATTACH_MCAST, /* PVR_EXT_MCAST */
	PVR_CMD_DETACH_MCAST, /* PVR_EXT_MCAST */
	PVR_CMD_QUERY_STATS, /* PVR_EXT_STATS */
	PVR_CMD_SUM_STATS, /* PVR_EXT_SUM_STATS */
	PVR_CMD_MODIFY_CQ, /* PVR_EXT_CQ_MODERATION */
	PVR_CMD_CREATE_XRCD, /* PVR_EXT_XRC */
	PVR_CMD_DESTROY_XRCD, /* PVR_EXT_XRC */
	PVR_CMD_QUERY_FAULT, /* PVR_EXT_ON_DEMAND */
	PVR_CMD_SET_PAGES, /* PVR_EXT_ON_DEMAND */
	PVR_CMD_NUM,
};

/* Bytes that a driver writes to the command slot for every command. */
#define PVR_CMD_REQ_SIZE 184
/* Bytes that it reads from the response slot. */
#define PVR_CMD_RESP_SIZE 176

#define PVR_CMD_RESP_ACK 0x80000000u /* ack = PVR_CMD_RESP_ACK | opcode */

/*
 * ERR is 0, or the errno of a failed command: a positive number of Linux on x86. resp.err
 * repeats its low 8 bits.
 *
 * PVR_EXT_RESP_POLL, response polling: when the key of a command is in the response slot, the
 * command is done, with the result resp.err. This includes commands without a response. A
 * command that is unknown or cannot be read stores no key, so a driver finally reads ERR.
 */
struct pvr_cmd_hdr {
	__aligned_le64 response; /* opaque, echoed in the response */
	__le32 cmd; /* enum pvr_cmd */
	__le32 reserved;
};
PVR_ABI_SIZE(pvr_cmd_hdr, 16);
PVR_ABI_FIELD(pvr_cmd_hdr, response, 0, 8);
PVR_ABI_FIELD(pvr_cmd_hdr, cmd, 8, 4);

struct pvr_resp_hdr {
	__aligned_le64 response;
	__le32 ack;
	__u8 err;
	__u8 reserved[3];
};
PVR_ABI_SIZE(pvr_resp_hdr, 16);
PVR_ABI_FIELD(pvr_resp_hdr, response, 0, 8);
PVR_ABI_FIELD(pvr_resp_hdr, ack, 8, 4);
PVR_ABI_FIELD(pvr_resp_hdr, err, 12, 1);

/* pvr_port_attr.state; numbers of ib_port_state */
enum pvr_port_state {
	PVR_PORT_DOWN = 1,
	PVR_PORT_ACTIVE = 4,
};
#define PVR_PORT_PHYS_DISABLED 3
#define PVR_PORT_PHYS_LINK_UP 5

enum pvr_mtu {
	PVR_MTU_256 = 1,
	PVR_MTU_512,
	PVR_MTU_1024,
	PVR_MTU_2048,
	PVR_MTU_4096,
};

struct pvr_port_attr {
	__le32 state; /* enum pvr_port_state */
	__le32 max_mtu; /* enum pvr_mtu */
	__le32 active_mtu; /* enum pvr_mtu */
	__le32 gid_tbl_len;
	__le32 port_cap_flags;
	__le32 max_msg_sz; /* bytes */
	__le32 bad_pkey_cntr;
	__le32 qkey_viol_cntr;
	__le16 pkey_tbl_len;
	__le16 lid;
	__le16 sm_lid;
	__u8 lmc;
	__u8 max_vl_num;
	__u8 sm_sl;
	__u8 subnet_timeout;
	__u8 init_type_reply;
	__u8 active_width; /* 1: 1x, 2: 4x, 4: 8x, 8: 12x */
	__u8 active_speed; /* ib_port_speed, up to 8 bits */
	__u8 phys_state; /* PVR_PORT_PHYS_* */
	__u8 reserved[2];
};
PVR_ABI_SIZE(pvr_port_attr, 48);
PVR_ABI_FIELD(pvr_port_attr, gid_tbl_len, 12, 4);
PVR_ABI_FIELD(pvr_port_attr, max_msg_sz, 20, 4);
PVR_ABI_FIELD(pvr_port_attr, pkey_tbl_len, 32, 2);
PVR_ABI_FIELD(pvr_port_attr, lid, 34, 2);
PVR_ABI_FIELD(pvr_port_attr, lmc, 38, 1);
PVR_ABI_FIELD(pvr_port_attr, max_vl_num, 39, 1);
PVR_ABI_FIELD(pvr_port_attr, subnet_timeout, 41, 1);
PVR_ABI_FIELD(pvr_port_attr, active_width, 43, 1);
PVR_ABI_FIELD(pvr_port_attr, active_speed, 44, 1);
PVR_ABI_FIELD(pvr_port_attr, phys_state, 45, 1);

struct pvr_cmd_query_port {
	struct pvr_cmd_hdr hdr;
	__u8 port_num; /* from 1 */
	__u8 reserved[7];
};
PVR_ABI_SIZE(pvr_cmd_query_port, 24);
PVR_ABI_FIELD(pvr_cmd_query_port, port_num, 16, 1);

struct pvr_resp_query_port {
	struct pvr_resp_hdr hdr;
	struct pvr_port_attr attrs;
};
PVR_ABI_SIZE(pvr_resp_query_port, 64);
PVR_ABI_FIELD(pvr_resp_query_port, attrs, 16, 48);

struct pvr_cmd_query_pkey {
	struct pvr_cmd_hdr hdr;
	__u8 port_num;
	__u8 index;
	__u8 reserved[6];
};
PVR_ABI_SIZE(pvr_cmd_query_pkey, 24);
PVR_ABI_FIELD(pvr_cmd_query_pkey, port_num, 16, 1);
PVR_ABI_FIELD(pvr_cmd_query_pkey, index, 17, 1);

struct pvr_resp_query_pkey {
	struct pvr_resp_hdr hdr;
	__le16 pkey;
	__u8 reserved[6];
};
PVR_ABI_SIZE(pvr_resp_query_pkey, 24);
PVR_ABI_FIELD(pvr_resp_query_pkey, pkey, 16, 2);

struct pvr_cmd_create_uc {
	struct pvr_cmd_hdr hdr;
	__aligned_le64 pfn; /* page frame of the UAR page; 32 bits if version < 19 */
};
PVR_ABI_SIZE(pvr_cmd_create_uc, 24);
PVR_ABI_FIELD(pvr_cmd_create_uc, pfn, 16, 8);

struct pvr_resp_create_uc {
	struct pvr_resp_hdr hdr;
	__le32 ctx_handle; /* never 0, the driver's own context */
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_resp_create_uc, 24);
PVR_ABI_FIELD(pvr_resp_create_uc, ctx_handle, 16, 4);

struct pvr_cmd_create_pd {
	struct pvr_cmd_hdr hdr;
	__le32 ctx_handle;
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_cmd_create_pd, 24);
PVR_ABI_FIELD(pvr_cmd_create_pd, ctx_handle, 16, 4);

struct pvr_resp_create_pd {
	struct pvr_resp_hdr hdr;
	__le32 pd_handle; /* < 2^24 */
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_resp_create_pd, 24);
PVR_ABI_FIELD(pvr_resp_create_pd, pd_handle, 16, 4);

/* DESTROY_PD, _MR, _CQ, _QP, _UC, _SRQ, _XRCD, QUERY_SRQ and QUERY_FAULT */
struct pvr_cmd_handle {
	struct pvr_cmd_hdr hdr;
	__le32 handle;
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_cmd_handle, 24);
PVR_ABI_FIELD(pvr_cmd_handle, handle, 16, 4);

/* pvr_cmd_create_mr.flags */
#define PVR_MR_FLAG_DMA (1u << 0) /* all bus addresses, local access only */
#define PVR_MR_FLAG_FRMR (1u << 1) /* FAST_REG_MR work requests give it pages */
#define PVR_MR_FLAG_LAYOUT (1u << 2) /* the fields behind nchunks are valid */
/*
 * With PVR_MR_FLAG_LAYOUT: the region mr_handle becomes this one, and keeps its handle and
 * keys. EBUSY if windows are bound to it. On failure the region is as it was.
 */
#define PVR_MR_FLAG_REPLACE (1u << 5)
#define PVR_MR_FLAG_MW1 (1u << 3) /* a memory window of type 1; only pd_handle counts */
#define PVR_MR_FLAG_MW2 (1u << 4) /* ... of type 2B */
/*
 * With PVR_MR_FLAG_LAYOUT, PVR_EXT_ON_DEMAND: the region has pages of 4 KiB, all absent, and
 * pdir_dma is not read. nchunks is 0, offset below 4096, length at most 2^47. EOPNOTSUPP with
 * PVR_ACCESS_MW_BIND.
 */
#define PVR_MR_FLAG_ON_DEMAND (1u << 6)

struct pvr_cmd_create_mr {
	struct pvr_cmd_hdr hdr;
	__aligned_le64 start; /* address of the first byte in work requests */
	__aligned_le64 length; /* bytes */
	__aligned_le64 pdir_dma;
	__le32 pd_handle;
	__le32 access_flags; /* PVR_ACCESS_* */
	__le32 flags; /* PVR_MR_FLAG_* */
	__le32 nchunks; /* pages from page(start) to page(start + length - 1) */
	/*
	 * With PVR_MR_FLAG_LAYOUT. start is then any address, the pages hold offset + length
	 * bytes, and are aligned to their size. A region of length 0 has no pages.
	 */
	__aligned_le64 offset; /* of the first byte in the first page */
	__le32 page_shift; /* 12 .. 30 */
	__le32 pdir_levels; /* 2 or 3 */
	__le32 mr_handle; /* with PVR_MR_FLAG_REPLACE */
	__le32 reserved;
};
PVR_ABI_SIZE(pvr_cmd_create_mr, 80);
PVR_ABI_FIELD(pvr_cmd_create_mr, mr_handle, 72, 4);
PVR_ABI_FIELD(pvr_cmd_create_mr, offset, 56, 8);
PVR_ABI_FIELD(pvr_cmd_create_mr, page_shift, 64, 4);
PVR_ABI_FIELD(pvr_cmd_create_mr, pdir_levels, 68, 4);
PVR_ABI_FIELD(pvr_cmd_create_mr, start, 16, 8);
PVR_ABI_FIELD(pvr_cmd_create_mr, length, 24, 8);
PVR_ABI_FIELD(pvr_cmd_create_mr, pdir_dma, 32, 8);
PVR_ABI_FIELD(pvr_cmd_create_mr, pd_handle, 40, 4);
PVR_ABI_FIELD(pvr_cmd_create_mr, access_flags, 44, 4);
PVR_ABI_FIELD(pvr_cmd_create_mr, flags, 48, 4);
PVR_ABI_FIELD(pvr_cmd_create_mr, nchunks, 52, 4);

struct pvr_resp_create_mr {
	struct pvr_resp_hdr hdr;
	__le32 mr_handle;
	__le32 lkey;
	__le32 rkey;
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_resp_create_mr, 32);
PVR_ABI_FIELD(pvr_resp_create_mr, mr_handle, 16, 4);
PVR_ABI_FIELD(pvr_resp_create_mr, lkey, 20, 4);
PVR_ABI_FIELD(pvr_resp_create_mr, rkey, 24, 4);

/* pvr_cmd_create_cq.flags */
#define PVR_CQ_TIMESTAMP (1u << 0) /* completions have timestamps */

struct pvr_cmd_create_cq {
	struct pvr_cmd_hdr hdr;
	__aligned_le64 pdir_dma; /* header page, then CQEs */
	__le32 ctx_handle;
	__le32 cqe; /* a power of two */
	__le32 nchunks; /* pages, header included */
	__le32 comp_vector; /* PVR_EXT_CQ_VECTORS; otherwise reserved */
	__le32 flags; /* PVR_EXT_CQ_TIMESTAMP: PVR_CQ_*; otherwise not read */
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_cmd_create_cq, 48);
PVR_ABI_FIELD(pvr_cmd_create_cq, flags, 40, 4);
PVR_ABI_FIELD(pvr_cmd_create_cq, comp_vector, 36, 4);
PVR_ABI_FIELD(pvr_cmd_create_cq, pdir_dma, 16, 8);
PVR_ABI_FIELD(pvr_cmd_create_cq, ctx_handle, 24, 4);
PVR_ABI_FIELD(pvr_cmd_create_cq, cqe, 28, 4);
PVR_ABI_FIELD(pvr_cmd_create_cq, nchunks, 32, 4);

struct pvr_resp_create_cq {
	struct pvr_resp_hdr hdr;
	__le32 cq_handle; /* < max_cq */
	__le32 cqe; /* that of the request */
};
PVR_ABI_SIZE(pvr_resp_create_cq, 24);
PVR_ABI_FIELD(pvr_resp_create_cq, cq_handle, 16, 4);
PVR_ABI_FIELD(pvr_resp_create_cq, cqe, 20, 4);

/*
 * PVR_EXT_RESIZE: the CQ moves to a new ring, with the layout of CREATE_CQ. The device
 * copies the unread completions, oldest first, to index 0 and up of the new ring, and sets
 * its prod_tail. The guest must not poll while the command runs. EINVAL if they do not fit,
 * EIO if the CQ has failed. On failure the CQ is as it was.
 */
struct pvr_cmd_resize_cq {
	struct pvr_cmd_hdr hdr;
	__le32 cq_handle;
	__le32 cqe; /* a power of two */
	__aligned_le64 pdir_dma; /* header page, then CQEs */
	__le32 nchunks;
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_cmd_resize_cq, 40);
PVR_ABI_FIELD(pvr_cmd_resize_cq, cq_handle, 16, 4);
PVR_ABI_FIELD(pvr_cmd_resize_cq, cqe, 20, 4);
PVR_ABI_FIELD(pvr_cmd_resize_cq, pdir_dma, 24, 8);
PVR_ABI_FIELD(pvr_cmd_resize_cq, nchunks, 32, 4);

struct pvr_resp_resize_cq {
	struct pvr_resp_hdr hdr;
	__le32 cqe;
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_resp_resize_cq, 24);
PVR_ABI_FIELD(pvr_resp_resize_cq, cqe, 16, 4);

struct pvr_srq_attr {
	__le32 max_wr;
	__le32 max_sge;
	__le32 srq_limit;
	__le32 reserved;
};
PVR_ABI_SIZE(pvr_srq_attr, 16);
PVR_ABI_FIELD(pvr_srq_attr, srq_limit, 8, 4);

/* Numbers of ib_srq_type. */
enum pvr_srq_type {
	PVR_SRQT_BASIC,
	PVR_SRQT_XRC, /* PVR_EXT_XRC */
};

struct pvr_cmd_create_srq {
	struct pvr_cmd_hdr hdr;
	__aligned_le64 pdir_dma; /* header page, then WQEs */
	__le32 pd_handle;
	__le32 nchunks;
	struct pvr_srq_attr attrs;
	__u8 srq_type; /* enum pvr_srq_type */
	__u8 reserved[3];
	/* Of PVR_SRQT_XRC; otherwise not read. */
	__le32 xrcd_handle;
	__le32 cq_handle; /* of its completions; of the same context as the PD */
	__u8 reserved2[4];
};
PVR_ABI_SIZE(pvr_cmd_create_srq, 64);
PVR_ABI_FIELD(pvr_cmd_create_srq, pdir_dma, 16, 8);
PVR_ABI_FIELD(pvr_cmd_create_srq, pd_handle, 24, 4);
PVR_ABI_FIELD(pvr_cmd_create_srq, nchunks, 28, 4);
PVR_ABI_FIELD(pvr_cmd_create_srq, attrs, 32, 16);
PVR_ABI_FIELD(pvr_cmd_create_srq, srq_type, 48, 1);
PVR_ABI_FIELD(pvr_cmd_create_srq, xrcd_handle, 52, 4);
PVR_ABI_FIELD(pvr_cmd_create_srq, cq_handle, 56, 4);

struct pvr_resp_create_srq {
	struct pvr_resp_hdr hdr;
	__le32 srqn; /* also the handle; < max_srq */
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_resp_create_srq, 24);
PVR_ABI_FIELD(pvr_resp_create_srq, srqn, 16, 4);

/* pvr_cmd_modify_srq.attr_mask */
#define PVR_SRQ_MAX_WR (1u << 0) /* PVR_EXT_RESIZE */
#define PVR_SRQ_LIMIT (1u << 1)

/*
 * With PVR_SRQ_MAX_WR the SRQ moves to a new ring, with the layout of CREATE_SRQ and the
 * same max_sge. The device copies the waiting requests, oldest first, to index 0 and up,
 * and sets both indices of the new ring. The guest must not post while the command runs.
 * EINVAL if they do not fit, or if the limit, new or old, is above the new size. EIO if the
 * SRQ has failed. On failure the SRQ is as it was.
 */
struct pvr_cmd_modify_srq {
	struct pvr_cmd_hdr hdr;
	__le32 srq_handle;
	__le32 attr_mask; /* PVR_SRQ_* */
	struct pvr_srq_attr attrs;
	__aligned_le64 pdir_dma; /* PVR_SRQ_MAX_WR: header page, then WQEs */
	__le32 nchunks;
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_cmd_modify_srq, 56);
PVR_ABI_FIELD(pvr_cmd_modify_srq, pdir_dma, 40, 8);
PVR_ABI_FIELD(pvr_cmd_modify_srq, nchunks, 48, 4);
PVR_ABI_FIELD(pvr_cmd_modify_srq, srq_handle, 16, 4);
PVR_ABI_FIELD(pvr_cmd_modify_srq, attr_mask, 20, 4);
PVR_ABI_FIELD(pvr_cmd_modify_srq, attrs, 24, 16);

struct pvr_resp_query_srq {
	struct pvr_resp_hdr hdr;
	struct pvr_srq_attr attrs;
};
PVR_ABI_SIZE(pvr_resp_query_srq, 32);
PVR_ABI_FIELD(pvr_resp_query_srq, attrs, 16, 16);

/*
 * pvr_cmd_create_qp.flags: user space posts LOCAL_INV, SEND_WITH_INV and BIND_MW by the
 * opcodes of the device. Stock providers post other requests by these numbers, so without
 * the flag the device refuses them on QPs of user contexts. It always refuses FAST_REG_MR
 * there, because the page list holds bus addresses.
 */
#define PVR_QP_USER_OPS (1u << 0)

/* Numbers of ib_qp_type; the device refuses other types. */
enum pvr_qp_type {
	PVR_QPT_GSI = 1,
	PVR_QPT_RC = 2,
	PVR_QPT_UC = 3, /* PVR_EXT_UC */
	PVR_QPT_UD = 4,
	PVR_QPT_XRC_INI = 9, /* PVR_EXT_XRC: requester of XRC; has no receive queue */
	PVR_QPT_XRC_TGT = 10, /* PVR_EXT_XRC: responder of XRC; has no queues, PD and CQs */
};

struct pvr_cmd_create_qp {
	struct pvr_cmd_hdr hdr;
	__aligned_le64 pdir_dma; /* header page, SQ pages, RQ pages */
	__le32 pd_handle;
	__le32 send_cq_handle;
	__le32 recv_cq_handle;
	__le32 srq_handle; /* if is_srq */
	__le32 max_send_wr; /* a power of two */
	__le32 max_recv_wr; /* a power of two; 0 with an SRQ */
	__le32 max_send_sge; /* determines the SQ stride, see PVR_SQ_STRIDE_MIN */
	__le32 max_recv_sge; /* determines the RQ stride */
	__le32 max_inline_data; /* PVR_EXT_INLINE; otherwise 0 */
	__le32 lkey;
	__le32 access_flags;
	__le16 total_chunks; /* all pages, with the header page */
	__le16 send_chunks; /* SQ pages */
	__le16 max_atomic_arg;
	__u8 sq_sig_all; /* every send work request completes with a CQE */
	__u8 qp_type; /* enum pvr_qp_type */
	__u8 is_srq;
	__u8 flags; /* PVR_EXT_USER_OPS: PVR_QP_USER_OPS; otherwise reserved */
	__u8 reserved[2];
	__le32 xrcd_handle; /* of PVR_QPT_XRC_TGT; otherwise not read */
	__u8 reserved2[4];
};
PVR_ABI_SIZE(pvr_cmd_create_qp, 88);
PVR_ABI_FIELD(pvr_cmd_create_qp, xrcd_handle, 80, 4);
PVR_ABI_FIELD(pvr_cmd_create_qp, max_inline_data, 56, 4);
PVR_ABI_FIELD(pvr_cmd_create_qp, flags, 77, 1);
PVR_ABI_FIELD(pvr_cmd_create_qp, pdir_dma, 16, 8);
PVR_ABI_FIELD(pvr_cmd_create_qp, pd_handle, 24, 4);
PVR_ABI_FIELD(pvr_cmd_create_qp, send_cq_handle, 28, 4);
PVR_ABI_FIELD(pvr_cmd_create_qp, recv_cq_handle, 32, 4);
PVR_ABI_FIELD(pvr_cmd_create_qp, srq_handle, 36, 4);
PVR_ABI_FIELD(pvr_cmd_create_qp, max_send_wr, 40, 4);
PVR_ABI_FIELD(pvr_cmd_create_qp, max_recv_wr, 44, 4);
PVR_ABI_FIELD(pvr_cmd_create_qp, max_send_sge, 48, 4);
PVR_ABI_FIELD(pvr_cmd_create_qp, max_recv_sge, 52, 4);
PVR_ABI_FIELD(pvr_cmd_create_qp, access_flags, 64, 4);
PVR_ABI_FIELD(pvr_cmd_create_qp, total_chunks, 68, 2);
PVR_ABI_FIELD(pvr_cmd_create_qp, send_chunks, 70, 2);
PVR_ABI_FIELD(pvr_cmd_create_qp, sq_sig_all, 74, 1);
PVR_ABI_FIELD(pvr_cmd_create_qp, qp_type, 75, 1);
PVR_ABI_FIELD(pvr_cmd_create_qp, is_srq, 76, 1);

/* Response to drivers below version PVR_VERSION_QPHANDLE. */
struct pvr_resp_create_qp_v1 {
	struct pvr_resp_hdr hdr;
	__le32 qpn; /* number and handle in one */
	__le32 max_send_wr;
	__le32 max_recv_wr;
	__le32 max_send_sge;
	__le32 max_recv_sge;
	__le32 max_inline_data;
};
PVR_ABI_SIZE(pvr_resp_create_qp_v1, 40);
PVR_ABI_FIELD(pvr_resp_create_qp_v1, qpn, 16, 4);
PVR_ABI_FIELD(pvr_resp_create_qp_v1, max_inline_data, 36, 4);

struct pvr_resp_create_qp {
	struct pvr_resp_hdr hdr;
	__le32 qpn; /* by which peers name it */
	__le32 qp_handle; /* doorbells, commands, CQEs, events; 1 .. max_qp - 1 */
	__le32 max_send_wr;
	__le32 max_recv_wr;
	__le32 max_send_sge;
	__le32 max_recv_sge;
	__le32 max_inline_data;
	__le32 reserved;
};
PVR_ABI_SIZE(pvr_resp_create_qp, 48);
PVR_ABI_FIELD(pvr_resp_create_qp, qpn, 16, 4);
PVR_ABI_FIELD(pvr_resp_create_qp, qp_handle, 20, 4);
PVR_ABI_FIELD(pvr_resp_create_qp, max_send_wr, 24, 4);
PVR_ABI_FIELD(pvr_resp_create_qp, max_inline_data, 40, 4);

/* pvr_ah_attr.ah_flags */
#define PVR_AH_GRH 1u

struct pvr_ah_attr {
	__u8 dgid[16];
	__le32 flow_label;
	__u8 sgid_index;
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 reserved0;
	__le16 dlid;
	__le16 vlan_id;
	__u8 sl;
	__u8 src_path_bits;
	__u8 static_rate;
	__u8 ah_flags; /* PVR_AH_GRH */
	__u8 port_num;
	__u8 dmac[6];
	__u8 reserved1;
};
PVR_ABI_SIZE(pvr_ah_attr, 40);
PVR_ABI_FIELD(pvr_ah_attr, dgid, 0, 16);
PVR_ABI_FIELD(pvr_ah_attr, flow_label, 16, 4);
PVR_ABI_FIELD(pvr_ah_attr, sgid_index, 20, 1);
PVR_ABI_FIELD(pvr_ah_attr, traffic_class, 22, 1);
PVR_ABI_FIELD(pvr_ah_attr, dlid, 24, 2);
PVR_ABI_FIELD(pvr_ah_attr, sl, 28, 1);
PVR_ABI_FIELD(pvr_ah_attr, ah_flags, 31, 1);
PVR_ABI_FIELD(pvr_ah_attr, port_num, 32, 1);
PVR_ABI_FIELD(pvr_ah_attr, dmac, 33, 6);

struct pvr_qp_cap {
	__le32 max_send_wr;
	__le32 max_recv_wr;
	__le32 max_send_sge;
	__le32 max_recv_sge;
	__le32 max_inline_data;
	__le32 reserved;
};
PVR_ABI_SIZE(pvr_qp_cap, 24);

/* Numbers of ib_qp_state. */
enum pvr_qp_state {
	PVR_QPS_RESET,
	PVR_QPS_INIT,
	PVR_QPS_RTR,
	PVR_QPS_RTS,
	PVR_QPS_SQD,
	PVR_QPS_SQE,
	PVR_QPS_ERR,
	PVR_QPS_NUM,
};

/* Numbers of ib_mig_state. */
enum pvr_mig_state {
	PVR_MIG_MIGRATED,
	PVR_MIG_REARM,
	PVR_MIG_ARMED,
};

/* pvr_cmd_modify_qp.attr_mask: a field whose bit is clear is undefined. */
#define PVR_QPA_STATE (1u << 0)
#define PVR_QPA_CUR_STATE (1u << 1)
#define PVR_QPA_EN_SQD_ASYNC (1u << 2)
#define PVR_QPA_ACCESS_FLAGS (1u << 3)
#define PVR_QPA_PKEY_INDEX (1u << 4)
#define PVR_QPA_PORT (1u << 5)
#define PVR_QPA_QKEY (1u << 6)
#define PVR_QPA_AV (1u << 7)
#define PVR_QPA_PATH_MTU (1u << 8)
#define PVR_QPA_TIMEOUT (1u << 9)
#define PVR_QPA_RETRY_CNT (1u << 10)
#define PVR_QPA_RNR_RETRY (1u << 11)
#define PVR_QPA_RQ_PSN (1u << 12)
#define PVR_QPA_MAX_RD_ATOMIC (1u << 13)
#define PVR_QPA_ALT_PATH (1u << 14)
#define PVR_QPA_MIN_RNR_TIMER (1u << 15)
#define PVR_QPA_SQ_PSN (1u << 16)
#define PVR_QPA_MAX_DEST_RD_ATOMIC (1u << 17)
#define PVR_QPA_PATH_MIG_STATE (1u << 18)
#define PVR_QPA_CAP (1u << 19)
#define PVR_QPA_DEST_QPN (1u << 20)
#define PVR_QPA_ALL 0x1fffffu

struct pvr_qp_attr {
	__le32 qp_state; /* enum pvr_qp_state */
	__le32 cur_qp_state;
	__le32 path_mtu; /* enum pvr_mtu */
	__le32 path_mig_state; /* enum pvr_mig_state */
	__le32 qkey;
	__le32 rq_psn; /* 24 bits */
	__le32 sq_psn; /* 24 bits */
	__le32 dest_qp_num;
	__le32 qp_access_flags; /* PVR_ACCESS_REMOTE_* */
	__le16 pkey_index;
	__le16 alt_pkey_index;
	__u8 en_sqd_async_notify;
	__u8 sq_draining;
	__u8 max_rd_atomic;
	__u8 max_dest_rd_atomic;
	__u8 min_rnr_timer; /* IBTA 9.7.5.2.8, table 45 */
	__u8 port_num;
	__u8 timeout; /* 4.096 us << timeout; 0: never expires */
	__u8 retry_cnt;
	__u8 rnr_retry; /* 7: without end */
	__u8 alt_port_num;
	__u8 alt_timeout;
	__u8 reserved[5];
	struct pvr_qp_cap cap;
	struct pvr_ah_attr ah_attr;
	struct pvr_ah_attr alt_ah_attr;
};
PVR_ABI_SIZE(pvr_qp_attr, 160);
PVR_ABI_FIELD(pvr_qp_attr, qp_state, 0, 4);
PVR_ABI_FIELD(pvr_qp_attr, path_mtu, 8, 4);
PVR_ABI_FIELD(pvr_qp_attr, qkey, 16, 4);
PVR_ABI_FIELD(pvr_qp_attr, rq_psn, 20, 4);
PVR_ABI_FIELD(pvr_qp_attr, sq_psn, 24, 4);
PVR_ABI_FIELD(pvr_qp_attr, dest_qp_num, 28, 4);
PVR_ABI_FIELD(pvr_qp_attr, qp_access_flags, 32, 4);
PVR_ABI_FIELD(pvr_qp_attr, pkey_index, 36, 2);
PVR_ABI_FIELD(pvr_qp_attr, en_sqd_async_notify, 40, 1);
PVR_ABI_FIELD(pvr_qp_attr, max_rd_atomic, 42, 1);
PVR_ABI_FIELD(pvr_qp_attr, max_dest_rd_atomic, 43, 1);
PVR_ABI_FIELD(pvr_qp_attr, min_rnr_timer, 44, 1);
PVR_ABI_FIELD(pvr_qp_attr, port_num, 45, 1);
PVR_ABI_FIELD(pvr_qp_attr, timeout, 46, 1);
PVR_ABI_FIELD(pvr_qp_attr, retry_cnt, 47, 1);
PVR_ABI_FIELD(pvr_qp_attr, rnr_retry, 48, 1);
PVR_ABI_FIELD(pvr_qp_attr, cap, 56, 24);
PVR_ABI_FIELD(pvr_qp_attr, ah_attr, 80, 40);
PVR_ABI_FIELD(pvr_qp_attr, alt_ah_attr, 120, 40);

struct pvr_cmd_modify_qp {
	struct pvr_cmd_hdr hdr;
	__le32 qp_handle;
	__le32 attr_mask; /* PVR_QPA_* */
	struct pvr_qp_attr attrs;
};
PVR_ABI_SIZE(pvr_cmd_modify_qp, 184);
PVR_ABI_FIELD(pvr_cmd_modify_qp, qp_handle, 16, 4);
PVR_ABI_FIELD(pvr_cmd_modify_qp, attr_mask, 20, 4);
PVR_ABI_FIELD(pvr_cmd_modify_qp, attrs, 24, 160);

struct pvr_cmd_query_qp {
	struct pvr_cmd_hdr hdr;
	__le32 qp_handle;
	__le32 attr_mask;
};
PVR_ABI_SIZE(pvr_cmd_query_qp, 24);
PVR_ABI_FIELD(pvr_cmd_query_qp, qp_handle, 16, 4);

struct pvr_resp_query_qp {
	struct pvr_resp_hdr hdr;
	struct pvr_qp_attr attrs;
};
PVR_ABI_SIZE(pvr_resp_query_qp, 176);
PVR_ABI_FIELD(pvr_resp_query_qp, attrs, 16, 160);

struct pvr_resp_destroy_qp {
	struct pvr_resp_hdr hdr;
	__le32 events_reported;
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_resp_destroy_qp, 24);

struct pvr_cmd_create_bind {
	struct pvr_cmd_hdr hdr;
	__le32 mtu; /* bytes */
	__le32 vlan; /* PVR_VLAN_NONE; PVR_EXT_VLAN: or a VLAN ID */
	__le32 index; /* GID table index */
	__u8 new_gid[16];
	__u8 gid_type; /* PVR_GID_TYPE_* */
	__u8 reserved[3];
};
PVR_ABI_SIZE(pvr_cmd_create_bind, 48);
PVR_ABI_FIELD(pvr_cmd_create_bind, mtu, 16, 4);
PVR_ABI_FIELD(pvr_cmd_create_bind, vlan, 20, 4);
PVR_ABI_FIELD(pvr_cmd_create_bind, index, 24, 4);
PVR_ABI_FIELD(pvr_cmd_create_bind, new_gid, 28, 16);
PVR_ABI_FIELD(pvr_cmd_create_bind, gid_type, 44, 1);

#define PVR_VLAN_NONE 0xfffu

struct pvr_cmd_destroy_bind {
	struct pvr_cmd_hdr hdr;
	__le32 index;
	__u8 dest_gid[16];
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_cmd_destroy_bind, 40);
PVR_ABI_FIELD(pvr_cmd_destroy_bind, index, 16, 4);
PVR_ABI_FIELD(pvr_cmd_destroy_bind, dest_gid, 20, 16);

/* Notification ring of a completion vector: set once, before CREATE_CQ. No response. */
struct pvr_cmd_set_cq_ring {
	struct pvr_cmd_hdr hdr;
	__le32 comp_vector; /* 1 .. CQ_VECTORS - 1 */
	__u8 reserved[4];
	struct pvr_ring_pages ring; /* as pvr_dsr.cq_ring */
};
PVR_ABI_SIZE(pvr_cmd_set_cq_ring, 40);
PVR_ABI_FIELD(pvr_cmd_set_cq_ring, comp_vector, 16, 4);
PVR_ABI_FIELD(pvr_cmd_set_cq_ring, ring, 24, 16);

/* ATTACH_MCAST, DETACH_MCAST: a UD QP and a multicast group (IBTA 10.5.2). No response. */
struct pvr_cmd_mcast {
	struct pvr_cmd_hdr hdr;
	__le32 qp_handle;
	__u8 reserved[4];
	__u8 mgid[16];
};
PVR_ABI_SIZE(pvr_cmd_mcast, 40);
PVR_ABI_FIELD(pvr_cmd_mcast, qp_handle, 16, 4);
PVR_ABI_FIELD(pvr_cmd_mcast, mgid, 24, 16);

/* Counters of an adapter or a QP since its creation. They only grow, and wrap at 2^64. */
enum pvr_stat {
	PVR_STAT_TX_MSGS, /* as requester, completed */
	PVR_STAT_TX_BYTES, /* their payload, with that of RDMA READ */
	PVR_STAT_RX_MSGS, /* as responder */
	PVR_STAT_RX_BYTES,
	PVR_STAT_TX_READS, /* of TX_MSGS: RDMA READ */
	PVR_STAT_TX_ATOMICS, /* of TX_MSGS: atomics */
	PVR_STAT_TX_MCAST, /* of TX_MSGS: multicast datagrams */
	PVR_STAT_RX_MCAST, /* of RX_MSGS: multicast datagrams */
	PVR_STAT_RNR_NAKS, /* sent, as no receive request was posted */
	PVR_STAT_ACK_TIMEOUTS, /* no response in time */
	PVR_STAT_RETRIES_EXCEEDED,
	PVR_STAT_ACCESS_ERRORS, /* as responder: wrong rkey, range or right */
	PVR_STAT_REQUEST_ERRORS, /* as responder: invalid requests */
	PVR_STAT_UD_DROPPED, /* datagrams that no receive request took */
	PVR_STAT_CQ_OVERFLOWS,
	PVR_STAT_DOORBELLS,
	PVR_STAT_DOORBELLS_IGNORED, /* of unknown objects or objects of another context */
	PVR_STAT_LOCAL_BYTES, /* of TX_BYTES: by memory copy on one host */
	PVR_STAT_RDMA_BYTES, /* of TX_BYTES: by the host's RDMA NIC */
	PVR_STAT_TCP_BYTES, /* of TX_BYTES: by TCP */
	PVR_STAT_NUM,
};

struct pvr_cmd_query_stats {
	struct pvr_cmd_hdr hdr;
	__le32 qp_handle; /* 0: the adapter */
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_cmd_query_stats, 24);
PVR_ABI_FIELD(pvr_cmd_query_stats, qp_handle, 16, 4);

struct pvr_resp_query_stats {
	struct pvr_resp_hdr hdr;
	__aligned_le64 stat[PVR_STAT_NUM]; /* by enum pvr_stat; 0 if a QP has no such counter */
};
PVR_ABI_SIZE(pvr_resp_query_stats, 176);
PVR_ABI_FIELD(pvr_resp_query_stats, stat, 16, 160);

#define PVR_SUM_STATS_MAX 40

struct pvr_cmd_sum_stats {
	struct pvr_cmd_hdr hdr;
	__le32 count; /* 1 .. PVR_SUM_STATS_MAX */
	__u8 reserved[4];
	__le32 qp_handle[PVR_SUM_STATS_MAX];
};
PVR_ABI_SIZE(pvr_cmd_sum_stats, 184);
PVR_ABI_FIELD(pvr_cmd_sum_stats, count, 16, 4);
PVR_ABI_FIELD(pvr_cmd_sum_stats, qp_handle, 24, 160);

/*
 * Moderation of a CQ's notifications: while the CQ is armed, the device notifies when @count
 * completions have come since the last notification, or @period_us after the first of
 * them. EINVAL for a count above 1 without a period. No response.
 */
struct pvr_cmd_modify_cq {
	struct pvr_cmd_hdr hdr;
	__le32 cq_handle;
	__le16 count; /* 0: only the period counts */
	__le16 period_us; /* 0: no moderation */
};
PVR_ABI_SIZE(pvr_cmd_modify_cq, 24);
PVR_ABI_FIELD(pvr_cmd_modify_cq, cq_handle, 16, 4);
PVR_ABI_FIELD(pvr_cmd_modify_cq, count, 20, 2);
PVR_ABI_FIELD(pvr_cmd_modify_cq, period_us, 22, 2);

struct pvr_resp_create_xrcd {
	struct pvr_resp_hdr hdr;
	__le32 xrcd_handle;
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_resp_create_xrcd, 24);
PVR_ABI_FIELD(pvr_resp_create_xrcd, xrcd_handle, 16, 4);

/*
 * PVR_EXT_ON_DEMAND. A request that touches an absent page waits, and the device sends
 * PVR_EVENT_PAGE_FAULT with the handle of the region. QUERY_FAULT returns the absent pages, and
 * SET_PAGES ends the fault. A region has one fault at a time. The event repeats until
 * QUERY_FAULT, which fails with ENOENT if the region has no fault or it was queried before.
 */
struct pvr_resp_query_fault {
	struct pvr_resp_hdr hdr;
	__aligned_le64 first; /* index in the region's pages */
	__le32 npages; /* 1 .. PVR_SET_PAGES_MAX */
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_resp_query_fault, 32);
PVR_ABI_FIELD(pvr_resp_query_fault, first, 16, 8);
PVR_ABI_FIELD(pvr_resp_query_fault, npages, 24, 4);

enum pvr_pages_state {
	PVR_PAGES_PRESENT, /* a page of DMA addresses, list_dma, has their addresses */
	PVR_PAGES_ABSENT, /* after the command the device does not use them any more */
	PVR_PAGES_REFUSED, /* the requests that wait for the queried fault fail */
	PVR_PAGES_NUM,
};

#define PVR_SET_PAGES_MAX 512 /* present pages */
#define PVR_SET_ABSENT_MAX 16384

/* SET_PAGES. No response. */
struct pvr_cmd_set_pages {
	struct pvr_cmd_hdr hdr;
	__le32 mr_handle;
	__le32 npages;
	__aligned_le64 first; /* index in the region's pages */
	__aligned_le64 list_dma;
	__le32 state; /* enum pvr_pages_state */
	__u8 reserved[4];
};
PVR_ABI_SIZE(pvr_cmd_set_pages, 48);
PVR_ABI_FIELD(pvr_cmd_set_pages, mr_handle, 16, 4);
PVR_ABI_FIELD(pvr_cmd_set_pages, npages, 20, 4);
PVR_ABI_FIELD(pvr_cmd_set_pages, first, 24, 8);
PVR_ABI_FIELD(pvr_cmd_set_pages, list_dma, 32, 8);
PVR_ABI_FIELD(pvr_cmd_set_pages, state, 40, 4);

/* Contents of the slots. */
union pvr_cmd_req {
	struct pvr_cmd_hdr hdr;
	struct pvr_cmd_query_port query_port;
	struct pvr_cmd_query_pkey query_pkey;
	struct pvr_cmd_create_uc create_uc;
	struct pvr_cmd_create_pd create_pd;
	struct pvr_cmd_create_mr create_mr;
	struct pvr_cmd_create_cq create_cq;
	struct pvr_cmd_resize_cq resize_cq;
	struct pvr_cmd_create_srq create_srq;
	struct pvr_cmd_modify_srq modify_srq;
	struct pvr_cmd_create_qp create_qp;
	struct pvr_cmd_modify_qp modify_qp;
	struct pvr_cmd_query_qp query_qp;
	struct pvr_cmd_create_bind create_bind;
	struct pvr_cmd_destroy_bind destroy_bind;
	struct pvr_cmd_handle handle;
	struct pvr_cmd_set_cq_ring set_cq_ring;
	struct pvr_cmd_mcast mcast;
	struct pvr_cmd_query_stats query_stats;
	struct pvr_cmd_sum_stats sum_stats;
	struct pvr_cmd_modify_cq modify_cq;
	struct pvr_cmd_set_pages set_pages;
};
PVR_ABI_ASSERT(sizeof(union pvr_cmd_req) == PVR_CMD_REQ_SIZE, "command slot");

union pvr_cmd_resp {
	struct pvr_resp_hdr hdr;
	struct pvr_resp_query_port query_port;
	struct pvr_resp_query_pkey query_pkey;
	struct pvr_resp_create_uc create_uc;
	struct pvr_resp_create_pd create_pd;
	struct pvr_resp_create_mr create_mr;
	struct pvr_resp_create_cq create_cq;
	struct pvr_resp_resize_cq resize_cq;
	struct pvr_resp_create_srq create_srq;
	struct pvr_resp_query_srq query_srq;
	struct pvr_resp_create_qp_v1 create_qp_v1;
	struct pvr_resp_create_qp create_qp;
	struct pvr_resp_query_qp query_qp;
	struct pvr_resp_destroy_qp destroy_qp;
	struct pvr_resp_query_stats query_stats; /* also of SUM_STATS */
	struct pvr_resp_create_xrcd create_xrcd;
	struct pvr_resp_query_fault query_fault;
};
PVR_ABI_ASSERT(sizeof(union pvr_cmd_resp) == PVR_CMD_RESP_SIZE, "response slot");

#endif /* PVRDMA_ABI_CMD_H */
