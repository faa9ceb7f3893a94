/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Tests of MPI programs: every byte that arrives is compared with what it must be. */
#ifndef PVR_MPI_H
#define PVR_MPI_H

#include <stddef.h>
#include <stdint.h>
#include <mpi.h>

#define MPI_TEST_MOST (4u << 20)

/* Parameters of a job. */
struct job {
	int rank, ranks;
	int nodes;
	int *node_of; /* rank -> a number of its node */
	int first_of_node; /* is this the node's least rank? */
	uint64_t between_nodes; /* bytes that must have left this rank's node because of it: a lower bound */
};

struct test {
	const char *name;
	void (*run)(struct job *job);
};

/* Sizes of messages, and how often each is sent. */
struct size {
	size_t bytes;
	int rounds;
};

extern const struct size sizes[];
extern const size_t sizes_num;

/* Fill @buf with bytes that depend on sender, receiver and time. */
void pattern_fill(void *buf, size_t len, int from, int to, uint64_t when);
/* Ends the job with a message if the bytes differ. */
void pattern_check(const struct job *job, const void *buf, size_t len, int from, int to,
		   uint64_t when);

/* Like printf; ends the job. */
_Noreturn void wrong(const struct job *job, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void *must_alloc(const struct job *job, size_t len);
/* Counts `len` bytes to rank `to`, if that rank is on another node. */
void count_sent(struct job *job, int to, size_t len);

void test_ring(struct job *job);
void test_allreduce(struct job *job);
void test_alltoall(struct job *job);
void test_put_get(struct job *job);
void test_accumulate(struct job *job);
void test_tickets(struct job *job);

#endif
