// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The ib_core half: registration, device attributes, and helpers of all verbs. */
#include <linux/dma-mapping.h>
#include <net/addrconf.h>
#include <rdma/ib_umem.h>

#include <rdma/ib_umem_odp.h>

#include "pvrdma.h"

/* Flags that need no support from the driver. */
#define KNOWN_CAP_FLAGS                                               \
	(IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR |          \
	 IB_DEVICE_UD_AV_PORT_ENFORCE | IB_DEVICE_CURR_QP_STATE_MOD | \
	 IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_N_NOTIFY_CQ)

#define BMME_ALL \
	(PVR_BMME_LOCAL_INV | PVR_BMME_REMOTE_INV | PVR_BMME_FAST_REG_WR)

int pvr_udata_in(struct ib_udata *udata, void *dst, size_t size)
{
	if (udata->inlen < size)
		return -EINVAL;
	if (udata->inlen > size &&
	    !ib_is_udata_cleared(udata, size, udata->inlen - size))
		return -EOPNOTSUPP;
	return ib_copy_from_udata(dst, udata, size);
}

int pvr_udata_out(struct ib_udata *udata, const void *src, size_t size)
{
	return ib_copy_to_udata(udata, (void *)src, min(size, udata->outlen));
}

/* DMA by bounce buffers: of a VM with encrypted memory, or with swiotlb=force. */
static bool bounces(struct pvr_dev *dev)
{
	return dma_max_mapping_size(&dev->pdev->dev) != SIZE_MAX;
}

static struct ib_umem *refuse_bounces(struct pvr_dev *dev)
{
	if (!test_and_set_bit(PVR_DEV_BOUNCES, &dev->flags))
		dev_err(&dev->pdev->dev,
			"the device cannot access memory of programs, only bounce buffers (encrypted VM or swiotlb=force): no regions or queues of user space\n");
	return ERR_PTR(-EOPNOTSUPP);
}

struct ib_umem *pvr_umem_pin(struct pvr_dev *dev, u64 addr, u64 size,
			     int access)
{
	if (bounces(dev))
		return refuse_bounces(dev);
	return pvr_ib_umem_get(&dev->ibdev, addr, size, access);
}

struct ib_umem *pvr_umem_odp(struct pvr_dev *dev, u64 addr, u64 size,
			     int access,
			     const struct mmu_interval_notifier_ops *ops)
{
	struct ib_umem_odp *odp;

	if (bounces(dev))
		return refuse_bounces(dev);
	odp = ib_umem_odp_get(&dev->ibdev, addr, size, access, ops);
	return IS_ERR(odp) ? ERR_CAST(odp) : &odp->umem;
}

struct ib_umem *pvr_umem_odp_implicit(struct pvr_dev *dev, int access)
{
	struct ib_umem_odp *odp;

	if (bounces(dev))
		return refuse_bounces(dev);
	odp = ib_umem_odp_alloc_implicit(&dev->ibdev, access);
	return IS_ERR(odp) ? ERR_CAST(odp) : &odp->umem;
}

struct ib_umem *pvr_umem_dmabuf_pin(struct pvr_dev *dev, u64 offset, u64 size,
				    int fd, int access)
{
	struct ib_umem_dmabuf *dmabuf;

	if (bounces(dev))
		return refuse_bounces(dev);
	dmabuf = ib_umem_dmabuf_get_pinned(&dev->ibdev, offset, size, fd,
					   access);
	return IS_ERR(dmabuf) ? ERR_CAST(dmabuf) : &dmabuf->umem;
}

/* The page at @addr of pinned memory. */
static struct page *page_at(struct ib_umem *umem, unsigned long addr)
{
	const struct sg_table *pages = &umem->sgt_append.sgt;
	unsigned long begin = ALIGN_DOWN(umem->address, PAGE_SIZE);
	struct sg_page_iter iter;

	__sg_page_iter_start(&iter, pages->sgl, pages->orig_nents,
			     (addr - begin) >> PAGE_SHIFT);
	return __sg_page_iter_next(&iter) ? sg_page_iter_page(&iter) : NULL;
}

/* Other memory may have come to the address meanwhile, so the page decides. */
bool pvr_umem_is_same(struct ib_umem *old, struct ib_umem *new)
{
	unsigned long at;

	if (old->is_dmabuf || old->owning_mm != new->owning_mm)
		return false;
	at = max(ALIGN_DOWN(old->address, PAGE_SIZE), new->address);
	if (at >= old->address + old->length ||
	    at >= new->address + new->length)
		return false;
	return page_at(old, at) == page_at(new, at);
}

struct ib_umem *pvr_umem_get(struct pvr_dev *dev, u64 addr, u32 size,
			     u64 min_size)
{
	struct ib_umem *umem;

	if (!PAGE_ALIGNED(addr) || !size || size < min_size) {
		ibdev_dbg(
			&dev->ibdev,
			"buffer at %#llx has %u bytes, expected %llu, page-aligned\n",
			addr, size, min_size);
		return ERR_PTR(-EINVAL);
	}
	/* Writable: the device stores ring indices in the first page. */
	umem = pvr_umem_pin(dev, addr, size, IB_ACCESS_LOCAL_WRITE);
	if (!IS_ERR(umem) && pvr_is_kept(dev, umem)) {
		ib_umem_release(umem);
		return ERR_PTR(-EADDRINUSE);
	}
	return umem;
}

static void query_limits(const struct pvr_dev_caps *caps,
			 struct ib_device_attr *attr)
{
	attr->max_mr_size = caps->max_mr_size;
	attr->max_mr = caps->max_mr;
	attr->max_mw = caps->max_mw;
	attr->max_pd = caps->max_pd;
	attr->max_ah = caps->max_ah;
	attr->max_qp = caps->max_qp;
	attr->max_qp_wr = caps->max_qp_wr;
	attr->max_send_sge = caps->max_sge;
	attr->max_recv_sge = caps->max_sge;
	attr->max_sge_rd = caps->max_sge_rd;
	attr->max_qp_rd_atom = caps->max_qp_rd_atom;
	attr->max_qp_init_rd_atom = caps->max_qp_init_rd_atom;
	attr->max_res_rd_atom =
		min_t(u64, S32_MAX, (u64)caps->max_qp * caps->max_qp_rd_atom);
	attr->max_cq = caps->max_cq;
	attr->max_cqe = caps->max_cqe;
	attr->max_pkeys = caps->max_pkeys;
	if (caps->max_srq) {
		attr->max_srq = caps->max_srq;
		attr->max_srq_wr = caps->max_srq_wr;
		attr->max_srq_sge = caps->max_srq_sge;
	}
}

static bool has_xrc(const struct pvr_dev *dev)
{
	return dev->caps.max_srq && (dev->features & PVR_EXT_XRC);
}

static int pvr_query_device(struct ib_device *ibdev,
			    struct ib_device_attr *attr, struct ib_udata *udata)
{
	struct pvr_dev *dev = to_pvr_dev(ibdev);
	const struct pvr_dev_caps *caps = &dev->caps;

	if (udata && (udata->inlen || udata->outlen)) /* NULL since 7.2 */
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	query_limits(caps, attr);
	attr->fw_ver = caps->fw_ver;
	attr->sys_image_guid = caps->sys_image_guid;
	attr->page_size_cap = dev->features & PVR_EXT_MR_LAYOUT
				      ? PVR_MR_PAGE_SIZES
				      : PVR_PAGE_SIZE;
	attr->vendor_id = caps->vendor_id;
	attr->vendor_part_id = dev->pdev->device;
	attr->hw_ver = caps->hw_ver;
	attr->local_ca_ack_delay = caps->local_ca_ack_delay;
	attr->device_cap_flags = (caps->device_cap_flags & KNOWN_CAP_FLAGS) |
				 IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_RC_RNR_NAK_GEN;
	if (dev->features & PVR_EXT_MR_LAYOUT)
		attr->max_dm_size = PVR_DM_BYTES;
	if (dev->features & PVR_EXT_MW)
		attr->device_cap_flags |= IB_DEVICE_MEM_WINDOW |
					  IB_DEVICE_MEM_WINDOW_TYPE_2B;
	else
		attr->max_mw = 0;
	if (has_xrc(dev))
		attr->device_cap_flags |= IB_DEVICE_XRC;
	if (dev->features & PVR_EXT_ATOMIC_WRITE)
		attr->device_cap_flags |= PVR_CAP_ATOMIC_WRITE;
	if (dev->features & PVR_EXT_FLUSH)
		attr->device_cap_flags |= PVR_CAP_FLUSH_GLOBAL;
	if (dev->features & PVR_EXT_FLUSH_PERSISTENT)
		attr->device_cap_flags |= PVR_CAP_FLUSH_PERSISTENT;
	if (dev->features & PVR_EXT_CQ_MODERATION) {
		attr->cq_caps.max_cq_moderation_count = U16_MAX;
		attr->cq_caps.max_cq_moderation_period = U16_MAX;
	}
	if (dev->features & PVR_EXT_CQ_TIMESTAMP) {
		attr->timestamp_mask = GENMASK_ULL(PVR_TIMESTAMP_BITS - 1, 0);
		attr->hca_core_clock = PVR_CLOCK_KHZ;
	}
	if (caps->max_srq && (dev->features & PVR_EXT_RESIZE))
		attr->device_cap_flags |= IB_DEVICE_SRQ_RESIZE;
	pvr_odp_caps(dev, attr);
	if (dev->features & PVR_EXT_MCAST) {
		attr->max_mcast_grp = caps->max_mcast_grp;
		attr->max_mcast_qp_attach = caps->max_mcast_qp_attach;
		attr->max_total_mcast_qp_attach =
			caps->max_total_mcast_qp_attach;
	}
	if (dev->features & PVR_EXT_LOCAL_DMA_LKEY)
		attr->kernel_cap_flags |= IBK_LOCAL_DMA_LKEY;
	if ((caps->atomic_ops & PVR_ATOMIC_CMP_SWAP) &&
	    (caps->atomic_ops & PVR_ATOMIC_FETCH_ADD))
		/*
		 * With extensions the device uses the host CPU's atomic instructions, so
		 * guest CPUs can use them on the same data.
		 */
		attr->atomic_cap = dev->features ? IB_ATOMIC_GLOB
						 : IB_ATOMIC_HCA;
	if ((caps->bmme_flags & BMME_ALL) == BMME_ALL) {
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
		attr->max_fast_reg_page_list_len =
			caps->max_fast_reg_page_list_len /
			PVR_PAGES_PER_CPU_PAGE;
	}
	return 0;
}

static void pvr_fw_str(struct ib_device *ibdev, char *str)
{
	u64 ver = to_pvr_dev(ibdev)->caps.fw_ver;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u.%u", upper_32_bits(ver),
		 lower_32_bits(ver) >> 16, lower_32_bits(ver) & 0xffff);
}

static ssize_t hw_rev_show(struct device *device, struct device_attribute *attr,
			   char *buf)
{
	struct pvr_dev *dev =
		rdma_device_to_drv_device(device, struct pvr_dev, ibdev);

	return sysfs_emit(buf, "%u\n", dev->caps.hw_ver);
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t hca_type_show(struct device *device,
			     struct device_attribute *attr, char *buf)
{
	struct pvr_dev *dev =
		rdma_device_to_drv_device(device, struct pvr_dev, ibdev);

	return sysfs_emit(buf, "PVRDMA-%u\n", dev->version);
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t board_id_show(struct device *device,
			     struct device_attribute *attr, char *buf)
{
	struct pvr_dev *dev =
		rdma_device_to_drv_device(device, struct pvr_dev, ibdev);

	return sysfs_emit(buf, "%#06x\n", dev->pdev->device);
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *pvr_attrs[] = { &dev_attr_hw_rev.attr,
					 &dev_attr_hca_type.attr,
					 &dev_attr_board_id.attr, NULL };

static const struct attribute_group pvr_attr_group = {
	.attrs = pvr_attrs,
};

static const struct ib_device_ops pvr_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_VMW_PVRDMA,
	.uverbs_abi_ver = PVRDMA_UVERBS_ABI_VERSION,
	.device_group = &pvr_attr_group,

	.add_gid = pvr_add_gid,
	.alloc_mr = pvr_alloc_mr,
	.alloc_pd = pvr_alloc_pd,
	.alloc_ucontext = pvr_alloc_ucontext,
	.create_ah = pvr_create_ah,
	.create_cq = pvr_create_cq,
	.create_qp = pvr_create_qp,
	.dealloc_pd = pvr_dealloc_pd,
	.dealloc_ucontext = pvr_dealloc_ucontext,
	.del_gid = pvr_del_gid,
	.dereg_mr = pvr_dereg_mr,
	.destroy_ah = pvr_destroy_ah,
	.destroy_cq = pvr_destroy_cq,
	.destroy_qp = pvr_destroy_qp,
	.disassociate_ucontext = pvr_disassociate_ucontext,
	.fill_res_cq_entry = pvr_fill_res_cq,
	.fill_res_mr_entry = pvr_fill_res_mr,
	.fill_res_qp_entry = pvr_fill_res_qp,
	.fill_res_qp_entry_raw = pvr_fill_res_qp_raw,
	.get_dev_fw_str = pvr_fw_str,
	.get_dma_mr = pvr_get_dma_mr,
	.get_link_layer = pvr_link_layer,
	.get_netdev = pvr_get_netdev,
	.get_port_immutable = pvr_port_immutable,
	.map_mr_sg = pvr_map_mr_sg,
	.mmap = pvr_mmap,
	.modify_qp = pvr_modify_qp,
	.poll_cq = pvr_poll_cq,
	.post_recv = pvr_post_recv,
	.post_send = pvr_post_send,
	.query_device = pvr_query_device,
	.query_pkey = pvr_query_pkey,
	.query_port = pvr_query_port,
	.query_qp = pvr_query_qp,
	.query_ucontext = pvr_query_ucontext,
	.reg_user_mr = pvr_reg_user_mr,
	.advise_mr = pvr_advise_mr,
	.req_notify_cq = pvr_req_notify_cq,
	.rereg_user_mr = pvr_rereg_user_mr,

	PVR_VECTOR_AFFINITY_OP(pvr_get_vector_affinity)
		PVR_REPORT_PORT_EVENT(pvr_report_port_event)

			INIT_RDMA_OBJ_SIZE(ib_ah, pvr_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, pvr_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, pvr_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, pvr_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, pvr_ucontext, ibuc),
};

static const struct ib_device_ops pvr_srq_ops = {
	.create_srq = pvr_create_srq,
	.destroy_srq = pvr_destroy_srq,
	.modify_srq = pvr_modify_srq,
	.post_srq_recv = pvr_post_srq_recv,
	.query_srq = pvr_query_srq,

	PVR_FILL_RES_SRQ_OPS(pvr_fill_res_srq, pvr_fill_res_srq_raw)
		INIT_RDMA_OBJ_SIZE(ib_srq, pvr_srq, ibsrq),
};

static const struct ib_device_ops pvr_xrc_ops = {
	.alloc_xrcd = pvr_alloc_xrcd,
	.dealloc_xrcd = pvr_dealloc_xrcd,

	INIT_RDMA_OBJ_SIZE(ib_xrcd, pvr_xrcd, ibxrcd),
};

static const struct ib_device_ops pvr_mw_ops = {
	.alloc_mw = pvr_alloc_mw,
	.dealloc_mw = pvr_dealloc_mw,

	INIT_RDMA_OBJ_SIZE(ib_mw, pvr_mw, ibmw),
};

/* Regions of a dma-buf begin at any offset, so they need PVR_EXT_MR_LAYOUT. */
static const struct ib_device_ops pvr_dmabuf_ops = {
	.reg_user_mr_dmabuf = pvr_reg_user_mr_dmabuf,
};

static const struct ib_device_ops pvr_dm_ops = {
	.alloc_dm = pvr_alloc_dm,
	.dealloc_dm = pvr_dealloc_dm,
	.mmap_free = pvr_mmap_free,
	.reg_dm_mr = pvr_reg_dm_mr,
};

static const struct ib_device_ops pvr_mcast_ops = {
	.attach_mcast = pvr_attach_mcast,
	.detach_mcast = pvr_detach_mcast,
};

static const struct ib_device_ops pvr_resize_ops = { PVR_RESIZE_CQ_OP(
	pvr_resize_cq) };

static const struct ib_device_ops pvr_moderation_ops = {
	.modify_cq = pvr_modify_cq,
};

/* ib_core drops methods of objects that the device lacks, here those of DMs. */
static const struct uapi_definition pvr_uapi[] = {
	UAPI_DEF_CHAIN(pvr_ucontext_uapi),
	UAPI_DEF_CHAIN(pvr_pd_uapi),
	UAPI_DEF_CHAIN(pvr_dm_uapi),
	{},
};

/* The device's GUID may be 0, which ib_core does not accept. */
static void set_node_guid(struct pvr_dev *dev)
{
	__be64 guid = dev->caps.node_guid;

	if (!guid)
		addrconf_addr_eui48((u8 *)&guid, dev->mac);
	dev->ibdev.node_guid = guid;
}

int pvr_ib_register(struct pvr_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;
	int err;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->num_comp_vectors = dev->num_vectors;
	ibdev->dev.parent = &dev->pdev->dev;
	set_node_guid(dev);
	ib_set_device_ops(ibdev, &pvr_ops);
	if (dev->caps.max_srq)
		ib_set_device_ops(ibdev, &pvr_srq_ops);
	if (has_xrc(dev))
		ib_set_device_ops(ibdev, &pvr_xrc_ops);
	if (dev->features & PVR_EXT_MW)
		ib_set_device_ops(ibdev, &pvr_mw_ops);
	if (dev->features & PVR_EXT_LOCAL_DMA_LKEY)
		ibdev->local_dma_lkey = PVR_LOCAL_DMA_LKEY;
	if (dev->features & PVR_EXT_MCAST)
		ib_set_device_ops(ibdev, &pvr_mcast_ops);
	if (dev->features & PVR_EXT_STATS)
		ib_set_device_ops(ibdev, &pvr_stats_ops);
	if (dev->features & PVR_EXT_RESIZE)
		ib_set_device_ops(ibdev, &pvr_resize_ops);
	if (dev->features & PVR_EXT_CQ_MODERATION)
		ib_set_device_ops(ibdev, &pvr_moderation_ops);
	if (dev->features & PVR_EXT_MR_LAYOUT) {
		ib_set_device_ops(ibdev, &pvr_dm_ops);
		ib_set_device_ops(ibdev, &pvr_dmabuf_ops);
	}
	ibdev->driver_def = pvr_uapi;

	err = pvr_place_register(&dev->pci->place, ibdev, &dev->pdev->dev);
	if (err) {
		dev_err(&dev->pdev->dev, "cannot register with ib_core: %pe\n",
			ERR_PTR(err));
		return err;
	}
	set_bit(PVR_DEV_LIVE, &dev->flags);
	set_bit(PVR_DEV_RESCAN_GIDS, &dev->flags);
	pvr_port_kick(dev);
	schedule_delayed_work(&dev->health_work, 0);
	return 0;
}

void pvr_ib_unregister(struct pvr_dev *dev)
{
	clear_bit(PVR_DEV_LIVE, &dev->flags);
	synchronize_rcu(); /* pairs with pvr_dispatch(), pvr_port_kick() */
	cancel_delayed_work_sync(&dev->health_work);
	cancel_work_sync(&dev->port_work);
	pvr_place_keep_net(&dev->pci->place, &dev->ibdev);
	ib_unregister_device(&dev->ibdev);
	pvr_place_keep_name(&dev->pci->place, &dev->ibdev);
}
