// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Many queue pairs: the rate over 10,000 of them, and the memory of an idle one. */
#include <malloc.h>
#include <stdlib.h>

#include "many.h"

#define MANY 10000
#define WAVE 32
#define IDLE 1000
#define IDLE_PAGES 8 /* bytes of a queue pair with its directory */

/* All queue pairs, compared with a few of them, which fit into the caches. */
static const struct {
	const char *name, *peer;
	uint32_t batch; /* requests of a visit */
	uint32_t wave; /* see struct bench_visits */
	uint32_t few; /* of the peer */
} rates[] = {
	/*
	 * The device keeps up with the guests: few queue pairs have new requests at a
	 * time.
	 */
	{ "write_rate_10kqp", "one QP", BENCH_MANY_BATCH, WAVE, 1 },
	/*
	 * With one request per visit, a single queue pair would mostly measure the clock.
	 */
	{ "write_rate_10kqp_single", "32 QPs", 1, WAVE, WAVE },
	/* All post before the device runs: 80 MiB of requests exceed the caches. */
	{ "write_rate_10kqp_backlog", "one QP", BENCH_MANY_BATCH, MANY, 1 },
};

static void rate_rows(struct bench_many *many)
{
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct bench_visits all = { many, many->n, rates[i].wave, rates[i].batch };
		struct bench_visits some = { many, rates[i].few, rates[i].wave, rates[i].batch };
		struct bench_side us = { "10,000 QPs", bench_visits_rate, &all };
		struct bench_side peer = { rates[i].peer, bench_visits_rate, &some };

		bench_row_of(rates[i].name, 8, "1/s", &us, &peer);
	}
}

/* For a curve. */
static void curve(struct bench_many *many)
{
	for (uint32_t n = 1; n <= many->n; n *= 10) {
		struct bench_visits visits = { many, n, WAVE, BENCH_MANY_BATCH };
		struct bench_side us = { "device", bench_visits_rate, &visits };

		bench_row_of("write_rate_qps", n, "1/s", &us, NULL);
	}
}

static size_t heap(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* Memory of the device for each end of a connection; the fake guest allocates before. */
static double idle_bytes(void *arg, uint64_t ns)
{
	struct bench_pair *pair = arg;
	struct fg_qp_spec spec = {
		.pd = &pair->a.pd, .scq = &pair->a.scq, .rcq = &pair->a.rcq, .type = PVR_QPT_RC
	};
	struct fg_buf *buf = calloc(IDLE, sizeof(*buf));
	struct fg_qp *qp = calloc(IDLE, sizeof(*qp));
	struct pvr_cmd_create_qp req = fg_qp_request(&spec);
	size_t before, bytes;

	for (uint32_t i = 0; i < IDLE; i++)
		fg_buf_init(&buf[i], &pair->guest[0]->ram, req.total_chunks, FG_SCATTERED);
	before = heap();
	for (uint32_t i = 0; i < IDLE; i++) {
		struct pvr_resp_create_qp resp;

		req.pdir_dma = buf[i].pdir;
		if (fg_create_qp(pair->guest[0], &req, &resp))
			fg_die("cannot create QP %u", i);
		qp[i] = (struct fg_qp){ .guest = pair->guest[0],
					.ctx = pair->a.pd.ctx,
					.type = PVR_QPT_RC,
					.buf = buf[i],
					.ring = (struct pvr_ring_state *)buf[i].va,
					.handle = resp.qp_handle,
					.qpn = resp.qpn };
	}
	/* Connects pairs of queue pairs of this guest. */
	for (uint32_t i = 0; i < IDLE; i++)
		if (fg_qp_connect(&qp[i], NULL, pair->a.gid, qp[i ^ 1].qpn))
			fg_die("cannot connect QP %u", i);
	bytes = heap() - before;
	for (uint32_t i = 0; i < IDLE; i++)
		if (fg_qp_destroy(&qp[i]))
			fg_die("cannot destroy QP %u", i);
	free(qp);
	free(buf);
	return (double)bytes / IDLE;
}

static void idle_row(void)
{
	struct bench_pair pair;
	struct bench_side us = { "device", idle_bytes, &pair };

	bench_pair_open(&pair, &(struct bench_pair_config){
				       .type = PVR_QPT_RC,
				       .spare_pages = IDLE * IDLE_PAGES,
			       });
	bench_row("qp_bytes", "B", &us, NULL);
	bench_pair_close(&pair);
}

void bench_scale(void)
{
	struct bench_many many;

	bench_many_open(&many, bench_count(MANY));
	rate_rows(&many);
	curve(&many);
	bench_many_close(&many);
	idle_row();
}
