// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The static backend, for a few hosts listed in a file: it queries the hosts themselves.
 *
 * DOC: queries to hosts
 *
 * A look-up sends GID_QUERY, in rounds, to each host that may have the GID. Hosts that are
 * not connected or have not responded are queried again in the next round. The look-up
 * ends when a host has the GID, when all hosts have denied it, or after ROUNDS_MAX rounds.
 * A claim waits until all connected hosts have responded, or the round is over. If a
 * second host claims the GID, neither is believed: the policy has to tell them apart.
 * While the owner is connected, it is queried again at intervals. If an owner is needed
 * and unreachable, another host may have the GID now: all other hosts are queried, and a
 * host that has the GID becomes the owner. The same is done if another host sends as the
 * GID: an adapter can come back at another host, and a peer that only responds needs no owner.
 *
 * The members of a group are reported together, when all hosts have responded or a round
 * is over. Senders to the group wait a little longer than a round (rdma/ud_step.h). The
 * members are queried repeatedly, because a host does not announce a new member. The
 * group is dropped after a minute, and looked up again if it is in use.
 */
#include <stdlib.h>
#include <string.h>

#include "directory/backend.h"

#define ROUNDS_MAX 20
#define GROUP_CYCLES 30
#define HOSTS_MAX (2 * PVR_PEERS_FILE_HOSTS) /* of the file and named one by one */
#define WORDS (HOSTS_MAX / 64)

#define WANTED_GAP (2 * PVR_SEC) /* a host not needed for this long is not needed any more */
#define WANTED_MIN PVR_SEC
#define RECHECK_MIN (5 * PVR_SEC)

struct static_directory {
	char *path; /* NULL: no file */
	struct pvr_peers_file file;
	struct pvr_dir_host *hosts[HOSTS_MAX]; /* each holds a reference */
	size_t num;
};

struct static_entry {
	unsigned int rounds, cycles;
	uint64_t answered[WORDS]; /* bitmap by the host's index */
	/* The first claim of this look-up; the peers file outlives it. */
	struct pvr_dir_host *claimant;
	uint8_t type;
	bool ambiguous; /* there is another claim */
};

struct static_host {
	size_t index;
	bool listed, named; /* named by the file; named one by one */
	const struct pvr_peers_host *rules; /* NULL: any GID is allowed */
	uint64_t wanted_since, wanted_at, rechecked_at;
};

static struct static_entry *entry_part(struct pvr_entry *entry)
{
	return (struct static_entry *)entry->private;
}

static struct static_host *host_part(struct pvr_dir_host *host)
{
	return (struct static_host *)host->private;
}

/* By the peers file. */
static bool is_listed(struct pvr_dir_host *host, const struct pvr_key *key)
{
	const struct static_host *part = host_part(host);

	return !part->rules || pvr_peers_host_may_have(part->rules, key);
}

static bool may_have(struct pvr_directory *directory, struct pvr_dir_host *host,
		     const struct pvr_key *key)
{
	return is_listed(host, key) && pvr_directory_allows(directory, host->name, key);
}

static bool has_answered(struct pvr_entry *entry, struct pvr_dir_host *host)
{
	size_t i = host_part(host)->index;

	return entry_part(entry)->answered[i / 64] >> (i % 64) & 1;
}

static void set_answered(struct pvr_entry *entry, struct pvr_dir_host *host)
{
	size_t i = host_part(host)->index;

	entry_part(entry)->answered[i / 64] |= 1ull << (i % 64);
}

static bool static_may_have(struct pvr_directory *directory, const char *host,
			    const struct pvr_key *key)
{
	const struct static_directory *all = directory->backend;

	return pvr_peers_file_allows(&all->file, host, key);
}

/* ------------------------------------------------------------------ queries */

static void query(struct pvr_directory *directory, struct pvr_entry *entry,
		  struct pvr_dir_host *host)
{
	if (!has_answered(entry, host) && may_have(directory, host, &entry->node.key))
		directory->env.state(directory->env.opaque, host->name, &entry->node.key);
}

/* Return: whether all hosts, or all that are connected, have responded. */
static bool have_answered(struct pvr_directory *directory, struct pvr_entry *entry, bool connected)
{
	struct static_directory *all = directory->backend;
	size_t i;

	for (i = 0; i < all->num; i++) {
		if ((all->hosts[i]->up || !connected) && !has_answered(entry, all->hosts[i]) &&
		    may_have(directory, all->hosts[i], &entry->node.key))
			return false;
	}
	return true;
}

static bool is_complete(struct pvr_directory *directory, struct pvr_entry *entry)
{
	return have_answered(directory, entry, false);
}

/* Removes members of hosts that are disconnected and do not respond. */
static void lose_dead_members(struct pvr_directory *directory, struct pvr_entry *entry)
{
	size_t i = entry->num_members;

	while (i--) {
		struct pvr_dir_host *host = entry->members[i].host;

		if (!host->up && !has_answered(entry, host))
			pvr_entry_leave(directory, entry, host);
	}
}

/* All responses that can be expected have arrived. */
static void conclude(struct pvr_directory *directory, struct pvr_entry *entry)
{
	struct static_entry *part = entry_part(entry);

	if (pvr_key_is_group(&entry->node.key))
		lose_dead_members(directory, entry);
	pvr_entry_complete(directory, entry);
	if (part->claimant && !part->ambiguous)
		pvr_entry_found(directory, entry, part->claimant, part->type);
	part->claimant = NULL;
	if (entry->num_members)
		pvr_entry_set_due(directory, entry, PVR_DUE_GROUP);
	else if (entry->owner)
		pvr_entry_set_due(directory, entry, PVR_DUE_FOUND);
	else
		pvr_entry_absent(directory, entry);
}

static void query_all(struct pvr_directory *directory, struct pvr_entry *entry)
{
	struct static_directory *all = directory->backend;
	size_t i;

	if (is_complete(directory, entry)) {
		conclude(directory, entry);
		return;
	}
	for (i = 0; i < all->num; i++)
		query(directory, entry, all->hosts[i]);
	pvr_entry_set_due(directory, entry, PVR_DUE_ROUND);
}

static void begin(struct pvr_directory *directory, struct pvr_entry *entry)
{
	struct static_entry *part = entry_part(entry);

	part->rounds = 0;
	part->claimant = NULL;
	part->ambiguous = false;
	memset(part->answered, 0, sizeof(part->answered));
	query_all(directory, entry);
}

static void static_due(struct pvr_directory *directory, struct pvr_entry *entry, enum pvr_due due)
{
	struct static_entry *part = entry_part(entry);
	const struct pvr_directory_env *env = &directory->env;

	switch (due) {
	case PVR_DUE_ROUND:
		/* Members of hosts that do not respond are left out. */
		pvr_entry_complete(directory, entry);
		if (++part->rounds < ROUNDS_MAX && !part->claimant)
			query_all(directory, entry);
		else
			conclude(directory, entry);
		break;
	case PVR_DUE_GROUP:
		if (++part->cycles < GROUP_CYCLES)
			begin(directory, entry);
		else
			pvr_entry_forget(directory, entry);
		break;
	default:
		if (entry->owner->up)
			env->state(env->opaque, entry->owner->name, &entry->node.key);
		pvr_entry_set_due(directory, entry, PVR_DUE_FOUND);
	}
}

/* ---------------------------------------------------------------- responses */

static void group_answer(struct pvr_directory *directory, struct pvr_entry *entry,
			 struct pvr_dir_host *host, uint8_t type)
{
	if (type)
		pvr_entry_join(directory, entry, host, type);
	else
		pvr_entry_leave(directory, entry, host);
	if (entry->state == PVR_ENTRY_ABSENT)
		return; /* too late: its absence is cached */
	if (is_complete(directory, entry))
		conclude(directory, entry);
}

/* Ends the look-up if there is a claim and no other one is to be expected. */
static void settle(struct pvr_directory *directory, struct pvr_entry *entry)
{
	if (entry->due == PVR_DUE_ROUND &&
	    have_answered(directory, entry, entry_part(entry)->claimant))
		conclude(directory, entry);
}

static void refuse_both(struct pvr_directory *directory, struct pvr_entry *entry,
			struct pvr_dir_host *host)
{
	struct static_entry *part = entry_part(entry);
	struct pvr_dir_host *first = part->claimant;
	char why[128];

	snprintf(why, sizeof(why), "host %s claims it, too", first->name);
	pvr_directory_refuse(directory, &entry->node.key, host->name, why);
	if (part->ambiguous)
		return;
	part->ambiguous = true;
	snprintf(why, sizeof(why), "host %s claims it, too", host->name);
	pvr_directory_refuse(directory, &entry->node.key, first->name, why);
}

static void claim(struct pvr_directory *directory, struct pvr_entry *entry,
		  struct pvr_dir_host *host, uint8_t type)
{
	struct static_entry *part = entry_part(entry);
	char why[128];

	if (entry->owner == host) {
		pvr_entry_found(directory, entry, host, type);
		pvr_entry_set_due(directory, entry, PVR_DUE_FOUND);
		return;
	}
	if (entry->owner && entry->owner->up) {
		snprintf(why, sizeof(why), "it belongs to host %s, which is connected",
			 entry->owner->name);
		pvr_directory_refuse(directory, &entry->node.key, host->name, why);
		return;
	}
	if (entry->due != PVR_DUE_ROUND)
		return; /* no query is open */
	if (part->claimant && part->claimant != host) {
		refuse_both(directory, entry, host);
	} else {
		part->claimant = host;
		part->type = type;
	}
	settle(directory, entry);
}

static void denial(struct pvr_directory *directory, struct pvr_entry *entry,
		   struct pvr_dir_host *host)
{
	if (entry->owner == host)
		pvr_entry_forget(directory, entry);
	else
		settle(directory, entry);
}

static void static_located(struct pvr_directory *directory, struct pvr_entry *entry,
			   struct pvr_dir_host *host, uint8_t type)
{
	set_answered(entry, host);
	if (type && !may_have(directory, host, &entry->node.key)) {
		pvr_directory_refuse(directory, &entry->node.key, host->name,
				     is_listed(host, &entry->node.key)
					     ? "the policy does not allow it"
					     : "the peers file does not allow it");
		type = 0;
	}
	if (pvr_key_is_group(&entry->node.key))
		group_answer(directory, entry, host, type);
	else if (type)
		claim(directory, entry, host, type);
	else
		denial(directory, entry, host);
}

/* The owner denies, if the adapter has left it. If the owner is dead, another host can have it. */
static void static_doubted(struct pvr_directory *directory, struct pvr_entry *entry,
			   struct pvr_dir_host *host)
{
	if (entry->due == PVR_DUE_ROUND || !may_have(directory, host, &entry->node.key))
		return;
	if (entry->owner->up)
		directory->env.state(directory->env.opaque, entry->owner->name, &entry->node.key);
	else
		begin(directory, entry);
}

static void static_moved(struct pvr_directory *directory, struct pvr_entry *entry,
			 struct pvr_dir_host *host)
{
	if (pvr_key_is_group(&entry->node.key))
		group_answer(directory, entry, host, 0);
	else
		pvr_entry_forget(directory, entry);
}

/* ------------------------------------------------------------------------ hosts */

static void static_host_changed(struct pvr_directory *directory, struct pvr_dir_host *host)
{
	struct pvr_entry *entry;

	if (!host->up)
		return;
	host_part(host)->wanted_since = 0;
	TAILQ_FOREACH(entry, &directory->entries.due[PVR_DUE_ROUND], by_deadline)
		query(directory, entry, host);
}

static void recheck(struct pvr_directory *directory, struct pvr_dir_host *host)
{
	struct pvr_entry *entry, *next;

	for (entry = LIST_FIRST(&host->owns); entry; entry = next) {
		next = LIST_NEXT(entry, by_owner);
		if (entry->due != PVR_DUE_ROUND)
			begin(directory, entry);
	}
}

static void static_host_wanted(struct pvr_directory *directory, struct pvr_dir_host *host)
{
	struct static_host *part = host_part(host);
	uint64_t now = pvr_loop_now();

	if (!part->wanted_since || now - part->wanted_at > WANTED_GAP)
		part->wanted_since = now;
	part->wanted_at = now;
	if (now - part->wanted_since < WANTED_MIN || now - part->rechecked_at < RECHECK_MIN)
		return;
	part->rechecked_at = now;
	recheck(directory, host);
}

/* Return: the host's index, an existing or a new one. */
static bool enlist(struct pvr_directory *directory, const char *name, struct pvr_error *err)
{
	struct static_directory *all = directory->backend;
	struct pvr_dir_host *host = pvr_dir_host_find(directory, name);

	if (host)
		return true;
	if (all->num == HOSTS_MAX)
		return pvr_fail(err, "more than %d hosts", HOSTS_MAX);
	host = pvr_dir_host_get(directory, name);
	if (!host)
		return pvr_fail(err, "host '%.80s': bad name, or out of memory", name);
	host_part(host)->index = all->num;
	all->hosts[all->num++] = host;
	return true;
}

bool pvr_directory_add_host(struct pvr_directory *directory, const char *name,
			    struct pvr_error *err)
{
	if (directory->ops != &pvr_directory_static)
		return true;
	if (!enlist(directory, name, err))
		return false;
	host_part(pvr_dir_host_find(directory, name))->named = true;
	return true;
}

/* ------------------------------------------------------------------------- file */

static bool check_host(struct pvr_directory *directory, const struct pvr_peers_host *rules,
		       struct pvr_error *err)
{
	const struct pvr_directory_env *env = &directory->env;

	return !strcmp(rules->name, env->name) ||
	       env->check_peer(env->opaque, rules->name, rules->address, err);
}

static bool list_host(struct pvr_directory *directory, const struct pvr_peers_host *rules,
		      struct pvr_error *err)
{
	const struct pvr_directory_env *env = &directory->env;
	struct static_host *part;

	if (!strcmp(rules->name, env->name))
		return true; /* this host itself: all hosts use the same file */
	if (!env->set_peer(env->opaque, rules->name, rules->address, err) ||
	    !enlist(directory, rules->name, err))
		return false;
	part = host_part(pvr_dir_host_find(directory, rules->name));
	part->listed = true;
	part->rules = rules;
	return true;
}

/* Calls @each for all hosts of @file until one returns false. */
static bool for_hosts(struct pvr_directory *directory, const struct pvr_peers_file *file,
		      bool (*each)(struct pvr_directory *directory,
				   const struct pvr_peers_host *rules, struct pvr_error *err),
		      struct pvr_error *err)
{
	struct static_directory *all = directory->backend;
	struct pvr_error why;
	size_t i;

	for (i = 0; i < file->num; i++) {
		if (!each(directory, &file->hosts[i], &why))
			return pvr_fail(err, "%s:%zu: %.400s", all->path, file->hosts[i].line,
					why.text);
	}
	return true;
}

/* Removes hosts that are not named any more and renumbers the others. */
static void drop_hosts(struct pvr_directory *directory)
{
	struct static_directory *all = directory->backend;
	size_t i, num = 0;

	for (i = 0; i < all->num; i++) {
		struct pvr_dir_host *host = all->hosts[i];

		if (host_part(host)->listed || host_part(host)->named) {
			host_part(host)->index = num;
			all->hosts[num++] = host;
			continue;
		}
		directory->env.forget_peer(directory->env.opaque, host->name);
		pvr_dir_host_put(directory, host);
	}
	all->num = num;
}

static bool is_believable(struct pvr_directory *directory, struct pvr_entry *entry)
{
	struct static_host *part = entry->owner ? host_part(entry->owner) : NULL;

	return part && (part->listed || part->named) &&
	       may_have(directory, entry->owner, &entry->node.key);
}

/* Called after the hosts have changed. */
static void review_entries(struct pvr_directory *directory)
{
	struct pvr_entry *entry, *next;

	for (entry = TAILQ_FIRST(&directory->entries.used); entry; entry = next) {
		next = TAILQ_NEXT(entry, used);
		if (is_believable(directory, entry))
			memset(entry->private, 0, sizeof(struct static_entry));
		else
			pvr_entry_forget(directory, entry);
	}
}

/* The file is valid; only memory or the number of hosts can be a problem. */
static void take_file(struct pvr_directory *directory, const struct pvr_peers_file *file)
{
	struct static_directory *all = directory->backend;
	struct pvr_error err;
	size_t i;

	for (i = 0; i < all->num; i++) {
		host_part(all->hosts[i])->listed = false;
		host_part(all->hosts[i])->rules = NULL;
	}
	pthread_mutex_lock(&directory->rules_lock);
	all->file = *file;
	pthread_mutex_unlock(&directory->rules_lock);
	if (!for_hosts(directory, &all->file, list_host, &err))
		pvr_directory_log(directory, PVR_LOG_ERR,
				  "%s; this host and all whose names follow are left out",
				  err.text);
	review_entries(directory);
	drop_hosts(directory);
}

static bool static_reload(struct pvr_directory *directory, struct pvr_directory_files *files,
			  struct pvr_error *err)
{
	struct static_directory *all = directory->backend;
	struct pvr_peers_file file, before = all->file;

	if (!all->path)
		return true;
	if (!pvr_peers_file_read(&file, all->path, err))
		return false;
	if (!for_hosts(directory, &file, check_host, err)) {
		pvr_peers_file_free(&file);
		return false;
	}
	take_file(directory, &file);
	pvr_peers_file_free(&before);
	files->peers = all->path;
	files->num_peers = file.num;
	return true;
}

static bool static_create(struct pvr_directory *directory,
			  const struct pvr_directory_settings *settings, struct pvr_error *err)
{
	struct static_directory *all = calloc(1, sizeof(*all));

	directory->backend = all;
	if (!all)
		return pvr_fail(err, "out of memory");
	if (!settings->peers_file)
		return true;
	all->path = strdup(settings->peers_file);
	if (!all->path)
		return pvr_fail(err, "out of memory");
	return pvr_peers_file_read(&all->file, all->path, err) &&
	       for_hosts(directory, &all->file, list_host, err);
}

static void static_destroy(struct pvr_directory *directory)
{
	struct static_directory *all = directory->backend;

	while (all->num)
		pvr_dir_host_put(directory, all->hosts[--all->num]);
	pvr_peers_file_free(&all->file);
	free(all->path);
	free(all);
}

const struct pvr_directory_ops pvr_directory_static = {
	.name = "static",
	.entry_size = sizeof(struct static_entry),
	.host_size = sizeof(struct static_host),
	.create = static_create,
	.destroy = static_destroy,
	.lookup = begin,
	.due = static_due,
	.located = static_located,
	.moved = static_moved,
	.doubted = static_doubted,
	.host_changed = static_host_changed,
	.host_wanted = static_host_wanted,
	.may_have = static_may_have,
	.reload = static_reload,
};
