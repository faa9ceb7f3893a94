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

/* Whose memory is taken away while it is used for what a asks for. */
enum part {
	WRITE_TARGET, /* b's */
	WRITE_SOURCE, /* a's */
	READ_TARGET, /* a's */
	READ_SOURCE, /* b's */
	PARTS,
};

TEST_INIT
{
	fg_default_ext = PVR_EXT_MW | PVR_EXT_MR_LAYOUT;
}

struct scene {
	struct t_env *env;
	enum part part;
	struct fg_end *victim, *other; /* a and b */
	struct fg_mr host; /* what a's request names */
	struct fg_end c, d; /* of other guests */
	struct expose l;
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
	s->victim = b ? &s->env->b : &s->env->a;
	s->other = b ? &s->env->a : &s->env->b;
	s->host = s->env->b.mr;
	nics_open(s->env, &s->c, &s->d, 2);
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
	fg_wire_run(env->wire);
	expect_no_cqe(&env->a.scq);
	assert_true(is_source(s) ? nics_out(env, victims_host(s))
				 : fg_wire_nic(env->wire, victims_host(s))->read);
}

static void expect_mark(const struct fg_end *end)
{
	for (size_t i = 0; i < end->buf.size; i++)
		assert_int_equal(end->buf.va[i], MARK);
}

/* The guest has its memory back, and uses it for something else. */
static void went(struct scene *s)
{
	struct fg_nic_stats *stats = fg_wire_nic(s->env->wire, victims_host(s));

	memset(s->victim->buf.va, MARK, s->victim->buf.size);
	assert_int_equal(stats->stopped, !is_source(s));
	assert_true(fg_logged(fg_wire_host(s->env->wire, victims_host(s)),
			      "took back memory that an RDMA NIC was using"));
	nics_hold(s->env, FG_READS_GO);
	fg_wire_settle(s->env->wire, 30 * FG_SEC);
}

/* Nothing was written to it, nothing read of it; others have noticed nothing. */
static void check(struct scene *s)
{
	struct t_env *env = s->env;

	expect_mark(s->victim);
	if (is_source(s)) {
		assert_int_equal(fg_mismatch(s->other->buf.va, s->other->buf.size, 2),
				 s->other->buf.size);
		assert_int_equal(fg_wire_nic(env->wire, !victims_host(s))->forbidden, 1);
	}
	assert_false(nics_are_up(env));
	expect_done(&s->c.scq, 9, PVRDMA_WC_RDMA_WRITE);
	expect_done(&s->d.scq, 9, PVRDMA_WC_RDMA_WRITE);
	assert_int_equal(fg_mismatch(s->d.buf.va, LEN, 3), LEN);
	assert_int_equal(memcmp(s->d.buf.va + LEN, s->c.buf.va + LEN, LEN), 0);
}

/* -------------------------------------------------------------------------- afterwards */

static void transfer(struct t_env *env, struct fg_end *from, struct fg_end *to, uint32_t seed)
{
	fg_fill(from->buf.va, LEN, seed);
	t_rdma(from, PVRDMA_WR_RDMA_WRITE, 1, 0, &to->mr, 0, LEN);
	fg_wire_settle(env->wire, FG_SEC);
	expect_done(&from->scq, 1, PVRDMA_WC_RDMA_WRITE);
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

/* ------------------------------------------------------------------------------ events */

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

/* That has its rings, too: so it fails. */
static void unplug_ram(struct scene *s)
{
	struct fg_ram_region *fragment = &s->victim->guest->ram.region[FG_RAM_REGIONS - 1];

	pvr_adapter_unmap_ram(s->victim->guest->adapter, fragment->gpa, fragment->size);
}

/* A piece of RAM beside that, which has been plugged in later. */
struct spare {
	void *va;
	struct fg_mr mr;
};

static void spare_plug(struct spare *spare, struct fg_end *end)
{
	uint64_t gpa[NICS_PAGES];
	struct pvr_cmd_create_mr req;

	spare->va = aligned_alloc(PVR_PAGE_SIZE, COUNT(gpa) * PVR_PAGE_SIZE);
	assert_non_null(spare->va);
	expect_ok(pvr_adapter_map_ram(end->guest->adapter, SPARE_GPA, NICS_PAGES * PVR_PAGE_SIZE,
				      spare->va, true));
	for (uint32_t i = 0; i < NICS_PAGES; i++)
		gpa[i] = SPARE_GPA + i * PVR_PAGE_SIZE;
	req = fg_layout_request(&end->pd, fg_pdir(&end->guest->ram, 2, gpa, NICS_PAGES),
				PVR_PAGE_SHIFT, FG_USER_VA, 0, NICS_PAGES * PVR_PAGE_SIZE);
	expect_ok(fg_mr_destroy(&end->mr));
	expect_ok(fg_mr_create_as(&end->pd, &req, &end->mr));
	end->buf.va = spare->va;
}

TEST(nics, test_memory_without_rings_is_unplugged)
{
	struct spare spare;
	struct scene s;

	for (enum part part = 0; part < PARTS; part++) {
		if (part)
			env = t_renew(t_setup_nics);
		scene_init(&s, env, part);
		spare_plug(&spare, s.victim);
		s.host = s.env->b.mr;
		begin(&s);
		pvr_adapter_unmap_ram(s.victim->guest->adapter, SPARE_GPA,
				      NICS_PAGES * PVR_PAGE_SIZE);
		went(&s);
		check(&s);
		expect_copied_for_a_while(&s);
		free(spare.va);
	}
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

static const struct {
	const char *label;
	void (*event)(struct scene *s);
	bool lives;
} events[] = {
	{ "region is destroyed", destroy_region, true },
	{ "queue pair is reset", reset_qp, true },
	{ "queue pair goes to error", fail_qp, true },
	{ "queue pair is destroyed", destroy_qp, true },
	{ "memory is unplugged", unplug_ram, false },
	{ "adapter is reset", reset_adapter, false },
	{ "adapter fails", fail_adapter, false },
	{ "adapter may not use memory any more", forbid_dma, false },
	{ "adapter is destroyed", destroy_adapter, false },
};

TEST_CASES(nics, test_memory_goes_under_the_nics, events)
{
	struct scene s;

	for (enum part part = 0; part < PARTS; part++) {
		if (part)
			env = t_renew(t_setup_nics);
		scene_init(&s, env, part);
		begin(&s);
		row->event(&s);
		went(&s);
		check(&s);
		if (row->lives)
			expect_copied_for_a_while(&s);
	}
}

/* ---------------------------------------------------------------- windows, other memory */

TEST(nics, test_window_is_invalidated)
{
	static const enum part parts[] = { WRITE_TARGET, READ_SOURCE };
	struct scene s;

	for (unsigned int i = 0; i < 2; i++) {
		if (i)
			env = t_renew(t_setup_nics);
		scene_init(&s, env, parts[i]);
		expose_init(&s.l, env, PVR_MR_FLAG_MW2);
		s.l.bind.addr = s.l.region.start;
		s.l.bind.length = s.l.region.length;
		expose_bind(&s.l);
		s.host = s.l.region;
		s.host.rkey = s.l.mw.rkey;
		begin(&s);
		expose_invalidated(&s.l);
		went(&s);
		check(&s);
		expect_copied_for_a_while(&s);
	}
}

/* A window of type 1 that is bound to something else loses what it was bound to. */
TEST(nics, test_window_is_bound_anew)
{
	static const enum part parts[] = { WRITE_TARGET, READ_SOURCE };
	struct scene s;

	for (unsigned int i = 0; i < 2; i++) {
		if (i)
			env = t_renew(t_setup_nics);
		scene_init(&s, env, parts[i]);
		expose_init(&s.l, env, PVR_MR_FLAG_MW1);
		s.l.bind.addr = s.l.region.start;
		s.l.bind.length = s.l.region.length;
		expose_bind(&s.l);
		s.host = s.l.region;
		s.host.rkey = s.l.mw.rkey;
		begin(&s);
		s.l.bind.length = 4096;
		expose_bind(&s.l);
		went(&s);
		check(&s);
	}
}

/* ----------------------------------------------------- regions of kernel consumers */

#define FAST_PAGES 64u
#define FAST_ADDR 0x10000000ull

static struct fg_mr fast_create(struct scene *s)
{
	struct pvr_cmd_create_mr req = {
		.hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
		.pd_handle = s->victim->pd.handle,
		.flags = PVR_MR_FLAG_FRMR,
		.nchunks = FAST_PAGES,
	};
	struct fg_mr mr;

	expect_ok(fg_mr_create_as(&s->victim->pd, &req, &mr));
	mr.start = FAST_ADDR;
	return mr;
}

static void fast_register(struct scene *s, const struct fg_mr *mr)
{
	struct pvrdma_sq_wqe_hdr *wqe = expose_put(s->victim, 900, PVRDMA_WR_FAST_REG_MR, 0);

	memset(&wqe->wr, 0, sizeof(wqe->wr));
	wqe->wr.fast_reg.iova_start = FAST_ADDR;
	wqe->wr.fast_reg.pl_pdir_dma = s->victim->buf.pdir;
	wqe->wr.fast_reg.page_shift = PVR_PAGE_SHIFT;
	wqe->wr.fast_reg.page_list_len = FAST_PAGES;
	wqe->wr.fast_reg.length = FAST_PAGES * PVR_PAGE_SIZE;
	wqe->wr.fast_reg.access_flags = FG_ACCESS_ALL;
	wqe->wr.fast_reg.rkey = mr->rkey;
	fg_ring_send(&s->victim->qp);
	fg_wire_run(s->env->wire);
	expect_done(&s->victim->scq, 900, PVRDMA_WC_FAST_REG_MR);
}

TEST(nics, test_fast_region_is_invalidated)
{
	static const enum part parts[] = { WRITE_TARGET, READ_SOURCE };
	struct scene s;

	for (unsigned int i = 0; i < 2; i++) {
		if (i)
			env = t_renew(t_setup_nics);
		scene_init(&s, env, parts[i]);
		s.host = fast_create(&s);
		fast_register(&s, &s.host);
		begin(&s);
		expose_put(s.victim, 901, PVRDMA_WR_LOCAL_INV, s.host.rkey);
		fg_ring_send(&s.victim->qp);
		fg_wire_run(s.env->wire);
		expect_done(&s.victim->scq, 901, PVRDMA_WC_LOCAL_INV);
		went(&s);
		check(&s);
	}
}

/* The keys stay, and lead elsewhere: there all of it is. */
static void replaced(struct scene *s)
{
	struct pvr_cmd_create_mr req = fg_layout_request(
		&s->victim->pd, s->fresh.pdir, PVR_PAGE_SHIFT, FG_USER_VA, 0, s->fresh.size);
	struct pvr_resp_create_mr resp;

	req.flags |= PVR_MR_FLAG_REPLACE;
	req.mr_handle = s->victim->mr.handle;
	expect_ok(fg_create_mr(s->victim->guest, &req, &resp));
}

static void make_replaceable(struct scene *s)
{
	struct fg_end *victim = s->victim;
	struct pvr_cmd_create_mr req = fg_layout_request(
		&victim->pd, victim->buf.pdir, PVR_PAGE_SHIFT, FG_USER_VA, 0, victim->buf.size);

	expect_ok(fg_mr_destroy(&victim->mr));
	expect_ok(fg_mr_create_as(&victim->pd, &req, &victim->mr));
	fg_buf_init(&s->fresh, &victim->guest->ram, NICS_PAGES, FG_LINEAR);
	fg_fill(s->fresh.va, s->fresh.size, 5);
	s->host = s->env->b.mr;
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
		replaced(&s);
		went(&s);
		expect_cqe(&s.env->a.scq, 1, PVRDMA_WC_SUCCESS);
		expect_mark(s.victim);
		if (is_source(&s))
			assert_int_equal(fg_mismatch(s.other->buf.va, LEN, 5), LEN);
		else
			assert_int_equal(fg_mismatch(s.fresh.va, LEN, 2), LEN);
		assert_false(nics_are_up(s.env));
		expect_done(&s.c.scq, 9, PVRDMA_WC_RDMA_WRITE);
		expect_done(&s.d.scq, 9, PVRDMA_WC_RDMA_WRITE);
	}
}

/*
 * A finished read whose completion was not polled yet does not count for the next
 * request.
 */
TEST(nics, test_region_becomes_another_one_when_all_is_read)
{
	static const enum part parts[] = { WRITE_TARGET, READ_TARGET };
	struct scene s;

	for (unsigned int i = 0; i < 2; i++) {
		if (i)
			env = t_renew(t_setup_nics);
		scene_init(&s, env, parts[i]);
		make_replaceable(&s);
		begin(&s);
		nics_hold(s.env, FG_READS_GO);
		fg_wire_nics_work(s.env->wire);
		assert_true(fg_wire_nic(s.env->wire, victims_host(&s))->zerocopy_rx_bytes);
		replaced(&s);
		assert_int_equal(fg_wire_nic(s.env->wire, victims_host(&s))->stopped, 0);
		memset(s.victim->buf.va, MARK, s.victim->buf.size);
		fg_wire_settle(s.env->wire, FG_SEC);
		expect_cqe(&s.env->a.scq, 1, PVRDMA_WC_SUCCESS);
		assert_int_equal(fg_mismatch(s.fresh.va, LEN, 2), LEN);
		expect_mark(s.victim);
	}
}

/* A queue pair that is reset and reconnected during a read of its former incarnation. */
TEST(nics, test_queue_pair_begins_anew_when_all_is_read)
{
	struct scene s;

	scene_init(&s, env, WRITE_TARGET);
	begin(&s);
	nics_hold(s.env, FG_READS_GO);
	fg_wire_nics_work(s.env->wire);
	expect_ok(fg_qp_to_reset(&s.env->a.qp));
	expect_ok(fg_qp_to_reset(&s.env->b.qp));
	memset(s.env->b.buf.va, MARK, s.env->b.buf.size);
	fg_wire_settle(s.env->wire, FG_SEC);
	expect_mark(&s.env->b);
	fg_end_connect(&s.env->a, &s.env->b, NULL);
	transfer(s.env, &s.env->a, &s.env->b, 40);
	expect_done(&s.c.scq, 9, PVRDMA_WC_RDMA_WRITE);
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
