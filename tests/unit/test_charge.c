// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of the process that a guest makes the device allocate: what is charged to its
 * adapter, the limit, and what happens beyond it.
 */
#include <stdlib.h>

#include "hosts.h"
#include "objects.h"
#include "core/charge.h"
#include "core/objects.h"
#include "path/pipe/sq.h"
#include "rdma/responder_state.h"

#define MIB (1ull << 20)

TEST_EXT(PVR_ENGINE_EXT)

static uint64_t used(const struct fg_guest *guest)
{
	return fg_stats(guest).memory;
}

/* What other objects of the guest would use: the next allocation is beyond the limit. */
static void use_rest(struct fg_guest *guest)
{
	struct pvr_adapter *adapter = guest->adapter;

	expect_ok(pvr_charge(adapter, pvr_charge_limit(adapter) - adapter->charged));
}

static void return_rest(struct fg_guest *guest, uint64_t before)
{
	pvr_uncharge(guest->adapter, pvr_charge_limit(guest->adapter) - before);
}

/* ------------------------------------------------------------------- commands */

TEST_OBJECTS(test_each_object_is_charged_until_it_is_destroyed)
{
	uint64_t before = used(o->g), with_srq;
	struct fg_qp_spec spec = o->qp;
	struct fg_ctx ctx;
	struct fg_pd pd;
	struct fg_cq cq;
	struct fg_mr mr;
	struct fg_srq srq;
	struct fg_qp qp;

#define EXPECT_CHARGED(type)                                            \
	assert_in_range(used(o->g) - before, sizeof(type), UINT32_MAX); \
	before = used(o->g)
	expect_ok(fg_ctx_create(o->g, &ctx));
	EXPECT_CHARGED(struct pvr_uc);
	expect_ok(fg_ctx_destroy(&ctx));
	before = used(o->g);
	expect_ok(fg_pd_create(&o->g->kernel, &pd));
	EXPECT_CHARGED(struct pvr_pd);
	expect_ok(fg_cq_create(&o->g->kernel, 16, &cq));
	EXPECT_CHARGED(struct pvr_cq);
	expect_ok(fg_mr_create(&pd, &o->buf, 0, &mr));
	EXPECT_CHARGED(struct pvr_mr);
	expect_ok(fg_srq_create(&pd, 16, 4, &srq));
	EXPECT_CHARGED(struct pvr_srq);
	with_srq = before;
	spec.pd = &pd;
	spec.scq = spec.rcq = &cq;
	spec.srq = &srq;
	expect_ok(fg_qp_create(&spec, &qp));
	EXPECT_CHARGED(struct pvr_qp);
	expect_ok(fg_qp_destroy(&qp));
	assert_int_equal(used(o->g), with_srq);
#undef EXPECT_CHARGED
	expect_ok(fg_srq_destroy(&srq));
	expect_ok(fg_mr_destroy(&mr));
	expect_ok(fg_cq_destroy(&cq));
	expect_ok(fg_pd_destroy(&pd));
}

/* Steps of a command and a reset return what they have charged. */
TEST_OBJECTS(test_reset_returns_everything)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create(&o->pd, &o->buf, 0, &mr));
	assert_int_not_equal(used(o->g), 0);
	pvr_adapter_reset(o->g->adapter);
	assert_int_equal(used(o->g), 0);
}

static struct fg_guest *limited_guest(struct t_env *env, uint64_t limit)
{
	struct fg_guest_config config;

	fg_guest_config_init(&config, 2);
	config.object_memory = limit;
	return t_guest_as(env, 2, &config);
}

static uint32_t pds_that_fit(struct fg_guest *g, uint32_t *last)
{
	uint32_t n = 0, err;

	while (!(err = fg_create_pd(g, g->kernel.handle, last)))
		n++;
	assert_int_equal(err, ENOMEM);
	return n;
}

TEST(guest, test_objects_beyond_the_limit_get_enomem)
{
	struct fg_guest *g = limited_guest(env, 65536);
	uint32_t last, again;

	assert_int_equal(fg_stats(g).memory_budget, 65536);
	assert_in_range(pds_that_fit(g, &last), 100, 65536 / sizeof(struct pvr_pd));
	assert_in_range(used(g), 65536 - 64, 65536);
	assert_string_equal(env->host->line[(env->host->nlines - 1) % FG_LOG_LINES].adapter, "vm2");
	assert_true(fg_logged(env->host, "of at most 64 KiB"));
	assert_true(fg_logged(env->host, "see object-memory="));
	/* Each other guest has a limit of its own. */
	expect_ok(fg_create_pd(env->g[0], env->g[0]->kernel.handle, &again));
	expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_PD, last));
	expect_ok(fg_create_pd(g, g->kernel.handle, &again));
}

/* Every kind of object, and no refusal leaves a charge behind. */
TEST_OBJECTS(test_refusals_leave_nothing_charged)
{
	uint64_t before = used(o->g);
	struct fg_qp_spec spec = o->qp;
	struct fg_ctx ctx;
	struct fg_pd pd;
	struct fg_cq cq;
	struct fg_mr mr;
	struct fg_srq srq;
	struct fg_qp qp;

	use_rest(o->g);
	assert_int_equal(fg_ctx_create(o->g, &ctx), ENOMEM);
	assert_int_equal(fg_pd_create(&o->g->kernel, &pd), ENOMEM);
	assert_int_equal(fg_cq_create(&o->g->kernel, 16, &cq), ENOMEM);
	assert_int_equal(fg_mr_create(&o->pd, &o->buf, 0, &mr), ENOMEM);
	assert_int_equal(fg_srq_create(&o->pd, 16, 4, &srq), ENOMEM);
	assert_int_equal(fg_qp_create(&spec, &qp), ENOMEM);
	return_rest(o->g, before);
	assert_int_equal(used(o->g), before);
	expect_ok(fg_qp_create(&spec, &qp));
}

/* ------------------------------------------------- what the device advertises */

/* All objects that QUERY_DEVICE offers, at once, in a guest of 1 GiB. */
TEST_OBJECTS(test_advertised_objects_fit_in_the_limit)
{
	const struct pvr_caps *caps = &o->g->dsr->caps;
	uint64_t all = 0, before;
	struct fg_qp_spec spec = o->qp;
	struct fg_pd pd;
	struct fg_cq cq;
	struct fg_mr mr;
	struct fg_srq srq;
	struct fg_qp qp;
	struct fg_buf page;

	fg_buf_init(&page, &o->g->ram, 1, FG_SCATTERED);
#define ADD(create, num)     \
	before = used(o->g); \
	expect_ok(create);   \
	all += (used(o->g) - before) * (num)
	ADD(fg_pd_create(&o->g->kernel, &pd), caps->max_pd);
	ADD(fg_cq_create(&o->g->kernel, 16, &cq), caps->max_cq);
	ADD(fg_mr_create(&pd, &page, 0, &mr), caps->max_mr);
	ADD(fg_srq_create(&pd, 16, 4, &srq), caps->max_srq);
	ADD(fg_qp_create(&spec, &qp), caps->max_qp);
#undef ADD
	assert_in_range(all, 32 * MIB, PVR_CHARGE_FLOOR + 1024 * MIB / PVR_CHARGE_RAM_SHARE);
	/* All QPs with the longest send queues and atomics, connected to other hosts: 32 GiB. */
	all += caps->max_qp *
	       (sizeof(struct pvr_pipe_sq) + PVR_INFLIGHT_MAX * sizeof(struct pvr_inflight) +
		sizeof(struct pvr_responder_state) + sizeof(struct pvr_atomic_replay) + 3 * 32);
	assert_in_range(all, 0, PVR_CHARGE_FLOOR + 32768 * MIB / PVR_CHARGE_RAM_SHARE);
}

/* ---------------------------------------------------------------- connections */

T_SETUP_HOSTS(hosts, 2)
{
	hosts_open(env, &env->a, &env->b, PVR_QPT_RC, 4);
}

T_SETUP_HOSTS(connected, 2)
{
	hosts_connect(env, &env->a, &env->b, 4);
}

TEST(hosts, test_inflight_requests_are_charged_until_reset)
{
	uint64_t a = used(env->g[0]), b = used(env->g[1]);

	fg_end_connect(&env->a, &env->b, NULL);
	t_exchange(env, 1, 100);
	assert_in_range(used(env->g[0]) - a, sizeof(struct pvr_pipe_sq), UINT16_MAX);
	assert_in_range(used(env->g[1]) - b, sizeof(struct pvr_responder_state), UINT16_MAX);
	t_qp_set_state(&env->a, PVR_QPS_RESET);
	t_qp_set_state(&env->b, PVR_QPS_RESET);
	assert_int_equal(used(env->g[0]), a);
	assert_int_equal(used(env->g[1]), b);
}

/* No memory per message: a long exchange is charged what the first message was. */
TEST(connected, test_messages_are_not_charged)
{
	uint64_t a, b;

	t_exchange(env, 1, 100);
	a = used(env->g[0]);
	b = used(env->g[1]);
	use_rest(env->g[0]);
	use_rest(env->g[1]);
	for (uint32_t i = 2; i < 100; i++)
		t_exchange(env, i, 4 * PVR_PAGE_SIZE);
	return_rest(env->g[0], a);
	return_rest(env->g[1], b);
}

/* @at_limit: the guest at its limit, whose side of the connection cannot be allocated. */
static void gets_no_response(struct t_env *env, unsigned int at_limit)
{
	uint64_t before = used(env->g[at_limit]);

	use_rest(env->g[at_limit]);
	fg_end_connect(&env->a, &env->b, NULL);
	t_recv(&env->b, 1, 0, 100);
	t_send(&env->a, 2, 0, 100);
	fg_wire_run(env->wire);
	expect_no_cqe(&env->a.scq);
	fg_wire_settle(env->wire, 10 * FG_SEC);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_RETRY_EXC_ERR);
	expect_no_cqe(&env->b.rcq);
	assert_true(fg_logged(env->g[at_limit]->host, "see object-memory="));
	return_rest(env->g[at_limit], before);
	t_reconnect(env);
	t_exchange(env, 3, 100);
}

TEST(hosts, test_requester_at_its_limit_fails_by_retries)
{
	gets_no_response(env, 0);
}

TEST(hosts, test_responder_at_its_limit_does_not_respond)
{
	gets_no_response(env, 1);
}

/* The guest frees memory before the last retry: the request succeeds. */
TEST(hosts, test_request_continues_when_memory_is_free)
{
	uint64_t before = used(env->g[0]);

	use_rest(env->g[0]);
	fg_end_connect(&env->a, &env->b, NULL);
	t_recv(&env->b, 1, 0, 100);
	t_send(&env->a, 2, 0, 100);
	fg_wire_run(env->wire);
	expect_no_cqe(&env->a.scq);
	return_rest(env->g[0], before);
	fg_wire_settle(env->wire, FG_SEC);
	expect_sent(&env->a, 2);
	expect_recv(&env->b.rcq, 1, 100);
}
