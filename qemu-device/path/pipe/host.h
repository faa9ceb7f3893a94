/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Another host's daemon, and the connections with it.
 *
 * DOC: lockless access
 *
 * * Hosts and req_conn slots exist until the engine is destroyed. A reference to either
 *   is valid without a lock.
 * * Whether a slot is up is stored in atomic words. They are written after the data that
 *   they announce.
 * * A sender takes the slot's lock and compares the generation. A different generation
 *   means that the connection was replaced.
 */
#ifndef PVR_PIPE_HOST_H
#define PVR_PIPE_HOST_H

#include <sys/queue.h>

#include "core/lock.h"
#include "path/pipe/piggyback.h"
#include "path/pipe/qp_gone_queue.h"
#include "pipe.h"

struct pvr_req_conn;

/*
 * tx counters are written by senders under the connection's lock, rx counters by its
 * thread. Any thread reads them.
 */
struct pvr_link_count {
	uint64_t tx_frames, tx_bytes, rx_frames, rx_bytes;
	uint64_t zerocopy_tx_bytes,
		zerocopy_rx_bytes; /* bytes of these that only NICs have accessed */
};

struct pvr_req_conn_set {
	uint32_t up; /* bit mask of slots that are up */
	uint32_t classed; /* bit mask of slots with a DSCP */
	uint32_t slots; /* 1 + the highest slot that was ever up without a DSCP */
	struct pvr_req_conn *slot[PVR_REQ_CONN_MAX]; /* NULL: never used */
};

struct pvr_host {
	LIST_ENTRY(pvr_host) link;
	struct pvr_engine *engine;
	char name[PVR_HOST_NAME_MAX];
	struct pvr_req_conn_set out[PVR_PIPE_KINDS]; /* see DOC: lockless access */
	uint64_t rtt_ns, heard, retransmits; /* atomic; any thread */
	/* DSCPs that want() was called for since that time; atomic, any thread. */
	uint64_t wanted, wanted_since;
	struct pvr_lock lock; /* Protects the members below and new slots; innermost. */
	LIST_HEAD(, pvr_rsp_conn) ins;
	char address[PVR_FRAME_ADDRESS_MAX]; /* see pvr_host_set_address() */
	struct pvr_link_count gone; /* sum of the closed rsp_conns */
	struct pvr_qp_gone_queue qp_gone;
	struct pvr_piggyback piggyback;
};

/* An engine's state of other hosts. */
#define PVR_PIPE_BUCKETS 256

struct pvr_pipe {
	/* Constant while adapters exist. NULL: no other hosts. */
	const struct pvr_host_ops *ops;
	void *opaque;
	char address[PVR_FRAME_ADDRESS_MAX]; /* of this host; "": unknown */
	uint32_t qps_gone; /* QP_GONE frames in the queues of all hosts; atomic */
	struct pvr_lock lock; /* Protects the members below. No lock is taken inside it. */
	uint64_t generations; /* last generation given to a req_conn */
	size_t num_hosts; /* up to PVR_HOSTS_MAX */
	size_t num_referred; /* of these: see pvr_host_get_referred() */
	/* Hash table by name. A host exists until the engine is destroyed. */
	LIST_HEAD(, pvr_host) hosts[PVR_PIPE_BUCKETS];
};

/* Return: NULL if out of memory. */
struct pvr_pipe *pvr_pipe_create(void);
/* Called without adapters and rsp_conns. */
void pvr_pipe_destroy(struct pvr_pipe *pipe); /* NULL is allowed */

/* Hosts that exist because other hosts have told their names. */
#define PVR_HOSTS_REFERRED_MAX (PVR_HOSTS_MAX / 8)

/* As pvr_host_get(), for a name that another host tells; creates up to PVR_HOSTS_REFERRED_MAX. */
struct pvr_host *pvr_host_get_referred(struct pvr_engine *engine, const char *name);
void pvr_host_get_address(struct pvr_host *host, char address[PVR_FRAME_ADDRESS_MAX]);
/* Return: the host of this name, if it exists. */
struct pvr_host *pvr_host_find(struct pvr_engine *engine, const char *name);
/* Return: the host after @host, or the first one if NULL; NULL: there are no more. */
struct pvr_host *pvr_host_next(struct pvr_engine *engine, struct pvr_host *host);
struct pvr_pipe *pvr_host_pipe(const struct pvr_host *host);
/* Records that bytes have arrived from the host. */
void pvr_host_heard(struct pvr_host *host);
void pvr_link_count_add(struct pvr_link_count *to, const struct pvr_link_count *from);

#endif /* PVR_PIPE_HOST_H */
