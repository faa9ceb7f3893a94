// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ATOMIC WRITE: one store of 8 bytes. */
#include <pthread.h>

#include "ends.h"
#include "hosts.h"
#include "fg_malformed.h"
#include "path/pipe/frame.h"

TEST_EXT(PVR_ENGINE_EXT)

#define TARGET 4096u /* of the word in b's buffer */
#define VALUE 0x1122334455667788ull
#define GUARD 0x5555aaaa5555aaaaull

static uint64_t *target(struct t_env *env)
{
	return (uint64_t *)(env->b.mr.va + TARGET);
}

static void fill(struct t_env *env)
{
	for (int i = -1; i <= 1; i++)
		target(env)[i] = GUARD;
}

static void expect_target(struct t_env *env, uint64_t value)
{
	assert_true(*target(env) == value);
	assert_true(target(env)[-1] == GUARD && target(env)[1] == GUARD);
}

static struct pvr_wqe_atomic_write valid(struct t_env *env)
{
	fill(env);
	return (struct pvr_wqe_atomic_write){ .addr = env->b.mr.start + TARGET,
					      .rkey = env->b.mr.rkey,
					      .value = VALUE };
}

static void put(struct t_env *env, const struct pvr_wqe_atomic_write *write, const struct fg_wr *wr)
{
	struct pvrdma_sq_wqe_hdr *wqe = fg_sq_wqe(&env->a.qp, env->a.qp.sq_tail);

	assert_true(fg_put_send(&env->a.qp, wr));
	memset(&wqe->wr, 0xee, sizeof(wqe->wr));
	memcpy(&wqe->wr, write, sizeof(*write));
}

static void run(struct t_env *env, const struct pvr_wqe_atomic_write *write)
{
	const struct fg_wr wr = { .wr_id = 1,
				  .opcode = PVR_WR_ATOMIC_WRITE,
				  .flags = PVR_SEND_SIGNALED };

	put(env, write, &wr);
	fg_ring_send(&env->a.qp);
	fg_run(env->host);
}

static void expect_no_store(struct t_env *env, uint32_t status)
{
	expect_cqe(&env->a.scq, 1, status);
	expect_target(env, GUARD);
	expect_state(&env->a, PVR_QPS_ERR);
	t_reconnect(env);
}

TEST(rc_connected, test_word_is_written)
{
	struct pvr_wqe_atomic_write write = valid(env);

	run(env, &write);
	expect_done(&env->a.scq, 1, PVR_WC_ATOMIC_WRITE);
	expect_target(env, VALUE);
	expect_no_cqe(&env->b.rcq);
}

/* The usual pattern: data, then the word that announces them. */
TEST(rc_connected, test_writes_before_and_after_keep_their_order)
{
	struct pvr_wqe_atomic_write write = valid(env);

	for (uint64_t i = 0; i < 12; i++) {
		const struct fg_wr wr = { .wr_id = i,
					  .opcode = PVR_WR_ATOMIC_WRITE,
					  .flags = PVR_SEND_SIGNALED };

		write.value = i;
		*(uint64_t *)(env->a.mr.va + 8 * i) = i;
		if (i % 2)
			put(env, &write, &wr);
		else
			t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 8 * i, &env->b.mr, TARGET, 8);
	}
	fg_ring_send(&env->a.qp);
	fg_run(env->host);
	for (uint64_t i = 0; i < 12; i++) {
		if (i % 2)
			expect_done(&env->a.scq, i, PVR_WC_ATOMIC_WRITE);
		else
			expect_written(&env->a, i);
	}
	expect_target(env, 11);
}

TEST(rc, test_write_needs_no_read_resources)
{
	struct pvr_wqe_atomic_write write = valid(env);

	t_connect_with(env, max_dest_rd_atomic, 0);
	run(env, &write);
	expect_done(&env->a.scq, 1, PVR_WC_ATOMIC_WRITE);
	expect_target(env, VALUE);
}

TEST(rc_connected, test_request_with_data_is_refused)
{
	struct pvr_wqe_atomic_write write = valid(env);
	const struct fg_wr wr = { .wr_id = 1,
				  .opcode = PVR_WR_ATOMIC_WRITE,
				  .flags = PVR_SEND_SIGNALED,
				  T_SGE(&env->a.mr, 0, 8) };

	put(env, &write, &wr);
	fg_ring_send(&env->a.qp);
	fg_run(env->host);
	expect_no_store(env, PVRDMA_WC_LOC_LEN_ERR);
}

TEST(rc_connected, test_unaligned_targets_are_refused)
{
	for (uint32_t offset = 1; offset < 8; offset++) {
		struct pvr_wqe_atomic_write write = valid(env);

		write.addr += offset;
		run(env, &write);
		expect_no_store(env, PVRDMA_WC_REM_INV_REQ_ERR);
	}
}

/* The address is aligned, but the memory behind it is not. */
TEST(rc_connected, test_target_in_unaligned_memory_is_refused)
{
	const uint64_t page = fg_buf_gpa(&env->b.buf, 0);
	struct pvr_wqe_atomic_write write = valid(env);
	struct pvr_cmd_create_mr req;
	struct fg_mr mr;

	req = fg_layout_request(&env->b.pd, fg_pdir(&env->g[1]->ram, 2, &page, 1), PVR_PAGE_SHIFT,
				FG_USER_VA, 4, 64);
	expect_ok(fg_mr_create_as(&env->b.pd, &req, &mr));
	write.addr = FG_USER_VA;
	write.rkey = mr.rkey;
	run(env, &write);
	expect_no_store(env, PVRDMA_WC_REM_ACCESS_ERR);
}

static const struct t_case bad_targets[] = { { "word before", -8ull },
					     { "word behind", FG_END_PAGES *PVR_PAGE_SIZE },
					     T_CASE(1ull << 63) };

TEST_CASES(rc_connected, test_target_outside_the_mr_is_refused, bad_targets)
{
	struct pvr_wqe_atomic_write write = valid(env);

	write.addr = env->b.mr.start + row->value;
	run(env, &write);
	expect_no_store(env, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST(rc_connected, test_wrong_keys_are_refused)
{
	struct pvr_wqe_atomic_write write = valid(env);
	struct fg_mr no_write;

	write.rkey ^= 0x100;
	run(env, &write);
	expect_no_store(env, PVRDMA_WC_REM_ACCESS_ERR);
	expect_ok(fg_mr_create(&env->b.pd, &env->b.buf,
			       PVR_ACCESS_LOCAL_WRITE | PVR_ACCESS_REMOTE_READ |
				       PVR_ACCESS_REMOTE_ATOMIC,
			       &no_write));
	write.rkey = no_write.rkey;
	run(env, &write);
	expect_no_store(env, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST(rc, test_qp_must_permit_writes)
{
	struct pvr_wqe_atomic_write write = valid(env);

	t_connect_with(env, access, fg_conn_default.access & ~PVR_ACCESS_REMOTE_WRITE);
	run(env, &write);
	expect_no_store(env, PVRDMA_WC_REM_INV_REQ_ERR);
}

T_SETUP_EXT(without_extension, PVR_ENGINE_EXT & ~PVR_EXT_ATOMIC_WRITE, rc_connected)

TEST(without_extension, test_guest_without_the_extension_cannot_post)
{
	struct pvr_wqe_atomic_write write = valid(env);

	run(env, &write);
	expect_no_store(env, PVRDMA_WC_LOC_QP_OP_ERR);
}

/* A CPU of the responder's guest sees the old value or the new one, never a mix. */
struct reader {
	const uint64_t *word;
	bool stop;
	uint64_t mixed;
};

static void *read_words(void *opaque)
{
	struct reader *reader = opaque;

	while (!__atomic_load_n(&reader->stop, __ATOMIC_RELAXED)) {
		uint64_t value = __atomic_load_n(reader->word, __ATOMIC_RELAXED);

		if ((uint32_t)value != value >> 32)
			reader->mixed = value;
	}
	return NULL;
}

TEST(rc_connected, test_readers_see_no_torn_value)
{
	const struct fg_wr wr = { .opcode = PVR_WR_ATOMIC_WRITE };
	struct pvr_wqe_atomic_write write = valid(env);
	struct reader reader = { .word = target(env) };
	pthread_t thread;

	*target(env) = 0;
	assert_int_equal(pthread_create(&thread, NULL, read_words, &reader), 0);
	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < 32; i++) {
			write.value = i % 2 ? ~0ull : 0;
			put(env, &write, &wr);
		}
		fg_ring_send(&env->a.qp);
		fg_run(env->host);
	}
	__atomic_store_n(&reader.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(reader.mixed == 0);
}

/* ------------------------------------------------------------- between hosts */

T_SETUP_HOSTS(old, 2, .old = true)
{
	t_open_pair(&env->a, env->g[0], &env->b, env->g[1]);
}

T_SETUP_HOSTS(hosts, 2)
{
	t_open_pair(&env->a, env->g[0], &env->b, env->g[1]);
}

TEST(old, test_peers_pvrdmad_without_the_operation_fails_the_request)
{
	struct pvr_wqe_atomic_write write;

	t_ping_pong(env->host, &env->a, &env->b);
	write = valid(env);
	run(env, &write);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_INV_REQ_ERR);
	expect_target(env, GUARD);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_int_equal(fg_wire_refused(env->wire), 0);
}

TEST(old, test_request_without_the_feature_ends_the_connection)
{
	struct pvr_frame_request frame = {
		.frame = FG_FRAME(PVR_FRAME_REQUEST, sizeof(frame)),
		.op = PVR_FRAME_OP_ATOMIC_WRITE,
		.gid_type = PVR_GID_TYPE_ROCE_V2,
		.src_qpn = htole32(env->a.qp.qpn),
		.dst_qpn = htole32(env->b.qp.qpn),
		.psns = htole32(1),
	};
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);

	frame.frame.flags = PVR_REQUEST_F_LAST;
	memcpy(frame.sgid, env->a.gid, 16);
	memcpy(frame.dgid, env->b.gid, 16);
	fg_malformed_send_fabric(malformed, "default");
	fg_malformed_send(malformed, &frame, sizeof(frame));
	fg_settle(env->host, 20 * FG_MS);
	assert_true(fg_malformed_is_closed(malformed));
	assert_string_equal(fg_wire_why(env->wire),
			    "ATOMIC_WRITE or FLUSH, but that was not negotiated");
	expect_state(&env->b, PVR_QPS_RTS);
}

/* A connection that breaks before the response: the store happens once, in its order. */
TEST(hosts, test_write_is_not_repeated_after_a_broken_connection)
{
	struct pvr_wqe_atomic_write write;

	t_ping_pong(env->host, &env->a, &env->b);
	write = valid(env);
	fg_wire_hold(env->wire, 1, 0, true);
	run(env, &write);
	expect_no_cqe(&env->a.scq);
	expect_target(env, VALUE);
	*target(env) = 7; /* by the guest, after the write */
	fg_wire_cut(env->wire, 0, 1, 0);
	fg_wire_hold(env->wire, 1, 0, false);
	fg_wire_mend(env->wire, 0, 1, 0);
	fg_wire_settle(env->wire, FG_SEC);
	expect_done(&env->a.scq, 1, PVR_WC_ATOMIC_WRITE);
	expect_target(env, 7);
}
