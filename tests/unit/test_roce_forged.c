// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RoCE frames that a responder or requester must drop, each with one wrong field. */
#include "core/objects.h"
#include "segment.h"

#define LEN 100u

/* b receives @frame if it is right, so a test of a wrong one shows the one field's effect. */
static bool ud_is_received(struct t_env *env, const struct segment_frame *frame)
{
	bool received;

	t_recv(&env->b, 7, 0, 400);
	segment_inject(env, 1, frame);
	received = fg_cq_pending(&env->b.rcq);
	fg_cq_drain(&env->b.rcq);
	return received;
}

static void wrong_mac(struct segment_frame *f)
{
	f->frame.dst_mac[5] ^= 1;
}

static void wrong_dst_gid(struct segment_frame *f)
{
	f->frame.dst_gid[15] ^= 0x40;
}

/* That of b's adapter itself. */
static void local_src_gid(struct segment_frame *f)
{
	memcpy(f->frame.src_gid, f->frame.dst_gid, sizeof(f->frame.src_gid));
}

static void wrong_pkey(struct segment_frame *f)
{
	f->frame.pkey = 0x1234;
}

static void wrong_qkey(struct segment_frame *f)
{
	f->frame.qkey ^= 1;
}

static void wrong_qpn(struct segment_frame *f)
{
	f->frame.dest_qpn ^= 0x10000;
}

static void wrong_vlan(struct segment_frame *f)
{
	f->frame.vlan = 5;
}

static void wrong_icrc(struct segment_frame *f)
{
	f->icrc_error = 1;
}

static void roce_v1(struct segment_frame *f)
{
	f->frame.net = PVR_ROCE_V1;
}

static const struct wrong {
	const char *label;
	void (*change)(struct segment_frame *f);
} wrong_ud[] = {
	{ "destination MAC", wrong_mac },
	{ "destination GID", wrong_dst_gid },
	{ "source GID is here", local_src_gid },
	{ "P_Key", wrong_pkey },
	{ "Q_Key", wrong_qkey },
	{ "QPN", wrong_qpn },
	{ "VLAN", wrong_vlan },
	{ "ICRC", wrong_icrc },
	{ "RoCE v1", roce_v1 },
};

TEST_CASES(ud_ready, test_datagram_with_a_wrong_field_is_dropped, wrong_ud)
{
	struct segment_frame frame;
	uint64_t answers;

	t_recv(&env->b, 1, 0, 400);
	t_send_ud(&env->a, &env->b, 2, 0, LEN);
	await_sent(&env->a, 2);
	expect_recv(&env->b.rcq, 1, LEN + SEGMENT_GRH);
	frame = segment_last(env, 0);
	answers = fg_segment_sent(env->segment, 1);
	assert_true(ud_is_received(env, &frame));
	row->change(&frame);
	assert_false(ud_is_received(env, &frame));
	/* No frame makes it answer to another address. */
	assert_int_equal(fg_segment_sent(env->segment, 1), answers);
}

TEST(ud_ready, test_datagram_has_the_fields_of_its_request)
{
	struct segment_frame frame;

	fg_fill(env->a.mr.va, LEN, 3);
	t_recv(&env->b, 1, 0, 400);
	t_send_ud(&env->a, &env->b, 2, 0, LEN);
	await_sent(&env->a, 2);
	frame = segment_last(env, 0);
	assert_int_equal(frame.frame.opcode, 0x64);
	assert_int_equal(frame.frame.src_qpn, env->a.qp.qpn);
	assert_int_equal(frame.frame.dest_qpn, env->b.qp.qpn);
	assert_int_equal(frame.frame.qkey, FG_QKEY);
	assert_int_equal(frame.frame.pkey, 0xffff);
	assert_true(frame.frame.migrated);
	assert_memory_equal(frame.frame.dst_mac, env->g[1]->config.mac, 6);
	assert_memory_equal(frame.frame.src_mac, env->g[0]->config.mac, 6);
	assert_int_equal(frame.frame.hop_limit, 64);
	assert_int_equal(fg_mismatch(frame.payload, LEN, 3), LEN);
	assert_int_equal(fg_mismatch(env->b.mr.va + SEGMENT_GRH, LEN, 3), LEN);
}

/* --------------------------------------------------------------------------------- RC */

T_SETUP(written, rc_connected)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, LEN);
	await_written(&env->a, 1);
}

/* The next WRITE of a, which has not arrived. */
static struct segment_frame next_write(struct t_env *env)
{
	fg_segment_rules(env->segment)->cut = true;
	memset(env->a.mr.va, 0x77, LEN);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, LEN);
	fg_run(env->host);
	fg_segment_rules(env->segment)->cut = false;
	return segment_last(env, 0);
}

static void other_src_gid(struct segment_frame *f)
{
	f->frame.src_gid[15] ^= 0x40;
}

static void unreliable(struct segment_frame *f)
{
	f->frame.opcode |= PVR_ROCE_UC << 5;
}

static void never_executed(struct segment_frame *f)
{
	f->frame.psn = (f->frame.psn - 1000) & 0xffffff;
}

static const struct wrong wrong_rc[] = {
	{ "destination MAC", wrong_mac },
	{ "destination GID", wrong_dst_gid },
	{ "source GID", other_src_gid },
	{ "P_Key", wrong_pkey },
	{ "QPN", wrong_qpn },
	{ "VLAN", wrong_vlan },
	{ "ICRC", wrong_icrc },
	{ "transport UC", unreliable },
	{ "PSN before the first one", never_executed },
};

TEST_CASES(written, test_request_with_a_wrong_field_is_dropped, wrong_rc)
{
	struct segment_frame right = next_write(env), frame = right;
	uint64_t answers = fg_segment_sent(env->segment, 1);

	row->change(&frame);
	segment_inject(env, 1, &frame);
	assert_int_not_equal(((uint8_t *)env->b.mr.va)[0], 0x77);
	assert_int_equal(fg_segment_sent(env->segment, 1), answers);
	/* The right one is executed. */
	segment_inject(env, 1, &right);
	assert_int_equal(((uint8_t *)env->b.mr.va)[0], 0x77);
	expect_written(&env->a, 2);
}

TEST(written, test_packets_ahead_get_one_nak)
{
	struct segment_frame frame = next_write(env), nak;
	uint64_t answers = fg_segment_sent(env->segment, 1);
	uint32_t expected = frame.frame.psn;

	fg_segment_rules(env->segment)->cut = true;
	for (unsigned int i = 1; i < 5; i++) {
		frame.frame.psn = expected + i;
		segment_inject(env, 1, &frame);
	}
	assert_int_equal(fg_segment_sent(env->segment, 1), answers + 1);
	nak = segment_last(env, 1);
	assert_int_equal(nak.frame.opcode, PVR_ROCE_OP_ACK);
	assert_int_equal(nak.frame.syndrome, 0x60);
	assert_int_equal(nak.frame.psn, expected);
	assert_int_not_equal(((uint8_t *)env->b.mr.va)[0], 0x77);
}

TEST(written, test_duplicate_is_acknowledged_and_not_executed_again)
{
	struct segment_frame frame = segment_last(env, 0), ack;
	uint64_t answers = fg_segment_sent(env->segment, 1);

	memset(env->b.mr.va, 0x11, LEN);
	segment_inject(env, 1, &frame);
	assert_int_equal(((uint8_t *)env->b.mr.va)[0], 0x11);
	assert_int_equal(fg_segment_sent(env->segment, 1), answers + 1);
	ack = segment_last(env, 1);
	assert_int_equal(ack.frame.syndrome, 0x1f);
	assert_int_equal(ack.frame.psn, frame.frame.psn);
	assert_int_equal(ack.frame.msn, 1);
}

static void middle(struct segment_frame *f)
{
	f->frame.opcode = 0x07; /* WRITE_MIDDLE */
}

static void length(struct segment_frame *f)
{
	f->frame.length = LEN + 1;
}

static void flush(struct segment_frame *f)
{
	f->frame.opcode = 0x1c;
	f->frame.payload_bytes = 0;
}

static void short_first(struct segment_frame *f)
{
	f->frame.opcode = 0x06; /* WRITE_FIRST */
}

static void atomic_unaligned(struct segment_frame *f)
{
	f->frame.opcode = 0x14;
	f->frame.payload_bytes = 0;
	f->frame.addr |= 1;
}

static const struct wrong invalid[] = {
	{ "MIDDLE without FIRST", middle },
	{ "sum unlike the RETH", length },
	{ "FLUSH", flush },
	{ "FIRST below the path MTU", short_first },
	{ "atomic at an odd address", atomic_unaligned },
};

TEST_CASES(written, test_invalid_request_gets_nak_0x61, invalid)
{
	struct segment_frame frame = next_write(env), nak;

	row->change(&frame);
	segment_inject(env, 1, &frame);
	nak = segment_last(env, 1);
	assert_int_equal(nak.frame.syndrome, 0x61);
	assert_int_equal(nak.frame.psn, frame.frame.psn);
	assert_int_not_equal(((uint8_t *)env->b.mr.va)[0], 0x77);
	expect_state(&env->b, PVR_QPS_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_REM_INV_REQ_ERR);
}

/*
 * The peer of d was in its own process. When it has gone, no machine of the segment takes its place,
 * even with its GID and the expected PSN.
 */
TEST(written, test_successor_of_a_local_peer_is_dropped)
{
	struct fg_guest *neighbour = fg_guest_start(t_other_host(env), 3);
	struct segment_frame frame = segment_last(env, 0);
	uint64_t answers;
	struct fg_end c, d;

	t_open_pair(&c, neighbour, &d, env->g[1]);
	t_rdma(&c, PVRDMA_WR_RDMA_WRITE, 1, 0, &d.mr, 0, LEN);
	fg_run(env->host);
	expect_cqe(&c.scq, 1, PVRDMA_WC_SUCCESS);
	memcpy(frame.frame.src_gid, c.gid, sizeof(c.gid));
	frame.frame.dest_qpn = d.qp.qpn;
	frame.frame.addr = d.mr.start;
	frame.frame.rkey = d.mr.rkey;
	frame.frame.psn = t_device_qp(&d)->rq_psn;
	memset(frame.payload, 0x77, LEN);
	fg_guest_destroy(neighbour);
	answers = fg_segment_sent(env->segment, 1);
	segment_inject(env, 1, &frame);
	assert_int_not_equal(((uint8_t *)d.mr.va)[0], 0x77);
	assert_int_equal(fg_segment_sent(env->segment, 1), answers);
	fg_end_close(&d);
}

/* Answers to PSNs that are not in flight. */
TEST(written, test_ghost_answers_are_ignored)
{
	struct segment_frame ghost = segment_last(env, 1);
	static const uint8_t syndromes[] = { 0x1f, 0x20, 0x60, 0x61, 0x62, 0x63, 0x9f, 0xff };
	uint32_t psn = next_write(env).frame.psn;

	for (unsigned int i = 0; i < COUNT(syndromes); i++) {
		for (int off = -3; off <= 3; off++) {
			if (!off)
				continue;
			ghost.frame.syndrome = syndromes[i];
			ghost.frame.psn = (psn + (uint32_t)off) & 0xffffff;
			segment_inject(env, 0, &ghost);
			expect_no_cqe(&env->a.scq);
			expect_state(&env->a, PVR_QPS_RTS);
		}
	}
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 2);
}
