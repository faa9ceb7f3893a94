/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The interface of the directory and its backends. Context: the directory's thread. */
#ifndef PVR_DIRECTORY_BACKEND_H
#define PVR_DIRECTORY_BACKEND_H

#include <pthread.h>

#include "base/address.h"
#include "base/ratelimit.h"
#include "directory/directory.h"
#include "directory/entry.h"
#include "directory/own_gids.h"
#include "directory/peers_file.h"
#include "directory/queue.h"

/* host_changed() and all ops below it may be NULL. */
struct pvr_directory_ops {
	const char *name;
	size_t entry_size, host_size; /* bytes of private[] of each */
	/*
	 * Sets directory->backend. False with @err filled; destroy() is called in both
	 * cases.
	 */
	bool (*create)(struct pvr_directory *directory,
		       const struct pvr_directory_settings *settings, struct pvr_error *err);
	/* Called after the last entry is dropped. */
	void (*destroy)(struct pvr_directory *directory);
	/* Looks up an entry in state ASKING. */
	void (*lookup)(struct pvr_directory *directory, struct pvr_entry *entry);
	/* The entry is about to be freed. */
	void (*drop)(struct pvr_directory *directory, struct pvr_entry *entry);
	/*
	 * The deadline of the entry has passed. The directory handles PVR_DUE_ABSENT
	 * itself.
	 */
	void (*due)(struct pvr_directory *directory, struct pvr_entry *entry, enum pvr_due due);
	/* @host reports that it has the GID as @type; 0: that it does not. */
	void (*located)(struct pvr_directory *directory, struct pvr_entry *entry,
			struct pvr_dir_host *host, uint8_t type);
	/*
	 * The owner or a member reports that it lost the GID. The engine has dropped it
	 * already.
	 */
	void (*moved)(struct pvr_directory *directory, struct pvr_entry *entry,
		      struct pvr_dir_host *host);
	/*
	 * @host, which is not the entry's owner, sends as the GID. NULL: the backend hears of
	 * each change.
	 */
	void (*doubted)(struct pvr_directory *directory, struct pvr_entry *entry,
			struct pvr_dir_host *host);
	/* A connection to @host is needed. NULL: all hosts are always known. */
	void (*host_needed)(struct pvr_directory *directory, struct pvr_dir_host *host);
	/* As pvr_directory_refer(). NULL: all hosts are always known. */
	void (*referred)(struct pvr_directory *directory, const char *host, const char *address);
	void (*host_changed)(struct pvr_directory *directory, struct pvr_dir_host *host);
	void (*host_wanted)(struct pvr_directory *directory, struct pvr_dir_host *host);
	void (*host_gone)(struct pvr_directory *directory, struct pvr_dir_host *host);
	void (*own_changed)(struct pvr_directory *directory);
	/* The queue may have claims of states. NULL: hosts cannot agree on them. */
	void (*claims_changed)(struct pvr_directory *directory);
	/* As pvr_directory_may_have(), without the policy; rules_lock is held. */
	bool (*may_have)(struct pvr_directory *directory, const char *host,
			 const struct pvr_key *key);
	/* As pvr_directory_reload(). */
	bool (*reload)(struct pvr_directory *directory, struct pvr_directory_files *files,
		       struct pvr_error *err);
	void (*leave)(struct pvr_directory *directory);
	void (*stats)(struct pvr_directory *directory, struct pvr_directory_stats *stats);
};

/* Hosts that are known because a connection to them was wanted. */
#define PVR_STRANGERS 64

struct pvr_directory {
	struct pvr_directory_env env; /* with copies of its strings */
	char name[PVR_HOST_NAME_MAX], address[PVR_ADDRESS_TEXT];
	const struct pvr_directory_ops *ops;
	void *backend;
	struct pvr_dir_queue queue;
	struct pvr_own_gids own;
	struct pvr_entries entries;
	struct pvr_dir_hosts hosts;
	char strangers[PVR_STRANGERS][PVR_HOST_NAME_MAX]; /* each one is needed; "": none */
	unsigned int next_stranger; /* index, modulo PVR_STRANGERS */
	pthread_mutex_t rules_lock; /* held to change the policy and the peers file */
	char *policy_path; /* NULL: no policy */
	struct pvr_peers_file policy;
	struct pvr_loop_timer timer; /* for due entries and waiting queries */
	/* Queries that may be looked up now; refilled over time. */
	uint64_t credit, credit_at;
	uint64_t lookups, refused;
	bool ending;
	struct pvr_ratelimit ratelimit, refusals; /* of log lines; those of refused claims */
};

extern const struct pvr_directory_ops pvr_directory_static;
extern const struct pvr_directory_ops pvr_directory_etcd;

/* Rate-limited: other hosts and guests can cause these lines. */
__attribute__((format(printf, 3, 4))) void
pvr_directory_log(struct pvr_directory *directory, enum pvr_log_level level, const char *fmt, ...);
/* Counts and logs a claim of @host that is refused. */
void pvr_directory_refuse(struct pvr_directory *directory, const struct pvr_key *key,
			  const char *host, const char *why);
/* Return: whether the policy allows that @host has the GID, or is a member of the group. */
static inline bool pvr_directory_allows(const struct pvr_directory *directory, const char *host,
					const struct pvr_key *key)
{
	return !directory->policy_path || pvr_policy_allows(&directory->policy, host, key);
}
/* Recomputes the timer's deadline. */
void pvr_directory_rearm(struct pvr_directory *directory);

static inline const char *pvr_directory_own_name(const struct pvr_directory *directory)
{
	return directory->env.name;
}

#endif /* PVR_DIRECTORY_BACKEND_H */
