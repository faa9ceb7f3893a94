// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * PVR_EXT_PEER_GONE between hosts: which hosts are believed, and the frames they send. The guest's
 * view is tested in test_peer_gone, which also runs with two hosts.
 */
#include <endian.h>

#include "common.h"
#include "fg_malformed.h"
#include "path/pipe/frame.h"

/* Far less than the retries of fg_conn_default take. */
#define SOON (20 * FG_MS)

TEST_INIT
{
	fg_default_ext = PVR_EXT_PEER_GONE;
}

static int setup_hosts(void **state, bool old)
{
	const struct fg_wire_config config = { .hosts = 3, .old = old };
	struct t_env *env = t_env_of_hosts(state, &config);

	fg_end_open(&env->a, env->g[0], PVR_QPT_RC);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	fg_end_connect(&env->a, &env->b, NULL);
	return 0;
}

static int t_setup_hosts(void **state)
{
	return setup_hosts(state, false);
}

static int t_setup_old(void **state)
{
	return setup_hosts(state, true);
}

struct forged {
	struct pvr_frame_fabric fabric;
	struct pvr_frame_qp_gone left;
};

/* The QP_GONE frame for a, as host 1 would send it to host 2. */
static struct forged forge(struct t_env *env)
{
	struct forged forged = {
		.fabric = { .frame = { .size = htole32(sizeof(struct pvr_frame_fabric)),
				       .type = PVR_FRAME_FABRIC,
				       .fabric = htole16(1) },
			    .name = "default" },
		.left = { .frame = { .size = htole32(sizeof(struct pvr_frame_qp_gone)),
				     .type = PVR_FRAME_QP_GONE,
				     .fabric = htole16(1) },
			  .gid_type = PVR_GID_TYPE_ROCE_V2,
			  .src_qpn = htole32(env->a.qp.qpn),
			  .dst_qpn = htole32(env->b.qp.qpn) },
	};

	memcpy(forged.left.sgid, env->a.gid, 16);
	memcpy(forged.left.dgid, env->b.gid, 16);
	return forged;
}

/* From host number @other to host 2. Return: whether b believes it. */
static bool is_believed(struct t_env *env, unsigned int other, const struct forged *forged)
{
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, other);

	fg_malformed_send(malformed, forged, sizeof(*forged));
	fg_settle(env->host, SOON);
	assert_false(fg_malformed_is_closed(malformed));
	fg_malformed_destroy(malformed);
	return fg_qp_state(&env->b.qp) == PVR_QPS_ERR;
}

TEST(hosts, test_host_of_the_peer_is_believed)
{
	const struct forged forged = forge(env);

	t_recv(&env->b, 1, 0, 8);
	assert_true(is_believed(env, 0, &forged));
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_GENERAL_ERR);
	expect_one_event(env->g[1], PVR_EVENT_QP_FATAL, env->b.qp.handle);
}

TEST(hosts, test_other_hosts_are_not_believed)
{
	const struct forged forged = forge(env);

	assert_false(is_believed(env, 2, &forged));
	/* Nor when the GID is absent and a's host has been seen. */
	t_ping_pong(env->host, &env->a, &env->b);
	expect_ok(fg_unbind_gid(env->g[0], 0, env->a.gid));
	fg_settle(env->host, SOON);
	assert_false(is_believed(env, 2, &forged));
	assert_true(is_believed(env, 0, &forged));
}

TEST(hosts, test_only_that_connection_ends)
{
	struct forged forged = forge(env);

	forged.left.src_qpn ^= htole32(1);
	assert_false(is_believed(env, 0, &forged));
	forged = forge(env);
	forged.left.dst_qpn ^= htole32(1);
	assert_false(is_believed(env, 0, &forged));
	forged = forge(env);
	forged.left.sgid[15] ^= 1;
	assert_false(is_believed(env, 0, &forged));
	forged = forge(env);
	forged.left.dgid[15] ^= 1;
	assert_false(is_believed(env, 0, &forged));
	forged = forge(env);
	forged.left.gid_type = PVR_GID_TYPE_ROCE_V1;
	assert_false(is_believed(env, 0, &forged));
	forged = forge(env);
	strcpy(forged.fabric.name, "tenant2");
	assert_false(is_believed(env, 0, &forged));
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(hosts, test_twice_is_once)
{
	const struct forged forged = forge(env);

	assert_true(is_believed(env, 0, &forged));
	assert_true(is_believed(env, 0, &forged));
	expect_one_event(env->g[1], PVR_EVENT_QP_FATAL, env->b.qp.handle);
	/* Nor does it concern what begins there afterwards, unless that is the same connection. */
	expect_ok(fg_qp_to_reset(&env->b.qp));
	fg_settle(env->host, SOON);
	assert_false(is_believed(env, 0, &forged));
	expect_no_event(env->g[1]);
}

TEST(old, test_hosts_that_know_nothing_of_it_are_not_told)
{
	t_ping_pong(env->host, &env->a, &env->b);
	pvr_adapter_reset(env->g[0]->adapter);
	fg_settle(env->host, SOON);
	assert_int_equal(fg_wire_refused(env->wire), 0);
	expect_state(&env->b, PVR_QPS_RTS);
}

TEST(old, test_telling_without_agreement_ends_the_connection)
{
	const struct forged forged = forge(env);
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);

	fg_malformed_send(malformed, &forged, sizeof(forged));
	fg_settle(env->host, SOON);
	assert_true(fg_malformed_is_closed(malformed));
	assert_string_equal(fg_wire_why(env->wire), "a farewell that was not agreed upon");
	expect_state(&env->b, PVR_QPS_RTS);
	fg_malformed_destroy(malformed);
}

/* Requests that are on their way, and one that waits for an answer, fail at once. */
TEST(hosts, test_request_on_its_way_fails_at_once)
{
	t_ping_pong(env->host, &env->a, &env->b);
	fg_wire_hold(env->wire, 0, 1, true);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 3000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 8192, &env->b.mr, 0, 3000);
	fg_run(env->host);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_settle(env->host, SOON);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_RETRY_EXC_ERR);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->a, PVR_QPS_ERR);
	fg_wire_hold(env->wire, 0, 1, false);
	fg_settle(env->host, SOON);
	expect_no_cqe(&env->a.scq);
}
