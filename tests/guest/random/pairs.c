// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* QPs of all types, in all states. */
#include <string.h>

#include "random.h"

#define QKEY 0x11111111u
#define NUMBERS (sizeof(tally->qpns) / sizeof(tally->qpns[0]))

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC,	IBV_QPT_RC,	 IBV_QPT_UC,
					  IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV };

static enum ibv_qp_type some_type(struct chance *chance)
{
	if (one_in(chance, 30))
		return draw(chance) & 0xff;
	return types[below(chance, sizeof(types) / sizeof(types[0]))];
}

static void *object(struct slot *slot)
{
	return slot ? slot->object : NULL;
}

/* ------------------------------------------------------------------------------ creation */

static struct ibv_qp *create_qp(struct worker *worker, struct slot **with)
{
	struct chance *chance = &worker->chance;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = object(with[0]),
		.recv_cq = object(with[1]),
		.srq = object(with[2]),
		.cap = { .max_send_wr = 1 + mostly_below(chance, 32),
			 .max_recv_wr = mostly_below(chance, 32),
			 .max_send_sge = mostly_below(chance, 5),
			 .max_recv_sge = mostly_below(chance, 5),
			 .max_inline_data = mostly_below(chance, 256) },
		.qp_type = some_type(chance),
		.sq_sig_all = below(chance, 2),
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = object(with[3]),
	};

	if (attr.qp_type == IBV_QPT_XRC_RECV) {
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = object(with[4]);
	}
	if (attr.qp_type == IBV_QPT_XRC_RECV ? !attr.xrcd : !attr.send_cq || !attr.recv_cq)
		return NULL;
	if (one_in(chance, 3)) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = one_in(chance, 3) ? draw(chance) & 0x3ff : 0x3ff;
	}
	return count_made(VERB_create_qp, ibv_create_qp_ex(worker->actor->ctx, &attr));
}

static struct ibv_qp *open_qp(struct worker *worker, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = tally->qpns[below(&worker->chance, NUMBERS)],
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return count_made(VERB_open_qp, ibv_open_qp(worker->actor->ctx, &attr));
}

static void make_qp(struct worker *worker, struct slot *slot)
{
	struct slot *with[] = { slot_use(worker, KIND_CQ), slot_use(worker, KIND_CQ),
				one_in(&worker->chance, 4) ? slot_use(worker, KIND_SRQ) : NULL,
				slot_use(worker, KIND_PD), slot_use(worker, KIND_XRCD) };
	struct ibv_qp *qp = NULL;

	if (with[4] && one_in(&worker->chance, 8))
		qp = open_qp(worker, with[4]->object);
	else if (with[3])
		qp = create_qp(worker, with);
	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
		slot_put(with[i]);
	slot->object = qp;
	if (!qp)
		return;
	slot->extra = qp->qp_type;
	tally->qpns[below(&worker->chance, NUMBERS)] = qp->qp_num;
}

static void change_qp(struct worker *worker)
{
	struct slot *slot = slot_change(worker, KIND_QP);

	if (!slot)
		return;
	if (!slot->object)
		make_qp(worker, slot);
	else if (one_in(&worker->chance, 6) && count(VERB_destroy_qp, ibv_destroy_qp(slot->object)))
		slot->object = NULL;
	slot_put(slot);
}

/* ------------------------------------------------------------------------------- changes */

static void some_attr(struct worker *worker, struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
	struct chance *chance = &worker->chance;

	*attr = (struct ibv_qp_attr){
		.qp_state = mostly_below(chance, 7),
		.cur_qp_state = mostly_below(chance, 7),
		.path_mtu = 1 + mostly_below(chance, 5),
		.qkey = one_in(chance, 8) ? draw(chance) : QKEY,
		.rq_psn = !one_in(chance, 8) ? 0 : draw(chance) & 0xffffff,
		.sq_psn = !one_in(chance, 8) ? 0 : draw(chance) & 0xffffff,
		.dest_qp_num = one_in(chance, 2) ? qp->qp_num : tally->qpns[below(chance, NUMBERS)],
		.qp_access_flags = one_in(chance, 10) ? draw(chance) & 0xff : 15,
		.pkey_index = mostly_below(chance, 1),
		.en_sqd_async_notify = below(chance, 2),
		.max_rd_atomic = mostly_below(chance, 17),
		.max_dest_rd_atomic = mostly_below(chance, 17),
		.min_rnr_timer = mostly_below(chance, 8),
		.port_num = one_in(chance, 20) ? draw(chance) : 1,
		.timeout = mostly_below(chance, 12),
		.retry_cnt = mostly_below(chance, 8),
		.rnr_retry = mostly_below(chance, 8),
		.cap = { .max_send_wr = mostly_below(chance, 32),
			 .max_recv_wr = mostly_below(chance, 32) },
		.alt_port_num = mostly_below(chance, 3),
	};
	some_path(worker, &attr->ah_attr);
	some_path(worker, &attr->alt_ah_attr);
}

/* The attributes that the specification requires for a step from RESET to RTS. */
static int usual_mask(enum ibv_qp_type type, enum ibv_qp_state state)
{
	bool is_ud = type == IBV_QPT_UD, is_uc = type == IBV_QPT_UC;
	bool requests = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
	bool responds = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
	int mask = IBV_QP_STATE;

	if (state == IBV_QPS_INIT)
		return mask | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
	if (state == IBV_QPS_RTR && !is_ud)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			(responds ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
	if (state == IBV_QPS_RTS)
		mask |= IBV_QP_SQ_PSN | (is_ud || is_uc ? 0 : IBV_QP_TIMEOUT) |
			(requests ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
				  : 0);
	return mask;
}

static int some_mask(struct chance *chance, int mask)
{
	switch (below(chance, 4)) {
	case 0:
		return draw(chance) & 0x1fffff;
	case 1:
		return mask & ~(1 << below(chance, 21));
	default:
		return mask | 1 << below(chance, 21);
	}
}

/* To the next state, or, less often, to any one. */
static void modify_qp(struct worker *worker)
{
	static const enum ibv_qp_state next[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
						  IBV_QPS_RTS,	IBV_QPS_RTS, IBV_QPS_ERR,
						  IBV_QPS_RESET };
	struct slot *slot = slot_use(worker, KIND_QP);
	struct chance *chance = &worker->chance;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	int mask;

	if (!slot)
		return;
	qp = slot->object;
	some_attr(worker, qp, &attr);
	if (!one_in(chance, 6) && qp->state < IBV_QPS_SQE)
		attr.qp_state = next[qp->state];
	else if (one_in(chance, 2))
		attr.qp_state = below(chance, 2) ? IBV_QPS_RESET : IBV_QPS_ERR;
	mask = usual_mask(slot->extra, attr.qp_state);
	if (one_in(chance, 5))
		mask = some_mask(chance, mask);
	count(VERB_modify_qp, ibv_modify_qp(qp, &attr, mask));
	slot_put(slot);
}

static void query_qp(struct worker *worker)
{
	struct slot *slot = slot_use(worker, KIND_QP);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (!slot)
		return;
	count(VERB_query_qp,
	      ibv_query_qp(slot->object, &attr, draw(&worker->chance) & 0x1fffff, &init));
	slot_put(slot);
}

static void change_group(struct worker *worker)
{
	struct slot *slot = slot_use(worker, KIND_QP);
	struct chance *chance = &worker->chance;
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = below(chance, 4) } };
	uint16_t lid = one_in(chance, 8) ? draw(chance) : 0;

	if (!slot)
		return;
	if (one_in(chance, 10))
		group.raw[below(chance, 16)] = draw(chance);
	/*
	 * ib_uverbs_open_qp() of Linux does not initialize the mutex of the groups, in 6.1 at least. A
	 * debug kernel warns, and no driver sees the call. Targets of XRC can be such queue pairs.
	 */
	if (slot->extra == IBV_QPT_XRC_RECV)
		; /* none */
	else if (one_in(chance, 2))
		count(VERB_attach_mcast, ibv_attach_mcast(slot->object, &group, lid));
	else
		count(VERB_detach_mcast, ibv_detach_mcast(slot->object, &group, lid));
	slot_put(slot);
}

void deed_pair(struct worker *worker)
{
	static deed *const deeds[] = { change_qp, change_qp, change_qp, modify_qp, modify_qp,
				       modify_qp, modify_qp, modify_qp, query_qp,  change_group };

	deeds[below(&worker->chance, sizeof(deeds) / sizeof(deeds[0]))](worker);
}
