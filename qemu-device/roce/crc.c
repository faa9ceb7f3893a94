// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * CRC-32 of IEEE 802.3.
 *
 * DOC: folding
 *
 * - A CRC is the remainder of the bits, as a polynomial, divided by P. Bits that are n places before
 *   the end may be replaced by their product with (x^n mod P), which is shorter.
 * - So a loop carries four vectors (roce/crc_fold.inc). It multiplies each half of their 128-bit words
 *   with the factor for the distance of four vectors, and adds the words that are there. Two factors
 *   are needed for a word, because its halves are at different distances. The words of headers are
 *   carried one by one.
 * - The last 16 bytes that are left have the same remainder as all bytes. Two more products make them
 *   64 bits, and then the quotient by P is a product, too (Barrett's reduction).
 * - ISA-L is as fast, but it cannot copy, and a call for headers takes as long as 1 KiB of
 *   payload. It is used for few bytes and on other CPUs.
 */
#include "roce/crc.h"

#include <isa-l/crc.h>
#include <stdbool.h>
#include <string.h>

#include "core/compiler.h"
#include "roce/bytes.h"

/* Offsets in the first and the last word of headers. */
#define ID_AT 12
#define PSN_AT 12

/* Fewer bytes are not worth the end of a loop. */
#define FOLD_MIN 256

#if defined(__x86_64__)
#include <immintrin.h>

#define LINE 64 /* of a cache */
/*
 * The CPU fetches memory that is in no cache ahead of a loop, but not far enough. Behind the end, this
 * is in vain: the next packet is there in most cases.
 */
#define AHEAD 1024

/* x^n mod P, reversed, in 33 bits; n = 8 * distance + 32 for the first half, - 32 for the other. */
#define FACTORS_256_BYTES 0x1322d1430, 0x11542778a
#define FACTORS_128_BYTES 0x14a7fe880, 0x1e88ef372
#define FACTORS_64_BYTES 0x1c6e41596, 0x154442bd4
#define FACTORS_32_BYTES 0x15a546366, 0x0f1da05aa
#define FACTORS_16_BYTES 0x0ccaa009e, 0x1751997d0
#define FACTOR_4_BYTES 0x163cd6124 /* n = 64 */
/* x^64 / P and P, likewise. */
#define QUOTIENT 0x1f7011641
#define POLYNOMIAL 0x1db710641

#define CLMUL __attribute__((target("sse4.1,pclmul")))

CLMUL static pvr_always_inline __m128i fold_16(__m128i word, __m128i next)
{
	const __m128i factors = _mm_set_epi64x(FACTORS_16_BYTES);

	return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(word, factors, 0x00),
					   _mm_clmulepi64_si128(word, factors, 0x11)),
			     next);
}

CLMUL static pvr_always_inline uint32_t remainder_of(__m128i word)
{
	const __m128i low = _mm_set_epi32(0, -1, 0, -1);
	const __m128i factors = _mm_set_epi64x(FACTORS_16_BYTES);
	const __m128i divisor = _mm_set_epi64x(QUOTIENT, POLYNOMIAL);
	__m128i quotient;

	word = _mm_xor_si128(_mm_srli_si128(word, 8), _mm_clmulepi64_si128(word, factors, 0x10));
	word = _mm_xor_si128(_mm_srli_si128(word, 4),
			     _mm_clmulepi64_si128(_mm_and_si128(word, low),
						  _mm_cvtsi64_si128(FACTOR_4_BYTES), 0x00));
	quotient = _mm_clmulepi64_si128(_mm_and_si128(word, low), divisor, 0x10);
	quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low), divisor, 0x00);
	return ~(uint32_t)_mm_extract_epi32(_mm_xor_si128(word, quotient), 1);
}

/* Memory that is fetched meanwhile: as many bytes from each address. */
struct ahead {
	const uint8_t *read, *written;
};

static pvr_always_inline void fetch(const struct ahead *ahead, size_t at, size_t bytes)
{
	size_t line;

	for (line = at; line < at + bytes; line += LINE) {
		__builtin_prefetch(ahead->read + line);
		if (ahead->written)
			__builtin_prefetch(ahead->written + line, 1);
	}
}

#define TARGET_32 __attribute__((target("avx2,pclmul,vpclmulqdq")))

TARGET_32 static pvr_always_inline __m256i next_32(__m256i vector, __m256i factors, __m256i next)
{
	return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(vector, factors, 0x00),
						 _mm256_clmulepi64_epi128(vector, factors, 0x11)),
				next);
}

TARGET_32 static pvr_always_inline __m128i last_32(__m256i vector)
{
	return fold_16(_mm256_castsi256_si128(vector), _mm256_extracti128_si256(vector, 1));
}

#define FOLD(name) name##_by_32
#define FOLD_TARGET TARGET_32
#define FOLD_VECTOR __m256i
#define FOLD_LOAD(from) _mm256_loadu_si256((const __m256i *)(from))
#define FOLD_STORE(to, vector) _mm256_storeu_si256((__m256i *)(to), vector)
#define FOLD_NEXT next_32
#define FOLD_FIRST _mm256_zextsi128_si256
#define FOLD_FAR _mm256_set_epi64x(FACTORS_128_BYTES, FACTORS_128_BYTES)
#define FOLD_NEAR _mm256_set_epi64x(FACTORS_32_BYTES, FACTORS_32_BYTES)
#define FOLD_LAST last_32
#include "roce/crc_fold.inc"

#define TARGET_64 __attribute__((target("avx512f,pclmul,vpclmulqdq")))
#define XOR_OF_3 0x96 /* a truth table */

TARGET_64 static pvr_always_inline __m512i next_64(__m512i vector, __m512i factors, __m512i next)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(vector, factors, 0x00),
					 _mm512_clmulepi64_epi128(vector, factors, 0x11), next,
					 XOR_OF_3);
}

TARGET_64 static pvr_always_inline __m128i last_64(__m512i vector)
{
	__m128i word = _mm512_castsi512_si128(vector);

	word = fold_16(word, _mm512_extracti32x4_epi32(vector, 1));
	word = fold_16(word, _mm512_extracti32x4_epi32(vector, 2));
	return fold_16(word, _mm512_extracti32x4_epi32(vector, 3));
}

#define FOLD(name) name##_by_64
#define FOLD_TARGET TARGET_64
#define FOLD_VECTOR __m512i
#define FOLD_LOAD _mm512_loadu_si512
#define FOLD_STORE _mm512_storeu_si512
#define FOLD_NEXT next_64
#define FOLD_FIRST _mm512_zextsi128_si512
#define FOLD_FAR _mm512_broadcast_i32x4(_mm_set_epi64x(FACTORS_256_BYTES))
#define FOLD_NEAR _mm512_broadcast_i32x4(_mm_set_epi64x(FACTORS_64_BYTES))
#define FOLD_LAST last_64
#include "roce/crc_fold.inc"

/* In bytes. Tests build this file with less. */
#ifndef PVR_CRC_VECTOR_MAX
#define PVR_CRC_VECTOR_MAX sizeof(__m512i)
#endif

static bool has_vector(size_t bytes)
{
	if (bytes > PVR_CRC_VECTOR_MAX || !__builtin_cpu_supports("vpclmulqdq") ||
	    !__builtin_cpu_supports("pclmul"))
		return false;
	return bytes == sizeof(__m512i) ? __builtin_cpu_supports("avx512f")
					: __builtin_cpu_supports("avx2");
}

/* Return: how many of @bytes are folded. */
static size_t folded(size_t bytes)
{
	if (bytes < FOLD_MIN)
		return 0;
	if (has_vector(sizeof(__m512i)))
		return bytes / sizeof(__m512i) * sizeof(__m512i);
	return has_vector(sizeof(__m256i)) ? bytes / sizeof(__m256i) * sizeof(__m256i) : 0;
}

/* @bytes: as folded() returned. @begin: is added to the first word; @to: NULL: no copy */
CLMUL static uint32_t fold(__m128i begin, uint8_t *to, const uint8_t *from, size_t bytes,
			   const struct ahead *ahead)
{
	__m128i word;

	if (has_vector(sizeof(__m512i)))
		word = to ? copy_by_64(begin, to, from, bytes, ahead)
			  : read_by_64(begin, from, bytes, ahead);
	else
		word = to ? copy_by_32(begin, to, from, bytes, ahead)
			  : read_by_32(begin, from, bytes, ahead);
	return remainder_of(word);
}

/* The word that has the remainder of the headers, and is added to the first one of the payload. */
CLMUL static pvr_always_inline __m128i fold_head(const struct pvr_roce_crc_head *head, uint16_t id,
						 uint32_t psn)
{
	const __m128i *next = (const __m128i *)head->bytes;
	__m128i word = _mm_loadu_si128(next), last;
	unsigned int i;

	if (head->has_id)
		word = _mm_insert_epi16(word, __builtin_bswap16(id), ID_AT / 2);
	for (i = 1; i < head->count - 1; i++)
		word = fold_16(word, _mm_loadu_si128(next + i));
	last = _mm_insert_epi32(_mm_loadu_si128(next + i), (int)__builtin_bswap32(psn), PSN_AT / 4);
	return fold_16(fold_16(word, last), _mm_setzero_si128());
}

CLMUL static uint32_t fold_memory(uint32_t crc, const uint8_t *from, size_t bytes)
{
	const struct ahead ahead = { .read = from + AHEAD };

	return fold(_mm_cvtsi32_si128((int)~crc), NULL, from, bytes, &ahead);
}

CLMUL static uint32_t fold_copy(uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes,
				const uint8_t *next)
{
	const struct ahead ahead = { .read = next ? next : from };

	return fold(_mm_cvtsi32_si128((int)~crc), to, from, bytes, &ahead);
}

CLMUL static uint32_t fold_packet(const struct pvr_roce_crc_head *head, uint16_t id, uint32_t psn,
				  const uint8_t *from, size_t bytes, const uint8_t *next)
{
	const struct ahead ahead = { .read = from + AHEAD, .written = next };

	return fold(fold_head(head, id, psn), NULL, from, bytes, &ahead);
}

CLMUL static uint32_t fold_packet_copy(const struct pvr_roce_crc_head *head, uint16_t id,
				       uint32_t psn, uint8_t *to, const uint8_t *from, size_t bytes,
				       const uint8_t *next)
{
	const struct ahead ahead = { .read = next ? next : from };

	return fold(fold_head(head, id, psn), to, from, bytes, &ahead);
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

static uint32_t fold_copy(uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes,
			  const uint8_t *next)
{
	return crc;
}

static uint32_t fold_packet(const struct pvr_roce_crc_head *head, uint16_t id, uint32_t psn,
			    const uint8_t *from, size_t bytes, const uint8_t *next)
{
	return 0;
}

static uint32_t fold_packet_copy(const struct pvr_roce_crc_head *head, uint16_t id, uint32_t psn,
				 uint8_t *to, const uint8_t *from, size_t bytes,
				 const uint8_t *next)
{
	return 0;
}
#endif

uint32_t pvr_roce_crc(uint32_t crc, const uint8_t *from, size_t bytes)
{
	size_t done = folded(bytes);

	if (done)
		crc = fold_memory(crc, from, done);
	return done < bytes ? crc32_gzip_refl(crc, from + done, bytes - done) : crc;
}

/* Of @done bytes the copy and the CRC are made. */
static uint32_t copy_rest(uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes, size_t done)
{
	if (done == bytes)
		return crc;
	memcpy(to + done, from + done, bytes - done);
	return crc32_gzip_refl(crc, to + done, bytes - done);
}

uint32_t pvr_roce_crc_copy(uint32_t crc, uint8_t *to, const uint8_t *from, size_t bytes,
			   const uint8_t *next)
{
	size_t done = folded(bytes);

	if (done)
		crc = fold_copy(crc, to, from, done, next);
	return copy_rest(crc, to, from, bytes, done);
}

static uint32_t crc_of_head(const struct pvr_roce_crc_head *head, uint16_t id, uint32_t psn)
{
	struct pvr_roce_crc_head own = *head;

	if (head->has_id)
		put16(own.bytes + ID_AT, id);
	put32(own.bytes + (head->count - 1) * PVR_ROCE_CRC_WORD + PSN_AT, psn);
	/* Without the ones that a CRC begins with: @head is without them, too. */
	return crc32_gzip_refl(~0u, own.bytes, head->count * PVR_ROCE_CRC_WORD);
}

uint32_t pvr_roce_crc_packet(const struct pvr_roce_crc_head *head, uint16_t id, uint32_t psn,
			     const uint8_t *from, size_t bytes, const uint8_t *next)
{
	size_t done = folded(bytes);

	if (!done)
		return pvr_roce_crc(crc_of_head(head, id, psn), from, bytes);
	return pvr_roce_crc(fold_packet(head, id, psn, from, done, next), from + done,
			    bytes - done);
}

uint32_t pvr_roce_crc_packet_copy(const struct pvr_roce_crc_head *head, uint16_t id, uint32_t psn,
				  uint8_t *to, const uint8_t *from, size_t bytes,
				  const uint8_t *next)
{
	size_t done = folded(bytes);

	if (!done)
		return copy_rest(crc_of_head(head, id, psn), to, from, bytes, 0);
	return copy_rest(fold_packet_copy(head, id, psn, to, from, done, next), to, from, bytes,
			 done);
}
