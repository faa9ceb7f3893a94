// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* One worker for many adapters: a pair beside idle ones, the shares of busy ones, and delay. */
#include <stdlib.h>

#include "load.h"

#define ADAPTERS 256
#define IDLE_QPS 1000 /* of each idle adapter */
#define BUSY 64 /* pairs */
#define STREAMS 16 /* pairs with long messages beside a short one */
#define LONG (1u << 20)
#define SAMPLES 2000

/* ------------------------------------------------------------------- idle neighbors */

struct idle {
	struct fg_guest *guest;
	struct fg_end end;
	size_t bytes; /* of the device */
};

/* Idle queue pairs of a guest share their pages: a process has too few mappings for all. */
static void create_qps(struct idle *idle, uint32_t num)
{
	struct fg_qp_spec spec = { .pd = &idle->end.pd,
				   .scq = &idle->end.scq,
				   .rcq = &idle->end.rcq,
				   .type = PVR_QPT_RC };
	struct pvr_cmd_create_qp req = fg_qp_request(&spec);
	struct fg_qp *qps = calloc(num, sizeof(*qps));
	struct pvr_resp_create_qp resp;
	struct fg_buf buf;

	if (!qps)
		fg_die("no memory for %u QPs", num);
	fg_buf_init(&buf, &idle->guest->ram, req.total_chunks, FG_SCATTERED);
	req.pdir_dma = buf.pdir;
	idle->bytes = bench_heap();
	for (uint32_t i = 0; i < num; i++) {
		if (fg_create_qp(idle->guest, &req, &resp))
			fg_die("cannot create QP %u", i);
		qps[i] = (struct fg_qp){ .guest = idle->guest,
					 .ctx = &idle->guest->kernel,
					 .type = PVR_QPT_RC,
					 .buf = buf,
					 .ring = (struct pvr_ring_state *)buf.va,
					 .handle = resp.qp_handle,
					 .qpn = resp.qpn };
	}
	for (uint32_t i = 0; i < num; i++)
		if (fg_qp_connect(&qps[i], NULL, idle->end.gid, qps[i ^ 1].qpn))
			fg_die("cannot connect QP %u", i);
	idle->bytes = bench_heap() - idle->bytes;
	free(qps);
}

static void idle_open(struct idle *idle, struct fg_host *host, uint32_t number, uint32_t qps)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC };
	struct fg_guest_config config;
	uint8_t gid[16];

	fg_guest_config_init(&config, number);
	config.ext = BENCH_EXT;
	config.ram_mib = 6;
	config.linear_mib = 1;
	fg_gid_from_mac(gid, config.mac);
	idle->guest = fg_guest_create(host, &config);
	if (fg_guest_boot(idle->guest) || fg_bind_gid(idle->guest, 0, gid))
		fg_die("cannot start guest %u", number);
	fg_end_open_spec(&idle->end, &idle->guest->kernel, &spec, 1);
	create_qps(idle, qps);
}

/* The peer: the same pair without them. */
static void idle_rows(void)
{
	uint32_t num = bench_options.small ? 4 : ADAPTERS - 2, qps = 2 * bench_count(IDLE_QPS / 2);
	struct idle *idle = calloc(num, sizeof(*idle));
	struct bench_pair alone, beside;
	struct bench_load load_alone, load_beside;
	struct bench_side us = { "beside 254 idle adapters", bench_load_rate, &load_beside };
	struct bench_side peer = { "alone", bench_load_rate, &load_alone };

	if (!idle)
		fg_die("no memory for %u guests", num);
	bench_pair_open(&alone, &(struct bench_pair_config){ .type = PVR_QPT_RC });
	bench_pair_open(&beside, &(struct bench_pair_config){ .type = PVR_QPT_RC });
	for (uint32_t i = 0; i < num; i++)
		idle_open(&idle[i], beside.host, 3 + i, qps);
	bench_load_init(&load_alone, &alone, PVRDMA_WR_RDMA_WRITE, 8);
	bench_load_init(&load_beside, &beside, PVRDMA_WR_RDMA_WRITE, 8);
	load_alone.batch = load_alone.signal_every = load_beside.batch = load_beside.signal_every =
		64;
	bench_row_of("write_rate_neighbors", 8, "1/s", &us, &peer);
	load_alone.batch = load_alone.signal_every = load_beside.batch = load_beside.signal_every =
		1;
	bench_row_of("write_rate_neighbors_single", 8, "1/s", &us, &peer);
	for (uint32_t i = 0; i < num; i++)
		fg_guest_destroy(idle[i].guest);
	bench_pair_close(&beside);
	bench_pair_close(&alone);
	free(idle);
}

/* ------------------------------------------------------------------- busy neighbors */

struct crowd {
	struct fg_host *host;
	struct bench_pair *pairs;
	struct bench_load *loads;
	uint32_t num;
};

static void crowd_open(struct crowd *crowd, uint32_t num, uint32_t size)
{
	struct bench_pair_config config = {
		.type = PVR_QPT_RC,
		.pages = (size + PVR_PAGE_SIZE - 1) / PVR_PAGE_SIZE,
		.kind = FG_SCATTERED,
	};

	*crowd = (struct crowd){ .host = fg_host_create(), .num = num };
	crowd->pairs = calloc(num, sizeof(*crowd->pairs));
	crowd->loads = calloc(num, sizeof(*crowd->loads));
	if (!crowd->pairs || !crowd->loads)
		fg_die("no memory for %u pairs", num);
	config.host = crowd->host;
	for (uint32_t i = 0; i < num; i++) {
		config.first = 1 + 2 * i;
		bench_pair_open(&crowd->pairs[i], &config);
		bench_load_init(&crowd->loads[i], &crowd->pairs[i], PVRDMA_WR_RDMA_WRITE, size);
	}
}

static void crowd_close(struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->num; i++)
		bench_pair_close(&crowd->pairs[i]);
	fg_host_destroy(crowd->host);
	free(crowd->loads);
	free(crowd->pairs);
}

/* Each send queue is full again. */
static void refill(struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->num; i++) {
		struct fg_qp *qp = &crowd->pairs[i].a.qp;
		bool any = false;

		while (fg_sq_space(qp)) {
			bench_load_put(&crowd->loads[i], false);
			any = true;
		}
		if (any)
			fg_ring_send(qp);
	}
}

/* The smallest and the largest share of an adapter, as parts of an equal share. */
static void shares(struct crowd *crowd, double *least, double *most)
{
	uint64_t sum = 0, low = UINT64_MAX, high = 0, bytes;

	for (uint32_t i = 0; i < crowd->num; i++) {
		bytes = fg_stats(crowd->pairs[i].guest[0]).tx_bytes;
		sum += bytes;
		low = bytes < low ? bytes : low;
		high = bytes > high ? bytes : high;
	}
	*least = (double)low * crowd->num / (double)sum;
	*most = (double)high * crowd->num / (double)sum;
}

/* Counts do not depend on time: one round is enough. @arg: 0: the smallest share, 1: the largest */
static double share_side(void *arg, uint64_t ns)
{
	struct crowd crowd;
	double share[2];
	uint32_t size = 64u << 10;

	crowd_open(&crowd, bench_options.small ? 4 : BUSY, size);
	for (uint32_t i = 0; i < (bench_options.small ? 20 : 50); i++) {
		refill(&crowd);
		for (uint32_t run = 0; run < crowd.num; run++)
			pvr_engine_run(crowd.host->engine, 0);
	}
	shares(&crowd, &share[0], &share[1]);
	crowd_close(&crowd);
	return share[*(int *)arg];
}

static void share_rows(void)
{
	int least = 0, most = 1;
	struct bench_side low = { "device", share_side, &least };
	struct bench_side high = { "device", share_side, &most };

	bench_row("share_least", "x", &low, NULL);
	bench_row("share_most", "x", &high, NULL);
}

/* ---------------------------------------------------------------------------- delay */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Time of the worker from the doorbell of a short message to its completion: 99.9 %. */
static double delay_side(void *arg, uint64_t ns)
{
	uint32_t samples = bench_options.small ? 50 : SAMPLES;
	double *took = calloc(samples, sizeof(*took)), result;
	struct bench_pair *pair;
	struct bench_load load;
	struct crowd crowd;
	uint64_t begin;

	crowd_open(&crowd, bench_options.small ? 3 : STREAMS + 1, LONG);
	pair = &crowd.pairs[--crowd.num];
	bench_load_init(&load, pair, PVRDMA_WR_RDMA_WRITE, 8);
	for (uint32_t i = 0; i < samples; i++) {
		for (uint32_t run = (uint32_t)rand() % 4; run; run--) {
			refill(&crowd);
			pvr_engine_run(crowd.host->engine, 0);
		}
		bench_load_put(&load, true);
		fg_ring_send(&pair->a.qp);
		begin = bench_now();
		while (!fg_cq_pending(&pair->a.scq))
			pvr_engine_run(crowd.host->engine, 0);
		took[i] = (double)(bench_now() - begin);
		fg_cq_drain(&pair->a.scq);
	}
	qsort(took, samples, sizeof(*took), compare);
	result = took[samples - 1 - samples / 1000];
	crowd.num++;
	crowd_close(&crowd);
	free(took);
	return result / FG_SEC;
}

static void delay_row(void)
{
	struct bench_side us = { "device", delay_side, NULL };

	bench_row("delay_p999_beside_streams", "s", &us, NULL);
}

void bench_neighbors(void)
{
	idle_rows();
	share_rows();
	delay_row();
}
