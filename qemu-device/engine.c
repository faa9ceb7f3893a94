// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The engine: creation, the run of a worker, polling, statistics. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ctrl/uar_poll.h"
#include "rdma/db_suppress.h"
#include "rdma/sched.h"
#include "rdma/shaper.h"
#include "core/adapter.h"
#include "rdma/peer_gone.h"
#include "pipe.h"
#include "path/fault/fault.h"
#include "path/local/local.h"
#include "path/pipe/ops.h"
#include "path/wire/ops.h"
#include "ctrl/ctrl.h"
#include "rdma/worker.h"
#include "rdma/event.h"
#include "gid/fabric.h"
#include "gid/flow.h"
#include "gid/referral.h"
#include "gid/resolve.h"
#include "path/pipe/host.h"
#include "path/pipe/internal.h"
#include "path/pipe/move.h"

/* In order of preference. */
static const struct pvr_path_ops *const paths[] = {
	&pvr_local_path_ops, /* adapters of this process: one memcpy */
	&pvr_pipe_path_ops, /* adapters of other hosts with this daemon */
	&pvr_eth_path_ops, /* RDMA NICs on an Ethernet segment */
};
_Static_assert(sizeof(paths) <= PVR_PATHS_MAX * sizeof(paths[0]), "raise PVR_PATHS_MAX");

static struct pvr_worker *workers_create(struct pvr_engine *engine, unsigned int num)
{
	struct pvr_worker *workers;
	unsigned int i;

	if (!num || num > PVR_MAX_WORKERS)
		return NULL;
	workers = calloc(num, sizeof(*workers));
	if (!workers)
		return NULL;
	for (i = 0; i < num; i++)
		pvr_worker_init(&workers[i], engine, i);
	return workers;
}

/* The GIDs of an adapter that is given are not here any more. */
static enum pvr_take give(struct pvr_engine *engine, const struct pvr_taker *taker)
{
	enum pvr_take answer = pvr_move_give(engine, taker);

	if (answer == PVR_TAKE_DONE)
		pvr_host_resume_fabric(engine, taker->fabric);
	return answer;
}

static const struct pvr_move_ops move_ops = {
	.ask = pvr_pipe_ask,
	.ask_others = pvr_pipe_ask_others,
	.host_name = pvr_host_name,
	.query = pvr_pipe_query,
	.tell = pvr_pipe_tell_moved,
	.give = give,
	.taken = pvr_move_taken,
};

struct pvr_engine *pvr_engine_create(const struct pvr_engine_ops *ops, void *opaque,
				     unsigned int workers)
{
	struct pvr_engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	engine->ops = ops;
	engine->opaque = opaque;
	engine->num_workers = workers;
	/* An earlier process may have connected a queue pair that is loaded here, and connected again. */
	if (getrandom(&engine->epoch, sizeof(engine->epoch), GRND_NONBLOCK) < 0)
		engine->epoch = (uint32_t)pvr_now(engine);
	engine->hold_ns = PVR_HOLD_NS;
	engine->move_ops = &move_ops;
	pvr_move_init(engine);
	memcpy(engine->paths, paths, sizeof(paths));
	engine->paths[PVR_PATH_FAULT] = &pvr_fault_path_ops;
	pvr_copy_init(&engine->copy);
	LIST_INIT(&engine->adapters);
	LIST_INIT(&engine->fabric_limits);
	engine->fabrics = pvr_fabrics_create();
	engine->pipe = pvr_pipe_create();
	engine->workers = workers_create(engine, workers);
	if (!engine->fabrics || !engine->pipe || !engine->workers) {
		pvr_engine_destroy(engine);
		return NULL;
	}
	return engine;
}

void pvr_engine_set_name(struct pvr_engine *engine, const char *name)
{
	snprintf(engine->name, sizeof(engine->name), "%s", name);
}

void pvr_engine_set_hold(struct pvr_engine *engine, uint64_t ns)
{
	engine->hold_ns = ns;
}

void pvr_engine_set_needs_source(struct pvr_engine *engine, bool needs)
{
	engine->needs_source = needs;
}

void pvr_engine_measure_copy(struct pvr_engine *engine)
{
	const struct pvr_copy *copy = &engine->copy;

	pvr_copy_measure(&engine->copy, engine->ops->now, engine->opaque);
	pvr_log(engine, NULL, PVR_LOG_INFO, "fastest copy of up to %u KiB: %s, of more: %s",
		PVR_COPY_SHORT >> 10, copy->impl[0]->name, copy->impl[1]->name);
}

void pvr_engine_destroy(struct pvr_engine *engine)
{
	if (!engine)
		return;
	while (!LIST_EMPTY(&engine->adapters))
		pvr_adapter_destroy(LIST_FIRST(&engine->adapters));
	pvr_pipe_destroy(engine->pipe);
	pvr_fabrics_destroy(engine->fabrics);
	pvr_faults_free(engine->faults);
	pvr_shaper_exit(engine);
	free(engine->workers);
	free(engine);
}

static void raise_interrupts(struct pvr_worker *worker)
{
	struct pvr_adapter *adapter;

	while ((adapter = SLIST_FIRST(&worker->interrupting))) {
		SLIST_REMOVE_HEAD(&worker->interrupting, interrupting);
		pvr_adapter_lock(adapter);
		adapter->is_interrupting = false;
		pvr_interrupt_flush(adapter);
		pvr_adapter_leave(adapter, worker);
	}
}

/* Handle GIDs that other adapters have taken over, and peers whose guests are gone. */
static void handle_losses(struct pvr_worker *worker)
{
	struct pvr_adapter *adapter;

	worker->has_losses = false;
	LIST_FOREACH(adapter, &worker->adapters, of_worker) {
		if (!__atomic_load_n(&adapter->has_lost_gids, __ATOMIC_RELAXED) &&
		    !__atomic_load_n(&adapter->has_lost_peers, __ATOMIC_RELAXED))
			continue;
		pvr_adapter_lock(adapter);
		pvr_gid_forget_lost(adapter);
		pvr_peer_gone_check_later(adapter);
		pvr_adapter_leave(adapter, worker);
	}
}

bool pvr_engine_run(struct pvr_engine *engine, unsigned int index)
{
	struct pvr_worker *worker = &engine->workers[index];

	pvr_worker_begin(worker);
	pvr_sched_run(worker);
	if (worker->has_losses)
		handle_losses(worker);
	raise_interrupts(worker);
	return pvr_worker_has_work(worker);
}

/* An adapter that another thread has locked is skipped: its lock may be free soon. */
bool pvr_engine_poll(struct pvr_engine *engine, unsigned int index)
{
	struct pvr_worker *worker = &engine->workers[index];
	struct pvr_adapter *adapter;
	bool found = false;

	__atomic_store_n(&worker->polls, true, __ATOMIC_RELAXED);
	LIST_FOREACH(adapter, &worker->adapters, of_worker) {
		/*
		 * Of many adapters most are idle: taking all their locks would cost most
		 * of the time.
		 */
		if (pvr_db_has_nothing(adapter) && pvr_uar_poll_has_nothing(adapter))
			continue;
		if (!pvr_trylock(&adapter->lock))
			continue;
		found |= pvr_db_poll(adapter);
		found |= pvr_uar_poll_some(adapter);
		pvr_adapter_leave(adapter, worker);
	}
	return found;
}

bool pvr_engine_enable_doorbells(struct pvr_engine *engine, unsigned int index)
{
	struct pvr_worker *worker = &engine->workers[index];
	struct pvr_adapter *adapter;
	bool nothing = true;

	__atomic_store_n(&worker->polls, false, __ATOMIC_RELAXED);
	LIST_FOREACH(adapter, &worker->adapters, of_worker) {
		pvr_adapter_lock(adapter);
		nothing &= pvr_db_enable_all(adapter);
		pvr_adapter_leave(adapter, worker);
	}
	return nothing;
}

/*
 * An adapter that another thread has locked counts as active: it has a driver, or just
 * had.
 */
bool pvr_engine_is_uar_mapped(const struct pvr_engine *engine, unsigned int index)
{
	struct pvr_adapter *adapter;
	bool active = false;

	/* Each round of a worker comes here, and it may have hundreds of adapters. */
	if (!engine->workers[index].num_uar_polled)
		return false;
	LIST_FOREACH(adapter, &engine->workers[index].adapters, of_worker) {
		if (!pvr_adapter_is_uar_mapped(adapter))
			continue;
		if (!pvr_trylock(&adapter->lock)) {
			active = true;
			continue;
		}
		active |= pvr_uar_poll_is_active(adapter);
		pvr_adapter_unlock(adapter);
	}
	return active;
}

uint64_t pvr_engine_deadline(struct pvr_engine *engine, unsigned int index)
{
	return pvr_worker_idle(&engine->workers[index]);
}

void pvr_engine_worker_stats(const struct pvr_engine *engine, unsigned int index,
			     struct pvr_worker_stats *stats)
{
	const struct pvr_worker_stats *from = &engine->workers[index].stats;

	*stats = (struct pvr_worker_stats){
		.quanta = pvr_stat_get(&from->quanta),
		.lock_contended = pvr_stat_get(&from->lock_contended),
		.messages = pvr_stat_get(&from->messages),
		.bytes = pvr_stat_get(&from->bytes),
	};
}

bool pvr_engine_worker_request(const struct pvr_engine *engine, unsigned int index,
			       const char **adapter, const char **peer)
{
	const struct pvr_adapter *each, *found = NULL, *locked = NULL;

	/* The peer's adapter can have the same worker: the one that has locked it counts. */
	LIST_FOREACH(each, &engine->workers[index].adapters, of_worker) {
		if (!pvr_lock_is_held(&each->lock) || locked)
			continue;
		locked = __atomic_load_n(&each->locked_peer, __ATOMIC_RELAXED);
		found = each;
	}
	*adapter = found ? pvr_adapter_name(found) : NULL;
	*peer = locked ? pvr_adapter_name(locked) : NULL;
	return found;
}

struct reason {
	const char *name, *why;
};

static struct reason reason_of(const struct pvr_flow *flow)
{
	static const struct reason local = { "local", "both adapters are on this host" };
	static const struct reason reasons[PVR_PIPE_KINDS] = {
		[PVR_PIPE_TCP] = { "tcp", "it is another host, and RDMA NICs are not used" },
		[PVR_PIPE_VERBS] = { "verbs", "it is another host, and both have an RDMA NIC" },
	};

	return flow->to ? local : reasons[__atomic_load_n(&flow->kind, __ATOMIC_RELAXED)];
}

static struct pvr_flow_stats stats_of(const struct pvr_flow *flow)
{
	struct reason reason = reason_of(flow);

	return (struct pvr_flow_stats){
		.from = flow->from->name,
		.to = flow->to ? flow->to->name : pvr_host_name(flow->host),
		.fabric = flow->from->fabric->name,
		.path = reason.name,
		.why = reason.why,
		.messages = pvr_stat_get(&flow->messages),
		.bytes = pvr_stat_get(&flow->bytes),
	};
}

/* Report up to @max peers on the segment of its port, from number @i on. Return: their number. */
static uint32_t report_wire(const struct pvr_adapter *adapter, uint32_t i, uint32_t max,
			    void (*fn)(void *opaque, const struct pvr_flow_stats *stats),
			    void *opaque)
{
	struct pvr_flow_stats stats = {
		.from = adapter->name,
		.fabric = adapter->fabric->name,
		.path = "wire",
		.why = "no adapter here and no other pvrdmad has this address",
	};
	uint32_t num;

	for (num = 0; num < max; num++) {
		stats.to = pvr_eth_flow(adapter, i + num, &stats.messages, &stats.bytes);
		if (!stats.to)
			break;
		fn(opaque, &stats);
	}
	return num;
}

/* The last list has the peers on the segment. */
#define FLOW_LISTS (PVR_FLOW_LISTS + 1)
#define FLOWS_OF_LIST (PVR_FLOW_CURSORS / FLOW_LISTS)

/*
 * New flows are the first ones of a list: pages count from its end. Report up to @max flows after the
 * last @done ones. Return: their number.
 */
static uint32_t report_flows(const struct pvr_flow *first, uint32_t done, uint32_t max,
			     void (*fn)(void *opaque, const struct pvr_flow_stats *stats),
			     void *opaque)
{
	const struct pvr_flow *flow;
	struct pvr_flow_stats stats;
	uint32_t behind = 0, num = 0;

	for (flow = first; flow; flow = flow->next)
		behind++;
	for (flow = first; flow; flow = flow->next) {
		behind--;
		if (behind < done || behind - done >= max)
			continue;
		stats = stats_of(flow);
		fn(opaque, &stats);
		num++;
	}
	return num;
}

/* Takes no lock: flows stay while adapters do, see gid/flow.h. */
bool pvr_adapter_page_flows(struct pvr_adapter *adapter, uint32_t *cursor, unsigned int max,
			    void (*fn)(void *opaque, const struct pvr_flow_stats *stats),
			    void *opaque)
{
	uint32_t list = *cursor / FLOWS_OF_LIST, done = *cursor % FLOWS_OF_LIST, num;

	for (; list < FLOW_LISTS; list++, done = 0) {
		if (list < PVR_FLOW_LISTS)
			num = report_flows(pvr_flow_first(adapter, list), done, max, fn, opaque);
		else
			num = report_wire(adapter, done, max, fn, opaque);
		max -= num;
		if (max)
			continue;
		/* A list of FLOWS_OF_LIST flows ends there. */
		*cursor = list * FLOWS_OF_LIST + done + num;
		if (*cursor < PVR_FLOW_CURSORS)
			return true;
	}
	return false;
}

void pvr_engine_for_each_flow(struct pvr_engine *engine,
			      void (*fn)(void *opaque, const struct pvr_flow_stats *stats),
			      void *opaque)
{
	struct pvr_adapter *adapter;
	uint32_t cursor;

	LIST_FOREACH(adapter, &engine->adapters, link) {
		cursor = 0;
		pvr_adapter_page_flows(adapter, &cursor, UINT32_MAX, fn, opaque);
	}
}

/* Their peers may have started before this adapter had its GIDs. */
static void watch_missing(struct pvr_fabric *fabric)
{
	struct pvr_adapter *adapter;

	LIST_FOREACH(adapter, &fabric->adapters, fabric_link) {
		pvr_adapter_lock(adapter);
		pvr_peer_gone_watch_missing(adapter);
		pvr_adapter_unlock(adapter);
	}
}

/* Queue pairs that wait for the adapter find it again, as if its GIDs had moved. */
static int start(struct pvr_adapter *adapter, int (*do_start)(struct pvr_adapter *adapter))
{
	const char *fabric = adapter->fabric->name;
	bool was_loaded;
	uint64_t stops;
	int err;

	pvr_adapter_lock(adapter);
	was_loaded = adapter->run_state == PVR_RUN_LOADED;
	stops = adapter->stops;
	err = do_start(adapter);
	stops = adapter->stops - stops;
	pvr_adapter_unlock(adapter);
	if (stops && was_loaded)
		watch_missing(adapter->fabric);
	if (stops) {
		pvr_fabric_changed(adapter->engine, fabric);
		pvr_host_resume_fabric(adapter->engine, fabric);
	}
	return err;
}

int pvr_adapter_start(struct pvr_adapter *adapter)
{
	return start(adapter, pvr_adapter_do_start);
}

int pvr_adapter_stay_stopped(struct pvr_adapter *adapter)
{
	return start(adapter, pvr_adapter_do_stay_stopped);
}

int pvr_adapter_reclaim(struct pvr_adapter *adapter)
{
	int err;

	pvr_adapter_lock(adapter);
	err = pvr_move_reclaim(adapter);
	pvr_adapter_unlock(adapter);
	if (!err)
		pvr_host_resume_fabric(adapter->engine, adapter->fabric->name);
	return err;
}

int pvr_engine_set_gid(struct pvr_engine *engine, const char *fabric, const uint8_t gid[16],
		       uint8_t gid_type, enum pvr_gid_state where, struct pvr_host *host)
{
	bool wake;
	int err = pvr_host_gid_set(engine, fabric, gid, gid_type, where, host, &wake);

	if (wake)
		pvr_host_resume_fabric(engine, fabric);
	return err;
}

void pvr_engine_rules_changed(struct pvr_engine *engine)
{
	pvr_referrals_forget_all(engine);
}

void pvr_engine_set_pipe(struct pvr_engine *engine, const struct pvr_gid_ops *gid_ops,
			 const struct pvr_host_ops *host_ops, void *opaque)
{
	engine->fabrics->gid_ops = gid_ops;
	engine->fabrics->gid_opaque = opaque;
	engine->pipe->ops = host_ops;
	engine->pipe->opaque = opaque;
}
