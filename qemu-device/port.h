/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The interface to an Ethernet segment on which adapters speak RoCEv2 with any RDMA NIC.
 *
 * DOC: division of work
 *
 * The engine builds and reads frames. The embedder has the socket: it gives received frames
 * to pvr_port_input(), and sends frames in send(). A frame is whole, from its Ethernet header
 * to its ICRC; frames that are not RoCEv2 are dropped and counted.
 *
 * Ports are created before their adapters, and destroyed after them.
 */
#ifndef PVR_PORT_H
#define PVR_PORT_H

#include "engine.h"

struct pvr_port;

/*
 * A frame. One of several packets has one Ethernet, IP and UDP header, and behind it the UDP
 * payload of each packet. The network cuts it (UDP segmentation offload).
 */
struct pvr_port_frame {
	uint8_t *data;
	uint32_t bytes;
	uint16_t headers; /* to send, of several packets: bytes of these headers */
	uint16_t segment; /* bytes of a packet's UDP payload, the last one may have fewer; 0: one packet */
};

struct pvr_port_ops {
	/*
	 * Send frames, which are not changed. Context: any thread, several at a time; locks are
	 * held, and the function does not block. Return: how many were sent, or lost; less than
	 * @count if the segment has no room now.
	 */
	unsigned int (*send)(void *opaque, const struct pvr_port_frame *frames, unsigned int count);
};

/* Bytes of headers around the payload, as Linux counts them for the RoCE MTU. */
#define PVR_PORT_OVERHEAD 96

/*
 * Create a port. @name: copied, for logs and statistics; @mtu: of the interface, in bytes.
 * Return: NULL if out of memory.
 */
struct pvr_port *pvr_port_create(struct pvr_engine *engine, const char *name, uint32_t mtu,
				 const struct pvr_port_ops *ops, void *opaque);
void pvr_port_destroy(struct pvr_port *port);
/* Whether send() may be given frames of several packets; not at first. Any thread. */
void pvr_port_set_gso(struct pvr_port *port, bool on);

/*
 * Handle received frames, which are overwritten. Any thread may call it, several at a time.
 * Return: how many were handled, at least one of @count. The others are given again, after other
 * work has had its turn: those before them went to large multicast groups.
 */
unsigned int pvr_port_input(struct pvr_port *port, const struct pvr_port_frame *frames,
			    unsigned int count);

/* The segment has lost @count frames before pvr_port_input(). Any thread. */
void pvr_port_lost(struct pvr_port *port, uint64_t count);

struct pvr_port_stats {
	uint64_t tx_frames, rx_frames;
	uint64_t rx_other; /* of other protocols */
	uint64_t rx_malformed; /* RoCEv2 with a bad header */
	uint64_t rx_icrc; /* bad ICRC */
	uint64_t rx_unknown; /* no such adapter, GID or queue pair, or another peer */
	uint64_t rx_lost; /* by the segment, see pvr_port_lost(), or beyond the work of a batch */
	uint64_t tx_full; /* times that send() has not taken all frames */
	uint64_t retransmits; /* times that a requester has gone back */
	uint64_t tx_cnps, rx_cnps; /* congestion notification packets */
};

void pvr_port_get_stats(const struct pvr_port *port, struct pvr_port_stats *stats);
/* Return: the port of its pvr_adapter_config, or NULL. */
const struct pvr_port *pvr_adapter_port(const struct pvr_adapter *adapter);

#endif /* PVR_PORT_H */
