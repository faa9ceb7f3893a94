// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Checks ibv_modify_cq(3): the event of a CQ waits for more completions, up to a period,
 * and comes at once again without moderation. One device talks to itself.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rdma.h"

#define PERIOD_US 60000
#define COUNT 10

struct lab {
	struct node node;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void check_caps(struct lab *lab)
{
	struct ibv_device_attr_ex attr = {};

	MUST(ibv_query_device_ex(lab->node.ctx, NULL, &attr));
	if (attr.cq_mod_caps.max_cq_count < COUNT || attr.cq_mod_caps.max_cq_period < PERIOD_US)
		die("moderation of at most %u completions and %u us, expected %u and %u",
		    attr.cq_mod_caps.max_cq_count, attr.cq_mod_caps.max_cq_period, COUNT,
		    PERIOD_US);
}

static int moderate(struct lab *lab, uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = count, .cq_period = period },
	};

	return ibv_modify_cq(lab->cq, &attr);
}

/* Return: seconds from @writes posted WRITEs to the event, whose completions are polled. */
static double time_to_event(struct lab *lab, int writes)
{
	struct ibv_cq *cq;
	void *opaque;
	double begin;

	MUST(ibv_req_notify_cq(lab->cq, 0));
	begin = now();
	for (int i = 0; i < writes; i++)
		post_send(lab->qp, .opcode = IBV_WR_RDMA_WRITE, ONE_SGE(lab->mr, lab->mr->addr, 8),
			  .wr.rdma = { .remote_addr = (uintptr_t)lab->mr->addr,
				       .rkey = lab->mr->rkey });
	MUST(ibv_get_cq_event(lab->channel, &cq, &opaque));
	ibv_ack_cq_events(cq, 1);
	begin = now() - begin;
	for (int i = 0; i < writes; i++)
		cq_expect(lab->cq, IBV_WC_SUCCESS, "WRITE");
	return begin;
}

int main(void)
{
	struct lab lab = {};
	double waited;

	node_open(&lab.node);
	lab.mr = mr_create(&lab.node, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	lab.channel = MUST_HAVE(ibv_create_comp_channel(lab.node.ctx));
	lab.cq = MUST_HAVE(ibv_create_cq(lab.node.ctx, 64, NULL, lab.channel, 0));
	lab.qp = qp_create_rc(&lab.node, lab.cq, 32);
	qp_connect_to_itself(&lab.node, lab.qp);
	check_caps(&lab);
	if (moderate(&lab, COUNT, 0) != EINVAL)
		die("a number without a period is accepted");
	MUST(moderate(&lab, COUNT, PERIOD_US));
	waited = time_to_event(&lab, COUNT - 1);
	if (waited < PERIOD_US * 0.9e-6)
		die("the event of %d completions came after %.0f us, expected %d", COUNT - 1,
		    waited * 1e6, PERIOD_US);
	time_to_event(&lab, COUNT);
	MUST(moderate(&lab, 0, 0));
	time_to_event(&lab, 1);
	puts("moderation: works");
	MUST(ibv_destroy_qp(lab.qp));
	MUST(ibv_destroy_cq(lab.cq));
	MUST(ibv_destroy_comp_channel(lab.channel));
	mr_destroy(lab.mr);
	node_close(&lab.node);
	return 0;
}
