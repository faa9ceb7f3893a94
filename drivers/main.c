// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The PCI half of an adapter: start, stop and failure. */
#include <linux/module.h>
#include <linux/sizes.h>

#include "pvrdma.h"

static int pci_map(struct pvr_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	resource_size_t len = pci_resource_len(pdev, PVR_BAR_REGS);

	if (!(pci_resource_flags(pdev, PVR_BAR_REGS) & IORESOURCE_MEM) ||
	    !(pci_resource_flags(pdev, PVR_BAR_UAR) & IORESOURCE_MEM) ||
	    len < PVR_REG_EXT_MAGIC ||
	    pci_resource_len(pdev, PVR_BAR_UAR) < PVR_PAGE_SIZE) {
		dev_err(&pdev->dev,
			"BAR1 or BAR2 is no memory or too small (%pa bytes of registers, expected %d or more): not a PVRDMA device\n",
			&len, PVR_REG_EXT_MAGIC);
		return -ENODEV;
	}
	dev->regs = pci_iomap(pdev, PVR_BAR_REGS, 0);
	if (!dev->regs)
		return -ENOMEM;
	dev->uar = pci_iomap(pdev, PVR_BAR_UAR, PVR_PAGE_SIZE);
	if (!dev->uar) {
		pci_iounmap(pdev, dev->regs);
		return -ENOMEM;
	}
	return 0;
}

static void pci_unmap(struct pvr_dev *dev)
{
	pci_iounmap(dev->pdev, dev->uar);
	pci_iounmap(dev->pdev, dev->regs);
}

static int pci_start(struct pvr_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int err;

	err = pci_enable_device(pdev);
	if (err)
		return err;
	err = pci_request_regions(pdev, KBUILD_MODNAME);
	if (err)
		goto err_disable;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto err_release;
	/* A power of two: otherwise large pages do not fit behind the first segment. */
	dma_set_max_seg_size(&pdev->dev, SZ_2G);
	err = pci_map(dev);
	if (err)
		goto err_release;
	err = pvr_pci_begin_dma(dev->pci);
	if (err)
		goto err_unmap;
	return 0;

err_unmap:
	pci_unmap(dev);
err_release:
	pci_release_regions(pdev);
err_disable:
	pci_disable_device(pdev);
	return err;
}

void pvr_pci_keep_config(struct pvr_pci *pci)
{
	if (!pci_save_state(pci->pdev))
		pci->config = pci_store_saved_state(pci->pdev);
}

void pvr_pci_forget_config(struct pvr_pci *pci)
{
	kfree(pci->config);
}

/* Return: whether the function is there, without the address that BAR1 had. */
static bool is_unmapped(struct pci_dev *pdev)
{
	const u32 id = PVR_PCI_VENDOR_ID | PVR_PCI_DEVICE_ID << 16;
	u32 value;

	if (pci_read_config_dword(pdev, PCI_VENDOR_ID, &value) || value != id)
		return false;
	pci_read_config_dword(pdev, PCI_BASE_ADDRESS_0 + 4 * PVR_BAR_REGS,
			      &value);
	return (value & PCI_BASE_ADDRESS_MEM_MASK) !=
	       pci_bus_address(pdev, PVR_BAR_REGS);
}

bool pvr_pci_remap(struct pvr_pci *pci)
{
	struct pci_dev *pdev = pci->pdev;

	if (!is_unmapped(pdev) || !pci->config ||
	    pci_load_saved_state(pdev, pci->config))
		return false;
	pci_restore_state(pdev);
	pci_info(pdev,
		 "a new device is in its place: its BARs are mapped again\n");
	return true;
}

static void pci_stop(struct pvr_dev *dev)
{
	pci_clear_master(dev->pdev);
	pci_unmap(dev);
	pci_release_regions(dev->pdev);
	pci_disable_device(dev->pdev);
}

const char *pvr_dev_gone(const struct pvr_dev *dev)
{
	switch (pvr_reg_read(dev, PVR_REG_VERSION)) {
	case U32_MAX:
		return "registers read all ones, the device is removed";
	case 0:
		return "registers read zeros, the VM was migrated or restored without its device";
	default:
		return NULL;
	}
}

/*
 * Reset the device and make the driver flush all requests. Return: false if the device
 * was dead before.
 */
static bool dev_end(struct pvr_dev *dev)
{
	if (pvr_dev_dead(dev))
		return false;
	/*
	 * Reset before the flag is set: code that sees the flag frees memory that the
	 * device could access. The write may be posted. The read returns after the device
	 * has executed it.
	 */
	pvr_reg_write(dev, PVR_REG_CTL, PVR_CTL_RESET);
	pvr_reg_read(dev, PVR_REG_VERSION);
	if (test_and_set_bit(PVR_DEV_DEAD, &dev->flags))
		return false;
	complete(&dev->cmd.done);
	schedule_work(&dev->flush_work);
	return true;
}

void pvr_dev_fail(struct pvr_dev *dev, const char *why)
{
	if (!dev_end(dev))
		return;
	dev_err(&dev->pdev->dev, "device failed: %s\n", why);
	pvr_dispatch(dev, IB_EVENT_DEVICE_FATAL);
	pvr_restart_queue(dev->pci);
	pvr_port_kick(dev);
}

/*
 * A reset of the PCI function clears the acknowledged extensions. Without extensions no
 * register shows the reset, and the next command fails.
 */
static bool was_reset(const struct pvr_dev *dev)
{
	return dev->features && (pvr_reg_read(dev, PVR_REG_EXT_ACK) &
				 dev->features) != dev->features;
}

static void check_health_locked(struct pvr_dev *dev)
{
	const char *gone = pvr_dev_gone(dev);

	lockdep_assert_held(&dev->cmd.lock);
	if (gone)
		pvr_dev_fail(dev, gone);
	else if (was_reset(dev))
		pvr_dev_fail(dev, "it was reset, and not by this driver");
}

/* A device that is gone fails within 5 s. Two register reads per period. */
#define HEALTH_PERIOD (47 * HZ / 10)

/*
 * A read of a register waits for the end of a command and stops this CPU until then. So
 * wait for the lock of commands first.
 */
void pvr_health_work(struct work_struct *work)
{
	struct pvr_dev *dev =
		container_of(work, struct pvr_dev, health_work.work);

	mutex_lock(&dev->cmd.lock);
	pvr_cmd_settle(dev);
	if (!pvr_dev_dead(dev))
		check_health_locked(dev);
	mutex_unlock(&dev->cmd.lock);
	if (!pvr_dev_dead(dev))
		schedule_delayed_work(&dev->health_work, HEALTH_PERIOD);
}

/* Interrupts to mask: command interrupts are not needed, see wait_response_locked(). */
static u32 irqs_unused(const struct pvr_dev *dev)
{
	return dev->has_ext ? PVR_ICR_CMD : PVR_IMR_ALL_ENABLED;
}

static int activate(struct pvr_dev *dev)
{
	int err;

	pvr_reg_write(dev, PVR_REG_IMR, irqs_unused(dev));
	err = pvr_cmd_ctl(dev, PVR_CTL_ACTIVATE);
	if (err) {
		dev_err(&dev->pdev->dev,
			"device refused activation: %pe; see the log of pvrdmad on the host\n",
			ERR_PTR(err));
		pvr_reg_write(dev, PVR_REG_IMR, PVR_IMR_ALL_MASKED);
	}
	return err;
}

static void deactivate(struct pvr_dev *dev)
{
	pvr_reg_write(dev, PVR_REG_IMR, PVR_IMR_ALL_MASKED);
}

static struct pvr_dev *dev_alloc(struct pvr_pci *pci)
{
	struct pvr_dev *dev = ib_alloc_device(pvr_dev, ibdev);

	if (!dev)
		return NULL;
	dev->pci = pci;
	dev->pdev = pci->pdev;
	ida_init(&dev->uars);
	INIT_LIST_HEAD(&dev->kept);
	spin_lock_init(&dev->kept_lock);
	/* lockdep takes the locks of all of them for one, which the interrupt handlers take. */
	xa_init_flags(&dev->cqs, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->qps, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->srqs, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->odp_mrs, XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->odp_lkeys, XA_FLAGS_LOCK_IRQ);
	pvr_stats_init(&dev->stats);
	mutex_init(&dev->qp_lock);
	mutex_init(&dev->clock_lock);
	spin_lock_init(&dev->netdev_lock);
	INIT_WORK(&dev->port_work, pvr_port_work);
	INIT_DELAYED_WORK(&dev->health_work, pvr_health_work);
	INIT_WORK(&dev->flush_work, pvr_flush_work);
	return dev;
}

static void dev_free(struct pvr_dev *dev)
{
	cancel_work_sync(&dev->flush_work);
	WARN_ON(!xa_empty(&dev->cqs) || !xa_empty(&dev->qps) ||
		!xa_empty(&dev->srqs) || !xa_empty(&dev->odp_mrs));
	xa_destroy(&dev->odp_lkeys);
	xa_destroy(&dev->odp_mrs);
	xa_destroy(&dev->srqs);
	xa_destroy(&dev->qps);
	xa_destroy(&dev->cqs);
	ida_destroy(&dev->uars);
	mutex_destroy(&dev->clock_lock);
	mutex_destroy(&dev->qp_lock);
	pvr_stats_exit(&dev->stats);
	ib_dealloc_device(&dev->ibdev);
}

struct pvr_dev *pvr_dev_start(struct pvr_pci *pci)
{
	struct pvr_dev *dev = dev_alloc(pci);
	int err;

	if (!dev)
		return ERR_PTR(-ENOMEM);
	err = pci_start(dev);
	if (err)
		goto err_free;
	err = pvr_shared_init(dev);
	if (err)
		goto err_pci;
	err = pvr_irq_init(dev);
	if (err)
		goto err_shared;
	err = activate(dev);
	if (err)
		goto err_irq;
	err = pvr_vectors_notify(dev);
	if (err)
		goto err_deactivate;
	err = pvr_netdev_init(dev);
	if (err)
		goto err_deactivate;
	err = pvr_ib_register(dev);
	if (err)
		goto err_netdev;
	return dev;

err_netdev:
	pvr_netdev_exit(dev);
err_deactivate:
	deactivate(dev);
err_irq:
	pvr_irq_exit(dev);
err_shared:
	pvr_shared_exit(dev);
err_pci:
	pci_stop(dev);
err_free:
	dev_free(dev);
	return ERR_PTR(err);
}

void pvr_dev_stop(struct pvr_dev *dev)
{
	pvr_ib_unregister(dev);
	pvr_netdev_exit(dev);
	deactivate(dev);
	pvr_irq_exit(dev);
	pvr_shared_exit(dev);
	pci_stop(dev);
	dev_free(dev);
}

/*
 * Stop all DMA: a new kernel may own the memory next. Kernel consumers may still be
 * connected. For them the device is dead: they can drain and destroy their QPs.
 */
void pvr_dev_shutdown(struct pvr_dev *dev)
{
	deactivate(dev);
	dev_end(dev);
	pci_clear_master(dev->pdev);
}

static const struct pci_device_id pvr_pci_ids[] = {
	{ PCI_DEVICE(PVR_PCI_VENDOR_ID, PVR_PCI_DEVICE_ID) }, {}
};
MODULE_DEVICE_TABLE(pci, pvr_pci_ids);

static struct pci_driver pvr_pci_driver = {
	.name = KBUILD_MODNAME,
	.id_table = pvr_pci_ids,
	.probe = pvr_pci_probe,
	.remove = pvr_pci_remove,
	.shutdown = pvr_pci_shutdown,
	.err_handler = &pvr_pci_errors,
	.driver.pm = pm_sleep_ptr(&pvr_pm_ops),
};
module_pci_driver(pvr_pci_driver);

MODULE_DESCRIPTION("RDMA for QEMU virtual machines: PVRDMA adapter");
MODULE_VERSION(PVR_PACKAGE_VERSION);
MODULE_LICENSE("Dual BSD/GPL");
