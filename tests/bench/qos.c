// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Limits: a pair beside a limited one, and how exact a limit is over a second of the wall clock. */
#include <math.h>
#include <time.h>

#include "load.h"

#define LIMITED 10000 /* messages/s of the limited pair beside another one */
#define RATE 1000000000ull /* bytes/s */
#define MESSAGES 100000ull /* 1/s */
#define LONG (64u << 10)

/* Timers of the engine run by it, also if rows are measured by CPU time. */
static uint64_t wall_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * FG_SEC + (uint64_t)ts.tv_nsec;
}

static void open_pair(struct bench_pair *pair, struct fg_host *host, uint32_t first, uint32_t size)
{
	const struct bench_pair_config config = {
		.type = PVR_QPT_RC,
		.host = host,
		.first = first,
		.pages = size / PVR_PAGE_SIZE,
	};

	bench_pair_open(pair, &config);
	pair->host->real_now = wall_clock;
}

static void limit(struct bench_pair *pair, uint64_t rate, uint64_t messages)
{
	const struct pvr_qos qos = { .rate = rate, .messages = messages };

	if (pvr_adapter_set_qos(pair->guest[0]->adapter, &qos))
		fg_die("cannot limit an adapter");
}

/* Nothing is signaled. */
static void keep_full(struct bench_load *load)
{
	struct fg_qp *qp = &load->pair->a.qp;
	bool any = false;

	while (fg_sq_space(qp)) {
		bench_load_put(load, false);
		any = true;
	}
	if (any)
		fg_ring_send(qp);
}

/* ----------------------------------------------------------------------- the neighbor */

struct beside {
	struct bench_load *load, *limited;
};

static void fill_both(struct bench_load *load, void *arg)
{
	bench_load_fill(load);
	keep_full(arg);
}

static double beside_rate(void *arg, uint64_t ns)
{
	const struct beside *beside = arg;

	return bench_load_rate_of(beside->load, ns, fill_both, beside->limited);
}

static void beside_row(void)
{
	struct bench_pair alone, pair, limited;
	struct bench_load load_alone, load, load_limited;
	struct beside both = { &load, &load_limited };
	struct bench_side us = { "beside a limited adapter", beside_rate, &both };
	struct bench_side peer = { "alone", bench_load_rate, &load_alone };

	open_pair(&alone, NULL, 1, PVR_PAGE_SIZE);
	open_pair(&pair, NULL, 1, PVR_PAGE_SIZE);
	open_pair(&limited, pair.host, 3, PVR_PAGE_SIZE);
	limit(&limited, 0, LIMITED);
	bench_load_init(&load_alone, &alone, PVRDMA_WR_RDMA_WRITE, 8);
	bench_load_init(&load, &pair, PVRDMA_WR_RDMA_WRITE, 8);
	bench_load_init(&load_limited, &limited, PVRDMA_WR_RDMA_WRITE, 8);
	bench_row_of("write_rate_beside_limited", 8, "1/s", &us, &peer);
	bench_pair_close(&limited);
	bench_pair_close(&pair);
	bench_pair_close(&alone);
}

/* -------------------------------------------------------------------------- the limit */

struct limited {
	struct bench_load load;
	double expected; /* bytes or messages per second */
	bool by_bytes;
};

static uint64_t sent(const struct limited *limited)
{
	struct pvr_adapter_stats stats = fg_stats(limited->load.pair->guest[0]);

	return limited->by_bytes ? stats.tx_bytes : stats.tx_messages;
}

static void work_for(struct limited *limited, uint64_t ns)
{
	uint64_t begin = wall_clock();

	while (wall_clock() - begin < ns) {
		keep_full(&limited->load);
		fg_run(limited->load.pair->host);
	}
}

/* Return: per cent. The adapter is busy before, so that it has saved nothing. */
static double error_side(void *arg, uint64_t ns)
{
	struct limited *limited = arg;
	uint64_t second = bench_options.small ? FG_SEC / 20 : FG_SEC, begin, before;
	double per_second;

	(void)ns;
	work_for(limited, second / 10);
	begin = wall_clock();
	before = sent(limited);
	work_for(limited, second);
	per_second = (double)(sent(limited) - before) * FG_SEC / (double)(wall_clock() - begin);
	return 100 * fabs(per_second / limited->expected - 1);
}

static void error_row(const char *name, uint64_t rate, uint64_t messages, uint32_t size)
{
	struct limited limited = { .expected = (double)(rate + messages), .by_bytes = rate };
	struct bench_side us = { "device", error_side, &limited };
	struct bench_pair pair;

	open_pair(&pair, NULL, 1, size < PVR_PAGE_SIZE ? PVR_PAGE_SIZE : size);
	limit(&pair, rate, messages);
	bench_load_init(&limited.load, &pair, PVRDMA_WR_RDMA_WRITE, size);
	bench_row(name, "%", &us, NULL);
	bench_pair_close(&pair);
}

void bench_qos(void)
{
	beside_row();
	error_row("qos_rate_error", RATE, 0, LONG);
	error_row("qos_messages_error", 0, MESSAGES, 8);
}
