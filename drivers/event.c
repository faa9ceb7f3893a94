// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Interrupts and the event rings, which the device fills before it raises them. */
#include <linux/interrupt.h>

#include "pvrdma.h"

int pvr_evring_init(struct pvr_dev *dev, struct pvr_evring *ring, u32 n,
		    u32 elem_size)
{
	struct pvr_ring_state *state_shm;
	int err;

	err = pvr_pdir_init(&ring->pdir, &dev->dir_pages,
			    1 + DIV_ROUND_UP(n * elem_size, PVR_PAGE_SIZE),
			    true);
	if (err)
		return err;
	state_shm = pvr_pdir_at(&ring->pdir, 0);
	ring->ring_shm = &state_shm->rx;
	ring->n = n;
	ring->elem_size = elem_size;
	ring->head = 0;
	return 0;
}

void pvr_evring_exit(struct pvr_evring *ring)
{
	pvr_pdir_exit(&ring->pdir);
}

int pvr_evring_next(struct pvr_evring *ring, void *elem)
{
	u32 tail = le32_to_cpu(READ_ONCE(ring->ring_shm->prod_tail));
	u32 used = pvr_ring_used(tail, ring->head, ring->n);
	u32 slot = pvr_ring_slot(ring->head, ring->n);

	if (!used)
		return 0;
	if (used > ring->n) {
		ring->head = tail & (2 * ring->n - 1);
		pvr_ring_release(ring->ring_shm, ring->head);
		return -EPROTO;
	}
	dma_rmb(); /* load the element after prod_tail */
	memcpy(elem,
	       pvr_pdir_at(&ring->pdir, PVR_PAGE_SIZE + slot * ring->elem_size),
	       ring->elem_size);
	ring->head = pvr_ring_next(ring->head, ring->n);
	pvr_ring_release(ring->ring_shm, ring->head);
	return 1;
}

int pvr_handle_insert(struct pvr_dev *dev, struct xarray *table, u32 handle,
		      void *obj)
{
	int err = -EBUSY;

	if (!(handle & ~PVRDMA_UAR_HANDLE_MASK))
		err = xa_insert_irq(table, handle, obj, GFP_KERNEL);
	if (err != -EBUSY)
		return err;
	dev_err(&dev->pdev->dev,
		"device gave handle %#x, which is taken or has more than 24 bits\n",
		handle);
	pvr_dev_fail(dev, "it gave out a bad handle");
	return -EIO;
}

/* Look up an object by handle and take a reference, or return NULL. */
#define DEFINE_GET(what, table)                                               \
	static struct pvr_##what *what##_get(struct pvr_dev *dev, u32 handle) \
	{                                                                     \
		struct pvr_##what *obj;                                       \
		unsigned long flags;                                          \
		xa_lock_irqsave(&dev->table, flags);                          \
		obj = xa_load(&dev->table, handle);                           \
		if (obj)                                                      \
			refcount_inc(&obj->ref.count);                        \
		xa_unlock_irqrestore(&dev->table, flags);                     \
		return obj;                                                   \
	}
DEFINE_GET(cq, cqs)
DEFINE_GET(qp, qps)
DEFINE_GET(srq, srqs)

static void cq_event(struct pvr_dev *dev, u32 handle, enum ib_event_type type)
{
	struct ib_event event = { .device = &dev->ibdev, .event = type };
	struct pvr_cq *cq = cq_get(dev, handle);

	if (!cq)
		return;
	event.element.cq = &cq->ibcq;
	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
	pvr_ref_put(&cq->ref);
}

static void qp_event(struct pvr_dev *dev, u32 handle, enum ib_event_type type)
{
	struct ib_event event = { .device = &dev->ibdev, .event = type };
	struct pvr_qp *qp = qp_get(dev, handle);

	if (!qp)
		return;
	event.element.qp = &qp->ibqp;
	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
	pvr_ref_put(&qp->ref);
}

static void srq_event(struct pvr_dev *dev, u32 handle, enum ib_event_type type)
{
	struct ib_event event = { .device = &dev->ibdev, .event = type };
	struct pvr_srq *srq = srq_get(dev, handle);

	if (!srq)
		return;
	event.element.srq = &srq->ibsrq;
	if (srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
	pvr_ref_put(&srq->ref);
}

void pvr_dispatch(struct pvr_dev *dev, enum ib_event_type type)
{
	struct ib_event event = { .device = &dev->ibdev, .event = type };

	event.element.port_num = 1;
	rcu_read_lock(); /* pairs with pvr_ib_unregister() */
	if (test_bit(PVR_DEV_LIVE, &dev->flags))
		ib_dispatch_event(&event);
	rcu_read_unlock();
}

/* enum pvr_event and enum ib_event_type have the same values. */
static void handle_event(struct pvr_dev *dev, const struct pvr_eqe *eqe)
{
	enum ib_event_type type = le32_to_cpu(eqe->type);
	u32 info = le32_to_cpu(eqe->info);

	switch ((u32)type) {
	case PVR_EVENT_CQ_ERR:
		cq_event(dev, info, type);
		break;
	case PVR_EVENT_QP_FATAL ... PVR_EVENT_PATH_MIG_ERR:
	case PVR_EVENT_QP_LAST_WQE_REACHED:
		qp_event(dev, info, type);
		break;
	case PVR_EVENT_SRQ_ERR:
	case PVR_EVENT_SRQ_LIMIT_REACHED:
		srq_event(dev, info, type);
		break;
	case PVR_EVENT_DEVICE_FATAL:
		pvr_dev_fail(dev, "it reported a fatal error");
		break;
	case PVR_EVENT_PORT_ACTIVE:
	case PVR_EVENT_PORT_ERR:
		pvr_port_kick(dev); /* the port state also depends on the NIC */
		break;
	case PVR_EVENT_LID_CHANGE:
	case PVR_EVENT_PKEY_CHANGE:
	case PVR_EVENT_SM_CHANGE:
	case PVR_EVENT_CLIENT_REREGISTER:
	case PVR_EVENT_GID_CHANGE:
		pvr_dispatch(dev, type);
		break;
	case PVR_EVENT_PAGE_FAULT:
		pvr_odp_event(dev, info);
		break;
	default:
		dev_dbg(&dev->pdev->dev, "unknown event %u\n", type);
	}
}

static irqreturn_t cmd_irq(int irq, void *data)
{
	struct pvr_dev *dev = data;

	complete(&dev->cmd.done);
	return IRQ_HANDLED;
}

/* A threaded handler: consumers' event handlers run in process context. */
static irqreturn_t event_thread(int irq, void *data)
{
	struct pvr_dev *dev = data;
	struct pvr_eqe eqe;
	int ret;

	while ((ret = pvr_evring_next(&dev->events, &eqe)) > 0) {
		handle_event(dev, &eqe);
		cond_resched();
	}
	if (ret < 0) {
		dev_err_ratelimited(
			&dev->pdev->dev,
			"async events lost: the device overran the ring\n");
		pvr_port_kick(dev);
	}
	return IRQ_HANDLED;
}

static bool has_events(struct pvr_evring *ring)
{
	u32 tail = le32_to_cpu(READ_ONCE(ring->ring_shm->prod_tail));

	return pvr_ring_used(tail, READ_ONCE(ring->head), ring->n);
}

/* The only vector of a device without MSI-X. It does not tell the cause. */
static irqreturn_t any_irq(int irq, void *data)
{
	struct pvr_dev *dev = data;

	complete(&dev->cmd.done);
	pvr_vectors_poll(dev);
	return has_events(&dev->events) ? IRQ_WAKE_THREAD : IRQ_HANDLED;
}

void pvr_cq_complete(struct pvr_dev *dev, u32 handle)
{
	struct pvr_cq *cq = cq_get(dev, handle);

	if (!cq)
		return;
	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	pvr_ref_put(&cq->ref);
}

void pvr_complete_all_cqs(struct pvr_dev *dev)
{
	unsigned long handle;
	struct pvr_cq *cq;

	xa_for_each(&dev->cqs, handle, cq)
		pvr_cq_complete(dev, handle);
}

/*
 * QPs of a dead device take no more requests from their SRQs. Consumers that drain a QP
 * wait for IB_EVENT_QP_LAST_WQE_REACHED.
 */
static void end_all_srqs(struct pvr_dev *dev)
{
	unsigned long handle;
	struct pvr_qp *qp;

	if (test_and_set_bit(PVR_DEV_SRQS_ENDED, &dev->flags))
		return;
	xa_for_each(&dev->qps, handle, qp) {
		qp = qp_get(dev, handle);
		if (!qp)
			continue;
		if (qp->ibqp.srq)
			qp_event(dev, handle, IB_EVENT_QP_LAST_WQE_REACHED);
		pvr_ref_put(&qp->ref);
	}
}

void pvr_flush_work(struct work_struct *work)
{
	struct pvr_dev *dev = container_of(work, struct pvr_dev, flush_work);

	pvr_complete_all_cqs(dev);
	end_all_srqs(dev);
}

static int request_irqs(struct pvr_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int err;

	err = pci_request_irq(pdev, PVR_VEC_CMD, cmd_irq, NULL, dev,
			      "pvrdma-cmd:%s", pci_name(pdev));
	if (err)
		return err;
	err = pci_request_irq(pdev, PVR_VEC_ASYNC, NULL, event_thread, dev,
			      "pvrdma-event:%s", pci_name(pdev));
	if (err)
		goto err_cmd;
	err = pvr_vectors_request_irqs(dev);
	if (err)
		goto err_async;
	return 0;

err_async:
	pci_free_irq(pdev, PVR_VEC_ASYNC, dev);
err_cmd:
	pci_free_irq(pdev, PVR_VEC_CMD, dev);
	return err;
}

static int request_one_irq(struct pvr_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int err = pvr_vectors_request_irqs(dev);

	if (err)
		return err;
	err = pci_request_irq(pdev, 0, any_irq, event_thread, dev, "pvrdma:%s",
			      pci_name(pdev));
	if (err)
		pvr_vectors_free_irqs(dev);
	return err;
}

int pvr_irq_init(struct pvr_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int n, err;

	n = pci_alloc_irq_vectors(pdev, PVR_VEC_NUM,
				  PVR_VEC_CQ + dev->num_vectors, PCI_IRQ_MSIX);
	dev->one_irq = n < 0 &&
		       pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSI) == 1;
	if (n < 0 && !dev->one_irq) {
		dev_err(&pdev->dev,
			"neither %d MSI-X vectors nor MSI: %pe; completions would be lost without\n",
			PVR_VEC_NUM, ERR_PTR(n));
		return n;
	}
	pvr_vectors_limit(dev, dev->one_irq ? 1 : n - PVR_VEC_CQ);
	err = dev->one_irq ? request_one_irq(dev) : request_irqs(dev);
	if (err)
		pci_free_irq_vectors(pdev);
	return err;
}

void pvr_irq_exit(struct pvr_dev *dev)
{
	pvr_vectors_free_irqs(dev);
	if (dev->one_irq) {
		pci_free_irq(dev->pdev, 0, dev);
	} else {
		pci_free_irq(dev->pdev, PVR_VEC_ASYNC, dev);
		pci_free_irq(dev->pdev, PVR_VEC_CMD, dev);
	}
	pci_free_irq_vectors(dev->pdev);
}
