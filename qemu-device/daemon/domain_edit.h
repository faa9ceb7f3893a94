/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Insertion of an adapter into the XML of a libvirt domain. */
#ifndef PVR_DAEMON_DOMAIN_EDIT_H
#define PVR_DAEMON_DOMAIN_EDIT_H

#include <libxml/tree.h>
#include <stdbool.h>

#include "base/error.h"
#include "daemon/adapter_settings.h"

struct pvr_domain_adapter {
	struct pvr_adapter_settings settings; /* name, socket and MAC are set */
	const char *hook_text; /* settings for the hook, which makes the adapter; or NULL */
	bool posted_writes;
	bool migratable; /* by QEMU's device pvrdma */
	bool unplugged; /* the domain has all but the device, which is plugged in later */
	const char *guard; /* an image whose format QEMU does not migrate; or NULL */
};

/*
 * Insert shared memory, a port, the device and its settings; replace those of the same adapter.
 * QEMU does not refuse to migrate a vfio-user-pci device. So a domain with one has a block node of
 * @guard, too, which keeps QEMU from migration while it exists. No guest sees it.
 * pvr_domain_check() has accepted the domain. Return: false with @err filled.
 */
bool pvr_domain_insert(xmlDoc *doc, const struct pvr_domain_adapter *adapter,
		       struct pvr_error *err);

#endif /* PVR_DAEMON_DOMAIN_EDIT_H */
