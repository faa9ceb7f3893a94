// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_USER_OPS: what the kernel alone could post, from user space. */
#include "objects.h"
#include "rndv.h"

TEST_EXT(PVR_EXT_USER_OPS)

/* A user process on the first guest, connected to a kernel consumer on the second. */
struct pair {
	struct t_env *env;
	struct fg_ctx ctx;
	struct fg_end user, kernel;
};

static void pair_init(struct pair *p, struct t_env *env, uint8_t flags)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_RC, .flags = flags };

	p->env = env;
	t_open_user(&p->user, &p->ctx, p->env->g[0], &spec);
	fg_end_open(&p->kernel, p->env->g[1], PVR_QPT_RC);
	fg_end_connect(&p->user, &p->kernel, NULL);
}

#define TEST_PAIR(flags, name) TEST_OBJECT(guests, struct pair, p, pair_init, name, flags)

static struct pvrdma_sq_wqe_hdr *put(struct fg_end *end, enum pvrdma_wr_opcode op, uint32_t key)
{
	return expose_put(end, 3, op, key);
}

static void run(struct pair *p, struct fg_end *end)
{
	fg_ring_send(&end->qp);
	fg_run(p->env->host);
}

/* Return: the key of a region of @end that was not registered yet. */
static uint32_t fast_mr(struct fg_end *end)
{
	struct fg_mr mr;

	expect_ok(fast_mr_create(&end->pd, end->buf.npages, &mr));
	return mr.rkey;
}

static void write_through(struct pair *p, uint32_t rkey)
{
	struct fg_mr mr = { .start = FAST_IOVA, .rkey = rkey };

	t_rdma(&p->user, PVRDMA_WR_RDMA_WRITE, 4, 0, &mr, 0, 8);
	fg_run(p->env->host);
}

TEST_PAIR(PVR_QP_USER_OPS, test_send_with_invalidate_from_user_space)
{
	uint32_t key = fast_mr(&p->kernel);

	put_fast_reg(&p->kernel, 3, &p->kernel.buf, key);
	run(p, &p->kernel);
	expect_done(&p->kernel.scq, 3, PVRDMA_WC_FAST_REG_MR);
	write_through(p, key);
	expect_written(&p->user, 4);
	t_recv(&p->kernel, 5, 0, 100);
	put(&p->user, PVRDMA_WR_SEND_WITH_INV, key);
	run(p, &p->user);
	expect_sent(&p->user, 3);
	assert_true(expect_recv(&p->kernel.rcq, 5, 0).wc_flags & PVRDMA_WC_WITH_INVALIDATE);
	write_through(p, key);
	expect_cqe(&p->user.scq, 4, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_PAIR(PVR_QP_USER_OPS, test_send_with_invalidate_of_a_region_of_user_space)
{
	t_recv(&p->user, 5, 0, 100);
	put(&p->kernel, PVRDMA_WR_SEND_WITH_INV, p->user.mr.rkey);
	run(p, &p->kernel);
	expect_cqe(&p->kernel.scq, 3, PVRDMA_WC_REM_ACCESS_ERR);
	expect_state(&p->user, PVR_QPS_ERR);
}

TEST_PAIR(PVR_QP_USER_OPS, test_regions_of_user_space_cannot_be_invalidated)
{
	put(&p->user, PVRDMA_WR_LOCAL_INV, p->user.mr.lkey);
	run(p, &p->user);
	assert_int_equal(expect_cqe(&p->user.scq, 3, PVRDMA_WC_MW_BIND_ERR).opcode,
			 PVRDMA_WC_LOCAL_INV);
	expect_state(&p->user, PVR_QPS_ERR);
	/* The region is as it was. */
	t_reconnect_ends(&p->user, &p->kernel);
	t_ping_pong(env->host, &p->user, &p->kernel);
}

TEST_PAIR(PVR_QP_USER_OPS, test_fast_registration_stays_with_the_kernel)
{
	put_fast_reg(&p->user, 3, &p->user.buf, fast_mr(&p->user));
	run(p, &p->user);
	expect_cqe(&p->user.scq, 3, PVRDMA_WC_LOC_QP_OP_ERR);
	expect_state(&p->user, PVR_QPS_ERR);
}

static void expect_none_of_it(struct pair *p)
{
	static const enum pvrdma_wr_opcode ops[] = { PVRDMA_WR_LOCAL_INV, PVRDMA_WR_SEND_WITH_INV,
						     PVRDMA_WR_FAST_REG_MR, PVRDMA_WR_BIND_MW };

	for (size_t i = 0; i < COUNT(ops); i++) {
		t_reconnect_ends(&p->user, &p->kernel);
		put(&p->user, ops[i], p->user.mr.rkey);
		run(p, &p->user);
		expect_cqe(&p->user.scq, 3, PVRDMA_WC_LOC_QP_OP_ERR);
	}
}

TEST_PAIR(0, test_queue_pairs_without_the_flag_have_none_of_it)
{
	expect_none_of_it(p);
}

T_SETUP_EXT(other_extensions, PVR_EXT_ALL & ~PVR_EXT_USER_OPS, guests)

TEST(other_extensions, test_flag_means_nothing_without_the_extension)
{
	struct pair p;

	pair_init(&p, env, 0xff);
	expect_none_of_it(&p);
}

TEST_OBJECTS(test_unknown_flags_are_refused)
{
	struct fg_qp qp;

	for (uint32_t bit = 1; bit < 8; bit++) {
		o->qp.flags = (uint8_t)(1u << bit);
		assert_int_equal(fg_qp_create(&o->qp, &qp), EINVAL);
	}
	o->qp.flags = PVR_QP_USER_OPS;
	expect_ok(fg_qp_create(&o->qp, &qp));
}

TEST(guests, test_datagrams_carry_no_invalidation)
{
	static const enum pvrdma_wr_opcode ops[] = { PVRDMA_WR_LOCAL_INV, PVRDMA_WR_SEND_WITH_INV,
						     PVRDMA_WR_BIND_MW };
	struct fg_qp_spec spec = { .type = PVR_QPT_UD, .flags = PVR_QP_USER_OPS };
	struct pair p = { .env = env };

	t_open_user(&p.user, &p.ctx, p.env->g[0], &spec);
	for (size_t i = 0; i < COUNT(ops); i++) {
		expect_ok(fg_qp_to_reset(&p.user.qp));
		fg_end_ready(&p.user);
		put(&p.user, ops[i], p.user.mr.rkey);
		run(&p, &p.user);
		expect_cqe(&p.user.scq, 3, PVRDMA_WC_LOC_QP_OP_ERR);
	}
}
