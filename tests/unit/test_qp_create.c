// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* CREATE_QP and DESTROY_QP. */
#include "objects.h"

#include "core/adapter.h"

struct qp_env {
	struct fg_guest *g;
	struct objects o;
	struct fg_buf buf;
	struct pvr_cmd_create_qp good, req;
	struct pvr_resp_create_qp resp;
};

static void qp_env_init(struct qp_env *q, struct t_env *env)
{
	objects_init(&q->o, env);
	q->g = q->o.g;
	q->good = fg_qp_request(&q->o.qp);
	fg_buf_init(&q->buf, &q->g->ram, q->good.total_chunks, FG_SCATTERED);
	q->good.pdir_dma = q->buf.pdir;
	q->req = q->good;
}

#define TEST_QP(name) TEST_OBJECT(guest, struct qp_env, q, qp_env_init, name)
#define TEST_QP_CASES(name, rows) \
	TEST_OBJECT_CASES(guest, struct qp_env, q, qp_env_init, name, rows)

static uint32_t create(struct qp_env *q)
{
	return fg_create_qp(q->g, &q->req, &q->resp);
}

static void destroy(struct qp_env *q)
{
	expect_ok(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, q->resp.qp_handle));
}

/* Requests are from here on for q->o.qp, in the same pages. */
static void use_spec(struct qp_env *q)
{
	q->req = fg_qp_request(&q->o.qp);
	q->req.pdir_dma = q->buf.pdir;
}

/* The request as it stands must be refused and leave nothing; the good one still works. */
static void expect_qp_refused(struct qp_env *q)
{
	expect_refused(create(q));
	assert_int_equal(fg_stats(q->g).qps, 0);
	q->req = q->good;
	expect_ok(create(q));
	destroy(q);
}

TEST_QP(test_create_rc_qp)
{
	expect_ok(create(q));
	assert_in_range(q->resp.qp_handle, 1, q->g->dsr->caps.max_qp - 1);
	assert_in_range(q->resp.qpn, 2, (1u << 24) - 2);
	assert_int_equal(q->resp.max_send_wr, q->req.max_send_wr);
	assert_int_equal(q->resp.max_recv_wr, q->req.max_recv_wr);
	assert_int_equal(q->resp.max_send_sge, q->req.max_send_sge);
	assert_int_equal(q->resp.max_recv_sge, q->req.max_recv_sge);
	assert_int_equal(q->resp.max_inline_data, 0);
	assert_int_equal(fg_stats(q->g).qps, 1);
}

TEST_QP(test_create_ud_qp)
{
	q->req.qp_type = PVR_QPT_UD;
	expect_ok(create(q));
	assert_in_range(q->resp.qpn, 2, (1u << 24) - 2);
}

TEST_QP(test_create_gsi_qp_has_number_one)
{
	q->req.qp_type = PVR_QPT_GSI;
	expect_ok(create(q));
	assert_int_equal(q->resp.qpn, 1);
	assert_in_range(q->resp.qp_handle, 1, q->g->dsr->caps.max_qp - 1);
}

TEST_QP(test_second_gsi_qp_is_rejected)
{
	struct pvr_resp_create_qp other;

	q->req.qp_type = PVR_QPT_GSI;
	expect_ok(create(q));
	expect_refused(fg_create_qp(q->g, &q->req, &other));
	destroy(q);
	expect_ok(create(q));
	assert_int_equal(q->resp.qpn, 1);
}

TEST_OBJECTS(test_gsi_qp_as_ib_mad_makes_it)
{
	struct fg_qp_spec spec = { .pd = &o->pd,
				   .type = PVR_QPT_GSI,
				   .sq_wr = 128,
				   .rq_wr = 512,
				   .sq_sge = 2,
				   .rq_sge = 1,
				   .sig_all = true };
	struct fg_cq cq;
	struct fg_qp qp;

	expect_ok(fg_cq_create(&o->g->kernel, 1024, &cq));
	spec.scq = spec.rcq = &cq;
	expect_ok(fg_qp_create(&spec, &qp));
	assert_int_equal(qp.qpn, 1);
}

TEST_QP(test_other_types_are_refused)
{
	static const uint8_t bad[] = { 0, 3, 5, 6, 7, 8, 9, 10, 11, 128, 255 };

	for (size_t i = 0; i < COUNT(bad); i++) {
		uint32_t err;

		q->req.qp_type = bad[i];
		err = create(q);
		assert_true(err == EOPNOTSUPP || err == EINVAL);
		q->req = q->good;
	}
}

TEST_QP(test_handles_and_numbers_are_distinct)
{
	struct pvr_resp_create_qp all[50];

	for (int i = 0; i < 50; i++) {
		expect_ok(create(q));
		all[i] = q->resp;
		for (int k = 0; k < i; k++) {
			assert_int_not_equal(all[k].qp_handle, all[i].qp_handle);
			assert_int_not_equal(all[k].qpn, all[i].qpn);
		}
	}
}

/* A late peer or a stale completion must not hit the next queue pair. */
TEST_QP(test_numbers_and_handles_are_not_given_out_again_soon)
{
	enum { N = 1000 };
	static uint32_t qpn[N];
	uint32_t last_handle = 0;

	for (int i = 0; i < N; i++) {
		expect_ok(create(q));
		destroy(q);
		assert_int_not_equal(q->resp.qp_handle, last_handle);
		last_handle = q->resp.qp_handle;
		qpn[i] = q->resp.qpn;
		for (int k = 0; k < i; k++)
			assert_int_not_equal(qpn[k], qpn[i]);
	}
}

T_SETUP(version_19, unprobed)
{
	env->g[0]->config.driver_version = 19;
	expect_ok(fg_guest_boot(env->g[0]));
}

#define TEST_QP_19(name) TEST_OBJECT(version_19, struct qp_env, q, qp_env_init, name)

TEST_QP_19(test_driver_below_version_20_gets_the_short_response)
{
	struct pvr_resp_create_qp_v1 v1;

	expect_ok(fg_cmd(q->g, &q->req, sizeof(q->req), &v1, sizeof(v1)));
	assert_in_range(v1.qpn, 2, q->g->dsr->caps.max_qp - 1);
	assert_int_equal(v1.max_send_wr, q->req.max_send_wr);
	assert_int_equal(v1.max_recv_wr, q->req.max_recv_wr);
	assert_int_equal(v1.max_send_sge, q->req.max_send_sge);
	assert_int_equal(v1.max_recv_sge, q->req.max_recv_sge);
	assert_int_equal(v1.max_inline_data, 0);
	/* Number and handle in one. */
	expect_ok(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, v1.qpn));
}

TEST_QP_19(test_gsi_number_is_the_handle_below_version_20)
{
	struct pvr_resp_create_qp_v1 first, gsi;

	expect_ok(fg_cmd(q->g, &q->req, sizeof(q->req), &first, sizeof(first)));
	q->req.qp_type = PVR_QPT_GSI;
	expect_ok(fg_cmd(q->g, &q->req, sizeof(q->req), &gsi, sizeof(gsi)));
	assert_int_equal(gsi.qpn, 1);
	expect_ok(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, 1));
	expect_ok(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, first.qpn));
}

#define QP(member, value) T_MEMBER(struct pvr_cmd_create_qp, member, value)

/* Of a request for 64 + 64 work requests of 4 SGEs, in 7 pages, 4 of them for sends. */
static const struct {
	const char *label;
	struct t_member wrong[5];
} bad_members[] = {
	{ "unknown PD", { QP(pd_handle, 999) } },
	{ "PD 2^32 - 1", { QP(pd_handle, UINT32_MAX) } },
	{ "unknown send CQ", { QP(send_cq_handle, 999) } },
	{ "send CQ 2^32 - 1", { QP(send_cq_handle, UINT32_MAX) } },
	{ "unknown receive CQ", { QP(recv_cq_handle, 999) } },
	{ "unknown SRQ",
	  { QP(is_srq, 1), QP(srq_handle, 55), QP(max_recv_wr, 0), QP(max_recv_sge, 0),
	    QP(total_chunks, 5) } },
	{ "one send page more than pages", { QP(send_chunks, 8) } },
	{ "2^16 - 1 send pages", { QP(send_chunks, UINT16_MAX) } },
	{ "no header page", { QP(send_chunks, 7) } },
	{ "no page", { QP(total_chunks, 0) } },
	{ "no page, no send page", { QP(total_chunks, 0), QP(send_chunks, 0) } },
	{ "header page only", { QP(total_chunks, 1), QP(send_chunks, 0) } },
	{ "2^16 - 1 pages", { QP(total_chunks, UINT16_MAX) } },
	{ "a table more than the directory has", { QP(total_chunks, 513) } },
	{ "twice the send requests", { QP(max_send_wr, 128) } },
	{ "four times the receive requests", { QP(max_recv_wr, 256) } },
	{ "four times the send SGEs", { QP(max_send_sge, 16) } },
	{ "four times the receive SGEs", { QP(max_recv_sge, 16) } },
	{ "63 send requests, no power of two", { QP(max_send_wr, 63) } },
	{ "33 receive requests, no power of two", { QP(max_recv_wr, 33) } },
};

TEST_QP_CASES(test_create_qp_rejects_bad_members, bad_members)
{
	assert_int_equal(q->good.total_chunks, 7);
	assert_int_equal(q->good.send_chunks, 4);
	for (size_t i = 0; i < COUNT(row->wrong); i++)
		t_store(&q->req, &row->wrong[i]);
	expect_qp_refused(q);
}

TEST_QP(test_create_qp_rejects_one_page_too_few)
{
	q->req.send_chunks -= 1;
	expect_qp_refused(q);
	q->req.total_chunks -= 1;
	expect_qp_refused(q);
}

TEST_QP(test_create_qp_rejects_objects_of_another_context)
{
	struct fg_ctx ctx;
	struct fg_cq foreign;
	struct fg_pd foreign_pd;
	struct fg_srq foreign_srq;

	expect_ok(fg_ctx_create(q->g, &ctx));
	expect_ok(fg_cq_create(&ctx, 64, &foreign));
	q->req.send_cq_handle = foreign.handle;
	expect_qp_refused(q);
	q->req.recv_cq_handle = foreign.handle;
	expect_qp_refused(q);
	expect_ok(fg_pd_create(&ctx, &foreign_pd));
	expect_ok(fg_srq_create(&foreign_pd, 16, 1, &foreign_srq));
	q->req.pd_handle = foreign_pd.handle;
	expect_qp_refused(q);
	q->req.is_srq = 1;
	q->req.srq_handle = foreign_srq.handle;
	q->req.max_recv_wr = q->req.max_recv_sge = 0;
	expect_qp_refused(q);
}

static const struct {
	const char *label;
	struct t_member wrong;
} too_large[] = {
	{ "send requests", QP(max_send_wr, 4 * PVR_MAX_QP_WR) },
	{ "send SGEs", QP(max_send_sge, 4 * PVR_MAX_SGE) },
	{ "receive requests", QP(max_recv_wr, 4 * PVR_MAX_QP_WR) },
	{ "receive SGEs", QP(max_recv_sge, 4 * PVR_MAX_SGE) },
};

TEST_QP_CASES(test_create_qp_rejects_sizes_beyond_the_caps, too_large)
{
	uint32_t page;

	assert_int_equal(q->g->dsr->caps.max_qp_wr, PVR_MAX_QP_WR);
	assert_int_equal(q->g->dsr->caps.max_sge, PVR_MAX_SGE);
	q->req.pdir_dma = t_wide_pdir(q->g, UINT16_MAX, &page);
	q->req.total_chunks = 60000;
	q->req.send_chunks = 30000;
	t_store(&q->req, &row->wrong);
	expect_qp_refused(q);
}

TEST_QP(test_create_qp_of_the_largest_size)
{
	uint32_t page;

	q->o.qp.sq_wr = q->o.qp.rq_wr = q->g->dsr->caps.max_qp_wr;
	q->o.qp.sq_sge = q->o.qp.rq_sge = q->g->dsr->caps.max_sge;
	use_spec(q);
	q->req.pdir_dma = t_wide_pdir(q->g, q->req.total_chunks, &page);
	expect_ok(create(q));
}

TEST_QP(test_create_qp_rejects_products_that_overflow)
{
	static const uint32_t wr[] = { 0x80000000, 0x40000000, 0x04000000, 0x02000000 };
	static const uint32_t sge[] = { 0, 1, 3, 27, 0x08000000, 0x10000000, 0x80000000 };

	for (size_t i = 0; i < COUNT(wr); i++) {
		for (size_t k = 0; k < COUNT(sge); k++) {
			q->req.max_send_wr = wr[i];
			q->req.max_send_sge = sge[k];
			expect_qp_refused(q);
			q->req.max_recv_wr = wr[i];
			q->req.max_recv_sge = sge[k];
			expect_qp_refused(q);
		}
	}
}

TEST_QP(test_create_qp_rejects_roundings_that_overflow)
{
	static const uint32_t bad[] = { 0x0ffffffb, 0x0fffffff, 0x10000000, 0x7fffffff,
					0x80000001, 0xfffffff0, UINT32_MAX };

	for (size_t i = 0; i < COUNT(bad); i++) {
		q->req.max_send_sge = bad[i];
		expect_qp_refused(q);
		q->req.max_recv_sge = bad[i];
		expect_qp_refused(q);
		q->req.max_send_wr = bad[i];
		expect_qp_refused(q);
		q->req.max_recv_wr = bad[i];
		expect_qp_refused(q);
	}
}

TEST_QP(test_create_qp_rejects_srq_and_receive_queue_at_once)
{
	struct fg_srq srq;

	expect_ok(fg_srq_create(&q->o.pd, 16, 1, &srq));
	q->req.is_srq = 1;
	q->req.srq_handle = srq.handle;
	expect_qp_refused(q);
}

TEST_OBJECTS(test_create_qp_with_an_srq)
{
	struct fg_srq srq;
	struct fg_qp qp;

	expect_ok(fg_srq_create(&o->pd, 16, 1, &srq));
	o->qp.srq = &srq;
	expect_ok(fg_qp_create(&o->qp, &qp));
	assert_int_equal(fg_srq_destroy(&srq), EBUSY);
	expect_ok(fg_qp_destroy(&qp));
	expect_ok(fg_srq_destroy(&srq));
}

TEST_QP(test_create_qp_rejects_bad_directories_and_pages)
{
	struct t_bad_page bad = { .buf = &q->buf,
				  .npages = q->good.total_chunks,
				  .pdir_dma = &q->req.pdir_dma };

	while (t_next_bad_page(&bad))
		expect_refused(create(q));
	assert_int_equal(fg_stats(q->g).qps, 0);
	expect_ok(create(q));
	destroy(q);
	expect_ok(fg_cq_destroy(&q->o.cq));
}

TEST_QP(test_failed_creation_does_not_hold_its_objects)
{
	for (int i = 0; i < 10; i++) {
		q->req.pdir_dma = FG_NOWHERE;
		expect_refused(create(q));
	}
	expect_ok(fg_cq_destroy(&q->o.cq));
	expect_ok(fg_pd_destroy(&q->o.pd));
}

TEST_QP(test_directory_that_points_to_itself_is_safe)
{
	struct fg_qp qp = { 0 };

	for (int i = 0; i < PVR_PDIR_ENTRIES; i++)
		fg_buf_dir(&q->buf)[i] = q->buf.pdir;
	if (create(q))
		return;
	qp.guest = q->g;
	qp.ctx = &q->g->kernel;
	qp.type = PVR_QPT_RC;
	qp.handle = q->resp.qp_handle;
	fg_qp_connect(&qp, NULL, (const uint8_t[16]){ 0xfe, 0x80 }, 5);
	fg_ring_send(&qp);
	fg_ring_recv(&qp);
	fg_run(env->host);
	destroy(q);
}

TEST(guest, test_destroy_qp_rejects_unknown_handles)
{
	static const uint32_t bad[] = { 0, 1, 2, 0x10000, UINT32_MAX };

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(fg_cmd_destroy(env->g[0], PVR_CMD_DESTROY_QP, bad[i]), EINVAL);
}

TEST_QP(test_destroy_qp_twice_is_rejected)
{
	expect_ok(create(q));
	destroy(q);
	assert_int_equal(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, q->resp.qp_handle), EINVAL);
}

TEST(rc_connected, test_destroyed_qp_writes_no_completions)
{
	uint32_t tail;

	for (int i = 0; i < 20; i++) {
		t_recv(&env->a, i, 0, 10);
		t_send(&env->a, 100 + i, 0, 10);
	}
	fg_run(env->host);
	tail = env->a.scq.ring->prod_tail + env->a.rcq.ring->prod_tail;
	expect_ok(fg_qp_destroy(&env->a.qp));
	fg_settle(env->host, 10 * FG_SEC);
	assert_int_equal(env->a.scq.ring->prod_tail + env->a.rcq.ring->prod_tail, tail);
	expect_no_event(env->g[0]);
}

TEST(rc_connected, test_destroyed_qp_leaves_its_pages_alone)
{
	struct pvr_ring_state before;

	t_recv(&env->a, 1, 0, 10);
	t_send(&env->a, 2, 0, 10);
	expect_ok(fg_cmd_destroy(env->g[0], PVR_CMD_DESTROY_QP, env->a.qp.handle));
	before = *env->a.qp.ring;
	t_send(&env->b, 3, 0, 10);
	fg_ring_send(&env->a.qp);
	fg_settle(env->host, 10 * FG_SEC);
	assert_memory_equal(&before, env->a.qp.ring, sizeof(before));
}

TEST_QP(test_all_qps_can_be_used_up_and_used_again)
{
	/* Handle 0 is not given out. */
	struct t_use_up use = { .guest = q->g,
				.max = q->g->dsr->caps.max_qp - 1,
				.destroy = PVR_CMD_DESTROY_QP };

	q->o.qp.sq_wr = q->o.qp.rq_wr = 1;
	use_spec(q);
	while (t_use_up(&use, create(q), &q->resp.qp_handle))
		assert_in_range(q->resp.qp_handle, 1, use.max);
	assert_int_equal(fg_stats(q->g).qps, 0);
	expect_ok(fg_cq_destroy(&q->o.cq));
}

TEST_QP(test_ten_thousand_qps_one_after_the_other)
{
	for (int i = 0; i < 10000; i++) {
		expect_ok(create(q));
		destroy(q);
	}
	assert_int_equal(fg_stats(q->g).qps, 0);
}
