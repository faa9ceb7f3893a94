// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Threads on CPUs of their own. */
#include "thread.h"

#include <sched.h>
#include <stdio.h>

#include "bench.h"
#include "fake_guest.h"

static cpu_set_t allowed;

/* The CPUs of the process before any of its threads was pinned. */
__attribute__((constructor)) static void read_allowed(void)
{
	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		fg_die("cannot read which CPUs there are");
}

bool bench_two_cpus(const char *rows)
{
	if (CPU_COUNT(&allowed) >= 2)
		return true;
	fprintf(stderr, "bench: %s needs two CPUs, there is one\n", rows);
	return false;
}

/* The @nth of these CPUs, which must exist. */
static void pin(int nth)
{
	cpu_set_t set;
	int cpu = -1;

	do
		cpu++;
	while (!CPU_ISSET(cpu, &allowed) || nth--);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		fg_die("cannot stay on CPU %d", cpu);
}

void bench_pin(void)
{
	pin(0);
}

void bench_unpin(void)
{
	pthread_setaffinity_np(pthread_self(), sizeof(allowed), &allowed);
}

static void *run(void *arg)
{
	struct bench_thread *thread = arg;
	uint64_t begin;

	pin(1);
	begin = bench_now();
	while (!atomic_load_explicit(&thread->stop, memory_order_relaxed))
		thread->turn(thread->arg);
	thread->ns = bench_now() - begin;
	return NULL;
}

void bench_thread_start(struct bench_thread *thread)
{
	bench_pin();
	atomic_store(&thread->stop, false);
	if (pthread_create(&thread->id, NULL, run, thread))
		fg_die("cannot start a thread");
}

void bench_thread_stop(struct bench_thread *thread)
{
	atomic_store(&thread->stop, true);
	if (pthread_join(thread->id, NULL))
		fg_die("cannot join a thread");
	bench_unpin();
}
