// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What InfiniBand promises of two connected queue pairs: each message once, in order, whole; UC: at
 * most once. It knows requests and completions, and nothing of frames, sequence numbers or paths.
 */
#include <inttypes.h>
#include <string.h>

#include "sim.h"

static void expect_bytes(struct sim *sim, const struct sim_flow *flow, const char *what,
			 const uint8_t *at, uint32_t len, uint32_t seed)
{
	size_t bad = fg_mismatch(at, len, seed);

	if (bad < len)
		sim_fail(sim, "data", "flow%u: %s: byte %zu of %u is wrong", flow->number, what,
			 bad, len);
}

static void expect_word(struct sim *sim, const struct sim_flow *flow, const char *what,
			const uint8_t *at, uint64_t expected)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	if (value != expected)
		sim_fail(sim, "atomic", "flow%u: %s is %" PRIu64 ", expected %" PRIu64,
			 flow->number, what, value, expected);
}

/* The responder completes a receive request before it acknowledges the message. */
static void expect_received(struct sim *sim, struct sim_flow *flow)
{
	uint64_t received = flow->taken + fg_cq_pending(&flow->to->fg.rcq);

	flow->takers_done++;
	/* A sender of UC does not learn what becomes of its message. */
	if (flow->pair->type == SIM_UC)
		return;
	if (received < flow->takers_done)
		sim_fail(sim, "lost",
			 "flow%u: %" PRIu64 " messages have completed, %" PRIu64 " were received",
			 flow->number, flow->takers_done, received);
}

static void expect_written(struct sim *sim, struct sim_flow *flow, const struct sim_req *req)
{
	struct sim_slot *slot = &flow->slot[req->slot];

	/* A program that has ended its connection uses its buffer for something else. */
	if (flow->pair->type == SIM_UC || flow->pair->is_broken)
		return;
	expect_bytes(sim, flow, "a WRITE",
		     flow->to->fg.buf.va + sim_flow_at(sim, SIM_TARGET, req->slot), req->len,
		     req->seed);
	slot->writing = false;
	slot->written = true;
	slot->seed = req->seed;
	slot->len = req->len;
}

bool sim_oracle_is_written(const struct sim *sim, const struct sim_flow *flow)
{
	const struct sim_req *req = &flow->req[(flow->posted - 1) % SIM_SLOTS];
	const uint8_t *at = flow->to->fg.buf.va + sim_flow_at(sim, SIM_TARGET, req->slot);

	return fg_mismatch(at, req->len, req->seed) == req->len;
}

/* Request flow->done has completed with success. */
static void complete(struct sim *sim, struct sim_flow *flow)
{
	uint32_t own = (uint32_t)(flow->done % SIM_SLOTS);
	const struct sim_req *req = &flow->req[own];
	const uint8_t *back = flow->from->fg.buf.va + sim_flow_at(sim, SIM_BACK, own);

	switch (req->kind) {
	case SIM_WRITE_IMM:
		expect_received(sim, flow);
		/* fall through */
	case SIM_WRITE:
	case SIM_STORE:
		expect_written(sim, flow, req);
		break;
	case SIM_FLUSH:
		break;
	case SIM_READ:
		expect_bytes(sim, flow, "a READ", back, req->len, req->seed);
		flow->slot[req->slot].reading--;
		break;
	case SIM_ADD:
	case SIM_SWAP:
		expect_word(sim, flow, "the value of an atomic", back, req->value);
		break;
	default:
		expect_received(sim, flow);
	}
	flow->done++;
	sim->count.checks++;
}

static const enum pvrdma_wc_opcode done_as[SIM_OPS] = {
	[SIM_SEND] = PVRDMA_WC_SEND,	    [SIM_SEND_IMM] = PVRDMA_WC_SEND,
	[SIM_WRITE] = PVRDMA_WC_RDMA_WRITE, [SIM_WRITE_IMM] = PVRDMA_WC_RDMA_WRITE,
	[SIM_READ] = PVRDMA_WC_RDMA_READ,   [SIM_ADD] = PVRDMA_WC_FETCH_ADD,
	[SIM_SWAP] = PVRDMA_WC_COMP_SWAP,
};

/* The completion of request flow->done, with success. */
static void expect_kind(struct sim *sim, const struct sim_flow *flow, const struct pvrdma_cqe *cqe)
{
	const struct sim_req *req = &flow->req[flow->done % SIM_SLOTS];

	if (req->kind == SIM_STORE || req->kind == SIM_FLUSH)
		return;
	if (cqe->opcode != done_as[req->kind])
		sim_fail(sim, "data",
			 "flow%u: completion of %" PRIu64 " has opcode %u, expected %u",
			 flow->number, flow->done, cqe->opcode, done_as[req->kind]);
	if (req->kind == SIM_READ && cqe->byte_len != req->len)
		sim_fail(sim, "data", "flow%u: a READ of %u bytes, expected %u", flow->number,
			 cqe->byte_len, req->len);
	if (!flow->pair->is_broken && cqe->qp != flow->from->fg.qp.handle)
		sim_fail(sim, "addressed", "flow%u: a completion of another queue pair",
			 flow->number);
}

/* Whether this end's queue pair was taken to ERR by its program, so that it has no error of its own. */
static bool is_flushed_only(const struct sim_pair *pair, const struct sim_end *end)
{
	return end == &pair->end[pair->broken] && pair->breach == SIM_TO_ERR;
}

/*
 * A request has failed, as the connection has ended. Those before it were executed; all after it are
 * flushed, signaled or not (IBTA 10.3.1).
 */
static void fail(struct sim *sim, struct sim_flow *flow, const struct pvrdma_cqe *cqe)
{
	uint64_t first = flow->has_failed ? flow->next_flush : flow->done;
	bool only = flow->has_failed || is_flushed_only(flow->pair, flow->from);

	if (only && cqe->status != PVRDMA_WC_WR_FLUSH_ERR)
		sim_fail(sim, "flush",
			 "flow%u: request %" PRIu64 " ended with status %u, expected %u",
			 flow->number, (uint64_t)cqe->wr_id, cqe->status, PVRDMA_WC_WR_FLUSH_ERR);
	while (!flow->has_failed && first < cqe->wr_id && first < flow->posted &&
	       !flow->req[first % SIM_SLOTS].signaled)
		first++;
	if (cqe->wr_id != first || first >= flow->posted)
		sim_fail(sim, "flush", "flow%u: request %" PRIu64 " is flushed, expected %" PRIu64,
			 flow->number, (uint64_t)cqe->wr_id, first);
	flow->has_failed = true;
	flow->next_flush = first + 1;
}

uint64_t sim_oracle_unended(const struct sim_flow *flow)
{
	uint64_t next = flow->has_failed ? flow->next_flush : flow->done;

	while (!flow->has_failed && next < flow->posted && !flow->req[next % SIM_SLOTS].signaled)
		next++;
	return next;
}

/* New requests wait while the send queue is drained. */
static void expect_begun(struct sim *sim, const struct sim_flow *flow, uint64_t request)
{
	if (flow->from->is_drained && request >= flow->from->drained_at)
		sim_fail(sim, "order",
			 "flow%u: %" PRIu64 " completes, but was posted after SQD was entered",
			 flow->number, request);
}

void sim_oracle_sent(struct sim *sim, void *of)
{
	struct sim_flow *flow = of;
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&flow->from->fg.scq, &cqe)) {
		sim_trace(&sim->trace, "flow%u completion %" PRIu64 ": status %u", flow->number,
			  (uint64_t)cqe.wr_id, cqe.status);
		if (cqe.status && flow->pair->is_broken) {
			fail(sim, flow, &cqe);
			continue;
		}
		expect_begun(sim, flow, cqe.wr_id);
		if (cqe.status)
			sim_fail(sim, "failed", "flow%u: request %" PRIu64 " ended with status %u",
				 flow->number, (uint64_t)cqe.wr_id, cqe.status);
		if (flow->has_failed)
			sim_fail(sim, "order",
				 "flow%u: %" PRIu64 " completes after another one has failed",
				 flow->number, (uint64_t)cqe.wr_id);
		if (cqe.wr_id < flow->done || cqe.wr_id >= flow->posted)
			sim_fail(sim, "order",
				 "flow%u: completion of %" PRIu64 ", expected %" PRIu64,
				 flow->number, (uint64_t)cqe.wr_id, flow->done);
		while (flow->done < cqe.wr_id) {
			if (flow->req[flow->done % SIM_SLOTS].signaled)
				sim_fail(sim, "order", "flow%u: no completion of %" PRIu64,
					 flow->number, flow->done);
			complete(sim, flow);
		}
		if (!flow->req[flow->done % SIM_SLOTS].signaled)
			sim_fail(sim, "order",
				 "flow%u: completion of %" PRIu64 ", which is unsignaled",
				 flow->number, flow->done);
		expect_kind(sim, flow, &cqe);
		complete(sim, flow);
	}
}

/* So many bytes behind a message are looked at. */
#define MARK 0xa7
#define MARK_RUN 64u

void sim_oracle_mark(const struct sim *sim, uint8_t *at)
{
	/* Pages may be absent. */
	if (!sim->config.on_demand)
		memset(at, MARK, sim->config.max_len);
}

static void expect_mark(struct sim *sim, const struct sim_flow *flow, const uint8_t *at,
			uint32_t len)
{
	uint32_t end = len + MARK_RUN < sim->config.max_len ? len + MARK_RUN : sim->config.max_len;

	for (uint32_t i = len; i < end && !sim->config.on_demand; i++)
		if (at[i] != MARK)
			sim_fail(
				sim, "data",
				"flow%u: byte %u of the buffer of a message of %u bytes has changed",
				flow->number, i, len);
}

/* What the completion says beside its status. A queue pair of a connection that has ended may be another one by now. */
static void expect_origin(struct sim *sim, const struct sim_flow *flow,
			  const struct pvrdma_cqe *cqe)
{
	uint32_t from = flow->from->fg.qp.qpn;

	if (flow->pair->is_broken)
		return;
	if (cqe->src_qp != from)
		sim_fail(sim, "addressed", "flow%u: a message of queue pair %u, expected %u",
			 flow->number, cqe->src_qp, from);
	/* XRC names the SRQ. */
	if (flow->pair->type != SIM_XRC && cqe->qp != flow->to->fg.qp.handle)
		sim_fail(sim, "addressed", "flow%u: a receive completion of another queue pair",
			 flow->number);
}

/* Where the receive request of the completion has its buffer. */
static const uint8_t *take_recv(struct sim *sim, struct sim_flow *flow,
				const struct pvrdma_cqe *cqe)
{
	uint32_t slot = (uint32_t)(flow->received % SIM_SLOTS);

	if (flow->to->srq) {
		sim_srq_take(sim, flow->to->srq, cqe->wr_id);
		return flow->to->srq->buf.va + cqe->wr_id * sim->config.max_len;
	}
	if (cqe->wr_id != flow->received || flow->received >= flow->recvs)
		sim_fail(sim, "order",
			 "flow%u: receive completion of %" PRIu64 ", expected %" PRIu64,
			 flow->number, (uint64_t)cqe->wr_id, flow->received);
	flow->received++;
	return flow->to->fg.buf.va + sim_flow_at(sim, SIM_IN, slot);
}

static void expect_message(struct sim *sim, struct sim_flow *flow, const struct sim_taker *taker,
			   const struct pvrdma_cqe *cqe, const uint8_t *at)
{
	bool is_write = cqe->opcode == PVRDMA_WC_RECV_RDMA_WITH_IMM;
	bool has_imm = cqe->wc_flags & PVRDMA_WC_WITH_IMM;

	if (is_write != (taker->kind == SIM_WRITE_IMM) || has_imm != (taker->kind != SIM_SEND))
		sim_fail(sim, "data", "flow%u: opcode %u and flags 0x%x of another kind of message",
			 flow->number, cqe->opcode, cqe->wc_flags);
	if (cqe->byte_len != taker->len)
		sim_fail(sim, "data", "flow%u: a message has %u bytes, expected %u", flow->number,
			 cqe->byte_len, taker->len);
	if (taker->kind != SIM_SEND && cqe->imm_data != taker->imm)
		sim_fail(sim, "data", "flow%u: wrong immediate data", flow->number);
	if (taker->kind != SIM_WRITE_IMM)
		expect_bytes(sim, flow, "a SEND", at, taker->len, taker->seed);
	expect_mark(sim, flow, at, taker->kind == SIM_WRITE_IMM ? 0 : taker->len);
}

static bool is_message(const struct sim_taker *taker, const struct pvrdma_cqe *cqe,
		       const uint8_t *at)
{
	bool has_imm = cqe->wc_flags & PVRDMA_WC_WITH_IMM;
	bool is_write = cqe->opcode == PVRDMA_WC_RECV_RDMA_WITH_IMM;

	return cqe->byte_len == taker->len && has_imm == (taker->kind != SIM_SEND) &&
	       is_write == (taker->kind == SIM_WRITE_IMM) &&
	       (!has_imm || cqe->imm_data == taker->imm) &&
	       (is_write || fg_mismatch(at, taker->len, taker->seed) == taker->len);
}

/*
 * A message of UC; all before it were lost. A network that repeats and reorders packets does so to
 * messages of UC, whose first packet is taken with any PSN (IBTA 9.8.2).
 */
static const struct sim_taker *find_message(struct sim *sim, struct sim_flow *flow,
					    const struct pvrdma_cqe *cqe, const uint8_t *at)
{
	uint64_t i = sim->segment ? 0 : flow->taken;

	while (i < flow->takers && !is_message(&flow->taker[i], cqe, at))
		i++;
	if (i == flow->takers)
		sim_fail(sim, "data",
			 "flow%u: a message of %u bytes is none of %" PRIu64 " to %" PRIu64,
			 flow->number, cqe->byte_len, flow->taken, flow->takers);
	if (flow->taken <= i)
		flow->taken = i + 1;
	return &flow->taker[i];
}

/* Bytes of a WRITE of UC, if no later one may have changed them. */
static void expect_written_before(struct sim *sim, struct sim_flow *flow,
				  const struct sim_taker *taker)
{
	uint32_t slot = (uint32_t)(taker->number % SIM_SLOTS);

	if (!sim->segment && !flow->pair->is_broken && taker->kind == SIM_WRITE_IMM &&
	    flow->slot[slot].writer == taker->number)
		expect_bytes(sim, flow, "a WRITE of UC",
			     flow->to->fg.buf.va + sim_flow_at(sim, SIM_TARGET, slot), taker->len,
			     taker->seed);
}

static void receive(struct sim *sim, struct sim_flow *flow, const struct pvrdma_cqe *cqe)
{
	const uint8_t *at = take_recv(sim, flow, cqe);

	if (cqe->status && flow->pair->is_broken) {
		if (is_flushed_only(flow->pair, flow->to) && cqe->status != PVRDMA_WC_WR_FLUSH_ERR)
			sim_fail(sim, "flush",
				 "flow%u: receive request %" PRIu64 " ended with status %u",
				 flow->number, (uint64_t)cqe->wr_id, cqe->status);
		return;
	}
	if (cqe->status)
		sim_fail(sim, "failed", "flow%u: receive request %" PRIu64 " ended with status %u",
			 flow->number, (uint64_t)cqe->wr_id, cqe->status);
	sim->count.checks++;
	expect_origin(sim, flow, cqe);
	if (flow->pair->type == SIM_UC) {
		expect_written_before(sim, flow, find_message(sim, flow, cqe, at));
		return;
	}
	if (flow->taken >= flow->takers)
		sim_fail(sim, "twice",
			 "flow%u: %" PRIu64 " messages were received, %" PRIu64 " sent",
			 flow->number, flow->taken + 1, flow->takers);
	expect_message(sim, flow, &flow->taker[flow->taken++], cqe, at);
}

void sim_oracle_received(struct sim *sim, void *of)
{
	struct sim_flow *flow = of;
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&flow->to->fg.rcq, &cqe)) {
		sim_trace(&sim->trace, "flow%u receive %" PRIu64 ": status %u, %u bytes",
			  flow->number, (uint64_t)cqe.wr_id, cqe.status, cqe.byte_len);
		receive(sim, flow, &cqe);
	}
}

void sim_oracle_end(struct sim *sim, struct sim_flow *flow)
{
	const uint8_t *va = flow->to->fg.buf.va;
	uint32_t i;

	for (i = 0; i < SIM_SLOTS; i++)
		if (flow->slot[i].written && !flow->slot[i].writing)
			expect_bytes(sim, flow, "memory at the end",
				     va + sim_flow_at(sim, SIM_TARGET, i), flow->slot[i].len,
				     flow->slot[i].seed);
	expect_word(sim, flow, "the sum", va + sim_flow_word(sim, SIM_ADD), flow->adds);
	expect_word(sim, flow, "the swapped word", va + sim_flow_word(sim, SIM_SWAP),
		    flow->swapped);
}
