/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A second thread that does something over and over while rows are measured. */
#ifndef BENCH_THREAD_H
#define BENCH_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct bench_thread {
	void (*turn)(void *arg); /* called until bench_thread_stop() */
	void *arg;
	uint64_t ns; /* from begin to end, as bench_now() has it; after bench_thread_stop() */
	/* Private: */
	int cpu;
	pthread_t id;
	atomic_bool stop;
};

/* How many CPUs this process may use. */
unsigned int bench_cpus(void);
/* The calling thread stays on the @nth CPU of those; there must be as many. */
void bench_pin(unsigned int nth);
/* And may run anywhere again. */
void bench_unpin(void);

/* On the @nth CPU. */
void bench_thread_start(struct bench_thread *thread, unsigned int nth);
void bench_thread_stop(struct bench_thread *thread);

#endif /* BENCH_THREAD_H */
