// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion vectors. */
#include <linux/interrupt.h>

#include "pvrdma.h"

/*
 * DOC: Completion vectors
 *
 * The first vector uses the notification ring of the shared region, as on stock devices.
 * SET_CQ_RING registers the rings of the others (PVR_EXT_CQ_VECTORS) before the first CQ
 * exists. There are at most as many vectors as CPUs. Their interrupts are spread by
 * affinity and hint, and the administrator can move them. Managed interrupts would stop
 * when their CPUs go offline.
 */
static u32 num_vectors(struct pvr_dev *dev)
{
	u32 n;

	if (!(dev->features & PVR_EXT_CQ_VECTORS))
		return 1;
	n = pvr_reg_read(dev, PVR_REG_EXT_CQ_VECTORS);
	return clamp_t(u32, n, 1,
		       min_t(u32, PVR_CQ_VECTORS_MAX, num_online_cpus()));
}

static int vector_init(struct pvr_dev *dev, struct pvr_comp_vector *vec)
{
	int err;

	if (!zalloc_cpumask_var(&vec->cpus, GFP_KERNEL))
		return -ENOMEM;
	err = pvr_evring_init(dev, &vec->ring, PVR_CQNE_SLOTS,
			      sizeof(struct pvr_cqne));
	if (err)
		free_cpumask_var(vec->cpus);
	vec->dev = dev;
	return err;
}

static void vector_exit(struct pvr_comp_vector *vec)
{
	pvr_evring_exit(&vec->ring);
	free_cpumask_var(vec->cpus);
}

int pvr_vectors_init(struct pvr_dev *dev)
{
	u32 want = num_vectors(dev);
	int err;

	for (; dev->num_vectors < want; dev->num_vectors++) {
		err = vector_init(dev, &dev->vectors[dev->num_vectors]);
		if (err) {
			pvr_vectors_exit(dev);
			return err;
		}
	}
	return 0;
}

void pvr_vectors_exit(struct pvr_dev *dev)
{
	while (dev->num_vectors)
		vector_exit(&dev->vectors[--dev->num_vectors]);
}

void pvr_vectors_limit(struct pvr_dev *dev, u32 n)
{
	while (dev->num_vectors > n)
		vector_exit(&dev->vectors[--dev->num_vectors]);
}

/*
 * A CQ notifies once per arming, so the ring's length bounds the work of one interrupt.
 * Twice that length leaves room for CQs that are armed meanwhile.
 */
static irqreturn_t cq_irq(int irq, void *data)
{
	struct pvr_comp_vector *vec = data;
	u32 quota = 2 * PVR_CQNE_SLOTS;
	struct pvr_cqne cqne;
	int ret = 0;

	while (quota-- && (ret = pvr_evring_next(&vec->ring, &cqne)) > 0)
		pvr_cq_complete(vec->dev, le32_to_cpu(cqne.cq_handle));
	if (ret < 0) {
		dev_err_ratelimited(
			&vec->dev->pdev->dev,
			"CQ notifications lost: the device overran the ring\n");
		pvr_complete_all_cqs(vec->dev);
	}
	return IRQ_HANDLED;
}

void pvr_vectors_poll(struct pvr_dev *dev)
{
	cq_irq(0, &dev->vectors[0]);
}

static int irq_of(struct pvr_dev *dev, u32 i)
{
	return pci_irq_vector(dev->pdev, PVR_VEC_CQ + i);
}

/* Assign each CPU to one vector, round robin. */
static void spread(struct pvr_dev *dev, u32 i)
{
	struct pvr_comp_vector *vec = &dev->vectors[i];
	u32 nth = 0;
	int cpu;

	for_each_online_cpu(cpu)
		if (nth++ % dev->num_vectors == i)
			cpumask_set_cpu(cpu, vec->cpus);
	if (dev->num_vectors > 1)
		irq_set_affinity_and_hint(irq_of(dev, i), vec->cpus);
}

static int request_irq_of(struct pvr_dev *dev, u32 i)
{
	int err = 0;

	if (!dev->one_irq)
		err = pci_request_irq(dev->pdev, PVR_VEC_CQ + i, cq_irq, NULL,
				      &dev->vectors[i], "pvrdma-cq%u:%s", i,
				      pci_name(dev->pdev));
	if (!err)
		spread(dev, i);
	return err;
}

static void free_irq_of(struct pvr_dev *dev, u32 i)
{
	if (dev->one_irq)
		return;
	irq_update_affinity_hint(irq_of(dev, i), NULL);
	pci_free_irq(dev->pdev, PVR_VEC_CQ + i, &dev->vectors[i]);
}

int pvr_vectors_request_irqs(struct pvr_dev *dev)
{
	u32 i;
	int err;

	for (i = 0; i < dev->num_vectors; i++) {
		err = request_irq_of(dev, i);
		if (err)
			goto err_free;
	}
	return 0;

err_free:
	while (i--)
		free_irq_of(dev, i);
	return err;
}

void pvr_vectors_free_irqs(struct pvr_dev *dev)
{
	u32 i;

	for (i = dev->num_vectors; i--;)
		free_irq_of(dev, i);
}

int pvr_vectors_notify(struct pvr_dev *dev)
{
	union pvr_cmd_req req = {};
	u32 i;
	int err;

	for (i = 1; i < dev->num_vectors; i++) {
		req.hdr.cmd = cpu_to_le32(PVR_CMD_SET_CQ_RING);
		req.set_cq_ring.comp_vector = cpu_to_le32(i);
		req.set_cq_ring.ring.num_pages = cpu_to_le32(PVR_EVRING_PAGES);
		req.set_cq_ring.ring.pdir_dma =
			cpu_to_le64(dev->vectors[i].ring.pdir.dir.dma);
		err = pvr_cmd(dev, &req, NULL);
		if (err) {
			dev_err(&dev->pdev->dev,
				"device refused completion vector %u of %u: %pe\n",
				i, dev->num_vectors, ERR_PTR(err));
			return err;
		}
	}
	return 0;
}

const struct cpumask *pvr_get_vector_affinity(struct ib_device *ibdev,
					      int vector)
{
	struct pvr_dev *dev = to_pvr_dev(ibdev);

	if (vector < 0 || vector >= dev->num_vectors)
		return NULL;
	return dev->vectors[vector].cpus;
}
