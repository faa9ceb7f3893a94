// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What the operator wants: settings, adapters, and their collisions. */
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "settings.h"

bool pvr_settings_set(struct pvr_settings *settings, const char *key, const char *value,
		      struct pvr_error *err)
{
	enum pvr_log_level level;

	if (!strcmp(key, "control"))
		return settings->control[0] || pvr_set_socket(settings->control, key, value, err);
	if (!strcmp(key, "user"))
		return settings->user[0] ||
		       pvr_set_text(settings->user, sizeof(settings->user), key, value, err);
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
