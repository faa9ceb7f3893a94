// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * This host's own keys: written while they should exist, deleted otherwise.
 *
 * The address is put if its key is as last seen; at first, if there is none. If the key
 * differs, etcd returns the current one. If an earlier run of this daemon wrote that, the
 * next transaction expects it. If it has another address, a second host has this name: it
 * is refused and retried every second.
 *
 * The keys of a GID have this host's name, so they are put without a condition. The same
 * transaction reads the index. If that has other hosts, their claims are read, see
 * etcd_rivals.c. If one of them is older than this host's, the claim is refused, and the index
 * is read again every second: the other host may withdraw its claim.
 *
 * New keys of several GIDs share a transaction, which has no condition. If etcd does not execute
 * one, the next one has half as many GIDs: the cause can be one of them.
 */
#include <stdlib.h>
#include <string.h>

#include "directory/etcd_own_key.h"

#define IN_FLIGHT_MAX 8
#define LATER PVR_SEC

bool pvr_own_key_is_written(const struct pvr_own_key *own)
{
	return own->written && own->type == own->put_type && own->lease == own->etcd->lease.number;
}

bool pvr_own_key_is_done(const struct pvr_own_key *own)
{
	return pvr_own_key_is_written(own) && !own->refused && !pvr_rivals_any(own) && !own->unread;
}

bool pvr_etcd_is_registered(const struct pvr_etcd *etcd)
{
	return etcd->lease.id[0] && etcd->publish.host && pvr_own_key_is_done(etcd->publish.host);
}

static void unlist(struct pvr_own_key *own)
{
	struct pvr_etcd_publish *publish = &own->etcd->publish;

	if (own->list == OWN_QUEUED)
		TAILQ_REMOVE(&publish->queue, own, link);
	else if (own->list == OWN_LATER)
		TAILQ_REMOVE(&publish->later, own, link);
	own->list = OWN_NOWHERE;
}

void pvr_own_key_enqueue(struct pvr_own_key *own)
{
	if (own->busy) {
		own->changed = true;
		return;
	}
	if (own->list == OWN_QUEUED)
		return;
	unlist(own);
	own->list = OWN_QUEUED;
	TAILQ_INSERT_TAIL(&own->etcd->publish.queue, own, link);
}

void pvr_own_key_later(struct pvr_own_key *own)
{
	struct pvr_etcd_publish *publish = &own->etcd->publish;

	unlist(own);
	own->list = OWN_LATER;
	own->due = pvr_loop_now() + LATER;
	TAILQ_INSERT_TAIL(&publish->later, own, link);
	if (!publish->timer.loop)
		pvr_loop_timer_arm(own->etcd->directory->env.loop, &publish->timer, LATER);
}

static void timer_expired(struct pvr_loop_timer *timer)
{
	struct pvr_etcd *etcd = pvr_container_of(timer, struct pvr_etcd, publish.timer);
	uint64_t now = pvr_loop_now();
	struct pvr_own_key *own;

	while ((own = TAILQ_FIRST(&etcd->publish.later)) && own->due <= now)
		pvr_own_key_enqueue(own);
	if (own)
		pvr_loop_timer_arm(etcd->directory->env.loop, &etcd->publish.timer, own->due - now);
	pvr_etcd_publish_step(etcd);
}

static void drop(struct pvr_own_key *own)
{
	unlist(own);
	pvr_rivals_drop(own);
	pvr_key_remove(&own->etcd->publish.table, &own->node);
	free(own);
}

/* ------------------------------------------------------------------------- key, value */

void pvr_own_key_text(const struct pvr_own_key *own, char text[PVR_ETCD_KEY_MAX])
{
	const char *name = pvr_directory_own_name(own->etcd->directory);

	if (own->is_host) {
		pvr_etcd_host_key(own->etcd, name, text);
		return;
	}
	pvr_etcd_index_prefix(own->etcd, &own->node.key, text);
	strcat(text, name);
}

bool pvr_own_key_claim(const struct pvr_own_key *own, char text[PVR_ETCD_KEY_MAX])
{
	if (own->is_host || pvr_key_is_group(&own->node.key))
		return false;
	pvr_etcd_claim_key(own->etcd, pvr_directory_own_name(own->etcd->directory), &own->node.key,
			   text);
	return true;
}

static void own_value(const struct pvr_own_key *own, char text[PVR_ETCD_VALUE_MAX])
{
	const struct pvr_directory_env *env = &own->etcd->directory->env;

	if (own->is_host)
		snprintf(text, PVR_ETCD_VALUE_MAX, "{\"address\":\"%s\"}", env->address);
	else
		snprintf(text, PVR_ETCD_VALUE_MAX, "{\"type\":\"%s\"}",
			 own->type == PVR_GID_TYPE_ROCE_V1 ? "v1" : "v2");
}

/* ----------------------------------------------------------------------- transactions */

void pvr_own_key_refuse(struct pvr_own_key *own, const char *owner)
{
	struct pvr_directory *directory = own->etcd->directory;
	char text[PVR_KEY_TEXT];

	if (!own->refused && own->is_host)
		pvr_directory_log(directory, PVR_LOG_WARN,
				  "etcd has host %s at another address: this host is not "
				  "announced until that key is gone",
				  directory->env.name);
	else if (!own->refused)
		pvr_directory_log(directory, PVR_LOG_WARN,
				  "%s belongs to host %s: the claim of an adapter here is refused",
				  pvr_key_text(&own->node.key, text), owner);
	own->refused = true;
	directory->refused++;
	pvr_own_key_later(own);
}

/* This host's address was not as expected; handles the current one, if any. */
static void put_differs(struct pvr_own_key *own, struct json_object *reply)
{
	struct json_object *kvs = pvr_etcd_kvs(pvr_json_array(reply, "responses"), 0);
	struct json_object *kv = kvs ? json_object_array_get_idx(kvs, 0) : NULL;
	uint64_t expected = own->expect;
	char value[PVR_ETCD_VALUE_MAX], ours[PVR_ETCD_VALUE_MAX];

	own->expect = 0;
	own_value(own, ours);
	if (!kv) {
		if (expected)
			pvr_own_key_enqueue(own); /* deleted since */
		else
			pvr_own_key_later(own); /* invalid response */
	} else if (pvr_json_base64(kv, "value", value, sizeof(value)) >= 0 &&
		   !strcmp(value, ours)) {
		own->expect = pvr_json_number(kv, "mod_revision");
		if (own->expect == expected)
			pvr_own_key_later(own);
		else
			pvr_own_key_enqueue(own);
	} else {
		pvr_own_key_refuse(own, "?");
	}
}

/* No other host has the key. */
void pvr_own_key_is_ours(struct pvr_own_key *own)
{
	char text[PVR_KEY_TEXT];

	if (own->refused)
		pvr_directory_log(own->etcd->directory, PVR_LOG_INFO, "%s now belongs to this host",
				  own->is_host ? "the name" : pvr_key_text(&own->node.key, text));
	own->refused = false;
}

static void put_succeeded(struct pvr_own_key *own, struct json_object *reply)
{
	own->written = true;
	own->put_after = own->etcd->audit.sent;
	if (!own->is_host)
		return;
	own->expect = pvr_json_number(pvr_json_object(reply, "header"), "revision");
	pvr_own_key_is_ours(own);
	pvr_directory_log(own->etcd->directory, PVR_LOG_INFO, "announced as %s at %s",
			  own->etcd->directory->env.name, own->etcd->directory->env.address);
}

void pvr_own_key_finish(struct pvr_own_key *own, enum pvr_etcd_result result,
			struct json_object *reply)
{
	bool changed = own->changed;

	own->etcd->publish.in_flight--;
	own->busy = own->changed = false;
	if (result == PVR_ETCD_OK && reply)
		pvr_etcd_see_header(own->etcd, pvr_json_object(reply, "header"), own->sent);
	if (changed || result == PVR_ETCD_FAILED)
		pvr_own_key_enqueue(own);
}

void pvr_own_key_log_refusal(struct pvr_own_key *own, struct json_object *reply)
{
	const char *why = pvr_json_text(reply, "error");

	/* Code 5 is "not found"; only a lease can be missing here. */
	if (pvr_json_number(reply, "code") == 5)
		pvr_etcd_lease_lost(own->etcd);
	else
		pvr_directory_log(own->etcd->directory, PVR_LOG_WARN,
				  "etcd refuses this host's keys: %.200s",
				  why ? why : "no reason given");
}

static void put_done(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct pvr_own_key *own = opaque;
	struct json_object *responses = pvr_json_array(reply, "responses");

	pvr_own_key_finish(own, result, reply);
	if (result == PVR_ETCD_REFUSED) {
		pvr_own_key_log_refusal(own, reply);
		pvr_own_key_later(own);
	} else if (result == PVR_ETCD_OK && pvr_json_true(reply, "succeeded")) {
		put_succeeded(own, reply);
		/* The last operation has read the index. */
		if (own->list == OWN_NOWHERE && !own->is_host && responses)
			pvr_rivals_find(own, pvr_etcd_kvs(responses,
							  json_object_array_length(responses) - 1));
	} else if (result == PVR_ETCD_OK && own->list == OWN_NOWHERE) {
		put_differs(own, reply);
	}
}

static void delete_done(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct pvr_own_key *own = opaque;

	pvr_own_key_finish(own, result, reply);
	if (result == PVR_ETCD_REFUSED) {
		pvr_own_key_log_refusal(own, reply);
		pvr_own_key_later(own);
		return;
	}
	if (result != PVR_ETCD_OK)
		return;
	own->put_type = 0;
	if (!own->type)
		drop(own);
	else
		pvr_own_key_enqueue(own);
}

static void add_compare(struct pvr_text *body, const struct pvr_own_key *own, const char *key)
{
	pvr_text_add(body, "\"compare\":[{\"key\":\"");
	pvr_text_add_base64(body, key);
	if (own->expect)
		pvr_text_add(body,
			     "\",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"%llu\"",
			     (unsigned long long)own->expect);
	else
		pvr_text_add(body, "\",\"target\":\"CREATE\",\"result\":\"EQUAL\","
				   "\"create_revision\":\"0\"");
	pvr_text_add(body, "}],");
}

static void add_put(struct pvr_text *body, const struct pvr_own_key *own, const char *key)
{
	char value[PVR_ETCD_VALUE_MAX];

	own_value(own, value);
	pvr_text_add(body, "{\"request_put\":{\"key\":\"");
	pvr_text_add_base64(body, key);
	pvr_text_add(body, "\",\"value\":\"");
	pvr_text_add_base64(body, value);
	pvr_text_add(body, "\",\"lease\":\"%s\"}}", own->etcd->lease.id);
}

void pvr_own_key_add_read(struct pvr_text *body, const char *key)
{
	pvr_text_add(body, "{\"request_range\":{");
	pvr_etcd_add_range(body, key);
	pvr_text_add(body,
		     ",\"limit\":\"%d\",\"sort_order\":\"ASCEND\",\"sort_target\":\"CREATE\"}}",
		     PVR_RIVALS_MAX);
}

static bool send_host_put(struct pvr_own_key *own)
{
	struct pvr_text body = { .len = 0 };
	char key[PVR_ETCD_KEY_MAX];

	pvr_own_key_text(own, key);
	pvr_text_add(&body, "{");
	add_compare(&body, own, key);
	pvr_text_add(&body, "\"success\":[");
	add_put(&body, own, key);
	pvr_text_add(&body, "],\"failure\":[");
	pvr_own_key_add_read(&body, key);
	pvr_text_add(&body, "]}");
	return pvr_etcd_call(&own->etcd->client, "/v3/kv/txn", &body, put_done, own);
}

/* Puts the keys of a GID unless they are there, and reads the index. */
static void add_gid(struct pvr_text *body, const struct pvr_own_key *own)
{
	char key[PVR_ETCD_KEY_MAX];
	bool claim = pvr_own_key_claim(own, key);

	if (!pvr_own_key_is_written(own)) {
		if (claim) {
			add_put(body, own, key);
			pvr_text_add(body, ",");
		}
		pvr_own_key_text(own, key);
		add_put(body, own, key);
		pvr_text_add(body, claim ? "," : "");
	}
	if (claim) {
		pvr_etcd_index_prefix(own->etcd, &own->node.key, key);
		pvr_own_key_add_read(body, key);
	}
}

static bool send_gid_put(struct pvr_own_key *own)
{
	struct pvr_text body = { .len = 0 };

	pvr_text_add(&body, "{\"success\":[");
	add_gid(&body, own);
	pvr_text_add(&body, "]}");
	return pvr_etcd_call(&own->etcd->client, "/v3/kv/txn", &body, put_done, own);
}

static void note_put(struct pvr_own_key *own)
{
	if (!pvr_own_key_is_written(own))
		own->written = false;
	own->put_type = own->type;
	own->lease = own->etcd->lease.number;
}

static bool send_put(struct pvr_own_key *own)
{
	bool ok = own->is_host ? send_host_put(own) : send_gid_put(own);

	note_put(own);
	return ok;
}

static bool send_delete(struct pvr_own_key *own)
{
	struct pvr_text body = { .len = 0 };
	char key[PVR_ETCD_KEY_MAX];

	pvr_text_add(&body, "{\"success\":[");
	if (pvr_own_key_claim(own, key)) {
		pvr_text_add(&body, "{\"request_delete_range\":{");
		pvr_etcd_add_range(&body, key);
		pvr_text_add(&body, "}},");
	}
	pvr_own_key_text(own, key);
	pvr_text_add(&body, "{\"request_delete_range\":{");
	pvr_etcd_add_range(&body, key);
	pvr_text_add(&body, "}}]}");
	own->written = false;
	return pvr_etcd_call(&own->etcd->client, "/v3/kv/txn", &body, delete_done, own);
}

static bool send_next(struct pvr_own_key *own)
{
	if (!own->type)
		return send_delete(own);
	if (!pvr_own_key_is_written(own))
		return send_put(own);
	return pvr_rivals_any(own) ? pvr_rivals_check(own) : send_put(own);
}

static void set_busy(struct pvr_own_key *own)
{
	own->busy = true;
	own->sent = own->etcd->revision;
	own->etcd->publish.in_flight++;
}

/* Return: false if no call is possible now. */
static bool act(struct pvr_own_key *own)
{
	unlist(own);
	if (!own->type && !own->put_type) {
		drop(own);
		return true;
	}
	if (pvr_own_key_is_done(own))
		return true;
	if (!send_next(own)) {
		pvr_own_key_later(own);
		return false;
	}
	set_busy(own);
	return true;
}

/* ------------------------------------------------------------- several GIDs at once */

static bool is_new_gid(const struct pvr_own_key *own)
{
	return !own->is_host && own->type && !pvr_own_key_is_written(own);
}

/* The operations of add_gid(). */
static size_t num_operations(const struct pvr_own_key *own)
{
	return pvr_key_is_group(&own->node.key) ? 1 : 3;
}

/* @num: GIDs of the transaction */
static void adapt_max_puts(struct pvr_etcd_publish *publish, enum pvr_etcd_result result,
			   size_t num)
{
	size_t max = result == PVR_ETCD_OK ? 2 * publish->max_puts : num / 2;

	publish->max_puts = max < 1 ? 1 : max < PVR_ETCD_PUTS_MAX ? max : PVR_ETCD_PUTS_MAX;
}

static void puts_done(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct pvr_etcd *etcd = opaque;
	struct pvr_etcd_publish *publish = &etcd->publish;
	struct json_object *responses = pvr_json_array(reply, "responses");
	bool has_no_lease = pvr_json_number(reply, "code") == 5;
	size_t num = publish->num_puts, at = 0, i;
	struct pvr_own_key *own;

	publish->num_puts = 0;
	adapt_max_puts(publish, result, num);
	if (result == PVR_ETCD_REFUSED && (has_no_lease || num == 1))
		pvr_own_key_log_refusal(publish->puts[0], reply);
	for (i = 0; i < num; i++) {
		own = publish->puts[i];
		/* The header is that of all, and has its effect once. */
		pvr_own_key_finish(own, result, i ? NULL : reply);
		at += num_operations(own);
		if (result == PVR_ETCD_REFUSED && (has_no_lease || num == 1))
			pvr_own_key_later(own);
		else if (result == PVR_ETCD_REFUSED)
			pvr_own_key_enqueue(own);
		else if (result == PVR_ETCD_OK && pvr_json_true(reply, "succeeded"))
			put_succeeded(own, reply);
		else if (result == PVR_ETCD_OK && own->list == OWN_NOWHERE)
			pvr_own_key_later(own); /* invalid response */
		if (own->written && own->list == OWN_NOWHERE && responses)
			pvr_rivals_find(own, pvr_etcd_kvs(responses, at - 1));
	}
}

/* Return: false if no call is possible now. */
static bool send_puts(struct pvr_etcd *etcd)
{
	struct pvr_etcd_publish *publish = &etcd->publish;
	struct pvr_text body = { .len = 0 };
	struct pvr_own_key *own;
	size_t num = 0, i;

	pvr_text_add(&body, "{\"success\":[");
	while (num < publish->max_puts && (own = TAILQ_FIRST(&publish->queue)) && is_new_gid(own)) {
		unlist(own);
		pvr_text_add(&body, num ? "," : "");
		add_gid(&body, own);
		publish->puts[num++] = own;
	}
	pvr_text_add(&body, "]}");
	if (!pvr_etcd_call(&etcd->client, "/v3/kv/txn", &body, puts_done, etcd)) {
		for (i = 0; i < num; i++)
			pvr_own_key_later(publish->puts[i]);
		return false;
	}
	publish->num_puts = num;
	for (i = 0; i < num; i++) {
		note_put(publish->puts[i]);
		set_busy(publish->puts[i]);
	}
	return true;
}

static bool act_next(struct pvr_etcd *etcd)
{
	struct pvr_own_key *own = TAILQ_FIRST(&etcd->publish.queue);

	return is_new_gid(own) && !etcd->publish.num_puts ? send_puts(etcd) : act(own);
}

void pvr_etcd_publish_step(struct pvr_etcd *etcd)
{
	struct pvr_etcd_publish *publish = &etcd->publish;
	struct pvr_own_key *host = publish->host;

	if (!etcd->lease.id[0] || !pvr_etcd_client_usable(&etcd->client))
		return;
	/* Write the host's address before its GIDs: a GID is useless without. */
	if (host && !pvr_own_key_is_done(host)) {
		if (host->list == OWN_QUEUED)
			act(host);
		return;
	}
	while (!TAILQ_EMPTY(&publish->queue) && publish->in_flight < IN_FLIGHT_MAX &&
	       etcd->lease.id[0] && act_next(etcd))
		;
}

/* ------------------------------------------------------------- wanted state */

void pvr_own_key_lost(struct pvr_own_key *own)
{
	own->written = false;
	own->expect = 0;
	pvr_own_key_enqueue(own);
}

static struct pvr_own_key *get(struct pvr_etcd *etcd, const struct pvr_key *key)
{
	struct pvr_key_node *node = pvr_key_find(&etcd->publish.table, key);
	struct pvr_own_key *own;

	if (node)
		return pvr_container_of(node, struct pvr_own_key, node);
	own = calloc(1, sizeof(*own));
	if (!own)
		return NULL;
	own->etcd = etcd;
	own->node.key = *key;
	pvr_key_insert(&etcd->publish.table, &own->node);
	return own;
}

void pvr_etcd_publish_changed(struct pvr_etcd *etcd)
{
	struct pvr_own_key *own;
	struct pvr_key key;
	uint8_t type;

	if (!etcd->publish.host)
		return;
	while (pvr_own_gids_next(&etcd->directory->own, &key, &type)) {
		own = get(etcd, &key);
		if (!own) {
			pvr_directory_log(etcd->directory, PVR_LOG_ERR,
					  "out of memory: a GID is not announced");
			continue;
		}
		own->type = type;
		pvr_own_key_enqueue(own);
	}
}

void pvr_etcd_publish_all(struct pvr_etcd *etcd)
{
	struct pvr_key_node *node;
	struct pvr_own_key *own;
	size_t i;

	for (i = 0; i < etcd->publish.table.num_buckets; i++) {
		LIST_FOREACH(node, &etcd->publish.table.buckets[i], link) {
			own = pvr_container_of(node, struct pvr_own_key, node);
			/* The host with the older claim shall write first. */
			if (own->refused && !own->busy)
				pvr_own_key_later(own);
			else
				pvr_own_key_enqueue(own);
		}
	}
}

bool pvr_etcd_publish_init(struct pvr_etcd *etcd, struct pvr_error *err)
{
	struct pvr_etcd_publish *publish = &etcd->publish;
	const struct pvr_key none = { .fabric = "" };

	TAILQ_INIT(&publish->queue);
	TAILQ_INIT(&publish->later);
	publish->timer.expired = timer_expired;
	publish->max_puts = PVR_ETCD_PUTS_MAX;
	if (!pvr_key_table_init(&publish->table, 1024))
		return pvr_fail(err, "out of memory");
	if (!etcd->directory->env.address[0])
		return true;
	publish->host = get(etcd, &none);
	if (!publish->host)
		return pvr_fail(err, "out of memory");
	publish->host->is_host = true;
	publish->host->type = PVR_GID_TYPE_ROCE_V2;
	pvr_own_key_enqueue(publish->host);
	return true;
}

void pvr_etcd_publish_exit(struct pvr_etcd *etcd)
{
	struct pvr_key_node *node;

	pvr_loop_timer_disarm(&etcd->publish.timer);
	if (!etcd->publish.table.buckets)
		return;
	while ((node = pvr_key_any(&etcd->publish.table)))
		drop(pvr_container_of(node, struct pvr_own_key, node));
	pvr_key_table_exit(&etcd->publish.table);
}
