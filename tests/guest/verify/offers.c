// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Features of a node's device beyond SEND, WRITE and READ: tried, not read from capabilities. */
#include <errno.h>
#include <stdio.h>

#include "verify.h"

#define INLINE_WANTED 256

static const char *const offer_names[OFFER_NUM] = {
	[OFFER_UC] = "UC",
	[OFFER_UD] = "UD",
	[OFFER_INLINE] = "inline data",
	[OFFER_ATOMICS] = "atomics",
	[OFFER_SRQ] = "SRQ",
	[OFFER_MW1] = "memory windows of type 1",
	[OFFER_MW2] = "memory windows of type 2, SEND_WITH_INV",
};

/* Was an object created? Dies if it was not refused, but the device is just out of something. */
static bool has(const void *object, const char *what)
{
	if (!object && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL && errno != EFAULT)
		die("%s:", what);
	return object;
}

static bool try_qp(struct run *run, enum ibv_qp_type type, uint32_t inline_max)
{
	struct ibv_cq *cq = MUST_HAVE(ibv_create_cq(run->node.ctx, 16, NULL, NULL, 0));
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = { .max_send_wr = 1,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = inline_max },
	};
	struct ibv_qp *qp = ibv_create_qp(run->node.pd, &attr);
	bool have = has(qp, "ibv_create_qp") && attr.cap.max_inline_data >= inline_max;

	if (qp)
		MUST(ibv_destroy_qp(qp));
	MUST(ibv_destroy_cq(cq));
	return have;
}

static bool try_srq(struct run *run)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(run->node.pd, &attr);

	return has(srq, "ibv_create_srq") && !ibv_destroy_srq(srq);
}

static bool try_window(struct run *run, enum ibv_mw_type type)
{
	struct ibv_mw *mw;

	errno = EOPNOTSUPP;
	mw = ibv_alloc_mw(run->node.pd, type);
	return has(mw, "ibv_alloc_mw") && !ibv_dealloc_mw(mw);
}

uint32_t probe_offers(struct run *run)
{
	bool have[OFFER_NUM] = {
		[OFFER_UC] = try_qp(run, IBV_QPT_UC, 0),
		[OFFER_UD] = true,
		[OFFER_INLINE] = try_qp(run, IBV_QPT_RC, INLINE_WANTED),
		[OFFER_ATOMICS] = run->node.dev.atomic_cap != IBV_ATOMIC_NONE,
		[OFFER_SRQ] = try_srq(run),
		[OFFER_MW1] = try_window(run, IBV_MW_TYPE_1),
		[OFFER_MW2] = try_window(run, IBV_MW_TYPE_2),
	};
	uint32_t offers = 0;

	for (int i = 0; i < OFFER_NUM; i++)
		offers |= (uint32_t)have[i] << i;
	run->params.inline_max = have[OFFER_INLINE] ? INLINE_WANTED : 0;
	return offers;
}

bool offered(const struct run *run, enum offer offer)
{
	return run->params.offers & 1u << offer;
}

void print_not_offered(const struct run *run)
{
	for (int i = 0; i < OFFER_NUM; i++)
		if (!offered(run, i))
			printf("verify: not offered: %s\n", offer_names[i]);
}
