// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* All implementations of copying, alone and under messages, and the choice between them. */
#include "ends.h"
#include "core/copy.h"
#include "core/adapter.h"

#define AREA (80u << 10)

static uint8_t from[AREA], to[AREA], expected[AREA];

TEST_PLAIN(test_implementations_copy_all_bytes_and_no_others)
{
	static const uint32_t lengths[] = { 1024, 1025, 1087, 1151, 1152,  1279,  1280,
					    2047, 4095, 4096, 4097, 65535, 65536, 70001 };

	for (size_t w = 0; w < PVR_COPY_IMPLS; w++) {
		if (!pvr_copy_impls[w].works()) {
			print_message("%s: not on this CPU\n", pvr_copy_impls[w].name);
			continue;
		}
		for (size_t i = 0; i < COUNT(lengths) * 64; i++) {
			uint32_t len = lengths[i / 64], src = i % 8 * 9, dst = i / 8 % 8 * 9;

			fg_fill(from, sizeof(from), i);
			fg_fill(to, sizeof(to), i + 1);
			memcpy(expected, to, sizeof(to));
			memcpy(expected + dst, from + src, len);
			pvr_copy_impls[w].copy(to + dst, from + src, len);
			assert_memory_equal(to, expected, sizeof(to));
		}
	}
}

TEST_PLAIN(test_overlapping_runs_are_moved)
{
	static const int32_t distances[] = { 0,	    1,	  -1,	 7,    -8,    64,
					     -64,   255,  -256,	 1023, -1024, 3000,
					     -4095, 4096, -4096, 5000, -5000 };
	static const uint32_t lengths[] = { 100, 1024, 4096, 5000, 20000 };
	const uint32_t start = 10000;

	for (size_t w = 0; w < PVR_COPY_IMPLS; w++) {
		if (!pvr_copy_impls[w].works())
			continue;
		for (size_t i = 0; i < COUNT(distances) * COUNT(lengths); i++) {
			int32_t distance = distances[i / COUNT(lengths)];
			uint32_t len = lengths[i % COUNT(lengths)];

			fg_fill(to, sizeof(to), i);
			memcpy(expected, to, sizeof(to));
			memmove(expected + start + distance, expected + start, len);
			pvr_copy_run(&pvr_copy_impls[w], to + start + distance, to + start, len);
			assert_memory_equal(to, expected, sizeof(to));
		}
	}
}

/* Copying that looks whether the byte is still 0 that must be written later, when all else is there. */
static const uint8_t *watched;
static unsigned int copies, piggyback;

static void copy_watching(void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	piggyback += *watched != 0;
	copies++;
}

static const struct pvr_copy_impl watching = { .name = "watching", .copy = copy_watching };

TEST_PLAIN(test_last_bytes_are_stored_last)
{
	static const uint32_t lengths[] = { 1032, 1033, 1034, 1036, 1040, 2047, 4096, 5003 };

	for (size_t i = 0; i < COUNT(lengths) * 8; i++) {
		uint32_t len = lengths[i / 8], dst = i % 8, end = dst + len, tail;

		tail = end % 8 == 0 ? 8 : end % 4 == 0 ? 4 : end % 2 == 0 ? 2 : 1;
		fg_fill(from, sizeof(from), i);
		/*
		 * A poller reads the last aligned bytes as one number: each of them is
		 * stored at once.
		 */
		for (uint32_t last = 1; last <= tail; last++) {
			memset(to, 0, sizeof(to));
			from[len - last] |= 1;
			watched = to + end - last;
			copies = piggyback = 0;
			pvr_copy_last(&watching, to + dst, from, len);
			assert_int_equal(copies, 1);
			assert_int_equal(piggyback, 0);
			assert_memory_equal(to + dst, from, len);
			assert_int_equal(to[end], 0);
		}
	}
}

TEST_PLAIN(test_short_and_overlapping_messages_end_right)
{
	const uint32_t start = 100;

	for (uint32_t len = 0; len <= 70; len++) {
		for (int32_t distance = -40; distance <= 40; distance++) {
			fg_fill(to, 300, len);
			memcpy(expected, to, 300);
			memmove(expected + start + distance, expected + start, len);
			pvr_copy_last(&pvr_copy_impls[0], to + start + distance, to + start, len);
			assert_memory_equal(to, expected, 300);
		}
	}
}

/* Make the engine copy with this implementation in all size classes. */
static void force(struct t_env *env, const struct pvr_copy_impl *impl)
{
	for (int i = 0; i < PVR_COPY_CLASSES; i++)
		env->host->engine->copy.impl[i] = impl;
}

/* A WRITE from a to b, then a READ of it back to elsewhere in a. */
static void there_and_back(struct t_env *env, uint32_t offset, uint32_t far, uint32_t len)
{
	fg_fill(env->a.buf.va, env->a.buf.size, len);
	memset(env->b.buf.va, 0, env->b.buf.size);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, offset, &env->b.mr, far, len);
	await_written(&env->a, 1);
	assert_memory_equal(env->b.buf.va + far, env->a.buf.va + offset, len);
	for (size_t i = 0; i < env->b.buf.size; i++)
		if (i < far || i >= far + len)
			assert_int_equal(env->b.buf.va[i], 0);
	memset(env->a.buf.va, 0, env->a.buf.size);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, offset, &env->b.mr, far, len);
	await_done(&env->a.scq, 2, PVRDMA_WC_RDMA_READ);
	assert_memory_equal(env->a.buf.va + offset, env->b.buf.va + far, len);
}

/* Of a message, too, in one run and in several. */
TEST(rc_connected, test_messages_end_with_their_last_bytes)
{
	static const uint32_t lengths[] = { 4000, 20000, 65536 - 96 };

	force(env, &watching);
	for (size_t i = 0; i < COUNT(lengths); i++) {
		fg_fill(env->a.buf.va, env->a.buf.size, i);
		memset(env->b.buf.va, 0, env->b.buf.size);
		env->a.buf.va[lengths[i] - 1] = 1;
		watched = env->b.buf.va + 96 + lengths[i] - 1;
		copies = piggyback = 0;
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 96, lengths[i]);
		await_written(&env->a, 1);
		assert_true(copies > 0);
		assert_int_equal(piggyback, 0);
		assert_int_equal(*watched, 1);
	}
}

TEST(rc_connected, test_messages_of_scattered_pages)
{
	static const uint32_t cases[][3] = {
		{ 0, 0, 65536 },    { 0, 4096, 20480 }, { 100, 100, 40000 }, { 1, 4095, 30000 },
		{ 4095, 1, 8192 },  { 2048, 0, 16384 }, { 5, 3000, 16385 },  { 0, 0, 4096 },
		{ 4000, 4000, 96 }, { 4090, 3, 1030 },	{ 60000, 1, 5536 },  { 0, 0, 1024 },
	};

	for (size_t w = 0; w < PVR_COPY_IMPLS; w++) {
		if (!pvr_copy_impls[w].works())
			continue;
		force(env, &pvr_copy_impls[w]);
		for (size_t i = 0; i < COUNT(cases); i++)
			there_and_back(env, cases[i][0], cases[i][1], cases[i][2]);
	}
}

/* Both ends name the same memory: the message is that before any of it was written. */
TEST(rc_loopback, test_messages_within_one_buffer_may_overlap)
{
	struct fg_buf buf;
	struct fg_mr mr, host;

	fg_buf_init(&buf, &env->g[0]->ram, 16, FG_LINEAR);
	expect_ok(fg_mr_create(&env->a.pd, &buf, FG_ACCESS_ALL, &mr));
	expect_ok(fg_mr_create(&env->b.pd, &buf, FG_ACCESS_ALL, &host));
	for (size_t w = 0; w < PVR_COPY_IMPLS; w++) {
		if (!pvr_copy_impls[w].works())
			continue;
		force(env, &pvr_copy_impls[w]);
		for (int32_t distance = -8000; distance <= 8000; distance += 1000) {
			fg_fill(buf.va, buf.size, w);
			memcpy(expected, buf.va, buf.size);
			memmove(expected + 8192 + distance, expected + 8192, 30000);
			t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE,
			       T_SGE(&mr, 8192, 30000), T_REMOTE(&host, 8192 + distance));
			await_written(&env->a, 1);
			assert_memory_equal(buf.va, expected, buf.size);
		}
	}
}

/* ------------------------------------------------------------------- lanes */

TEST_PLAIN(test_lanes_copy_all_bytes_and_no_others)
{
	pvr_copy_lanes *lanes = pvr_copy_lanes_of_cpu();
	const void *src[PVR_COPY_LANES];
	void *dst[PVR_COPY_LANES];

	if (!lanes)
		t_skip("this CPU has no lanes");
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t len = (1 + i % 8) * PVR_COPY_BLOCK;

		fg_fill(from, sizeof(from), i);
		fg_fill(to, sizeof(to), i + 1);
		memcpy(expected, to, sizeof(to));
		for (uint32_t lane = 0; lane < PVR_COPY_LANES; lane++) {
			src[lane] = from + lane * 5000 + i % 5;
			dst[lane] = to + (PVR_COPY_LANES - lane) * 6000 + i % 7;
			memcpy(expected + (PVR_COPY_LANES - lane) * 6000 + i % 7, src[lane], len);
		}
		lanes(dst, src, len);
		assert_memory_equal(to, expected, sizeof(to));
	}
}

/* Copies by lanes, and counts. */
static unsigned int batches;

static void counting_lanes(void *const dst[PVR_COPY_LANES], const void *const src[PVR_COPY_LANES],
			   size_t len)
{
	assert_int_equal(len % PVR_COPY_BLOCK, 0);
	for (unsigned int lane = 0; lane < PVR_COPY_LANES; lane++)
		memcpy(dst[lane], src[lane], len);
	batches++;
}

static void use_lanes(struct t_env *env, pvr_copy_lanes *lanes)
{
	env->host->engine->copy.lanes = lanes;
}

static void forget_destinations(struct t_env *env)
{
	for (unsigned int i = 0; i < 2; i++)
		env->g[i]->adapter->copy_recent = (struct pvr_copy_recent){ .next = 0 };
}

/* The batches are those of a WRITE and of a READ. */
TEST(rc_connected, test_cold_messages_of_scattered_pages)
{
	static const uint32_t cases[][4] = {
		/* offset, at the other end, length, batches */
		{ 0, 0, 65536, 8 },    { 0, 4096, 20480, 2 }, { 100, 100, 40000, 4 },
		{ 1, 4095, 30000, 0 }, { 2048, 0, 16385, 4 }, { 5, 3000, 60000, 14 },
		{ 0, 8192, 16384, 0 }, { 4096, 0, 16385, 2 }, { 4096, 12288, 49152, 6 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		batches = 0;
		forget_destinations(env);
		use_lanes(env, counting_lanes);
		there_and_back(env, cases[i][0], cases[i][1], cases[i][2]);
		assert_int_equal(batches, cases[i][3]);
		forget_destinations(env);
		use_lanes(env, pvr_copy_lanes_of_cpu());
		there_and_back(env, cases[i][0], cases[i][1], cases[i][2]);
	}
}

TEST(rc_connected, test_destination_of_the_last_messages_is_not_cold)
{
	use_lanes(env, counting_lanes);
	for (unsigned int i = 0; i < 3; i++) {
		batches = 0;
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 65536);
		await_written(&env->a, 1);
		assert_int_equal(batches, i ? 0 : 4);
	}
}

TEST_PLAIN(test_recent_destinations_are_the_last_ones)
{
	struct pvr_copy_recent recent = { .next = 0 };

	for (unsigned int i = 0; i < PVR_COPY_RECENT; i++)
		assert_false(pvr_copy_note(&recent, from + i));
	for (unsigned int i = 0; i < PVR_COPY_RECENT; i++)
		assert_true(pvr_copy_note(&recent, from + i));
	assert_false(pvr_copy_note(&recent, to));
	assert_false(pvr_copy_note(&recent, from));
	assert_true(pvr_copy_note(&recent, to));
}

static const uint8_t *watched_by_lanes;

static void watching_lanes(void *const dst[PVR_COPY_LANES], const void *const src[PVR_COPY_LANES],
			   size_t len)
{
	counting_lanes(dst, src, len);
	piggyback += *watched_by_lanes != 0;
}

TEST(rc_connected, test_cold_messages_end_with_their_last_bytes)
{
	use_lanes(env, watching_lanes);
	force(env, &watching);
	fg_fill(env->a.buf.va, env->a.buf.size, 1);
	memset(env->b.buf.va, 0, env->b.buf.size);
	env->a.buf.va[65535] = 1;
	watched = watched_by_lanes = env->b.buf.va + 65535;
	batches = piggyback = 0;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 65536);
	await_written(&env->a, 1);
	assert_int_equal(batches, 4);
	assert_int_equal(piggyback, 0);
	assert_int_equal(*watched, 1);
}

/* Pages of a message that are also pages of its destination are copied one after the other. */
TEST(rc_loopback, test_cold_messages_that_overlap_use_no_lanes)
{
	struct fg_mr host;

	use_lanes(env, counting_lanes);
	expect_ok(fg_mr_create(&env->b.pd, &env->a.buf, FG_ACCESS_ALL, &host));
	fg_fill(env->a.buf.va, env->a.buf.size, 1);
	memcpy(expected, env->a.buf.va, 65536);
	batches = 0;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 4096, &host, 0, 32768);
	await_written(&env->a, 1);
	assert_int_equal(batches, 0);
	assert_memory_equal(env->a.buf.va, expected + 4096, 32768);
}

/* ----------------------------------------------------------------- choice */

/* A clock by which implementations take so long, in the order in which they are tried. */
struct clock {
	const uint64_t *ns; /* one per implementation that works; NULL: it stands still */
	uint64_t now, looks;
	uint64_t busy; /* the first trials of any implementation take 5 us more */
};

static uint64_t look(void *opaque)
{
	struct clock *clock = opaque;
	uint64_t impls = 0, look = clock->looks++;

	for (size_t w = 0; w < PVR_COPY_IMPLS; w++)
		impls += pvr_copy_impls[w].works();
	if (clock->ns && look % 2)
		clock->now += clock->ns[look / 2 % impls] + (look / 2 < clock->busy ? 5000 : 0);
	return clock->now;
}

static const struct pvr_copy_impl *choice_of(struct clock clock, unsigned int class)
{
	struct pvr_copy copy;

	pvr_copy_init(&copy);
	pvr_copy_measure(&copy, look, &clock);
	return copy.impl[class];
}

static const struct pvr_copy_impl *choice(const uint64_t *ns, unsigned int class)
{
	return choice_of((struct clock){ .ns = ns }, class);
}

TEST_PLAIN(test_library_is_chosen_unless_another_is_clearly_faster)
{
	static const uint64_t same[] = { 1000, 1000, 1000, 1000 };
	static const uint64_t hardly[] = { 1000, 990, 975, 971 };
	static const uint64_t second[] = { 1000, 900, 5000, 5000 };

	for (unsigned int class = 0; class < PVR_COPY_CLASSES; class ++) {
		assert_ptr_equal(choice(NULL, class), &pvr_copy_impls[0]);
		assert_ptr_equal(choice(same, class), &pvr_copy_impls[0]);
		assert_ptr_equal(choice(hardly, class), &pvr_copy_impls[0]);
		if (pvr_copy_impls[1].works())
			assert_ptr_equal(choice(second, class), &pvr_copy_impls[1]);
	}
}

TEST_PLAIN(test_lanes_are_used_after_the_measurement)
{
	struct clock clock = { .now = 0 };
	struct pvr_copy copy;

	pvr_copy_init(&copy);
	assert_null(copy.lanes);
	pvr_copy_measure(&copy, look, &clock);
	assert_ptr_equal(copy.lanes, pvr_copy_lanes_of_cpu());
}

TEST_PLAIN(test_fastest_is_chosen)
{
	static const uint64_t ns[] = { 1000, 800, 700, 600 };
	const struct pvr_copy_impl *last = NULL;

	for (size_t w = 0; w < PVR_COPY_IMPLS; w++)
		if (pvr_copy_impls[w].works())
			last = &pvr_copy_impls[w];
	assert_ptr_equal(choice(ns, 0), last);
	assert_ptr_equal(choice(ns, 1), last);
}

/* As long as each implementation has some rounds to itself. */
TEST_PLAIN(test_cpu_load_does_not_change_the_choice)
{
	static const uint64_t same[] = { 1000, 1000, 1000, 1000 };
	const uint64_t most = (PVR_COPY_ROUNDS - 1) * 2;

	for (uint64_t busy = 0; busy <= most; busy++)
		assert_ptr_equal(choice_of((struct clock){ .ns = same, .busy = busy }, 0),
				 &pvr_copy_impls[0]);
}

TEST_PLAIN(test_short_and_long_messages_each_have_an_implementation)
{
	struct pvr_copy copy = { .impl = { &pvr_copy_impls[2], &pvr_copy_impls[1] } };

	assert_ptr_equal(pvr_copy_impl_for(&copy, 1), &pvr_copy_impls[2]);
	assert_ptr_equal(pvr_copy_impl_for(&copy, PVR_COPY_SHORT), &pvr_copy_impls[2]);
	assert_ptr_equal(pvr_copy_impl_for(&copy, PVR_COPY_SHORT + 1), &pvr_copy_impls[1]);
	assert_ptr_equal(pvr_copy_impl_for(&copy, 1u << 31), &pvr_copy_impls[1]);
}

TEST(host, test_choice_is_logged)
{
	pvr_engine_measure_copy(env->host->engine);
	assert_true(fg_logged(env->host, "fastest copy of up to 16 KiB: libc, of more: libc"));
}
