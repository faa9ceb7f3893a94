// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Two workers, each with its own pairs or with one adapter of each pair. */
#include "lane.h"
#include "thread.h"

struct workers {
	struct fg_host *host;
	struct bench_lane lane[2];
};

/* Both workers, each on its CPU. */
static double both(void *arg, uint64_t ns)
{
	struct workers *workers = arg;
	struct bench_thread other = { .turn = bench_lane_turn, .arg = &workers->lane[1] };
	double rate;

	workers->lane[1].done = 0;
	bench_thread_start(&other);
	rate = bench_lane_rate(&workers->lane[0], ns);
	bench_thread_stop(&other);
	return rate + (double)workers->lane[1].done * FG_SEC / other.ns;
}

/* @cross: the adapters of each lane belong to different workers. */
static void row(const char *name, bool cross)
{
	struct workers workers = { .host = fg_host_create_workers(2) };
	struct bench_side us = { "two workers", both, &workers };
	struct bench_side peer = { "one worker", bench_lane_rate, &workers.lane[0] };

	for (unsigned int i = 0; i < 2; i++)
		bench_lane_open(&workers.lane[i], workers.host, i, i, cross ? 1 - i : i);
	bench_row_of(name, 8, "1/s", &us, &peer);
	for (unsigned int i = 0; i < 2; i++)
		bench_lane_close(&workers.lane[i]);
	fg_host_destroy(workers.host);
}

void bench_workers(void)
{
	if (!bench_two_cpus("workers"))
		return;
	row("write_rate_2workers", false);
	row("write_rate_2workers_cross", true);
}
