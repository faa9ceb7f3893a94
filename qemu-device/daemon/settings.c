// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the operator wants: values, their checks and their collisions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "settings.h"
#include "unix_socket.h"

static bool set_text(char *to, size_t size, const char *key, const char *value,
		     struct pvr_error *err)
{
	if (!*value)
		return pvr_fail(err, "%s is empty", key);
	if (strlen(value) >= size)
		return pvr_fail(err, "%s has %zu characters, the limit is %zu", key, strlen(value),
				size - 1);
	strcpy(to, value);
	return true;
}

static bool set_name(char to[PVR_NAME_MAX], const char *key, const char *value,
		     struct pvr_error *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	if (value[strspn(value, allowed)])
		return pvr_fail(err,
				"%s '%s' has characters other than letters, digits, "
				"'.', '_' and '-'",
				key, value);
	return set_text(to, PVR_NAME_MAX, key, value, err);
}

static bool set_socket(char to[PVR_PATH_MAX], const char *key, const char *value,
		       struct pvr_error *err)
{
	if (strlen(value) > PVR_SOCKET_PATH_MAX)
		return pvr_fail(err,
				"%s path %s has %zu characters, the limit is %d: "
				"choose a shorter one",
				key, value, strlen(value), PVR_SOCKET_PATH_MAX);
	return set_text(to, PVR_PATH_MAX, key, value, err);
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

static bool set_mac(struct pvr_adapter_settings *adapter, const char *value, struct pvr_error *err)
{
	static const uint8_t zero[6];
	size_t i;

	if (!is_mac_text(value))
		return pvr_fail(err,
				"mac '%s' is no MAC address: expected the one of the "
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

bool pvr_adapter_settings_set(struct pvr_adapter_settings *adapter, const char *key,
			      const char *value, struct pvr_error *err)
{
	if (!strcmp(key, "name"))
		return set_name(adapter->name, key, value, err);
	if (!strcmp(key, "fabric"))
		return set_name(adapter->fabric, key, value, err);
	if (!strcmp(key, "socket"))
		return set_socket(adapter->socket, key, value, err);
	if (!strcmp(key, "mac"))
		return set_mac(adapter, value, err);
	return pvr_fail(err,
			"unknown adapter setting '%s': there are name, socket, mac and "
			"fabric",
			key);
}

bool pvr_adapter_settings_check(const struct pvr_adapter_settings *adapter, struct pvr_error *err)
{
	const char *missing = !adapter->name[0]	    ? "name=NAME"
			      : !adapter->socket[0] ? "socket=PATH"
			      : !adapter->has_mac   ? "mac=MAC"
						    : NULL;

	if (missing)
		return pvr_fail(err, "adapter '%s' lacks %s", adapter->name, missing);
	return true;
}

bool pvr_adapter_settings_parse(struct pvr_adapter_settings *adapter, const char *text,
				struct pvr_error *err)
{
	char copy[2 * PVR_PATH_MAX], *rest = copy, *word, *value;

	memset(adapter, 0, sizeof(*adapter));
	if (strlen(text) >= sizeof(copy))
		return pvr_fail(err, "an adapter of %zu characters is too long", strlen(text));
	strcpy(copy, text);
	while ((word = strsep(&rest, ","))) {
		value = strchr(word, '=');
		if (!value)
			return pvr_fail(err,
					"'%s' is not KEY=VALUE; expected "
					"name=NAME,socket=PATH,mac=MAC[,fabric=NAME]",
					word);
		*value++ = '\0';
		if (!pvr_adapter_settings_set(adapter, word, value, err))
			return false;
	}
	return pvr_adapter_settings_check(adapter, err);
}

bool pvr_settings_set(struct pvr_settings *settings, const char *key, const char *value,
		      struct pvr_error *err)
{
	enum pvr_log_level level;

	if (!strcmp(key, "control"))
		return settings->control[0] || set_socket(settings->control, key, value, err);
	if (!strcmp(key, "user"))
		return settings->user[0] ||
		       set_text(settings->user, sizeof(settings->user), key, value, err);
	if (strcmp(key, "log-level"))
		return pvr_fail(err,
				"unknown setting '%s': there are control, user and "
				"log-level, and [adapter NAME] sections",
				key);
	if (!pvrd_log_parse_level(value, &level))
		return pvr_fail(err, "log level '%s' is none of error, warn, info, debug", value);
	if (!settings->log_level_set)
		settings->log_level = level;
	settings->log_level_set = true;
	return true;
}

static const char *fabric_of(const struct pvr_adapter_settings *adapter)
{
	return adapter->fabric[0] ? adapter->fabric : "default";
}

static bool collides(const struct pvr_adapter_settings *a, const struct pvr_adapter_settings *b,
		     struct pvr_error *err)
{
	if (!strcmp(a->name, b->name))
		return !pvr_fail(err, "two adapters are named '%s'", a->name);
	if (!strcmp(a->socket, b->socket))
		return !pvr_fail(err, "adapters '%s' and '%s' have the same socket %s", a->name,
				 b->name, a->socket);
	if (!memcmp(a->mac, b->mac, sizeof(a->mac)) && !strcmp(fabric_of(a), fabric_of(b)))
		return !pvr_fail(err,
				 "adapters '%s' and '%s' have the same MAC "
				 "%02x:%02x:%02x:%02x:%02x:%02x: it must be that of "
				 "each one's NIC",
				 a->name, b->name, a->mac[0], a->mac[1], a->mac[2], a->mac[3],
				 a->mac[4], a->mac[5]);
	return false;
}

bool pvr_settings_add_adapter(struct pvr_settings *settings,
			      const struct pvr_adapter_settings *adapter, struct pvr_error *err)
{
	size_t num = settings->num_adapters, i;
	struct pvr_adapter_settings *grown;

	for (i = 0; i < num; i++) {
		if (collides(&settings->adapters[i], adapter, err))
			return false;
	}
	if (num == PVR_ADAPTERS_MAX)
		return pvr_fail(err, "more than %d adapters", PVR_ADAPTERS_MAX);
	grown = realloc(settings->adapters, (num + 1) * sizeof(*grown));
	if (!grown)
		return pvr_fail(err, "out of memory");
	grown[num] = *adapter;
	settings->adapters = grown;
	settings->num_adapters++;
	return true;
}

void pvr_settings_free(struct pvr_settings *settings)
{
	free(settings->adapters);
	settings->adapters = NULL;
	settings->num_adapters = 0;
}
