// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_CQ_TIMESTAMP: the time of completions, and the clock of the device. */
#include "ends.h"
#include "objects.h"

TEST_EXT(PVR_ENGINE_EXT)

#define DAY (24ull * 3600 * FG_SEC)
#define WRAP (1ull << PVR_TIMESTAMP_BITS)

static uint64_t clock_of(struct fg_guest *g)
{
	uint32_t low = fg_reg_read(g, PVR_REG_EXT_CLOCK_LOW);

	return (uint64_t)fg_reg_read(g, PVR_REG_EXT_CLOCK_HIGH) << 32 | low;
}

/* The receive CQ of b gets timestamps. */
static void use_timestamps(struct t_env *env)
{
	struct fg_cq cq;

	expect_ok(fg_cq_create_timestamp(&env->g[1]->kernel, FG_END_CQE, &cq));
	t_qp_replace(&env->b, (struct fg_qp_spec){ .rcq = &cq });
	expect_ok(fg_cq_destroy(&env->b.rcq));
	env->b.rcq = cq;
}

T_SETUP(timestamps, guests)
{
	fg_end_open(&env->a, env->g[0], PVR_QPT_RC);
	fg_end_open(&env->b, env->g[1], PVR_QPT_RC);
	use_timestamps(env);
	fg_end_connect(&env->a, &env->b, NULL);
}

static struct pvrdma_cqe message(struct t_env *env)
{
	struct pvrdma_cqe cqe;

	t_recv(&env->b, 1, 0, 0);
	t_send(&env->a, 1, 0, 0);
	fg_run(env->host);
	fg_cq_drain(&env->a.scq);
	assert_true(fg_cq_poll(&env->b.rcq, &cqe));
	return cqe;
}

static uint64_t time_of_message(struct t_env *env)
{
	const struct pvrdma_cqe cqe = message(env);

	return fg_cqe_timestamp(&cqe);
}

TEST(timestamps, test_completion_has_the_time_of_the_clock)
{
	const uint64_t steps[] = { 0, 1, FG_SEC, DAY };

	for (size_t i = 0; i < COUNT(steps); i++) {
		fg_advance(env->host, steps[i]);
		assert_int_equal(time_of_message(env), clock_of(env->g[1]));
	}
	assert_int_equal(clock_of(env->g[1]), 1 + FG_SEC + DAY);
}

TEST(timestamps, test_completion_keeps_the_time_of_its_execution)
{
	struct pvrdma_cqe cqe;

	t_recv(&env->b, 1, 0, 0);
	t_send(&env->a, 1, 0, 0);
	fg_advance(env->host, 5);
	fg_advance(env->host, FG_SEC);
	assert_true(fg_cq_poll(&env->b.rcq, &cqe));
	assert_int_equal(fg_cqe_timestamp(&cqe), 5);
}

TEST(timestamps, test_flushed_completion_has_the_time)
{
	struct pvrdma_cqe cqe;

	t_recv(&env->b, 1, 0, 0);
	fg_advance(env->host, 77);
	t_qp_set_state(&env->b, PVR_QPS_ERR);
	fg_run(env->host);
	assert_true(fg_cq_poll(&env->b.rcq, &cqe));
	assert_int_equal(cqe.status, PVRDMA_WC_WR_FLUSH_ERR);
	assert_int_equal(fg_cqe_timestamp(&cqe), 77);
}

TEST(timestamps, test_timestamp_wraps_and_the_clock_does_not)
{
	env->host->now += WRAP + 12345;
	assert_int_equal(time_of_message(env), 12345);
	assert_int_equal(clock_of(env->g[1]), WRAP + 12345);
}

TEST(timestamps, test_resized_cq_keeps_timestamps)
{
	struct pvrdma_cqe cqe;

	fg_advance(env->host, 3);
	t_message(env, 0);
	fg_advance(env->host, 4);
	expect_ok(fg_cq_resize(&env->b.rcq, 2 * FG_END_CQE));
	assert_true(fg_cq_poll(&env->b.rcq, &cqe));
	assert_int_equal(fg_cqe_timestamp(&cqe), 3);
	assert_int_equal(time_of_message(env), 7);
}

/* The guest does not learn the uptime of the host. */
TEST(timestamps, test_clock_starts_with_the_adapter)
{
	struct fg_guest *late;

	fg_advance(env->host, DAY);
	late = t_guest_with_ext(env, 3, PVR_ENGINE_EXT);
	assert_int_equal(clock_of(late), 0);
	assert_int_equal(clock_of(env->g[1]), DAY);
}

TEST(timestamps, test_clock_goes_on_after_a_reset)
{
	fg_advance(env->host, FG_SEC);
	expect_ok(fg_guest_boot(env->g[1]));
	assert_int_equal(clock_of(env->g[1]), FG_SEC);
}

TEST(timestamps, test_high_half_is_that_of_the_low_half)
{
	struct fg_guest *g = env->g[1];

	env->host->now += UINT32_MAX;
	assert_int_equal(fg_reg_read(g, PVR_REG_EXT_CLOCK_HIGH), 0);
	assert_int_equal(fg_reg_read(g, PVR_REG_EXT_CLOCK_LOW), UINT32_MAX);
	env->host->now += 1;
	assert_int_equal(fg_reg_read(g, PVR_REG_EXT_CLOCK_HIGH), 0);
	assert_int_equal(fg_reg_read(g, PVR_REG_EXT_CLOCK_LOW), 0);
	assert_int_equal(fg_reg_read(g, PVR_REG_EXT_CLOCK_HIGH), 1);
}

TEST(timestamps, test_clock_is_read_only)
{
	fg_advance(env->host, 9);
	fg_reg_write(env->g[1], PVR_REG_EXT_CLOCK_LOW, 1);
	fg_reg_write(env->g[1], PVR_REG_EXT_CLOCK_HIGH, 1);
	assert_int_equal(clock_of(env->g[1]), 9);
}

/* ------------------------------------------------------------------------ bad input */

static uint32_t create_with(struct t_env *env, uint32_t flags)
{
	struct fg_guest *g = env->g[1];
	struct pvr_cmd_create_cq req;
	struct pvr_resp_create_cq resp;
	struct fg_buf buf;

	fg_buf_init(&buf, &g->ram, 2, FG_SCATTERED);
	req = fg_cq_request(&g->kernel, &buf, 64);
	req.flags = flags;
	return fg_create_cq(g, &req, &resp);
}

TEST(guests, test_unknown_flags_are_refused)
{
	for (uint32_t bit = 1; bit < 32; bit++) {
		assert_int_equal(create_with(env, 1u << bit), EINVAL);
		assert_int_equal(create_with(env, 1u << bit | PVR_CQ_TIMESTAMP), EINVAL);
	}
	expect_ok(create_with(env, PVR_CQ_TIMESTAMP));
}

TEST(rc_connected, test_cq_without_the_flag_has_no_timestamps)
{
	static const uint8_t zeros[6];
	struct pvrdma_cqe cqe;

	fg_advance(env->host, DAY);
	cqe = message(env);
	assert_memory_equal(cqe.reserved2, zeros, sizeof(zeros));
}

T_SETUP_EXT(without_extension, PVR_ENGINE_EXT & ~PVR_EXT_CQ_TIMESTAMP, timestamps)

/* Drivers without the extension leave anything there. */
TEST(without_extension, test_flags_are_ignored_without_the_extension)
{
	static const uint8_t zeros[6];
	struct pvrdma_cqe cqe;

	fg_advance(env->host, DAY);
	cqe = message(env);
	assert_memory_equal(cqe.reserved2, zeros, sizeof(zeros));
	expect_ok(create_with(env, UINT32_MAX));
}
