// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Congestion notification packets: of marked packets, and their effect on requesters and responders. */
#include "core/objects.h"
#include "path/wire/internal.h"
#include "segment.h"

#define LEN SEGMENT_LEN
#define CNP 0x81
#define LONG_LEN 60000u /* 59 packets */

/* A duplicate of the last WRITE of a, as a router has marked it. */
static struct segment_frame marked(struct t_env *env)
{
	struct segment_frame frame = segment_last(env, 0);

	frame.frame.traffic_class |= PVR_ROCE_CE;
	frame.frame.ack_request = false;
	return frame;
}

static uint64_t cnps_sent(struct t_env *env)
{
	return fg_segment_stats(env->segment, 1).tx_cnps;
}

TEST(written, test_marked_packet_is_answered_by_a_cnp)
{
	struct segment_frame frame = marked(env), cnp;

	frame.frame.psn = (frame.frame.psn - 1000) & 0xffffff; /* gets no other answer */
	segment_inject(env, 1, &frame);
	assert_int_equal(cnps_sent(env), 1);
	cnp = segment_last(env, 1);
	assert_int_equal(cnp.frame.opcode, CNP);
	assert_int_equal(cnp.frame.dest_qpn, env->a.qp.qpn);
	assert_memory_equal(cnp.frame.dst_mac, env->g[0]->config.mac, 6);
	assert_true(cnp.frame.becn);
	assert_false(cnp.frame.migrated);
	assert_false(cnp.frame.ack_request);
	assert_int_equal(cnp.frame.psn, 0);
	assert_int_equal(cnp.frame.traffic_class >> 2, 48);
	/* The QP of a has taken it. */
	assert_int_equal(fg_segment_stats(env->segment, 0).rx_cnps, 1);
}

static void ect0(struct segment_frame *f)
{
	f->frame.traffic_class = PVR_ROCE_ECT0;
}

static void ect1(struct segment_frame *f)
{
	f->frame.traffic_class = 1;
}

static void other_source(struct segment_frame *f)
{
	f->frame.src_gid[15] ^= 0x40;
}

static void icrc(struct segment_frame *f)
{
	f->icrc_error = 1;
}

static const struct wrong {
	const char *label;
	void (*change)(struct segment_frame *f);
} unmarked[] = {
	{ "ECT(0)", ect0 },
	{ "ECT(1)", ect1 },
	{ "source GID", other_source },
	{ "ICRC", icrc },
};

TEST_CASES(written, test_other_packets_get_no_cnp, unmarked)
{
	struct segment_frame frame = marked(env);

	row->change(&frame);
	segment_inject(env, 1, &frame);
	assert_int_equal(cnps_sent(env), 0);
}

TEST(written, test_cnps_of_a_queue_pair_have_a_distance)
{
	struct segment_frame frame = marked(env);

	for (unsigned int i = 0; i < 100; i++)
		segment_inject(env, 1, &frame);
	assert_int_equal(cnps_sent(env), 1);
	fg_settle(env->host, FG_MS);
	fg_advance(env->host, FG_MS);
	segment_inject(env, 1, &frame);
	assert_int_equal(cnps_sent(env), 2);
}

/* ------------------------------------------------------------------------- requesters */

static uint32_t window_of(struct t_env *env)
{
	return pvr_eth_sq(t_device_qp(&env->a))->window;
}

/* A CNP of b for a. */
static struct segment_frame cnp_for(struct t_env *env)
{
	struct segment_frame cnp = { .frame = segment_last(env, 1).frame };

	cnp.frame.opcode = CNP;
	cnp.frame.becn = true;
	cnp.frame.psn = 0;
	return cnp;
}

TEST(written, test_cnps_reduce_the_window_to_its_minimum)
{
	struct segment_frame cnp = cnp_for(env);
	uint32_t before = window_of(env);

	segment_inject(env, 0, &cnp);
	assert_int_equal(window_of(env), before / 2);
	/* The next one in the same moment is the same congestion. */
	segment_inject(env, 0, &cnp);
	assert_int_equal(window_of(env), before / 2);
	for (unsigned int i = 0; i < 100; i++) {
		fg_advance(env->host, 60000);
		segment_inject(env, 0, &cnp);
	}
	assert_int_equal(window_of(env), PVR_ETH_WINDOW_MIN);
	/* It still sends. */
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, LONG_LEN);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 2);
}

TEST(written, test_rare_cnps_reduce_the_window_by_little)
{
	struct segment_frame cnp = cnp_for(env);
	uint32_t before;

	segment_inject(env, 0, &cnp);
	before = window_of(env);
	fg_advance(env->host, FG_SEC);
	segment_inject(env, 0, &cnp);
	assert_in_range(window_of(env), before - 2, before);
}

static void other_qpn(struct segment_frame *f)
{
	f->frame.dest_qpn ^= 0x10000;
}

static void other_destination(struct segment_frame *f)
{
	f->frame.dst_gid[15] ^= 0x40;
}

static const struct wrong forged[] = {
	{ "QPN", other_qpn },
	{ "source GID", other_source },
	{ "destination GID", other_destination },
	{ "ICRC", icrc },
};

TEST_CASES(written, test_cnp_of_another_machine_is_ignored, forged)
{
	struct segment_frame cnp = cnp_for(env);
	uint32_t before = window_of(env);

	row->change(&cnp);
	segment_inject(env, 0, &cnp);
	assert_int_equal(window_of(env), before);
	assert_int_equal(fg_segment_stats(env->segment, 0).rx_cnps, 0);
}

TEST(ud_ready, test_cnp_for_a_ud_queue_pair_is_ignored)
{
	struct segment_frame cnp;

	t_recv(&env->b, 1, 0, 400);
	t_send_ud(&env->a, &env->b, 2, 0, LEN);
	await_sent(&env->a, 2);
	cnp = segment_last(env, 0);
	cnp.frame.opcode = CNP;
	cnp.frame.payload_bytes = 0;
	segment_inject(env, 1, &cnp);
	assert_int_equal(fg_segment_stats(env->segment, 1).rx_cnps, 0);
}

/* ------------------------------------------------------------------------- responders */

static uint64_t read_time(struct t_env *env, uint64_t id)
{
	uint64_t begin = env->host->now;

	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, id, 0, &env->b.mr, 0, LONG_LEN);
	fg_run(env->host);
	while (!fg_cq_pending(&env->a.scq) && env->host->now - begin < FG_SEC) {
		fg_advance(env->host, 10000);
	}
	expect_done(&env->a.scq, id, PVRDMA_WC_RDMA_READ);
	return env->host->now - begin;
}

/* READ data that are due when the CNP comes. */
TEST(written, test_cnp_slows_read_data_down)
{
	uint64_t before = read_time(env, 2);
	struct segment_frame cnp = { .frame = segment_last(env, 0).frame };
	struct pvr_eth_rq *rq = pvr_eth_rq(t_device_qp(&env->b));

	cnp.frame.opcode = CNP;
	fg_segment_rules(env->segment)->room = 4;
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 3, 0, &env->b.mr, 0, LONG_LEN);
	fg_run(env->host);
	segment_inject(env, 1, &cnp);
	assert_int_not_equal(rq->turn, 0);
	fg_segment_rules(env->segment)->room = 0;
	fg_settle(env->host, FG_SEC);
	expect_done(&env->a.scq, 3, PVRDMA_WC_RDMA_READ);
	assert_true(read_time(env, 4) > before);
	/* Without further CNPs it is as fast as before. */
	for (uint32_t i = 5; i < 60; i++)
		read_time(env, i);
	assert_int_equal(rq->turn, 0);
	assert_int_equal(read_time(env, 60), before);
}

/* -------------------------------------------------------------------------------- ECN */

static uint8_t class_of_data(struct t_env *env, bool ecn)
{
	t_device_qp(&env->a)->adapter->wire->ecn = ecn;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, LEN);
	await_written(&env->a, 2);
	return segment_last(env, 0).frame.traffic_class & PVR_ROCE_ECN;
}

TEST(written, test_data_may_be_marked_only_with_ecn)
{
	assert_int_equal(class_of_data(env, false), 0);
	assert_int_equal(class_of_data(env, true), PVR_ROCE_ECT0);
	assert_int_equal(segment_last(env, 1).frame.traffic_class & PVR_ROCE_ECN, 0); /* an ACK */
}
