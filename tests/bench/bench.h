/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The benchmarks' harness: rounds, medians, one line of JSON per row.
 *
 * DOC: how a row comes about
 *
 * A row compares two sides, or shows one that has no peer. A side works for about as long
 * as it is told and returns what it achieved. Both take turns, in every round in the other
 * order, so that what else goes on in the machine hits both alike; the row's figures are
 * the medians.
 *
 * What a fake guest itself spends would not be the device's: so sides fill the rings
 * beforehand and stop the clock meanwhile (struct bench_watch), unless a row's name says
 * that the guest is part of it.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_side {
	const char *name;
	/* @ns: for how long. Return: what the row counts. */
	double (*run)(void *arg, uint64_t ns);
	void *arg;
};

struct bench_options {
	unsigned int rounds; /* of each row, a first one that does not count not included */
	uint64_t slice_ns; /* of each side in each round */
	bool small; /* few of what rows have many of: to see that they work */
	bool cpu_time; /* of the thread, instead of the wall's: what others use does not count */
};

extern struct bench_options bench_options;

/* Runs both sides and prints the row; @peer: NULL, or whom to compare with. */
void bench_row(const char *name, const char *unit, const struct bench_side *us,
	       const struct bench_side *peer);
/* As bench_row(), "<name>.<number>". */
void bench_row_of(const char *name, uint64_t number, const char *unit, const struct bench_side *us,
		  const struct bench_side *peer);

/* Sorts them. */
double bench_median(double *value, unsigned int n);

/* Nanoseconds, see bench_options.cpu_time. */
uint64_t bench_now(void);

/* What it takes to stop and start a watch, which is no part of what it measures. */
extern uint64_t bench_clock_ns;
/* Once, when the options are set. */
void bench_clock_init(void);

/* Time that counts, in pieces. */
struct bench_watch {
	uint64_t begin, sum;
};

static inline void bench_watch_start(struct bench_watch *watch)
{
	watch->begin = bench_now();
}

static inline void bench_watch_stop(struct bench_watch *watch)
{
	uint64_t ns = bench_now() - watch->begin;

	watch->sum += ns > bench_clock_ns ? ns - bench_clock_ns : 0;
}

/* @n, or a hundredth of it where things are small. */
uint32_t bench_count(uint32_t n);

/* Groups of rows, in the order of their names in main.c. */
void bench_bandwidth(void);
void bench_rate(void);
void bench_latency(void);
void bench_scale(void);
void bench_regions(void);
void bench_workers(void);
void bench_hostile(void);

#endif /* BENCH_H */
