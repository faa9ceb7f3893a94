// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: the rules that match a queue pair, and its state. */
#include <stdio.h>
#include <string.h>

#include "core/charge.h"
#include "core/objects.h"
#include "gid/fabric.h"
#include "path/fault/internal.h"

static struct pvr_fault_match message_of(const struct pvr_qp *qp)
{
	const struct pvr_adapter *adapter = qp->adapter;
	struct pvr_fault_match message = { .qpn = qp->qpn };

	snprintf(message.fabric, sizeof(message.fabric), "%s", adapter->fabric->name);
	snprintf(message.from, sizeof(message.from), "%s", adapter->name);
	snprintf(message.to, sizeof(message.to), "%s",
		 adapter->engine->paths[qp->path_target]->peer_name(qp));
	return message;
}

/*
 * A datagram's destination is its own: pvr_fault_begin() compares it. The GSI connects queue
 * pairs, so only rules with its number have an effect on it.
 */
static bool matches(const struct pvr_fault_rule *rule, const struct pvr_qp *qp,
		    const struct pvr_fault_match *message)
{
	struct pvr_fault_match match;

	if (pvr_qp_is_connected(qp))
		return pvr_fault_matches(&rule->match, message);
	if (qp->type == PVR_QPT_GSI && !rule->match.qpn)
		return false;
	match = rule->match;
	match.to[0] = '\0';
	return pvr_fault_matches(&match, message);
}

/* Return: whether the rule stalls @qp, because it matches the requests of its peer. */
static bool stalls(const struct pvr_fault_rule *rule, const struct pvr_qp *qp,
		   const struct pvr_fault_match *message)
{
	struct pvr_fault_match reverse = { .qpn = qp->attr.dest_qp_num };

	if (!(rule->kinds & 1u << PVR_FAULT_STALL) || !pvr_qp_is_connected(qp))
		return false;
	memcpy(reverse.fabric, message->fabric, sizeof(reverse.fabric));
	memcpy(reverse.from, message->to, sizeof(reverse.from));
	memcpy(reverse.to, message->from, sizeof(reverse.to));
	return pvr_fault_matches(&rule->match, &reverse);
}

/* Return: the number of uses[] that the rules need. */
static unsigned int count_uses(const struct pvr_faults *faults, const struct pvr_qp *qp,
			       const struct pvr_fault_match *message)
{
	unsigned int num = 0;
	uint32_t i;

	for (i = 0; i < faults->num; i++)
		num += matches(&faults->list[i]->rule, qp, message) +
		       stalls(&faults->list[i]->rule, qp, message);
	return num;
}

bool pvr_fault_matches_qp(const struct pvr_qp *qp)
{
	const struct pvr_engine *engine = qp->adapter->engine;
	struct pvr_fault_match message;

	if (!engine->paths[qp->path_target]->peer_name)
		return false;
	message = message_of(qp);
	return count_uses(engine->faults, qp, &message);
}

static size_t sq_bytes(unsigned int slots)
{
	return sizeof(struct pvr_fault_sq) + slots * sizeof(struct pvr_fault_use);
}

/* The state of a rule that the queue pair had before the rules changed. */
static const struct pvr_fault_use *find_use(const struct pvr_fault_sq *sq, uint32_t id,
					    bool is_peer)
{
	uint8_t i;

	for (i = 0; sq && i < sq->num; i++)
		if (sq->uses[i].id == id && sq->uses[i].is_peer == is_peer)
			return &sq->uses[i];
	return NULL;
}

const struct pvr_fault_state *pvr_fault_state_of(const struct pvr_qp *qp, uint32_t id)
{
	const struct pvr_fault_use *use = find_use(qp->fault_sq, id, false);

	return use ? &use->state : NULL;
}

static void use_rule(struct pvr_fault_sq *sq, const struct pvr_fault_sq *before,
		     struct pvr_fault *fault, uint32_t qpn, bool is_peer)
{
	const struct pvr_fault_use *old = find_use(before, fault->id, is_peer);
	struct pvr_fault_use *use = &sq->uses[sq->num++];

	if (old)
		*use = *old;
	else
		pvr_fault_state_init(&use->state, &fault->rule, qpn);
	use->fault = fault;
	use->is_peer = is_peer;
	use->id = fault->id;
}

struct pvr_fault_sq *pvr_fault_sq_get(struct pvr_qp *qp)
{
	struct pvr_faults *faults = qp->adapter->engine->faults;
	struct pvr_fault_sq *before = qp->fault_sq, *sq;
	struct pvr_fault_match message;
	unsigned int num;
	uint32_t i;

	if (before && before->gen == faults->gen)
		return before;
	message = message_of(qp);
	num = count_uses(faults, qp, &message);
	sq = pvr_charge_alloc(qp->adapter, sq_bytes(num));
	if (!sq)
		return NULL;
	if (before)
		memcpy(sq, before, sizeof(*before));
	sq->slots = (uint8_t)num;
	sq->num = 0;
	sq->by = (struct pvr_fault_by){ 0 };
	sq->applies = UINT64_MAX;
	/* A datagram has its destination, which is compared again. */
	if (!pvr_qp_is_connected(qp))
		sq->is_known = false;
	sq->gen = faults->gen;
	for (i = 0; i < faults->num; i++) {
		if (matches(&faults->list[i]->rule, qp, &message))
			use_rule(sq, before, faults->list[i], qp->qpn, false);
		if (stalls(&faults->list[i]->rule, qp, &message))
			use_rule(sq, before, faults->list[i], qp->qpn, true);
	}
	if (qp->flips)
		qp->flips = &sq->flips;
	if (before)
		pvr_charge_free(qp->adapter, before, sq_bytes(before->slots));
	qp->fault_sq = sq;
	return sq;
}

/* The datagrams whose copies are held get lost. */
static void drop_held(struct pvr_qp *qp, struct pvr_fault_sq *sq)
{
	pvr_ud_free_held(qp->adapter, sq->held);
	pvr_ud_free_held(qp->adapter, sq->treatment.held);
	sq->held = NULL;
	sq->treatment.held = NULL;
	sq->releases = false;
}

void pvr_fault_sq_stop(struct pvr_qp *qp)
{
	struct pvr_fault_sq *sq = qp->fault_sq;

	if (!sq)
		return;
	sq->is_known = false;
	sq->may_pass = false;
	sq->released = 0;
	qp->flips = NULL;
	drop_held(qp, sq);
}

void pvr_fault_sq_free(struct pvr_qp *qp)
{
	if (!qp->fault_sq)
		return;
	drop_held(qp, qp->fault_sq);
	qp->flips = NULL;
	pvr_charge_free(qp->adapter, qp->fault_sq, sq_bytes(qp->fault_sq->slots));
	qp->fault_sq = NULL;
}
