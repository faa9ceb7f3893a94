// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Replies of the control socket about other hosts. */
#include <string.h>

#include "daemon/json_put.h"
#include "daemon/network.h"
#include "daemon/network_requests.h"

#define PEERS_PER_PAGE 64

static struct json_object *describe_listeners(const struct pvr_net *net)
{
	struct json_object *list = json_object_new_array();
	char text[PVR_ADDRESS_TEXT];
	unsigned int i;

	for (i = 0; pvr_net_listen_address(net, i, text); i++)
		json_object_array_add(list, json_object_new_string(text));
	return list;
}

static struct json_object *describe_host(const struct pvr_net *net)
{
	struct json_object *obj = json_object_new_object();
	struct pvr_net_info info;

	pvr_net_get_info(net, &info);
	put_text(obj, "name", info.name);
	put_number(obj, "instance", info.instance);
	put_text(obj, "tls", info.tls);
	put(obj, "listen", describe_listeners(net));
	put_number(obj, "handshakes", info.handshakes);
	put_number(obj, "accepted", info.accepted);
	put_number(obj, "refused", info.refused);
	return obj;
}

static void put_counters(struct json_object *obj, const struct pvr_host_stats *stats)
{
	put_number(obj, "rtt_us", stats->rtt_ns / 1000);
	put_number(obj, "tx_frames", stats->tx_frames);
	put_number(obj, "tx_bytes", stats->tx_bytes);
	put_number(obj, "rx_frames", stats->rx_frames);
	put_number(obj, "rx_bytes", stats->rx_bytes);
	put_number(obj, "zerocopy_tx_bytes", stats->zerocopy_tx_bytes);
	put_number(obj, "zerocopy_rx_bytes", stats->zerocopy_rx_bytes);
	put_number(obj, "retransmits", stats->retransmits);
}

static struct pvr_host_stats stats_of(const struct pvr_peer_info *info)
{
	struct pvr_host_stats stats = { .name = info->name };

	if (info->host)
		pvr_host_get_stats(info->host, &stats);
	return stats;
}

static void put_lend(struct json_object *obj, const struct pvr_peer_info *info)
{
	put_bool(obj, "zerocopy", info->zerocopy);
	put_text(obj, "zerocopy_error", info->zerocopy_error);
}

static void put_peer(void *opaque, const struct pvr_peer_info *info)
{
	struct json_object *obj = json_object_new_object();
	const struct pvr_host_stats stats = stats_of(info);

	put_text(obj, "name", info->name);
	put_text(obj, "address", info->address);
	put_text(obj, "state", pvr_peer_state_name(info->state));
	put_number(obj, "conns_out", info->conns_out);
	put_number(obj, "wanted", info->wanted);
	put_number(obj, "conns_in", info->conns_in);
	put_text(obj, "verbs", info->device ? info->device : "");
	put_number(obj, "verbs_in", info->verbs_in);
	put_text(obj, "verbs_error", info->device ? "" : info->verbs_error);
	put_lend(obj, info);
	put_text(obj, "tls", info->tls);
	put_text(obj, "error", info->error);
	put_number(obj, "connects", info->connects);
	put_number(obj, "failures", info->failures);
	put_counters(obj, &stats);
	json_object_array_add(opaque, obj);
}

static const char *name_of(const void *item, const char *key)
{
	struct json_object *const *obj = item, *name;

	return json_object_object_get_ex(*obj, key, &name) ? json_object_get_string(name) : "";
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(name_of(a, "name"), name_of(b, "name"));
}

static int compare_hosts(const void *a, const void *b)
{
	return strcmp(name_of(a, "host"), name_of(b, "host"));
}

static struct json_object *describe_directory(struct pvr_directory *directory)
{
	struct json_object *obj = json_object_new_object();
	struct pvr_directory_stats stats;

	pvr_directory_get_stats(directory, &stats);
	put_text(obj, "backend", stats.backend);
	put_number(obj, "gids", stats.entries);
	put_number(obj, "hosts", stats.hosts);
	put_number(obj, "local_gids", stats.own);
	put_number(obj, "lookups", stats.lookups);
	put_number(obj, "refused", stats.refused);
	put_number(obj, "dropped", stats.dropped);
	if (!stats.url)
		return obj;
	put_text(obj, "url", stats.url);
	put_bool(obj, "connected", stats.connected);
	put_bool(obj, "registered", stats.registered);
	put_number(obj, "watches", stats.watches);
	put_number(obj, "events", stats.events);
	put_number(obj, "requests", stats.requests);
	put_number(obj, "failures", stats.failures);
	put_number(obj, "tx_bytes", stats.tx_bytes);
	put_number(obj, "rx_bytes", stats.rx_bytes);
	return obj;
}

typedef void put_info(void *opaque, const struct pvr_peer_info *info);

/* Adds @key, a list of one page. Return: as pvr_peers_page(). */
static bool put_page(struct pvr_daemon *daemon, uint32_t *cursor, struct json_object *reply,
		     const char *key, put_info *put_one)
{
	struct json_object *list = json_object_new_array();

	put(reply, key, list);
	return daemon->network && pvr_peers_page(pvr_net_peers(daemon->network->net), cursor,
						 PEERS_PER_PAGE, put_one, list);
}

static void put_this_host(struct pvr_daemon *daemon, struct json_object *reply)
{
	put(reply, "host", daemon->network ? describe_host(daemon->network->net) : NULL);
	put(reply, "directory",
	    daemon->network ? describe_directory(daemon->network->directory) : NULL);
}

void pvr_put_peers(struct pvr_daemon *daemon, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();

	put_this_host(daemon, reply);
	if (daemon->network)
		pvr_peers_for_each(pvr_net_peers(daemon->network->net), put_peer, list);
	json_object_array_sort(list, compare_names);
	put(reply, "peers", list);
}

bool pvr_put_peers_page(struct pvr_daemon *daemon, uint32_t *cursor, struct json_object *reply)
{
	if (!*cursor)
		put_this_host(daemon, reply);
	return put_page(daemon, cursor, reply, "peers", put_peer);
}

/* ----------------------------------------------------------------------- paths */

/* verbs is preferred to tcp while both hosts have a working RDMA NIC. */
static void put_path(struct json_object *obj, const struct pvr_peer_info *info,
		     const struct pvr_host_stats *stats)
{
	bool verbs = stats->up[PVR_PIPE_VERBS], tcp = stats->up[PVR_PIPE_TCP];

	put_text(obj, "path", verbs ? "verbs" : tcp ? "tcp" : "none");
	put_text(obj, "reason",
		 verbs				      ? "both hosts have an RDMA NIC"
		 : tcp				      ? info->verbs_error
		 : info->state == PVR_PEER_IDLE	      ? "no traffic needs it"
		 : info->state == PVR_PEER_CONNECTING ? "connecting"
						      : info->error);
}

static void put_host(void *opaque, const struct pvr_peer_info *info)
{
	struct json_object *obj = json_object_new_object();
	const struct pvr_host_stats stats = stats_of(info);

	put_text(obj, "host", info->name);
	put_path(obj, info, &stats);
	put_lend(obj, info);
	put_counters(obj, &stats);
	json_object_array_add(opaque, obj);
}

void pvr_put_hosts(struct pvr_daemon *daemon, struct json_object *reply)
{
	struct json_object *list = json_object_new_array();

	if (daemon->network)
		pvr_peers_for_each(pvr_net_peers(daemon->network->net), put_host, list);
	json_object_array_sort(list, compare_hosts);
	put(reply, "hosts", list);
}

bool pvr_put_hosts_page(struct pvr_daemon *daemon, uint32_t *cursor, struct json_object *reply)
{
	return put_page(daemon, cursor, reply, "hosts", put_host);
}
