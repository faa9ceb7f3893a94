// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The network namespace and the name of an ib_device outlive its restart. See place.h. */
#include "pvrdma.h"

#define ANY_NAME "pvrdma%d"

void pvr_place_forget(struct pvr_place *place)
{
	if (place->net)
		put_net(place->net);
	place->net = NULL;
	place->name[0] = 0;
}

/*
 * A namespace that ends moves the ib_device away, and waits for readers under RCU before it
 * is freed.
 */
void pvr_place_keep_net(struct pvr_place *place, const struct ib_device *ibdev)
{
	pvr_place_forget(place);
	rcu_read_lock();
	place->net = maybe_get_net(read_pnet_rcu(&ibdev->coredev.rdma_net));
	rcu_read_unlock();
}

void pvr_place_keep_name(struct pvr_place *place, const struct ib_device *ibdev)
{
	/* ib_core takes the name of a registration for a format. */
	if (!strchr(ibdev->name, '%'))
		strscpy(place->name, ibdev->name, sizeof(place->name));
}

/* Meanwhile another device may have got the name. */
static int register_by_name(struct pvr_place *place, struct ib_device *ibdev,
			    struct device *dma_dev)
{
	int err;

	if (!place->name[0])
		return ib_register_device(ibdev, ANY_NAME, dma_dev);
	err = ib_register_device(ibdev, place->name, dma_dev);
	if (err != -ENFILE)
		return err;
	dev_warn(dma_dev, "the name %s is taken: the device gets another one\n",
		 place->name);
	return ib_register_device(ibdev, ANY_NAME, dma_dev);
}

int pvr_place_register(struct pvr_place *place, struct ib_device *ibdev,
		       struct device *dma_dev)
{
	int err;

	if (place->net)
		write_pnet(&ibdev->coredev.rdma_net, place->net);
	err = register_by_name(place, ibdev, dma_dev);
	if (!err)
		pvr_place_forget(place);
	return err;
}
