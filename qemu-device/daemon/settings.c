// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Settings of the operator, and collisions of adapters. */
#include <stdlib.h>
#include <string.h>

#include "base/settings_text.h"
#include "daemon/log.h"
#include "daemon/metrics_socket.h"
#include "daemon/settings.h"

static bool set_control(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	return settings->control[0] || pvr_set_socket(settings->control, "control", value, err);
}

static bool set_user(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	return pvr_keep_text(settings->user, sizeof(settings->user), "user", value, err);
}

static bool set_log_level(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	enum pvr_log_level level;

	if (!pvrd_log_parse_level(value, &level))
		return pvr_fail(err, "log level '%s' is none of error, warn, info, debug", value);
	if (!settings->log_level_set)
		settings->log_level = level;
	settings->log_level_set = true;
	return true;
}

static bool set_log_format(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	bool json = !strcmp(value, "json");

	if (!json && strcmp(value, "text") != 0)
		return pvr_fail(err, "log format '%s' is neither text nor json", value);
	if (!settings->log_format_set)
		settings->json_log = json;
	settings->log_format_set = true;
	return true;
}

/* Return: µs, or 0 if @value is no valid number. */
static uint32_t parse_usec(const char *value)
{
	unsigned long usec;
	char *end;

	if (*value < '0' || *value > '9')
		return 0;
	usec = strtoul(value, &end, 10);
	return *end || usec > PVR_POLL_WINDOW_MAX_US ? 0 : (uint32_t)usec;
}

static bool set_poll(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	enum pvr_poll_mode mode = PVR_POLL_ALWAYS;
	uint32_t usec = parse_usec(value);

	if (!strcmp(value, "auto"))
		mode = PVR_POLL_AUTO;
	else if (!strcmp(value, "off"))
		mode = PVR_POLL_OFF;
	else if (!usec)
		return pvr_fail(err, "poll '%s' is none of auto, off, and microseconds up to %u",
				value, PVR_POLL_WINDOW_MAX_US);
	if (settings->poll_set)
		return true;
	settings->poll = mode;
	settings->poll_us = usec;
	settings->poll_set = true;
	return true;
}

static bool set_seccomp(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	enum pvr_seccomp_mode mode = PVR_SECCOMP_ON;

	if (!strcmp(value, "off"))
		mode = PVR_SECCOMP_OFF;
	else if (!strcmp(value, "log"))
		mode = PVR_SECCOMP_LOG;
	else if (strcmp(value, "on") != 0)
		return pvr_fail(err, "seccomp '%s' is none of on, log, off", value);
	if (!settings->seccomp_set)
		settings->seccomp = mode;
	settings->seccomp_set = true;
	return true;
}

/* A setting of two words. @is_first, @is_set: its members of struct pvr_settings. */
static bool set_word(const char *key, const char *value, const char *const words[2], bool *is_first,
		     bool *is_set, struct pvr_error *err)
{
	bool first = !strcmp(value, words[0]);

	if (!first && strcmp(value, words[1]) != 0)
		return pvr_fail(err, "%s '%s' is neither %s nor %s", key, value, words[0],
				words[1]);
	if (!*is_set)
		*is_first = first;
	*is_set = true;
	return true;
}

static bool set_faults(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	static const char *const words[] = { "allowed", "refused" };

	return set_word("faults", value, words, &settings->faults_allowed, &settings->faults_set,
			err);
}

static bool set_hold(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	unsigned long seconds = 0;
	char *end = NULL;

	if (*value >= '0' && *value <= '9')
		seconds = strtoul(value, &end, 10);
	if (!end || *end || !seconds || seconds > PVR_HOLD_MAX_S)
		return pvr_fail(err, "hold '%s' is no number of seconds from 1 to %u", value,
				PVR_HOLD_MAX_S);
	if (!settings->hold)
		settings->hold = (uint32_t)seconds;
	return true;
}

static bool set_silent_source(struct pvr_settings *settings, const char *value,
			      struct pvr_error *err)
{
	static const char *const words[] = { "refuse", "start" };

	return set_word("silent-source", value, words, &settings->needs_source,
			&settings->silent_source_set, err);
}

static bool set_workers(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	return pvr_worker_settings_set(&settings->workers, "workers", value, err);
}

static bool set_worker_cpus(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	return pvr_worker_settings_set(&settings->workers, "worker-cpus", value, err);
}

static bool set_numa_node(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	return pvr_worker_settings_set(&settings->workers, "numa-node", value, err);
}

static bool set_metrics(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	return pvr_metrics_address_check(value, err) &&
	       pvr_keep_text(settings->metrics, sizeof(settings->metrics), "metrics", value, err);
}

static bool set_fabrics(struct pvr_settings *settings, const char *value, struct pvr_error *err)
{
	char list[PVR_FABRIC_LIST_MAX];

	if (!pvr_set_fabric_list(list, value, err))
		return false;
	if (!settings->served_fabrics[0])
		strcpy(settings->served_fabrics, list);
	return true;
}

static const struct {
	const char *key;
	bool (*set)(struct pvr_settings *settings, const char *value, struct pvr_error *err);
} keys[] = {
	{ "control", set_control },
	{ "user", set_user },
	{ "log-level", set_log_level },
	{ "poll", set_poll },
	{ "workers", set_workers },
	{ "worker-cpus", set_worker_cpus },
	{ "seccomp", set_seccomp },
	{ "numa-node", set_numa_node },
	{ "faults", set_faults },
	{ "metrics", set_metrics },
	{ "log-format", set_log_format },
	{ "hold", set_hold },
	{ "silent-source", set_silent_source },
	{ "fabrics", set_fabrics },
};

bool pvr_settings_set(struct pvr_settings *settings, const char *key, const char *value,
		      struct pvr_error *err)
{
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!strcmp(key, keys[i].key))
			return keys[i].set(settings, value, err);
	}
	if (pvr_net_settings_has(key))
		return pvr_net_settings_set(&settings->net, key, value, err);
	if (pvr_directory_options_has(key))
		return pvr_directory_options_set(&settings->directory, key, value, err);
	return pvr_fail(
		err,
		"unknown setting '%s': there are control, user, log-level, log-format, poll, seccomp, "
		"workers, "
		"worker-cpus, numa-node, faults, fabrics, hold, silent-source, metrics, " PVR_NET_KEYS
		", " PVR_DIRECTORY_KEYS ", and sections [adapter NAME] and [fabric NAME]",
		key);
}

static const char *fabric_of(const struct pvr_adapter_settings *adapter)
{
	return pvr_fabric_or_default(adapter->fabric);
}

static bool collides(const struct pvr_adapter_settings *a, const struct pvr_adapter_settings *b,
		     struct pvr_error *err)
{
	char mac[PVR_MAC_TEXT];

	if (!strcmp(a->name, b->name))
		return !pvr_fail(err, "two adapters are named '%s'", a->name);
	if (!strcmp(a->socket, b->socket))
		return !pvr_fail(err, "adapters '%s' and '%s' have the same socket %s", a->name,
				 b->name, a->socket);
	if (!memcmp(a->mac, b->mac, sizeof(a->mac)) && !strcmp(fabric_of(a), fabric_of(b)))
		return !pvr_fail(err,
				 "adapters '%s' and '%s' have the same MAC %s: it must be that of "
				 "each one's NIC",
				 a->name, b->name, pvr_mac_text(a->mac, mac));
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

bool pvr_settings_add_fabric(struct pvr_settings *settings,
			     const struct pvr_fabric_settings *fabric, struct pvr_error *err)
{
	size_t num = settings->num_fabrics, i;
	struct pvr_fabric_settings *grown;

	for (i = 0; i < num; i++)
		if (!strcmp(settings->fabrics[i].name, fabric->name))
			return pvr_fail(err, "the fabric '%s' has settings twice", fabric->name);
	if (num == PVR_ADAPTERS_MAX)
		return pvr_fail(err, "more than %d fabrics with settings", PVR_ADAPTERS_MAX);
	grown = realloc(settings->fabrics, (num + 1) * sizeof(*grown));
	if (!grown)
		return pvr_fail(err, "out of memory");
	grown[num] = *fabric;
	settings->fabrics = grown;
	settings->num_fabrics++;
	return true;
}

void pvr_settings_free(struct pvr_settings *settings)
{
	free(settings->fabrics);
	settings->fabrics = NULL;
	settings->num_fabrics = 0;
	free(settings->adapters);
	settings->adapters = NULL;
	settings->num_adapters = 0;
	pvr_net_settings_free(&settings->net);
}
