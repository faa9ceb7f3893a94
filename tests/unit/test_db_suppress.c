// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_DB_SUPPRESS: the words that spare doorbells, state by state; polled send queues. */
#include <pthread.h>
#include <stdlib.h>

#include "common.h"

TEST_INIT
{
	fg_default_ext = PVR_ENGINE_EXT;
}

#define POISON 0xabadcafeu

static uint32_t sq_word(const struct fg_end *end)
{
	return __atomic_load_n(&fg_qp_db_suppress(&end->qp)->sq, __ATOMIC_RELAXED);
}

static uint32_t rq_word(const struct fg_end *end)
{
	return __atomic_load_n(&fg_qp_db_suppress(&end->qp)->rq, __ATOMIC_RELAXED);
}

static uint32_t srq_word(const struct fg_srq *srq)
{
	return __atomic_load_n(&fg_srq_db_suppress(srq)->rq, __ATOMIC_RELAXED);
}

#define expect_words(end, sq, rq)                          \
	do {                                               \
		assert_int_equal(sq_word(end) != 0, (sq)); \
		assert_int_equal(rq_word(end) != 0, (rq)); \
	} while (0)

/* Requests that went without a doorbell since the last call. */
static uint64_t spared(struct fg_guest *guest)
{
	uint64_t n = guest->doorbells_spared;

	guest->doorbells_spared = 0;
	return n;
}

/* ---------------------------------------------------------------- values of the words */

/* Without the extension the device does not touch the words. */
TEST(rc, test_without_the_extension_nothing_is_written)
{
	struct pvr_db_suppress *words_shm;
	struct fg_end c, d;

	for (uint32_t i = 0; i < 2; i++) {
		env->g[i]->config.ext = PVR_ENGINE_EXT & ~PVR_EXT_DB_SUPPRESS;
		expect_ok(fg_guest_boot(env->g[i]));
		expect_ok(fg_bind_gid(env->g[i], 0, i ? env->b.gid : env->a.gid));
	}
	fg_end_open(&c, env->g[0], PVR_QPT_RC);
	fg_end_open(&d, env->g[1], PVR_QPT_RC);
	words_shm = fg_qp_db_suppress(&c.qp);
	*words_shm = (struct pvr_db_suppress){ POISON, POISON };
	fg_end_connect(&c, &d, NULL);
	pvr_engine_poll(env->host->engine, 0);
	t_ping_pong(env->host, &c, &d);
	t_send(&d, 1, 0, 8);
	fg_run(env->host);
	t_recv(&c, 2, 0, 8);
	fg_run(env->host);
	expect_recv(&c.rcq, 2, 8);
	expect_ok(fg_qp_to_err(&c.qp));
	fg_run(env->host);
	expect_ok(fg_qp_to_reset(&c.qp));
	fg_run(env->host);
	assert_int_equal(words_shm->sq, POISON);
	assert_int_equal(words_shm->rq, POISON);
	assert_int_equal(env->g[0]->doorbells_spared, 0);
}

TEST(rc, test_words_are_0_when_a_queue_pair_is_made)
{
	struct fg_qp_spec spec = {
		.type = PVR_QPT_RC, .pd = &env->a.pd, .scq = &env->a.scq, .rcq = &env->a.rcq
	};
	struct pvr_cmd_create_qp req = fg_qp_request(&spec);
	struct pvr_resp_create_qp resp;
	struct pvr_db_suppress *words_shm;
	struct fg_buf buf;

	fg_buf_init(&buf, &env->g[0]->ram, req.total_chunks, FG_SCATTERED);
	words_shm = (void *)(buf.va + PVR_DB_SUPPRESS_OFFSET);
	*words_shm = (struct pvr_db_suppress){ POISON, POISON };
	req.pdir_dma = buf.pdir;
	expect_ok(fg_create_qp(env->g[0], &req, &resp));
	assert_int_equal(words_shm->sq, 0);
	assert_int_equal(words_shm->rq, 0);
	assert_int_equal(words_shm[1].sq, 0);
	expect_ok(fg_cmd_destroy(env->g[0], PVR_CMD_DESTROY_QP, resp.qp_handle));
	fg_buf_exit(&buf);
}

/* ------------------------------------------------------------ send queues */

TEST(rc_connected, test_idle_send_queue_wants_its_doorbell)
{
	fg_run(env->host);
	expect_words(&env->a, false, true);
	t_ping_pong(env->host, &env->a, &env->b);
	expect_words(&env->a, false, true);
	expect_words(&env->b, false, true);
}

TEST(rc_connected, test_one_doorbell_is_enough_for_a_quantum)
{
	uint64_t rung = env->g[0]->doorbells;

	fg_run(env->host);
	for (uint32_t i = 0; i < 40; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, 8);
	expect_words(&env->a, true, true);
	assert_int_equal(env->g[0]->doorbells - rung, 1);
	assert_int_equal(spared(env->g[0]), 39);
	fg_run(env->host);
	for (uint32_t i = 0; i < 40; i++)
		expect_done(&env->a.scq, i, PVRDMA_WC_RDMA_WRITE);
	expect_words(&env->a, false, true);
}

/* A large message takes many turns; what is posted meanwhile follows it. */
TEST(rc_connected, test_message_in_fragments_needs_no_more_doorbells)
{
	struct fg_mr wide_a, wide_b;

	t_wide_mr(&env->a, 4096, &wide_a);
	t_wide_mr(&env->b, 4096, &wide_b);
	fg_run(env->host);
	for (uint32_t i = 0; i < 2; i++) {
		struct pvrdma_sge sge = { wide_a.start, 16u << 20, wide_a.lkey };
		struct fg_wr wr = { .wr_id = i,
				    .opcode = PVRDMA_WR_RDMA_WRITE,
				    .flags = PVR_SEND_SIGNALED,
				    .sge = &sge,
				    .num_sge = 1,
				    .remote_addr = wide_b.start,
				    .rkey = wide_b.rkey };

		assert_true(fg_post_send(&env->a.qp, &wr));
		pvr_engine_run(env->host->engine, 0);
		expect_words(&env->a, true, true);
	}
	assert_int_equal(spared(env->g[0]), 1);
	fg_run(env->host);
	expect_done(&env->a.scq, 0, PVRDMA_WC_RDMA_WRITE);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	expect_words(&env->a, false, true);
}

TEST(rc, test_what_is_posted_before_rts_needs_no_doorbell)
{
	struct pvrdma_sge sge = fg_sge(&env->a.mr, 0, 8);
	struct fg_wr wr = { .wr_id = 1,
			    .opcode = PVRDMA_WR_SEND,
			    .flags = PVR_SEND_SIGNALED,
			    .sge = &sge,
			    .num_sge = 1 };

	expect_words(&env->a, false, false);
	expect_ok(fg_qp_to_init(&env->a.qp, NULL));
	fg_run(env->host);
	expect_words(&env->a, false, true);
	t_recv(&env->a, 2, 0, 8);
	assert_int_equal(spared(env->g[0]), 1);
	assert_true(fg_put_send(&env->a.qp, &wr));
	expect_ok(fg_qp_connect(&env->b.qp, NULL, env->a.gid, env->a.qp.qpn));
	t_recv(&env->b, 3, 0, 8);
	t_send(&env->b, 4, 0, 8);
	expect_ok(fg_qp_to_rtr(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	fg_settle(env->host, FG_SEC);
	expect_recv(&env->a.rcq, 2, 8);
	expect_no_cqe(&env->a.scq);
	expect_ok(fg_qp_to_rts(&env->a.qp, NULL));
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	expect_recv(&env->b.rcq, 3, 8);
}

TEST(rc_connected, test_what_is_posted_while_it_waits_follows_by_itself)
{
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	expect_words(&env->a, true, true);
	t_send(&env->a, 2, 0, 8);
	assert_int_equal(spared(env->g[0]), 2); /* the first: RTS had just given a turn */
	assert_true(fg_put_recv(&env->b.qp, 3, &(struct pvrdma_sge){ 0 }, 0));
	assert_true(fg_put_recv(&env->b.qp, 4, &(struct pvrdma_sge){ 0 }, 0));
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->b.rcq, 3, PVRDMA_WC_LOC_LEN_ERR);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_INV_REQ_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_words(&env->a, false, false);
}

TEST(rc_connected, test_peer_that_does_not_answer_changes_nothing)
{
	fg_run(env->host);
	pvr_adapter_set_link(env->g[1]->adapter, false);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_run(env->host);
	expect_words(&env->a, true, true);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, 8);
	assert_int_equal(spared(env->g[0]), 1);
	pvr_adapter_set_link(env->g[1]->adapter, true);
	fg_settle(env->host, FG_SEC);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_WRITE);
	expect_words(&env->a, false, true);
}

TEST(rc_connected, test_sqd_keeps_requests_for_rts)
{
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_SQD };

	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE, &attr));
	fg_run(env->host);
	expect_words(&env->a, false, true);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	assert_true(fg_run_bounded(env->host, 4));
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, 8);
	assert_true(fg_run_bounded(env->host, 4));
	expect_no_cqe(&env->a.scq);
	attr.qp_state = PVR_QPS_RTS;
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE, &attr));
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_WRITE);
	expect_words(&env->a, false, true);
}

/* Of UD the send queue alone fails. */
TEST(ud_ready, test_sqe_flushes_what_comes_later)
{
	struct pvrdma_sge sge = { FG_USER_VA, 8, 0xbadbad00u };
	struct fg_wr wr = { .wr_id = 1, .opcode = PVRDMA_WR_SEND, .sge = &sge, .num_sge = 1 };

	assert_true(fg_post_send(&env->a.qp, &wr));
	fg_run(env->host);
	fg_cq_drain(&env->a.scq);
	expect_state(&env->a, PVR_QPS_SQE);
	expect_words(&env->a, false, true);
	t_send_ud(&env->a, &env->b, 2, 0, 8);
	fg_run(env->host);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_words(&env->a, false, true);
}

TEST(ud_ready, test_datagrams_arrive_without_receive_doorbells)
{
	fg_run(env->host);
	for (uint32_t i = 0; i < 3; i++) {
		t_recv(&env->b, i, 0, 200);
		t_send_ud(&env->a, &env->b, i, 0, 100);
		fg_run(env->host);
		expect_done(&env->a.scq, i, PVRDMA_WC_SEND);
		expect_recv(&env->b.rcq, i, 140);
	}
	assert_int_equal(env->g[1]->doorbells, 0);
	/* A datagram without a receive is dropped: the QP does not wait. */
	t_send_ud(&env->a, &env->b, 4, 0, 100);
	fg_run(env->host);
	expect_words(&env->b, false, true);
}

/* ---------------------------------------------------------- ERR and RESET */

TEST(rc_connected, test_err_flushes_what_comes_later_too)
{
	fg_run(env->host);
	t_recv(&env->a, 1, 0, 8);
	assert_int_equal(spared(env->g[0]), 1);
	expect_ok(fg_qp_to_err(&env->a.qp));
	assert_int_equal(rq_word(&env->a), 0);
	fg_run(env->host);
	expect_cqe(&env->a.rcq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	expect_words(&env->a, false, false);
	for (uint32_t i = 2; i < 5; i++) {
		t_recv(&env->a, i, 0, 8);
		t_send(&env->a, i, 0, 8);
		fg_run(env->host);
		expect_cqe(&env->a.rcq, i, PVRDMA_WC_WR_FLUSH_ERR);
		expect_cqe(&env->a.scq, i, PVRDMA_WC_WR_FLUSH_ERR);
		expect_words(&env->a, false, false);
	}
}

/* The receive that was posted without a doorbell just before is in the flush. */
TEST(rc_connected, test_receive_posted_just_before_err_is_flushed)
{
	fg_run(env->host);
	expect_ok(fg_qp_to_err(&env->b.qp));
	assert_true(fg_put_recv(&env->b.qp, 1, &(struct pvrdma_sge){ 0 }, 0));
	fg_run(env->host);
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_WR_FLUSH_ERR);
}

TEST(rc_connected, test_wild_index_in_err_is_looked_at_once)
{
	expect_ok(fg_qp_to_err(&env->a.qp));
	env->a.qp.ring->tx.prod_tail = 5000;
	env->a.qp.ring->rx.prod_tail = 5000;
	assert_true(fg_run_bounded(env->host, 8));
	fg_ring_send(&env->a.qp);
	fg_ring_recv(&env->a.qp);
	assert_true(fg_run_bounded(env->host, 8));
	expect_words(&env->a, false, false);
}

TEST(rc_connected, test_reset_makes_both_words_0)
{
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	expect_words(&env->a, true, true);
	expect_words(&env->b, false, false);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	fg_run(env->host);
	expect_words(&env->a, false, false);
	expect_words(&env->b, false, false);
	fg_end_connect(&env->a, &env->b, NULL);
	fg_run(env->host);
	expect_words(&env->a, false, true);
	expect_words(&env->b, false, true);
	t_ping_pong(env->host, &env->a, &env->b);
}

/* Its pages are the guest's again. */
TEST(rc_connected, test_destroyed_queue_pair_is_not_written_to)
{
	struct pvr_db_suppress *words_shm = fg_qp_db_suppress(&env->a.qp);
	uint32_t handle = env->a.qp.handle;

	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	*words_shm = (struct pvr_db_suppress){ POISON, POISON };
	expect_ok(fg_cmd_destroy(env->g[0], PVR_CMD_DESTROY_QP, handle));
	pvr_engine_poll(env->host->engine, 0);
	t_recv(&env->b, 2, 0, 8);
	fg_settle(env->host, FG_SEC);
	pvr_engine_enable_doorbells(env->host->engine, 0);
	assert_int_equal(words_shm->sq, POISON);
	assert_int_equal(words_shm->rq, POISON);
	fg_qp_drop(&env->a.qp);
	env->a.qp.buf.view = NULL;
}

/* A new driver that resets the device may have other plans for the pages. */
TEST(rc_connected, test_reset_of_the_device_writes_no_words)
{
	struct pvr_db_suppress *words_shm = fg_qp_db_suppress(&env->b.qp);

	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	expect_words(&env->b, false, false);
	*words_shm = (struct pvr_db_suppress){ POISON, POISON };
	pvr_adapter_reset(env->g[1]->adapter);
	assert_int_equal(words_shm->sq, POISON);
	assert_int_equal(words_shm->rq, POISON);
}

/* --------------------------------------------------------------- receives */

TEST(rc_connected, test_sender_that_waits_wants_the_receive_doorbell)
{
	for (uint32_t i = 0; i < 3; i++) {
		t_send(&env->a, i, 0, 8);
		fg_run(env->host);
		expect_no_cqe(&env->a.scq);
		assert_int_equal(rq_word(&env->b), 0);
		/* No time passes: it is the doorbell that wakes. */
		t_recv(&env->b, i, 0, 8);
		assert_int_equal(spared(env->g[1]), 0);
		fg_run(env->host);
		expect_done(&env->a.scq, i, PVRDMA_WC_SEND);
		expect_recv(&env->b.rcq, i, 8);
		assert_int_not_equal(rq_word(&env->b), 0);
	}
}

TEST(rc_connected, test_receives_in_time_need_no_doorbell)
{
	fg_run(env->host);
	for (uint32_t i = 0; i < 100; i++) {
		t_recv(&env->b, i, 0, 8);
		t_send(&env->a, i, 0, 8);
		fg_run(env->host);
		expect_done(&env->a.scq, i, PVRDMA_WC_SEND);
		expect_recv(&env->b.rcq, i, 8);
	}
	assert_int_equal(spared(env->g[1]), 100);
	assert_int_equal(env->g[1]->doorbells, 0);
}

/* The timer was faster than the doorbell: the word is late, and nothing is lost. */
TEST(rc_connected, test_receive_found_by_the_timer)
{
	struct pvrdma_sge sge = fg_sge(&env->b.mr, 0, 8);

	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	assert_true(fg_put_recv(&env->b.qp, 2, &sge, 1));
	fg_settle(env->host, FG_SEC);
	expect_recv(&env->b.rcq, 2, 8);
	expect_done(&env->a.scq, 1, PVRDMA_WC_SEND);
	t_recv(&env->b, 3, 0, 8);
	t_send(&env->a, 4, 0, 8);
	fg_run(env->host);
	expect_recv(&env->b.rcq, 3, 8);
}

/* ------------------------------------------------------------------- SRQs */

struct shared {
	struct t_env *env;
	struct fg_srq srq;
	struct fg_end far[2], near[2];
};

static void shared_open(struct shared *s, struct t_env *env)
{
	memset(s, 0, sizeof(*s));
	s->env = env;
	expect_ok(fg_srq_create(&s->env->b.pd, 32, 4, &s->srq));
	for (uint32_t i = 0; i < 2; i++) {
		struct fg_qp_spec spec = { .type = PVR_QPT_RC,
					   .pd = &s->env->b.pd,
					   .scq = &s->env->b.scq,
					   .rcq = &s->env->b.rcq,
					   .srq = &s->srq };

		s->near[i] = s->env->b;
		expect_ok(fg_qp_create(&spec, &s->near[i].qp));
		fg_end_open(&s->far[i], s->env->g[0], PVR_QPT_RC);
		fg_end_connect(&s->far[i], &s->near[i], NULL);
	}
	fg_run(s->env->host);
}

#define TEST_SHARED(name) TEST_OBJECT(rc, struct shared, s, shared_open, name)

static void shared_post(struct shared *s, uint64_t wr_id)
{
	struct pvrdma_sge sge = fg_sge(&s->env->b.mr, 0, 64);

	assert_true(fg_post_srq_recv(&s->srq, wr_id, &sge, 1));
	fg_run(s->env->host);
}

TEST_SHARED(test_srq_wants_doorbells_while_anybody_waits)
{
	assert_int_not_equal(srq_word(&s->srq), 0);
	for (uint32_t i = 0; i < 2; i++) {
		t_send(&s->far[i], i, 0, 8);
		fg_run(env->host);
		assert_int_equal(srq_word(&s->srq), 0);
	}
	shared_post(s, 10);
	expect_done(&s->far[0].scq, 0, PVRDMA_WC_SEND);
	expect_no_cqe(&s->far[1].scq);
	assert_int_equal(srq_word(&s->srq), 0);
	shared_post(s, 11);
	expect_done(&s->far[1].scq, 1, PVRDMA_WC_SEND);
	assert_int_not_equal(srq_word(&s->srq), 0);
	assert_int_equal(spared(env->g[1]), 0);
	shared_post(s, 12);
	assert_int_equal(spared(env->g[1]), 1);
	t_send(&s->far[0], 3, 0, 8);
	fg_run(env->host);
	expect_done(&s->far[0].scq, 3, PVRDMA_WC_SEND);
}

TEST_SHARED(test_srq_whose_waiters_are_gone_suppresses_doorbells_again)
{
	t_send(&s->far[0], 1, 0, 8);
	fg_run(env->host);
	assert_int_equal(srq_word(&s->srq), 0);
	expect_ok(fg_qp_destroy(&s->near[0].qp));
	shared_post(s, 2);
	assert_int_not_equal(srq_word(&s->srq), 0);
	t_send(&s->far[1], 3, 0, 8);
	fg_run(env->host);
	expect_done(&s->far[1].scq, 3, PVRDMA_WC_SEND);
}

TEST_SHARED(test_resized_srq_has_its_word_in_the_new_ring)
{
	expect_ok(fg_srq_resize(&s->srq, 64));
	assert_int_not_equal(srq_word(&s->srq), 0);
	t_send(&s->far[0], 1, 0, 8);
	fg_run(env->host);
	assert_int_equal(srq_word(&s->srq), 0);
	expect_ok(fg_srq_resize(&s->srq, 16));
	assert_int_equal(srq_word(&s->srq), 0);
	shared_post(s, 2);
	expect_done(&s->far[0].scq, 1, PVRDMA_WC_SEND);
	assert_int_not_equal(srq_word(&s->srq), 0);
}

TEST_SHARED(test_broken_srq_promises_nothing)
{
	s->srq.ring->prod_tail = 5000;
	t_send(&s->far[0], 1, 0, 8);
	fg_run(env->host);
	assert_int_equal(fg_events_count(env->g[1], PVR_EVENT_SRQ_ERR, s->srq.handle), 1);
	assert_int_equal(srq_word(&s->srq), 0);
	fg_ring_srq(&s->srq);
	fg_run(env->host);
	assert_int_equal(srq_word(&s->srq), 0);
}

/* ------------------------------------------------------ memory that is gone */

TEST(rc_connected, test_without_bus_master_nothing_is_written)
{
	struct pvr_db_suppress *words_shm = fg_qp_db_suppress(&env->a.qp);

	fg_run(env->host);
	pvr_engine_poll(env->host->engine, 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	pvr_adapter_set_bus_master(env->g[0]->adapter, false);
	*words_shm = (struct pvr_db_suppress){ POISON, POISON };
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, 8);
	assert_false(pvr_engine_poll(env->host->engine, 0));
	assert_true(pvr_engine_enable_doorbells(env->host->engine, 0));
	fg_run(env->host);
	expect_no_cqe(&env->a.scq);
	assert_int_equal(words_shm->sq, POISON);
	assert_int_equal(words_shm->rq, POISON);
	pvr_adapter_set_bus_master(env->g[0]->adapter, true);
	fg_run(env->host);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_WRITE);
}

TEST(rc_connected, test_unplugged_memory_is_not_written_to)
{
	pvr_engine_poll(env->host->engine, 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	fg_run(env->host);
	for (uint32_t i = 0; i < FG_RAM_REGIONS; i++) {
		const struct fg_ram_region *piece = &env->g[0]->ram.region[i];

		if (piece->size)
			pvr_adapter_unmap_ram(env->g[0]->adapter, piece->gpa, piece->size);
		*fg_qp_db_suppress(&env->a.qp) = (struct pvr_db_suppress){ POISON, POISON };
	}
	pvr_engine_poll(env->host->engine, 0);
	fg_run(env->host);
	pvr_engine_enable_doorbells(env->host->engine, 0);
	assert_int_equal(fg_qp_db_suppress(&env->a.qp)->sq, POISON);
	assert_int_equal(fg_qp_db_suppress(&env->a.qp)->rq, POISON);
}

/* ------------------------------------------------- queue pairs that the worker polls */

#define POLLED 64 /* of an adapter, at most */
#define CROWD 80
#define TURNS 1024 /* of others, until a queue pair that is idle is not polled any more */
#define ROUNDS 4000

static bool is_polled(const struct fg_end *end)
{
	return __atomic_load_n(&fg_qp_db_suppress(&end->qp)->sq, __ATOMIC_RELAXED) != 0;
}

static bool poll(struct t_env *env)
{
	return pvr_engine_poll(env->host->engine, 0);
}

static bool rest(struct t_env *env)
{
	return pvr_engine_enable_doorbells(env->host->engine, 0);
}

static void write_to(struct fg_end *from, const struct fg_end *to, uint64_t wr_id)
{
	t_rdma(from, PVRDMA_WR_RDMA_WRITE, wr_id, 0, &to->mr, 0, 8);
}

/*
 * Posts a write without a doorbell, for any value of the word. Return: false if the queue
 * is full.
 */
static bool try_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id)
{
	struct pvrdma_sge sge = fg_sge(&from->mr, 0, 8);
	struct fg_wr wr = { .wr_id = wr_id,
			    .opcode = PVRDMA_WR_RDMA_WRITE,
			    .flags = PVR_SEND_SIGNALED,
			    .sge = &sge,
			    .num_sge = 1,
			    .remote_addr = to->mr.start,
			    .rkey = to->mr.rkey };

	return fg_put_send(&from->qp, &wr);
}

static void put_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id)
{
	assert_true(try_write(from, to, wr_id));
}

/* a is polled, b is not. */
static void begin(struct t_env *env)
{
	fg_run(env->host);
	poll(env);
	write_to(&env->a, &env->b, 0);
	fg_run(env->host);
	expect_done(&env->a.scq, 0, PVRDMA_WC_RDMA_WRITE);
	assert_true(is_polled(&env->a));
	assert_false(is_polled(&env->b));
}

TEST(rc_connected, test_polled_queue_pair_needs_no_doorbell)
{
	uint64_t rung;

	begin(env);
	rung = env->g[0]->doorbells;
	for (uint32_t i = 0; i < 100; i++) {
		assert_false(poll(env));
		write_to(&env->a, &env->b, i);
		assert_true(poll(env));
		fg_run(env->host);
		expect_done(&env->a.scq, i, PVRDMA_WC_RDMA_WRITE);
	}
	assert_int_equal(env->g[0]->doorbells, rung);
}

TEST(rc_connected, test_without_polling_no_qp_is_polled)
{
	fg_run(env->host);
	write_to(&env->a, &env->b, 0);
	fg_run(env->host);
	assert_false(is_polled(&env->a));
	put_write(&env->a, &env->b, 1);
	fg_run(env->host);
	expect_done(&env->a.scq, 0, PVRDMA_WC_RDMA_WRITE);
	expect_no_cqe(&env->a.scq);
}

TEST(rc_connected, test_stock_driver_is_not_looked_at)
{
	struct fg_end c, d;

	pvr_adapter_reset(env->g[0]->adapter);
	env->g[0]->config.ext = 0;
	expect_ok(fg_guest_boot(env->g[0]));
	expect_ok(fg_bind_gid(env->g[0], 0, env->a.gid));
	fg_end_open(&c, env->g[0], PVR_QPT_RC);
	fg_end_open(&d, env->g[0], PVR_QPT_RC);
	fg_end_connect(&c, &d, NULL);
	poll(env);
	write_to(&c, &d, 0);
	fg_run(env->host);
	put_write(&c, &d, 1);
	assert_false(poll(env));
	fg_run(env->host);
	expect_done(&c.scq, 0, PVRDMA_WC_RDMA_WRITE);
	expect_no_cqe(&c.scq);
}

TEST(rc_connected, test_enabled_doorbell_is_needed_again)
{
	begin(env);
	assert_true(rest(env));
	assert_false(is_polled(&env->a));
	write_to(&env->a, &env->b, 1);
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	/* The QP is not polled until the next pvr_engine_poll(). */
	assert_false(is_polled(&env->a));
	assert_true(rest(env));
}

TEST(rc_connected, test_enable_doorbells_reports_new_posts)
{
	begin(env);
	write_to(&env->a, &env->b, 1);
	assert_false(rest(env));
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	assert_false(is_polled(&env->a));
	assert_true(rest(env));
}

/* ---------------------------------------------------------------- the set */

struct crowd {
	struct fg_end from[CROWD];
};

static void crowd_begin(struct crowd *crowd, struct t_env *env)
{
	struct fg_qp_spec spec = {
		.type = PVR_QPT_RC, .sq_wr = 4, .rq_wr = 4, .sq_sge = 1, .rq_sge = 1
	};

	for (uint32_t i = 0; i < CROWD; i++) {
		fg_end_open_spec(&crowd->from[i], &env->g[0]->kernel, &spec, 1);
		fg_end_connect(&crowd->from[i], &crowd->from[i], NULL);
	}
	fg_run(env->host);
	poll(env);
	for (uint32_t i = 0; i < CROWD; i++) {
		write_to(&crowd->from[i], &crowd->from[i], i);
		fg_run(env->host);
		expect_done(&crowd->from[i].scq, i, PVRDMA_WC_RDMA_WRITE);
	}
}

static uint32_t crowd_polled(const struct crowd *crowd)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < CROWD; i++)
		n += is_polled(&crowd->from[i]);
	return n;
}

TEST(rc, test_only_so_many_are_polled_those_that_were_busy_last)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));

	crowd_begin(crowd, env);
	for (uint32_t i = 0; i < CROWD; i++)
		assert_int_equal(is_polled(&crowd->from[i]), i >= CROWD - POLLED);
	/* The QP that worked last is evicted last. */
	write_to(&crowd->from[CROWD - POLLED], &crowd->from[CROWD - POLLED], 1000);
	poll(env);
	fg_run(env->host);
	write_to(&crowd->from[0], &crowd->from[0], 1001);
	fg_run(env->host);
	assert_true(is_polled(&crowd->from[CROWD - POLLED]));
	assert_false(is_polled(&crowd->from[CROWD - POLLED + 1]));
	assert_int_equal(crowd_polled(crowd), POLLED);
	free(crowd);
}

/* Before eviction the send queue is checked once more: a write posted meanwhile is sent. */
TEST(rc, test_evicted_qp_is_polled_once_more)
{
	struct crowd *crowd = calloc(1, sizeof(*crowd));
	struct fg_end *oldest = &crowd->from[CROWD - POLLED];

	crowd_begin(crowd, env);
	put_write(oldest, oldest, 1000);
	write_to(&crowd->from[0], &crowd->from[0], 1001);
	fg_run(env->host);
	expect_done(&oldest->scq, 1000, PVRDMA_WC_RDMA_WRITE);
	expect_done(&crowd->from[0].scq, 1001, PVRDMA_WC_RDMA_WRITE);
	free(crowd);
}

TEST(rc_connected, test_idle_qp_among_busy_ones_is_not_polled)
{
	struct fg_end c;

	fg_end_open(&c, env->g[0], PVR_QPT_RC);
	fg_end_connect(&c, &c, NULL);
	begin(env);
	for (uint32_t i = 0; i < 10 * TURNS; i++)
		assert_false(poll(env));
	assert_true(is_polled(&env->a));
	for (uint32_t i = 0; i < TURNS + 10; i++) {
		write_to(&c, &c, i);
		poll(env);
		fg_run(env->host);
		expect_done(&c.scq, i, PVRDMA_WC_RDMA_WRITE);
		if (i < TURNS - 10)
			assert_true(is_polled(&env->a));
	}
	assert_false(is_polled(&env->a));
	assert_true(is_polled(&c));
	write_to(&env->a, &env->b, 1);
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
}

/* ---------------------------------------------- what happens to the polled */

TEST(rc_connected, test_polled_queue_pair_is_reset)
{
	begin(env);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	assert_false(is_polled(&env->a));
	put_write(&env->a, &env->b, 1);
	assert_false(poll(env));
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	env->host->polls = true;
	fg_end_connect(&env->a, &env->b, NULL);
	t_ping_pong(env->host, &env->a, &env->b);
}

/*
 * DESTROY_QP of a UD queue pair sends what was posted without a doorbell. The turn for it must take
 * the queue pair off the list of polled ones, which otherwise keeps a pointer to freed memory.
 */
TEST(ud_ready, test_polled_ud_queue_pair_is_destroyed_with_a_datagram_posted)
{
	struct fg_end c;

	fg_end_open(&c, env->g[0], PVR_QPT_UD);
	fg_end_ready(&c);
	fg_run(env->host);
	poll(env);
	t_recv(&env->b, 1, 0, 200);
	t_recv(&env->b, 2, 0, 200);
	t_recv(&env->b, 3, 0, 200);
	t_send_ud(&env->a, &env->b, 1, 0, 100);
	fg_run(env->host);
	expect_recv(&env->b.rcq, 1, 140);
	assert_true(is_polled(&env->a));
	t_send_ud(&env->a, &env->b, 2, 0, 100);
	expect_ok(fg_qp_destroy(&env->a.qp));
	expect_recv(&env->b.rcq, 2, 140);
	poll(env);
	assert_true(rest(env));
	poll(env);
	t_send_ud(&c, &env->b, 3, 0, 100);
	fg_run(env->host);
	expect_recv(&env->b.rcq, 3, 140);
	assert_true(rest(env));
}

TEST(rc_connected, test_polled_queue_pair_fails)
{
	begin(env);
	put_write(&env->a, &env->b, 1);
	expect_ok(fg_qp_to_err(&env->a.qp));
	fg_run(env->host);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	assert_false(is_polled(&env->a));
	assert_false(poll(env));
	write_to(&env->a, &env->b, 2);
	fg_run(env->host);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
}

TEST(rc_connected, test_polled_queue_pair_is_drained)
{
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_SQD };

	begin(env);
	put_write(&env->a, &env->b, 1);
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE, &attr));
	assert_true(fg_run_bounded(env->host, 4));
	assert_false(poll(env));
	expect_no_cqe(&env->a.scq);
	attr.qp_state = PVR_QPS_RTS;
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE, &attr));
	fg_run(env->host);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
}

TEST(rc_connected, test_polled_queue_pair_and_its_adapter_go)
{
	begin(env);
	fg_end_close(&env->a);
	assert_false(poll(env));
	fg_end_open(&env->a, env->g[0], PVR_QPT_RC);
	fg_end_connect(&env->a, &env->a, NULL);
	write_to(&env->a, &env->a, 1);
	fg_run(env->host);
	assert_true(is_polled(&env->a));
	pvr_adapter_reset(env->g[0]->adapter);
	assert_false(poll(env));
	fg_guest_unplug(env->g[0]);
	assert_false(poll(env));
	assert_true(rest(env));
}

TEST(rc_connected, test_wild_index_while_polled_fails_the_queue_pair)
{
	begin(env);
	env->a.qp.ring->tx.prod_tail = 5000;
	assert_true(poll(env));
	fg_run(env->host);
	expect_state(&env->a, PVR_QPS_ERR);
	assert_int_equal(fg_events_count(env->g[0], PVR_EVENT_QP_FATAL, env->a.qp.handle), 1);
	assert_false(poll(env));
}

/* -------------------------------------------------------- hostile guests */

struct scribbler {
	pthread_t thread;
	struct t_env *env;
	bool indices, words; /* what it writes to */
	bool stop;
};

static void *scribble(void *opaque)
{
	struct scribbler *s = opaque;
	struct pvr_db_suppress *words_shm = fg_qp_db_suppress(&s->env->a.qp);
	struct pvr_ring_state *ring_shm = s->env->a.qp.ring;
	uint32_t rnd = 12345;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		rnd = rnd * 1664525u + 1013904223u;
		if (s->words) {
			__atomic_store_n(&words_shm->sq, rnd >> 30, __ATOMIC_RELAXED);
			__atomic_store_n(&words_shm->rq, rnd >> 8, __ATOMIC_RELAXED);
		}
		if (s->indices) {
			__atomic_store_n(&ring_shm->tx.prod_tail, rnd >> 25, __ATOMIC_RELAXED);
			__atomic_store_n(&ring_shm->rx.prod_tail, rnd >> 25, __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

static void revive(struct t_env *env)
{
	struct fg_end *ends[2] = { &env->a, &env->b };

	for (uint32_t i = 0; i < 2; i++) {
		fg_cq_drain(&ends[i]->scq);
		fg_cq_drain(&ends[i]->rcq);
		fg_qp_to_reset(&ends[i]->qp);
		fg_events_count(env->g[i], 0, 0);
	}
	fg_end_connect(&env->a, &env->b, NULL);
}

/* a and b do what comes of it; every message of vm3 and vm4 arrives at once. */
static void scribble_while_polled(struct t_env *env, struct scribbler *s)
{
	struct fg_end c, d;

	env->g[2] = fg_guest_start(env->host, 3);
	env->g[3] = fg_guest_start(env->host, 4);
	fg_end_open(&c, env->g[2], PVR_QPT_RC);
	fg_end_open(&d, env->g[3], PVR_QPT_RC);
	fg_end_connect(&c, &d, NULL);
	env->host->polls = true;
	s->env = env;
	assert_int_equal(pthread_create(&s->thread, NULL, scribble, s), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		write_to(&c, &d, i);
		fg_put_recv(&env->b.qp, i, &(struct pvrdma_sge){ 0 }, 0);
		/* The device consumes what the overwritten index says: so there may be no room. */
		try_write(&env->a, &env->b, i);
		/* What is flushed can be for ever "full" again. */
		for (uint32_t turns = 0; turns < 20 && !fg_cq_pending(&c.scq); turns++)
			fg_run_bounded(env->host, 2);
		expect_done(&c.scq, i, PVRDMA_WC_RDMA_WRITE);
		if (i % 8 == 7)
			revive(env);
		if (i % 64 == 63)
			rest(env);
	}
	__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
	pthread_join(s->thread, NULL);
	t_ping_pong(env->host, &c, &d);
	revive(env);
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(rc_connected, test_words_overwritten_at_any_time)
{
	struct scribbler s = { .words = true };

	scribble_while_polled(env, &s);
}

TEST(rc_connected, test_indices_overwritten_while_polled)
{
	struct scribbler s = { .indices = true };

	scribble_while_polled(env, &s);
}

TEST(rc_connected, test_all_overwritten_while_polled)
{
	struct scribbler s = { .words = true, .indices = true };

	scribble_while_polled(env, &s);
}
