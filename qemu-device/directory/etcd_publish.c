// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * This host's own keys: written while they should exist, deleted otherwise.
 *
 * A transaction puts a key if its state is as last seen; at first, if there is none. If
 * the state differs, etcd returns the current key. If that was written by an earlier run
 * of this daemon, the next transaction expects it. If another host wrote it, the key is
 * refused and retried every second: the other host may remove it.
 */
#include <stdlib.h>
#include <string.h>

#include "directory/etcd.h"

#define IN_FLIGHT_MAX 8
#define LATER PVR_SEC

enum own_state {
	OWN_ABSENT, /* as far as is known */
	OWN_BUSY, /* a transaction is in progress */
	OWN_PRESENT, /* with the current lease */
};

struct pvr_own_key {
	struct pvr_key_node node; /* unused for hosts/NAME */
	struct pvr_etcd *etcd;
	bool is_host;
	uint8_t type; /* wanted type; 0: to be deleted */
	uint8_t put_type; /* type that was or may have been written; 0: none */
	enum own_state state;
	unsigned int lease; /* number of the lease that it was written with */
	uint64_t expect; /* mod_revision; 0: no key */
	bool changed; /* BUSY: check it again afterwards */
	bool refused; /* another host has it */
	enum { OWN_NOWHERE, OWN_QUEUED, OWN_LATER } list;
	uint64_t due; /* LATER */
	TAILQ_ENTRY(pvr_own_key) link;
};

/* Return: whether the key is as it should be, with the current lease. */
static bool is_done(const struct pvr_own_key *own)
{
	return own->state == OWN_PRESENT && own->type == own->put_type &&
	       own->lease == own->etcd->lease.number;
}

bool pvr_etcd_is_registered(const struct pvr_etcd *etcd)
{
	return etcd->lease.id[0] && etcd->publish.host && is_done(etcd->publish.host);
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

static void enqueue(struct pvr_own_key *own)
{
	if (own->state == OWN_BUSY) {
		own->changed = true;
		return;
	}
	if (own->list == OWN_QUEUED)
		return;
	unlist(own);
	own->list = OWN_QUEUED;
	TAILQ_INSERT_TAIL(&own->etcd->publish.queue, own, link);
}

static void later(struct pvr_own_key *own)
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
		enqueue(own);
	if (own)
		pvr_loop_timer_arm(etcd->directory->env.loop, &etcd->publish.timer, own->due - now);
	pvr_etcd_publish_step(etcd);
}

static void drop(struct pvr_own_key *own)
{
	unlist(own);
	pvr_key_remove(&own->etcd->publish.table, &own->node);
	free(own);
}

/* ------------------------------------------------------------------------- key, value */

static void own_key(const struct pvr_own_key *own, char text[PVR_ETCD_KEY_MAX])
{
	const char *name = pvr_directory_own_name(own->etcd->directory);
	size_t len;

	if (own->is_host) {
		pvr_etcd_host_key(own->etcd, name, text);
		return;
	}
	pvr_etcd_gid_key(own->etcd, &own->node.key, text);
	if (!pvr_key_is_group(&own->node.key))
		return;
	len = strlen(text);
	snprintf(text + len, PVR_ETCD_KEY_MAX - len, "%s", name);
}

static void own_value(const struct pvr_own_key *own, uint8_t type, char text[PVR_ETCD_VALUE_MAX])
{
	const struct pvr_directory_env *env = &own->etcd->directory->env;

	if (own->is_host)
		snprintf(text, PVR_ETCD_VALUE_MAX, "{\"address\":\"%s\"}", env->address);
	else
		snprintf(text, PVR_ETCD_VALUE_MAX, "{\"host\":\"%s\",\"type\":\"%s\"}", env->name,
			 type == PVR_GID_TYPE_ROCE_V1 ? "v1" : "v2");
}

/* Return: whether this host has written @value. */
static bool is_ours(const struct pvr_own_key *own, const char *value, char owner[PVR_HOST_NAME_MAX])
{
	char ours[PVR_ETCD_VALUE_MAX];
	uint8_t type;

	own_value(own, own->type, ours);
	if (own->is_host)
		return !strcmp(value, ours);
	return pvr_etcd_parse_owner(value, owner, &type) &&
	       !strcmp(owner, pvr_directory_own_name(own->etcd->directory));
}

/* ----------------------------------------------------------------------- transactions */

static void refuse(struct pvr_own_key *own, const char *owner)
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
	later(own);
}

/* The key was not as expected; handles the current one, if any. */
static void put_differs(struct pvr_own_key *own, struct json_object *reply)
{
	struct json_object *responses = pvr_json_array(reply, "responses");
	struct json_object *first = responses ? json_object_array_get_idx(responses, 0) : NULL;
	struct json_object *kvs = pvr_json_array(pvr_json_object(first, "response_range"), "kvs");
	struct json_object *kv = kvs ? json_object_array_get_idx(kvs, 0) : NULL;
	uint64_t expected = own->expect;
	char value[PVR_ETCD_VALUE_MAX], owner[PVR_HOST_NAME_MAX] = "?";

	own->expect = 0;
	if (!kv) {
		if (expected)
			enqueue(own); /* deleted since */
		else
			later(own); /* invalid response */
	} else if (pvr_json_base64(kv, "value", value, sizeof(value)) >= 0 &&
		   is_ours(own, value, owner)) {
		own->expect = pvr_json_number(kv, "mod_revision");
		if (own->expect == expected)
			later(own);
		else
			enqueue(own);
	} else {
		refuse(own, owner);
	}
}

static void put_succeeded(struct pvr_own_key *own, struct json_object *reply)
{
	char text[PVR_KEY_TEXT];

	own->state = OWN_PRESENT;
	own->expect = pvr_json_number(pvr_json_object(reply, "header"), "revision");
	if (own->refused)
		pvr_directory_log(own->etcd->directory, PVR_LOG_INFO, "%s now belongs to this host",
				  own->is_host ? "the name" : pvr_key_text(&own->node.key, text));
	own->refused = false;
	if (own->is_host)
		pvr_directory_log(own->etcd->directory, PVR_LOG_INFO, "announced as %s at %s",
				  own->etcd->directory->env.name,
				  own->etcd->directory->env.address);
}

static void finish(struct pvr_own_key *own, enum pvr_etcd_result result, struct json_object *reply)
{
	bool changed = own->changed;

	own->etcd->publish.in_flight--;
	own->state = OWN_ABSENT;
	own->changed = false;
	if (result == PVR_ETCD_OK)
		pvr_etcd_see_header(own->etcd, pvr_json_object(reply, "header"));
	if (changed || result == PVR_ETCD_FAILED)
		enqueue(own);
}

static void log_refusal(struct pvr_own_key *own, struct json_object *reply)
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

	finish(own, result, reply);
	if (result == PVR_ETCD_REFUSED) {
		log_refusal(own, reply);
		later(own);
	} else if (result == PVR_ETCD_OK && pvr_json_true(reply, "succeeded")) {
		put_succeeded(own, reply);
	} else if (result == PVR_ETCD_OK && own->list == OWN_NOWHERE) {
		put_differs(own, reply);
	}
}

static void delete_done(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct pvr_own_key *own = opaque;

	finish(own, result, reply);
	if (result == PVR_ETCD_REFUSED) {
		log_refusal(own, reply);
		later(own);
		return;
	}
	if (result != PVR_ETCD_OK)
		return;
	own->put_type = 0;
	own->expect = 0;
	if (!own->type)
		drop(own);
	else
		enqueue(own);
}

static void add_compare(struct pvr_text *body, const struct pvr_own_key *own, const char *key)
{
	pvr_text_add(body, "{\"compare\":[{\"key\":\"");
	pvr_text_add_base64(body, key);
	if (own->expect)
		pvr_text_add(body,
			     "\",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"%llu\"",
			     (unsigned long long)own->expect);
	else
		pvr_text_add(body, "\",\"target\":\"CREATE\",\"result\":\"EQUAL\","
				   "\"create_revision\":\"0\"");
	pvr_text_add(body, "}]");
}

static bool send_put(struct pvr_own_key *own)
{
	struct pvr_text body = { .len = 0 };
	char key[PVR_ETCD_KEY_MAX], value[PVR_ETCD_VALUE_MAX];

	own_key(own, key);
	own_value(own, own->type, value);
	add_compare(&body, own, key);
	pvr_text_add(&body, ",\"success\":[{\"request_put\":{\"key\":\"");
	pvr_text_add_base64(&body, key);
	pvr_text_add(&body, "\",\"value\":\"");
	pvr_text_add_base64(&body, value);
	pvr_text_add(&body, "\",\"lease\":\"%s\"}}],\"failure\":[{\"request_range\":{\"key\":\"",
		     own->etcd->lease.id);
	pvr_text_add_base64(&body, key);
	pvr_text_add(&body, "\"}}]}");
	own->put_type = own->type;
	own->lease = own->etcd->lease.number;
	return pvr_etcd_call(&own->etcd->client, "/v3/kv/txn", &body, put_done, own);
}

/* Deletes the key unless it is another host's now. */
static bool send_delete(struct pvr_own_key *own)
{
	struct pvr_text body = { .len = 0 };
	char key[PVR_ETCD_KEY_MAX], value[PVR_ETCD_VALUE_MAX];

	own_key(own, key);
	own_value(own, own->put_type, value);
	pvr_text_add(&body, "{\"compare\":[{\"key\":\"");
	pvr_text_add_base64(&body, key);
	pvr_text_add(&body, "\",\"target\":\"VALUE\",\"result\":\"EQUAL\",\"value\":\"");
	pvr_text_add_base64(&body, value);
	pvr_text_add(&body, "\"}],\"success\":[{\"request_delete_range\":{\"key\":\"");
	pvr_text_add_base64(&body, key);
	pvr_text_add(&body, "\"}}]}");
	return pvr_etcd_call(&own->etcd->client, "/v3/kv/txn", &body, delete_done, own);
}

/* Return: false if no call is possible now. */
static bool act(struct pvr_own_key *own)
{
	unlist(own);
	if (!own->type && !own->put_type) {
		drop(own);
		return true;
	}
	if (is_done(own))
		return true;
	if (!(own->type ? send_put(own) : send_delete(own))) {
		later(own);
		return false;
	}
	own->state = OWN_BUSY;
	own->etcd->publish.in_flight++;
	return true;
}

void pvr_etcd_publish_step(struct pvr_etcd *etcd)
{
	struct pvr_etcd_publish *publish = &etcd->publish;
	struct pvr_own_key *host = publish->host;

	if (!etcd->lease.id[0] || !pvr_etcd_client_usable(&etcd->client))
		return;
	/* Write the host's address before its GIDs: a GID is useless without. */
	if (host && !is_done(host)) {
		if (host->list == OWN_QUEUED)
			act(host);
		return;
	}
	while (!TAILQ_EMPTY(&publish->queue) && publish->in_flight < IN_FLIGHT_MAX &&
	       etcd->lease.id[0] && act(TAILQ_FIRST(&publish->queue)))
		;
}

/* ------------------------------------------------------------- wanted state */

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
		enqueue(own);
	}
}

void pvr_etcd_publish_all(struct pvr_etcd *etcd)
{
	struct pvr_key_node *node;
	size_t i;

	for (i = 0; i < etcd->publish.table.num_buckets; i++) {
		LIST_FOREACH(node, &etcd->publish.table.buckets[i], link)
			enqueue(pvr_container_of(node, struct pvr_own_key, node));
	}
}

bool pvr_etcd_publish_init(struct pvr_etcd *etcd, struct pvr_error *err)
{
	struct pvr_etcd_publish *publish = &etcd->publish;
	const struct pvr_key none = { .fabric = "" };

	TAILQ_INIT(&publish->queue);
	TAILQ_INIT(&publish->later);
	publish->timer.expired = timer_expired;
	if (!pvr_key_table_init(&publish->table, 1024))
		return pvr_fail(err, "out of memory");
	if (!etcd->directory->env.address[0])
		return true;
	publish->host = get(etcd, &none);
	if (!publish->host)
		return pvr_fail(err, "out of memory");
	publish->host->is_host = true;
	publish->host->type = PVR_GID_TYPE_ROCE_V2;
	enqueue(publish->host);
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
