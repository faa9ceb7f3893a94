/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion vectors: each has an interrupt, a notification ring and its CPUs. */
#ifndef PVR_VECTOR_H
#define PVR_VECTOR_H

#include <linux/cpumask.h>

#include "event.h"

struct pvr_comp_vector {
	struct pvr_dev *dev;
	struct pvr_evring ring; /* pvr_cqne elements */
	cpumask_var_t cpus; /* where its interrupt goes */
};

/**
 * pvr_vectors_init() - decide how many there are and make their rings
 * @dev: the adapter; dev->features is settled
 *
 * Return: 0 or -ENOMEM.
 */
int pvr_vectors_init(struct pvr_dev *dev);
void pvr_vectors_exit(struct pvr_dev *dev);

/**
 * pvr_vectors_request_irqs() - have the vectors' interrupts handled
 * @dev: the adapter, which has been granted an MSI-X vector for each of them
 *
 * Return: 0 or -errno, with no interrupt requested.
 */
int pvr_vectors_request_irqs(struct pvr_dev *dev);
void pvr_vectors_free_irqs(struct pvr_dev *dev);

/**
 * pvr_vectors_limit() - give up those for which there is no MSI-X vector
 * @dev: the adapter; no interrupt is requested
 * @n: how many there may be, at least 1
 */
void pvr_vectors_limit(struct pvr_dev *dev, u32 n);

/**
 * pvr_vectors_announce() - tell the device of the rings that the DSR has no room for
 * @dev: the adapter, which is active
 *
 * Return: 0 or -errno.
 */
int pvr_vectors_announce(struct pvr_dev *dev);

/* For ib_core, where it asks: the CPUs of a completion vector. */
const struct cpumask *pvr_get_vector_affinity(struct ib_device *ibdev,
					      int vector);

#endif /* PVR_VECTOR_H */
