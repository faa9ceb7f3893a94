// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* CREATE_QP and DESTROY_QP. */
#include "common.h"

struct qp_env {
	struct fg_guest *g;
	struct fg_pd pd;
	struct fg_cq cq;
	struct fg_buf buf;
	struct fg_qp_spec spec;
	struct pvr_cmd_create_qp good, req;
	struct pvr_resp_create_qp resp;
};

static void qp_env_init(struct qp_env *q, struct t_env *env)
{
	memset(q, 0, sizeof(*q));
	q->g = env->g[0];
	expect_ok(fg_pd_create(&q->g->kernel, &q->pd));
	expect_ok(fg_cq_create(&q->g->kernel, 64, &q->cq));
	q->spec.pd = &q->pd;
	q->spec.scq = q->spec.rcq = &q->cq;
	q->spec.type = PVR_QPT_RC;
	q->good = fg_qp_request(&q->spec);
	fg_buf_init(&q->buf, &q->g->ram, q->good.total_chunks, FG_SCATTERED);
	q->good.pdir_dma = q->buf.pdir;
	q->req = q->good;
}

#define TEST_QP(name) TEST_OBJECT(guest, struct qp_env, q, qp_env_init, name)

static uint32_t create(struct qp_env *q)
{
	return fg_create_qp(q->g, &q->req, &q->resp);
}

/* The request as it stands must be refused and leave nothing; the good one still works. */
static void expect_qp_refused(struct qp_env *q)
{
	expect_refused(create(q));
	assert_int_equal(fg_stats(q->g).qps, 0);
	q->req = q->good;
	expect_ok(create(q));
	expect_ok(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, q->resp.qp_handle));
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
	struct pvr_resp_create_qp first;

	q->req.qp_type = PVR_QPT_GSI;
	expect_ok(create(q));
	first = q->resp;
	expect_refused(create(q));
	expect_ok(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, first.qp_handle));
	expect_ok(create(q));
	assert_int_equal(q->resp.qpn, 1);
}

TEST_QP(test_gsi_qp_as_ib_mad_makes_it)
{
	struct fg_cq cq;
	struct fg_qp qp;

	expect_ok(fg_cq_create(&q->g->kernel, 1024, &cq));
	q->spec.scq = q->spec.rcq = &cq;
	q->spec.type = PVR_QPT_GSI;
	q->spec.sq_wr = 128;
	q->spec.rq_wr = 512;
	q->spec.sq_sge = 2;
	q->spec.rq_sge = 1;
	q->spec.sig_all = true;
	expect_ok(fg_qp_create(&q->spec, &qp));
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
		expect_ok(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, q->resp.qp_handle));
		assert_int_not_equal(q->resp.qp_handle, last_handle);
		last_handle = q->resp.qp_handle;
		qpn[i] = q->resp.qpn;
		for (int k = 0; k < i; k++)
			assert_int_not_equal(qpn[k], qpn[i]);
	}
}

TEST(unprobed, test_driver_below_version_20_gets_the_short_response)
{
	struct qp_env q;
	struct pvr_resp_create_qp_v1 v1;

	env->g[0]->config.driver_version = 19;
	expect_ok(fg_guest_boot(env->g[0]));
	qp_env_init(&q, env);
	expect_ok(fg_cmd(q.g, &q.req, sizeof(q.req), &v1, sizeof(v1)));
	assert_in_range(v1.qpn, 2, q.g->dsr->caps.max_qp - 1);
	assert_int_equal(v1.max_send_wr, q.req.max_send_wr);
	assert_int_equal(v1.max_recv_wr, q.req.max_recv_wr);
	assert_int_equal(v1.max_send_sge, q.req.max_send_sge);
	assert_int_equal(v1.max_recv_sge, q.req.max_recv_sge);
	assert_int_equal(v1.max_inline_data, 0);
	/* Number and handle in one. */
	expect_ok(fg_cmd_destroy(q.g, PVR_CMD_DESTROY_QP, v1.qpn));
}

TEST(unprobed, test_gsi_number_is_the_handle_below_version_20)
{
	struct qp_env q;
	struct pvr_resp_create_qp_v1 first, gsi;

	env->g[0]->config.driver_version = 19;
	expect_ok(fg_guest_boot(env->g[0]));
	qp_env_init(&q, env);
	expect_ok(fg_cmd(q.g, &q.req, sizeof(q.req), &first, sizeof(first)));
	q.req.qp_type = PVR_QPT_GSI;
	expect_ok(fg_cmd(q.g, &q.req, sizeof(q.req), &gsi, sizeof(gsi)));
	assert_int_equal(gsi.qpn, 1);
	expect_ok(fg_cmd_destroy(q.g, PVR_CMD_DESTROY_QP, 1));
	expect_ok(fg_cmd_destroy(q.g, PVR_CMD_DESTROY_QP, first.qpn));
}

TEST_QP(test_create_qp_rejects_unknown_objects)
{
	q->req.pd_handle += 1;
	expect_qp_refused(q);
	q->req.pd_handle = UINT32_MAX;
	expect_qp_refused(q);
	q->req.send_cq_handle += 1;
	expect_qp_refused(q);
	q->req.recv_cq_handle += 1;
	expect_qp_refused(q);
	q->req.send_cq_handle = UINT32_MAX;
	expect_qp_refused(q);
}

TEST_QP(test_create_qp_rejects_an_unknown_srq)
{
	q->req.is_srq = 1;
	q->req.srq_handle = 55;
	q->req.max_recv_wr = q->req.max_recv_sge = 0;
	q->req.total_chunks = 1 + q->req.send_chunks;
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

TEST_QP(test_create_qp_rejects_send_chunks_above_total)
{
	q->req.send_chunks = q->req.total_chunks + 1;
	expect_qp_refused(q);
	q->req.send_chunks = UINT16_MAX;
	expect_qp_refused(q);
	q->req.send_chunks = q->req.total_chunks; /* no header page */
	expect_qp_refused(q);
}

TEST_QP(test_create_qp_rejects_total_chunks_zero_and_one)
{
	q->req.total_chunks = 0;
	expect_qp_refused(q);
	q->req.total_chunks = 0;
	q->req.send_chunks = 0;
	expect_qp_refused(q);
	q->req.total_chunks = 1;
	q->req.send_chunks = 0;
	expect_qp_refused(q);
}

TEST_QP(test_create_qp_rejects_more_chunks_than_the_directory_has)
{
	q->req.total_chunks = UINT16_MAX;
	expect_qp_refused(q);
	q->req.total_chunks = 513;
	expect_qp_refused(q);
}

TEST_QP(test_create_qp_rejects_queues_larger_than_their_pages)
{
	q->req.max_send_wr *= 2;
	expect_qp_refused(q);
	q->req.max_recv_wr *= 4;
	expect_qp_refused(q);
	q->req.max_send_sge = 16;
	expect_qp_refused(q);
	q->req.max_recv_sge = 16;
	expect_qp_refused(q);
	q->req.send_chunks -= 1;
	expect_qp_refused(q);
	q->req.total_chunks -= 1;
	expect_qp_refused(q);
}

TEST_QP(test_create_qp_rejects_sizes_that_are_no_power_of_two)
{
	q->req.max_send_wr = 63;
	expect_qp_refused(q);
	q->req.max_recv_wr = 33;
	expect_qp_refused(q);
}

TEST_QP(test_create_qp_rejects_sizes_beyond_the_caps)
{
	uint32_t page;

	for (int recv = 0; recv < 2; recv++) {
		q->req.pdir_dma = t_wide_pdir(q->g, UINT16_MAX, &page);
		q->req.total_chunks = 60000;
		q->req.send_chunks = 30000;
		if (recv)
			q->req.max_recv_wr = 4 * q->g->dsr->caps.max_qp_wr;
		else
			q->req.max_send_wr = 4 * q->g->dsr->caps.max_qp_wr;
		expect_qp_refused(q);
		q->req.pdir_dma = t_wide_pdir(q->g, UINT16_MAX, &page);
		q->req.total_chunks = 60000;
		q->req.send_chunks = 30000;
		if (recv)
			q->req.max_recv_sge = 4 * q->g->dsr->caps.max_sge;
		else
			q->req.max_send_sge = 4 * q->g->dsr->caps.max_sge;
		expect_qp_refused(q);
	}
}

TEST_QP(test_create_qp_of_the_largest_size)
{
	uint32_t page;

	q->spec.sq_wr = q->spec.rq_wr = q->g->dsr->caps.max_qp_wr;
	q->spec.sq_sge = q->spec.rq_sge = q->g->dsr->caps.max_sge;
	q->req = fg_qp_request(&q->spec);
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

	expect_ok(fg_srq_create(&q->pd, 16, 1, &srq));
	q->req.is_srq = 1;
	q->req.srq_handle = srq.handle;
	expect_qp_refused(q);
}

TEST_QP(test_create_qp_with_an_srq)
{
	struct fg_srq srq;
	struct fg_qp qp;

	expect_ok(fg_srq_create(&q->pd, 16, 1, &srq));
	q->spec.srq = &srq;
	expect_ok(fg_qp_create(&q->spec, &qp));
	assert_int_equal(fg_srq_destroy(&srq), EBUSY);
	expect_ok(fg_qp_destroy(&qp));
	expect_ok(fg_srq_destroy(&srq));
}

TEST_QP(test_create_qp_rejects_bad_directories_and_pages)
{
	static const uint64_t bad[] = { 0, FG_MMIO_HOLE, FG_BAR2_GPA, FG_NOWHERE, UINT64_MAX };

	for (size_t i = 0; i < COUNT(bad); i++) {
		q->req.pdir_dma = bad[i];
		expect_qp_refused(q);
		for (uint32_t page = 0; page < q->good.total_chunks; page++) {
			const uint64_t good = fg_buf_table(&q->buf, 0)[page];

			fg_buf_table(&q->buf, 0)[page] = bad[i];
			expect_refused(create(q));
			fg_buf_table(&q->buf, 0)[page] = good;
		}
	}
	assert_int_equal(fg_stats(q->g).qps, 0);
	expect_ok(fg_cq_destroy(&q->cq));
}

TEST_QP(test_failed_creation_does_not_hold_its_objects)
{
	for (int i = 0; i < 10; i++) {
		q->req.pdir_dma = FG_NOWHERE;
		expect_refused(create(q));
	}
	expect_ok(fg_cq_destroy(&q->cq));
	expect_ok(fg_pd_destroy(&q->pd));
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
	expect_ok(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, q->resp.qp_handle));
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
	expect_ok(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, q->resp.qp_handle));
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
	uint32_t max, n = 0;
	uint32_t *handle;

	max = q->g->dsr->caps.max_qp;
	handle = test_calloc(max + 1, sizeof(*handle));
	q->spec.sq_wr = q->spec.rq_wr = 1;
	q->req = fg_qp_request(&q->spec);
	q->req.pdir_dma = q->buf.pdir;
	while (n <= max && !create(q)) {
		assert_in_range(q->resp.qp_handle, 1, max - 1);
		handle[n++] = q->resp.qp_handle;
	}
	assert_in_range(n, 1, max - 1);
	expect_ok(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, handle[n / 2]));
	expect_ok(create(q));
	handle[n / 2] = q->resp.qp_handle;
	while (n--)
		expect_ok(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, handle[n]));
	assert_int_equal(fg_stats(q->g).qps, 0);
	expect_ok(fg_cq_destroy(&q->cq));
	test_free(handle);
}

TEST_QP(test_ten_thousand_qps_one_after_the_other)
{
	for (int i = 0; i < 10000; i++) {
		expect_ok(create(q));
		expect_ok(fg_cmd_destroy(q->g, PVR_CMD_DESTROY_QP, q->resp.qp_handle));
	}
	assert_int_equal(fg_stats(q->g).qps, 0);
}
