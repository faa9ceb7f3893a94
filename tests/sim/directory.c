// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The directories of the hosts, in place of daemon/network.c. */
#include "directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "directory/directory.h"
#include "directory/etcd_settings.h"
#include "sim.h"

#define FIRST_FD_TEXT 64

struct node {
	struct sim_web_end end; /* owner of the loop */
	struct sim_directory *all;
	unsigned int number;
	struct pvr_loop *loop;
	struct pvr_directory *directory; /* NULL: no process runs */
	bool known[FG_WIRE_HOSTS]; /* hosts whose address it has */
	bool wanted[FG_WIRE_HOSTS]; /* hosts that are dialed, once they are known */
	bool up[FG_WIRE_HOSTS]; /* as the directory was told */
	bool located[UINT8_MAX + 1]; /* GIDs whose host is known, by their last bytes */
	bool reloads; /* the same file */
};

struct sim_directory {
	struct sim *sim;
	bool has_etcd;
	struct sim_web web; /* with etcd */
	int file; /* the peers file */
	char path[FIRST_FD_TEXT];
	struct fg_wire_directory ops;
	struct node node[FG_WIRE_HOSTS];
};

/* --------------------------------------------------------- callbacks of the engine */

static void resolve(void *opaque, const char *fabric, const uint8_t gid[16],
		    const struct pvr_host *from)
{
	struct node *node = opaque;

	if (node->directory && from)
		pvr_directory_resolve_for(node->directory, pvr_host_name(from), fabric, gid);
	else if (node->directory)
		pvr_directory_resolve(node->directory, fabric, gid);
	sim_loop_ring(node->loop);
}

static void announce(void *opaque, const char *fabric, const uint8_t gid[16], uint8_t gid_type,
		     const uint8_t mac[6], bool present)
{
	struct node *node = opaque;

	if (node->directory)
		pvr_directory_announce(node->directory, fabric, gid, gid_type, mac, present);
	sim_loop_ring(node->loop);
}

static bool may_have(void *opaque, const char *host, const char *fabric, const uint8_t gid[16])
{
	struct node *node = opaque;

	return node->directory && pvr_directory_may_have(node->directory, host, fabric, gid);
}

static enum pvr_claim claim_state(void *opaque, const struct pvr_state_claim *claim)
{
	struct node *node = opaque;

	sim_loop_ring(node->loop);
	return node->directory ? pvr_directory_claim(node->directory, claim) : PVR_CLAIM_NONE;
}

static void moved(void *opaque, struct pvr_host *peer, const char *fabric, const uint8_t gid[16])
{
	struct node *node = opaque;

	if (node->directory)
		pvr_directory_moved(node->directory, pvr_host_name(peer), fabric, gid);
	sim_loop_ring(node->loop);
}

static void handed_over(void *opaque, struct pvr_host *to, const char *fabric,
			const uint8_t gid[16])
{
	struct node *node = opaque;

	if (node->directory)
		pvr_directory_handed_over(node->directory, pvr_host_name(to), fabric, gid);
	sim_loop_ring(node->loop);
}

static void doubt(void *opaque, const struct pvr_host *peer, const char *fabric,
		  const uint8_t gid[16])
{
	struct node *node = opaque;

	if (node->directory)
		pvr_directory_doubt(node->directory, pvr_host_name(peer), fabric, gid);
	sim_loop_ring(node->loop);
}

static void need_host(void *opaque, const char *host, bool needs)
{
	struct node *node = opaque;

	if (node->directory)
		pvr_directory_need(node->directory, host, needs);
	sim_loop_ring(node->loop);
}

#define GID_OPS                                                                         \
	.resolve = resolve, .announce = announce, .may_have = may_have, .doubt = doubt, \
	.need_host = need_host, .moved = moved, .handed_over = handed_over

static const struct pvr_gid_ops gid_ops = { GID_OPS };
static const struct pvr_gid_ops claiming_gid_ops = { GID_OPS, .claim_state = claim_state };

static void located(void *opaque, struct pvr_host *peer, const char *fabric, const uint8_t gid[16],
		    uint8_t gid_type)
{
	struct node *node = opaque;

	if (node->directory)
		pvr_directory_located(node->directory, pvr_host_name(peer), fabric, gid, gid_type);
	sim_loop_ring(node->loop);
}

static void referred(void *opaque, struct pvr_host *peer, const char *address)
{
	struct node *node = opaque;

	if (node->directory)
		pvr_directory_refer(node->directory, pvr_host_name(peer), address);
	sim_loop_ring(node->loop);
}

static bool dial(void *opaque, const char *host);

static void want_host(void *opaque, struct pvr_host *peer, uint8_t dscp)
{
	struct node *node = opaque;

	if (!node->directory)
		return;
	dial(node, pvr_host_name(peer));
	pvr_directory_wanted(node->directory, pvr_host_name(peer));
	sim_loop_ring(node->loop);
}

static const struct pvr_host_ops host_ops = {
	.located = located,
	.referred = referred,
	.want = want_host,
};

/* ------------------------------------------------------ callbacks of the directory */

static struct fg_wire *wire_of(const struct node *node)
{
	return node->all->sim->wire;
}

static struct pvr_engine *engine_of(const struct node *node)
{
	return fg_wire_host(wire_of(node), node->number)->engine;
}

static unsigned int number_of(const struct node *node, const char *host)
{
	unsigned int number = 0;

	if (sscanf(host, "host%u", &number) != 1 || !number ||
	    number > node->all->sim->config.hosts)
		sim_fail(node->all->sim, "directory", "host%u: there is no host %s",
			 node->number + 1, host);
	return number - 1;
}

static struct pvr_host *remote(const struct node *node, const char *host)
{
	return fg_wire_remote_host(wire_of(node), node->number, number_of(node, host));
}

static int set_gid(void *opaque, const struct pvr_key *key, uint8_t type, enum pvr_gid_state state,
		   const char *host)
{
	static const char *const states[] = { "unknown", "absent", "at", "at, with others,",
					      "not at" };
	struct node *node = opaque;
	bool *located = &node->located[key->gid[15]];
	char text[PVR_KEY_TEXT];

	sim_trace(&node->all->sim->trace, "host%u: %s is %s %s", node->number + 1,
		  pvr_key_text(key, text), states[state], host ? host : "");
	if (!pvr_key_is_group(key)) {
		if (node->reloads && *located && state != PVR_GID_AT_HOST)
			sim_fail(node->all->sim, "reload", "host%u forgets where %s is",
				 node->number + 1, pvr_key_text(key, text));
		*located = state == PVR_GID_AT_HOST;
	}
	return pvr_engine_set_gid(engine_of(node), key->fabric, key->gid, type, state,
				  host ? remote(node, host) : NULL);
}

static bool check_peer(void *opaque, const char *host, const char *address, struct pvr_error *err)
{
	return number_of(opaque, host) < FG_WIRE_HOSTS;
}

static bool set_peer(void *opaque, const char *host, const char *address, struct pvr_error *err)
{
	struct node *node = opaque;

	node->known[number_of(node, host)] = true;
	pvr_host_set_address(remote(node, host), address);
	return true;
}

static void forget_peer(void *opaque, const char *host)
{
	struct node *node = opaque;

	if (node->reloads)
		sim_fail(node->all->sim, "reload", "host%u forgets %s, which is in its file",
			 node->number + 1, host);
	node->known[number_of(node, host)] = node->wanted[number_of(node, host)] = false;
}

static bool dial(void *opaque, const char *host)
{
	struct node *node = opaque;
	unsigned int other = number_of(node, host);

	if (node->known[other])
		node->wanted[other] = true;
	return node->known[other];
}

bool sim_directory_knows(const struct sim_directory *all, unsigned int from, unsigned int to)
{
	return from == to || all->node[from].known[to];
}

bool sim_directory_dials(const struct sim_directory *all, unsigned int from, unsigned int to)
{
	return all->node[from].known[to] && all->node[from].wanted[to];
}

static bool is_up_to(const struct node *node, unsigned int other)
{
	for (unsigned int slot = 0; slot < node->all->sim->config.slots; slot++)
		if (fg_wire_is_up(wire_of(node), node->number, other, slot))
			return true;
	return false;
}

static bool is_up(void *opaque, const char *host)
{
	return is_up_to(opaque, number_of(opaque, host));
}

static bool query(void *opaque, const char *host, const struct pvr_key *key)
{
	struct node *node = opaque;
	unsigned int other = number_of(node, host);

	if (!node->known[other])
		return false;
	for (unsigned int slot = 0; slot < node->all->sim->config.slots; slot++)
		if (fg_wire_is_up(wire_of(node), node->number, other, slot) &&
		    pvr_req_conn_gid_query(remote(node, host), PVR_PIPE_TCP, slot, key->fabric,
					   key->gid))
			return true;
	node->wanted[other] = true;
	return false;
}

static void rules_changed(void *opaque)
{
	pvr_engine_rules_changed(engine_of(opaque));
}

static void claimed(void *opaque, const struct pvr_state_claim *claim, enum pvr_claim result,
		    const char *detail)
{
	static const char *const results[] = { "none", "asked", "won", "stale", "lost", "failed" };
	const struct node *node = opaque;

	sim_trace(&node->all->sim->trace, "host%u: the claim of a state%s: %s %s", node->number + 1,
		  claim->runs_on ? " of its own" : "", results[result], detail);
	pvr_engine_state_claimed(engine_of(node), claim, result, detail);
}

static void write_log(void *opaque, enum pvr_log_level level, const char *text)
{
	const struct node *node = opaque;

	sim_trace(&node->all->sim->trace, "host%u: %s", node->number + 1, text);
	if (strstr(text, "of this host's keys") && !sim_etcd_has_lost(node->all->web.etcd))
		sim_fail(node->all->sim, "directory",
			 "host%u reports a loss, and etcd has lost nothing", node->number + 1);
}

/* ---------------------------------------------------------------- beside the hosts */

static void *node_of(void *opaque, unsigned int host)
{
	struct sim_directory *all = opaque;

	return &all->node[host];
}

/* Connections that went up or down. */
static bool note_connections(struct node *node)
{
	bool done = false;
	char name[16];

	for (unsigned int other = 0; other < node->all->sim->config.hosts; other++) {
		bool up = other != node->number && is_up_to(node, other);

		if (up == node->up[other])
			continue;
		node->up[other] = up;
		snprintf(name, sizeof(name), "host%u", other + 1);
		pvr_directory_changed(node->directory, name, up);
		done = true;
	}
	return done;
}

static bool step(void *opaque, unsigned int host)
{
	struct sim_directory *all = opaque;
	struct node *node = &all->node[host];
	bool done = all->has_etcd && sim_loop_step(all->web.loop);

	if (!node->directory)
		return done;
	done |= note_connections(node);
	return sim_loop_step(node->loop) || done;
}

static uint64_t deadline(void *opaque)
{
	struct sim_directory *all = opaque;
	uint64_t first = all->has_etcd ? sim_loop_deadline(all->web.loop) : PVR_NEVER;

	for (unsigned int i = 0; i < all->sim->config.hosts; i++)
		first = fg_sooner(first, sim_loop_deadline(all->node[i].loop));
	return first;
}

/* --------------------------------------------------------------------------- a life */

void sim_directory_start(struct sim_directory *all, unsigned int host)
{
	struct node *node = &all->node[host];
	struct pvr_etcd_settings etcd = {
		.urls = { "http://192.0.2.100:2379" },
		.num_urls = 1,
		.lease = all->sim->config.lease,
	};
	const struct pvr_directory_settings settings = {
		.peers_file = all->has_etcd ? NULL : all->path,
		.etcd = all->has_etcd ? &etcd : NULL,
	};
	char name[16], address[32];
	const struct pvr_directory_env env = {
		.loop = node->loop,
		.name = name,
		.address = address,
		.set_gid = set_gid,
		.check_peer = check_peer,
		.set_peer = set_peer,
		.forget_peer = forget_peer,
		.want = dial,
		.state = query,
		.is_up = is_up,
		.rules_changed = rules_changed,
		.claimed = claimed,
		.log = write_log,
		.opaque = node,
	};
	struct pvr_error err = { "" };

	sim_loop_set_clock(&fg_wire_host(all->sim->wire, 0)->now);
	snprintf(name, sizeof(name), "host%u", host + 1);
	snprintf(address, sizeof(address), "192.0.2.%u:7471", host + 1);
	pvr_engine_set_address(engine_of(node), address);
	memset(node->known, 0, sizeof(node->known));
	memset(node->wanted, 0, sizeof(node->wanted));
	memset(node->up, 0, sizeof(node->up));
	memset(node->located, 0, sizeof(node->located));
	node->directory = pvr_directory_create(&env, &settings, &err);
	if (!node->directory)
		fg_die("no directory: %s", err.text);
}

void sim_directory_stop(struct sim_directory *all, unsigned int host)
{
	pvr_directory_destroy(all->node[host].directory);
	all->node[host].directory = NULL;
}

bool sim_directory_reload(struct sim_directory *all, unsigned int host)
{
	struct node *node = all ? &all->node[host] : NULL;
	struct pvr_directory_files files;
	struct pvr_error err = { "" };

	if (!node || all->has_etcd)
		return false;
	sim_trace(&all->sim->trace, "host%u reads its file of peers again", host + 1);
	node->reloads = true;
	if (!pvr_directory_reload(node->directory, &files, &err))
		sim_fail(all->sim, "reload", "host%u: %s", host + 1, err.text);
	node->reloads = false;
	if (files.num_peers != all->sim->config.hosts)
		sim_fail(all->sim, "reload", "host%u: %zu hosts are in its file", host + 1,
			 files.num_peers);
	sim_loop_ring(node->loop);
	return true;
}

static void write_file(struct sim_directory *all)
{
	char text[64 * FG_WIRE_HOSTS];
	size_t len = 0;

	for (unsigned int i = 0; i < all->sim->config.hosts; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"[host host%u]\naddress = 192.0.2.%u\n", i + 1, i + 1);
	all->file = memfd_create("peers", MFD_CLOEXEC);
	if (all->file < 0 || write(all->file, text, len) != (ssize_t)len)
		fg_die("cannot write a file of peers");
	snprintf(all->path, sizeof(all->path), "/proc/self/fd/%d", all->file);
}

struct sim_directory *sim_directory_create(struct sim *sim)
{
	struct sim_directory *all = calloc(1, sizeof(*all));

	if (!all)
		fg_die("no memory for directories");
	all->sim = sim;
	all->file = -1;
	all->has_etcd = sim->config.directory == SIM_ETCD;
	all->ops = (struct fg_wire_directory){
		.gid_ops = all->has_etcd ? &claiming_gid_ops : &gid_ops,
		.host_ops = &host_ops,
		.of_host = node_of,
		.step = step,
		.deadline = deadline,
		.opaque = all,
	};
	sim_loop_set_clock(NULL);
	if (all->has_etcd)
		sim_web_init(&all->web, sim);
	else
		write_file(all);
	for (unsigned int i = 0; i < sim->config.hosts; i++) {
		struct node *node = &all->node[i];

		node->end = (struct sim_web_end){ &all->web, i };
		node->all = all;
		node->number = i;
		node->loop = sim_loop_create(&node->end);
	}
	return all;
}

void sim_directory_destroy(struct sim_directory *all)
{
	for (unsigned int i = 0; i < all->sim->config.hosts; i++)
		pvr_loop_destroy(all->node[i].loop);
	if (all->has_etcd)
		sim_web_exit(&all->web);
	if (all->file >= 0)
		close(all->file);
	sim_loop_set_clock(NULL);
	free(all);
}

const struct fg_wire_directory *sim_directory_ops(const struct sim_directory *all)
{
	return &all->ops;
}

struct sim_web *sim_directory_web(struct sim_directory *all)
{
	return all && all->has_etcd ? &all->web : NULL;
}
