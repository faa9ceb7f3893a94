// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Rate of small messages on one thread. */
#include "load.h"
#include "poller.h"

static const struct {
	const char *name;
	enum pvr_qp_type type;
	enum pvrdma_wr_opcode opcode;
	uint32_t signal_every;
} rates[] = {
	{ "write_rate", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 64 },
	{ "write_rate_signaled", PVR_QPT_RC, PVRDMA_WR_RDMA_WRITE, 1 },
	{ "send_rate", PVR_QPT_RC, PVRDMA_WR_SEND, 64 },
	{ "read_rate", PVR_QPT_RC, PVRDMA_WR_RDMA_READ, 64 },
	{ "ud_rate", PVR_QPT_UD, PVRDMA_WR_SEND, 64 },
};

static void rate_rows(void)
{
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct bench_load load;
		struct bench_side us = { "device", bench_load_rate, &load };
		struct bench_pair pair;

		bench_pair_open(&pair, &(struct bench_pair_config){ .type = rates[i].type });
		bench_load_init(&load, &pair, rates[i].opcode, 8);
		load.signal_every = rates[i].signal_every;
		bench_row_of(rates[i].name, 8, "1/s", &us, NULL);
		bench_pair_close(&pair);
	}
}

/* ------------------------------------------------------------------ live */

/*
 * Posts and polls until the time is over and all requests are complete. Return: number of
 * requests.
 */
static uint64_t post_and_poll(struct bench_load *load, struct bench_poller *poller, uint64_t ns)
{
	struct bench_pair *pair = load->pair;
	uint64_t begin = bench_now(), posted = 0, done = 0;

	while (bench_now() - begin < ns || done < posted) {
		if (bench_now() - begin < ns && fg_sq_space(&pair->a.qp) >= load->batch) {
			bench_load_fill(load);
			bench_poller_tell(poller);
			posted += load->batch;
		}
		done += (uint64_t)fg_cq_drain(&pair->a.scq) * load->signal_every;
	}
	return done;
}

/* The guest posts on one CPU while the worker polls on another. */
static double live(void *arg, uint64_t ns)
{
	struct bench_load *load = arg;
	struct bench_watch watch = { 0 };
	static struct bench_poller poller; /* more aligned than GCC's sanitizer aligns frames */
	uint64_t done;

	bench_poller_start(&poller, load->pair);
	bench_watch_start(&watch);
	done = post_and_poll(load, &poller, ns);
	bench_watch_stop(&watch);
	bench_poller_stop(&poller);
	return (double)done * FG_SEC / watch.sum;
}

static void live_row(void)
{
	struct bench_load load;
	struct bench_side us = { "device", live, &load };
	struct bench_pair pair;

	if (!bench_two_cpus("write_rate_live"))
		return;
	bench_pair_open(&pair, &(struct bench_pair_config){ .type = PVR_QPT_RC });
	bench_load_init(&load, &pair, PVRDMA_WR_RDMA_WRITE, 8);
	load.batch = 64;
	bench_row_of("write_rate_live", 8, "1/s", &us, NULL);
	bench_pair_close(&pair);
}

void bench_rate(void)
{
	rate_rows();
	live_row();
}
