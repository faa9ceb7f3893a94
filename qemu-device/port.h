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

#include <sys/uio.h>

#include "engine.h"

struct pvr_port;

struct pvr_port_ops {
	/*
	 * Send a frame. Context: any thread, several at a time; locks are held, and the
	 * function does not block. Return: false if the segment has no room now.
	 */
	bool (*send)(void *opaque, const uint8_t *frame, size_t bytes);
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

/* Handle received frames. Any thread may call it, several at a time. */
void pvr_port_input(struct pvr_port *port, const struct iovec *frames, unsigned int count);

struct pvr_port_stats {
	uint64_t tx_frames, rx_frames;
	uint64_t rx_other; /* of other protocols */
	uint64_t rx_malformed; /* RoCEv2 with a bad header */
	uint64_t rx_icrc; /* bad ICRC */
	uint64_t rx_unknown; /* no such adapter, GID or queue pair, or another peer */
	uint64_t tx_full; /* frames that send() has not taken */
	uint64_t retransmits; /* times that a requester has gone back */
	uint64_t tx_cnps, rx_cnps; /* congestion notification packets */
};

void pvr_port_get_stats(const struct pvr_port *port, struct pvr_port_stats *stats);
/* Return: the port of its pvr_adapter_config, or NULL. */
const struct pvr_port *pvr_adapter_port(const struct pvr_adapter *adapter);

#endif /* PVR_PORT_H */
