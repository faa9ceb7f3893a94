// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Large payloads between hosts whose RDMA NICs read them: which, how, and when they are back. */
#include "fg_wire.h"
#include "rndv.h"
#include "core/objects.h"
#include "nics.h"
#include "transfer.h"

static const struct {
	const char *label;
	enum pvrdma_wr_opcode op;
} ops[] = {
	{ "SEND", PVRDMA_WR_SEND },	   { "SEND_WITH_IMM", PVRDMA_WR_SEND_WITH_IMM },
	{ "WRITE", PVRDMA_WR_RDMA_WRITE }, { "WRITE_WITH_IMM", PVRDMA_WR_RDMA_WRITE_WITH_IMM },
	{ "READ", PVRDMA_WR_RDMA_READ },
};

TEST_EXT(PVR_EXT_UC | PVR_EXT_MW | PVR_EXT_DB_SUPPRESS)

/*
 * Return: the host that exposes the payload of a's request; the NIC of the other host
 * reads.
 */
static unsigned int exposer_of(enum pvrdma_wr_opcode op)
{
	return op == PVRDMA_WR_RDMA_READ;
}

/* The last transfer took so many rendezvous, all read straight to where they belong. */
static void expect_exposed(struct t_env *env, enum pvrdma_wr_opcode op, uint32_t rndvs,
			   uint32_t len)
{
	struct fg_nic_stats exposed = fg_wire_nic_since(env->wire, exposer_of(op));
	struct fg_nic_stats read = fg_wire_nic_since(env->wire, !exposer_of(op));

	assert_int_equal(exposed.exposed, rndvs);
	assert_int_equal(exposed.zerocopy_tx_bytes, len);
	assert_int_equal(exposed.revoked, rndvs);
	assert_int_equal(read.read, rndvs);
	assert_int_equal(read.read_own, 0);
	assert_int_equal(read.zerocopy_rx_bytes, len);
	assert_int_equal(read.exposed, 0);
	assert_int_equal(exposed.read, 0);
	assert_true(nics_are_up(env));
}

static void expect_copied(struct t_env *env)
{
	for (unsigned int host = 0; host < 2; host++) {
		struct fg_nic_stats stats = fg_wire_nic_since(env->wire, host);

		assert_int_equal(stats.exposed, 0);
		assert_int_equal(stats.read, 0);
		assert_int_equal(stats.read_own, 0);
	}
	assert_true(nics_are_up(env));
}

/* The last transfer took so many rendezvous, all read into the stream's own buffer first. */
static void expect_buffered(struct t_env *env, enum pvrdma_wr_opcode op, uint32_t rndvs,
			    uint32_t len)
{
	struct fg_nic_stats exposed = fg_wire_nic_since(env->wire, exposer_of(op));
	struct fg_nic_stats read = fg_wire_nic_since(env->wire, !exposer_of(op));

	assert_int_equal(exposed.exposed, rndvs);
	assert_int_equal(read.read, 0);
	assert_int_equal(read.read_own, rndvs);
	assert_int_equal(read.zerocopy_rx_bytes, len);
	assert_true(nics_are_up(env));
}

static void transfer_copied(struct t_env *env, struct t_transfer t)
{
	t_transfer(env, &t);
	expect_copied(env);
}

static void transfer_exposed(struct t_env *env, struct t_transfer t)
{
	t_transfer(env, &t);
	expect_exposed(env, t.op, 1, t.len);
}

/* ------------------------------------------------------------------ what is exposed */

TEST_CASES(nics, test_large_payloads_are_exposed, ops)
{
	const uint32_t lens[] = { NICS_LEAST, NICS_LEAST + 1, 100000, NICS_CHUNK };

	for (uint32_t i = 0; i < COUNT(lens); i++)
		transfer_exposed(env, (struct t_transfer){ .op = row->op,
							   .len = lens[i],
							   .offset = 777 * i,
							   .remote_offset = 4090 + i });
}

TEST_CASES(nics, test_small_payloads_are_copied, ops)
{
	const uint32_t lens[] = { 0, 8, 4097, NICS_LEAST - 1 };

	for (uint32_t i = 0; i < COUNT(lens); i++)
		transfer_copied(env, (struct t_transfer){ .op = row->op, .len = lens[i] });
}

TEST(nics, test_send_with_invalidate_is_exposed)
{
	struct expose l;

	expose_init(&l, env, PVR_MR_FLAG_MW2);
	expose_bind(&l);
	fg_fill(env->a.buf.va, 100000, 5);
	t_recv(&env->b, 2, 0, 100000);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND_WITH_INV, .imm = l.mw.rkey,
	       T_SGE(&env->a.mr, 0, 100000));
	await_sent(&env->a, 1);
	assert_true(expect_recv(&env->b.rcq, 2, 100000).wc_flags & PVRDMA_WC_WITH_INVALIDATE);
	assert_int_equal(fg_mismatch(env->b.buf.va, 100000, 5), 100000);
	expect_exposed(env, PVRDMA_WR_SEND, 1, 100000);
}

/* The rest after the last whole chunk, too, if it is large enough. */
TEST_CASES(nics, test_long_messages_are_exposed_in_fragments, ops)
{
	const uint32_t len = (7u << 19) - 100, rndvs = len / NICS_CHUNK + 1;
	bool read = row->op == PVRDMA_WR_RDMA_READ;

	nics_in_one_run(&env->a, 1024);
	nics_in_one_run(&env->b, 1024);
	fg_fill(env->a.buf.va, env->a.buf.size, read ? 1 : 10);
	fg_fill(env->b.buf.va, env->b.buf.size, read ? 10 : 1);
	t_recv(&env->b, 2, 0, len);
	t_rdma(&env->a, row->op, 1, 0, &env->b.mr, 0, len);
	fg_wire_settle(env->wire, FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_SUCCESS);
	assert_int_equal(fg_mismatch(env->a.buf.va, len, 10), len);
	assert_int_equal(fg_mismatch(env->b.buf.va, len, 10), len);
	expect_exposed(env, row->op, rndvs, len);
}

TEST_CASES(nics, test_several_entries_are_exposed_as_several_parts, ops)
{
	struct t_transfer t = { .op = row->op, .len = 200000 };

	for (t.sges = 1; t.sges <= PVR_FRAME_RNDV_SEGS; t.sges++) {
		t.recv_sges = PVR_FRAME_RNDV_SEGS + 1 - t.sges;
		t_transfer(env, &t);
		/* Of a READ the entries are where it goes to. */
		assert_int_equal(fg_wire_nic(env->wire, exposer_of(t.op))->parts,
				 t.op == PVRDMA_WR_RDMA_READ ? 1 : t.sges);
		expect_exposed(env, t.op, 1, t.len);
	}
}

TEST(nics, test_more_parts_than_a_rndv_has_are_copied)
{
	transfer_copied(env, (struct t_transfer){ .op = PVRDMA_WR_RDMA_WRITE,
						  .len = 200000,
						  .sges = PVR_FRAME_RNDV_SEGS + 1 });
}

TEST(nics, test_read_to_many_entries_goes_through_the_buffer)
{
	const struct t_transfer t = { .op = PVRDMA_WR_RDMA_READ, .len = 200000, .sges = 32 };

	t_transfer(env, &t);
	assert_int_equal(fg_wire_nic_since(env->wire, 1).exposed, 1);
	assert_true(fg_wire_nic(env->wire, 0)->read_own > 0);
	assert_int_equal(fg_wire_nic_since(env->wire, 0).zerocopy_rx_bytes, 200000);
}

TEST(nics_from_scattered, test_scattered_payloads_are_copied)
{
	transfer_copied(env, (struct t_transfer){ .op = PVRDMA_WR_RDMA_WRITE, .len = 500000 });
	transfer_copied(env, (struct t_transfer){ .op = PVRDMA_WR_SEND, .len = 500000 });
}

TEST(nics_to_scattered, test_scattered_targets_are_read_by_way_of_a_buffer)
{
	/* READ is the last one. */
	for (size_t i = 0; i < COUNT(ops) - 1; i++) {
		t_transfer(env, &(struct t_transfer){ ops[i].op, 700000, .remote_offset = 100 });
		expect_buffered(env, ops[i].op, 3, 700000);
	}
}

/* As many runs at a time as a NIC may write to; only few bytes in many runs are copied. */
TEST(nics, test_targets_of_many_runs_are_read_in_several_goes)
{
	for (uint32_t sges = 1; sges <= PVR_FRAME_RNDV_SEGS; sges++) {
		struct t_transfer t = { PVRDMA_WR_SEND, 250000, .sges = sges };
		struct fg_nic_stats read;

		t.recv_sges = 2 * PVR_FRAME_RNDV_SEGS;
		t_transfer(env, &t);
		assert_int_equal(fg_wire_nic_since(env->wire, 0).exposed, 1);
		read = fg_wire_nic_since(env->wire, 1);
		assert_int_equal(read.read, 2);
		assert_int_equal(read.read_own, 0);
		assert_int_equal(read.zerocopy_rx_bytes, 250000);
		/* The last run of a third go. */
		t.recv_sges = 2 * PVR_FRAME_RNDV_SEGS + 1;
		t_transfer(env, &t);
		fg_wire_nic_since(env->wire, 0);
		assert_int_equal(fg_wire_nic_since(env->wire, 1).read, 3);
		t.recv_sges = 32;
		t.len = 100000;
		t_transfer(env, &t);
		expect_buffered(env, t.op, 1, t.len);
	}
}

TEST(nics, test_unreliable_connections_are_copied)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_UC };
	struct fg_end c, d;

	fg_end_open_spec(&c, &env->g[2]->kernel, &spec, 1);
	fg_end_open_spec(&d, &env->g[3]->kernel, &spec, 1);
	nics_in_one_run(&c, NICS_PAGES);
	nics_in_one_run(&d, NICS_PAGES);
	fg_end_connect(&c, &d, NULL);
	fg_wire_run(env->wire);
	fg_fill(c.buf.va, c.buf.size, 3);
	t_rdma(&c, PVRDMA_WR_RDMA_WRITE, 1, 0, &d.mr, 0, 1000000);
	t_recv(&d, 2, 0, 200000);
	t_send(&c, 3, 1000000, 200000);
	fg_wire_settle(env->wire, FG_SEC);
	expect_written(&c, 1);
	expect_sent(&c, 3);
	expect_recv(&d.rcq, 2, 200000);
	assert_int_equal(memcmp(d.buf.va, c.buf.va + 1000000, 200000), 0);
	expect_copied(env);
}

/* -------------------------------------------------------------------- when it cannot */

TEST_CASES(nics, test_memory_that_cannot_be_exposed_is_copied, ops)
{
	fg_wire_nics(env->wire)->no_expose = true;
	transfer_copied(env, (struct t_transfer){ .op = row->op, .len = 600000 });
	fg_wire_nics(env->wire)->no_expose = false;
	transfer_exposed(env, (struct t_transfer){ .op = row->op, .len = 100000 });
}

TEST_CASES(nics, test_memory_that_cannot_be_read_into_gets_a_copy, ops)
{
	fg_wire_nics(env->wire)->no_read = true;
	t_transfer(env, &(struct t_transfer){ .op = row->op, .len = 600000 });
	expect_buffered(env, row->op, 3, 600000);
}

/* Payload beyond the limit of exposed memory is copied, and all arrives in order. */
TEST(nics, test_more_than_may_be_exposed_at_once_is_copied)
{
	const uint32_t n = PVR_FRAME_RNDV_MAX + 8;

	for (unsigned int round = 0; round < 3; round++) {
		fg_fill(env->a.buf.va, env->a.buf.size, round);
		nics_hold(env, FG_READS_HELD);
		for (uint32_t i = 0; i < n; i++)
			t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 777 * i, &env->b.mr, 1000 * i,
			       NICS_LEAST);
		fg_wire_run(env->wire);
		assert_int_equal(nics_out(env, 0), PVR_FRAME_RNDV_MAX);
		expect_no_cqe(&env->a.scq);
		nics_hold(env, FG_READS_GO);
		fg_wire_settle(env->wire, FG_SEC);
		for (uint32_t i = 0; i < n; i++)
			expect_written(&env->a, i);
		/* Each was overwritten by the next, but for its beginning. */
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(memcmp(env->b.buf.va + 1000 * i, env->a.buf.va + 777 * i,
						i + 1 == n ? NICS_LEAST : 1000),
					 0);
		expect_exposed(env, PVRDMA_WR_RDMA_WRITE, PVR_FRAME_RNDV_MAX,
			       PVR_FRAME_RNDV_MAX * NICS_LEAST);
	}
}

/* ------------------------------------------------------------------ both ways at once */

/* Reads of a queue pair as responder are independent of its requests. */
TEST(nics, test_both_ends_read_at_the_same_time)
{
	struct fg_end *end[] = { &env->a, &env->b };

	for (uint32_t i = 0; i < 2; i++)
		fg_fill(end[i]->buf.va, end[i]->buf.size, i);
	nics_hold(env, FG_READS_HALF);
	for (uint32_t i = 0; i < 2; i++) {
		t_rdma(end[i], PVRDMA_WR_RDMA_READ, 1, 400000, &end[!i]->mr, 0, 200000);
		t_rdma(end[i], PVRDMA_WR_RDMA_WRITE, 2, 0, &end[!i]->mr, 800000, 200000);
	}
	fg_wire_run(env->wire);
	for (uint32_t i = 0; i < 2; i++) {
		expect_no_cqe(&end[i]->scq);
		/* The WRITE of the other one, and the READ's data. */
		assert_int_equal(fg_wire_nic(env->wire, i)->read, 2);
		assert_int_equal(fg_wire_nic(env->wire, i)->stopped, 0);
	}
	assert_true(nics_are_up(env));
	nics_hold(env, FG_READS_GO);
	fg_wire_settle(env->wire, FG_SEC);
	for (uint32_t i = 0; i < 2; i++) {
		expect_done(&end[i]->scq, 1, PVRDMA_WC_RDMA_READ);
		expect_written(end[i], 2);
		assert_int_equal(memcmp(end[i]->buf.va + 400000, end[!i]->buf.va, 200000), 0);
		assert_int_equal(memcmp(end[i]->buf.va + 800000, end[!i]->buf.va, 200000), 0);
	}
	assert_true(nics_are_up(env));
}

TEST(nics, test_many_queue_pairs_share_the_rndvs)
{
	struct fg_end c, d;

	nics_open(env, &c, &d, 2);
	for (uint32_t i = 0; i < 40; i++) {
		fg_fill(env->a.buf.va, env->a.buf.size, i);
		fg_fill(c.buf.va, c.buf.size, 100 + i);
		t_recv(&env->b, 1, 5000, 1000000);
		t_send(&env->a, 1, 0, 1000000);
		t_rdma(&c, PVRDMA_WR_RDMA_WRITE, 2, 0, &d.mr, 0, 1000000);
		t_rdma(&d, PVRDMA_WR_RDMA_READ, 3, 1000000, &c.mr, 1000000, 200000);
		fg_wire_settle(env->wire, FG_SEC);
		expect_sent(&env->a, 1);
		expect_recv(&env->b.rcq, 1, 1000000);
		expect_written(&c, 2);
		expect_done(&d.scq, 3, PVRDMA_WC_RDMA_READ);
		assert_int_equal(fg_mismatch(env->b.buf.va + 5000, 1000000, i), 1000000);
		assert_int_equal(fg_mismatch(d.buf.va, 1200000, 100 + i), 1200000);
	}
	assert_true(nics_are_up(env));
}

/* ---------------------------------------------------------------------- what is refused */

TEST(nics, test_send_without_a_receive_is_not_read)
{
	fg_fill(env->a.buf.va, 100000, 9);
	t_send(&env->a, 1, 0, 100000);
	await_no_cqe(&env->a.scq);
	assert_int_equal(fg_wire_nic(env->wire, 0)->exposed, 1);
	assert_int_equal(nics_out(env, 0), 0);
	assert_int_equal(fg_wire_nic(env->wire, 1)->read + fg_wire_nic(env->wire, 1)->read_own, 0);
	t_recv(&env->b, 2, 300, 100000);
	fg_wire_settle(env->wire, FG_SEC);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 100000);
	assert_int_equal(fg_mismatch(env->b.buf.va + 300, 100000, 9), 100000);
	assert_int_equal(fg_wire_nic_since(env->wire, 1).read, 1);
	assert_true(nics_are_up(env));
}

TEST(nics, test_payload_for_a_wrong_key_is_not_read)
{
	fg_fill(env->b.buf.va, env->b.buf.size, 7);
	env->b.mr.rkey ^= 0x10000;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 1000000);
	env->b.mr.rkey ^= 0x10000;
	fg_wire_settle(env->wire, FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect_state(&env->b, PVR_QPS_ERR);
	assert_true(fg_wire_nic_since(env->wire, 0).exposed > 0);
	assert_int_equal(fg_wire_nic(env->wire, 1)->read + fg_wire_nic(env->wire, 1)->read_own, 0);
	assert_int_equal(fg_mismatch(env->b.buf.va, env->b.buf.size, 7), env->b.buf.size);
	assert_true(nics_are_up(env));
}

/* --------------------------------------------------------------- connections that break */

TEST(nics, test_rndvs_and_reads_end_with_their_connection)
{
	static const enum fg_reads held[] = { FG_READS_HELD, FG_READS_HALF };

	for (uint32_t i = 0; i < 12; i++) {
		enum pvrdma_wr_opcode op = i % 2 ? PVRDMA_WR_RDMA_READ : PVRDMA_WR_SEND;
		struct fg_end *to = i % 2 ? &env->a : &env->b;
		struct fg_end *from = i % 2 ? &env->b : &env->a;

		nics_hold(env, held[i / 2 % 2]);
		fg_fill(from->buf.va, 1000000, i);
		fg_fill(to->buf.va, to->buf.size, 99);
		if (op == PVRDMA_WR_SEND) {
			t_recv(&env->b, 2, 0, 1000000);
			t_send(&env->a, 1, 0, 1000000);
		} else {
			t_rdma(&env->a, op, 1, 0, &env->b.mr, 0, 1000000);
		}
		fg_wire_run(env->wire);
		assert_int_equal(nics_out(env, exposer_of(op)), 4);
		nics_up(env, false);
		assert_int_equal(nics_out(env, exposer_of(op)), 0);
		/* By TCP, once. */
		fg_wire_settle(env->wire, FG_SEC);
		expect_cqe(&env->a.scq, 1, PVRDMA_WC_SUCCESS);
		expect_no_cqe(&env->a.scq);
		if (op == PVRDMA_WR_SEND)
			expect_recv(&env->b.rcq, 2, 1000000);
		expect_no_cqe(&env->b.rcq);
		assert_int_equal(fg_mismatch(to->buf.va, 1000000, i), 1000000);
		/* And nothing is written any more. */
		memset(to->buf.va, 0x77, to->buf.size);
		nics_hold(env, FG_READS_GO);
		fg_wire_settle(env->wire, FG_SEC);
		nics_expect_bytes(to, 0x77);
		nics_up(env, true);
	}
	assert_int_equal(fg_wire_nic(env->wire, 0)->forbidden, 0);
	assert_int_equal(fg_wire_nic(env->wire, 1)->forbidden, 0);
}

/* In each frame, between any two, and while something is read. */
TEST(nics, test_connection_cut_anywhere)
{
	for (uint32_t steps = 0; steps < 60; steps++) {
		fg_fill(env->a.buf.va, 800000, steps);
		memset(env->b.buf.va, 0, env->b.buf.size);
		memset(env->a.buf.va + 1000000, 0, 200000);
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 700000);
		t_recv(&env->b, 2, 700000, 100000);
		t_send(&env->a, 2, 700000, 100000);
		t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 3, 1000000, &env->b.mr, 200000, 200000);
		fg_wire_steps(env->wire, steps);
		nics_up(env, steps % 3);
		fg_wire_settle(env->wire, 10 * FG_SEC);
		expect_written(&env->a, 1);
		expect_sent(&env->a, 2);
		expect_done(&env->a.scq, 3, PVRDMA_WC_RDMA_READ);
		expect_recv(&env->b.rcq, 2, 100000);
		expect_no_cqe(&env->b.rcq);
		assert_int_equal(fg_mismatch(env->b.buf.va, 800000, steps), 800000);
		assert_int_equal(memcmp(env->a.buf.va + 1000000, env->b.buf.va + 200000, 200000),
				 0);
		nics_up(env, true);
	}
}
