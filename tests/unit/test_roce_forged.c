// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RoCE frames that a responder or requester must drop, each with one wrong field. */
#include "core/objects.h"
#include "segment.h"

#define LEN SEGMENT_LEN

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
	uint32_t psn;

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
	psn = frame.frame.psn;
	assert_true(frame.frame.migrated);
	assert_memory_equal(frame.frame.dst_mac, env->g[1]->config.mac, 6);
	assert_memory_equal(frame.frame.src_mac, env->g[0]->config.mac, 6);
	assert_int_equal(frame.frame.hop_limit, 64);
	assert_int_equal(fg_mismatch(frame.payload, LEN, 3), LEN);
	assert_int_equal(fg_mismatch(env->b.mr.va + SEGMENT_GRH, LEN, 3), LEN);
	t_send_ud(&env->a, &env->b, 3, 0, LEN);
	await_sent(&env->a, 3);
	assert_int_equal(segment_last(env, 0).frame.psn, psn + 1);
}

/* --------------------------------------------------------------------------------- RC */

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
	struct segment_frame right = segment_next_write(env), frame = right;
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
	struct segment_frame frame = segment_next_write(env), nak;
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
	struct segment_frame frame = segment_next_write(env), nak;

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
	uint32_t psn = segment_next_write(env).frame.psn;

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

/* ------------------------------------------------------------------------ READ data */

#define MTU 1024u
#define RESPONSE_FIRST 0x0d
#define RESPONSE_LAST 0x0f
#define RESPONSE_ONLY 0x10

/* a has asked for two packets of b; nothing has come. Return: the right first one, with other bytes. */
static struct segment_frame forged_data(struct t_env *env)
{
	struct segment_frame data = segment_last(env, 1), request;

	fg_segment_rules(env->segment)->cut = true;
	fg_fill(env->b.mr.va, 2 * MTU, 4);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 0, &env->b.mr, 0, 2 * MTU);
	fg_run(env->host);
	fg_segment_rules(env->segment)->cut = false;
	request = segment_last(env, 0);
	data.frame.opcode = RESPONSE_FIRST;
	data.frame.psn = request.frame.psn;
	data.frame.syndrome = 0x1f;
	data.frame.payload_bytes = MTU;
	memset(data.payload, 0xee, sizeof(data.payload));
	return data;
}

static void short_data(struct segment_frame *f)
{
	f->frame.payload_bytes -= 4;
}

static void long_data(struct segment_frame *f)
{
	f->frame.payload_bytes += 4;
}

static void data_of_the_future(struct segment_frame *f)
{
	f->frame.psn += 2;
}

static void data_of_the_past(struct segment_frame *f)
{
	f->frame.psn--;
}

static void data_of_the_next_packet(struct segment_frame *f)
{
	f->frame.opcode = RESPONSE_LAST;
	f->frame.psn++;
}

static void value_for_data(struct segment_frame *f)
{
	f->frame.opcode = PVR_ROCE_OP_ATOMIC_ACK;
	f->frame.payload_bytes = 0;
}

static void ack_for_data(struct segment_frame *f)
{
	f->frame.opcode = PVR_ROCE_OP_ACK;
	f->frame.psn++;
	f->frame.payload_bytes = 0;
}

static const struct wrong wrong_data[] = {
	{ "shorter", short_data },
	{ "longer", long_data },
	{ "PSN behind the READ", data_of_the_future },
	{ "PSN before the READ", data_of_the_past },
	{ "next packet first", data_of_the_next_packet },
	{ "value of an atomic", value_for_data },
	{ "ACK without data", ack_for_data },
	{ "source GID", other_src_gid },
	{ "destination GID", wrong_dst_gid },
	{ "ICRC", wrong_icrc },
};

TEST_CASES(written, test_wrong_read_data_are_ignored, wrong_data)
{
	struct segment_frame data = forged_data(env);

	row->change(&data);
	fg_segment_rules(env->segment)->cut = true; /* it asks again */
	segment_inject(env, 0, &data);
	assert_int_not_equal(((uint8_t *)env->a.mr.va)[0], 0xee);
	assert_int_not_equal(((uint8_t *)env->a.mr.va)[MTU], 0xee);
	expect_no_cqe(&env->a.scq);
	fg_segment_rules(env->segment)->cut = false;
	fg_settle(env->host, FG_SEC);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_READ);
	assert_int_equal(fg_mismatch(env->a.mr.va, 2 * MTU, 4), 2 * MTU);
}

TEST(written, test_read_data_for_a_write_are_ignored)
{
	struct segment_frame data = forged_data(env), write;

	fg_settle(env->host, FG_SEC);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_READ);
	write = segment_next_write(env);
	data.frame.opcode = RESPONSE_ONLY;
	data.frame.psn = write.frame.psn;
	data.frame.payload_bytes = LEN;
	segment_inject(env, 0, &data);
	assert_int_equal(((uint8_t *)env->a.mr.va)[0], 0x77);
	expect_no_cqe(&env->a.scq);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 2);
}

/* ---------------------------------------------------------------------------- floods */

/* No answer, no memory, and the others go on. */
TEST(written, test_flood_of_unknown_queue_pairs_costs_nothing)
{
	struct segment_frame frame = segment_next_write(env), flood = frame;
	uint64_t answers = fg_segment_sent(env->segment, 1);
	uint64_t unknown = fg_segment_stats(env->segment, 1).rx_unknown;

	for (uint32_t i = 0; i < 10000; i++) {
		flood.frame.dest_qpn = (frame.frame.dest_qpn + 1 + i * 7919) & 0xffffff;
		if (flood.frame.dest_qpn != frame.frame.dest_qpn)
			segment_inject(env, 1, &flood);
	}
	assert_int_equal(fg_segment_sent(env->segment, 1), answers);
	assert_in_range(fg_segment_stats(env->segment, 1).rx_unknown, unknown + 9990,
			unknown + 10000);
	segment_inject(env, 1, &frame);
	assert_int_equal(((uint8_t *)env->b.mr.va)[0], 0x77);
}
