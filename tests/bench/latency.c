// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Time from the begin of posting to the polled completion. */
#include "load.h"
#include "poller.h"

#define GROUP 50 /* messages between two reads of the clock */
#define MAX_GROUPS 65536

/*
 * One message at a time, in groups. The median group excludes those with an interrupt or
 * another process. Return: seconds per message.
 */
static double median_of_groups(struct bench_load *load, uint64_t ns,
			       void (*message)(struct bench_load *load, void *arg), void *arg)
{
	static double group[MAX_GROUPS];
	uint64_t begin = bench_now(), now = begin, last;
	unsigned int n = 0;

	while (now - begin < ns && n < MAX_GROUPS) {
		last = now;
		for (int i = 0; i < GROUP; i++)
			message(load, arg);
		now = bench_now();
		group[n++] = (double)(now - last) / GROUP / FG_SEC;
	}
	return bench_median(group, n);
}

/* ------------------------------------------------------------ one thread */

/* The guest and the device take turns. */
static void by_doorbell(struct bench_load *load, void *arg)
{
	bench_load_fill(load);
	bench_load_run(load);
	bench_load_reap(load);
}

static double one_thread(void *arg, uint64_t ns)
{
	return median_of_groups(arg, ns, by_doorbell, NULL);
}

static void by_polling(struct bench_load *load, void *arg)
{
	struct pvr_engine *engine = load->pair->host->engine;

	bench_load_fill(load);
	if (!pvr_engine_poll(engine, 0))
		fg_ring_send(&load->pair->a.qp);
	pvr_engine_run(engine, 0);
	bench_load_reap(load);
}

static double one_thread_polling(void *arg, uint64_t ns)
{
	return median_of_groups(arg, ns, by_polling, NULL);
}

/* ----------------------------------------------------------- two threads */

static void by_poller(struct bench_load *load, void *arg)
{
	bench_load_fill(load);
	bench_poller_tell(arg);
	while (!fg_cq_pending(&load->pair->a.scq))
		;
	bench_load_reap(load);
}

static double two_threads(void *arg, uint64_t ns)
{
	struct bench_load *load = arg;
	static struct bench_poller poller; /* see rate.c */
	double seconds;

	bench_poller_start(&poller, load->pair);
	seconds = median_of_groups(load, ns, by_poller, &poller);
	bench_poller_stop(&poller);
	return seconds;
}

/*
 * A doorbell and a response without a device: a round trip of a cache line between two
 * CPUs, the lower bound for two threads.
 */
struct bounce {
	struct bench_thread thread;
	_Alignas(64) atomic_uint there;
	_Alignas(64) atomic_uint back;
};

static void bounce_turn(void *arg)
{
	struct bounce *bounce = arg;

	atomic_store(&bounce->back, atomic_load(&bounce->there));
}

static void by_bounce(struct bench_load *load, void *arg)
{
	struct bounce *bounce = arg;
	unsigned int n = atomic_load(&bounce->there) + 1;

	atomic_store(&bounce->there, n);
	while (atomic_load(&bounce->back) != n)
		;
}

static double cache_line(void *arg, uint64_t ns)
{
	static struct bounce bounce; /* see rate.c */
	double seconds;

	bounce.thread = (struct bench_thread){ .turn = bounce_turn, .arg = &bounce };
	bench_thread_start(&bounce.thread);
	seconds = median_of_groups(arg, ns, by_bounce, &bounce);
	bench_thread_stop(&bounce.thread);
	return seconds;
}

void bench_latency(void)
{
	struct bench_load load;
	struct bench_side one = { "device", one_thread, &load };
	struct bench_side polling = { "device", one_thread_polling, &load };
	struct bench_side two = { "device", two_threads, &load };
	struct bench_side line = { "cache line", cache_line, &load };
	struct bench_pair pair;

	bench_pair_open(&pair, &(struct bench_pair_config){ .type = PVR_QPT_RC });
	bench_load_init(&load, &pair, PVRDMA_WR_RDMA_WRITE, 8);
	load.batch = load.signal_every = 1;
	bench_row_of("write_lat_1thread", 8, "s", &one, NULL);
	bench_row_of("write_lat_1thread_polling", 8, "s", &polling, NULL);
	if (bench_two_cpus("write_lat"))
		bench_row_of("write_lat", 8, "s", &two, &line);
	bench_pair_close(&pair);
}
