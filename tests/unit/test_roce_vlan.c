// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Frames of GIDs that are bound with a VLAN. */
#include "segment.h"

#define INDEX 2u
#define LEN 100u

TEST_EXT(PVR_EXT_VLAN)

/* Both ends use addresses of these VLANs, PVR_VLAN_NONE for none. */
static void bind(struct t_env *env, uint32_t vlan_a, uint32_t vlan_b)
{
	struct fg_end *end[2] = { &env->a, &env->b };
	const uint32_t vlan[2] = { vlan_a, vlan_b };

	for (uint8_t i = 0; i < 2; i++) {
		fg_gid_from_ipv4(end[i]->gid, 10, 78, 0, i + 1);
		if (vlan[i] == PVR_VLAN_NONE)
			expect_ok(fg_bind_gid(env->g[i], INDEX, end[i]->gid));
		else
			expect_ok(fg_bind_gid_vlan(env->g[i], INDEX, end[i]->gid, vlan[i]));
	}
}

static void connect(struct t_env *env)
{
	struct fg_conn conn = fg_conn_default;

	conn.sgid_index = INDEX;
	conn.timeout = 8;
	conn.retry_cnt = 1;
	fg_end_connect(&env->a, &env->b, &conn);
}

static void post_write(struct t_env *env)
{
	fg_fill(env->a.mr.va, LEN, 1);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, LEN);
	fg_settle(env->host, FG_SEC);
}

TEST(rc, test_requests_and_answers_have_the_tag_of_their_gid)
{
	bind(env, 4094, 4094);
	connect(env);
	post_write(env);
	expect_written(&env->a, 1);
	assert_int_equal(fg_mismatch(env->b.mr.va, LEN, 1), LEN);
	assert_int_equal(segment_last(env, 0).frame.vlan, 4094);
	assert_int_equal(segment_last(env, 1).frame.vlan, 4094);
}

static const struct {
	const char *label;
	uint32_t a, b;
} apart[] = {
	{ "5 and 6", 5, 6 },
	{ "5 and none", 5, PVR_VLAN_NONE },
	{ "none and 6", PVR_VLAN_NONE, 6 },
};

TEST_CASES(rc, test_vlans_never_meet, apart)
{
	bind(env, row->a, row->b);
	connect(env);
	post_write(env);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	assert_int_equal(fg_segment_sent(env->segment, 1), 0);
}

/* IEEE 802.1Q: VLAN 0 has a priority only. */
TEST(rc, test_priority_tag_is_no_vlan)
{
	struct segment_frame frame;

	bind(env, PVR_VLAN_NONE, PVR_VLAN_NONE);
	connect(env);
	post_write(env);
	expect_written(&env->a, 1);
	frame = segment_last(env, 0);
	frame.frame.vlan = 5 << 13;
	frame.frame.psn++;
	memset(frame.payload, 0x77, LEN);
	segment_inject(env, 1, &frame);
	assert_int_equal(((uint8_t *)env->b.mr.va)[0], 0x77);
}

/* ------------------------------------------------------------------------- datagrams */

static void post_datagram(struct t_env *env, uint32_t service_level)
{
	struct pvrdma_av av = fg_av(&env->a.pd, env->b.gid, INDEX);

	av.sl_tclass_flowlabel |= service_level << 28;
	t_recv(&env->b, 1, 0, 400);
	t_post(&env->a, .wr_id = 2, .opcode = PVRDMA_WR_SEND, T_SGE(&env->a.mr, 0, LEN),
	       T_UD(&av, &env->b));
	await_sent(&env->a, 2);
}

TEST(ud_ready, test_datagram_has_the_tag_of_its_gid_with_the_service_level)
{
	bind(env, 7, 7);
	post_datagram(env, 3);
	expect_recv(&env->b.rcq, 1, LEN + SEGMENT_GRH);
	assert_int_equal(segment_last(env, 0).frame.vlan, 3 << 13 | 7);
}

TEST_CASES(ud_ready, test_vlans_of_datagrams_never_meet, apart)
{
	bind(env, row->a, row->b);
	post_datagram(env, 0);
	expect_no_cqe(&env->b.rcq);
}

/* As link-local addresses, which a NIC shares with its VLANs. */
TEST(ud_ready, test_address_of_a_nic_and_of_its_vlan)
{
	bind(env, 7, 7);
	for (uint8_t i = 0; i < 2; i++)
		expect_ok(fg_bind_gid(env->g[i], INDEX - 1, i ? env->b.gid : env->a.gid));
	post_datagram(env, 0);
	expect_recv(&env->b.rcq, 1, LEN + SEGMENT_GRH);
	assert_int_equal(segment_last(env, 0).frame.vlan, 7);
}
