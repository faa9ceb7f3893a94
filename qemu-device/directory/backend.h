/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Between the directory and what it looks things up with. All in the directory's thread. */
#ifndef PVR_DIRECTORY_BACKEND_H
#define PVR_DIRECTORY_BACKEND_H

#include "base/address.h"
#include "base/ratelimit.h"
#include "directory/directory.h"
#include "directory/entry.h"
#include "directory/own_gids.h"
#include "directory/queue.h"

/* Those that may be NULL do nothing then. */
struct pvr_directory_ops {
	const char *name;
	size_t entry_size, host_size; /* of what it keeps with each */
	/* Sets directory->backend. False with @err filled; destroy() is called all the same. */
	bool (*create)(struct pvr_directory *directory,
		       const struct pvr_directory_settings *settings, struct pvr_error *err);
	/* All entries are gone. */
	void (*destroy)(struct pvr_directory *directory);
	/* Look up an entry that is ASKING. */
	void (*lookup)(struct pvr_directory *directory, struct pvr_entry *entry);
	/* The entry goes away. */
	void (*drop)(struct pvr_directory *directory, struct pvr_entry *entry);
	/* Its time has come, but for ABSENT, which the directory does itself. */
	void (*due)(struct pvr_directory *directory, struct pvr_entry *entry, enum pvr_due due);
	/* @host says that it has it as @type, or not: 0. */
	void (*located)(struct pvr_directory *directory, struct pvr_entry *entry,
			struct pvr_dir_host *host, uint8_t type);
	/* The owner, or a member, says that it has it no more; the engine has forgotten it. */
	void (*moved)(struct pvr_directory *directory, struct pvr_entry *entry,
		      struct pvr_dir_host *host);
	void (*host_changed)(struct pvr_directory *directory,
			     struct pvr_dir_host *host); /* may be NULL */
	void (*host_wanted)(struct pvr_directory *directory, struct pvr_dir_host *host); /* ditto */
	void (*host_gone)(struct pvr_directory *directory, struct pvr_dir_host *host); /* ditto */
	void (*own_changed)(struct pvr_directory *directory); /* ditto */
	/* ditto; as pvr_directory_reload() */
	bool (*reload)(struct pvr_directory *directory, const char **file, size_t *hosts,
		       struct pvr_error *err);
	void (*leave)(struct pvr_directory *directory); /* ditto */
	void (*stats)(struct pvr_directory *directory,
		      struct pvr_directory_stats *stats); /* ditto */
};

struct pvr_directory {
	struct pvr_directory_env env; /* with strings of our own */
	char name[PVR_REMOTE_NAME_MAX], address[PVR_ADDRESS_TEXT];
	const struct pvr_directory_ops *ops;
	void *backend;
	struct pvr_dir_queue queue;
	struct pvr_own_gids own;
	struct pvr_entries entries;
	struct pvr_dir_hosts hosts;
	struct pvr_loop_timer timer; /* of entries that are due, and of questions that wait */
	/* Questions that may be looked up now; grows with time. */
	uint64_t credit, credit_at;
	uint64_t lookups, refused;
	bool ending;
	struct pvr_ratelimit ratelimit;
};

extern const struct pvr_directory_ops pvr_directory_static;
extern const struct pvr_directory_ops pvr_directory_etcd;

/* What others cause is said a few times in a while only. */
__attribute__((format(printf, 3, 4))) void
pvr_directory_log(struct pvr_directory *directory, enum pvr_log_level level, const char *fmt, ...);
/* @host claims to have it, and is not believed. */
void pvr_directory_refuse(struct pvr_directory *directory, const struct pvr_key *key,
			  const char *host, const char *why);
/* Look at deadlines again. */
void pvr_directory_rearm(struct pvr_directory *directory);

static inline const char *pvr_directory_own_name(const struct pvr_directory *directory)
{
	return directory->env.name;
}

#endif /* PVR_DIRECTORY_BACKEND_H */
