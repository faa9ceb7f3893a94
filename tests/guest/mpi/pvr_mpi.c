// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: pvr_mpi [TEST...]
 *
 * Runs all tests, or the named ones; prints the bytes between nodes: "between nodes: BYTES bytes".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pvr_mpi.h"

static const struct test tests[] = {
	{ "ring", test_ring },
	{ "allreduce", test_allreduce },
	{ "alltoall", test_alltoall },
	{ "put_get", test_put_get },
	{ "accumulate", test_accumulate },
	{ "tickets", test_tickets },
};

#define TESTS (sizeof(tests) / sizeof(tests[0]))

static const struct test *test_of(const char *name)
{
	for (size_t i = 0; i < TESTS; i++)
		if (!strcmp(name, tests[i].name))
			return &tests[i];
	return NULL;
}

/* A node's number is its least rank. */
static void find_nodes(struct job *job)
{
	MPI_Comm here;
	int mine = job->rank;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
	MPI_Bcast(&mine, 1, MPI_INT, 0, here);
	MPI_Comm_free(&here);
	job->node_of = must_alloc(job, job->ranks * sizeof(*job->node_of));
	MPI_Allgather(&mine, 1, MPI_INT, job->node_of, 1, MPI_INT, MPI_COMM_WORLD);
	for (int rank = 0; rank < job->ranks; rank++)
		job->nodes += job->node_of[rank] == rank;
	job->first_of_node = mine == job->rank;
}

static void run(struct job *job, const struct test *test)
{
	double begin = MPI_Wtime();

	test->run(job);
	MPI_Barrier(MPI_COMM_WORLD);
	if (job->rank == 0)
		printf("%s: ok after %.2f s\n", test->name, MPI_Wtime() - begin);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct job job = { 0 };
	uint64_t total;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
	find_nodes(&job);
	for (int i = 1; i < argc; i++) {
		if (!test_of(argv[i]))
			wrong(&job, "there is no test %s", argv[i]);
		run(&job, test_of(argv[i]));
	}
	for (size_t i = 0; i < TESTS && argc < 2; i++)
		run(&job, &tests[i]);
	MPI_Reduce(&job.between_nodes, &total, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (job.rank == 0)
		printf("%d ranks on %d nodes, between nodes: %lu bytes\n", job.ranks, job.nodes,
		       total);
	free(job.node_of);
	MPI_Finalize();
	return 0;
}
