// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* XRC (IBTA annex A14): a target receives through the SRQ that each request names. */
#include <string.h>

#include "core/adapter.h"
#include "core/objects.h"
#include "fg_cmd.h"
#include "fg_malformed.h"
#include "fg_xrc.h"
#include "faults.h"
#include "hosts.h"
#include "objects.h"
#include "path/pipe/frame.h"
#include "rdma/xrc.h"

TEST_EXT(PVR_ENGINE_EXT)

#define SRQS 2
#define BIG (64u << 20) /* several quanta */

/* An initiator at a, and a target of b's guest with two SRQs. b's own QP is not used. */
struct xrc {
	struct t_env *env;
	struct fg_end *a, *b;
	struct fg_xrcd xrcd;
	struct fg_srq srq[SRQS]; /* complete to b->rcq */
	struct fg_qp tgt;
};

static void connect(struct xrc *x, const struct fg_conn *conn)
{
	if (fg_qp_state(&x->tgt) != PVR_QPS_RESET)
		expect_ok(fg_qp_to_reset(&x->tgt));
	if (fg_qp_state(&x->a->qp) != PVR_QPS_RESET)
		expect_ok(fg_qp_to_reset(&x->a->qp));
	expect_ok(fg_qp_connect(&x->tgt, conn, x->a->gid, x->a->qp.qpn));
	expect_ok(fg_qp_connect(&x->a->qp, conn, x->b->gid, x->tgt.qpn));
}

static void xrc_init(struct xrc *x, struct t_env *env)
{
	*x = (struct xrc){ .env = env, .a = &env->a, .b = &env->b };
	fg_end_open(x->a, env->g[0], PVR_QPT_XRC_INI);
	fg_end_open(x->b, env->g[1], PVR_QPT_RC);
	expect_ok(fg_xrcd_create(env->g[1], &x->xrcd));
	for (int i = 0; i < SRQS; i++)
		expect_ok(fg_xrc_srq_create(&x->xrcd, &x->b->pd, &x->b->rcq, 32, 4, &x->srq[i]));
	expect_ok(fg_xrc_tgt_create(&x->xrcd, &x->tgt));
	connect(x, NULL);
}

#define TEST_XRC(name) TEST_OBJECT(guests, struct xrc, x, xrc_init, name)

static void send_to(struct xrc *x, uint32_t srqn, uint64_t wr_id, uint32_t len)
{
	t_post(x->a, .wr_id = wr_id, .opcode = PVRDMA_WR_SEND, .srqn = srqn,
	       T_SGE(&x->a->mr, 0, len));
	fg_run(x->env->host);
}

static void expect_message(struct xrc *x, int i, uint64_t wr_id)
{
	const uint64_t name = (uint64_t)(PVR_CQE_XRC | x->srq[i].handle) << 32 | x->tgt.qpn;
	struct pvrdma_cqe cqe = expect_recv(&x->b->rcq, wr_id, 64);

	assert_true(cqe.qp == name);
}

static void message(struct xrc *x, int i, uint64_t wr_id)
{
	memset(x->a->mr.va, (int)wr_id, 64);
	t_srq_recv(&x->srq[i], wr_id, &x->b->mr, 4096, 64);
	send_to(x, x->srq[i].handle, wr_id, 64);
	expect_message(x, i, wr_id);
	expect_sent(x->a, wr_id);
	assert_memory_equal(x->a->mr.va, x->b->mr.va + 4096, 64);
}

/* The target refuses the request, and fails. Afterwards the connection works again. */
static void expect_refusal(struct xrc *x, uint64_t wr_id)
{
	expect_cqe(&x->a->scq, wr_id, PVRDMA_WC_REM_INV_REQ_ERR);
	assert_int_equal(fg_qp_state(&x->tgt), PVR_QPS_ERR);
	assert_int_equal(fg_qp_state(&x->a->qp), PVR_QPS_ERR);
	fg_run(x->env->host);
	end_drain(x->a);
	end_drain(x->b);
	connect(x, NULL);
	message(x, 0, wr_id + 1);
}

/* ------------------------------------------------------------------------ messages */

TEST_XRC(test_each_message_goes_to_the_srq_that_it_names)
{
	for (uint64_t i = 0; i < 200; i++)
		message(x, i % 3 == 1, i);
}

TEST_XRC(test_several_messages_in_one_quantum)
{
	for (uint64_t i = 0; i < 16; i++) {
		struct pvrdma_sge sge = fg_sge(&x->b->mr, 64 * i, 64);

		assert_true(fg_put_srq_recv(&x->srq[i % 2], i, &sge, 1));
	}
	fg_ring_srq(&x->srq[0]);
	fg_ring_srq(&x->srq[1]);
	for (uint64_t i = 0; i < 16; i++) {
		const struct fg_wr wr = { .wr_id = i,
					  .opcode = PVRDMA_WR_SEND,
					  .flags = PVR_SEND_SIGNALED,
					  .srqn = x->srq[i % 2].handle,
					  T_SGE(&x->a->mr, 0, 64) };

		assert_true(fg_put_send(&x->a->qp, &wr));
	}
	fg_ring_send(&x->a->qp);
	fg_run(env->host);
	for (uint64_t i = 0; i < 16; i++) {
		expect_message(x, i % 2, i);
		expect_sent(x->a, i);
	}
}

TEST_XRC(test_large_message_in_fragments)
{
	struct pvrdma_cqe cqe;

	t_widen(x->a, BIG);
	t_widen(x->b, BIG);
	t_srq_recv(&x->srq[1], 1, &x->b->mr, 0, BIG);
	send_to(x, x->srq[1].handle, 2, BIG);
	cqe = expect_recv(&x->b->rcq, 1, BIG);
	assert_true(cqe.qp >> 32 == (PVR_CQE_XRC | x->srq[1].handle));
	expect_sent(x->a, 2);
}

TEST_XRC(test_immediate_data_and_write_with_immediate)
{
	static const enum pvrdma_wr_opcode ops[] = { PVRDMA_WR_SEND_WITH_IMM,
						     PVRDMA_WR_RDMA_WRITE_WITH_IMM };
	static const uint32_t done[] = { PVRDMA_WC_RECV, PVRDMA_WC_RECV_RDMA_WITH_IMM };

	for (uint32_t i = 0; i < 2; i++) {
		struct pvrdma_cqe cqe;

		t_srq_recv(&x->srq[i], i, &x->b->mr, 0, 64);
		t_post(x->a, .wr_id = i, .opcode = ops[i], .srqn = x->srq[i].handle,
		       .imm = 0x12345678, T_SGE(&x->a->mr, 0, 64), T_REMOTE(&x->b->mr, 4096));
		fg_run(env->host);
		cqe = expect_done(&x->b->rcq, i, done[i]);
		assert_int_equal(cqe.imm_data, 0x12345678);
		assert_true(cqe.qp >> 32 & PVR_CQE_XRC);
		expect_cqe(&x->a->scq, i, PVRDMA_WC_SUCCESS);
	}
}

/* ------------------------------------------------------------------------ memory */

static void access(struct xrc *x, enum pvrdma_wr_opcode op, uint64_t wr_id, int srq,
		   const struct fg_mr *mr)
{
	t_post(x->a, .wr_id = wr_id, .opcode = op, .srqn = x->srq[srq].handle,
	       T_SGE(&x->a->mr, 0, 8), T_REMOTE(mr, 0), .compare_add = 1);
	fg_run(x->env->host);
}

static const enum pvrdma_wr_opcode accesses[] = { PVRDMA_WR_RDMA_WRITE, PVRDMA_WR_RDMA_READ,
						  PVRDMA_WR_ATOMIC_FETCH_AND_ADD };

TEST_XRC(test_memory_is_that_of_the_srqs_pd)
{
	struct fg_pd pd;
	struct fg_srq srq;
	struct fg_mr mr;

	expect_ok(fg_pd_create(&env->g[1]->kernel, &pd));
	expect_ok(fg_mr_create(&pd, &x->b->buf, FG_ACCESS_ALL, &mr));
	expect_ok(fg_xrc_srq_create(&x->xrcd, &pd, &x->b->rcq, 32, 4, &srq));
	for (size_t i = 0; i < COUNT(accesses); i++) {
		access(x, accesses[i], i, 0, &x->b->mr);
		expect_cqe(&x->a->scq, i, PVRDMA_WC_SUCCESS);
		access(x, accesses[i], i, 0, &mr);
		expect_cqe(&x->a->scq, i, PVRDMA_WC_REM_ACCESS_ERR);
		fg_run(env->host);
		end_drain(x->b);
		connect(x, NULL);
	}
	x->srq[0] = srq;
	access(x, PVRDMA_WR_RDMA_WRITE, 1, 0, &mr);
	expect_cqe(&x->a->scq, 1, PVRDMA_WC_SUCCESS);
}

/* ------------------------------------------------------------------- wrong numbers */

TEST_XRC(test_unknown_srq_is_refused)
{
	static const uint32_t bad[] = { 2, 999, PVR_MAX_SRQ, 1u << 24, UINT32_MAX };

	for (size_t i = 0; i < COUNT(bad); i++) {
		send_to(x, bad[i], 1, 64);
		expect_refusal(x, 1);
	}
}

TEST_XRC(test_write_that_names_an_unknown_srq_is_refused)
{
	t_post(x->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, .srqn = 99, T_SGE(&x->a->mr, 0, 8),
	       T_REMOTE(&x->b->mr, 0));
	fg_run(env->host);
	expect_refusal(x, 1);
}

TEST_XRC(test_basic_srq_is_refused)
{
	struct fg_srq basic;

	expect_ok(fg_srq_create(&x->b->pd, 32, 4, &basic));
	send_to(x, basic.handle, 1, 64);
	expect_refusal(x, 1);
}

TEST_XRC(test_srq_of_another_domain_is_refused)
{
	struct fg_xrcd other;
	struct fg_srq srq;

	expect_ok(fg_xrcd_create(env->g[1], &other));
	expect_ok(fg_xrc_srq_create(&other, &x->b->pd, &x->b->rcq, 32, 4, &srq));
	send_to(x, srq.handle, 1, 64);
	expect_refusal(x, 1);
}

TEST_XRC(test_destroyed_srq_is_refused)
{
	message(x, 1, 1);
	expect_ok(fg_srq_destroy(&x->srq[1]));
	send_to(x, x->srq[1].handle, 1, 64);
	expect_refusal(x, 1);
}

/* ------------------------------------------------------------ waiting for a receive */

TEST_XRC(test_sender_waits_for_a_receive_of_its_srq)
{
	send_to(x, x->srq[1].handle, 1, 64);
	expect_no_cqe(&x->a->scq);
	t_srq_recv(&x->srq[0], 2, &x->b->mr, 0, 64);
	fg_run(env->host);
	expect_no_cqe(&x->a->scq);
	t_srq_recv(&x->srq[1], 3, &x->b->mr, 0, 64);
	fg_settle(env->host, 20 * FG_MS);
	expect_message(x, 1, 3);
	expect_sent(x->a, 1);
}

TEST_XRC(test_sender_that_waits_is_refused_when_its_srq_is_destroyed)
{
	send_to(x, x->srq[1].handle, 1, 64);
	expect_no_cqe(&x->a->scq);
	expect_ok(fg_srq_destroy(&x->srq[1]));
	fg_settle(env->host, 20 * FG_MS);
	expect_refusal(x, 1);
}

/* The target takes another SRQ before its quantum resumes the sender. */
TEST_XRC(test_sender_that_waits_is_counted_once_when_its_srq_is_destroyed)
{
	struct pvr_adapter *adapter = x->b->guest->adapter;
	struct pvr_srq *srq;
	struct pvr_qp *tgt;

	t_one_host_only(env, "a sender of another host retries by its timer");
	send_to(x, x->srq[1].handle, 1, 64);
	expect_ok(fg_srq_destroy(&x->srq[1]));
	tgt = pvr_qp_get(adapter, x->tgt.handle);
	srq = pvr_srq_get(adapter, x->srq[0].handle);
	assert_true(tgt->rnr_resume_pending && !tgt->srq);
	pvr_xrc_take_srq(tgt, srq);
	assert_int_equal(srq->waking, 1);
	fg_settle(env->host, 20 * FG_MS);
	assert_int_equal(pvr_srq_get(adapter, x->srq[0].handle)->waking, 0);
	expect_refusal(x, 1);
}

/* --------------------------------------------------------------- in mid-message */

/* The first fragment of a message to srq[1] has arrived. */
static void begin_message(struct xrc *x)
{
	t_widen(x->a, BIG);
	t_widen(x->b, BIG);
	t_srq_recv(&x->srq[1], 1, &x->b->mr, 0, BIG);
	t_post(x->a, .wr_id = 2, .opcode = PVRDMA_WR_SEND, .srqn = x->srq[1].handle,
	       T_SGE(&x->a->mr, 0, BIG));
	for (int i = 0; i < 100; i++) {
		const struct pvr_qp *tgt = pvr_qp_get(x->b->guest->adapter, x->tgt.handle);

		if (tgt->rq_offset)
			return;
		fg_run_bounded(x->env->host, 1);
	}
	fail_msg("no fragment has arrived");
}

TEST_XRC(test_message_in_progress_is_refused_when_its_srq_is_destroyed)
{
	struct fg_srq again;

	begin_message(x);
	expect_ok(fg_srq_destroy(&x->srq[1]));
	/* It has the same number. */
	expect_ok(fg_xrc_srq_create(&x->xrcd, &x->b->pd, &x->b->rcq, 32, 4, &again));
	x->srq[1] = again;
	t_srq_recv(&again, 5, &x->b->mr, 0, BIG);
	fg_settle(env->host, 20 * FG_MS);
	expect_cqe(&x->a->scq, 2, PVRDMA_WC_REM_INV_REQ_ERR);
	expect_no_cqe(&x->b->rcq);
}

/* The guest changes the WQE of a request in progress. */
TEST_XRC(test_message_that_changes_its_srq_is_refused)
{
	begin_message(x);
	t_srq_recv(&x->srq[0], 5, &x->b->mr, 0, BIG);
	fg_sq_wqe(&x->a->qp, 0)->reserved = x->srq[0].handle;
	fg_settle(env->host, 20 * FG_MS);
	expect_cqe(&x->a->scq, 2, PVRDMA_WC_REM_INV_REQ_ERR);
	/* The receive that the message has taken. */
	expect_cqe(&x->b->rcq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(&x->b->rcq);
}

TEST_XRC(test_error_flushes_the_receive_that_the_target_has_taken)
{
	begin_message(x);
	expect_ok(fg_qp_to_err(&x->tgt));
	fg_settle(env->host, 20 * FG_MS);
	expect_cqe(&x->b->rcq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	/* Not LAST_WQE_REACHED: no SRQ is associated with a target. */
	expect_no_event(x->b->guest);
}

/* By a fault of the operator. The SRQ's other receive requests stay. */
TEST_XRC(test_error_of_a_receive_request_of_an_srq_fails_the_target)
{
	t_not_migrated(env, "the state of faults is not saved");
	add(env, "from=vm1 recv-error=LOC_PROT_ERR,after=1");
	message(x, 0, 1);
	t_srq_recv(&x->srq[1], 2, &x->b->mr, 4096, 64);
	t_srq_recv(&x->srq[1], 3, &x->b->mr, 4096, 64);
	send_to(x, x->srq[1].handle, 2, 64);
	fg_settle(env->host, FG_SEC);
	expect_cqe(&x->a->scq, 2, PVRDMA_WC_REM_OP_ERR);
	expect_cqe(&x->b->rcq, 2, PVRDMA_WC_LOC_PROT_ERR);
	expect_no_cqe(&x->b->rcq);
	assert_int_equal(fg_qp_state(&x->tgt), PVR_QPS_ERR);
	assert_int_equal(last(env).failed, 1);
}

TEST_XRC(test_error_of_a_receive_request_needs_one_of_the_named_srq)
{
	t_not_migrated(env, "the state of faults is not saved");
	add(env, "from=vm1 recv-error=LOC_PROT_ERR");
	t_srq_recv(&x->srq[0], 1, &x->b->mr, 4096, 64);
	send_to(x, x->srq[1].handle, 2, 64);
	expect_no_cqe(&x->a->scq);
	expect_no_cqe(&x->b->rcq);
	t_srq_recv(&x->srq[1], 2, &x->b->mr, 4096, 64);
	fg_settle(env->host, FG_SEC);
	expect_cqe(&x->a->scq, 2, PVRDMA_WC_REM_OP_ERR);
	expect_cqe(&x->b->rcq, 2, PVRDMA_WC_LOC_PROT_ERR);
}

TEST_XRC(test_error_of_a_receive_request_of_an_unknown_srq_is_a_refusal)
{
	add(env, "from=vm1 recv-error=LOC_PROT_ERR");
	send_to(x, 0xbad, 2, 64);
	fg_settle(env->host, FG_SEC);
	expect_cqe(&x->a->scq, 2, PVRDMA_WC_REM_INV_REQ_ERR);
	assert_int_equal(fg_qp_state(&x->tgt), PVR_QPS_ERR);
}

TEST_XRC(test_target_is_destroyed_in_mid_message)
{
	begin_message(x);
	expect_ok(fg_qp_destroy(&x->tgt));
	expect_ok(fg_srq_destroy(&x->srq[1]));
	expect_ok(fg_srq_destroy(&x->srq[0]));
	expect_ok(fg_xrcd_destroy(&x->xrcd));
}

/* --------------------------------------------------------------------- life times */

TEST_XRC(test_target_outlives_the_process_of_its_srqs)
{
	struct fg_ctx ctx;
	struct fg_srq srq;
	struct fg_cq cq;
	struct fg_pd pd;

	for (int i = 0; i < 3; i++) {
		expect_ok(fg_ctx_create(env->g[1], &ctx));
		expect_ok(fg_pd_create(&ctx, &pd));
		expect_ok(fg_cq_create(&ctx, 32, &cq));
		expect_ok(fg_xrc_srq_create(&x->xrcd, &pd, &cq, 32, 4, &srq));
		send_to(x, srq.handle, 1, 0);
		t_srq_recv(&srq, 2, &x->b->mr, 0, 0);
		fg_settle(env->host, 20 * FG_MS);
		expect_sent(x->a, 1);
		expect_recv(&cq, 2, 0);
		expect_ok(fg_ctx_destroy(&ctx));
		message(x, 0, 3);
	}
	assert_int_equal(fg_qp_state(&x->tgt), PVR_QPS_RTS);
}

TEST_XRC(test_domain_in_use_is_not_destroyed)
{
	assert_int_equal(fg_xrcd_destroy(&x->xrcd), EBUSY);
	expect_ok(fg_srq_destroy(&x->srq[0]));
	expect_ok(fg_srq_destroy(&x->srq[1]));
	assert_int_equal(fg_xrcd_destroy(&x->xrcd), EBUSY);
	expect_ok(fg_qp_destroy(&x->tgt));
	expect_ok(fg_xrcd_destroy(&x->xrcd));
	assert_int_equal(fg_xrcd_destroy(&x->xrcd), EINVAL);
}

TEST_XRC(test_cq_of_an_srq_is_not_destroyed)
{
	message(x, 0, 1);
	expect_ok(fg_qp_destroy(&x->b->qp));
	assert_int_equal(fg_cq_destroy(&x->b->rcq), EBUSY);
}

TEST_XRC(test_reset_of_the_target_forgets_its_srq)
{
	message(x, 0, 1);
	expect_ok(fg_qp_to_reset(&x->tgt));
	expect_ok(fg_srq_destroy(&x->srq[0]));
	expect_ok(fg_qp_to_reset(&x->a->qp));
	connect(x, NULL);
	message(x, 1, 2);
}

TEST_XRC(test_device_reset_destroys_all)
{
	message(x, 0, 1);
	fg_reg_write(x->b->guest, PVR_REG_CTL, PVR_CTL_RESET);
	fg_run(env->host);
	assert_int_equal(fg_stats(x->b->guest).srqs, 0);
	assert_int_equal(x->b->guest->adapter->xrcds.used, 0);
}

/* Each target has taken a receive from the SRQ, so each must lose it. */
TEST_XRC(test_srq_of_many_targets_is_destroyed_in_steps)
{
	enum { MANY = 3000 };
	const struct pvr_adapter *adapter = x->b->guest->adapter;
	struct pvr_srq *srq = pvr_srq_get(x->b->guest->adapter, x->srq[0].handle);
	struct pvr_cmd_create_qp req;
	struct pvr_resp_create_qp resp;
	struct fg_buf page;

	fg_buf_init(&page, &x->b->guest->ram, 1, FG_SCATTERED);
	req = fg_xrc_tgt_request(&x->xrcd, &page);
	for (int i = 0; i < MANY; i++) {
		struct pvr_qp *qp;

		expect_ok(fg_create_qp(x->b->guest, &req, &resp));
		qp = pvr_qp_get(x->b->guest->adapter, resp.qp_handle);
		qp->srq = srq;
		LIST_INSERT_HEAD(&srq->targets, qp->xrc_target, link);
	}
	expect_ok(fg_srq_destroy(&x->srq[0]));
	assert_in_range(adapter->job.longest, PVR_STEP_WORK / 2, PVR_STEP_WORK + PVR_WORK_QP);
}

/* -------------------------------------------------------------------- connections */

TEST_XRC(test_rc_and_xrc_do_not_connect)
{
	const struct fg_conn once = t_conn_ack(1, 1);

	/* a's initiator to b's RC queue pair. */
	expect_ok(fg_qp_to_reset(&x->a->qp));
	expect_ok(fg_qp_connect(&x->a->qp, &once, x->b->gid, x->b->qp.qpn));
	expect_ok(fg_qp_connect(&x->b->qp, &once, x->a->gid, x->a->qp.qpn));
	t_post(x->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, T_SGE(&x->a->mr, 0, 8));
	t_recv(x->b, 1, 0, 8);
	fg_settle(env->host, 100 * FG_MS);
	expect_cqe(&x->a->scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	/* b's RC queue pair to a's initiator. */
	expect_ok(fg_qp_to_reset(&x->a->qp));
	expect_ok(fg_qp_connect(&x->a->qp, &once, x->b->gid, x->b->qp.qpn));
	t_send(x->b, 2, 0, 8);
	fg_settle(env->host, 100 * FG_MS);
	expect_cqe(&x->b->scq, 2, PVRDMA_WC_RETRY_EXC_ERR);
}

/* A guest may write a producer index to the header page of a target. */
TEST_XRC(test_target_sends_nothing)
{
	x->tgt.ring->tx.prod_tail = 1;
	fg_reg_write(x->b->guest, 0, 0);
	fg_run(env->host);
	message(x, 0, 1);
	assert_int_equal(fg_qp_state(&x->tgt), PVR_QPS_RTS);
}

/* ------------------------------------------------------------------- attributes */

#define NEED_INI (PVR_QPA_AV | PVR_QPA_PATH_MTU | PVR_QPA_DEST_QPN | PVR_QPA_RQ_PSN)
#define NEED_TGT (NEED_INI | PVR_QPA_MAX_DEST_RD_ATOMIC | PVR_QPA_MIN_RNR_TIMER)

static void expect_rtr(struct xrc *x, struct fg_qp *qp, uint32_t mask, uint32_t err)
{
	struct pvr_qp_attr attr = {
		.qp_state = PVR_QPS_RTR,
		.path_mtu = PVR_MTU_1024,
		.ah_attr = { .ah_flags = PVR_AH_GRH, .port_num = 1 },
	};

	memcpy(attr.ah_attr.dgid, x->a->gid, 16);
	expect_ok(fg_qp_to_reset(qp));
	expect_ok(fg_qp_to_init(qp, NULL));
	assert_int_equal(fg_qp_modify(qp, PVR_QPA_STATE | mask, &attr), err);
}

TEST_XRC(test_rtr_needs_the_attributes_of_the_role)
{
	expect_rtr(x, &x->a->qp, NEED_INI, 0);
	expect_rtr(x, &x->a->qp, NEED_TGT, EINVAL);
	expect_rtr(x, &x->a->qp, NEED_INI & ~PVR_QPA_RQ_PSN, EINVAL);
	expect_rtr(x, &x->tgt, NEED_TGT, 0);
	expect_rtr(x, &x->tgt, NEED_INI, EINVAL);
}

TEST_XRC(test_rts_needs_the_attributes_of_the_role)
{
	const uint32_t tgt = PVR_QPA_TIMEOUT | PVR_QPA_SQ_PSN;
	const uint32_t ini = tgt | PVR_QPA_RETRY_CNT | PVR_QPA_RNR_RETRY | PVR_QPA_MAX_RD_ATOMIC;
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_RTS };

	expect_rtr(x, &x->a->qp, NEED_INI, 0);
	assert_int_equal(fg_qp_modify(&x->a->qp, PVR_QPA_STATE | tgt, &attr), EINVAL);
	expect_ok(fg_qp_modify(&x->a->qp, PVR_QPA_STATE | ini, &attr));
	expect_rtr(x, &x->tgt, NEED_TGT, 0);
	assert_int_equal(fg_qp_modify(&x->tgt, PVR_QPA_STATE | ini, &attr), EINVAL);
	expect_ok(fg_qp_modify(&x->tgt, PVR_QPA_STATE | tgt, &attr));
}

/* ------------------------------------------------------------------- bad creation */

#define TGT(member, value) T_MEMBER(struct pvr_cmd_create_qp, member, value)

static const struct {
	const char *label;
	struct t_member wrong;
} bad_targets[] = {
	{ "unknown domain", TGT(xrcd_handle, 99) },
	{ "domain 0", TGT(xrcd_handle, 0) },
	{ "send queue", TGT(max_send_wr, 1) },
	{ "receive queue", TGT(max_recv_wr, 1) },
	{ "send entries", TGT(max_send_sge, 1) },
	{ "receive entries", TGT(max_recv_sge, 1) },
	{ "inline data", TGT(max_inline_data, 1) },
	{ "SRQ", TGT(is_srq, 1) },
	{ "no page", TGT(total_chunks, 0) },
	{ "more than its header page", TGT(total_chunks, 2) },
	{ "send pages", TGT(send_chunks, 1) },
	{ "unknown flag", TGT(flags, 0x80) },
};

TEST_OBJECTS_CASES(test_create_target_rejects_bad_members, bad_targets)
{
	struct pvr_cmd_create_qp req;
	struct pvr_resp_create_qp resp;
	struct fg_xrcd xrcd;

	expect_ok(fg_xrcd_create(o->g, &xrcd));
	req = fg_xrc_tgt_request(&xrcd, &o->buf);
	t_store(&req, &row->wrong);
	assert_int_equal(fg_create_qp(o->g, &req, &resp), EINVAL);
	expect_ok(fg_xrcd_destroy(&xrcd));
}

#define SRQ(member, value) T_MEMBER(struct pvr_cmd_create_srq, member, value)

static const struct {
	const char *label;
	struct t_member wrong;
} bad_srqs[] = {
	{ "unknown domain", SRQ(xrcd_handle, 99) },
	{ "unknown CQ", SRQ(cq_handle, 99) },
	{ "unknown PD", SRQ(pd_handle, 99) },
};

TEST_OBJECTS_CASES(test_create_xrc_srq_rejects_bad_members, bad_srqs)
{
	struct pvr_cmd_create_srq req = fg_srq_request(&o->pd, &o->buf, 16, 1);
	struct pvr_resp_create_srq resp;
	struct fg_xrcd xrcd;

	expect_ok(fg_xrcd_create(o->g, &xrcd));
	req.srq_type = PVR_SRQT_XRC;
	req.xrcd_handle = xrcd.handle;
	req.cq_handle = o->cq.handle;
	t_store(&req, &row->wrong);
	assert_int_equal(fg_create_srq(o->g, &req, &resp), EINVAL);
	expect_ok(fg_xrcd_destroy(&xrcd));
}

TEST_OBJECTS(test_cq_of_another_context_is_rejected)
{
	struct fg_xrcd xrcd;
	struct fg_srq srq;
	struct fg_ctx ctx;
	struct fg_pd pd;

	expect_ok(fg_xrcd_create(o->g, &xrcd));
	expect_ok(fg_ctx_create(o->g, &ctx));
	expect_ok(fg_pd_create(&ctx, &pd));
	assert_int_equal(fg_xrc_srq_create(&xrcd, &pd, &o->cq, 16, 1, &srq), EINVAL);
}

TEST_OBJECTS(test_initiator_with_a_receive_queue_is_rejected)
{
	struct fg_qp_spec spec = o->qp;
	struct pvr_cmd_create_qp req;
	struct pvr_resp_create_qp resp;

	spec.type = PVR_QPT_XRC_INI;
	req = fg_qp_request(&spec);
	req.pdir_dma = o->buf.pdir;
	req.max_recv_wr = 1;
	req.total_chunks++;
	assert_int_equal(fg_create_qp(o->g, &req, &resp), EINVAL);
}

TEST_OBJECTS(test_all_domains_can_be_used_up_and_used_again)
{
	struct t_use_up use = { .guest = o->g,
				.max = PVR_MAX_XRCD,
				.destroy = PVR_CMD_DESTROY_XRCD };
	struct fg_xrcd xrcd;

	while (t_use_up(&use, fg_xrcd_create(o->g, &xrcd), &xrcd.handle))
		assert_true(xrcd.handle < use.max);
}

T_SETUP_EXT(without, PVR_ENGINE_EXT & ~PVR_EXT_XRC, guest)

TEST(without, test_driver_without_the_extension_has_no_xrc)
{
	struct pvr_cmd_create_qp req = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_QP) };
	struct pvr_resp_create_qp resp;
	struct fg_xrcd xrcd;

	assert_int_equal(fg_xrcd_create(env->g[0], &xrcd), ENOSYS);
	for (req.qp_type = PVR_QPT_XRC_INI; req.qp_type <= PVR_QPT_XRC_TGT; req.qp_type++)
		assert_int_equal(fg_create_qp(env->g[0], &req, &resp), EOPNOTSUPP);
}

/* ------------------------------------------------------------------ between hosts */

T_SETUP_HOSTS(old, 2, .old = true)
{
}

TEST(old, test_peers_pvrdmad_without_xrc_fails_the_request)
{
	struct xrc x;

	xrc_init(&x, env);
	t_srq_recv(&x.srq[0], 1, &x.b->mr, 0, 64);
	send_to(&x, x.srq[0].handle, 1, 64);
	fg_settle(env->host, 20 * FG_MS);
	expect_cqe(&x.a->scq, 1, PVRDMA_WC_REM_INV_REQ_ERR);
	assert_int_equal(fg_qp_state(&x.tgt), PVR_QPS_RTS);
}

TEST(old, test_request_without_the_feature_ends_the_connection)
{
	struct pvr_frame_request frame = {
		.frame = FG_FRAME(PVR_FRAME_REQUEST, sizeof(frame)),
		.op = PVR_FRAME_OP_SEND,
		.gid_type = PVR_GID_TYPE_ROCE_V2,
		.psns = htole32(1),
	};
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);

	frame.frame.flags = PVR_REQUEST_F_LAST | PVR_REQUEST_F_XRC;
	fg_malformed_send_fabric(malformed, "default");
	fg_malformed_send(malformed, &frame, sizeof(frame));
	fg_settle(env->host, 20 * FG_MS);
	assert_true(fg_malformed_is_closed(malformed));
	assert_string_equal(fg_wire_why(env->wire), "XRC request, but XRC was not negotiated");
}

T_SETUP_HOSTS(hosts, 2)
{
}

/* An RDMA READ that is answered again uses the PD of the SRQ that it names. */
TEST(hosts, test_read_is_repeated_after_a_broken_connection)
{
	struct xrc x;

	xrc_init(&x, env);
	fg_settle(env->host, 20 * FG_MS);
	message(&x, 0, 9);
	memset(x.b->mr.va, 0x77, 64);
	fg_wire_hold(env->wire, 1, 0, true);
	access(&x, PVRDMA_WR_RDMA_READ, 1, 1, &x.b->mr);
	expect_no_cqe(&x.a->scq);
	fg_wire_cut(env->wire, 0, 1, 0);
	fg_wire_hold(env->wire, 1, 0, false);
	fg_wire_mend(env->wire, 0, 1, 0);
	fg_wire_settle(env->wire, FG_SEC);
	expect_done(&x.a->scq, 1, PVRDMA_WC_RDMA_READ);
	assert_memory_equal(x.a->mr.va, x.b->mr.va, 8);
}
