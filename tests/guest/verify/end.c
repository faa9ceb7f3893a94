// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The verbs objects of an end. */
#include "verify.h"

static void open_qp(struct run *run, struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.qp_type = run->type,
		.cap = {
			.max_send_wr = run->shape.depth,
			.max_recv_wr = run->shape.depth,
			.max_send_sge = run->shape.max_sge,
			.max_recv_sge = run->shape.max_sge,
			.max_inline_data = run->shape.inline_max,
		},
	};

	end->qp = qp_create(&run->node, &attr);
}

void open_end(struct run *run, int side, struct end *shared)
{
	struct end *end = &run->ends[side];

	*end = (struct end){ .side = side };
	open_memory(run, end);
	if (shared) {
		end->shares = true;
		end->cq = shared->cq;
		end->qp = shared->qp;
		return;
	}
	end->cq =
		MUST_HAVE(ibv_create_cq(run->node.ctx, 2 * run->shape.depth, end, run->channel, 0));
	open_qp(run, end);
}

void close_end(struct end *end)
{
	if (end->ah)
		MUST(ibv_destroy_ah(end->ah));
	if (!end->shares) {
		MUST(ibv_destroy_qp(end->qp));
		if (end->events)
			ibv_ack_cq_events(end->cq, end->events);
		MUST(ibv_destroy_cq(end->cq));
	}
	close_memory(end);
}

void connect_end(struct run *run, struct end *end)
{
	if (end->shares)
		return;
	qp_connect(&run->node, end->qp, &end->peer.address);
	if (run->shape.datagram)
		end->ah = ah_create(&run->node, &end->peer.address);
}
