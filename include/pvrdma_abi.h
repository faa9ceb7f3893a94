/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The PVRDMA device interface: registers, shared region, rings. pvrdma_abi_cmd.h has the
 * commands. docs/abi.rst is the specification.
 *
 * Guest driver, libibverbs provider and device share this header. Work requests,
 * completions, doorbell bits and uverbs payloads are those of the kernel's uapi header
 * rdma/vmw_pvrdma-abi.h.
 *
 * Rules of the interface
 *  - All integers are little-endian, except fields of type __be32 and __be64, and GIDs.
 *    Structs between provider and driver have the byte order of the CPU.
 *  - A page is 4096 bytes. The DMA address of a page is a multiple of 4096.
 *  - The guest writes "driver" fields, and the device copies them once. Only the device
 *    writes "device" fields.
 *  - Reserved fields are written as zero. The device ignores them unless an extension in
 *    effect gives them a meaning.
 *
 * The layouts are those of VMware's device at version 20, so stock drivers work. An
 * extension is in effect only if both sides agree on it.
 */
#ifndef PVRDMA_ABI_H
#define PVRDMA_ABI_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>
#else
#include <stddef.h>
#include <linux/types.h>
#endif
#include <rdma/vmw_pvrdma-abi.h>

/* The compiler checks each layout that this header declares. */
#if defined(__cplusplus) || defined(__KERNEL__)
#define PVR_ABI_ASSERT(cond, what) static_assert(cond, what)
#else
#define PVR_ABI_ASSERT(cond, what) _Static_assert(cond, what)
#endif
#define PVR_ABI_SIZE(type, size) PVR_ABI_ASSERT(sizeof(struct type) == (size), "size of " #type)
#define PVR_ABI_FIELD(type, field, offset, size)                            \
	PVR_ABI_ASSERT(offsetof(struct type, field) == (offset) &&          \
			       sizeof(((struct type *)0)->field) == (size), \
		       #type "." #field)

/* ------------------------------------------------------------------ PCI */

#define PVR_PCI_VENDOR_ID 0x15ad
#define PVR_PCI_DEVICE_ID 0x0820
#define PVR_PCI_CLASS 0x0280 /* network controller, other */

#define PVR_PAGE_SHIFT 12
#define PVR_PAGE_SIZE 4096

enum pvr_bar {
	PVR_BAR_MSIX = 0, /* MSI-X table and pending bits */
	PVR_BAR_REGS = 1, /* registers, 32-bit accesses */
	PVR_BAR_UAR = 2, /* doorbell pages, one per context */
};

#define PVR_BAR_MSIX_SIZE 0x4000
#define PVR_MSIX_TABLE_OFFSET 0x0000
#define PVR_MSIX_PBA_OFFSET 0x2000
#define PVR_BAR_REGS_SIZE 0x1000

enum pvr_vector {
	PVR_VEC_CMD = 0, /* a command's response is in the response slot */
	PVR_VEC_ASYNC = 1, /* the async event ring is not empty */
	PVR_VEC_CQ = 2, /* the CQ notification ring is not empty */
	PVR_VEC_NUM = 3, /* vectors that stock drivers use */
};

/*
 * PVR_EXT_CQ_VECTORS: completion vector n, below EXT_CQ_VECTORS, raises PVR_VEC_CQ + n.
 * Each has a notification ring. That of vector 0 is pvr_dsr.cq_ring.
 */
#define PVR_CQ_VECTORS_MAX 64
#define PVR_VEC_MAX (PVR_VEC_CQ + PVR_CQ_VECTORS_MAX)

/* ------------------------------------------------------------ registers */

enum pvr_reg {
	PVR_REG_VERSION = 0x00, /* R: enum pvr_version */
	PVR_REG_DSRLOW = 0x04, /* W: low half of the DSR's DMA address */
	PVR_REG_DSRHIGH = 0x08, /* W: high half; the device then loads the DSR */
	PVR_REG_CTL = 0x0c, /* W: enum pvr_ctl */
	PVR_REG_REQUEST = 0x10, /* W: 0 runs the command in the command slot */
	PVR_REG_ERR = 0x14, /* R: 0 if the last DSRHIGH, CTL or REQUEST succeeded, else errno */
	/* Bit n is for vector n; bit PVR_ICR_LAST for that one and all behind it. */
	PVR_REG_ICR = 0x18, /* R: interrupt cause; reading clears it */
	PVR_REG_IMR = 0x1c, /* RW: interrupt mask, 0 = all enabled */
	PVR_REG_MACL = 0x20, /* R: MAC bytes 0..3, byte 0 lowest */
	PVR_REG_MACH = 0x24, /* R: MAC bytes 4..5, byte 4 lowest */
	PVR_REG_EXT_MAGIC = 0x28, /* R: PVR_EXT_MAGIC; otherwise no extensions */
	PVR_REG_EXT_FEATURES = 0x2c, /* R: PVR_EXT_* that the device offers */
	PVR_REG_EXT_ACK = 0x30, /* RW: PVR_EXT_* that the driver acknowledges */
	PVR_REG_EXT_CQ_VECTORS = 0x34, /* R: completion vectors; 0 without PVR_EXT_CQ_VECTORS */
	PVR_REG_EXT_CLOCK_LOW = 0x38, /* R: clock, low half; 0 without PVR_EXT_CQ_TIMESTAMP */
	PVR_REG_EXT_CLOCK_HIGH = 0x3c, /* R: high half at the last read of the low one */
};

enum pvr_version {
	PVR_VERSION_ROCEV1 = 17,
	PVR_VERSION_ROCEV2 = 18, /* max_sge_rd, max_fast_reg_page_list_len are valid */
	PVR_VERSION_PPN64 = 19, /* UAR page frame numbers have 64 bits */
	PVR_VERSION_QPHANDLE = 20, /* CREATE_QP returns a QP handle beside the number */
	PVR_VERSION = 20,
};

enum pvr_ctl {
	PVR_CTL_ACTIVATE = 0,
	PVR_CTL_UNQUIESCE = 1,
	PVR_CTL_RESET = 2, /* all DMA has ended when the write is complete */
};

/* Bit n of ICR and IMR stands for vector n. */
#define PVR_ICR_CMD (1u << 0)
#define PVR_ICR_ASYNC (1u << 1)
#define PVR_ICR_CQ (1u << 2)
#define PVR_ICR_LAST 31

#define PVR_IMR_ALL_ENABLED 0u
#define PVR_IMR_ALL_MASKED 0xffffffffu

/*
 * Extensions. A driver that finds PVR_EXT_MAGIC reads EXT_FEATURES and writes the subset
 * that it uses to EXT_ACK. Then it writes DSRHIGH, which latches that set. RESET clears
 * it. EXT_ACK reads back the set that the device accepted. Stock drivers access none of
 * these registers.
 */
#define PVR_EXT_MAGIC 0x31525650u /* "PVR1" */
#define PVR_EXT_NO_POLL_DB (1u << 0) /* an empty poll rings no doorbell */
#define PVR_EXT_USER_OPS (1u << 1) /* PVR_QP_USER_OPS in CREATE_QP */
#define PVR_EXT_INLINE (1u << 2) /* max_inline_data in CREATE_QP */
#define PVR_EXT_MR_LAYOUT (1u << 3) /* PVR_MR_FLAG_LAYOUT in CREATE_MR */
#define PVR_EXT_MW (1u << 4) /* PVR_MR_FLAG_MW1, _MW2; BIND_MW */
#define PVR_EXT_RESIZE (1u << 5) /* RESIZE_CQ; PVR_SRQ_MAX_WR in MODIFY_SRQ */
#define PVR_EXT_CQ_VECTORS (1u << 6) /* SET_CQ_RING, comp_vector in CREATE_CQ */
#define PVR_EXT_MCAST (1u << 7) /* ATTACH_MCAST, DETACH_MCAST */
#define PVR_EXT_STATS (1u << 8) /* QUERY_STATS */
#define PVR_EXT_LOCAL_DMA_LKEY (1u << 9) /* PVR_LOCAL_DMA_LKEY */
/* caps.max_fast_reg_page_list_len exceeds 128, the maximum of stock drivers. */
#define PVR_EXT_LONG_FAST_REG (1u << 10)
#define PVR_EXT_UC (1u << 11) /* PVR_QPT_UC in CREATE_QP */
#define PVR_EXT_DB_SUPPRESS (1u << 12) /* struct pvr_db_suppress: doorbell suppression */
#define PVR_EXT_CQ_ARM_DBREC (1u << 13) /* struct pvr_cq_arm_dbrec: CQ arm doorbell record */
/* QP_FATAL or a failed request reports to an RC QP that the guest of its peer is gone. */
#define PVR_EXT_PEER_GONE (1u << 14)
#define PVR_EXT_VLAN (1u << 15) /* vlan in CREATE_BIND, PVR_CQE_VLAN */
/* Every command stores a response, and its key (pvr_resp_hdr.response) last. */
#define PVR_EXT_RESP_POLL (1u << 16)
#define PVR_EXT_SUM_STATS (1u << 17) /* SUM_STATS */
#define PVR_EXT_ATOMIC_WRITE (1u << 18) /* PVR_WR_ATOMIC_WRITE */
#define PVR_EXT_FLUSH (1u << 19) /* PVR_WR_FLUSH; PVR_ACCESS_FLUSH_GLOBAL */
#define PVR_EXT_CQ_MODERATION (1u << 20) /* MODIFY_CQ */
#define PVR_EXT_CQ_TIMESTAMP (1u << 21) /* PVR_CQ_TIMESTAMP in CREATE_CQ; EXT_CLOCK_* */
#define PVR_EXT_XRC (1u << 22) /* XRC domains, queue pairs and SRQs; PVR_CQE_XRC */
#define PVR_EXT_ON_DEMAND (1u << 23) /* PVR_MR_FLAG_ON_DEMAND, SET_PAGES, QUERY_FAULT */
#define PVR_EXT_FLUSH_PERSISTENT (1u << 24) /* PVR_ACCESS_FLUSH_PERSISTENT */
#define PVR_EXT_ALL ((1u << 25) - 1)

/*
 * Provider <-> driver: the provider appends this to GET_CONTEXT. The driver returns the
 * extensions in effect in pvrdma_alloc_ucontext_resp.reserved. A stock driver ignores the
 * request and returns zero. A stock provider sends no request.
 */
#define PVR_UCTX_MAGIC 0x55525650u /* "PVRU" */
struct pvr_alloc_ucontext {
	__u32 magic; /* PVR_UCTX_MAGIC */
	__u32 features; /* PVR_EXT_* that the provider can use */
};
PVR_ABI_SIZE(pvr_alloc_ucontext, 8);
PVR_ABI_FIELD(pvr_alloc_ucontext, features, 4, 4);

/*
 * Provider <-> driver: a method that the driver adds to the DM objects of uverbs. It
 * returns the length of a DM, and the offset of the device file that maps it. The driver
 * owns device memory. The device sees regions of ordinary pages.
 */
#define PVR_UVERBS_NS 0x1000 /* first number of drivers */
enum pvr_uverbs_method_dm {
	PVR_METHOD_DM_QUERY = PVR_UVERBS_NS,
};
enum pvr_uverbs_attr_dm_query {
	PVR_ATTR_DM_QUERY_HANDLE = PVR_UVERBS_NS, /* in: the DM */
	PVR_ATTR_DM_QUERY_RESP, /* out: struct pvr_dm_query_resp */
};
struct pvr_dm_query_resp {
	__aligned_u64 length; /* bytes */
	__aligned_u64 mmap_offset; /* of the mapping; its size is length, rounded up to pages */
};
PVR_ABI_SIZE(pvr_dm_query_resp, 16);
PVR_ABI_FIELD(pvr_dm_query_resp, mmap_offset, 8, 8);

/*
 * Provider <-> driver: another process can import a device file with its context and PDs.
 * These return the responses of GET_CONTEXT and ALLOC_PD again. A stock driver has
 * neither, and no UVERBS_METHOD_QUERY_CONTEXT.
 */
enum pvr_uverbs_attr_query_context {
	/* out: struct pvrdma_alloc_ucontext_resp, with the extensions in effect */
	PVR_ATTR_QUERY_CONTEXT_RESP = PVR_UVERBS_NS,
};
enum pvr_uverbs_method_pd {
	PVR_METHOD_PD_QUERY = PVR_UVERBS_NS,
};
enum pvr_uverbs_attr_pd_query {
	PVR_ATTR_PD_QUERY_HANDLE = PVR_UVERBS_NS, /* in: the PD */
	PVR_ATTR_PD_QUERY_RESP, /* out: struct pvrdma_alloc_pd_resp */
};
/*
 * Provider <-> driver, PVR_EXT_CQ_TIMESTAMP: reads the clock of the device and CLOCK_REALTIME of
 * the guest at the same time.
 */
enum pvr_uverbs_method_device {
	PVR_METHOD_CLOCK_QUERY = PVR_UVERBS_NS,
};
enum pvr_uverbs_attr_clock_query {
	PVR_ATTR_CLOCK_QUERY_RESP = PVR_UVERBS_NS, /* out: struct pvr_clock_query_resp */
};
struct pvr_clock_query_resp {
	__aligned_u64 clock; /* EXT_CLOCK_*, all 64 bits */
	__aligned_u64 wallclock_ns;
};
PVR_ABI_SIZE(pvr_clock_query_resp, 16);
PVR_ABI_FIELD(pvr_clock_query_resp, wallclock_ns, 8, 8);
PVR_ABI_SIZE(pvrdma_alloc_ucontext_resp, 8);
PVR_ABI_FIELD(pvrdma_alloc_ucontext_resp, reserved, 4, 4);
PVR_ABI_SIZE(pvrdma_alloc_pd_resp, 8);

/* -------------------------------------------------- device shared region */

enum pvr_gos_bits {
	PVR_GOS_BITS_UNKNOWN = 0,
	PVR_GOS_BITS_32 = 1,
	PVR_GOS_BITS_64 = 2,
};

#define PVR_GOS_TYPE_LINUX 1u
#define PVR_GOS_INFO(bits, type, ver) ((__u32)(bits) | (__u32)(type) << 2 | (__u32)(ver) << 6)

enum pvr_device_mode {
	PVR_MODE_ROCE = 0,
	PVR_MODE_IWARP = 1,
	PVR_MODE_IB = 2,
};

/* pvr_caps.gid_types, exactly one bit; pvr_cmd_create_bind.gid_type */
#define PVR_GID_TYPE_ROCE_V1 (1u << 0)
#define PVR_GID_TYPE_ROCE_V2 (1u << 1)

/* pvr_caps.atomic_ops */
#define PVR_ATOMIC_CMP_SWAP (1u << 0)
#define PVR_ATOMIC_FETCH_ADD (1u << 1)
#define PVR_ATOMIC_MASKED_CMP_SWAP (1u << 2)
#define PVR_ATOMIC_MASKED_FETCH_ADD (1u << 3)

/* pvr_caps.bmme_flags */
#define PVR_BMME_LOCAL_INV (1u << 0)
#define PVR_BMME_REMOTE_INV (1u << 1)
#define PVR_BMME_FAST_REG_WR (1u << 2)

/* Capabilities. Device; filled at DSRHIGH, constant until the next DSRHIGH. */
struct pvr_caps {
	__aligned_le64 fw_ver;
	__be64 node_guid; /* EUI-64 */
	__be64 sys_image_guid;
	__aligned_le64 max_mr_size; /* bytes */
	__aligned_le64 page_size_cap;
	__aligned_le64 atomic_arg_sizes;
	__le32 ex_comp_mask;
	__le32 device_cap_flags2;
	__le32 max_fa_bit_boundary;
	__le32 log_max_atomic_inline_arg;
	__le32 vendor_id;
	__le32 vendor_part_id;
	__le32 hw_ver;
	__le32 max_qp; /* also the bound of QP handles; <= 65535 */
	__le32 max_qp_wr;
	__le32 device_cap_flags; /* IB_DEVICE_* */
	__le32 max_sge;
	__le32 max_sge_rd;
	__le32 max_cq; /* also the bound of CQ handles */
	__le32 max_cqe;
	__le32 max_mr;
	__le32 max_pd;
	__le32 max_qp_rd_atom;
	__le32 max_ee_rd_atom;
	__le32 max_res_rd_atom;
	__le32 max_qp_init_rd_atom;
	__le32 max_ee_init_rd_atom;
	__le32 max_ee;
	__le32 max_rdd;
	__le32 max_mw;
	__le32 max_raw_ipv6_qp;
	__le32 max_raw_ethy_qp;
	__le32 max_mcast_grp;
	__le32 max_mcast_qp_attach;
	__le32 max_total_mcast_qp_attach;
	__le32 max_ah;
	__le32 max_fmr;
	__le32 max_map_per_fmr;
	__le32 max_srq; /* 0: no SRQ; also the bound of SRQ handles */
	__le32 max_srq_wr;
	__le32 max_srq_sge;
	__le32 max_uar; /* a power of two, <= pages of the UAR BAR */
	__le32 gid_tbl_len; /* >= pvr_port_attr.gid_tbl_len */
	__le16 max_pkeys;
	__u8 local_ca_ack_delay;
	__u8 phys_port_cnt;
	__u8 mode; /* enum pvr_device_mode */
	__u8 atomic_ops; /* PVR_ATOMIC_* */
	__u8 bmme_flags; /* PVR_BMME_* */
	__u8 gid_types; /* PVR_GID_TYPE_* */
	__le32 max_fast_reg_page_list_len;
};
PVR_ABI_SIZE(pvr_caps, 208);
PVR_ABI_FIELD(pvr_caps, fw_ver, 0, 8);
PVR_ABI_FIELD(pvr_caps, node_guid, 8, 8);
PVR_ABI_FIELD(pvr_caps, sys_image_guid, 16, 8);
PVR_ABI_FIELD(pvr_caps, max_mr_size, 24, 8);
PVR_ABI_FIELD(pvr_caps, page_size_cap, 32, 8);
PVR_ABI_FIELD(pvr_caps, atomic_arg_sizes, 40, 8);
PVR_ABI_FIELD(pvr_caps, ex_comp_mask, 48, 4);
PVR_ABI_FIELD(pvr_caps, device_cap_flags2, 52, 4);
PVR_ABI_FIELD(pvr_caps, max_fa_bit_boundary, 56, 4);
PVR_ABI_FIELD(pvr_caps, log_max_atomic_inline_arg, 60, 4);
PVR_ABI_FIELD(pvr_caps, vendor_id, 64, 4);
PVR_ABI_FIELD(pvr_caps, vendor_part_id, 68, 4);
PVR_ABI_FIELD(pvr_caps, hw_ver, 72, 4);
PVR_ABI_FIELD(pvr_caps, max_qp, 76, 4);
PVR_ABI_FIELD(pvr_caps, max_qp_wr, 80, 4);
PVR_ABI_FIELD(pvr_caps, device_cap_flags, 84, 4);
PVR_ABI_FIELD(pvr_caps, max_sge, 88, 4);
PVR_ABI_FIELD(pvr_caps, max_sge_rd, 92, 4);
PVR_ABI_FIELD(pvr_caps, max_cq, 96, 4);
PVR_ABI_FIELD(pvr_caps, max_cqe, 100, 4);
PVR_ABI_FIELD(pvr_caps, max_mr, 104, 4);
PVR_ABI_FIELD(pvr_caps, max_pd, 108, 4);
PVR_ABI_FIELD(pvr_caps, max_qp_rd_atom, 112, 4);
PVR_ABI_FIELD(pvr_caps, max_ee_rd_atom, 116, 4);
PVR_ABI_FIELD(pvr_caps, max_res_rd_atom, 120, 4);
PVR_ABI_FIELD(pvr_caps, max_qp_init_rd_atom, 124, 4);
PVR_ABI_FIELD(pvr_caps, max_ee_init_rd_atom, 128, 4);
PVR_ABI_FIELD(pvr_caps, max_ee, 132, 4);
PVR_ABI_FIELD(pvr_caps, max_rdd, 136, 4);
PVR_ABI_FIELD(pvr_caps, max_mw, 140, 4);
PVR_ABI_FIELD(pvr_caps, max_raw_ipv6_qp, 144, 4);
PVR_ABI_FIELD(pvr_caps, max_raw_ethy_qp, 148, 4);
PVR_ABI_FIELD(pvr_caps, max_mcast_grp, 152, 4);
PVR_ABI_FIELD(pvr_caps, max_mcast_qp_attach, 156, 4);
PVR_ABI_FIELD(pvr_caps, max_total_mcast_qp_attach, 160, 4);
PVR_ABI_FIELD(pvr_caps, max_ah, 164, 4);
PVR_ABI_FIELD(pvr_caps, max_fmr, 168, 4);
PVR_ABI_FIELD(pvr_caps, max_map_per_fmr, 172, 4);
PVR_ABI_FIELD(pvr_caps, max_srq, 176, 4);
PVR_ABI_FIELD(pvr_caps, max_srq_wr, 180, 4);
PVR_ABI_FIELD(pvr_caps, max_srq_sge, 184, 4);
PVR_ABI_FIELD(pvr_caps, max_uar, 188, 4);
PVR_ABI_FIELD(pvr_caps, gid_tbl_len, 192, 4);
PVR_ABI_FIELD(pvr_caps, max_pkeys, 196, 2);
PVR_ABI_FIELD(pvr_caps, local_ca_ack_delay, 198, 1);
PVR_ABI_FIELD(pvr_caps, phys_port_cnt, 199, 1);
PVR_ABI_FIELD(pvr_caps, mode, 200, 1);
PVR_ABI_FIELD(pvr_caps, atomic_ops, 201, 1);
PVR_ABI_FIELD(pvr_caps, bmme_flags, 202, 1);
PVR_ABI_FIELD(pvr_caps, gid_types, 203, 1);
PVR_ABI_FIELD(pvr_caps, max_fast_reg_page_list_len, 204, 4);

/* A device-wide ring. Driver. num_pages includes the header page. */
struct pvr_ring_pages {
	__le32 num_pages;
	__le32 reserved;
	__aligned_le64 pdir_dma; /* page directory, see "Page directories" */
};
PVR_ABI_SIZE(pvr_ring_pages, 16);
PVR_ABI_FIELD(pvr_ring_pages, num_pages, 0, 4);
PVR_ABI_FIELD(pvr_ring_pages, pdir_dma, 8, 8);

/* Device shared region: the first bytes of a zeroed page. */
struct pvr_dsr {
	__le32 driver_version; /* driver: enum pvr_version */
	__le32 pad;
	__le32 gos_info; /* driver: PVR_GOS_INFO() */
	__le32 gos_pad;
	__aligned_le64 cmd_slot_dma; /* driver: a page */
	__aligned_le64 resp_slot_dma; /* driver: a page */
	struct pvr_ring_pages async_ring; /* driver: pvr_eqe elements */
	struct pvr_ring_pages cq_ring; /* driver: pvr_cqne elements */
	__aligned_le64 uar_pfn; /* driver: page 0 of BAR2; 32 bits if version < 19 */
	struct pvr_caps caps; /* device */
};
PVR_ABI_SIZE(pvr_dsr, 280);
PVR_ABI_FIELD(pvr_dsr, driver_version, 0, 4);
PVR_ABI_FIELD(pvr_dsr, gos_info, 8, 4);
PVR_ABI_FIELD(pvr_dsr, cmd_slot_dma, 16, 8);
PVR_ABI_FIELD(pvr_dsr, resp_slot_dma, 24, 8);
PVR_ABI_FIELD(pvr_dsr, async_ring, 32, 16);
PVR_ABI_FIELD(pvr_dsr, cq_ring, 48, 16);
PVR_ABI_FIELD(pvr_dsr, uar_pfn, 64, 8);
PVR_ABI_FIELD(pvr_dsr, caps, 72, 208);

/* ------------------------------------------------------ page directories */

/*
 * A directory page holds up to 512 addresses of table pages, a table page up to
 * 512 addresses of data pages. Page n is entry n % 512 of table n / 512.
 */
#define PVR_PDIR_ENTRIES 512
#define PVR_PDIR_MAX_PAGES (PVR_PDIR_ENTRIES * PVR_PDIR_ENTRIES)

/* PVR_EXT_MR_LAYOUT: of three levels, the first page holds addresses of directory pages. */
#define PVR_PDIR3_MAX_PAGES (PVR_PDIR_MAX_PAGES * PVR_PDIR_ENTRIES)

/* ---------------------------------------------------------------- rings */

/*
 * A ring has N elements, a power of two. Indices run from 0 to 2N - 1. The slot is
 * index % N. The ring is empty if both are equal, and full if they differ by N.
 */
struct pvr_ring {
	__le32 prod_tail; /* producer: next free slot */
	__le32 cons_head; /* consumer: next slot to read */
};
PVR_ABI_SIZE(pvr_ring, 8);
PVR_ABI_FIELD(pvr_ring, prod_tail, 0, 4);
PVR_ABI_FIELD(pvr_ring, cons_head, 4, 4);

/* At offset 0 of the first page of every QP, CQ, SRQ and device-wide ring. */
struct pvr_ring_state {
	struct pvr_ring tx; /* send queue: driver produces */
	struct pvr_ring rx; /* RQ, SRQ: driver produces; CQ, events: device */
};
PVR_ABI_SIZE(pvr_ring_state, 16);
PVR_ABI_FIELD(pvr_ring_state, tx, 0, 8);
PVR_ABI_FIELD(pvr_ring_state, rx, 8, 8);

/*
 * PVR_EXT_DB_SUPPRESS, doorbell suppression: at PVR_DB_SUPPRESS_OFFSET of the first page of
 * every QP and SRQ. Only the device writes it. Both words are 0 when the object is made.
 * While a word is not 0 its queue needs no doorbell.
 *
 *	driver posts			device stops polling
 *	store-release prod_tail		store-release word = 0
 *	full barrier			full barrier
 *	load word; 0: ring		load prod_tail; new requests: go on
 *
 * One side always sees the other. A release alone does not order the store before the load.
 *
 * The device stores 0 in sq after the cons_head of all requests that it has taken. If a
 * driver loads 0, and then a cons_head that has not passed the requests that it rang for,
 * the doorbell is still on its way. The driver need not ring again.
 */
#define PVR_DB_SUPPRESS_OFFSET 64
struct pvr_db_suppress {
	__le32 sq; /* send queue: not 0 while the device polls prod_tail */
	__le32 rq; /* receive queue or SRQ: 0 while a requester waits for a receive request */
};
PVR_ABI_SIZE(pvr_db_suppress, 8);
PVR_ABI_FIELD(pvr_db_suppress, sq, 0, 4);
PVR_ABI_FIELD(pvr_db_suppress, rq, 4, 4);

/*
 * PVR_EXT_CQ_ARM_DBREC, CQ arm doorbell record: at PVR_CQ_ARM_DBREC_OFFSET of the first page
 * of every CQ.
 *
 * Only the guest writes the first word. It is 0 when the CQ is made, and in the new ring of
 * RESIZE_CQ. It is a counter in steps of PVR_CQ_ARM_STEP, with the kind in the bits below.
 * Each value that the device has not acted on arms the CQ once. The doorbell arms as well.
 *
 * Only the device writes the second word. It is not 0 only while the guest was notified of
 * all completions up to prod_tail. A device that always leaves 0 is correct.
 *
 *	guest arms				device completes
 *	store the first word			second word = 0
 *	full barrier				store-release prod_tail
 *	load-acquire prod_tail			full barrier
 *	unread completions, and the		load the first word; new: armed
 *	second word is 0: ring			armed: disarm, notify, second word = 1
 */
#define PVR_CQ_ARM_DBREC_OFFSET 64
#define PVR_CQ_ARM_SOLICITED 1u
#define PVR_CQ_ARM_ANY 2u
#define PVR_CQ_ARM_KIND 3u /* mask */
#define PVR_CQ_ARM_STEP 4u
struct pvr_cq_arm_dbrec {
	__le32 arm;
	__le32 notified; /* device */
};
PVR_ABI_SIZE(pvr_cq_arm_dbrec, 8);
PVR_ABI_FIELD(pvr_cq_arm_dbrec, arm, 0, 4);
PVR_ABI_FIELD(pvr_cq_arm_dbrec, notified, 4, 4);

/*
 * Elements of the device-wide rings; num_pages does not change them. Stock drivers apply the
 * arithmetic of powers of two to 1536 and 3072 entries, and so use one page of each.
 * Indices wrap at twice these numbers.
 */
#define PVR_EQE_SLOTS 512
#define PVR_CQNE_SLOTS 1024

/* Async event. Device. */
struct pvr_eqe {
	__le32 type; /* enum pvr_eqe_type */
	__le32 info; /* handle or port, by type */
};
PVR_ABI_SIZE(pvr_eqe, 8);
PVR_ABI_FIELD(pvr_eqe, type, 0, 4);
PVR_ABI_FIELD(pvr_eqe, info, 4, 4);

enum pvr_eqe_type {
	PVR_EVENT_CQ_ERR, /* info: CQ handle */
	PVR_EVENT_QP_FATAL, /* info: QP handle, as of the next six */
	PVR_EVENT_QP_REQ_ERR,
	PVR_EVENT_QP_ACCESS_ERR,
	PVR_EVENT_COMM_EST,
	PVR_EVENT_SQ_DRAINED,
	PVR_EVENT_PATH_MIG,
	PVR_EVENT_PATH_MIG_ERR,
	PVR_EVENT_DEVICE_FATAL, /* info: ignored */
	PVR_EVENT_PORT_ACTIVE, /* info: port, as of the next four */
	PVR_EVENT_PORT_ERR,
	PVR_EVENT_LID_CHANGE,
	PVR_EVENT_PKEY_CHANGE,
	PVR_EVENT_SM_CHANGE,
	PVR_EVENT_SRQ_ERR, /* info: SRQ handle */
	PVR_EVENT_SRQ_LIMIT_REACHED, /* info: SRQ handle */
	PVR_EVENT_QP_LAST_WQE_REACHED, /* info: QP handle */
	PVR_EVENT_CLIENT_REREGISTER, /* info: port */
	PVR_EVENT_GID_CHANGE, /* info: port */
	PVR_EVENT_PAGE_FAULT, /* info: MR handle; PVR_EXT_ON_DEMAND */
	PVR_EVENT_NUM,
};

/* CQ notification. Device. */
struct pvr_cqne {
	__le32 cq_handle;
};
PVR_ABI_SIZE(pvr_cqne, 4);

/* Work requests and completions of the uapi header. */
PVR_ABI_SIZE(pvrdma_sge, 16);
PVR_ABI_FIELD(pvrdma_sge, addr, 0, 8);
PVR_ABI_FIELD(pvrdma_sge, length, 8, 4);
PVR_ABI_FIELD(pvrdma_sge, lkey, 12, 4);
PVR_ABI_SIZE(pvrdma_rq_wqe_hdr, 16);
PVR_ABI_FIELD(pvrdma_rq_wqe_hdr, wr_id, 0, 8);
PVR_ABI_FIELD(pvrdma_rq_wqe_hdr, num_sge, 8, 4);
PVR_ABI_SIZE(pvrdma_sq_wqe_hdr, 80);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr_id, 0, 8);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, num_sge, 8, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, opcode, 16, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, send_flags, 20, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, ex.imm_data, 24, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.rdma.remote_addr, 32, 8);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.rdma.rkey, 40, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.atomic.compare_add, 40, 8);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.atomic.swap, 48, 8);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.atomic.rkey, 56, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.masked_atomics.log_arg_sz, 40, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.masked_atomics.rkey, 44, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.masked_atomics.wr_data, 48, 32);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.fast_reg.pl_pdir_dma, 40, 8);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.fast_reg.page_shift, 48, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.fast_reg.page_list_len, 52, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.fast_reg.length, 56, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.fast_reg.access_flags, 60, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.fast_reg.rkey, 64, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.ud.remote_qpn, 32, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.ud.remote_qkey, 36, 4);
PVR_ABI_FIELD(pvrdma_sq_wqe_hdr, wr.ud.av, 40, 40);
PVR_ABI_SIZE(pvrdma_av, 40);
PVR_ABI_FIELD(pvrdma_av, port_pd, 0, 4);
PVR_ABI_FIELD(pvrdma_av, sl_tclass_flowlabel, 4, 4);
PVR_ABI_FIELD(pvrdma_av, dgid, 8, 16);
PVR_ABI_FIELD(pvrdma_av, src_path_bits, 24, 1);
PVR_ABI_FIELD(pvrdma_av, gid_index, 25, 1);
PVR_ABI_FIELD(pvrdma_av, hop_limit, 27, 1);
PVR_ABI_FIELD(pvrdma_av, dmac, 28, 6);
PVR_ABI_SIZE(pvrdma_cqe, 64);
PVR_ABI_FIELD(pvrdma_cqe, wr_id, 0, 8);
PVR_ABI_FIELD(pvrdma_cqe, qp, 8, 8);
PVR_ABI_FIELD(pvrdma_cqe, opcode, 16, 4);
PVR_ABI_FIELD(pvrdma_cqe, status, 20, 4);
PVR_ABI_FIELD(pvrdma_cqe, byte_len, 24, 4);
PVR_ABI_FIELD(pvrdma_cqe, imm_data, 28, 4);
PVR_ABI_FIELD(pvrdma_cqe, src_qp, 32, 4);
PVR_ABI_FIELD(pvrdma_cqe, wc_flags, 36, 4);
PVR_ABI_FIELD(pvrdma_cqe, vendor_err, 40, 4);
PVR_ABI_FIELD(pvrdma_cqe, pkey_index, 44, 2);
PVR_ABI_FIELD(pvrdma_cqe, slid, 46, 2);
PVR_ABI_FIELD(pvrdma_cqe, sl, 48, 1);
PVR_ABI_FIELD(pvrdma_cqe, port_num, 50, 1);
PVR_ABI_FIELD(pvrdma_cqe, smac, 51, 6);
PVR_ABI_FIELD(pvrdma_cqe, network_hdr_type, 57, 1);
PVR_ABI_FIELD(pvrdma_cqe, reserved2, 58, 6);

/*
 * PVR_EXT_VLAN: a completion of QP1, received at a GID that is bound with a VLAN, has
 * PVRDMA_WC_WITH_VLAN, and the VLAN ID at this offset of reserved2.
 */
#define PVR_CQE_VLAN 0 /* __le16 */

/*
 * PVR_EXT_XRC: a completion of a receive request of an XRC SRQ has PVR_CQE_XRC plus the
 * number of the SRQ in the high half of qp. The low half is the number, not the handle, of
 * the queue pair: a program may have the SRQ but not the queue pair.
 */
#define PVR_CQE_XRC (1u << 31)

/*
 * PVR_EXT_CQ_TIMESTAMP: the completions of a CQ with PVR_CQ_TIMESTAMP have the low
 * PVR_TIMESTAMP_BITS of the device's clock in reserved2, little-endian, and never
 * PVRDMA_WC_WITH_VLAN. The clock counts from an arbitrary start and never goes back.
 */
#define PVR_TIMESTAMP_BITS 48
#define PVR_CLOCK_KHZ 1000000u

/* pvrdma_sq_wqe_hdr.send_flags; numbers of ib_send_flags */
#define PVR_SEND_FENCE (1u << 0)
#define PVR_SEND_SIGNALED (1u << 1)
#define PVR_SEND_SOLICITED (1u << 2)
#define PVR_SEND_INLINE (1u << 3)
#define PVR_SEND_IP_CSUM (1u << 4)

/*
 * The stride of a queue is the size of its header and max_sge scatter/gather entries,
 * rounded up to a power of two, and at least this. No element crosses a page.
 */
#define PVR_SQ_STRIDE_MIN 128
#define PVR_RQ_STRIDE_MIN 32

/*
 * PVR_EXT_INLINE: with PVR_SEND_INLINE num_sge is 0, and total_len bytes of data follow the
 * header in the place of scatter/gather entries. The send stride then has room for the
 * larger of the two.
 */
#define PVR_MAX_INLINE 944 /* bytes; the stride is 1024 */

/*
 * Opcodes of send requests that the uapi header lacks, and those of their CQEs. The
 * requests have no data: their operands are in the place of pvrdma_sq_wqe_hdr.wr.
 */
#define PVR_WR_ATOMIC_WRITE 17u /* PVR_EXT_ATOMIC_WRITE: struct pvr_wqe_atomic_write */
#define PVR_WR_FLUSH 18u /* PVR_EXT_FLUSH: struct pvr_wqe_flush */
#define PVR_WC_ATOMIC_WRITE 11u
#define PVR_WC_FLUSH 12u

/* pvr_cmd_create_mr.access_flags, pvr_qp_attr.qp_access_flags (ib_access_flags) */
#define PVR_ACCESS_LOCAL_WRITE (1u << 0)
#define PVR_ACCESS_REMOTE_WRITE (1u << 1)
#define PVR_ACCESS_REMOTE_READ (1u << 2)
#define PVR_ACCESS_REMOTE_ATOMIC (1u << 3)
#define PVR_ACCESS_MW_BIND (1u << 4)
#define PVR_ACCESS_ZERO_BASED (1u << 5)
#define PVR_ACCESS_ON_DEMAND (1u << 6)
#define PVR_ACCESS_FLUSH_GLOBAL (1u << 8) /* PVR_EXT_FLUSH */
#define PVR_ACCESS_FLUSH_PERSISTENT (1u << 9) /* PVR_EXT_FLUSH_PERSISTENT */
#define PVR_ACCESS_OPTIONAL 0x3ff00000u /* hints; ignored */

/*
 * PVR_EXT_LOCAL_DMA_LKEY: an lkey of all bus addresses, for local access by QPs and SRQs
 * of the driver's own context.
 */
#define PVR_LOCAL_DMA_LKEY 0x000000ffu

/*
 * PVR_EXT_MW: BIND_MW (IBTA 10.6.7.2 and 11.4.1.1) has this in the place of
 * pvrdma_sq_wqe_hdr.wr. A length of 0 unbinds a window of type 1.
 */
struct pvr_wqe_bind_mw {
	__aligned_le64 addr; /* of the first byte, as the region names it */
	__aligned_le64 length;
	__le32 mw_rkey; /* present rkey of the window; of type 2 the low byte is ignored */
	__le32 new_rkey; /* differs from it in the low byte only */
	__le32 mr_lkey;
	__le32 access_flags; /* PVR_ACCESS_REMOTE_*, PVR_ACCESS_ZERO_BASED */
};
PVR_ABI_SIZE(pvr_wqe_bind_mw, 32);
PVR_ABI_FIELD(pvr_wqe_bind_mw, length, 8, 8);
PVR_ABI_FIELD(pvr_wqe_bind_mw, mw_rkey, 16, 4);
PVR_ABI_FIELD(pvr_wqe_bind_mw, new_rkey, 20, 4);
PVR_ABI_FIELD(pvr_wqe_bind_mw, mr_lkey, 24, 4);
PVR_ABI_FIELD(pvr_wqe_bind_mw, access_flags, 28, 4);

/* ATOMIC WRITE (IBTA annex A19): one store of 8 bytes. Needs PVR_ACCESS_REMOTE_WRITE. */
struct pvr_wqe_atomic_write {
	__aligned_le64 addr; /* remote; a multiple of 8 */
	__le32 rkey;
	__le32 reserved;
	__aligned_le64 value;
};
PVR_ABI_SIZE(pvr_wqe_atomic_write, 24);
PVR_ABI_FIELD(pvr_wqe_atomic_write, rkey, 8, 4);
PVR_ABI_FIELD(pvr_wqe_atomic_write, value, 16, 8);

/*
 * FLUSH (IBTA annex A19): when it completes, the earlier writes of this QP to the range
 * have the placement.
 */
struct pvr_wqe_flush {
	__aligned_le64 addr; /* remote; ignored with PVR_FLUSH_MR */
	__aligned_le64 length; /* bytes; ignored with PVR_FLUSH_MR */
	__le32 rkey;
	__u8 placement; /* PVR_FLUSH_*, at least one bit */
	__u8 level; /* enum pvr_flush_level */
	__le16 reserved;
};
PVR_ABI_SIZE(pvr_wqe_flush, 24);
PVR_ABI_FIELD(pvr_wqe_flush, length, 8, 8);
PVR_ABI_FIELD(pvr_wqe_flush, rkey, 16, 4);
PVR_ABI_FIELD(pvr_wqe_flush, placement, 20, 1);
PVR_ABI_FIELD(pvr_wqe_flush, level, 21, 1);

#define PVR_FLUSH_GLOBAL 1u /* all CPUs and devices of the responder's guest see the data */
#define PVR_FLUSH_PERSISTENT 2u /* needs PVR_ACCESS_FLUSH_PERSISTENT */

enum pvr_flush_level {
	PVR_FLUSH_RANGE, /* addr and length */
	PVR_FLUSH_MR, /* the whole region or window */
};

/* pvrdma_av.src_path_bits */
#define PVR_AV_GRH 0x80u
/* pvrdma_av.port_pd */
#define PVR_AV_PD_MASK 0x00ffffffu

/*
 * Doorbells: 32-bit writes to a UAR page, with a handle in bits 0 to 23 and flags above.
 * The uapi header has the same bits as signed values, where (1 << 31) overflows.
 */
#define PVR_DB_QP_SEND (1u << 30)
#define PVR_DB_QP_RECV (1u << 31)
#define PVR_DB_CQ_ARM_SOL (1u << 29)
#define PVR_DB_CQ_ARM (1u << 30)
#define PVR_DB_CQ_POLL (1u << 31)
#define PVR_DB_SRQ_RECV (1u << 30)

#endif /* PVRDMA_ABI_H */
