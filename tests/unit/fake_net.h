/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The daemon around a tested directory: hosts with or without replies, an engine that records. */
#ifndef FAKE_NET_H
#define FAKE_NET_H

#include "directory/directory.h"

#define FAKE_HOSTS 32
#define FAKE_GIDS 64

struct fake_gid {
	struct pvr_key key;
	uint8_t type;
	enum pvr_gid_state state;
	char hosts[FAKE_HOSTS][PVR_HOST_NAME_MAX]; /* AT_HOST: the hosts with this GID */
	size_t num_hosts;
	unsigned int told; /* times */
	bool more; /* the last time was not the end of it */
};

struct fake_host {
	char name[PVR_HOST_NAME_MAX], address[64];
	bool up, silent; /* connected; but never answers */
	struct pvr_key has[FAKE_GIDS];
	size_t num_has;
	unsigned int asked; /* times */
	bool wanted, forgotten;
};

struct fake_net {
	struct pvr_loop *loop;
	struct pvr_directory *directory;
	struct fake_gid gids[FAKE_GIDS]; /* what the engine was told; beyond: only counted */
	size_t num_gids, told, unknown;
	size_t rules_changed; /* how often the engine was told so */
	size_t halves; /* told of members of groups that others follow */
	struct fake_host hosts[FAKE_HOSTS];
	size_t num_hosts;
	char log[8192];
	char path[32]; /* of the peers file; empty: there is none */
};

void fake_net_init(struct fake_net *net);
/* With a directory of its own, and a peers file of this text or NULL; fails the test if it cannot. */
void fake_net_start(struct fake_net *net, const char *peers,
		    struct pvr_directory_settings settings);
struct pvr_directory *fake_net_try(struct fake_net *net,
				   const struct pvr_directory_settings *settings,
				   struct pvr_error *err);
void fake_net_exit(struct fake_net *net);

struct fake_host *fake_host(struct fake_net *net, const char *name);
void fake_host_up(struct fake_net *net, const char *name, bool up);
void fake_host_add(struct fake_net *net, const char *name, const char *fabric, const char *gid);
void fake_host_remove(struct fake_net *net, const char *name, const char *fabric, const char *gid);

void fake_key(struct pvr_key *key, const char *fabric, const char *gid);
void fake_resolve(struct fake_net *net, const char *fabric, const char *gid);
/* Reports of @host. */
void fake_located(struct fake_net *net, const char *host, const char *fabric, const char *gid);
/* The host sends as the GID, which is located elsewhere. */
void fake_doubt(struct fake_net *net, const char *host, const char *fabric, const char *gid);
/* An adapter here had the GID, and has been handed over to the host. */
void fake_handed_over(struct fake_net *net, const char *host, const char *fabric, const char *gid);
void fake_moved(struct fake_net *net, const char *host, const char *fabric, const char *gid);
/* NULL: the engine has got no report of it. */
struct fake_gid *fake_gid(struct fake_net *net, const char *fabric, const char *gid);
bool fake_is_at(struct fake_net *net, const char *fabric, const char *gid, const char *host);
bool fake_is_nowhere(struct fake_net *net, const char *fabric, const char *gid);
bool fake_is_unknown(struct fake_net *net, const char *fabric, const char *gid);

/* Run the loop so long. */
void fake_run(struct fake_net *net, unsigned int ms);
/* For slow machines: no test takes as long unless it fails. */
#define FAKE_PATIENCE (60 * PVR_SEC)
/* Until the condition is true; fails the test if it does not become true. */
#define fake_until(net, condition)                                                            \
	do {                                                                                  \
		uint64_t fake_end = pvr_loop_now() + FAKE_PATIENCE;                           \
		while (!(condition)) {                                                        \
			if (pvr_loop_now() > fake_end)                                        \
				fail_msg("not in time: %s; log: %s", #condition, (net)->log); \
			fake_run(net, 2);                                                     \
		}                                                                             \
	} while (0)

#endif /* FAKE_NET_H */
