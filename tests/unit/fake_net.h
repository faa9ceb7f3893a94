/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A daemon for a directory to be tested in: hosts that answer or not, an engine that notes what it is told. */
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
	size_t halves; /* told of members of groups that others follow */
	struct fake_host hosts[FAKE_HOSTS];
	size_t num_hosts;
	char log[8192];
};

void fake_net_init(struct fake_net *net);
/* With a directory of its own; fails the test if that cannot be. */
void fake_net_start(struct fake_net *net, const struct pvr_directory_settings *settings);
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
/* NULL: nothing was ever said of it. */
struct fake_gid *fake_gid(struct fake_net *net, const char *fabric, const char *gid);
bool fake_is_at(struct fake_net *net, const char *fabric, const char *gid, const char *host);
bool fake_is_nowhere(struct fake_net *net, const char *fabric, const char *gid);
bool fake_is_unknown(struct fake_net *net, const char *fabric, const char *gid);

/* Run the loop so long. */
void fake_run(struct fake_net *net, unsigned int ms);
/* Until the condition is true; fails the test after ten seconds. */
#define fake_until(net, condition)                                                                \
	do {                                                                                      \
		uint64_t fake_end = pvr_loop_now() + 10 * PVR_SEC;                                \
		while (!(condition)) {                                                            \
			if (pvr_loop_now() > fake_end)                                            \
				fail_msg("not within 10 s: %s; log: %s", #condition, (net)->log); \
			fake_run(net, 2);                                                         \
		}                                                                                 \
	} while (0)

#endif /* FAKE_NET_H */
