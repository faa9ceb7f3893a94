/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Engine and adapter: the structs that all parts of the library share. */
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
#include "core/move.h"

struct pvr_mr;
struct pvr_qp;
struct pvr_srq;
struct pvr_owned;

/* Limits of the device; pvr_caps_fill() reports them to the guest. */
#define PVR_MAX_QP 32768 /* a CQE has 16 bits for the handle */
#define PVR_MAX_CQ 32768
#define PVR_MAX_SRQ 4096
#define PVR_MAX_PD 32768
#define PVR_MAX_XRCD 4096
#define PVR_MAX_MR (1u << 18) /* keys have 24 bits of index */
#define PVR_MAX_QP_WR 16384
#define PVR_MAX_CQE (1u << 18)
#define PVR_MAX_SRQ_WR 16384
#define PVR_MAX_SGE 32 /* gives an SQ stride of 1024 bytes, well below a page */
#define PVR_MAX_RD_ATOMIC 128
#define PVR_MAX_MR_SIZE ((uint64_t)PVR_PDIR_MAX_PAGES * PVR_PAGE_SIZE)
#define PVR_MAX_MR_SIZE_LAYOUT ((uint64_t)PVR_PDIR3_MAX_PAGES * PVR_PAGE_SIZE)
#define PVR_MAX_MR_SIZE_ON_DEMAND (1ull << 47) /* all addresses of a program */
#define PVR_MAX_MR_PAGE_SHIFT 30
#define PVR_MAX_FAST_REG_PAGES 128 /* stock drivers reject a higher limit */
#define PVR_MAX_FAST_REG_PAGES_LONG 1024 /* PVR_EXT_LONG_FAST_REG */
#define PVR_MAX_MSG_SIZE (1u << 31)
#define PVR_MAX_MTU PVR_MTU_4096
#define PVR_GID_TABLE_LEN 128
#define PVR_PKEY 0xffff
#define PVR_FLOW_LISTS 32
#define PVR_VEC_WORDS ((PVR_VEC_MAX + 63) / 64)
#define PVR_EXT_DMA_COUNTS 64

struct pvr_pipe_sq;
struct pvr_ext_dma;
struct pvr_path_ops;
struct pvr_dest;
struct pvr_referrals;
struct pvr_fabric;
struct pvr_fabrics;
struct pvr_faults;
struct pvr_flow;
struct pvr_load;
struct pvr_pipe;
struct pvr_port;
struct pvr_eth_adapter;
struct pvr_worker;
struct pvr_revision;

#define PVR_PATHS_MAX 4
/* The path of a queue pair whose destination no path reaches. It behaves as without a response. */
#define PVR_PATH_DEFAULT 0
/* The path in front of another one, see path/fault/fault.h. No loop over the paths has it. */
#define PVR_PATH_FAULT (PVR_PATHS_MAX + 1)

struct pvr_engine {
	const struct pvr_engine_ops *ops;
	void *opaque;
	unsigned int num_workers;
	struct pvr_copy copy;
	LIST_HEAD(, pvr_adapter) adapters;
	struct pvr_worker *workers;
	struct pvr_fabrics *fabrics;
	struct pvr_pipe *pipe; /* path/pipe */
	/* Preferred first, then NULL; PVR_PATH_FAULT is the last one. */
	const struct pvr_path_ops *paths[PVR_PATH_FAULT + 1];
	/* Changes only while no worker runs. NULL: there never was a rule. */
	struct pvr_faults *faults;
	/* Limits of fabrics, see rdma/shaper.h; change only while no worker runs. */
	LIST_HEAD(, pvr_fabric_limit) fabric_limits;
	/* Change only while no worker runs. */
	union {
		struct {
			uint32_t captures; /* adapters with a capture */
			uint32_t num_faults; /* rules of path/fault */
		};
		uint64_t observed; /* not 0: datagrams take the way that checks both */
	};
	uint32_t epoch; /* of the queue pair that was connected last */
	char name[PVR_MOVE_NAME_MAX]; /* of this host; "": it has none */
	/* In states of a host without a name: of this process, and of those that it has replaced. */
	char origin[PVR_MOVE_NAME_MAX];
	const struct pvr_move_ops *move_ops;
	uint64_t hold_ns; /* requests to a stopped adapter wait for this time */
	bool needs_source; /* no adapter starts while the source of its state does not respond */
};

/* Kinds of objects that have doorbells. */
enum pvr_owned_kind {
	PVR_OWNED_QP,
	PVR_OWNED_CQ,
	PVR_OWNED_SRQ,
	PVR_OWNED_NUM,
};

/* Objects of one kind and context, polled round robin; see ctrl/uar_poll.h. */
struct pvr_owned_list {
	TAILQ_HEAD(, pvr_owned) list;
	struct pvr_owned *next; /* the next to poll; NULL: the first one */
	uint32_t count;
	uint32_t left; /* number of objects still to poll */
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
	uint64_t cq_doorbells; /* number found in its page */
};

TAILQ_HEAD(pvr_uc_list, pvr_uc);

/* An object of a context; part of QPs, CQs and SRQs. */
struct pvr_owned {
	TAILQ_ENTRY(pvr_owned) link;
};

/* Doorbells that the guest stores to memory, see ctrl/uar_poll.h. */
struct pvr_uar_poll {
	bool on; /* pvr_adapter_config.uar_mapped */
	uint32_t *uar_shm; /* PVR_BAR_UAR_SIZE bytes; NULL: the guest maps no UAR */
	struct pvr_uc *next; /* owner of the next page to poll; NULL: the first one */
	struct pvr_uc_list sweeping; /* contexts with objects to poll */
};

struct pvr_gid_entry {
	bool bound;
	uint8_t type; /* PVR_GID_TYPE_* */
	uint16_t vlan; /* PVR_VLAN_NONE without PVR_EXT_VLAN */
	uint8_t gid[16];
};

struct pvr_event_ring {
	struct pvr_ring *shm; /* the device writes prod_tail, the guest cons_head */
	void *slots_shm; /* one page */
	uint32_t slots; /* a power of two */
	uint32_t prod; /* 0 .. 2 * slots - 1 */
};

/* Events that wait for space: at most as many as the ring has slots. */
#define PVR_EQE_BACKLOG PVR_EQE_SLOTS

/* A completion vector. Without a ring no CQ uses it. */
struct pvr_cq_vector {
	struct pvr_event_ring ring;
	/* CQs whose notification waits for space. */
	TAILQ_HEAD(pvr_cq_backlog, pvr_cq) backlog;
};

struct pvr_event_rings {
	struct pvr_event_ring async;
	struct pvr_cq_vector cq[PVR_CQ_VECTORS_MAX];
	struct pvr_eqe backlog[PVR_EQE_BACKLOG];
	uint32_t backlog_head, backlog_count;
	uint32_t cqs_waiting; /* in all backlogs of CQs */
	struct pvr_timer retry; /* while something waits */
	uint64_t retry_ns; /* delay; grows while the guest does not read */
};

/* Rate limit of log messages that a guest can cause. */
struct pvr_log_limit {
	uint64_t since; /* ns */
	unsigned int count, suppressed;
};

/* Queue pairs whose send queue is polled, see rdma/db_suppress.h. */
struct pvr_polled {
	bool on; /* the embedder polls; also read without the lock */
	uint32_t count; /* also read without the lock */
	TAILQ_HEAD(, pvr_qp) qps; /* the longest idle is first */
};

/*
 * Send queues that wait for other hosts; pvr_host_resume() resumes them. @starved and
 * @blocked wait for a connection. Those in @starved sent nothing in their last quantum,
 * so they are resumed first.
 */
struct pvr_pipe_sq_lists {
	bool any; /* a list may have entries; also read without the lock */
	TAILQ_HEAD(pvr_pipe_sqs, pvr_pipe_sq) starved, blocked, in_flight;
	TAILQ_HEAD(, pvr_qp) unanswered;
};

/* Datagrams whose queue pairs are destroyed, see rdma/ud.h. */
struct pvr_ud_linger_list {
	TAILQ_HEAD(, pvr_ud_linger) list; /* the oldest is first */
	uint32_t count, bytes;
	struct pvr_timer timer;
};

/* RESIZE_CQ and MODIFY_SRQ: a ring that moves to other pages. */
struct pvr_ring_move {
	struct pvr_pages pages; /* of the new ring, with its header page */
	uint32_t size; /* entries of the new ring */
	uint64_t first; /* the oldest entry, which becomes entry 0 of the new ring */
	uint32_t copied, n; /* entries; n of an SRQ only */
};

/*
 * A command, a reset or a removal of RAM that is executed in steps. A step ends when its
 * work reaches PVR_STEP_WORK. The worker runs other adapters between two steps.
 */
struct pvr_job {
	/* Execute one step; it ends the job when done. NULL: no job. Also read without the lock. */
	void (*step)(struct pvr_adapter *adapter);
	/* The step of a command. Return: 0, -errno, or -EINPROGRESS if steps remain. */
	int (*run)(struct pvr_adapter *adapter, union pvr_cmd_resp *resp);
	/* Free the command's objects. NULL: the job leaves nothing behind. */
	void (*cancel)(struct pvr_adapter *adapter);
	uint32_t work; /* of this step, in units of a page */
	/* The most work of a step since the creation of the adapter, also of its sweeps. */
	uint32_t longest;
	union pvr_cmd_req req;
	/* CREATE_MR */
	struct pvr_mr *mr; /* the new region */
	struct pvr_walk walk;
	struct pvr_ring_move move;
	/* Steps that visit all objects. */
	struct pvr_uc *uc; /* DESTROY_UC */
	unsigned int table;
	uint32_t handle;
	/* Reset */
	bool keeps_regs; /* of pvr_adapter_prepare_reset() */
	bool is_silent, reloads; /* of pvr_adapter_empty() */
	bool has_notified; /* the peers at other hosts */
	/* Removal of RAM */
	struct pvr_ram_region region; /* not in adapter->ram any more */
	uint64_t at; /* position in the pages of the object, see pvr_pages_check() */
	bool suspends; /* has several steps */
};

/* Why a queue pair has failed, for display. */
struct pvr_qp_error {
	uint32_t qpn;
	const char *why; /* NULL: unused */
	uint64_t time;
};

#define PVR_QP_ERRORS 64

/* A visit of all queue pairs in steps, see rdma/qp_sweep.h. */
struct pvr_qp_sweep {
	uint32_t reasons; /* enum pvr_qp_sweep_for; 0: no sweep */
	uint32_t next; /* those of the next sweep */
	uint32_t handle; /* the next to visit */
};

/* About 0.3 ms: so many entries of a page directory, about 20 ns each. */
#define PVR_STEP_WORK 16384u
/* Work of the destruction of an object, and of the unbinding of a window. */
#define PVR_WORK_OBJECT 16u
#define PVR_WORK_QP 64u
#define PVR_WORK_WINDOW 4u
/* Work of a frame to another host: a system call of about 5 us. */
#define PVR_WORK_FRAME 256u
/* Work of a page that is copied to another one, if the host allocates both: about 5 us. */
#define PVR_WORK_COPY 256u

/*
 * DOC: locks
 *
 * - An adapter's lock protects the adapter and its objects. Exceptions: constant members,
 *   members marked "also read without the lock", and links of lists with their own lock.
 * - A quantum of a queue pair holds the lock of the queue pair's adapter.
 * - A quantum may also lock the adapter of one peer at a time: pvr_adapter_lock_peer(),
 *   which never waits. If the peer's adapter is locked, the quantum is repeated later.
 * - Order: adapters' locks, then locks of GIDs (gid/fabric.h), nic_lock, and
 *   workers' locks.
 * - Adapters are created and destroyed while no other thread uses the engine.
 */
/* A period has a part in which the adapter is closed for its peers. */
struct pvr_throttle {
	unsigned int percent; /* of the period; 0: always open */
	bool is_closed;
	struct pvr_timer timer; /* until the next part */
};

struct pvr_adapter {
	struct pvr_lock lock;
	bool queued; /* on a list of its worker */
	bool is_interrupting; /* on its worker's list of interrupting adapters */
	bool has_interrupts; /* has vectors to raise, and is on no such list yet */
	bool has_lost_gids; /* also read without the lock */
	bool has_lost_peers; /* it may have; also read without the lock */
	struct pvr_worker *worker;
	/*
	 * The worker that runs its queue pairs now; NULL: none, or a thread that is no
	 * worker.
	 */
	struct pvr_worker *runner;
	/*
	 * The peer's adapter that this quantum has locked, and one that it failed to
	 * lock. Valid only until the end of the quantum.
	 */
	struct pvr_adapter *locked_peer, *contended_peer;
	/* Queue pairs with work, the longest ready first. */
	TAILQ_HEAD(pvr_ready, pvr_qp) ready;
	struct pvr_shaper *shaper; /* NULL: no limits, and the default weight */
	uint32_t quantum_bytes, quantum_requests; /* limits of the next quantum */
	struct pvr_timers timers;
	uint64_t deadline; /* of the first timer, as of the last unlock */
	/*
	 * Generation of its queue pairs: incremented when a peer's cached pointer to one
	 * of them may be stale. Peers with another generation look the queue pair up
	 * again.
	 */
	uint64_t qp_gen;

	struct pvr_engine *engine;
	LIST_ENTRY(pvr_adapter) link;
	LIST_ENTRY(pvr_adapter) of_worker;
	TAILQ_ENTRY(pvr_adapter) busy;
	SLIST_ENTRY(pvr_adapter) interrupting;
	LIST_HEAD(pvr_lost_gids, pvr_gid_node) lost_gids; /* under the fabric's lock */
	char name[PVR_NAME_MAX];
	uint8_t mac[6];
	const struct pvr_revision *revision;
	uint8_t gid_type; /* PVR_GID_TYPE_* of all its GIDs */
	struct pvr_fabric *fabric;
	LIST_ENTRY(pvr_adapter) fabric_link;
	struct pvr_dest *dests; /* gid/dest.h: those that it has searched for */
	struct pvr_referrals *referrals; /* gid/referral.h; under the lock of the fabric's shard */
	struct pvr_flow *flows[PVR_FLOW_LISTS]; /* gid/flow.h; also read without the lock */
	uint64_t incarnation; /* see pvr_fabric_incarnation(); under the fabric's lock */
	bool is_incarnation_known; /* a queue pair holds it; under the fabric's lock */
	struct pvr_timer peers; /* until its queue pairs are checked for peers that are gone */
	const struct pvr_adapter_ops *ops;
	void *host;
	struct pvr_port *port; /* or NULL */
	bool port_ecn;
	uint8_t active_mtu; /* enum pvr_mtu */
	struct pvr_eth_adapter *wire; /* path/wire; NULL: no port */
	const struct pvr_capture *capture; /* or NULL; changes only while no worker runs */
	struct pvr_log_limit log_limit;

	struct pvr_copy_recent copy_recent;

	/* Set by the embedder; a reset does not change it. */
	struct pvr_ram ram;
	bool bus_master;
	bool link_up;
	struct pvr_timer port_up; /* while the port is down for a time, see rdma/port_state.h */

	/*
	 * A job has suspended DMA between its steps. Peers repeat their requests without a
	 * timeout, and the end of the job kicks all queue pairs.
	 */
	bool suspended;
	bool ends_connections; /* see pvr_qp_end_connections() */
	bool dma_on; /* bus_master, not suspended, and running */
	bool requests_on; /* dma_on, and its connections do not end */
	bool serves_on; /* requests_on, and not closed */
	struct pvr_throttle throttle; /* see pvr_adapter_throttle() */
	enum pvr_run_state run_state;
	uint64_t stopped_at; /* ns, unless it runs */
	uint64_t started_at; /* ns; the end of its last stop; 0: it was never stopped */
	uint64_t stops; /* number of this stop; changes at its end, too */
	struct pvr_load *load; /* ctrl/migrate.c; NULL: no bytes of a state are kept */
	struct pvr_move move;
	struct pvr_elsewhere elsewhere;
	bool migratable; /* see pvr_adapter_set_migratable() */
	int load_err; /* of the last load, until a reset; 0: it succeeded, or there was none */
	char load_why[200];

	/* Registers and the driver's handshake. */
	enum pvr_adapter_state state;
	uint32_t dsr_low, dsr_high;
	uint32_t err, icr, imr;
	uint64_t pending[PVR_VEC_WORDS]; /* vectors to raise, as bits */
	uint32_t ext_ack; /* written by the driver, limited to offered extensions */
	uint32_t features; /* in effect since DSRHIGH */
	uint32_t driver_version; /* from the DSR */
	uint32_t version; /* in effect: the lower of the device's and the driver's */
	uint64_t uar_pfn;
	uint64_t clock_start; /* time of the creation, see pvr_adapter_clock() */
	uint32_t clock_high; /* that of the last read of EXT_CLOCK_LOW */
	struct pvr_dsr *dsr_shm;
	void *cmd_shm, *resp_shm;
	struct pvr_event_rings events;
	/*
	 * Queues with entries that this quantum has consumed or completed; see
	 * pvr_publish().
	 */
	SLIST_HEAD(, pvr_wq) consumed;
	SLIST_HEAD(, pvr_cq) completed;

	/* Objects. */
	uint64_t ram_counted; /* see pvr_adapter_count_ram() */
	uint64_t charged, charge_limit; /* see core/charge.h; limit 0: the default one */
	struct pvr_uc kernel_uc;
	struct pvr_uc_list contexts; /* kernel_uc and those of ucs */
	uint32_t num_contexts;
	struct pvr_uar_poll uar_poll;
	struct pvr_uc *uar[PVR_MAX_UAR]; /* by page */
	struct pvr_table ucs, pds, mrs, cqs, qps, srqs, xrcds;
	struct pvr_gid_entry gids[PVR_GID_TABLE_LEN];
	struct pvr_qp *gsi;
	struct pvr_polled polled;
	struct pvr_pipe_sq_lists hosts;
	struct pvr_ud_linger_list lingering_list;
	/* core/ext_dma.h */
	struct pvr_lock nic_lock; /* protects ext_dmas and the counts */
	LIST_HEAD(, pvr_ext_dma) ext_dmas;
	/* Also read without nic_lock: all, and those of regions, by the region's handle. */
	uint32_t num_ext_dmas, num_ext_dmas_of[PVR_EXT_DMA_COUNTS];
	uint64_t nic_not_before; /* NICs do not access its memory before this time, in ns */
	uint32_t mcast_groups, mcast_attached;
	uint32_t mws; /* number of memory windows in mrs */
	struct pvr_job job;
	struct pvr_mr *replaced; /* what PVR_MR_FLAG_REPLACE leaves; freed in steps. NULL: none */
	struct pvr_qp_sweep qp_sweep;
	struct pvr_qp_sweep watch_sweep; /* for reasons that need no DMA, see PVR_SWEEP_WITHOUT_DMA */
	struct pvr_qp_error qp_errors[PVR_QP_ERRORS]; /* a ring */
	uint32_t next_qp_error;
	uint8_t mr_generation;
	uint8_t qpn_generation;

	uint64_t stat[PVR_STAT_NUM]; /* since pvr_adapter_create() */
	struct pvr_adapter_stats stats; /* only members that neither stat[] nor a table has */
};

/* After a change of bus_master, suspended, run_state, ends_connections or throttle.is_closed. */
static inline void pvr_adapter_update_dma(struct pvr_adapter *adapter)
{
	adapter->dma_on = adapter->bus_master && !adapter->suspended &&
			  adapter->run_state == PVR_RUN_RUNNING;
	adapter->requests_on = adapter->dma_on && !adapter->ends_connections;
	adapter->serves_on = adapter->requests_on && !adapter->throttle.is_closed;
}

static inline bool pvr_adapter_has_driver(const struct pvr_adapter *adapter)
{
	return adapter->state == PVR_ADAPTER_READY || adapter->state == PVR_ADAPTER_ACTIVE;
}

/* Return: whether the adapter may read and write guest memory now. */
static inline bool pvr_adapter_dma_ok(const struct pvr_adapter *adapter)
{
	return adapter->dma_on && pvr_adapter_has_driver(adapter);
}

/* Return: whether its queue pairs work on their requests now. */
static inline bool pvr_adapter_may_request(const struct pvr_adapter *adapter)
{
	return adapter->requests_on && pvr_adapter_has_driver(adapter);
}

/* Return: whether it executes requests of connected peers now. */
static inline bool pvr_adapter_serves(const struct pvr_adapter *adapter)
{
	return adapter->serves_on && pvr_adapter_has_driver(adapter);
}

/* Return: whether it makes these requests wait, while it runs. */
static inline bool pvr_adapter_is_closed(const struct pvr_adapter *adapter)
{
	return adapter->throttle.is_closed && pvr_adapter_dma_ok(adapter);
}

/* Return: whether it has a state that can be saved. */
static inline bool pvr_adapter_is_stopped(const struct pvr_adapter *adapter)
{
	return adapter->run_state == PVR_RUN_STOPPED || adapter->run_state == PVR_RUN_LOADED;
}

/*
 * Return: whether requests to this adapter wait: for its start, until it is open again, or until
 * its connections have ended.
 */
static inline bool pvr_adapter_is_held(const struct pvr_adapter *adapter)
{
	bool is_moving = adapter->run_state == PVR_RUN_MOVED && !adapter->move.released;

	if (pvr_adapter_is_closed(adapter) ||
	    (adapter->ends_connections && pvr_adapter_dma_ok(adapter)))
		return true;
	return (is_moving || pvr_adapter_is_stopped(adapter)) &&
	       adapter->engine->ops->now(adapter->engine->opaque) - adapter->stopped_at <
		       adapter->engine->hold_ns;
}

static inline struct pvr_uc *pvr_uc_get(struct pvr_adapter *adapter, uint32_t handle)
{
	return handle ? pvr_table_get(&adapter->ucs, handle) : &adapter->kernel_uc;
}

/* Return: the entry of GID @index, or NULL if none is bound. */
static inline const struct pvr_gid_entry *pvr_gid_get(const struct pvr_adapter *adapter,
						      uint32_t index)
{
	if (index >= PVR_GID_TABLE_LEN || !adapter->gids[index].bound)
		return NULL;
	return &adapter->gids[index];
}

static inline void pvr_job_spend(struct pvr_adapter *adapter, uint32_t work)
{
	struct pvr_job *job = &adapter->job;

	job->work += work;
	if (job->work > job->longest)
		job->longest = job->work;
}

/* Return: whether the step of the job may do more work. */
static inline bool pvr_job_may_go_on(const struct pvr_adapter *adapter)
{
	return adapter->job.work < PVR_STEP_WORK;
}

/* pvr_adapter_busy() loads it without the lock. */
static inline void pvr_job_set(struct pvr_adapter *adapter,
			       void (*step)(struct pvr_adapter *adapter))
{
	__atomic_store_n(&adapter->job.step, step, __ATOMIC_RELAXED);
}

static inline void pvr_job_step(struct pvr_adapter *adapter)
{
	adapter->job.work = 0;
	adapter->job.step(adapter);
}

/* Counters that any thread may read at any time. Only their owner writes them. */
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

/* Time in ns that stands still while the adapter is stopped. Context: the adapter runs. */
static inline uint64_t pvr_running_time(const struct pvr_adapter *adapter)
{
	return pvr_timers_without_pauses(&adapter->timers, pvr_now(adapter->engine));
}

/*
 * The clock that its guest can read, PVR_EXT_CQ_TIMESTAMP, in ns. It does not tell the uptime of
 * the host.
 */
static inline uint64_t pvr_adapter_clock(const struct pvr_adapter *adapter)
{
	return pvr_now(adapter->engine) - adapter->clock_start;
}

/* Log one line about an adapter, or about the engine if @adapter is NULL. */
void pvr_log(struct pvr_engine *engine, struct pvr_adapter *adapter, enum pvr_log_level level,
	     const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The same at a limited rate, for events that a guest can repeat. */
void pvr_log_limited(struct pvr_adapter *adapter, enum pvr_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Log an error of the guest. */
#define pvr_log_guest(adapter, ...) pvr_log_limited((adapter), PVR_LOG_WARN, __VA_ARGS__)
/* Log an action of the guest. */
#define pvr_info_guest(adapter, ...) pvr_log_limited((adapter), PVR_LOG_INFO, __VA_ARGS__)
#define pvr_info(adapter, ...) pvr_log((adapter)->engine, (adapter), PVR_LOG_INFO, __VA_ARGS__)
#define pvr_debug(adapter, ...) pvr_log((adapter)->engine, (adapter), PVR_LOG_DEBUG, __VA_ARGS__)

#endif /* PVR_ADAPTER_H */
