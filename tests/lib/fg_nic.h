/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The RDMA NICs at both ends of a connection in memory, as far as they read each other's
 * memory: pvr_stream_ops from expose() on.
 *
 * Nothing is read before fg_nic_work() is called for the reading NIC. Meanwhile tests may
 * hold a read, with nothing or half of it done. Forbidden calls of the engine end the process.
 */
#ifndef FG_NIC_H
#define FG_NIC_H

#include "fg_stream.h"
#include "pipe.h"

/* Progress of a read that has begun. */
enum fg_reads {
	FG_READS_GO,
	FG_READS_HELD,
	FG_READS_HALF, /* the first half at once; the rest is held */
};

/* How all NICs of a wire behave; tests change it at any time. */
struct fg_nic_rules {
	enum fg_reads reads;
	bool no_expose; /* no memory can be exposed */
	bool no_read; /* reads go to the stream's own buffer only */
};

/* Counters of all NICs of a host: exposed memory, reads. Atomic. */
struct fg_nic_stats {
	uint64_t exposed, parts, zerocopy_tx_bytes, revoked;
	uint64_t read, read_own,
		zerocopy_rx_bytes; /* begun: into guest memory, its own; done: both */
	uint64_t stopped; /* canceled reads */
	uint64_t forbidden; /* reads of memory that is not exposed */
};

struct fg_rndv;

struct fg_rdma_read {
	bool on, done;
	size_t at, size; /* bytes read so far, of @size */
	int parts, count;
	struct pvr_rndv_seg part[PVR_FRAME_RNDV_SEGS];
	struct iovec iov[PVR_FRAME_RNDV_SEGS]; /* count 0: own */
	uint8_t *own;
};

struct fg_nic {
	struct fg_nic *peer;
	struct fg_stream *tx, *rx;
	bool wants; /* atomic: wait until tx has room */
	const struct fg_nic_rules *rules;
	struct fg_nic_stats *stats;
	pthread_mutex_t *lock; /* both ends'; protects what follows */
	bool broken;
	struct fg_rndv *rndvs;
	struct fg_rdma_read rdma_read;
};

/* Both ends of a connection, whose streams break with them. */
struct fg_nic_pair {
	pthread_mutex_t lock;
	struct fg_nic nic[2];
};

void fg_nic_pair_init(struct fg_nic_pair *pair, const struct fg_nic_rules *rules,
		      struct fg_stream *one, struct fg_stream *other,
		      struct fg_nic_stats *stats[2]);
void fg_nic_pair_exit(struct fg_nic_pair *pair);
/* Ends all reads. */
void fg_nic_pair_break(struct fg_nic_pair *pair);
/* The engine has left this end: assert that nothing is exposed or being read. */
void fg_nic_expect_idle(struct fg_nic *nic);
/* For an end without an engine: revoke all that it exposes. */
void fg_nic_forget_rndvs(struct fg_nic *nic);

/* Operations of one end, whose opaque pointer is its NIC: all, and without rendezvous. */
extern const struct pvr_stream_ops fg_nic_ops, fg_nic_copy_ops;
void *fg_nic_expose(void *opaque, const struct iovec *iov, int count, struct pvr_rndv_seg *part);
void fg_nic_revoke(void *opaque, void *rndv);

/* Reads as far as the rules allow. Return: whether the read is done or has failed. */
bool fg_nic_work(struct fg_nic *nic);
/* Return: whether a read has begun and is not done. */
bool fg_nic_rdma_read_is_busy(struct fg_nic *nic);

#endif /* FG_NIC_H */
