// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Insertion of an adapter into the XML of a libvirt domain. */
#include "daemon/domain_edit.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "daemon/domain_read.h"
#include "daemon/json_get.h"
#include "daemon/json_put.h"

/* libvirt numbers the chassis of its ports from 1. */
#define CHASSIS_MAX 255
/* BARs of the device. The default of a port is 2 MiB, fewer than BAR 2 has. */
#define PORT_MEMORY (16 << 20)
/* QEMU names it as the reason why the domain does not migrate. */
#define GUARD_NODE "pvrdma-is-plugged"
#define ID_MAX (PVR_NAME_MAX + 32)

static const xmlChar *xml(const char *text)
{
	return (const xmlChar *)text;
}

/* ------------------------------------------------------------------------- elements */

/* Return: the child of this name, which is inserted before the child @before if there is none. */
static xmlNode *need_child(xmlNode *parent, const char *name, const char *before)
{
	xmlNode *node = pvr_domain_child(parent, name), *next = pvr_domain_child(parent, before);

	if (node)
		return node;
	node = xmlNewNode(NULL, xml(name));
	return next ? xmlAddPrevSibling(next, node) : xmlAddChild(parent, node);
}

static void share_memory(xmlNode *root)
{
	xmlNode *backing = need_child(root, "memoryBacking", "os");
	xmlNode *source = pvr_domain_child(backing, "source");

	if (!source) {
		source = xmlNewChild(backing, NULL, xml("source"), NULL);
		xmlSetProp(source, xml("type"), xml("memfd"));
	}
	xmlSetProp(need_child(backing, "access", ""), xml("mode"), xml("shared"));
}

static xmlNs *need_ns(xmlNode *node, const char *href, const char *prefix)
{
	xmlNs *ns = xmlSearchNsByHref(node->doc, node, xml(href));

	return ns ? ns : xmlNewNs(node, xml(href), xml(prefix));
}

/* ------------------------------------------------------------------------- metadata */

/* Return: whether the settings are those of the adapter @name. */
static bool settings_name(xmlNode *node, const char *name)
{
	struct pvr_adapter_settings settings;
	xmlChar *text = xmlNodeGetContent(node);
	struct pvr_error err;
	bool same = text && pvr_adapter_settings_parse(&settings, (const char *)text, &err) &&
		    !strcmp(settings.name, name);

	xmlFree(text);
	return same;
}

static xmlNode *find_settings(xmlNode *adapters, const char *name)
{
	xmlNode *node = pvr_domain_child_ns(adapters, "adapter", PVR_METADATA_XMLNS);

	while (node && !settings_name(node, name))
		node = pvr_domain_next(node);
	return node;
}

static void remove_node(xmlNode *node)
{
	xmlUnlinkNode(node);
	xmlFreeNode(node);
}

/* An adapter that pvrdmad has by itself is not the hook's, so its settings are removed. */
static void remove_settings(xmlNode *root, const char *name)
{
	xmlNode *metadata = pvr_domain_child(root, "metadata");
	xmlNode *adapters = pvr_domain_child_ns(metadata, "adapters", PVR_METADATA_XMLNS);
	xmlNode *node = find_settings(adapters, name);

	if (node)
		remove_node(node);
	if (adapters && !xmlChildElementCount(adapters))
		remove_node(adapters);
	if (metadata && node && !metadata->children)
		remove_node(metadata);
}

static void put_settings(xmlNode *root, const char *name, const char *text)
{
	xmlNode *metadata = need_child(root, "metadata", "memory");
	xmlNode *adapters = pvr_domain_child_ns(metadata, "adapters", PVR_METADATA_XMLNS);
	xmlNode *node = find_settings(adapters, name);

	if (!adapters) {
		adapters = xmlNewChild(metadata, NULL, xml("adapters"), NULL);
		xmlSetNs(adapters, need_ns(adapters, PVR_METADATA_XMLNS, "pvrdma"));
	}
	if (node)
		remove_node(node);
	xmlNewTextChild(adapters, adapters->ns, xml("adapter"), xml(text));
}

/* --------------------------------------------------------------------- command line */

static struct json_object *device_of(xmlNode *arg)
{
	char value[2 * PVR_PATH_MAX];

	if (!pvr_domain_attr(arg, "value", value, sizeof(value)) || value[0] != '{')
		return NULL;
	return json_tokener_parse(value);
}

/* Return: the argument with the device or node of this id, or with this socket if @path is given. */
static xmlNode *find_device(xmlNode *command_line, const char *id, const char *path)
{
	xmlNode *arg = pvr_domain_child_ns(command_line, "arg", PVR_QEMU_XMLNS);
	struct json_object *device;
	bool found;

	for (; arg; arg = pvr_domain_next(arg)) {
		device = device_of(arg);
		found = device && (!strcmp(text_of(device, "id"), id) ||
				   !strcmp(text_of(device, "node-name"), id) ||
				   (path && !strcmp(pvr_domain_socket(device), path)));
		json_object_put(device);
		if (found)
			break;
	}
	return arg;
}

static bool is_chassis_used(xmlNode *command_line, int chassis)
{
	xmlNode *arg = pvr_domain_child_ns(command_line, "arg", PVR_QEMU_XMLNS);
	struct json_object *device;
	bool used = false;

	for (; arg && !used; arg = pvr_domain_next(arg)) {
		device = device_of(arg);
		used = device && number_of(device, "chassis") == (uint64_t)chassis;
		json_object_put(device);
	}
	return used;
}

static void add_arg(xmlNode *command_line, const char *value)
{
	xmlNode *arg = xmlNewChild(command_line, command_line->ns, xml("arg"), NULL);

	xmlSetProp(arg, xml("value"), xml(value));
}

/* Sets the argument's value, or appends @option and it if @arg is NULL. Consumes @device. */
static void put_option(xmlNode *command_line, xmlNode *arg, const char *option,
		       struct json_object *device)
{
	const char *text = json_object_to_json_string_ext(
		device, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (arg) {
		xmlSetProp(arg, xml("value"), xml(text));
	} else {
		add_arg(command_line, option);
		add_arg(command_line, text);
	}
	json_object_put(device);
}

/* A port of its own lets the device be unplugged and plugged in. Keeps an existing port. */
static bool put_port(xmlNode *command_line, const char *id, struct pvr_error *err)
{
	struct json_object *port;
	int chassis = CHASSIS_MAX;

	if (find_device(command_line, id, NULL))
		return true;
	while (chassis && is_chassis_used(command_line, chassis))
		chassis--;
	if (!chassis)
		return pvr_fail(err, "the domain has ports with all %d chassis numbers",
				CHASSIS_MAX);
	port = json_object_new_object();
	put_text(port, "driver", "pcie-root-port");
	put_text(port, "id", id);
	put_number(port, "chassis", (uint64_t)chassis);
	put_number(port, "mem-reserve", PORT_MEMORY);
	put_option(command_line, NULL, "-device", port);
	return true;
}

static void put_adapter(xmlNode *command_line, const struct pvr_domain_adapter *adapter,
			const char *id, const char *port)
{
	struct json_object *device = json_object_new_object(), *socket;
	const char *path = adapter->settings.socket;

	put_text(device, "driver", adapter->migratable ? PVR_MIGRATABLE_DRIVER : PVR_STOCK_DRIVER);
	put_text(device, "id", id);
	put_text(device, "bus", port);
	if (adapter->migratable) {
		put_text(device, "path", path);
	} else {
		socket = json_object_new_object();
		put_text(socket, "type", "unix");
		put_text(socket, "path", path);
		put(device, "socket", socket);
	}
	if (!adapter->posted_writes)
		put_bool(device, "x-no-posted-writes", true);
	put_option(command_line, find_device(command_line, id, path), "-device", device);
}

static void put_guard(xmlNode *command_line, const char *path)
{
	struct json_object *node = json_object_new_object(), *file = json_object_new_object();

	put_text(file, "driver", "file");
	put_text(file, "filename", path);
	put_text(node, "driver", "vdi");
	put_text(node, "node-name", GUARD_NODE);
	put_bool(node, "read-only", true);
	put(node, "file", file);
	put_option(command_line, find_device(command_line, GUARD_NODE, NULL), "-blockdev", node);
}

/* Removes an argument and its option in front of it. */
static void remove_option(xmlNode *arg)
{
	xmlNode *option = arg ? xmlPreviousElementSibling(arg) : NULL;

	if (option)
		remove_node(option);
	if (arg)
		remove_node(arg);
}

static bool note_device(void *opaque, const struct pvr_domain_device *device, struct pvr_error *err)
{
	bool *needs_guard = opaque;

	*needs_guard |= !device->migratable;
	return true;
}

/* The guard is there while the domain has a device, of any adapter, that QEMU does not migrate. */
static void renew_guard(xmlNode *command_line, const char *path)
{
	bool needs_guard = false;
	struct pvr_error err;

	pvr_domain_each_device(command_line->doc, note_device, &needs_guard, &err);
	if (!needs_guard)
		remove_option(find_device(command_line, GUARD_NODE, NULL));
	else if (path)
		put_guard(command_line, path);
}

static xmlNode *need_command_line(xmlNode *root)
{
	xmlNode *node = pvr_domain_child_ns(root, "commandline", PVR_QEMU_XMLNS);
	xmlNs *ns;

	if (node)
		return node;
	ns = need_ns(root, PVR_QEMU_XMLNS, "qemu");
	return xmlNewChild(root, ns, xml("commandline"), NULL);
}

bool pvr_domain_insert(xmlDoc *doc, const struct pvr_domain_adapter *adapter, struct pvr_error *err)
{
	xmlNode *root = xmlDocGetRootElement(doc), *command_line;
	const char *name = adapter->settings.name;
	char id[ID_MAX], port[ID_MAX + 8];

	snprintf(id, sizeof(id), PVR_DOMAIN_ID "%s", name);
	snprintf(port, sizeof(port), "port-of-%s", id);
	share_memory(root);
	if (adapter->hook_text)
		put_settings(root, name, adapter->hook_text);
	else
		remove_settings(root, name);
	command_line = need_command_line(root);
	if (!put_port(command_line, port, err))
		return false;
	if (adapter->unplugged)
		remove_option(find_device(command_line, id, adapter->settings.socket));
	else
		put_adapter(command_line, adapter, id, port);
	renew_guard(command_line, adapter->guard);
	return true;
}
