// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* pvrdmactl qos: limits and weights of adapters and fabrics. */
#include "daemon/ctl_qos.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/ctl_print.h"
#include "daemon/json_get.h"
#include "daemon/json_put.h"

/* ------------------------------------------------------------------------- request */

static bool put_setting(struct json_object *request, const char *word, struct pvr_error *err)
{
	const char *value = strchr(word, '=');
	char key[32];

	if (!value || (size_t)(value - word) >= sizeof(key))
		return pvr_fail(err,
				"'%.64s' is not KEY=VALUE: expected rate=, messages=, burst= or "
				"weight=",
				word);
	snprintf(key, sizeof(key), "%.*s", (int)(value - word), word);
	if (!strcmp(key, "command") || !strcmp(key, "name") || !strcmp(key, "fabric"))
		return pvr_fail(err, "there is no setting '%s'", key);
	put_text(request, key, value + 1);
	return true;
}

bool pvr_ctl_qos_request(struct json_object *request, char **args, int num, const char *words,
			 struct pvr_error *err)
{
	static const char fabric[] = "fabric=";
	int i = 1;

	if (!num || strcmp(args[0], "set") != 0)
		return pvr_fail(err, "unknown command 'qos %.64s', see pvrdmactl --help",
				num ? args[0] : "--fabric");
	put_text(request, "command", "qos-set");
	if (*words) {
		if (strncmp(words, fabric, strlen(fabric)) || strchr(words, ' '))
			return pvr_fail(err, "'qos set' has no options --from, --to, --qp, --seed, "
					     "and one --fabric");
		put_text(request, "fabric", words + strlen(fabric));
	} else if (num > 1) {
		put_text(request, "name", args[i++]);
	}
	if (i >= num)
		return pvr_fail(err, "'qos set' needs an adapter or --fabric, and a setting, see "
				     "pvrdmactl --help");
	for (; i < num; i++)
		if (!put_setting(request, args[i], err))
			return false;
	return true;
}

/* --------------------------------------------------------------------------- print */

/* @value: 0: @none */
static void print_number(char *buf, uint64_t value, const char *none)
{
	if (value)
		snprintf(buf, PVR_TABLE_CELL, "%" PRIu64, value);
	else
		snprintf(buf, PVR_TABLE_CELL, "%s", none);
}

/* Also of fabrics, which have the first columns only. */
static void cell(void *opaque, size_t row, size_t column, char *buf)
{
	static const struct {
		const char *title, *key, *none; /* @none: NULL: a text */
	} columns[] = {
		{ "NAME", "name", NULL },
		{ "BYTES/S", "rate", "none" },
		{ "MESSAGES/S", "messages", "none" },
		{ "BURST", "burst", "auto" },
		{ "WEIGHT", "weight", "-" },
		{ "FABRIC", "fabric", NULL },
		{ "WAITS", "waits", "0" },
		{ "WAITED US", "wait_us", "0" },
	};
	struct json_object *obj = row ? json_object_array_get_idx(opaque, row - 1) : NULL;

	if (!row)
		snprintf(buf, PVR_TABLE_CELL, "%s", columns[column].title);
	else if (columns[column].none)
		print_number(buf, number_of(obj, columns[column].key), columns[column].none);
	else
		snprintf(buf, PVR_TABLE_CELL, "%s", text_of(obj, columns[column].key));
}

void pvr_print_qos(struct json_object *reply)
{
	struct json_object *adapters, *fabrics;
	size_t len;

	if (!json_object_object_get_ex(reply, "adapters", NULL))
		return;
	adapters = list_of(reply, "adapters", &len);
	pvr_print_table(len + 1, 8, cell, adapters);
	fabrics = list_of(reply, "fabrics", &len);
	if (!len)
		return;
	printf("\nfabrics:\n");
	pvr_print_table(len + 1, 4, cell, fabrics);
}
