// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: pvr_vectors NUMBER
 *
 * Checks that the device has NUMBER completion vectors, and that an event of a CQ comes by
 * the interrupt of its vector. One device talks to itself.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma.h"

/* Return: interrupts of the vector so far, of all CPUs. */
static unsigned long count(int vector)
{
	unsigned long sum = 0, n;
	char name[32], *line = NULL, *at, *end;
	size_t size = 0;
	FILE *file = MUST_HAVE(fopen("/proc/interrupts", "r"));

	snprintf(name, sizeof(name), " pvrdma-cq%d:", vector);
	while (getline(&line, &size, file) >= 0) {
		if (!strstr(line, name))
			continue;
		for (at = strchr(line, ':') + 1; n = strtoul(at, &end, 10), end != at; at = end)
			sum += n;
		free(line);
		fclose(file);
		return sum;
	}
	die("no line of /proc/interrupts has%s", name);
}

static void check(struct node *node, struct ibv_mr *mr, int vector)
{
	struct ibv_comp_channel *channel = MUST_HAVE(ibv_create_comp_channel(node->ctx));
	struct ibv_cq *cq = MUST_HAVE(ibv_create_cq(node->ctx, 8, NULL, channel, vector)), *from;
	struct ibv_qp *qp = qp_create_rc(node, cq, 4);
	unsigned long before = count(vector);
	void *opaque;

	qp_connect_to_itself(node, qp);
	MUST(ibv_req_notify_cq(cq, 0));
	post_send(qp, .opcode = IBV_WR_RDMA_WRITE, ONE_SGE(mr, mr->addr, 8),
		  .wr.rdma = { .remote_addr = (uintptr_t)mr->addr, .rkey = mr->rkey });
	MUST(ibv_get_cq_event(channel, &from, &opaque));
	ibv_ack_cq_events(from, 1);
	cq_expect(cq, IBV_WC_SUCCESS, "RDMA WRITE");
	if (count(vector) == before)
		die("an event of vector %d came without its interrupt", vector);
	MUST(ibv_destroy_qp(qp));
	MUST(ibv_destroy_cq(cq));
	MUST(ibv_destroy_comp_channel(channel));
}

int main(int argc, char **argv)
{
	struct node node;
	struct ibv_mr *mr;
	int expected;

	if (argc != 2)
		die("usage: pvr_vectors NUMBER");
	expected = atoi(argv[1]);
	node_open(&node);
	if (node.ctx->num_comp_vectors != expected)
		die("%d completion vectors, expected %d", node.ctx->num_comp_vectors, expected);
	mr = mr_create(&node, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	for (int vector = 0; vector < expected; vector++)
		check(&node, mr, vector);
	printf("vectors: each of %d has interrupted\n", expected);
	mr_destroy(mr);
	node_close(&node);
	return 0;
}
