/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A second thread that repeats a function while rows are measured. */
#ifndef BENCH_THREAD_H
#define BENCH_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct bench_thread {
	void (*turn)(void *arg); /* called until bench_thread_stop() */
	void *arg;
	uint64_t ns; /* bench_now() from begin to end; valid after bench_thread_stop() */
	/* Private: */
	int cpu;
	pthread_t id;
	atomic_bool stop;
};

/*
 * Return: the number of CPUs that this process may use.
 */
unsigned int bench_cpus(void);
/* Pins the calling thread to the @nth of these CPUs, which must exist. */
void bench_pin(unsigned int nth);
/* Undoes that. */
void bench_unpin(void);

/* Starts the thread on the @nth CPU. */
void bench_thread_start(struct bench_thread *thread, unsigned int nth);
void bench_thread_stop(struct bench_thread *thread);

#endif /* BENCH_THREAD_H */
