// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Protection domains, XRC domains, address handles, queries, and events of a context. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "random.h"

/* As all functions change_X(): makes an object in an empty slot, and sometimes ends another one. */
static void change_pd(struct worker *worker)
{
	struct slot *slot = slot_change(worker, KIND_PD);

	if (!slot)
		return;
	if (!slot->object)
		slot->object = count_made(VERB_alloc_pd, ibv_alloc_pd(worker->actor->ctx));
	else if (one_in(&worker->chance, 4) && count(VERB_dealloc_pd, ibv_dealloc_pd(slot->object)))
		slot->object = NULL;
	slot_put(slot);
}

/* Of a file that other processes use too, or of no file. */
static struct ibv_xrcd *open_xrcd(struct worker *worker)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT | (one_in(&worker->chance, 4) ? O_EXCL : 0),
	};
	struct ibv_xrcd *xrcd;

	if (one_in(&worker->chance, 2))
		attr.fd = open("/tmp", O_RDONLY);
	xrcd = count_made(VERB_open_xrcd, ibv_open_xrcd(worker->actor->ctx, &attr));
	if (attr.fd >= 0)
		close(attr.fd);
	return xrcd;
}

static void change_xrcd(struct worker *worker)
{
	struct slot *slot = slot_change(worker, KIND_XRCD);

	if (!slot)
		return;
	if (!slot->object)
		slot->object = open_xrcd(worker);
	else if (one_in(&worker->chance, 3) && count(VERB_close_xrcd, ibv_close_xrcd(slot->object)))
		slot->object = NULL;
	slot_put(slot);
}

/* To this adapter, often; to the one of the other node; or to no adapter. */
void some_path(struct worker *worker, struct ibv_ah_attr *attr)
{
	struct chance *chance = &worker->chance;

	*attr = (struct ibv_ah_attr){
		.is_global = !one_in(chance, 20),
		.port_num = one_in(chance, 20) ? draw(chance) : 1,
		.sl = one_in(chance, 10) ? draw(chance) : 0,
		.dlid = one_in(chance, 10) ? draw(chance) : 0,
		.grh = { .sgid_index = worker->actor->gid_index,
			 .hop_limit = one_in(chance, 10) ? draw(chance) : 64,
			 .traffic_class = one_in(chance, 10) ? draw(chance) : 0,
			 .flow_label = one_in(chance, 10) ? draw(chance) : 0 },
	};
	attr->grh.dgid = worker->actor->gid;
	if (one_in(chance, 12))
		attr->grh.sgid_index = draw(chance);
	if (one_in(chance, 3))
		attr->grh.dgid.raw[15] ^= 3;
	else if (one_in(chance, 10))
		attr->grh.dgid.raw[below(chance, 16)] = draw(chance);
}

static void change_ah(struct worker *worker)
{
	struct slot *slot = slot_change(worker, KIND_AH), *pd;
	struct ibv_ah_attr attr;

	if (!slot)
		return;
	if (slot->object) {
		if (one_in(&worker->chance, 3) &&
		    count(VERB_destroy_ah, ibv_destroy_ah(slot->object)))
			slot->object = NULL;
	} else if ((pd = slot_use(worker, KIND_PD))) {
		some_path(worker, &attr);
		slot->object = count_made(VERB_create_ah, ibv_create_ah(pd->object, &attr));
		slot_put(pd);
	}
	slot_put(slot);
}

static void query(struct worker *worker)
{
	struct ibv_context *ctx = worker->actor->ctx;
	struct chance *chance = &worker->chance;
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	switch (below(chance, 5)) {
	case 0:
		count(VERB_query, ibv_query_device_ex(ctx, NULL, &attr));
		break;
	case 1:
		count(VERB_query, ibv_query_port(ctx, mostly_below(chance, 3), &port));
		break;
	case 2:
		count(VERB_query,
		      ibv_query_gid(ctx, mostly_below(chance, 3), mostly_below(chance, 32), &gid));
		break;
	case 3:
		count(VERB_query,
		      ibv_query_pkey(ctx, mostly_below(chance, 3), mostly_below(chance, 3), &pkey));
		break;
	default:
		count(VERB_query, ibv_query_rt_values_ex(ctx, &values));
	}
}

/* A hostile process must not follow the pointers of events: its objects may be gone. */
static void get_event(struct worker *worker)
{
	struct actor *actor = worker->actor;
	struct ibv_async_event event;
	char raw[16];

	if (actor->is_hostile)
		count(VERB_get_async_event, read(actor->ctx->async_fd, raw, sizeof(raw)) < 0);
	else if (count(VERB_get_async_event, ibv_get_async_event(actor->ctx, &event)))
		ibv_ack_async_event(&event);
}

void deed_domain(struct worker *worker)
{
	static deed *const deeds[] = { change_pd, change_pd, change_xrcd, change_ah,
				       change_ah, query,     get_event };

	deeds[below(&worker->chance, sizeof(deeds) / sizeof(deeds[0]))](worker);
}
