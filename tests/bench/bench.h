/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The benchmarks' harness: rounds, medians, one line of JSON per row.
 *
 * DOC: Measurement of a row
 *
 * A row compares two sides, or measures one side. A side runs for about the given time
 * and returns its result. The sides take turns and change their order every round, so
 * that other load of the machine affects both alike. The row's values are the medians.
 *
 * The time of a fake guest's own work does not count. So sides fill the rings while the
 * clock is stopped (struct bench_watch), unless the row's name includes the guest.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_side {
	const char *name;
	/* @ns: duration. Return: the value of the row. */
	double (*run)(void *arg, uint64_t ns);
	void *arg;
};

struct bench_options {
	unsigned int rounds; /* rounds of each row, without a first one that does not count */
	uint64_t slice_ns; /* ns per side and round */
	bool small; /* few objects instead of many: a smoke test */
	bool cpu_time; /* CPU time of the thread instead of wall time */
};

extern struct bench_options bench_options;

/* Runs both sides and prints the row. @peer: the side to compare with, or NULL. */
void bench_row(const char *name, const char *unit, const struct bench_side *us,
	       const struct bench_side *peer);
/* As bench_row(), "<name>.<number>". */
void bench_row_of(const char *name, uint64_t number, const char *unit, const struct bench_side *us,
		  const struct bench_side *peer);

/* Sorts them. */
double bench_median(double *value, unsigned int n);

/* ns, see bench_options.cpu_time. */
uint64_t bench_now(void);

/* ns to stop and start a watch, which its result excludes. */
extern uint64_t bench_clock_ns;
/* Call once, after the options are set. */
void bench_clock_init(void);

/* A stop watch. */
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

/* Return: allocated bytes of the heap. */
size_t bench_heap(void);

/* Return: @n, or a hundredth of it with bench_options.small. */
uint32_t bench_count(uint32_t n);

/* Groups of rows, in the order of their names in main.c. */
void bench_bandwidth(void);
void bench_rate(void);
void bench_latency(void);
void bench_scale(void);
void bench_regions(void);
void bench_workers(void);
void bench_hostile(void);
void bench_neighbors(void);
void bench_qos(void);
void bench_migrate(void);

#endif /* BENCH_H */
