// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pvr_mpi.h"

/* Around the limits of eager messages, of openib's queues, and of pages. */
const struct size sizes[] = {
	{ 0, 4 },     { 1, 40 },    { 7, 4 },	    { 64, 40 },		  { 127, 4 },
	{ 129, 4 },   { 1000, 40 }, { 2049, 4 },    { 4096, 4 },	  { 12287, 2 },
	{ 12289, 2 }, { 65537, 2 }, { 1048577, 1 }, { MPI_TEST_MOST, 1 },
};
const size_t sizes_num = sizeof(sizes) / sizeof(sizes[0]);

void wrong(const struct job *job, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "pvr_mpi: rank %d: ", job->rank);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

void *must_alloc(const struct job *job, size_t len)
{
	void *mem = malloc(len ? len : 1);

	if (!mem)
		wrong(job, "no memory for %zu bytes", len);
	return mem;
}

void count_sent(struct job *job, int to, size_t len)
{
	if (job->node_of[to] != job->node_of[job->rank])
		job->between_nodes += len;
}

/* The step of a generator whose every output bit depends on all bits of the state. */
static uint64_t next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
	return x ^ x >> 32;
}

static uint64_t seed_of(int from, int to, uint64_t when)
{
	return (uint64_t)from << 48 ^ (uint64_t)to << 32 ^ when;
}

void pattern_fill(void *buf, size_t len, int from, int to, uint64_t when)
{
	uint64_t state = seed_of(from, to, when), word;
	size_t at;

	for (at = 0; at + sizeof(word) <= len; at += sizeof(word)) {
		word = next(&state);
		memcpy((char *)buf + at, &word, sizeof(word));
	}
	word = next(&state);
	memcpy((char *)buf + at, &word, len - at);
}

void pattern_check(const struct job *job, const void *buf, size_t len, int from, int to,
		   uint64_t when)
{
	unsigned char *expected = must_alloc(job, len);
	const unsigned char *seen = buf;
	size_t at = 0;

	pattern_fill(expected, len, from, to, when);
	if (memcmp(expected, seen, len)) {
		while (expected[at] == seen[at])
			at++;
		wrong(job, "%zu bytes from %d to %d: byte %zu is %02x, not %02x", len, from, to, at,
		      seen[at], expected[at]);
	}
	free(expected);
}
