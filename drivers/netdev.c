// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The paired NIC: a netdev that has the adapter's MAC address, present or future. */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/sysfs.h>

#include "pvrdma.h"

#define LINK_NAME "net"

/*
 * Bridges, VLANs and bonds copy MAC addresses of NICs, but have no parent device on a
 * bus.
 */
static bool is_real(const struct net_device *ndev)
{
	return ndev->type == ARPHRD_ETHER && ndev->dev.parent &&
	       !is_vlan_dev(ndev) && !netif_is_bond_master(ndev) &&
	       !netif_is_macvlan(ndev);
}

/* The NIC of a device that reports no MAC address is function 0 of the same PCI slot. */
static bool is_function_0(const struct pvr_dev *dev,
			  const struct net_device *ndev)
{
	struct pci_dev *pdev = dev->pdev, *other;

	if (!ndev->dev.parent || !dev_is_pci(ndev->dev.parent))
		return false;
	other = to_pci_dev(ndev->dev.parent);
	return other->bus == pdev->bus &&
	       other->devfn == PCI_DEVFN(PCI_SLOT(pdev->devfn), 0);
}

static bool matches(const struct pvr_dev *dev, const struct net_device *ndev)
{
	if (!is_real(ndev))
		return false;
	if (!is_valid_ether_addr(dev->mac))
		return is_function_0(dev, ndev);
	return ether_addr_equal_unaligned(ndev->dev_addr, dev->mac) ||
	       ether_addr_equal_unaligned(ndev->perm_addr, dev->mac);
}

/*
 * Return: the sysfs directory device/net of the NIC's parent device, or NULL. It exists
 * while the NIC is registered.
 */
static struct kobject *netdev_folder(const struct net_device *ndev)
{
	struct kobject *folder = ndev->dev.kobj.parent;

	if (!folder || strcmp(kobject_name(folder), LINK_NAME))
		return NULL;
	return folder;
}

/*
 * Programs search the NIC in /sys/class/infiniband/DEVICE/device/net/. Here the NIC is
 * another device, so the adapter gets a symlink to that directory. A NIC whose parent is
 * the adapter itself has the real directory.
 */
static void link_add(struct pvr_dev *dev, const struct net_device *ndev)
{
	struct kobject *folder = netdev_folder(ndev);

	ASSERT_RTNL();
	if (!folder || dev->netdev_link)
		return;
	dev->netdev_link = !sysfs_create_link_nowarn(&dev->pdev->dev.kobj,
						     folder, LINK_NAME);
}

static void link_remove(struct pvr_dev *dev)
{
	ASSERT_RTNL();
	if (dev->netdev_link)
		sysfs_remove_link(&dev->pdev->dev.kobj, LINK_NAME);
	dev->netdev_link = false;
}

/* Takes a reference on @ndev, which may be NULL, and drops that on the former NIC. */
static int netdev_set(struct pvr_dev *dev, struct net_device *ndev)
{
	struct net_device *old;
	int err;

	ASSERT_RTNL();
	err = ib_device_set_netdev(&dev->ibdev, ndev, 1);
	if (err)
		return err;
	dev_hold(ndev);
	spin_lock(&dev->netdev_lock);
	old = dev->netdev;
	dev->netdev = ndev;
	spin_unlock(&dev->netdev_lock);
	dev_put(old);
	return 0;
}

/*
 * ib_core would find the NIC without this, but SMC-R calls the operation itself. Return: the
 * NIC with a reference for the caller, or NULL.
 */
struct net_device *pvr_get_netdev(struct ib_device *ibdev, u32 port)
{
	struct pvr_dev *dev = to_pvr_dev(ibdev);
	struct net_device *ndev;

	spin_lock(&dev->netdev_lock);
	ndev = dev->netdev;
	dev_hold(ndev);
	spin_unlock(&dev->netdev_lock);
	return ndev;
}

static void pair(struct pvr_dev *dev, struct net_device *ndev)
{
	int err = netdev_set(dev, ndev);

	if (err) {
		dev_err(&dev->pdev->dev, "cannot pair with %s: %pe\n",
			netdev_name(ndev), ERR_PTR(err));
		return;
	}
	dev_info(&dev->pdev->dev, "paired with %s (%pM)\n", netdev_name(ndev),
		 ndev->dev_addr);
	link_add(dev, ndev);
	set_bit(PVR_DEV_RESCAN_GIDS, &dev->flags);
}

static void unpair(struct pvr_dev *dev)
{
	dev_info(&dev->pdev->dev, "no longer paired with %s\n",
		 netdev_name(dev->netdev));
	link_remove(dev);
	netdev_set(dev, NULL);
}

/*
 * A pairing lasts until the NIC is unregistered, even if its MAC address changes. Its
 * GIDs follow its addresses, and the device checks them.
 */
static int netdev_event(struct notifier_block *nb, unsigned long event,
			void *ptr)
{
	struct pvr_dev *dev = container_of(nb, struct pvr_dev, netdev_nb);
	struct net_device *ndev = netdev_notifier_info_to_dev(ptr);

	switch (event) {
	case NETDEV_POST_INIT:
		/* registration next creates a directory of the link's name */
		if (ndev->dev.parent == &dev->pdev->dev)
			link_remove(dev);
		return NOTIFY_DONE;
	case NETDEV_REGISTER:
	case NETDEV_CHANGEADDR:
		if (!dev->netdev && matches(dev, ndev))
			pair(dev, ndev);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
	case NETDEV_UNREGISTER:
		break;
	default:
		return NOTIFY_DONE;
	}
	if (ndev != dev->netdev)
		return NOTIFY_DONE;
	if (event == NETDEV_UNREGISTER)
		unpair(dev);
	pvr_port_kick(dev);
	return NOTIFY_DONE;
}

bool pvr_netdev_ready(struct pvr_dev *dev)
{
	bool ready;

	spin_lock(&dev->netdev_lock);
	ready = dev->netdev && netif_running(dev->netdev) &&
		netif_carrier_ok(dev->netdev);
	spin_unlock(&dev->netdev_lock);
	return ready;
}

/* Registration of the notifier replays NETDEV_REGISTER for all existing NICs. */
int pvr_netdev_init(struct pvr_dev *dev)
{
	int err;

	dev->ibdev.phys_port_cnt = 1; /* needed by ib_device_set_netdev() */
	dev->netdev_nb.notifier_call = netdev_event;
	err = register_netdevice_notifier(&dev->netdev_nb);
	if (err)
		return err;
	if (!dev->netdev)
		dev_info(
			&dev->pdev->dev,
			"no NIC with MAC %pM yet; the port stays down until there is one\n",
			dev->mac);
	return 0;
}

/* Unregistration replays NETDEV_UNREGISTER, which ends the pairing. */
void pvr_netdev_exit(struct pvr_dev *dev)
{
	unregister_netdevice_notifier(&dev->netdev_nb);
}
