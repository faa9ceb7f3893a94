// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Requests of a round, from the plan to the queues. */
#include <arpa/inet.h>

#include "verify.h"

uint64_t work_id(const struct run *run, int side, bool receive, int index)
{
	return run->round << 16 | (uint64_t)side << 9 | (uint64_t)receive << 8 | (uint64_t)index;
}

static int to_sges(const struct end *end, const struct pieces *pieces, struct ibv_sge *sges)
{
	for (int i = 0; i < pieces->num; i++)
		sges[i] = (struct ibv_sge){
			.addr = (uintptr_t)end->memory + pieces->list[i].offset,
			.length = pieces->list[i].length,
			.lkey = end->mrs[region_of(end, pieces->list[i].offset)]->lkey,
		};
	return pieces->num;
}

static void expect_completion(struct waiting *waiting, int index)
{
	waiting->ops[waiting->num++] = index;
}

static void post_receive(struct run *run, struct end *end, int index)
{
	const struct op *op = &run->plan.ops[index];
	struct pieces decoy = { .num = 1, .list = { op->decoy } };
	struct ibv_sge sges[PLAN_MAX_SGE];
	int num = to_sges(end, op->kind == KIND_WRITE_IMM ? &decoy : &op->remote, sges);

	post_recv(end->qp, .wr_id = work_id(run, end->side, true, index), .sg_list = sges,
		  .num_sge = num);
	expect_completion(&end->receives, index);
}

void post_receives(struct run *run, struct end *end)
{
	for (int i = 0; i < run->plan.num; i++)
		if (run->plan.ops[i].from != end->side && op_consumes_receive(&run->plan.ops[i]))
			post_receive(run, end, i);
}

static const enum ibv_wr_opcode wr_opcodes[KIND_NUM] = {
	[KIND_SEND] = IBV_WR_SEND,
	[KIND_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[KIND_WRITE] = IBV_WR_RDMA_WRITE,
	[KIND_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[KIND_READ] = IBV_WR_RDMA_READ,
	[KIND_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[KIND_CMP_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
};

static unsigned int send_flags(const struct op *op)
{
	return (op->signaled ? IBV_SEND_SIGNALED : 0) | (op->fenced ? IBV_SEND_FENCE : 0) |
	       (op->solicited ? IBV_SEND_SOLICITED : 0) | (op->inlined ? IBV_SEND_INLINE : 0);
}

/* Inline data needs no region. */
static void spoil_lkeys(struct ibv_send_wr *wr)
{
	for (int i = 0; i < wr->num_sge; i++)
		wr->sg_list[i].lkey = ~wr->sg_list[i].lkey;
}

static void fill_remote(const struct end *end, const struct op *op, uint32_t at,
			struct ibv_send_wr *wr)
{
	uint64_t addr = end->peer.memory + at;
	uint32_t rkey = end->peer.rkeys[region_of(end, at)];

	if (!op_is_atomic(op)) {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = rkey;
		return;
	}
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.compare_add = op->operand;
	wr->wr.atomic.swap = op->swap;
}

static void fill_send(struct run *run, struct end *end, int index, struct ibv_send_wr *wr,
		      struct ibv_sge *sges)
{
	const struct op *op = &run->plan.ops[index];
	uint32_t at = op->remote.num ? op->remote.list[0].offset : index * shape_slot(&run->shape);

	*wr = (struct ibv_send_wr){
		.wr_id = work_id(run, end->side, false, index),
		.sg_list = sges,
		.num_sge = to_sges(end, &op->local, sges),
		.opcode = wr_opcodes[op->kind],
		.send_flags = send_flags(op),
	};
	if (op->inlined)
		spoil_lkeys(wr);
	if (op_has_imm(op))
		wr->imm_data = htonl(op->imm);
	if (run->shape.datagram) {
		wr->wr.ud.ah = end->ah;
		wr->wr.ud.remote_qpn = end->peer.address.qpn;
		wr->wr.ud.remote_qkey = TEST_QKEY;
	} else if (op->kind >= KIND_WRITE) {
		fill_remote(end, op, at, wr);
	}
}

static void post_chain(struct end *end, struct ibv_send_wr *wrs, int num)
{
	if (!num)
		return;
	for (int i = 0; i < num; i++)
		wrs[i].next = i + 1 < num ? &wrs[i + 1] : NULL;
	post_send_wr(end->qp, wrs);
}

void post_sends(struct run *run, struct end *end)
{
	static struct ibv_sge sges[PLAN_MAX_OPS][PLAN_MAX_SGE];
	struct ibv_send_wr wrs[PLAN_MAX_OPS];
	int num = 0;

	for (int i = 0; i < run->plan.num; i++) {
		const struct op *op = &run->plan.ops[i];

		if (op->from != end->side)
			continue;
		if (!op->chained) {
			post_chain(end, wrs, num);
			num = 0;
		}
		fill_send(run, end, i, &wrs[num], sges[num]);
		num++;
		if (op->signaled)
			expect_completion(&end->sends, i);
	}
	post_chain(end, wrs, num);
	spoil_inlined(run, end);
}
