// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Checks that this host's keys are in etcd: an operator or another host can delete them,
 * and etcd can be restored from a snapshot, while the lease lives.
 *
 * A few keys are counted every ten seconds, so that all hosts together cause little load.
 * After a connection or a part of etcd's data was lost, all keys are checked at once.
 */
#include <stdlib.h>
#include <string.h>

#include "directory/etcd_own_key.h"

#define SECONDS_MAX 10u /* between two checks */
#define KEYS_MAX 32 /* each is up to two reads, and etcd allows 128 in a transaction */

struct audit_batch {
	struct pvr_etcd *etcd;
	uint64_t sent; /* the newest revision before */
	size_t num;
	struct pvr_key keys[KEYS_MAX];
	unsigned int reads[KEYS_MAX];
};

static void wait(struct pvr_etcd *etcd)
{
	unsigned int seconds = etcd->ttl < SECONDS_MAX ? etcd->ttl : SECONDS_MAX;

	pvr_loop_timer_arm(etcd->directory->env.loop, &etcd->audit.timer, seconds * PVR_SEC);
}

static void timer_expired(struct pvr_loop_timer *timer)
{
	struct pvr_etcd *etcd = pvr_container_of(timer, struct pvr_etcd, audit.timer);

	etcd->audit.due = true;
	pvr_etcd_audit_step(etcd);
}

static bool is_there(struct json_object *responses, size_t i)
{
	struct json_object *range =
		pvr_json_object(json_object_array_get_idx(responses, i), "response_range");

	return !range || pvr_json_number(range, "count");
}

/* Return: whether the key was lost. */
static bool check_key(struct pvr_etcd *etcd, const struct pvr_key *key,
		      struct json_object *responses, size_t first, size_t num)
{
	struct pvr_key_node *node = pvr_key_find(&etcd->publish.table, key);
	struct pvr_own_key *own = node ? pvr_container_of(node, struct pvr_own_key, node) : NULL;
	bool there = true;

	while (num--)
		there &= is_there(responses, first + num);
	/* If it was put since, etcd may have read before. */
	if (there || !own || own->busy || own->put_after == etcd->audit.sent ||
	    !pvr_own_key_is_written(own))
		return false;
	pvr_own_key_lost(own);
	return true;
}

static void check(struct audit_batch *batch, struct json_object *reply)
{
	struct json_object *responses = pvr_json_array(reply, "responses");
	struct pvr_etcd *etcd = batch->etcd;
	size_t first = 0, lost = 0, i;

	for (i = 0; i < batch->num; first += batch->reads[i++])
		;
	if (!responses || json_object_array_length(responses) != first)
		return;
	pvr_etcd_see_header(etcd, pvr_json_object(reply, "header"), batch->sent);
	for (i = first = 0; i < batch->num; first += batch->reads[i++])
		lost += check_key(etcd, &batch->keys[i], responses, first, batch->reads[i]);
	if (lost)
		pvr_directory_log(etcd->directory, PVR_LOG_WARN,
				  "etcd has lost %zu of this host's keys: they are written again",
				  lost);
}

static void batch_done(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct audit_batch *batch = opaque;
	struct pvr_etcd_audit *audit = &batch->etcd->audit;

	audit->busy = false;
	if (result == PVR_ETCD_OK) {
		check(batch, reply);
		audit->left -= audit->left < batch->num ? audit->left : batch->num;
	}
	/* A failed check is repeated after a while: a reconnection begins anew anyway. */
	audit->due = audit->left && result == PVR_ETCD_OK;
	if (!audit->due)
		wait(batch->etcd);
	free(batch);
}

static void add_count(struct pvr_text *body, const char *key, bool first)
{
	pvr_text_add(body, "%s{\"request_range\":{", first ? "" : ",");
	pvr_etcd_add_range(body, key);
	pvr_text_add(body, ",\"count_only\":true}}");
}

static void add_key(struct audit_batch *batch, struct pvr_text *body, const struct pvr_own_key *own)
{
	char key[PVR_ETCD_KEY_MAX];
	size_t i = batch->num++;

	batch->keys[i] = own->node.key;
	batch->reads[i] = 1;
	pvr_own_key_text(own, key);
	add_count(body, key, !i);
	if (!pvr_own_key_claim(own, key))
		return;
	batch->reads[i]++;
	add_count(body, key, false);
}

/* Takes keys from the table, from the position of the last call on. */
static void fill(struct audit_batch *batch, struct pvr_text *body)
{
	struct pvr_etcd_audit *audit = &batch->etcd->audit;
	const struct pvr_key_table *table = &batch->etcd->publish.table;
	struct pvr_key_node *node;
	size_t buckets, i;

	pvr_text_add(body, "{\"success\":[");
	for (buckets = 0; buckets < table->num_buckets; buckets++) {
		i = 0;
		LIST_FOREACH(node, &table->buckets[audit->bucket], link) {
			if (i++ < audit->skip)
				continue;
			if (batch->num == KEYS_MAX)
				goto full;
			audit->skip++;
			add_key(batch, body, pvr_container_of(node, struct pvr_own_key, node));
		}
		audit->skip = 0;
		audit->bucket = (audit->bucket + 1) % table->num_buckets;
	}
full:
	pvr_text_add(body, "]}");
}

void pvr_etcd_audit_step(struct pvr_etcd *etcd)
{
	struct pvr_text body = { .len = 0 };
	struct audit_batch *batch;

	if (etcd->audit.busy || !etcd->audit.due || !etcd->lease.id[0] ||
	    !etcd->publish.table.count || !pvr_etcd_client_usable(&etcd->client))
		return;
	etcd->audit.due = false;
	batch = calloc(1, sizeof(*batch));
	if (!batch) {
		wait(etcd);
		return;
	}
	batch->etcd = etcd;
	batch->sent = etcd->revision;
	fill(batch, &body);
	etcd->audit.sent++;
	etcd->audit.busy = pvr_etcd_call(&etcd->client, "/v3/kv/txn", &body, batch_done, batch);
	if (etcd->audit.busy)
		return;
	free(batch);
	wait(etcd);
}

void pvr_etcd_audit_all(struct pvr_etcd *etcd)
{
	etcd->audit.left = etcd->publish.table.count;
	etcd->audit.due = true;
}

void pvr_etcd_audit_init(struct pvr_etcd *etcd)
{
	etcd->audit.timer.expired = timer_expired;
	wait(etcd);
}

void pvr_etcd_audit_exit(struct pvr_etcd *etcd)
{
	pvr_loop_timer_disarm(&etcd->audit.timer);
}
