// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The adversary at length: requests of all kinds in both directions of a connection, over a segment
 * that loses, repeats, delays, reorders and damages frames and has ghosts of old ones. Each request
 * is executed exactly once and in order, all bytes are right, and the end comes in bounded time.
 *
 * FG_OPERATIONS: requests of each test.
 */
#include <stdlib.h>

#include "core/objects.h"
#include "path/wire/internal.h"
#include "segment.h"

#define OPERATIONS 10000u
#define DEPTH 16u /* requests in flight in a direction */
#define SLOT 1904u /* bytes, 8 packets */
#define SEND_SLOTS 0u /* of the requester: where they are in its MR */
#define TARGETS 32768u /* of the responder */
#define WORD 65528u /* of the responder, for atomics */
#define LIFE 3000u /* requests until the ends connect anew */
#define PATIENCE (100 * FG_SEC)

static const struct adversary {
	const char *label;
	struct fg_segment_rules rules;
	bool gso; /* packets share frames */
} adversaries[] = {
	{ "loss 0.1 %", .rules = { .seed = 1, .lose = 1 } },
	{ "loss 5 %", .rules = { .seed = 2, .lose = 50 } },
	{ "loss 30 %", .rules = { .seed = 3, .lose = 300 } },
	{ "bursts", .rules = { .seed = 4, .lose = 5, .burst = 40 } },
	{ "repetition", .rules = { .seed = 5, .repeat = 300 } },
	{ "reordering", .rules = { .seed = 6, .swap = 100, .jitter = 3000 } },
	{ "damage", .rules = { .seed = 7, .damage = 50 } },
	{ "delay", .rules = { .seed = 8, .delay = 20000, .jitter = 20000, .lose = 5 } },
	{ "ghosts", .rules = { .seed = 9, .ghost = 100, .lose = 10, .jitter = 2000 } },
	{ "all", .rules = { .seed = 10,
			    .lose = 20,
			    .burst = 2,
			    .repeat = 20,
			    .swap = 20,
			    .damage = 20,
			    .ghost = 20,
			    .room = 40,
			    .jitter = 2000 } },
	{ "GSO, all",
	  .rules = { .seed = 11,
		     .lose = 20,
		     .burst = 2,
		     .repeat = 20,
		     .swap = 20,
		     .damage = 20,
		     .ghost = 20,
		     .room = 40,
		     .jitter = 2000 },
	  .gso = true },
	{ "GSO, whole frames", .rules = { .seed = 12, .lose = 20, .whole = true }, .gso = true },
	{ "GSO, damaged whole frames",
	  .rules = { .seed = 13, .repeat = 50, .swap = 50, .damage = 200, .whole = true },
	  .gso = true },
};

struct request {
	enum pvrdma_wr_opcode opcode;
	uint32_t len, number;
	uint64_t original; /* of an atomic */
};

/* Requests of one end. */
struct stream {
	struct fg_end *from, *to;
	struct request ring[DEPTH];
	uint32_t posted, done, received;
	uint32_t recvs[DEPTH]; /* requests whose receive is to be posted */
	uint32_t recvs_made, recvs_posted;
	uint64_t word;
};

struct run {
	struct t_env *env;
	struct stream stream[2];
	uint32_t random, budget;
	uint64_t progress; /* time of the last completion */
};

static uint32_t rnd(struct run *run, uint32_t below)
{
	run->random = run->random * 1103515245u + 12345u;
	return (run->random >> 8) % below;
}

static uint32_t operations(void)
{
	const char *text = getenv("FG_OPERATIONS");

	return text ? (uint32_t)strtoul(text, NULL, 10) : OPERATIONS;
}

/* ---------------------------------------------------------------------------- posting */

static uint8_t *at(const struct fg_end *end, uint32_t offset)
{
	return (uint8_t *)end->mr.va + offset;
}

static uint32_t own(uint32_t number)
{
	return SEND_SLOTS + number % DEPTH * SLOT;
}

static uint32_t target(uint32_t number)
{
	return TARGETS + number % DEPTH * SLOT;
}

static bool is_atomic(const struct request *request)
{
	return request->opcode == PVRDMA_WR_ATOMIC_FETCH_AND_ADD ||
	       request->opcode == PVRDMA_WR_ATOMIC_CMP_AND_SWP;
}

static bool has_recv(const struct request *request)
{
	return request->opcode == PVRDMA_WR_SEND || request->opcode == PVRDMA_WR_SEND_WITH_IMM ||
	       request->opcode == PVRDMA_WR_RDMA_WRITE_WITH_IMM;
}

static bool has_imm(const struct request *request)
{
	return request->opcode == PVRDMA_WR_SEND_WITH_IMM ||
	       request->opcode == PVRDMA_WR_RDMA_WRITE_WITH_IMM;
}

static struct request choose(struct run *run, uint32_t number)
{
	static const enum pvrdma_wr_opcode opcodes[] = {
		PVRDMA_WR_SEND,
		PVRDMA_WR_SEND_WITH_IMM,
		PVRDMA_WR_RDMA_WRITE,
		PVRDMA_WR_RDMA_WRITE_WITH_IMM,
		PVRDMA_WR_RDMA_READ,
		PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
		PVRDMA_WR_ATOMIC_CMP_AND_SWP,
	};
	static const uint32_t lengths[] = { 9, 65, 257, 700, SLOT + 1 };

	return (struct request){
		.opcode = opcodes[rnd(run, COUNT(opcodes))],
		.len = rnd(run, lengths[rnd(run, COUNT(lengths))]),
		.number = number,
	};
}

static void post_atomic(struct run *run, struct stream *stream, struct request *request)
{
	bool swap = request->opcode == PVRDMA_WR_ATOMIC_CMP_AND_SWP, equal = rnd(run, 2);
	uint64_t operand = rnd(run, 1000) + 1;

	request->len = 8;
	request->original = stream->word;
	t_post(stream->from, .wr_id = request->number, .opcode = request->opcode,
	       T_SGE(&stream->from->mr, own(request->number), 8), T_REMOTE(&stream->to->mr, WORD),
	       .compare_add = swap ? stream->word + !equal : operand, .swap = operand);
	if (!swap)
		stream->word += operand;
	else if (equal)
		stream->word = operand;
}

static void post_message(struct stream *stream, const struct request *request)
{
	bool read = request->opcode == PVRDMA_WR_RDMA_READ;
	uint32_t offset = own(request->number), remote = target(request->number);

	fg_fill(read ? at(stream->to, remote) : at(stream->from, offset), request->len,
		request->number);
	memset(read ? at(stream->from, offset) : at(stream->to, remote), 0, SLOT);
	t_post(stream->from, .wr_id = request->number, .opcode = request->opcode,
	       T_SGE(&stream->from->mr, offset, request->len), T_REMOTE(&stream->to->mr, remote),
	       .imm = request->number);
}

static void post(struct run *run, struct stream *stream)
{
	struct request *request = &stream->ring[stream->posted % DEPTH];

	*request = choose(run, stream->posted++);
	if (is_atomic(request)) {
		post_atomic(run, stream, request);
		return;
	}
	if (has_recv(request))
		stream->recvs[stream->recvs_made++ % DEPTH] = request->number;
	post_message(stream, request);
}

/* Some come late, so that requests meet RNR NAKs. */
static void post_recvs(struct run *run, struct stream *stream)
{
	while (stream->recvs_posted != stream->recvs_made && rnd(run, 8)) {
		uint32_t number = stream->recvs[stream->recvs_posted++ % DEPTH];

		t_recv(stream->to, number, target(number), SLOT);
	}
}

/* ----------------------------------------------------------------------- completions */

static void check_recv(struct stream *stream, const struct request *request)
{
	struct pvrdma_cqe cqe;

	if (!has_recv(request))
		return;
	assert_true(fg_cq_poll(&stream->to->rcq, &cqe));
	assert_int_equal(cqe.wr_id, request->number);
	assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
	assert_int_equal(cqe.byte_len, request->len);
	assert_int_equal(!!(cqe.wc_flags & PVRDMA_WC_WITH_IMM), has_imm(request));
	if (has_imm(request))
		assert_int_equal(cqe.imm_data, request->number);
}

/* Also later, as long as its slots have no new request. */
static void check_bytes(const struct stream *stream, const struct request *request)
{
	bool read = request->opcode == PVRDMA_WR_RDMA_READ;
	const uint8_t *data = read ? at(stream->from, own(request->number))
				   : at(stream->to, target(request->number));
	uint64_t original;

	if (is_atomic(request)) {
		memcpy(&original, at(stream->from, own(request->number)), sizeof(original));
		assert_int_equal(original, request->original);
		return;
	}
	assert_int_equal(fg_mismatch(data, request->len, request->number), request->len);
	if (request->len < SLOT)
		assert_int_equal(data[request->len], 0);
}

static void complete(struct run *run, struct stream *stream)
{
	struct request *request;
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&stream->from->scq, &cqe)) {
		assert_int_equal(cqe.status, PVRDMA_WC_SUCCESS);
		assert_int_equal(cqe.wr_id, stream->done);
		request = &stream->ring[stream->done++ % DEPTH];
		check_recv(stream, request);
		check_bytes(stream, request);
		run->progress = run->env->host->now;
	}
}

/* ----------------------------------------------------------------------------- forgery */

static const uint8_t syndromes[] = { 0x1f, 0x00, 0x20, 0x3f, 0x60, 0x61, 0x62, 0x63, 0x7f };

/* An answer to a PSN of requester @host that is not in flight. */
static void forge_answer(struct run *run, unsigned int host)
{
	const struct pvr_eth_sq *sq = pvr_eth_sq(t_device_qp(run->stream[host].from));
	struct segment_frame last = segment_last(run->env, !host);
	uint32_t away = 1 + rnd(run, 5000);

	if (!sq || (last.frame.opcode & 0xe0) || last.frame.opcode < 0x0d ||
	    last.frame.opcode > 0x12)
		return;
	last.frame.psn = pvr_eth_psn_add(rnd(run, 2) ? sq->high - 1 + away : sq->una - away, 0);
	last.frame.syndrome = syndromes[rnd(run, COUNT(syndromes))];
	segment_inject(run->env, host, &last);
}

/* A request with a PSN that responder @host does not expect: of a life before, or ahead. */
static void forge_request(struct run *run, unsigned int host)
{
	const struct pvr_qp *qp = t_device_qp(run->stream[host].from);
	struct segment_frame last = segment_last(run->env, !host);

	if (!pvr_eth_rq(qp) || (last.frame.opcode & 0xe0) ||
	    (last.frame.opcode >= 0x0d && last.frame.opcode <= 0x12))
		return;
	last.frame.psn =
		pvr_eth_psn_add(pvr_eth_expected(qp), rnd(run, 2) ? 1 + rnd(run, 5000) : 1u << 23);
	memset(last.payload, 0xee, last.frame.payload_bytes);
	segment_inject(run->env, host, &last);
}

/* At once: after a delay a PSN that was beyond those in flight could be one of them. */
static void forge(struct run *run)
{
	struct fg_segment_rules *rules = fg_segment_rules(run->env->segment), kept = *rules;
	unsigned int host = rnd(run, 2);

	fg_run(run->env->host);
	rules->delay = 0;
	rules->jitter = 0;
	if (fg_segment_sent(run->env->segment, !host))
		(rnd(run, 2) ? forge_answer : forge_request)(run, host);
	*rules = kept;
}

/* ------------------------------------------------------------------------------- a run */

/* New PSNs each time: frames of the life before come, too. */
static void connect_anew(struct run *run)
{
	struct fg_conn conn = fg_conn_default;

	conn.mtu = PVR_MTU_256;
	conn.timeout = 8; /* 1 ms */
	conn.rnr_retry = T_RNR_FOREVER;
	conn.psn = rnd(run, 1 << 24);
	if (rnd(run, 4) == 0)
		conn.psn = 0xffffff - rnd(run, 2000); /* PSNs wrap */
	fg_qp_to_reset(&run->env->a.qp);
	fg_qp_to_reset(&run->env->b.qp);
	fg_end_connect(&run->env->a, &run->env->b, &conn);
}

/* With 30 % of loss, seven tries in a row may fail: the test must not depend on that. */
static void be_patient(struct run *run)
{
	for (unsigned int i = 0; i < 2; i++)
		t_device_qp(run->stream[i].from)->retry_left = 7;
}

static bool is_idle(const struct run *run)
{
	return run->stream[0].done == run->stream[0].posted &&
	       run->stream[1].done == run->stream[1].posted;
}

static void step(struct run *run, bool more)
{
	be_patient(run);
	for (unsigned int i = 0; i < 2; i++) {
		struct stream *stream = &run->stream[i];

		while (more && run->budget && stream->posted - stream->done < DEPTH &&
		       rnd(run, 4)) {
			if (stream->posted >= DEPTH) /* nothing has written to its slots since */
				check_bytes(stream, &stream->ring[stream->posted % DEPTH]);
			post(run, stream);
			run->budget--;
		}
		post_recvs(run, stream);
	}
	if (rnd(run, 16) == 0)
		forge(run);
	fg_settle(run->env->host, 20000 + rnd(run, 100000));
	for (unsigned int i = 0; i < 2; i++)
		complete(run, &run->stream[i]);
	assert_true(run->env->host->now - run->progress < PATIENCE || is_idle(run));
}

static void live(struct run *run)
{
	run->budget = LIFE;
	run->progress = run->env->host->now;
	while (run->budget)
		step(run, true);
	while (!is_idle(run))
		step(run, false);
}

TEST_CASES(rc, test_requests_are_executed_once_and_in_order, adversaries)
{
	struct run run = {
		.env = env,
		.stream = { { .from = &env->a, .to = &env->b },
			    { .from = &env->b, .to = &env->a } },
		.random = row->rules.seed,
	};
	uint32_t left = operations();
	struct pvr_port_stats stats;

	memset(at(&env->a, WORD), 0, 8);
	memset(at(&env->b, WORD), 0, 8);
	*fg_segment_rules(env->segment) = row->rules;
	fg_segment_set_gso(env->segment, row->gso);
	for (; left >= LIFE; left -= LIFE) {
		connect_anew(&run);
		live(&run);
	}
	expect_no_cqe(&env->a.rcq);
	expect_no_cqe(&env->b.rcq);
	assert_int_equal(*(uint64_t *)at(&env->b, WORD), run.stream[0].word);
	assert_int_equal(*(uint64_t *)at(&env->a, WORD), run.stream[1].word);
	stats = fg_segment_stats(env->segment, 0);
	print_message(
		"# %u requests; of one end: %llu frames sent, %llu received, %llu repetitions\n",
		run.stream[0].done + run.stream[1].done, (unsigned long long)stats.tx_frames,
		(unsigned long long)stats.rx_frames, (unsigned long long)stats.retransmits);
	/* The adversary has been there. */
	assert_true(stats.retransmits || row->rules.repeat);
	assert_int_equal(fg_segment_merged(env->segment, 0) > 0, row->gso);
}
