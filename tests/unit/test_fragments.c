// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Messages between two hosts that are sent again in other fragments than before: over another
 * chunk, in longer or shorter quanta, from another host. Each byte takes effect once, and no
 * queue pair waits for ever. A guest's timeout is 0: nothing but the responses ends a wait.
 */
#include <stdlib.h>

#include "hosts.h"
#include "fg_link.h"
#include "fg_malformed.h"
#include "core/objects.h"
#include "path/pipe/sq.h"

TEST_EXT(PVR_EXT_UC)

#define PAGES 128
#define LEN 256000u
#define SMALL_CHUNK 4096u
#define LARGE_CHUNK 262144u
#define TARGET (64u * PVR_PAGE_SIZE) /* where a message begins at the other end */
#define IMM 0x12345678u

/* Bytes of the buffers, and those of the neighbor. */
#define WORD (127u * PVR_PAGE_SIZE)
#define BUSY_LEN 30000u

static void connect_for_ever(struct t_env *env, struct fg_end *a, struct fg_end *b)
{
	struct fg_conn conn = fg_conn_default;

	conn.timeout = 0;
	fg_end_connect(a, b, &conn);
	fg_wire_run(env->wire);
}

static void open_and_connect(struct t_env *env)
{
	hosts_open(env, &env->a, &env->b, PVR_QPT_RC, PAGES);
	connect_for_ever(env, &env->a, &env->b);
}

/* A step of the wire moves no more than is on its way: a part of a fragment. */
#define ON_ITS_WAY 7000u

T_SETUP_HOSTS(hosts, 2, .chunk = SMALL_CHUNK, .buffer = ON_ITS_WAY)
{
	open_and_connect(env);
}

/* Hosts of the version before PVR_HELLO_F_TAIL. */
T_SETUP_HOSTS(old, 2, .chunk = SMALL_CHUNK, .buffer = ON_ITS_WAY, .old = true)
{
	open_and_connect(env);
}

T_SETUP_HOSTS(nics, 2, .chunk = SMALL_CHUNK, .buffer = ON_ITS_WAY, .exposes = true)
{
	open_and_connect(env);
}

T_SETUP_HOSTS(unreliable, 2, .chunk = SMALL_CHUNK, .buffer = ON_ITS_WAY)
{
	hosts_open(env, &env->a, &env->b, PVR_QPT_UC, PAGES);
	connect_for_ever(env, &env->a, &env->b);
}

static void set_chunk(struct t_env *env, uint32_t chunk)
{
	fg_wire_link_env(env->wire)->chunk = chunk;
}

static void reconnect(struct t_env *env, uint32_t chunk)
{
	fg_wire_cut(env->wire, 0, 1, 0);
	fg_wire_hold(env->wire, 1, 0, false);
	set_chunk(env, chunk);
	fg_wire_mend(env->wire, 0, 1, 0);
}

/* ---------------------------------------------------------------- one message */

static const struct kind {
	const char *label;
	enum pvrdma_wr_opcode op;
	enum pvrdma_wc_opcode done;
	bool recv; /* it takes a receive request */
} kinds[] = {
	{ "WRITE", PVRDMA_WR_RDMA_WRITE, PVRDMA_WC_RDMA_WRITE, false },
	{ "WRITE_WITH_IMM", PVRDMA_WR_RDMA_WRITE_WITH_IMM, PVRDMA_WC_RDMA_WRITE, true },
	{ "SEND", PVRDMA_WR_SEND, PVRDMA_WC_SEND, true },
	{ "READ", PVRDMA_WR_RDMA_READ, PVRDMA_WC_RDMA_READ, false },
};

static bool is_read(const struct kind *kind)
{
	return kind->op == PVRDMA_WR_RDMA_READ;
}

static void post_kind(struct t_env *env, const struct kind *kind)
{
	struct fg_end *from = is_read(kind) ? &env->b : &env->a;
	struct fg_end *to = is_read(kind) ? &env->a : &env->b;

	fg_fill(from->buf.va + (is_read(kind) ? TARGET : 0), LEN, 3);
	memset(to->buf.va + (is_read(kind) ? 0 : TARGET), 0, LEN);
	if (kind->recv)
		t_recv(&env->b, 7, TARGET, LEN);
	t_post(&env->a, .wr_id = 1, .opcode = kind->op, T_SGE(&env->a.mr, 0, LEN),
	       T_REMOTE(&env->b.mr, TARGET), .imm = IMM);
}

static void check_kind(struct t_env *env, const struct kind *kind)
{
	const struct fg_end *to = is_read(kind) ? &env->a : &env->b;
	const uint8_t *data = to->buf.va + (is_read(kind) ? 0 : TARGET);

	expect_done(&env->a.scq, 1, kind->done);
	expect_no_cqe(&env->a.scq);
	if (kind->recv)
		expect_cqe(&env->b.rcq, 7, PVRDMA_WC_SUCCESS);
	expect_no_cqe(&env->b.rcq);
	assert_int_equal(fg_mismatch(data, LEN, 3), LEN);
}

/* The responder's offset in the message. */
static uint64_t offset_of_b(struct t_env *env)
{
	return t_device_qp(&env->b)->rq_offset;
}

/* b executes a part of the message, and a hears nothing of it. Data of a READ may have no room. */
static void execute_part(struct t_env *env, uint64_t bytes)
{
	fg_wire_hold(env->wire, 1, 0, true);
	while (offset_of_b(env) < bytes && fg_wire_step(env->wire))
		;
	assert_true(offset_of_b(env) > 0);
}

static void resend_larger(struct t_env *env, const struct kind *kind)
{
	post_kind(env, kind);
	execute_part(env, 20000);
	reconnect(env, LARGE_CHUNK);
	fg_wire_settle(env->wire, FG_SEC);
	check_kind(env, kind);
	/* The positions of both ends agree: the next message arrives, too. */
	post_kind(env, kind);
	fg_wire_settle(env->wire, FG_SEC);
	check_kind(env, kind);
}

TEST_CASES(hosts, test_message_sent_again_in_larger_fragments_is_executed_once, kinds)
{
	resend_larger(env, row);
	assert_int_equal(fg_stats(env->g[1]).rx_messages, 2);
}

TEST_CASES(old, test_message_sent_again_to_an_old_host_is_executed_once, kinds)
{
	resend_larger(env, row);
}

/* At any byte that arrives, and again and again. */
TEST_CASES(hosts, test_message_sent_again_in_growing_fragments_is_executed_once, kinds)
{
	for (uint32_t first = 1; first < 24; first += 2) {
		set_chunk(env, SMALL_CHUNK + first);
		reconnect(env, SMALL_CHUNK + first);
		post_kind(env, row);
		for (uint32_t i = 1; i < 6 && fg_cq_pending(&env->a.scq) == 0; i++) {
			fg_wire_steps(env->wire, first);
			reconnect(env, (SMALL_CHUNK << i) + 77 * first);
		}
		fg_wire_settle(env->wire, FG_SEC);
		check_kind(env, row);
	}
}

/* NICs read the payload from where the responder's offset is. */
TEST_CASES(nics, test_exposed_message_sent_again_in_larger_fragments_is_executed_once, kinds)
{
	for (uint32_t part = 5000; part < 100000; part += 10000) {
		reconnect(env, 3 * SMALL_CHUNK);
		post_kind(env, row);
		execute_part(env, part);
		set_chunk(env, LARGE_CHUNK);
		fg_wire_verbs(env->wire, 0, 1, true);
		reconnect(env, LARGE_CHUNK);
		fg_wire_settle(env->wire, FG_SEC);
		check_kind(env, row);
		fg_wire_verbs(env->wire, 0, 1, false);
		fg_wire_settle(env->wire, FG_SEC);
	}
}

/* The state of a's adapter is loaded while its message is in flight. */
TEST_CASES(hosts, test_message_of_a_loaded_state_is_executed_once, kinds)
{
	post_kind(env, row);
	execute_part(env, 30000);
	set_chunk(env, LARGE_CHUNK);
	fg_migrate(env->g[0]);
	reconnect(env, LARGE_CHUNK);
	fg_wire_settle(env->wire, FG_SEC);
	check_kind(env, row);
}

/* The NAK of a part is lost, and the part arrives again with bytes before it. */
TEST(hosts, test_refusal_of_a_fragment_is_repeated_for_a_larger_one)
{
	post_kind(env, &kinds[0]);
	execute_part(env, 20000);
	expect_ok(fg_mr_destroy(&env->b.mr));
	fg_wire_steps(env->wire, 100);
	expect_state(&env->b, PVR_QPS_ERR);
	reconnect(env, LARGE_CHUNK);
	fg_wire_settle(env->wire, FG_SEC);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

/* A message of UC that loses a fragment has no effect; a later one does. */
TEST(unreliable, test_unreliable_message_with_a_lost_fragment_is_dropped_whole)
{
	for (uint32_t steps = 1; steps < 60; steps += 3) {
		set_chunk(env, SMALL_CHUNK);
		reconnect(env, SMALL_CHUNK);
		post_kind(env, &kinds[2]);
		fg_wire_steps(env->wire, steps);
		reconnect(env, LARGE_CHUNK);
		fg_wire_settle(env->wire, FG_SEC);
		expect_sent(&env->a, 1);
		if (!fg_cq_pending(&env->b.rcq)) {
			t_send(&env->a, 2, 0, LEN);
			fg_wire_settle(env->wire, FG_SEC);
			expect_sent(&env->a, 2);
		}
		expect_recv(&env->b.rcq, 7, LEN);
		expect_no_cqe(&env->b.rcq);
		assert_int_equal(fg_mismatch(env->b.buf.va + TARGET, LEN, 3), LEN);
	}
}

/* ----------------------------------------------- a responder without PVR_HELLO_F_TAIL */

/*
 * The responder of an old host, as far as a message needs it: a fragment before its position is a
 * duplicate, also if it ends behind it. While @mute, its responses get lost.
 */
struct old_host {
	struct t_env *env;
	struct fg_malformed *conn;
	bool mute, nak_sent;
	uint32_t psn;
	uint64_t offset;
	uint32_t refused; /* fragments that it has executed in part */
	uint8_t memory[LEN];
	uint8_t in[2 * LARGE_CHUNK] __attribute__((aligned(8)));
	size_t have;
};

static void old_host_accept(struct old_host *host, uint32_t chunk)
{
	if (host->conn)
		fg_malformed_destroy(host->conn);
	host->have = 0;
	set_chunk(host->env, chunk);
	host->conn = fg_malformed_accept(host->env->wire, 0, 1, PVR_PIPE_TCP);
}

static void old_host_init(struct old_host *host, struct t_env *env)
{
	*host = (struct old_host){ .env = env, .psn = t_device_qp(&env->a)->sq_psn };
	fg_wire_cut(env->wire, 0, 1, 0);
}

static void reply(struct old_host *host, const void *header, size_t size, const void *payload,
		  size_t len)
{
	if (host->mute)
		return;
	fg_malformed_send(host->conn, header, size);
	if (len)
		fg_malformed_send(host->conn, payload, len);
}

static void send_position(struct old_host *host, const struct pvr_frame_request *request,
			  enum pvr_frame_syndrome syndrome)
{
	struct pvr_frame_ack ack = {
		.frame = FG_FRAME(PVR_FRAME_ACK, sizeof(ack)),
		.syndrome = syndrome,
		.epoch = request->epoch,
		.qpn = request->src_qpn,
		.psn = htole32(host->psn),
		.offset = htole64(host->offset),
	};

	memcpy(ack.gid, request->sgid, sizeof(ack.gid));
	reply(host, &ack, sizeof(ack), NULL, 0);
}

static void send_data(struct old_host *host, const struct pvr_frame_request *request)
{
	uint32_t chunk = le32toh(request->chunk);
	struct pvr_frame_read_data data = {
		.frame = FG_FRAME(PVR_FRAME_READ_DATA, (uint32_t)sizeof(data) + chunk),
		.epoch = request->epoch,
		.qpn = request->src_qpn,
		.psn = request->psn,
		.chunk = request->chunk,
		.offset = request->offset,
	};

	memcpy(data.gid, request->sgid, sizeof(data.gid));
	reply(host, &data, sizeof(data), host->memory + le64toh(request->offset), chunk);
}

static void answer(struct old_host *host, const struct pvr_frame_request *request)
{
	if (request->op == PVR_FRAME_OP_READ)
		send_data(host, request);
	else
		send_position(host, request, PVR_FRAME_SYN_ACK);
}

static void handle_request(struct old_host *host, const struct pvr_frame_request *request,
			   const uint8_t *payload)
{
	uint32_t chunk = le32toh(request->chunk), ahead;
	uint64_t offset = le64toh(request->offset);

	ahead = (le32toh(request->psn) - host->psn) & 0xffffff;
	if ((ahead && ahead < 1u << 23) || (!ahead && offset > host->offset)) {
		if (!host->nak_sent)
			send_position(host, request, PVR_FRAME_SYN_PSN_SEQ_ERR);
		host->nak_sent = true;
		return;
	}
	if (ahead || offset < host->offset) {
		host->refused += !ahead && offset + chunk > host->offset;
		answer(host, request);
		return;
	}
	host->nak_sent = false;
	if (request->op != PVR_FRAME_OP_READ)
		memcpy(host->memory + offset, payload, chunk);
	host->offset += chunk;
	if (request->frame.flags & PVR_REQUEST_F_LAST) {
		host->psn = (host->psn + le32toh(request->psns)) & 0xffffff;
		host->offset = 0;
	}
	answer(host, request);
}

/* Return: whether there was a whole frame. */
static bool handle_frame(struct old_host *host)
{
	const struct pvr_frame_request *request = (const void *)host->in;
	uint32_t size;

	if (host->have < sizeof(request->frame) || host->have < le32toh(request->frame.size))
		return false;
	size = le32toh(request->frame.size);
	if (request->frame.type == PVR_FRAME_REQUEST)
		handle_request(host, request, host->in + sizeof(*request));
	host->have -= size;
	memmove(host->in, host->in + size, host->have);
	return true;
}

/* Until nothing arrives any more; with @bytes until so much of the message is executed. */
static void old_host_run(struct old_host *host, uint64_t bytes)
{
	size_t n;

	do {
		while (handle_frame(host))
			if (bytes && host->offset >= bytes)
				return;
		n = fg_malformed_recv(host->conn, host->in + host->have,
				      sizeof(host->in) - host->have);
		host->have += n;
	} while (n);
}

static const struct old_case {
	const char *label;
	struct kind kind;
	uint32_t chunk, later;
	bool refuses;
} old_cases[] = {
	{ "WRITE", { "", PVRDMA_WR_RDMA_WRITE, PVRDMA_WC_RDMA_WRITE, false }, 4096, 262144, false },
	{ "SEND", { "", PVRDMA_WR_SEND, PVRDMA_WC_SEND, false }, 12288, 65536, false },
	{ "READ", { "", PVRDMA_WR_RDMA_READ, PVRDMA_WC_RDMA_READ, false }, 4096, 262144, false },
	{ "READ of another size",
	  { "", PVRDMA_WR_RDMA_READ, PVRDMA_WC_RDMA_READ, false },
	  20480,
	  65536,
	  false },
	/* No chunk of a real host: its position is inside of what is sent. */
	{ "WRITE in odd parts",
	  { "", PVRDMA_WR_RDMA_WRITE, PVRDMA_WC_RDMA_WRITE, false },
	  5000,
	  262144,
	  true },
	{ "SEND in odd parts", { "", PVRDMA_WR_SEND, PVRDMA_WC_SEND, false }, 5000, 262144, true },
};

static void check_at_old_host(struct old_host *host, const struct kind *kind)
{
	struct t_env *env = host->env;

	expect_done(&env->a.scq, 1, kind->done);
	expect_no_cqe(&env->a.scq);
	assert_int_equal(fg_mismatch(is_read(kind) ? env->a.buf.va : host->memory, LEN, 3), LEN);
}

static void post_to_old_host(struct old_host *host, const struct kind *kind)
{
	post_kind(host->env, kind);
	memset(host->memory, 0, LEN);
	if (is_read(kind))
		fg_fill(host->memory, LEN, 3);
}

TEST_CASES(old, test_responder_that_drops_a_fragment_executed_in_part_gets_its_tail, old_cases)
{
	struct old_host *host = malloc(sizeof(*host));

	old_host_init(host, env);
	for (uint64_t part = 20000; part < 200000; part += 23456) {
		old_host_accept(host, row->chunk);
		post_to_old_host(host, &row->kind);
		host->mute = true;
		old_host_run(host, part);
		host->mute = false;
		old_host_accept(host, row->later);
		old_host_run(host, 0);
		check_at_old_host(host, &row->kind);
	}
	assert_int_equal(host->refused > 0, row->refuses);
	fg_malformed_destroy(host->conn);
	free(host);
}

/* ------------------------------------------------------------------ random loads */

#define MESSAGES 8u
#define MESSAGE_MAX 60000u
#define RANDOM_SEEDS 100u

struct load {
	struct t_env *env;
	struct fg_end busy; /* its guest is a's neighbor: it makes a's quanta short */
	uint32_t random;
	uint32_t posted, len[MESSAGES];
	const struct kind *kind[MESSAGES]; /* NULL: an atomic */
	uint32_t atomics;
};

static uint32_t draw(struct load *load, uint32_t below)
{
	load->random = load->random * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)load->random * below) >> 32);
}

static void load_init(struct load *load, struct t_env *env)
{
	*load = (struct load){ .env = env };
	t_guest_with_ext(env, 3, fg_default_ext);
	fg_end_open(&load->busy, env->g[2], PVR_QPT_RC);
	connect_for_ever(env, &load->busy, &load->busy);
}

static void post_next(struct load *load)
{
	struct t_env *env = load->env;
	uint32_t i = load->posted++, len = 1 + draw(load, MESSAGE_MAX), at = i * MESSAGE_MAX;
	const struct kind *kind = draw(load, 6) ? &kinds[draw(load, COUNT(kinds))] : NULL;

	load->kind[i] = kind;
	load->len[i] = len;
	if (!kind) {
		t_post(&env->a, .wr_id = i, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
		       T_SGE(&env->a.mr, WORD + 8 * load->atomics, 8), T_REMOTE(&env->b.mr, WORD),
		       .compare_add = 1);
		load->atomics++;
		return;
	}
	memset((is_read(kind) ? &env->a : &env->b)->buf.va + at, 0, len);
	fg_fill((is_read(kind) ? &env->b : &env->a)->buf.va + at, len, i);
	if (kind->recv)
		t_recv(&env->b, i, at, len);
	t_post(&env->a, .wr_id = i, .opcode = kind->op, T_SGE(&env->a.mr, at, len),
	       T_REMOTE(&env->b.mr, at), .imm = i);
}

static void check_next(struct load *load, uint32_t i)
{
	const struct kind *kind = load->kind[i];
	struct t_env *env = load->env;

	expect_done(&env->a.scq, i, kind ? kind->done : PVRDMA_WC_FETCH_ADD);
	if (!kind)
		return;
	if (kind->recv)
		expect_cqe(&env->b.rcq, i, PVRDMA_WC_SUCCESS);
	assert_int_equal(fg_mismatch((is_read(kind) ? &env->a : &env->b)->buf.va + i * MESSAGE_MAX,
				     load->len[i], i),
			 load->len[i]);
}

static void check_load(struct load *load)
{
	struct t_env *env = load->env;
	const uint64_t *was = (const uint64_t *)(env->a.buf.va + WORD);

	for (uint32_t i = 0; i < load->posted; i++)
		check_next(load, i);
	expect_no_cqe(&env->a.scq);
	expect_no_cqe(&env->b.rcq);
	for (uint32_t i = 0; i < load->atomics; i++)
		assert_int_equal(was[i], i);
	assert_int_equal(*(const uint64_t *)(env->b.buf.va + WORD), load->atomics);
}

/* The neighbor has work, so that quanta are short. */
static void keep_busy(struct load *load)
{
	while (fg_cq_pending(&load->busy.scq))
		expect_cqe(&load->busy.scq, 0, PVRDMA_WC_SUCCESS);
	for (uint32_t i = 0; i < 4; i++)
		t_rdma(&load->busy, PVRDMA_WR_RDMA_WRITE, 0, 0, &load->busy.mr, 32768, BUSY_LEN);
}

static void disturb(struct load *load)
{
	struct t_env *env = load->env;

	switch (draw(load, 8)) {
	case 0:
	case 4:
	case 5:
		fg_wire_hold(env->wire, 1, 0, true);
		break;
	case 1:
		keep_busy(load);
		break;
	case 2:
		fg_wire_hold(env->wire, 1, 0, false);
		set_chunk(env, SMALL_CHUNK + draw(load, LARGE_CHUNK - SMALL_CHUNK));
		fg_wire_verbs(env->wire, 0, 1, !fg_wire_verbs_is_up(env->wire, 0, 1));
		break;
	case 3:
		fg_migrate(env->g[draw(load, 2)]);
		break;
	default:
		reconnect(env, SMALL_CHUNK << draw(load, 7));
		break;
	}
}

static void run_random(struct load *load, uint32_t seed)
{
	struct t_env *env = load->env;

	load->random = seed;
	load->posted = load->atomics = 0;
	*(uint64_t *)(env->b.buf.va + WORD) = 0;
	for (uint32_t i = 0; i < 3 * MESSAGES; i++) {
		if (i < 2 * MESSAGES && i % 2)
			post_next(load);
		fg_wire_steps(env->wire, draw(load, 20));
		disturb(load);
	}
	fg_wire_hold(env->wire, 1, 0, false);
	fg_wire_settle(env->wire, FG_SEC);
	if (fg_cq_pending(&env->a.scq) != MESSAGES)
		print_message("# seed %u: %u of %u requests completed\n", seed,
			      fg_cq_pending(&env->a.scq), MESSAGES);
	check_load(load);
	while (fg_cq_pending(&load->busy.scq))
		expect_cqe(&load->busy.scq, 0, PVRDMA_WC_SUCCESS);
}

#define TEST_LOAD(fixture, name) TEST_OBJECT(fixture, struct load, load, load_init, name)

TEST_LOAD(hosts, test_random_loads_over_changing_fragments_are_executed_once)
{
	for (uint32_t seed = 0; seed < RANDOM_SEEDS; seed++)
		run_random(load, seed);
	assert_int_equal(fg_wire_refused(env->wire), 0);
}

TEST_LOAD(nics, test_random_exposed_loads_over_changing_fragments_are_executed_once)
{
	for (uint32_t seed = 0; seed < RANDOM_SEEDS; seed++)
		run_random(load, 1000 + seed);
	assert_int_equal(fg_wire_refused(env->wire), 0);
}

TEST_LOAD(old, test_random_loads_to_an_old_host_are_executed_once)
{
	for (uint32_t seed = 0; seed < RANDOM_SEEDS; seed++)
		run_random(load, 2000 + seed);
	assert_int_equal(fg_wire_refused(env->wire), 0);
}
