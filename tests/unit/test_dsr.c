// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device shared region: its handshake, its caps, and every bad way to place it. */
#include "objects.h"

static bool power_of_two(uint32_t x)
{
	return x && !(x & (x - 1));
}

TEST_GUEST(unprobed, test_dsrhigh_fills_the_caps_at_once)
{
	fg_dsr_fill(g);
	fg_reg_write(g, PVR_REG_DSRLOW, (uint32_t)g->dsr_gpa);
	assert_false(fg_dsr_accepted(g));
	fg_reg_write(g, PVR_REG_DSRHIGH, (uint32_t)(g->dsr_gpa >> 32));
	assert_true(fg_dsr_accepted(g));
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_READY);
	assert_int_equal(fg_stats(g).driver_version, 20);
	expect_ok(fg_ctl(g, PVR_CTL_ACTIVATE));
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_ACTIVE);
}

TEST_GUEST(guest, test_caps_suit_the_stock_driver)
{
	const struct pvr_caps *caps = &g->dsr->caps;

	assert_int_equal(caps->mode, PVR_MODE_ROCE);
	assert_int_equal(caps->gid_types, PVR_GID_TYPE_ROCE_V2);
	assert_true(power_of_two(caps->max_uar));
	assert_true(caps->max_uar <= PVR_MAX_UAR);
	assert_in_range(caps->max_qp, 2, 65535);
	assert_true(caps->max_qp_wr >= 512);
	assert_in_range(caps->max_sge, 2, 128);
	assert_true(caps->max_sge_rd >= 1);
	assert_true(caps->max_cq >= 2);
	assert_true(caps->max_cq <= 1u << 24);
	assert_true(caps->max_cqe >= 1024);
	assert_true(caps->max_mr >= 2);
	assert_in_range(caps->max_pd, 2, 1u << 24);
	assert_true(caps->max_ah >= 1);
	assert_true(caps->max_mr_size >= 1ull << 20);
	assert_true(caps->page_size_cap & PVR_PAGE_SIZE);
	assert_int_equal(caps->phys_port_cnt, 1);
	assert_true(caps->max_pkeys >= 1);
	assert_in_range(caps->gid_tbl_len, 1, 256);
	assert_true(caps->max_fast_reg_page_list_len <= 128);
	assert_true(caps->max_srq <= 1u << 24);
	assert_int_equal(caps->vendor_id, PVR_PCI_VENDOR_ID);
	assert_true(caps->node_guid != 0);
}

TEST_GUEST(guest, test_node_guid_is_made_from_the_mac)
{
	const uint8_t *guid = (const uint8_t *)&g->dsr->caps.node_guid;
	const uint8_t *mac = g->config.mac;

	assert_memory_equal(guid, mac, 3);
	assert_int_equal(guid[3] | guid[4], 0);
	assert_memory_equal(guid + 5, mac + 3, 3);
}

TEST_GUEST(unprobed, test_device_writes_nothing_but_the_caps)
{
	uint8_t before[PVR_PAGE_SIZE];

	fg_dsr_fill(g);
	memcpy(before, g->dsr, sizeof(before));
	fg_dsr_write(g, g->dsr_gpa);
	assert_memory_equal(g->dsr, before, offsetof(struct pvr_dsr, caps));
	assert_memory_equal((uint8_t *)g->dsr + sizeof(*g->dsr), before + sizeof(*g->dsr),
			    PVR_PAGE_SIZE - sizeof(*g->dsr));
}

TEST_GUEST(guest, test_caps_stay_as_they_are)
{
	struct pvr_caps before = g->dsr->caps;
	uint32_t pd;

	expect_ok(fg_create_pd(g, 0, &pd));
	t_commands_work(g);
	fg_run(env->host);
	assert_memory_equal(&g->dsr->caps, &before, sizeof(before));
}

TEST_GUEST(unprobed, test_dsrhigh_before_dsrlow_is_refused)
{
	fg_dsr_fill(g);
	fg_reg_write(g, PVR_REG_DSRHIGH, (uint32_t)(g->dsr_gpa >> 32));
	assert_false(fg_dsr_accepted(g));
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(guest, test_dsrhigh_twice_resets_all_objects)
{
	struct fg_end end;

	fg_end_open(&end, g, PVR_QPT_RC);
	fg_dsr_fill(g);
	fg_reg_write(g, PVR_REG_DSRHIGH, (uint32_t)(g->dsr_gpa >> 32));
	assert_true(fg_dsr_accepted(g));
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_READY);
	assert_int_equal(fg_stats(g).pds, 0);
	assert_int_equal(fg_stats(g).qps, 0);
	assert_int_equal(fg_stats(g).mrs, 0);
	assert_int_equal(fg_stats(g).cqs, 0);
	assert_int_equal(fg_stats(g).gids, 0);
	assert_int_equal(fg_qp_destroy(&end.qp), EINVAL);
	assert_int_equal(fg_pd_destroy(&end.pd), EINVAL);
}

TEST_GUEST(guest, test_bad_dsr_after_a_good_one_leaves_no_driver)
{
	fg_dsr_write(g, FG_MMIO_HOLE);
	t_commands_refused(g);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_IDLE);
}

TEST_CASES(unprobed, test_dsr_without_ram_is_refused, t_bad_gpa)
{
	t_dsr_refused(env->g[0], row->gpa);
}

TEST_GUEST(unprobed, test_dsr_at_the_end_of_the_address_space_is_refused)
{
	t_dsr_refused(g, UINT64_MAX - PVR_PAGE_SIZE + 1);
}

TEST_GUEST(unprobed, test_dsr_at_the_last_page_of_ram_works)
{
	uint32_t last = fg_ram_get_run(&g->ram, g->ram.npages - g->ram.linear_next) +
			g->ram.npages - g->ram.linear0 - 1;

	assert_int_equal(last, g->ram.npages - 1);
	g->dsr = fg_page_va(&g->ram, last);
	g->dsr_gpa = fg_page_gpa(&g->ram, last);
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(unprobed, test_dsr_across_the_end_of_ram_is_refused)
{
	const struct fg_ram_region *region = &g->ram.region[FG_RAM_REGIONS - 1];

	t_dsr_refused(g, region->gpa + region->size - 128);
	t_dsr_refused(g, region->gpa + region->size);
}

TEST_GUEST(unprobed, test_unaligned_dsr_is_refused)
{
	t_dsr_refused(g, g->dsr_gpa + 8);
	t_dsr_refused(g, g->dsr_gpa + 1);
}

TEST_GUEST(unprobed, test_dsr_in_read_only_memory_is_refused)
{
	uint8_t *rom = t_map_rom(g);

	fg_dsr_fill(g);
	memcpy(rom, g->dsr, PVR_PAGE_SIZE);
	fg_dsr_write(g, T_ROM_GPA);
	assert_memory_equal(rom, g->dsr, PVR_PAGE_SIZE);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_IDLE);
	expect_ok(fg_guest_boot(g));
}

TEST_CASES(unprobed, test_command_slot_without_ram_is_refused, t_bad_gpa)
{
	fg_dsr_fill(env->g[0]);
	env->g[0]->dsr->cmd_slot_dma = row->gpa;
	t_dsr_refused(env->g[0], env->g[0]->dsr_gpa);
}

TEST_CASES(unprobed, test_response_slot_without_ram_is_refused, t_bad_gpa)
{
	fg_dsr_fill(env->g[0]);
	env->g[0]->dsr->resp_slot_dma = row->gpa;
	t_dsr_refused(env->g[0], env->g[0]->dsr_gpa);
}

TEST_GUEST(unprobed, test_unaligned_slots_are_refused)
{
	static const uint32_t offset[] = { 1, 4000 };

	fg_dsr_fill(g);
	for (size_t i = 0; i < COUNT(offset); i++) {
		g->dsr->cmd_slot_dma = g->cmd_gpa + offset[i];
		t_dsr_refused(g, g->dsr_gpa);
		g->dsr->resp_slot_dma = g->resp_gpa + offset[i];
		t_dsr_refused(g, g->dsr_gpa);
	}
}

TEST_GUEST(unprobed, test_read_only_response_slot_is_refused)
{
	t_map_rom(g);
	fg_dsr_fill(g);
	g->dsr->resp_slot_dma = T_ROM_GPA;
	t_dsr_refused(g, g->dsr_gpa);
}

TEST_GUEST(unprobed, test_one_page_for_both_slots_is_refused)
{
	fg_dsr_fill(g);
	g->dsr->resp_slot_dma = g->cmd_gpa;
	t_dsr_refused(g, g->dsr_gpa);
}

TEST_GUEST(unprobed, test_slots_may_lie_in_the_dsr_page)
{
	fg_dsr_fill(g);
	g->dsr->cmd_slot_dma = g->dsr_gpa;
	g->dsr->resp_slot_dma = g->dsr_gpa;
	fg_dsr_write(g, g->dsr_gpa);
	fg_reg_write(g, PVR_REG_REQUEST, 0);
	fg_reg_write(g, PVR_REG_REQUEST, 0);
	fg_run(env->host);
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(guest, test_guest_changing_the_dsr_later_changes_nothing)
{
	uint32_t pd;

	memset(g->dsr, 0xff, PVR_PAGE_SIZE);
	t_commands_work(g);
	expect_ok(fg_create_pd(g, 0, &pd));
	t_set_link(g, false);
	expect_one_event(g, PVR_EVENT_PORT_ERR, 1);
}

TEST_GUEST(unprobed, test_driver_of_an_older_version_is_served)
{
	for (uint32_t version = 18; version <= 21; version++) {
		g->config.driver_version = version;
		expect_ok(fg_guest_boot(g));
		assert_int_equal(fg_stats(g).driver_version, version);
		t_commands_work(g);
	}
}

TEST_GUEST(unprobed, test_upper_half_of_uar_pfn_is_ignored_below_version_19)
{
	struct fg_ctx ctx;

	g->config.driver_version = 18;
	fg_dsr_fill(g);
	g->dsr->uar_pfn |= 0xdeadull << 32;
	fg_dsr_write(g, g->dsr_gpa);
	assert_true(fg_dsr_accepted(g));
	expect_ok(fg_ctl(g, PVR_CTL_ACTIVATE));
	expect_ok(fg_ctx_create(g, &ctx));
}

TEST_GUEST(unprobed, test_reserved_dsr_fields_are_ignored)
{
	fg_dsr_fill(g);
	g->dsr->pad = 0xffffffff;
	g->dsr->gos_info = 0xffffffff;
	g->dsr->gos_pad = 0xffffffff;
	g->dsr->async_ring.reserved = 0xffffffff;
	g->dsr->cq_ring.reserved = 0xffffffff;
	fg_dsr_write(g, g->dsr_gpa);
	assert_true(fg_dsr_accepted(g));
	expect_ok(fg_ctl(g, PVR_CTL_ACTIVATE));
}

TEST_GUEST(guest, test_ram_of_the_shared_region_may_vanish)
{
	for (int i = 0; i < FG_RAM_REGIONS; i++)
		pvr_adapter_unmap_ram(g->adapter, g->ram.region[i].gpa, g->ram.region[i].size);
	t_commands_refused(g);
	t_set_link(g, false);
	for (int i = 0; i < FG_RAM_REGIONS; i++)
		expect_ok((uint32_t)pvr_adapter_map_ram(g->adapter, g->ram.region[i].gpa,
							g->ram.region[i].size, g->ram.region[i].va,
							true));
	fg_reg_write(g, PVR_REG_CTL, PVR_CTL_RESET);
	expect_ok(fg_guest_boot(g));
	t_commands_work(g);
}

/* ------------------------------------------- RAM that is removed under one page */

/* Each makes one page of the shared region, or of a ring, the first page of t_spare. */
static void place_dsr(struct fg_guest *g)
{
	g->dsr = (struct pvr_dsr *)t_spare;
	g->dsr_gpa = T_SPARE_GPA;
}

static void place_command(struct fg_guest *g)
{
	g->cmd_slot = t_spare;
	g->cmd_gpa = T_SPARE_GPA;
}

static void place_response(struct fg_guest *g)
{
	g->resp_slot = t_spare;
	g->resp_gpa = T_SPARE_GPA;
}

static void place_async_header(struct fg_guest *g)
{
	fg_buf_table(&g->async_ring, 0)[0] = T_SPARE_GPA;
}

static void place_async_slots(struct fg_guest *g)
{
	fg_buf_table(&g->async_ring, 0)[1] = T_SPARE_GPA;
}

static void place_cq_header(struct fg_guest *g)
{
	fg_buf_table(&g->cq_ring, 0)[0] = T_SPARE_GPA;
}

static void place_cq_slots(struct fg_guest *g)
{
	fg_buf_table(&g->cq_ring, 0)[1] = T_SPARE_GPA;
}

/* The driver gives vector 1 a ring after its probe. */
static uint32_t vector_page;

static void place_vector_header(struct fg_guest *g)
{
	g->config.ext |= PVR_EXT_CQ_VECTORS;
	vector_page = 0;
}

static void place_vector_slots(struct fg_guest *g)
{
	g->config.ext |= PVR_EXT_CQ_VECTORS;
	vector_page = 1;
}

static void open_vector(struct fg_guest *g)
{
	struct pvr_cmd_set_cq_ring req;
	struct fg_buf buf;
	uint64_t page;

	if (!(g->config.ext & PVR_EXT_CQ_VECTORS))
		return;
	fg_buf_init(&buf, &g->ram, 4, FG_SCATTERED);
	page = fg_buf_table(&buf, 0)[vector_page];
	fg_buf_table(&buf, 0)[vector_page] = T_SPARE_GPA;
	req = fg_cq_ring_request(1, &buf);
	expect_ok(fg_cmd(g, &req, sizeof(req), NULL, 0));
	fg_buf_table(&buf, 0)[vector_page] = page;
	fg_buf_exit(&buf);
}

static const struct {
	const char *label;
	void (*place)(struct fg_guest *g);
} pages_of_device[] = {
	{ "DSR", place_dsr },
	{ "command slot", place_command },
	{ "response slot", place_response },
	{ "header of the async ring", place_async_header },
	{ "slots of the async ring", place_async_slots },
	{ "header of the CQ ring", place_cq_header },
	{ "slots of the CQ ring", place_cq_slots },
	{ "header of the ring of vector 1", place_vector_header },
	{ "slots of the ring of vector 1", place_vector_slots },
};

TEST_CASES(unprobed, test_ram_of_one_page_of_the_device_is_removed, pages_of_device)
{
	struct fg_guest *g = env->g[0];
	uint64_t async[2], cq[2];

	memcpy(async, fg_buf_table(&g->async_ring, 0), sizeof(async));
	memcpy(cq, fg_buf_table(&g->cq_ring, 0), sizeof(cq));
	memset(t_spare, 0, sizeof(t_spare));
	t_plug_spare(g);
	row->place(g);
	expect_ok(fg_guest_boot(g));
	open_vector(g);
	t_commands_work(g);
	t_unplug_spare(g);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_FAILED);
	t_commands_refused(g);
	memset(t_spare, 0xa5, sizeof(t_spare));
	fg_reg_write(g, PVR_REG_REQUEST, 0);
	t_set_link(g, false);
	fg_run(env->host);
	for (size_t i = 0; i < sizeof(t_spare); i++)
		assert_int_equal(t_spare[i], 0xa5);
	memcpy(fg_buf_table(&g->async_ring, 0), async, sizeof(async));
	memcpy(fg_buf_table(&g->cq_ring, 0), cq, sizeof(cq));
}
