// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Requests for the counters of adapters. */
#include "daemon/stats_requests.h"

#include <stddef.h>
#include <string.h>

#include "daemon/json_put.h"
#include "port.h"

#define STAT(field)                                                    \
	{                                                              \
#field, offsetof(struct pvr_adapter_stats, field),     \
			sizeof(((struct pvr_adapter_stats *)0)->field) \
	}

static const struct {
	const char *name;
	size_t offset, size;
} adapter_stats[] = {
	STAT(driver_version),
	STAT(features),
	STAT(contexts),
	STAT(pds),
	STAT(mrs),
	STAT(mws),
	STAT(cqs),
	STAT(qps),
	STAT(srqs),
	STAT(gids),
	STAT(memory),
	STAT(memory_budget),
	STAT(commands),
	STAT(commands_failed),
	STAT(doorbells),
	STAT(doorbells_ignored),
	STAT(bad_accesses),
	STAT(tx_messages),
	STAT(tx_bytes),
	STAT(rx_messages),
	STAT(rx_bytes),
	STAT(local_bytes),
	STAT(verbs_bytes),
	STAT(tcp_bytes),
	STAT(tx_reads),
	STAT(tx_atomics),
	STAT(tx_multicast),
	STAT(rx_multicast),
	STAT(ud_dropped),
	STAT(rnr_naks),
	STAT(ack_timeouts),
	STAT(retries_exceeded),
	STAT(access_errors),
	STAT(request_errors),
	STAT(cq_overflows),
	STAT(interrupts),
	STAT(qos_waits),
	STAT(qos_wait_ns),
};

static uint64_t stat_value(const struct pvr_adapter_stats *stats, size_t i)
{
	const char *at = (const char *)stats + adapter_stats[i].offset;
	uint64_t wide;
	uint32_t narrow;

	if (adapter_stats[i].size == sizeof(narrow)) {
		memcpy(&narrow, at, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, at, sizeof(wide));
	return wide;
}

static void put_port(struct json_object *obj, const struct pvr_port *port)
{
	struct pvr_port_stats stats;

	pvr_port_get_stats(port, &stats);
	put_number(obj, "wire_tx_frames", stats.tx_frames);
	put_number(obj, "wire_rx_frames", stats.rx_frames);
	put_number(obj, "wire_rx_other", stats.rx_other);
	put_number(obj, "wire_rx_malformed", stats.rx_malformed);
	put_number(obj, "wire_rx_icrc", stats.rx_icrc);
	put_number(obj, "wire_rx_unknown", stats.rx_unknown);
	put_number(obj, "wire_rx_lost", stats.rx_lost);
	put_number(obj, "wire_tx_full", stats.tx_full);
	put_number(obj, "wire_retransmits", stats.retransmits);
	put_number(obj, "wire_tx_cnps", stats.tx_cnps);
	put_number(obj, "wire_rx_cnps", stats.rx_cnps);
}

struct json_object *pvr_describe_stats(const struct pvr_attach *attach)
{
	struct pvr_adapter *adapter = pvr_attach_adapter(attach);
	struct json_object *obj = json_object_new_object();
	struct pvr_attach_stats client;
	struct pvr_adapter_stats stats;
	size_t i;

	pvr_adapter_get_stats(adapter, &stats);
	pvr_attach_get_stats(attach, &client);
	put_text(obj, "name", pvr_adapter_name(adapter));
	put_text(obj, "state", pvr_adapter_state_name(stats.state));
	for (i = 0; i < sizeof(adapter_stats) / sizeof(adapter_stats[0]); i++)
		put_number(obj, adapter_stats[i].name, stat_value(&stats, i));
	put_number(obj, "qemu_clients", client.clients);
	put_number(obj, "qemu_messages", client.messages);
	put_number(obj, "qemu_refused", client.refused);
	if (pvr_adapter_port(adapter))
		put_port(obj, pvr_adapter_port(adapter));
	return obj;
}
