// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* One-sided: windows of memory that others write, read and count in. */
#include <stdlib.h>
#include <string.h>

#include "pvr_mpi.h"

static const size_t lengths[] = { 1, 8, 100, 4096, 70001, 1 << 20 };

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))
#define WINDOW (2 << 20)

/* Offset of rank's part of each window: each rank writes to a part of its own. */
static size_t slot(const struct job *job, int rank)
{
	return (size_t)rank * (WINDOW / job->ranks);
}

static size_t length(const struct job *job, size_t i)
{
	size_t most = WINDOW / job->ranks;

	return lengths[i] < most ? lengths[i] : most;
}

static void put_to_all(struct job *job, const char *out, size_t len, MPI_Win win)
{
	for (int to = 0; to < job->ranks; to++) {
		MPI_Put(out + slot(job, to), len, MPI_BYTE, to, slot(job, job->rank), len, MPI_BYTE,
			win);
		count_sent(job, to, len);
	}
}

/* The others hold the part that rank `from` has put. */
static void get_from_all(struct job *job, char *in, int from, size_t len, MPI_Win win)
{
	for (int at = 0; at < job->ranks; at++)
		MPI_Get(in + slot(job, at), len, MPI_BYTE, at, slot(job, from), len, MPI_BYTE, win);
}

static void put_and_get(struct job *job, char *mem, MPI_Win win)
{
	char *buf = must_alloc(job, WINDOW);
	int from = (job->rank + 1) % job->ranks;

	for (size_t i = 0; i < LENGTHS; i++) {
		size_t len = length(job, i);

		for (int to = 0; to < job->ranks; to++)
			pattern_fill(buf + slot(job, to), len, job->rank, to, i);
		MPI_Win_fence(0, win);
		put_to_all(job, buf, len, win);
		MPI_Win_fence(0, win);
		for (int rank = 0; rank < job->ranks; rank++)
			pattern_check(job, mem + slot(job, rank), len, rank, job->rank, i);
		memset(buf, 0, WINDOW);
		MPI_Win_fence(0, win);
		get_from_all(job, buf, from, len, win);
		MPI_Win_fence(0, win);
		for (int at = 0; at < job->ranks; at++)
			pattern_check(job, buf + slot(job, at), len, from, at, i);
	}
	free(buf);
}

/* Memory that MPI finds for the window, and memory that the program brings. */
void test_put_get(struct job *job)
{
	char *own = must_alloc(job, WINDOW), *mem;
	MPI_Win win;

	MPI_Win_allocate(WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	put_and_get(job, mem, win);
	MPI_Win_free(&win);
	MPI_Win_create(own, WINDOW, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	put_and_get(job, own, win);
	MPI_Win_free(&win);
	free(own);
}

#define COUNTERS 5000
#define TIMES 3

/* All ranks add to the same numbers of all ranks. */
void test_accumulate(struct job *job)
{
	int64_t *mem, *mine = must_alloc(job, COUNTERS * sizeof(*mine));
	int64_t factors = (int64_t)job->ranks * (job->ranks + 1) / 2;
	MPI_Win win;

	MPI_Win_allocate(COUNTERS * sizeof(*mem), sizeof(*mem), MPI_INFO_NULL, MPI_COMM_WORLD, &mem,
			 &win);
	memset(mem, 0, COUNTERS * sizeof(*mem));
	for (int64_t i = 0; i < COUNTERS; i++)
		mine[i] = i * (job->rank + 1);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < TIMES * job->ranks; i++) {
		int to = (job->rank + i) % job->ranks;

		MPI_Accumulate(mine, COUNTERS, MPI_INT64_T, to, 0, COUNTERS, MPI_INT64_T, MPI_SUM,
			       win);
		count_sent(job, to, COUNTERS * sizeof(*mine));
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int64_t i = 0; i < COUNTERS; i++)
		if (mem[i] != i * factors * TIMES)
			wrong(job, "number %ld is %ld, not %ld", i, mem[i], i * factors * TIMES);
	MPI_Win_free(&win);
	free(mine);
}

#define TICKETS 50

/*
 * Numbers drawn from one counter: each is drawn once. (Open MPI 4.1.4 dies of MPI_Compare_and_swap, which would be
 * next, where the target is in the same node and this has an adapter with atomics: its osc/rdma asks the adapter
 * for a connection that it has not made.)
 */
void test_tickets(struct job *job)
{
	int64_t *mem, one = 1, ticket, sum = 0, last = -1, all;
	MPI_Win win;

	MPI_Win_allocate(sizeof(*mem), sizeof(*mem), MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
	*mem = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < TICKETS; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		MPI_Fetch_and_op(&one, &ticket, MPI_INT64_T, 0, 0, MPI_SUM, win);
		MPI_Win_unlock(0, win);
		if (ticket <= last)
			wrong(job, "ticket %ld after %ld", ticket, last);
		last = ticket;
		sum += ticket;
	}
	MPI_Allreduce(&sum, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	last = (int64_t)TICKETS * job->ranks;
	if (all != last * (last - 1) / 2)
		wrong(job, "tickets sum up to %ld, not %ld", all, last * (last - 1) / 2);
	MPI_Win_free(&win);
}
