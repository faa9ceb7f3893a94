// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The XML of a libvirt domain: what it has, and whether it can have an adapter. */
#include "daemon/domain_read.h"

#include <json-c/json.h>
#include <libxml/parser.h>
#include <string.h>

#include "daemon/json_get.h"

static const xmlChar *xml(const char *text)
{
	return (const xmlChar *)text;
}

/* ---------------------------------------------------------------------- elements */

static bool is_element(const xmlNode *node, const char *name, const char *ns)
{
	if (node->type != XML_ELEMENT_NODE || xmlStrcmp(node->name, xml(name)) != 0)
		return false;
	return ns ? node->ns && !xmlStrcmp(node->ns->href, xml(ns)) : !node->ns;
}

xmlNode *pvr_domain_child_ns(xmlNode *parent, const char *name, const char *ns)
{
	xmlNode *node = parent ? parent->children : NULL;

	while (node && !is_element(node, name, ns))
		node = node->next;
	return node;
}

xmlNode *pvr_domain_child(xmlNode *parent, const char *name)
{
	return pvr_domain_child_ns(parent, name, NULL);
}

xmlNode *pvr_domain_next(xmlNode *node)
{
	const char *name = (const char *)node->name;
	const char *ns = node->ns ? (const char *)node->ns->href : NULL;
	xmlNode *next = node->next;

	while (next && !is_element(next, name, ns))
		next = next->next;
	return next;
}

/* Frees @value. */
static bool copy_text(xmlChar *value, char *to, size_t size)
{
	bool fits = value && (size_t)xmlStrlen(value) < size;

	snprintf(to, size, "%s", fits ? (const char *)value : "");
	xmlFree(value);
	return fits;
}

bool pvr_domain_attr(xmlNode *node, const char *name, char *to, size_t size)
{
	return copy_text(node ? xmlGetNoNsProp(node, xml(name)) : NULL, to, size);
}

const char *pvr_domain_name(xmlDoc *doc, char name[PVR_DOMAIN_TEXT])
{
	xmlNode *node = pvr_domain_child(xmlDocGetRootElement(doc), "name");

	if (!node || !copy_text(xmlNodeGetContent(node), name, PVR_DOMAIN_TEXT))
		snprintf(name, PVR_DOMAIN_TEXT, "?");
	return name;
}

/* ------------------------------------------------------------------------- parse */

static void no_xml(const char *source, struct pvr_error *err)
{
	const xmlError *last = xmlGetLastError();
	const char *message = last && last->message ? last->message : "it is empty";
	int line = last ? last->line : 0;

	pvr_fail(err, "%.256s is no XML: line %d: %.*s", source, line, (int)strcspn(message, "\n"),
		 message);
}

xmlDoc *pvr_domain_parse(const char *text, size_t len, const char *source, struct pvr_error *err)
{
	const int options = XML_PARSE_NONET | XML_PARSE_NOBLANKS | XML_PARSE_NOERROR |
			    XML_PARSE_NOWARNING;
	xmlNode *root;
	xmlDoc *doc;

	if (len > PVR_DOMAIN_BYTES) {
		pvr_fail(err, "%.256s has more than %u MiB, which no domain has", source,
			 PVR_DOMAIN_BYTES >> 20);
		return NULL;
	}
	xmlResetLastError();
	doc = xmlReadMemory(text, (int)len, NULL, NULL, options);
	if (!doc) {
		no_xml(source, err);
		return NULL;
	}
	root = xmlDocGetRootElement(doc);
	if (root && is_element(root, "domain", NULL) && !doc->intSubset)
		return doc;
	if (doc->intSubset)
		pvr_fail(err, "%.256s has a DOCTYPE, which no domain has", source);
	else
		pvr_fail(err,
			 "%.256s is no libvirt domain: its first element is <%.64s>, expected "
			 "<domain>, as printed by 'virsh dumpxml --inactive'",
			 source, root ? (const char *)root->name : "");
	xmlFreeDoc(doc);
	return NULL;
}

/* ------------------------------------------------------------------------ checks */

static bool check_machine(xmlNode *root, const char *name, struct pvr_error *err)
{
	xmlNode *type = pvr_domain_child(pvr_domain_child(root, "os"), "type");
	char machine[PVR_DOMAIN_TEXT], arch[PVR_DOMAIN_TEXT];

	if (pvr_domain_attr(type, "arch", arch, sizeof(arch)) && strcmp(arch, "x86_64") != 0)
		return pvr_fail(err, "domain '%s' has the architecture %s, expected x86_64", name,
				arch);
	pvr_domain_attr(type, "machine", machine, sizeof(machine));
	return strstr(machine, "q35") ||
	       pvr_fail(err,
			"domain '%s' has the machine type '%s', expected q35: set it by "
			"<os><type arch='x86_64' machine='q35'>hvm</type></os>",
			name, machine);
}

static bool is_private(xmlNode *node, const char *attr)
{
	char value[PVR_DOMAIN_TEXT];

	return pvr_domain_attr(node, attr, value, sizeof(value)) && strcmp(value, "shared") != 0;
}

static bool check_backing(xmlNode *backing, const char *name, struct pvr_error *err)
{
	char type[PVR_DOMAIN_TEXT];

	if (is_private(pvr_domain_child(backing, "access"), "mode"))
		return pvr_fail(err,
				"domain '%s' has <access mode='private'/> in <memoryBacking>, but "
				"pvrdmad must map its RAM: change it to 'shared'",
				name);
	pvr_domain_attr(pvr_domain_child(backing, "source"), "type", type, sizeof(type));
	return strcmp(type, "anonymous") != 0 ||
	       pvr_fail(err,
			"domain '%s' has <source type='anonymous'/> in <memoryBacking>, but "
			"pvrdmad must map its RAM: change it to 'memfd'",
			name);
}

/* NUMA cells and DIMMs can be private in spite of <memoryBacking>. */
static bool check_pieces(xmlNode *root, const char *name, struct pvr_error *err)
{
	xmlNode *numa = pvr_domain_child(pvr_domain_child(root, "cpu"), "numa"), *node;

	for (node = pvr_domain_child(numa, "cell"); node; node = pvr_domain_next(node))
		if (is_private(node, "memAccess"))
			return pvr_fail(err,
					"domain '%s' has a NUMA cell with memAccess='private': "
					"change it to 'shared'",
					name);
	node = pvr_domain_child(pvr_domain_child(root, "devices"), "memory");
	for (; node; node = pvr_domain_next(node))
		if (is_private(node, "access"))
			return pvr_fail(err,
					"domain '%s' has a memory device with access='private': "
					"change it to 'shared'",
					name);
	return true;
}

xmlNode *pvr_domain_nic(xmlDoc *doc, const uint8_t mac[6])
{
	xmlNode *devices = pvr_domain_child(xmlDocGetRootElement(doc), "devices");
	xmlNode *node = pvr_domain_child(devices, "interface");
	char wanted[PVR_MAC_TEXT], found[PVR_DOMAIN_TEXT];

	pvr_mac_text(mac, wanted);
	for (; node; node = pvr_domain_next(node))
		if (pvr_domain_attr(pvr_domain_child(node, "mac"), "address", found,
				    sizeof(found)) &&
		    !strcasecmp(found, wanted))
			return node;
	return NULL;
}

static bool check_nic(xmlDoc *doc, const char *name, const uint8_t mac[6], struct pvr_error *err)
{
	char wanted[PVR_MAC_TEXT];

	if (pvr_domain_nic(doc, mac))
		return true;
	return pvr_fail(err,
			"domain '%s' has no <interface> with <mac address='%s'/>, the MAC address "
			"of the adapter: both need the same one",
			name, pvr_mac_text(mac, wanted));
}

bool pvr_domain_check(xmlDoc *doc, const uint8_t mac[6], struct pvr_error *err)
{
	xmlNode *root = xmlDocGetRootElement(doc);
	char name[PVR_DOMAIN_TEXT], type[PVR_DOMAIN_TEXT];

	pvr_domain_name(doc, name);
	pvr_domain_attr(root, "type", type, sizeof(type));
	if (strcmp(type, "kvm") != 0 && strcmp(type, "qemu") != 0)
		return pvr_fail(err, "domain '%s' has the type '%s', expected kvm or qemu", name,
				type);
	return check_machine(root, name, err) &&
	       check_backing(pvr_domain_child(root, "memoryBacking"), name, err) &&
	       check_pieces(root, name, err) && check_nic(doc, name, mac, err);
}

/* ---------------------------------------------------------------------- adapters */

bool pvr_domain_each_settings(xmlDoc *doc, pvr_domain_settings_fn *each, void *opaque,
			      struct pvr_error *err)
{
	xmlNode *node = pvr_domain_child(xmlDocGetRootElement(doc), "metadata");
	char settings[2 * PVR_PATH_MAX];

	node = pvr_domain_child_ns(node, "adapters", PVR_METADATA_XMLNS);
	node = pvr_domain_child_ns(node, "adapter", PVR_METADATA_XMLNS);
	for (; node; node = pvr_domain_next(node)) {
		if (!copy_text(xmlNodeGetContent(node), settings, sizeof(settings)))
			return pvr_fail(err,
					"an <adapter> of the domain's metadata has more than "
					"%zu characters",
					sizeof(settings) - 1);
		if (!each(opaque, settings, err))
			return false;
	}
	return true;
}

const char *pvr_domain_socket(struct json_object *device)
{
	struct json_object *socket;

	if (!strcmp(text_of(device, "driver"), PVR_MIGRATABLE_DRIVER))
		return text_of(device, "path");
	return json_object_object_get_ex(device, "socket", &socket) ? text_of(socket, "path") : "";
}

/* Return: whether the JSON of an argument of QEMU is a device of ours. */
static bool read_device(struct json_object *json, struct pvr_domain_device *device)
{
	const char *driver = text_of(json, "driver"), *id = text_of(json, "id");

	device->migratable = !strcmp(driver, PVR_MIGRATABLE_DRIVER);
	if (!device->migratable && strcmp(driver, PVR_STOCK_DRIVER) != 0)
		return false;
	device->name = id + strlen(PVR_DOMAIN_ID);
	device->socket = pvr_domain_socket(json);
	return !strncmp(id, PVR_DOMAIN_ID, strlen(PVR_DOMAIN_ID)) && device->socket[0];
}

bool pvr_domain_each_device(xmlDoc *doc, pvr_domain_device_fn *each, void *opaque,
			    struct pvr_error *err)
{
	xmlNode *node =
		pvr_domain_child_ns(xmlDocGetRootElement(doc), "commandline", PVR_QEMU_XMLNS);
	struct pvr_domain_device device;
	struct json_object *json;
	char value[2 * PVR_PATH_MAX];
	bool ok = true;

	node = pvr_domain_child_ns(node, "arg", PVR_QEMU_XMLNS);
	for (; ok && node; node = pvr_domain_next(node)) {
		if (!pvr_domain_attr(node, "value", value, sizeof(value)) || value[0] != '{')
			continue;
		json = json_tokener_parse(value);
		if (read_device(json, &device))
			ok = each(opaque, &device, err);
		json_object_put(json);
	}
	return ok;
}
