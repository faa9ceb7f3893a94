/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Engine and adapter: what all parts of the library share. */
#ifndef PVR_ADAPTER_H
#define PVR_ADAPTER_H

#include <stdarg.h>
#include <sys/queue.h>

#include "core/copy.h"
#include "engine.h"
#include "core/gid.h"
#include "core/pages.h"
#include "core/ram.h"
#include "core/table.h"
#include "core/timer.h"
#include "core/lock.h"

struct pvr_mr;
struct pvr_qp;
struct pvr_srq;
struct pvr_owned;

/* What the device offers; pvr_caps_fill() tells the guest. */
#define PVR_MAX_QP 32768 /* handles go into 16 bits of a CQE */
#define PVR_MAX_CQ 32768
#define PVR_MAX_SRQ 4096
#define PVR_MAX_PD 32768
#define PVR_MAX_MR (1u << 18) /* keys have 24 bits of index */
#define PVR_MAX_QP_WR 16384
#define PVR_MAX_CQE (1u << 18)
#define PVR_MAX_SRQ_WR 16384
#define PVR_MAX_SGE 32 /* an SQ stride is then 1024 bytes, well below a page */
#define PVR_MAX_RD_ATOMIC 128
#define PVR_MAX_MR_SIZE ((uint64_t)PVR_PDIR_MAX_PAGES * PVR_PAGE_SIZE)
#define PVR_MAX_MR_SIZE_LAYOUT ((uint64_t)PVR_PDIR3_MAX_PAGES * PVR_PAGE_SIZE)
#define PVR_MAX_MR_PAGE_SHIFT 30
#define PVR_MAX_FAST_REG_PAGES 128 /* stock drivers refuse more */
#define PVR_MAX_FAST_REG_PAGES_LONG 1024 /* PVR_EXT_LONG_FAST_REG */
#define PVR_MAX_MSG_SIZE (1u << 31)
#define PVR_MAX_MTU PVR_MTU_4096
#define PVR_GID_TABLE_LEN 128
#define PVR_PKEY 0xffff

struct pvr_pipe_sq;
struct pvr_ext_dma;
struct pvr_path_ops;
struct pvr_fabric;
struct pvr_fabrics;
struct pvr_pipe;
struct pvr_worker;
struct pvr_revision;

/* The ways to other adapters, in order of preference; see rdma/path.h. */
enum pvr_path_id {
	PVR_PATH_LOCAL, /* of this process: one memcpy */
	PVR_PATH_PIPE, /* of other hosts that run this daemon, too */
	PVR_PATH_NUM,
};

struct pvr_engine {
	const struct pvr_engine_ops *ops;
	void *opaque;
	unsigned int num_workers;
	struct pvr_copy copy;
	LIST_HEAD(, pvr_adapter) adapters;
	struct pvr_worker *workers;
	struct pvr_fabrics *fabrics;
	struct pvr_pipe *pipe; /* path/pipe */
	const struct pvr_path_ops *paths[PVR_PATH_NUM];
	struct pvr_lock nic_lock; /* of all adapters' ext_dmas */
	uint32_t epoch; /* of the last queue pair that was connected */
};

/* Objects of a context that have doorbells, by the doorbell. */
enum pvr_owned_kind {
	PVR_OWNED_QP,
	PVR_OWNED_CQ,
	PVR_OWNED_SRQ,
	PVR_OWNED_NUM,
};

/* They are looked at in turns, see ctrl/uar_poll.h. */
struct pvr_owned_list {
	TAILQ_HEAD(, pvr_owned) list;
	struct pvr_owned *next; /* whose turn it is; NULL: the first one's */
	uint32_t count;
	uint32_t left; /* how many are still to be looked at */
};

/* A context: owner of a UAR page and of objects. Context 0 is the guest driver's. */
struct pvr_uc {
	struct pvr_adapter *adapter;
	uint32_t handle;
	uint32_t uar;
	struct pvr_owned_list owned[PVR_OWNED_NUM];
	TAILQ_ENTRY(pvr_uc) link; /* of all contexts */
	/* ctrl/uar_poll.c */
	bool is_sweeping;
	TAILQ_ENTRY(pvr_uc) sweeping;
	uint64_t cq_doorbells; /* seen in its page */
};

TAILQ_HEAD(pvr_uc_list, pvr_uc);

/* A context's object; part of QPs, CQs and SRQs. */
struct pvr_owned {
	TAILQ_ENTRY(pvr_owned) link;
};

/* Doorbells that the guest stores to memory, see ctrl/uar_poll.h. */
struct pvr_uar_poll {
	bool on; /* the adapter was made for it */
	uint32_t *uar_shm; /* PVR_BAR_UAR_SIZE bytes; NULL: doorbells come by call only */
	struct pvr_uc *next; /* whose page is looked at next; NULL: the first one's */
	struct pvr_uc_list sweeping; /* contexts with objects to look at */
};

struct pvr_gid_entry {
	bool bound;
	uint8_t type; /* PVR_GID_TYPE_* */
	uint16_t vlan; /* PVR_VLAN_NONE without PVR_EXT_VLAN */
	uint8_t gid[16];
};

struct pvr_event_ring {
	struct pvr_ring *shm; /* ours is prod_tail, the guest's cons_head */
	void *slots_shm; /* one page */
	uint32_t slots; /* a power of two */
	uint32_t prod; /* 0 .. 2 * slots - 1 */
};

/* Events that wait for room: as many as the ring has once more. */
#define PVR_EQE_BACKLOG PVR_EQE_SLOTS

/* A completion vector; without a ring no CQ has it. */
struct pvr_cq_vector {
	struct pvr_event_ring ring;
	/* CQs whose notification waits for room. */
	TAILQ_HEAD(pvr_cq_backlog, pvr_cq) backlog;
};

struct pvr_event_rings {
	struct pvr_event_ring async;
	struct pvr_cq_vector cq[PVR_CQ_VECTORS_MAX];
	struct pvr_eqe backlog[PVR_EQE_BACKLOG];
	uint32_t backlog_head, backlog_count;
	uint32_t cqs_waiting; /* in all backlogs of CQs */
	struct pvr_timer retry; /* while something waits */
	uint64_t retry_ns; /* until then; grows while the guest does not read */
};

/* How often a guest may make us log. */
struct pvr_log_limit {
	uint64_t since; /* ns */
	unsigned int count, suppressed;
};

/* Queue pairs whose send queue is looked at without doorbells, see rdma/db_suppress.h. */
struct pvr_polled {
	bool on; /* the embedder polls; read without the lock, too */
	uint32_t count; /* ditto */
	TAILQ_HEAD(, pvr_qp) qps; /* who was busy longest ago is first */
};

/*
 * Queue pairs that wait for something from other hosts, as pvr_host_resume() has to know
 * them. Of those that wait for a connection, the first ones could not send anything in
 * their last turn, so they are first in the next.
 */
struct pvr_pipe_sq_lists {
	bool any; /* there may be one; read without the lock, too */
	TAILQ_HEAD(pvr_pipe_sqs, pvr_pipe_sq) starved, blocked, in_flight;
	TAILQ_HEAD(, pvr_qp) unanswered;
};

/* Datagrams that have outlived their queue pairs, see rdma/ud.h. */
struct pvr_ud_linger_list {
	TAILQ_HEAD(, pvr_ud_linger) list; /* who came first is first */
	uint32_t count, bytes;
	struct pvr_timer timer;
};

/* A command that is not done yet: so far only CREATE_MR takes that long. */
struct pvr_job {
	struct pvr_mr *mr; /* to be; NULL: there is no job. Read without the lock, too */
	void (*step)(struct pvr_adapter *adapter); /* one bounded step; ends the job when done */
	struct pvr_walk walk;
	union pvr_cmd_req req;
};

/*
 * DOC: locks
 *
 * An adapter's lock protects all of it and of its objects, but for what never changes
 * and for membership in lists, where the lists' own say. A queue pair's turn holds the
 * lock of its own adapter, and may get hold of one peer's at a time (pvr_adapter_lock_peer()), by
 * trying. What a quantum may not wait for is tried again in a later one.
 *
 * Inside adapters' locks come the fabrics' (gid/fabric.h) and inside all the workers'.
 * An adapter comes and goes while no other thread uses the engine.
 */
struct pvr_adapter {
	struct pvr_lock lock;
	bool queued; /* on a list of its worker */
	bool is_interrupting; /* on its worker's list of those */
	bool has_interrupts; /* vectors to raise, but on no such list yet */
	bool has_lost_gids; /* read without the lock, too */
	bool has_lost_peers; /* perhaps; ditto */
	struct pvr_worker *worker;
	/* Who is giving its queue pairs a quantum now; NULL also if it is no worker. */
	struct pvr_worker *runner;
	/* The peer's adapter that this quantum holds, and one that it could not get. */
	struct pvr_adapter *locked_peer, *contended_peer;
	/* Queue pairs with something to do, in the order in which they became so. */
	TAILQ_HEAD(pvr_ready, pvr_qp) ready;
	struct pvr_timers timers;
	uint64_t deadline; /* of the first timer, when the lock was last given back */
	/*
	 * Grows whenever one of its queue pairs may have stopped being what a peer has
	 * found: what was looked up under another number is looked up again.
	 */
	uint64_t qp_gen;

	struct pvr_engine *engine;
	LIST_ENTRY(pvr_adapter) link;
	LIST_ENTRY(pvr_adapter) of_worker;
	TAILQ_ENTRY(pvr_adapter) busy;
	SLIST_ENTRY(pvr_adapter) interrupting;
	LIST_HEAD(pvr_lost_gids, pvr_gid_node) lost_gids; /* of the fabric */
	char name[PVR_NAME_MAX];
	uint8_t mac[6];
	const struct pvr_revision *revision;
	uint8_t gid_type; /* PVR_GID_TYPE_* of all its GIDs */
	struct pvr_fabric *fabric;
	LIST_ENTRY(pvr_adapter) fabric_link;
	uint64_t incarnation; /* of the fabric: see pvr_fabric_incarnation() */
	bool is_incarnation_known; /* to a queue pair; of the fabric */
	struct pvr_timer peers; /* until it looks whose peers are gone */
	const struct pvr_adapter_ops *ops;
	void *host;
	struct pvr_log_limit log_limit;

	/* What the host side told us; a reset changes none of it. */
	struct pvr_ram ram;
	bool bus_master;
	bool link_up;

	/* Registers and the driver's handshake. */
	enum pvr_adapter_state state;
	uint32_t dsr_low, dsr_high;
	uint32_t err, icr, imr;
	uint32_t pending; /* vectors to raise, as bits */
	uint32_t ext_ack; /* as the driver wrote it, cut to what we offer */
	uint32_t features; /* in effect since DSRHIGH */
	uint32_t driver_version; /* as the DSR says */
	uint32_t version; /* in effect: the lower of ours and the driver's */
	uint64_t uar_pfn;
	struct pvr_dsr *dsr_shm;
	void *cmd_shm, *resp_shm;
	struct pvr_event_rings events;
	/* What the quantum has consumed and completed so far; see pvr_publish(). */
	SLIST_HEAD(, pvr_wq) consumed;
	SLIST_HEAD(, pvr_cq) completed;

	/* Objects. */
	uint64_t pages_bytes; /* see pvr_walk_begin() */
	struct pvr_uc kernel_uc;
	struct pvr_uc_list contexts; /* kernel_uc and those of ucs */
	uint32_t num_contexts;
	struct pvr_uar_poll uar_poll;
	struct pvr_uc *uar[PVR_MAX_UAR]; /* by page */
	struct pvr_table ucs, pds, mrs, cqs, qps, srqs;
	struct pvr_gid_entry gids[PVR_GID_TABLE_LEN];
	struct pvr_qp *gsi;
	struct pvr_polled polled;
	struct pvr_pipe_sq_lists hosts;
	struct pvr_ud_linger_list lingering_list;
	/* core/ext_dma.h */
	LIST_HEAD(, pvr_ext_dma) ext_dmas;
	uint32_t num_ext_dmas; /* read without the engine's nic_lock, too */
	uint64_t nic_not_before; /* NICs leave its memory alone */
	uint32_t mcast_groups, mcast_attached;
	uint32_t mws; /* of mrs: memory windows */
	struct pvr_job job;
	uint8_t mr_generation;
	uint8_t qpn_generation;

	uint64_t stat[PVR_STAT_NUM]; /* since the adapter was made */
	struct pvr_adapter_stats stats; /* what is in neither stat[] nor a table */
};

/* The adapter may read and write guest memory now. */
static inline bool pvr_adapter_dma_ok(const struct pvr_adapter *adapter)
{
	return adapter->bus_master &&
	       (adapter->state == PVR_ADAPTER_READY || adapter->state == PVR_ADAPTER_ACTIVE);
}

static inline struct pvr_uc *pvr_uc_get(struct pvr_adapter *adapter, uint32_t handle)
{
	return handle ? pvr_table_get(&adapter->ucs, handle) : &adapter->kernel_uc;
}

/* NULL if nothing is bound at @index. */
static inline const struct pvr_gid_entry *pvr_gid_get(const struct pvr_adapter *adapter,
						      uint32_t index)
{
	if (index >= PVR_GID_TABLE_LEN || !adapter->gids[index].bound)
		return NULL;
	return &adapter->gids[index];
}

/* Counters that others than their owner may read at any time. */
static inline uint64_t pvr_stat_get(const uint64_t *stat)
{
	return __atomic_load_n(stat, __ATOMIC_RELAXED);
}

static inline void pvr_stat_add(uint64_t *stat, uint64_t n)
{
	__atomic_store_n(stat, *stat + n, __ATOMIC_RELAXED);
}

static inline uint64_t pvr_now(const struct pvr_engine *engine)
{
	return engine->ops->now(engine->opaque);
}

/* Logs one line about an adapter (or about the engine, if NULL). */
void pvr_log(struct pvr_engine *engine, struct pvr_adapter *adapter, enum pvr_log_level level,
	     const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* For what a guest can repeat: at a bounded rate. */
void pvr_log_limited(struct pvr_adapter *adapter, enum pvr_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Logs what the guest did wrong. */
#define pvr_log_guest(adapter, ...) pvr_log_limited((adapter), PVR_LOG_WARN, __VA_ARGS__)
/* Logs what the guest did. */
#define pvr_info_guest(adapter, ...) pvr_log_limited((adapter), PVR_LOG_INFO, __VA_ARGS__)
#define pvr_info(adapter, ...) pvr_log((adapter)->engine, (adapter), PVR_LOG_INFO, __VA_ARGS__)
#define pvr_debug(adapter, ...) pvr_log((adapter)->engine, (adapter), PVR_LOG_DEBUG, __VA_ARGS__)

#endif /* PVR_ADAPTER_H */
