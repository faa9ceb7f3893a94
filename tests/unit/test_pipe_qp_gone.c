// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * PVR_EXT_PEER_GONE between hosts: frames that take effect, and frames that do not. The guest's
 * view is tested in test_peer_gone, which also runs with two hosts.
 */
#include "core/objects.h"
#include "hosts.h"
#include "fg_malformed.h"
#include "path/pipe/frame.h"
#include "path/pipe/req_conn.h"

/* Far less than the retries of fg_conn_default take. */
#define SOON (20 * FG_MS)

TEST_EXT(PVR_EXT_PEER_GONE)

static void connect_ends(struct t_env *env)
{
	t_open_pair(&env->a, env->g[0], &env->b, env->g[1]);
}

T_SETUP_HOSTS(hosts, 3)
{
	connect_ends(env);
}

T_SETUP_HOSTS(old, 3, .old = true)
{
	connect_ends(env);
}

/* The QP_GONE frame for a, as host 1 would send it to host 2. */
static struct pvr_frame_qp_gone forge(struct t_env *env)
{
	struct pvr_frame_qp_gone frame = {
		.frame = FG_FRAME(PVR_FRAME_QP_GONE, sizeof(frame)),
		.gid_type = PVR_GID_TYPE_ROCE_V2,
		.src_qpn = htole32(env->a.qp.qpn),
		.dst_qpn = htole32(env->b.qp.qpn),
	};

	memcpy(frame.sgid, env->a.gid, 16);
	memcpy(frame.dgid, env->b.gid, 16);
	return frame;
}

/* From host number @other to host 2. */
static struct fg_malformed *send_gone(struct t_env *env, unsigned int other, const char *fabric,
				      struct pvr_frame_qp_gone frame)
{
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, other);

	fg_malformed_send_fabric(malformed, fabric);
	fg_malformed_send(malformed, &frame, sizeof(frame));
	fg_settle(env->host, SOON);
	return malformed;
}

/* Return: whether the frame puts b into ERR. */
static bool ends_b(struct t_env *env, unsigned int other, struct pvr_frame_qp_gone frame)
{
	assert_false(fg_malformed_is_closed(send_gone(env, other, "default", frame)));
	return fg_qp_state(&env->b.qp) == PVR_QPS_ERR;
}

TEST(hosts, test_qp_gone_of_the_peers_host_ends_the_queue_pair)
{
	t_recv(&env->b, 1, 0, 8);
	assert_true(ends_b(env, 0, forge(env)));
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_GENERAL_ERR);
	expect_one_event(env->g[1], PVR_EVENT_QP_FATAL, env->b.qp.handle);
}

TEST(hosts, test_qp_gone_of_another_host_is_ignored)
{
	const struct pvr_frame_qp_gone frame = forge(env);

	assert_false(ends_b(env, 2, frame));
	/* Nor when the GID is absent and a's host has been seen. */
	t_ping_pong(env->host, &env->a, &env->b);
	expect_ok(fg_unbind_gid(env->g[0], 0, env->a.gid));
	fg_settle(env->host, SOON);
	assert_false(ends_b(env, 2, frame));
	assert_true(ends_b(env, 0, frame));
}

static const struct fg_flip other_connections[] = {
	{ "number of the peer", FG_FLIP(struct pvr_frame_qp_gone, src_qpn, 1) },
	{ "number of the queue pair", FG_FLIP(struct pvr_frame_qp_gone, dst_qpn, 1) },
	{ "GID of the peer", FG_FLIP(struct pvr_frame_qp_gone, sgid[15], 1) },
	{ "GID of the queue pair", FG_FLIP(struct pvr_frame_qp_gone, dgid[15], 1) },
	{ "version of RoCE", FG_FLIP(struct pvr_frame_qp_gone, gid_type,
				     PVR_GID_TYPE_ROCE_V1 ^ PVR_GID_TYPE_ROCE_V2) },
};

TEST_CASES(hosts, test_qp_gone_of_another_connection_is_ignored, other_connections)
{
	struct pvr_frame_qp_gone frame = forge(env);

	fg_flip(&frame, row);
	assert_false(ends_b(env, 0, frame));
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(hosts, test_qp_gone_of_another_fabric_is_ignored)
{
	assert_false(fg_malformed_is_closed(send_gone(env, 0, "tenant2", forge(env))));
	t_ping_pong(env->host, &env->a, &env->b);
}

TEST(hosts, test_second_qp_gone_changes_nothing)
{
	const struct pvr_frame_qp_gone frame = forge(env);

	assert_true(ends_b(env, 0, frame));
	assert_true(ends_b(env, 0, frame));
	expect_one_event(env->g[1], PVR_EVENT_QP_FATAL, env->b.qp.handle);
	/* Nor does it concern what begins there afterwards, unless that is the same connection. */
	expect_ok(fg_qp_to_reset(&env->b.qp));
	fg_settle(env->host, SOON);
	assert_false(ends_b(env, 0, frame));
	expect_no_event(env->g[1]);
}

TEST(old, test_host_without_the_feature_receives_no_qp_gone)
{
	t_ping_pong(env->host, &env->a, &env->b);
	pvr_adapter_reset(env->g[0]->adapter);
	fg_settle(env->host, SOON);
	assert_int_equal(fg_wire_refused(env->wire), 0);
	expect_state(&env->b, PVR_QPS_RTS);
}

TEST(old, test_qp_gone_without_the_feature_ends_the_connection)
{
	assert_true(fg_malformed_is_closed(send_gone(env, 0, "default", forge(env))));
	assert_string_equal(fg_wire_why(env->wire), "QP_GONE, but that was not negotiated");
	expect_state(&env->b, PVR_QPS_RTS);
}

#define MANY 200u /* queue pairs: four steps */

/* @num queue pairs of a's guest that are connected to b. */
static void connect_many(struct t_env *env, uint32_t num)
{
	const struct fg_qp_spec spec = {
		.sq_wr = 2,
		.rq_wr = 2,
		.sq_sge = 1,
		.rq_sge = 1,
		.kind = FG_LINEAR,
	};
	struct fg_qp qp;

	for (uint32_t i = 0; i < num; i++) {
		qp = t_qp_create(&env->a, spec);
		expect_ok(fg_qp_to_init(&qp, NULL));
		expect_ok(fg_qp_to_rtr(&qp, NULL, env->b.gid, env->b.qp.qpn));
	}
}

static size_t frames_on_their_way(struct t_env *env)
{
	return fg_wire_in_flight(env->wire, 0, 1) / sizeof(struct pvr_frame_qp_gone);
}

/* The adapter keeps its GID until all frames are sent: the receiver may look for its host. */
TEST(hosts, test_qp_gone_of_many_queue_pairs_is_sent_in_steps)
{
	struct pvr_adapter *adapter = env->g[0]->adapter;
	size_t sent, before = 0, steps = 0;

	connect_many(env, MANY);
	fg_wire_hold(env->wire, 0, 1, true);
	pvr_adapter_reset(adapter);
	for (; (sent = frames_on_their_way(env)) < MANY + 1; before = sent, steps++) {
		assert_in_range(steps, 0, 10);
		assert_in_range(sent - before, 1, PVR_STEP_WORK / PVR_WORK_FRAME + 1);
		assert_true(adapter->gids[0].bound);
		pvr_engine_run(env->g[0]->host->engine, 0);
	}
	assert_in_range(steps, 3, 4);
	fg_wire_hold(env->wire, 0, 1, false);
	fg_settle(env->host, SOON);
	assert_false(pvr_adapter_busy(adapter));
	assert_false(adapter->gids[0].bound);
	assert_int_equal(adapter->qps.used, 0);
	expect_state(&env->b, PVR_QPS_ERR);
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

/* -------------------------------------------------- without a connection, without space */

/* b's host has no connection to a's host; then b's guest ends. */
static void end_b_unconnected(struct t_env *env)
{
	fg_wire_cut(env->wire, 1, 0, 0);
	fg_settle(env->host, SOON);
	pvr_adapter_reset(env->g[1]->adapter);
	fg_settle(env->host, SOON);
	expect_state(&env->a, PVR_QPS_RTS);
}

static void mend_b_to_a(struct t_env *env)
{
	fg_wire_mend(env->wire, 1, 0, 0);
	fg_settle(env->host, SOON);
}

TEST(hosts, test_qp_gone_waits_for_a_connection)
{
	unsigned int wants = fg_wire_wants(env->wire, 1);

	end_b_unconnected(env);
	assert_true(fg_wire_wants(env->wire, 1) > wants);
	mend_b_to_a(env);
	expect_state(&env->a, PVR_QPS_ERR);
	/* It is sent once. */
	fg_wire_cut(env->wire, 1, 0, 0);
	mend_b_to_a(env);
	expect_one_event(env->g[0], PVR_EVENT_QP_FATAL, env->a.qp.handle);
}

static bool has_unsent(struct t_env *env, unsigned int host)
{
	return pvr_engine_has_unsent(fg_wire_host(env->wire, host)->engine);
}

/* A daemon that stops waits for them. */
TEST(hosts, test_qp_gone_without_a_connection_is_unsent)
{
	assert_false(has_unsent(env, 1));
	end_b_unconnected(env);
	assert_true(has_unsent(env, 1));
	mend_b_to_a(env);
	assert_false(has_unsent(env, 1));
}

TEST(hosts, test_qp_gone_waits_when_its_adapter_is_gone)
{
	end_b_unconnected(env);
	fg_guest_destroy(env->g[1]);
	env->g[1] = NULL;
	mend_b_to_a(env);
	expect_state(&env->a, PVR_QPS_ERR);
}

TEST(hosts, test_qp_gone_that_has_waited_too_long_is_dropped)
{
	end_b_unconnected(env);
	fg_advance(env->host, PVR_QP_GONE_KEPT_NS + 1);
	mend_b_to_a(env);
	expect_state(&env->a, PVR_QPS_RTS);
}

TEST(old, test_qp_gone_that_waits_is_dropped_without_the_feature)
{
	end_b_unconnected(env);
	mend_b_to_a(env);
	assert_int_equal(fg_wire_refused(env->wire), 0);
	expect_state(&env->a, PVR_QPS_RTS);
}

T_SETUP_HOSTS(narrow, 3, .buffer = 4096, .chunk = 4096)
{
	struct fg_guest_config config;

	fg_guest_config_init(&config, 1);
	config.ram_mib = config.linear_mib = 64;
	fg_guest_destroy(env->g[0]);
	t_guest_as(env, 1, &config);
	connect_ends(env);
}

#define OVERFULL 3000u /* frames that neither stream nor reserved space can hold */

TEST(narrow, test_qp_gone_waits_for_space)
{
	const struct pvr_host *host = fg_wire_remote_host(env->wire, 0, 1);
	const struct pvr_link_count *count = &host->out[PVR_PIPE_TCP].slot[0]->count;
	uint64_t before = count->tx_frames;

	connect_many(env, OVERFULL);
	fg_wire_hold(env->wire, 0, 1, true);
	pvr_adapter_reset(env->g[0]->adapter);
	fg_settle(env->host, SOON);
	assert_false(pvr_adapter_busy(env->g[0]->adapter));
	assert_in_range(host->qp_gone.num, 1, OVERFULL);
	fg_wire_hold(env->wire, 0, 1, false);
	fg_settle(env->host, SOON);
	assert_int_equal(host->qp_gone.num, 0);
	/* Those of connect_many() and that of a. */
	assert_true(count->tx_frames - before >= OVERFULL + 1);
	expect_state(&env->b, PVR_QPS_ERR);
}

TEST(narrow, test_qp_gone_without_space_is_unsent)
{
	connect_many(env, OVERFULL);
	fg_wire_hold(env->wire, 0, 1, true);
	assert_false(has_unsent(env, 0));
	pvr_adapter_reset(env->g[0]->adapter);
	fg_settle(env->host, SOON);
	assert_true(has_unsent(env, 0));
	fg_wire_hold(env->wire, 0, 1, false);
	fg_settle(env->host, SOON);
	assert_false(has_unsent(env, 0));
}

static unsigned int fill(struct pvr_qp_gone_queue *queue, struct pvr_pipe *pipe, uint64_t now)
{
	const struct pvr_frame_qp_gone frame = { .src_qpn = 1 };
	unsigned int num = 0;

	while (pvr_qp_gone_queue_add(queue, pipe, now, "default", &frame))
		num++;
	return num;
}

TEST_PLAIN(test_only_so_many_qp_gone_wait)
{
	struct pvr_qp_gone_queue queues[PVR_QP_GONE_PER_PIPE / PVR_QP_GONE_PER_HOST + 1];
	const unsigned int last = PVR_QP_GONE_PER_PIPE / PVR_QP_GONE_PER_HOST;
	struct pvr_pipe *pipe = pvr_pipe_create();

	for (unsigned int i = 0; i <= last; i++) {
		pvr_qp_gone_queue_init(&queues[i]);
		assert_int_equal(fill(&queues[i], pipe, 0), i < last ? PVR_QP_GONE_PER_HOST : 0);
	}
	/* Old ones make room. */
	assert_int_equal(fill(&queues[0], pipe, PVR_QP_GONE_KEPT_NS + 1), PVR_QP_GONE_PER_HOST);
	for (unsigned int i = 0; i <= last; i++)
		pvr_qp_gone_queue_exit(&queues[i], pipe);
	assert_int_equal(pipe->qps_gone, 0);
	pvr_pipe_destroy(pipe);
}
