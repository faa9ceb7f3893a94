// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: pvr_mpi_speed [TEST SECONDS]
 *
 * Measures MPI messages and collective operations, and prints "@NAME VALUE" for each: seconds,
 * bytes per second, or messages per second. Messages go between ranks 0 and 1, 2 and 3, and so on,
 * at the same time; rates are the sums of all pairs. Collective operations have all ranks.
 * With TEST, that measurement alone, for SECONDS at least: for a profile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mpi.h>

#define LARGE (1u << 20)
#define SMALL 8
#define BLOCK 4096
#define LARGE_WINDOW 8
#define SMALL_WINDOW 64
#define LEAST_SECONDS 0.3
#define MOST_SECONDS 600.0
#define MOST_TIMES (1 << 24)
#define TAG 1

struct job {
	int rank, ranks; /* an even number of ranks */
	char *out, *in; /* LARGE bytes for each message of a window */
	MPI_Request requests[2 * SMALL_WINDOW];
};

struct test {
	const char *name;
	void (*run)(struct job *job, int times);
	double per_time; /* bytes, messages, or operations, of a pair or of all ranks */
	int is_rate; /* of all pairs per second; else seconds for one */
};

static _Noreturn void wrong(const char *text)
{
	fprintf(stderr, "pvr_mpi_speed: %s\n", text);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static void latency(struct job *job, int times)
{
	int peer = job->rank ^ 1;

	for (int i = 0; i < times; i++) {
		if (job->rank < peer)
			MPI_Send(job->out, SMALL, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
		MPI_Recv(job->in, SMALL, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (job->rank > peer)
			MPI_Send(job->out, SMALL, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
	}
}

/*
 * The ranks of a pair in @senders (bits) send a window of messages, and then each receiver a message
 * of a byte.
 */
static void stream(struct job *job, int times, int window, int bytes, unsigned int senders)
{
	int peer = job->rank ^ 1;
	int sends = senders >> (job->rank & 1) & 1, gets = senders >> (peer & 1) & 1;

	for (int i = 0; i < times; i++) {
		int count = 0;

		for (int j = 0; j < window && gets; j++)
			MPI_Irecv(job->in + (size_t)j * bytes, bytes, MPI_BYTE, peer, TAG,
				  MPI_COMM_WORLD, &job->requests[count++]);
		for (int j = 0; j < window && sends; j++)
			MPI_Isend(job->out + (size_t)j * bytes, bytes, MPI_BYTE, peer, TAG,
				  MPI_COMM_WORLD, &job->requests[count++]);
		MPI_Waitall(count, job->requests, MPI_STATUSES_IGNORE);
		MPI_Sendrecv(job->out, gets, MPI_BYTE, peer, TAG, job->in, sends, MPI_BYTE, peer,
			     TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void bandwidth(struct job *job, int times)
{
	stream(job, times, LARGE_WINDOW, LARGE, 1);
}

static void both_ways(struct job *job, int times)
{
	stream(job, times, LARGE_WINDOW, LARGE, 3);
}

static void rate(struct job *job, int times)
{
	stream(job, times, SMALL_WINDOW, SMALL, 1);
}

static void allreduce(struct job *job, int times)
{
	for (int i = 0; i < times; i++)
		MPI_Allreduce(job->out, job->in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void allreduce_large(struct job *job, int times)
{
	for (int i = 0; i < times; i++)
		MPI_Allreduce(job->out, job->in, LARGE / sizeof(double), MPI_DOUBLE, MPI_SUM,
			      MPI_COMM_WORLD);
}

static void alltoall(struct job *job, int times)
{
	for (int i = 0; i < times; i++)
		MPI_Alltoall(job->out, BLOCK, MPI_BYTE, job->in, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
}

static const struct test tests[] = {
	{ "latency", latency, 2, 0 },
	{ "rate", rate, SMALL_WINDOW, 1 },
	{ "bandwidth", bandwidth, (double)LARGE_WINDOW *LARGE, 1 },
	{ "both_ways", both_ways, 2.0 * LARGE_WINDOW *LARGE, 1 },
	{ "allreduce", allreduce, 1, 0 },
	{ "allreduce_large", allreduce_large, 1, 0 },
	{ "alltoall", alltoall, 1, 0 },
};

/* Until the last rank is through. */
static double seconds_of(struct job *job, const struct test *test, int times)
{
	double begin, seconds, most;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	test->run(job, times);
	seconds = MPI_Wtime() - begin;
	MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return most;
}

/* Doubles the times until they take long enough; so caches are warm in the last try. */
static void measure(struct job *job, const struct test *test, double least)
{
	double seconds;
	int times = 1;

	while ((seconds = seconds_of(job, test, times)) < least && times < MOST_TIMES)
		times *= 2;
	if (job->rank == 0)
		printf("@%s %.9g\n", test->name,
		       test->is_rate ? job->ranks / 2 * times * test->per_time / seconds
				     : seconds / times / test->per_time);
	fflush(stdout);
}

static void measure_all(struct job *job)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		measure(job, &tests[i], LEAST_SECONDS);
}

static void measure_one(struct job *job, const char *name, const char *text)
{
	double least = strtod(text, NULL);

	if (!(least > 0 && least <= MOST_SECONDS))
		wrong("SECONDS is no number above 0 and up to 600");
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!strcmp(name, tests[i].name)) {
			measure(job, &tests[i], least);
			return;
		}
	wrong("TEST is none of latency, rate, bandwidth, both_ways, allreduce, allreduce_large, alltoall");
}

int main(int argc, char **argv)
{
	size_t bytes = (size_t)LARGE_WINDOW * LARGE;
	struct job job = { 0 };

	MPI_Init(&argc, &argv);
	if (argc != 1 && argc != 3)
		wrong("expected no arguments, or TEST and SECONDS");
	MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
	job.out = calloc(1, bytes);
	job.in = calloc(1, bytes);
	if (!job.out || !job.in)
		wrong("out of memory");
	if (job.ranks % 2)
		wrong("the number of ranks is odd, expected an even one");
	if ((size_t)job.ranks * BLOCK > bytes)
		wrong("too many ranks for MPI_Alltoall");
	memset(job.out, 0, bytes);
	memset(job.in, 1, bytes);
	alltoall(&job, 1); /* makes the connections, which can take longer than a measurement */
	if (argc == 3)
		measure_one(&job, argv[1], argv[2]);
	else
		measure_all(&job);
	free(job.out);
	free(job.in);
	MPI_Finalize();
	return 0;
}
