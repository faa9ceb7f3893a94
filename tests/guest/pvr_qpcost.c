// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How long it takes to create and to destroy a queue pair: medians, without the first round. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "rdma.h"

#define QPS_MAX 100
#define DEPTH 64

struct cost {
	struct node node;
	struct ibv_cq *cq;
	int rounds;
	int qps; /* that exist at the same time */
	double *create, *both; /* seconds of each queue pair; @both with its destruction */
};

static void measure_round(struct cost *cost, double *create, double *both)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cost->cq,
		.recv_cq = cost->cq,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qps[QPS_MAX];

	for (int i = 0; i < cost->qps; i++) {
		double begin = now();

		qps[i] = MUST_HAVE(ibv_create_qp(cost->node.pd, &attr));
		create[i] = now() - begin;
	}
	for (int i = 0; i < cost->qps; i++) {
		double begin = now();

		MUST(ibv_destroy_qp(qps[i]));
		both[i] = create[i] + now() - begin;
	}
}

static int compare(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;

	return (first > second) - (first < second);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return values[count / 2];
}

int main(int argc, char **argv)
{
	struct cost cost = { .rounds = 20, .qps = QPS_MAX };
	double warm_up[2][QPS_MAX];
	size_t count;
	int option;

	while ((option = getopt(argc, argv, "q:r:")) != -1) {
		if (option == 'r')
			cost.rounds = atoi(optarg);
		else if (option == 'q')
			cost.qps = atoi(optarg);
		else
			die("usage: pvr_qpcost [-q QPS] [-r ROUNDS]");
	}
	if (cost.rounds < 1 || cost.rounds > 10000)
		die("%d rounds, expected 1 to 10000", cost.rounds);
	if (cost.qps < 1 || cost.qps > QPS_MAX)
		die("%d queue pairs, expected 1 to %d", cost.qps, QPS_MAX);
	count = (size_t)(cost.rounds * cost.qps);
	cost.create = MUST_HAVE(calloc(count, sizeof(*cost.create)));
	cost.both = MUST_HAVE(calloc(count, sizeof(*cost.both)));
	node_open(&cost.node);
	cost.cq = MUST_HAVE(ibv_create_cq(cost.node.ctx, 1024, NULL, NULL, 0));
	measure_round(&cost, warm_up[0], warm_up[1]);
	for (int i = 0; i < cost.rounds; i++)
		measure_round(&cost, &cost.create[i * cost.qps], &cost.both[i * cost.qps]);
	MUST(ibv_destroy_cq(cost.cq));
	node_close(&cost.node);
	printf("@qp_create_ns %.0f\n@qp_create_destroy_ns %.0f\n",
	       median(cost.create, (int)count) * 1e9, median(cost.both, (int)count) * 1e9);
	free(cost.create);
	free(cost.both);
	return 0;
}
