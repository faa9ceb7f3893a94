/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The device library: what an embedder (vfio-user daemon, tests, a QEMU device)
 * sees of it.
 *
 * DOC: embedding
 *
 * A pvr_engine is a set of adapters that can reach each other by memcpy. It has no
 * thread, no global state and no file descriptor: the embedder forwards register
 * and doorbell accesses, tells it where guest RAM is, and calls pvr_engine_run()
 * until that returns false, again when pvr_engine_deadline() has passed or wake()
 * was called.
 *
 * DOC: threads
 *
 * An engine has one or more workers: threads of the embedder, each of which executes the
 * queues of its own adapters. What may be called when:
 *
 *	pvr_engine_run(), _poll(), _rest(), _deadline()
 *				for one worker by one thread at a time; for several
 *				workers at the same time
 *	pvr_adapter_*() but those below, pvr_engine_for_each_flow(),
 *	pvr_engine_worker_stats()
 *				by any thread at any time, for the same adapter too; they
 *				wait for as long as a command, or a quantum of one queue
 *				pair (64 requests or 256 KiB), takes
 *	pvr_adapter_create(), pvr_adapter_destroy(), pvr_engine_destroy()
 *				while no other thread calls anything of this engine: the
 *				embedder stops its workers between two calls. Operators
 *				do this, not guests.
 *
 * Callbacks are made from inside those calls, by whatever thread it is, and must not call
 * back into the engine. now(), log() and wake() can be called by several threads at the
 * same time, raise() by one at a time for an adapter, but not always the same one: who
 * changes what raise() uses does that between pvr_adapter_pause() and
 * pvr_adapter_resume().
 */
#ifndef PVR_ENGINE_H
#define PVR_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pvrdma_abi_cmd.h"

/* BAR2: one page per context, page 0 is the guest driver's. */
#define PVR_MAX_UAR 1024
#define PVR_BAR_UAR_SIZE (PVR_MAX_UAR * PVR_PAGE_SIZE)

/* Extensions that the engine offers to drivers, of those that the interface knows. */
#define PVR_ENGINE_EXT                                                                             \
	(PVR_EXT_NO_POLL_DB | PVR_EXT_USER_OPS | PVR_EXT_INLINE | PVR_EXT_MR_LAYOUT | PVR_EXT_MW | \
	 PVR_EXT_RESIZE | PVR_EXT_CQ_VECTORS | PVR_EXT_MCAST | PVR_EXT_STATS |                     \
	 PVR_EXT_LOCAL_DMA_LKEY | PVR_EXT_LONG_FAST_REG | PVR_EXT_UC | PVR_EXT_DB_SUPPRESS |       \
	 PVR_EXT_CQ_ARM_DBREC | PVR_EXT_PEER_GONE | PVR_EXT_VLAN | PVR_EXT_RESP_POLL)

#define PVR_MAX_WORKERS 64
#define PVR_NAME_MAX 32 /* adapter and fabric names, final NUL included */

struct pvr_engine;
struct pvr_adapter;
struct pvr_host;

enum pvr_log_level {
	PVR_LOG_ERR, /* the host or the device is at fault */
	PVR_LOG_WARN, /* a guest or peer did something wrong; rate-limited */
	PVR_LOG_INFO, /* life cycle: activated, reset, connected */
	PVR_LOG_DEBUG, /* every command and state change */
};

struct pvr_engine_ops {
	/* Monotonic time in nanoseconds. */
	uint64_t (*now)(void *opaque);
	/* One line without newline; adapter is its name, or NULL for the engine. */
	void (*log)(void *opaque, enum pvr_log_level level, const char *adapter,
		    const char *message);
	/*
	 * Another thread has given @worker, for which pvr_engine_deadline() was called
	 * last, something to do: pvr_engine_run() must be called soon. May be NULL.
	 */
	void (*wake)(void *opaque, unsigned int worker);
};

struct pvr_adapter_ops {
	/*
	 * Raise an MSI-X vector of this adapter, below PVR_VEC_MAX; one of those from
	 * PVR_VEC_NUM up only for a driver that has acknowledged PVR_EXT_CQ_VECTORS.
	 */
	void (*raise)(void *host, uint32_t vector);
};

/**
 * pvr_engine_create() - make an engine without adapters
 * @ops: callbacks; must stay valid as long as the engine
 * @opaque: first argument of the callbacks
 * @workers: threads that will call pvr_engine_run(), numbered from 0; 1 to PVR_MAX_WORKERS
 *
 * Return: the engine, or NULL if out of memory.
 */
struct pvr_engine *pvr_engine_create(const struct pvr_engine_ops *ops, void *opaque,
				     unsigned int workers);

/*
 * Measures which way of copying is the fastest on this CPU, for a few milliseconds, and
 * logs it. To be called before the first message; without it, it is the C library's.
 */
void pvr_engine_measure_copy(struct pvr_engine *engine);

/* Destroys the engine and all its adapters. NULL is allowed. */
void pvr_engine_destroy(struct pvr_engine *engine);

/**
 * pvr_engine_run() - execute queues that are ready and timers that have expired
 *
 * Does a bounded amount of work (WQEs and bytes), so that the caller can look after
 * its other events in between.
 *
 * Return: true if there is more to do now.
 */
bool pvr_engine_run(struct pvr_engine *engine, unsigned int worker);

/**
 * pvr_engine_poll() - look for work that nobody tells of
 *
 * Looks at the send queues of the worker's adapters that were busy last, a bounded
 * number of them, and lets their guests post without doorbells from now on
 * (PVR_EXT_DB_SUPPRESS). So whoever has called this and then sleeps must call
 * pvr_engine_enable_doorbells() before; who never calls it need not. And looks at a bounded number of
 * the doorbells that guests have stored to memory (pvr_adapter_map_uar()).
 *
 * Return: true if pvr_engine_run() may have something to do.
 */
bool pvr_engine_poll(struct pvr_engine *engine, unsigned int worker);

/**
 * pvr_engine_enable_doorbells() - tell the guests that doorbells are needed again
 *
 * Return: true if the caller may sleep; false if a request came meanwhile, for
 * pvr_engine_run(). Either way nobody is polled any more, until pvr_engine_poll().
 */
bool pvr_engine_enable_doorbells(struct pvr_engine *engine, unsigned int worker);

/*
 * The worker has an adapter whose driver rings doorbells in memory, which nobody tells of:
 * it has to call pvr_engine_poll() all the time, and not to sleep.
 */
bool pvr_engine_is_uar_mapped(const struct pvr_engine *engine, unsigned int worker);

struct pvr_worker_stats {
	uint64_t quanta; /* of queue pairs */
	uint64_t lock_contended; /* turns that had to be taken again: the peer was busy */
	uint64_t messages, bytes; /* that these turns have sent */
};

/* Any thread, any time. */
void pvr_engine_worker_stats(const struct pvr_engine *engine, unsigned int worker,
			     struct pvr_worker_stats *stats);

/* When pvr_engine_run() must be called next at the latest; UINT64_MAX: no timer. */
uint64_t pvr_engine_deadline(struct pvr_engine *engine, unsigned int worker);

struct pvr_adapter_config {
	const char *name; /* unique in the engine; [A-Za-z0-9._-]+ */
	const char *fabric; /* adapters of different fabrics never meet; NULL: "default" */
	uint8_t mac[6]; /* of the guest's NIC; unique in the fabric, unicast, not zero */
	/* The revision, as VMware's virtual hardware versions: 13, 14, 18, 20 or latest. */
	const char *hwversion; /* NULL: latest */
	uint8_t gid_type; /* PVR_GID_TYPE_*, the RoCE that it speaks; 0: the revision's best */
	unsigned int worker; /* that executes its queues, below that of pvr_engine_create() */
	bool uar_mapped; /* doorbells are stores to memory, see pvr_adapter_map_uar() */
};

/**
 * pvr_adapter_create() - add an adapter to an engine
 * @config: copied
 * @ops: callbacks; must stay valid as long as the adapter
 * @host: first argument of the callbacks
 * @err: on failure, one line that says what is wrong
 * @err_size: size of @err
 *
 * Return: the adapter, owned by the engine until pvr_adapter_destroy(), or NULL.
 */
struct pvr_adapter *pvr_adapter_create(struct pvr_engine *engine,
				       const struct pvr_adapter_config *config,
				       const struct pvr_adapter_ops *ops, void *host, char *err,
				       size_t err_size);

/* Peers see its QPs vanish: they retry, then complete with RETRY_EXC_ERR. */
void pvr_adapter_destroy(struct pvr_adapter *adapter);

/*
 * Function-level reset, guest reset, client gone: all objects are destroyed and all
 * DMA has stopped when this returns. RAM mappings stay.
 */
void pvr_adapter_reset(struct pvr_adapter *adapter);

/**
 * pvr_adapter_map_ram() - tell the adapter of a region of guest memory
 * @gpa: bus address of its first byte
 * @size: bytes; need not be a multiple of the page size, only whole pages are used
 * @va: where it is mapped in this process
 * @writable: false for ROM: DMA to it is refused
 *
 * @va must stay mapped until pvr_adapter_unmap_ram() has returned.
 *
 * Return: 0, -EINVAL (wraps, or overlaps an earlier piece) or -ENOMEM.
 */
int pvr_adapter_map_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size, void *va,
			bool writable);

/*
 * Forget the piece that starts at @gpa. Objects that use it break: MRs refuse
 * access, queues and the device go to their error states.
 */
void pvr_adapter_unmap_ram(struct pvr_adapter *adapter, uint64_t gpa, uint64_t size);

/*
 * BAR1 and BAR2 accesses of any size and alignment. Registers and doorbells are
 * 32-bit; other accesses read as all ones and are ignored and counted on write.
 * Reads of the UAR give all ones. Nothing outside the BAR has an effect.
 */
void pvr_adapter_regs_read(struct pvr_adapter *adapter, uint64_t offset, void *buf, size_t len);
void pvr_adapter_regs_write(struct pvr_adapter *adapter, uint64_t offset, const void *buf,
			    size_t len);
void pvr_adapter_uar_write(struct pvr_adapter *adapter, uint64_t offset, const void *buf,
			   size_t len);

/**
 * pvr_adapter_map_uar() - let the guest store doorbells to memory
 * @uar_shm: PVR_BAR_UAR_SIZE bytes, zero, on a page boundary, which the embedder has
 *	     mapped into the guest in the place of BAR2; NULL: that is over
 *
 * Stays in use until the next call, so also when the adapter is destroyed. Doorbells of
 * guests that do not use the mapping come by pvr_adapter_uar_write() as ever.
 */
void pvr_adapter_map_uar(struct pvr_adapter *adapter, void *uar_shm);

/*
 * Keep all others from using the adapter, or calling its raise(), until
 * pvr_adapter_resume(); no other call on the adapter in between.
 */
void pvr_adapter_pause(struct pvr_adapter *adapter);
void pvr_adapter_resume(struct pvr_adapter *adapter);

/*
 * A command is being executed that takes long, in steps from pvr_engine_run(). Accesses to
 * the registers and changes of RAM would wait for its end: who has other adapters to look
 * after makes them later.
 */
bool pvr_adapter_busy(const struct pvr_adapter *adapter);

/*
 * PCI command register, bus master enable: while off, the adapter does no DMA.
 * Initially on, for embedders without a configuration space.
 */
void pvr_adapter_set_bus_master(struct pvr_adapter *adapter, bool on);

/* The link: a change reaches the guest as PORT_ACTIVE or PORT_ERR. Initially up. */
void pvr_adapter_set_link(struct pvr_adapter *adapter, bool up);

/*
 * Guest memory turned out to be unusable (truncated under us): the device reports
 * DEVICE_FATAL where it can, and does no DMA until it is reset.
 */
void pvr_adapter_fail(struct pvr_adapter *adapter, const char *why);

enum pvr_adapter_state {
	PVR_ADAPTER_IDLE, /* no driver: no DSR yet, or reset */
	PVR_ADAPTER_READY, /* the DSR is valid, commands run */
	PVR_ADAPTER_ACTIVE, /* the driver has written ACTIVATE */
	PVR_ADAPTER_FAILED, /* unusable until reset */
};

struct pvr_adapter_stats {
	enum pvr_adapter_state state;
	bool link_up;
	uint32_t driver_version; /* 0 until a driver has come */
	uint32_t features; /* PVR_EXT_* in effect */
	uint32_t contexts, pds, mrs, mws, cqs, qps, srqs, gids;
	uint64_t commands, commands_failed;
	uint64_t doorbells, doorbells_ignored;
	uint64_t bad_accesses; /* wrong size, alignment or address of a BAR access */
	/* As QUERY_STATS tells the guest, see enum pvr_stat. */
	uint64_t tx_messages, tx_bytes, rx_messages, rx_bytes;
	uint64_t tx_reads, tx_atomics, tx_multicast, rx_multicast;
	uint64_t ud_dropped;
	uint64_t rnr_naks, ack_timeouts, retries_exceeded;
	uint64_t access_errors, request_errors;
	uint64_t cq_overflows;
	uint64_t interrupts;
};

const char *pvr_adapter_name(const struct pvr_adapter *adapter);
const char *pvr_adapter_fabric(const struct pvr_adapter *adapter);
const uint8_t *pvr_adapter_mac(const struct pvr_adapter *adapter);
const char *pvr_adapter_hwversion(const struct pvr_adapter *adapter);
uint8_t pvr_adapter_gid_type(const struct pvr_adapter *adapter);
unsigned int pvr_adapter_worker(const struct pvr_adapter *adapter);
bool pvr_adapter_is_uar_mapped(const struct pvr_adapter *adapter);
const char *pvr_adapter_state_name(enum pvr_adapter_state state);
void pvr_adapter_get_stats(struct pvr_adapter *adapter, struct pvr_adapter_stats *stats);
/* Calls @fn for each bound GID. */
void pvr_adapter_for_each_gid(struct pvr_adapter *adapter,
			      void (*fn)(void *opaque, uint32_t index, const uint8_t gid[16],
					 uint8_t gid_type),
			      void *opaque);

/* A queue pair, for people. */
struct pvr_qp_info {
	uint32_t qpn;
	const char *type, *state;
	const char *waits; /* what its requester waits for, or "" */
	/* RC and UC; zero: not connected. */
	uint32_t dest_qpn;
	uint8_t dgid[16];
	uint8_t traffic_class;
	uint64_t stat[PVR_STAT_NUM];
};

/*
 * Some of the adapter's queue pairs: those from @cursor on, which is 0 in the first call. Up
 * to @max, and there may be none. Return: false: those were the last.
 */
bool pvr_adapter_get_qps(struct pvr_adapter *adapter, uint32_t *cursor, struct pvr_qp_info *infos,
			 size_t max, size_t *num);

/* Traffic from one adapter to another, or to another host, since the engine began. */
struct pvr_flow_stats {
	const char *from, *to; /* adapter names; or that of a host, if the path is not local */
	const char *fabric;
	const char *path; /* "local", "tcp", "verbs" */
	const char *why; /* the reason for this path, for people */
	uint64_t messages, bytes;
};

void pvr_engine_for_each_flow(struct pvr_engine *engine,
			      void (*fn)(void *opaque, const struct pvr_flow_stats *stats),
			      void *opaque);

/* ------------------------------------------------------------ GIDs at other hosts */

/* Who has a GID that no adapter of this engine has. A local one always goes first. */
enum pvr_gid_state {
	PVR_GID_UNKNOWN, /* forget it: ask by resolve() when it is needed */
	PVR_GID_ABSENT, /* nobody has it: do not ask until told otherwise */
	PVR_GID_AT_HOST, /* @host has it; a multicast group may have several, one call each */
	PVR_GID_AT_HOST_MORE, /* of a group: ditto, and the next member follows at once */
	PVR_GID_LEFT_HOST, /* @host has it no more */
};

struct pvr_gid_ops {
	/*
	 * A guest wants to reach, or somebody says to be, @gid, which is not known: find out
	 * and call pvr_engine_set_gid(). Called again and again while that has not come.
	 */
	void (*resolve)(void *opaque, const char *fabric, const uint8_t gid[16]);
	/*
	 * A GID of an adapter of ours, which has that MAC, has come or gone; or the first
	 * adapter has come to a multicast group, the last one gone, and @mac is zero. In the
	 * order in which it happens.
	 */
	void (*announce)(void *opaque, const char *fabric, const uint8_t gid[16], uint8_t gid_type,
			 const uint8_t mac[6], bool present);
	/* What was set by pvr_engine_set_gid() turned out to be wrong: @host has it no more. */
	void (*moved)(void *opaque, struct pvr_host *host, const char *fabric,
		      const uint8_t gid[16]);
};

/*
 * The fabric need not exist, and is not made; it is remembered all the same, up to 2^20
 * GIDs. @gid_type 0 where there is no @host: of both versions of RoCE. Return: 0, -ENOMEM, or
 * -ENOSPC.
 */
int pvr_engine_set_gid(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
		       uint8_t gid_type, enum pvr_gid_state state, struct pvr_host *host);

/* Which adapter of ours has it: its type and MAC. Return: whether one has. */
bool pvr_engine_find_gid(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
			 uint8_t *gid_type, uint8_t mac[6]);

#endif /* PVR_ENGINE_H */
