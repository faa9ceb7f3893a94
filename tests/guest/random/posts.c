// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Requests: lists with every opcode, keys of others, and SGEs of memory that comes and goes. */
#include "random.h"

#define WRS 4
#define SGES 6
#define NUMBERS (sizeof(tally->qpns) / sizeof(tally->qpns[0]))
#define QKEY 0x11111111u

/* A list and what it points to. */
struct list {
	struct ibv_sge sges[WRS][SGES];
	union {
		struct ibv_send_wr send[WRS];
		struct ibv_recv_wr recv[WRS];
	};
	struct slot *ah, *mw;
};

struct ibv_sge some_sge(struct worker *worker)
{
	struct chance *chance = &worker->chance;
	struct ibv_sge sge = { some_address(chance), some_length(chance), odd_number(chance) };
	struct slot *slot = one_in(chance, 20) ? NULL : slot_use(worker, KIND_MR);
	struct ibv_mr *mr = slot ? slot->object : NULL;

	if (mr)
		sge.lkey = mr->lkey;
	if (mr && mr->addr && mr->length && !one_in(chance, 6)) {
		sge.addr = (uintptr_t)mr->addr + draw(chance) % mr->length;
		sge.length = draw(chance) % ((uintptr_t)mr->addr + mr->length - sge.addr) % 8192;
	}
	slot_put(slot);
	return sge;
}

void place_publish(struct worker *worker, uint32_t rkey, uint64_t address, uint64_t bytes)
{
	uint32_t i = below(&worker->chance, NUMBERS);

	tally->places[i].rkey = rkey;
	tally->places[i].address = address ? address : some_address(&worker->chance);
	tally->places[i].bytes = bytes < 1 << 20 ? bytes : 4096;
}

static uint32_t some_place(struct chance *chance, uint64_t *address)
{
	uint32_t i = below(chance, NUMBERS);

	*address = one_in(chance, 6)
			   ? some_address(chance)
			   : tally->places[i].address + below(chance, tally->places[i].bytes);
	return one_in(chance, 20) ? draw(chance) : tally->places[i].rkey;
}

static uint32_t some_rkey(struct chance *chance)
{
	uint64_t address;

	return some_place(chance, &address);
}

static int some_sges(struct worker *worker, struct ibv_sge *sges)
{
	struct chance *chance = &worker->chance;

	for (int i = 0; i < SGES; i++)
		sges[i] = some_sge(worker);
	if (one_in(chance, 40))
		return odd_number(chance);
	return below(chance, one_in(chance, 8) ? SGES + 1 : 3);
}

/* The library itself reads inline data. */
static void use_safe_memory(struct worker *worker, struct ibv_send_wr *wr)
{
	for (int i = 0; i < SGES; i++) {
		struct ibv_sge *sge = &wr->sg_list[i];

		sge->addr = (uintptr_t)safe_memory + below(&worker->chance, SAFE_BYTES / 2);
		if (!one_in(&worker->chance, 6))
			sge->length = below(&worker->chance, 64);
	}
}

static void some_operation(struct worker *worker, struct list *list, enum ibv_qp_type type,
			   struct ibv_send_wr *wr)
{
	struct chance *chance = &worker->chance;
	struct ibv_mr *mr;
	struct slot *slot;

	switch (wr->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.rkey = some_place(chance, &wr->wr.atomic.remote_addr);
		wr->wr.atomic.remote_addr &= one_in(chance, 8) ? ~0ull : ~7ull;
		wr->wr.atomic.compare_add = odd_number(chance);
		wr->wr.atomic.swap = odd_number(chance);
		if (!one_in(chance, 8))
			wr->sg_list[0].length = 8;
		break;
	case IBV_WR_BIND_MW:
		slot = slot_use(worker, KIND_MR);
		mr = slot ? slot->object : NULL;
		wr->bind_mw.mw = list->mw ? list->mw->object : NULL;
		if (mr && wr->bind_mw.mw) {
			wr->bind_mw.rkey = one_in(chance, 6) ? draw(chance)
							     : ibv_inc_rkey(wr->bind_mw.mw->rkey);
			wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
				.mr = mr,
				.addr = one_in(chance, 4) ? some_address(chance)
							  : (uintptr_t)mr->addr,
				.length = one_in(chance, 4) ? odd_number(chance) : mr->length,
				.mw_access_flags = one_in(chance, 6) ? draw(chance) & 0xff : 14,
			};
			place_publish(worker, wr->bind_mw.rkey, (uintptr_t)mr->addr, mr->length);
		} else {
			wr->opcode = IBV_WR_SEND;
		}
		slot_put(slot);
		break;
	default:
		wr->wr.rdma.rkey = some_place(chance, &wr->wr.rdma.remote_addr);
	}
	if (type != IBV_QPT_UD)
		return;
	wr->wr.ud.ah = list->ah->object;
	wr->wr.ud.remote_qpn = one_in(chance, 8) ? draw(chance)
						 : tally->qpns[below(chance, NUMBERS)];
	wr->wr.ud.remote_qkey = one_in(chance, 8) ? draw(chance) : QKEY;
}

static struct ibv_send_wr *some_sends(struct worker *worker, struct list *list,
				      enum ibv_qp_type type)
{
	struct chance *chance = &worker->chance;
	int n = 1 + below(chance, WRS);

	for (int i = 0; i < n; i++) {
		struct ibv_send_wr *wr = &list->send[i];

		*wr = (struct ibv_send_wr){
			.wr_id = draw(chance),
			.next = i + 1 < n ? wr + 1 : NULL,
			.sg_list = list->sges[i],
			.num_sge = some_sges(worker, list->sges[i]),
			.opcode = one_in(chance, 25) ? draw(chance) & 0xff : below(chance, 11),
			.send_flags = draw(chance) & 7,
			.imm_data = draw(chance),
		};
		if (type == IBV_QPT_UD && !one_in(chance, 10))
			wr->opcode = below(chance, 2) ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
		some_operation(worker, list, type, wr);
		if (wr->opcode == IBV_WR_LOCAL_INV || wr->opcode == IBV_WR_SEND_WITH_INV)
			wr->invalidate_rkey = some_rkey(chance);
		if (type == IBV_QPT_XRC_SEND)
			wr->qp_type.xrc.remote_srqn = below(chance, 16);
		if (one_in(chance, 6)) {
			wr->send_flags |= IBV_SEND_INLINE;
			use_safe_memory(worker, wr);
		}
	}
	return list->send;
}

static void send(struct worker *worker)
{
	struct slot *slot = slot_use(worker, KIND_QP);
	struct ibv_send_wr *bad;
	struct list list;

	if (!slot)
		return;
	list.ah = slot_use(worker, KIND_AH);
	list.mw = slot_use(worker, KIND_MW);
	if (list.ah || slot->extra != IBV_QPT_UD)
		count(VERB_post_send,
		      ibv_post_send(slot->object, some_sends(worker, &list, slot->extra), &bad));
	slot_put(list.mw);
	slot_put(list.ah);
	slot_put(slot);
}

/* Operations of the interface without work requests that every type of QP has. */
static void send_ex(struct worker *worker)
{
	struct slot *slot = slot_use(worker, KIND_QP);
	struct chance *chance = &worker->chance;
	struct ibv_qp_ex *qp = slot ? ibv_qp_to_qp_ex(slot->object) : NULL;
	struct ibv_sge sges[SGES];

	/* Operations that the program did not ask for are NULL. */
	if (!qp || (slot->extra != IBV_QPT_RC && slot->extra != IBV_QPT_UC) || !qp->wr_send ||
	    !qp->wr_rdma_write || !qp->wr_rdma_write_imm) {
		slot_put(slot);
		return;
	}
	ibv_wr_start(qp);
	for (uint32_t i = below(chance, 4); i; i--) {
		qp->wr_id = draw(chance);
		qp->wr_flags = draw(chance) & 7;
		some_sges(worker, sges);
		if (one_in(chance, 3))
			ibv_wr_send(qp);
		else if (one_in(chance, 2))
			ibv_wr_rdma_write(qp, some_rkey(chance), some_address(chance));
		else
			ibv_wr_rdma_write_imm(qp, some_rkey(chance), some_address(chance), 1);
		if (one_in(chance, 2))
			ibv_wr_set_sge_list(qp, below(chance, SGES + 1), sges);
		else if (!one_in(chance, 10))
			ibv_wr_set_sge(qp, sges[0].lkey, sges[0].addr, sges[0].length);
	}
	if (one_in(chance, 4))
		ibv_wr_abort(qp);
	else
		count(VERB_wr_complete, ibv_wr_complete(qp));
	slot_put(slot);
}

static struct ibv_recv_wr *some_recvs(struct worker *worker, struct list *list)
{
	int n = 1 + below(&worker->chance, WRS);

	for (int i = 0; i < n; i++)
		list->recv[i] = (struct ibv_recv_wr){
			.wr_id = draw(&worker->chance),
			.next = i + 1 < n ? &list->recv[i + 1] : NULL,
			.sg_list = list->sges[i],
			.num_sge = some_sges(worker, list->sges[i]),
		};
	return list->recv;
}

static void recv(struct worker *worker)
{
	struct slot *slot = slot_use(worker, KIND_QP);
	struct ibv_recv_wr *bad;
	struct list list;

	if (slot)
		count(VERB_post_recv, ibv_post_recv(slot->object, some_recvs(worker, &list), &bad));
	slot_put(slot);
}

static void recv_shared(struct worker *worker)
{
	struct slot *slot = slot_use(worker, KIND_SRQ);
	struct ibv_recv_wr *bad;
	struct list list;

	if (slot)
		count(VERB_post_srq_recv,
		      ibv_post_srq_recv(slot->object, some_recvs(worker, &list), &bad));
	slot_put(slot);
}

void deed_post(struct worker *worker)
{
	static deed *const deeds[] = { send, send, send, send_ex, recv, recv_shared };

	deeds[below(&worker->chance, sizeof(deeds) / sizeof(deeds[0]))](worker);
}
