// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The messages between a pvrdmad and the one that replaces it. */
#include "daemon/handover_message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/json_get.h"
#include "daemon/json_put.h"

struct json_object *pvr_handover_message(const char *type)
{
	struct json_object *message = json_object_new_object();

	put_text(message, "type", type);
	return message;
}

int pvr_handover_send(struct pvr_handover_channel *channel, struct json_object *message,
		      const int *fds, size_t num_fds, uint64_t deadline)
{
	size_t len = 0;
	const char *text = json_object_to_json_string_length(message, JSON_C_TO_STRING_PLAIN, &len);
	int ret = text ? 0 : -ENOMEM;

	if (text)
		pvr_handover_store_add(&channel->store, text, len, fds, num_fds);
	if (text && channel->fd >= 0)
		ret = pvr_fd_message_send(channel->fd, text, len, fds, num_fds, deadline);
	json_object_put(message);
	return ret;
}

struct json_object *pvr_handover_receive(struct pvr_handover_channel *channel,
					 struct pvr_fd_message *raw, uint64_t deadline, bool *ended,
					 struct pvr_error *err)
{
	int ret = channel->fd >= 0 ? pvr_fd_message_receive(channel->fd, raw, deadline)
				   : pvr_handover_store_next(&channel->store, raw);
	struct json_object *message;

	*ended = !ret || ret == -ECONNRESET;
	if (ret != 1) {
		pvr_fail(err, "%s", *ended ? "the other process has ended" : strerror(-ret));
		return NULL;
	}
	message = json_tokener_parse(raw->data);
	if (!json_object_is_type(message, json_type_object)) {
		json_object_put(message);
		pvr_fail(err, "a message of %zu bytes is no JSON object", raw->len);
		return NULL;
	}
	return message;
}

bool pvr_handover_is(struct json_object *message, const char *type)
{
	return !strcmp(text_of(message, "type"), type);
}

/* ------------------------------------------------------------------------ settings */

struct json_object *pvr_handover_put_qos(const struct pvr_qos *qos)
{
	struct json_object *obj = json_object_new_object();

	put_number(obj, "rate", qos->rate);
	put_number(obj, "messages", qos->messages);
	put_number(obj, "burst", qos->burst);
	put_number(obj, "weight", qos->weight);
	return obj;
}

void pvr_handover_get_qos(struct json_object *from, struct pvr_qos *qos)
{
	qos->rate = number_of(from, "rate");
	qos->messages = (uint32_t)number_of(from, "messages");
	qos->burst = (uint32_t)number_of(from, "burst");
	qos->weight = (uint32_t)number_of(from, "weight");
}

static void put_value(struct json_object *obj, const char *key, uint64_t value, const char *unit)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "%s", value, unit);
	put_text(obj, key, text);
}

/* Sizes are multiples of 1 KiB. */
static void put_limits(struct json_object *obj, const struct pvr_adapter_settings *settings)
{
	if (settings->memory)
		put_value(obj, "memory", settings->memory >> 10, "K");
	if (settings->object_memory)
		put_value(obj, "object-memory", settings->object_memory >> 10, "K");
	if (settings->has_worker)
		put_value(obj, "worker", settings->worker, "");
	if (settings->has_user)
		put_value(obj, "user", settings->user, "");
}

/* The keys and values are those of pvr_adapter_settings_set(), without those of a wire. */
struct json_object *pvr_handover_put_adapter(const struct pvr_adapter_settings *settings)
{
	struct json_object *message = json_object_new_object(), *obj = json_object_new_object();
	char mac[PVR_MAC_TEXT];

	put_text(obj, "name", settings->name);
	if (settings->fabric[0])
		put_text(obj, "fabric", settings->fabric);
	put_text(obj, "socket", settings->socket);
	put_text(obj, "mac", pvr_mac_text(settings->mac, mac));
	if (settings->hwversion)
		put_text(obj, "hwversion", settings->hwversion);
	if (settings->gid_type)
		put_text(obj, "roce", settings->gid_type == PVR_GID_TYPE_ROCE_V1 ? "v1" : "v2");
	put_text(obj, "uar", settings->uar_mapped ? "mapped" : "trapped");
	put_text(obj, "interrupts", settings->msi ? "msi" : "msix");
	put_limits(obj, settings);
	put(message, "settings", obj);
	put(message, "qos", pvr_handover_put_qos(&settings->qos));
	return message;
}

bool pvr_handover_get_adapter(struct json_object *from, struct pvr_adapter_settings *settings,
			      struct pvr_error *err)
{
	struct json_object *obj = NULL, *qos = NULL;

	memset(settings, 0, sizeof(*settings));
	if (!json_object_object_get_ex(from, "settings", &obj) ||
	    !json_object_is_type(obj, json_type_object))
		return pvr_fail(err, "an adapter has no settings");
	json_object_object_foreach(obj, key, value)
	{
		if (!pvr_adapter_settings_set(settings, key, json_object_get_string(value), err))
			return false;
	}
	if (json_object_object_get_ex(from, "qos", &qos))
		pvr_handover_get_qos(qos, &settings->qos);
	return pvr_adapter_settings_check(settings, err);
}

/* ------------------------------------------------------------------------- clients */

static void put_hex(struct json_object *obj, const char *key, const uint8_t *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	char *text = malloc(2 * len + 1);
	size_t i;

	for (i = 0; text && i < len; i++) {
		text[2 * i] = digits[data[i] >> 4];
		text[2 * i + 1] = digits[data[i] & 15];
	}
	if (!text)
		return;
	put(obj, key, json_object_new_string_len(text, (int)(2 * len)));
	free(text);
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Return: bytes, or -1 if the text is not hexadecimal or has more than @max. */
static ssize_t get_hex(struct json_object *obj, const char *key, uint8_t *data, size_t max)
{
	const char *text = text_of(obj, key);
	size_t len = strlen(text) / 2, i;
	int high, low;

	if (strlen(text) % 2 || len > max)
		return -1;
	for (i = 0; i < len; i++) {
		high = digit_of(text[2 * i]);
		low = digit_of(text[2 * i + 1]);
		if (high < 0 || low < 0)
			return -1;
		data[i] = (uint8_t)(high << 4 | low);
	}
	return (ssize_t)len;
}

struct json_object *pvr_handover_put_vm(const char *adapter, const uint8_t *version, size_t len)
{
	struct json_object *message = pvr_handover_message("vm");

	put_text(message, "adapter", adapter);
	put_hex(message, "version", version, len);
	return message;
}

size_t pvr_handover_get_vm(struct json_object *message, uint8_t *version, size_t max)
{
	ssize_t len = get_hex(message, "version", version, max);

	return len > 0 ? (size_t)len : 0;
}

/* The descriptors follow in the order of the values that are true. */
static void put_irqs(struct json_object *message, const struct pvr_handover *client, int *fds,
		     size_t *num)
{
	struct json_object *there = json_object_new_array(), *pending = json_object_new_array();
	int i;

	for (i = 0; i < PVR_VEC_MAX; i++) {
		json_object_array_add(there, json_object_new_boolean(client->irq_fds[i] >= 0));
		json_object_array_add(pending, json_object_new_boolean(client->irq_pending[i]));
		if (client->irq_fds[i] >= 0)
			fds[(*num)++] = client->irq_fds[i];
	}
	put(message, "irqs", there);
	put(message, "irqs_pending", pending);
	put_bool(message, "irqs_enabled", client->irq_enabled);
}

static int send_device(struct pvr_handover_channel *channel, const char *adapter,
		       const struct pvr_handover *client, int state, uint64_t deadline)
{
	struct json_object *message = pvr_handover_message("client");
	int fds[3 + PVR_VEC_MAX];
	size_t num = 0;

	put_text(message, "adapter", adapter);
	put_hex(message, "version", client->version, client->version_len);
	fds[num++] = client->socket;
	if (client->version_len) {
		put_hex(message, "config", client->config, sizeof(client->config));
		put_bool(message, "checked_unshared", client->checked_unshared);
		put_bool(message, "migratable", client->migratable);
		put_bool(message, "stopped", client->was_stopped);
		put_bool(message, "paused", client->is_paused);
		put_bool(message, "saved", client->is_saved);
		put_bool(message, "uar", client->uar >= 0);
		fds[num++] = state;
		if (client->uar >= 0)
			fds[num++] = client->uar;
		put_irqs(message, client, fds, &num);
	}
	return pvr_handover_send(channel, message, fds, num, deadline);
}

static int send_ram(struct pvr_handover_channel *channel, const struct pvr_handover *client,
		    uint64_t deadline)
{
	struct json_object *message = pvr_handover_message("ram"), *list = json_object_new_array();
	const struct pvr_handover_region *region;
	struct json_object *obj;
	int fds[PVR_RAM_REGIONS];
	size_t num = 0;
	unsigned int i;

	for (i = 0; i < client->num_regions; i++) {
		region = &client->regions[i];
		obj = json_object_new_object();
		put_number(obj, "gpa", region->gpa);
		put_number(obj, "size", region->size);
		put_number(obj, "offset", region->offset);
		put_bool(obj, "shared", region->fd >= 0);
		put_bool(obj, "writable", region->writable);
		json_object_array_add(list, obj);
		if (region->fd >= 0)
			fds[num++] = region->fd;
	}
	put(message, "regions", list);
	return pvr_handover_send(channel, message, fds, num, deadline);
}

int pvr_handover_send_client(struct pvr_handover_channel *channel, const char *adapter,
			     const struct pvr_handover *client, int state, uint64_t deadline)
{
	int ret = send_device(channel, adapter, client, state, deadline);

	return ret ? ret : send_ram(channel, client, deadline);
}

/* The next descriptor of a message; -1: none is left. */
static int next_fd(struct pvr_fd_message *raw, size_t *at)
{
	return *at < raw->num_fds ? raw->fds[(*at)++] : -1;
}

static bool truth_at(struct json_object *list, size_t i)
{
	return json_object_get_boolean(json_object_array_get_idx(list, i));
}

static bool get_irqs(struct json_object *message, struct pvr_fd_message *raw, size_t *at,
		     struct pvr_handover *client)
{
	size_t num, num_pending, i;
	struct json_object *there = list_of(message, "irqs", &num);
	struct json_object *pending = list_of(message, "irqs_pending", &num_pending);
	bool ok = num <= PVR_VEC_MAX && num_pending <= PVR_VEC_MAX;

	for (i = 0; ok && i < num; i++) {
		if (!truth_at(there, i))
			continue;
		client->irq_fds[i] = next_fd(raw, at);
		ok = client->irq_fds[i] >= 0;
	}
	for (i = 0; ok && i < num_pending; i++)
		client->irq_pending[i] = truth_at(pending, i);
	client->irq_enabled = truth_of(message, "irqs_enabled");
	return ok;
}

static bool get_device(struct json_object *message, struct pvr_fd_message *raw, size_t *at,
		       struct pvr_handover *client, int *state)
{
	client->checked_unshared = truth_of(message, "checked_unshared");
	client->migratable = truth_of(message, "migratable");
	client->was_stopped = truth_of(message, "stopped");
	client->is_paused = truth_of(message, "paused");
	client->is_saved = truth_of(message, "saved");
	*state = next_fd(raw, at);
	if (*state < 0 || get_hex(message, "config", client->config, sizeof(client->config)) !=
				  (ssize_t)sizeof(client->config))
		return false;
	if (truth_of(message, "uar")) {
		client->uar = next_fd(raw, at);
		if (client->uar < 0)
			return false;
	}
	return get_irqs(message, raw, at, client);
}

bool pvr_handover_get_client(struct json_object *message, struct pvr_fd_message *raw,
			     struct pvr_handover *client, int *state, struct pvr_error *err)
{
	ssize_t len = get_hex(message, "version", client->version, sizeof(client->version));
	size_t at = 0, i;
	bool ok;

	client->version_len = len > 0 ? (size_t)len : 0;
	client->num_regions = 0;
	client->uar = -1;
	*state = -1;
	for (i = 0; i < PVR_VEC_MAX; i++) {
		client->irq_fds[i] = -1;
		client->irq_pending[i] = false;
	}
	client->socket = next_fd(raw, &at);
	ok = len >= 0 && client->socket >= 0 &&
	     (!len || get_device(message, raw, &at, client, state)) && at == raw->num_fds;
	return ok || pvr_fail(err, "the QEMU of adapter %.64s has %zu descriptors, %zu were found",
			      text_of(message, "adapter"), raw->num_fds, at);
}

bool pvr_handover_get_ram(struct json_object *message, struct pvr_fd_message *raw,
			  struct pvr_handover *client, struct pvr_error *err)
{
	size_t num, at = 0, i;
	struct json_object *list = list_of(message, "regions", &num), *obj;
	bool ok = num <= PVR_RAM_REGIONS;

	for (i = 0; ok && i < num; i++) {
		obj = json_object_array_get_idx(list, i);
		client->regions[i] = (struct pvr_handover_region){
			.gpa = number_of(obj, "gpa"),
			.size = number_of(obj, "size"),
			.offset = number_of(obj, "offset"),
			.fd = truth_of(obj, "shared") ? next_fd(raw, &at) : -1,
			.writable = truth_of(obj, "writable"),
		};
		ok = client->regions[i].fd >= 0 || !truth_of(obj, "shared");
	}
	client->num_regions = ok ? (unsigned int)num : 0;
	return (ok && at == raw->num_fds) ||
	       pvr_fail(err, "%zu regions of RAM with %zu descriptors, expected at most %d", num,
			raw->num_fds, PVR_RAM_REGIONS);
}
