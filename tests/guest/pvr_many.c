// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Many QPs at once: creates them, connects each with another QP of the peer, sends a
 * message in both directions over each, checks data and sender, and destroys all.
 *
 * The program never spins, so that its CPU time is that of its work.
 */
#include <arpa/inet.h>
#include <getopt.h>
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
	int left; /* messages that have not come */
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
	int num = many->num;

	node_open(&many->node);
	many->qps = MUST_HAVE(calloc(num, sizeof(*many->qps)));
	many->mine = MUST_HAVE(calloc(num, sizeof(*many->mine)));
	many->theirs = MUST_HAVE(calloc(num, sizeof(*many->theirs)));
	many->memory = MUST_HAVE(calloc(num, 2 * MESSAGE));
	for (int i = 0; i < CQS; i++)
		many->cqs[i] = MUST_HAVE(
			ibv_create_cq(many->node.ctx, 2 * (num / CQS + 1), NULL, NULL, 0));
	many->mr = MUST_HAVE(
		ibv_reg_mr(many->node.pd, many->memory, 2 * num * MESSAGE, IBV_ACCESS_LOCAL_WRITE));
	for (int i = 0; i < num; i++) {
		many->qps[i] = qp_create_rc(&many->node, many->cqs[i % CQS], 1);
		many->mine[i] = qp_address(&many->node, many->qps[i]);
	}
}

static void close_all(struct many *many)
{
	for (int i = 0; i < many->num; i++)
		MUST(ibv_destroy_qp(many->qps[i]));
	for (int i = 0; i < CQS; i++)
		MUST(ibv_destroy_cq(many->cqs[i]));
	MUST(ibv_dereg_mr(many->mr));
	node_close(&many->node);
}

static void connect_all(struct many *many)
{
	oob_exchange(many->fd, many->mine, many->theirs, many->num * sizeof(*many->mine));
	for (int i = 0; i < many->num; i++) {
		qp_connect(&many->node, many->qps[i], &many->theirs[partner_of(many, i)]);
		post_recv(many->qps[i], .wr_id = i,
			  ONE_SGE(many->mr, message(many, i, true), MESSAGE));
	}
}

static void write_message(const struct many *many, char *to, int side, int index)
{
	snprintf(to, MESSAGE, "round %u side %d QP %d", many->round, side, index);
}

static void send_all(struct many *many)
{
	for (int i = 0; i < many->num; i++) {
		write_message(many, message(many, i, false), many->side, i);
		post_send(many->qps[i], .wr_id = i, .opcode = IBV_WR_SEND_WITH_IMM,
			  .imm_data = htonl(i),
			  ONE_SGE(many->mr, message(many, i, false), MESSAGE));
	}
}

static void check_receive(struct many *many, const struct ibv_wc *wc)
{
	int from = partner_of(many, wc->wr_id);
	char expected[MESSAGE];

	write_message(many, expected, !many->side, from);
	if (ntohl(wc->imm_data) != (uint32_t)from ||
	    strcmp(message(many, wc->wr_id, true), expected))
		die("QP %d has '%s' (immediate %u), expected '%s'", (int)wc->wr_id,
		    message(many, wc->wr_id, true), ntohl(wc->imm_data), expected);
	many->left--;
}

/* Return: whether there was a completion. */
static bool poll_all(struct many *many)
{
	struct ibv_wc wcs[32];
	bool any = false;

	for (int cq = 0; cq < CQS; cq++) {
		int num = ibv_poll_cq(many->cqs[cq], 32, wcs);

		any |= num > 0;
		for (int i = 0; i < num; i++) {
			if (wcs[i].status != IBV_WC_SUCCESS)
				die("QP %d: %s", (int)wcs[i].wr_id,
				    ibv_wc_status_str(wcs[i].status));
			if (wcs[i].opcode & IBV_WC_RECV)
				check_receive(many, &wcs[i]);
		}
	}
	return any;
}

static void wait_for_messages(struct many *many)
{
	double last = now();

	many->left = many->num;
	while (many->left) {
		if (poll_all(many))
			last = now();
		else if (now() - last > STALL_SECONDS)
			die("%d of %d messages do not come", many->left, many->num);
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

int main(int argc, char **argv)
{
	struct many many = { .num = 1000, .round = 1 };
	const char *port = "18700";
	int option;

	while ((option = getopt(argc, argv, "n:r:p:")) != -1) {
		if (option == 'n')
			many.num = atoi(optarg);
		else if (option == 'r')
			many.round = atoi(optarg);
		else if (option == 'p')
			port = optarg;
		else
			die("usage: pvr_many [-n QPS] [-r ROUND] [-p PORT] [PEER]");
	}
	/* partner() reaches all QPs if 7 and the number are coprime. */
	if (many.num < 1 || many.num % 7 == 0)
		die("%d QPs, expected a positive number that is no multiple of 7", many.num);
	many.side = optind < argc;
	many.fd = oob_open(argv[optind], port);
	open_all(&many);
	connect_all(&many);
	meet(&many); /* all receives are posted */
	send_all(&many);
	wait_for_messages(&many);
	meet(&many); /* both sides have finished with the QPs */
	close_all(&many);
	printf("many: %d QPs, round %u\n", many.num, many.round);
	return 0;
}
