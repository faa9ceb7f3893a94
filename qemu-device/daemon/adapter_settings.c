// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The settings of one adapter, from an option, the configuration file or a request. */
#include "daemon/adapter_settings.h"

#include <net/if.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/settings_text.h"
#include "base/unix_socket.h"
#include "ctrl/revision.h"

bool pvr_set_name(char to[PVR_NAME_MAX], const char *key, const char *value, struct pvr_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	if (value[strspn(value, allowed)])
		return pvr_fail(err,
				"%s '%s' has characters other than letters, digits, "
				"'.', '_' and '-'",
				key, value);
	return pvr_set_text(to, PVR_NAME_MAX, key, value, err);
}

bool pvr_set_fabric_name(char to[PVR_NAME_MAX], const char *name, struct pvr_error *err)
{
	return pvr_set_name(to, "fabric", name, err);
}

const char *pvr_fabric_or_default(const char *fabric)
{
	return *fabric ? fabric : "default";
}

static const char between_fabrics[] = ", \t";

bool pvr_set_fabric_list(char to[PVR_FABRIC_LIST_MAX], const char *list, struct pvr_error *err)
{
	char copy[PVR_FABRIC_LIST_MAX], name[PVR_NAME_MAX], *rest = copy, *word;

	if (!pvr_set_text(to, PVR_FABRIC_LIST_MAX, "fabrics", list, err))
		return false;
	strcpy(copy, to);
	while ((word = strsep(&rest, between_fabrics))) {
		if (*word && !pvr_set_fabric_name(name, word, err))
			return false;
	}
	return true;
}

bool pvr_fabric_list_has(const char *list, const char *fabric)
{
	size_t len;

	for (; *list; list += len) {
		list += strspn(list, between_fabrics);
		len = strcspn(list, between_fabrics);
		if (len && len == strlen(fabric) && !strncmp(list, fabric, len))
			return true;
	}
	return false;
}

bool pvr_set_socket(char to[PVR_PATH_MAX], const char *key, const char *value,
		    struct pvr_error *err)
{
	if (strlen(value) > PVR_SOCKET_PATH_MAX)
		return pvr_fail(err,
				"%s path %s has %zu characters, the limit is %d: "
				"choose a shorter one",
				key, value, strlen(value), PVR_SOCKET_PATH_MAX);
	return pvr_set_text(to, PVR_PATH_MAX, key, value, err);
}

static bool is_mac_text(const char *text)
{
	size_t i;

	for (i = 0; i < 17; i++) {
		if (i % 3 == 2 ? text[i] != ':'
			       : !text[i] || !strchr("0123456789abcdefABCDEF", text[i]))
			return false;
	}
	return !text[i];
}

const char *pvr_mac_text(const uint8_t mac[6], char text[PVR_MAC_TEXT])
{
	snprintf(text, PVR_MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
	return text;
}

static bool set_mac(struct pvr_adapter_settings *adapter, const char *value, struct pvr_error *err)
{
	static const uint8_t zero[6];
	size_t i;

	if (!is_mac_text(value))
		return pvr_fail(err,
				"mac '%s' is not a MAC address: expected the one of the "
				"VM's NIC, such as 52:54:00:12:34:56",
				value);
	for (i = 0; i < sizeof(adapter->mac); i++)
		adapter->mac[i] = (uint8_t)strtoul(value + 3 * i, NULL, 16);
	if (adapter->mac[0] & 1 || !memcmp(adapter->mac, zero, sizeof(zero)))
		return pvr_fail(err,
				"mac %s is not the address of one NIC (it is zero, or a "
				"multicast address): expected the one of the VM's NIC",
				value);
	adapter->has_mac = true;
	return true;
}

static bool set_hwversion(struct pvr_adapter_settings *adapter, const char *value,
			  struct pvr_error *err)
{
	const struct pvr_revision *revision = pvr_revision_find(value);

	if (!revision)
		return pvr_fail(err, "hwversion '%s' is none of %s", value, PVR_REVISION_NAMES);
	adapter->hwversion = revision->name;
	return true;
}

static bool set_roce(struct pvr_adapter_settings *adapter, const char *value, struct pvr_error *err)
{
	if (!strcmp(value, "v1"))
		adapter->gid_type = PVR_GID_TYPE_ROCE_V1;
	else if (!strcmp(value, "v2"))
		adapter->gid_type = PVR_GID_TYPE_ROCE_V2;
	else
		return pvr_fail(err, "roce '%s' is neither v1 nor v2", value);
	return true;
}

static bool set_uar(struct pvr_adapter_settings *adapter, const char *value, struct pvr_error *err)
{
	adapter->uar_mapped = !strcmp(value, "mapped");
	if (adapter->uar_mapped || !strcmp(value, "trapped"))
		return true;
	return pvr_fail(err, "uar '%s' is neither mapped nor trapped", value);
}

static bool set_interrupts(struct pvr_adapter_settings *adapter, const char *value,
			   struct pvr_error *err)
{
	adapter->msi = !strcmp(value, "msi");
	if (adapter->msi || !strcmp(value, "msix"))
		return true;
	return pvr_fail(err, "interrupts '%s' is neither msix nor msi", value);
}

static const char eth_prefix[] = "eth:", tap_prefix[] = "tap:";

/* Return: the name behind one of the prefixes, or NULL. */
static const char *interface_of(const char *wire)
{
	const char *const prefixes[] = { eth_prefix, tap_prefix };
	size_t i;

	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(wire, prefixes[i], strlen(prefixes[i])))
			return wire + strlen(prefixes[i]);
	return NULL;
}

static bool set_wire(struct pvr_adapter_settings *adapter, const char *value, struct pvr_error *err)
{
	static const char unix_prefix[] = "unix:";
	char path[PVR_PATH_MAX];
	const char *interface;

	if (!strncmp(value, unix_prefix, strlen(unix_prefix))) {
		value += strlen(unix_prefix);
		if (value[0] != '/')
			return pvr_fail(err, "wire path '%s' is not absolute", value);
		if (!pvr_set_socket(path, "wire", value, err))
			return false;
		snprintf(adapter->wire, sizeof(adapter->wire), "%s%s", unix_prefix, path);
		return true;
	}
	interface = interface_of(value);
	if (!interface)
		return pvr_fail(err, "wire '%s' is neither unix:PATH, eth:INTERFACE nor tap:NAME",
				value);
	if (!interface[0] || strlen(interface) >= IF_NAMESIZE || strpbrk(interface, "/%"))
		return pvr_fail(err, "'%s' is no name of a network interface", interface);
	snprintf(adapter->wire, sizeof(adapter->wire), "%s", value);
	return true;
}

const char *pvr_adapter_interface(const struct pvr_adapter_settings *adapter)
{
	return interface_of(adapter->wire);
}

bool pvr_adapter_has_tap(const struct pvr_adapter_settings *adapter)
{
	return !strncmp(adapter->wire, tap_prefix, strlen(tap_prefix));
}

static bool set_wire_ecn(struct pvr_adapter_settings *adapter, const char *value,
			 struct pvr_error *err)
{
	adapter->wire_ecn = !strcmp(value, "on");
	if (adapter->wire_ecn || !strcmp(value, "off"))
		return true;
	return pvr_fail(err, "wire-ecn '%s' is neither on nor off", value);
}

static bool set_wire_gso(struct pvr_adapter_settings *adapter, const char *value,
			 struct pvr_error *err)
{
	static const char *const names[] = {
		[PVR_SEGMENT_GSO_AUTO] = "auto", [PVR_SEGMENT_GSO_ON] = "on", [PVR_SEGMENT_GSO_OFF] = "off"
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]))
			continue;
		adapter->wire_gso = (enum pvr_segment_gso)i;
		return true;
	}
	return pvr_fail(err, "wire-gso '%s' is neither auto, on nor off", value);
}

static int shift_of_unit(char unit)
{
	static const char units[] = "KMGT";
	const char *at = unit ? strchr(units, unit) : NULL;

	return at ? 10 * (int)(at - units + 1) : -1;
}

static bool set_size(uint64_t *to, const char *key, const char *value, struct pvr_error *err)
{
	char *end;
	unsigned long long number = strtoull(value, &end, 10);
	int shift = shift_of_unit(*end);

	if (*value < '0' || *value > '9' || shift < 0 || end[1])
		return pvr_fail(err,
				"%s '%s' is not a number with a unit K, M, G or T: "
				"expected a size, such as 4G",
				key, value);
	if (!number || number > PVR_MEMORY_MAX >> shift)
		return pvr_fail(err, "%s %s is not between 1K and %lluT", key, value,
				PVR_MEMORY_MAX >> 40);
	*to = (uint64_t)number << shift;
	return true;
}

static bool set_worker(struct pvr_adapter_settings *adapter, const char *value,
		       struct pvr_error *err)
{
	char *end;
	unsigned long worker = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || worker >= PVR_MAX_WORKERS)
		return pvr_fail(err, "worker '%s' is not a number from 0 to %d", value,
				PVR_MAX_WORKERS - 1);
	adapter->worker = (unsigned int)worker;
	adapter->has_worker = true;
	return true;
}

bool pvr_adapter_is_user_number(const char *value)
{
	return *value && !value[strspn(value, "0123456789")] && strlen(value) < 10;
}

static bool set_user(struct pvr_adapter_settings *adapter, const char *value, struct pvr_error *err)
{
	const struct passwd *pw;

	if (pvr_adapter_is_user_number(value)) {
		adapter->user = (uid_t)strtoul(value, NULL, 10);
	} else {
		/* cppcheck-suppress getpwnamCalled ; no other thread calls it. */
		pw = *value ? getpwnam(value) : NULL;
		if (!pw)
			return pvr_fail(err,
					"user '%.64s' is neither a user of this host nor a number",
					value);
		adapter->user = pw->pw_uid;
	}
	adapter->has_user = true;
	return true;
}

bool pvr_adapter_settings_set(struct pvr_adapter_settings *adapter, const char *key,
			      const char *value, struct pvr_error *err)
{
	if (!strcmp(key, "name"))
		return pvr_set_name(adapter->name, key, value, err);
	if (!strcmp(key, "fabric"))
		return pvr_set_name(adapter->fabric, key, value, err);
	if (!strcmp(key, "socket"))
		return pvr_set_socket(adapter->socket, key, value, err);
	if (!strcmp(key, "mac"))
		return set_mac(adapter, value, err);
	if (!strcmp(key, "hwversion"))
		return set_hwversion(adapter, value, err);
	if (!strcmp(key, "roce"))
		return set_roce(adapter, value, err);
	if (!strcmp(key, "uar"))
		return set_uar(adapter, value, err);
	if (!strcmp(key, "memory"))
		return set_size(&adapter->memory, key, value, err);
	if (!strcmp(key, "object-memory"))
		return set_size(&adapter->object_memory, key, value, err);
	if (!strcmp(key, "worker"))
		return set_worker(adapter, value, err);
	if (!strcmp(key, "wire"))
		return set_wire(adapter, value, err);
	if (!strcmp(key, "wire-ecn"))
		return set_wire_ecn(adapter, value, err);
	if (!strcmp(key, "wire-gso"))
		return set_wire_gso(adapter, value, err);
	if (!strcmp(key, "user"))
		return set_user(adapter, value, err);
	if (!strcmp(key, "interrupts"))
		return set_interrupts(adapter, value, err);
	if (pvr_qos_has_key(key))
		return pvr_qos_set(&adapter->qos, key, value, err);
	return pvr_fail(err,
			"unknown adapter setting '%s': there are name, socket, mac, fabric, "
			"hwversion, roce, uar, memory, object-memory, worker, wire, "
			"wire-gso, wire-ecn, user, interrupts, rate, messages, burst and weight",
			key);
}

static bool check_roce(const struct pvr_adapter_settings *adapter, struct pvr_error *err)
{
	const struct pvr_revision *revision = pvr_revision_find(adapter->hwversion);

	if (!(adapter->gid_type & ~revision->gid_types))
		return true;
	return pvr_fail(err, "adapter '%s': hwversion %s has no RoCE v2: omit roce, or use v1",
			adapter->name, revision->name);
}

static bool check_qos(const struct pvr_adapter_settings *adapter, struct pvr_error *err)
{
	struct pvr_error why;

	return pvr_qos_check(&adapter->qos, &why) ||
	       pvr_fail(err, "adapter '%s': %.440s", adapter->name, why.text);
}

bool pvr_adapter_settings_check(const struct pvr_adapter_settings *adapter, struct pvr_error *err)
{
	const char *missing = !adapter->name[0]	    ? "name=NAME"
			      : !adapter->socket[0] ? "socket=PATH"
			      : !adapter->has_mac   ? "mac=MAC"
						    : NULL;

	if (missing)
		return pvr_fail(err, "adapter '%s' lacks %s", adapter->name, missing);
	if (adapter->wire[0] && adapter->gid_type == PVR_GID_TYPE_ROCE_V1)
		return pvr_fail(err, "adapter '%s': wire needs RoCE v2: omit roce=v1",
				adapter->name);
	if (adapter->wire_ecn && !adapter->wire[0])
		return pvr_fail(err, "adapter '%s': wire-ecn=on needs a wire", adapter->name);
	if (adapter->wire_gso == PVR_SEGMENT_GSO_ON && !pvr_adapter_interface(adapter))
		return pvr_fail(err,
				"adapter '%s': wire-gso=on needs wire=eth:INTERFACE or tap:NAME",
				adapter->name);
	return check_roce(adapter, err) && check_qos(adapter, err);
}

bool pvr_adapter_words(const char *text,
		       bool (*each)(void *opaque, const char *key, const char *value,
				    struct pvr_error *err),
		       void *opaque, struct pvr_error *err)
{
	char copy[2 * PVR_PATH_MAX], *rest = copy, *word, *value;

	if (strlen(text) >= sizeof(copy))
		return pvr_fail(err, "an adapter of %zu characters is too long", strlen(text));
	strcpy(copy, text);
	while ((word = strsep(&rest, ","))) {
		value = strchr(word, '=');
		if (!value)
			return pvr_fail(err, "'%s' is not KEY=VALUE; expected %s", word,
					PVR_ADAPTER_SYNTAX);
		*value++ = '\0';
		if (!each(opaque, word, value, err))
			return false;
	}
	return true;
}

static bool set_word(void *adapter, const char *key, const char *value, struct pvr_error *err)
{
	return pvr_adapter_settings_set(adapter, key, value, err);
}

bool pvr_adapter_settings_parse(struct pvr_adapter_settings *adapter, const char *text,
				struct pvr_error *err)
{
	memset(adapter, 0, sizeof(*adapter));
	return pvr_adapter_words(text, set_word, adapter, err) &&
	       pvr_adapter_settings_check(adapter, err);
}
