// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Guests that take memory away which an RDMA NIC reads or writes at that moment. */
#include <stdlib.h>

#include "fg_wire.h"
#include "rndv.h"
#include "nics.h"
#include "transfer.h"

#define LEN 200000u
#define MARK 0x77
#define SPARE_GPA 0x7000000000ull
#define PENALTY_NS (60 * FG_SEC)

/* The memory that is taken away during a's request. */
enum part {
	WRITE_TARGET, /* b's */
	WRITE_SOURCE, /* a's */
	READ_TARGET, /* a's */
	READ_SOURCE, /* b's */
	PARTS,
};

#define ALL_PARTS ((1u << PARTS) - 1)
#define PARTS_OF_B (1u << WRITE_TARGET | 1u << READ_SOURCE)

TEST_EXT(PVR_EXT_MW | PVR_EXT_MR_LAYOUT)

struct scene {
	struct t_env *env;
	enum part part;
	struct fg_end *victim, *other; /* a and b */
	struct fg_mr host; /* what a's request names */
	struct fg_end c, d; /* of other guests */
	struct expose l;
	void *spare; /* RAM that was plugged in later, or NULL */
	struct fg_buf fresh; /* what the victim's region becomes */
};

static bool is_source(const struct scene *s)
{
	return s->part == WRITE_SOURCE || s->part == READ_SOURCE;
}

static unsigned int victims_host(const struct scene *s)
{
	return s->victim == &s->env->b;
}

static void scene_init(struct scene *s, struct t_env *env, enum part part)
{
	bool b = part == WRITE_TARGET || part == READ_SOURCE;

	memset(s, 0, sizeof(*s));
	s->env = env;
	s->part = part;
	s->victim = b ? &env->b : &env->a;
	s->other = b ? &env->a : &env->b;
	s->host = env->b.mr;
	nics_open(env, &s->c, &s->d, 2);
}

/* No byte is read yet; or half of the victim's request. */
static void begin(struct scene *s)
{
	struct t_env *env = s->env;

	fg_fill(s->victim->buf.va, s->victim->buf.size, 1);
	fg_fill(s->other->buf.va, s->other->buf.size, 2);
	fg_fill(s->c.buf.va, s->c.buf.size, 3);
	nics_hold(env, is_source(s) ? FG_READS_HELD : FG_READS_HALF);
	t_rdma(&env->a, s->part < READ_TARGET ? PVRDMA_WR_RDMA_WRITE : PVRDMA_WR_RDMA_READ, 1, 0,
	       &s->host, 0, LEN);
	fg_wire_run(env->wire);
	t_rdma(&s->c, PVRDMA_WR_RDMA_WRITE, 9, 0, &s->d.mr, 0, LEN);
	t_rdma(&s->d, PVRDMA_WR_RDMA_WRITE, 9, LEN, &s->c.mr, LEN, LEN);
	await_no_cqe(&env->a.scq);
	assert_true(is_source(s) ? nics_out(env, victims_host(s))
				 : fg_wire_nic(env->wire, victims_host(s))->read);
}

/* The guest has its memory back, and uses it for something else. */
static void went(struct scene *s)
{
	struct fg_nic_stats *stats = fg_wire_nic(s->env->wire, victims_host(s));

	memset(s->victim->buf.va, MARK, s->victim->buf.size);
	assert_int_equal(stats->stopped, !is_source(s));
	assert_true(fg_logged(fg_wire_host(s->env->wire, victims_host(s)),
			      "guest freed memory during a transfer of an RDMA NIC"));
	nics_hold(s->env, FG_READS_GO);
	fg_wire_settle(s->env->wire, 30 * FG_SEC);
}

/* The connection of the NICs broke; the other guests' requests were done by another one. */
static void expect_others_done(struct scene *s)
{
	assert_false(nics_are_up(s->env));
	expect_written(&s->c, 9);
	expect_written(&s->d, 9);
}

/* Nothing was written to the victim's memory, nothing read from it. */
static void check(struct scene *s)
{
	nics_expect_bytes(s->victim, MARK);
	if (is_source(s)) {
		assert_int_equal(fg_mismatch(s->other->buf.va, s->other->buf.size, 2),
				 s->other->buf.size);
		assert_int_equal(fg_wire_nic(s->env->wire, !victims_host(s))->forbidden, 1);
	}
	expect_others_done(s);
	assert_int_equal(fg_mismatch(s->d.buf.va, LEN, 3), LEN);
	assert_int_equal(memcmp(s->d.buf.va + LEN, s->c.buf.va + LEN, LEN), 0);
}

/* -------------------------------------------------------------------------- afterwards */

static void transfer(struct t_env *env, struct fg_end *from, struct fg_end *to, uint32_t seed)
{
	fg_fill(from->buf.va, LEN, seed);
	t_rdma(from, PVRDMA_WR_RDMA_WRITE, 1, 0, &to->mr, 0, LEN);
	fg_wire_settle(env->wire, FG_SEC);
	expect_written(from, 1);
	assert_int_equal(fg_mismatch(to->buf.va, LEN, seed), LEN);
}

/* The victim's guest sends without rendezvous, and receives by way of the buffer. */
static void expect_copied(struct scene *s, struct fg_end *victim, struct fg_end *other)
{
	struct t_env *env = s->env;
	unsigned int host = victims_host(s);

	transfer(env, victim, other, 20);
	assert_int_equal(fg_wire_nic_since(env->wire, host).exposed, 0);
	fg_wire_nic_since(env->wire, !host);
	transfer(env, other, victim, 21);
	assert_int_equal(fg_wire_nic_since(env->wire, !host).exposed, 1);
	assert_int_equal(fg_wire_nic(env->wire, host)->read_own, 1);
	assert_int_equal(fg_wire_nic_since(env->wire, host).read, 0);
	/* Others' is, as before. */
	transfer(env, &s->c, &s->d, 22);
	assert_int_equal(fg_wire_nic_since(env->wire, 0).exposed, 1);
	assert_int_equal(fg_wire_nic_since(env->wire, 1).read, 1);
}

static void expect_exposed(struct scene *s, struct fg_end *victim, struct fg_end *other)
{
	struct t_env *env = s->env;
	unsigned int host = victims_host(s);

	transfer(env, victim, other, 30);
	assert_int_equal(fg_wire_nic_since(env->wire, host).exposed, 1);
	assert_int_equal(fg_wire_nic_since(env->wire, !host).read, 1);
	transfer(env, other, victim, 31);
	assert_int_equal(fg_wire_nic_since(env->wire, host).read, 1);
	assert_int_equal(fg_wire_nic_since(env->wire, !host).exposed, 1);
}

static void expect_copied_for_a_while(struct scene *s)
{
	struct fg_end e, f, *victim, *other;

	nics_open(s->env, &e, &f, 0);
	victim = victims_host(s) ? &f : &e;
	other = victims_host(s) ? &e : &f;
	nics_up(s->env, true);
	fg_wire_nic_since(s->env->wire, 0);
	fg_wire_nic_since(s->env->wire, 1);
	expect_copied(s, victim, other);
	fg_wire_advance(s->env->wire, PENALTY_NS - 33 * FG_SEC);
	expect_copied(s, victim, other);
	fg_wire_advance(s->env->wire, 33 * FG_SEC);
	expect_exposed(s, victim, other);
	assert_true(nics_are_up(s->env));
}

/* -------------------------------------------------- events that take the memory away */

static void destroy_region(struct scene *s)
{
	expect_ok(fg_mr_destroy(&s->victim->mr));
}

static void reset_qp(struct scene *s)
{
	expect_ok(fg_qp_to_reset(&s->victim->qp));
}

static void fail_qp(struct scene *s)
{
	expect_ok(fg_qp_to_err(&s->victim->qp));
}

static void destroy_qp(struct scene *s)
{
	expect_ok(fg_qp_destroy(&s->victim->qp));
}

static void take_rights(struct scene *s)
{
	const struct pvr_qp_attr attr = { .qp_access_flags = PVR_ACCESS_REMOTE_ATOMIC };

	expect_ok(fg_qp_modify(&s->victim->qp, PVR_QPA_ACCESS_FLAGS, &attr));
}

/* The guest's rings are there, too, so the adapter fails. */
static void unplug_ram(struct scene *s)
{
	struct fg_ram_region *fragment = &s->victim->guest->ram.region[FG_RAM_REGIONS - 1];

	pvr_adapter_unmap_ram(s->victim->guest->adapter, fragment->gpa, fragment->size);
}

static void reset_adapter(struct scene *s)
{
	fg_ctl(s->victim->guest, PVR_CTL_RESET);
}

static void fail_adapter(struct scene *s)
{
	pvr_adapter_fail(s->victim->guest->adapter, "a test");
}

static void forbid_dma(struct scene *s)
{
	pvr_adapter_set_bus_master(s->victim->guest->adapter, false);
}

static void destroy_adapter(struct scene *s)
{
	fg_guest_unplug(s->victim->guest);
}

/* The victim's region is in RAM that was plugged in later and that holds no ring. */
static void plug_spare(struct scene *s)
{
	struct fg_end *end = s->victim;
	uint64_t gpa[NICS_PAGES];
	struct pvr_cmd_create_mr req;

	s->spare = aligned_alloc(PVR_PAGE_SIZE, COUNT(gpa) * PVR_PAGE_SIZE);
	assert_non_null(s->spare);
	expect_ok(pvr_adapter_map_ram(end->guest->adapter, SPARE_GPA, NICS_PAGES * PVR_PAGE_SIZE,
				      s->spare, true));
	for (uint32_t i = 0; i < NICS_PAGES; i++)
		gpa[i] = SPARE_GPA + i * PVR_PAGE_SIZE;
	req = fg_layout_request(&end->pd, fg_pdir(&end->guest->ram, 2, gpa, NICS_PAGES),
				PVR_PAGE_SHIFT, FG_USER_VA, 0, NICS_PAGES * PVR_PAGE_SIZE);
	expect_ok(fg_mr_destroy(&end->mr));
	expect_ok(fg_mr_create_as(&end->pd, &req, &end->mr));
	end->buf.va = s->spare;
	s->host = s->env->b.mr;
}

static void unplug_spare(struct scene *s)
{
	pvr_adapter_unmap_ram(s->victim->guest->adapter, SPARE_GPA, NICS_PAGES * PVR_PAGE_SIZE);
}

static void bind_window(struct scene *s, uint32_t type)
{
	expose_init(&s->l, s->env, type);
	s->l.bind.addr = s->l.region.start;
	s->l.bind.length = s->l.region.length;
	expose_bind(&s->l);
	s->host = s->l.region;
	s->host.rkey = s->l.mw.rkey;
}

static void bind_window_1(struct scene *s)
{
	bind_window(s, PVR_MR_FLAG_MW1);
}

static void bind_window_2(struct scene *s)
{
	bind_window(s, PVR_MR_FLAG_MW2);
}

static void invalidate_window(struct scene *s)
{
	expose_invalidated(&s->l);
}

/* A window of type 1 that is bound to something else loses what it was bound to. */
static void bind_window_anew(struct scene *s)
{
	s->l.bind.length = 4096;
	expose_bind(&s->l);
}

#define FAST_PAGES 64u

/* A region of a kernel consumer. */
static void register_fast(struct scene *s)
{
	struct pvrdma_sq_wqe_hdr *wqe;

	expect_ok(fast_mr_create(&s->victim->pd, FAST_PAGES, &s->host));
	s->host.start = FAST_IOVA;
	wqe = put_fast_reg(s->victim, 900, &s->victim->buf, s->host.rkey);
	wqe->wr.fast_reg.page_list_len = FAST_PAGES;
	wqe->wr.fast_reg.length = FAST_PAGES * PVR_PAGE_SIZE;
	fg_ring_send(&s->victim->qp);
	await_done(&s->victim->scq, 900, PVRDMA_WC_FAST_REG_MR);
}

static void invalidate_fast(struct scene *s)
{
	t_post(s->victim, .wr_id = 901, .opcode = PVRDMA_WR_LOCAL_INV, .imm = s->host.rkey);
	await_done(&s->victim->scq, 901, PVRDMA_WC_LOCAL_INV);
}

static const struct {
	const char *label;
	void (*prepare)(struct scene *s);
	void (*event)(struct scene *s);
	unsigned int parts;
	bool copies; /* afterwards the victim's guest does without rendezvous for a while */
} events[] = {
	{ "region is destroyed", NULL, destroy_region, ALL_PARTS, true },
	{ "queue pair is reset", NULL, reset_qp, ALL_PARTS, true },
	{ "queue pair goes to error", NULL, fail_qp, ALL_PARTS, true },
	{ "queue pair is destroyed", NULL, destroy_qp, ALL_PARTS, true },
	{ "queue pair loses its rights", NULL, take_rights, PARTS_OF_B, true },
	{ "memory is unplugged", NULL, unplug_ram, ALL_PARTS, false },
	{ "memory without rings is unplugged", plug_spare, unplug_spare, ALL_PARTS, true },
	{ "adapter is reset", NULL, reset_adapter, ALL_PARTS, false },
	{ "adapter fails", NULL, fail_adapter, ALL_PARTS, false },
	{ "adapter may not use memory any more", NULL, forbid_dma, ALL_PARTS, false },
	{ "adapter is destroyed", NULL, destroy_adapter, ALL_PARTS, false },
	{ "window is invalidated", bind_window_2, invalidate_window, PARTS_OF_B, true },
	{ "window is bound anew", bind_window_1, bind_window_anew, PARTS_OF_B, false },
	{ "fast region is invalidated", register_fast, invalidate_fast, PARTS_OF_B, false },
};

TEST_CASES(nics, test_memory_goes_under_the_nics, events)
{
	struct scene s;

	for (enum part part = 0; part < PARTS; part++) {
		if (!(row->parts & 1u << part))
			continue;
		if (part)
			env = t_renew(t_setup_nics);
		scene_init(&s, env, part);
		if (row->prepare)
			row->prepare(&s);
		begin(&s);
		row->event(&s);
		went(&s);
		check(&s);
		if (row->copies)
			expect_copied_for_a_while(&s);
		free(s.spare);
	}
}

/* ------------------------------------------------------------- regions that are replaced */

static struct pvr_cmd_create_mr request_of(const struct scene *s, const struct fg_buf *buf)
{
	return fg_layout_request(&s->victim->pd, buf->pdir, PVR_PAGE_SHIFT, FG_USER_VA, 0,
				 buf->size);
}

static void make_replaceable(struct scene *s)
{
	struct fg_end *victim = s->victim;
	const struct pvr_cmd_create_mr req = request_of(s, &victim->buf);

	expect_ok(fg_mr_destroy(&victim->mr));
	expect_ok(fg_mr_create_as(&victim->pd, &req, &victim->mr));
	fg_buf_init(&s->fresh, &victim->guest->ram, NICS_PAGES, FG_LINEAR);
	fg_fill(s->fresh.va, s->fresh.size, 5);
	s->host = s->env->b.mr;
}

/* The keys stay, and lead to other memory. */
static void replace(struct scene *s)
{
	struct pvr_cmd_create_mr req = request_of(s, &s->fresh);
	struct pvr_resp_create_mr resp;

	req.flags |= PVR_MR_FLAG_REPLACE;
	req.mr_handle = s->victim->mr.handle;
	expect_ok(fg_create_mr(s->victim->guest, &req, &resp));
}

TEST(nics, test_region_becomes_another_one)
{
	struct scene s;

	for (enum part part = 0; part < PARTS; part++) {
		if (part)
			env = t_renew(t_setup_nics);
		scene_init(&s, env, part);
		make_replaceable(&s);
		begin(&s);
		replace(&s);
		went(&s);
		expect_cqe(&s.env->a.scq, 1, PVRDMA_WC_SUCCESS);
		nics_expect_bytes(s.victim, MARK);
		if (is_source(&s))
			assert_int_equal(fg_mismatch(s.other->buf.va, LEN, 5), LEN);
		else
			assert_int_equal(fg_mismatch(s.fresh.va, LEN, 2), LEN);
		expect_others_done(&s);
	}
}

/*
 * A finished read whose completion was not polled yet does not count for the next
 * request.
 */
static const struct {
	const char *label;
	enum part part;
} targets[] = { { "of a WRITE", WRITE_TARGET }, { "of a READ", READ_TARGET } };

TEST_CASES(nics, test_target_becomes_another_region_when_all_is_read, targets)
{
	struct fg_nic_stats *stats;
	struct scene s;

	scene_init(&s, env, row->part);
	stats = fg_wire_nic(env->wire, victims_host(&s));
	make_replaceable(&s);
	begin(&s);
	nics_hold(env, FG_READS_GO);
	fg_wire_nics_work(env->wire);
	assert_true(stats->zerocopy_rx_bytes);
	replace(&s);
	assert_int_equal(stats->stopped, 0);
	memset(s.victim->buf.va, MARK, s.victim->buf.size);
	fg_wire_settle(env->wire, FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_SUCCESS);
	assert_int_equal(fg_mismatch(s.fresh.va, LEN, 2), LEN);
	nics_expect_bytes(s.victim, MARK);
}

/* A queue pair that is reset and reconnected during a read of its former incarnation. */
TEST(nics, test_queue_pair_begins_anew_when_all_is_read)
{
	struct scene s;

	scene_init(&s, env, WRITE_TARGET);
	begin(&s);
	nics_hold(env, FG_READS_GO);
	fg_wire_nics_work(env->wire);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	memset(env->b.buf.va, MARK, env->b.buf.size);
	fg_wire_settle(env->wire, FG_SEC);
	nics_expect_bytes(&env->b, MARK);
	fg_end_connect(&env->a, &env->b, NULL);
	transfer(env, &env->a, &env->b, 40);
	expect_written(&s.c, 9);
}

/* ----------------------------------------------------------- revoking without waiting */

/* A request that fails or is flushed takes its own rendezvous back, and the next one's. */
TEST(nics, test_flushed_requests_revoke_their_rndvs)
{
	nics_hold(env, FG_READS_HELD);
	for (uint32_t i = 0; i < 5; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, LEN);
	fg_wire_run(env->wire);
	assert_int_equal(nics_out(env, 0), 5);
	expect_ok(fg_qp_to_err(&env->a.qp));
	assert_int_equal(nics_out(env, 0), 0);
	fg_wire_run(env->wire);
	for (uint32_t i = 0; i < 5; i++)
		expect_cqe(&env->a.scq, i, PVRDMA_WC_WR_FLUSH_ERR);
	assert_true(nics_are_up(env));
}

/* A guest that revokes memory before its read starts breaks nothing. */
TEST(nics, test_unread_rndvs_break_nothing)
{
	struct fg_end c, d;

	nics_open(env, &c, &d, 2);
	fg_wire_hold(env->wire, 0, 1, true);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, LEN);
	fg_wire_run(env->wire);
	assert_int_equal(nics_out(env, 0), 1);
	expect_ok(fg_qp_to_reset(&env->b.qp));
	expect_ok(fg_qp_to_reset(&env->a.qp));
	assert_int_equal(nics_out(env, 0), 0);
	fg_wire_hold(env->wire, 0, 1, false);
	fg_wire_settle(env->wire, FG_SEC);
	assert_true(nics_are_up(env));
	transfer(env, &c, &d, 1);
	assert_true(nics_are_up(env));
}
