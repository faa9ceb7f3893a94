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
	pthread_t id;
	atomic_bool stop;
};

/* Return: whether this process may use two CPUs; if not, says that @rows need them. */
bool bench_two_cpus(const char *rows);

/* Pins the calling thread to the first CPU. */
void bench_pin(void);
/* Undoes that. */
void bench_unpin(void);

/* Starts the thread on the second CPU and pins the calling thread to the first one. */
void bench_thread_start(struct bench_thread *thread);
/* Undoes both. */
void bench_thread_stop(struct bench_thread *thread);

#endif /* BENCH_THREAD_H */
