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

static uint8_t parse_type(const char *value)
{
	struct json_object *object = pvr_json_parse(value, strlen(value));
	const char *roce = pvr_json_text(object, "type");
	uint8_t type = !roce		     ? 0
		       : !strcmp(roce, "v1") ? PVR_GID_TYPE_ROCE_V1
		       : !strcmp(roce, "v2") ? PVR_GID_TYPE_ROCE_V2
					     : 0;

	json_object_put(object);
	return type;
}

/* Return: PVR_GID_TYPE_*; 0, logged: the value is invalid. */
static uint8_t type_of(struct pvr_etcd *etcd, struct json_object *kv)
{
	char value[PVR_ETCD_VALUE_MAX], key[PVR_ETCD_KEY_MAX];
	uint8_t type = 0;

	if (pvr_json_base64(kv, "value", value, sizeof(value)) >= 0)
		type = parse_type(value);
	if (type)
		return type;
	if (pvr_json_base64(kv, "key", key, sizeof(key)) < 0)
		strcpy(key, "a key");
	pvr_directory_log(etcd->directory, PVR_LOG_WARN, "the value of %s in etcd is invalid", key);
	return 0;
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

void pvr_etcd_host_needed(struct pvr_directory *directory, struct pvr_dir_host *host)
{
	add_host(pvr_etcd_of(directory), host);
	pvr_etcd_lookup_step(pvr_etcd_of(directory));
	directory->env.want(directory->env.opaque, host->name);
}

static void gid_found(struct pvr_etcd *etcd, struct pvr_entry *entry, struct pvr_dir_host *host,
		      uint8_t type)
{
	entry_part(entry)->verifying = entry_part(entry)->awaited = false;
	entry_part(entry)->uncertain = false;
	pvr_entry_set_due(etcd->directory, entry, PVR_DUE_NEVER);
	pvr_entry_found(etcd->directory, entry, host, type);
	pvr_etcd_watch_add(etcd, &entry_part(entry)->item);
}

static void gid_absent(struct pvr_etcd *etcd, struct pvr_entry *entry)
{
	pvr_etcd_watch_drop(etcd, &entry_part(entry)->item);
	entry_part(entry)->verifying = entry_part(entry)->awaited = false;
	entry_part(entry)->uncertain = false;
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
	bool uncertain = entry_part(entry)->uncertain && pvr_loop_now() < etcd->grace_until;

	if (!entry->owner && entry_part(entry)->awaited && !uncertain) {
		gid_absent(etcd, entry);
		return;
	}
	pvr_etcd_watch_add(etcd, &entry_part(entry)->item);
	if (!entry->owner) {
		entry_part(entry)->awaited = true;
		pvr_entry_set_due(directory, entry, uncertain ? PVR_DUE_VERIFY : PVR_DUE_ROUND);
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

/* ------------------------------------------------------- index and claims */

void pvr_etcd_drop_claimants(struct pvr_etcd *etcd, struct pvr_entry *entry)
{
	struct pvr_etcd_entry *part = entry_part(entry);

	part->item.confirming = false;
	while (part->num_claimants)
		pvr_dir_host_put(etcd->directory, part->claimants[--part->num_claimants]);
}

static void add_claimant(struct pvr_etcd *etcd, struct pvr_entry *entry, const char *name)
{
	struct pvr_etcd_entry *part = entry_part(entry);
	struct pvr_dir_host *host;
	size_t i;

	for (i = 0; i < part->num_claimants; i++) {
		if (!strcmp(part->claimants[i]->name, name))
			return;
	}
	if (!pvr_directory_allows(etcd->directory, name, &entry->node.key)) {
		pvr_directory_refuse(etcd->directory, &entry->node.key, name,
				     "the policy does not allow it");
		return;
	}
	if (i == PVR_ETCD_CLAIMS_MAX + 1 || !strcmp(name, pvr_directory_own_name(etcd->directory)))
		return;
	host = pvr_dir_host_get(etcd->directory, name);
	if (!host)
		return; /* too many: it will be looked up again */
	/* Its address is read in the same transaction as its claim. */
	add_host(etcd, host);
	part->claimants[part->num_claimants++] = host;
}

/* The owner's claim is read even if its index entry is gone. */
static void index_answer(struct pvr_etcd *etcd, struct pvr_entry *entry, struct json_object *kvs)
{
	struct pvr_etcd_entry *part = entry_part(entry);
	size_t num = kvs ? json_object_array_length(kvs) : 0, i;
	char name[PVR_HOST_NAME_MAX];

	/* The time in which the owner withdraws its claim begins when etcd responds. */
	if (part->gone_until == PVR_NEVER)
		part->gone_until = pvr_loop_now() + GONE_FOR;
	if (entry->owner)
		add_claimant(etcd, entry, entry->owner->name);
	for (i = 0; i < num; i++) {
		if (pvr_etcd_key_host(json_object_array_get_idx(kvs, i), name))
			add_claimant(etcd, entry, name);
	}
	if (!part->num_claimants) {
		gid_missing(etcd, entry);
		return;
	}
	pvr_etcd_request(etcd, &part->item);
	part->item.confirming = true;
}

/* A claim, as read from etcd. */
struct claim {
	struct pvr_dir_host *host; /* NULL: none */
	uint64_t created, changed; /* revisions */
	uint8_t type;
};

static struct claim claim_of(struct pvr_etcd *etcd, struct pvr_entry *entry,
			     struct pvr_dir_host *host, struct json_object *kvs)
{
	const struct pvr_etcd_entry *part = entry_part(entry);
	struct json_object *kv = kvs ? json_object_array_get_idx(kvs, 0) : NULL;
	struct claim claim = {
		.created = pvr_json_number(kv, "create_revision"),
		.changed = pvr_json_number(kv, "mod_revision"),
	};

	if (!kv)
		return claim;
	/* The owner reported the loss, and etcd still has the old key. */
	if (claim.changed == part->gone_revision && pvr_loop_now() < part->gone_until)
		return claim;
	claim.type = type_of(etcd, kv);
	if (claim.type)
		claim.host = host;
	return claim;
}

static void refuse_claim(struct pvr_etcd *etcd, const struct pvr_entry *entry,
			 const struct claim *claim, const struct claim *older)
{
	char why[128];

	if (!claim->host || claim->host == older->host)
		return;
	snprintf(why, sizeof(why), "the claim of host %s is older", older->host->name);
	pvr_directory_refuse(etcd->directory, &entry->node.key, claim->host->name, why);
}

static void claims_answer(struct pvr_etcd *etcd, struct pvr_entry *entry,
			  struct json_object *responses, size_t first)
{
	struct pvr_etcd_entry *part = entry_part(entry);
	struct claim claims[PVR_ETCD_CLAIMS_MAX + 1], *oldest = NULL;
	size_t i;

	for (i = 0; i < part->num_claimants; i++) {
		claims[i] = claim_of(etcd, entry, part->claimants[i],
				     pvr_etcd_kvs(responses, first + i));
		if (claims[i].host && (!oldest || claims[i].created < oldest->created))
			oldest = &claims[i];
	}
	if (oldest) {
		for (i = 0; i < part->num_claimants; i++)
			refuse_claim(etcd, entry, &claims[i], oldest);
		part->key_revision = oldest->changed;
		gid_found(etcd, entry, oldest->host, oldest->type);
	} else {
		gid_missing(etcd, entry);
	}
	pvr_etcd_drop_claimants(etcd, entry);
}

static void gid_answer(struct pvr_etcd *etcd, struct pvr_entry *entry,
		       struct json_object *responses, size_t first)
{
	if (entry_part(entry)->item.confirming)
		claims_answer(etcd, entry, responses, first);
	else
		index_answer(etcd, entry, pvr_etcd_kvs(responses, first));
}

size_t pvr_etcd_num_reads(const struct pvr_etcd_item *item)
{
	return item->confirming ? ((const struct pvr_etcd_entry *)item)->num_claimants : 1;
}

/* The oldest index entries come first: newer ones cannot push them out of the limit. */
static void add_read(struct pvr_text *body, size_t num, enum pvr_item_kind kind, const char *key)
{
	int limit = kind == PVR_ITEM_GROUP ? PVR_ENTRY_MEMBERS_MAX
		    : kind == PVR_ITEM_GID ? PVR_ETCD_CLAIMS_MAX
					   : 1;

	pvr_text_add(body, "%s{\"request_range\":{", num ? "," : "");
	pvr_etcd_add_range(body, key);
	pvr_text_add(body, ",\"limit\":\"%d\"", limit);
	if (kind == PVR_ITEM_GID)
		pvr_text_add(body, ",\"sort_order\":\"ASCEND\",\"sort_target\":\"CREATE\"");
	pvr_text_add(body, "}}");
}

size_t pvr_etcd_add_reads(const struct pvr_etcd *etcd, const struct pvr_etcd_item *item,
			  struct pvr_text *body, size_t num)
{
	const struct pvr_etcd_entry *part = (const struct pvr_etcd_entry *)item;
	char key[PVR_ETCD_KEY_MAX];
	size_t i;

	if (!item->confirming) {
		pvr_etcd_item_key(etcd, item, key);
		add_read(body, num, item->kind, key);
		return 1;
	}
	for (i = 0; i < part->num_claimants; i++) {
		pvr_etcd_claim_key(etcd, part->claimants[i]->name,
				   &pvr_container_of(part, struct pvr_entry, private)->node.key,
				   key);
		add_read(body, num + i, PVR_ITEM_HOST, key);
	}
	return i;
}

/* --------------------------------------------------- messages of hosts, deadlines */

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
	const struct pvr_etcd_entry *part = entry_part(entry);

	/*
	 * The owner was queried and has not responded, or no key has appeared. If the GID had an
	 * owner, other hosts may know it: it is absent only if etcd says so once more.
	 */
	if (part->verifying || (due == PVR_DUE_ROUND && !part->gone_revision)) {
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
		part->gone_until = PVR_NEVER;
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
static size_t read_members(struct pvr_etcd *etcd, const struct pvr_key *key,
			   struct json_object *kvs, char (*names)[PVR_HOST_NAME_MAX],
			   uint8_t *types)
{
	size_t len = kvs ? json_object_array_length(kvs) : 0, num = 0, i;

	for (i = 0; i < len && num < PVR_ENTRY_MEMBERS_MAX; i++) {
		struct json_object *kv = json_object_array_get_idx(kvs, i);

		types[num] = type_of(etcd, kv);
		if (types[num] && pvr_etcd_key_host(kv, names[num]) &&
		    strcmp(names[num], pvr_directory_own_name(etcd->directory)) &&
		    pvr_directory_allows(etcd->directory, names[num], key))
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
	size_t num = read_members(etcd, &entry->node.key, kvs, names, types), i;
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

void pvr_etcd_answer(struct pvr_etcd *etcd, struct pvr_etcd_item *item,
		     struct json_object *responses, size_t first)
{
	switch (item->kind) {
	case PVR_ITEM_GID:
		gid_answer(etcd, entry_of(item), responses, first);
		break;
	case PVR_ITEM_GROUP:
		group_answer(etcd, entry_of(item), pvr_etcd_kvs(responses, first));
		break;
	case PVR_ITEM_HOST:
		host_answer(etcd, pvr_container_of(item, struct pvr_dir_host, private),
			    pvr_etcd_kvs(responses, first));
	}
}
