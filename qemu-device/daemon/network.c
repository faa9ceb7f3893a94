// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Other hosts: connections, a directory, and the callbacks of the engine. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/network.h"

static_assert(PVR_DIR_HOSTS_MAX <= PVR_PEERS_MAX, "each host of the directory is a peer");

/*
 * Callbacks of the engine. While workers run, network->net and network->directory are
 * set. When adapters are destroyed at the end, both are NULL.
 */

static void resolve(void *opaque, const char *fabric, const uint8_t gid[16],
		    const struct pvr_host *from)
{
	struct pvr_network *network = opaque;

	if (network->directory && from)
		pvr_directory_resolve_for(network->directory, pvr_host_name(from), fabric, gid);
	else if (network->directory)
		pvr_directory_resolve(network->directory, fabric, gid);
}

static void announce(void *opaque, const char *fabric, const uint8_t gid[16], uint8_t gid_type,
		     const uint8_t mac[6], bool present)
{
	struct pvr_network *network = opaque;

	if (network->directory)
		pvr_directory_announce(network->directory, fabric, gid, gid_type, mac, present);
}

static void located(void *opaque, struct pvr_host *peer, const char *fabric, const uint8_t gid[16],
		    uint8_t gid_type)
{
	struct pvr_network *network = opaque;

	if (network->directory)
		pvr_directory_located(network->directory, pvr_host_name(peer), fabric, gid,
				      gid_type);
}

static bool may_have(void *opaque, const char *host, const char *fabric, const uint8_t gid[16])
{
	struct pvr_network *network = opaque;

	return network->directory && pvr_directory_may_have(network->directory, host, fabric, gid);
}

static enum pvr_claim claim_state(void *opaque, const struct pvr_state_claim *claim)
{
	struct pvr_network *network = opaque;

	return network->directory ? pvr_directory_claim(network->directory, claim) : PVR_CLAIM_NONE;
}

static void moved(void *opaque, struct pvr_host *peer, const char *fabric, const uint8_t gid[16])
{
	struct pvr_network *network = opaque;

	if (network->directory)
		pvr_directory_moved(network->directory, pvr_host_name(peer), fabric, gid);
}

static void handed_over(void *opaque, struct pvr_host *to, const char *fabric,
			const uint8_t gid[16])
{
	struct pvr_network *network = opaque;

	if (network->directory)
		pvr_directory_handed_over(network->directory, pvr_host_name(to), fabric, gid);
}

static void doubt(void *opaque, const struct pvr_host *peer, const char *fabric,
		  const uint8_t gid[16])
{
	struct pvr_network *network = opaque;

	if (network->directory)
		pvr_directory_doubt(network->directory, pvr_host_name(peer), fabric, gid);
}

static void need_host(void *opaque, const char *host, bool needs)
{
	struct pvr_network *network = opaque;

	if (network->directory)
		pvr_directory_need(network->directory, host, needs);
}

static void request_host(void *opaque, struct pvr_host *peer, uint8_t dscp)
{
	struct pvr_network *network = opaque;

	if (!network->directory)
		return;
	pvr_net_request_dial(network->net, peer, dscp);
	pvr_directory_wanted(network->directory, pvr_host_name(peer));
}

/* A backend without one of these functions ignores the call. */
#define GID_OPS                                                                         \
	.resolve = resolve, .announce = announce, .may_have = may_have, .doubt = doubt, \
	.need_host = need_host, .moved = moved, .handed_over = handed_over

static const struct pvr_gid_ops gid_ops = { GID_OPS };

/* With etcd. Without claims, destinations of one state ask each other. */
static const struct pvr_gid_ops claiming_gid_ops = { GID_OPS, .claim_state = claim_state };

static void referred(void *opaque, struct pvr_host *peer, const char *address)
{
	struct pvr_network *network = opaque;

	if (network->directory)
		pvr_directory_refer(network->directory, pvr_host_name(peer), address);
}

static const struct pvr_host_ops host_ops = {
	.located = located,
	.referred = referred,
	.want = request_host,
};

/* ----------------------------------------------- callbacks of the directory */

static struct pvr_peers *peers_of(void *opaque)
{
	return pvr_net_peers(((struct pvr_network *)opaque)->net);
}

static int set_gid(void *opaque, const struct pvr_key *key, uint8_t type, enum pvr_gid_state state,
		   const char *host)
{
	struct pvr_network *network = opaque;
	struct pvr_host *peer = host ? pvr_peers_host_of(peers_of(network), host) : NULL;

	if (host && !peer)
		return -ENOMEM;
	return pvr_engine_set_gid(network->daemon->engine, key->fabric, key->gid, type, state,
				  peer);
}

static bool check_peer(void *opaque, const char *host, const char *address, struct pvr_error *err)
{
	return pvr_peers_check(peers_of(opaque), host, address, err);
}

static bool set_peer(void *opaque, const char *host, const char *address, struct pvr_error *err)
{
	/* An adapter that comes from it asks it, before there was a connection. */
	return pvr_peers_set(peers_of(opaque), host, address, err) &&
	       (pvr_peers_host_of(peers_of(opaque), host) ||
		pvr_fail(err, "out of memory, or too many hosts"));
}

static void forget_peer(void *opaque, const char *host)
{
	pvr_peer_gone_unwatch(peers_of(opaque), host);
}

static bool dial_host(void *opaque, const char *host)
{
	return pvr_peers_dial(peers_of(opaque), host);
}

static bool state(void *opaque, const char *host, const struct pvr_key *key)
{
	return pvr_peer_gone_where(peers_of(opaque), host, key->fabric, key->gid);
}

static bool is_up(void *opaque, const char *host)
{
	return pvr_peers_is_up(peers_of(opaque), host);
}

static void rules_changed(void *opaque)
{
	pvr_engine_rules_changed(((struct pvr_network *)opaque)->daemon->engine);
}

static void claimed(void *opaque, const struct pvr_state_claim *claim, enum pvr_claim result,
		    const char *detail)
{
	struct pvr_network *network = opaque;

	pvr_engine_state_claimed(network->daemon->engine, claim, result, detail);
}

static void log_directory(void *opaque, enum pvr_log_level level, const char *text)
{
	pvrd_log(level, NULL, "%s", text);
}

static void changed(void *opaque, const char *name, struct pvr_host *peer, bool up)
{
	struct pvr_network *network = opaque;

	if (network->directory)
		pvr_directory_changed(network->directory, name, up);
}

static const struct pvr_peers_ops peers_ops = { .changed = changed };

/* ------------------------------------------------------------------ life cycle */

static void log_net(enum pvr_log_level level, const char *host, const char *line)
{
	pvrd_log_host(level, host, "%s", line);
}

static bool make_net(struct pvr_network *network, const struct pvr_net_settings *settings,
		     struct pvr_error *err)
{
	struct pvr_daemon *daemon = network->daemon;
	struct pvr_loop *loops[PVR_MAX_WORKERS];
	struct pvr_net_env env = {
		.engine = daemon->engine,
		.loop = daemon->loop,
		.worker_loops = loops,
		.workers = daemon->pool.num,
		.faults_allowed = daemon->faults_allowed,
		.log = log_net,
	};
	unsigned int i;

	for (i = 0; i < env.workers; i++)
		loops[i] = daemon->pool.threads[i].loop;
	network->net = pvr_net_create(&env, settings, err);
	return network->net && pvr_peers_listen(pvr_net_peers(network->net), &peers_ops, network);
}

/* The address that etcd publishes for this host. "": this host does not listen. */
static bool own_address(const struct pvr_network *network, const struct pvr_settings *settings,
			char text[PVR_ADDRESS_TEXT], struct pvr_error *err)
{
	const struct pvr_directory_options *options = &settings->directory;

	snprintf(text, PVR_ADDRESS_TEXT, "%s", options->advertise);
	if (*text || !options->etcd.num_urls || !pvr_net_listen_address(network->net, 0, text))
		return true;
	if (strncmp(text, "0.0.0.0:", 8) && strncmp(text, "[::]:", 5))
		return true;
	return pvr_fail(err, "other hosts cannot connect to %s: give --advertise ADDRESS", text);
}

static bool add_hosts(struct pvr_network *network, const struct pvr_net_settings *settings,
		      struct pvr_error *err)
{
	size_t i;

	for (i = 0; i < settings->num_peers; i++) {
		if (!pvr_directory_add_host(network->directory, settings->peers[i].name, err))
			return false;
		pvr_peers_host_of(peers_of(network), settings->peers[i].name);
	}
	return true;
}

static bool make_directory(struct pvr_network *network, const struct pvr_settings *settings,
			   struct pvr_error *err)
{
	const struct pvr_directory_options *options = &settings->directory;
	const struct pvr_directory_settings how = {
		.peers_file = options->peers_file[0] ? options->peers_file : NULL,
		.policy_file = options->policy_file[0] ? options->policy_file : NULL,
		.etcd = options->etcd.num_urls ? &options->etcd : NULL,
	};
	char address[PVR_ADDRESS_TEXT] = "";
	const struct pvr_directory_env env = {
		.loop = network->daemon->loop,
		.name = pvr_net_name(network->net),
		.address = address,
		.set_gid = set_gid,
		.check_peer = check_peer,
		.set_peer = set_peer,
		.forget_peer = forget_peer,
		.want = dial_host,
		.state = state,
		.is_up = is_up,
		.rules_changed = rules_changed,
		.claimed = claimed,
		.log = log_directory,
		.opaque = network,
	};

	if (!own_address(network, settings, address, err))
		return false;
	pvr_engine_set_address(network->daemon->engine, address);
	network->directory = pvr_directory_create(&env, &how, err);
	return network->directory && add_hosts(network, &settings->net, err);
}

bool pvr_network_init(struct pvr_daemon *daemon, const struct pvr_settings *settings,
		      struct pvr_error *err)
{
	if (!pvr_net_settings_any(&settings->net))
		return true;
	daemon->network = calloc(1, sizeof(*daemon->network));
	if (!daemon->network)
		return pvr_fail(err, "out of memory");
	daemon->network->daemon = daemon;
	if (!make_net(daemon->network, &settings->net, err) ||
	    !make_directory(daemon->network, settings, err))
		return false;
	/* Adapters are created after this, and call the ops. */
	pvr_engine_set_name(daemon->engine, pvr_net_name(daemon->network->net));
	pvr_engine_set_pipe(daemon->engine,
			    settings->directory.etcd.num_urls ? &claiming_gid_ops : &gid_ops,
			    &host_ops, daemon->network);
	return true;
}

static void report_file(const struct pvr_reload_ops *ops, void *opaque, const char *file,
			size_t hosts)
{
	char what[64];

	if (!file)
		return;
	snprintf(what, sizeof(what), "%zu host%s", hosts, hosts == 1 ? "" : "s");
	ops->read(opaque, file, what);
}

bool pvr_network_reload(struct pvr_daemon *daemon, const struct pvr_reload_ops *ops, void *opaque,
			struct pvr_error *err)
{
	struct pvr_network *network = daemon->network;
	struct pvr_directory_files files;

	if (!network)
		return true;
	/* The keys first: hosts of the peers file may need new keys. */
	if (!pvr_net_rekey_begin(network->net, err))
		return false;
	if (!pvr_directory_reload(network->directory, &files, err)) {
		pvr_net_rekey_cancel(network->net);
		return false;
	}
	report_file(ops, opaque, files.peers, files.num_peers);
	report_file(ops, opaque, files.policy, files.num_policy);
	pvr_net_rekey_end(network->net, ops, opaque);
	return true;
}

void pvr_network_stop(struct pvr_daemon *daemon)
{
	struct pvr_network *network = daemon->network;

	if (!network)
		return;
	pvr_directory_leave(network->directory);
	/* After this, the ends of connections are not reported to the directory. */
	pvr_directory_destroy(network->directory);
	network->directory = NULL;
	pvr_net_destroy(network->net);
	network->net = NULL;
}

void pvr_network_exit(struct pvr_daemon *daemon)
{
	free(daemon->network);
	daemon->network = NULL;
}
