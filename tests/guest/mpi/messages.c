// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Two-sided: a ring, and collective operations. */
#include <stdlib.h>
#include <string.h>

#include "pvr_mpi.h"

/* All ranks send to the next one at once. */
void test_ring(struct job *job)
{
	int to = (job->rank + 1) % job->ranks, from = (job->rank + job->ranks - 1) % job->ranks;
	char *out = must_alloc(job, MPI_TEST_MOST), *in = must_alloc(job, MPI_TEST_MOST);

	for (size_t i = 0; i < sizes_num; i++) {
		size_t len = sizes[i].bytes;

		for (int round = 0; round < sizes[i].rounds; round++) {
			MPI_Status status;
			int got;

			pattern_fill(out, len, job->rank, to, round);
			MPI_Sendrecv(out, len, MPI_BYTE, to, round, in, MPI_TEST_MOST, MPI_BYTE,
				     from, round, MPI_COMM_WORLD, &status);
			MPI_Get_count(&status, MPI_BYTE, &got);
			if ((size_t)got != len)
				wrong(job, "%d bytes came from %d, not %zu", got, from, len);
			pattern_check(job, in, len, from, job->rank, round);
			count_sent(job, to, len);
		}
	}
	free(out);
	free(in);
}

/* Sums of numbers of which each rank's have another factor. */
void test_allreduce(struct job *job)
{
	uint64_t *mine = must_alloc(job, MPI_TEST_MOST), *sum = must_alloc(job, MPI_TEST_MOST);
	uint64_t factors = (uint64_t)job->ranks * (job->ranks + 1) / 2;

	for (size_t i = 0; i < sizes_num; i++) {
		size_t count = sizes[i].bytes / sizeof(*mine);

		for (size_t at = 0; at < count; at++)
			mine[at] = (at * at + i) * (job->rank + 1);
		memset(sum, 0xff, count * sizeof(*sum));
		MPI_Allreduce(mine, sum, count, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		for (size_t at = 0; at < count; at++)
			if (sum[at] != (at * at + i) * factors)
				wrong(job, "sum %zu of %zu is %lu, not %lu", at, count, sum[at],
				      (at * at + i) * factors);
		/* The sum depends on each node's numbers, whichever way they went. */
		if (job->first_of_node && job->nodes > 1)
			job->between_nodes += count * sizeof(*mine);
	}
	free(mine);
	free(sum);
}

void test_alltoall(struct job *job)
{
	size_t most = MPI_TEST_MOST / job->ranks;
	char *out = must_alloc(job, MPI_TEST_MOST), *in = must_alloc(job, MPI_TEST_MOST);

	for (size_t i = 0; i < sizes_num; i++) {
		size_t len = sizes[i].bytes < most ? sizes[i].bytes : most;

		for (int to = 0; to < job->ranks; to++)
			pattern_fill(out + to * len, len, job->rank, to, i);
		memset(in, 0, len * job->ranks);
		MPI_Alltoall(out, len, MPI_BYTE, in, len, MPI_BYTE, MPI_COMM_WORLD);
		for (int peer = 0; peer < job->ranks; peer++) {
			pattern_check(job, in + peer * len, len, peer, job->rank, i);
			count_sent(job, peer, len);
		}
	}
	free(out);
	free(in);
}
