/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Does RDMA move the right bytes to the right place, and no others? Two processes (or two QPs of
 * one) run random operations in rounds; after each round each end compares all of its memory with
 * what the plan says, byte by byte. See plan.h.
 *
 * A client of libibverbs only: it runs on any RoCE device.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "oob.h"
#include "plan.h"
#include "rdma.h"

#define STALL_SECONDS 60
#define MAX_REPORTS 20
#define START_PSN(side) (0x100001u * ((side) + 1))

/* What both sides must agree on: the client's wishes, cut to what both devices can. */
struct params {
	char magic[8];
	uint64_t seed;
	uint32_t iterations;
	uint32_t bytes_max;
	uint32_t depth;
	uint32_t max_sge;
	uint32_t max_sge_read;
	uint32_t mtu;
	uint32_t events;
	uint32_t reserved;
};

#define PARAMS_MAGIC "pvrvrfy1"

/* What one end tells the other; the same machine type on both sides. */
struct contact {
	struct address address;
	uint64_t memory;
	uint32_t rkeys[2];
};

/* Operations whose completions an end still waits for, oldest first. */
struct waiting {
	int next, num;
	int ops[PLAN_MAX_OPS];
};

struct end {
	int side; /* 0 or 1: which operations of a plan it posts */
	uint8_t *memory, *expected;
	void *mapping;
	size_t mapped, size;
	uint32_t split; /* offsets from here on belong to the second region */
	struct ibv_mr *mrs[2];
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	bool shares; /* channel, CQ and QP are the other end's */
	struct ibv_ah *ah;
	unsigned int events;
	struct contact peer;
	struct waiting sends, receives;
};

struct run {
	struct node node;
	struct params params;
	struct shape shape;
	struct plan plan;
	struct retries retries;
	const char *phase;
	uint64_t round;
	struct end ends[2];
	bool here[2]; /* is this end in this process? */
	int fd; /* to the other process; -1: both ends are here */
	uint64_t operations, bytes;
	uint32_t errors;
};

/* ---------------------------------------------------------------- reports */

static void complain(struct run *run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void complain(struct run *run, const char *format, ...)
{
	va_list args;

	if (run->errors++ >= MAX_REPORTS)
		return;
	printf("verify: %s round %llu: ", run->phase, (unsigned long long)run->round);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* "op 3 (RDMA_READ of 17 bytes from end 0)" */
static const char *describe(const struct run *run, int index)
{
	static char text[96];
	const struct op *op = &run->plan.ops[index];

	snprintf(text, sizeof(text), "op %d (%s of %u bytes from end %d)", index,
		 kind_names[op->kind], op->length, op->from);
	return text;
}

static bool in_pieces(const struct pieces *pieces, uint32_t offset)
{
	int i;

	for (i = 0; i < pieces->num; i++)
		if (offset - pieces->list[i].offset < pieces->list[i].length)
			return true;
	return false;
}

/* The first wrong byte says most; the number of wrong ones says whether it is one or a page. */
static void report_memory(struct run *run, const struct end *end)
{
	size_t first = 0, wrong = 0, i;
	const struct op *op;
	uint32_t slot;
	bool inside;

	for (i = 0; i < end->size; i++) {
		if (end->memory[i] == end->expected[i])
			continue;
		if (!wrong++)
			first = i;
	}
	slot = first / shape_slot(&run->shape);
	op = &run->plan.ops[slot];
	inside = slot < (uint32_t)run->plan.num &&
		 in_pieces(op->from == end->side ? &op->local : &op->remote, first);
	complain(run,
		 "end %d: %zu bytes are wrong, the first at %zu %s of %s: 0x%02x, expected 0x%02x",
		 end->side, wrong, first - slot * shape_slot(&run->shape),
		 inside ? "in a buffer" : "outside the buffers",
		 slot < (uint32_t)run->plan.num ? describe(run, slot) : "an unused slot",
		 end->memory[first], end->expected[first]);
}

/* ------------------------------------------------------- memory of an end */

static struct ibv_mr *register_part(struct run *run, struct end *end, size_t from, size_t to)
{
	struct ibv_mr *mr;

	mr = ibv_reg_mr(run->node.pd, end->memory + from, to - from,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		die("ibv_reg_mr of %zu bytes:", to - from);
	return mr;
}

/* Two regions that meet in the middle of a page, of memory that starts in the middle of one. */
static void open_memory(struct run *run, struct end *end)
{
	struct rng rng = { .state = run->params.seed + end->side };
	uint32_t skew = rng_below(&rng, 4096), slots = run->shape.depth;
	struct op background = { .key = rng_next(&rng) };

	end->size = shape_memory(&run->shape);
	end->mapped = end->size + skew;
	end->mapping = mmap(NULL, end->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	end->expected = malloc(end->size);
	if (end->mapping == MAP_FAILED || !end->expected)
		die("no memory for 2 x %zu bytes", end->size);
	end->memory = (uint8_t *)end->mapping + skew;
	op_data(&background, 0, end->memory, end->size);
	memcpy(end->expected, end->memory, end->size);
	end->split = (slots + 1) / 2 * shape_slot(&run->shape);
	end->mrs[0] = register_part(run, end, 0, end->split);
	if (end->split < end->size)
		end->mrs[1] = register_part(run, end, end->split, end->size);
}

static void close_memory(struct end *end)
{
	int i, err;

	for (i = 0; i < 2; i++) {
		err = end->mrs[i] ? ibv_dereg_mr(end->mrs[i]) : 0;
		if (err)
			die("ibv_dereg_mr: %s", strerror(err));
	}
	munmap(end->mapping, end->mapped);
	free(end->expected);
}

static int region_of(const struct end *end, uint32_t offset)
{
	return offset >= end->split;
}

/* Writes an operation's data over pieces of an image of the memory, from byte head of them on. */
static void put_data(uint8_t *image, const struct op *op, const struct pieces *pieces,
		     uint32_t head)
{
	uint32_t done = 0;
	int i;

	for (i = 0; i < pieces->num && done < op->length; i++) {
		uint32_t skip = i ? 0 : head;
		uint32_t n = pieces->list[i].length - skip;

		n = n < op->length - done ? n : op->length - done;
		op_data(op, done, image + pieces->list[i].offset + skip, n);
		done += n;
	}
}

/* Where the data is before the round, and where it must be after it. */
static void prepare_memory(struct run *run, struct end *end)
{
	int i;

	for (i = 0; i < run->plan.num; i++) {
		const struct op *op = &run->plan.ops[i];
		bool mine = op->from == end->side;
		const struct pieces *pieces = mine ? &op->local : &op->remote;
		bool source = mine != (op->kind == KIND_READ);
		uint32_t head = !mine && run->shape.datagram ? GRH_BYTES : 0;

		put_data(end->expected, op, pieces, head);
		if (source)
			put_data(end->memory, op, pieces, head);
	}
}

static void verify_memory(struct run *run, struct end *end)
{
	if (!memcmp(end->memory, end->expected, end->size))
		return;
	report_memory(run, end);
	/* Once is enough. */
	memcpy(end->expected, end->memory, end->size);
}

/* ---------------------------------------------------------- opening an end */

static void open_cq(struct run *run, struct end *end)
{
	if (run->params.events) {
		end->channel = ibv_create_comp_channel(run->node.ctx);
		if (!end->channel)
			die("ibv_create_comp_channel:");
	}
	end->cq = ibv_create_cq(run->node.ctx, 2 * run->shape.depth, end, end->channel, 0);
	if (!end->cq)
		die("ibv_create_cq of %u entries:", 2 * run->shape.depth);
}

static void open_qp(struct run *run, struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.qp_type = run->shape.datagram ? IBV_QPT_UD : IBV_QPT_RC,
		.cap = {
			.max_send_wr = run->shape.depth,
			.max_recv_wr = run->shape.depth,
			.max_send_sge = run->shape.max_sge,
			.max_recv_sge = run->shape.max_sge,
		},
	};

	end->qp = qp_create(&run->node, &attr);
}

static void open_end(struct run *run, int side, struct end *shared)
{
	struct end *end = &run->ends[side];

	*end = (struct end){ .side = side };
	open_memory(run, end);
	if (shared) {
		end->shares = true;
		end->channel = shared->channel;
		end->cq = shared->cq;
		end->qp = shared->qp;
		return;
	}
	open_cq(run, end);
	open_qp(run, end);
}

static void close_end(struct end *end)
{
	int err = 0;

	if (end->ah)
		err = ibv_destroy_ah(end->ah);
	if (!err && !end->shares) {
		err = ibv_destroy_qp(end->qp);
		if (end->events)
			ibv_ack_cq_events(end->cq, end->events);
		if (!err)
			err = ibv_destroy_cq(end->cq);
		if (!err && end->channel)
			err = ibv_destroy_comp_channel(end->channel);
	}
	if (err)
		die("closing end %d: %s", end->side, strerror(err));
	close_memory(end);
}

static struct contact contact_of(const struct run *run, const struct end *end)
{
	struct contact contact = {
		.address = qp_address(&run->node, end->qp, START_PSN(end->shares ? 0 : end->side)),
		.memory = (uintptr_t)end->memory,
		.rkeys = { end->mrs[0]->rkey, end->mrs[1] ? end->mrs[1]->rkey : 0 },
	};

	return contact;
}

static void connect_end(struct run *run, struct end *end)
{
	uint32_t psn = START_PSN(end->side);

	if (run->shape.datagram) {
		qp_start_ud(end->qp, psn);
		end->ah = ah_create(&run->node, &end->peer.address);
	} else {
		qp_connect(&run->node, end->qp, psn, &end->peer.address, run->params.mtu,
			   &run->retries);
	}
}

static void introduce_ends(struct run *run)
{
	int side;

	for (side = 0; side < 2; side++) {
		struct end *end = &run->ends[side];
		struct contact contact;

		if (!run->here[side])
			continue;
		contact = contact_of(run, end);
		if (run->here[!side])
			run->ends[!side].peer = contact;
		else
			oob_exchange(run->fd, &contact, &end->peer, sizeof(contact));
	}
}

/* ----------------------------------------------------------------- rounds */

/* Both sides are at the same place. Tells each what the other has found wrong. */
static void meet(struct run *run)
{
	uint64_t mine[2] = { run->round, run->errors }, theirs[2];

	if (run->fd < 0)
		return;
	oob_exchange(run->fd, mine, theirs, sizeof(mine));
	if (theirs[0] != mine[0])
		die("the peer is in round %llu, expected %llu", (unsigned long long)theirs[0],
		    (unsigned long long)mine[0]);
	if (theirs[1])
		die("the peer has found %llu errors by round %llu", (unsigned long long)theirs[1],
		    (unsigned long long)run->round);
}

static uint64_t work_id(const struct run *run, int side, bool receive, int index)
{
	return run->round << 16 | (uint64_t)side << 9 | (uint64_t)receive << 8 | (uint64_t)index;
}

static int to_sges(const struct end *end, const struct pieces *pieces, struct ibv_sge *sges)
{
	int i;

	for (i = 0; i < pieces->num; i++)
		sges[i] = (struct ibv_sge){
			.addr = (uintptr_t)end->memory + pieces->list[i].offset,
			.length = pieces->list[i].length,
			.lkey = end->mrs[region_of(end, pieces->list[i].offset)]->lkey,
		};
	return pieces->num;
}

static void expect_completion(struct waiting *waiting, int index)
{
	waiting->ops[waiting->num++] = index;
}

static void post_receive(struct run *run, struct end *end, int index)
{
	const struct op *op = &run->plan.ops[index];
	struct pieces decoy = { .num = 1, .list = { op->decoy } };
	struct ibv_sge sges[PLAN_MAX_SGE];
	struct ibv_recv_wr *bad, wr = {
		.wr_id = work_id(run, end->side, true, index),
		.sg_list = sges,
		.num_sge = to_sges(end, op->kind == KIND_WRITE_IMM ? &decoy : &op->remote, sges),
	};
	int err = ibv_post_recv(end->qp, &wr, &bad);

	if (err)
		die("ibv_post_recv with %d SGEs: %s", wr.num_sge, strerror(err));
	expect_completion(&end->receives, index);
}

static void post_receives(struct run *run, struct end *end)
{
	int i;

	for (i = 0; i < run->plan.num; i++)
		if (run->plan.ops[i].from != end->side && op_consumes_receive(&run->plan.ops[i]))
			post_receive(run, end, i);
}

static const enum ibv_wr_opcode wr_opcodes[KIND_NUM] = {
	[KIND_SEND] = IBV_WR_SEND,
	[KIND_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[KIND_WRITE] = IBV_WR_RDMA_WRITE,
	[KIND_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[KIND_READ] = IBV_WR_RDMA_READ,
};

static unsigned int send_flags(const struct op *op)
{
	return (op->signaled ? IBV_SEND_SIGNALED : 0) | (op->fenced ? IBV_SEND_FENCE : 0) |
	       (op->solicited ? IBV_SEND_SOLICITED : 0);
}

static void fill_send(struct run *run, struct end *end, int index, struct ibv_send_wr *wr,
		      struct ibv_sge *sges)
{
	const struct op *op = &run->plan.ops[index];
	uint32_t at = op->remote.num ? op->remote.list[0].offset : index * shape_slot(&run->shape);

	*wr = (struct ibv_send_wr){
		.wr_id = work_id(run, end->side, false, index),
		.sg_list = sges,
		.num_sge = to_sges(end, &op->local, sges),
		.opcode = wr_opcodes[op->kind],
		.send_flags = send_flags(op),
	};
	if (op_has_imm(op))
		wr->imm_data = htonl(op->imm);
	if (run->shape.datagram) {
		wr->wr.ud.ah = end->ah;
		wr->wr.ud.remote_qpn = end->peer.address.qpn;
		wr->wr.ud.remote_qkey = TEST_QKEY;
	} else if (op->kind >= KIND_WRITE) {
		wr->wr.rdma.remote_addr = end->peer.memory + at;
		wr->wr.rdma.rkey = end->peer.rkeys[region_of(end, at)];
	}
}

static void post_chain(struct end *end, struct ibv_send_wr *wrs, int num)
{
	struct ibv_send_wr *bad = NULL;
	int err, i;

	if (!num)
		return;
	for (i = 0; i < num; i++)
		wrs[i].next = i + 1 < num ? &wrs[i + 1] : NULL;
	err = ibv_post_send(end->qp, wrs, &bad);
	if (err)
		die("ibv_post_send of request %d of %d: %s", (int)(bad - wrs), num, strerror(err));
}

static void post_sends(struct run *run, struct end *end)
{
	static struct ibv_sge sges[PLAN_MAX_OPS][PLAN_MAX_SGE];
	struct ibv_send_wr wrs[PLAN_MAX_OPS];
	int i, num = 0;

	for (i = 0; i < run->plan.num; i++) {
		const struct op *op = &run->plan.ops[i];

		if (op->from != end->side)
			continue;
		if (!op->chained) {
			post_chain(end, wrs, num);
			num = 0;
		}
		fill_send(run, end, i, &wrs[num], sges[num]);
		num++;
		if (op->signaled)
			expect_completion(&end->sends, i);
	}
	post_chain(end, wrs, num);
}

/* ------------------------------------------------------------ completions */

static const enum ibv_wc_opcode wc_opcodes[KIND_NUM] = {
	[KIND_SEND] = IBV_WC_SEND,
	[KIND_SEND_IMM] = IBV_WC_SEND,
	[KIND_WRITE] = IBV_WC_RDMA_WRITE,
	[KIND_WRITE_IMM] = IBV_WC_RDMA_WRITE,
	[KIND_READ] = IBV_WC_RDMA_READ,
};

static void check_number(struct run *run, int index, const char *what, uint32_t is,
			 uint32_t expected)
{
	if (is != expected)
		complain(run, "%s: %s is %u, expected %u", describe(run, index), what, is,
			 expected);
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
		die("%s round %llu: end %d has a completion too many, wr_id 0x%llx", run->phase,
		    (unsigned long long)run->round, end->side, (unsigned long long)wc->wr_id);
	index = waiting->ops[waiting->next++];
	if (wc->status != IBV_WC_SUCCESS)
		die("%s round %llu: %s, %s at end %d: %s (vendor error 0x%x)", run->phase,
		    (unsigned long long)run->round, describe(run, index),
		    receive ? "receive" : "completion", end->side, ibv_wc_status_str(wc->status),
		    wc->vendor_err);
	if (wc->wr_id != work_id(run, end->side, receive, index))
		complain(run, "%s: wr_id is 0x%llx, expected 0x%llx", describe(run, index),
			 (unsigned long long)wc->wr_id,
			 (unsigned long long)work_id(run, end->side, receive, index));
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
	int i, num;

	if (end->shares)
		return 0;
	num = ibv_poll_cq(end->cq, 8, wcs);
	if (num < 0)
		die("ibv_poll_cq returns %d", num);
	for (i = 0; i < num; i++)
		handle_completion(run, &wcs[i]);
	return num;
}

static int poll_ends(struct run *run)
{
	int side, num = 0;

	for (side = 0; side < 2; side++)
		if (run->here[side])
			num += poll_end(run, &run->ends[side]);
	return num;
}

static void take_event(struct end *end)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(end->channel, &cq, &context))
		die("ibv_get_cq_event:");
	if (cq != end->cq || context != end)
		die("an event of an unknown CQ");
	end->events++;
}

/* Arm, look once more, and only then sleep: the order that loses no completion. */
static void sleep_until_event(struct run *run)
{
	struct pollfd fds[2];
	struct end *owners[2];
	int side, i, num = 0;

	for (side = 0; side < 2; side++) {
		struct end *end = &run->ends[side];

		if (!run->here[side] || end->shares)
			continue;
		if (ibv_req_notify_cq(end->cq, 0))
			die("ibv_req_notify_cq:");
		owners[num] = end;
		fds[num++] = (struct pollfd){ .fd = end->channel->fd, .events = POLLIN };
	}
	if (poll_ends(run) || poll(fds, num, 1000) <= 0)
		return;
	for (i = 0; i < num; i++)
		if (fds[i].revents)
			take_event(owners[i]);
}

static bool all_done(const struct run *run)
{
	int side;

	for (side = 0; side < 2; side++) {
		const struct end *end = &run->ends[side];

		if (run->here[side] && (end->sends.next < end->sends.num ||
					end->receives.next < end->receives.num))
			return false;
	}
	return true;
}

static void die_of_stall(const struct run *run)
{
	int side;

	for (side = 0; side < 2; side++) {
		const struct end *end = &run->ends[side];

		if (!run->here[side])
			continue;
		fprintf(stderr, "end %d has %d of %d sends and %d of %d receives done\n", side,
			end->sends.next, end->sends.num, end->receives.next, end->receives.num);
	}
	die("%s round %llu: nothing completes for %d s", run->phase, (unsigned long long)run->round,
	    STALL_SECONDS);
}

static void wait_for_all(struct run *run)
{
	double last = now();

	while (!all_done(run)) {
		if (poll_ends(run))
			last = now();
		else if (now() - last > STALL_SECONDS)
			die_of_stall(run);
		else if (run->params.events)
			sleep_until_event(run);
	}
}

static void for_each_end_here(struct run *run, void (*action)(struct run *, struct end *))
{
	int side;

	for (side = 0; side < 2; side++)
		if (run->here[side])
			action(run, &run->ends[side]);
}

static void forget_completions(struct run *run, struct end *end)
{
	(void)run;
	end->sends = end->receives = (struct waiting){};
}

static void run_round(struct run *run, uint32_t ops_left)
{
	int i;

	plan_round(&run->plan, &run->shape, run->round, ops_left);
	for_each_end_here(run, forget_completions);
	for_each_end_here(run, prepare_memory);
	for_each_end_here(run, post_receives);
	meet(run); /* all receives are there, all sources are written */
	for_each_end_here(run, post_sends);
	wait_for_all(run);
	meet(run); /* nothing moves any more */
	for_each_end_here(run, verify_memory);
	for (i = 0; i < run->plan.num; i++)
		run->bytes += run->plan.ops[i].length;
	run->operations += run->plan.num;
}

/* ----------------------------------------------------------------- phases */

enum topology { TOPOLOGY_PAIR, TOPOLOGY_SELF };

static void open_phase(struct run *run, enum topology topology)
{
	int side;

	for (side = 0; side < 2; side++)
		if (run->here[side])
			open_end(run, side,
				 side && topology == TOPOLOGY_SELF ? &run->ends[0] : NULL);
	introduce_ends(run);
	for (side = 0; side < 2; side++)
		if (run->here[side] && !run->ends[side].shares)
			connect_end(run, &run->ends[side]);
}

static void close_phase(struct run *run)
{
	int side;

	/* The end that shares goes first. */
	for (side = 1; side >= 0; side--)
		if (run->here[side])
			close_end(&run->ends[side]);
}

static void run_phase(struct run *run, const char *name, bool datagram, enum topology topology)
{
	uint64_t first = run->operations, bytes = run->bytes;
	uint32_t left = run->params.iterations, packet = 128u << run->params.mtu;

	run->phase = name;
	run->shape = (struct shape){
		.seed = run->params.seed,
		.bytes_max = datagram && packet < run->params.bytes_max ? packet :
									  run->params.bytes_max,
		.depth = run->params.depth,
		.max_sge = run->params.max_sge,
		.max_sge_read = run->params.max_sge_read,
		.datagram = datagram,
		.one_way = topology == TOPOLOGY_SELF,
	};
	open_phase(run, topology);
	for (; left; left -= run->plan.num) {
		run->round++;
		run_round(run, left);
	}
	meet(run);
	close_phase(run);
	printf("verify: %s: %llu operations, %llu bytes\n", name,
	       (unsigned long long)(run->operations - first),
	       (unsigned long long)(run->bytes - bytes));
	fflush(stdout);
}

/* ---------------------------------------------------------------- options */

static void usage(FILE *to)
{
	fputs("Usage: pvr_verify [OPTIONS] [PEER]\n"
	      "Moves random data with all RDMA operations and compares every byte.\n"
	      "Without PEER it waits for one, whose options it takes; else it connects to it.\n"
	      "  --both-ends-here     both ends in this process: two QPs, then one QP and itself\n"
	      "  --iterations N       operations per kind of QP (default 1000)\n"
	      "  --bytes-max N        largest message (default 65536)\n"
	      "  --depth N            operations outstanding (default 16, at most 32)\n"
	      "  --seed N             default: from the clock; printed\n"
	      "  -e, --events         sleep until completion events\n"
	      "  -d, --device NAME    default: $RDMA_DEV, else the first\n"
	      "  -g, --gid-index N    default: $GID_INDEX, else 0\n"
	      "  -p, --port N         TCP port (default 18600)\n"
	      "  -h, --help           this\n",
	      to);
}

struct options {
	struct params params;
	bool both_ends_here;
	const char *device, *port, *peer;
	int gid_index;
};

static uint64_t number(const char *name, const char *text, uint64_t min, uint64_t max)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || value < min || value > max)
		die("--%s is '%s', expected %llu to %llu", name, text, (unsigned long long)min,
		    (unsigned long long)max);
	return value;
}

enum { OPT_HERE = 256, OPT_ITERATIONS, OPT_BYTES, OPT_DEPTH, OPT_SEED };

static const struct option long_options[] = {
	{ "both-ends-here", no_argument, NULL, OPT_HERE },
	{ "iterations", required_argument, NULL, OPT_ITERATIONS },
	{ "bytes-max", required_argument, NULL, OPT_BYTES },
	{ "depth", required_argument, NULL, OPT_DEPTH },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "events", no_argument, NULL, 'e' },
	{ "device", required_argument, NULL, 'd' },
	{ "gid-index", required_argument, NULL, 'g' },
	{ "port", required_argument, NULL, 'p' },
	{ "help", no_argument, NULL, 'h' },
	{}
};

static void set_option(struct options *options, int option, const char *value)
{
	switch (option) {
	case OPT_HERE:
		options->both_ends_here = true;
		break;
	case OPT_ITERATIONS:
		options->params.iterations = number("iterations", value, 1, UINT32_MAX);
		break;
	case OPT_BYTES:
		options->params.bytes_max = number("bytes-max", value, 1, 16 << 20);
		break;
	case OPT_DEPTH:
		options->params.depth = number("depth", value, 1, PLAN_MAX_OPS);
		break;
	case OPT_SEED:
		options->params.seed = number("seed", value, 0, UINT64_MAX);
		break;
	case 'e':
		options->params.events = 1;
		break;
	case 'd':
		options->device = value;
		break;
	case 'g':
		options->gid_index = number("gid-index", value, 0, 255);
		break;
	case 'p':
		options->port = value;
		break;
	case 'h':
		usage(stdout);
		exit(0);
	default:
		usage(stderr);
		exit(2);
	}
}

static struct options parse_options(int argc, char **argv)
{
	struct options options = {
		.params = { .magic = PARAMS_MAGIC, .iterations = 1000, .bytes_max = 65536,
			    .depth = 16, .seed = (uint64_t)(now() * 1e6) },
		.port = "18600",
		.gid_index = -1,
	};
	int option;

	while ((option = getopt_long(argc, argv, "ed:g:p:h", long_options, NULL)) != -1)
		set_option(&options, option, optarg);
	options.peer = optind < argc ? argv[optind++] : NULL;
	if (optind < argc || (options.peer && options.both_ends_here)) {
		usage(stderr);
		exit(2);
	}
	return options;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* The client's parameters count; what a device limits is the smaller of both. */
static void agree(struct run *run, bool client)
{
	struct params *mine = &run->params, theirs, both;

	oob_exchange(run->fd, mine, &theirs, sizeof(theirs));
	if (memcmp(theirs.magic, mine->magic, sizeof(theirs.magic)))
		die("the peer is not a pvr_verify of this version");
	both = client ? *mine : theirs;
	both.max_sge = smaller(mine->max_sge, theirs.max_sge);
	both.max_sge_read = smaller(mine->max_sge_read, theirs.max_sge_read);
	both.mtu = smaller(mine->mtu, theirs.mtu);
	*mine = both;
}

static void open_node(struct run *run, const struct options *options)
{
	node_open(&run->node, options->device, options->gid_index);
	run->params = options->params;
	run->params.max_sge = smaller(run->node.dev.max_sge, PLAN_MAX_SGE);
	run->params.max_sge_read = smaller(run->params.max_sge, run->node.dev.max_sge_rd);
	if (!run->params.max_sge_read)
		run->params.max_sge_read = 1;
	run->params.mtu = run->node.port.active_mtu;
	run->retries = (struct retries){ .timeout = 18, .retry_cnt = 7, .rnr_retry = 7 };
}

static void open_ends_of(struct run *run, const struct options *options)
{
	run->fd = -1;
	run->here[0] = options->both_ends_here || options->peer;
	run->here[1] = options->both_ends_here || !options->peer;
	if (options->both_ends_here)
		return;
	run->fd = options->peer ? oob_connect(options->peer, options->port, 60) :
				  oob_accept(options->port);
	agree(run, options->peer);
}

int main(int argc, char **argv)
{
	struct options options = parse_options(argc, argv);
	static struct run run;

	open_node(&run, &options);
	open_ends_of(&run, &options);
	printf("verify: %s, GID index %d, seed %llu, up to %u bytes, %u SGEs, %u outstanding%s\n",
	       ibv_get_device_name(run.node.ctx->device), run.node.gid_index,
	       (unsigned long long)run.params.seed, run.params.bytes_max, run.params.max_sge,
	       run.params.depth, run.params.events ? ", events" : "");
	fflush(stdout);
	run_phase(&run, "RC", false, TOPOLOGY_PAIR);
	if (options.both_ends_here)
		run_phase(&run, "RC to itself", false, TOPOLOGY_SELF);
	run_phase(&run, "UD", true, TOPOLOGY_PAIR);
	node_close(&run.node);
	printf("verify: %llu operations, %llu bytes, %u errors\n",
	       (unsigned long long)run.operations, (unsigned long long)run.bytes, run.errors);
	return run.errors ? 1 : 0;
}
