/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The interrupts of one client: eventfds that its QEMU gave us. */
#ifndef PVR_ATTACH_IRQ_H
#define PVR_ATTACH_IRQ_H

#include <libvfio-user.h>

#include "base/error.h"
#include "engine.h"

struct pvr_irq {
	int fds[PVR_VEC_MAX]; /* -1: none */
	bool stalled; /* writing one blocked until a signal came; read by any thread */
	bool enabled; /* MSI-X has been turned on */
	uint32_t pending; /* vectors that had no eventfd when they were raised */
};

/*
 * raise() comes from any thread, under the adapter's lock: pvr_irq_set() takes that, and
 * pvr_irq_init() and pvr_irq_close_all() are called while nobody raises anything here.
 */

void pvr_irq_init(struct pvr_irq *irq);
void pvr_irq_close_all(struct pvr_irq *irq);

/* Never waits. A vector without an eventfd is raised when it gets one, if MSI-X is on. */
void pvr_irq_raise(struct pvr_irq *irq, uint32_t vector);

/**
 * pvr_irq_set() - VFIO_USER_DEVICE_SET_IRQS
 * @adapter: that raises them
 * @set: checked here
 * @len: bytes at @set
 * @fds: those that are kept are replaced by -1
 *
 * Return: 0, or -errno for the client, with @err filled.
 */
int pvr_irq_set(struct pvr_irq *irq, struct pvr_adapter *adapter, const struct vfio_irq_set *set,
		size_t len, int *fds, size_t num_fds, struct pvr_error *err);

#endif /* PVR_ATTACH_IRQ_H */
