// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Other destinations of a state whose source does not respond, without a directory that decides. */
#include <stdio.h>
#include <string.h>

#include "core/adapter.h"
#include "ctrl/ctrl.h"
#include "gid/fabric.h"

#define ASK_AGAIN_NS 100000000ull

/* With a claim the directory decides. */
static bool decide_themselves(const struct pvr_engine *engine)
{
	return engine->name[0] && engine->fabrics->gid_ops &&
	       !engine->fabrics->gid_ops->claim_state;
}

void pvr_rivals_ask(struct pvr_adapter *adapter, uint64_t now)
{
	struct pvr_move *move = &adapter->move;

	if (now < move->rivals_next || !decide_themselves(adapter->engine))
		return;
	move->rivals_next = now + ASK_AGAIN_NS;
	adapter->engine->move_ops->ask_others(adapter, move->source, move->loaded,
					      pvr_move_may_have);
}

enum pvr_take pvr_rivals_answer(const struct pvr_adapter *adapter, const char *from)
{
	const struct pvr_engine *engine = adapter->engine;

	if (!decide_themselves(engine) || adapter->move.refused)
		return PVR_TAKE_STALE;
	/* Both have asked: one of the two names is the first one at both hosts. */
	if (adapter->run_state == PVR_RUN_LOADED)
		return adapter->move.asked_at && strcmp(engine->name, from) < 0 ? PVR_TAKE_NO
										: PVR_TAKE_STALE;
	return adapter->state == PVR_ADAPTER_ACTIVE ? PVR_TAKE_NO : PVR_TAKE_STALE;
}

void pvr_rivals_answered(struct pvr_adapter *adapter, const char *from, enum pvr_take answer)
{
	struct pvr_move *move = &adapter->move;

	/* The source's word counts more. */
	if (answer != PVR_TAKE_NO || move->answer != PVR_TAKE_NONE ||
	    !decide_themselves(adapter->engine))
		return;
	move->claim = PVR_CLAIM_LOST;
	snprintf(move->claim_detail, sizeof(move->claim_detail), "%s", from);
}
