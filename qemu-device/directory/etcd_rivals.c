// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Other hosts that the index has for a GID of this host.
 *
 * Their claims are read: an older one refuses this host's. A look-up reads only the oldest
 * entries of a GID, and all hosts of a fabric can write its index: some old ones without a claim
 * would hide the GID for ever. So this host deletes those before its own, the strays. An entry
 * and its claim are written and deleted together, so no entry of a correct host is one.
 */
#include <stdlib.h>
#include <string.h>

#include "directory/etcd_own_key.h"

#define KEY_MAX 4096u /* of base64 */

/* ------------------------------------------------------------------------ strays */

static void add_entry(struct pvr_own_key *own, const char *key)
{
	pvr_text_add(&own->strays.entries, "%s{\"request_delete_range\":{\"key\":\"%s\"}}",
		     own->strays.entries.len ? "," : "", key);
}

/* An entry that cannot have a claim. Its key stays as it came: it may have bytes that no name has. */
static void add_stray(struct pvr_own_key *own, struct json_object *kv)
{
	static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/=";
	const char *key = pvr_json_text(kv, "key");

	if (key && *key && strlen(key) <= KEY_MAX && !key[strspn(key, base64)])
		add_entry(own, key);
}

/* The entry of @host, which has no claim now. */
static void add_stray_of(struct pvr_own_key *own, const char *host)
{
	struct pvr_text *claims = &own->strays.claims;
	char key[PVR_ETCD_KEY_MAX], encoded[PVR_BASE64_SIZE(PVR_ETCD_KEY_MAX)];

	pvr_etcd_claim_key(own->etcd, host, &own->node.key, key);
	pvr_text_add(claims, "%s{\"key\":\"", claims->len ? "," : "");
	pvr_text_add_base64(claims, key);
	pvr_text_add(claims, "\",\"target\":\"CREATE\",\"result\":\"EQUAL\","
			     "\"create_revision\":\"0\"}");
	pvr_etcd_index_prefix(own->etcd, &own->node.key, key);
	strcat(key, host);
	pvr_base64_encode(encoded, key, strlen(key));
	add_entry(own, encoded);
}

static void drop_strays(struct pvr_own_key *own)
{
	free(own->strays.claims.data);
	free(own->strays.entries.data);
	own->strays = (struct pvr_strays){ .claims = { .len = 0 } };
}

static bool has_deleted(struct json_object *reply)
{
	struct json_object *responses = pvr_json_array(reply, "responses");
	size_t num = responses ? json_object_array_length(responses) : 0, i;

	for (i = 0; i < num; i++) {
		if (pvr_json_number(pvr_json_object(json_object_array_get_idx(responses, i),
						    "response_delete_range"),
				    "deleted"))
			return true;
	}
	return false;
}

static void strays_done(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct pvr_own_key *own = opaque;

	pvr_own_key_finish(own, result, reply);
	drop_strays(own);
	if (result == PVR_ETCD_REFUSED) {
		pvr_own_key_log_refusal(own, reply);
		if (!pvr_own_key_is_done(own))
			pvr_own_key_later(own);
		return;
	}
	/* There may be more of them. */
	own->unread = true;
	if (result == PVR_ETCD_OK && has_deleted(reply))
		pvr_own_key_enqueue(own);
	else
		pvr_own_key_later(own);
}

/* Deletes them, unless one of them has a claim meanwhile. */
static bool send_strays(struct pvr_own_key *own)
{
	struct pvr_strays *strays = &own->strays;
	struct pvr_text body = { .len = 0 };

	pvr_text_add(&body, "{\"compare\":[%s],\"success\":[%s]}",
		     strays->claims.len ? strays->claims.data : "", strays->entries.data);
	body.bad |= strays->claims.bad || strays->entries.bad;
	if (pvr_etcd_call(&own->etcd->client, "/v3/kv/txn", &body, strays_done, own))
		return true;
	drop_strays(own);
	own->unread = true;
	return false;
}

/* ------------------------------------------------------------------------ rivals */

static void drop_rivals(struct pvr_own_key *own)
{
	free(own->rivals);
	own->rivals = NULL;
	own->num_rivals = own->num_older = 0;
}

static void add_rival(struct pvr_own_key *own, const char *name, bool older)
{
	if (!own->rivals)
		own->rivals = calloc(PVR_RIVALS_MAX, sizeof(*own->rivals));
	if (!own->rivals)
		return;
	strcpy(own->rivals[own->num_rivals++], name);
	own->num_older += older;
}

/* Return: whether it is the entry of a host; @name is set then. */
static bool is_entry(const struct pvr_own_key *own, struct json_object *kv,
		     char name[PVR_HOST_NAME_MAX])
{
	char key[PVR_ETCD_KEY_MAX], expected[PVR_ETCD_KEY_MAX];

	if (!pvr_etcd_key_host(kv, name) || pvr_json_base64(kv, "key", key, sizeof(key)) < 0)
		return false;
	pvr_etcd_index_prefix(own->etcd, &own->node.key, expected);
	strcat(expected, name);
	return !strcmp(key, expected);
}

/* Other hosts that the index has for the GID may have older claims. */
void pvr_rivals_find(struct pvr_own_key *own, struct json_object *kvs)
{
	const char *own_name = pvr_directory_own_name(own->etcd->directory);
	size_t num = kvs ? json_object_array_length(kvs) : 0, i;
	char name[PVR_HOST_NAME_MAX];
	bool older = true;

	pvr_rivals_drop(own);
	own->unread = false;
	for (i = 0; i < num && i < PVR_RIVALS_MAX; i++) {
		struct json_object *kv = json_object_array_get_idx(kvs, i);
		bool valid = is_entry(own, kv, name);

		if (valid && !strcmp(name, own_name))
			older = false;
		else if (valid && pvr_directory_allows(own->etcd->directory, name, &own->node.key))
			add_rival(own, name, older);
		else if (older)
			add_stray(own, kv);
	}
	if (pvr_rivals_any(own))
		pvr_own_key_enqueue(own);
	else
		pvr_own_key_is_ours(own);
}

/* Return: create_revision of the key in the response; 0: there is none. */
static uint64_t created_at(struct json_object *responses, size_t i)
{
	struct json_object *kvs = pvr_etcd_kvs(responses, i);

	return kvs ? pvr_json_number(json_object_array_get_idx(kvs, 0), "create_revision") : 0;
}

/* Return: the name of the host with an older claim, or NULL. */
static const char *older_rival(const struct pvr_own_key *own, struct json_object *responses,
			       uint64_t created)
{
	uint64_t other;
	size_t i;

	for (i = 0; i < own->num_rivals; i++) {
		other = created_at(responses, i + 1);
		if (other && other < created)
			return own->rivals[i];
	}
	return NULL;
}

static void find_strays(struct pvr_own_key *own, struct json_object *responses)
{
	size_t i;

	for (i = 0; i < own->num_older; i++) {
		if (!created_at(responses, i + 1))
			add_stray_of(own, own->rivals[i]);
	}
}

static void check_done(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct pvr_own_key *own = opaque;
	struct json_object *responses = pvr_json_array(reply, "responses");
	uint64_t created = created_at(responses, 0);
	const char *older;

	pvr_own_key_finish(own, result, reply);
	if (result == PVR_ETCD_FAILED)
		return;
	if (result == PVR_ETCD_REFUSED || !responses ||
	    json_object_array_length(responses) != own->num_rivals + 1) {
		pvr_own_key_log_refusal(own, reply);
		drop_rivals(own);
		pvr_own_key_later(own);
		return;
	}
	older = older_rival(own, responses, created);
	if (!created) {
		own->written = false; /* deleted since */
		pvr_own_key_enqueue(own);
	} else if (older && own->list == OWN_NOWHERE) {
		pvr_own_key_refuse(own, older);
	} else if (!older) {
		pvr_own_key_is_ours(own);
	}
	if (created)
		find_strays(own, responses);
	drop_rivals(own);
	if (own->list == OWN_NOWHERE && pvr_rivals_any(own))
		pvr_own_key_enqueue(own);
}

/* Reads this host's claim and those of the others. */
static bool send_check(struct pvr_own_key *own)
{
	struct pvr_text body = { .len = 0 };
	char key[PVR_ETCD_KEY_MAX];
	size_t i;

	pvr_own_key_claim(own, key);
	pvr_text_add(&body, "{\"success\":[");
	pvr_own_key_add_read(&body, key);
	for (i = 0; i < own->num_rivals; i++) {
		pvr_etcd_claim_key(own->etcd, own->rivals[i], &own->node.key, key);
		pvr_text_add(&body, ",");
		pvr_own_key_add_read(&body, key);
	}
	pvr_text_add(&body, "]}");
	return pvr_etcd_call(&own->etcd->client, "/v3/kv/txn", &body, check_done, own);
}

bool pvr_rivals_check(struct pvr_own_key *own)
{
	return own->num_rivals ? send_check(own) : send_strays(own);
}

void pvr_rivals_drop(struct pvr_own_key *own)
{
	drop_rivals(own);
	drop_strays(own);
}
