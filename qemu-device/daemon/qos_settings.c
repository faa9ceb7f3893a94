// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The settings of quality of service, of an adapter or of a fabric. */
#include "daemon/qos_settings.h"

#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor, divisor;
};

static const struct unit rate_units[] = {
	{ "", 1, 1 },
	{ "K", 1000, 1 },
	{ "M", 1000000, 1 },
	{ "G", 1000000000, 1 },
	{ "kbit", 1000, 8 },
	{ "Mbit", 1000000, 8 },
	{ "Gbit", 1000000000, 8 },
	{ NULL, 0, 0 },
};

static const struct unit message_units[] = {
	{ "", 1, 1 },
	{ "K", 1000, 1 },
	{ "M", 1000000, 1 },
	{ NULL, 0, 0 },
};

static const struct unit burst_units[] = {
	{ "K", 1ull << 10, 1 },
	{ "M", 1ull << 20, 1 },
	{ "G", 1ull << 30, 1 },
	{ NULL, 0, 0 },
};

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (!strcmp(units->name, name))
			return units;
	return NULL;
}

/* Return: the number with its unit; 0 if it is none, or not from @min to @max. */
static uint64_t parse(const char *value, const struct unit *units, uint64_t min, uint64_t max)
{
	const struct unit *unit;
	uint64_t number;
	char *end;

	if (*value < '1' || *value > '9')
		return 0;
	number = strtoull(value, &end, 10);
	unit = find_unit(units, end);
	if (!unit || number > max / unit->factor * unit->divisor)
		return 0;
	number = number * unit->factor / unit->divisor;
	return number >= min ? number : 0;
}

static bool set_rate(struct pvr_qos *qos, const char *value, struct pvr_error *err)
{
	qos->rate = parse(value, rate_units, 1000, PVR_QOS_RATE_MAX);
	return qos->rate ||
	       pvr_fail(err,
			"rate '%.64s' is not a number of bytes per second with K, M or G, or of "
			"bits with kbit, Mbit or Gbit, from 8kbit to 8000Gbit",
			value);
}

static bool set_messages(struct pvr_qos *qos, const char *value, struct pvr_error *err)
{
	qos->messages = parse(value, message_units, 1, PVR_QOS_MESSAGES_MAX);
	return qos->messages ||
	       pvr_fail(err,
			"messages '%.64s' is not a number per second, with or without K or M, from "
			"1 to 1000M",
			value);
}

static bool set_burst(struct pvr_qos *qos, const char *value, struct pvr_error *err)
{
	qos->burst = parse(value, burst_units, 1, PVR_QOS_BURST_MAX);
	return qos->burst || pvr_fail(err,
				      "burst '%.64s' is not a number of bytes with K, M or G, from "
				      "1K to 4G",
				      value);
}

static bool set_weight(struct pvr_qos *qos, const char *value, struct pvr_error *err)
{
	qos->weight = (uint32_t)parse(value, message_units, PVR_QOS_WEIGHT_MIN, PVR_QOS_WEIGHT_MAX);
	return qos->weight || pvr_fail(err, "weight '%.64s' is not a number from %d to %d", value,
				       PVR_QOS_WEIGHT_MIN, PVR_QOS_WEIGHT_MAX);
}

static bool clear_rate(struct pvr_qos *qos)
{
	qos->rate = 0;
	qos->burst = 0;
	return true;
}

static bool clear_messages(struct pvr_qos *qos)
{
	qos->messages = 0;
	return true;
}

static bool clear_burst(struct pvr_qos *qos)
{
	qos->burst = 0;
	return true;
}

static const struct {
	const char *key;
	bool (*set)(struct pvr_qos *qos, const char *value, struct pvr_error *err);
	bool (*clear)(struct pvr_qos *qos); /* NULL: "none" is no value */
} keys[] = {
	{ "rate", set_rate, clear_rate },
	{ "messages", set_messages, clear_messages },
	{ "burst", set_burst, clear_burst },
	{ "weight", set_weight, NULL },
};

bool pvr_qos_has_key(const char *key)
{
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(key, keys[i].key))
			return true;
	return false;
}

bool pvr_qos_set(struct pvr_qos *qos, const char *key, const char *value, struct pvr_error *err)
{
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(key, keys[i].key) != 0)
			continue;
		if (keys[i].clear && !strcmp(value, "none"))
			return keys[i].clear(qos);
		return keys[i].set(qos, value, err);
	}
	return pvr_fail(err, "unknown setting '%.64s': there are rate, messages, burst and weight",
			key);
}

bool pvr_qos_check(const struct pvr_qos *qos, struct pvr_error *err)
{
	return !qos->burst || qos->rate ||
	       pvr_fail(err, "burst is of no use without rate: omit it, or set rate");
}

bool pvr_fabric_qos_set(struct pvr_qos *qos, const char *key, const char *value,
			struct pvr_error *err)
{
	if (!strcmp(key, "weight") || !pvr_qos_has_key(key))
		return pvr_fail(err,
				"unknown setting '%.64s' of a fabric: there are rate, messages and "
				"burst",
				key);
	return pvr_qos_set(qos, key, value, err);
}
