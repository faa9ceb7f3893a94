// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Stopped adapters. */
#include <errno.h>

#include "core/adapter.h"
#include "core/ext_dma.h"
#include "core/objects.h"
#include "ctrl/ctrl.h"
#include "ctrl/uar_poll.h"
#include "rdma/cq.h"
#include "rdma/event.h"
#include "rdma/peer_gone.h"
#include "rdma/qp_sweep.h"
#include "rdma/worker.h"

const char *pvr_run_state_name(enum pvr_run_state state)
{
	static const char *const names[] = {
		[PVR_RUN_RUNNING] = "running", [PVR_RUN_STOPPED] = "stopped",
		[PVR_RUN_LOADING] = "loading", [PVR_RUN_LOADED] = "loaded",
		[PVR_RUN_MOVED] = "moved",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

enum pvr_run_state pvr_adapter_run_state(const struct pvr_adapter *adapter)
{
	return __atomic_load_n(&adapter->run_state, __ATOMIC_RELAXED);
}

void pvr_adapter_set_run_state(struct pvr_adapter *adapter, enum pvr_run_state state)
{
	__atomic_store_n(&adapter->run_state, state, __ATOMIC_RELAXED);
	pvr_adapter_update_dma(adapter);
	/* The timers of a stopped adapter have no deadline. */
	pvr_worker_set_deadline(adapter);
	if (pvr_qp_sweep_is_due(adapter))
		pvr_worker_queue(adapter);
}

/* ------------------------------------------------------------------------------ stop */

static int stop(struct pvr_adapter *adapter)
{
	if (adapter->job.step)
		return -EINPROGRESS;
	if (pvr_adapter_is_stopped(adapter))
		return 0;
	if (adapter->run_state != PVR_RUN_RUNNING)
		return -EINVAL;
	/* Doorbells in memory have no other place that keeps them. */
	pvr_uar_poll_finish(adapter);
	pvr_gid_forget_lost(adapter);
	pvr_publish(adapter);
	pvr_ext_dma_revoke_all(adapter);
	pvr_interrupt_flush(adapter);
	adapter->stops++;
	adapter->stopped_at = pvr_now(adapter->engine);
	pvr_adapter_set_run_state(adapter, PVR_RUN_STOPPED);
	pvr_info(adapter, "stopped");
	return 0;
}

int pvr_adapter_stop(struct pvr_adapter *adapter)
{
	int err;

	pvr_adapter_lock(adapter);
	err = stop(adapter);
	pvr_adapter_unlock(adapter);
	return err;
}

/* ----------------------------------------------------------------------------- start */

static void go_on(struct pvr_adapter *adapter)
{
	uint64_t now = pvr_now(adapter->engine), pause = now - adapter->stopped_at;

	pvr_timers_pause(&adapter->timers, pause);
	adapter->started_at = now;
	adapter->stops++;
	pvr_move_void_token(adapter);
	adapter->move.ran = true;
	pvr_adapter_set_run_state(adapter, PVR_RUN_RUNNING);
	/* Doorbells and responses that came meanwhile had no effect. */
	pvr_qp_sweep_begin(adapter, PVR_SWEEP_KICK);
	pvr_events_push_backlog(adapter);
	pvr_peer_gone_check_later(adapter);
	pvr_info(adapter, "started after %llu ms", (unsigned long long)(pause / 1000000));
}

static int start_loaded(struct pvr_adapter *adapter)
{
	int err = pvr_load_prepare(adapter);

	if (!err)
		err = pvr_move_take(adapter);
	if (!err)
		err = pvr_load_bind(adapter);
	if (err == -EINPROGRESS)
		return err;
	pvr_load_done(adapter);
	/* The interrupt of an unread entry may have got lost on the way here. */
	pvr_event_raise_unread(adapter);
	pvr_interrupt_flush(adapter);
	go_on(adapter);
	if (err == -EPERM)
		pvr_move_refused(adapter);
	else if (err)
		pvr_adapter_do_fail(adapter, adapter->load_why);
	else if (pvr_move_note_start(adapter))
		pvr_qp_end_connections(adapter);
	if (err)
		pvr_lone_start_end(adapter);
	else
		pvr_lone_start_begin(adapter);
	return err;
}

int pvr_adapter_do_stay_stopped(struct pvr_adapter *adapter)
{
	int err;

	if (adapter->job.step)
		return -EINPROGRESS;
	if (adapter->run_state == PVR_RUN_STOPPED)
		return 0;
	if (adapter->run_state != PVR_RUN_LOADED)
		return -EINVAL;
	err = pvr_load_prepare(adapter);
	if (!err)
		err = pvr_load_bind(adapter);
	if (err)
		return err;
	pvr_load_done(adapter);
	/* QEMU may have read its state before this process took it over. */
	adapter->move.was_read = true;
	adapter->stops++;
	pvr_adapter_set_run_state(adapter, PVR_RUN_STOPPED);
	return 0;
}

int pvr_adapter_do_start(struct pvr_adapter *adapter)
{
	if (adapter->job.step)
		return -EINPROGRESS;
	switch (adapter->run_state) {
	case PVR_RUN_RUNNING:
		return adapter->load_err;
	case PVR_RUN_STOPPED:
		go_on(adapter);
		return 0;
	case PVR_RUN_LOADED:
		return start_loaded(adapter);
	case PVR_RUN_MOVED:
		return -EPERM;
	default:
		return -EINVAL;
	}
}
