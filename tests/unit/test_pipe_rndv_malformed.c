// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Unexpected and invalid rendezvous, and replies to rendezvous. */
#include "fg_malformed.h"
#include "core/objects.h"
#include "nics.h"

#define LEN 100000u
#define QPN_OF(end) htole32((end)->qp.qpn)

/* The malformed peer takes the place of host 1's connection and of the host behind it. */
struct scene {
	struct t_env *env;
	struct fg_malformed *malformed;
	uint8_t memory[LEN]; /* exposed memory */
	struct pvr_frame_rndv_seg rndv; /* valid: LEN bytes of it */
	void *exposed;
	struct {
		struct pvr_frame_request frame;
		struct pvr_frame_rndv_seg rndv[PVR_FRAME_RNDV_SEGS + 1];
	} request; /* valid: a WRITE of that to b */
};

static void expose(struct scene *s)
{
	fg_fill(s->memory, LEN, 8);
	s->exposed = fg_malformed_expose(s->malformed, s->memory, LEN, &s->rndv);
}

static void fill_request(struct scene *s)
{
	struct fg_end *a = &s->env->a, *b = &s->env->b;
	struct pvr_frame_request *frame = &s->request.frame;

	*frame = (struct pvr_frame_request){
		.frame = FG_FRAME(PVR_FRAME_REQUEST, sizeof(*frame) + sizeof(s->rndv)),
		.frame.flags = PVR_REQUEST_F_LAST | PVR_FRAME_F_RNDV,
		.op = PVR_FRAME_OP_WRITE,
		.gid_type = PVR_GID_TYPE_ROCE_V2,
		.epoch = htole32(1),
		.src_qpn = QPN_OF(a),
		.dst_qpn = QPN_OF(b),
		.psn = htole32(t_device_qp(b)->rq_psn),
		.psns = htole32(100),
		.rkey = htole32(b->mr.rkey),
		.addr = htole64(b->mr.start),
		.length = htole64(LEN),
		.chunk = htole32(LEN),
	};
	memcpy(frame->sgid, a->gid, 16);
	memcpy(frame->dgid, b->gid, 16);
	s->request.rndv[0] = s->rndv;
}

/* To b, in the place of an earlier peer. */
static void dial(struct scene *s, struct t_env *env, bool exposes)
{
	memset(s, 0, sizeof(*s));
	s->env = env;
	fg_malformed_destroy_all(fg_wire_link_env(env->wire));
	nics_up(env, false);
	s->malformed = exposes ? fg_malformed_create_rndv(env->wire, 1, 0)
			       : fg_malformed_create(env->wire, 1, 0);
	fg_malformed_send_fabric(s->malformed, "default");
	expose(s);
	fill_request(s);
	memset(s->env->b.buf.va, 0, s->env->b.buf.size);
}

#define TEST_DIAL(fixture, exposes, name) TEST_OBJECT(fixture, struct scene, s, dial, name, exposes)

static void send_request(struct scene *s)
{
	fg_malformed_send(s->malformed, &s->request, le32toh(s->request.frame.frame.size));
	fg_wire_run(s->env->wire);
}

/* Received frames; those of other types are skipped. */
static unsigned int count_frames(struct scene *s, uint8_t type, union pvr_any_frame *last)
{
	static uint8_t bytes[8u << 20];
	size_t size = fg_malformed_recv(s->malformed, bytes, sizeof(bytes)), at = 0;
	struct pvr_frame frame;
	unsigned int n = 0;

	for (; at + sizeof(frame) <= size; at += le32toh(frame.size)) {
		memcpy(&frame, bytes + at, sizeof(frame));
		if (frame.type != type)
			continue;
		n++;
		memcpy(last, bytes + at,
		       le32toh(frame.size) < sizeof(*last) ? le32toh(frame.size) : sizeof(*last));
	}
	assert_int_equal(at, size);
	return n;
}

/* The peer has received so many RNDV_DONE frames; the last one returns all rendezvous. */
static void expect_rndvs_done(struct scene *s, uint32_t count)
{
	union pvr_any_frame any;

	assert_int_equal(count_frames(s, PVR_FRAME_RNDV_DONE, &any), count);
	assert_int_equal(le32toh(any.rndv_done.count), count);
	assert_int_equal(any.rndv_done.reserved, 0);
}

static void expect_closed(struct scene *s, const char *why)
{
	assert_true(fg_malformed_is_closed(s->malformed));
	if (!strstr(fg_wire_why(s->env->wire), why))
		fail_msg("refused for %s, and not for %s", fg_wire_why(s->env->wire), why);
}

static void expect_nothing_read(struct scene *s, unsigned int host)
{
	struct fg_nic_stats stats = fg_wire_nic_since(s->env->wire, host);

	assert_int_equal(stats.read + stats.read_own, 0);
}

/* ----------------------------------------------------------- requests with rendezvous */

TEST_DIAL(nics, true, test_rndv_that_is_in_order_is_read_and_returned)
{
	send_request(s);
	assert_int_equal(fg_mismatch(env->b.buf.va, LEN, 8), LEN);
	expect_rndvs_done(s, 1);
}

TEST_DIAL(nics, false, test_rndv_that_was_not_agreed_upon_ends_the_connection)
{
	send_request(s);
	expect_closed(s, "not negotiated");
	nics_expect_bytes(&env->b, 0);
}

static void set_parts(struct scene *s, uint32_t parts)
{
	s->request.frame.frame.size =
		htole32((uint32_t)(sizeof(s->request.frame) + parts * sizeof(s->rndv)));
}

static void set_chunk(struct scene *s, uint32_t chunk)
{
	s->request.frame.length = htole64(chunk);
	s->request.frame.chunk = s->request.rndv[0].len = htole32(chunk);
}

/* A request with one changed field ends the connection with a reason; nothing is read. */
#define BAD(change, why)                         \
	do {                                     \
		struct scene s;                  \
                                                 \
		dial(&s, env, true);             \
		change;                          \
		send_request(&s);                \
		expect_closed(&s, why);          \
		expect_nothing_read(&s, 1);      \
		nics_expect_bytes(&s.env->b, 0); \
	} while (0)

/* One row for each check that refuses a rendezvous; test_frame.c has all of their values. */
TEST(nics, test_rndv_with_a_wrong_field_ends_the_connection)
{
	BAD(set_parts(&s, 0), "rendezvous segments out of range");
	BAD(set_parts(&s, PVR_FRAME_RNDV_SEGS + 1), "out of range");
	BAD(s.request.rndv[0].len = htole32(LEN - 1), "length does not match its chunk");
	BAD(s.request.rndv[0].addr = htole64(UINT64_MAX - LEN + 2), "wraps");
	BAD(set_chunk(&s, NICS_CHUNK + 1), "above the negotiated size");
	BAD(set_chunk(&s, PVR_FRAME_CHUNK_MAX + 1), "too large");
	BAD(set_chunk(&s, 0), "segment is empty");
	BAD(s.request.frame.op = PVR_FRAME_OP_READ, "RNDV flag");
	BAD(s.request.frame.frame.flags |= PVR_REQUEST_F_UC, "RNDV flag");
	BAD(s.request.frame.frame.type = PVR_FRAME_DATAGRAM, "flag");
}

/* A list that comes byte by byte is the same. */
TEST_DIAL(nics, true, test_rndv_that_arrives_bit_by_bit)
{
	fg_wire_limit(env->wire, 0, 1);
	send_request(s);
	fg_malformed_run(s->malformed);
	assert_int_equal(fg_mismatch(env->b.buf.va, LEN, 8), LEN);
}

/* A piece is as large as both have agreed; the stream's own buffer is not. */
TEST_DIAL(nics_to_scattered_whole, true, test_large_fragment_comes_by_the_buffer_bit_by_bit)
{
	static uint8_t memory[PVR_FRAME_CHUNK_MAX];
	union pvr_any_frame any;

	fg_fill(memory, PVR_FRAME_CHUNK_MAX, 11);
	fg_malformed_expose(s->malformed, memory, PVR_FRAME_CHUNK_MAX, &s->request.rndv[0]);
	s->request.frame.length = htole64(PVR_FRAME_CHUNK_MAX);
	s->request.frame.chunk = htole32(PVR_FRAME_CHUNK_MAX);
	send_request(s);
	fg_malformed_run(s->malformed);
	assert_int_equal(fg_mismatch(env->b.buf.va, PVR_FRAME_CHUNK_MAX, 11), PVR_FRAME_CHUNK_MAX);
	assert_int_equal(fg_wire_nic_since(env->wire, 1).read_own,
			 PVR_FRAME_CHUNK_MAX / PVR_READ_BUFFER);
	assert_int_equal(count_frames(s, PVR_FRAME_RNDV_DONE, &any), 1);
}

/* The NIC at the other end refuses, which breaks the queue pair between the hosts. */
TEST(nics, test_memory_that_is_not_exposed_ends_the_connection)
{
	struct fg_nic_stats stats;
	struct scene s;

	for (unsigned int i = 0; i < 4; i++) {
		dial(&s, env, true);
		if (i == 0)
			fg_malformed_revoke(s.malformed, s.exposed);
		if (i == 1)
			s.request.rndv[0].rkey ^= htole32(1);
		if (i == 2)
			s.request.rndv[0].addr = htole64(le64toh(s.rndv.addr) + 1);
		if (i == 3)
			s.request.rndv[0].addr = htole64(le64toh(s.rndv.addr) - 1);
		send_request(&s);
		fg_malformed_run(s.malformed);
		assert_true(fg_malformed_is_closed(s.malformed));
		stats = fg_wire_nic_since(env->wire, 1);
		assert_int_equal(stats.forbidden, 1);
		assert_int_equal(stats.zerocopy_rx_bytes, 0);
		expect_state(&env->b, PVR_QPS_RTS);
	}
}

static const struct fg_flip refused[] = {
	{ "no such queue pair", FG_FLIP(struct scene, request.frame.dst_qpn, 0x10000) },
	/* The GID of b, which is not the sender's. */
	{ "GID of another host", FG_FLIP(struct scene, request.frame.sgid[15], 1 ^ 2) },
	{ "PSN ahead", FG_FLIP(struct scene, request.frame.psn, 1) },
	{ "no such key", FG_FLIP(struct scene, request.frame.rkey, 0x10000) },
};

/*
 * A rendezvous request is checked as any other; a refused one is not read, but gets its
 * RNDV_DONE.
 */
TEST_CASES(nics, test_rndv_for_what_is_refused_is_not_read, refused)
{
	struct scene s;

	dial(&s, env, true);
	fg_flip(&s, row);
	send_request(&s);
	assert_false(fg_malformed_is_closed(s.malformed));
	expect_rndvs_done(&s, 1);
	expect_nothing_read(&s, 1);
	nics_expect_bytes(&env->b, 0);
}

TEST_DIAL(nics, true, test_duplicate_is_not_read_again)
{
	send_request(s);
	assert_int_equal(fg_wire_nic_since(env->wire, 1).read, 1);
	memset(env->b.buf.va, 0, env->b.buf.size);
	for (unsigned int i = 0; i < 100; i++)
		send_request(s);
	expect_nothing_read(s, 1);
	nics_expect_bytes(&env->b, 0);
	expect_rndvs_done(s, 101);
}

/* --------------------------------------------------- the same piece by another connection */

/* Another connection has filled @to, so the read of @host stopped for good. */
static void expect_stopped(struct scene *s, const struct fg_end *to, unsigned int host)
{
	assert_int_equal(fg_wire_nic(s->env->wire, host)->stopped, 1);
	assert_int_equal(fg_mismatch(to->buf.va, LEN, 9), LEN);
	fg_fill(to->buf.va, LEN, 10);
	nics_hold(s->env, FG_READS_GO);
	fg_malformed_run(s->malformed);
	assert_int_equal(fg_mismatch(to->buf.va, LEN, 10), LEN);
	assert_true(fg_malformed_is_closed(s->malformed));
}

TEST(nics, test_fragment_by_another_connection_stops_what_is_read)
{
	struct fg_malformed *other;
	struct scene s;

	for (unsigned int half = 0; half < 2; half++) {
		dial(&s, env, true);
		nics_hold(env, half ? FG_READS_HALF : FG_READS_HELD);
		send_request(&s);
		assert_int_equal(fg_wire_nic(env->wire, 1)->read, 1);
		other = fg_malformed_create(env->wire, 1, 0);
		fg_malformed_send_fabric(other, "default");
		s.request.frame.frame.flags &= (uint8_t)~PVR_FRAME_F_RNDV;
		s.request.frame.frame.size = htole32(sizeof(s.request.frame) + LEN);
		fg_malformed_send(other, &s.request.frame, sizeof(s.request.frame));
		fg_fill(s.memory, LEN, 9);
		fg_malformed_send(other, s.memory, LEN);
		expect_stopped(&s, &env->b, 1);
		assert_false(fg_malformed_is_closed(other));
		fg_wire_nic_since(env->wire, 1);
	}
}

/* ------------------------------------------------------------------ rendezvous that come back */

/* a's host has dialled the malformed peer. */
static void accept_requests(struct scene *s, struct t_env *env, bool exposes)
{
	memset(s, 0, sizeof(*s));
	s->env = env;
	nics_up(env, false);
	if (!exposes)
		fg_wire_cut(env->wire, 0, 1, 0);
	s->malformed =
		fg_malformed_accept(env->wire, 0, 1, exposes ? PVR_PIPE_VERBS : PVR_PIPE_TCP);
	fg_malformed_run(s->malformed);
}

#define TEST_ACCEPT(exposes, name) \
	TEST_OBJECT(nics, struct scene, s, accept_requests, name, exposes)

static void send_rndv_done(struct scene *s, uint32_t count)
{
	const struct pvr_frame_rndv_done frame = {
		.frame = { .type = PVR_FRAME_RNDV_DONE, .size = htole32(sizeof(frame)) },
		.count = htole32(count),
	};

	fg_malformed_send(s->malformed, &frame, sizeof(frame));
}

/* All of the @n WRITEs of LEN bytes that were the last ones are done. */
static void send_ack(struct scene *s)
{
	struct pvr_qp *qp = t_device_qp(&s->env->a);
	struct pvr_frame_ack ack = {
		.frame = FG_FRAME(PVR_FRAME_ACK, sizeof(ack)),
		.syndrome = PVR_FRAME_SYN_ACK,
		.epoch = htole32(qp->epoch),
		.qpn = htole32(qp->qpn),
		.psn = htole32(qp->sq_psn),
	};

	memcpy(ack.gid, s->env->a.gid, 16);
	fg_malformed_send(s->malformed, &ack, sizeof(ack));
}

static void write_some(struct scene *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		t_rdma(&s->env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &s->env->b.mr, 0, LEN);
	fg_malformed_run(s->malformed);
}

TEST_ACCEPT(true, test_rndvs_come_back_in_their_order)
{
	union pvr_any_frame any;

	write_some(s, 10);
	assert_int_equal(count_frames(s, PVR_FRAME_REQUEST, &any), 10);
	assert_true(any.frame.flags & PVR_FRAME_F_RNDV);
	assert_int_equal(nics_out(env, 0), 10);
	send_rndv_done(s, 1);
	assert_int_equal(nics_out(env, 0), 9);
	send_rndv_done(s, 4);
	assert_int_equal(nics_out(env, 0), 6);
	send_rndv_done(s, 10);
	assert_int_equal(nics_out(env, 0), 0);
	/* RNDV_DONE completes no request. */
	expect_no_cqe(&env->a.scq);
	send_ack(s);
	for (uint32_t i = 0; i < 10; i++)
		expect_written(&env->a, i);
	assert_false(fg_malformed_is_closed(s->malformed));
}

/* The guest may free its memory, with or without a reply of the other side. */
TEST_ACCEPT(true, test_request_that_is_done_leaves_no_rndv)
{
	union pvr_any_frame any;

	for (uint32_t round = 0; round < 6; round++) {
		write_some(s, 10);
		send_ack(s);
		assert_int_equal(fg_cq_drain(&env->a.scq), 10);
		assert_int_equal(nics_out(env, 0), 0);
	}
	/* But no more are made than may be out. */
	assert_int_equal(fg_wire_nic(env->wire, 0)->exposed, PVR_FRAME_RNDV_MAX);
	assert_int_equal(count_frames(s, PVR_FRAME_REQUEST, &any), 60);
	assert_false(any.frame.flags & PVR_FRAME_F_RNDV);
	send_rndv_done(s, PVR_FRAME_RNDV_MAX);
	write_some(s, 1);
	assert_int_equal(fg_wire_nic(env->wire, 0)->exposed, PVR_FRAME_RNDV_MAX + 1);
	assert_int_equal(nics_out(env, 0), 1);
	assert_false(fg_malformed_is_closed(s->malformed));
}

static const struct {
	const char *label;
	uint32_t returned, count; /* first; then, though fewer of the three rendezvous are out */
} bad_returns[] = {
	{ "4 of 3", 0, 4 },
	{ "none", 0, 0 },
	{ "the largest number", 0, UINT32_MAX },
	{ "a negative number", 0, 0x80000000 },
	{ "fewer than before", 2, 1 },
	{ "as many as before", 2, 2 },
	{ "all of them twice", 3, 3 },
	{ "4 after all 3", 3, 4 },
};

TEST_CASES(nics, test_returns_of_what_was_not_exposed_end_the_connection, bad_returns)
{
	struct scene s;

	accept_requests(&s, env, true);
	write_some(&s, 3);
	if (row->returned)
		send_rndv_done(&s, row->returned);
	assert_false(fg_malformed_is_closed(s.malformed));
	send_rndv_done(&s, row->count);
	expect_closed(&s, "RNDV_DONE for more rendezvous than were sent");
	assert_int_equal(nics_out(env, 0), 0);
	fg_malformed_destroy(s.malformed);
	/* Nothing is lost: the requests use another connection. */
	fg_wire_settle(env->wire, FG_SEC);
	for (uint32_t i = 0; i < 3; i++)
		expect_written(&env->a, i);
}

TEST(nics, test_returns_without_rndvs_end_the_connection)
{
	struct scene s;

	accept_requests(&s, env, false);
	write_some(&s, 1);
	assert_int_equal(nics_out(env, 0), 0);
	send_rndv_done(&s, 1);
	expect_closed(&s, "not negotiated");
	fg_wire_mend(env->wire, 0, 1, 0);
	dial(&s, env, false);
	send_rndv_done(&s, 1);
	expect_closed(&s, "not negotiated");
}

/* ------------------------------------------------------------ answers with rendezvous */

struct answer {
	struct pvr_frame_read_data frame;
	struct pvr_frame_rndv_seg rndv;
};

/* a has sent a READ of LEN bytes, which the malformed peer exposes. */
static struct answer ask(struct scene *s, struct t_env *env, bool exposes)
{
	struct pvr_qp *qp = t_device_qp(&env->a);
	struct answer answer;
	uint32_t psn = qp->sq_psn;

	accept_requests(s, env, exposes);
	expose(s);
	memset(env->a.buf.va, 0, env->a.buf.size);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, LEN);
	fg_malformed_run(s->malformed);
	answer.frame = (struct pvr_frame_read_data){
		.frame = FG_FRAME(PVR_FRAME_READ_DATA, sizeof(answer)),
		.frame.flags = PVR_FRAME_F_RNDV,
		.epoch = htole32(qp->epoch),
		.qpn = htole32(qp->qpn),
		.psn = htole32(psn),
		.chunk = htole32(LEN),
	};
	memcpy(answer.frame.gid, env->a.gid, 16);
	answer.rndv = s->rndv;
	return answer;
}

static void send_answer(struct scene *s, const struct answer *answer)
{
	fg_malformed_send(s->malformed, answer, sizeof(*answer));
	fg_malformed_run(s->malformed);
}

TEST(nics, test_exposed_answer_is_read_and_returned)
{
	struct scene s;
	struct answer answer = ask(&s, env, true);

	send_answer(&s, &answer);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	assert_int_equal(fg_mismatch(env->a.buf.va, LEN, 8), LEN);
	expect_rndvs_done(&s, 1);
}

TEST(nics, test_exposed_answer_that_is_wrong_ends_the_connection)
{
	static const char *const why[] = { "not negotiated", "length does not match its chunk",
					   "wraps", "above the negotiated size",
					   "rendezvous segments out of range" };
	struct answer answer;
	struct scene s;

	for (size_t i = 0; i < COUNT(why); i++) {
		answer = ask(&s, env, i);
		if (i == 1)
			answer.rndv.len = htole32(LEN - 1);
		if (i == 2)
			answer.rndv.addr = htole64(UINT64_MAX);
		if (i == 3)
			answer.frame.chunk = answer.rndv.len = htole32(NICS_CHUNK + 1);
		if (i == 4)
			answer.frame.frame.size = htole32(sizeof(answer) - 1);
		send_answer(&s, &answer);
		expect_closed(&s, why[i]);
		expect_nothing_read(&s, 0);
		fg_malformed_destroy(s.malformed);
		/* By TCP it is as ever. */
		fg_wire_mend(env->wire, 0, 1, 0);
		fg_wire_settle(env->wire, FG_SEC);
		expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	}
}

static const struct fg_flip unrequested[] = {
	{ "epoch", FG_FLIP(struct answer, frame.epoch, 1) },
	{ "number of the queue pair", FG_FLIP(struct answer, frame.qpn, 0x10000) },
	{ "PSN", FG_FLIP(struct answer, frame.psn, 1) },
	{ "offset", FG_FLIP(struct answer, frame.offset, 1) },
	{ "GID", FG_FLIP(struct answer, frame.gid[15], 1) },
};

TEST_CASES(nics, test_exposed_answer_without_a_request_is_not_read, unrequested)
{
	struct scene s;
	struct answer answer = ask(&s, env, true);

	fg_flip(&answer, row);
	send_answer(&s, &answer);
	assert_false(fg_malformed_is_closed(s.malformed));
	expect_rndvs_done(&s, 1);
	expect_nothing_read(&s, 0);
	expect_no_cqe(&env->a.scq);
	nics_expect_bytes(&env->a, 0);
	fg_malformed_destroy(s.malformed);
	fg_wire_settle(env->wire, FG_SEC);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
}

/* Two connections of its host, and the answer comes by both. */
TEST(nics, test_answer_by_another_connection_stops_what_is_read)
{
	struct fg_malformed *other;
	struct answer answer;
	struct scene s;

	/* It has to have heard of the fabric. */
	accept_requests(&s, env, false);
	other = s.malformed;
	write_some(&s, 1);
	send_ack(&s);
	expect_written(&env->a, 0);
	answer = ask(&s, env, true);
	nics_hold(env, FG_READS_HALF);
	send_answer(&s, &answer);
	assert_int_equal(fg_wire_nic(env->wire, 0)->read, 1);
	answer.frame.frame.flags = 0;
	answer.frame.frame.size = htole32(sizeof(answer.frame) + LEN);
	fg_fill(s.memory, LEN, 9);
	fg_malformed_send(other, &answer.frame, sizeof(answer.frame));
	fg_malformed_send(other, s.memory, LEN);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	expect_stopped(&s, &env->a, 0);
	assert_false(fg_malformed_is_closed(other));
}
