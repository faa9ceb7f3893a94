// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Each check of the responder in its order, with frames that no other check refuses. Those that are
 * dropped without an answer are in test_roce_forged.c.
 */
#include "core/objects.h"
#include "path/wire/internal.h"
#include "rdma/responder_state.h"
#include "segment.h"

#define LEN SEGMENT_LEN
#define MTU 1024u

enum {
	SEND_FIRST = 0x00,
	SEND_MIDDLE = 0x01,
	SEND_LAST = 0x02,
	SEND_ONLY = 0x04,
	WRITE_FIRST = 0x06,
	WRITE_MIDDLE = 0x07,
	WRITE_LAST = 0x08,
	WRITE_ONLY = 0x0a,
	WRITE_ONLY_IMM = 0x0b,
	READ = 0x0c,
	FETCH_ADD = 0x14,
	SEND_ONLY_INV = 0x17,
};

/* b gets the frame as a's next request, and a gets no answer. */
static void inject(struct t_env *env, const struct segment_frame *frame)
{
	fg_segment_rules(env->segment)->cut = true;
	segment_inject(env, 1, frame);
	fg_segment_rules(env->segment)->cut = false;
}

static uint8_t answer_of(struct t_env *env, const struct segment_frame *frame)
{
	uint64_t before = fg_segment_sent(env->segment, 1);
	struct segment_frame answer;

	inject(env, frame);
	assert_int_equal(fg_segment_sent(env->segment, 1), before + 1);
	answer = segment_last(env, 1);
	assert_int_equal(answer.frame.opcode, PVR_ROCE_OP_ACK);
	return answer.frame.syndrome;
}

static bool is_written(const struct t_env *env)
{
	return ((uint8_t *)env->b.mr.va)[0] == 0x77;
}

static void make(struct segment_frame *f, uint8_t opcode, uint32_t bytes)
{
	f->frame.opcode = opcode;
	f->frame.payload_bytes = bytes;
	memset(f->payload, 0x77, bytes);
}

/* ------------------------------------------------------------------- 1. silent drops */

/* A QP in INIT has no peer yet. */
TEST(written, test_request_before_rtr_is_dropped)
{
	struct segment_frame frame = segment_next_write(env);
	uint64_t answers = fg_segment_sent(env->segment, 1);

	expect_ok(fg_qp_to_reset(&env->b.qp));
	expect_ok(fg_qp_to_init(&env->b.qp, &fg_conn_default));
	inject(env, &frame);
	assert_false(is_written(env));
	assert_int_equal(fg_segment_sent(env->segment, 1), answers);
}

TEST(written, test_request_on_a_link_that_is_down_is_dropped)
{
	struct segment_frame frame = segment_next_write(env);
	uint64_t answers = fg_segment_sent(env->segment, 1);

	pvr_adapter_set_link(env->g[1]->adapter, false);
	inject(env, &frame);
	assert_false(is_written(env));
	assert_int_equal(fg_segment_sent(env->segment, 1), answers);
}

/* ------------------------------------------------------------------------- 2. the PSN */

TEST(written, test_packet_ahead_gets_no_nak_while_an_rnr_nak_is_open)
{
	struct segment_frame frame = segment_next_write(env);
	uint64_t answers;

	make(&frame, SEND_ONLY, LEN);
	assert_int_equal(answer_of(env, &frame) & 0xe0, PVR_ETH_RNR);
	answers = fg_segment_sent(env->segment, 1);
	frame.frame.psn++;
	inject(env, &frame);
	assert_int_equal(fg_segment_sent(env->segment, 1), answers);
	/* The receive is there: it goes on. */
	t_recv(&env->b, 5, 0, LEN);
	frame.frame.psn--;
	assert_int_equal(answer_of(env, &frame), PVR_ETH_ACK);
	expect_recv(&env->b.rcq, 5, LEN);
}

TEST(written, test_duplicates_of_a_batch_get_one_ack)
{
	struct segment_frame frame = segment_last(env, 0);
	uint8_t buf[PVR_ROCE_HEADER_MAX + PVR_ROCE_PAYLOAD_MAX + PVR_ROCE_TRAILER_MAX];
	size_t headers = pvr_roce_build(buf, &frame.frame), bytes;
	uint64_t before = fg_segment_sent(env->segment, 1);

	memcpy(buf + headers, frame.payload, LEN);
	bytes = pvr_roce_finish(buf, headers, &frame.frame);
	for (unsigned int i = 0; i < 10; i++)
		fg_segment_inject(env->segment, 1, buf, bytes);
	fg_run(env->host);
	assert_int_equal(fg_segment_sent(env->segment, 1), before + 1);
}

static struct segment_frame read_request(struct t_env *env, uint32_t packets)
{
	struct segment_frame frame = segment_next_write(env);

	make(&frame, READ, 0);
	frame.frame.length = packets * MTU;
	return frame;
}

TEST(written, test_duplicate_of_a_read_may_be_a_part_of_it)
{
	struct segment_frame read = read_request(env, 4), data;
	uint64_t before;

	fg_fill(env->b.mr.va, 4 * MTU, 9);
	inject(env, &read);
	before = fg_segment_sent(env->segment, 1);
	read.frame.psn += 2;
	read.frame.addr += 2 * MTU;
	read.frame.length = 2 * MTU;
	inject(env, &read);
	assert_int_equal(fg_segment_sent(env->segment, 1), before + 2);
	data = segment_last(env, 1);
	assert_int_equal(data.frame.opcode, 0x0f); /* READ_RESPONSE_LAST */
	assert_int_equal(data.frame.psn, read.frame.psn + 1);
	assert_memory_equal(data.payload, (uint8_t *)env->b.mr.va + 3 * MTU, MTU);
}

TEST(written, test_key_of_a_repeated_read_is_checked_again)
{
	struct segment_frame read = read_request(env, 1);

	inject(env, &read);
	expect_state(&env->b, PVR_QPS_RTS);
	read.frame.rkey ^= 0x100;
	assert_int_equal(answer_of(env, &read), PVR_ETH_NAK_ACCESS);
	expect_state(&env->b, PVR_QPS_ERR);
}

static struct segment_frame fetch_add(struct t_env *env)
{
	struct segment_frame frame = segment_next_write(env);

	make(&frame, FETCH_ADD, 0);
	frame.frame.swap_add = 5;
	memset(env->b.mr.va, 0, 8);
	return frame;
}

TEST(written, test_duplicate_of_an_atomic_gets_the_stored_value)
{
	struct segment_frame frame = fetch_add(env);

	for (unsigned int i = 0; i < 3; i++) {
		inject(env, &frame);
		assert_int_equal(segment_last(env, 1).frame.opcode, PVR_ROCE_OP_ATOMIC_ACK);
		assert_int_equal(segment_last(env, 1).frame.original, 0);
		assert_int_equal(*(uint64_t *)env->b.mr.va, 5);
	}
}

/* The PSN was that of a WRITE. */
TEST(written, test_unknown_duplicate_of_an_atomic_is_dropped)
{
	struct segment_frame frame = fetch_add(env);
	uint64_t answers = fg_segment_sent(env->segment, 1);

	frame.frame.psn--;
	inject(env, &frame);
	assert_int_equal(*(uint64_t *)env->b.mr.va, 0);
	assert_int_equal(fg_segment_sent(env->segment, 1), answers);
}

/* -------------------------------------------------------------- 3. the form: NAK 0x61 */

static void write_last(struct segment_frame *f)
{
	make(f, WRITE_LAST, LEN);
}

static void send_middle(struct segment_frame *f)
{
	make(f, SEND_MIDDLE, MTU);
}

static void first_above_mtu(struct segment_frame *f)
{
	make(f, WRITE_FIRST, 2 * MTU);
	f->frame.length = 3 * MTU;
}

static void only_above_mtu(struct segment_frame *f)
{
	make(f, WRITE_ONLY, MTU + 1);
	f->frame.length = MTU + 1;
}

static void first_with_all(struct segment_frame *f)
{
	make(f, WRITE_FIRST, MTU);
	f->frame.length = MTU;
}

static void too_long(struct segment_frame *f)
{
	make(f, READ, 0);
	f->frame.length = (1u << 31) + 1;
}

static void write_too_long(struct segment_frame *f)
{
	make(f, WRITE_FIRST, MTU);
	f->frame.length = (1u << 31) + 1;
}

static const struct wrong {
	const char *label;
	void (*change)(struct segment_frame *f);
} malformed[] = {
	{ "LAST without FIRST", write_last },
	{ "MIDDLE of a SEND without FIRST", send_middle },
	{ "FIRST above the path MTU", first_above_mtu },
	{ "ONLY above the path MTU", only_above_mtu },
	{ "FIRST with all bytes of its RETH", first_with_all },
	{ "READ above 2^31 bytes", too_long },
	{ "WRITE above 2^31 bytes", write_too_long },
};

TEST_CASES(written, test_malformed_request_gets_nak_0x61, malformed)
{
	struct segment_frame frame = segment_next_write(env);

	row->change(&frame);
	assert_int_equal(answer_of(env, &frame), PVR_ETH_NAK_INVALID);
	assert_false(is_written(env));
	expect_state(&env->b, PVR_QPS_ERR);
}

/* Within a WRITE of three packets, whose first one has come. */
static struct segment_frame begun_write(struct t_env *env)
{
	struct segment_frame frame = segment_next_write(env);

	make(&frame, WRITE_FIRST, MTU);
	frame.frame.length = 3 * MTU;
	frame.frame.ack_request = false;
	inject(env, &frame);
	frame.frame.ack_request = true;
	frame.frame.psn++;
	make(&frame, WRITE_MIDDLE, MTU);
	return frame;
}

static void begins(struct segment_frame *f)
{
	make(f, WRITE_FIRST, MTU);
}

static void other_kind(struct segment_frame *f)
{
	make(f, SEND_MIDDLE, MTU);
}

static void read_inside(struct segment_frame *f)
{
	make(f, READ, 0);
}

static void short_middle(struct segment_frame *f)
{
	make(f, WRITE_MIDDLE, MTU - 4);
}

static void empty_last(struct segment_frame *f)
{
	make(f, WRITE_LAST, 0);
}

static void early_last(struct segment_frame *f)
{
	make(f, WRITE_LAST, LEN);
}

static const struct wrong inside[] = {
	{ "FIRST", begins },	      { "MIDDLE of a SEND", other_kind },
	{ "READ", read_inside },      { "MIDDLE below the path MTU", short_middle },
	{ "empty LAST", empty_last }, { "LAST before the end of the RETH", early_last },
};

TEST_CASES(written, test_wrong_packet_inside_a_message_gets_nak_0x61, inside)
{
	struct segment_frame frame = begun_write(env);

	row->change(&frame);
	assert_int_equal(answer_of(env, &frame), PVR_ETH_NAK_INVALID);
	expect_state(&env->b, PVR_QPS_ERR);
	/* The refusal is repeated to a peer that has not got it. */
	assert_int_equal(answer_of(env, &frame), PVR_ETH_NAK_INVALID);
}

TEST(written, test_right_packets_of_a_message_are_executed)
{
	struct segment_frame frame = begun_write(env);

	assert_int_equal(answer_of(env, &frame), PVR_ETH_ACK);
	make(&frame, WRITE_LAST, MTU);
	frame.frame.psn++;
	assert_int_equal(answer_of(env, &frame), PVR_ETH_ACK);
	for (unsigned int i = 0; i < 3 * MTU; i++)
		assert_int_equal(((uint8_t *)env->b.mr.va)[i], 0x77);
}

/* Both ends have agreed on their number. Answers that are not gathered wait for room. */
TEST(written, test_more_reads_than_max_dest_rd_atomic_get_nak_0x61)
{
	struct segment_frame read = read_request(env, 1);
	struct pvr_qp *qp = t_device_qp(&env->b);
	struct fg_segment_rules *rules = fg_segment_rules(env->segment);

	rules->delay = FG_SEC;
	segment_inject(env, 0, &read); /* takes the room */
	rules->delay = 0;
	rules->room = 1;
	for (uint32_t i = 0; i < PVR_ETH_TX_FRAMES + qp->attr.max_dest_rd_atomic; i++) {
		segment_inject(env, 1, &read);
		read.frame.psn++;
	}
	assert_int_equal(pvr_eth_rq(qp)->count, qp->attr.max_dest_rd_atomic);
	assert_int_equal(qp->state, PVR_QPS_RTS);
	segment_inject(env, 1, &read);
	assert_int_equal(qp->state, PVR_QPS_ERR);
	rules->room = 0;
	fg_settle(env->host, FG_MS);
	assert_int_equal(answer_of(env, &read), PVR_ETH_NAK_INVALID);
}

static const struct {
	const char *label;
	uint8_t opcode;
} operations[] = { { "WRITE", WRITE_ONLY }, { "READ", READ }, { "FETCH_ADD", FETCH_ADD } };

TEST_CASES(rc, test_operation_that_the_queue_pair_does_not_permit_gets_a_nak, operations)
{
	struct fg_conn conn = fg_conn_default;
	struct segment_frame frame;

	conn.access = 0;
	fg_end_connect(&env->a, &env->b, &conn);
	frame = segment_next_write(env);
	make(&frame, row->opcode, row->opcode == WRITE_ONLY ? LEN : 0);
	assert_in_range(answer_of(env, &frame), PVR_ETH_NAK_INVALID, PVR_ETH_NAK_ACCESS);
	assert_false(is_written(env));
	expect_state(&env->b, PVR_QPS_ERR);
}

/* ------------------------------------------------------------ 4. receives and memory */

TEST(written, test_request_without_a_receive_gets_an_rnr_nak_with_its_psn)
{
	struct segment_frame frame = segment_next_write(env);
	uint8_t syndrome;

	make(&frame, SEND_ONLY, LEN);
	syndrome = answer_of(env, &frame);
	assert_int_equal(syndrome & 0xe0, PVR_ETH_RNR);
	assert_int_equal(syndrome & 31, fg_conn_default.min_rnr_timer);
	assert_int_equal(segment_last(env, 1).frame.psn, frame.frame.psn);
	expect_state(&env->b, PVR_QPS_RTS);
}

TEST(written, test_write_with_immediate_without_a_receive_gets_an_rnr_nak)
{
	struct segment_frame frame = segment_next_write(env);

	make(&frame, WRITE_ONLY_IMM, LEN);
	assert_int_equal(answer_of(env, &frame) & 0xe0, PVR_ETH_RNR);
	assert_false(is_written(env));
}

static void rkey(struct segment_frame *f)
{
	f->frame.rkey ^= 0x100;
}

static void below(struct segment_frame *f)
{
	f->frame.addr -= 1;
}

static void behind(struct segment_frame *f)
{
	f->frame.addr += FG_END_PAGES * PVR_PAGE_SIZE - LEN + 1;
}

static void wraps(struct segment_frame *f)
{
	f->frame.addr = UINT64_MAX - 10;
}

static void read_below(struct segment_frame *f)
{
	make(f, READ, 0);
	below(f);
}

static void atomic_behind(struct segment_frame *f)
{
	make(f, FETCH_ADD, 0);
	f->frame.addr += FG_END_PAGES * PVR_PAGE_SIZE;
}

static const struct wrong no_access[] = {
	{ "R_Key", rkey },
	{ "before the region", below },
	{ "behind the region", behind },
	{ "address wraps", wraps },
	{ "READ before it", read_below },
	{ "atomic behind it", atomic_behind },
};

TEST_CASES(written, test_request_without_access_gets_nak_0x62, no_access)
{
	struct segment_frame frame = segment_next_write(env);

	row->change(&frame);
	assert_int_equal(answer_of(env, &frame), PVR_ETH_NAK_ACCESS);
	assert_false(is_written(env));
	expect_state(&env->b, PVR_QPS_ERR);
}

TEST(written, test_empty_write_needs_no_key)
{
	struct segment_frame frame = segment_next_write(env);

	make(&frame, WRITE_ONLY, 0);
	frame.frame.length = 0;
	frame.frame.rkey = 0;
	frame.frame.addr = 1;
	assert_int_equal(answer_of(env, &frame), PVR_ETH_ACK);
}

TEST(written, test_request_with_a_bad_receive_gets_nak_0x63)
{
	struct segment_frame frame = segment_next_write(env);

	t_recv_sge(&env->b, 1, T_BAD_SGE);
	make(&frame, SEND_ONLY, LEN);
	assert_int_equal(answer_of(env, &frame), PVR_ETH_NAK_OPERATION);
}

TEST(written, test_request_longer_than_its_receive_gets_nak_0x61)
{
	struct segment_frame frame = segment_next_write(env);

	t_recv(&env->b, 1, 0, LEN - 1);
	make(&frame, SEND_ONLY, LEN);
	assert_int_equal(answer_of(env, &frame), PVR_ETH_NAK_INVALID);
}

/* Of a message that proves too long, the packets before are written. */
TEST(written, test_packets_before_a_refused_one_are_written)
{
	struct segment_frame frame = segment_next_write(env);

	t_recv(&env->b, 1, 0, MTU + 10);
	make(&frame, SEND_FIRST, MTU);
	frame.frame.ack_request = false;
	inject(env, &frame);
	make(&frame, SEND_LAST, LEN);
	frame.frame.psn++;
	assert_int_equal(answer_of(env, &frame), PVR_ETH_NAK_INVALID);
	assert_true(is_written(env));
}

TEST(written, test_invalidation_of_a_region_that_it_may_not_gets_a_nak)
{
	struct segment_frame frame = segment_next_write(env);

	t_recv(&env->b, 1, 0, LEN);
	make(&frame, SEND_ONLY_INV, LEN);
	frame.frame.inv_rkey = 0xdeadbeef;
	assert_in_range(answer_of(env, &frame), PVR_ETH_NAK_INVALID, PVR_ETH_NAK_OPERATION);
	expect_state(&env->b, PVR_QPS_ERR);
}

/* --------------------------------------------------------------- 5. order of answers */

TEST(written, test_ack_waits_behind_read_data)
{
	struct segment_frame read = read_request(env, 8), write, last;

	write = read;
	make(&write, WRITE_ONLY, LEN);
	write.frame.length = LEN;
	write.frame.psn += 8;
	fg_segment_rules(env->segment)->room = 2;
	segment_inject(env, 1, &read);
	segment_inject(env, 1, &write);
	fg_segment_rules(env->segment)->room = 0;
	fg_settle(env->host, FG_MS);
	last = segment_last(env, 1);
	assert_int_equal(last.frame.opcode, PVR_ROCE_OP_ACK);
	assert_int_equal(last.frame.psn, write.frame.psn);
	assert_int_equal(last.frame.msn, 3); /* WRITE, READ, WRITE */
}

/* A READ of 8 packets whose data wait for room, and a WRITE behind it that is refused. */
static void read_and_refused_write(struct t_env *env)
{
	struct segment_frame read = read_request(env, 8), write = read;
	struct fg_segment_rules *rules = fg_segment_rules(env->segment);

	make(&write, WRITE_ONLY, LEN);
	write.frame.length = LEN;
	write.frame.psn += 8;
	rkey(&write);
	rules->delay = FG_SEC;
	segment_inject(env, 0, &read); /* takes the room */
	rules->delay = 0;
	rules->room = 1;
	for (uint32_t i = 0; i < PVR_ETH_TX_FRAMES; i++)
		segment_inject(env, 1, &read);
	segment_inject(env, 1, &write);
	expect_state(&env->b, PVR_QPS_ERR);
	assert_in_range(pvr_eth_rq(t_device_qp(&env->b))->count, 1, UINT32_MAX);
}

TEST(written, test_nak_waits_behind_read_data)
{
	struct segment_frame last;
	uint32_t first;

	read_and_refused_write(env);
	first = t_device_qp(&env->b)->responder_state->psn;
	fg_segment_rules(env->segment)->room = 0;
	fg_settle(env->host, FG_MS);
	last = segment_last(env, 1);
	assert_int_equal(last.frame.opcode, PVR_ROCE_OP_ACK);
	assert_int_equal(last.frame.syndrome, PVR_ETH_NAK_ACCESS);
	assert_int_equal(last.frame.psn, first);
	assert_int_equal(pvr_eth_rq(t_device_qp(&env->b))->count, 0);
}

/* ERR set by the guest is a fence: nothing reads its memory afterwards. */
TEST(written, test_err_of_the_guest_ends_answers_before_a_nak)
{
	uint64_t frames;

	read_and_refused_write(env);
	expect_ok(fg_qp_to_err(&env->b.qp));
	assert_int_equal(pvr_eth_rq(t_device_qp(&env->b))->count, 0);
	fg_settle(env->host, FG_MS);
	frames = fg_segment_sent(env->segment, 1);
	fg_segment_rules(env->segment)->room = 0;
	fg_settle(env->host, FG_MS);
	assert_in_range(fg_segment_sent(env->segment, 1), frames, frames + PVR_ETH_TX_FRAMES);
}

#define READS 4
#define ALL (FG_END_PAGES * PVR_PAGE_SIZE)

TEST(written, test_reads_before_a_refused_request_succeed)
{
	fg_segment_rules(env->segment)->room = 8;
	for (uint64_t i = 0; i < READS; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_READ, i, 0, &env->b.mr, 0, ALL);
	t_post(&env->a, .wr_id = READS, .opcode = PVRDMA_WR_RDMA_WRITE, T_SGE(&env->a.mr, 0, LEN),
	       .remote_addr = env->b.mr.start, .rkey = env->b.mr.rkey ^ 0x100);
	fg_run(env->host);
	fg_settle(env->host, FG_SEC);
	for (uint64_t i = 0; i < READS; i++)
		expect_done(&env->a.scq, i, PVRDMA_WC_RDMA_READ);
	expect_cqe(&env->a.scq, READS, PVRDMA_WC_REM_ACCESS_ERR);
}

/* UC has no responses. */
TEST(uc, test_unreliable_request_with_a_bad_receive_gets_no_answer)
{
	uint64_t answers;

	fg_end_connect(&env->a, &env->b, NULL);
	t_recv_sge(&env->b, 1, T_BAD_SGE);
	answers = fg_segment_sent(env->segment, 1);
	t_send(&env->a, 2, 0, LEN);
	fg_run(env->host);
	expect_sent(&env->a, 2);
	expect_state(&env->b, PVR_QPS_ERR);
	assert_int_equal(fg_segment_sent(env->segment, 1), answers);
}
