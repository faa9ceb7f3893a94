// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The etcd backend, for many hosts. */
#include <stdlib.h>
#include <string.h>

#include "directory/etcd.h"

#define TTL 10 /* seconds */
/* Log lines per PVR_RATELIMIT_NS, of addresses that other hosts tell. */
#define LOG_LINES_ADDRESS 5

/* --------------------------------------------------------------------- keys */

static void add_gid(char text[PVR_ETCD_KEY_MAX], const struct pvr_key *key)
{
	size_t len = strlen(text), i;

	for (i = 0; i < sizeof(key->gid); i++)
		len += (size_t)snprintf(text + len, PVR_ETCD_KEY_MAX - len, "%02x", key->gid[i]);
}

void pvr_etcd_index_prefix(const struct pvr_etcd *etcd, const struct pvr_key *key,
			   char text[PVR_ETCD_KEY_MAX])
{
	snprintf(text, PVR_ETCD_KEY_MAX, "%s%s/%s/", etcd->prefix,
		 pvr_key_is_group(key) ? "mcast" : "gids", key->fabric);
	add_gid(text, key);
	strcat(text, "/");
}

void pvr_etcd_claim_key(const struct pvr_etcd *etcd, const char *host, const struct pvr_key *key,
			char text[PVR_ETCD_KEY_MAX])
{
	snprintf(text, PVR_ETCD_KEY_MAX, "%shosts/%s/gids/%s/", etcd->prefix, host, key->fabric);
	add_gid(text, key);
}

void pvr_etcd_host_key(const struct pvr_etcd *etcd, const char *host, char text[PVR_ETCD_KEY_MAX])
{
	snprintf(text, PVR_ETCD_KEY_MAX, "%shosts/%s/address", etcd->prefix, host);
}

void pvr_etcd_item_key(const struct pvr_etcd *etcd, const struct pvr_etcd_item *item,
		       char text[PVR_ETCD_KEY_MAX])
{
	if (item->kind == PVR_ITEM_HOST)
		pvr_etcd_host_key(etcd, pvr_container_of(item, struct pvr_dir_host, private)->name,
				  text);
	else
		pvr_etcd_index_prefix(
			etcd, &pvr_container_of(item, struct pvr_entry, private)->node.key, text);
}

void pvr_etcd_add_range(struct pvr_text *text, const char *key)
{
	char end[PVR_ETCD_KEY_MAX];
	size_t len = strlen(key);

	pvr_text_add(text, "\"key\":\"");
	pvr_text_add_base64(text, key);
	pvr_text_add(text, "\"");
	if (key[len - 1] != '/')
		return;
	strcpy(end, key);
	end[len - 1]++;
	pvr_text_add(text, ",\"range_end\":\"");
	pvr_text_add_base64(text, end);
	pvr_text_add(text, "\"");
}

struct json_object *pvr_etcd_kvs(struct json_object *responses, size_t i)
{
	struct json_object *response = responses ? json_object_array_get_idx(responses, i) : NULL;

	return pvr_json_array(pvr_json_object(response, "response_range"), "kvs");
}

bool pvr_etcd_key_host(struct json_object *kv, char host[PVR_HOST_NAME_MAX])
{
	char key[PVR_ETCD_KEY_MAX], *name;

	if (pvr_json_base64(kv, "key", key, sizeof(key)) < 0)
		return false;
	name = strrchr(key, '/');
	if (!name || !pvr_dir_host_name_ok(name + 1))
		return false;
	strcpy(host, name + 1);
	return true;
}

/* ---------------------------------------------------------- addresses that are kept */

/* A host that is needed again has the address, and is forgotten when it is gone. */
static void forget_kept(struct pvr_etcd *etcd, char name[PVR_HOST_NAME_MAX])
{
	const struct pvr_directory_env *env = &etcd->directory->env;
	struct pvr_dir_host *host = pvr_dir_host_find(etcd->directory, name);

	if (host)
		((struct pvr_etcd_host *)host->private)->known = true;
	else if (name[0])
		env->forget_peer(env->opaque, name);
	name[0] = '\0';
}

static void keep_address(struct pvr_etcd *etcd, const char *name, bool gone)
{
	struct pvr_etcd_kept_host *host = &etcd->kept.hosts[etcd->kept.next++ % PVR_ETCD_KEPT];

	forget_kept(etcd, host->name);
	strcpy(host->name, name);
	host->gone = gone;
}

void pvr_etcd_forget_gone(struct pvr_etcd *etcd, size_t before)
{
	struct pvr_etcd_kept_host *host;
	size_t i = before < PVR_ETCD_KEPT ? 0 : before - PVR_ETCD_KEPT;

	for (; i < before; i++) {
		host = &etcd->kept.hosts[i % PVR_ETCD_KEPT];
		if (host->gone && i + PVR_ETCD_KEPT >= etcd->kept.next)
			forget_kept(etcd, host->name);
	}
}

static void etcd_referred(struct pvr_directory *directory, const char *host, const char *address)
{
	const struct pvr_directory_env *env = &directory->env;
	struct pvr_etcd_kept *kept = &pvr_etcd_of(directory)->kept;
	uint32_t suppressed;
	struct pvr_error err;

	if (env->want(env->opaque, host) || !*address)
		return;
	if (!env->set_peer(env->opaque, host, address, &err)) {
		/* Any host can cause this line. */
		if (pvr_ratelimit_pass(&kept->refusals, LOG_LINES_ADDRESS, pvr_loop_now(),
				       &suppressed))
			pvr_directory_log(directory, PVR_LOG_WARN,
					  "the address of host %s as told by hosts: %.300s", host,
					  err.text);
		return;
	}
	keep_address(pvr_etcd_of(directory), host, false);
	env->want(env->opaque, host);
}

/* What is looked up now can be at a host that has not written its keys yet. */
static void distrust_absence(struct pvr_etcd *etcd)
{
	struct pvr_entry *entry;

	TAILQ_FOREACH(entry, &etcd->directory->entries.used, used) {
		if (entry->state == PVR_ENTRY_ASKING)
			((struct pvr_etcd_entry *)entry->private)->uncertain = true;
	}
}

/* -------------------------------------------------------------------- steps */

void pvr_etcd_step(struct pvr_etcd *etcd)
{
	pvr_etcd_lease_step(etcd);
	pvr_etcd_publish_step(etcd);
	pvr_etcd_claim_step(etcd);
	pvr_etcd_lookup_step(etcd);
	pvr_etcd_watch_step(etcd);
	pvr_etcd_audit_step(etcd);
}

static void begin_grace(struct pvr_etcd *etcd)
{
	etcd->grace_until = pvr_loop_now() + 2 * etcd->ttl * PVR_SEC;
}

void pvr_etcd_resync(struct pvr_etcd *etcd)
{
	struct pvr_directory *directory = etcd->directory;
	struct pvr_etcd_item *item;
	struct pvr_entry *entry;
	struct pvr_dir_host *host;
	size_t i;

	begin_grace(etcd);
	TAILQ_FOREACH(entry, &directory->entries.used, used) {
		item = (struct pvr_etcd_item *)entry->private;
		if (entry->state == PVR_ENTRY_FOUND)
			pvr_etcd_request(etcd, item);
	}
	for (i = 0; i < PVR_DIR_HOST_BUCKETS; i++) {
		LIST_FOREACH(host, &directory->hosts.buckets[i], link)
			pvr_etcd_request(etcd, (struct pvr_etcd_item *)host->private);
	}
}

/*
 * Reads are linearizable, so a response is never older than what was seen before its call.
 * Otherwise etcd was restored from a snapshot, or lost its data, or is another cluster.
 */
static bool has_begun_anew(const struct pvr_etcd *etcd, uint64_t revision, uint64_t term,
			   uint64_t cluster, uint64_t sent)
{
	return revision < sent || term < etcd->raft_term ||
	       (etcd->cluster_id && cluster != etcd->cluster_id);
}

void pvr_etcd_see_header(struct pvr_etcd *etcd, struct json_object *header, uint64_t sent)
{
	uint64_t revision = pvr_json_number(header, "revision");
	uint64_t term = pvr_json_number(header, "raft_term");
	uint64_t cluster = pvr_json_number(header, "cluster_id");
	bool begun_anew;

	if (!revision)
		return;
	begun_anew = has_begun_anew(etcd, revision, term, cluster, sent);
	if (begun_anew || revision > etcd->revision)
		etcd->revision = revision;
	etcd->raft_term = term;
	etcd->cluster_id = cluster;
	if (!begun_anew)
		return;
	pvr_directory_log(etcd->directory, PVR_LOG_WARN,
			  "etcd has lost data: all keys are read and written again");
	/* A backup has keys that were deleted since. They would live as long as the old lease. */
	pvr_etcd_lease_leave(etcd);
	pvr_etcd_resync(etcd);
}

static void client_ready(void *opaque)
{
	pvr_etcd_step(opaque);
}

static void client_changed(void *opaque, bool connected, const char *why)
{
	struct pvr_etcd *etcd = opaque;
	const char *url = pvr_etcd_client_url(&etcd->client);
	size_t i;

	if (connected) {
		pvr_directory_log(etcd->directory, PVR_LOG_INFO, "etcd at %s responds", url);
		if (etcd->missed) {
			begin_grace(etcd);
			distrust_absence(etcd);
		}
		etcd->missed = false;
		for (i = 0; i < PVR_ETCD_KEPT; i++)
			forget_kept(etcd, etcd->kept.hosts[i].name);
		pvr_etcd_audit_all(etcd);
	} else {
		etcd->missed = true;
		pvr_etcd_watch_close(etcd);
		pvr_directory_log(etcd->directory, PVR_LOG_WARN,
				  "etcd at %s: %s; cached GIDs stay in use", url, why);
	}
}

/* ----------------------------------------------------- ops of the directory */

static void etcd_lookup(struct pvr_directory *directory, struct pvr_entry *entry)
{
	struct pvr_etcd *etcd = pvr_etcd_of(directory);
	struct pvr_etcd_item *item = (struct pvr_etcd_item *)entry->private;

	item->kind = pvr_key_is_group(&entry->node.key) ? PVR_ITEM_GROUP : PVR_ITEM_GID;
	pvr_etcd_request(etcd, item);
	pvr_etcd_lookup_step(etcd);
}

static void drop_item(struct pvr_etcd *etcd, struct pvr_etcd_item *item)
{
	pvr_etcd_lookup_drop(etcd, item);
	pvr_etcd_watch_drop(etcd, item);
}

static void etcd_drop(struct pvr_directory *directory, struct pvr_entry *entry)
{
	pvr_etcd_drop_claimants(pvr_etcd_of(directory), entry);
	drop_item(pvr_etcd_of(directory), (struct pvr_etcd_item *)entry->private);
}

static void etcd_host_gone(struct pvr_directory *directory, struct pvr_dir_host *host)
{
	struct pvr_etcd_host *part = (struct pvr_etcd_host *)host->private;

	drop_item(pvr_etcd_of(directory), &part->item);
	if (part->known && !directory->ending)
		keep_address(pvr_etcd_of(directory), host->name, true);
}

static void etcd_own_changed(struct pvr_directory *directory)
{
	pvr_etcd_publish_changed(pvr_etcd_of(directory));
	pvr_etcd_publish_step(pvr_etcd_of(directory));
}

/* The files of keys are read for each connection, and that of the password for each login. */
static bool etcd_reload(struct pvr_directory *directory, struct pvr_directory_files *files,
			struct pvr_error *err)
{
	pvr_etcd_client_retry(&pvr_etcd_of(directory)->client);
	return true;
}

static void etcd_leave(struct pvr_directory *directory)
{
	pvr_etcd_lease_revoke(pvr_etcd_of(directory));
}

static void etcd_stats(struct pvr_directory *directory, struct pvr_directory_stats *stats)
{
	const struct pvr_etcd *etcd = directory->backend;
	const struct pvr_http_counters *counters = pvr_http_counters(etcd->client.http);

	stats->url = pvr_etcd_client_url(&etcd->client);
	stats->connected = etcd->client.connected;
	stats->registered = pvr_etcd_is_registered(etcd);
	stats->watches = etcd->watch.num;
	stats->events = etcd->watch.events;
	stats->failures = etcd->client.failed;
	stats->requests = counters->requests;
	stats->tx_bytes = counters->tx_bytes;
	stats->rx_bytes = counters->rx_bytes;
}

static bool etcd_create(struct pvr_directory *directory,
			const struct pvr_directory_settings *settings, struct pvr_error *err)
{
	struct pvr_etcd *etcd = calloc(1, sizeof(*etcd));

	directory->backend = etcd;
	if (!etcd)
		return pvr_fail(err, "out of memory");
	etcd->directory = directory;
	etcd->ttl = settings->etcd->lease ? settings->etcd->lease : TTL;
	etcd->client.ready = client_ready;
	etcd->client.changed = client_changed;
	etcd->client.opaque = etcd;
	pvr_etcd_lease_init(etcd);
	pvr_etcd_claim_init(etcd);
	pvr_etcd_lookup_init(etcd);
	pvr_etcd_watch_init(etcd);
	pvr_etcd_audit_init(etcd);
	if (!pvr_etcd_publish_init(etcd, err) ||
	    !pvr_etcd_client_init(&etcd->client, directory->env.loop, settings->etcd, err))
		return false;
	etcd->prefix = etcd->client.settings.prefix[0] ? etcd->client.settings.prefix : "pvrdma/";
	pvr_etcd_step(etcd);
	return true;
}

static void etcd_destroy(struct pvr_directory *directory)
{
	struct pvr_etcd *etcd = directory->backend;

	pvr_etcd_client_exit(&etcd->client);
	pvr_etcd_lease_exit(etcd);
	pvr_etcd_claim_exit(etcd);
	pvr_etcd_lookup_exit(etcd);
	pvr_etcd_watch_exit(etcd);
	pvr_etcd_audit_exit(etcd);
	pvr_etcd_publish_exit(etcd);
	free(etcd);
}

const struct pvr_directory_ops pvr_directory_etcd = {
	.name = "etcd",
	.entry_size = sizeof(struct pvr_etcd_entry),
	.host_size = sizeof(struct pvr_etcd_host),
	.create = etcd_create,
	.destroy = etcd_destroy,
	.lookup = etcd_lookup,
	.drop = etcd_drop,
	.due = pvr_etcd_due,
	.located = pvr_etcd_located,
	.moved = pvr_etcd_moved,
	.host_needed = pvr_etcd_host_needed,
	.referred = etcd_referred,
	.host_gone = etcd_host_gone,
	.own_changed = etcd_own_changed,
	.claims_changed = pvr_etcd_claims_changed,
	.reload = etcd_reload,
	.leave = etcd_leave,
	.stats = etcd_stats,
};
