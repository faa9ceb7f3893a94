// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completions of a round: they come in order, each with its operation's opcode. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "verify.h"

#define STALL_SECONDS 60
#define LOSS_SECONDS 15 /* more than a slow peer needs */

static const enum ibv_wc_opcode wc_opcodes[KIND_NUM] = {
	[KIND_SEND] = IBV_WC_SEND,	    [KIND_SEND_IMM] = IBV_WC_SEND,
	[KIND_WRITE] = IBV_WC_RDMA_WRITE,   [KIND_WRITE_IMM] = IBV_WC_RDMA_WRITE,
	[KIND_READ] = IBV_WC_RDMA_READ,	    [KIND_FETCH_ADD] = IBV_WC_FETCH_ADD,
	[KIND_CMP_SWAP] = IBV_WC_COMP_SWAP,
};

static void check_number(struct run *run, int index, const char *what, uint64_t is,
			 uint64_t expected)
{
	if (is != expected)
		complain(run, "%s: %s is %llu, expected %llu", describe(run, index), what,
			 (unsigned long long)is, (unsigned long long)expected);
}

static void check_receive(struct run *run, struct end *end, int index, const struct ibv_wc *wc)
{
	const struct op *op = &run->plan.ops[index];
	uint32_t head = run->shape.datagram ? GRH_BYTES : 0;
	uint32_t grh = op->remote.num ? op->remote.list[0].offset : 0;

	check_number(run, index, "receive opcode", wc->opcode,
		     op->kind == KIND_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	check_number(run, index, "byte_len", wc->byte_len, op->length + head);
	check_number(run, index, "WITH_IMM", !!(wc->wc_flags & IBV_WC_WITH_IMM), op_has_imm(op));
	if (op_has_imm(op))
		check_number(run, index, "immediate data", ntohl(wc->imm_data), op->imm);
	if (!head)
		return;
	check_number(run, index, "GRH", !!(wc->wc_flags & IBV_WC_GRH), 1);
	check_number(run, index, "src_qp", wc->src_qp, end->peer.address.qpn);
	memcpy(end->expected + grh, end->memory + grh, head);
}

static void handle_completion(struct run *run, const struct ibv_wc *wc)
{
	struct end *end = &run->ends[wc->wr_id >> 9 & 1];
	bool receive = wc->wr_id >> 8 & 1;
	struct waiting *waiting = receive ? &end->receives : &end->sends;
	int index;

	if (waiting->next == waiting->num)
		fail(run, "end %d has a completion too many, wr_id 0x%llx", end->side,
		     (unsigned long long)wc->wr_id);
	index = waiting->ops[waiting->next++];
	if (wc->status != IBV_WC_SUCCESS)
		fail(run, "%s, %s at end %d: %s (vendor error 0x%x)", describe(run, index),
		     receive ? "receive" : "completion", end->side, ibv_wc_status_str(wc->status),
		     wc->vendor_err);
	check_number(run, index, "wr_id", wc->wr_id, work_id(run, end->side, receive, index));
	check_number(run, index, "qp_num", wc->qp_num, end->qp->qp_num);
	if (receive)
		check_receive(run, end, index, wc);
	else
		check_number(run, index, "opcode", wc->opcode,
			     wc_opcodes[run->plan.ops[index].kind]);
}

/* Returns how many completions there were. */
static int poll_end(struct run *run, struct end *end)
{
	struct ibv_wc wcs[8];
	int num;

	if (end->shares)
		return 0;
	num = ibv_poll_cq(end->cq, 8, wcs);
	if (num < 0)
		die("ibv_poll_cq returns %d", num);
	for (int i = 0; i < num; i++)
		handle_completion(run, &wcs[i]);
	return num;
}

static int poll_ends(struct run *run)
{
	int num = 0;

	for (int side = run->first; side <= run->last; side++)
		num += poll_end(run, &run->ends[side]);
	return num;
}

/* Arm, poll once more, then sleep: this order loses no completion. */
static void sleep_until_event(struct run *run)
{
	struct pollfd wait = { .fd = run->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct end *end;

	for (int side = run->first; side <= run->last; side++)
		MUST(ibv_req_notify_cq(run->ends[side].cq, 0));
	if (poll_ends(run) || poll(&wait, 1, 1000) <= 0)
		return;
	MUST(ibv_get_cq_event(run->channel, &cq, (void **)&end));
	if (cq != end->cq)
		die("an event of an unknown CQ");
	end->events++;
}

static int left(const struct waiting *waiting)
{
	return waiting->num - waiting->next;
}

static bool all_done(const struct run *run)
{
	for (int side = run->first; side <= run->last; side++)
		if (left(&run->ends[side].sends) || left(&run->ends[side].receives))
			return false;
	return true;
}

static bool unreliable(const struct run *run)
{
	return !(run->shape.kinds & 1u << KIND_READ);
}

static void die_of_stall(struct run *run, int seconds)
{
	for (int side = run->first; side <= run->last; side++)
		fprintf(stderr, "end %d waits for %d of %d sends and %d of %d receives\n", side,
			left(&run->ends[side].sends), run->ends[side].sends.num,
			left(&run->ends[side].receives), run->ends[side].receives.num);
	fail(run, "nothing completes for %d s", seconds);
}

void wait_for_all(struct run *run)
{
	int patience = unreliable(run) ? LOSS_SECONDS : STALL_SECONDS;
	double last = now();

	while (!all_done(run)) {
		if (poll_ends(run))
			last = now();
		else if (now() - last > patience)
			die_of_stall(run, patience);
		else if (run->params.events)
			sleep_until_event(run);
	}
}
