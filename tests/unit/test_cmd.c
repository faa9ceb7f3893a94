// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The command channel itself: slots, ERR, acknowledgement, vector 0. */
#include "common.h"

static uint32_t cmd_vectors(struct t_env *env)
{
	uint32_t n;

	fg_run(env->host);
	n = env->g[0]->irq[PVR_VEC_CMD];
	env->g[0]->irq[PVR_VEC_CMD] = 0;
	return n;
}

static uint32_t run_raw(struct fg_guest *g, uint32_t cmd, uint8_t body)
{
	union pvr_cmd_req req;

	memset(&req, body, sizeof(req));
	req.hdr.response = FG_CMD_COOKIE;
	req.hdr.cmd = cmd;
	req.hdr.reserved = 0;
	return fg_cmd(g, &req, sizeof(req), NULL, 0);
}

TEST(guest, test_unknown_commands_are_refused)
{
	static const uint32_t unknown[] = {
		PVR_CMD_NUM, PVR_CMD_NUM + 1, 0x100,	      0x10000,
		0x7fffffff,  0x80000000,      0x80000000 | 2, UINT32_MAX
	};

	for (size_t i = 0; i < COUNT(unknown); i++)
		expect_refused(run_raw(env->g[0], unknown[i], 0));
	assert_int_equal(cmd_vectors(env), 0);
}

TEST(guest, test_every_command_survives_a_body_of_ones)
{
	struct pvr_port_attr attr;

	for (uint32_t cmd = 0; cmd < PVR_CMD_NUM; cmd++)
		expect_refused(run_raw(env->g[0], cmd, 0xff));
	expect_ok(fg_query_port(env->g[0], 1, &attr));
}

TEST(guest, test_every_command_survives_a_body_of_zeros)
{
	struct pvr_port_attr attr;

	for (uint32_t cmd = 0; cmd < PVR_CMD_NUM; cmd++)
		run_raw(env->g[0], cmd, 0);
	expect_ok(fg_query_port(env->g[0], 1, &attr));
}

TEST(guest, test_response_echoes_key_and_acknowledges)
{
	struct pvr_cmd_query_pkey req = {
		.hdr = { .response = 0xfedcba9876543210ull, .cmd = PVR_CMD_QUERY_PKEY },
		.port_num = 1,
	};
	struct pvr_resp_query_pkey resp;

	expect_ok(fg_cmd(env->g[0], &req, sizeof(req), &resp, sizeof(resp)));
	assert_true(resp.hdr.response == 0xfedcba9876543210ull);
	assert_int_equal(resp.hdr.ack, PVR_CMD_RESP_ACK | PVR_CMD_QUERY_PKEY);
	assert_int_equal(resp.hdr.err, 0);
	assert_int_equal(resp.hdr.reserved[0] | resp.hdr.reserved[1] | resp.hdr.reserved[2], 0);
}

TEST(guest, test_reserved_header_word_is_ignored)
{
	struct pvr_cmd_query_pkey req = {
		.hdr = { .cmd = PVR_CMD_QUERY_PKEY, .reserved = 0xffffffff },
		.port_num = 1,
		.reserved = { 1, 2, 3, 4, 5, 6 },
	};
	struct pvr_resp_query_pkey resp;

	expect_ok(fg_cmd(env->g[0], &req, sizeof(req), &resp, sizeof(resp)));
}

TEST(guest, test_failure_is_told_in_err_and_response)
{
	uint32_t pd, err;
	struct pvr_resp_hdr resp;

	err = fg_create_pd(env->g[0], 12345, &pd);
	assert_int_equal(err, EINVAL);
	memcpy(&resp, env->g[0]->resp_slot, sizeof(resp));
	assert_int_equal(resp.err, EINVAL);
	assert_int_equal(cmd_vectors(env), 0);
}

TEST(guest, test_err_is_cleared_by_the_next_success)
{
	uint32_t pd;

	expect_refused(fg_create_pd(env->g[0], 12345, &pd));
	expect_ok(fg_create_pd(env->g[0], 0, &pd));
	expect_ok(fg_reg_read(env->g[0], PVR_REG_ERR));
}

TEST(guest, test_commands_with_a_response_raise_vector_0)
{
	struct fg_guest *g = env->g[0];
	struct pvr_port_attr port;
	struct pvr_qp_attr qp_attr;
	struct pvr_srq_attr srq_attr;
	struct fg_ctx ctx;
	struct fg_pd pd;
	struct fg_cq cq;
	struct fg_buf buf;
	struct fg_mr mr;
	struct fg_srq srq;
	struct fg_qp qp;
	struct fg_qp_spec spec = { .pd = &pd, .scq = &cq, .rcq = &cq, .type = PVR_QPT_RC };
	uint16_t pkey;

	cmd_vectors(env);
	fg_buf_init(&buf, &g->ram, 1, FG_SCATTERED);
#define RAISES(n, command)                             \
	do {                                           \
		expect_ok(command);                    \
		assert_int_equal(cmd_vectors(env), n); \
	} while (0)
	RAISES(1, fg_query_port(g, 1, &port));
	RAISES(1, fg_query_pkey(g, 1, 0, &pkey));
	RAISES(1, fg_ctx_create(g, &ctx));
	RAISES(1, fg_pd_create(&ctx, &pd));
	RAISES(1, fg_mr_create(&pd, &buf, 0, &mr));
	RAISES(1, fg_cq_create(&ctx, 16, &cq));
	RAISES(1, fg_srq_create(&pd, 16, 1, &srq));
	RAISES(1, fg_srq_query(&srq, &srq_attr));
	RAISES(1, fg_qp_create(&spec, &qp));
	RAISES(1, fg_qp_to_init(&qp, NULL));
	RAISES(1, fg_qp_query(&qp, &qp_attr));
	RAISES(0, fg_srq_set_limit(&srq, 1));
	RAISES(0, fg_qp_destroy(&qp));
	RAISES(0, fg_srq_destroy(&srq));
	RAISES(0, fg_cq_destroy(&cq));
	RAISES(0, fg_mr_destroy(&mr));
	RAISES(0, fg_pd_destroy(&pd));
	RAISES(0, fg_ctx_destroy(&ctx));
#undef RAISES
}

TEST(guest, test_bind_commands_raise_no_vector)
{
	uint8_t gid[16];

	cmd_vectors(env);
	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	expect_ok(fg_bind_gid(env->g[0], 1, gid));
	assert_int_equal(cmd_vectors(env), 0);
	expect_ok(fg_unbind_gid(env->g[0], 1, gid));
	assert_int_equal(cmd_vectors(env), 0);
}

TEST(guest, test_failed_commands_raise_no_vector)
{
	cmd_vectors(env);
	for (uint32_t cmd = 0; cmd < PVR_CMD_NUM; cmd++)
		expect_refused(run_raw(env->g[0], cmd, 0xff));
	assert_int_equal(cmd_vectors(env), 0);
}

TEST(guest, test_response_touches_no_more_than_176_bytes)
{
	struct fg_guest *g = env->g[0];
	uint8_t *tail = (uint8_t *)g->resp_slot + PVR_CMD_RESP_SIZE;
	const size_t len = PVR_PAGE_SIZE - PVR_CMD_RESP_SIZE;

	fg_fill(tail, len, 9);
	for (uint32_t cmd = 0; cmd < PVR_CMD_NUM; cmd++)
		run_raw(g, cmd, cmd == PVR_CMD_QUERY_PORT ? 1 : 0);
	assert_int_equal(fg_mismatch(tail, len, 9), len);
}

TEST(guest, test_command_slot_is_not_written)
{
	struct fg_guest *g = env->g[0];
	uint8_t before[PVR_PAGE_SIZE];
	uint32_t pd;

	expect_ok(fg_create_pd(g, 0, &pd));
	memcpy(before, g->cmd_slot, sizeof(before));
	fg_reg_write(g, PVR_REG_REQUEST, 0);
	assert_memory_equal(g->cmd_slot, before, sizeof(before));
}

TEST(guest, test_responses_leak_nothing)
{
	struct pvr_cmd_create_pd req = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_PD) };
	struct pvr_resp_create_pd resp;

	expect_ok(fg_cmd(env->g[0], &req, sizeof(req), &resp, sizeof(resp)));
	for (size_t i = 0; i < sizeof(resp.reserved); i++)
		assert_int_equal(resp.reserved[i], 0);
}

TEST(guest, test_commands_are_counted)
{
	struct pvr_adapter_stats before = fg_stats(env->g[0]), after;
	uint32_t pd;

	expect_ok(fg_create_pd(env->g[0], 0, &pd));
	expect_refused(fg_create_pd(env->g[0], 999, &pd));
	after = fg_stats(env->g[0]);
	assert_int_equal(after.commands - before.commands, 2);
	assert_int_equal(after.commands_failed - before.commands_failed, 1);
}

TEST(guest, test_failed_commands_are_logged_at_a_bounded_rate)
{
	uint64_t before = env->host->logged[PVR_LOG_WARN] + env->host->logged[PVR_LOG_ERR] +
			  env->host->logged[PVR_LOG_INFO];
	uint64_t lines;

	for (int i = 0; i < 100000; i++)
		run_raw(env->g[0], UINT32_MAX, 0);
	lines = env->host->logged[PVR_LOG_WARN] + env->host->logged[PVR_LOG_ERR] +
		env->host->logged[PVR_LOG_INFO] - before;
	assert_in_range(lines, 1, 1000);
}

TEST(guest, test_response_slot_that_vanished_fails_the_command)
{
	struct fg_guest *g = env->g[0];
	uint32_t pd;

	for (int i = 0; i < FG_RAM_PIECES; i++)
		if (g->resp_gpa - g->ram.piece[i].gpa < g->ram.piece[i].size)
			pvr_adapter_unmap_ram(g->adapter, g->ram.piece[i].gpa,
					      g->ram.piece[i].size);
	expect_refused(fg_create_pd(g, 0, &pd));
}
