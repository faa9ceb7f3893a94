// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What InfiniBand promises of two connected RC queue pairs: each message once, in order, whole. It
 * knows requests and completions, and nothing of frames, sequence numbers or paths.
 */
#include <inttypes.h>
#include <string.h>

#include "sim.h"

static void expect_bytes(struct sim *sim, const struct sim_rc *rc, const char *what,
			 const uint8_t *at, uint32_t len, uint32_t seed)
{
	size_t bad = fg_mismatch(at, len, seed);

	if (bad < len)
		sim_fail(sim, "data", "rc%u: %s: byte %zu of %u is wrong", rc->number, what, bad,
			 len);
}

static void expect_word(struct sim *sim, const struct sim_rc *rc, const char *what,
			const uint8_t *at, uint64_t expected)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	if (value != expected)
		sim_fail(sim, "atomic", "rc%u: %s is %" PRIu64 ", expected %" PRIu64, rc->number,
			 what, value, expected);
}

/* The responder completes a receive request before it acknowledges the message. */
static void expect_received(struct sim *sim, struct sim_rc *rc)
{
	uint64_t received = rc->taken + fg_cq_pending(&rc->to->fg.rcq);

	rc->takers_done++;
	if (received < rc->takers_done)
		sim_fail(sim, "lost",
			 "rc%u: %" PRIu64 " messages have completed, %" PRIu64 " were received",
			 rc->number, rc->takers_done, received);
}

static void expect_written(struct sim *sim, struct sim_rc *rc, const struct sim_req *req)
{
	struct sim_slot *slot = &rc->slot[req->slot];

	expect_bytes(sim, rc, "a WRITE", rc->to->fg.buf.va + sim_rc_at(sim, SIM_TARGET, req->slot),
		     req->len, req->seed);
	slot->writing = false;
	slot->written = true;
	slot->seed = req->seed;
	slot->len = req->len;
}

/* Request rc->done has completed with success. */
static void complete(struct sim *sim, struct sim_rc *rc)
{
	uint32_t own = (uint32_t)(rc->done % SIM_RC_SLOTS);
	const struct sim_req *req = &rc->req[own];
	const uint8_t *back = rc->from->fg.buf.va + sim_rc_at(sim, SIM_BACK, own);

	switch (req->kind) {
	case SIM_WRITE_IMM:
		expect_received(sim, rc);
		/* fall through */
	case SIM_WRITE:
		expect_written(sim, rc, req);
		break;
	case SIM_READ:
		expect_bytes(sim, rc, "a READ", back, req->len, req->seed);
		rc->slot[req->slot].reading--;
		break;
	case SIM_ADD:
	case SIM_SWAP:
		expect_word(sim, rc, "the value of an atomic", back, req->value);
		break;
	default:
		expect_received(sim, rc);
	}
	rc->done++;
	sim->checks++;
}

/* Return: whether it is an error that the end of the connection explains. */
static bool may_fail(struct sim_rc *rc, uint32_t status)
{
	rc->has_failed |= status != 0;
	return status && rc->pair->is_broken;
}

void sim_oracle_sent(struct sim *sim, struct sim_rc *rc)
{
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&rc->from->fg.scq, &cqe)) {
		sim_trace(&sim->trace, "rc%u completion %" PRIu64 ": status %u", rc->number,
			  (uint64_t)cqe.wr_id, cqe.status);
		if (may_fail(rc, cqe.status))
			continue;
		if (cqe.status)
			sim_fail(sim, "failed", "rc%u: request %" PRIu64 " ended with status %u",
				 rc->number, (uint64_t)cqe.wr_id, cqe.status);
		if (rc->has_failed)
			sim_fail(sim, "order",
				 "rc%u: %" PRIu64 " completes after another one has failed",
				 rc->number, (uint64_t)cqe.wr_id);
		if (cqe.wr_id < rc->done || cqe.wr_id >= rc->posted)
			sim_fail(sim, "order", "rc%u: completion of %" PRIu64 ", expected %" PRIu64,
				 rc->number, (uint64_t)cqe.wr_id, rc->done);
		while (rc->done < cqe.wr_id) {
			if (rc->req[rc->done % SIM_RC_SLOTS].signaled)
				sim_fail(sim, "order", "rc%u: no completion of %" PRIu64,
					 rc->number, rc->done);
			complete(sim, rc);
		}
		if (!rc->req[rc->done % SIM_RC_SLOTS].signaled)
			sim_fail(sim, "order",
				 "rc%u: completion of %" PRIu64 ", which is unsignaled", rc->number,
				 rc->done);
		complete(sim, rc);
	}
}

void sim_oracle_received(struct sim *sim, struct sim_rc *rc)
{
	const struct sim_taker *taker;
	struct pvrdma_cqe cqe;
	uint32_t slot;

	while (fg_cq_poll(&rc->to->fg.rcq, &cqe)) {
		sim_trace(&sim->trace, "rc%u receive %" PRIu64 ": status %u, %u bytes", rc->number,
			  (uint64_t)cqe.wr_id, cqe.status, cqe.byte_len);
		if (cqe.status && rc->pair->is_broken)
			continue;
		if (cqe.status)
			sim_fail(sim, "failed",
				 "rc%u: receive request %" PRIu64 " ended with status %u",
				 rc->number, (uint64_t)cqe.wr_id, cqe.status);
		if (cqe.wr_id != rc->taken || rc->taken >= rc->recvs)
			sim_fail(sim, "order",
				 "rc%u: receive completion of %" PRIu64 ", expected %" PRIu64,
				 rc->number, (uint64_t)cqe.wr_id, rc->taken);
		if (rc->taken >= rc->takers)
			sim_fail(sim, "twice",
				 "rc%u: %" PRIu64 " messages were received, %" PRIu64 " sent",
				 rc->number, rc->taken + 1, rc->takers);
		taker = &rc->taker[rc->taken % SIM_RC_TAKERS];
		slot = (uint32_t)(rc->taken % SIM_RC_SLOTS);
		if (cqe.byte_len != taker->len)
			sim_fail(sim, "data", "rc%u: a message has %u bytes, expected %u",
				 rc->number, cqe.byte_len, taker->len);
		if (taker->kind != SIM_SEND && cqe.imm_data != taker->imm)
			sim_fail(sim, "data", "rc%u: wrong immediate data", rc->number);
		if (taker->kind != SIM_WRITE_IMM)
			expect_bytes(sim, rc, "a SEND",
				     rc->to->fg.buf.va + sim_rc_at(sim, SIM_IN, slot), taker->len,
				     taker->seed);
		rc->taken++;
		sim->checks++;
	}
}

void sim_oracle_end(struct sim *sim, struct sim_rc *rc)
{
	const uint8_t *va = rc->to->fg.buf.va;
	uint32_t i;

	for (i = 0; i < SIM_RC_SLOTS; i++)
		if (rc->slot[i].written && !rc->slot[i].writing)
			expect_bytes(sim, rc, "memory at the end",
				     va + sim_rc_at(sim, SIM_TARGET, i), rc->slot[i].len,
				     rc->slot[i].seed);
	expect_word(sim, rc, "the sum", va + sim_rc_word(sim, SIM_ADD), rc->adds);
	expect_word(sim, rc, "the swapped word", va + sim_rc_word(sim, SIM_SWAP), rc->swapped);
}
