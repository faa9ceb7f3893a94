// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Many QPs at once. Each round creates them, connects each with another QP of the peer,
 * sends a message in both directions over each, checks data and sender, and destroys all.
 *
 * The program never spins, so that the CPU time of a round is that of its work.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "oob.h"
#include "rdma.h"

#define CQS 4
#define MESSAGE 64
#define STALL_SECONDS 60

struct many {
	struct node node;
	int fd, side, num;
	uint32_t round;
	struct ibv_cq *cqs[CQS];
	struct ibv_qp **qps;
	struct address *mine, *theirs;
	char *memory; /* bytes per QP: a message to send and a receive buffer */
	struct ibv_mr *mr;
};

/* The number of the peer's QP for QP "index" of side 0; the same at both ends. */
static int partner(const struct many *many, int index)
{
	return (index * 7 + many->round * 131) % many->num;
}

/* The inverse. */
static int partner_of(const struct many *many, int index)
{
	int i;

	if (!many->side)
		return partner(many, index);
	for (i = 0; partner(many, i) != index; i++)
		;
	return i;
}

static char *message(struct many *many, int index, bool incoming)
{
	return many->memory + (2 * index + incoming) * MESSAGE;
}

static void open_all(struct many *many)
{
	int i, num = many->num;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	for (i = 0; i < CQS; i++) {
		many->cqs[i] = ibv_create_cq(many->node.ctx, 2 * (num / CQS + 1), NULL, NULL, 0);
		if (!many->cqs[i])
			die("ibv_create_cq:");
	}
	many->mr =
		ibv_reg_mr(many->node.pd, many->memory, 2 * num * MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	if (!many->mr)
		die("ibv_reg_mr:");
	for (i = 0; i < num; i++) {
		attr.send_cq = attr.recv_cq = many->cqs[i % CQS];
		many->qps[i] = qp_create(&many->node, &attr);
		many->mine[i] = qp_address(&many->node, many->qps[i], i + 1);
	}
}

static void close_all(struct many *many)
{
	int i, err = 0;

	for (i = 0; i < many->num; i++)
		err |= ibv_destroy_qp(many->qps[i]);
	for (i = 0; i < CQS; i++)
		err |= ibv_destroy_cq(many->cqs[i]);
	if (err | ibv_dereg_mr(many->mr))
		die("destroying what was created fails");
}

static void post_receive(struct many *many, int index)
{
	struct ibv_sge sge = { .addr = (uintptr_t)message(many, index, true),
			       .length = MESSAGE,
			       .lkey = many->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = index, .sg_list = &sge, .num_sge = 1 };

	if (ibv_post_recv(many->qps[index], &wr, &bad))
		die("ibv_post_recv fails");
}

static void post_send(struct many *many, int index)
{
	struct ibv_sge sge = { .addr = (uintptr_t)message(many, index, false),
			       .length = MESSAGE,
			       .lkey = many->mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = index,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND_WITH_IMM,
					.imm_data = htonl(index) };

	snprintf(message(many, index, false), MESSAGE, "round %u side %d QP %d", many->round,
		 many->side, index);
	if (ibv_post_send(many->qps[index], &wr, &bad))
		die("ibv_post_send fails");
}

static void connect_all(struct many *many)
{
	static const struct retries retries = { .timeout = 18, .retry_cnt = 7, .rnr_retry = 7 };
	int i;

	for (i = 0; i < many->num; i++) {
		qp_connect(&many->node, many->qps[i], i + 1, &many->theirs[partner_of(many, i)],
			   many->node.port.active_mtu, &retries);
		post_receive(many, i);
	}
}

static void check_receive(struct many *many, const struct ibv_wc *wc)
{
	int from = partner_of(many, wc->wr_id);
	char expected[MESSAGE];

	snprintf(expected, sizeof(expected), "round %u side %d QP %d", many->round, !many->side,
		 from);
	if (ntohl(wc->imm_data) != (uint32_t)from ||
	    strcmp(message(many, wc->wr_id, true), expected))
		die("QP %d has '%s' (immediate %u), expected '%s'", (int)wc->wr_id,
		    message(many, wc->wr_id, true), ntohl(wc->imm_data), expected);
}

/* Returns how many receives there were. */
static int poll_all(struct many *many, bool *any)
{
	struct ibv_wc wcs[32];
	int cq, i, num, received = 0;

	*any = false;
	for (cq = 0; cq < CQS; cq++) {
		num = ibv_poll_cq(many->cqs[cq], 32, wcs);
		for (i = 0; i < num; i++) {
			*any = true;
			if (wcs[i].status != IBV_WC_SUCCESS)
				die("QP %d: %s", (int)wcs[i].wr_id,
				    ibv_wc_status_str(wcs[i].status));
			if (!(wcs[i].opcode & IBV_WC_RECV))
				continue;
			check_receive(many, &wcs[i]);
			received++;
		}
	}
	return received;
}

static void wait_for_messages(struct many *many)
{
	double last = now();
	int left = many->num;
	bool any;

	while (left) {
		left -= poll_all(many, &any);
		if (any)
			last = now();
		else if (now() - last > STALL_SECONDS)
			die("%d of %d messages do not come", left, many->num);
		else
			usleep(1000);
	}
}

static void meet(struct many *many)
{
	uint32_t theirs;

	oob_exchange(many->fd, &many->round, &theirs, sizeof(theirs));
	if (theirs != many->round)
		die("the peer is in round %u, expected %u", theirs, many->round);
}

static void run_round(struct many *many)
{
	int i;

	open_all(many);
	oob_exchange(many->fd, many->mine, many->theirs, many->num * sizeof(*many->mine));
	connect_all(many);
	meet(many); /* all receives are posted */
	for (i = 0; i < many->num; i++)
		post_send(many, i);
	wait_for_messages(many);
	meet(many); /* both sides have finished with the QPs */
	close_all(many);
}

static int usage(void)
{
	fputs("Usage: pvr_many [-n QPS] [-r FIRST_ROUND] [-c ROUNDS] [-p PORT] [PEER]\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct many many = { .num = 1000, .round = 1 };
	const char *port = "18700";
	int option, rounds = 1;

	while ((option = getopt(argc, argv, "n:r:c:p:")) != -1) {
		if (option == 'n')
			many.num = atoi(optarg);
		else if (option == 'r')
			many.round = atoi(optarg);
		else if (option == 'c')
			rounds = atoi(optarg);
		else if (option == 'p')
			port = optarg;
		else
			return usage();
	}
	/* 7 and the number must be coprime, so that partner() reaches all QPs. */
	if (many.num < 1 || many.num % 7 == 0 || rounds < 1)
		return usage();
	many.side = optind < argc;
	many.fd = many.side ? oob_connect(argv[optind], port, 60) : oob_accept(port);
	node_open(&many.node, NULL, -1);
	many.qps = calloc(many.num, sizeof(*many.qps));
	many.mine = calloc(many.num, sizeof(*many.mine));
	many.theirs = calloc(many.num, sizeof(*many.theirs));
	many.memory = calloc(many.num, 2 * MESSAGE);
	if (!many.qps || !many.mine || !many.theirs || !many.memory)
		die("no memory for %d QPs", many.num);
	for (; rounds--; many.round++)
		run_round(&many);
	node_close(&many.node);
	printf("many: %d QPs, rounds up to %u\n", many.num, many.round - 1);
	return 0;
}
