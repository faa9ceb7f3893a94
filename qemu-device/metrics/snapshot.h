/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The values of one scrape: the embedder collects them, another thread formats them. */
#ifndef PVR_METRICS_SNAPSHOT_H
#define PVR_METRICS_SNAPSHOT_H

#include "engine.h"
#include "port.h"

struct pvr_metrics_adapter {
	char name[PVR_NAME_MAX], fabric[PVR_NAME_MAX];
	struct pvr_adapter_stats stats;
	struct pvr_adapter_limits limits;
	struct pvr_qos qos;
	bool attached; /* a QEMU is connected */
	uint64_t ram_bytes, ram_limit; /* guest RAM, each page once */
	uint64_t clients, messages, refused; /* of QEMUs, in total */
	bool has_port; /* it has an Ethernet segment */
	struct pvr_port_stats port;
};

struct pvr_metrics_worker {
	unsigned int adapters;
	uint64_t cpu_ns, busy_ns, longest_turn_ns, rounds;
	struct pvr_worker_stats stats;
	uint64_t poll_windows, poll_hits, sleeps, backoffs, cpu_contended;
};

#define PVR_METRICS_PEERS 1024 /* with series of their own */
#define PVR_METRICS_PEER_STATES 4

struct pvr_metrics_peer {
	char name[64];
	unsigned int state; /* index of peer_states */
	unsigned int conns_out, conns_in, wanted, verbs_out, verbs_in;
	bool zerocopy;
	uint64_t connects, failures;
	uint64_t rtt_ns; /* 0: unknown */
	uint64_t tx_frames, tx_bytes, rx_frames, rx_bytes;
	uint64_t zerocopy_tx_bytes, zerocopy_rx_bytes, retransmits;
};

struct pvr_metrics_network {
	uint64_t listening, handshakes, accepted, refused;
	bool has_certificate;
	uint64_t certificate_expires; /* seconds since 1970 */
};

struct pvr_metrics_directory {
	uint64_t gids, hosts, local_gids, lookups, refused, dropped;
	bool has_etcd, connected, registered;
	uint64_t watches, events, requests, failures, tx_bytes, rx_bytes;
};

struct pvr_metrics_fault {
	char id[16], rule[256];
	uint64_t messages, dropped, delayed, failed, rnr, seq_naks, reordered, duplicated,
		corrupted, port_downs, stalled, refused;
};

#define PVR_METRICS_LOG_LEVELS (PVR_LOG_DEBUG + 1)

struct pvr_metrics_snapshot {
	/* Owned; room for max_adapters. */
	struct pvr_metrics_adapter *adapters;
	size_t num_adapters, max_adapters;
	struct pvr_metrics_worker workers[PVR_MAX_WORKERS];
	size_t num_workers;
	bool has_network;
	struct pvr_metrics_network network;
	struct pvr_metrics_directory directory;
	/* The numbers of peers by state; the names are constant. */
	const char *peer_states[PVR_METRICS_PEER_STATES];
	uint64_t peers_by_state[PVR_METRICS_PEER_STATES];
	/* Owned; those that have or had a connection, PVR_METRICS_PEERS at most. */
	struct pvr_metrics_peer *peers;
	size_t num_peers, max_peers;
	uint64_t peers_left_out;
	struct pvr_metrics_fault faults[PVR_FAULTS_MAX];
	size_t num_faults;
	const char *log_levels[PVR_METRICS_LOG_LEVELS]; /* constant */
	uint64_t log_lines[PVR_METRICS_LOG_LEVELS], log_dropped;
	/* How the values were collected. */
	uint64_t collections; /* snapshots so far */
	uint64_t pages, collect_ns, longest_page_ns;
	uint64_t started_ns; /* of the daemon, since 1970 */
};

/* Return: an empty snapshot, or NULL without memory. */
struct pvr_metrics_snapshot *pvr_metrics_snapshot_create(void);
/* NULL is allowed. */
void pvr_metrics_snapshot_free(struct pvr_metrics_snapshot *snapshot);

/* Return: a new adapter, all zeros, at the end of the list; NULL without memory. */
struct pvr_metrics_adapter *pvr_metrics_add_adapter(struct pvr_metrics_snapshot *snapshot);
/* The same for a peer. */
struct pvr_metrics_peer *pvr_metrics_add_peer(struct pvr_metrics_snapshot *snapshot);

#endif /* PVR_METRICS_SNAPSHOT_H */
