/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Another daemon, and the connections with it.
 *
 * DOC: who may look
 *
 * Hosts and slots of outgoing connections stay until the engine goes, so who has found
 * one needs no lock to look whether it is up: that is in atomic words, which are written
 * after all that they promise. Whoever uses a slot takes its lock and sees by its
 * generation whether it is still the connection that was found.
 */
#ifndef PVR_PIPE_HOST_H
#define PVR_PIPE_HOST_H

#include "path/pipe/piggyback.h"
#include "path/pipe/net.h"

struct pvr_req_conn;

/* Who sends counts tx, under the connection's lock; its thread counts rx. Others read. */
struct pvr_link_count {
	uint64_t tx_frames, tx_bytes, rx_frames, rx_bytes;
	uint64_t zerocopy_tx_bytes,
		zerocopy_rx_bytes; /* of these, those that only NICs have touched */
};

struct pvr_req_conn_set {
	uint32_t up; /* slots, as bits */
	uint32_t classed; /* ditto: those with a DSCP */
	uint32_t slots; /* the highest without one that there ever was, and one */
	struct pvr_req_conn *slot[PVR_REQ_CONN_MAX]; /* NULL: never used */
};

struct pvr_host {
	LIST_ENTRY(pvr_host) link;
	struct pvr_engine *engine;
	char name[PVR_HOST_NAME_MAX];
	struct pvr_req_conn_set out[PVR_PIPE_KINDS]; /* see above */
	uint64_t rtt_ns, heard, retransmits; /* any thread; ditto */
	struct pvr_lock lock; /* Protects what follows, and new slots; nothing is taken inside it. */
	LIST_HEAD(, pvr_rsp_conn) ins;
	struct pvr_link_count gone; /* of incoming connections that are no more */
	struct pvr_piggyback piggyback;
};

struct pvr_pipe *pvr_host_pipe(const struct pvr_host *host);
/* Something came from there just now. */
void pvr_host_heard(struct pvr_host *host);
void pvr_link_count_add(struct pvr_link_count *to, const struct pvr_link_count *from);

#endif /* PVR_PIPE_HOST_H */
