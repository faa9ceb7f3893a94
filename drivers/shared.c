// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The handshake: extensions, device shared region, version and capabilities. */
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/module.h>

#include "pvrdma.h"

/* Extensions that this driver supports. */
#define DRIVER_EXT                                                             \
	(PVR_EXT_NO_POLL_DB | PVR_EXT_USER_OPS | PVR_EXT_INLINE |              \
	 PVR_EXT_MR_LAYOUT | PVR_EXT_MW | PVR_EXT_LOCAL_DMA_LKEY |             \
	 PVR_EXT_RESIZE | PVR_EXT_CQ_VECTORS | PVR_EXT_MCAST | PVR_EXT_STATS | \
	 PVR_EXT_LONG_FAST_REG | PVR_EXT_UC | PVR_EXT_DB_SUPPRESS |            \
	 PVR_EXT_CQ_ARM_DBREC | PVR_EXT_PEER_GONE | PVR_EXT_VLAN |             \
	 PVR_EXT_RESP_POLL | PVR_EXT_SUM_STATS | PVR_EXT_ATOMIC_WRITE |        \
	 PVR_KERNEL_EXT_FLUSH | PVR_EXT_CQ_MODERATION | PVR_EXT_CQ_TIMESTAMP | \
	 PVR_EXT_XRC | PVR_KERNEL_EXT_ON_DEMAND)

static uint extensions = DRIVER_EXT;
module_param(extensions, uint, 0444);
MODULE_PARM_DESC(
	extensions,
	"Mask of device extensions to use, see docs/architecture.md (0: VMware's interface; default: all)");

static int read_version(struct pvr_dev *dev)
{
	struct device *device = &dev->pdev->dev;

	dev->version = pvr_reg_read(dev, PVR_REG_VERSION);
	if (dev->version == U32_MAX) {
		dev_err(device,
			"registers read all ones, the device is removed: is pvrdmad running on the host?\n");
		return -ENODEV;
	}
	if (dev->version < PVR_VERSION_ROCEV1) {
		dev_err(device,
			"device version is %u, expected %d or newer: update the host, or plug the device in again if it is 0\n",
			dev->version, PVR_VERSION_ROCEV1);
		return -ENODEV;
	}
	return 0;
}

static void read_mac(struct pvr_dev *dev)
{
	u32 low = pvr_reg_read(dev, PVR_REG_MACL);
	u32 high = pvr_reg_read(dev, PVR_REG_MACH);
	int i;

	for (i = 0; i < 4; i++)
		dev->mac[i] = low >> 8 * i;
	for (; i < ETH_ALEN; i++)
		dev->mac[i] = high >> 8 * (i - 4);
}

/*
 * Call before the write to DSRHIGH, at which the device latches the acknowledged
 * extensions.
 */
static void negotiate(struct pvr_dev *dev)
{
	u32 want;

	if (pci_resource_len(dev->pdev, PVR_BAR_REGS) < PVR_REG_EXT_ACK + 4 ||
	    pvr_reg_read(dev, PVR_REG_EXT_MAGIC) != PVR_EXT_MAGIC)
		return;
	dev->has_ext = true;
	want = pvr_reg_read(dev, PVR_REG_EXT_FEATURES) & DRIVER_EXT &
	       extensions;
	/* A region that cannot be replaced must never be busy, see retire() of mr.c. */
	if (!(want & PVR_EXT_MR_LAYOUT))
		want &= ~PVR_EXT_MW;
	pvr_reg_write(dev, PVR_REG_EXT_ACK, want);
	dev->features = pvr_reg_read(dev, PVR_REG_EXT_ACK) & want;
	read_mac(dev);
}

/*
 * Some devices have no MAC registers, but a node GUID that contains the MAC address: as a
 * modified EUI-64 (ff:fe in the middle, one bit flipped) or with 00:00 in the middle.
 */
static void guess_mac(struct pvr_dev *dev)
{
	u8 guid[8];

	memcpy(guid, &dev->caps.node_guid, sizeof(guid));
	if (guid[3] == 0xff && guid[4] == 0xfe)
		guid[0] ^= 2;
	else if (guid[3] || guid[4])
		return;
	memcpy(dev->mac, guid, 3);
	memcpy(dev->mac + 3, guid + 5, 3);
}

static int evrings_init(struct pvr_dev *dev)
{
	int err;

	err = pvr_evring_init(dev, &dev->events, PVR_EQE_SLOTS,
			      sizeof(struct pvr_eqe));
	if (err)
		return err;
	err = pvr_vectors_init(dev);
	if (err)
		pvr_evring_exit(&dev->events);
	return err;
}

static void evrings_exit(struct pvr_dev *dev)
{
	pvr_vectors_exit(dev);
	pvr_evring_exit(&dev->events);
}

/* Older devices have 32 bits for page frame numbers of doorbell pages. */
static int check_uar_address(struct pvr_dev *dev)
{
	resource_size_t end = pci_resource_end(dev->pdev, PVR_BAR_UAR);

	if (dev->version >= PVR_VERSION_PPN64 ||
	    end >> PVR_PAGE_SHIFT <= U32_MAX)
		return 0;
	dev_err(&dev->pdev->dev,
		"BAR2 ends at %pa, too high for device version %u: expected %d or newer\n",
		&end, dev->version, PVR_VERSION_PPN64);
	return -ENODEV;
}

static void dsr_fill(struct pvr_dev *dev)
{
	struct pvr_dsr *dsr = dev->dsr.va;

	dsr->driver_version = cpu_to_le32(PVR_VERSION);
	dsr->gos_info = cpu_to_le32(
		PVR_GOS_INFO(PVR_GOS_BITS_64, PVR_GOS_TYPE_LINUX, 1));
	dsr->cmd_slot_dma = cpu_to_le64(dev->cmd.req.dma);
	dsr->resp_slot_dma = cpu_to_le64(dev->cmd.resp.dma);
	dsr->async_ring.num_pages = cpu_to_le32(PVR_EVRING_PAGES);
	dsr->async_ring.pdir_dma = cpu_to_le64(dev->events.pdir.dir.dma);
	dsr->cq_ring.num_pages = cpu_to_le32(PVR_EVRING_PAGES);
	dsr->cq_ring.pdir_dma = cpu_to_le64(dev->vectors[0].ring.pdir.dir.dma);
	dsr->uar_pfn = cpu_to_le64(pci_resource_start(dev->pdev, PVR_BAR_UAR) >>
				   PVR_PAGE_SHIFT);
}

/* Pass the region to the device and copy the capabilities once. */
static int dsr_exchange(struct pvr_dev *dev)
{
	const struct pvr_dsr *dsr = dev->dsr.va;
	u32 err;

	/* writel() orders the stores to the region before the address. */
	pvr_reg_write(dev, PVR_REG_DSRLOW, lower_32_bits(dev->dsr.dma));
	pvr_reg_write(dev, PVR_REG_DSRHIGH, upper_32_bits(dev->dsr.dma));
	/*
	 * The writes may be posted. The read returns after the device has executed them.
	 */
	err = pvr_reg_read(dev, PVR_REG_ERR);
	dma_rmb();
	pvr_caps_read(&dev->caps, &dsr->caps);
	if (!dev->caps.max_uar && !dev->caps.gid_types) {
		dev_err(&dev->pdev->dev,
			"device did not accept the shared region (error %u): is the VM's memory shared with pvrdmad (memory-backend-memfd, share=on)?\n",
			err);
		return -ENODEV;
	}
	return 0;
}

/* On return the device does no more DMA. */
static void dsr_withdraw(struct pvr_dev *dev)
{
	pvr_reg_write(dev, PVR_REG_CTL, PVR_CTL_RESET);
	pvr_reg_read(dev, PVR_REG_VERSION);
}

static int region_init(struct pvr_dev *dev)
{
	int err;

	pvr_page_cache_init(&dev->dir_pages, &dev->pdev->dev);
	dev->dsr.va = dma_alloc_coherent(&dev->pdev->dev, PVR_PAGE_SIZE,
					 &dev->dsr.dma, GFP_KERNEL);
	if (!dev->dsr.va)
		return -ENOMEM;
	err = pvr_cmd_init(dev);
	if (err)
		goto err_dsr;
	err = evrings_init(dev);
	if (err)
		goto err_cmd;
	dsr_fill(dev);
	return 0;

err_cmd:
	pvr_page_cache_exit(&dev->dir_pages);
	pvr_cmd_exit(dev);
err_dsr:
	dma_free_coherent(&dev->pdev->dev, PVR_PAGE_SIZE, dev->dsr.va,
			  dev->dsr.dma);
	return err;
}

static void region_exit(struct pvr_dev *dev)
{
	evrings_exit(dev);
	pvr_page_cache_exit(&dev->dir_pages);
	pvr_cmd_exit(dev);
	dma_free_coherent(&dev->pdev->dev, PVR_PAGE_SIZE, dev->dsr.va,
			  dev->dsr.dma);
}

int pvr_shared_init(struct pvr_dev *dev)
{
	int err;

	err = read_version(dev);
	if (!err)
		err = check_uar_address(dev);
	if (err)
		return err;
	negotiate(dev);
	err = region_init(dev);
	if (err)
		return err;
	err = dsr_exchange(dev);
	if (!err)
		err = pvr_caps_check(dev);
	if (err)
		goto err_withdraw;
	if (!is_valid_ether_addr(dev->mac))
		guess_mac(dev);
	dev_info(&dev->pdev->dev,
		 "device version %u, RoCE v%d, MAC %pM, extensions %#x\n",
		 dev->version,
		 dev->caps.gid_types == PVR_GID_TYPE_ROCE_V2 ? 2 : 1, dev->mac,
		 dev->features);
	return 0;

err_withdraw:
	dsr_withdraw(dev);
	region_exit(dev);
	return err;
}

void pvr_shared_exit(struct pvr_dev *dev)
{
	dsr_withdraw(dev);
	pvr_kept_free(dev);
	region_exit(dev);
}
