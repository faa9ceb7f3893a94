// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion channels, CQs and SRQs. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "random.h"

#define POLL_MAX 8
#define EVENTS_MAX 4

/* Depths stay small: the memory of a user's queues is limited. */
static uint32_t some_depth(struct chance *chance)
{
	return one_in(chance, 10) ? (uint32_t)odd_number(chance) : 1 + below(chance, 64);
}

/* ----------------------------------------------------------------------------- channels */

static void change_channel(struct worker *worker)
{
	struct slot *slot = slot_change(worker, KIND_CHANNEL);
	struct ibv_comp_channel *channel;

	if (!slot)
		return;
	channel = slot->object;
	if (!channel) {
		channel = count_made(VERB_create_channel,
				     ibv_create_comp_channel(worker->actor->ctx));
		if (channel)
			MUST(fcntl(channel->fd, F_SETFL, O_NONBLOCK));
		slot->object = channel;
	} else if (one_in(&worker->chance, 4) &&
		   count(VERB_destroy_channel, ibv_destroy_comp_channel(channel))) {
		slot->object = NULL;
	}
	slot_put(slot);
}

static void get_cq_event(struct worker *worker)
{
	struct slot *slot = slot_use(worker, KIND_CHANNEL);
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	void *opaque;
	char raw[8];

	if (!slot)
		return;
	channel = slot->object;
	/* In a hostile process the event's CQ may be gone. */
	if (worker->actor->is_hostile)
		count(VERB_get_cq_event, read(channel->fd, raw, sizeof(raw)) < 0);
	else if (count(VERB_get_cq_event, ibv_get_cq_event(channel, &cq, &opaque)))
		ibv_ack_cq_events(cq, 1);
	slot_put(slot);
}

/* ---------------------------------------------------------------------------------- CQs */

static struct ibv_cq *create_cq_ex(struct worker *worker, struct ibv_comp_channel *channel)
{
	struct chance *chance = &worker->chance;
	struct ibv_cq_init_attr_ex attr = {
		.cqe = some_depth(chance),
		.channel = channel,
		.comp_vector = mostly_below(chance, worker->actor->ctx->num_comp_vectors),
		.wc_flags = one_in(chance, 4) ? draw(chance) & 0xfff
					      : draw(chance) & IBV_CREATE_CQ_SUP_WC_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = one_in(chance, 8) ? odd_number(chance) : 0,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(worker->actor->ctx, &attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_cq *create_cq(struct worker *worker)
{
	struct slot *slot = one_in(&worker->chance, 2) ? slot_use(worker, KIND_CHANNEL) : NULL;
	struct ibv_comp_channel *channel = slot ? slot->object : NULL;
	struct ibv_context *ctx = worker->actor->ctx;
	struct ibv_cq *cq;

	if (one_in(&worker->chance, 3))
		cq = create_cq_ex(worker, channel);
	else
		cq = ibv_create_cq(ctx, some_depth(&worker->chance), NULL, channel,
				   mostly_below(&worker->chance, ctx->num_comp_vectors));
	slot_put(slot);
	return count_made(VERB_create_cq, cq);
}

static void change_cq(struct worker *worker)
{
	struct slot *slot = slot_change(worker, KIND_CQ);

	if (!slot)
		return;
	if (!slot->object)
		slot->object = create_cq(worker);
	else if (one_in(&worker->chance, 4) && count(VERB_destroy_cq, ibv_destroy_cq(slot->object)))
		slot->object = NULL;
	slot_put(slot);
}

static void poll_cq(struct worker *worker, struct ibv_cq *cq)
{
	struct ibv_wc wcs[POLL_MAX];
	int num = ibv_poll_cq(cq, 1 + below(&worker->chance, POLL_MAX), wcs);

	count(VERB_poll_cq, num < 0);
	for (int i = 0; i < num; i++)
		__atomic_add_fetch(wcs[i].status ? &tally->failures : &tally->completions, 1,
				   __ATOMIC_RELAXED);
}

static void use_cq(struct worker *worker)
{
	struct ibv_modify_cq_attr moderation = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct slot *slot = slot_use(worker, KIND_CQ);
	struct chance *chance = &worker->chance;

	if (!slot)
		return;
	switch (below(chance, 10)) {
	case 0:
		count(VERB_resize_cq, ibv_resize_cq(slot->object, some_depth(chance)));
		break;
	case 1:
		moderation.moderate.cq_count = mostly_below(chance, 16);
		moderation.moderate.cq_period = mostly_below(chance, 100);
		if (one_in(chance, 10))
			moderation.attr_mask = draw(chance);
		count(VERB_modify_cq, ibv_modify_cq(slot->object, &moderation));
		break;
	case 2 ... 3:
		count(VERB_req_notify_cq, ibv_req_notify_cq(slot->object, below(chance, 2)));
		break;
	default:
		poll_cq(worker, slot->object);
	}
	slot_put(slot);
}

/* --------------------------------------------------------------------------------- SRQs */

static struct ibv_srq *create_srq(struct worker *worker)
{
	struct slot *pd = slot_use(worker, KIND_PD), *cq = slot_use(worker, KIND_CQ);
	struct slot *xrcd = one_in(&worker->chance, 2) ? slot_use(worker, KIND_XRCD) : NULL;
	struct chance *chance = &worker->chance;
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = some_depth(chance), .max_sge = mostly_below(chance, 4) },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd ? pd->object : NULL,
	};
	struct ibv_srq *srq = NULL;

	if (xrcd && cq) {
		attr.srq_type = IBV_SRQT_XRC;
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		attr.xrcd = xrcd->object;
		attr.cq = cq->object;
	}
	if (pd)
		srq = count_made(VERB_create_srq, ibv_create_srq_ex(worker->actor->ctx, &attr));
	slot_put(xrcd);
	slot_put(cq);
	slot_put(pd);
	return srq;
}

static void change_srq(struct worker *worker)
{
	struct slot *slot = slot_change(worker, KIND_SRQ);

	if (!slot)
		return;
	if (!slot->object)
		slot->object = create_srq(worker);
	else if (one_in(&worker->chance, 4) &&
		 count(VERB_destroy_srq, ibv_destroy_srq(slot->object)))
		slot->object = NULL;
	slot_put(slot);
}

static void use_srq(struct worker *worker)
{
	struct slot *slot = slot_use(worker, KIND_SRQ);
	struct chance *chance = &worker->chance;
	struct ibv_srq_attr attr = { .max_wr = some_depth(chance),
				     .srq_limit = mostly_below(chance, 16) };
	uint32_t number;

	if (!slot)
		return;
	if (one_in(chance, 2))
		count(VERB_modify_srq,
		      ibv_modify_srq(slot->object, &attr, mostly_below(chance, 4)));
	else if (one_in(chance, 2))
		count(VERB_query_srq, ibv_query_srq(slot->object, &attr));
	else
		count(VERB_query_srq, ibv_get_srq_num(slot->object, &number));
	slot_put(slot);
}

void deed_queue(struct worker *worker)
{
	static deed *const deeds[] = {
		change_channel, get_cq_event, change_cq, change_cq,  use_cq,
		use_cq,		use_cq,	      use_cq,	 change_srq, use_srq
	};

	deeds[below(&worker->chance, sizeof(deeds) / sizeof(deeds[0]))](worker);
}
