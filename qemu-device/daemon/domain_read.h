/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The XML of a libvirt domain: what it has, and whether it can have an adapter. */
#ifndef PVR_DAEMON_DOMAIN_READ_H
#define PVR_DAEMON_DOMAIN_READ_H

#include <json-c/json.h>
#include <libxml/tree.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "daemon/adapter_settings.h"

#define PVR_QEMU_XMLNS "http://libvirt.org/schemas/domain/qemu/1.0"
#define PVR_METADATA_XMLNS "urn:pvrdma:libvirt:1"
#define PVR_DOMAIN_BYTES (8u << 20) /* limit of a domain's XML */
#define PVR_DOMAIN_ID "pvrdma-" /* begins the ids of our devices, an adapter's name follows */
#define PVR_DOMAIN_TEXT 256
/* QEMU's devices: the one of every QEMU, and the one that it can migrate. */
#define PVR_STOCK_DRIVER "vfio-user-pci"
#define PVR_MIGRATABLE_DRIVER "pvrdma"

/*
 * Parse a domain of at most PVR_DOMAIN_BYTES. @source is its file's name, for errors.
 * Return: the caller's, xmlFreeDoc(); or NULL with @err filled.
 */
xmlDoc *pvr_domain_parse(const char *text, size_t len, const char *source, struct pvr_error *err);

/* Return: the first child element of this name without a name space, or NULL; also of NULL. */
xmlNode *pvr_domain_child(xmlNode *parent, const char *name);
/* The child element of this name in a name space. */
xmlNode *pvr_domain_child_ns(xmlNode *parent, const char *name, const char *ns);
/* The next sibling of the same name and name space. */
xmlNode *pvr_domain_next(xmlNode *node);
/* Copies an attribute. Return: false, with "" in @to, if there is none or it is too long. */
bool pvr_domain_attr(xmlNode *node, const char *name, char *to, size_t size);
/* The domain's name, or "?". */
const char *pvr_domain_name(xmlDoc *doc, char name[PVR_DOMAIN_TEXT]);

/*
 * Return: false with @err filled if the domain cannot have an adapter: another machine type than
 * q35, RAM that is not shared, or no NIC with the adapter's MAC address.
 */
bool pvr_domain_check(xmlDoc *doc, const uint8_t mac[6], struct pvr_error *err);

/* The <interface> with this MAC address, or NULL. */
xmlNode *pvr_domain_nic(xmlDoc *doc, const uint8_t mac[6]);

/* An adapter that the hook makes, as add-adapter takes it. */
typedef bool pvr_domain_settings_fn(void *opaque, const char *settings, struct pvr_error *err);
/* Calls @each for the adapters in the domain's metadata until it returns false. */
bool pvr_domain_each_settings(xmlDoc *doc, pvr_domain_settings_fn *each, void *opaque,
			      struct pvr_error *err);

struct pvr_domain_device {
	const char *name; /* of the adapter */
	const char *socket;
	bool migratable; /* QEMU's device pvrdma, not vfio-user-pci */
};

/* The socket's path of a device of ours, from its JSON; "" if there is none. */
const char *pvr_domain_socket(struct json_object *device);

/* Calls @each for our devices until it returns false. */
typedef bool pvr_domain_device_fn(void *opaque, const struct pvr_domain_device *device,
				  struct pvr_error *err);
bool pvr_domain_each_device(xmlDoc *doc, pvr_domain_device_fn *each, void *opaque,
			    struct pvr_error *err);

#endif /* PVR_DAEMON_DOMAIN_READ_H */
