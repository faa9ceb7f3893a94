// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Look-ups: many per transaction, a few transactions at a time. */
#include <stdlib.h>
#include <string.h>

#include "directory/etcd.h"

#define BATCH_MAX 64 /* reads; etcd allows 128 */
#define IN_FLIGHT_MAX 2
#define LATER PVR_SEC

struct pvr_lookup_batch {
	struct pvr_etcd *etcd;
	uint64_t sent; /* the newest revision before */
	size_t num, num_reads;
	struct pvr_etcd_item *items[BATCH_MAX]; /* NULL: freed since */
	size_t reads[BATCH_MAX]; /* number of each item's */
};

/* -------------------------------------------------------------------- queue */

static void unlist(struct pvr_etcd *etcd, struct pvr_etcd_item *item)
{
	if (item->lookup == PVR_LOOKUP_QUEUED)
		TAILQ_REMOVE(&etcd->lookup.queue, item, link);
	else if (item->lookup == PVR_LOOKUP_LATER)
		TAILQ_REMOVE(&etcd->lookup.later, item, link);
	item->lookup = PVR_LOOKUP_NONE;
}

void pvr_etcd_request(struct pvr_etcd *etcd, struct pvr_etcd_item *item)
{
	bool asked = item->lookup == PVR_LOOKUP_ASKED;

	/* The claims that are read next are those of an earlier state of the index. */
	if (asked || (item->confirming && item->lookup != PVR_LOOKUP_NONE))
		item->again = true;
	if (asked || item->lookup == PVR_LOOKUP_QUEUED)
		return;
	unlist(etcd, item);
	item->lookup = PVR_LOOKUP_QUEUED;
	TAILQ_INSERT_TAIL(&etcd->lookup.queue, item, link);
}

void pvr_etcd_request_later(struct pvr_etcd *etcd, struct pvr_etcd_item *item)
{
	if (item->lookup != PVR_LOOKUP_NONE)
		return;
	item->lookup = PVR_LOOKUP_LATER;
	item->due = pvr_loop_now() + LATER;
	TAILQ_INSERT_TAIL(&etcd->lookup.later, item, link);
	if (!etcd->lookup.timer.loop)
		pvr_loop_timer_arm(etcd->directory->env.loop, &etcd->lookup.timer, LATER);
}

void pvr_etcd_lookup_drop(struct pvr_etcd *etcd, struct pvr_etcd_item *item)
{
	if (item->lookup == PVR_LOOKUP_ASKED) {
		item->batch->items[item->index] = NULL;
		item->lookup = PVR_LOOKUP_NONE;
	}
	unlist(etcd, item);
}

static void timer_expired(struct pvr_loop_timer *timer)
{
	struct pvr_etcd *etcd = pvr_container_of(timer, struct pvr_etcd, lookup.timer);
	uint64_t now = pvr_loop_now();
	struct pvr_etcd_item *item;

	while ((item = TAILQ_FIRST(&etcd->lookup.later)) && item->due <= now)
		pvr_etcd_request(etcd, item);
	if (item)
		pvr_loop_timer_arm(etcd->directory->env.loop, &etcd->lookup.timer, item->due - now);
	pvr_etcd_lookup_step(etcd);
}

/* ----------------------------------------------------------------------------- batches */

/* Returns all items to their queue. */
static void give_back(struct pvr_lookup_batch *batch, bool later)
{
	struct pvr_etcd_item *item;
	size_t i;

	for (i = 0; i < batch->num; i++) {
		item = batch->items[i];
		if (!item)
			continue;
		item->lookup = PVR_LOOKUP_NONE;
		if (later)
			pvr_etcd_request_later(batch->etcd, item);
		else
			pvr_etcd_request(batch->etcd, item);
	}
}

static bool are_ranges(struct json_object *responses, size_t first, size_t num)
{
	while (num--) {
		if (!pvr_json_object(json_object_array_get_idx(responses, first + num),
				     "response_range"))
			return false;
	}
	return true;
}

/* Handles the responses for one item. Return: false if they are invalid. */
static bool take_responses(struct pvr_etcd *etcd, struct pvr_etcd_item *item,
			   struct json_object *responses, size_t first, size_t num,
			   uint64_t revision)
{
	bool again = item->again;

	if (!are_ranges(responses, first, num))
		return false;
	item->lookup = PVR_LOOKUP_NONE;
	item->again = false;
	/* The index is watched, from the revision on at which it was read. */
	if (!item->confirming)
		item->revision = revision;
	pvr_etcd_answer(etcd, item, responses, first);
	if (again)
		pvr_etcd_request(etcd, item);
	return true;
}

static bool take_reply(struct pvr_lookup_batch *batch, struct json_object *reply)
{
	struct json_object *header = pvr_json_object(reply, "header");
	struct json_object *responses = pvr_json_array(reply, "responses");
	uint64_t revision = pvr_json_number(header, "revision");
	struct pvr_etcd_item *item;
	size_t i, first = 0;

	if (!revision || !responses || json_object_array_length(responses) != batch->num_reads)
		return false;
	pvr_etcd_see_header(batch->etcd, header, batch->sent);
	for (i = 0; i < batch->num; first += batch->reads[i++]) {
		item = batch->items[i]; /* an earlier response may have freed it */
		batch->items[i] = NULL;
		if (item && !take_responses(batch->etcd, item, responses, first, batch->reads[i],
					    revision)) {
			batch->items[i] = item;
			return false;
		}
	}
	return true;
}

static void batch_done(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct pvr_lookup_batch *batch = opaque;
	struct pvr_etcd *etcd = batch->etcd;

	etcd->lookup.in_flight--;
	if (result == PVR_ETCD_REFUSED) {
		const char *why = pvr_json_text(reply, "error");

		pvr_directory_log(etcd->directory, PVR_LOG_WARN, "etcd refuses look-ups: %.200s",
				  why ? why : "no reason given");
		give_back(batch, true);
	} else if (result == PVR_ETCD_FAILED) {
		give_back(batch, false);
	} else if (!take_reply(batch, reply)) {
		pvr_directory_log(etcd->directory, PVR_LOG_WARN,
				  "etcd's response to look-ups is invalid");
		give_back(batch, true);
	}
	free(batch);
}

static void fill(struct pvr_lookup_batch *batch, struct pvr_text *body)
{
	struct pvr_etcd *etcd = batch->etcd;
	struct pvr_etcd_item *item;

	pvr_text_add(body, "{\"success\":[");
	while ((item = TAILQ_FIRST(&etcd->lookup.queue)) &&
	       batch->num_reads + pvr_etcd_num_reads(item) <= BATCH_MAX) {
		unlist(etcd, item);
		item->lookup = PVR_LOOKUP_ASKED;
		item->batch = batch;
		item->index = batch->num;
		batch->reads[batch->num] = pvr_etcd_add_reads(etcd, item, body, batch->num_reads);
		batch->num_reads += batch->reads[batch->num];
		batch->items[batch->num++] = item;
	}
	pvr_text_add(body, "]}");
}

/* Return: false if no call is possible now. */
static bool send_batch(struct pvr_etcd *etcd)
{
	struct pvr_lookup_batch *batch = calloc(1, sizeof(*batch));
	struct pvr_text body = { .len = 0 };

	if (!batch)
		return false;
	batch->etcd = etcd;
	batch->sent = etcd->revision;
	fill(batch, &body);
	if (pvr_etcd_call(&etcd->client, "/v3/kv/txn", &body, batch_done, batch)) {
		etcd->lookup.in_flight++;
		return true;
	}
	give_back(batch, false);
	free(batch);
	return false;
}

void pvr_etcd_lookup_step(struct pvr_etcd *etcd)
{
	struct pvr_etcd_lookup *lookup = &etcd->lookup;

	while (!TAILQ_EMPTY(&lookup->queue) && lookup->in_flight < IN_FLIGHT_MAX &&
	       pvr_etcd_client_usable(&etcd->client) && send_batch(etcd))
		;
}

void pvr_etcd_lookup_init(struct pvr_etcd *etcd)
{
	TAILQ_INIT(&etcd->lookup.queue);
	TAILQ_INIT(&etcd->lookup.later);
	etcd->lookup.timer.expired = timer_expired;
}

void pvr_etcd_lookup_exit(struct pvr_etcd *etcd)
{
	pvr_loop_timer_disarm(&etcd->lookup.timer);
}
