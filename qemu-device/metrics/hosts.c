// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The metrics of other hosts: peers, connections, certificate, directory. */
#include "metrics/format.h"

/* ---------------------------------------------------------------------- peers */

typedef uint64_t peer_value(const struct pvr_metrics_peer *peer);

#define VALUE(field)                                                      \
	static uint64_t peer_##field(const struct pvr_metrics_peer *peer) \
	{                                                                 \
		return peer->field;                                       \
	}

VALUE(conns_out)
VALUE(conns_in)
VALUE(wanted)
VALUE(verbs_out)
VALUE(verbs_in)
VALUE(zerocopy)
VALUE(connects)
VALUE(failures)
VALUE(tx_frames)
VALUE(tx_bytes)
VALUE(rx_frames)
VALUE(rx_bytes)
VALUE(zerocopy_tx_bytes)
VALUE(zerocopy_rx_bytes)
VALUE(retransmits)

/* Rows of one name follow each other, and differ in their labels. */
static const struct peer_column {
	const char *name, *labels, *help; /* @labels, @help: or NULL */
	const char *type;
	peer_value *value;
} columns[] = {
	{ "pvrdma_peer_connections", "direction=\"out\",kind=\"stream\"",
	  "Connections that are up.", "gauge", peer_conns_out },
	{ "pvrdma_peer_connections", "direction=\"in\",kind=\"stream\"", NULL, "gauge",
	  peer_conns_in },
	{ "pvrdma_peer_connections", "direction=\"out\",kind=\"verbs\"", NULL, "gauge",
	  peer_verbs_out },
	{ "pvrdma_peer_connections", "direction=\"in\",kind=\"verbs\"", NULL, "gauge",
	  peer_verbs_in },
	{ "pvrdma_peer_connections_wanted", NULL, "Outgoing connections that there should be.",
	  "gauge", peer_wanted },
	{ "pvrdma_peer_zerocopy", NULL, "1 if the NICs read payload from guest memory.", "gauge",
	  peer_zerocopy },
	{ "pvrdma_peer_connects_total", NULL, "Outgoing connections that came up.", "counter",
	  peer_connects },
	{ "pvrdma_peer_connect_failures_total", NULL, "Attempts to connect that failed.", "counter",
	  peer_failures },
	{ "pvrdma_peer_transmit_frames_total", NULL, "Frames sent.", "counter", peer_tx_frames },
	{ "pvrdma_peer_transmit_bytes_total", NULL, "Bytes of the frames sent.", "counter",
	  peer_tx_bytes },
	{ "pvrdma_peer_receive_frames_total", NULL, "Frames received.", "counter", peer_rx_frames },
	{ "pvrdma_peer_receive_bytes_total", NULL, "Bytes of the frames received.", "counter",
	  peer_rx_bytes },
	{ "pvrdma_peer_zerocopy_transmit_bytes_total", NULL,
	  "Bytes sent that the other host's NIC has read from guest memory.", "counter",
	  peer_zerocopy_tx_bytes },
	{ "pvrdma_peer_zerocopy_receive_bytes_total", NULL,
	  "Bytes received that this host's NIC has read.", "counter", peer_zerocopy_rx_bytes },
	{ "pvrdma_peer_retransmits_total", NULL, "Requests sent again after a connection broke.",
	  "counter", peer_retransmits },
};

static void format_column(struct pvr_metrics_text *text,
			  const struct pvr_metrics_snapshot *snapshot,
			  const struct peer_column *column)
{
	char labels[PVR_METRICS_LABELS];
	size_t i;

	if (column->help)
		pvr_metrics_head(text, column->name, column->type, column->help);
	for (i = 0; i < snapshot->num_peers; i++) {
		pvr_metrics_label(labels, "peer", snapshot->peers[i].name);
		pvr_metrics_sample(text, column->name, labels, column->labels,
				   column->value(&snapshot->peers[i]));
	}
}

static void format_states(struct pvr_metrics_text *text,
			  const struct pvr_metrics_snapshot *snapshot)
{
	static const char name[] = "pvrdma_peer_state";
	char labels[PVR_METRICS_LABELS], more[PVR_METRICS_LABELS];
	size_t state, i;

	pvr_metrics_head(text, name, "gauge",
			 "1 for the state that the peer has, 0 for the others.");
	for (i = 0; i < snapshot->num_peers; i++) {
		pvr_metrics_label(labels, "peer", snapshot->peers[i].name);
		for (state = 0; state < PVR_METRICS_PEER_STATES; state++) {
			pvr_metrics_label(more, "state", snapshot->peer_states[state]);
			pvr_metrics_sample(text, name, labels, more,
					   snapshot->peers[i].state == state);
		}
	}
}

static void format_rtt(struct pvr_metrics_text *text, const struct pvr_metrics_snapshot *snapshot)
{
	static const char name[] = "pvrdma_peer_rtt_seconds";
	char labels[PVR_METRICS_LABELS];
	size_t i;

	pvr_metrics_head(text, name, "gauge", "Round-trip time of the last keep-alive.");
	for (i = 0; i < snapshot->num_peers; i++) {
		if (!snapshot->peers[i].rtt_ns)
			continue;
		pvr_metrics_label(labels, "peer", snapshot->peers[i].name);
		pvr_metrics_sample_ns(text, name, labels, NULL, snapshot->peers[i].rtt_ns);
	}
}

static void format_numbers(struct pvr_metrics_text *text,
			   const struct pvr_metrics_snapshot *snapshot)
{
	char labels[PVR_METRICS_LABELS];
	size_t state;

	pvr_metrics_head(text, "pvrdma_peers", "gauge",
			 "Other hosts, by the state of their connection.");
	for (state = 0; snapshot->has_network && state < PVR_METRICS_PEER_STATES; state++) {
		pvr_metrics_label(labels, "state", snapshot->peer_states[state]);
		pvr_metrics_sample(text, "pvrdma_peers", labels, NULL,
				   snapshot->peers_by_state[state]);
	}
	pvr_metrics_gauge(text, "pvrdma_peers_left_out",
			  "Peers without metrics of their own, because there are too many.",
			  snapshot->peers_left_out);
}

/* -------------------------------------------------------- connections, directory */

static void format_network(struct pvr_metrics_text *text,
			   const struct pvr_metrics_snapshot *snapshot)
{
	const struct pvr_metrics_network *network = &snapshot->network;
	static const char expires[] = "pvrdma_tls_certificate_expiry_timestamp_seconds";

	pvr_metrics_gauge(text, "pvrdma_network_listening_sockets",
			  "Addresses at which other hosts connect.", network->listening);
	pvr_metrics_gauge(text, "pvrdma_network_handshakes",
			  "Connections whose host is not authenticated yet.", network->handshakes);
	pvr_metrics_counter(text, "pvrdma_network_accepted_total",
			    "Incoming connections that were authenticated.", network->accepted);
	pvr_metrics_counter(text, "pvrdma_network_refused_total",
			    "Incoming connections that were refused.", network->refused);
	pvr_metrics_head(text, expires, "gauge",
			 "Time after which the certificate of this host is not valid.");
	if (network->has_certificate)
		pvr_metrics_sample(text, expires, NULL, NULL, network->certificate_expires);
}

static void format_etcd(struct pvr_metrics_text *text,
			const struct pvr_metrics_directory *directory)
{
	pvr_metrics_gauge(text, "pvrdma_directory_etcd_connected", "1 if etcd answers.",
			  directory->connected);
	pvr_metrics_gauge(text, "pvrdma_directory_etcd_registered",
			  "1 if the keys of this host are in etcd.", directory->registered);
	pvr_metrics_gauge(text, "pvrdma_directory_etcd_watches", "Watches at etcd.",
			  directory->watches);
	pvr_metrics_counter(text, "pvrdma_directory_etcd_events_total",
			    "Changes that etcd has reported.", directory->events);
	pvr_metrics_counter(text, "pvrdma_directory_etcd_requests_total", "Requests to etcd.",
			    directory->requests);
	pvr_metrics_counter(text, "pvrdma_directory_etcd_failures_total",
			    "Requests to etcd that failed.", directory->failures);
	pvr_metrics_counter(text, "pvrdma_directory_etcd_transmit_bytes_total",
			    "Bytes sent to etcd.", directory->tx_bytes);
	pvr_metrics_counter(text, "pvrdma_directory_etcd_receive_bytes_total",
			    "Bytes received from etcd.", directory->rx_bytes);
}

static void format_directory(struct pvr_metrics_text *text,
			     const struct pvr_metrics_directory *directory)
{
	pvr_metrics_gauge(text, "pvrdma_directory_gids", "GIDs of other hosts in the cache.",
			  directory->gids);
	pvr_metrics_gauge(text, "pvrdma_directory_hosts", "Hosts in the directory.",
			  directory->hosts);
	pvr_metrics_gauge(text, "pvrdma_directory_local_gids", "GIDs of this host's adapters.",
			  directory->local_gids);
	pvr_metrics_counter(text, "pvrdma_directory_lookups_total", "Look-ups of GIDs.",
			    directory->lookups);
	pvr_metrics_counter(text, "pvrdma_directory_claims_refused_total",
			    "Claims of a GID that were refused.", directory->refused);
	pvr_metrics_counter(text, "pvrdma_directory_queries_dropped_total",
			    "Queries that found the queue full.", directory->dropped);
}

void pvr_metrics_format_hosts(struct pvr_metrics_text *text,
			      const struct pvr_metrics_snapshot *snapshot)
{
	size_t i;

	format_numbers(text, snapshot);
	format_states(text, snapshot);
	for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		format_column(text, snapshot, &columns[i]);
	format_rtt(text, snapshot);
	if (!snapshot->has_network)
		return;
	format_network(text, snapshot);
	format_directory(text, &snapshot->directory);
	if (snapshot->directory.has_etcd)
		format_etcd(text, &snapshot->directory);
}
