// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a program sends: requests at random, whose results the oracle can tell. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* Four areas of slots, then a word for each kind of atomic. */
size_t sim_flow_at(const struct sim *sim, enum sim_area area, uint32_t slot)
{
	return ((size_t)area * SIM_SLOTS + slot) * sim->config.max_len;
}

size_t sim_flow_word(const struct sim *sim, enum sim_op kind)
{
	return sim_flow_at(sim, SIM_BACK + 1, 0) + (kind == SIM_ADD ? 0 : sizeof(uint64_t));
}

bool sim_flow_is_idle(const struct sim_flow *flow)
{
	if (flow->pair->is_broken)
		return true;
	if (flow->pair->type == SIM_UC)
		return flow->done == flow->posted && flow->probes &&
		       (flow->may_miss || flow->taken > flow->probe);
	return flow->done == flow->posted && flow->taken == flow->takers;
}

void sim_flow_probe(struct sim *sim, struct sim_flow *flow, struct sim_rng *rng)
{
	if (flow->pair->type != SIM_UC)
		return;
	if (!flow->probes) {
		flow->probes = true;
		flow->probe = flow->takers;
		/* UC gets no responses: without a directory it does not learn where its peer has gone. */
		flow->may_miss = sim->directory.is;
	}
	if (!flow->may_miss && flow->done == flow->posted && flow->taken <= flow->probe &&
	    sim_vm_runs(flow->from->vm))
		sim_flow_post(sim, flow, rng);
}

/* ------------------------------------------------------------------------ requests */

static bool takes_recv(enum sim_op kind)
{
	return kind == SIM_SEND || kind == SIM_SEND_IMM || kind == SIM_WRITE_IMM;
}

static bool writes(enum sim_op kind)
{
	return kind == SIM_WRITE || kind == SIM_WRITE_IMM || kind == SIM_STORE;
}

static uint32_t draw_len(const struct sim *sim, struct sim_rng *rng)
{
	uint32_t max = sim->config.max_len;

	if (sim_one_in(rng, 16))
		return 0;
	return sim_one_in(rng, sim->config.nics ? 2 : 8) ? max : (uint32_t)sim_scale(rng, 1, max);
}

uint32_t sim_cut(const struct fg_mr *mr, size_t offset, uint32_t len, struct sim_rng *rng,
		 struct pvrdma_sge *sge)
{
	uint32_t num = 0, part;

	while (num < SIM_MAX_SGE - 1 && len && sim_one_in(rng, 3)) {
		part = 1 + sim_below(rng, len);
		sge[num++] = fg_sge(mr, offset, part);
		offset += part;
		len -= part;
	}
	if (len || !num)
		sge[num++] = fg_sge(mr, offset, len);
	return num;
}

static const enum pvrdma_wr_opcode opcodes[SIM_OPS] = {
	[SIM_SEND] = PVRDMA_WR_SEND,
	[SIM_SEND_IMM] = PVRDMA_WR_SEND_WITH_IMM,
	[SIM_WRITE] = PVRDMA_WR_RDMA_WRITE,
	[SIM_WRITE_IMM] = PVRDMA_WR_RDMA_WRITE_WITH_IMM,
	[SIM_READ] = PVRDMA_WR_RDMA_READ,
	[SIM_ADD] = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	[SIM_SWAP] = PVRDMA_WR_ATOMIC_CMP_AND_SWP,
	[SIM_STORE] = (enum pvrdma_wr_opcode)PVR_WR_ATOMIC_WRITE,
	[SIM_FLUSH] = (enum pvrdma_wr_opcode)PVR_WR_FLUSH,
};

static const char *const kind_names[SIM_OPS] = {
	[SIM_SEND] = "SEND", [SIM_SEND_IMM] = "SEND_IMM",   [SIM_WRITE] = "WRITE",
	[SIM_READ] = "READ", [SIM_WRITE_IMM] = "WRITE_IMM", [SIM_ADD] = "ADD",
	[SIM_SWAP] = "SWAP", [SIM_STORE] = "ATOMIC_WRITE",  [SIM_FLUSH] = "FLUSH",
};

/* A READ of what an earlier WRITE has left, where no WRITE is under way. */
static bool choose_read(struct sim_flow *flow, struct sim_req *req, struct sim_rng *rng)
{
	struct sim_slot *slot;

	req->slot = sim_below(rng, SIM_SLOTS);
	slot = &flow->slot[req->slot];
	if (!slot->written || slot->writing)
		return false;
	req->len = slot->len;
	req->seed = slot->seed;
	slot->reading++;
	return true;
}

static void fill_target(struct sim *sim, const struct sim_flow *flow, const struct sim_req *req,
			struct fg_wr *wr)
{
	const struct fg_mr *mr = &flow->to->fg.mr;
	size_t offset = sim_flow_at(sim, SIM_TARGET, req->slot);

	if (req->kind == SIM_ADD || req->kind == SIM_SWAP)
		offset = sim_flow_word(sim, req->kind);
	wr->remote_addr = mr->start + offset;
	wr->rkey = sim_rkey(flow->to);
	if (flow->pair->type == SIM_XRC)
		wr->srqn = flow->to->srq->fg.handle;
}

static void choose_atomic(struct sim_flow *flow, struct sim_req *req, struct fg_wr *wr)
{
	req->len = sizeof(uint64_t);
	if (req->kind == SIM_ADD) {
		req->value = flow->adds++;
		wr->compare_add = 1;
		return;
	}
	req->value = flow->swapped;
	wr->compare_add = flow->swapped;
	wr->swap = flow->swapped = flow->posted + 1;
}

static enum sim_op draw_op(const struct sim *sim, const struct sim_flow *flow, struct sim_rng *rng)
{
	uint32_t weight[SIM_OPS];

	if (flow->only_writes)
		return SIM_WRITE;
	if (flow->probes)
		return SIM_SEND;
	memcpy(weight, sim->config.op_weight, sizeof(weight));
	if (flow->pair->type == SIM_UC)
		weight[SIM_READ] = weight[SIM_ADD] = weight[SIM_SWAP] = 0;
	if (!sim_may_flush(sim, flow->pair))
		weight[SIM_STORE] = weight[SIM_FLUSH] = 0;
	return sim_draw_index(rng, weight, SIM_OPS);
}

/* Return: false if this request has to wait. */
static bool choose(struct sim *sim, struct sim_flow *flow, struct sim_req *req, struct fg_wr *wr,
		   struct sim_rng *rng)
{
	uint32_t own = (uint32_t)(flow->posted % SIM_SLOTS);

	req->kind = draw_op(sim, flow, rng);
	req->slot = own;
	req->seed = (uint32_t)(flow->posted * 64 + flow->number);
	switch (req->kind) {
	case SIM_READ:
		return choose_read(flow, req, rng);
	case SIM_ADD:
	case SIM_SWAP:
		choose_atomic(flow, req, wr);
		return true;
	case SIM_STORE:
		req->len = sizeof(uint64_t);
		break;
	case SIM_FLUSH:
		return true;
	default:
		req->len = draw_len(sim, rng);
	}
	if (writes(req->kind)) {
		/* A WRITE may pass a READ. */
		if (flow->slot[own].reading)
			wr->flags |= PVR_SEND_FENCE;
		flow->slot[own].writing = true;
		flow->slot[own].writer = flow->posted;
	}
	return true;
}

static void note_taker(struct sim_flow *flow, const struct sim_req *req, uint32_t imm)
{
	if (!takes_recv(req->kind))
		return;
	if (flow->takers == flow->taker_room) {
		flow->taker_room = flow->taker_room ? 2 * flow->taker_room : 64;
		flow->taker = reallocarray(flow->taker, flow->taker_room, sizeof(*flow->taker));
		if (!flow->taker)
			fg_die("out of memory");
	}
	flow->taker[flow->takers++] = (struct sim_taker){
		.kind = req->kind,
		.len = req->len,
		.seed = req->seed,
		.imm = imm,
		.number = flow->posted,
	};
}

/* Requests of annex A19: the WQE has another body. Return: false: there is no room. */
static bool post_a19(struct sim *sim, const struct sim_flow *flow, const struct sim_req *req,
		     const struct fg_wr *wr)
{
	struct fg_qp *qp = &flow->from->fg.qp;
	struct pvr_wqe_atomic_write store = { .addr = wr->remote_addr, .rkey = wr->rkey };
	const struct pvr_wqe_flush flush = {
		.addr = wr->remote_addr,
		.length = sim->config.max_len,
		.rkey = wr->rkey,
		.placement = PVR_FLUSH_GLOBAL,
		.level = PVR_FLUSH_RANGE,
	};
	struct pvrdma_sq_wqe_hdr *wqe = fg_sq_wqe(qp, qp->sq_tail);

	if (!fg_put_send(qp, wr))
		return false;
	fg_fill(&store.value, sizeof(store.value), req->seed);
	if (req->kind == SIM_STORE)
		memcpy(&wqe->wr, &store, sizeof(store));
	else
		memcpy(&wqe->wr, &flush, sizeof(flush));
	fg_ring_send(qp);
	return true;
}

static bool is_a19(const struct sim_req *req)
{
	return req->kind == SIM_STORE || req->kind == SIM_FLUSH;
}

bool sim_flow_post(struct sim *sim, struct sim_flow *flow, struct sim_rng *rng)
{
	struct fg_end *from = &flow->from->fg;
	struct sim_req *req = &flow->req[flow->posted % SIM_SLOTS];
	struct pvrdma_sge sge[SIM_MAX_SGE];
	struct fg_wr wr = { .wr_id = flow->posted, .sge = sge };
	bool reads;
	size_t at;

	if (flow->pair->is_broken || flow->posted - flow->done == SIM_SLOTS ||
	    sim_end_is_late(flow->pair, flow->from))
		return false;
	*req = (struct sim_req){ 0 };
	if (!choose(sim, flow, req, &wr, rng))
		return false;
	reads = req->kind == SIM_READ || req->kind == SIM_ADD || req->kind == SIM_SWAP;
	at = sim_flow_at(sim, reads ? SIM_BACK : SIM_OUT, (uint32_t)(flow->posted % SIM_SLOTS));
	/* A word must not be cut. */
	if (reads && req->kind != SIM_READ) {
		sge[0] = fg_sge(&from->mr, at, req->len);
		wr.num_sge = 1;
	} else if (!is_a19(req)) {
		wr.num_sge = sim_cut(&from->mr, at, req->len, rng, sge);
	}
	if (!reads)
		fg_fill(from->buf.va + at, req->len, req->seed);
	fill_target(sim, flow, req, &wr);
	wr.opcode = opcodes[req->kind];
	wr.imm = (uint32_t)sim_draw(rng);
	req->signaled = !sim->config.unsignaled || flow->posted % 4 == 3 || sim_one_in(rng, 2);
	flow->ends_unsignaled = !req->signaled;
	wr.flags |= req->signaled ? PVR_SEND_SIGNALED : 0;
	wr.flags |= sim_one_in(rng, 8) ? PVR_SEND_FENCE : 0;
	wr.flags |= sim_one_in(rng, 4) ? PVR_SEND_SOLICITED : 0;
	note_taker(flow, req, wr.imm);
	sim_trace(&sim->trace, "flow%u %s %lu: %u bytes%s%s", flow->number, kind_names[req->kind],
		  (unsigned long)flow->posted, req->len, req->signaled ? "" : ", unsignaled",
		  wr.flags & PVR_SEND_FENCE ? ", fence" : "");
	flow->posted++;
	if (!(is_a19(req) ? post_a19(sim, flow, req, &wr) : fg_post_send(&from->qp, &wr)))
		sim_fail(sim, "space", "flow%u: the send queue is full", flow->number);
	return true;
}

bool sim_flow_post_recv(struct sim *sim, struct sim_flow *flow, struct sim_rng *rng)
{
	struct fg_end *to = &flow->to->fg;
	uint32_t slot = (uint32_t)(flow->recvs % SIM_SLOTS);
	struct pvrdma_sge sge[SIM_MAX_SGE];
	uint32_t num;

	if (flow->to->srq)
		return sim_srq_post(sim, flow->to->srq, rng);
	if (flow->pair->is_broken || flow->recvs - flow->received == SIM_SLOTS ||
	    sim_end_is_late(flow->pair, flow->to))
		return false;
	sim_oracle_mark(sim, to->buf.va + sim_flow_at(sim, SIM_IN, slot));
	num = sim_cut(&to->mr, sim_flow_at(sim, SIM_IN, slot), sim->config.max_len, rng, sge);
	if (!fg_post_recv(&to->qp, flow->recvs, sge, num))
		sim_fail(sim, "space", "flow%u: the receive queue is full", flow->number);
	flow->recvs++;
	return true;
}
