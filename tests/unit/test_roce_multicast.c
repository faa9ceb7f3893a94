// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Multicast datagrams on a segment. test_mcast.c runs on one, too. */
#include "core/adapter.h"
#include "path/wire/internal.h"
#include "rdma/ud.h"
#include "segment.h"

#define LEN 100u

TEST_EXT(PVR_EXT_MCAST)

static const uint8_t group[16] = { 0xff, 0x12, [12] = 1, 2, 3, 7 };
static const uint8_t group_v4[16] = { [10] = 0xff, 0xff, 239, 0x81, 2, 3 };

static void send_to(struct fg_end *from, const uint8_t mgid[16])
{
	struct pvrdma_av av = fg_av(&from->pd, mgid, 0);

	t_post(from, .wr_id = 9, .opcode = PVRDMA_WR_SEND, T_SGE(&from->mr, 0, LEN), .av = &av,
	       .remote_qpn = PVR_MULTICAST_QPN, .remote_qkey = FG_QKEY);
	t_run_ud(from->guest->host);
	expect_sent(from, 9);
}

static const struct {
	const char *label;
	const uint8_t *mgid;
	uint8_t mac[6];
} macs[] = {
	{ "IPv4", group_v4, { 0x01, 0x00, 0x5e, 0x01, 2, 3 } }, /* 23 bits of the address */
	{ "IPv6", group, { 0x33, 0x33, 1, 2, 3, 7 } },
};

TEST_CASES(ud_ready, test_datagram_to_a_group_has_the_address_of_its_gid, macs)
{
	struct segment_frame frame;

	send_to(&env->a, row->mgid);
	frame = segment_last(env, 0);
	assert_memory_equal(frame.frame.dst_mac, row->mac, 6);
	assert_memory_equal(frame.frame.dst_gid, row->mgid, 16);
	assert_int_equal(frame.frame.dest_qpn, PVR_MULTICAST_QPN);
	assert_int_equal(fg_segment_stats(env->segment, 1).rx_unknown, 1); /* without a member */
}

/* b is a member and receives @frame, with another PSN, if it is right. */
static bool is_received(struct t_env *env, struct segment_frame *frame)
{
	bool received;

	frame->frame.psn = (frame->frame.psn + 1) & 0xffffff;

	t_recv(&env->b, 7, 0, 400);
	segment_inject(env, 1, frame);
	received = fg_cq_pending(&env->b.rcq);
	fg_cq_drain(&env->b.rcq);
	return received;
}

static void mac_of_another_group(struct segment_frame *f)
{
	f->frame.dst_mac[5] ^= 1;
}

static void another_group(struct segment_frame *f)
{
	f->frame.dst_gid[15] ^= 1;
	f->frame.dst_mac[5] ^= 1;
}

static void broadcast(struct segment_frame *f)
{
	memset(f->frame.dst_mac, 0xff, sizeof(f->frame.dst_mac));
}

static void qpn(struct segment_frame *f)
{
	f->frame.dest_qpn = 5;
}

static void qkey(struct segment_frame *f)
{
	f->frame.qkey ^= 1;
}

static void pkey(struct segment_frame *f)
{
	f->frame.pkey = 0x1234;
}

static void vlan(struct segment_frame *f)
{
	f->frame.vlan = 5;
}

static void icrc(struct segment_frame *f)
{
	f->icrc_error = 1;
}

static void reliable(struct segment_frame *f)
{
	f->frame.opcode = 0x04; /* RC SEND_ONLY */
}

static const struct wrong {
	const char *label;
	void (*change)(struct segment_frame *f);
} wrong[] = {
	{ "MAC of another group", mac_of_another_group },
	{ "another group", another_group },
	{ "broadcast MAC", broadcast },
	{ "QPN", qpn },
	{ "Q_Key", qkey },
	{ "P_Key", pkey },
	{ "VLAN", vlan },
	{ "ICRC", icrc },
	{ "transport RC", reliable },
};

TEST_CASES(ud_ready, test_group_datagram_with_a_wrong_field_is_dropped, wrong)
{
	struct segment_frame frame;
	uint64_t answers;

	expect_ok(fg_qp_attach(&env->b.qp, group));
	send_to(&env->a, group);
	frame = segment_last(env, 0);
	answers = fg_segment_sent(env->segment, 1);
	assert_true(is_received(env, &frame));
	row->change(&frame);
	assert_false(is_received(env, &frame));
	assert_int_equal(fg_segment_sent(env->segment, 1), answers);
}

/* The members here have the datagram already: by memory, or by another pvrdmad's connection. */
TEST(ud_ready, test_group_datagram_of_an_adapter_here_is_dropped)
{
	struct segment_frame frame;

	expect_ok(fg_qp_attach(&env->b.qp, group));
	send_to(&env->a, group);
	frame = segment_last(env, 0);
	memcpy(frame.frame.src_gid, env->b.gid, sizeof(frame.frame.src_gid));
	assert_false(is_received(env, &frame));
}

TEST(ud_ready, test_group_datagram_reaches_members_of_all_adapters_of_the_port_once)
{
	struct fg_guest *neighbour = fg_guest_start(t_other_host(env), 3);
	struct fg_end c;

	t_open_ready(&c, neighbour, PVR_QPT_UD);
	expect_ok(fg_qp_attach(&env->b.qp, group));
	expect_ok(fg_qp_attach(&c.qp, group));
	t_recv(&env->b, 1, 0, 400);
	t_recv(&c, 1, 0, 400);
	fg_fill(env->a.mr.va, LEN, 3);
	send_to(&env->a, group);
	expect_recv(&env->b.rcq, 1, LEN + SEGMENT_GRH);
	expect_recv(&c.rcq, 1, LEN + SEGMENT_GRH);
	assert_int_equal(fg_mismatch(c.mr.va + SEGMENT_GRH, LEN, 3), LEN);
	assert_int_equal(fg_segment_sent(env->segment, 0), 1);
	fg_guest_destroy(neighbour);
}

/* On a bridge, one from the bridge itself and one by the rule at the VM's tap. */
TEST(ud_ready, test_copies_of_a_group_datagram_are_received_once)
{
	struct segment_frame frame;

	expect_ok(fg_qp_attach(&env->b.qp, group));
	for (uint32_t i = 0; i < 4; i++)
		t_recv(&env->b, i, 0, 400);
	send_to(&env->a, group);
	expect_recv(&env->b.rcq, 0, LEN + SEGMENT_GRH);
	frame = segment_last(env, 0);
	segment_inject(env, 1, &frame);
	expect_no_cqe(&env->b.rcq);
	frame.frame.psn++;
	segment_inject(env, 1, &frame);
	expect_recv(&env->b.rcq, 1, LEN + SEGMENT_GRH);
	/* Another sender with the same PSN. */
	frame.frame.src_qpn++;
	segment_inject(env, 1, &frame);
	expect_recv(&env->b.rcq, 2, LEN + SEGMENT_GRH);
}

/* ------------------------------------------------------------------ work of a batch */

#define MEMBERS 32u
#define BIG 1000u
#define MANY 50u

static void attach_members(struct t_env *env)
{
	for (uint32_t i = 0; i < MEMBERS; i++) {
		struct fg_qp qp = t_qp_create(&env->b, (struct fg_qp_spec){});

		expect_ok(fg_qp_attach(&qp, group));
	}
}

/* Datagrams of a batch, with their PSNs. */
static void fill_batch(struct t_env *env, uint8_t (*data)[2048], struct pvr_port_frame *frames,
		       unsigned int count)
{
	struct segment_frame frame;

	send_to(&env->a, group);
	frame = segment_last(env, 0);
	frame.frame.payload_bytes = BIG;
	for (unsigned int i = 0; i < count; i++) {
		size_t headers;

		frame.frame.psn = (frame.frame.psn + 1) & 0xffffff;
		headers = pvr_roce_build(data[i], &frame.frame);
		memset(data[i] + headers, 0x5a, BIG);
		frames[i] = (struct pvr_port_frame){
			.data = data[i],
			.bytes = (uint32_t)pvr_roce_finish(data[i], headers, &frame.frame),
		};
	}
}

/* A frame to a group costs a copy for each member. */
TEST(ud_ready, test_batch_to_a_large_group_ends_before_its_last_frame)
{
	struct pvr_port *port = env->g[1]->adapter->port;
	static uint8_t data[64][2048];
	struct pvr_port_frame frames[64];
	unsigned int done, turns = 0, n;

	attach_members(env);
	fill_batch(env, data, frames, 64);
	for (done = 0; done < 64; done += n, turns++) {
		n = pvr_port_input(port, frames + done, 64 - done);
		assert_in_range(n, 1, 16);
		assert_true(n * MEMBERS * BIG < PVR_ETH_GROUP_BYTES + MEMBERS * (BIG + 128));
	}
	assert_in_range(turns, 4, 8);
}

/* A frame of several packets is not begun twice: what is beyond the bound is lost, and counted. */
TEST(ud_ready, test_frame_of_many_datagrams_to_a_large_group_loses_those_beyond_the_bound)
{
	struct pvr_port *port = env->g[1]->adapter->port;
	const size_t headers = 14 + 40 + 8; /* Ethernet, IPv6, UDP */
	static uint8_t data[MANY][2048], many[MANY * 2048];
	struct pvr_port_frame frames[MANY], whole = { .data = many };

	attach_members(env);
	fill_batch(env, data, frames, MANY);
	memcpy(many, data[0], headers);
	whole.bytes = (uint32_t)headers;
	whole.segment = (uint16_t)(frames[0].bytes - headers);
	for (unsigned int i = 0; i < MANY; i++) {
		memcpy(many + whole.bytes, data[i] + headers, whole.segment);
		whole.bytes += whole.segment;
	}
	assert_int_equal(pvr_port_input(port, &whole, 1), 1);
	assert_in_range(fg_segment_stats(env->segment, 1).rx_lost, MANY - 17, MANY - 12);
	assert_int_equal(fg_segment_stats(env->segment, 1).rx_icrc, 0);
}
