// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Thousands of queue pairs, and visits to them. */
#include "many.h"

#include <stdlib.h>

#define CQE 4096
#define PAGES_PER_QP 4 /* header, 64 send requests, receive requests */

static struct fg_qp *qps_open(struct bench_many *many, struct fg_end *end, bool sender)
{
	struct fg_qp *qps = calloc(many->n, sizeof(*qps));
	struct fg_qp_spec spec = { .pd = &end->pd,
				   .rcq = &end->rcq,
				   .type = PVR_QPT_RC,
				   .sq_wr = sender ? BENCH_MANY_BATCH : 1,
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

static void cqs_open(struct bench_many *many)
{
	many->ncq = (many->n + CQE - 1) / CQE;
	many->cq = calloc(many->ncq, sizeof(*many->cq));
	if (!many->cq)
		fg_die("no memory for %u CQs", many->ncq);
	for (uint32_t i = 0; i < many->ncq; i++)
		if (fg_cq_create(many->pair.a.pd.ctx, CQE, &many->cq[i]))
			fg_die("cannot create CQ %u", i);
}

void bench_many_open(struct bench_many *many, uint32_t n)
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

void bench_many_close(struct bench_many *many)
{
	bench_pair_close(&many->pair);
	free(many->a);
	free(many->b);
	free(many->cq);
}

static void fill(struct bench_visits *visits, struct fg_qp *qp)
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

static void reap(struct bench_visits *visits, uint32_t expected)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < visits->many->ncq; i++)
		n += fg_cq_drain(&visits->many->cq[i]);
	if (n != expected)
		fg_die("%u completions, expected %u", n, expected);
}

/* Fills @n queue pairs and runs the device. */
static void visit(struct bench_visits *visits, uint32_t first, uint32_t n,
		  struct bench_watch *watch)
{
	struct bench_many *many = visits->many;

	for (uint32_t i = 0; i < n; i++)
		fill(visits, &many->a[first + i]);
	bench_watch_start(watch);
	for (uint32_t i = 0; i < n; i++)
		fg_ring_send(&many->a[first + i]);
	fg_run(many->pair.host);
	bench_watch_stop(watch);
	reap(visits, n);
}

double bench_visits_rate(void *arg, uint64_t ns)
{
	struct bench_visits *visits = arg;
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
