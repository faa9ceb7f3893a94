/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The public interface of the device library. Its users are called embedders: the
 * vfio-user daemon, tests, a QEMU device.
 *
 * DOC: embedding
 *
 * A pvr_engine is a set of adapters that can reach each other by memcpy. An engine has no
 * thread, no global state and no file descriptor. The embedder forwards register and
 * doorbell accesses and maps guest RAM. For each worker the embedder calls
 * pvr_engine_run() until the call returns false, and again after wake() or the time of
 * pvr_engine_deadline().
 *
 * DOC: threads
 *
 * An engine has one or more workers: threads of the embedder. Each worker executes the
 * queues of its own adapters. Rules for callers:
 *
 *	pvr_engine_run(), pvr_engine_poll(), pvr_engine_enable_doorbells(),
 *	pvr_engine_deadline()
 *				One thread at a time per worker. Several workers may
 *				call them at the same time.
 *	pvr_adapter_*() except those below, pvr_engine_for_each_flow(),
 *	pvr_engine_worker_stats()
 *				Any thread at any time, also for the same adapter. They
 *				wait at most for one command or one quantum of a queue
 *				pair (64 requests or 256 KiB).
 *	pvr_adapter_create(), pvr_adapter_destroy(), pvr_engine_destroy(),
 *	pvr_engine_add_fault(), pvr_engine_clear_faults()
 *				Only while no other thread calls a function of this
 *				engine. The embedder stops its workers for the call. A
 *				guest cannot cause these calls.
 *
 * The engine makes callbacks from inside these calls, on the caller's thread. A callback
 * must not call back into the engine. Several threads may be in now(), log() and wake()
 * at the same time. For one adapter, one thread at a time is in raise(), but not always
 * the same thread. An embedder changes the state that raise() uses only between
 * pvr_adapter_pause() and pvr_adapter_resume().
 */
#ifndef PVR_ENGINE_H
#define PVR_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pvrdma_abi_cmd.h"

/* BAR2: one page per context; page 0 belongs to the guest driver. */
#define PVR_MAX_UAR 1024
#define PVR_BAR_UAR_SIZE (PVR_MAX_UAR * PVR_PAGE_SIZE)

/* The extensions of pvrdma_abi.h that the engine offers to drivers. */
#define PVR_ENGINE_EXT                                                                             \
	(PVR_EXT_NO_POLL_DB | PVR_EXT_USER_OPS | PVR_EXT_INLINE | PVR_EXT_MR_LAYOUT | PVR_EXT_MW | \
	 PVR_EXT_RESIZE | PVR_EXT_CQ_VECTORS | PVR_EXT_MCAST | PVR_EXT_STATS |                     \
	 PVR_EXT_LOCAL_DMA_LKEY | PVR_EXT_LONG_FAST_REG | PVR_EXT_UC | PVR_EXT_DB_SUPPRESS |       \
	 PVR_EXT_CQ_ARM_DBREC | PVR_EXT_PEER_GONE | PVR_EXT_VLAN | PVR_EXT_RESP_POLL |             \
	 PVR_EXT_SUM_STATS | PVR_EXT_ATOMIC_WRITE | PVR_EXT_FLUSH | PVR_EXT_CQ_MODERATION |        \
	 PVR_EXT_CQ_TIMESTAMP | PVR_EXT_XRC | PVR_EXT_ON_DEMAND | PVR_EXT_FLUSH_PERSISTENT)

#define PVR_MAX_WORKERS 64
#define PVR_NAME_MAX 32 /* adapter and fabric names, final NUL included */
#define PVR_TOKEN_BYTES 16 /* of a state: a secret of its source and its destination */

struct pvr_engine;
struct pvr_adapter;
struct pvr_host;
struct pvr_port;

enum pvr_log_level {
	PVR_LOG_ERR, /* fault of the host or of the device */
	PVR_LOG_WARN, /* fault of a guest or a peer; rate-limited */
	PVR_LOG_INFO, /* life cycle: activated, reset, connected */
	PVR_LOG_DEBUG, /* every command and state change */
};

struct pvr_engine_ops {
	/* Monotonic time in nanoseconds. */
	uint64_t (*now)(void *opaque);
	/* Log one line without newline. @adapter: its name, or NULL for the engine. */
	void (*log)(void *opaque, enum pvr_log_level level, const char *adapter,
		    const char *message);
	/*
	 * Another thread has queued work for @worker after that worker's last call of
	 * pvr_engine_deadline(). The embedder calls pvr_engine_run() soon. May be NULL.
	 */
	void (*wake)(void *opaque, unsigned int worker);
};

struct pvr_adapter_ops {
	/*
	 * Raise an MSI-X vector of this adapter. @vector is below PVR_VEC_MAX. Vectors
	 * from PVR_VEC_NUM up occur only if the driver has acknowledged
	 * PVR_EXT_CQ_VECTORS.
	 */
	void (*raise)(void *host, uint32_t vector);
};

/**
 * pvr_engine_create() - create an engine without adapters
 * @ops: callbacks; must stay valid until pvr_engine_destroy()
 * @opaque: first argument of the callbacks
 * @workers: number of threads that call pvr_engine_run(), 1 to PVR_MAX_WORKERS; their
 *	     indices begin at 0
 *
 * Return: the engine, or NULL: out of memory, or @workers is out of range.
 */
struct pvr_engine *pvr_engine_create(const struct pvr_engine_ops *ops, void *opaque,
				     unsigned int workers);

/*
 * Set the name of this host, for states that go to other hosts. Call this before the first adapter
 * is created. Without a name, a loaded state is not asked for at its source.
 */
void pvr_engine_set_name(struct pvr_engine *engine, const char *name);

/*
 * For how long requests to a stopped adapter wait, see "stopped adapters". Initially PVR_HOLD_NS.
 * Call this before the first adapter is created.
 */
void pvr_engine_set_hold(struct pvr_engine *engine, uint64_t ns);

/*
 * @needs: an adapter fails if the source of its state does not respond. Else it starts, initially.
 * Call this before the first adapter is created.
 */
void pvr_engine_set_needs_source(struct pvr_engine *engine, bool needs);

/*
 * Measure which copy function is the fastest on this CPU, use it and log its name. Takes
 * a few milliseconds. Call this before the first message. Without this call the engine
 * copies by the C library.
 */
void pvr_engine_measure_copy(struct pvr_engine *engine);

/* Destroy the engine and all its adapters. @engine may be NULL. */
void pvr_engine_destroy(struct pvr_engine *engine);

/**
 * pvr_engine_run() - execute queues that are ready and timers that have expired
 *
 * Does a bounded amount of work (WQEs and bytes), so that the caller can handle other
 * events between two calls.
 *
 * Return: true if more work is ready now.
 */
bool pvr_engine_run(struct pvr_engine *engine, unsigned int worker);

/**
 * pvr_engine_poll() - poll the rings and doorbells of a worker's adapters
 *
 * Polls a bounded number of send queues, those that were busy last. From now on their
 * guests post without doorbells (PVR_EXT_DB_SUPPRESS). Also polls a bounded number of the
 * doorbells that guests have stored to memory, see pvr_adapter_map_uar().
 *
 * After polling, call pvr_engine_enable_doorbells() before sleeping. An embedder that
 * never polls need not call it.
 *
 * Return: true if pvr_engine_run() may have work.
 */
bool pvr_engine_poll(struct pvr_engine *engine, unsigned int worker);

/**
 * pvr_engine_enable_doorbells() - require doorbells from the worker's guests again
 *
 * No send queue is polled from here to the next pvr_engine_poll().
 *
 * Return: true if the caller may sleep; false if a request has arrived meanwhile, and
 * pvr_engine_run() has work.
 */
bool pvr_engine_enable_doorbells(struct pvr_engine *engine, unsigned int worker);

/*
 * Return: whether a driver of the worker's adapters rings doorbells in memory, or may do
 * so. Such doorbells cause no event: the worker must keep calling pvr_engine_poll() and
 * must not sleep.
 */
bool pvr_engine_is_uar_mapped(const struct pvr_engine *engine, unsigned int worker);

struct pvr_worker_stats {
	uint64_t quanta; /* of queue pairs */
	uint64_t lock_contended; /* quanta that were repeated: the peer's adapter was locked */
	uint64_t messages, bytes; /* sent by these quanta */
};

/* May be called by any thread at any time. */
void pvr_engine_worker_stats(const struct pvr_engine *engine, unsigned int worker,
			     struct pvr_worker_stats *stats);

/*
 * The request that a worker executes, for a line of the log about a worker that stands still: the name
 * of its adapter and, if the worker also has the lock of a peer's adapter, the peer's name, else NULL.
 * It reads without a lock. Context: no adapter is added, moved or removed. Return: false: none, and
 * both are NULL.
 */
bool pvr_engine_worker_request(const struct pvr_engine *engine, unsigned int worker,
			       const char **adapter, const char **peer);

/* The latest time of the next pvr_engine_run(), in ns of now(); UINT64_MAX: no timer. */
uint64_t pvr_engine_deadline(struct pvr_engine *engine, unsigned int worker);

#define PVR_QOS_WEIGHT 100 /* the default */
#define PVR_QOS_WEIGHT_MIN 10
#define PVR_QOS_WEIGHT_MAX 1000
#define PVR_QOS_RATE_MAX 1000000000000ull /* bytes per second */
#define PVR_QOS_MESSAGES_MAX 1000000000ull /* per second */
#define PVR_QOS_BURST_MAX (1ull << 32) /* bytes */

/* Quality of service of an adapter or of a fabric, see rdma/shaper.h. */
struct pvr_qos {
	/* Limits of what requesters send and read, per second; 0: none. */
	uint64_t rate; /* bytes, up to PVR_QOS_RATE_MAX */
	uint64_t messages; /* up to PVR_QOS_MESSAGES_MAX */
	uint64_t burst; /* bytes that an idle adapter saves; 0: those of 10 ms */
	uint32_t weight; /* of an adapter, among those of its worker; 0: PVR_QOS_WEIGHT */
};

struct pvr_adapter_config {
	const char *name; /* unique in the engine; [A-Za-z0-9._-]+ */
	const char *fabric; /* adapters of different fabrics are isolated; NULL: "default" */
	uint8_t mac[6]; /* of the guest's NIC; unique in the fabric, unicast, not zero */
	/*
	 * The revision, named by VMware's virtual hardware version: 13, 14, 18, 20 or
	 * latest.
	 */
	const char *hwversion; /* NULL: latest */
	uint8_t gid_type; /* PVR_GID_TYPE_*: the RoCE version; 0: the best of the revision */
	unsigned int worker; /* index of the worker that executes its queues */
	bool uar_mapped; /* doorbells are stores to memory, see pvr_adapter_map_uar() */
	uint64_t memory; /* limit of the guest's RAM in bytes, for the embedder; 0: its default */
	/*
	 * Limit of the memory in bytes that the guest makes the engine allocate. 0: 64 MiB and
	 * 1/32 of the guest's RAM.
	 */
	uint64_t object_memory;
	/* Of the Ethernet segment with RDMA NICs that have no pvrdmad, see port.h; or NULL. */
	struct pvr_port *port;
	bool port_ecn; /* routers may mark its data, and it reduces its window by CNPs */
	struct pvr_qos qos;
};

/**
 * pvr_adapter_create() - add an adapter to an engine
 * @config: copied
 * @ops: callbacks; must stay valid until pvr_adapter_destroy()
 * @host: first argument of the callbacks
 * @err: on failure, set to the reason in one line
 * @err_size: size of @err
 *
 * Return: the adapter, owned by the engine until pvr_adapter_destroy(), or NULL.
 */
struct pvr_adapter *pvr_adapter_create(struct pvr_engine *engine,
				       const struct pvr_adapter_config *config,
				       const struct pvr_adapter_ops *ops, void *host, char *err,
				       size_t err_size);

/*
 * Destroy the adapter. Its QPs no longer respond: peers with PVR_EXT_PEER_GONE fail soon,
 * all others fail with RETRY_EXC_ERR after their last retry.
 */
void pvr_adapter_destroy(struct pvr_adapter *adapter);

/*
 * Change the quality of service of an adapter, or of all adapters of a fabric together. The
 * fabric need not exist; its limits also hold for adapters that are created later. Called only
 * while no worker runs, as pvr_adapter_create() is. Return: 0, -ENOMEM, or -EINVAL: the name of
 * the fabric is too long.
 */
int pvr_adapter_set_qos(struct pvr_adapter *adapter, const struct pvr_qos *qos);
int pvr_engine_set_fabric_qos(struct pvr_engine *engine, const char *fabric,
			      const struct pvr_qos *qos);
/* May be called while workers run, by the thread that makes the calls above. */
void pvr_adapter_get_qos(const struct pvr_adapter *adapter, struct pvr_qos *qos);
void pvr_engine_for_each_fabric_qos(const struct pvr_engine *engine,
				    void (*fn)(void *opaque, const char *fabric,
					       const struct pvr_qos *qos),
				    void *opaque);
/* Return: false if the fabric has never had limits. */
bool pvr_engine_get_fabric_qos(const struct pvr_engine *engine, const char *fabric,
			       struct pvr_qos *qos);

/*
 * Reset the adapter: function-level reset, guest reset, or the end of the client. When
 * this returns, all DMA has stopped. Peers are notified, GIDs are released and objects are
 * destroyed in steps, until pvr_adapter_busy() returns false. RAM mappings stay.
 */
void pvr_adapter_reset(struct pvr_adapter *adapter);

/*
 * Call this before a reset, and before a write to DSRHIGH or CTL that resets, until it
 * returns true. It begins to destroy the objects and stops all DMA, but keeps the
 * registers that the driver has written for its handshake. pvr_engine_run() executes
 * the steps. Without this call the write executes them at once.
 */
bool pvr_adapter_prepare_reset(struct pvr_adapter *adapter);

/**
 * pvr_adapter_map_ram() - give the adapter a region of guest memory
 * @gpa: bus address of its first byte
 * @size: bytes; need not be a multiple of the page size, only whole pages are used
 * @va: address of the region in this process
 * @writable: false for ROM: DMA to it is refused
 *
 * @va must stay mapped until pvr_adapter_unmap_ram() has returned.
 *
 * Return: 0, -EINVAL (empty, wraps, or overlaps another region), -ENOSPC (too many
 * regions) or -ENOMEM.
 */
int pvr_adapter_map_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size, void *va,
			bool writable);

/*
 * The memory of the region of exactly @gpa and @size keeps its contents without power. So the
 * guest can register it with PVR_ACCESS_FLUSH_PERSISTENT. Return: 0, -ENOENT, or -EOPNOTSUPP
 * if the host's CPU is of an unknown kind.
 */
int pvr_adapter_persist_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size);

/*
 * Tell the adapter the size of the memory behind its RAM, if that is less than the size of
 * all regions: they can overlap in one file. The memory that the guest may make the engine
 * allocate is in proportion to it. Without a call, the regions count.
 */
void pvr_adapter_count_ram(struct pvr_adapter *adapter, uint64_t bytes);

/*
 * Remove the region of exactly @gpa and @size. Objects that use it fail: MRs refuse
 * access, queues and the device enter their error states.
 */
void pvr_adapter_unmap_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size);

/*
 * Call this before pvr_adapter_unmap_ram() until it returns true. It removes the region,
 * and finds the objects that use it in steps, which pvr_engine_run() executes. The adapter
 * does no DMA between the steps. Without this call all objects are checked at once.
 */
bool pvr_adapter_prepare_unmap_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size);

/*
 * Accesses to BAR1 (registers) and BAR2 (UAR), of any size and alignment. Registers and
 * doorbells have 32 bits. Any other access reads all ones; as a write it is ignored and
 * counted. Reads of the UAR return all ones. Accesses outside the BAR have no effect.
 */
void pvr_adapter_regs_read(struct pvr_adapter *adapter, uint64_t offset, void *buf, size_t len);
void pvr_adapter_regs_write(struct pvr_adapter *adapter, uint64_t offset, const void *buf,
			    size_t len);
void pvr_adapter_uar_write(struct pvr_adapter *adapter, uint64_t offset, const void *buf,
			   size_t len);

/**
 * pvr_adapter_map_uar() - let the guest store doorbells to memory
 * @uar_shm: PVR_BAR_UAR_SIZE bytes, zero, page-aligned; the embedder has mapped them into
 *	     the guest in place of BAR2. NULL: end the use of the previous memory
 *
 * The memory must stay valid until the next call, also while the adapter is destroyed.
 * Guests that do not use the mapping ring by pvr_adapter_uar_write().
 */
void pvr_adapter_map_uar(struct pvr_adapter *adapter, void *uar_shm);

/*
 * From pvr_adapter_pause() to pvr_adapter_resume() no other thread uses the adapter or
 * calls its raise(). The caller makes no other call for the adapter between the two.
 */
void pvr_adapter_pause(struct pvr_adapter *adapter);
void pvr_adapter_resume(struct pvr_adapter *adapter);

/*
 * Return: whether a long command or a reset is in progress. pvr_engine_run() executes it in steps.
 * Register accesses and changes of RAM wait for its end, so an embedder with several
 * adapters postpones them.
 */
bool pvr_adapter_busy(const struct pvr_adapter *adapter);

/*
 * Set bus master enable of the PCI command register. While it is off, the adapter does no
 * DMA. Initially on, for embedders without a configuration space.
 */
void pvr_adapter_set_bus_master(struct pvr_adapter *adapter, bool on);

/*
 * DOC: stopped adapters
 *
 * - A stopped adapter does no DMA, raises no interrupt, and its timers stand still. Its objects
 *   and its RAM stay. Register accesses work, but commands fail. Doorbells take effect after the
 *   start.
 * - RC and UC queue pairs of other adapters of this engine that send to it wait for its start,
 *   and so do RC queue pairs of other hosts that have PVR_HELLO_F_MOVE. The wait uses up no
 *   retry. It ends after the time of pvr_engine_set_hold(): from then on the adapter does not
 *   respond.
 * - Datagrams to it are lost, and UC requests of other hosts.
 */
enum pvr_run_state {
	PVR_RUN_RUNNING,
	PVR_RUN_STOPPED,
	PVR_RUN_LOADING, /* bytes of a state were pushed */
	PVR_RUN_LOADED, /* stopped, with all objects of the state */
	PVR_RUN_MOVED, /* another host has it, see core/move.h; a reset ends this state */
};

#define PVR_HOLD_NS 60000000000ull

/*
 * Stop the adapter. Return: 0, also if it is STOPPED or LOADED already; -EINPROGRESS: a command
 * or a reset is in progress: call again when pvr_adapter_busy() returns false; -EINVAL: it is
 * LOADING.
 */
int pvr_adapter_stop(struct pvr_adapter *adapter);
/*
 * Start an adapter that is STOPPED or LOADED. A reset ends both states, too. Return: 0, also if it
 * runs; -EINPROGRESS: as above, also if RAM was unmapped from a LOADED adapter: its state is loaded
 * again, or while the host of the state is asked for the adapter: call again in some ms; -EINVAL: it
 * is LOADING; -EPERM: another host has the adapter; its VM must not run. Another value: the adapter refuses its loaded state, see
 * pvr_adapter_load_error(). If RAM of the state is missing, it has no driver then; if another
 * adapter has one of its GIDs, it is FAILED.
 */
int pvr_adapter_start(struct pvr_adapter *adapter);

/*
 * An operator knows that the host which has the adapter is dead: it is STOPPED again if it is MOVED,
 * and its state can be loaded again. Return: 0, -EINVAL (no host has it), or why its GIDs cannot be
 * bound.
 */
int pvr_adapter_reclaim(struct pvr_adapter *adapter);

/*
 * @is: the client can save the adapter and load it elsewhere, so its VM can be migrated. Initially,
 * and for each new client, false.
 */
void pvr_adapter_set_migratable(struct pvr_adapter *adapter, bool is);
/*
 * Check whether the adapter of this fabric and MAC is in use at another host by a VM that cannot be
 * migrated. A VM that attaches to it here would be a second one, or this one without its device.
 * @begin: the first call of a check. Return: 0: no, or no host responds; -EBUSY: yes, and @host is
 * its name; -EINPROGRESS: call again in some ms. It takes a second at most.
 */
int pvr_adapter_check_elsewhere(struct pvr_adapter *adapter, bool begin, char *host, size_t size);

enum pvr_run_state pvr_adapter_run_state(const struct pvr_adapter *adapter);
const char *pvr_run_state_name(enum pvr_run_state state);

/*
 * DOC: the state of an adapter
 *
 * - It has all that the guest and its peers can observe, without RAM: it can be loaded by another
 *   adapter with the same MAC, fabric and hardware version, here or in another process, whose
 *   RAM has the same content at the same bus addresses.
 * - Not part of it, and set by the embedder: the PCI configuration, bus mastering, link state,
 *   RAM, and memory of mapped doorbells, which begins with zeros.
 * - The loader trusts no byte of it.
 */
struct pvr_save;

/*
 * Begin to read the state of a STOPPED or LOADED adapter. Several may read it. Return: 0, -EINVAL
 * (it is neither), -EOPNOTSUPP (it has a port: queue pairs on the segment cannot move) or -ENOMEM.
 */
int pvr_adapter_save_begin(struct pvr_adapter *adapter, struct pvr_save **save);
/*
 * The same for a process that replaces this one: hosts that have a state which was read before, and
 * is the adapter's last one, can still ask for the adapter.
 */
int pvr_adapter_save_again(struct pvr_adapter *adapter, struct pvr_save **save);
/*
 * Return: bytes that were stored to @buf; 0: the end; -ESTALE: the adapter is not stopped any more;
 * -EFAULT (an object lies in no RAM) or -ENOMEM. 64 KiB take less than a millisecond.
 */
ssize_t pvr_save_read(struct pvr_save *save, void *buf, size_t size);
/* Before the adapter is destroyed. @save may be NULL. */
void pvr_save_end(struct pvr_save *save);
/*
 * Empty a STOPPED or LOADED adapter whose state goes on elsewhere, or will be loaded here again.
 * This is a reset without notification of peers. Busy until its end. Return: 0, or -EINVAL (it is
 * neither).
 */
int pvr_adapter_drop(struct pvr_adapter *adapter);

/*
 * Push bytes of a state to an adapter without driver, which is LOADING from then on. They are only
 * stored. Return: 0, -EBUSY (it has a driver, is busy, STOPPED or LOADED), -E2BIG or -ENOMEM.
 */
int pvr_adapter_load_push(struct pvr_adapter *adapter, const void *data, size_t size);
/*
 * All bytes were pushed: check and apply them. Return: 0: LOADED; -EINPROGRESS: in steps: call
 * again when pvr_adapter_busy() returns false; another value: refused, and the adapter is RUNNING
 * without driver again.
 */
int pvr_adapter_load_finish(struct pvr_adapter *adapter);
/*
 * LOADED, by a process that replaces the one that has read the state: it is the adapter's last one,
 * and the adapter has not run since. No worker runs.
 */
void pvr_adapter_load_is_last(struct pvr_adapter *adapter);
/*
 * The start of an adapter that was stopped in the process before: it is STOPPED, and its GIDs are
 * found here. Return: 0, also if it is STOPPED already, or as pvr_adapter_start().
 */
int pvr_adapter_stay_stopped(struct pvr_adapter *adapter);
/* Get the reason for the last refusal, a line with record and field; "": there was none. */
void pvr_adapter_load_error(struct pvr_adapter *adapter, char *why, size_t size);

/*
 * DOC: log of dirty pages
 *
 * - While it is on, the adapter records the pages of guest RAM that it writes.
 * - A page that is written after a report is in the next one. A stopped adapter writes no page, so
 *   a report that follows the stop is the last one.
 * - RAM that is mapped later is in the log. Written pages of unmapped RAM stay in it. A
 *   reset does not end the log.
 * - RDMA NICs do not write to guest RAM meanwhile: received payload is copied.
 * - Peers may write pages faster than they are sent. For a percentage of each period the adapter
 *   does not execute their RC requests, and UC ones of this engine. They wait, without a retry.
 */

/* Begin with no page. Return: 0, -EALREADY or -ENOMEM: there is none. */
int pvr_adapter_start_dirty_log(struct pvr_adapter *adapter);
void pvr_adapter_stop_dirty_log(struct pvr_adapter *adapter);
bool pvr_adapter_has_dirty_log(struct pvr_adapter *adapter);
/*
 * Move the pages of [@gpa, @gpa + @len) from the log to @bitmap: one bit per 4 KiB from bit 0 on,
 * of which the caller has cleared all. 1 GiB takes less than a millisecond. Return: 0, -EINVAL (no
 * whole pages, or they wrap), -ENOENT (the log is off) or -ENOBUFS (RAM was unmapped too often, and a
 * part of the log is lost).
 */
int pvr_adapter_take_dirty_log(struct pvr_adapter *adapter, uint64_t gpa, uint64_t len,
			       uint64_t *bitmap);

#define PVR_THROTTLE_NS 100000000ull /* the period */
#define PVR_THROTTLE_MAX 99

/*
 * Let peers wait for @percent of each period, until the log ends. Return: 0, -EINVAL (more than
 * PVR_THROTTLE_MAX) or -ENOENT (the log is off).
 */
int pvr_adapter_throttle(struct pvr_adapter *adapter, unsigned int percent);

/* Set the link state. A change causes event PORT_ACTIVE or PORT_ERR. Initially up. */
void pvr_adapter_set_link(struct pvr_adapter *adapter, bool up);

/*
 * Guest memory is unusable, for example its file was truncated. The device reports
 * DEVICE_FATAL if it can and does no DMA until its reset. @why is logged.
 */
void pvr_adapter_fail(struct pvr_adapter *adapter, const char *why);

enum pvr_adapter_state {
	PVR_ADAPTER_IDLE, /* no driver: no DSR, or after reset */
	PVR_ADAPTER_READY, /* the DSR is valid, commands run */
	PVR_ADAPTER_ACTIVE, /* the driver has written ACTIVATE */
	PVR_ADAPTER_FAILED, /* unusable until reset */
};

struct pvr_adapter_stats {
	enum pvr_adapter_state state;
	enum pvr_run_state run_state;
	uint64_t stopped_ns; /* since the stop, for STOPPED and LOADED; else 0 */
	bool link_up;
	uint32_t driver_version; /* 0 without a driver */
	uint32_t features; /* PVR_EXT_* in effect */
	uint32_t contexts, pds, mrs, mws, cqs, qps, srqs, gids;
	uint64_t memory, memory_budget; /* bytes allocated for its guest, and the limit */
	uint64_t commands, commands_failed;
	uint64_t doorbells, doorbells_ignored;
	uint64_t bad_accesses; /* wrong size, alignment or address of a BAR access */
	/* The values of QUERY_STATS, see enum pvr_stat. */
	uint64_t tx_messages, tx_bytes, rx_messages, rx_bytes;
	uint64_t local_bytes, verbs_bytes, tcp_bytes; /* of tx_bytes, by path */
	uint64_t tx_reads, tx_atomics, tx_multicast, rx_multicast;
	uint64_t ud_dropped;
	uint64_t rnr_naks, ack_timeouts, retries_exceeded;
	uint64_t access_errors, request_errors;
	uint64_t cq_overflows;
	uint64_t interrupts;
	uint64_t qos_waits, qos_wait_ns; /* waits for a limit, and the time of those that ended */
};

const char *pvr_adapter_name(const struct pvr_adapter *adapter);
const char *pvr_adapter_fabric(const struct pvr_adapter *adapter);
const uint8_t *pvr_adapter_mac(const struct pvr_adapter *adapter);
const char *pvr_adapter_hwversion(const struct pvr_adapter *adapter);
uint8_t pvr_adapter_gid_type(const struct pvr_adapter *adapter);
unsigned int pvr_adapter_worker(const struct pvr_adapter *adapter);
/*
 * Lets another worker execute the queues of the adapter, in the same order. Called only while no
 * worker runs, as pvr_adapter_create() is.
 */
void pvr_adapter_set_worker(struct pvr_adapter *adapter, unsigned int worker);
bool pvr_adapter_is_uar_mapped(const struct pvr_adapter *adapter);
const char *pvr_adapter_state_name(enum pvr_adapter_state state);
void pvr_adapter_get_stats(struct pvr_adapter *adapter, struct pvr_adapter_stats *stats);

/* How many objects the guest can have at the same time. */
struct pvr_adapter_limits {
	uint32_t contexts, pds, cqs, qps, srqs, gids;
	uint32_t mrs; /* memory regions and windows together */
};

void pvr_adapter_get_limits(const struct pvr_adapter *adapter, struct pvr_adapter_limits *limits);
/* Call @fn for each bound GID. */
void pvr_adapter_for_each_gid(struct pvr_adapter *adapter,
			      void (*fn)(void *opaque, uint32_t index, const uint8_t gid[16],
					 uint8_t gid_type),
			      void *opaque);

/* State of a queue pair, for display. */
struct pvr_qp_info {
	uint32_t qpn;
	const char *type, *state;
	const char *waits; /* reason why its requester waits, or "" */
	/* RC and UC only; zero: not connected. */
	uint32_t dest_qpn;
	uint8_t dgid[16];
	uint8_t traffic_class;
	uint64_t stat[PVR_STAT_NUM];
};

/*
 * Get up to @max queue pairs of the adapter, from @cursor on. *@cursor is 0 in the first
 * call. *@num may be 0. Return: false if there are no more.
 */
bool pvr_adapter_get_qps(struct pvr_adapter *adapter, uint32_t *cursor, struct pvr_qp_info *infos,
			 size_t max, size_t *num);

/* The requester of a queue pair on the wire, for display. */
struct pvr_qp_wire {
	bool sends; /* it has sent by the wire; else all is zero */
	uint8_t dmac[6];
	uint32_t window, packets_in_flight; /* packets */
	uint32_t round_trip; /* smoothed, ns; 0: not measured */
	uint64_t probe_after; /* ns of silence; 0: the timeout is shorter */
	uint64_t probes, go_backs; /* since RESET */
};

/* All about one queue pair, for display. */
struct pvr_qp_detail {
	struct pvr_qp_info info;
	uint8_t sgid[16]; /* RC and UC; zero: not connected */
	uint32_t path_mtu; /* bytes; 0: not connected */
	uint32_t sq_psn, rq_psn; /* of the next request, as requester and as responder */
	uint32_t sends, max_sends, in_flight; /* posted; that many fit; sent without a response */
	uint32_t recvs, max_recvs; /* of its own queue, not of an SRQ */
	uint64_t sent_bytes, received_bytes; /* of a message in progress */
	uint8_t timeout; /* 4.096 us << timeout; 0: never expires */
	uint8_t retry_cnt, retry_left, rnr_retry, rnr_left;
	const char *path; /* "local", "pipe", "wire"; "": not connected, or UD */
	char peer[64]; /* adapter or host that the path reaches; "": none */
	struct pvr_qp_wire wire;
	const char *error; /* the last one; NULL: none, or too long ago */
	uint64_t error_age; /* ns */
};

/* Return: false if the adapter has no queue pair of this number. */
bool pvr_adapter_get_qp(struct pvr_adapter *adapter, uint32_t qpn, struct pvr_qp_detail *detail);

/* Traffic from one adapter to another adapter or host, counted while both exist. */
struct pvr_flow_stats {
	const char *from, *to; /* adapter names; @to: a host's name unless the path is local */
	const char *fabric;
	const char *path; /* "local", "tcp", "verbs" */
	const char *why; /* the reason for this path, for display */
	uint64_t messages, bytes;
};

#define PVR_FLOW_CURSORS (1u << 20)

/*
 * Call @fn for up to @max flows of the adapter, from *@cursor on. *@cursor is 0 in the first call,
 * and below PVR_FLOW_CURSORS. No flow is reported twice. Return: false if there are no more.
 */
bool pvr_adapter_page_flows(struct pvr_adapter *adapter, uint32_t *cursor, unsigned int max,
			    void (*fn)(void *opaque, const struct pvr_flow_stats *stats),
			    void *opaque);

void pvr_engine_for_each_flow(struct pvr_engine *engine,
			      void (*fn)(void *opaque, const struct pvr_flow_stats *stats),
			      void *opaque);

/* ------------------------------------------------------------------------- faults */

#define PVR_FAULTS_MAX 32

struct pvr_fault_rule; /* fault/rule.h */

/*
 * A rule and its effects so far. Tries of a message count in dropped, rnr and stalled, messages
 * elsewhere.
 */
struct pvr_fault_info {
	uint32_t id;
	const char *text; /* the words of the rule */
	uint64_t messages; /* that the rule matched */
	uint64_t dropped, delayed, failed, rnr, seq_naks, reordered, duplicated, corrupted,
		port_downs, stalled;
	uint64_t refused; /* the responder did not fail: its host does not allow faults */
};

/**
 * pvr_engine_add_fault() - add a rule, for all requests that begin from now on
 * @id: set to the number of the rule; for -EEXIST, to that of the other one
 *
 * This function and pvr_engine_clear_faults() are called only while no worker runs, as
 * pvr_adapter_create() is.
 *
 * Return: 0, -EEXIST (a rule for the same messages has a kind of this one), -ENOSPC (there
 * are PVR_FAULTS_MAX) or -ENOMEM.
 */
int pvr_engine_add_fault(struct pvr_engine *engine, const struct pvr_fault_rule *rule,
			 uint32_t *id);
/* @id: a rule; 0: all. Return: the number of removed rules. */
unsigned int pvr_engine_clear_faults(struct pvr_engine *engine, uint32_t id);
/* Call @fn for each rule. The rules must not change meanwhile. */
void pvr_engine_for_each_fault(const struct pvr_engine *engine,
			       void (*fn)(void *opaque, const struct pvr_fault_info *info),
			       void *opaque);

/* ------------------------------------------------------------------------ capture */

/* A frame on Ethernet, or its beginning. */
struct pvr_captured {
	const uint8_t *data;
	uint32_t bytes; /* at @data */
	uint32_t original; /* bytes of the whole frame, with ICRC */
	bool outgoing; /* sent by the adapter */
	const char *comment; /* what is not as on a network, or NULL */
};

struct pvr_capture {
	uint32_t snaplen; /* bytes of a frame at most */
	bool payload; /* capture it; without it payload and ICRC are zero */
	/*
	 * Take a frame. Context: any worker, several at a time; locks are held, and the
	 * function does not block.
	 */
	void (*packet)(void *opaque, const struct pvr_captured *packet);
	void *opaque;
};

/*
 * Capture the packets of the adapter from now on. @capture must stay valid; NULL: end the
 * capture. Called only while no worker runs, as pvr_adapter_create() is.
 */
void pvr_adapter_set_capture(struct pvr_adapter *adapter, const struct pvr_capture *capture);

/* ------------------------------------------------------------ GIDs at other hosts */

/* The location of a GID. An adapter of this engine that has the GID takes precedence. */
enum pvr_gid_state {
	PVR_GID_UNKNOWN, /* delete the entry; resolve() is called at the next use */
	PVR_GID_ABSENT, /* no host has it; resolve() is not called until this is changed */
	PVR_GID_AT_HOST, /* @host has it; a multicast group may have several: one call each */
	PVR_GID_AT_HOST_MORE, /* same, and the next member of the group follows at once */
	PVR_GID_LEFT_HOST, /* @host no longer has it */
};

/*
 * A claim to start an adapter with a state of another host. The first claim of a token wins. So a
 * state is started once, even if its source does not respond to decide that.
 */
struct pvr_state_claim {
	char fabric[PVR_NAME_MAX];
	uint8_t mac[6];
	uint8_t token[PVR_TOKEN_BYTES]; /* not to be published */
	uint32_t life; /* seconds: after this the claim has no effect */
	bool waits; /* the adapter waits for the result; else it runs, and fails if it has lost */
	bool runs_on; /* of the source, whose VM runs on: the result is ignored */
	uint64_t load; /* number of the load of the state; 0: no random bytes */
};

enum pvr_claim {
	PVR_CLAIM_NONE,
	PVR_CLAIM_ASKED, /* the result follows */
	PVR_CLAIM_WON, /* also if this load has won before */
	PVR_CLAIM_STALE, /* an earlier load at this host has won: connections end */
	PVR_CLAIM_LOST, /* another host has won */
	PVR_CLAIM_FAILED, /* the winner is unknown */
};

struct pvr_gid_ops {
	/*
	 * The location of @gid is unknown: a guest sends to it, or a host sends as it.
	 * The embedder finds the location and calls pvr_engine_set_gid(). The engine
	 * repeats this call until then. @from: the host that sends; NULL: a guest.
	 */
	void (*resolve)(void *opaque, const char *fabric, const uint8_t gid[16],
			const struct pvr_host *from);
	/*
	 * An adapter of this engine with MAC @mac has bound @gid (@present) or unbound
	 * it. For a multicast group: the first adapter has joined or the last one has
	 * left; @mac is zero. Calls come in the order of these changes.
	 */
	void (*announce)(void *opaque, const char *fabric, const uint8_t gid[16], uint8_t gid_type,
			 const uint8_t mac[6], bool present);
	/*
	 * Return: whether the rules let the host of this name, which the engine may not know, have
	 * @gid. Any thread. NULL: each host may.
	 */
	bool (*may_have)(void *opaque, const char *host, const char *fabric, const uint8_t gid[16]);
	/*
	 * Claim a state. Return: ASKED, and pvr_engine_state_claimed() is called later, within
	 * 2 s if the adapter waits; FAILED; or NONE: hosts cannot agree here, as without this
	 * function. A second claim of an adapter replaces the first one. Any thread; the
	 * adapter's lock is held.
	 */
	enum pvr_claim (*claim_state)(void *opaque, const struct pvr_state_claim *claim);
	/*
	 * @host sends as @gid, which pvr_engine_set_gid() has located at another host. Called at
	 * a limited rate, by any thread. NULL: the location does not change by this.
	 */
	void (*doubt)(void *opaque, const struct pvr_host *host, const char *fabric,
		      const uint8_t gid[16]);
	/*
	 * The engine needs a connection to the host of this name, until @needs is false. Calls
	 * come in pairs. Any thread; the adapter's lock is held. NULL: there is always one.
	 */
	void (*need_host)(void *opaque, const char *host, bool needs);
	/* @host no longer has @gid, which pvr_engine_set_gid() had located there. */
	void (*moved)(void *opaque, struct pvr_host *host, const char *fabric,
		      const uint8_t gid[16]);
	/*
	 * An adapter here had @gid until @host took the adapter. An absence of @gid that the
	 * embedder remembers is older. Any thread. NULL: it remembers none.
	 */
	void (*handed_over)(void *opaque, struct pvr_host *host, const char *fabric,
			    const uint8_t gid[16]);
};

/*
 * Set the location of a GID. The fabric need not exist and is not created; the entry is
 * kept all the same. The engine keeps up to 2^20 GIDs. @gid_type: 0 means both versions
 * of RoCE if @host is NULL. Return: 0, -EINVAL (name of @fabric too long), -ENOMEM or
 * -ENOSPC.
 */
int pvr_engine_set_gid(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
		       uint8_t gid_type, enum pvr_gid_state state, struct pvr_host *host);
/*
 * The rules that may_have() follows have changed: what other hosts have told of locations is
 * forgotten. Context: that of pvr_engine_set_gid().
 */
void pvr_engine_rules_changed(struct pvr_engine *engine);

/*
 * Report the result of a claim: WON, STALE, LOST to the host @detail, or FAILED because of @detail. It is
 * ignored if the adapter does not have this state any more. Any thread, without locks.
 */
void pvr_engine_state_claimed(struct pvr_engine *engine, const struct pvr_state_claim *claim,
			      enum pvr_claim result, const char *detail);

/*
 * Find the adapter of this engine that has @gid, and get its RoCE version and MAC.
 * Return: whether there is one.
 */
bool pvr_engine_find_gid(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
			 uint8_t *gid_type, uint8_t mac[6]);

#endif /* PVR_ENGINE_H */
