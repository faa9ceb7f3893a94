// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: the faults of the request at the head of a send queue. */
#include <string.h>

#include "core/gid.h"
#include "core/objects.h"
#include "path/fault/internal.h"
#include "rdma/port_state.h"
#include "rdma/requester.h"

/* UC and UD have no responses. */
static bool has_status(const struct pvr_qp *qp, uint16_t status)
{
	return qp->type == PVR_QPT_RC || status == PVRDMA_WC_LOC_LEN_ERR ||
	       status == PVRDMA_WC_LOC_QP_OP_ERR || status == PVRDMA_WC_LOC_PROT_ERR ||
	       status == PVRDMA_WC_GENERAL_ERR;
}

static void decide_end(struct pvr_qp *qp, struct pvr_fault_sq *sq, uint8_t i)
{
	struct pvr_fault_use *use = &sq->uses[i];
	const struct pvr_fault_rule *rule = &use->fault->rule;

	if (!pvr_fault_is_due(&use->state, rule) || sq->status || sq->overflows)
		return;
	if (rule->kinds & 1u << PVR_FAULT_STALL) {
		sq->by.stalled = i + 1;
	} else if (rule->kinds & 1u << PVR_FAULT_PORT_DOWN) {
		sq->by.port = i + 1;
	} else if (rule->kinds & 1u << PVR_FAULT_CQ_OVERFLOW) {
		sq->overflows = true;
		pvr_fault_count(&use->fault->injected[PVR_FAULT_CQ_OVERFLOW]);
	} else if (rule->kinds & 1u << PVR_FAULT_RECV_ERROR) {
		sq->by.recv = i + 1;
	} else if (has_status(qp, rule->status)) {
		sq->status = rule->status;
		sq->by.error = i + 1;
		pvr_fault_count(&use->fault->injected[PVR_FAULT_ERROR]);
	}
}

/* Return: the delay of the request in ns, unless it is released with another one. */
static uint64_t decide_delay(const struct pvr_fault_sq *sq, struct pvr_fault_use *use)
{
	const struct pvr_fault_rule *rule = &use->fault->rule;

	if (!rule->delay_ns)
		return 0;
	pvr_fault_count(&use->fault->injected[PVR_FAULT_DELAY]);
	return sq->released ? 0 : pvr_fault_delay(&use->state, rule);
}

/* Return: the time before which the rate of a rule holds the request, or 0. */
static uint64_t decide_rate(struct pvr_fault_use *use, uint64_t now, uint64_t length)
{
	uint64_t due = pvr_fault_rate(&use->state, &use->fault->rule, now, length);

	if (due)
		pvr_fault_count(&use->fault->injected[PVR_FAULT_RATE]);
	return due;
}

/* UC drops a message without a receive request, as drop= does. */
static bool decide_rnr(const struct pvr_qp *qp, struct pvr_fault_use *use,
		       const struct pvr_opcode *op)
{
	return op->recv && qp->type == PVR_QPT_RC && pvr_fault_rnr(&use->state, &use->fault->rule);
}

/* UC has no responses. */
static bool decide_nak(const struct pvr_qp *qp, struct pvr_fault_use *use)
{
	return qp->type == PVR_QPT_RC && pvr_fault_seq_nak(&use->state, &use->fault->rule);
}

uint64_t pvr_fault_length(const struct pvr_qp *qp)
{
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	uint64_t length = 0;
	uint32_t i;

	pvr_wq_fetch_send(&qp->sq, &wqe);
	if (pvr_wqe_is_inline(&qp->sq, &wqe))
		return wqe.hdr.total_len;
	for (i = 0; i < wqe.hdr.num_sge && i < qp->sq.max_sge; i++)
		length += wqe.sge[i].length;
	return length;
}

/* Return: the name of the destination of the datagram, or "". */
static const char *destination_of(const struct pvr_qp *qp)
{
	const struct pvr_path_ops **path = qp->adapter->engine->paths;
	struct pvr_send_wqe wqe PVR_UNINITIALIZED;
	const char *name = NULL;

	pvr_wq_fetch_send_hdr(&qp->sq, &wqe);
	if (pvr_gid_is_multicast(wqe.hdr.wr.ud.av.dgid))
		return "";
	for (; *path && !name; path++)
		if ((*path)->gid_name)
			name = (*path)->gid_name(qp->adapter, wqe.hdr.wr.ud.av.dgid);
	return name ? name : "";
}

/* Return: bit i: the rule of uses[i] matches the request at the head. */
static uint64_t find_rules(const struct pvr_qp *qp, const struct pvr_fault_sq *sq)
{
	bool connected = pvr_qp_is_connected(qp);
	const char *to = NULL, *rule_to;
	uint64_t bits = 0;
	uint8_t i;

	for (i = 0; i < sq->num; i++) {
		rule_to = sq->uses[i].fault->rule.match.to;
		if (!connected && *rule_to && !to)
			to = destination_of(qp);
		if (connected || !*rule_to || !strcmp(rule_to, to))
			bits |= 1ull << i;
	}
	return bits;
}

/* Operations with payload, other than atomics. */
static void decide_damage(struct pvr_fault_sq *sq, uint8_t i, const struct pvr_opcode *op,
			  uint64_t length)
{
	struct pvr_fault_use *use = &sq->uses[i];

	if (sq->flips.num || op->kind > PVR_OP_READ)
		return;
	sq->flips.num = pvr_fault_corrupt(&use->state, &use->fault->rule, 8 * length,
					  sq->flips.bits, PVR_FLIPS_MAX);
	if (sq->flips.num)
		pvr_fault_count(&use->fault->injected[PVR_FAULT_CORRUPT]);
}

static void decide_datagram(struct pvr_fault_sq *sq, uint8_t i)
{
	const struct pvr_fault_rule *rule = &sq->uses[i].fault->rule;

	if (pvr_fault_happens(&sq->uses[i].state, rule->reorder_ppm) && !sq->by.overtaken)
		sq->by.overtaken = i + 1;
	if (pvr_fault_happens(&sq->uses[i].state, rule->duplicate_ppm) && !sq->by.copied)
		sq->by.copied = i + 1;
}

void pvr_fault_set_port_down(struct pvr_qp *qp, struct pvr_fault_sq *sq)
{
	struct pvr_fault *fault;

	if (!sq->by.port)
		return;
	fault = sq->uses[sq->by.port - 1].fault;
	sq->by.port = 0;
	pvr_fault_count(&fault->injected[PVR_FAULT_PORT_DOWN]);
	pvr_port_down_for(qp->adapter, fault->rule.port_down_ns);
}

void pvr_fault_begin(struct pvr_qp *qp, struct pvr_fault_sq *sq, const struct pvr_opcode *op,
		     uint32_t posted)
{
	uint64_t now = pvr_now(qp->adapter->engine), length = pvr_fault_length(qp);
	uint64_t delay = 0, due;
	uint8_t i;

	sq->is_known = true;
	sq->may_pass = false;
	sq->head = qp->sq.head;
	sq->status = PVRDMA_WC_SUCCESS;
	sq->overflows = false;
	sq->by = (struct pvr_fault_by){ 0 };
	sq->has_waited = false;
	sq->due = 0;
	sq->flips.far_status = 0;
	sq->flips.asked = PVR_FLIPS_NOT_ASKED;
	sq->flips.num = 0;
	sq->asked_is_counted = false;
	sq->applies = find_rules(qp, sq);
	for (i = 0; i < sq->num; i++) {
		struct pvr_fault_use *use = &sq->uses[i];

		if (!(sq->applies >> i & 1) || use->is_peer)
			continue;
		pvr_fault_count(&use->fault->messages);
		decide_end(qp, sq, i);
		delay += decide_delay(sq, use);
		due = decide_rate(use, now, length);
		if (due > sq->due)
			sq->due = due;
		if (decide_rnr(qp, use, op) && !sq->by.rnr)
			sq->by.rnr = i + 1;
		if (decide_nak(qp, use) && !sq->by.nak)
			sq->by.nak = i + 1;
		decide_damage(sq, i, op, length);
		if (!pvr_qp_is_connected(qp))
			decide_datagram(sq, i);
	}
	qp->flips = sq->flips.num ? &sq->flips : NULL;
	if (sq->released)
		sq->released--;
	else if (delay)
		sq->released = posted - 1;
	if (delay && now + delay > sq->due)
		sq->due = now + delay;
}

bool pvr_fault_is_lost(struct pvr_fault_sq *sq)
{
	bool lost = sq->by.stalled;
	uint8_t i;

	if (lost)
		pvr_fault_count(&sq->uses[sq->by.stalled - 1].fault->injected[PVR_FAULT_STALL]);
	for (i = 0; i < sq->num && !lost; i++) {
		lost = sq->applies >> i & 1 && !sq->uses[i].is_peer &&
		       pvr_fault_drops(&sq->uses[i].state, &sq->uses[i].fault->rule);
		if (lost)
			pvr_fault_count(&sq->uses[i].fault->injected[PVR_FAULT_DROP]);
	}
	return lost;
}
