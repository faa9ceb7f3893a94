/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The engine: adapters, time, and turns for what is ready. */
#include <stdlib.h>

#include "datapath/async.h"
#include "datapath/quiet.h"
#include "datapath/sched.h"
#include "model/adapter.h"

#define TIMERS_PER_RUN 64

struct pvr_engine *pvr_engine_create(const struct pvr_engine_ops *ops, void *opaque,
				     unsigned int workers)
{
	struct pvr_engine *engine = NULL;

	if (workers && workers <= PVR_MAX_WORKERS)
		engine = calloc(1, sizeof(*engine));
	if (!engine)
		return NULL;
	engine->ops = ops;
	engine->opaque = opaque;
	engine->num_workers = workers;
	LIST_INIT(&engine->adapters);
	LIST_INIT(&engine->fabrics.list);
	LIST_INIT(&engine->fabrics.paths);
	TAILQ_INIT(&engine->ready);
	SLIST_INIT(&engine->interrupting);
	engine->topology = 1;
	return engine;
}

void pvr_engine_destroy(struct pvr_engine *engine)
{
	if (!engine)
		return;
	while (!LIST_EMPTY(&engine->adapters))
		pvr_adapter_destroy(LIST_FIRST(&engine->adapters));
	pvr_timers_exit(&engine->timers);
	free(engine);
}

static void flush_interrupts(struct pvr_engine *engine)
{
	struct pvr_adapter *adapter;

	while ((adapter = SLIST_FIRST(&engine->interrupting))) {
		SLIST_REMOVE_HEAD(&engine->interrupting, interrupting);
		adapter->is_interrupting = false;
		pvr_interrupt_flush(adapter);
	}
}

bool pvr_engine_run(struct pvr_engine *engine, unsigned int worker)
{
	bool more;

	if (worker)
		return false;

	if (pvr_timers_next(&engine->timers) != UINT64_MAX)
		pvr_timers_run(&engine->timers, pvr_now(engine), TIMERS_PER_RUN);
	more = pvr_sched_run(engine);
	flush_interrupts(engine);
	return more;
}

bool pvr_engine_poll(struct pvr_engine *engine, unsigned int worker)
{
	struct pvr_adapter *adapter;
	bool found = false;

	if (worker)
		return false;
	LIST_FOREACH(adapter, &engine->adapters, link)
		found |= pvr_quiet_poll(adapter) | pvr_async_poll(adapter);
	return found;
}

bool pvr_engine_rest(struct pvr_engine *engine, unsigned int worker)
{
	struct pvr_adapter *adapter;
	bool nothing = true;

	if (worker)
		return true;
	LIST_FOREACH(adapter, &engine->adapters, link)
		nothing &= pvr_quiet_rest(adapter);
	return nothing;
}

bool pvr_engine_is_async(const struct pvr_engine *engine, unsigned int worker)
{
	const struct pvr_adapter *adapter;

	if (worker)
		return false;
	LIST_FOREACH(adapter, &engine->adapters, link)
		if (pvr_async_is_active(adapter))
			return true;
	return false;
}

uint64_t pvr_engine_deadline(struct pvr_engine *engine, unsigned int worker)
{
	return worker ? UINT64_MAX : pvr_timers_next(&engine->timers);
}

void pvr_engine_for_each_path(const struct pvr_engine *engine,
			      void (*fn)(void *opaque,
					 const struct pvr_path_stats *stats),
			      void *opaque)
{
	const struct pvr_path *path;

	LIST_FOREACH(path, &engine->fabrics.paths, link) {
		struct pvr_path_stats stats = {
			.from = path->from->name,
			.to = path->to->name,
			.fabric = path->from->fabric->name,
			.path = "local",
			.why = "both adapters are on this host",
			.messages = path->messages,
			.bytes = path->bytes,
		};

		fn(opaque, &stats);
	}
}
