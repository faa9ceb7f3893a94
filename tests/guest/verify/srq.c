// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Several QPs take their receives from one SRQ. Which buffer a message lands in is the device's choice; that each
 * buffer is used once, that a QP's messages come in order, and every byte around them is not.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oob.h"
#include "verify.h"

#define QPS 4
#define BATCH 32 /* messages per round, each way */
#define BYTES 3000
#define BUFFER 3072 /* so that many lie across pages */
#define SGES 2

struct message {
	int qp;
	struct op op; /* its length, data and immediate data */
	bool arrived;
};

struct srq_end {
	int side;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp *qps[QPS];
	struct address mine[QPS], peer[QPS];
	uint8_t *out, *in; /* BATCH buffers each */
	struct ibv_mr *out_mr, *in_mr;
	struct message sent[BATCH], coming[BATCH];
	bool used[BATCH];
};

/* Messages that one side sends in a round, the same at both sides. */
static void plan_messages(struct run *run, int side, struct message *messages)
{
	struct rng rng = { .state = run->params.seed ^ (run->round << 8 | side) };
	int i;

	for (i = 0; i < BATCH; i++)
		messages[i] = (struct message){
			.qp = rng_below(&rng, QPS),
			.op = { .kind = rng_below(&rng, 2) ? KIND_SEND_IMM : KIND_SEND,
				.length = rng_below(&rng, BYTES + 1),
				.imm = rng_next(&rng),
				.key = rng_next(&rng) },
		};
}

static void open_qps(struct run *run, struct srq_end *end)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.srq = end->srq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = BATCH, .max_send_sge = 1 },
	};
	int i;

	for (i = 0; i < QPS; i++) {
		end->qps[i] = qp_create(&run->node, &attr);
		end->mine[i] = qp_address(&run->node, end->qps[i], START_PSN(end->side));
	}
}

static uint8_t *open_buffers(struct run *run, struct ibv_mr **mr)
{
	uint8_t *buffers = aligned_alloc(PLAN_PAGE, BATCH * BUFFER);

	*mr = buffers ? ibv_reg_mr(run->node.pd, buffers, BATCH * BUFFER, IBV_ACCESS_LOCAL_WRITE)
		      : NULL;
	if (!*mr)
		die("%d buffers for the SRQ:", BATCH);
	return buffers;
}

static void open_srq_end(struct run *run, struct srq_end *end)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = BATCH, .max_sge = SGES } };

	end->send_cq = cq_open(run, BATCH);
	end->recv_cq = cq_open(run, BATCH);
	end->srq = ibv_create_srq(run->node.pd, &attr);
	if (!end->srq)
		die("ibv_create_srq of %d requests:", BATCH);
	open_qps(run, end);
	end->out = open_buffers(run, &end->out_mr);
	end->in = open_buffers(run, &end->in_mr);
}

static void close_srq_end(struct srq_end *end)
{
	int i, err = 0;

	for (i = 0; i < QPS; i++)
		err |= ibv_destroy_qp(end->qps[i]);
	err |= ibv_destroy_srq(end->srq) | ibv_destroy_cq(end->send_cq) |
	       ibv_destroy_cq(end->recv_cq);
	err |= ibv_dereg_mr(end->in_mr) | ibv_dereg_mr(end->out_mr);
	if (err)
		die("closing an end with an SRQ fails");
	free(end->in);
	free(end->out);
}

static void post_buffers(struct srq_end *end)
{
	struct ibv_recv_wr *bad;
	int i, err;

	memset(end->in, 0xa5, BATCH * BUFFER);
	memset(end->used, 0, sizeof(end->used));
	for (i = 0; i < BATCH; i++) {
		uint64_t at = (uintptr_t)end->in + i * BUFFER;
		struct ibv_sge sges[SGES] = {
			{ .addr = at, .length = 1 + i, .lkey = end->in_mr->lkey },
			{ .addr = at + 1 + i, .length = BYTES - 1 - i, .lkey = end->in_mr->lkey },
		};
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = sges, .num_sge = SGES };

		err = ibv_post_srq_recv(end->srq, &wr, &bad);
		if (err)
			die("ibv_post_srq_recv: %s", strerror(err));
	}
}

static void send_messages(struct srq_end *end)
{
	struct ibv_send_wr *bad;
	int i, err;

	for (i = 0; i < BATCH; i++) {
		const struct message *message = &end->sent[i];
		uint8_t *at = end->out + i * BUFFER;
		struct ibv_sge sge = { .addr = (uintptr_t)at,
				       .length = message->op.length,
				       .lkey = end->out_mr->lkey };
		struct ibv_send_wr wr = {
			.wr_id = i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = op_has_imm(&message->op) ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
			.imm_data = htonl(message->op.imm),
		};

		op_data(&message->op, 0, at, message->op.length);
		err = ibv_post_send(end->qps[message->qp], &wr, &bad);
		if (err)
			die("ibv_post_send: %s", strerror(err));
	}
}

/* The oldest message that this QP still waits for. */
static struct message *next_message(struct srq_end *end, uint32_t qpn)
{
	int i;

	for (i = 0; i < BATCH; i++)
		if (!end->coming[i].arrived && end->qps[end->coming[i].qp]->qp_num == qpn)
			return &end->coming[i];
	return NULL;
}

static void check_buffer(struct run *run, const struct srq_end *end, const struct op *op,
			 int buffer)
{
	uint8_t expected[BUFFER];

	memset(expected, 0xa5, sizeof(expected));
	op_data(op, 0, expected, op->length);
	if (memcmp(end->in + buffer * BUFFER, expected, BUFFER))
		complain(run, "buffer %d is not what was sent (%u bytes)", buffer, op->length);
}

static void check_arrival(struct run *run, struct srq_end *end, const struct ibv_wc *wc)
{
	struct message *message = next_message(end, wc->qp_num);

	if (wc->status != IBV_WC_SUCCESS)
		die("SRQ: receive: %s", ibv_wc_status_str(wc->status));
	if (!message || wc->wr_id >= BATCH || end->used[wc->wr_id])
		die("SRQ: QP 0x%x has a message too many, or buffer %llu is used twice", wc->qp_num,
		    (unsigned long long)wc->wr_id);
	message->arrived = end->used[wc->wr_id] = true;
	if (wc->byte_len != message->op.length)
		complain(run, "byte_len is %u, expected %u", wc->byte_len, message->op.length);
	if (op_has_imm(&message->op) &&
	    (!(wc->wc_flags & IBV_WC_WITH_IMM) || ntohl(wc->imm_data) != message->op.imm))
		complain(run, "immediate data 0x%x, expected 0x%x", ntohl(wc->imm_data),
			 message->op.imm);
	check_buffer(run, end, &message->op, wc->wr_id);
}

static void finish_round(struct run *run, struct srq_end *end)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < BATCH; i++) {
		wc = cq_wait(run, end->recv_cq);
		check_arrival(run, end, &wc);
		run->bytes += wc.byte_len;
	}
	for (i = 0; i < BATCH; i++) {
		wc = cq_wait(run, end->send_cq);
		if (wc.status != IBV_WC_SUCCESS)
			die("SRQ: send: %s", ibv_wc_status_str(wc.status));
	}
	run->operations += BATCH;
}

static void srq_round(struct run *run, struct srq_end *ends)
{
	int side;

	run->round++;
	for (side = 0; side < 2; side++) {
		plan_messages(run, side, ends[side].sent);
		plan_messages(run, side, ends[!side].coming);
		if (run->here[side])
			post_buffers(&ends[side]);
	}
	meet(run);
	for (side = 0; side < 2; side++)
		if (run->here[side])
			send_messages(&ends[side]);
	for (side = 0; side < 2; side++)
		if (run->here[side])
			finish_round(run, &ends[side]);
}

void run_srq(struct run *run)
{
	static struct srq_end ends[2];
	uint32_t rounds = 1 + run->params.iterations / BATCH;
	int side, i;

	run->phase = "SRQ";
	for (side = 0; side < 2; side++) {
		ends[side].side = side;
		if (run->here[side])
			open_srq_end(run, &ends[side]);
	}
	trade(run, (const void *[]){ ends[0].mine, ends[1].mine },
	      (void *[]){ ends[0].peer, ends[1].peer }, sizeof(ends[0].peer));
	for (side = 0; side < 2; side++)
		for (i = 0; run->here[side] && i < QPS; i++)
			qp_connect(&run->node, ends[side].qps[i], START_PSN(side),
				   &ends[side].peer[i], run->params.mtu, &run->retries);
	for (i = 0; i < (int)rounds; i++)
		srq_round(run, ends);
	meet(run);
	for (side = 0; side < 2; side++)
		if (run->here[side])
			close_srq_end(&ends[side]);
	printf("verify: SRQ: %u messages each way to %d QPs\n", rounds * BATCH, QPS);
	fflush(stdout);
}
