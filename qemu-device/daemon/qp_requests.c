// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Replies of the control socket about queue pairs. */
#include "daemon/qp_requests.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/adapter_settings.h"
#include "daemon/json_put.h"

struct json_object *pvr_describe_qp(const struct pvr_qp_info *qp)
{
	static const struct {
		const char *name;
		enum pvr_stat stat;
	} stats[] = {
		{ "tx_messages", PVR_STAT_TX_MSGS },
		{ "tx_bytes", PVR_STAT_TX_BYTES },
		{ "rx_messages", PVR_STAT_RX_MSGS },
		{ "rx_bytes", PVR_STAT_RX_BYTES },
		{ "local_bytes", PVR_STAT_LOCAL_BYTES },
		{ "verbs_bytes", PVR_STAT_RDMA_BYTES },
		{ "tcp_bytes", PVR_STAT_TCP_BYTES },
		{ "rnr_naks", PVR_STAT_RNR_NAKS },
		{ "ack_timeouts", PVR_STAT_ACK_TIMEOUTS },
		{ "retries_exceeded", PVR_STAT_RETRIES_EXCEEDED },
	};
	struct json_object *obj = json_object_new_object();
	char gid[GID_TEXT];
	size_t i;

	put_number(obj, "qpn", qp->qpn);
	put_text(obj, "type", qp->type);
	put_text(obj, "state", qp->state);
	put_text(obj, "wait", qp->waits);
	put_number(obj, "dest_qpn", qp->dest_qpn);
	put_text(obj, "dgid", format_gid(qp->dgid, gid));
	put_number(obj, "traffic_class", qp->traffic_class);
	for (i = 0; i < sizeof(stats) / sizeof(stats[0]); i++)
		put_number(obj, stats[i].name, qp->stat[stats[i].stat]);
	return obj;
}

static void put_requester(struct json_object *obj, const struct pvr_qp_detail *qp)
{
	put_number(obj, "sq_psn", qp->sq_psn);
	put_number(obj, "sends", qp->sends);
	put_number(obj, "max_sends", qp->max_sends);
	put_number(obj, "in_flight", qp->in_flight);
	put_number(obj, "sent_bytes_of_message", qp->sent_bytes);
	/* 4.096 us << timeout */
	put_number(obj, "timeout_us", qp->timeout ? (4096ull << qp->timeout) / 1000 : 0);
	put_number(obj, "retry_count", qp->retry_cnt);
	put_number(obj, "retries_left", qp->retry_left);
	put_number(obj, "rnr_retry_count", qp->rnr_retry);
	put_number(obj, "rnr_retries_left", qp->rnr_left);
}

static void put_responder(struct json_object *obj, const struct pvr_qp_detail *qp)
{
	put_number(obj, "rq_psn", qp->rq_psn);
	put_number(obj, "receives", qp->recvs);
	put_number(obj, "max_receives", qp->max_recvs);
	put_number(obj, "received_bytes_of_message", qp->received_bytes);
}

static void put_connection(struct json_object *obj, const struct pvr_qp_detail *qp)
{
	char gid[GID_TEXT];

	put_text(obj, "sgid", format_gid(qp->sgid, gid));
	put_number(obj, "path_mtu", qp->path_mtu);
	put_text(obj, "path", qp->path);
	put_text(obj, "peer", qp->peer);
}

/* Only on the wire. timeout_us is the time until packets are sent again without an answer. */
static void put_wire(struct json_object *obj, const struct pvr_qp_wire *wire)
{
	char mac[PVR_MAC_TEXT];

	if (!wire->sends)
		return;
	put_text(obj, "dmac", pvr_mac_text(wire->dmac, mac));
	put_number(obj, "window_packets", wire->window);
	put_number(obj, "packets_in_flight", wire->packets_in_flight);
	put_number(obj, "round_trip_us", wire->round_trip / 1000);
	put_number(obj, "probe_after_us", wire->probe_after / 1000);
	put_number(obj, "probes", wire->probes);
	put_number(obj, "go_backs", wire->go_backs);
}

static bool parse_qpn(const char *text, uint32_t *qpn)
{
	unsigned long long number;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 0);
	*qpn = (uint32_t)number;
	return isdigit((unsigned char)*text) && !*end && !errno && number <= 0xffffff;
}

bool pvr_put_qp(struct pvr_adapter *adapter, const char *number, struct json_object *reply,
		struct pvr_error *err)
{
	const char *name = pvr_adapter_name(adapter);
	struct pvr_qp_detail detail;
	struct json_object *obj;
	uint32_t qpn;

	if (!parse_qpn(number, &qpn))
		return pvr_fail(err,
				"'%.32s' is no queue pair number: give 0 to 16777215, or 0x...",
				number);
	if (!pvr_adapter_get_qp(adapter, qpn, &detail))
		return pvr_fail(err, "adapter '%s' has no queue pair %u: see 'pvrdmactl qps %s'",
				name, qpn, name);
	obj = pvr_describe_qp(&detail.info);
	put_connection(obj, &detail);
	put_requester(obj, &detail);
	put_responder(obj, &detail);
	put_wire(obj, &detail.wire);
	put_text(obj, "last_error", detail.error ? detail.error : "");
	put_number(obj, "last_error_age_ms", detail.error_age / 1000000);
	put_text(reply, "name", name);
	put(reply, "qp", obj);
	return true;
}
