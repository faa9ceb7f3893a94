// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Claims of states of other hosts, see "claims of states" in etcd.h. */
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "directory/etcd.h"

/* QEMU waits for 5 s, one of which the source has had. */
#define PATIENCE (2 * PVR_SEC)
#define PAUSE PVR_SEC
#define HASH_BYTES 32
#define NOT_FOUND 5 /* of a lease; a code of etcd's errors */

struct pvr_etcd_claim {
	TAILQ_ENTRY(pvr_etcd_claim) link;
	struct pvr_etcd *etcd;
	struct pvr_state_claim claim;
	uint64_t until; /* it is given up then */
	uint64_t due; /* no call before; 0: now */
	char lease[24]; /* "": none yet */
	bool busy; /* a call is in progress */
	bool is_over; /* busy: it is in no list, and freed after the call */
};

/* ----------------------------------------------------------------------- the list */

static void drop(struct pvr_etcd_claim *claim)
{
	TAILQ_REMOVE(&claim->etcd->claims.list, claim, link);
	if (claim->busy)
		claim->is_over = true;
	else
		free(claim);
}

static void end(struct pvr_etcd_claim *claim, enum pvr_claim result, const char *detail)
{
	const struct pvr_directory_env *env = &claim->etcd->directory->env;
	struct pvr_state_claim what = claim->claim;

	drop(claim);
	env->claimed(env->opaque, &what, result, detail);
}

static void add(struct pvr_etcd *etcd, const struct pvr_state_claim *what)
{
	const struct pvr_directory_env *env = &etcd->directory->env;
	struct pvr_etcd_claim *claim;

	TAILQ_FOREACH(claim, &etcd->claims.list, link)
		if (pvr_is_same_claimant(&claim->claim, what))
			break;
	if (claim)
		drop(claim);
	claim = calloc(1, sizeof(*claim));
	if (!claim) {
		env->claimed(env->opaque, what, PVR_CLAIM_FAILED, "out of memory");
		return;
	}
	claim->etcd = etcd;
	claim->claim = *what;
	claim->until = pvr_loop_now() + (what->waits ? PATIENCE : what->life * PVR_SEC);
	TAILQ_INSERT_TAIL(&etcd->claims.list, claim, link);
}

/* Return: whether the claim is still of interest after a call. */
static bool is_wanted(struct pvr_etcd_claim *claim)
{
	claim->busy = false;
	if (claim->is_over)
		free(claim);
	else if (claim->etcd->client.ending)
		drop(claim);
	else
		return true;
	return false;
}

/* -------------------------------------------------------------------------- calls */

static void refused(struct pvr_etcd_claim *claim, struct json_object *reply)
{
	const char *why = pvr_json_text(reply, "error");

	if (pvr_json_number(reply, "code") == NOT_FOUND) {
		claim->lease[0] = '\0';
		claim->due = pvr_loop_now() + PAUSE;
		return;
	}
	pvr_directory_log(claim->etcd->directory, PVR_LOG_WARN,
			  "etcd refuses the claim of an adapter's state: %.200s",
			  why ? why : "no reason given");
	end(claim, PVR_CLAIM_FAILED, "etcd refuses the claim");
}

/* Bytes of a number of a load in a value: hexadecimal digits, with the NUL. */
#define LOAD_TEXT 17

/* Return: "" without random bytes; no value has that. */
static void format_load(const struct pvr_etcd_claim *claim, char text[LOAD_TEXT])
{
	text[0] = '\0';
	if (claim->claim.load)
		snprintf(text, LOAD_TEXT, "%016" PRIx64, claim->claim.load);
}

/* Return: whether the value is of this load: a repeated call finds it. */
static bool is_of_this_load(const struct pvr_etcd_claim *claim, struct json_object *value)
{
	const char *found = pvr_json_text(value, "load");
	char load[LOAD_TEXT];

	format_load(claim, load);
	return load[0] && found && !strcmp(found, load);
}

/* The key exists. A repeated call, or a second start here, finds this host in it. */
static void name_winner(struct pvr_etcd_claim *claim, struct json_object *reply)
{
	struct json_object *kvs = pvr_etcd_kvs(pvr_json_array(reply, "responses"), 0);
	struct json_object *kv = kvs ? json_object_array_get_idx(kvs, 0) : NULL, *value = NULL;
	char text[PVR_ETCD_VALUE_MAX], winner[PVR_HOST_NAME_MAX];
	const char *name;
	bool is_own;
	long len = kv ? pvr_json_base64(kv, "value", text, sizeof(text)) : -1;

	if (len >= 0)
		value = pvr_json_parse(text, (size_t)len);
	name = pvr_json_text(value, "host");
	if (!name || !pvr_dir_host_name_ok(name))
		name = "?";
	snprintf(winner, sizeof(winner), "%s", name);
	is_own = is_of_this_load(claim, value);
	json_object_put(value);
	if (strcmp(winner, pvr_directory_own_name(claim->etcd->directory)))
		end(claim, PVR_CLAIM_LOST, winner);
	else
		end(claim, is_own ? PVR_CLAIM_WON : PVR_CLAIM_STALE, "");
}

static void put_done(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct pvr_etcd_claim *claim = opaque;

	/* After a failure it is sent again in a later step. */
	if (!is_wanted(claim) || result == PVR_ETCD_FAILED)
		return;
	if (result == PVR_ETCD_REFUSED)
		refused(claim, reply);
	else if (pvr_json_true(reply, "succeeded"))
		end(claim, PVR_CLAIM_WON, "");
	else
		name_winner(claim, reply);
}

static bool format_key(const struct pvr_etcd_claim *claim, char key[PVR_ETCD_KEY_MAX])
{
	unsigned char hash[HASH_BYTES];
	size_t len, i;

	if (!EVP_Digest(claim->claim.token, sizeof(claim->claim.token), hash, NULL, EVP_sha256(),
			NULL))
		return false;
	len = (size_t)snprintf(key, PVR_ETCD_KEY_MAX, "%smoves/%s/", claim->etcd->prefix,
			       claim->claim.fabric);
	for (i = 0; i < sizeof(hash); i++)
		len += (size_t)snprintf(key + len, PVR_ETCD_KEY_MAX - len, "%02x", hash[i]);
	return true;
}

static bool put(struct pvr_etcd_claim *claim)
{
	char key[PVR_ETCD_KEY_MAX], value[PVR_ETCD_VALUE_MAX], load[LOAD_TEXT];
	struct pvr_text body = { .len = 0 };

	if (!format_key(claim, key))
		return false;
	format_load(claim, load);
	snprintf(value, sizeof(value), "{\"host\":\"%s\",\"load\":\"%s\"}",
		 pvr_directory_own_name(claim->etcd->directory), load);
	pvr_text_add(&body, "{\"compare\":[{");
	pvr_etcd_add_range(&body, key);
	pvr_text_add(&body,
		     ",\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"0\"}],"
		     "\"success\":[{\"request_put\":{");
	pvr_etcd_add_range(&body, key);
	pvr_text_add(&body, ",\"value\":\"");
	pvr_text_add_base64(&body, value);
	pvr_text_add(&body, "\",\"lease\":\"%s\"}}],\"failure\":[{\"request_range\":{",
		     claim->lease);
	pvr_etcd_add_range(&body, key);
	pvr_text_add(&body, "}}]}");
	return pvr_etcd_call(&claim->etcd->client, "/v3/kv/txn", &body, put_done, claim);
}

static void granted(void *opaque, enum pvr_etcd_result result, struct json_object *reply)
{
	struct pvr_etcd_claim *claim = opaque;
	const char *id = pvr_json_text(reply, "ID");
	size_t len = id ? strlen(id) : 0;

	if (!is_wanted(claim) || result == PVR_ETCD_FAILED)
		return;
	if (result == PVR_ETCD_REFUSED)
		refused(claim, reply);
	else if (len && len < sizeof(claim->lease) && strspn(id, "0123456789") == len)
		strcpy(claim->lease, id);
	else
		claim->due = pvr_loop_now() + PAUSE;
}

static bool grant(struct pvr_etcd_claim *claim)
{
	struct pvr_text body = { .len = 0 };

	pvr_text_add(&body, "{\"TTL\":\"%u\"}", claim->claim.life);
	return pvr_etcd_call(&claim->etcd->client, "/v3/lease/grant", &body, granted, claim);
}

/* -------------------------------------------------------------------------- steps */

static void act(struct pvr_etcd_claim *claim, uint64_t now)
{
	if (now >= claim->until) {
		end(claim, PVR_CLAIM_FAILED, "etcd does not respond");
		return;
	}
	if (claim->busy || now < claim->due || !pvr_etcd_client_usable(&claim->etcd->client))
		return;
	claim->busy = claim->lease[0] ? put(claim) : grant(claim);
	if (!claim->busy)
		claim->due = now + PAUSE;
}

void pvr_etcd_claim_step(struct pvr_etcd *etcd)
{
	uint64_t now = pvr_loop_now(), next = PVR_NEVER, at;
	struct pvr_etcd_claim *claim, *after;

	for (claim = TAILQ_FIRST(&etcd->claims.list); claim; claim = after) {
		after = TAILQ_NEXT(claim, link);
		act(claim, now);
	}
	TAILQ_FOREACH(claim, &etcd->claims.list, link) {
		at = claim->due > now && claim->due < claim->until ? claim->due : claim->until;
		next = at < next ? at : next;
	}
	if (next == PVR_NEVER)
		pvr_loop_timer_disarm(&etcd->claims.timer);
	else
		pvr_loop_timer_arm(etcd->directory->env.loop, &etcd->claims.timer, next - now);
}

static void timer_expired(struct pvr_loop_timer *timer)
{
	pvr_etcd_claim_step(pvr_container_of(timer, struct pvr_etcd, claims.timer));
}

void pvr_etcd_claims_changed(struct pvr_directory *directory)
{
	struct pvr_etcd *etcd = pvr_etcd_of(directory);
	struct pvr_state_claim what;
	bool any = false;

	for (; pvr_dir_queue_claim(&directory->queue, &what); any = true)
		add(etcd, &what);
	if (any)
		pvr_etcd_claim_step(etcd);
}

void pvr_etcd_claim_init(struct pvr_etcd *etcd)
{
	TAILQ_INIT(&etcd->claims.list);
	etcd->claims.timer.expired = timer_expired;
}

void pvr_etcd_claim_exit(struct pvr_etcd *etcd)
{
	struct pvr_etcd_claim *claim;

	pvr_loop_timer_disarm(&etcd->claims.timer);
	while ((claim = TAILQ_FIRST(&etcd->claims.list)))
		drop(claim);
}
