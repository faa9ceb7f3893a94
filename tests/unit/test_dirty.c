// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The log of dirty pages: each store of the device to guest memory is in it. */
#include "core/dirty.h"
#include "ends.h"
#include "nics.h"
#include "rdma/worker.h"
#include "transfer.h"

#include "fg_dirty.h"

#define ALL_EXT (PVR_ENGINE_EXT & ~(uint32_t)PVR_EXT_RESP_POLL)
#define PAGE ((uint64_t)PVR_PAGE_SIZE)

TEST_EXT(ALL_EXT)

static void log_both(struct t_env *env)
{
	fg_dirty_start(env->g[0]);
	fg_dirty_start(env->g[1]);
}

/* Takes the log of one page. */
static bool take(struct fg_guest *guest, uint64_t gpa)
{
	uint64_t bitmap = 0;

	assert_int_equal(
		pvr_adapter_take_dirty_log(guest->adapter, gpa & ~(PAGE - 1), PAGE, &bitmap), 0);
	return bitmap;
}

static bool take_buf(struct fg_guest *guest, const struct fg_buf *buf, uint64_t offset)
{
	return take(guest, fg_buf_gpa(buf, offset));
}

#define expect_dirty(guest, buf, offset) assert_true(take_buf(guest, buf, offset))
#define expect_clean(guest, buf, offset) assert_false(take_buf(guest, buf, offset))

static void expect_buf_clean(struct fg_end *end)
{
	for (uint64_t offset = 0; offset < end->buf.size; offset += PAGE)
		expect_clean(end->guest, &end->buf, offset);
}

/* ------------------------------------------------------------------------------ the log */

TEST_GUEST(guest, test_log_is_off_at_first)
{
	uint64_t bitmap = 0;

	assert_false(pvr_adapter_has_dirty_log(g->adapter));
	assert_int_equal(pvr_adapter_take_dirty_log(g->adapter, g->dsr_gpa, PAGE, &bitmap),
			 -ENOENT);
	pvr_adapter_stop_dirty_log(g->adapter);
}

TEST_GUEST(guest, test_log_starts_once_and_empty)
{
	fg_dirty_start(g);
	assert_int_equal(pvr_adapter_start_dirty_log(g->adapter), -EALREADY);
	fg_bind_gid(g, 1, (const uint8_t[16]){ 0xfe, 0x80, [15] = 9 });
	pvr_adapter_stop_dirty_log(g->adapter);
	assert_false(pvr_adapter_has_dirty_log(g->adapter));
	assert_int_equal(pvr_adapter_start_dirty_log(g->adapter), 0);
	assert_false(take(g, g->resp_gpa));
}

TEST_GUEST(guest, test_ranges_that_are_no_pages_are_refused)
{
	const uint64_t ranges[][2] = {
		{ 0, 0 }, { 1, PAGE }, { PAGE, 1 }, { -PAGE, 2 * PAGE }, { 0, -1ull },
	};
	uint64_t bitmap = 0;

	fg_dirty_start(g);
	for (size_t i = 0; i < COUNT(ranges); i++)
		assert_int_equal(
			pvr_adapter_take_dirty_log(g->adapter, ranges[i][0], ranges[i][1], &bitmap),
			-EINVAL);
	/* The last page of all addresses is no RAM, but can be asked for. */
	assert_int_equal(pvr_adapter_take_dirty_log(g->adapter, -PAGE, PAGE, &bitmap), 0);
	assert_int_equal(bitmap, 0);
}

TEST(rc_connected, test_report_takes_its_pages_and_no_others)
{
	fg_dirty_start(env->g[1]);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 3 * PAGE - 8, 16);
	fg_run(env->host);
	expect_dirty(env->g[1], &env->b.buf, 2 * PAGE);
	expect_clean(env->g[1], &env->b.buf, 2 * PAGE);
	expect_dirty(env->g[1], &env->b.buf, 3 * PAGE);
	expect_buf_clean(&env->b);
}

TEST(rc_connected, test_page_that_is_written_again_is_reported_again)
{
	fg_dirty_start(env->g[1]);
	for (uint64_t i = 1; i < 4; i++) {
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 0, 8);
		fg_run(env->host);
		expect_dirty(env->g[1], &env->b.buf, 0);
	}
}

#define RUN_PAGES 200u

/* The device writes every third page of the run at @gpa. */
static void write_every_third(struct fg_end *end, const struct fg_mr *dma, uint64_t gpa)
{
	for (uint64_t i = 0; i < RUN_PAGES; i += 3) {
		t_post(end, .wr_id = i, .opcode = PVRDMA_WR_RDMA_READ,
		       .sge = (const struct pvrdma_sge[]){ { gpa + i * PAGE, 8, dma->lkey } },
		       .num_sge = 1, T_REMOTE(&end->mr, 0));
		await_done(&end->scq, i, PVRDMA_WC_RDMA_READ);
	}
}

static void expect_third_bits(struct fg_guest *g, uint64_t gpa, uint64_t first, uint64_t n)
{
	uint64_t bitmap[RUN_PAGES / 64 + 2] = { 0 };

	assert_int_equal(
		pvr_adapter_take_dirty_log(g->adapter, gpa + first * PAGE, n * PAGE, bitmap), 0);
	for (uint64_t i = 0; i < COUNT(bitmap) * 64; i++)
		assert_int_equal(bitmap[i / 64] >> i % 64 & 1, i < n && (first + i) % 3 == 0);
}

/* Each part of the log's words, at each position in those of the caller. */
TEST_GUEST(guest, test_report_of_any_range_has_the_bits_of_its_pages)
{
	const uint64_t gpa = fg_page_gpa(&g->ram, fg_ram_get_run(&g->ram, RUN_PAGES));
	struct fg_end end;
	struct fg_mr dma;

	fg_end_open(&end, g, PVR_QPT_RC);
	fg_end_connect(&end, &end, NULL);
	expect_ok(fg_mr_create_dma(&end.pd, &dma));
	fg_dirty_start(g);
	for (uint64_t first = 0; first < RUN_PAGES; first += 37) {
		for (uint64_t n = 1; n <= RUN_PAGES - first; n += 29) {
			write_every_third(&end, &dma, gpa);
			expect_third_bits(g, gpa, first, n);
			fg_dirty_take(g, 0);
		}
	}
	expect_ok(fg_mr_destroy(&dma));
	fg_end_close(&end);
}

TEST_GUEST(guest, test_ram_that_is_mapped_later_is_in_the_log)
{
	struct fg_end end;
	struct fg_mr dma;
	uint64_t bitmap = 0;

	fg_dirty_start(g);
	t_plug_spare(g);
	fg_end_open(&end, g, PVR_QPT_RC);
	fg_end_connect(&end, &end, NULL);
	expect_ok(fg_mr_create_dma(&end.pd, &dma));
	t_post(&end, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_READ,
	       .sge = (const struct pvrdma_sge[]){ { T_SPARE_GPA + PAGE - 4, 8, dma.lkey } },
	       .num_sge = 1, T_REMOTE(&end.mr, 0));
	await_done(&end.scq, 1, PVRDMA_WC_RDMA_READ);
	assert_int_equal(
		pvr_adapter_take_dirty_log(g->adapter, T_SPARE_GPA - PAGE, 8 * PAGE, &bitmap), 0);
	assert_int_equal(bitmap, 6);
	t_unplug_spare(g);
	assert_false(take(g, T_SPARE_GPA));
	expect_ok(fg_mr_destroy(&dma));
	fg_end_close(&end);
}

/* QEMU removes a range to add its parts: its written pages stay in the log. */
TEST_GUEST(guest, test_log_of_unmapped_ram_stays)
{
	struct fg_end end;
	struct fg_mr dma;

	fg_dirty_start(g);
	fg_end_open(&end, g, PVR_QPT_RC);
	fg_end_connect(&end, &end, NULL);
	expect_ok(fg_mr_create_dma(&end.pd, &dma));
	for (uint32_t round = 0; round < 2 * PVR_RAM_GONE_MAX; round++) {
		t_plug_spare(g);
		t_post(&end, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_READ,
		       .sge = (const struct pvrdma_sge[]){ { T_SPARE_GPA + PAGE, 8, dma.lkey } },
		       .num_sge = 1, T_REMOTE(&end.mr, 0));
		await_done(&end.scq, 1, PVRDMA_WC_RDMA_READ);
		t_unplug_spare(g);
	}
	assert_false(take(g, T_SPARE_GPA));
	assert_true(take(g, T_SPARE_GPA + PAGE));
	assert_false(take(g, T_SPARE_GPA + PAGE));
	expect_ok(fg_mr_destroy(&dma));
	fg_end_close(&end);
}

static void write_to_region(struct fg_guest *guest, uint64_t pages)
{
	static uint8_t memory[(PVR_RAM_GONE_MAX + 1) * PVR_PAGE_SIZE]
		__attribute__((aligned(4096)));
	struct pvr_adapter *adapter = guest->adapter;

	assert_int_equal(pvr_adapter_map_ram(adapter, T_SPARE_GPA, pages * PAGE, memory, true), 0);
	pvr_adapter_lock(adapter);
	pvr_dirty(adapter, memory, 1);
	pvr_adapter_unlock(adapter);
	pvr_adapter_unmap_ram(adapter, T_SPARE_GPA, pages * PAGE);
}

TEST_GUEST(guest, test_report_fails_after_too_many_ranges_were_unmapped)
{
	uint64_t bitmap = 0;

	fg_dirty_start(g);
	for (uint64_t pages = 1; pages <= PVR_RAM_GONE_MAX; pages++)
		write_to_region(g, pages);
	assert_true(take(g, T_SPARE_GPA));
	write_to_region(g, PVR_RAM_GONE_MAX + 1);
	assert_int_equal(pvr_adapter_take_dirty_log(g->adapter, T_SPARE_GPA, PAGE, &bitmap),
			 -ENOBUFS);
	pvr_adapter_stop_dirty_log(g->adapter);
	fg_dirty_start(g);
	assert_false(take(g, T_SPARE_GPA));
}

TEST(rc_connected, test_reset_does_not_end_the_log)
{
	fg_dirty_start(env->g[0]);
	fg_ctl(env->g[0], PVR_CTL_RESET);
	assert_true(pvr_adapter_has_dirty_log(env->g[0]->adapter));
	fg_dirty_take(env->g[0], 0);
	fg_guest_boot(env->g[0]);
	assert_true(take(env->g[0], env->g[0]->dsr_gpa));
}

TEST(rc_connected, test_stopped_adapter_writes_no_page)
{
	t_recv(&env->b, 1, 0, 8);
	fg_run(env->host);
	fg_dirty_start(env->g[1]);
	assert_int_equal(pvr_adapter_stop(env->g[1]->adapter), 0);
	fg_dirty_take(env->g[1], 0);
	t_send(&env->a, 2, 0, 8);
	fg_run(env->host);
	expect_buf_clean(&env->b);
	expect_clean(env->g[1], &env->b.rcq.buf, 0);
	assert_int_equal(pvr_adapter_start(env->g[1]->adapter), 0);
	fg_settle(env->host, FG_SEC);
	expect_sent(&env->a, 2);
	expect_dirty(env->g[1], &env->b.buf, 0);
}

/* --------------------------------------------------------------------------- each store */

TEST(rc_connected, test_send_marks_payload_completions_and_indices)
{
	log_both(env);
	t_recv(&env->b, 1, PAGE, 8);
	t_send(&env->a, 2, 0, 8);
	await_sent(&env->a, 2);
	expect_recv(&env->b.rcq, 1, 8);
	expect_dirty(env->g[1], &env->b.buf, PAGE);
	expect_dirty(env->g[1], &env->b.rcq.buf, 0); /* prod_tail */
	expect_dirty(env->g[1], &env->b.rcq.buf, PAGE); /* the CQE */
	expect_dirty(env->g[1], &env->b.qp.buf, 0); /* cons_head of the receive queue */
	expect_dirty(env->g[0], &env->a.scq.buf, 0);
	expect_dirty(env->g[0], &env->a.scq.buf, PAGE);
	expect_dirty(env->g[0], &env->a.qp.buf, 0);
	expect_buf_clean(&env->a);
}

TEST(rc_connected, test_write_marks_all_pages_of_its_target)
{
	const uint32_t len = 9 * PAGE + 7;

	log_both(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, PAGE + 9, len);
	await_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	expect_clean(env->g[1], &env->b.buf, 0);
	for (uint64_t offset = PAGE; offset < 11 * PAGE; offset += PAGE)
		expect_dirty(env->g[1], &env->b.buf, offset);
	expect_buf_clean(&env->b);
	expect_buf_clean(&env->a);
}

TEST(rc_connected, test_read_marks_the_requesters_memory)
{
	log_both(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 2 * PAGE, &env->b.mr, 0, 2 * PAGE);
	await_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	expect_dirty(env->g[0], &env->a.buf, 2 * PAGE);
	expect_dirty(env->g[0], &env->a.buf, 3 * PAGE);
	expect_buf_clean(&env->a);
	expect_buf_clean(&env->b);
}

static void atomic(struct t_env *env, enum pvrdma_wr_opcode opcode, uint32_t wc_opcode)
{
	log_both(env);
	t_post(&env->a, .wr_id = 1, .opcode = opcode, T_SGE(&env->a.mr, 3 * PAGE, 8),
	       T_REMOTE(&env->b.mr, 2 * PAGE), .compare_add = 0, .swap = 7);
	await_done(&env->a.scq, 1, wc_opcode);
	expect_dirty(env->g[1], &env->b.buf, 2 * PAGE);
	expect_dirty(env->g[0], &env->a.buf, 3 * PAGE);
	expect_buf_clean(&env->a);
	expect_buf_clean(&env->b);
}

TEST(rc_connected, test_fetch_and_add_marks_both_words)
{
	atomic(env, PVRDMA_WR_ATOMIC_FETCH_AND_ADD, PVRDMA_WC_FETCH_ADD);
}

TEST(rc_connected, test_compare_and_swap_marks_both_words)
{
	memset(env->b.buf.va + 2 * PAGE, 0, 8);
	atomic(env, PVRDMA_WR_ATOMIC_CMP_AND_SWP, PVRDMA_WC_COMP_SWAP);
}

TEST(ud_ready, test_datagram_marks_grh_and_payload)
{
	log_both(env);
	/* The GRH has the end of a page, the payload the next one. */
	t_recv(&env->b, 1, 2 * PAGE - 40, 48);
	t_send_ud(&env->a, &env->b, 2, 0, 8);
	t_run_ud(env->host);
	expect_sent(&env->a, 2);
	expect_dirty(env->g[1], &env->b.buf, PAGE);
	expect_dirty(env->g[1], &env->b.buf, 2 * PAGE);
	expect_buf_clean(&env->b);
}

TEST(rc_connected, test_notification_marks_its_event_ring)
{
	fg_cq_arm(&env->b.rcq);
	fg_run(env->host);
	log_both(env);
	t_recv(&env->b, 1, 0, 8);
	t_send(&env->a, 2, 0, 8);
	await_sent(&env->a, 2);
	expect_dirty(env->g[1], &env->g[1]->cq_ring, 0);
	expect_dirty(env->g[1], &env->g[1]->cq_ring, PAGE);
	expect_clean(env->g[1], &env->g[1]->async_ring, 0);
}

TEST_GUEST(guest, test_async_event_marks_its_event_ring)
{
	fg_dirty_start(g);
	pvr_adapter_set_link(g->adapter, false);
	expect_dirty(g, &g->async_ring, 0);
	expect_dirty(g, &g->async_ring, PAGE);
}

TEST_GUEST(guest, test_command_marks_the_response_slot)
{
	struct fg_pd pd;

	fg_dirty_start(g);
	expect_ok(fg_pd_create(&g->kernel, &pd));
	assert_true(take(g, g->resp_gpa));
	assert_false(take(g, g->cmd_gpa));
	expect_ok(fg_pd_destroy(&pd));
}

TEST_GUEST(unprobed, test_probe_marks_the_shared_region)
{
	fg_dirty_start(g);
	expect_ok(fg_guest_boot(g));
	assert_true(take(g, g->dsr_gpa));
}

TEST(rc_connected, test_resized_cq_marks_its_new_ring)
{
	t_fill_cq(env, 1, 5);
	fg_dirty_start(env->g[1]);
	expect_ok(fg_cq_resize(&env->b.rcq, 2 * FG_END_CQE));
	expect_dirty(env->g[1], &env->b.rcq.buf, 0);
	expect_dirty(env->g[1], &env->b.rcq.buf, PAGE);
}

TEST(rc_connected, test_resized_srq_marks_its_new_ring)
{
	struct fg_srq srq;

	t_srq_use(&env->b, 16, &srq);
	t_srq_recv(&srq, 1, &env->b.mr, 0, 8);
	fg_run(env->host);
	fg_dirty_start(env->g[1]);
	expect_ok(fg_srq_resize(&srq, 64));
	expect_dirty(env->g[1], &srq.buf, 0);
	expect_dirty(env->g[1], &srq.buf, PAGE);
}

TEST(rc, test_new_queues_mark_the_words_of_doorbell_suppression)
{
	struct fg_qp qp;

	fg_dirty_start(env->g[0]);
	qp = t_qp_create(&env->a, (struct fg_qp_spec){ 0 });
	expect_dirty(env->g[0], &qp.buf, 0);
	expect_ok(fg_qp_destroy(&qp));
}

/* ------------------------------------------------------------------------- RDMA NICs */

#define NIC_LEN 200000u

static void expect_all_dirty(struct fg_end *end, uint64_t len)
{
	for (uint64_t offset = 0; offset < len; offset += PAGE)
		expect_dirty(end->guest, &end->buf, offset);
}

TEST(nics, test_nics_do_not_write_to_guest_memory_meanwhile)
{
	log_both(env);
	fg_wire_nic_since(env->wire, 0);
	fg_wire_nic_since(env->wire, 1);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, NIC_LEN);
	fg_wire_settle(env->wire, FG_SEC);
	expect_written(&env->a, 1);
	expect_all_dirty(&env->b, NIC_LEN);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 0, &env->b.mr, 0, NIC_LEN);
	fg_wire_settle(env->wire, FG_SEC);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_READ);
	expect_all_dirty(&env->a, NIC_LEN);
	assert_int_equal(fg_wire_nic(env->wire, 0)->read, 0);
	assert_int_equal(fg_wire_nic(env->wire, 1)->read, 0);
	assert_int_equal(fg_wire_nic(env->wire, 0)->read_own, 1);
	assert_int_equal(fg_wire_nic(env->wire, 1)->read_own, 1);
	/* Exposed memory is only read. */
	assert_int_equal(fg_wire_nic(env->wire, 0)->exposed, 1);
}

TEST(nics, test_nics_write_to_guest_memory_after_the_end_of_the_log)
{
	log_both(env);
	pvr_adapter_stop_dirty_log(env->g[1]->adapter);
	fg_wire_nic_since(env->wire, 1);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, NIC_LEN);
	fg_wire_settle(env->wire, FG_SEC);
	expect_written(&env->a, 1);
	assert_int_equal(fg_wire_nic(env->wire, 1)->read, 1);
}

/* The NIC may have written half of it. The rest comes by another connection, with marks. */
TEST(nics, test_start_ends_the_writes_of_nics)
{
	fg_fill(env->a.buf.va, NIC_LEN, 5);
	nics_hold(env, FG_READS_HALF);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, NIC_LEN);
	fg_wire_run(env->wire);
	assert_int_equal(fg_wire_nic(env->wire, 1)->read, 1);
	fg_dirty_start(env->g[1]);
	assert_int_equal(fg_wire_nic(env->wire, 1)->stopped, 1);
	nics_hold(env, FG_READS_GO);
	fg_wire_settle(env->wire, 30 * FG_SEC);
	expect_written(&env->a, 1);
	expect_all_dirty(&env->b, NIC_LEN);
	assert_int_equal(fg_mismatch(env->b.buf.va, NIC_LEN, 5), NIC_LEN);
	/* It was no fault of the guest. */
	assert_false(fg_logged(fg_wire_host(env->wire, 1), "guest freed memory"));
}
