// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The program of the guests: RC requests at random, whose results the oracle can tell. */
#include <string.h>

#include "sim.h"

#define MAX_SGE 3u

/* Four areas of slots, then a word for each kind of atomic. */
size_t sim_rc_at(const struct sim *sim, enum sim_area area, uint32_t slot)
{
	return ((size_t)area * SIM_RC_SLOTS + slot) * sim->config.max_len;
}

size_t sim_rc_word(const struct sim *sim, enum sim_rc_kind kind)
{
	return sim_rc_at(sim, SIM_BACK + 1, 0) + (kind == SIM_ADD ? 0 : sizeof(uint64_t));
}

static void open_rc(struct sim *sim, struct sim_pair *pair, unsigned int which)
{
	struct sim_rc *rc = &pair->rc[which];

	rc->from = &pair->end[which];
	rc->to = &pair->end[!which];
	rc->pair = pair;
	rc->number = (uint32_t)(2 * (pair - sim->pair)) + which;
}

void sim_rc_open(struct sim *sim, struct sim_pair *pair, struct sim_vm *a, struct sim_vm *b)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	uint32_t pages = (uint32_t)((sim_rc_word(sim, SIM_SWAP) + sizeof(uint64_t)) / 4096 + 1);

	pair->conn = fg_conn_default;
	pair->conn.mtu = sim->config.mtu;
	pair->conn.timeout = sim->config.timeout;
	pair->end[0].vm = a;
	pair->end[1].vm = b;
	for (unsigned int i = 0; i < 2; i++) {
		fg_end_open_spec(&pair->end[i].fg, &pair->end[i].vm->guest->kernel, &spec, pages);
		open_rc(sim, pair, i);
	}
	fg_end_connect(&pair->end[0].fg, &pair->end[1].fg, &pair->conn);
}

bool sim_rc_is_idle(const struct sim_rc *rc)
{
	return rc->pair->is_broken || (rc->done == rc->posted && rc->taken == rc->takers);
}

/* ------------------------------------------------------------------------ requests */

static bool takes_recv(enum sim_rc_kind kind)
{
	return kind == SIM_SEND || kind == SIM_SEND_IMM || kind == SIM_WRITE_IMM;
}

static bool writes(enum sim_rc_kind kind)
{
	return kind == SIM_WRITE || kind == SIM_WRITE_IMM;
}

static uint32_t draw_len(const struct sim *sim, struct sim_rng *rng)
{
	uint32_t max = sim->config.max_len;

	return sim_one_in(rng, 16)  ? 0
	       : sim_one_in(rng, 8) ? max
				    : (uint32_t)sim_scale(rng, 1, max);
}

/* Cuts [offset, offset + len) of the buffer into pieces. Return: their number. */
static uint32_t cut_into_sges(const struct fg_mr *mr, size_t offset, uint32_t len,
			      struct sim_rng *rng, struct pvrdma_sge *sge)
{
	uint32_t num = 0, part;

	while (num < MAX_SGE - 1 && len && sim_one_in(rng, 3)) {
		part = 1 + sim_below(rng, len);
		sge[num++] = fg_sge(mr, offset, part);
		offset += part;
		len -= part;
	}
	if (len || !num)
		sge[num++] = fg_sge(mr, offset, len);
	return num;
}

static const enum pvrdma_wr_opcode opcodes[SIM_RC_KINDS] = {
	[SIM_SEND] = PVRDMA_WR_SEND,
	[SIM_SEND_IMM] = PVRDMA_WR_SEND_WITH_IMM,
	[SIM_WRITE] = PVRDMA_WR_RDMA_WRITE,
	[SIM_WRITE_IMM] = PVRDMA_WR_RDMA_WRITE_WITH_IMM,
	[SIM_READ] = PVRDMA_WR_RDMA_READ,
	[SIM_ADD] = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	[SIM_SWAP] = PVRDMA_WR_ATOMIC_CMP_AND_SWP,
};

static const char *const kind_names[SIM_RC_KINDS] = {
	[SIM_SEND] = "SEND", [SIM_SEND_IMM] = "SEND_IMM",   [SIM_WRITE] = "WRITE",
	[SIM_READ] = "READ", [SIM_WRITE_IMM] = "WRITE_IMM", [SIM_ADD] = "ADD",
	[SIM_SWAP] = "SWAP",
};

/* A READ of what an earlier WRITE has left, where no WRITE is under way. */
static bool choose_read(struct sim_rc *rc, struct sim_req *req, struct sim_rng *rng)
{
	struct sim_slot *slot;

	req->slot = sim_below(rng, SIM_RC_SLOTS);
	slot = &rc->slot[req->slot];
	if (!slot->written || slot->writing)
		return false;
	req->len = slot->len;
	req->seed = slot->seed;
	slot->reading++;
	return true;
}

static void fill_target(struct sim *sim, const struct sim_rc *rc, const struct sim_req *req,
			struct fg_wr *wr)
{
	const struct fg_mr *mr = &rc->to->fg.mr;
	size_t offset = sim_rc_at(sim, SIM_TARGET, req->slot);

	if (req->kind == SIM_ADD || req->kind == SIM_SWAP)
		offset = sim_rc_word(sim, req->kind);
	wr->remote_addr = mr->start + offset;
	wr->rkey = mr->rkey;
}

static void choose_atomic(struct sim_rc *rc, struct sim_req *req, struct fg_wr *wr)
{
	req->len = sizeof(uint64_t);
	if (req->kind == SIM_ADD) {
		req->value = rc->adds++;
		wr->compare_add = 1;
		return;
	}
	req->value = rc->swapped;
	wr->compare_add = rc->swapped;
	wr->swap = rc->swapped = rc->posted + 1;
}

/* Return: false if this request has to wait. */
static bool choose(struct sim *sim, struct sim_rc *rc, struct sim_req *req, struct fg_wr *wr,
		   struct sim_rng *rng)
{
	uint32_t own = (uint32_t)(rc->posted % SIM_RC_SLOTS);

	req->kind = sim_draw_index(rng, sim->config.rc_weight, SIM_RC_KINDS);
	req->slot = own;
	req->seed = (uint32_t)(rc->posted * 64 + rc->number);
	switch (req->kind) {
	case SIM_READ:
		return choose_read(rc, req, rng);
	case SIM_ADD:
	case SIM_SWAP:
		choose_atomic(rc, req, wr);
		return true;
	default:
		req->len = draw_len(sim, rng);
	}
	if (writes(req->kind)) {
		/* A WRITE may pass a READ. */
		if (rc->slot[own].reading)
			wr->flags |= PVR_SEND_FENCE;
		rc->slot[own].writing = true;
	}
	return true;
}

static void note_taker(struct sim_rc *rc, const struct sim_req *req, uint32_t imm)
{
	if (!takes_recv(req->kind))
		return;
	rc->taker[rc->takers++ % SIM_RC_TAKERS] = (struct sim_taker){
		.kind = req->kind,
		.len = req->len,
		.seed = req->seed,
		.imm = imm,
	};
}

bool sim_rc_post(struct sim *sim, struct sim_rc *rc, struct sim_rng *rng)
{
	struct fg_end *from = &rc->from->fg;
	struct sim_req *req = &rc->req[rc->posted % SIM_RC_SLOTS];
	struct pvrdma_sge sge[MAX_SGE];
	struct fg_wr wr = { .wr_id = rc->posted, .sge = sge };
	bool reads;
	size_t at;

	if (rc->pair->is_broken || rc->posted - rc->done == SIM_RC_SLOTS ||
	    rc->takers - rc->taken > SIM_RC_TAKERS - SIM_RC_SLOTS)
		return false;
	*req = (struct sim_req){ 0 };
	if (!choose(sim, rc, req, &wr, rng))
		return false;
	reads = req->kind == SIM_READ || req->kind == SIM_ADD || req->kind == SIM_SWAP;
	at = sim_rc_at(sim, reads ? SIM_BACK : SIM_OUT, (uint32_t)(rc->posted % SIM_RC_SLOTS));
	/* A word must not be cut. */
	if (reads && req->kind != SIM_READ) {
		sge[0] = fg_sge(&from->mr, at, req->len);
		wr.num_sge = 1;
	} else {
		wr.num_sge = cut_into_sges(&from->mr, at, req->len, rng, sge);
	}
	if (!reads)
		fg_fill(from->buf.va + at, req->len, req->seed);
	fill_target(sim, rc, req, &wr);
	wr.opcode = opcodes[req->kind];
	wr.imm = (uint32_t)sim_draw(rng);
	req->signaled = !sim->config.unsignaled || rc->posted % 4 == 3 || sim_one_in(rng, 2);
	rc->ends_unsignaled = !req->signaled;
	wr.flags |= req->signaled ? PVR_SEND_SIGNALED : 0;
	wr.flags |= sim_one_in(rng, 8) ? PVR_SEND_FENCE : 0;
	wr.flags |= sim_one_in(rng, 4) ? PVR_SEND_SOLICITED : 0;
	note_taker(rc, req, wr.imm);
	sim_trace(&sim->trace, "rc%u %s %lu: %u bytes%s%s", rc->number, kind_names[req->kind],
		  (unsigned long)rc->posted, req->len, req->signaled ? "" : ", unsignaled",
		  wr.flags & PVR_SEND_FENCE ? ", fence" : "");
	rc->posted++;
	if (!fg_post_send(&from->qp, &wr))
		sim_fail(sim, "space", "rc%u: the send queue is full", rc->number);
	return true;
}

bool sim_rc_post_recv(struct sim *sim, struct sim_rc *rc, struct sim_rng *rng)
{
	struct fg_end *to = &rc->to->fg;
	uint32_t slot = (uint32_t)(rc->recvs % SIM_RC_SLOTS);
	struct pvrdma_sge sge[MAX_SGE];
	uint32_t num;

	if (rc->pair->is_broken || rc->recvs - rc->taken == SIM_RC_SLOTS)
		return false;
	num = cut_into_sges(&to->mr, sim_rc_at(sim, SIM_IN, slot), sim->config.max_len, rng, sge);
	if (!fg_post_recv(&to->qp, rc->recvs, sge, num))
		sim_fail(sim, "space", "rc%u: the receive queue is full", rc->number);
	rc->recvs++;
	return true;
}
