// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Rounds, medians, rows. */
#include "bench.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fake_guest.h"

#define MAX_ROUNDS 101

struct bench_options bench_options = { .rounds = 11, .slice_ns = 20 * FG_MS };

/* The results of a side, one per round. */
struct series {
	double value[MAX_ROUNDS];
	unsigned int n;
};

uint64_t bench_now(void)
{
	struct timespec ts;

	clock_gettime(bench_options.cpu_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * FG_SEC + ts.tv_nsec;
}

uint64_t bench_clock_ns;

void bench_clock_init(void)
{
	double ns[1001];

	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		ns[i] = -(double)bench_now();
		ns[i] += bench_now();
	}
	bench_clock_ns = bench_median(ns, sizeof(ns) / sizeof(ns[0]));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double bench_median(double *value, unsigned int n)
{
	qsort(value, n, sizeof(*value), by_value);
	return n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
}

static void run_side(const struct bench_side *side, struct series *series)
{
	series->value[series->n++] = side->run(side->arg, bench_options.slice_ns);
}

static void run_round(unsigned int round, const struct bench_side *us, struct series *our,
		      const struct bench_side *peer, struct series *their)
{
	if (peer && round % 2)
		run_side(peer, their);
	run_side(us, our);
	if (peer && round % 2 == 0)
		run_side(peer, their);
}

static void print_row(const char *name, const char *unit, struct series *our, const char *peer,
		      struct series *their)
{
	double value = bench_median(our->value, our->n);

	printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", ", name, value, unit);
	if (peer) {
		double peer_value = bench_median(their->value, their->n);

		printf("\"peer\": \"%s\", \"peer_value\": %.6g, \"ratio\": %.4g, ", peer,
		       peer_value, value / peer_value);
	} else {
		printf("\"peer\": null, \"peer_value\": null, \"ratio\": null, ");
	}
	printf("\"min\": %.6g, \"max\": %.6g, \"runs\": %u}\n", our->value[0],
	       our->value[our->n - 1], our->n);
	fflush(stdout);
}

void bench_row(const char *name, const char *unit, const struct bench_side *us,
	       const struct bench_side *peer)
{
	struct series our = { .n = 0 }, their = { .n = 0 };

	if (!bench_options.rounds || bench_options.rounds > MAX_ROUNDS)
		fg_die("%u rounds, expected 1 to %u", bench_options.rounds, MAX_ROUNDS);
	/* Warms caches, page tables and the CPU's clock. */
	run_round(0, us, &our, peer, &their);
	our.n = their.n = 0;
	for (unsigned int i = 0; i < bench_options.rounds; i++)
		run_round(i, us, &our, peer, &their);
	print_row(name, unit, &our, peer ? peer->name : NULL, &their);
}

size_t bench_heap(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

uint32_t bench_count(uint32_t n)
{
	return bench_options.small ? n / 100 : n;
}

void bench_row_of(const char *name, uint64_t number, const char *unit, const struct bench_side *us,
		  const struct bench_side *peer)
{
	char full[64];

	snprintf(full, sizeof(full), "%s.%" PRIu64, name, number);
	bench_row(full, unit, us, peer);
}
