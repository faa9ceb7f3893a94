// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Many queue pairs: the rate over 10,000 of them, and the memory of an idle one. */
#include <stdlib.h>

#include "load.h"

#define MANY 10000
#define WAVE 32
#define DEPTH 64 /* of the send queues: maximum number of requests per visit */
#define CQE 4096
#define PAGES_PER_QP 4 /* header, DEPTH send requests, receive requests */
#define IDLE 1000
#define IDLE_PAGES 8 /* bytes of a queue pair with its directory */

/* ------------------------------------------------------ many queue pairs */

struct many {
	struct bench_pair pair; /* guests, PDs, buffers; its own queue pair is not used */
	uint32_t n;
	struct fg_qp *a, *b; /* n each, connected pairwise */
	struct fg_cq *cq; /* ncq CQs of all queue pairs of a */
	uint32_t ncq;
};

static struct fg_qp *qps_open(struct many *many, struct fg_end *end, bool sender)
{
	struct fg_qp *qps = calloc(many->n, sizeof(*qps));
	struct fg_qp_spec spec = { .pd = &end->pd,
				   .rcq = &end->rcq,
				   .type = PVR_QPT_RC,
				   .sq_wr = sender ? DEPTH : 1,
				   .sq_sge = 1,
				   .rq_wr = 1,
				   .rq_sge = 1,
				   .kind = FG_LINEAR };

	if (!qps)
		fg_die("no memory for %u QPs", many->n);
	for (uint32_t i = 0; i < many->n; i++) {
		spec.scq = sender ? &many->cq[i / CQE] : &end->scq;
		if (fg_qp_create(&spec, &qps[i]))
			fg_die("cannot create QP %u", i);
	}
	return qps;
}

static void cqs_open(struct many *many)
{
	many->ncq = (many->n + CQE - 1) / CQE;
	many->cq = calloc(many->ncq, sizeof(*many->cq));
	if (!many->cq)
		fg_die("no memory for %u CQs", many->ncq);
	for (uint32_t i = 0; i < many->ncq; i++)
		if (fg_cq_create(many->pair.a.pd.ctx, CQE, &many->cq[i]))
			fg_die("cannot create CQ %u", i);
}

static void many_open(struct many *many, uint32_t n)
{
	many->n = n;
	bench_pair_open(&many->pair, &(struct bench_pair_config){
					     .type = PVR_QPT_RC,
					     .spare_pages = n * PAGES_PER_QP,
				     });
	cqs_open(many);
	many->a = qps_open(many, &many->pair.a, true);
	many->b = qps_open(many, &many->pair.b, false);
	for (uint32_t i = 0; i < n; i++)
		if (fg_qp_connect(&many->a[i], NULL, many->pair.b.gid, many->b[i].qpn) ||
		    fg_qp_connect(&many->b[i], NULL, many->pair.a.gid, many->a[i].qpn))
			fg_die("cannot connect QP %u", i);
}

static void many_close(struct many *many)
{
	bench_pair_close(&many->pair);
	free(many->a);
	free(many->b);
	free(many->cq);
}

/* A round over queue pairs: the device executes the same number of requests of each. */
struct visits {
	struct many *many;
	uint32_t qps; /* number of queue pairs, visited one after the other */
	uint32_t wave; /* queue pairs to fill before the device runs; at most qps */
	uint32_t batch; /* requests per visit, the last one signaled */
};

static void fill(struct visits *visits, struct fg_qp *qp)
{
	struct bench_pair *pair = &visits->many->pair;
	struct pvrdma_sge sge = fg_sge(&pair->src_mr, 0, 8);
	struct fg_wr wr = { .opcode = PVRDMA_WR_RDMA_WRITE,
			    .sge = &sge,
			    .num_sge = 1,
			    .remote_addr = pair->dst_mr.start,
			    .rkey = pair->dst_mr.rkey };

	for (uint32_t i = 1; i <= visits->batch; i++) {
		wr.flags = i == visits->batch ? PVR_SEND_SIGNALED : 0;
		if (!fg_put_send(qp, &wr))
			fg_die("no room in a send queue");
	}
}

static void reap(struct visits *visits, uint32_t expected)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < visits->many->ncq; i++)
		n += fg_cq_drain(&visits->many->cq[i]);
	if (n != expected)
		fg_die("%u completions, expected %u", n, expected);
}

/* Fills @n queue pairs and runs the device. */
static void visit(struct visits *visits, uint32_t first, uint32_t n, struct bench_watch *watch)
{
	struct many *many = visits->many;

	for (uint32_t i = 0; i < n; i++)
		fill(visits, &many->a[first + i]);
	bench_watch_start(watch);
	for (uint32_t i = 0; i < n; i++)
		fg_ring_send(&many->a[first + i]);
	fg_run(many->pair.host);
	bench_watch_stop(watch);
	reap(visits, n);
}

/* A side of a row; @arg: struct visits. Requests per second, as bench_load_rate(). */
static double visits_rate(void *arg, uint64_t ns)
{
	struct visits *visits = arg;
	struct bench_watch watch = { 0 };
	uint64_t done = 0;
	uint32_t n;

	while (watch.sum < ns) {
		for (uint32_t first = 0; first < visits->qps; first += n) {
			n = visits->qps - first < visits->wave ? visits->qps - first : visits->wave;
			visit(visits, first, n, &watch);
		}
		done += (uint64_t)visits->qps * visits->batch;
	}
	return (double)done * FG_SEC / watch.sum;
}

/* ----------------------------------------------------------------- rows */

/* All queue pairs, compared with a few of them, which fit into the caches. */
static const struct {
	const char *name, *peer;
	uint32_t batch; /* requests of a visit */
	uint32_t wave; /* see struct visits */
	uint32_t few; /* of the peer */
} rates[] = {
	/*
	 * The device keeps up with the guests: few queue pairs have new requests at a
	 * time.
	 */
	{ "write_rate_10kqp", "one QP", DEPTH, WAVE, 1 },
	/*
	 * With one request per visit, a single queue pair would mostly measure the clock.
	 */
	{ "write_rate_10kqp_single", "32 QPs", 1, WAVE, WAVE },
	/* All post before the device runs: 80 MiB of requests exceed the caches. */
	{ "write_rate_10kqp_backlog", "one QP", DEPTH, MANY, 1 },
};

static void rate_rows(struct many *many)
{
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct visits all = { many, many->n, rates[i].wave, rates[i].batch };
		struct visits some = { many, rates[i].few, rates[i].wave, rates[i].batch };
		struct bench_side us = { "10,000 QPs", visits_rate, &all };
		struct bench_side peer = { rates[i].peer, visits_rate, &some };

		bench_row_of(rates[i].name, 8, "1/s", &us, &peer);
	}
}

/* For a curve. */
static void curve(struct many *many)
{
	for (uint32_t n = 1; n <= many->n; n *= 10) {
		struct visits visits = { many, n, WAVE, DEPTH };
		struct bench_side us = { "device", visits_rate, &visits };

		bench_row_of("write_rate_qps", n, "1/s", &us, NULL);
	}
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
	before = bench_heap();
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
	bytes = bench_heap() - before;
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
	struct many many;

	many_open(&many, bench_count(MANY));
	rate_rows(&many);
	curve(&many);
	many_close(&many);
	idle_row();
}
