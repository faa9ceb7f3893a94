// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Adapters that have started without the host that their state is from.
 *
 * DOC: the source comes back
 *
 * The source may be slow, or the way to it was cut: then it still has the GIDs, and the directory and
 * all peers find them there. So the destination goes on to send TAKE (BOUND), until the source has
 * released the adapter, or responds that it has no such state. If the VM runs at the source again, or
 * the source has given the adapter to another host, the adapter fails here: the source decides. It then
 * ends its connections, because their peers may have executed requests of this host.
 */
#include <stddef.h>

#include "core/adapter.h"
#include "core/move.h"
#include "ctrl/ctrl.h"

#define ASK_MIN_NS 20000000ull
#define ASK_MAX_NS 5000000000ull

static void ask_later(struct pvr_adapter *adapter)
{
	struct pvr_move *move = &adapter->move;

	pvr_timer_set(&adapter->timers, &move->lone, pvr_now(adapter->engine) + move->lone_gap);
}

static void expired(struct pvr_timer *timer)
{
	struct pvr_adapter *adapter =
		(struct pvr_adapter *)((char *)timer - offsetof(struct pvr_adapter, move.lone));
	struct pvr_move *move = &adapter->move;

	adapter->engine->move_ops->ask(adapter, move->source, move->loaded, true);
	move->lone_gap = 2 * move->lone_gap < ASK_MAX_NS ? 2 * move->lone_gap : ASK_MAX_NS;
	ask_later(adapter);
}

int pvr_lone_start_init(struct pvr_adapter *adapter)
{
	return pvr_timer_init(&adapter->timers, &adapter->move.lone, expired);
}

void pvr_lone_start_exit(struct pvr_adapter *adapter)
{
	pvr_move_need_source(adapter, false);
	pvr_timer_exit(&adapter->timers, &adapter->move.lone);
}

void pvr_lone_start_begin(struct pvr_adapter *adapter)
{
	if (!adapter->move.is_lone) {
		pvr_move_need_source(adapter, false);
		return;
	}
	adapter->move.lone_gap = ASK_MIN_NS;
	ask_later(adapter);
}

void pvr_lone_start_end(struct pvr_adapter *adapter)
{
	adapter->move.is_lone = false;
	pvr_move_need_source(adapter, false);
	pvr_timer_cancel(&adapter->timers, &adapter->move.lone);
}

void pvr_lone_start_answered(struct pvr_adapter *adapter, enum pvr_take answer)
{
	/* It is given, and released when asked again. */
	if (answer == PVR_TAKE_YES) {
		pvr_lone_start_begin(adapter);
		return;
	}
	/*
	 * It ends its connections if it knows of the start. This may answer a request of before, for
	 * instance because another destination has asked first, which the start makes a loser.
	 */
	if (answer == PVR_TAKE_NO)
		adapter->engine->move_ops->ask(adapter, adapter->move.source, adapter->move.loaded,
					       true);
	if (answer == PVR_TAKE_NO && adapter->move.unbound_asks) {
		adapter->move.unbound_asks--;
		return;
	}
	pvr_lone_start_end(adapter);
	if (answer != PVR_TAKE_NO)
		return;
	adapter->move.answer = answer;
	if (adapter->run_state == PVR_RUN_RUNNING || adapter->run_state == PVR_RUN_STOPPED)
		pvr_move_refused(adapter);
}
