// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* XRC: domains, SRQs, initiators and targets. */
#include "fake_kernel.h"

static struct ibv_xrcd *xrcd;
static struct ibv_srq *srq;

static struct ibv_srq *create_srq(uint32_t srqn, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 8, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = fake.ibpd,
		.xrcd = xrcd,
		.cq = cq,
	};

	fake.xrc_srqn = srqn;
	return pvr_create_srq_ex(fake.ibctx, &attr);
}

static void xrc_end(void)
{
	while (fake.srqs.num)
		pvr_destroy_srq(fake.srqs.object[0]);
	pvr_close_xrcd(xrcd);
	assert_int_equal(fake.xrcds, 0);
}

static void xrc_begin(void)
{
	struct ibv_xrcd_init_attr attr = { .fd = -1 };

	fake.ctx.features = PVR_EXT_XRC;
	xrcd = pvr_open_xrcd(fake.ibctx, &attr);
	assert_non_null(xrcd);
	srq = create_srq(5, fake.recv_cq);
	assert_non_null(srq);
	fake.end = xrc_end;
}

static void post(struct ibv_srq *to, uint64_t wr_id)
{
	FAKE_SRQ_RECV(to, 0, .wr_id = wr_id, FAKE_SGES(1));
	fake_take(&to_pvr_srq(to)->wq, 1);
}

/* The device completes a receive of an SRQ, by a message to any QP. */
static void complete(struct ibv_srq *of, uint64_t wr_id, uint32_t qpn)
{
	FAKE_CQE(fake.recv_cq, .wr_id = wr_id, .opcode = PVRDMA_WC_RECV,
		 .qp = (uint64_t)(PVR_CQE_XRC | to_pvr_srq(of)->handle) << 32 | qpn);
}

static void expect(uint64_t wr_id, uint32_t qpn)
{
	struct ibv_wc wc;

	assert_int_equal(pvr_poll_cq(fake.recv_cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.qp_num, qpn);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
}

static void expect_none(void)
{
	struct ibv_wc wc;

	assert_int_equal(pvr_poll_cq(fake.recv_cq, 1, &wc), 0);
}

/* -------------------------------------------------------------------- completions */

TEST(xrc, test_completion_has_the_number_of_a_qp_that_another_process_has)
{
	for (uint32_t i = 0; i < 20; i++) {
		post(srq, i);
		complete(srq, i, 0x10000 + i % FAKE_QP_TBL_SIZE);
		expect(i, 0x10000 + i % FAKE_QP_TBL_SIZE);
	}
}

TEST(xrc, test_srqs_and_qps_share_a_cq)
{
	struct ibv_srq *other = create_srq(FAKE_MAX_SRQ - 1, fake.recv_cq);
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 4, 1, 4, 1);
	struct ibv_wc wc[4];

	post(srq, 1);
	post(other, 2);
	post(srq, 3);
	complete(srq, 1, 11);
	complete(other, 2, 12);
	FAKE_COMPLETE(fake.recv_cq, .qp = fake_handle(qp), .wr_id = 7, .opcode = PVRDMA_WC_RECV);
	complete(srq, 3, 13);
	assert_int_equal(pvr_poll_cq(fake.recv_cq, 4, wc), 4);
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(wc[0].qp_num, 11);
	assert_int_equal(wc[1].wr_id, 2);
	assert_int_equal(wc[1].qp_num, 12);
	assert_int_equal(wc[2].wr_id, 7);
	assert_int_equal(wc[2].qp_num, qp->qp_num);
	assert_int_equal(wc[3].wr_id, 3);
	assert_int_equal(wc[3].qp_num, 13);
}

TEST(xrc, test_request_is_outstanding_until_it_is_polled)
{
	for (uint32_t i = 0; i < 8; i++)
		post(srq, i);
	FAKE_SRQ_RECV(srq, ENOMEM, .wr_id = 8, FAKE_SGES(1));
	complete(srq, 0, 11);
	FAKE_SRQ_RECV(srq, ENOMEM, .wr_id = 8, FAKE_SGES(1));
	expect(0, 11);
	post(srq, 8);
}

static struct ibv_srq *created;

static void create_with_the_same_number(void)
{
	fake.in_destroy_srq = NULL;
	created = create_srq(to_pvr_srq(srq)->handle, fake.recv_cq);
	assert_non_null(created);
	post(created, 7);
	complete(created, 7, 12);
}

/*
 * ibv_destroy_srq() waits until the events of the SRQ are acknowledged. The thread that has
 * them may create an SRQ before it acknowledges them, and the kernel gives the same number. The
 * CQEs of the old SRQ are not those of the new one, and its purge keeps those.
 */
TEST(xrc, test_number_of_an_srq_that_waits_for_its_events_is_not_used)
{
	post(srq, 5);
	complete(srq, 5, 11);
	fake.in_destroy_srq = create_with_the_same_number;
	assert_int_equal(pvr_destroy_srq(srq), 0);
	assert_int_equal(fake.destroyed_srqs, 2); /* also the one that kept the number */
	expect(7, 12);
	expect_none();
	post(created, 8);
	complete(created, 8, 13);
	expect(8, 13);
}

/* Bad input: a driver that always gives the number of a live SRQ. */
TEST(xrc, test_driver_that_repeats_a_number_is_refused)
{
	fake.repeats_srqn = true;
	assert_fails(create_srq(to_pvr_srq(srq)->handle, fake.recv_cq), EBUSY);
	assert_int_equal(fake.destroyed_srqs, 16);
	post(srq, 1);
	complete(srq, 1, 11);
	expect(1, 11);
}

TEST(xrc, test_completions_of_unknown_srqs_are_skipped)
{
	static const uint32_t bad[] = { 4, 6, FAKE_MAX_SRQ, 0x7fffffff };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		FAKE_CQE(fake.recv_cq, .opcode = PVRDMA_WC_RECV,
			 .qp = (uint64_t)(PVR_CQE_XRC | bad[i]) << 32 | 9);
		expect_none();
	}
	post(srq, 1);
	complete(srq, 1, 11);
	expect(1, 11);
}

TEST(xrc, test_completions_of_an_srq_with_another_cq_are_skipped)
{
	struct ibv_srq *other = create_srq(7, fake.send_cq);

	post(other, 1);
	complete(other, 1, 11);
	expect_none();
}

/* The device may give the number to the next SRQ. */
TEST(xrc, test_completions_go_with_their_srq)
{
	struct ibv_srq *again;

	post(srq, 1);
	complete(srq, 1, 11);
	post(srq, 2);
	complete(srq, 2, 11);
	expect(1, 11);
	assert_int_equal(pvr_destroy_srq(srq), 0);
	again = create_srq(5, fake.recv_cq);
	post(again, 3);
	expect_none();
	complete(again, 3, 12);
	expect(3, 12);
}

/* --------------------------------------------------------------------------- SRQs */

/* libibverbs sets no PD for it. */
TEST(xrc, test_srq_can_be_resized)
{
	struct ibv_srq_attr attr = { .max_wr = 33 };

	fake.ctx.features |= PVR_EXT_RESIZE;
	assert_int_equal(pvr_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(to_pvr_srq(srq)->wq.num, 64);
}

TEST(xrc, test_number_of_the_srq_is_the_devices)
{
	uint32_t number;

	assert_int_equal(pvr_get_srq_num(srq, &number), 0);
	assert_int_equal(number, 5);
}

TEST(xrc, test_number_above_the_limit_is_refused)
{
	assert_fails(create_srq(FAKE_MAX_SRQ, fake.recv_cq), EPROTO);
}

static const struct {
	const char *label;
	uint32_t comp_mask;
	enum ibv_srq_type type;
	uint32_t max_wr;
	int err;
} bad_srqs[] = {
	{ "no PD", IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC, 8, EINVAL },
	{ "no domain", IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ,
	  IBV_SRQT_XRC, 8, EINVAL },
	{ "no CQ", IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD,
	  IBV_SRQT_XRC, 8, EINVAL },
	{ "tag matching", IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD, IBV_SRQT_TM, 8,
	  EOPNOTSUPP },
	{ "unknown attribute", IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TM, IBV_SRQT_BASIC, 8,
	  EOPNOTSUPP },
	{ "no request", IBV_SRQ_INIT_ATTR_PD, IBV_SRQT_BASIC, 0, EINVAL },
	{ "too many requests", IBV_SRQ_INIT_ATTR_PD, IBV_SRQT_BASIC, FAKE_MAX_WR + 1, EINVAL },
};

TEST_CASES(xrc, test_bad_srq_is_refused, bad_srqs)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = row->max_wr, .max_sge = 1 },
		.comp_mask = row->comp_mask,
		.srq_type = row->type,
		.pd = fake.ibpd,
		.xrcd = xrcd,
		.cq = fake.recv_cq,
	};

	assert_fails(pvr_create_srq_ex(fake.ibctx, &attr), row->err);
}

TEST(xrc, test_basic_srq_by_the_extended_call)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 5, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = fake.ibpd,
	};

	assert_non_null(pvr_create_srq_ex(fake.ibctx, &attr));
	assert_int_equal(attr.attr.max_wr, 8);
}

TEST(xrc, test_failure_of_the_kernel_leaves_nothing)
{
	fake.fail = ENOMEM;
	assert_fails(create_srq(6, fake.recv_cq), ENOMEM);
	assert_int_equal(fake.srqs.num, 1);
	fake.fail = ENOMEM;
	assert_fails(pvr_open_xrcd(fake.ibctx, &(struct ibv_xrcd_init_attr){ .fd = -1 }), ENOMEM);
}

/* ---------------------------------------------------------------------------- QPs */

static struct ibv_qp *create_initiator(uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.send_cq = fake.send_cq,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = ops,
		.pd = fake.ibpd,
	};
	struct ibv_qp *qp = pvr_create_qp_ex(fake.ibctx, &attr);

	assert_non_null(qp);
	qp->state = IBV_QPS_RTS;
	return qp;
}

TEST(xrc, test_request_names_the_srq)
{
	struct ibv_qp *qp = create_initiator(0);

	FAKE_SEND(qp, 0, .wr_id = 3, .opcode = IBV_WR_SEND, .qp_type.xrc.remote_srqn = 77,
		  FAKE_SGES(1));
	FAKE_EXPECT_WQE(qp, 0, fake_sges, .wr_id = 3, .opcode = PVRDMA_WR_SEND, .num_sge = 1,
			.remote_srqn = 77);
	FAKE_RECV(qp, EINVAL, .wr_id = 1);
}

TEST(xrc, test_request_by_function_names_the_srq)
{
	struct ibv_qp *qp = create_initiator(IBV_QP_EX_WITH_RDMA_WRITE);
	struct ibv_qp_ex *ex = &to_pvr_qp(qp)->verbs_qp.qp_ex;

	ex->wr_start(ex);
	ex->wr_id = 4;
	ex->wr_flags = 0;
	ex->wr_rdma_write(ex, 9, 0x1000);
	ex->wr_set_xrc_srqn(ex, 78);
	ex->wr_set_sge(ex, fake_sges[0].lkey, fake_sges[0].addr, fake_sges[0].length);
	assert_int_equal(ex->wr_complete(ex), 0);
	FAKE_EXPECT_WQE(qp, 0, fake_sges, .wr_id = 4, .opcode = PVRDMA_WR_RDMA_WRITE, .num_sge = 1,
			.remote_srqn = 78, .wr.rdma = { .remote_addr = 0x1000, .rkey = 9 });
}

TEST(xrc, test_request_by_function_without_an_srq_is_refused)
{
	struct ibv_qp *qp = create_initiator(IBV_QP_EX_WITH_SEND);
	struct ibv_qp_ex *ex = &to_pvr_qp(qp)->verbs_qp.qp_ex;

	ex->wr_start(ex);
	ex->wr_flags = 0;
	ex->wr_send(ex);
	ex->wr_set_sge(ex, 1, 2, 3);
	assert_int_equal(ex->wr_complete(ex), EINVAL);
}

static struct ibv_qp *create_target(uint32_t comp_mask)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = comp_mask,
					    .xrcd = xrcd };

	return pvr_create_qp_ex(fake.ibctx, &attr);
}

static void expect_target(struct ibv_qp *qp)
{
	assert_non_null(qp);
	qp->state = IBV_QPS_RTS;
	FAKE_SEND(qp, EINVAL, .opcode = IBV_WR_SEND);
	FAKE_RECV(qp, EINVAL, .wr_id = 1);
	assert_int_equal(fake_reset_qp(qp), 0);
	assert_int_equal(pvr_destroy_qp(qp), 0);
}

TEST(xrc, test_target_posts_nothing)
{
	expect_target(create_target(IBV_QP_INIT_ATTR_XRCD));
}

TEST(xrc, test_target_of_another_process_is_opened)
{
	struct ibv_qp_open_attr attr = { .qp_num = 0x10002, .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp *qp = pvr_open_qp(fake.ibctx, &attr);

	assert_int_equal(qp->qp_num, 0x10002);
	expect_target(qp);
	fake.fail = ENOENT;
	assert_fails(pvr_open_qp(fake.ibctx, &attr), ENOENT);
}

TEST(xrc, test_target_without_a_domain_is_refused)
{
	assert_fails(create_target(0), EINVAL);
	assert_fails(create_target(IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD), EOPNOTSUPP);
	xrc_end();
	xrcd = NULL;
	fake.end = NULL;
	assert_fails(create_target(IBV_QP_INIT_ATTR_XRCD), EINVAL);
}

TEST(fake, test_device_without_xrc)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_SEND,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = fake.ibpd,
					    .send_cq = fake.send_cq };

	assert_fails(pvr_open_xrcd(fake.ibctx, &(struct ibv_xrcd_init_attr){ .fd = -1 }),
		     EOPNOTSUPP);
	assert_fails(create_srq(1, fake.recv_cq), EOPNOTSUPP);
	assert_fails(create_target(IBV_QP_INIT_ATTR_XRCD), EOPNOTSUPP);
	assert_fails(pvr_open_qp(fake.ibctx, &(struct ibv_qp_open_attr){}), EOPNOTSUPP);
	assert_fails(pvr_create_qp_ex(fake.ibctx, &init), EOPNOTSUPP);
}
