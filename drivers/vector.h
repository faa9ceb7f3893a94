/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion vectors: each has an interrupt, a notification ring and its CPUs. */
#ifndef PVR_VECTOR_H
#define PVR_VECTOR_H

#include <linux/cpumask.h>

#include "event.h"

struct pvr_comp_vector {
	struct pvr_dev *dev;
	struct pvr_evring ring; /* pvr_cqne elements */
	cpumask_var_t cpus; /* affinity of its interrupt */
};

/**
 * pvr_vectors_init() - choose the number of vectors and allocate their rings
 * @dev: the adapter; dev->features is final
 *
 * Return: 0 or -ENOMEM; @dev has no vectors on failure.
 */
int pvr_vectors_init(struct pvr_dev *dev);
void pvr_vectors_exit(struct pvr_dev *dev);

/**
 * pvr_vectors_request_irqs() - request the vectors' interrupts
 * @dev: the adapter, which has an MSI-X vector for each of them, or one_irq
 *
 * Return: 0 or -errno, with no interrupt requested.
 */
int pvr_vectors_request_irqs(struct pvr_dev *dev);
void pvr_vectors_free_irqs(struct pvr_dev *dev);

/* Complete the notified CQs of vector 0. Call in the interrupt of a device with one_irq. */
void pvr_vectors_poll(struct pvr_dev *dev);

/**
 * pvr_vectors_limit() - free the vectors that have no MSI-X vector
 * @dev: the adapter; no interrupt is requested
 * @n: the maximum, at least 1
 */
void pvr_vectors_limit(struct pvr_dev *dev, u32 n);

/**
 * pvr_vectors_notify() - register the rings that are not in the DSR
 * @dev: the adapter, which is active
 *
 * Return: 0 or -errno.
 */
int pvr_vectors_notify(struct pvr_dev *dev);

/* For ib_core of some kernels. Return: the CPUs of a completion vector, or NULL. */
const struct cpumask *pvr_get_vector_affinity(struct ib_device *ibdev,
					      int vector);

#endif /* PVR_VECTOR_H */
