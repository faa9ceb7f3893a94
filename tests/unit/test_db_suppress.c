// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_DB_SUPPRESS: the words that spare doorbells, state by state. */
#include "db_suppress.h"
#include "fg_dirty.h"

TEST_EXT(PVR_ENGINE_EXT)

/* What the device must not overwrite. */
static const struct pvr_db_suppress poison = { 0xabadcafeu, 0xabadcafeu };
#define expect_poison(words_shm) assert_memory_equal(words_shm, &poison, sizeof(poison))

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
	*words_shm = poison;
	fg_end_connect(&c, &d, NULL);
	poll(env);
	t_ping_pong(env->host, &c, &d);
	t_send(&d, 1, 0, 8);
	fg_run(env->host);
	t_recv(&c, 2, 0, 8);
	await_recv(&c.rcq, 2, 8);
	expect_ok(fg_qp_to_err(&c.qp));
	fg_run(env->host);
	expect_ok(fg_qp_to_reset(&c.qp));
	fg_run(env->host);
	expect_poison(words_shm);
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
	*words_shm = poison;
	req.pdir_dma = buf.pdir;
	expect_ok(fg_create_qp(env->g[0], &req, &resp));
	assert_int_equal(words_shm->sq, 0);
	assert_int_equal(words_shm->rq, 0);
	assert_int_equal(words_shm[1].sq, 0);
}

/* ------------------------------------------------------------ send queues */

TEST(rc_idle, test_idle_send_queue_needs_its_doorbell)
{
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
		t_write(&env->a, &env->b, i);
	expect_words(&env->a, true, true);
	assert_int_equal(env->g[0]->doorbells - rung, 1);
	assert_int_equal(spared(env->g[0]), 39);
	fg_run(env->host);
	for (uint32_t i = 0; i < 40; i++)
		expect_written(&env->a, i);
	expect_words(&env->a, false, true);
}

/* A large message takes many turns; what is posted meanwhile follows it. */
TEST(rc_connected, test_message_in_fragments_needs_no_more_doorbells)
{
	t_widen(&env->a, 16u << 20);
	t_widen(&env->b, 16u << 20);
	fg_run(env->host);
	for (uint32_t i = 0; i < 2; i++) {
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, 16u << 20);
		pvr_engine_run(env->host->engine, 0);
		expect_words(&env->a, true, true);
	}
	assert_int_equal(spared(env->g[0]), 1);
	await_written(&env->a, 0);
	expect_written(&env->a, 1);
	expect_words(&env->a, false, true);
}

TEST(rc, test_what_is_posted_before_rts_needs_no_doorbell)
{
	expect_words(&env->a, false, false);
	expect_ok(fg_qp_to_init(&env->a.qp, NULL));
	fg_run(env->host);
	expect_words(&env->a, false, true);
	t_recv(&env->a, 2, 0, 8);
	assert_int_equal(spared(env->g[0]), 1);
	t_put_send(&env->a, 1, 0, 8);
	expect_ok(fg_qp_connect(&env->b.qp, NULL, env->a.gid, env->a.qp.qpn));
	t_recv(&env->b, 3, 0, 8);
	t_send(&env->b, 4, 0, 8);
	expect_ok(fg_qp_to_rtr(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn));
	fg_settle(env->host, FG_SEC);
	expect_recv(&env->a.rcq, 2, 8);
	expect_no_cqe(&env->a.scq);
	expect_ok(fg_qp_to_rts(&env->a.qp, NULL));
	await_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 3, 8);
}

TEST(rc_connected, test_what_is_posted_while_it_waits_follows_by_itself)
{
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	expect_words(&env->a, true, true);
	t_send(&env->a, 2, 0, 8);
	assert_int_equal(spared(env->g[0]), 2); /* the first: RTS had just given a turn */
	assert_true(fg_put_recv(&env->b.qp, 3, NULL, 0));
	assert_true(fg_put_recv(&env->b.qp, 4, NULL, 0));
	fg_settle(env->host, FG_SEC);
	expect_cqe(&env->b.rcq, 3, PVRDMA_WC_LOC_LEN_ERR);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_INV_REQ_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_words(&env->a, false, false);
}

TEST(rc_idle, test_peer_without_response_changes_no_word)
{
	pvr_adapter_set_link(env->g[1]->adapter, false);
	t_write(&env->a, &env->b, 1);
	fg_run(env->host);
	expect_words(&env->a, true, true);
	t_write(&env->a, &env->b, 2);
	assert_int_equal(spared(env->g[0]), 1);
	pvr_adapter_set_link(env->g[1]->adapter, true);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 1);
	expect_written(&env->a, 2);
	expect_words(&env->a, false, true);
}

TEST(rc_connected, test_sqd_keeps_requests_for_rts)
{
	t_qp_set_state(&env->a, PVR_QPS_SQD);
	fg_run(env->host);
	expect_words(&env->a, false, true);
	for (uint32_t i = 1; i <= 2; i++) {
		t_write(&env->a, &env->b, i);
		assert_true(fg_run_bounded(env->host, 4));
		expect_no_cqe(&env->a.scq);
	}
	t_qp_set_state(&env->a, PVR_QPS_RTS);
	await_written(&env->a, 1);
	expect_written(&env->a, 2);
	expect_words(&env->a, false, true);
}

/* Of UD the send queue alone fails. */
TEST(ud_ready, test_sqe_flushes_what_comes_later)
{
	struct fg_mr bad = env->a.mr;

	bad.lkey = 0xbadbad00u;
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, T_SGE(&bad, 0, 8));
	fg_run(env->host);
	fg_cq_drain(&env->a.scq);
	expect_state(&env->a, PVR_QPS_SQE);
	expect_words(&env->a, false, true);
	t_send_ud(&env->a, &env->b, 2, 0, 8);
	await_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_words(&env->a, false, true);
}

TEST(ud_ready, test_datagrams_arrive_without_receive_doorbells)
{
	fg_run(env->host);
	for (uint32_t i = 0; i < 3; i++) {
		t_recv(&env->b, i, 0, 200);
		t_send_ud(&env->a, &env->b, i, 0, 100);
		await_sent(&env->a, i);
		expect_recv(&env->b.rcq, i, 140);
	}
	assert_int_equal(env->g[1]->doorbells, 0);
	/* A datagram without a receive is dropped: the QP does not wait. */
	t_send_ud(&env->a, &env->b, 4, 0, 100);
	fg_run(env->host);
	expect_words(&env->b, false, true);
}

/* ---------------------------------------------------------- ERR and RESET */

TEST(rc_idle, test_err_flushes_what_comes_later_too)
{
	t_recv(&env->a, 1, 0, 8);
	assert_int_equal(spared(env->g[0]), 1);
	expect_ok(fg_qp_to_err(&env->a.qp));
	assert_int_equal(rq_word(&env->a), 0);
	await_cqe(&env->a.rcq, 1, PVRDMA_WC_WR_FLUSH_ERR);
	expect_words(&env->a, false, false);
	for (uint32_t i = 2; i < 5; i++) {
		t_recv(&env->a, i, 0, 8);
		t_send(&env->a, i, 0, 8);
		await_cqe(&env->a.rcq, i, PVRDMA_WC_WR_FLUSH_ERR);
		expect_cqe(&env->a.scq, i, PVRDMA_WC_WR_FLUSH_ERR);
		expect_words(&env->a, false, false);
	}
}

/* The receive that was posted without a doorbell just before is in the flush. */
TEST(rc_idle, test_receive_posted_just_before_err_is_flushed)
{
	expect_ok(fg_qp_to_err(&env->b.qp));
	assert_true(fg_put_recv(&env->b.qp, 1, NULL, 0));
	await_cqe(&env->b.rcq, 1, PVRDMA_WC_WR_FLUSH_ERR);
}

TEST(rc_connected, test_wild_index_in_err_is_read_once)
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
	struct fg_end *ends[2] = { &env->a, &env->b };

	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	expect_words(&env->a, true, true);
	expect_words(&env->b, false, false);
	for (uint32_t i = 0; i < 2; i++)
		expect_ok(fg_qp_to_reset(&ends[i]->qp));
	fg_run(env->host);
	for (uint32_t i = 0; i < 2; i++)
		expect_words(ends[i], false, false);
	fg_end_connect(&env->a, &env->b, NULL);
	fg_run(env->host);
	for (uint32_t i = 0; i < 2; i++)
		expect_words(ends[i], false, true);
	t_ping_pong(env->host, &env->a, &env->b);
}

/* Its pages are the guest's again. */
TEST(rc_connected, test_destroyed_queue_pair_is_not_written_to)
{
	struct pvr_db_suppress *words_shm = fg_qp_db_suppress(&env->a.qp);
	uint32_t handle = env->a.qp.handle;

	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	*words_shm = poison;
	expect_ok(fg_cmd_destroy(env->g[0], PVR_CMD_DESTROY_QP, handle));
	poll(env);
	t_recv(&env->b, 2, 0, 8);
	fg_settle(env->host, FG_SEC);
	enable_doorbells(env);
	expect_poison(words_shm);
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
	*words_shm = poison;
	pvr_adapter_reset(env->g[1]->adapter);
	expect_poison(words_shm);
}

/* --------------------------------------------------------------- receives */

TEST(rc_connected, test_waiting_sender_needs_the_receive_doorbell)
{
	for (uint32_t i = 0; i < 3; i++) {
		t_send(&env->a, i, 0, 8);
		await_no_cqe(&env->a.scq);
		assert_int_equal(rq_word(&env->b), 0);
		/* No time passes: it is the doorbell that wakes. */
		t_recv(&env->b, i, 0, 8);
		assert_int_equal(spared(env->g[1]), 0);
		await_sent(&env->a, i);
		expect_recv(&env->b.rcq, i, 8);
		assert_int_not_equal(rq_word(&env->b), 0);
	}
}

TEST(rc_idle, test_receives_in_time_need_no_doorbell)
{
	for (uint32_t i = 0; i < 100; i++) {
		t_exchange(env, i, 8);
	}
	assert_int_equal(spared(env->g[1]), 100);
	assert_int_equal(env->g[1]->doorbells, 0);
}

/* The timer was faster than the doorbell: the word is late, and nothing is lost. */
TEST(rc_connected, test_receive_found_by_the_timer)
{
	t_send(&env->a, 1, 0, 8);
	fg_run(env->host);
	t_put_recv(&env->b, 2, 0, 8);
	fg_settle(env->host, FG_SEC);
	expect_recv(&env->b.rcq, 2, 8);
	expect_sent(&env->a, 1);
	t_recv(&env->b, 3, 0, 8);
	t_send(&env->a, 4, 0, 8);
	await_recv(&env->b.rcq, 3, 8);
}

/* ------------------------------------------------------------------- SRQs */

struct shared {
	struct fg_srq srq;
	struct fg_end far[2];
	struct fg_end near[2]; /* receive through the SRQ */
};

static void shared_open(struct shared *s, struct t_env *env)
{
	expect_ok(fg_srq_create(&env->b.pd, 32, 4, &s->srq));
	for (uint32_t i = 0; i < 2; i++) {
		s->near[i] = env->b;
		s->near[i].qp = t_qp_create(&env->b, (struct fg_qp_spec){ .srq = &s->srq });
		fg_end_open(&s->far[i], env->g[0], PVR_QPT_RC);
		fg_end_connect(&s->far[i], &s->near[i], NULL);
	}
	fg_run(env->host);
}

#define TEST_SHARED(name) TEST_OBJECT(rc, struct shared, s, shared_open, name)

static void shared_post(struct t_env *env, struct shared *s, uint64_t wr_id)
{
	t_srq_recv(&s->srq, wr_id, &env->b.mr, 0, 64);
	fg_run(env->host);
}

static void shared_send(struct t_env *env, struct shared *s, uint32_t i, uint64_t wr_id)
{
	t_send(&s->far[i], wr_id, 0, 8);
	fg_run(env->host);
}

TEST_SHARED(test_srq_needs_doorbells_while_a_sender_waits)
{
	assert_int_not_equal(srq_word(&s->srq), 0);
	for (uint32_t i = 0; i < 2; i++) {
		shared_send(env, s, i, i);
		assert_int_equal(srq_word(&s->srq), 0);
	}
	shared_post(env, s, 10);
	expect_sent(&s->far[0], 0);
	expect_no_cqe(&s->far[1].scq);
	assert_int_equal(srq_word(&s->srq), 0);
	shared_post(env, s, 11);
	expect_sent(&s->far[1], 1);
	assert_int_not_equal(srq_word(&s->srq), 0);
	assert_int_equal(spared(env->g[1]), 0);
	shared_post(env, s, 12);
	assert_int_equal(spared(env->g[1]), 1);
	shared_send(env, s, 0, 3);
	expect_sent(&s->far[0], 3);
}

TEST_SHARED(test_srq_whose_waiters_are_gone_suppresses_doorbells_again)
{
	shared_send(env, s, 0, 1);
	assert_int_equal(srq_word(&s->srq), 0);
	expect_ok(fg_qp_destroy(&s->near[0].qp));
	shared_post(env, s, 2);
	assert_int_not_equal(srq_word(&s->srq), 0);
	shared_send(env, s, 1, 3);
	expect_sent(&s->far[1], 3);
}

TEST_SHARED(test_resized_srq_has_its_word_in_the_new_ring)
{
	expect_ok(fg_srq_resize(&s->srq, 64));
	assert_int_not_equal(srq_word(&s->srq), 0);
	shared_send(env, s, 0, 1);
	assert_int_equal(srq_word(&s->srq), 0);
	expect_ok(fg_srq_resize(&s->srq, 16));
	assert_int_equal(srq_word(&s->srq), 0);
	shared_post(env, s, 2);
	expect_sent(&s->far[0], 1);
	assert_int_not_equal(srq_word(&s->srq), 0);
}

TEST_SHARED(test_broken_srq_promises_nothing)
{
	s->srq.ring->prod_tail = 5000;
	shared_send(env, s, 0, 1);
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
	poll(env);
	t_write(&env->a, &env->b, 1);
	await_written(&env->a, 1);
	pvr_adapter_set_bus_master(env->g[0]->adapter, false);
	*words_shm = poison;
	t_write(&env->a, &env->b, 2);
	assert_false(poll(env));
	assert_true(enable_doorbells(env));
	await_no_cqe(&env->a.scq);
	expect_poison(words_shm);
	pvr_adapter_set_bus_master(env->g[0]->adapter, true);
	await_written(&env->a, 2);
}

TEST(rc_connected, test_unplugged_memory_is_not_written_to)
{
	poll(env);
	t_write(&env->a, &env->b, 1);
	fg_run(env->host);
	for (uint32_t i = 0; i < FG_RAM_REGIONS; i++) {
		const struct fg_ram_region *piece = &env->g[0]->ram.region[i];

		if (piece->size)
			fg_dirty_unmap(env->g[0], piece);
		*fg_qp_db_suppress(&env->a.qp) = poison;
	}
	poll(env);
	fg_run(env->host);
	enable_doorbells(env);
	expect_poison(fg_qp_db_suppress(&env->a.qp));
}
