/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The directory: which other host has which GID.
 *
 * DOC: how it works
 *
 * Workers ask (pvr_directory_resolve()); the question waits in an queue. The directory's
 * thread, the first one of the daemon, keeps a cache of what has been asked for. What is
 * not in there it looks up by a backend: `static` asks the hosts of a file themselves,
 * `etcd` a data base that all hosts write to. Answers go to the engine, which remembers
 * them until told otherwise, so packets never wait for a directory that is down.
 *
 * What is in the cache is kept true by the backend, by watching it or by asking again;
 * that nobody has a GID is believed for a second. The cache is bounded: what was not
 * asked for or changed for the longest time goes first, and is asked for again if it is
 * needed.
 *
 * A claim is believed if the backend's rules allow it, and if no other host that is alive
 * has the GID; else it is refused, and logged.
 */
#ifndef PVR_DIRECTORY_DIRECTORY_H
#define PVR_DIRECTORY_DIRECTORY_H

#include "base/error.h"
#include "base/loop.h"
#include "directory/key.h"
#include "pipe.h"

#define PVR_DIRECTORY_CACHE 65536 /* GIDs of others */
#define PVR_DIR_HOSTS_MAX 16384

struct pvr_directory;

/* What it needs of the daemon; all called in the thread of @loop. */
struct pvr_directory_env {
	struct pvr_loop *loop;
	const char *name; /* of this host */
	const char *address; /* where others find it; "": they cannot, or need not */
	/* As pvr_engine_set_gid(); @host NULL where no remote is meant. */
	int (*set_gid)(void *opaque, const struct pvr_key *key, uint8_t type, enum pvr_where where,
		       const char *host);
	/* As pvr_peers_*(). */
	bool (*check_peer)(void *opaque, const char *host, const char *address,
			   struct pvr_error *err);
	bool (*set_peer)(void *opaque, const char *host, const char *address,
			 struct pvr_error *err);
	void (*forget_peer)(void *opaque, const char *host);
	bool (*want)(void *opaque, const char *host);
	bool (*where)(void *opaque, const char *host, const struct pvr_key *key);
	/* We are connected to it now; later pvr_directory_changed() tells. */
	bool (*is_up)(void *opaque, const char *host);
	void (*log)(void *opaque, enum pvr_log_level level, const char *text);
	void *opaque;
};

/* Zero: as by default. Tests are in a hurry. */
struct pvr_directory_timing {
	uint64_t round; /* until hosts that have not answered are asked again */
	uint64_t absent; /* that nobody has a GID is believed */
	uint64_t group; /* until it is asked again who is in a group */
	uint64_t found; /* until it is asked again whether a host still has a GID */
	uint64_t verify; /* a host may take to say that it still has one */
};

struct pvr_etcd_settings;

struct pvr_directory_settings {
	const char *peers_file; /* NULL: none */
	const struct pvr_etcd_settings *etcd; /* NULL: none */
	size_t cache; /* entries; 0: PVR_DIRECTORY_CACHE */
	struct pvr_directory_timing timing;
};

/*
 * With neither file nor etcd: hosts that are named one by one (pvr_directory_add_host())
 * are asked. NULL with @err filled. The settings are not needed afterwards.
 */
struct pvr_directory *pvr_directory_create(const struct pvr_directory_env *env,
					   const struct pvr_directory_settings *settings,
					   struct pvr_error *err);
/* No other thread calls it any more. */
void pvr_directory_destroy(struct pvr_directory *directory);

/* From any thread, with locks held; see pvr_net_ops. Hosts are called by their names. */
void pvr_directory_resolve(struct pvr_directory *directory, const char *fabric,
			   const uint8_t gid[16]);
void pvr_directory_announce(struct pvr_directory *directory, const char *fabric,
			    const uint8_t gid[16], uint8_t type, const uint8_t mac[6],
			    bool present);
void pvr_directory_located(struct pvr_directory *directory, const char *host, const char *fabric,
			   const uint8_t gid[16], uint8_t type);
void pvr_directory_moved(struct pvr_directory *directory, const char *host, const char *fabric,
			 const uint8_t gid[16]);
void pvr_directory_wanted(struct pvr_directory *directory, const char *host);

/* In the loop's thread. */
void pvr_directory_changed(struct pvr_directory *directory, const char *host, bool up);
/* A host whose address the daemon knows by itself, to be asked. For `static`. */
bool pvr_directory_add_host(struct pvr_directory *directory, const char *host,
			    struct pvr_error *err);
/*
 * Read the file again: @file, which has @hosts; NULL: there is none. False with @err filled: there
 * is a mistake in it, and what was there before stays.
 */
bool pvr_directory_reload(struct pvr_directory *directory, const char **file, size_t *hosts,
			  struct pvr_error *err);
/* Begin to leave: others need not wait until this host is missed. Takes half a second at most. */
void pvr_directory_leave(struct pvr_directory *directory);

struct pvr_directory_stats {
	const char *backend;
	size_t entries, hosts, own;
	uint64_t lookups; /* begun */
	uint64_t refused; /* claims */
	uint64_t dropped; /* questions, because there were too many */
	/* etcd only */
	const char *url; /* NULL: no etcd */
	bool connected, registered;
	size_t watches;
	uint64_t requests, failures, events, tx_bytes, rx_bytes;
};

void pvr_directory_get_stats(struct pvr_directory *directory, struct pvr_directory_stats *stats);

#endif /* PVR_DIRECTORY_DIRECTORY_H */
