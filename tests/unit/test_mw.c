// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_MW: memory windows of type 1 and 2B (IBTA vol. 1, 10.6.7). */
#include "core/mr.h"
#include "core/objects.h"
#include "ends.h"
#include "rndv.h"

#define TEST_EXPOSE_ON(fixture, flag, name) \
	TEST_OBJECT(fixture, struct expose, l, expose_init, name, flag)
#define TEST_EXPOSE(flag, name) TEST_EXPOSE_ON(rc_connected, flag, name)

/* The window is bound. */
static void expose_init_bound(struct expose *l, struct t_env *env, uint32_t flag)
{
	expose_init(l, env, flag);
	expose_bind(l);
}

#define TEST_BOUND(flag, name) \
	TEST_OBJECT(rc_connected, struct expose, l, expose_init_bound, name, flag)

/* ------------------------------------------------------------------- bounds */

TEST_EXT(PVR_EXT_MW | PVR_EXT_USER_OPS | PVR_EXT_MR_LAYOUT)

static const struct t_case types[] = { T_CASE(PVR_MR_FLAG_MW1), T_CASE(PVR_MR_FLAG_MW2) };

TEST_CASES(rc_connected, test_window_exposes_its_part_and_no_more, types)
{
	struct expose l;
	uint64_t first, end;

	expose_init(&l, env, row->value);
	first = l.bind.addr;
	end = first + BOUND_LEN;
	expose_bind(&l);
	expose_all_ok(&l);
	expose_write_ok(&l, end - 1, BOUND_FROM + BOUND_LEN - 1, 1);
	expose_refused(&l, PVRDMA_WR_RDMA_WRITE, l.mw.rkey, first - 1, 2);
	expose_reconnect(&l);
	expose_bind(&l);
	expose_refused(&l, PVRDMA_WR_RDMA_WRITE, l.mw.rkey, end - 1, 2);
	expose_reconnect(&l);
	expose_bind(&l);
	expose_refused(&l, PVRDMA_WR_RDMA_WRITE, l.mw.rkey, UINT64_MAX, 2);
}

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_new_window_is_not_bound)
{
	expose_refused(l, PVRDMA_WR_RDMA_READ, l->mw.rkey, 0, 1);
}

TEST_EXPOSE(PVR_MR_FLAG_MW2, test_zero_based_window)
{
	l->bind.access_flags |= PVR_ACCESS_ZERO_BASED;
	expose_bind(l);
	expose_write_ok(l, 0, BOUND_FROM, BOUND_LEN);
	expose_write_ok(l, BOUND_LEN - 1, BOUND_FROM + BOUND_LEN - 1, 1);
	expose_refused(l, PVRDMA_WR_RDMA_WRITE, l->mw.rkey, BOUND_LEN, 1);
	expose_reconnect(l);
	expose_bind(l);
	expose_all_refused(l);
}

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_window_of_a_region_whose_address_is_free)
{
	const uint64_t iova = 0x1000;
	struct pvr_cmd_create_mr req;

	req = fg_layout_request(&l->b->pd, l->b->buf.pdir, PVR_PAGE_SHIFT, iova, 100,
				l->b->buf.size - 100);
	req.access_flags |= PVR_ACCESS_MW_BIND;
	expect_ok(fg_mr_create_as(&l->b->pd, &req, &l->region));
	l->bind.addr = iova + 50;
	l->bind.mr_lkey = l->region.lkey;
	expose_bind(l);
	expose_write_ok(l, iova + 60, 160, 8000);
}

static const struct {
	const char *label;
	uint32_t access;
	enum pvrdma_wr_opcode allowed, refused;
} rights[] = {
	{ "READ, no WRITE", PVR_ACCESS_REMOTE_READ, PVRDMA_WR_RDMA_READ, PVRDMA_WR_RDMA_WRITE },
	{ "WRITE, no READ", PVR_ACCESS_REMOTE_WRITE, PVRDMA_WR_RDMA_WRITE, PVRDMA_WR_RDMA_READ },
	{ "atomics, no READ", PVR_ACCESS_REMOTE_ATOMIC, PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	  PVRDMA_WR_RDMA_READ },
	{ "READ, no atomics", PVR_ACCESS_REMOTE_READ, PVRDMA_WR_RDMA_READ,
	  PVRDMA_WR_ATOMIC_FETCH_AND_ADD },
};

TEST_CASES(rc_connected, test_rights_are_the_windows_own, rights)
{
	struct expose l;

	expose_init(&l, env, PVR_MR_FLAG_MW1);
	l.bind.access_flags = row->access;
	expose_bind(&l);
	expose_access(&l, row->allowed, l.mw.rkey, l.bind.addr, 8);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_SUCCESS);
	expose_refused(&l, row->refused, l.mw.rkey, l.bind.addr, 8);
}

TEST_BOUND(PVR_MR_FLAG_MW1, test_window_has_no_lkey)
{
	l->b->mr.lkey = l->mw.rkey;
	l->b->mr.start = l->bind.addr;
	t_send(l->b, 3, 0, 8);
	await_cqe(&l->b->scq, 3, PVRDMA_WC_LOC_PROT_ERR);
}

/* -------------------------------------------------------------------- type 1 */

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_type_1_is_bound_anew_at_will)
{
	uint32_t old;

	expose_bind(l);
	old = l->mw.rkey;
	l->bind.addr += BOUND_LEN;
	expose_bind(l);
	expose_write_ok(l, l->bind.addr, BOUND_FROM + BOUND_LEN, BOUND_LEN);
	expose_refused(l, PVRDMA_WR_RDMA_WRITE, l->mw.rkey, l->bind.addr - 1, 1);
	expose_reconnect(l);
	expose_refused(l, PVRDMA_WR_RDMA_WRITE, old, l->bind.addr, 1);
}

TEST_BOUND(PVR_MR_FLAG_MW1, test_type_1_is_unbound_by_length_0)
{
	l->bind.length = 0;
	l->bind.mr_lkey = 0;
	expose_bind(l);
	expose_all_refused(l);
	expose_reconnect(l);
	expect_ok(fg_mr_destroy(&l->region));
	expect_ok(fg_mr_create(&l->b->pd, &l->b->buf, FG_ACCESS_ALL | PVR_ACCESS_MW_BIND,
			       &l->region));
	l->bind.length = BOUND_LEN;
	l->bind.mr_lkey = l->region.lkey;
	expose_bind(l);
	expose_all_ok(l);
}

TEST_BOUND(PVR_MR_FLAG_MW1, test_type_1_is_for_all_of_its_domain)
{
	/* It also stays when the QP that has bound it is reset. */
	expose_reconnect(l);
	expose_all_ok(l);
}

TEST_BOUND(PVR_MR_FLAG_MW1, test_type_1_cannot_be_invalidated)
{
	expose_invalidate(l, l->b, l->mw.rkey);
	expect_cqe(&l->b->scq, 901, PVRDMA_WC_MW_BIND_ERR);
	expose_reconnect(l);
	t_recv(l->b, 2, 0, 8);
	t_post(l->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND_WITH_INV, .imm = l->mw.rkey);
	await_cqe(&l->a->scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect_cqe(&l->b->rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expose_reconnect(l);
	expose_all_ok(l);
}

/* ------------------------------------------------------------------- type 2B */

TEST_EXPOSE(PVR_MR_FLAG_MW2, test_type_2_is_invalidated_by_its_owner)
{
	uint32_t old;

	expose_bind(l);
	expose_all_ok(l);
	expose_invalidated(l);
	old = l->mw.rkey;
	expose_bind(l);
	expose_all_ok(l);
	expose_refused(l, PVRDMA_WR_RDMA_WRITE, old, l->bind.addr, 1);
	expose_reconnect(l);
	expose_bind(l);
	expose_invalidated(l);
	expose_all_refused(l);
}

TEST_EXPOSE(PVR_MR_FLAG_MW2, test_type_2_is_invalidated_by_a_peer)
{
	struct pvrdma_cqe cqe;

	expose_bind(l);
	t_recv(l->b, 2, 0, 8);
	t_post(l->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND_WITH_INV, .imm = l->mw.rkey);
	await_sent(l->a, 1);
	cqe = expect_recv(&l->b->rcq, 2, 0);
	assert_true(cqe.wc_flags & PVRDMA_WC_WITH_INVALIDATE);
	assert_memory_equal(&cqe.imm_data, &l->mw.rkey, sizeof(l->mw.rkey));
	expose_all_refused(l);
}

/*
 * The guest chooses the low byte of the key, so any key with the window's index names the
 * window.
 */
TEST_EXPOSE(PVR_MR_FLAG_MW2, test_type_2_is_named_by_its_index)
{
	uint32_t first;

	first = l->mw.rkey;
	expose_bind(l);
	t_post(l->b, .wr_id = 1, .opcode = PVRDMA_WR_LOCAL_INV, .imm = l->mw.rkey);
	await_done(&l->b->scq, 1, PVRDMA_WC_LOCAL_INV);
	assert_int_not_equal(l->mw.rkey, first);
	l->bind.mw_rkey = first;
	expose_bind(l);
	expose_all_ok(l);
}

TEST_BOUND(PVR_MR_FLAG_MW2, test_type_2_must_be_invalid_to_be_bound)
{
	expose_bind_refused(l);
}

TEST_EXPOSE(PVR_MR_FLAG_MW2, test_type_2_is_not_unbound_by_length_0)
{
	l->bind.length = 0;
	expose_bind_refused(l);
}

TEST_EXPOSE(PVR_MR_FLAG_MW2, test_type_2_that_is_not_bound_cannot_be_invalidated)
{
	expose_invalidate(l, l->b, l->mw.rkey);
	expect_cqe(&l->b->scq, 901, PVRDMA_WC_MW_BIND_ERR);
	expect_state(l->b, PVR_QPS_ERR);
}

/* Another QP of the same PD, connected to one of a's guest. */
static void other_pair(struct expose *l, struct fg_end *near, struct fg_end *far)
{
	fg_end_open(far, l->a->guest, PVR_QPT_RC);
	*near = *l->b;
	near->qp = t_qp_create(l->b, (struct fg_qp_spec){ 0 });
	fg_end_connect(near, far, NULL);
}

/* @far writes through the window of @rkey; a failure leaves the pair connected anew. */
static void write_from(struct expose *l, struct fg_end *near, struct fg_end *far, uint32_t rkey,
		       uint32_t status)
{
	l->region.rkey = rkey;
	t_rdma(far, PVRDMA_WR_RDMA_WRITE, 7, 0, &l->region, BOUND_FROM, 8);
	await_cqe(&far->scq, 7, status);
	if (status == PVRDMA_WC_SUCCESS)
		return;
	t_reconnect_ends(near, far);
}

TEST_EXPOSE(PVR_MR_FLAG_MW2, test_type_2_is_its_queue_pairs_alone)
{
	struct fg_end near, far;

	other_pair(l, &near, &far);
	expose_bind(l);
	write_from(l, &near, &far, l->mw.rkey, PVRDMA_WC_REM_ACCESS_ERR);
	expose_invalidate(l, &near, l->mw.rkey);
	expect_cqe(&l->b->scq, 901, PVRDMA_WC_MW_BIND_ERR);
	expose_all_ok(l);
	/* Once free it may be the other one's. */
	expose_invalidated(l);
	t_reconnect_ends(&near, &far);
	expose_put_bind(&near, BIND_ID, &l->bind);
	expose_run(l, &near);
	expect_done(&l->b->scq, BIND_ID, PVRDMA_WC_BIND_MW);
	write_from(l, &near, &far, l->bind.new_rkey, PVRDMA_WC_SUCCESS);
}

TEST_BOUND(PVR_MR_FLAG_MW2, test_reset_frees_windows_of_type_2)
{
	assert_int_equal(fg_mr_destroy(&l->region), EBUSY);
	expose_reconnect(l);
	expose_all_refused(l);
	expect_ok(fg_mr_destroy(&l->region));
}

TEST_BOUND(PVR_MR_FLAG_MW2, test_destroyed_queue_pair_frees_its_windows)
{
	expect_ok(fg_qp_destroy(&l->b->qp));
	expect_ok(fg_mr_destroy(&l->region));
	expect_ok(fg_mr_destroy(&l->mw));
}

#define STEP_WINDOWS (PVR_STEP_WORK / PVR_WORK_WINDOW)
#define MANY (2 * STEP_WINDOWS + 100) /* windows: three steps */

static uint32_t bound_windows(struct fg_guest *g)
{
	const struct pvr_mr *mr;
	uint32_t n = 0;

	for (uint32_t handle = 0; handle < g->adapter->mrs.size; handle++) {
		mr = pvr_table_get(&g->adapter->mrs, handle);
		n += mr && pvr_mr_is_window(mr) && mr->where;
	}
	return n;
}

/* One queue pair has bound them. */
static void bind_many(struct expose *l, struct t_env *env)
{
	expose_init(l, env, PVR_MR_FLAG_MW2);
	for (uint32_t i = 1; i < MANY; i++) {
		expose_bind(l);
		expect_ok(fg_mw_create(&l->b->pd, PVR_MR_FLAG_MW2, &l->mw));
		l->bind.mw_rkey = l->mw.rkey;
		l->bind.new_rkey = l->mw.rkey ^ 0x55;
	}
	expose_bind(l);
}

static void begin_destroy(struct fg_qp *qp)
{
	const struct pvr_cmd_handle req = {
		.hdr = FG_CMD_HDR(PVR_CMD_DESTROY_QP),
		.handle = qp->handle,
	};

	fg_cmd_begin(qp->guest, &req, sizeof(req));
}

static void begin_reset(struct fg_qp *qp)
{
	const struct pvr_cmd_modify_qp req = {
		.hdr = FG_CMD_HDR(PVR_CMD_MODIFY_QP),
		.qp_handle = qp->handle,
		.attr_mask = PVR_QPA_STATE,
		.attrs.qp_state = PVR_QPS_RESET,
	};

	fg_cmd_begin(qp->guest, &req, sizeof(req));
}

static const struct {
	const char *label;
	void (*begin)(struct fg_qp *qp);
} ends_of_qps[] = { { "DESTROY_QP", begin_destroy }, { "MODIFY_QP", begin_reset } };

TEST_CASES(rc_connected, test_many_windows_are_freed_in_steps, ends_of_qps)
{
	struct fg_guest *g = env->b.guest;
	uint32_t left, before = MANY, steps = 0;
	struct expose l;

	bind_many(&l, env);
	assert_int_equal(bound_windows(g), MANY);
	row->begin(&env->b.qp);
	for (; (left = bound_windows(g)); before = left, steps++) {
		assert_true(pvr_adapter_busy(g->adapter));
		assert_in_range(before - left, 1, STEP_WINDOWS + 1);
		pvr_engine_run(g->host->engine, 0);
	}
	assert_int_equal(steps, 2);
	assert_false(pvr_adapter_busy(g->adapter));
	assert_int_equal(fg_reg_read(g, PVR_REG_ERR), 0);
	expect_ok(fg_mr_destroy(&l.region));
}

/* Between the steps it still binds windows. */
TEST_CASES(rc_connected, test_windows_bound_between_the_steps_are_freed, ends_of_qps)
{
	struct fg_guest *g = env->b.guest;
	struct expose l;

	bind_many(&l, env);
	expect_ok(fg_mw_create(&l.b->pd, PVR_MR_FLAG_MW2, &l.mw));
	l.bind.mw_rkey = l.mw.rkey;
	l.bind.new_rkey = l.mw.rkey ^ 0x55;
	row->begin(&env->b.qp);
	expose_put_bind(l.b, BIND_ID, &l.bind);
	expose_run(&l, l.b);
	expect_done(&l.b->scq, BIND_ID, PVRDMA_WC_BIND_MW);
	assert_int_equal(bound_windows(g), 0);
	assert_int_equal(fg_reg_read(g, PVR_REG_ERR), 0);
	expect_ok(fg_mr_destroy(&l.region));
}

TEST_BOUND(PVR_MR_FLAG_MW2, test_queue_pair_in_error_keeps_its_windows)
{
	expect_ok(fg_qp_to_err(&l->b->qp));
	assert_int_equal(fg_mr_destroy(&l->region), EBUSY);
}

/* --------------------------------------------------------------------- life */

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_region_with_windows_is_busy)
{
	struct fg_mr second;

	expect_ok(fg_mw_create(&l->b->pd, PVR_MR_FLAG_MW2, &second));
	expose_bind(l);
	l->bind.mw_rkey = second.rkey;
	l->bind.new_rkey = second.rkey;
	expose_bind(l);
	assert_int_equal(fg_mr_destroy(&l->region), EBUSY);
	expect_ok(fg_mr_destroy(&l->mw));
	assert_int_equal(fg_mr_destroy(&l->region), EBUSY);
	expect_ok(fg_mr_destroy(&second));
	expect_ok(fg_mr_destroy(&l->region));
}

TEST_BOUND(PVR_MR_FLAG_MW2, test_destroyed_window_is_gone)
{
	expect_ok(fg_mr_destroy(&l->mw));
	assert_int_equal(fg_mr_destroy(&l->mw), EINVAL);
	expose_all_refused(l);
}

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_windows_hold_their_domain)
{
	struct fg_mr mw;
	struct fg_pd pd;

	expect_ok(fg_pd_create(&l->b->guest->kernel, &pd));
	expect_ok(fg_mw_create(&pd, PVR_MR_FLAG_MW1, &mw));
	assert_int_equal(fg_pd_destroy(&pd), EBUSY);
	expect_ok(fg_mr_destroy(&mw));
	expect_ok(fg_pd_destroy(&pd));
}

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_windows_are_counted_apart)
{
	struct pvr_adapter_stats before, after;
	struct fg_mr mw;

	before = fg_stats(l->b->guest);
	expect_ok(fg_mw_create(&l->b->pd, PVR_MR_FLAG_MW2, &mw));
	after = fg_stats(l->b->guest);
	assert_int_equal(after.mws, before.mws + 1);
	assert_int_equal(after.mrs, before.mrs);
	expect_ok(fg_mr_destroy(&mw));
	assert_int_equal(fg_stats(l->b->guest).mws, before.mws);
	assert_int_equal(fg_stats(l->b->guest).mrs, before.mrs);
}

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_unplugged_memory_cannot_be_reached_by_windows)
{
	const uint64_t gpa = T_SPARE_GPA;
	struct pvr_cmd_create_mr req;

	t_plug_spare(l->b->guest);
	req = fg_layout_request(&l->b->pd, fg_pdir(&l->b->guest->ram, 2, &gpa, 1), PVR_PAGE_SHIFT,
				0, 0, PVR_PAGE_SIZE);
	req.access_flags |= PVR_ACCESS_MW_BIND;
	expect_ok(fg_mr_create_as(&l->b->pd, &req, &l->region));
	l->bind.mr_lkey = l->region.lkey;
	l->bind.addr = 100;
	l->bind.length = 200;
	expose_bind(l);
	l->a->mr.va[0] = 7;
	expose_access(l, PVRDMA_WR_RDMA_WRITE, l->mw.rkey, 100, 1);
	expect_written(l->a, 1);
	assert_int_equal(t_spare[100], 7);
	t_unplug_spare(l->b->guest);
	expose_refused(l, PVRDMA_WR_RDMA_WRITE, l->mw.rkey, 100, 1);
	expose_reconnect(l);
	l->bind.new_rkey = l->mw.rkey;
	expose_bind_refused(l);
}

TEST_EXPOSE(PVR_MR_FLAG_MW2, test_requests_are_bound_in_order)
{
	expose_put_bind(l->b, 1, &l->bind)->send_flags = PVR_SEND_FENCE;
	expose_put(l->b, 2, PVRDMA_WR_LOCAL_INV, l->bind.new_rkey);
	l->bind.mw_rkey = l->bind.new_rkey;
	l->bind.new_rkey ^= 3;
	expose_put_bind(l->b, 3, &l->bind);
	t_recv(l->a, 4, 0, 8);
	t_send(l->b, 5, 0, 8);
	expose_run(l, l->b);
	/* The first was not signaled. */
	expect_done(&l->b->scq, 2, PVRDMA_WC_LOCAL_INV);
	expect_done(&l->b->scq, 3, PVRDMA_WC_BIND_MW);
	expect_sent(l->b, 5);
	l->mw.rkey = l->bind.new_rkey;
	expose_all_ok(l);
}

TEST(rc, test_user_space_binds_windows)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_RC, .flags = PVR_QP_USER_OPS };
	struct fg_ctx ctx;
	struct expose l;

	fg_end_close(&env->b);
	t_open_user(&env->b, &ctx, env->g[1], &spec);
	expose_init(&l, env, PVR_MR_FLAG_MW2);
	fg_end_connect(l.a, l.b, NULL);
	expose_bind(&l);
	expose_all_ok(&l);
	expose_invalidated(&l);
	expose_bind(&l);
	/* The process dies with the window bound. */
	expect_ok(fg_ctx_destroy(&ctx));
	assert_int_equal(fg_stats(env->g[1]).mws, 0);
	assert_int_equal(fg_stats(env->g[1]).mrs, 0);
}

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_windows_need_the_extension)
{
	struct fg_guest *stock = t_guest_with_ext(env, 3, PVR_EXT_ALL & ~PVR_EXT_MW);
	struct fg_end end;
	struct fg_mr mw;

	assert_int_equal(env->g[0]->dsr->caps.max_mw, env->g[0]->dsr->caps.max_mr);
	assert_int_equal(stock->dsr->caps.max_mw, 0);
	fg_end_open(&end, stock, PVR_QPT_RC);
	assert_int_equal(fg_mw_create(&end.pd, PVR_MR_FLAG_MW1, &mw), EINVAL);
	assert_int_equal(fg_mw_create(&end.pd, PVR_MR_FLAG_MW2, &mw), EINVAL);
	fg_end_connect(&end, &end, NULL);
	expose_put_bind(&end, BIND_ID, &l->bind);
	expose_run(l, &end);
	assert_int_equal(expect_cqe(&end.scq, BIND_ID, PVRDMA_WC_LOC_QP_OP_ERR).opcode,
			 PVRDMA_WC_SEND);
}

static const struct t_case bad_types[] = { T_CASE(PVR_MR_FLAG_MW1 | PVR_MR_FLAG_MW2),
					   T_CASE(PVR_MR_FLAG_MW1 | PVR_MR_FLAG_LAYOUT),
					   T_CASE(PVR_MR_FLAG_MW2 | PVR_MR_FLAG_FRMR) };

TEST_CASES(rc_connected, test_window_is_of_one_type, bad_types)
{
	struct fg_mr mw;

	assert_int_equal(fg_mw_create(&env->b.pd, row->value, &mw), EINVAL);
}

/* --------------------------------------------------- binds that are refused (10.6.7.2) */

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_region_must_allow_windows)
{
	l->bind.mr_lkey = l->b->mr.lkey; /* all access but that */
	expose_bind_refused(l);
}

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_writing_windows_need_local_write_of_the_region)
{
	expect_ok(fg_mr_create(&l->b->pd, &l->b->buf, PVR_ACCESS_MW_BIND, &l->region));
	l->bind.mr_lkey = l->region.lkey;
	l->bind.access_flags = PVR_ACCESS_REMOTE_WRITE;
	expose_bind_refused(l);
	l->bind.access_flags = PVR_ACCESS_REMOTE_ATOMIC;
	expose_bind_refused(l);
	l->bind.access_flags = PVR_ACCESS_REMOTE_READ;
	expose_bind(l);
	expose_access(l, PVRDMA_WR_RDMA_READ, l->mw.rkey, l->bind.addr, 8);
	expect_done(&l->a->scq, 1, PVRDMA_WC_RDMA_READ);
}

/* One field of the request is wrong; nothing must be bound then. */
#define EXPECT_BAD_BIND(l, field, value)                                             \
	do {                                                                         \
		const struct pvr_wqe_bind_mw good = (l)->bind;                       \
                                                                                     \
		(l)->bind.field = (value);                                           \
		expose_bind_refused(l);                                              \
		(l)->bind = good;                                                    \
		assert_int_equal(fg_stats((l)->b->guest).mws, 1);                    \
		expose_refused(l, PVRDMA_WR_RDMA_READ, good.new_rkey, good.addr, 1); \
		expose_reconnect(l);                                                 \
	} while (0)

static void expect_bad_binds(struct expose *l)
{
	const uint64_t start = l->region.start, length = l->region.length;
	struct fg_mr dma;

	expect_ok(fg_mr_create_dma(&l->b->pd, &dma));
	EXPECT_BAD_BIND(l, addr, start - 1);
	EXPECT_BAD_BIND(l, addr, start + length - BOUND_LEN + 1);
	EXPECT_BAD_BIND(l, addr, start + length);
	EXPECT_BAD_BIND(l, addr, 0);
	EXPECT_BAD_BIND(l, addr, UINT64_MAX);
	EXPECT_BAD_BIND(l, length, length - BOUND_FROM + 1);
	EXPECT_BAD_BIND(l, length, UINT64_MAX);
	EXPECT_BAD_BIND(l, length, -(uint64_t)BOUND_FROM);
	EXPECT_BAD_BIND(l, mw_rkey, l->mw.rkey ^ 0x100);
	EXPECT_BAD_BIND(l, mw_rkey, l->region.rkey);
	EXPECT_BAD_BIND(l, mw_rkey, 0);
	EXPECT_BAD_BIND(l, new_rkey, l->bind.new_rkey ^ 0x100);
	EXPECT_BAD_BIND(l, new_rkey, 0);
	EXPECT_BAD_BIND(l, mr_lkey, l->region.lkey ^ 1);
	EXPECT_BAD_BIND(l, mr_lkey, l->mw.rkey);
	EXPECT_BAD_BIND(l, mr_lkey, UINT32_MAX);
	EXPECT_BAD_BIND(l, mr_lkey, dma.lkey);
	EXPECT_BAD_BIND(l, access_flags, PVR_ACCESS_LOCAL_WRITE);
	EXPECT_BAD_BIND(l, access_flags, PVR_ACCESS_MW_BIND);
	EXPECT_BAD_BIND(l, access_flags, 1u << 31);
	expose_bind(l);
	expose_all_ok(l);
}

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_bad_binds_of_type_1_fail)
{
	EXPECT_BAD_BIND(l, mw_rkey, l->mw.rkey ^ 1);
	expect_bad_binds(l);
}

TEST_EXPOSE(PVR_MR_FLAG_MW2, test_bad_binds_of_type_2_fail)
{
	expect_bad_binds(l);
}

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_bind_in_another_domain_fails)
{
	struct fg_mr region, mw;
	struct fg_pd pd;

	expect_ok(fg_pd_create(&l->b->guest->kernel, &pd));
	expect_ok(fg_mr_create(&pd, &l->b->buf, FG_ACCESS_ALL | PVR_ACCESS_MW_BIND, &region));
	expect_ok(fg_mw_create(&pd, PVR_MR_FLAG_MW1, &mw));
	l->bind.mr_lkey = region.lkey;
	expose_bind_refused(l);
	l->bind.mr_lkey = l->region.lkey;
	l->bind.mw_rkey = mw.rkey;
	l->bind.new_rkey = mw.rkey;
	expose_bind_refused(l);
}

TEST_EXPOSE(PVR_MR_FLAG_MW1, test_key_of_a_region_is_no_windows)
{
	struct pvr_cmd_create_mr req = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
					 .pd_handle = l->b->pd.handle,
					 .start = l->region.start,
					 .length = l->region.length,
					 .flags = PVR_MR_FLAG_FRMR,
					 .access_flags = FG_ACCESS_ALL | PVR_ACCESS_MW_BIND,
					 .nchunks = 4 };
	struct fg_mr fast; /* as if the bind were within it and permitted */

	expect_ok(fg_mr_create_as(&l->b->pd, &req, &fast));
	l->bind.mw_rkey = l->bind.new_rkey = l->b->mr.rkey;
	expose_bind_refused(l);
	l->bind.mw_rkey = l->bind.new_rkey = fast.rkey;
	expose_bind_refused(l);
	/* Nor is a window a region to bind to, or one that has no memory of its own yet. */
	l->bind.mw_rkey = l->bind.new_rkey = l->mw.rkey;
	l->bind.mr_lkey = fast.lkey;
	expose_bind_refused(l);
	l->bind.mr_lkey = l->mw.rkey;
	expose_bind_refused(l);
	/* The region is what it was. */
	t_rdma(l->a, PVRDMA_WR_RDMA_WRITE, 7, 0, &l->b->mr, 0, 8);
	await_written(l->a, 7);
}

TEST_CASES(rc_connected, test_window_of_another_domain_is_refused, types)
{
	struct fg_end near, far;
	struct expose l;

	t_open_pair(&far, env->g[0], &near, env->g[1]);
	expose_init(&l, env, row->value);
	expose_bind(&l);
	write_from(&l, &near, &far, l.mw.rkey, PVRDMA_WC_REM_ACCESS_ERR);
	expose_all_ok(&l);
}

TEST_BOUND(PVR_MR_FLAG_MW1, test_failed_bind_leaves_type_1_as_it_was)
{
	l->bind.length = UINT64_MAX;
	expose_bind_refused(l);
	expose_all_ok(l);
}

/* IBTA table 38: UC supports binds, but reports no refused access. */
TEST_EXPOSE_ON(uc_connected, PVR_MR_FLAG_MW2, test_unreliable_connections_bind_windows)
{
	expose_bind(l);
	expose_all_ok(l);
	memset(l->b->buf.va, 0, l->b->buf.size);
	l->a->mr.va[0] = 1;
	expose_access(l, PVRDMA_WR_RDMA_WRITE, l->mw.rkey, l->region.start + BOUND_FROM - 1, 1);
	expect_written(l->a, 1);
	assert_int_equal(l->b->buf.va[BOUND_FROM - 1], 0);
	expose_invalidated(l);
	expose_access(l, PVRDMA_WR_RDMA_WRITE, l->mw.rkey, l->region.start + BOUND_FROM, 1);
	expect_written(l->a, 1);
	assert_int_equal(l->b->buf.va[BOUND_FROM], 0);
	expect_state(l->b, PVR_QPS_RTS);
}

TEST_EXPOSE_ON(ud_ready, PVR_MR_FLAG_MW1, test_datagram_queue_pairs_bind_nothing)
{
	expose_put_bind(l->b, BIND_ID, &l->bind);
	expose_run(l, l->b);
	expect_cqe(&l->b->scq, BIND_ID, PVRDMA_WC_LOC_QP_OP_ERR);
}
