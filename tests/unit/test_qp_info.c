// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs, for display. */
#include <string.h>

#include "core/adapter.h"
#include "ends.h"

static struct pvr_qp_detail detail_of(struct fg_end *end)
{
	struct pvr_qp_detail detail;

	assert_true(pvr_adapter_get_qp(end->guest->adapter, end->qp.qpn, &detail));
	return detail;
}

TEST(rc_connected, test_connection_is_shown)
{
	struct pvr_qp_detail detail = detail_of(&env->a);

	assert_string_equal(detail.info.type, "RC");
	assert_string_equal(detail.info.state, "RTS");
	assert_int_equal(detail.info.dest_qpn, env->b.qp.qpn);
	assert_memory_equal(detail.info.dgid, env->b.gid, 16);
	assert_memory_equal(detail.sgid, env->a.gid, 16);
	assert_int_equal(detail.path_mtu, 1024);
	assert_int_equal(detail.timeout, fg_conn_default.timeout);
	assert_int_equal(detail.retry_left, fg_conn_default.retry_cnt);
	assert_null(detail.error);
}

TEST(rc_connected, test_path_and_peer_are_shown)
{
	struct pvr_qp_detail detail;

	t_exchange(env, 1, 64);
	detail = detail_of(&env->a);
	assert_string_equal(detail.path, env->segment ? "wire" : env->wire ? "pipe" : "local");
	/* The directory does not know a peer on a segment: it has no name. */
	assert_int_equal(strlen(detail.peer) > 0, !env->segment);
}

TEST(rc_connected, test_posted_requests_and_psns_are_shown)
{
	uint32_t psn = detail_of(&env->a).sq_psn;
	struct pvr_qp_detail detail;

	for (uint32_t i = 0; i < 3; i++)
		t_recv(&env->b, i, 0, 64);
	detail = detail_of(&env->b);
	assert_int_equal(detail.recvs, 3);
	assert_int_equal(detail.max_recvs, 64);
	t_send(&env->a, 1, 0, 64);
	assert_int_equal(detail_of(&env->a).sends, 1);
	fg_run(env->host);
	detail = detail_of(&env->a);
	assert_int_equal(detail.sends, 0);
	assert_int_equal(detail.sq_psn, psn + 1);
	assert_int_equal(detail_of(&env->b).rq_psn, psn + 1);
	assert_int_equal(detail_of(&env->b).recvs, 2);
}

/* The wire's part is empty until it has sent, and on other paths. */
TEST(rc_connected, test_window_is_shown_on_the_wire_only)
{
	assert_false(detail_of(&env->a).wire.sends);
	t_exchange(env, 1, 64);
	assert_int_equal(detail_of(&env->a).wire.sends, env->segment != NULL);
	assert_int_equal(detail_of(&env->a).wire.window > 0, env->segment != NULL);
}

/* The newest one. */
TEST(rc_connected, test_last_error_is_shown_with_its_age)
{
	struct pvr_qp_detail detail;

	for (uint64_t i = 1; i <= 2; i++) {
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, 1u << 30);
		fg_run(env->host);
		detail = detail_of(&env->a);
		assert_non_null(strstr(detail.error, "SGE outside its lkey's range"));
		assert_int_equal(detail.error_age, 0);
		env->host->now += 7 * FG_MS;
		assert_int_equal(detail_of(&env->a).error_age, 7 * FG_MS);
		t_reconnect(env);
	}
	assert_null(detail_of(&env->b).error);
}

TEST(rc_connected, test_old_errors_of_other_queue_pairs_are_forgotten)
{
	struct fg_qp qp;

	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 1u << 30);
	fg_run(env->host);
	qp = t_qp_create(&env->a, (struct fg_qp_spec){});
	for (uint32_t i = 0; i < PVR_QP_ERRORS; i++) {
		assert_non_null(detail_of(&env->a).error);
		expect_ok(fg_qp_to_init(&qp, NULL));
		qp.ring->tx.prod_tail = UINT32_MAX;
		expect_ok(fg_qp_to_rtr(&qp, NULL, env->b.gid, 99));
		expect_ok(fg_qp_to_rts(&qp, NULL));
		fg_ring_send(&qp);
		fg_run(env->host);
		expect_ok(fg_qp_to_reset(&qp));
	}
	assert_null(detail_of(&env->a).error);
}

TEST(rc_connected, test_unknown_number)
{
	struct pvr_qp_detail detail;
	static const uint32_t bad[] = { 0, 99, 0xffffff, UINT32_MAX };

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(pvr_adapter_get_qp(env->g[0]->adapter, bad[i], &detail));
	assert_false(pvr_adapter_get_qp(env->g[0]->adapter, env->a.qp.qpn ^ 0x10000, &detail));
}

TEST(ud_ready, test_datagram_queue_pair_has_no_connection)
{
	struct pvr_qp_detail detail = detail_of(&env->a);

	assert_string_equal(detail.info.type, "UD");
	assert_string_equal(detail.path, "");
	assert_string_equal(detail.peer, "");
	assert_int_equal(detail.path_mtu, 0);
}
