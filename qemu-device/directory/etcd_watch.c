// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Watches: one stream, with one watch for each item that was read. A changed key is read
 * again, so only the revision of an event is used.
 */
#include <stdlib.h>
#include <string.h>

#include "directory/etcd.h"

#define UNSENT_MAX 65536u /* bytes; send more only after these are gone */
#define UNSENT_LIMIT (4u << 20) /* bytes; etcd does not read: open a new stream */
#define CONFIRM_MAX (5 * PVR_SEC)
#define SLOT_BITS 20
/* Pauses after a refusal, doubled up to the maximum, which is also the time of a fresh start. */
#define PAUSE_MIN PVR_SEC
#define PAUSE_MAX (60 * PVR_SEC)

/* -------------------------------------------------------------------- slots */

static struct pvr_etcd_item *item_of(struct pvr_etcd *etcd, uint64_t watch_id)
{
	struct pvr_etcd_watch *watch = &etcd->watch;
	size_t slot = watch_id & ((1u << SLOT_BITS) - 1);
	struct pvr_etcd_item *item = slot < watch->num_slots ? watch->slots[slot] : NULL;

	return item && item->watch_id == watch_id ? item : NULL;
}

static bool more_slots(struct pvr_etcd_watch *watch)
{
	size_t num = watch->num_slots ? 2 * watch->num_slots : 64;
	struct pvr_etcd_item **grown;

	if (num > 1u << SLOT_BITS)
		return false;
	grown = realloc(watch->slots, num * sizeof(*grown));
	if (!grown)
		return false;
	memset(grown + watch->num_slots, 0, (num - watch->num_slots) * sizeof(*grown));
	watch->slots = grown;
	watch->num_slots = num;
	return true;
}

static bool take_slot(struct pvr_etcd_watch *watch, struct pvr_etcd_item *item)
{
	size_t slot;

	if (watch->num == watch->num_slots && !more_slots(watch))
		return false;
	slot = watch->free_hint;
	while (watch->slots[slot % watch->num_slots])
		slot++;
	slot %= watch->num_slots;
	watch->free_hint = slot + 1;
	watch->slots[slot] = item;
	watch->num++;
	item->watch_id = ++watch->serial << SLOT_BITS | slot;
	return true;
}

static void give_slot(struct pvr_etcd_watch *watch, struct pvr_etcd_item *item)
{
	watch->slots[item->watch_id & ((1u << SLOT_BITS) - 1)] = NULL;
	watch->num--;
	item->watch_id = 0;
}

static void set_pending(struct pvr_etcd_watch *watch, struct pvr_etcd_item *item, bool pending)
{
	if (pending == item->pending)
		return;
	if (pending)
		TAILQ_INSERT_TAIL(&watch->pending, item, watch_link);
	else
		TAILQ_REMOVE(&watch->pending, item, watch_link);
	item->pending = pending;
}

/* ----------------------------------------------------------------- requests */

static bool send_text(struct pvr_etcd *etcd, struct pvr_text *text)
{
	struct pvr_http_call *stream = etcd->watch.stream;
	bool ok = !text->bad && pvr_http_unsent(stream) < UNSENT_LIMIT &&
		  pvr_http_send(stream, text->data, text->len);

	free(text->data);
	return ok;
}

static bool send_create(struct pvr_etcd *etcd, struct pvr_etcd_item *item)
{
	struct pvr_text text = { .len = 0 };
	char key[PVR_ETCD_KEY_MAX];

	if (!take_slot(&etcd->watch, item))
		return false;
	item->watch_from = item->revision + 1;
	pvr_etcd_item_key(etcd, item, key);
	pvr_text_add(&text, "{\"create_request\":{");
	pvr_etcd_add_range(&text, key);
	pvr_text_add(&text, ",\"start_revision\":\"%llu\",\"watch_id\":\"%llu\"}}\n",
		     (unsigned long long)item->watch_from, (unsigned long long)item->watch_id);
	if (!etcd->watch.unconfirmed++)
		pvr_loop_timer_arm(etcd->directory->env.loop, &etcd->watch.timer, CONFIRM_MAX);
	return send_text(etcd, &text);
}

static void cancel(struct pvr_etcd *etcd, struct pvr_etcd_item *item)
{
	struct pvr_text text = { .len = 0 };

	pvr_text_add(&text, "{\"cancel_request\":{\"watch_id\":\"%llu\"}}\n",
		     (unsigned long long)item->watch_id);
	give_slot(&etcd->watch, item);
	if (!send_text(etcd, &text))
		pvr_etcd_watch_close(etcd);
}

/* ------------------------------------------------------------------- events */

static void changed(struct pvr_etcd *etcd, struct pvr_etcd_item *item, struct json_object *events)
{
	size_t num = events ? json_object_array_length(events) : 0, i;
	uint64_t revision;

	for (i = 0; i < num; i++) {
		etcd->watch.events++;
		revision =
			pvr_json_number(pvr_json_object(json_object_array_get_idx(events, i), "kv"),
					"mod_revision");
		if (!revision || revision > item->revision)
			pvr_etcd_request(etcd, item);
	}
}

static void confirmed(struct pvr_etcd *etcd)
{
	struct pvr_etcd_watch *watch = &etcd->watch;

	if (watch->unconfirmed && !--watch->unconfirmed)
		pvr_loop_timer_disarm(&watch->timer);
	else if (watch->unconfirmed)
		pvr_loop_timer_arm(etcd->directory->env.loop, &watch->timer, CONFIRM_MAX);
}

static uint64_t next_pause(const struct pvr_etcd *etcd)
{
	const struct pvr_etcd_watch *watch = &etcd->watch;

	if (!watch->refused_at || pvr_loop_now() - watch->refused_at > PAUSE_MAX)
		return etcd->client.settings.user[0] ? PVR_MSEC : PAUSE_MIN;
	if (watch->pause < PAUSE_MIN)
		return PAUSE_MIN;
	return 2 * watch->pause < PAUSE_MAX ? 2 * watch->pause : PAUSE_MAX;
}

/*
 * The token of the stream has expired, or this host may not read the key. Newer versions
 * of etcd do not tell which watch they refuse. So a new stream with a new token begins,
 * and in the meantime the keys are read again: see retry_expired().
 */
static void refused(struct pvr_etcd *etcd, const char *why)
{
	struct pvr_etcd_watch *watch = &etcd->watch;

	watch->pause = next_pause(etcd);
	if (watch->pause >= PAUSE_MIN)
		pvr_directory_log(etcd->directory, PVR_LOG_WARN,
				  "etcd refuses watches: %.200s; keys are read again in %llu s",
				  why ? why : "no reason given",
				  (unsigned long long)(watch->pause / PVR_SEC));
	watch->refused_at = pvr_loop_now();
	pvr_etcd_watch_close(etcd);
	pvr_etcd_client_log_out(&etcd->client);
	pvr_loop_timer_arm(etcd->directory->env.loop, &watch->retry, watch->pause);
}

static void retry_expired(struct pvr_loop_timer *timer)
{
	struct pvr_etcd *etcd = pvr_container_of(timer, struct pvr_etcd, watch.retry);
	struct pvr_etcd_item *item;

	TAILQ_FOREACH(item, &etcd->watch.pending, watch_link)
		pvr_etcd_request(etcd, item);
	pvr_etcd_step(etcd);
}

static void take_result(struct pvr_etcd *etcd, struct json_object *result)
{
	struct pvr_etcd_item *item = item_of(etcd, pvr_json_number(result, "watch_id"));
	bool created = pvr_json_true(result, "created");
	bool canceled = pvr_json_true(result, "canceled");

	if (created && canceled && !pvr_json_number(result, "compact_revision")) {
		refused(etcd, pvr_json_text(result, "cancel_reason"));
		return;
	}
	if (created)
		confirmed(etcd);
	if (!item)
		return; /* not watched any more */
	if (canceled) {
		/*
		 * etcd has compacted this revision: read the item again, then watch it.
		 */
		give_slot(&etcd->watch, item);
		pvr_etcd_request_later(etcd, item);
		return;
	}
	changed(etcd, item, pvr_json_array(result, "events"));
}

static void fail(struct pvr_etcd *etcd, long status, const char *why)
{
	pvr_etcd_watch_close(etcd);
	pvr_etcd_stream_ended(&etcd->client, status, why);
}

static void stream_line(void *opaque, const char *line, size_t len)
{
	struct pvr_etcd *etcd = opaque;
	struct json_object *object, *result;

	if (!len)
		return;
	object = pvr_json_parse(line, len);
	result = pvr_json_object(object, "result");
	if (result)
		take_result(etcd, result);
	else
		fail(etcd, 0, "its watch stream is invalid");
	json_object_put(object);
	if (etcd->watch.stream)
		pvr_etcd_step(etcd);
}

static void stream_drained(void *opaque)
{
	pvr_etcd_watch_step(opaque);
}

static void stream_ended(void *opaque, long status, const char *why)
{
	struct pvr_etcd *etcd = opaque;

	etcd->watch.stream = NULL;
	fail(etcd, status, why);
}

static void timer_expired(struct pvr_loop_timer *timer)
{
	fail(pvr_container_of(timer, struct pvr_etcd, watch.timer), 0,
	     "it does not confirm watches");
}

static const struct pvr_http_stream_ops stream_ops = {
	.line = stream_line,
	.drained = stream_drained,
	.ended = stream_ended,
};

/* ------------------------------------------------------------------- stream */

/* All items will be watched again from their revision on. */
void pvr_etcd_watch_close(struct pvr_etcd *etcd)
{
	struct pvr_etcd_watch *watch = &etcd->watch;
	struct pvr_etcd_item *item;
	size_t i;

	if (watch->stream)
		pvr_http_cancel(watch->stream);
	watch->stream = NULL;
	watch->unconfirmed = 0;
	pvr_loop_timer_disarm(&watch->timer);
	for (i = 0; i < watch->num_slots; i++) {
		item = watch->slots[i];
		if (!item)
			continue;
		give_slot(watch, item);
		set_pending(watch, item, true);
	}
}

static bool open_stream(struct pvr_etcd *etcd)
{
	if (!etcd->watch.stream && !etcd->watch.retry.loop && pvr_etcd_client_usable(&etcd->client))
		etcd->watch.stream = pvr_etcd_stream(&etcd->client, "/v3/watch", &stream_ops, etcd);
	return etcd->watch.stream;
}

void pvr_etcd_watch_step(struct pvr_etcd *etcd)
{
	struct pvr_etcd_watch *watch = &etcd->watch;
	struct pvr_etcd_item *item;

	if (TAILQ_EMPTY(&watch->pending) || !open_stream(etcd))
		return;
	while ((item = TAILQ_FIRST(&watch->pending)) &&
	       pvr_http_unsent(watch->stream) < UNSENT_MAX) {
		set_pending(watch, item, false);
		if (!send_create(etcd, item)) {
			set_pending(watch, item, !item->watch_id);
			fail(etcd, 0, "out of memory");
			return;
		}
	}
}

void pvr_etcd_watch_add(struct pvr_etcd *etcd, struct pvr_etcd_item *item)
{
	/* The revision is in the future: etcd has lost its data. */
	if (item->watch_id && item->watch_from > item->revision + 1)
		cancel(etcd, item);
	set_pending(&etcd->watch, item, !item->watch_id);
}

void pvr_etcd_watch_drop(struct pvr_etcd *etcd, struct pvr_etcd_item *item)
{
	set_pending(&etcd->watch, item, false);
	if (item->watch_id)
		cancel(etcd, item);
}

void pvr_etcd_watch_init(struct pvr_etcd *etcd)
{
	TAILQ_INIT(&etcd->watch.pending);
	etcd->watch.timer.expired = timer_expired;
	etcd->watch.retry.expired = retry_expired;
}

void pvr_etcd_watch_exit(struct pvr_etcd *etcd)
{
	pvr_loop_timer_disarm(&etcd->watch.timer);
	pvr_loop_timer_disarm(&etcd->watch.retry);
	free(etcd->watch.slots);
}
