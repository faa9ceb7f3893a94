// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Programs of records: choices from a record, mutators of programs. */
#include "records.h"

#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
				 uint8_t *out, size_t max_size, unsigned int seed);

/* ------------------------------------------------------------------------- choices */

void record_open(struct record *record, const uint8_t bytes[RECORD_SIZE])
{
	*record = (struct record){ .bytes = bytes, .hash = 0xcbf29ce484222325ull };
	for (size_t i = 0; i < RECORD_SIZE; i++)
		record->hash = (record->hash ^ bytes[i]) * 0x100000001b3ull;
}

uint8_t record_byte(struct record *record)
{
	if (record->at < RECORD_SIZE)
		return record->bytes[record->at++];
	record->hash = record->hash * 6364136223846793005ull + 1442695040888963407ull;
	return (uint8_t)(record->hash >> 56);
}

uint32_t record_draw(void *opaque)
{
	struct record *record = opaque;
	const uint32_t low = record_byte(record);

	return low | (uint32_t)record_byte(record) << 8;
}

uint32_t record_word(struct record *record)
{
	const uint32_t low = record_draw(record);

	return low | record_draw(record) << 16;
}

uint32_t record_below(struct record *record, uint32_t n)
{
	return (n > 256 ? record_draw(record) : record_byte(record)) % n;
}

/* ------------------------------------------------------------------------ mutators */

static uint32_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*state >> 33);
}

static size_t round_down(size_t size)
{
	return size < RECORDS_HEAD ? 0 : (size - RECORDS_HEAD) / RECORD_SIZE;
}

static uint8_t *record_at(uint8_t *data, size_t i)
{
	return data + RECORDS_HEAD + i * RECORD_SIZE;
}

/* @n records from @from are inserted at @to as well. */
static size_t insert(uint8_t *data, size_t num, size_t from, size_t n, size_t to)
{
	static uint8_t copy[64 * RECORD_SIZE];

	n = n < 64 ? n : 64;
	memcpy(copy, record_at(data, from), n * RECORD_SIZE);
	memmove(record_at(data, to + n), record_at(data, to), (num - to) * RECORD_SIZE);
	memcpy(record_at(data, to), copy, n * RECORD_SIZE);
	return num + n;
}

static size_t erase(uint8_t *data, size_t num, size_t at, size_t n)
{
	memmove(record_at(data, at), record_at(data, at + n), (num - at - n) * RECORD_SIZE);
	return num - n;
}

static size_t mutate(uint8_t *data, size_t num, size_t max, uint64_t *state)
{
	const size_t at = next(state) % num, from = next(state) % num;
	const uint32_t run = next(state) % 8;
	size_t n = 1 + (run < 6 ? 0 : next(state) % 8), most = num - at < n ? num - at : n;

	switch (next(state) % 10) {
	case 0:
		if (num > most)
			return erase(data, num, at, most);
		break;
	case 1:
	case 2:
		n = num - from < n ? num - from : n;
		if (num + n <= max)
			num = insert(data, num, from, n, at);
		break;
	case 3: /* a new record */
		if (num < max) {
			num = insert(data, num, from, 1, at);
			for (size_t i = 0; i < RECORD_SIZE; i++)
				record_at(data, at)[i] = (uint8_t)next(state);
		}
		break;
	case 4: /* another operation with the same arguments */
		record_at(data, at)[0] = (uint8_t)next(state);
		return num;
	case 5:
		data[next(state) % RECORDS_HEAD] ^= (uint8_t)(1u << next(state) % 8);
		return num;
	}
	LLVMFuzzerMutate(record_at(data, at), RECORD_SIZE, RECORD_SIZE);
	return num;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	const size_t max = round_down(max_size);
	uint64_t state = seed;
	size_t num = round_down(size);

	if (!max)
		return LLVMFuzzerMutate(data, size, max_size);
	if (!num) {
		memset(data + size, 0, RECORDS_HEAD + RECORD_SIZE - size);
		num = 1;
	}
	for (uint32_t i = 1 + next(&state) % 4; i; i--)
		num = mutate(data, num, max, &state);
	return RECORDS_HEAD + num * RECORD_SIZE;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
				 uint8_t *out, size_t max_size, unsigned int seed)
{
	const size_t a_num = round_down(a_size), b_num = round_down(b_size);
	const size_t max = round_down(max_size);
	uint64_t state = seed;
	size_t head, tail;

	if (!a_num || !b_num || !max)
		return 0;
	head = 1 + next(&state) % a_num;
	head = head < max ? head : max;
	tail = next(&state) % (b_num + 1);
	tail = tail < max - head ? tail : max - head;
	memcpy(out, a, RECORDS_HEAD + head * RECORD_SIZE);
	memcpy(record_at(out, head), b + RECORDS_HEAD + (b_num - tail) * RECORD_SIZE,
	       tail * RECORD_SIZE);
	return RECORDS_HEAD + (head + tail) * RECORD_SIZE;
}
