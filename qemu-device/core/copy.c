// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The fastest copy function of this CPU. */
#include "core/copy.h"

#include <stdlib.h>

#include "pvrdma_abi.h"

/* A copy function replaces the C library's only below this percentage of its time. */
#define CLEARLY 97
/* Bytes per round. With less, the cache content of the previous round decides. */
#define ROUND_BYTES (4u << 20)

/* The message length that represents its class, in bytes. */
static const uint64_t typical[PVR_COPY_CLASSES] = { PVR_COPY_SHORT, 128u << 10 };

/* -------------------------------------------------------- implementations */

static bool always(void)
{
	return true;
}

static void copy_library(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Every x86-64 CPU has it, but only some have a fast one. */
static void copy_string(void *to, const void *from, size_t len)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f");
}

/* Copy four registers. */
__attribute__((target("avx2"))) static pvr_always_inline void move_avx2(__m256i *to,
									const __m256i *from)
{
	__m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);
	__m256i c = _mm256_loadu_si256(from + 2), d = _mm256_loadu_si256(from + 3);

	_mm256_storeu_si256(to, a);
	_mm256_storeu_si256(to + 1, b);
	_mm256_storeu_si256(to + 2, c);
	_mm256_storeu_si256(to + 3, d);
}

__attribute__((target("avx2"))) static void copy_avx2(void *to, const void *from, size_t len)
{
	const __m256i *src = from;
	__m256i *dst = to;

	for (; len >= 4 * sizeof(*dst); len -= 4 * sizeof(*dst), src += 4, dst += 4)
		move_avx2(dst, src);
	memcpy(dst, src, len);
}

__attribute__((target("avx512f"))) static void copy_avx512(void *to, const void *from, size_t len)
{
	const __m512i *src = from;
	__m512i *dst = to, a, b, c, d;

	for (; len >= 4 * sizeof(a); len -= 4 * sizeof(a), src += 4, dst += 4) {
		a = _mm512_loadu_si512(src);
		b = _mm512_loadu_si512(src + 1);
		c = _mm512_loadu_si512(src + 2);
		d = _mm512_loadu_si512(src + 3);
		_mm512_storeu_si512(dst, a);
		_mm512_storeu_si512(dst + 1, b);
		_mm512_storeu_si512(dst + 2, c);
		_mm512_storeu_si512(dst + 3, d);
	}
	memcpy(dst, src, len);
}

__attribute__((target("avx2"))) static inline void copy_block(uint8_t *to, const uint8_t *from)
{
	const __m256i *src = (const __m256i *)from;
	__m256i *dst = (__m256i *)to;
	unsigned int done;

	for (done = 0; done < PVR_COPY_BLOCK; done += 4 * sizeof(*dst), src += 4, dst += 4)
		move_avx2(dst, src);
}

/* Wider registers are slower here: they leave no time to the prefetcher. */
__attribute__((target("avx2"))) static void
lanes_avx2(void *const to[PVR_COPY_LANES], const void *const from[PVR_COPY_LANES], size_t len)
{
	unsigned int lane;
	size_t at;

	for (at = 0; at < len; at += PVR_COPY_BLOCK)
		for (lane = 0; lane < PVR_COPY_LANES; lane++)
			copy_block((uint8_t *)to[lane] + at, (const uint8_t *)from[lane] + at);
}

pvr_copy_lanes *pvr_copy_lanes_of_cpu(void)
{
	return has_avx2() ? lanes_avx2 : NULL;
}

const struct pvr_copy_impl pvr_copy_impls[PVR_COPY_IMPLS] = {
	{ "libc", always, copy_library },
	{ "rep movsb", always, copy_string },
	{ "avx2", has_avx2, copy_avx2 },
	{ "avx512", has_avx512, copy_avx512 },
};
#else
static bool never(void)
{
	return false;
}

pvr_copy_lanes *pvr_copy_lanes_of_cpu(void)
{
	return NULL;
}

const struct pvr_copy_impl pvr_copy_impls[PVR_COPY_IMPLS] = {
	{ "libc", always, copy_library },
	{ "rep movsb", never, copy_library },
	{ "avx2", never, copy_library },
	{ "avx512", never, copy_library },
};
#endif

void pvr_copy_init(struct pvr_copy *copy)
{
	unsigned int i;

	for (i = 0; i < PVR_COPY_CLASSES; i++)
		copy->impl[i] = &pvr_copy_impls[0];
	copy->lanes = NULL;
}

bool pvr_copy_note_other(struct pvr_copy_recent *recent, const void *to)
{
	unsigned int i;

	for (i = 0; i < PVR_COPY_RECENT; i++) {
		if (recent->to[i] != to)
			continue;
		recent->last = i;
		return true;
	}
	recent->to[recent->next] = to;
	recent->last = recent->next;
	recent->next = (recent->next + 1) % PVR_COPY_RECENT;
	return false;
}

/* ------------------------------------------------------------ measurement */

/* Two buffers. Their pages are copied in scattered order, like pages of guests. */
struct trial {
	uint8_t *from, *to;
	uint64_t (*now)(void *opaque);
	void *opaque;
};

static void copy_pages(const struct trial *trial, const struct pvr_copy_impl *impl, uint64_t len)
{
	uint64_t pages = len / PVR_PAGE_SIZE, i, at;

	for (i = 0; i < pages; i++) {
		/*
		 * The factor is odd, so it is coprime to the number of pages, a power of
		 * two.
		 */
		at = i * 0x9e3779b1u % pages * PVR_PAGE_SIZE;
		impl->copy(trial->to + at, trial->from + at, PVR_PAGE_SIZE);
	}
}

static uint64_t time_of(const struct trial *trial, const struct pvr_copy_impl *impl, uint64_t len)
{
	uint64_t begin, done;

	copy_pages(trial, impl, len); /* warm up the caches */
	begin = trial->now(trial->opaque);
	for (done = 0; done < ROUND_BYTES; done += len)
		copy_pages(trial, impl, len);
	return trial->now(trial->opaque) - begin;
}

/*
 * The shortest of several rounds is the one with the least disturbance by other
 * processes. Each round measures all functions, because a disturbance lasts longer than a
 * round and then affects them all. Each round uses other pages, because some pairs of
 * pages conflict in caches.
 */
static void try_all(struct trial trial, uint64_t len, uint64_t best[PVR_COPY_IMPLS])
{
	unsigned int round, i;
	uint64_t ns;

	for (i = 0; i < PVR_COPY_IMPLS; i++)
		best[i] = UINT64_MAX;
	for (round = 0; round < PVR_COPY_ROUNDS; round++, trial.from += len, trial.to += len) {
		for (i = 0; i < PVR_COPY_IMPLS; i++) {
			if (!pvr_copy_impls[i].works())
				continue;
			ns = time_of(&trial, &pvr_copy_impls[i], len);
			best[i] = ns < best[i] ? ns : best[i];
		}
	}
}

static const struct pvr_copy_impl *fastest(const struct trial *trial, uint64_t len)
{
	uint64_t took[PVR_COPY_IMPLS], best;
	unsigned int i, impl = 0;

	try_all(*trial, len, took);
	best = took[0] * CLEARLY / 100;
	for (i = 1; i < PVR_COPY_IMPLS; i++) {
		if (took[i] >= best)
			continue;
		best = took[i];
		impl = i;
	}
	return &pvr_copy_impls[impl];
}

void pvr_copy_measure(struct pvr_copy *copy, uint64_t (*now)(void *opaque), void *opaque)
{
	uint64_t size = typical[PVR_COPY_CLASSES - 1] * PVR_COPY_ROUNDS;
	struct trial trial = { .now = now, .opaque = opaque };
	unsigned int i;

	trial.from = aligned_alloc(PVR_PAGE_SIZE, size);
	trial.to = aligned_alloc(PVR_PAGE_SIZE, size);
	if (trial.from && trial.to) {
		memset(trial.from, 1, size);
		memset(trial.to, 1, size);
		for (i = 0; i < PVR_COPY_CLASSES; i++)
			copy->impl[i] = fastest(&trial, typical[i]);
	}
	free(trial.to);
	free(trial.from);
	copy->lanes = pvr_copy_lanes_of_cpu();
}
