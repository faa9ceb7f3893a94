// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Collects the values of the metrics.
 *
 * DOC: pages
 *
 * The first thread collects, because adapters and peers change in this thread only. It also
 * serves the control socket and handshakes. So it collects in pages of PAGE_NS, with a pause of
 * PAUSE_NS between two of them. An adapter that is removed meanwhile can make another one
 * missing in this scrape; none is there twice.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/workq.h"
#include "daemon/log.h"
#include "daemon/metrics_socket.h"
#include "daemon/metrics_source.h"
#include "daemon/network.h"
#include "metrics/server.h"

#define PAGE_NS (500 * 1000ull)
#define PAUSE_NS PVR_MSEC
#define PEERS_AT_ONCE 16

struct pvr_metrics_source {
	struct pvr_daemon *daemon;
	struct pvr_metrics *server;
	struct pvr_workq inbox; /* of the first thread */
	struct pvr_work request; /* queued by the server's thread */
	struct pvr_loop_timer next; /* page */
	struct pvr_metrics_snapshot *snapshot; /* in progress, or NULL */
	size_t adapter; /* index of the next one */
	uint32_t peer; /* cursor of pvr_peers_page() */
	bool has_peers; /* all of them */
	bool failed; /* there was no memory */
	uint64_t collections; /* snapshots so far */
	uint64_t started_ns; /* of the daemon, since 1970 */
	char address[PVR_PATH_MAX];
};

/* ------------------------------------------------------------------- adapters */

static bool add_adapter(struct pvr_metrics_snapshot *snapshot, const struct pvr_attach *attach)
{
	struct pvr_metrics_adapter *row = pvr_metrics_add_adapter(snapshot);
	struct pvr_adapter *adapter = pvr_attach_adapter(attach);
	struct pvr_attach_stats client;

	if (!row)
		return false;
	snprintf(row->name, sizeof(row->name), "%s", pvr_adapter_name(adapter));
	snprintf(row->fabric, sizeof(row->fabric), "%s", pvr_adapter_fabric(adapter));
	pvr_adapter_get_stats(adapter, &row->stats);
	pvr_adapter_get_limits(adapter, &row->limits);
	pvr_adapter_get_qos(adapter, &row->qos);
	pvr_attach_get_stats(attach, &client);
	row->attached = client.attached;
	row->ram_bytes = client.ram_counted;
	row->ram_limit = client.ram_limit;
	row->clients = client.clients;
	row->messages = client.messages;
	row->refused = client.refused;
	row->has_port = pvr_adapter_port(adapter) != NULL;
	if (row->has_port)
		pvr_port_get_stats(pvr_adapter_port(adapter), &row->port);
	return true;
}

/* ---------------------------------------------------------------------- peers */

static void fill_traffic(struct pvr_metrics_peer *row, struct pvr_host *host)
{
	struct pvr_host_stats stats;

	pvr_host_get_stats(host, &stats);
	row->rtt_ns = stats.rtt_ns;
	row->tx_frames = stats.tx_frames;
	row->tx_bytes = stats.tx_bytes;
	row->rx_frames = stats.rx_frames;
	row->rx_bytes = stats.rx_bytes;
	row->zerocopy_tx_bytes = stats.zerocopy_tx_bytes;
	row->zerocopy_rx_bytes = stats.zerocopy_rx_bytes;
	row->retransmits = stats.retransmits;
}

static void fill_peer(struct pvr_metrics_peer *row, const struct pvr_peer_info *info)
{
	snprintf(row->name, sizeof(row->name), "%s", info->name);
	row->state = info->state;
	row->conns_out = info->conns_out;
	row->conns_in = info->conns_in;
	row->wanted = info->wanted;
	row->verbs_out = info->device != NULL;
	row->verbs_in = info->verbs_in;
	row->zerocopy = info->zerocopy;
	row->connects = info->connects;
	row->failures = info->failures;
	if (info->host)
		fill_traffic(row, info->host);
}

/* A directory can have thousands of hosts to which no guest sends: those are counted only. */
static bool has_history(const struct pvr_peer_info *info)
{
	return info->state != PVR_PEER_IDLE || info->connects || info->failures || info->conns_in;
}

static void add_peer(void *opaque, const struct pvr_peer_info *info)
{
	struct pvr_metrics_source *source = opaque;
	struct pvr_metrics_snapshot *snapshot = source->snapshot;
	struct pvr_metrics_peer *row;

	snapshot->peers_by_state[info->state]++;
	if (!has_history(info))
		return;
	if (snapshot->num_peers == PVR_METRICS_PEERS) {
		snapshot->peers_left_out++;
		return;
	}
	row = pvr_metrics_add_peer(snapshot);
	if (row)
		fill_peer(row, info);
	source->failed |= !row;
}

/* --------------------------------------------------------------------- the rest */

static void add_workers(struct pvr_metrics_snapshot *snapshot, const struct pvr_daemon *daemon)
{
	struct pvr_metrics_worker *row = snapshot->workers;
	const struct pvr_pool_thread *thread;
	struct pvr_poll_stats poll;
	uint64_t now = pvr_loop_now();
	size_t i;

	snapshot->num_workers = daemon->pool.num;
	for (i = 0; i < daemon->pool.num; i++, row++) {
		thread = &daemon->pool.threads[i];
		pvr_engine_worker_stats(daemon->engine, (unsigned int)i, &row->stats);
		pvr_poll_get_stats(&thread->worker_loop.policy, &poll);
		row->cpu_ns = pvr_pool_thread_cpu_time(thread);
		row->busy_ns = pvr_turns_busy(&thread->worker_loop.turns);
		row->longest_turn_ns = pvr_turns_longest(&thread->worker_loop.turns, now);
		row->rounds = pvr_heartbeat_rounds(&thread->worker_loop.heartbeat);
		row->poll_windows = poll.poll_windows;
		row->poll_hits = poll.poll_hits;
		row->sleeps = poll.sleeps;
		row->backoffs = poll.backoffs;
		row->cpu_contended = poll.cpu_contended;
	}
	for (i = 0; i < daemon->num_adapters; i++)
		snapshot->workers[pvr_adapter_worker(pvr_attach_adapter(daemon->adapters[i].attach))]
			.adapters++;
}

static void add_fault(void *opaque, const struct pvr_fault_info *info)
{
	struct pvr_metrics_snapshot *snapshot = opaque;
	struct pvr_metrics_fault *row;

	if (snapshot->num_faults == PVR_FAULTS_MAX)
		return;
	row = &snapshot->faults[snapshot->num_faults++];
	snprintf(row->id, sizeof(row->id), "%u", info->id);
	snprintf(row->rule, sizeof(row->rule), "%s", info->text);
	row->messages = info->messages;
	row->dropped = info->dropped;
	row->delayed = info->delayed;
	row->failed = info->failed;
	row->rnr = info->rnr;
	row->seq_naks = info->seq_naks;
	row->reordered = info->reordered;
	row->duplicated = info->duplicated;
	row->corrupted = info->corrupted;
	row->port_downs = info->port_downs;
	row->stalled = info->stalled;
	row->refused = info->refused;
}

static void add_log(struct pvr_metrics_snapshot *snapshot)
{
	struct pvrd_log_stats stats;
	enum pvr_log_level level;

	pvrd_log_get_stats(&stats);
	for (level = PVR_LOG_ERR; level <= PVR_LOG_DEBUG; level++) {
		snapshot->log_levels[level] = pvrd_log_level_name(level);
		snapshot->log_lines[level] = stats.lines[level];
	}
	snapshot->log_dropped = stats.dropped;
}

static void add_directory(struct pvr_metrics_directory *row, struct pvr_directory *directory)
{
	struct pvr_directory_stats stats;

	pvr_directory_get_stats(directory, &stats);
	*row = (struct pvr_metrics_directory){
		.gids = stats.entries,
		.hosts = stats.hosts,
		.local_gids = stats.own,
		.lookups = stats.lookups,
		.refused = stats.refused,
		.dropped = stats.dropped,
		.has_etcd = stats.url != NULL,
		.connected = stats.connected,
		.registered = stats.registered,
		.watches = stats.watches,
		.events = stats.events,
		.requests = stats.requests,
		.failures = stats.failures,
		.tx_bytes = stats.tx_bytes,
		.rx_bytes = stats.rx_bytes,
	};
}

static void add_network(struct pvr_metrics_snapshot *snapshot, const struct pvr_network *network)
{
	struct pvr_net_info info;
	enum pvr_peer_state state;

	snapshot->has_network = true;
	for (state = PVR_PEER_IDLE; state <= PVR_PEER_UNREACHABLE; state++)
		snapshot->peer_states[state] = pvr_peer_state_name(state);
	pvr_net_get_info(network->net, &info);
	snapshot->network = (struct pvr_metrics_network){
		.listening = info.listening,
		.handshakes = info.handshakes,
		.accepted = info.accepted,
		.refused = info.refused,
		.has_certificate = info.certificate_expires != INT64_MAX,
		.certificate_expires = (uint64_t)info.certificate_expires,
	};
	add_directory(&snapshot->directory, network->directory);
}

static void add_rest(struct pvr_metrics_source *source)
{
	const struct pvr_daemon *daemon = source->daemon;
	struct pvr_metrics_snapshot *snapshot = source->snapshot;

	snapshot->started_ns = source->started_ns;
	snapshot->collections = source->collections;
	add_workers(snapshot, daemon);
	pvr_engine_for_each_fault(daemon->engine, add_fault, snapshot);
	add_log(snapshot);
	if (daemon->network)
		add_network(snapshot, daemon->network);
}

/* ---------------------------------------------------------------------- pages */

/* Collects one adapter, some peers, or the rest. Return: false: all is collected. */
static bool collect_some(struct pvr_metrics_source *source)
{
	const struct pvr_daemon *daemon = source->daemon;

	if (source->adapter < daemon->num_adapters) {
		source->failed |=
			!add_adapter(source->snapshot, daemon->adapters[source->adapter++].attach);
		return true;
	}
	if (daemon->network && !source->has_peers) {
		source->has_peers = !pvr_peers_page(pvr_net_peers(daemon->network->net),
						    &source->peer, PEERS_AT_ONCE, add_peer, source);
		return true;
	}
	add_rest(source);
	return false;
}

/* Return: false: this was the last page. */
static bool collect_page(struct pvr_metrics_source *source)
{
	uint64_t begin = pvr_loop_now(), spent = 0;
	bool more = true;

	while (more && !source->failed && spent < PAGE_NS) {
		more = collect_some(source);
		spent = pvr_loop_now() - begin;
	}
	source->snapshot->pages++;
	source->snapshot->collect_ns += spent;
	if (spent > source->snapshot->longest_page_ns)
		source->snapshot->longest_page_ns = spent;
	return more && !source->failed;
}

static void deliver(struct pvr_metrics_source *source)
{
	struct pvr_metrics_snapshot *snapshot = source->snapshot;

	source->snapshot = NULL;
	if (source->failed) {
		pvr_metrics_snapshot_free(snapshot);
		snapshot = NULL;
	}
	pvr_metrics_deliver(source->server, snapshot);
}

static void collect(struct pvr_metrics_source *source)
{
	if (source->snapshot && collect_page(source))
		pvr_loop_timer_arm(source->daemon->loop, &source->next, PAUSE_NS);
	else
		deliver(source);
}

static void next_page(struct pvr_loop_timer *timer)
{
	collect((struct pvr_metrics_source *)((char *)timer -
					      offsetof(struct pvr_metrics_source, next)));
}

static void begin(struct pvr_work *work)
{
	struct pvr_metrics_source *source =
		(struct pvr_metrics_source *)((char *)work -
					      offsetof(struct pvr_metrics_source, request));

	source->snapshot = pvr_metrics_snapshot_create();
	source->collections++;
	source->adapter = 0;
	source->peer = 0;
	source->has_peers = source->failed = false;
	collect(source);
}

/* ----------------------------------------------------------------- life cycle */

/* Called by the server's thread, one time per pvr_metrics_deliver(). */
static void request(void *opaque)
{
	struct pvr_metrics_source *source = opaque;

	pvr_workq_queue(&source->inbox, &source->request);
}

static bool start(struct pvr_metrics_source *source, struct pvr_error *err)
{
	const struct pvr_metrics_env env = { .collect = request, .opaque = source };
	int ret = pvr_workq_init(&source->inbox, source->daemon->loop), fd;

	if (ret < 0)
		return pvr_fail(err, "metrics: %s", strerror(-ret));
	fd = pvr_metrics_listen(source->address, err);
	if (fd < 0) {
		source->address[0] = '\0'; /* the file is not ours */
		return false;
	}
	source->server = pvr_metrics_create(&env, fd, err);
	if (!source->server)
		return false;
	pvrd_log(PVR_LOG_INFO, NULL, "metrics at %s, path /metrics, without TLS", source->address);
	return true;
}

static uint64_t real_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * PVR_SEC + (uint64_t)now.tv_nsec;
}

bool pvr_metrics_start(struct pvr_daemon *daemon, const struct pvr_settings *settings,
		       struct pvr_error *err)
{
	struct pvr_metrics_source *source;

	if (!settings->metrics[0])
		return true;
	source = calloc(1, sizeof(*source));
	if (!source)
		return pvr_fail(err, "out of memory");
	source->daemon = daemon;
	source->started_ns = real_time();
	source->inbox.source.fd = -1;
	source->request.run = begin;
	source->next.expired = next_page;
	memcpy(source->address, settings->metrics, sizeof(source->address));
	daemon->metrics = source;
	return start(source, err);
}

void pvr_metrics_stop(struct pvr_daemon *daemon)
{
	struct pvr_metrics_source *source = daemon->metrics;

	if (!source)
		return;
	daemon->metrics = NULL;
	pvr_metrics_destroy(source->server);
	if (source->address[0])
		pvr_metrics_unlink(source->address);
	pvr_loop_timer_disarm(&source->next);
	pvr_metrics_snapshot_free(source->snapshot);
	if (source->inbox.source.fd >= 0)
		pvr_workq_exit(&source->inbox);
	free(source);
}
