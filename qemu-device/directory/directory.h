/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The directory: which other host has which GID.
 *
 * DOC: how it works
 *
 * Workers call pvr_directory_resolve(), which queues a query. The directory's thread, the
 * first one of the daemon, keeps a cache of resolved GIDs. A backend looks up other GIDs:
 * `static` queries the hosts of a file, `etcd` reads a database that all hosts write to.
 * Results go to the engine, which keeps them until they are changed or withdrawn. So no
 * packet waits for a directory that is down.
 *
 * The backend keeps the cache up to date, by a watch or by repeated queries. The absence of a
 * GID is cached for one second. The cache is bounded: the least recently used entry
 * is dropped first, and looked up again when needed.
 *
 * A claim is accepted if the rules of the backend allow it and no other connected host has
 * the GID. Otherwise it is refused and logged.
 */
#ifndef PVR_DIRECTORY_DIRECTORY_H
#define PVR_DIRECTORY_DIRECTORY_H

#include "base/error.h"
#include "base/loop.h"
#include "directory/key.h"
#include "pipe.h"

#define PVR_DIRECTORY_CACHE 65536 /* GIDs of other hosts */
#define PVR_DIR_HOSTS_MAX 16384

struct pvr_directory;

/* Callbacks into the daemon, all in the thread of @loop. */
struct pvr_directory_env {
	struct pvr_loop *loop;
	const char *name; /* of this host */
	const char *address; /* published address; "": other hosts cannot or need not connect */
	/* As pvr_engine_set_gid(). @host NULL: @state needs no remote. */
	int (*set_gid)(void *opaque, const struct pvr_key *key, uint8_t type,
		       enum pvr_gid_state state, const char *host);
	/* As pvr_peers_*(). */
	bool (*check_peer)(void *opaque, const char *host, const char *address,
			   struct pvr_error *err);
	bool (*set_peer)(void *opaque, const char *host, const char *address,
			 struct pvr_error *err);
	void (*forget_peer)(void *opaque, const char *host);
	bool (*want)(void *opaque, const char *host);
	bool (*state)(void *opaque, const char *host, const struct pvr_key *key);
	/*
	 * Return: whether a connection to the host is up. pvr_directory_changed() reports
	 * changes.
	 */
	bool (*is_up)(void *opaque, const char *host);
	/* As pvr_engine_rules_changed(). NULL: nothing follows the rules. */
	void (*rules_changed)(void *opaque);
	/* As pvr_engine_state_claimed(). */
	void (*claimed)(void *opaque, const struct pvr_state_claim *claim, enum pvr_claim result,
			const char *detail);
	void (*log)(void *opaque, enum pvr_log_level level, const char *text);
	void *opaque;
};

/* Delays in ns; 0: the default. Tests use shorter ones. */
struct pvr_directory_timing {
	uint64_t round; /* until hosts that have not responded are queried again */
	uint64_t absent; /* how long the absence of a GID is cached */
	uint64_t group; /* interval between queries for the members of a group */
	uint64_t found; /* interval between checks that a host still has a GID */
	uint64_t verify; /* time for a host to confirm that it still has a GID */
};

struct pvr_etcd_settings;

struct pvr_directory_settings {
	const char *peers_file; /* NULL: none */
	const char *policy_file; /* the GIDs that each host may have; NULL: any */
	const struct pvr_etcd_settings *etcd; /* NULL: none */
	size_t cache; /* entries; 0: PVR_DIRECTORY_CACHE */
	struct pvr_directory_timing timing;
};

/*
 * Without file and etcd, the hosts added by pvr_directory_add_host() are queried. @settings
 * is not used after the call. Return: NULL with @err filled on failure.
 */
struct pvr_directory *pvr_directory_create(const struct pvr_directory_env *env,
					   const struct pvr_directory_settings *settings,
					   struct pvr_error *err);
/* No other thread may call the directory any more. */
void pvr_directory_destroy(struct pvr_directory *directory);

/* Any thread, also with locks held; see pvr_host_ops. Hosts are identified by name. */
void pvr_directory_resolve(struct pvr_directory *directory, const char *fabric,
			   const uint8_t gid[16]);
/* The same for a frame of @host, within that host's quota. */
void pvr_directory_resolve_for(struct pvr_directory *directory, const char *host,
			       const char *fabric, const uint8_t gid[16]);
void pvr_directory_announce(struct pvr_directory *directory, const char *fabric,
			    const uint8_t gid[16], uint8_t type, const uint8_t mac[6],
			    bool present);
void pvr_directory_located(struct pvr_directory *directory, const char *host, const char *fabric,
			   const uint8_t gid[16], uint8_t type);
void pvr_directory_moved(struct pvr_directory *directory, const char *host, const char *fabric,
			 const uint8_t gid[16]);
/* An adapter here had the GID until @host took the adapter: an absence that is cached is older. */
void pvr_directory_handed_over(struct pvr_directory *directory, const char *host,
			       const char *fabric, const uint8_t gid[16]);
/* The host sends as this GID, which is located at another one. */
void pvr_directory_doubt(struct pvr_directory *directory, const char *host, const char *fabric,
			 const uint8_t gid[16]);
/* The host stays known while more calls had @needs set than not. */
void pvr_directory_need(struct pvr_directory *directory, const char *host, bool needs);
/* Connections to the host will be needed, and another host has told its address. */
void pvr_directory_refer(struct pvr_directory *directory, const char *host, const char *address);
void pvr_directory_wanted(struct pvr_directory *directory, const char *host);
/* As claim_state() of struct pvr_gid_ops. */
enum pvr_claim pvr_directory_claim(struct pvr_directory *directory,
				   const struct pvr_state_claim *claim);

/* Return: whether the rules let the host have the GID. Any thread, also with locks held. */
bool pvr_directory_may_have(struct pvr_directory *directory, const char *host, const char *fabric,
			    const uint8_t gid[16]);

/* The connection to a host went up or down. Context: the loop's thread. */
void pvr_directory_changed(struct pvr_directory *directory, const char *host, bool up);
/* Adds a host whose address the daemon has already. Only for `static`. */
bool pvr_directory_add_host(struct pvr_directory *directory, const char *host,
			    struct pvr_error *err);
/* The files that were read again; NULL without one. */
struct pvr_directory_files {
	const char *peers, *policy;
	size_t num_peers, num_policy; /* hosts */
};

/*
 * Reads the peers file and the policy again. Return: false with @err filled if a file is
 * invalid; the earlier contents of both stay in effect.
 */
bool pvr_directory_reload(struct pvr_directory *directory, struct pvr_directory_files *files,
			  struct pvr_error *err);
/*
 * Withdraws this host's keys, so that other hosts need not wait for the lease to expire.
 * Takes 0.5 s at most.
 */
void pvr_directory_leave(struct pvr_directory *directory);

struct pvr_directory_stats {
	const char *backend;
	size_t entries, hosts, own;
	uint64_t lookups; /* started */
	uint64_t refused; /* claims */
	uint64_t dropped; /* queries dropped because the queue was full */
	/* Only for etcd. */
	const char *url; /* NULL: no etcd */
	bool connected, registered;
	size_t watches;
	uint64_t requests, failures, events, tx_bytes, rx_bytes;
};

void pvr_directory_get_stats(struct pvr_directory *directory, struct pvr_directory_stats *stats);

#endif /* PVR_DIRECTORY_DIRECTORY_H */
