// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues: commands, limit, and receiving through them. */
#include "objects.h"

#include "core/adapter.h"
#include "core/objects.h"

static void post(struct srq_pair *s, uint64_t wr_id, uint64_t offset, uint32_t len)
{
	t_srq_recv(&s->srq, wr_id, &s->b->mr, offset, len);
}

/* a sends @len bytes. */
static void send(struct srq_pair *s, uint64_t wr_id, uint32_t len)
{
	t_send(s->a, wr_id, 0, len);
	fg_run(s->env->host);
}

TEST_OBJECTS(test_create_query_destroy)
{
	struct pvr_srq_attr attr;
	struct fg_srq srq;

	expect_ok(fg_srq_create(&o->pd, 64, 3, &srq));
	assert_true(srq.handle < o->g->dsr->caps.max_srq);
	expect_ok(fg_srq_query(&srq, &attr));
	assert_int_equal(attr.max_wr, 64);
	assert_int_equal(attr.max_sge, 3);
	assert_int_equal(attr.srq_limit, 0);
	assert_int_equal(fg_stats(o->g).srqs, 1);
	expect_ok(fg_srq_destroy(&srq));
	assert_int_equal(fg_stats(o->g).srqs, 0);
}

static void wipe_directory(struct fg_buf *buf)
{
	for (uint32_t i = 0; i < buf->ntables; i++)
		memset(fg_buf_table(buf, i), 0xff, PVR_PAGE_SIZE);
	memset(fg_buf_dir(buf), 0xff, PVR_PAGE_SIZE);
}

static void wipe_directories(struct fg_end *end)
{
	wipe_directory(&end->qp.buf);
	wipe_directory(&end->scq.buf);
	wipe_directory(&end->rcq.buf);
	wipe_directory(&end->buf);
}

static void write_and_send(struct srq_pair *s, uint64_t wr_id)
{
	t_rdma(s->a, PVRDMA_WR_RDMA_WRITE, wr_id, 0, &s->b->mr, 0, 100);
	await_written(s->a, wr_id);
	post(s, wr_id + 1, 0, 100);
	send(s, wr_id + 2, 100);
	expect_recv(&s->b->rcq, wr_id + 1, 100);
	expect_sent(s->a, wr_id + 2);
}

/* Drivers free them then. */
TEST_SRQ(test_directories_are_not_read_after_the_command)
{
	wipe_directories(s->a);
	wipe_directories(s->b);
	wipe_directory(&s->srq.buf);
	write_and_send(s, 1);
	for (int i = 0; i < 2; i++) {
		pvr_adapter_set_bus_master(env->g[i]->adapter, false);
		pvr_adapter_set_bus_master(env->g[i]->adapter, true);
	}
	write_and_send(s, 4);
}

/* The queue pair's domain counts for what peers name, the SRQ's for what is posted to it. */
TEST_SRQ(test_lkeys_are_of_the_srqs_domain)
{
	struct fg_pd pd;
	struct fg_mr mr;

	expect_ok(fg_pd_create(&env->g[1]->kernel, &pd));
	srq_pair_use(s, &pd);
	expect_ok(fg_mr_create(&pd, &s->b->buf, FG_ACCESS_ALL, &mr));
	t_srq_recv(&s->srq, 1, &mr, 0, 100);
	send(s, 2, 100);
	expect_recv(&s->b->rcq, 1, 100);
	expect_sent(s->a, 2);
	t_rdma(s->a, PVRDMA_WR_RDMA_WRITE, 3, 0, &s->b->mr, 0, 100);
	await_written(s->a, 3);
	post(s, 4, 0, 100);
	send(s, 5, 100);
	expect_cqe(&s->b->rcq, 4, PVRDMA_WC_LOC_PROT_ERR);
	expect_cqe(&s->a->scq, 5, PVRDMA_WC_REM_OP_ERR);
}

static const struct {
	const char *label;
	uint32_t wr, sge;
} bad_sizes[] = {
	{ "no request", 0, 1 },
	{ "3 requests, no power of two", 3, 1 },
	{ "63 requests, no power of two", 63, 1 },
	{ "one request above the maximum", PVR_MAX_SRQ_WR + 1, 1 },
	{ "twice the maximum of requests", 2 * PVR_MAX_SRQ_WR, 1 },
	{ "2^31 requests", 0x80000000, 1 },
	{ "2^32 - 1 requests", UINT32_MAX, 1 },
	{ "one SGE above the maximum", 16, PVR_MAX_SGE + 1 },
	{ "128 SGEs", 16, 128 },
	{ "SGEs of 2^32 - 16 bytes", 16, 0x0fffffff },
	{ "SGEs of 2^32 bytes", 16, 0x10000000 },
	{ "2^32 - 1 SGEs", 16, UINT32_MAX },
	{ "2^31 requests of 31 SGEs", 0x80000000, 31 },
	{ "2^27 requests of 2^27 SGEs", 0x08000000, 0x08000000 },
};

TEST_OBJECTS_CASES(test_create_srq_rejects_bad_sizes, bad_sizes)
{
	struct pvr_cmd_create_srq req = fg_srq_request(&o->pd, &o->buf, row->wr, row->sge);
	struct pvr_resp_create_srq resp;

	assert_int_equal(o->g->dsr->caps.max_srq_wr, PVR_MAX_SRQ_WR);
	assert_int_equal(o->g->dsr->caps.max_srq_sge, PVR_MAX_SGE);
	expect_refused(fg_create_srq(o->g, &req, &resp));
	assert_int_equal(fg_stats(o->g).srqs, 0);
	expect_ok(fg_pd_destroy(&o->pd));
}

#define SRQ(member, value) T_MEMBER(struct pvr_cmd_create_srq, member, value)

/* Of a request that needs 5 pages and has 32. */
static const struct {
	const char *label;
	struct t_member wrong;
	uint32_t err;
} bad_members[] = {
	{ "no page", SRQ(nchunks, 0), EINVAL },
	{ "header page only", SRQ(nchunks, 1), EINVAL },
	{ "one page too few", SRQ(nchunks, 4), EINVAL },
	{ "more pages than a directory has", SRQ(nchunks, PVR_PDIR_MAX_PAGES + 1), EINVAL },
	{ "2^31 pages", SRQ(nchunks, 1u << 31), EINVAL },
	{ "2^32 - 1 pages", SRQ(nchunks, UINT32_MAX), EINVAL },
	{ "unknown PD", SRQ(pd_handle, 999), EINVAL },
	{ "type 1", SRQ(srq_type, 1), EOPNOTSUPP },
	{ "type 255", SRQ(srq_type, 255), EOPNOTSUPP },
	{ "limit above the size", SRQ(attrs.srq_limit, 257), EINVAL },
};

TEST_OBJECTS_CASES(test_create_srq_rejects_bad_members, bad_members)
{
	struct pvr_cmd_create_srq req = fg_srq_request(&o->pd, &o->buf, 256, 3);
	struct pvr_resp_create_srq resp;

	t_store(&req, &row->wrong);
	assert_int_equal(fg_create_srq(o->g, &req, &resp), row->err);
}

/* The stock provider allocates twice the pages that it needs. */
TEST_OBJECTS(test_create_srq_accepts_spare_pages)
{
	struct pvr_cmd_create_srq req = fg_srq_request(&o->pd, &o->buf, 256, 3);
	struct pvr_resp_create_srq resp;

	expect_ok(fg_create_srq(o->g, &req, &resp));
}

TEST_OBJECTS(test_create_srq_rejects_bad_directories_and_pages)
{
	struct pvr_cmd_create_srq req = fg_srq_request(&o->pd, &o->buf, 128, 3);
	struct t_bad_page bad = { .buf = &o->buf, .npages = 3, .pdir_dma = &req.pdir_dma };
	struct pvr_resp_create_srq resp;

	while (t_next_bad_page(&bad))
		expect_refused(fg_create_srq(o->g, &req, &resp));
	expect_ok(fg_pd_destroy(&o->pd));
}

TEST(guest, test_unknown_handles_are_rejected)
{
	static const uint32_t bad[] = { 0, 1, 0x10000, UINT32_MAX };

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct fg_srq srq = { .ctx = &env->g[0]->kernel, .handle = bad[i] };
		struct pvr_srq_attr attr;

		assert_int_equal(fg_srq_query(&srq, &attr), EINVAL);
		assert_int_equal(fg_srq_set_limit(&srq, 1), EINVAL);
		assert_int_equal(fg_srq_destroy(&srq), EINVAL);
	}
}

TEST_SRQ(test_destroy_srq_in_use_is_rejected)
{
	assert_int_equal(fg_srq_destroy(&s->srq), EBUSY);
	expect_ok(fg_qp_destroy(&s->b->qp));
	expect_ok(fg_srq_destroy(&s->srq));
	assert_int_equal(fg_cmd_destroy(env->g[1], PVR_CMD_DESTROY_SRQ, s->srq.handle), EINVAL);
}

TEST_OBJECTS(test_all_srqs_can_be_used_up_and_used_again)
{
	struct t_use_up use = { .guest = o->g,
				.max = o->g->dsr->caps.max_srq,
				.destroy = PVR_CMD_DESTROY_SRQ };
	struct pvr_cmd_create_srq req = fg_srq_request(&o->pd, &o->buf, 16, 1);
	struct pvr_resp_create_srq resp;

	while (t_use_up(&use, fg_create_srq(o->g, &req, &resp), &resp.srqn))
		assert_true(resp.srqn < use.max);
	expect_ok(fg_pd_destroy(&o->pd));
}

TEST_SRQ(test_modify_rejects_a_limit_above_the_size)
{
	struct pvr_srq_attr attr;

	assert_int_equal(fg_srq_set_limit(&s->srq, SRQ_WR + 1), EINVAL);
	assert_int_equal(fg_srq_set_limit(&s->srq, UINT32_MAX), EINVAL);
	expect_ok(fg_srq_query(&s->srq, &attr));
	assert_int_equal(attr.srq_limit, 0);
	expect_ok(fg_srq_set_limit(&s->srq, SRQ_WR));
	expect_ok(fg_srq_query(&s->srq, &attr));
	assert_int_equal(attr.srq_limit, SRQ_WR);
	expect_ok(fg_srq_set_limit(&s->srq, 0));
	expect_ok(fg_srq_query(&s->srq, &attr));
	assert_int_equal(attr.srq_limit, 0);
}

TEST_SRQ(test_modify_rejects_resizing_and_unknown_bits)
{
	const struct pvr_srq_attr attr = { .max_wr = 2 * SRQ_WR, .max_sge = 1 };

	expect_refused(fg_srq_modify(&s->srq, PVR_SRQ_MAX_WR, &attr));
	expect_refused(fg_srq_modify(&s->srq, PVR_SRQ_MAX_WR | PVR_SRQ_LIMIT, &attr));
	expect_refused(fg_srq_modify(&s->srq, 4, &attr));
	expect_refused(fg_srq_modify(&s->srq, UINT32_MAX, &attr));
}

TEST_SRQ(test_receive_through_an_srq)
{
	struct pvrdma_cqe cqe;

	fg_fill(s->a->mr.va, 9000, 1);
	post(s, 1, 500, 9000);
	send(s, 2, 9000);
	expect_sent(s->a, 2);
	cqe = expect_recv(&s->b->rcq, 1, 9000);
	assert_int_equal(cqe.qp & 0xffff, s->b->qp.handle);
	assert_int_equal(fg_mismatch(s->b->mr.va + 500, 9000, 1), 9000);
}

TEST_SRQ(test_requests_are_taken_in_order_and_the_ring_wraps)
{
	for (uint32_t i = 0; i < 5 * SRQ_WR; i++) {
		post(s, i, (i % 100) * 64, 64);
		t_send(s->a, i, 0, 64);
		await_sent(s->a, i);
		expect_recv(&s->b->rcq, i, 64);
	}
}

TEST_SRQ(test_two_qps_share_an_srq)
{
	struct fg_end c, d = *s->b;
	uint32_t seen = 0;
	struct pvrdma_cqe cqe;

	fg_end_open(&c, env->g[0], PVR_QPT_RC);
	d.qp = t_qp_create(s->b, (struct fg_qp_spec){ .srq = &s->srq });
	fg_end_connect(&c, &d, NULL);
	for (uint32_t i = 0; i < 8; i++)
		post(s, i, i * 64, 64);
	for (uint32_t i = 0; i < 4; i++) {
		t_send(s->a, i, 0, 64);
		t_send(&c, i, 0, 64);
	}
	fg_run(env->host);
	for (uint32_t i = 0; i < 8; i++) {
		assert_true(fg_cq_poll(&s->b->rcq, &cqe));
		assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
		assert_true((cqe.qp & 0xffff) == s->b->qp.handle ||
			    (cqe.qp & 0xffff) == d.qp.handle);
		seen |= 1u << cqe.wr_id;
	}
	assert_int_equal(seen, 0xff);
}

TEST_SRQ(test_empty_srq_makes_the_sender_wait)
{
	send(s, 1, 64);
	expect_no_cqe(&s->a->scq);
	post(s, 2, 0, 64);
	fg_settle(env->host, FG_SEC);
	expect_sent(s->a, 1);
	expect_recv(&s->b->rcq, 2, 64);
}

TEST_SRQ(test_limit_raises_one_event)
{
	struct pvr_srq_attr attr;

	for (uint32_t i = 0; i < 8; i++)
		post(s, i, 0, 64);
	expect_ok(fg_srq_set_limit(&s->srq, 5));
	for (uint32_t i = 0; i < 3; i++) {
		send(s, i, 8);
		expect_no_event(env->g[1]); /* 5 are left: not fewer than the limit */
	}
	send(s, 3, 8);
	expect_one_event(env->g[1], PVR_EVENT_SRQ_LIMIT_REACHED, s->srq.handle);
	expect_ok(fg_srq_query(&s->srq, &attr));
	assert_int_equal(attr.srq_limit, 0);
	send(s, 4, 8);
	expect_no_event(env->g[1]);
}

TEST_SRQ(test_error_of_the_qp_leaves_the_srq_alone)
{
	for (uint32_t i = 0; i < 4; i++)
		post(s, i, 0, 64);
	expect_ok(fg_qp_to_err(&s->b->qp));
	await_no_cqe(&s->b->rcq);
	expect_one_event(env->g[1], PVR_EVENT_QP_LAST_WQE_REACHED, s->b->qp.handle);
	fg_ring_send(&s->b->qp);
	fg_ring_recv(&s->b->qp);
	await_no_event(env->g[1]);
	t_reconnect(env);
	send(s, 9, 8);
	expect_recv(&s->b->rcq, 0, 8);
}

TEST_SRQ(test_bad_request_in_an_srq_fails_that_qp_only)
{
	const struct pvrdma_sge bad = { FG_USER_VA, 64, 0xbad };

	assert_true(fg_post_srq_recv(&s->srq, 1, &bad, 1));
	post(s, 2, 0, 64);
	send(s, 3, 8);
	expect_cqe(&s->b->rcq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_cqe(&s->a->scq, 3, PVRDMA_WC_REM_OP_ERR);
	t_reconnect(env);
	send(s, 4, 8);
	expect_recv(&s->b->rcq, 2, 8);
}

TEST_SRQ(test_too_many_entries_in_an_srq_request_fail_it)
{
	struct pvrdma_sge sge[4];

	for (int i = 0; i < 4; i++)
		sge[i] = fg_sge(&s->b->mr, 100 * i, 100);
	assert_true(fg_post_srq_recv(&s->srq, 1, sge, 5));
	send(s, 3, 8);
	expect_cqe(&s->b->rcq, 1, PVRDMA_WC_LOC_QP_OP_ERR);
	expect_cqe(&s->a->scq, 3, PVRDMA_WC_REM_OP_ERR);
}

static const struct t_case wild[] = {
	{ "one beyond the queue", SRQ_WR + 1 },
	{ "twice the queue", 2 * SRQ_WR },
	{ "2^32 - 1", UINT32_MAX },
};

TEST_SRQ_CASES(test_wild_producer_index_fails_the_srq, wild)
{
	s->srq.ring->prod_tail = row->value;
	fg_ring_srq(&s->srq);
	send(s, 3, 8);
	assert_true(fg_events_count(env->g[1], PVR_EVENT_SRQ_ERR, s->srq.handle) > 0);
	expect_cqe(&s->a->scq, 3, PVRDMA_WC_REM_OP_ERR);
	expect_state(s->b, PVR_QPS_ERR);
}

TEST_SRQ(test_large_message_through_an_srq)
{
	const uint32_t len = 1 << 20;
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct fg_buf buf;
	struct fg_mr mr;
	struct fg_end big;

	fg_end_open_spec(&big, &env->g[0]->kernel, &spec, 256);
	fg_buf_init(&buf, &env->g[1]->ram, 256, FG_SCATTERED);
	expect_ok(fg_mr_create(&s->b->pd, &buf, FG_ACCESS_ALL, &mr));
	expect_ok(fg_qp_to_reset(&s->b->qp));
	fg_end_connect(&big, s->b, NULL);
	fg_fill(big.mr.va, len, 1);
	t_srq_recv(&s->srq, 1, &mr, 0, len);
	t_send(&big, 2, 0, len);
	await_sent(&big, 2);
	expect_recv(&s->b->rcq, 1, len);
	assert_int_equal(fg_mismatch(buf.va, len, 1), len);
}

TEST_SRQ(test_error_in_the_middle_of_a_message_flushes_its_request)
{
	const uint32_t len = 1 << 26; /* many runs long */
	struct fg_mr from, to;

	t_one_host_only(env, "it runs one engine by hand");
	t_wide_mr(s->a, len / PVR_PAGE_SIZE, &from);
	t_wide_mr(s->b, len / PVR_PAGE_SIZE, &to);
	t_srq_recv(&s->srq, 1, &to, 0, len);
	post(s, 2, 0, 64);
	s->a->mr = from;
	t_send(s->a, 3, 0, len);
	assert_true(pvr_engine_run(env->host->engine, 0));
	expect_no_cqe(&s->b->rcq);
	expect_ok(fg_qp_to_err(&s->b->qp));
	fg_settle(env->host, 100 * FG_SEC);
	expect_cqe(&s->b->rcq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(&s->b->rcq); /* request 2 belongs to no QP */
	expect_cqe(&s->a->scq, 3, PVRDMA_WC_RETRY_EXC_ERR);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_QP_LAST_WQE_REACHED, s->b->qp.handle),
			 1);
}

static void fail_by_memory(struct srq_pair *s, struct fg_mr *to)
{
	expect_ok(fg_mr_destroy(to));
	fg_settle(s->env->host, 100 * FG_SEC);
}

static void to_err(struct srq_pair *s, struct fg_mr *to)
{
	expect_ok(fg_qp_to_err(&s->b->qp));
}

static void to_err_and_reset(struct srq_pair *s, struct fg_mr *to)
{
	expect_ok(fg_qp_to_err(&s->b->qp));
	expect_ok(fg_qp_to_reset(&s->b->qp));
}

static void to_reset(struct srq_pair *s, struct fg_mr *to)
{
	expect_ok(fg_qp_to_reset(&s->b->qp));
}

static void destroy(struct srq_pair *s, struct fg_mr *to)
{
	expect_ok(fg_qp_destroy(&s->b->qp));
}

static const struct {
	const char *label;
	void (*end)(struct srq_pair *s, struct fg_mr *to);
	uint32_t cqes, status; /* of the request that the QP holds */
} message_ends[] = {
	{ "ERR", to_err, 1, PVRDMA_WC_WR_FLUSH_ERR },
	{ "ERR, then RESET", to_err_and_reset, 1, PVRDMA_WC_WR_FLUSH_ERR },
	{ "RESET", to_reset, 1, PVRDMA_WC_WR_FLUSH_ERR },
	{ "destroyed", destroy, 1, PVRDMA_WC_WR_FLUSH_ERR },
	{ "memory is gone", fail_by_memory, 1, PVRDMA_WC_LOC_PROT_ERR },
};

/* The QP has a request of the SRQ for a message that is not complete. */
static void hold_one(struct srq_pair *s, uint64_t wr_id, struct fg_mr *to)
{
	const uint32_t len = 1 << 26; /* many runs long */
	struct t_env *env = s->env;
	struct fg_mr from;

	t_wide_mr(s->a, len / PVR_PAGE_SIZE, &from);
	t_wide_mr(s->b, len / PVR_PAGE_SIZE, to);
	t_srq_recv(&s->srq, wr_id, to, 0, len);
	s->a->mr = from;
	t_send(s->a, 3, 0, len);
	while (!t_device_qp(s->b)->held->valid)
		assert_true(env->host->neighbours
				    ? env->host->neighbours->step(env->host->neighbours_opaque)
				    : pvr_engine_run(env->host->engine, 0));
}

/* Request 1 completes at most once, and request 2 is for the next QP. */
TEST_SRQ_CASES(test_request_that_a_qp_holds_ends_once, message_ends)
{
	struct fg_end far;
	struct fg_mr to;

	hold_one(s, 1, &to);
	post(s, 2, 0, 64);
	row->end(s, &to);
	fg_settle(env->host, 100 * FG_SEC);
	for (uint32_t i = 0; i < row->cqes; i++)
		expect_cqe(&s->b->rcq, 1, row->status);
	expect_no_cqe(&s->b->rcq);
	fg_cq_drain(&s->a->scq);
	s->b->qp = t_qp_create(s->b, (struct fg_qp_spec){ .srq = &s->srq });
	fg_end_open(&far, env->g[0], PVR_QPT_RC);
	fg_end_connect(&far, s->b, NULL);
	t_send(&far, 4, 0, 64);
	await_sent(&far, 4);
	expect_recv(&s->b->rcq, 2, 64);
	expect_no_cqe(&s->b->rcq);
	post(s, 5, 0, 64);
	t_send(&far, 6, 0, 64);
	await_sent(&far, 6);
	expect_recv(&s->b->rcq, 5, 64);
}

/* The guest does not poll: the CQ stays as it is. */
TEST_SRQ(test_request_that_a_qp_holds_needs_room_in_the_cq)
{
	struct fg_mr to;

	hold_one(s, 1, &to);
	s->b->rcq.ring->cons_head = s->b->rcq.cqe;
	expect_ok(fg_qp_destroy(&s->b->qp));
	s->b->rcq.ring->cons_head = 0;
	expect_no_cqe(&s->b->rcq);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_CQ_ERR, s->b->rcq.handle), 0);
}

TEST_SRQ(test_failed_srq_serves_no_qp)
{
	s->srq.ring->prod_tail = UINT32_MAX;
	send(s, 1, 8);
	expect_cqe(&s->a->scq, 1, PVRDMA_WC_REM_OP_ERR);
	s->srq.ring->prod_tail = 0;
	t_reconnect(env);
	post(s, 2, 0, 64);
	t_send(s->a, 3, 0, 8);
	fg_settle(env->host, 100 * FG_SEC);
	assert_true(fg_cq_pending(&s->a->scq) == 1);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_SRQ_ERR, s->srq.handle), 1);
	expect_ok(fg_qp_destroy(&s->b->qp));
	expect_ok(fg_srq_destroy(&s->srq));
}

TEST_SRQ(test_srq_continues_after_one_of_its_qps_is_destroyed)
{
	struct fg_qp other;

	t_one_host_only(env, "requesters of another host wait for their timer");
	for (int i = 0; i < 3; i++) {
		other = t_qp_create(s->b, (struct fg_qp_spec){ .srq = &s->srq });
		send(s, 1, 64); /* waits: a doorbell of the SRQ searches its QPs */
		expect_ok(fg_qp_destroy(&other));
		post(s, 2, 0, 64);
		await_sent(s->a, 1);
		expect_recv(&s->b->rcq, 2, 64);
	}
}
