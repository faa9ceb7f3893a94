// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * CRC-32 of IEEE 802.3.
 *
 * DOC: folding
 *
 * - A CRC is the remainder of the bits, as a polynomial, divided by P. Bits that are n places before
 *   the end may be replaced by their product with (x^n mod P), which is shorter.
 * - So a loop carries 128 bytes. It multiplies each half of their 128-bit words with the factor for
 *   the distance of 128 bytes, and adds the words that are there. Two factors are needed for a word,
 *   because its halves are at different distances.
 * - The last 16 bytes that are left have the same remainder as all bytes. ISA-L takes it.
 * - ISA-L multiplies one word with an instruction, which takes twice as long as with two, and
 *   it cannot copy. It is used for few bytes and on other CPUs.
 */
#include "roce/crc.h"

#include <isa-l/crc.h>
#include <string.h>

#include "core/compiler.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define WORDS 4 /* of 32 bytes, which are carried */
#define STEP (WORDS * sizeof(__m256i))
/* Fewer bytes are not worth the end of a loop. */
#define FOLD_MIN (2 * STEP)

/*
 * The CPU fetches memory that is in no cache ahead of a loop, but not far enough. Behind the end, or
 * the end of a guest's page, this is in vain: the next packet is there in most cases.
 */
#define AHEAD 1024

/* x^n mod P, reversed, in 33 bits; n = 8 * distance + 32 for the first half, - 32 for the other. */
#define FACTORS_128_BYTES 0x14a7fe880, 0x1e88ef372
#define FACTORS_32_BYTES 0x15a546366, 0x0f1da05aa
#define FACTORS_16_BYTES 0x0ccaa009e, 0x1751997d0

#define FOLDS __attribute__((target("avx2,pclmul,vpclmulqdq"))) static pvr_always_inline

FOLDS __m256i fold(__m256i word, __m256i factors, __m256i next)
{
	return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(word, factors, 0x00),
						 _mm256_clmulepi64_epi128(word, factors, 0x11)),
				next);
}

/* Load the words at @from, and store them at @to unless it is NULL. */
FOLDS void load(__m256i words[WORDS], uint8_t *to, const uint8_t *from)
{
	unsigned int i;

	for (i = 0; i < STEP; i += 64)
		__builtin_prefetch(from + AHEAD + i);
	for (i = 0; i < WORDS; i++) {
		words[i] = _mm256_loadu_si256((const __m256i *)from + i);
		if (to)
			_mm256_storeu_si256((__m256i *)to + i, words[i]);
	}
}

/* The 16 bytes that have the remainder of @words. */
FOLDS __m128i fold_words(const __m256i words[WORDS])
{
	const __m256i factors = _mm256_set_epi64x(FACTORS_32_BYTES, FACTORS_32_BYTES);
	const __m128i last = _mm_set_epi64x(FACTORS_16_BYTES);
	__m256i sum = words[0];
	__m128i low;
	unsigned int i;

	for (i = 1; i < WORDS; i++)
		sum = fold(sum, factors, words[i]);
	low = _mm256_castsi256_si128(sum);
	low = _mm_xor_si128(_mm_clmulepi64_si128(low, last, 0x00),
			    _mm_clmulepi64_si128(low, last, 0x11));
	return _mm_xor_si128(low, _mm256_extracti128_si256(sum, 1));
}

/* Of whole steps. @to: NULL: no copy */
FOLDS uint32_t fold_steps(uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes)
{
	const __m256i factors = _mm256_set_epi64x(FACTORS_128_BYTES, FACTORS_128_BYTES);
	__m256i words[WORDS], next[WORDS];
	uint8_t left[sizeof(__m128i)];
	unsigned int i;
	size_t at;

	load(words, to, from);
	words[0] = _mm256_xor_si256(words[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)~crc)));
	for (at = STEP; at < bytes; at += STEP) {
		load(next, to ? to + at : NULL, from + at);
		for (i = 0; i < WORDS; i++)
			words[i] = fold(words[i], factors, next[i]);
	}
	_mm_storeu_si128((__m128i *)left, fold_words(words));
	/* Its first bytes have the begin already. */
	return crc32_gzip_refl(~0u, left, sizeof(left));
}

__attribute__((target("avx2,pclmul,vpclmulqdq"))) static uint32_t
fold_memory(uint32_t crc, const uint8_t *from, size_t bytes)
{
	return fold_steps(crc, NULL, from, bytes);
}

__attribute__((target("avx2,pclmul,vpclmulqdq"))) static uint32_t
fold_copy(uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes)
{
	return fold_steps(crc, to, from, bytes);
}

/* Return: how many of @bytes are folded. */
static size_t folded(size_t bytes)
{
	if (bytes < FOLD_MIN || !__builtin_cpu_supports("vpclmulqdq") ||
	    !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("pclmul"))
		return 0;
	return bytes / STEP * STEP;
}
#else
static size_t folded(size_t bytes)
{
	return 0;
}

static uint32_t fold_memory(uint32_t crc, const uint8_t *from, size_t bytes)
{
	return crc;
}

static uint32_t fold_copy(uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes)
{
	return crc;
}
#endif

uint32_t pvr_roce_crc(uint32_t crc, const uint8_t *from, size_t bytes)
{
	size_t done = folded(bytes);

	if (done)
		crc = fold_memory(crc, from, done);
	return done < bytes ? crc32_gzip_refl(crc, from + done, bytes - done) : crc;
}

uint32_t pvr_roce_crc_copy(uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes)
{
	size_t done = folded(bytes);

	if (done)
		crc = fold_copy(crc, to, from, done);
	if (done == bytes)
		return crc;
	memcpy(to + done, from + done, bytes - done);
	return crc32_gzip_refl(crc, to + done, bytes - done);
}
