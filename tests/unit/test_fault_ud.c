// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Faults on demand: what a guest sees of each kind that acts on datagrams. */
#include "faults.h"
#include "rdma/path.h"

#define LEN 64u
#define MESSAGES 40
#define STRIDE 256u

static uint32_t *sent_word(const struct fg_end *end, uint32_t i)
{
	return (uint32_t *)(end->mr.va + i * LEN);
}

static uint32_t *received_word(const struct fg_end *end, uint64_t i)
{
	return (uint32_t *)(end->mr.va + i * STRIDE + GRH);
}

/* Datagrams 0 to @num - 1 from a to b, which has a receive for each and @more. */
static void post(struct t_env *env, uint32_t num, uint32_t more)
{
	for (uint32_t i = 0; i < num + more; i++)
		t_recv(&env->b, i, i * STRIDE, GRH + LEN);
	for (uint32_t i = 0; i < num; i++) {
		*sent_word(&env->a, i) = 1000 + i;
		t_send_ud(&env->a, &env->b, i, i * LEN, LEN);
	}
}

static void expect_all_sent(struct t_env *env, uint32_t num)
{
	for (uint32_t i = 0; i < num; i++)
		expect_sent(&env->a, i);
	expect_no_cqe(&env->a.scq);
}

/* The datagrams that b has received, in this order. */
static void expect_order(struct t_env *env, const uint32_t *numbers, uint32_t num)
{
	for (uint32_t i = 0; i < num; i++) {
		expect_recv(&env->b.rcq, i, GRH + LEN);
		assert_int_equal(*received_word(&env->b, i), 1000 + numbers[i]);
	}
	expect_no_cqe(&env->b.rcq);
}

/* --------------------------------------------------------------------- loss, delay, rate */

TEST(ud_ready, test_dropped_datagrams_complete_and_do_not_arrive)
{
	uint32_t arrived = 0, before = 0, word;

	add(env, "from=vm1 drop=50%");
	post(env, MESSAGES, 0);
	t_run_ud(env->host);
	expect_all_sent(env, MESSAGES);
	assert_int_equal(last(env).messages, MESSAGES);
	assert_true(last(env).dropped > 5 && last(env).dropped < MESSAGES - 5);
	for (; fg_cq_pending(&env->b.rcq); arrived++) {
		expect_recv(&env->b.rcq, arrived, GRH + LEN);
		word = *received_word(&env->b, arrived);
		assert_true(word > before);
		before = word;
	}
	assert_int_equal(arrived, MESSAGES - last(env).dropped);
}

TEST(ud_ready, test_total_loss_of_datagrams_ends_with_the_fault)
{
	add(env, "drop=100%");
	post(env, 2, 0);
	t_run_ud(env->host);
	expect_all_sent(env, 2);
	expect_no_cqe(&env->b.rcq);
	pvr_engine_clear_faults(env->host->engine, 0);
	t_send_ud(&env->a, &env->b, 5, 0, LEN);
	t_run_ud(env->host);
	expect_sent(&env->a, 5);
	expect_order(env, (const uint32_t[]){ 0 }, 1);
}

/* As those of UC, a delayed datagram stays in the send queue. */
TEST(ud_ready, test_delayed_datagrams_arrive_later_in_order)
{
	add(env, "delay=3ms");
	post(env, 3, 0);
	fg_run(env->host);
	fg_advance(env->host, 3 * FG_MS - 1);
	expect_no_cqe(&env->b.rcq);
	fg_advance(env->host, 1);
	expect_all_sent(env, 3);
	expect_order(env, (const uint32_t[]){ 0, 1, 2 }, 3);
	assert_int_equal(last(env).delayed, 3);
}

/* 20 datagrams of 2048 bytes at 1 Gbit/s take 328 us. */
TEST(ud_ready, test_rate_holds_datagrams)
{
	uint64_t begin = env->host->now, ns;

	add(env, "from=vm1 rate=1Gbit");
	for (uint32_t i = 0; i < 20; i++)
		t_send_ud(&env->a, &env->b, i, 0, 2048);
	while (fg_cq_pending(&env->a.scq) < 20)
		fg_advance(env->host, 10 * FG_US);
	ns = env->host->now - begin;
	assert_true(ns >= 200 * FG_US && ns <= 400 * FG_US);
	assert_true(last(env).delayed > 0);
	expect_all_sent(env, 20);
}

/* ------------------------------------------------------------------------ reorder, duplicate */

/* Each that is not itself the one that overtakes. */
TEST(ud_ready, test_reordered_datagram_arrives_behind_the_next_one)
{
	add(env, "reorder=100%");
	post(env, 5, 0);
	t_run_ud(env->host);
	expect_all_sent(env, 5);
	expect_order(env, (const uint32_t[]){ 1, 0, 3, 2, 4 }, 5);
	assert_int_equal(last(env).reordered, 2);
}

TEST(ud_ready, test_reordered_datagram_waits_a_millisecond_for_the_next_one)
{
	add(env, "reorder=100%");
	post(env, 1, 1);
	fg_run(env->host);
	fg_advance(env->host, FG_MS - 1);
	expect_no_cqe(&env->b.rcq);
	fg_advance(env->host, 1);
	expect_all_sent(env, 1);
	expect_order(env, (const uint32_t[]){ 0 }, 1);
	assert_int_equal(last(env).reordered, 0);
}

TEST(ud_ready, test_datagram_that_is_posted_meanwhile_overtakes)
{
	add(env, "reorder=100%");
	post(env, 1, 1);
	fg_run(env->host);
	*sent_word(&env->a, 1) = 1001;
	t_send_ud(&env->a, &env->b, 1, LEN, LEN);
	t_run_ud(env->host);
	expect_all_sent(env, 2);
	expect_order(env, (const uint32_t[]){ 1, 0 }, 2);
}

/* The payload is that of the completion: the program may use its buffer again. */
TEST(ud_ready, test_overtaken_datagram_has_its_own_payload)
{
	add(env, "reorder=100% delay=1ms");
	post(env, 2, 1);
	t_run_ud(env->host);
	*sent_word(&env->a, 0) = 9;
	expect_all_sent(env, 2);
	expect_order(env, (const uint32_t[]){ 1, 0 }, 2);
}

TEST(ud_ready, test_doubled_datagram_arrives_twice_and_completes_once)
{
	add(env, "duplicate=100%");
	post(env, 2, 2);
	t_run_ud(env->host);
	expect_all_sent(env, 2);
	expect_order(env, (const uint32_t[]){ 0, 0, 1, 1 }, 4);
	assert_int_equal(last(env).duplicated, 2);
	assert_int_equal(fg_stats(env->g[0]).tx_messages, 2);
}

TEST(ud_ready, test_reset_drops_an_overtaken_datagram)
{
	uint64_t charged = env->g[0]->adapter->charged;

	add(env, "reorder=100%");
	add(env, "from=vm1 delay=1s");
	post(env, 2, 0);
	fg_run(env->host);
	fg_advance(env->host, FG_SEC);
	assert_non_null(t_device_qp(&env->a)->fault_sq);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	assert_int_equal(env->g[0]->adapter->charged, charged);
}

/* ----------------------------------------------------------------------------- failures */

static const struct {
	const char *label;
	uint32_t status;
} local_errors[] = {
	{ "LOC_LEN_ERR", PVRDMA_WC_LOC_LEN_ERR },
	{ "LOC_QP_OP_ERR", PVRDMA_WC_LOC_QP_OP_ERR },
	{ "LOC_PROT_ERR", PVRDMA_WC_LOC_PROT_ERR },
	{ "GENERAL_ERR", PVRDMA_WC_GENERAL_ERR },
};

TEST_CASES(ud_ready, test_local_error_of_a_datagram_leads_to_sqe, local_errors)
{
	char text[64];

	snprintf(text, sizeof(text), "from=vm1 error=%s,after=1", row->label);
	add(env, text);
	post(env, 3, 0);
	t_run_ud(env->host);
	expect_sent(&env->a, 0);
	expect_cqe(&env->a.scq, 1, row->status);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->a, PVR_QPS_SQE);
	expect_order(env, (const uint32_t[]){ 0 }, 1);
	assert_int_equal(last(env).failed, 1);
}

/* The sender notices nothing. */
TEST(ud_ready, test_error_of_a_receive_request_fails_the_receiver_alone)
{
	add(env, "from=vm1 recv-error=LOC_PROT_ERR,after=1");
	post(env, 2, 1);
	t_run_ud(env->host);
	expect_all_sent(env, 2);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_recv(&env->b.rcq, 0, GRH + LEN);
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_cqe(&env->b.rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
	assert_int_equal(last(env).failed, 1);
}

static const struct {
	const char *label, *text;
} without_effect[] = {
	{ "remote_error", "error=REM_ACCESS_ERR" },
	{ "retries", "error=RETRY_EXC_ERR" },
	{ "rnr", "rnr=always" },
	{ "nak", "nak=sequence" },
};

/* A datagram has no response. */
TEST_CASES(ud_ready, test_faults_of_responses_have_no_effect_on_datagrams, without_effect)
{
	add(env, row->text);
	post(env, 1, 0);
	t_run_ud(env->host);
	expect_all_sent(env, 1);
	expect_order(env, (const uint32_t[]){ 0 }, 1);
}

TEST(ud_ready, test_cq_overflow_fails_a_queue_pair_of_datagrams)
{
	add(env, "from=vm1 cq-overflow=after:1");
	post(env, 2, 0);
	t_run_ud(env->host);
	expect_sent(&env->a, 0);
	expect_no_cqe(&env->a.scq);
	expect_state(&env->a, PVR_QPS_ERR);
	assert_int_equal(fg_events_count(env->g[0], PVR_EVENT_CQ_ERR, env->a.scq.handle), 1);
}

/* ----------------------------------------------------------------------------- matching */

static const struct {
	const char *label, *text;
	bool hits;
} matches[] = {
	{ "from", "from=vm1 drop=100%", true },	      { "from_other", "from=vm2 drop=100%", false },
	{ "to", "to=vm2 drop=100%", true },	      { "to_other", "to=vm1 drop=100%", false },
	{ "fabric", "fabric=blue drop=100%", false },
};

TEST_CASES(ud_ready, test_only_datagrams_to_the_destination_are_dropped, matches)
{
	add(env, row->text);
	post(env, 1, 0);
	t_run_ud(env->host);
	expect_all_sent(env, 1);
	assert_int_equal(fg_cq_pending(&env->b.rcq), !row->hits);
	assert_int_equal(last(env).messages, row->hits);
}

/* One queue pair sends to both ends. */
TEST(ud_ready, test_destination_is_that_of_each_datagram)
{
	add(env, "to=vm2 drop=100%");
	t_recv(&env->a, 7, 2048, GRH + LEN);
	post(env, 1, 0);
	t_send_ud(&env->a, &env->a, 1, 0, LEN);
	t_run_ud(env->host);
	expect_all_sent(env, 2);
	expect_recv(&env->a.rcq, 7, GRH + LEN);
	expect_no_cqe(&env->b.rcq);
}

static const struct {
	const char *label, *text;
	bool hits;
} of_gsi[] = {
	{ "all", "drop=100%", false },
	{ "from", "from=vm1 drop=100%", false },
	{ "named", "from=vm1 qp=1 drop=100%", true },
};

/* Only a fault that names queue pair 1 has an effect on connection management. */
TEST_CASES(gsi_ready, test_messages_of_connection_managers, of_gsi)
{
	add(env, row->text);
	t_recv(&env->b, 1, 0, 400);
	t_send_ud(&env->a, &env->b, 1, 0, 256);
	t_run_ud(env->host);
	expect_sent(&env->a, 1);
	assert_int_equal(fg_cq_pending(&env->b.rcq), !row->hits);
}

TEST(rc_connected, test_faults_of_datagrams_have_no_effect_on_connections)
{
	add(env, "reorder=100% duplicate=100%");
	t_message(env, PVR_SEND_SIGNALED);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 7);
	expect_recv(&env->b.rcq, 7, 0);
	expect_no_cqe(&env->b.rcq);
	assert_int_equal(last(env).reordered + last(env).duplicated, 0);
}

/* ----------------------------------------------------------------------------- groups */

static const uint8_t group[16] = { 0xff, 0x1e, [15] = 5 };

T_SETUP_EXT(mcast, PVR_EXT_MCAST, ud_ready)

TEST(mcast, test_datagram_to_a_group_has_faults)
{
	expect_ok(fg_qp_attach(&env->b.qp, group));
	add(env, "duplicate=100%");
	post(env, 0, 2);
	*sent_word(&env->a, 0) = 1000;
	t_send_group(&env->a, group, 0, 0, LEN);
	t_run_ud(env->host);
	expect_all_sent(env, 1);
	expect_order(env, (const uint32_t[]){ 0, 0 }, 2);
}

/* ----------------------------------------------------------------------- other hosts */

T_SETUP_HOSTS(hosts, 2)
{
	t_open_ready(&env->a, env->g[0], PVR_QPT_UD);
	t_open_ready(&env->b, env->g[1], PVR_QPT_UD);
}

TEST(hosts, test_faults_of_datagrams_to_another_host)
{
	add(env, "to=host2 reorder=100%");
	add(env, "to=vm2 drop=100%");
	add(env, "from=vm1 duplicate=100%");
	post(env, 2, 2);
	t_run_ud(env->host);
	expect_all_sent(env, 2);
	expect_order(env, (const uint32_t[]){ 1, 1, 0 }, 3);
}
