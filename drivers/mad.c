// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Performance management MADs. ib_core reads the port counters of sysfs by them. */
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "pvrdma.h"

/*
 * A message counts as one packet of any length. Transmitted data are those of the port's
 * own requests, received data those of requests it served: the device does not report the
 * direction. Packet headers do not count, and error counters are 0. Data are in units of
 * four bytes.
 */
#define DATA_UNIT 4

static_assert(sizeof(struct ib_pma_mad) == sizeof(struct ib_mad));

/* 32-bit counters saturate. */
static __be32 saturated(u64 val)
{
	return cpu_to_be32(min_t(u64, val, U32_MAX));
}

static void port_info(struct ib_class_port_info *info)
{
	info->base_version = IB_MGMT_BASE_VERSION;
	info->class_version = 1;
	info->capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH;
}

static void port_counters(struct ib_pma_portcounters *to, const u64 *stat)
{
	to->port_select = 1;
	to->port_xmit_data = saturated(stat[PVR_STAT_TX_BYTES] / DATA_UNIT);
	to->port_rcv_data = saturated(stat[PVR_STAT_RX_BYTES] / DATA_UNIT);
	to->port_xmit_packets = saturated(stat[PVR_STAT_TX_MSGS]);
	to->port_rcv_packets = saturated(stat[PVR_STAT_RX_MSGS]);
}

static void port_counters_ext(struct ib_pma_portcounters_ext *to,
			      const u64 *stat)
{
	u64 tx = stat[PVR_STAT_TX_MSGS], rx = stat[PVR_STAT_RX_MSGS];
	u64 tx_mcast = stat[PVR_STAT_TX_MCAST];
	u64 rx_mcast = stat[PVR_STAT_RX_MCAST];

	to->port_select = 1;
	to->port_xmit_data = cpu_to_be64(stat[PVR_STAT_TX_BYTES] / DATA_UNIT);
	to->port_rcv_data = cpu_to_be64(stat[PVR_STAT_RX_BYTES] / DATA_UNIT);
	to->port_xmit_packets = cpu_to_be64(tx);
	to->port_rcv_packets = cpu_to_be64(rx);
	to->port_unicast_xmit_packets = cpu_to_be64(tx - tx_mcast);
	to->port_unicast_rcv_packets = cpu_to_be64(rx - rx_mcast);
	to->port_multicast_xmit_packets = cpu_to_be64(tx_mcast);
	to->port_multicast_rcv_packets = cpu_to_be64(rx_mcast);
}

/* Fill the data of a response. */
static int answer(struct pvr_dev *dev, __be16 attr_id, void *data)
{
	u64 stat[PVR_STAT_NUM];
	int err;

	if (attr_id == IB_PMA_CLASS_PORT_INFO) {
		port_info(data);
		return 0;
	}
	err = pvr_stats_query(dev, 0, stat);
	if (err)
		return err;
	if (attr_id == IB_PMA_PORT_COUNTERS)
		port_counters(data, stat);
	else if (attr_id == IB_PMA_PORT_COUNTERS_EXT)
		port_counters_ext(data, stat);
	else
		return -EOPNOTSUPP;
	return 0;
}

/*
 * Only requests of sysfs, which have no work completion, get a response. Requests from
 * the fabric go to the agents, because other guests must not read this guest's traffic.
 */
int pvr_process_mad(struct ib_device *ibdev, int flags, u32 port,
		    const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		    const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *out_pkey_index)
{
	struct ib_pma_mad *reply = (struct ib_pma_mad *)out;

	if (in_wc || in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MAD_RESULT_SUCCESS;
	memset(reply, 0, sizeof(*reply));
	reply->mad_hdr = in->mad_hdr;
	reply->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	if (answer(to_pvr_dev(ibdev), in->mad_hdr.attr_id, reply->data))
		return IB_MAD_RESULT_FAILURE;
	*out_size = sizeof(*reply);
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
