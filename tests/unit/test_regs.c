// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Registers and BAR accesses. */
#include "objects.h"

TEST_GUEST(unprobed, test_version_is_20)
{
	assert_int_equal(fg_reg_read(g, PVR_REG_VERSION), 20);
}

TEST_GUEST(unprobed, test_mac_registers_hold_the_mac)
{
	const uint8_t *mac = g->config.mac;

	assert_int_equal(fg_reg_read(g, PVR_REG_MACL),
			 mac[0] | mac[1] << 8 | mac[2] << 16 | (uint32_t)mac[3] << 24);
	assert_int_equal(fg_reg_read(g, PVR_REG_MACH), mac[4] | mac[5] << 8);
}

TEST_GUEST(unprobed, test_extension_registers_announce_features)
{
	assert_int_equal(fg_reg_read(g, PVR_REG_EXT_MAGIC), PVR_EXT_MAGIC);
	assert_int_equal(fg_reg_read(g, PVR_REG_EXT_FEATURES), PVR_ENGINE_EXT);
}

TEST_GUEST(unprobed, test_ext_ack_is_cut_to_what_is_offered)
{
	fg_reg_write(g, PVR_REG_EXT_ACK, 0xffffffff);
	assert_int_equal(fg_reg_read(g, PVR_REG_EXT_ACK), PVR_ENGINE_EXT);
}

TEST_GUEST(unprobed, test_extensions_are_latched_by_dsrhigh)
{
	fg_reg_write(g, PVR_REG_EXT_ACK, PVR_EXT_NO_POLL_DB);
	assert_int_equal(fg_stats(g).features, 0);
	expect_ok(fg_guest_boot(g));
	assert_int_equal(fg_stats(g).features, PVR_EXT_NO_POLL_DB);
}

TEST_GUEST(unprobed, test_reset_clears_extensions)
{
	fg_reg_write(g, PVR_REG_EXT_ACK, PVR_EXT_NO_POLL_DB);
	expect_ok(fg_guest_boot(g));
	fg_ctl(g, PVR_CTL_RESET);
	assert_int_equal(fg_stats(g).features, 0);
	expect_ok(fg_guest_boot(g));
	assert_int_equal(fg_stats(g).features, 0);
}

TEST_GUEST(unprobed, test_extensions_are_off_for_a_stock_driver)
{
	expect_ok(fg_guest_boot(g));
	assert_int_equal(fg_stats(g).features, 0);
}

TEST_GUEST(unprobed, test_request_before_dsr_is_refused)
{
	fg_reg_write(g, PVR_REG_REQUEST, 0);
	assert_int_not_equal(fg_reg_read(g, PVR_REG_ERR), 0);
	assert_int_equal(g->irq[PVR_VEC_CMD], 0);
}

TEST_GUEST(unprobed, test_request_after_failed_dsr_is_refused)
{
	fg_dsr_write(g, FG_NOWHERE);
	fg_reg_write(g, PVR_REG_REQUEST, 0);
	assert_int_not_equal(fg_reg_read(g, PVR_REG_ERR), 0);
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(guest, test_request_after_reset_is_refused)
{
	fg_ctl(g, PVR_CTL_RESET);
	t_commands_refused(g);
	fg_run(env->host);
	expect_ok(fg_guest_boot(g));
	t_commands_work(g);
}

TEST_GUEST(guest, test_request_other_than_zero_runs_nothing)
{
	static const uint32_t values[] = { 1, 2, 0x80000000, 0xffffffff };
	struct pvr_cmd_create_pd req = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_PD) };

	memcpy(g->cmd_slot, &req, sizeof(req));
	for (size_t i = 0; i < COUNT(values); i++) {
		fg_reg_write(g, PVR_REG_REQUEST, values[i]);
		assert_int_not_equal(fg_reg_read(g, PVR_REG_ERR), 0);
		assert_int_equal(fg_stats(g).pds, 0);
	}
}

TEST_GUEST(unprobed, test_activate_before_dsr_is_refused)
{
	assert_int_not_equal(fg_ctl(g, PVR_CTL_ACTIVATE), 0);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_IDLE);
}

TEST_GUEST(guest, test_activate_twice_is_harmless)
{
	expect_ok(fg_ctl(g, PVR_CTL_ACTIVATE));
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_ACTIVE);
	assert_int_equal(fg_stats(g).gids, 1);
}

TEST_GUEST(unprobed, test_unquiesce_is_always_accepted)
{
	fg_dsr_fill(g);
	fg_dsr_write(g, g->dsr_gpa);
	expect_ok(fg_ctl(g, PVR_CTL_UNQUIESCE));
	expect_ok(fg_ctl(g, PVR_CTL_ACTIVATE));
	expect_ok(fg_ctl(g, PVR_CTL_UNQUIESCE));
	expect_ok(fg_ctl(g, PVR_CTL_UNQUIESCE));
}

TEST_GUEST(guest, test_unknown_ctl_is_refused)
{
	assert_int_not_equal(fg_ctl(g, 3), 0);
	assert_int_not_equal(fg_ctl(g, 0xffffffff), 0);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_ACTIVE);
	expect_ok(fg_ctl(g, PVR_CTL_ACTIVATE));
}

TEST_GUEST(guest, test_reset_makes_the_adapter_idle)
{
	fg_reg_write(g, PVR_REG_CTL, PVR_CTL_RESET);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_IDLE);
	assert_int_equal(fg_stats(g).driver_version, 0);
	assert_int_equal(fg_stats(g).gids, 0);
}

TEST_GUEST(unprobed, test_reset_before_dsr_is_harmless)
{
	fg_reg_write(g, PVR_REG_CTL, PVR_CTL_RESET);
	fg_reg_write(g, PVR_REG_CTL, PVR_CTL_RESET);
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(guest, test_imr_reads_back)
{
	static const uint32_t values[] = { 0xffffffff, 1, 2, 4, 7, 0x80000000, 0 };

	for (size_t i = 0; i < COUNT(values); i++) {
		fg_reg_write(g, PVR_REG_IMR, values[i]);
		assert_int_equal(fg_reg_read(g, PVR_REG_IMR), values[i]);
	}
}

TEST_GUEST(guest, test_imr_all_masked_raises_no_vector)
{
	fg_run(env->host);
	memset(g->irq, 0, sizeof(g->irq));
	fg_reg_write(g, PVR_REG_IMR, PVR_IMR_ALL_MASKED);
	t_commands_work(g);
	t_set_link(g, false);
	assert_int_equal(g->irq[PVR_VEC_CMD], 0);
	assert_int_equal(g->irq[PVR_VEC_ASYNC], 0);
}

TEST_GUEST(guest, test_icr_has_the_cause_and_is_cleared_by_reading)
{
	fg_reg_read(g, PVR_REG_ICR);
	t_commands_work(g);
	fg_run(env->host);
	assert_int_equal(fg_reg_read(g, PVR_REG_ICR), PVR_ICR_CMD);
	assert_int_equal(fg_reg_read(g, PVR_REG_ICR), 0);
	t_set_link(g, false);
	assert_int_equal(fg_reg_read(g, PVR_REG_ICR), PVR_ICR_ASYNC);
	assert_int_equal(fg_reg_read(g, PVR_REG_ICR), 0);
}

TEST_GUEST(guest, test_reads_of_wrong_size_are_all_ones)
{
	static const size_t sizes[] = { 1, 2, 3, 8, 16 };

	for (size_t i = 0; i < COUNT(sizes); i++) {
		uint8_t buf[17] = { 0 };

		pvr_adapter_regs_read(g->adapter, PVR_REG_VERSION, buf, sizes[i]);
		for (size_t k = 0; k < sizes[i]; k++)
			assert_int_equal(buf[k], 0xff);
		assert_int_equal(buf[sizes[i]], 0);
	}
}

TEST_GUEST(guest, test_unaligned_reads_are_all_ones)
{
	for (uint64_t offset = 1; offset < 4; offset++)
		assert_int_equal(fg_reg_read(g, offset), 0xffffffff);
}

TEST_GUEST(guest, test_reads_across_and_past_the_end_are_all_ones)
{
	static const uint64_t offsets[] = {
		PVR_BAR_REGS_SIZE - 3,
		PVR_BAR_REGS_SIZE - 1,
		PVR_BAR_REGS_SIZE,
		PVR_BAR_REGS_SIZE + 4,
		1ull << 32,
		UINT64_MAX - 3,
		UINT64_MAX,
	};

	for (size_t i = 0; i < COUNT(offsets); i++)
		assert_int_equal(fg_reg_read(g, offsets[i]), 0xffffffff);
}

TEST_GUEST(guest, test_last_byte_can_be_accessed)
{
	uint8_t byte = 0;

	pvr_adapter_regs_read(g->adapter, PVR_BAR_REGS_SIZE - 1, &byte, 1);
	assert_int_equal(byte, 0xff);
	pvr_adapter_regs_write(g->adapter, PVR_BAR_REGS_SIZE - 1, &byte, 1);
}

TEST_GUEST(guest, test_writes_of_wrong_size_are_ignored_and_counted)
{
	static const size_t sizes[] = { 1, 2, 3, 8, 16 };
	uint64_t before = fg_stats(g).bad_accesses;
	uint8_t reset[16] = { PVR_CTL_RESET };

	for (size_t i = 0; i < COUNT(sizes); i++)
		pvr_adapter_regs_write(g->adapter, PVR_REG_CTL, reset, sizes[i]);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_ACTIVE);
	assert_int_equal(fg_stats(g).bad_accesses - before, 5);
}

TEST_GUEST(guest, test_writes_past_the_end_are_ignored)
{
	uint64_t before = fg_stats(g).bad_accesses;

	fg_reg_write(g, PVR_BAR_REGS_SIZE + PVR_REG_CTL, PVR_CTL_RESET);
	fg_reg_write(g, (1ull << 32) + PVR_REG_CTL, PVR_CTL_RESET);
	fg_reg_write(g, UINT64_MAX, PVR_CTL_RESET);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_ACTIVE);
	assert_int_equal(fg_stats(g).bad_accesses - before, 3);
}

TEST_GUEST(guest, test_read_only_registers_ignore_writes)
{
	static const uint64_t regs[] = {
		PVR_REG_VERSION, PVR_REG_ERR,	    PVR_REG_MACL,
		PVR_REG_MACH,	 PVR_REG_EXT_MAGIC, PVR_REG_EXT_FEATURES,
	};

	for (size_t i = 0; i < COUNT(regs); i++) {
		uint32_t before = fg_reg_read(g, regs[i]);

		fg_reg_write(g, regs[i], ~before);
		assert_int_equal(fg_reg_read(g, regs[i]), before);
	}
}

/* Writes and reads with each size at each offset from @first up to @end. */
static void access_registers(struct pvr_adapter *adapter, uint64_t first, uint64_t end)
{
	uint8_t buf[16];

	for (uint64_t offset = first; offset < end; offset++) {
		for (size_t size = 0; size <= sizeof(buf); size++) {
			memset(buf, (int)(offset * 7 + size), sizeof(buf));
			pvr_adapter_regs_write(adapter, offset, buf, size);
			pvr_adapter_regs_read(adapter, offset, buf, size);
		}
	}
}

TEST_GUEST(guest, test_every_offset_and_size_of_the_registers_is_safe)
{
	struct pvr_adapter *adapter = g->adapter;

	access_registers(adapter, 0, 0x80);
	access_registers(adapter, PVR_BAR_REGS_SIZE - 16, PVR_BAR_REGS_SIZE + 16);
	fg_reg_write(g, PVR_REG_EXT_ACK, 0);
	expect_ok(fg_guest_boot(g));
}

static void write_uar(struct pvr_adapter *adapter, uint64_t first, uint64_t end)
{
	uint8_t buf[16];

	for (uint64_t offset = first; offset < end; offset++) {
		for (size_t size = 0; size <= sizeof(buf); size++) {
			memset(buf, (int)(offset % PVR_PAGE_SIZE * 5 + size), sizeof(buf));
			pvr_adapter_uar_write(adapter, offset, buf, size);
		}
	}
}

TEST_GUEST(guest, test_every_offset_and_size_of_the_uar_is_safe)
{
	struct pvr_adapter *adapter = g->adapter;

	for (uint64_t page = 0; page <= PVR_MAX_UAR; page += PVR_MAX_UAR / 4)
		write_uar(adapter, page * PVR_PAGE_SIZE, page * PVR_PAGE_SIZE + 32);
	write_uar(adapter, PVR_BAR_UAR_SIZE - 16, PVR_BAR_UAR_SIZE + 16);
	fg_uar_write(g, 0, UINT32_MAX - 3, 0xffffffff);
	pvr_adapter_uar_write(adapter, UINT64_MAX, &(uint32_t){ 0 }, 4);
	fg_run(env->host);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_ACTIVE);
}

TEST_GUEST(guest, test_uar_writes_of_wrong_size_are_counted)
{
	uint64_t before = fg_stats(g).bad_accesses;
	uint64_t value = 0;

	pvr_adapter_uar_write(g->adapter, 0, &value, 1);
	pvr_adapter_uar_write(g->adapter, 0, &value, 2);
	pvr_adapter_uar_write(g->adapter, 0, &value, 8);
	pvr_adapter_uar_write(g->adapter, 2, &value, 4);
	pvr_adapter_uar_write(g->adapter, PVR_BAR_UAR_SIZE, &value, 4);
	assert_int_equal(fg_stats(g).bad_accesses - before, 5);
}

TEST_GUEST(guest, test_commands_are_refused_without_bus_master)
{
	pvr_adapter_set_bus_master(g->adapter, false);
	t_commands_refused(g);
	pvr_adapter_set_bus_master(g->adapter, true);
	t_commands_work(g);
}

TEST_GUEST(unprobed, test_dsr_is_refused_without_bus_master)
{
	pvr_adapter_set_bus_master(g->adapter, false);
	fg_dsr_fill(g);
	fg_dsr_write(g, g->dsr_gpa);
	assert_false(fg_dsr_accepted(g));
	pvr_adapter_set_bus_master(g->adapter, true);
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(guest, test_function_level_reset_forgets_the_driver)
{
	pvr_adapter_reset(g->adapter);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_IDLE);
	pvr_adapter_set_bus_master(g->adapter, true);
	t_commands_refused(g);
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(guest, test_failed_adapter_is_unusable_until_reset)
{
	pvr_adapter_fail(g->adapter, "its memory was truncated");
	fg_run(env->host);
	assert_int_equal(fg_stats(g).state, PVR_ADAPTER_FAILED);
	t_commands_refused(g);
	assert_int_not_equal(fg_ctl(g, PVR_CTL_ACTIVATE), 0);
	fg_reg_write(g, PVR_REG_CTL, PVR_CTL_RESET);
	expect_ok(fg_guest_boot(g));
	t_commands_work(g);
}

TEST(guest, test_an_idle_engine_has_nothing_to_do)
{
	fg_run(env->host);
	assert_false(pvr_engine_run(env->host->engine, 0));
	assert_true(pvr_engine_deadline(env->host->engine, 0) == UINT64_MAX);
}
