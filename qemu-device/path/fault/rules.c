// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The rules of an engine: adding, removing, listing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/adapter.h"
#include "gid/fabric.h"
#include "path/fault/internal.h"

/* All queue pairs find their paths again. */
static void changed(struct pvr_engine *engine)
{
	struct pvr_adapter *adapter;

	engine->faults->gen++;
	engine->num_faults = engine->faults->num;
	LIST_FOREACH(adapter, &engine->adapters, link)
		pvr_fabric_changed(engine, adapter->fabric->name);
}

/* Return: 0, or the id of a rule for the same messages with a kind of @rule. */
static uint32_t find_same(const struct pvr_faults *faults, const struct pvr_fault_rule *rule)
{
	const struct pvr_fault_rule *other;
	uint32_t i;

	for (i = 0; i < faults->num; i++) {
		other = &faults->list[i]->rule;
		if (other->kinds & rule->kinds &&
		    pvr_fault_match_equal(&other->match, &rule->match))
			return faults->list[i]->id;
	}
	return 0;
}

int pvr_engine_add_fault(struct pvr_engine *engine, const struct pvr_fault_rule *rule, uint32_t *id)
{
	struct pvr_faults *faults = engine->faults;
	struct pvr_fault *fault;

	if (!faults)
		faults = engine->faults = calloc(1, sizeof(*faults));
	if (!faults)
		return -ENOMEM;
	*id = find_same(faults, rule);
	if (*id)
		return -EEXIST;
	if (faults->num == PVR_FAULTS_MAX)
		return -ENOSPC;
	fault = calloc(1, sizeof(*fault));
	if (!fault)
		return -ENOMEM;
	fault->rule = *rule;
	fault->id = *id = ++faults->last_id;
	faults->list[faults->num++] = fault;
	changed(engine);
	return 0;
}

unsigned int pvr_engine_clear_faults(struct pvr_engine *engine, uint32_t id)
{
	struct pvr_faults *faults = engine->faults;
	uint32_t i, kept = 0, before;

	if (!faults)
		return 0;
	before = faults->num;
	for (i = 0; i < before; i++) {
		if (id && faults->list[i]->id != id)
			faults->list[kept++] = faults->list[i];
		else
			free(faults->list[i]);
	}
	faults->num = kept;
	if (kept != before)
		changed(engine);
	return before - kept;
}

void pvr_engine_for_each_fault(const struct pvr_engine *engine,
			       void (*fn)(void *opaque, const struct pvr_fault_info *info),
			       void *opaque)
{
	const struct pvr_faults *faults = engine->faults;
	const struct pvr_fault *fault;
	uint32_t i;

	for (i = 0; faults && i < faults->num; i++) {
		fault = faults->list[i];
		fn(opaque,
		   &(struct pvr_fault_info){
			   .id = fault->id,
			   .text = fault->rule.text,
			   .messages = pvr_stat_get(&fault->messages),
			   .dropped = pvr_stat_get(&fault->injected[PVR_FAULT_DROP]),
			   .delayed = pvr_stat_get(&fault->injected[PVR_FAULT_DELAY]) +
				      pvr_stat_get(&fault->injected[PVR_FAULT_RATE]),
			   .failed = pvr_stat_get(&fault->injected[PVR_FAULT_ERROR]) +
				     pvr_stat_get(&fault->injected[PVR_FAULT_RECV_ERROR]) +
				     pvr_stat_get(&fault->injected[PVR_FAULT_CQ_OVERFLOW]),
			   .rnr = pvr_stat_get(&fault->injected[PVR_FAULT_RNR]),
			   .seq_naks = pvr_stat_get(&fault->injected[PVR_FAULT_NAK]),
			   .reordered = pvr_stat_get(&fault->injected[PVR_FAULT_REORDER]),
			   .duplicated = pvr_stat_get(&fault->injected[PVR_FAULT_DUPLICATE]),
			   .corrupted = pvr_stat_get(&fault->injected[PVR_FAULT_CORRUPT]),
			   .port_downs = pvr_stat_get(&fault->injected[PVR_FAULT_PORT_DOWN]),
			   .stalled = pvr_stat_get(&fault->injected[PVR_FAULT_STALL]),
			   .refused = pvr_stat_get(&fault->refused),
		   });
	}
}

void pvr_faults_free(struct pvr_faults *faults)
{
	uint32_t i;

	for (i = 0; faults && i < faults->num; i++)
		free(faults->list[i]);
	free(faults);
}
