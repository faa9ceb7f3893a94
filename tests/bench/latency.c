// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* From the begin of posting to the completion's being polled. */
#include "load.h"

/* All on one thread, with what the fake guest itself does. Return: seconds. */
static double one_thread(void *arg, uint64_t ns)
{
	struct bench_load *load = arg;
	uint64_t begin = bench_now(), end = begin, done = 0;

	while (end - begin < ns) {
		for (int i = 0; i < 100; i++) {
			bench_load_fill(load);
			bench_load_run(load);
			bench_load_reap(load);
		}
		done += 100;
		end = bench_now();
	}
	return (double)(end - begin) / done / FG_SEC;
}

void bench_latency(void)
{
	struct bench_load load;
	struct bench_side us = { "device", one_thread, &load };
	struct bench_pair pair;

	bench_pair_open(&pair, &(struct bench_pair_config){ .type = PVR_QPT_RC });
	bench_load_init(&load, &pair, PVRDMA_WR_RDMA_WRITE, 8);
	load.batch = load.signal_every = 1;
	bench_row_of("write_lat_1thread", 8, "s", &us, NULL);
	bench_pair_close(&pair);
}
