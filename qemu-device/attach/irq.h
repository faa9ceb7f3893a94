/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The interrupts of one client: eventfds of its QEMU. */
#ifndef PVR_ATTACH_IRQ_H
#define PVR_ATTACH_IRQ_H

#include <libvfio-user.h>

#include "base/error.h"
#include "engine.h"

struct pvr_irq {
	bool msi; /* there is one vector, of MSI, for all causes */
	int fds[PVR_VEC_MAX]; /* -1: none */
	bool stalled; /* a write blocked until a signal came; read by any thread */
	bool enabled; /* MSI-X or MSI is enabled */
	bool pending[PVR_VEC_MAX]; /* vectors raised while they had no eventfd */
};

/*
 * Any thread calls pvr_irq_raise() under the adapter's lock. pvr_irq_set() takes that
 * lock. pvr_irq_init() and pvr_irq_close_all() must not run concurrently with
 * pvr_irq_raise().
 */

void pvr_irq_init(struct pvr_irq *irq, bool msi);
void pvr_irq_close_all(struct pvr_irq *irq);

/* Never blocks. A vector without an eventfd becomes pending if MSI-X is enabled.
 * With MSI, all vectors are vector 0. */
void pvr_irq_raise(struct pvr_irq *irq, uint32_t vector);

/**
 * pvr_irq_set() - VFIO_USER_DEVICE_SET_IRQS
 * @adapter: the adapter that raises the vectors; paused during the change
 * @set: unchecked data of the client
 * @len: bytes at @set
 * @fds: descriptors that are kept are replaced by -1
 *
 * Return: 0, or -errno for the client, with @err filled.
 */
int pvr_irq_set(struct pvr_irq *irq, struct pvr_adapter *adapter, const struct vfio_irq_set *set,
		size_t len, int *fds, size_t num_fds, struct pvr_error *err);

#endif /* PVR_ATTACH_IRQ_H */
