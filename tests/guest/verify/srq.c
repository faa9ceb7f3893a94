// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Several QPs take their receives from one SRQ. Which buffer a message lands in is the device's choice; that each
 * buffer is used once, that a QP's messages come in order, and every byte around them is not.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

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
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp *qps[QPS];
	struct address mine[QPS], peer[QPS];
	struct ibv_mr *out, *in; /* BATCH buffers each */
	struct message sent[BATCH], coming[BATCH];
	bool used[BATCH];
};

/* Messages that one side sends in a round, the same at both sides. */
static void plan_messages(struct run *run, int side, struct message *messages)
{
	struct rng rng = { .state = run->params.seed ^ (run->round << 8 | side) };

	for (int i = 0; i < BATCH; i++)
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

	for (int i = 0; i < QPS; i++) {
		end->qps[i] = qp_create(&run->node, &attr);
		end->mine[i] = qp_address(&run->node, end->qps[i]);
	}
}

static void open_srq_end(struct run *run, struct srq_end *end)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = BATCH, .max_sge = SGES } };

	end->send_cq = MUST_HAVE(ibv_create_cq(run->node.ctx, BATCH, NULL, NULL, 0));
	end->recv_cq = MUST_HAVE(ibv_create_cq(run->node.ctx, BATCH, NULL, NULL, 0));
	end->srq = MUST_HAVE(ibv_create_srq(run->node.pd, &attr));
	open_qps(run, end);
	end->out = mr_create(&run->node, BATCH * BUFFER, IBV_ACCESS_LOCAL_WRITE);
	end->in = mr_create(&run->node, BATCH * BUFFER, IBV_ACCESS_LOCAL_WRITE);
}

static void close_srq_end(struct srq_end *end)
{
	for (int i = 0; i < QPS; i++)
		MUST(ibv_destroy_qp(end->qps[i]));
	MUST(ibv_destroy_srq(end->srq));
	MUST(ibv_destroy_cq(end->send_cq));
	MUST(ibv_destroy_cq(end->recv_cq));
	mr_destroy(end->in);
	mr_destroy(end->out);
}

static uint8_t *buffer(const struct ibv_mr *mr, int index)
{
	return (uint8_t *)mr->addr + index * BUFFER;
}

static void post_buffers(struct srq_end *end)
{
	uint32_t lkey = end->in->lkey;
	struct ibv_recv_wr *bad;

	memset(end->in->addr, 0xa5, BATCH * BUFFER);
	memset(end->used, 0, sizeof(end->used));
	for (int i = 0; i < BATCH; i++) {
		uint64_t at = (uintptr_t)buffer(end->in, i);
		struct ibv_sge sges[SGES] = {
			{ .addr = at, .length = 1 + i, .lkey = lkey },
			{ .addr = at + 1 + i, .length = BYTES - 1 - i, .lkey = lkey },
		};
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = sges, .num_sge = SGES };

		MUST(ibv_post_srq_recv(end->srq, &wr, &bad));
	}
}

static void send_messages(struct srq_end *end)
{
	for (int i = 0; i < BATCH; i++) {
		const struct message *message = &end->sent[i];
		uint8_t *at = buffer(end->out, i);

		op_data(&message->op, 0, at, message->op.length);
		post_send(end->qps[message->qp], .wr_id = i,
			  ONE_SGE(end->out, at, message->op.length),
			  .opcode = op_has_imm(&message->op) ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
			  .imm_data = htonl(message->op.imm));
	}
}

/* The oldest message that this QP still waits for. */
static struct message *next_message(struct srq_end *end, uint32_t qpn)
{
	for (int i = 0; i < BATCH; i++)
		if (!end->coming[i].arrived && end->qps[end->coming[i].qp]->qp_num == qpn)
			return &end->coming[i];
	return NULL;
}

static void check_buffer(struct run *run, const struct srq_end *end, const struct op *op, int index)
{
	uint8_t expected[BUFFER];

	memset(expected, 0xa5, sizeof(expected));
	op_data(op, 0, expected, op->length);
	if (memcmp(buffer(end->in, index), expected, BUFFER))
		complain(run, "buffer %d is not what was sent (%u bytes)", index, op->length);
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

	for (int i = 0; i < BATCH; i++) {
		wc = cq_wait(end->recv_cq);
		check_arrival(run, end, &wc);
		run->bytes += wc.byte_len;
	}
	for (int i = 0; i < BATCH; i++)
		cq_expect(end->send_cq, IBV_WC_SUCCESS, "SRQ: send");
	run->operations += BATCH;
}

static void srq_round(struct run *run, struct srq_end *ends)
{
	run->round++;
	for (int side = 0; side < 2; side++) {
		plan_messages(run, side, ends[side].sent);
		plan_messages(run, side, ends[!side].coming);
	}
	for (int side = run->first; side <= run->last; side++)
		post_buffers(&ends[side]);
	meet(run);
	for (int side = run->first; side <= run->last; side++)
		send_messages(&ends[side]);
	for (int side = run->first; side <= run->last; side++)
		finish_round(run, &ends[side]);
}

void run_srq(struct run *run)
{
	static struct srq_end ends[2];
	uint32_t rounds = 1 + run->params.iterations / BATCH;

	run->phase = "SRQ";
	for (int side = run->first; side <= run->last; side++)
		open_srq_end(run, &ends[side]);
	trade(run, (const void *[]){ ends[0].mine, ends[1].mine },
	      (void *[]){ ends[0].peer, ends[1].peer }, sizeof(ends[0].peer));
	for (int side = run->first; side <= run->last; side++)
		for (int i = 0; i < QPS; i++)
			qp_connect(&run->node, ends[side].qps[i], &ends[side].peer[i]);
	for (int i = 0; i < (int)rounds; i++)
		srq_round(run, ends);
	meet(run);
	for (int side = run->first; side <= run->last; side++)
		close_srq_end(&ends[side]);
	printf("verify: SRQ: %u messages each way to %d QPs\n", rounds * BATCH, QPS);
	fflush(stdout);
}
