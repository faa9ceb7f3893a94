/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Where an ib_device is found: its network namespace and its name. */
#ifndef PVR_PLACE_H
#define PVR_PLACE_H

#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>

/*
 * DOC: Place of an adapter
 *
 * An administrator gives an adapter to a container, and renames it. Each start registers
 * another ib_device. So a stop keeps the place of the ib_device, and the next start of the
 * PCI function uses it. A namespace whose last process has ended meanwhile ends after that
 * start, and ib_core then moves the adapter back to the initial one, as at any other time.
 */
struct pvr_place {
	struct net *net; /* with a reference, or NULL */
	char name[IB_DEVICE_NAME_MAX]; /* empty: none */
};

/**
 * pvr_place_keep_net() - keep the namespace of an ib_device, before it is unregistered
 * @place: overwritten
 * @ibdev: registered
 */
void pvr_place_keep_net(struct pvr_place *place, const struct ib_device *ibdev);

/* Keep its name, after it was unregistered: it cannot be renamed any more. */
void pvr_place_keep_name(struct pvr_place *place,
			 const struct ib_device *ibdev);

/**
 * pvr_place_register() - register an ib_device at a place, and forget that
 * @place: where; the name is a free one of the driver's if it is empty or taken
 * @ibdev: ready for ib_register_device()
 * @dma_dev: its DMA device
 *
 * Return: as ib_register_device(). On failure the place is kept.
 */
int pvr_place_register(struct pvr_place *place, struct ib_device *ibdev,
		       struct device *dma_dev);

/* Call if no start follows: otherwise the namespace would never end. */
void pvr_place_forget(struct pvr_place *place);

#endif /* PVR_PLACE_H */
