// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Results of look-ups in etcd, and messages of hosts about them. */
#include <string.h>

#include "directory/etcd.h"

#define GONE_FOR PVR_SEC

static struct pvr_entry *entry_of(struct pvr_etcd_item *item)
{
	return pvr_container_of(item, struct pvr_entry, private);
}

static struct pvr_etcd_entry *entry_part(struct pvr_entry *entry)
{
	return (struct pvr_etcd_entry *)entry->private;
}

bool pvr_etcd_parse_owner(const char *value, char host[PVR_HOST_NAME_MAX], uint8_t *type)
{
	struct json_object *object = pvr_json_parse(value, strlen(value));
	const char *name = pvr_json_text(object, "host"), *roce = pvr_json_text(object, "type");
	bool ok = name && roce && pvr_dir_host_name_ok(name);

	*type = ok && !strcmp(roce, "v1")   ? PVR_GID_TYPE_ROCE_V1
		: ok && !strcmp(roce, "v2") ? PVR_GID_TYPE_ROCE_V2
					    : 0;
	if (*type)
		strcpy(host, name);
	json_object_put(object);
	return *type;
}

static bool owner_of(struct pvr_etcd *etcd, struct json_object *kv, char host[PVR_HOST_NAME_MAX],
		     uint8_t *type)
{
	char value[PVR_ETCD_VALUE_MAX], key[PVR_ETCD_KEY_MAX];

	if (pvr_json_base64(kv, "value", value, sizeof(value)) >= 0 &&
	    pvr_etcd_parse_owner(value, host, type))
		return true;
	if (pvr_json_base64(kv, "key", key, sizeof(key)) < 0)
		strcpy(key, "a key");
	pvr_directory_log(etcd->directory, PVR_LOG_WARN, "the value of %s in etcd is invalid", key);
	return false;
}

/* ------------------------------------------------------------------------------ a GID */

/* The GID has an owner: a connection to that host will be needed. */
static void add_host(struct pvr_etcd *etcd, struct pvr_dir_host *host)
{
	struct pvr_etcd_host *part = (struct pvr_etcd_host *)host->private;

	if (part->item.kind == PVR_ITEM_HOST)
		return;
	part->item.kind = PVR_ITEM_HOST;
	pvr_etcd_request(etcd, &part->item);
}

static void gid_found(struct pvr_etcd *etcd, struct pvr_entry *entry, const char *name,
		      uint8_t type)
{
	struct pvr_dir_host *host = pvr_dir_host_get(etcd->directory, name);

	if (!host)
		return; /* too many: it will be looked up again */
	add_host(etcd, host);
	entry_part(entry)->verifying = entry_part(entry)->awaited = false;
	pvr_entry_set_due(etcd->directory, entry, PVR_DUE_NEVER);
	pvr_entry_found(etcd->directory, entry, host, type);
	pvr_dir_host_put(etcd->directory, host);
	pvr_etcd_watch_add(etcd, &entry_part(entry)->item);
}

static void gid_absent(struct pvr_etcd *etcd, struct pvr_entry *entry)
{
	pvr_etcd_watch_drop(etcd, &entry_part(entry)->item);
	entry_part(entry)->verifying = entry_part(entry)->awaited = false;
	pvr_entry_absent(etcd->directory, entry);
}

/*
 * The key is missing. If the GID was known, etcd may have lost the key while the owner
 * exists. If it is new, a guest may use the GID before its host has written the key.
 */
static void gid_missing(struct pvr_etcd *etcd, struct pvr_entry *entry)
{
	struct pvr_directory *directory = etcd->directory;
	const struct pvr_directory_env *env = &directory->env;

	if (!entry->owner && entry_part(entry)->awaited) {
		gid_absent(etcd, entry);
		return;
	}
	pvr_etcd_watch_add(etcd, &entry_part(entry)->item);
	if (!entry->owner) {
		entry_part(entry)->awaited = true;
		pvr_entry_set_due(directory, entry, PVR_DUE_ROUND);
		return;
	}
	if (entry->owner->up)
		entry_part(entry)->verifying =
			env->state(env->opaque, entry->owner->name, &entry->node.key);
	if (entry_part(entry)->verifying || pvr_loop_now() < etcd->grace_until)
		pvr_entry_set_due(directory, entry, PVR_DUE_VERIFY);
	else
		gid_absent(etcd, entry);
}

static void gid_answer(struct pvr_etcd *etcd, struct pvr_entry *entry, struct json_object *kvs)
{
	struct json_object *kv = kvs ? json_object_array_get_idx(kvs, 0) : NULL;
	struct pvr_etcd_entry *part = entry_part(entry);
	uint64_t revision = pvr_json_number(kv, "mod_revision");
	char host[PVR_HOST_NAME_MAX];
	uint8_t type;

	if (!kv || !owner_of(etcd, kv, host, &type)) {
		gid_missing(etcd, entry);
		return;
	}
	/*
	 * It is this host's, or the owner reported the loss and etcd still has the old
	 * key.
	 */
	if (!strcmp(host, pvr_directory_own_name(etcd->directory)) ||
	    (revision == part->gone_revision && pvr_loop_now() < part->gone_until)) {
		gid_absent(etcd, entry);
		return;
	}
	part->key_revision = revision;
	gid_found(etcd, entry, host, type);
}

void pvr_etcd_located(struct pvr_directory *directory, struct pvr_entry *entry,
		      struct pvr_dir_host *host, uint8_t type)
{
	if (entry->owner != host || !entry_part(entry)->verifying)
		return; /* ignored: etcd has a different owner */
	entry_part(entry)->verifying = false;
	if (type)
		pvr_entry_set_due(directory, entry, PVR_DUE_VERIFY);
	else
		gid_absent(pvr_etcd_of(directory), entry);
}

void pvr_etcd_due(struct pvr_directory *directory, struct pvr_entry *entry, enum pvr_due due)
{
	struct pvr_etcd *etcd = pvr_etcd_of(directory);

	/* The owner was queried and has not responded, or no key has appeared. */
	if (entry_part(entry)->verifying || due == PVR_DUE_ROUND) {
		gid_absent(etcd, entry);
		return;
	}
	pvr_etcd_request(etcd, &entry_part(entry)->item);
	pvr_etcd_step(etcd);
}

void pvr_etcd_moved(struct pvr_directory *directory, struct pvr_entry *entry,
		    struct pvr_dir_host *host)
{
	struct pvr_etcd *etcd = pvr_etcd_of(directory);
	struct pvr_etcd_entry *part = entry_part(entry);

	if (pvr_key_is_group(&entry->node.key)) {
		pvr_entry_leave(directory, entry, host);
	} else {
		part->gone_revision = part->key_revision;
		part->gone_until = pvr_loop_now() + GONE_FOR;
		part->verifying = false;
		pvr_entry_set_due(directory, entry, PVR_DUE_NEVER);
		pvr_entry_unknown(directory, entry);
	}
	pvr_etcd_request(etcd, &part->item);
	pvr_etcd_step(etcd);
}

/* ---------------------------------------------------------------------------- a group */

static void join(struct pvr_etcd *etcd, struct pvr_entry *entry, const char *name, uint8_t type)
{
	struct pvr_dir_host *host = pvr_dir_host_get(etcd->directory, name);

	if (!host)
		return;
	add_host(etcd, host);
	pvr_entry_join(etcd->directory, entry, host, type);
	pvr_dir_host_put(etcd->directory, host);
}

/* Reads the names of the valid members except this host. Return: their number. */
static size_t read_members(struct pvr_etcd *etcd, struct json_object *kvs,
			   char (*names)[PVR_HOST_NAME_MAX], uint8_t *types)
{
	size_t len = kvs ? json_object_array_length(kvs) : 0, num = 0, i;

	for (i = 0; i < len && num < PVR_ENTRY_MEMBERS_MAX; i++) {
		if (owner_of(etcd, json_object_array_get_idx(kvs, i), names[num], &types[num]) &&
		    strcmp(names[num], pvr_directory_own_name(etcd->directory)))
			num++;
	}
	return num;
}

static bool is_named(const char *name, char (*names)[PVR_HOST_NAME_MAX], size_t num)
{
	size_t i;

	for (i = 0; i < num && strcmp(names[i], name); i++)
		;
	return i < num;
}

static void group_answer(struct pvr_etcd *etcd, struct pvr_entry *entry, struct json_object *kvs)
{
	static char names[PVR_ENTRY_MEMBERS_MAX][PVR_HOST_NAME_MAX]; /* one thread only */
	static uint8_t types[PVR_ENTRY_MEMBERS_MAX];
	size_t num = read_members(etcd, kvs, names, types), i;
	bool grace = pvr_loop_now() < etcd->grace_until;

	for (i = 0; i < num; i++)
		join(etcd, entry, names[i], types[i]);
	pvr_entry_complete(etcd->directory, entry);
	for (i = entry->num_members; i-- && !grace;) {
		struct pvr_dir_host *host = entry->members[i].host;

		if (!is_named(host->name, names, num))
			pvr_entry_leave(etcd->directory, entry, host);
	}
	if (!entry->num_members) {
		gid_absent(etcd, entry);
		return;
	}
	pvr_entry_set_due(etcd->directory, entry, grace ? PVR_DUE_VERIFY : PVR_DUE_NEVER);
	pvr_etcd_watch_add(etcd, &entry_part(entry)->item);
}

/* ----------------------------------------------------------------------------- a host */

static bool parse_address(struct json_object *kv, char address[64])
{
	char value[PVR_ETCD_VALUE_MAX];
	struct json_object *object;
	const char *text;
	bool ok;

	if (pvr_json_base64(kv, "value", value, sizeof(value)) < 0)
		return false;
	object = pvr_json_parse(value, strlen(value));
	text = pvr_json_text(object, "address");
	ok = text && strlen(text) < 64;
	if (ok)
		strcpy(address, text);
	json_object_put(object);
	return ok;
}

static void host_answer(struct pvr_etcd *etcd, struct pvr_dir_host *host, struct json_object *kvs)
{
	const struct pvr_directory_env *env = &etcd->directory->env;
	struct pvr_etcd_host *part = (struct pvr_etcd_host *)host->private;
	struct pvr_error err = { "it is invalid" };
	char address[64];

	pvr_etcd_watch_add(etcd, &part->item);
	if (!kvs || !json_object_array_length(kvs))
		return; /* the earlier address stays; the watch reports a new one */
	if (parse_address(json_object_array_get_idx(kvs, 0), address) &&
	    env->set_peer(env->opaque, host->name, address, &err)) {
		part->known = true;
		env->want(env->opaque, host->name);
		return;
	}
	pvr_directory_log(etcd->directory, PVR_LOG_WARN, "the address of host %s in etcd: %.300s",
			  host->name, err.text);
}

void pvr_etcd_answer(struct pvr_etcd *etcd, struct pvr_etcd_item *item, struct json_object *kvs)
{
	switch (item->kind) {
	case PVR_ITEM_GID:
		gid_answer(etcd, entry_of(item), kvs);
		break;
	case PVR_ITEM_GROUP:
		group_answer(etcd, entry_of(item), kvs);
		break;
	case PVR_ITEM_HOST:
		host_answer(etcd, pvr_container_of(item, struct pvr_dir_host, private), kvs);
	}
}
