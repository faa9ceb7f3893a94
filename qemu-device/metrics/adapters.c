// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The families of metrics with the label "adapter". */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/format.h"

#define PREFIX "pvrdma_adapter_"

enum metrics_column_type { COUNTER, GAUGE, SECONDS /* a counter of ns */ };

/* One sample per adapter. Rows of one name follow each other, and differ in their labels. */
struct metrics_column {
	const char *name, *labels, *help; /* @labels, @help: or NULL */
	enum metrics_column_type type;
	size_t offset, size;
	bool of_port; /* only of adapters with an Ethernet segment */
};

#define FIELD(field)                                 \
	offsetof(struct pvr_metrics_adapter, field), \
		sizeof(((struct pvr_metrics_adapter *)0)->field)

static const struct metrics_column columns[] = {
	{ "link_up", NULL, "1 if the link is up.", GAUGE, FIELD(stats.link_up), false },
	{ "vm_connected", NULL, "1 if a QEMU is connected.", GAUGE, FIELD(attached), false },
	{ "guest_memory_bytes", NULL, "RAM of the guest that is mapped.", GAUGE, FIELD(ram_bytes),
	  false },
	{ "guest_memory_limit_bytes", NULL, "Limit of the RAM of the guest.", GAUGE,
	  FIELD(ram_limit), false },
	{ "object_memory_bytes", NULL, "Memory of the daemon for objects of the guest.", GAUGE,
	  FIELD(stats.memory), false },
	{ "object_memory_limit_bytes", NULL, "Limit of the memory for objects of the guest.", GAUGE,
	  FIELD(stats.memory_budget), false },
	{ "objects", "kind=\"context\"", "Objects that the guest has.", GAUGE,
	  FIELD(stats.contexts), false },
	{ "objects", "kind=\"pd\"", NULL, GAUGE, FIELD(stats.pds), false },
	{ "objects", "kind=\"mr\"", NULL, GAUGE, FIELD(stats.mrs), false },
	{ "objects", "kind=\"mw\"", NULL, GAUGE, FIELD(stats.mws), false },
	{ "objects", "kind=\"cq\"", NULL, GAUGE, FIELD(stats.cqs), false },
	{ "objects", "kind=\"qp\"", NULL, GAUGE, FIELD(stats.qps), false },
	{ "objects", "kind=\"srq\"", NULL, GAUGE, FIELD(stats.srqs), false },
	{ "objects", "kind=\"gid\"", NULL, GAUGE, FIELD(stats.gids), false },
	{ "objects_limit", "kind=\"context\"",
	  "Limit of the objects; mr and mw have one limit together.", GAUGE, FIELD(limits.contexts),
	  false },
	{ "objects_limit", "kind=\"pd\"", NULL, GAUGE, FIELD(limits.pds), false },
	{ "objects_limit", "kind=\"mr\"", NULL, GAUGE, FIELD(limits.mrs), false },
	{ "objects_limit", "kind=\"mw\"", NULL, GAUGE, FIELD(limits.mrs), false },
	{ "objects_limit", "kind=\"cq\"", NULL, GAUGE, FIELD(limits.cqs), false },
	{ "objects_limit", "kind=\"qp\"", NULL, GAUGE, FIELD(limits.qps), false },
	{ "objects_limit", "kind=\"srq\"", NULL, GAUGE, FIELD(limits.srqs), false },
	{ "objects_limit", "kind=\"gid\"", NULL, GAUGE, FIELD(limits.gids), false },
	{ "transmit_messages_total", NULL, "Messages sent.", COUNTER, FIELD(stats.tx_messages),
	  false },
	{ "transmit_bytes_total", NULL, "Bytes of the messages sent.", COUNTER,
	  FIELD(stats.tx_bytes), false },
	{ "receive_messages_total", NULL, "Messages received.", COUNTER, FIELD(stats.rx_messages),
	  false },
	{ "receive_bytes_total", NULL, "Bytes of the messages received.", COUNTER,
	  FIELD(stats.rx_bytes), false },
	{ "path_transmit_bytes_total", "path=\"local\"", "Bytes of the messages sent, by path.",
	  COUNTER, FIELD(stats.local_bytes), false },
	{ "path_transmit_bytes_total", "path=\"verbs\"", NULL, COUNTER, FIELD(stats.verbs_bytes),
	  false },
	{ "path_transmit_bytes_total", "path=\"tcp\"", NULL, COUNTER, FIELD(stats.tcp_bytes),
	  false },
	{ "transmit_reads_total", NULL, "RDMA READs sent.", COUNTER, FIELD(stats.tx_reads), false },
	{ "transmit_atomics_total", NULL, "Atomics sent.", COUNTER, FIELD(stats.tx_atomics),
	  false },
	{ "transmit_multicast_total", NULL, "Multicast datagrams sent.", COUNTER,
	  FIELD(stats.tx_multicast), false },
	{ "receive_multicast_total", NULL, "Multicast datagrams received.", COUNTER,
	  FIELD(stats.rx_multicast), false },
	{ "datagrams_dropped_total", NULL, "Datagrams without a receive request.", COUNTER,
	  FIELD(stats.ud_dropped), false },
	{ "rnr_naks_total", NULL, "RNR NAKs: a receiver had no receive request.", COUNTER,
	  FIELD(stats.rnr_naks), false },
	{ "ack_timeouts_total", NULL, "Requests without an answer in time.", COUNTER,
	  FIELD(stats.ack_timeouts), false },
	{ "retries_exceeded_total", NULL, "Requests that failed after their last retry.", COUNTER,
	  FIELD(stats.retries_exceeded), false },
	{ "access_errors_total", NULL, "Requests for memory without the right to it.", COUNTER,
	  FIELD(stats.access_errors), false },
	{ "request_errors_total", NULL, "Invalid work requests.", COUNTER,
	  FIELD(stats.request_errors), false },
	{ "cq_overflows_total", NULL, "Completions for a full CQ.", COUNTER,
	  FIELD(stats.cq_overflows), false },
	{ "commands_total", NULL, "Commands of the guest's driver.", COUNTER, FIELD(stats.commands),
	  false },
	{ "commands_failed_total", NULL, "Commands that ended with an error.", COUNTER,
	  FIELD(stats.commands_failed), false },
	{ "doorbells_total", NULL, "Doorbells of the guest.", COUNTER, FIELD(stats.doorbells),
	  false },
	{ "doorbells_ignored_total", NULL, "Doorbells for no object of their context.", COUNTER,
	  FIELD(stats.doorbells_ignored), false },
	{ "bad_accesses_total", NULL, "Register accesses of a wrong size or address.", COUNTER,
	  FIELD(stats.bad_accesses), false },
	{ "interrupts_total", NULL, "Interrupts sent to the guest.", COUNTER,
	  FIELD(stats.interrupts), false },
	{ "rate_limit_bytes_per_second", NULL, "Limit of the adapter; 0: none.", GAUGE,
	  FIELD(qos.rate), false },
	{ "rate_limit_messages_per_second", NULL, "Limit of the adapter; 0: none.", GAUGE,
	  FIELD(qos.messages), false },
	{ "rate_limit_waits_total", NULL, "Waits for a limit of the adapter or of its fabric.",
	  COUNTER, FIELD(stats.qos_waits), false },
	{ "rate_limit_wait_seconds_total", NULL, "Time of these waits, when they have ended.",
	  SECONDS, FIELD(stats.qos_wait_ns), false },
	{ "vm_connections_total", NULL, "Connections of QEMUs.", COUNTER, FIELD(clients), false },
	{ "vm_messages_total", NULL, "vfio-user messages of QEMUs.", COUNTER, FIELD(messages),
	  false },
	{ "vm_messages_refused_total", NULL, "vfio-user messages answered with an error.", COUNTER,
	  FIELD(refused), false },
	{ "wire_transmit_frames_total", NULL, "RoCE frames sent to the Ethernet segment.", COUNTER,
	  FIELD(port.tx_frames), true },
	{ "wire_receive_frames_total", NULL, "Frames received from the Ethernet segment.", COUNTER,
	  FIELD(port.rx_frames), true },
	{ "wire_dropped_frames_total", "reason=\"other\"",
	  "Frames of the Ethernet segment that were dropped.", COUNTER, FIELD(port.rx_other),
	  true },
	{ "wire_dropped_frames_total", "reason=\"malformed\"", NULL, COUNTER,
	  FIELD(port.rx_malformed), true },
	{ "wire_dropped_frames_total", "reason=\"icrc\"", NULL, COUNTER, FIELD(port.rx_icrc),
	  true },
	{ "wire_dropped_frames_total", "reason=\"unknown\"", NULL, COUNTER, FIELD(port.rx_unknown),
	  true },
	{ "wire_dropped_frames_total", "reason=\"lost\"", NULL, COUNTER, FIELD(port.rx_lost),
	  true },
	{ "wire_dropped_frames_total", "reason=\"transmit_full\"", NULL, COUNTER,
	  FIELD(port.tx_full), true },
	{ "wire_retransmits_total", NULL, "Times that a requester has gone back.", COUNTER,
	  FIELD(port.retransmits), true },
	{ "wire_transmit_cnps_total", NULL, "Congestion notifications sent.", COUNTER,
	  FIELD(port.tx_cnps), true },
	{ "wire_receive_cnps_total", NULL, "Congestion notifications received.", COUNTER,
	  FIELD(port.rx_cnps), true },
};

#define NUM_COLUMNS (sizeof(columns) / sizeof(columns[0]))

typedef char labels_text[PVR_METRICS_LABELS];

static uint64_t value_of(const struct pvr_metrics_adapter *adapter,
			 const struct metrics_column *column)
{
	const char *at = (const char *)adapter + column->offset;
	uint64_t wide;
	uint32_t narrow;

	if (column->size == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	if (column->size == sizeof(narrow)) {
		memcpy(&narrow, at, sizeof(narrow));
		return narrow;
	}
	return *at != 0; /* a bool */
}

/* Return: the labels of each adapter, or NULL. The caller frees them. */
static labels_text *make_labels(const struct pvr_metrics_snapshot *snapshot)
{
	labels_text *labels = calloc(snapshot->num_adapters + 1, sizeof(*labels));
	size_t i;

	for (i = 0; labels && i < snapshot->num_adapters; i++)
		pvr_metrics_labels(labels[i], "adapter", snapshot->adapters[i].name, "fabric",
				   snapshot->adapters[i].fabric);
	return labels;
}

static void format_column(struct pvr_metrics_text *text,
			  const struct pvr_metrics_snapshot *snapshot, labels_text *labels,
			  const struct metrics_column *column)
{
	char name[96];
	size_t i;

	snprintf(name, sizeof(name), PREFIX "%s", column->name);
	if (column->help)
		pvr_metrics_head(text, name, column->type == GAUGE ? "gauge" : "counter",
				 column->help);
	for (i = 0; i < snapshot->num_adapters; i++) {
		if (column->of_port && !snapshot->adapters[i].has_port)
			continue;
		(column->type == SECONDS ? pvr_metrics_sample_ns : pvr_metrics_sample)(
			text, name, labels[i], column->labels,
			value_of(&snapshot->adapters[i], column));
	}
}

static void format_states(struct pvr_metrics_text *text,
			  const struct pvr_metrics_snapshot *snapshot, labels_text *labels)
{
	char more[PVR_METRICS_LABELS];
	enum pvr_adapter_state state;
	size_t i;

	pvr_metrics_head(text, PREFIX "state", "gauge",
			 "1 for the state that the device has, 0 for the others.");
	for (state = PVR_ADAPTER_IDLE; state <= PVR_ADAPTER_FAILED; state++) {
		pvr_metrics_label(more, "state", pvr_adapter_state_name(state));
		for (i = 0; i < snapshot->num_adapters; i++)
			pvr_metrics_sample(text, PREFIX "state", labels[i], more,
					   snapshot->adapters[i].stats.state == state);
	}
}

void pvr_metrics_format_adapters(struct pvr_metrics_text *text,
				 const struct pvr_metrics_snapshot *snapshot)
{
	labels_text *labels = make_labels(snapshot);
	size_t i;

	if (!labels) {
		text->failed = true;
		return;
	}
	format_states(text, snapshot, labels);
	for (i = 0; i < NUM_COLUMNS; i++)
		format_column(text, snapshot, labels, &columns[i]);
	free(labels);
}
