// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_INLINE: requests that bring their data along. */
#include "ends.h"
#include "rndv.h"

#define GRH 40u
#define MAX_INLINE 256u

TEST_EXT(PVR_EXT_INLINE | PVR_EXT_UC)

static void open_ends(struct t_env *env, enum pvr_qp_type type, uint32_t max_inline)
{
	const struct fg_qp_spec spec = { .type = type, .max_inline = max_inline };

	fg_end_open_spec(&env->a, &env->g[0]->kernel, &spec, FG_END_PAGES);
	fg_end_open_spec(&env->b, &env->g[1]->kernel, &spec, FG_END_PAGES);
	if (type == PVR_QPT_UD) {
		fg_end_ready(&env->a);
		fg_end_ready(&env->b);
	} else {
		fg_end_connect(&env->a, &env->b, NULL);
	}
}

/* Inline data for b: a message, or a WRITE to byte 100 of its buffer. */
#define POST_INLINE(env, op, bytes, len, ...)                                                    \
	t_post(&(env)->a, .wr_id = 1, .opcode = (op),                                            \
	       .flags = PVR_SEND_SIGNALED | PVR_SEND_INLINE, .data = (bytes), .data_len = (len), \
	       .imm = 0x01020304, T_REMOTE(&(env)->b.mr, 100), ##__VA_ARGS__)

/* b's buffer holds the message at @offset and nothing else has changed. */
static void expect_only(struct t_env *env, uint32_t offset, const uint8_t *data, uint32_t len)
{
	const uint8_t *va = env->b.buf.va;

	assert_memory_equal(va + offset, data, len);
	for (size_t i = 0; i < 2048; i++)
		if (i < offset || i >= offset + len)
			assert_int_equal(va[i], 0xcc);
}

static void send_all_lengths(struct t_env *env, enum pvrdma_wr_opcode op)
{
	bool write = op == PVRDMA_WR_RDMA_WRITE || op == PVRDMA_WR_RDMA_WRITE_WITH_IMM;
	uint8_t data[PVR_MAX_INLINE];

	for (uint32_t len = 0; len <= env->a.qp.max_inline; len += len < 20 ? 1 : 59) {
		fg_fill(data, sizeof(data), len + 1);
		memset(env->b.buf.va, 0xcc, 2048);
		if (op != PVRDMA_WR_RDMA_WRITE)
			t_recv(&env->b, 2, 100, 1500);
		POST_INLINE(env, op, data, len);
		await_done(&env->a.scq, 1, write ? PVRDMA_WC_RDMA_WRITE : PVRDMA_WC_SEND);
		if (op != PVRDMA_WR_RDMA_WRITE)
			assert_int_equal(expect_cqe(&env->b.rcq, 2, PVRDMA_WC_SUCCESS).byte_len,
					 len);
		expect_only(env, 100, data, len);
	}
}

static const struct {
	const char *label;
	enum pvr_qp_type type;
	enum pvrdma_wr_opcode op;
} messages[] = { { "RC, SEND", PVR_QPT_RC, PVRDMA_WR_SEND },
		 { "RC, SEND_WITH_IMM", PVR_QPT_RC, PVRDMA_WR_SEND_WITH_IMM },
		 { "RC, WRITE", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE },
		 { "RC, WRITE_WITH_IMM", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE_WITH_IMM },
		 { "UC, SEND", PVR_QPT_UC, PVRDMA_WR_SEND },
		 { "UC, SEND_WITH_IMM", PVR_QPT_UC, PVRDMA_WR_SEND_WITH_IMM },
		 { "UC, WRITE", PVR_QPT_UC, PVRDMA_WR_RDMA_WRITE },
		 { "UC, WRITE_WITH_IMM", PVR_QPT_UC, PVRDMA_WR_RDMA_WRITE_WITH_IMM } };

TEST_CASES(guests, test_inline_of_all_lengths, messages)
{
	open_ends(env, row->type, PVR_MAX_INLINE);
	send_all_lengths(env, row->op);
}

/* A region of b's buffer, registered by a work request. */
/* A page of b's buffer, registered by a work request. */
static uint32_t register_fast(struct t_env *env)
{
	struct pvrdma_sq_wqe_hdr *wqe;
	struct fg_mr mr;

	expect_ok(fast_mr_create(&env->b.pd, 1, &mr));
	wqe = put_fast_reg(&env->b, 0, &env->b.buf, mr.rkey);
	wqe->wr.fast_reg.page_list_len = 1;
	wqe->wr.fast_reg.length = PVR_PAGE_SIZE;
	fg_ring_send(&env->b.qp);
	await_cqe(&env->b.scq, 0, PVRDMA_WC_SUCCESS);
	return mr.rkey;
}

TEST(guests, test_inline_send_that_invalidates)
{
	uint8_t data[64];
	uint32_t key;

	open_ends(env, PVR_QPT_RC, MAX_INLINE);
	key = register_fast(env);
	fg_fill(data, sizeof(data), 3);
	t_recv(&env->b, 2, 0, 100);
	t_recv(&env->b, 3, 0, 100);
	POST_INLINE(env, PVRDMA_WR_SEND_WITH_INV, data, sizeof(data), .imm = key);
	await_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, sizeof(data));
	assert_memory_equal(env->b.buf.va, data, sizeof(data));
	/* It is invalid now. */
	POST_INLINE(env, PVRDMA_WR_SEND_WITH_INV, data, sizeof(data), .imm = key);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST(guests, test_inline_datagrams)
{
	struct pvrdma_av av;
	uint8_t data[MAX_INLINE];

	open_ends(env, PVR_QPT_UD, MAX_INLINE);
	av = fg_av(&env->a.pd, env->b.gid, 0);
	for (uint32_t len = 0; len <= MAX_INLINE; len += 64) {
		fg_fill(data, sizeof(data), len + 1);
		t_recv(&env->b, 2, 0, 1000);
		POST_INLINE(env, PVRDMA_WR_SEND_WITH_IMM, data, len, T_UD(&av, &env->b));
		await_sent(&env->a, 1);
		assert_int_equal(expect_recv(&env->b.rcq, 2, GRH + len).imm_data, 0x01020304);
		assert_memory_equal(env->b.buf.va + GRH, data, len);
	}
}

/* The stride is that of the larger of the list and the data, as both sides compute it. */
TEST(guests, test_inline_and_lists_share_the_stride)
{
	static const uint32_t sizes[] = { 1, 47, 48, 49, 176, 177, 432, 433, PVR_MAX_INLINE };
	static const uint32_t sges[] = { 1, 3, 4, 11, 12, 32 };
	uint8_t data[PVR_MAX_INLINE];

	fg_fill(data, sizeof(data), 9);
	for (size_t i = 0; i < COUNT(sizes) * COUNT(sges); i++) {
		const struct fg_qp_spec spec = { .type = PVR_QPT_RC,
						 .sq_wr = 8,
						 .sq_sge = sges[i / COUNT(sizes)],
						 .max_inline = sizes[i % COUNT(sizes)] };

		t_open_connected(env, &spec, 2);
		for (int k = 0; k < 20; k++) {
			t_recv(&env->b, 2, 0, 1000);
			POST_INLINE(env, PVRDMA_WR_SEND, data, spec.max_inline);
			await_sent(&env->a, 1);
			expect_recv(&env->b.rcq, 2, spec.max_inline);
			assert_memory_equal(env->b.buf.va, data, spec.max_inline);
			t_ping_pong(env->host, &env->a, &env->b);
		}
		fg_end_close(&env->a);
		fg_end_close(&env->b);
	}
}

TEST(guests, test_query_has_the_maximum)
{
	struct pvr_qp_attr attr;

	open_ends(env, PVR_QPT_RC, 200);
	expect_ok(fg_qp_query(&env->a.qp, &attr));
	assert_int_equal(attr.cap.max_inline_data, 200);
}

static uint32_t create_with(struct t_env *env, uint32_t max_inline, int send_chunks_less)
{
	struct fg_qp_spec spec = { .pd = &env->a.pd,
				   .scq = &env->a.scq,
				   .rcq = &env->a.rcq,
				   .type = PVR_QPT_RC,
				   .max_inline = max_inline };
	struct pvr_cmd_create_qp req = fg_qp_request(&spec);
	struct pvr_resp_create_qp resp = { 0 };
	struct fg_buf buf;
	uint32_t err;

	fg_buf_init(&buf, &env->g[0]->ram, req.total_chunks, FG_SCATTERED);
	req.pdir_dma = buf.pdir;
	req.send_chunks -= send_chunks_less;
	req.total_chunks -= send_chunks_less;
	err = fg_create_qp(env->g[0], &req, &resp);
	if (!err) {
		assert_int_equal(resp.max_inline_data, max_inline);
		expect_ok(fg_cmd_destroy(env->g[0], PVR_CMD_DESTROY_QP, resp.qp_handle));
	}
	fg_buf_exit(&buf);
	return err;
}

TEST(guest, test_create_checks_the_maximum)
{
	fg_end_open(&env->a, env->g[0], PVR_QPT_RC);
	expect_ok(create_with(env, PVR_MAX_INLINE, 0));
	assert_int_equal(create_with(env, PVR_MAX_INLINE + 1, 0), EINVAL);
}

/* 64 requests of 512 bytes need 8 pages; 7 would let the last ones reach the RQ. */
TEST(guest, test_create_needs_the_pages_of_the_stride)
{
	fg_end_open(&env->a, env->g[0], PVR_QPT_RC);
	expect_ok(create_with(env, 432, 0));
	assert_int_equal(create_with(env, 432, 1), EINVAL);
}

TEST(host, test_without_the_extension_there_is_none)
{
	fg_end_open(&env->a, t_guest_with_ext(env, 1, 0), PVR_QPT_RC);
	assert_int_equal(create_with(env, 1, 0), EINVAL);
	expect_ok(create_with(env, 0, 0));
}

/* As for stock drivers and providers: the flag is ignored, the SGE list counts. */
TEST(guests, test_flag_without_inline_data_changes_nothing)
{
	open_ends(env, PVR_QPT_RC, 0);
	fg_fill(env->a.buf.va, 77, 5);
	t_recv(&env->b, 2, 0, 100);
	POST_INLINE(env, PVRDMA_WR_SEND, NULL, 50, T_SGE(&env->a.mr, 0, 77));
	await_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 77);
	assert_int_equal(fg_mismatch(env->b.buf.va, 77, 5), 77);
}

/* The posted request fails at the sender alone. */
static void expect_failed_request(struct t_env *env)
{
	await_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_QP_OP_ERR);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
	expect_no_cqe(&env->b.rcq);
}

static const uint8_t zeros[MAX_INLINE];

static const struct t_case bad_lengths[] = { T_CASE(MAX_INLINE + 1),	 T_CASE(512),
					     T_CASE(PVR_MAX_INLINE + 1), T_CASE(4096),
					     T_CASE(0x80000000),	 T_CASE(UINT32_MAX) };

TEST_CASES(guests, test_more_than_the_maximum_fails, bad_lengths)
{
	open_ends(env, PVR_QPT_RC, MAX_INLINE);
	POST_INLINE(env, PVRDMA_WR_RDMA_WRITE, zeros, row->value);
	expect_failed_request(env);
}

static const struct t_case bad_numbers[] = { T_CASE(1), T_CASE(4), T_CASE(5), T_CASE(UINT32_MAX) };

TEST_CASES(guests, test_entries_beside_inline_data_fail, bad_numbers)
{
	open_ends(env, PVR_QPT_RC, MAX_INLINE);
	POST_INLINE(env, PVRDMA_WR_RDMA_WRITE, zeros, 8, .num_sge = row->value);
	expect_failed_request(env);
}

static const struct t_case bad_opcodes[] = { T_CASE(PVRDMA_WR_RDMA_READ),
					     T_CASE(PVRDMA_WR_ATOMIC_CMP_AND_SWP),
					     T_CASE(PVRDMA_WR_ATOMIC_FETCH_AND_ADD),
					     T_CASE(PVRDMA_WR_LOCAL_INV),
					     T_CASE(PVRDMA_WR_FAST_REG_MR) };

TEST_CASES(guests, test_requests_without_data_to_send_fail_with_inline, bad_opcodes)
{
	open_ends(env, PVR_QPT_RC, MAX_INLINE);
	POST_INLINE(env, row->value, zeros, 8);
	expect_failed_request(env);
}

TEST(guests, test_too_much_inline_fails_a_datagram)
{
	struct pvrdma_av av;

	open_ends(env, PVR_QPT_UD, MAX_INLINE);
	av = fg_av(&env->a.pd, env->b.gid, 0);
	t_recv(&env->b, 2, 0, 1000);
	POST_INLINE(env, PVRDMA_WR_SEND, zeros, MAX_INLINE + 1, T_UD(&av, &env->b));
	await_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_QP_OP_ERR);
	expect_state(&env->a, PVR_QPS_SQE);
	expect_no_cqe(&env->b.rcq);
}

/* A flushed request completes as any other, and its data is not sent. */
TEST(guests, test_inline_requests_are_flushed)
{
	open_ends(env, PVR_QPT_RC, MAX_INLINE);
	expect_ok(fg_qp_to_err(&env->a.qp));
	POST_INLINE(env, PVRDMA_WR_SEND, zeros, UINT32_MAX);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_WR_FLUSH_ERR);
}

/* The same program after RNR: the slot is the queue's until the request completes. */
TEST(guests, test_data_is_read_for_each_try)
{
	uint8_t data[64];

	open_ends(env, PVR_QPT_RC, MAX_INLINE);
	fg_fill(data, sizeof(data), 1);
	POST_INLINE(env, PVRDMA_WR_SEND, data, sizeof(data));
	fg_run(env->host);
	fg_fill(data, sizeof(data), 2);
	memcpy(fg_sq_wqe(&env->a.qp, 0) + 1, data, sizeof(data));
	t_recv(&env->b, 2, 0, 100);
	fg_settle(env->host, FG_SEC);
	expect_recv(&env->b.rcq, 2, sizeof(data));
	assert_memory_equal(env->b.buf.va, data, sizeof(data));
}
