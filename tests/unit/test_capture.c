// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Capture: the packets of messages, at both ends. */
#include "core/objects.h"
#include "roce/frame.h"
#include "roce/opcode.h"
#include "transfer.h"

#define FRAMES 64
#define MACS 12 /* bytes */

/* The frames of an adapter, in the order of their capture. */
struct log {
	struct pvr_capture capture;
	uint32_t num;
	struct pvr_captured frames[FRAMES];
	uint8_t data[FRAMES][PVR_ROCE_HEADER_MAX + PVR_ROCE_PAYLOAD_MAX + PVR_ROCE_TRAILER_MAX];
};

static struct log sent, received;

static void record(void *opaque, const struct pvr_captured *packet)
{
	struct log *log = opaque;

	assert_true(log->num < FRAMES);
	assert_true(packet->bytes <= packet->original);
	log->frames[log->num] = *packet;
	memcpy(log->data[log->num], packet->data, packet->bytes);
	log->num++;
}

static void start(struct log *log, struct fg_guest *guest, bool payload, uint32_t snaplen)
{
	log->num = 0;
	log->capture = (struct pvr_capture){
		.snaplen = snaplen, .payload = payload, .packet = record, .opaque = log
	};
	pvr_adapter_set_capture(guest->adapter, &log->capture);
}

T_SETUP(captured, rc_connected)
{
	start(&sent, env->g[0], true, UINT32_MAX);
	start(&received, env->g[1], true, UINT32_MAX);
}

/* Parse a whole frame with its ICRC. Return: it; *@payload: its payload */
static struct pvr_roce_frame parse(const struct log *log, uint32_t i, const uint8_t **payload)
{
	const struct pvr_captured *packet = &log->frames[i];
	struct pvr_roce_frame frame;
	size_t offset, end;

	assert_true(i < log->num);
	assert_int_equal(packet->bytes, packet->original);
	assert_int_equal(pvr_roce_parse(log->data[i], packet->bytes, &frame, &offset, &end),
			 PVR_ROCE_OK);
	assert_int_equal(pvr_roce_check_icrc(log->data[i], end), PVR_ROCE_OK);
	*payload = log->data[i] + offset;
	return frame;
}

/*
 * Both ends have the same frames, in opposite directions. A responder at another host has no
 * payload of READ data. Return: frame @i.
 */
static struct pvr_roce_frame expect(uint32_t i, const char *opcode, bool from_requester,
				    uint32_t psn)
{
	const uint8_t *payload;
	struct pvr_roce_frame frame = parse(&sent, i, &payload);
	size_t compared;

	assert_string_equal(pvr_roce_opcode(frame.opcode)->name, opcode);
	assert_int_equal(sent.frames[i].outgoing, from_requester);
	assert_int_equal(received.frames[i].outgoing, !from_requester);
	assert_int_equal(frame.psn, psn & 0xffffff);
	assert_int_equal(sent.frames[i].original, received.frames[i].original);
	assert_int_equal(received.frames[i].bytes, received.frames[i].original);
	compared = received.frames[i].bytes - MACS;
	if (pvr_roce_opcode(frame.opcode)->kind == PVR_ROCE_READ_RESPONSE)
		compared -= frame.payload_bytes + 3 + PVR_ROCE_ICRC_BYTES;
	/* Not the MACs: the guests' address vectors have none. */
	assert_memory_equal(sent.data[i] + MACS, received.data[i] + MACS, compared);
	return frame;
}

static void expect_num(uint32_t num)
{
	assert_int_equal(sent.num, num);
	assert_int_equal(received.num, num);
}

/* Without the frame's own checks of the other end. */
static void expect_opcodes(const struct log *log, uint32_t num, const char *const names[])
{
	const uint8_t *payload;
	uint32_t i;

	assert_int_equal(log->num, num);
	for (i = 0; i < num; i++)
		assert_string_equal(pvr_roce_opcode(parse(log, i, &payload).opcode)->name,
				    names[i]);
}

static uint32_t next_psn(struct t_env *env)
{
	return t_device_qp(&env->a)->sq_psn;
}

TEST(captured, test_write_of_one_packet)
{
	uint32_t psn = next_psn(env);
	struct pvr_roce_frame frame;

	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 100, 8);
	await_written(&env->a, 1);
	expect_num(2);
	frame = expect(0, "WRITE_ONLY", true, psn);
	assert_int_equal(frame.addr, env->b.mr.start + 100);
	assert_int_equal(frame.rkey, env->b.mr.rkey);
	assert_int_equal(frame.length, 8);
	assert_int_equal(frame.payload_bytes, 8);
	assert_true(frame.ack_request);
	assert_int_equal(frame.dest_qpn, env->b.qp.qpn);
	assert_memory_equal(frame.src_gid, env->a.gid, 16);
	assert_memory_equal(frame.dst_gid, env->b.gid, 16);
	assert_null(sent.frames[0].comment);
	frame = expect(1, "ACKNOWLEDGE", false, psn);
	assert_int_equal(frame.syndrome, 0x1f);
	assert_int_equal(frame.dest_qpn, env->a.qp.qpn);
	assert_memory_equal(frame.src_gid, env->b.gid, 16);
	/* A segment has this packet. */
	assert_int_equal(!sent.frames[1].comment, !!env->segment);
}

/* @bytes in packets of 4096: FIRST, MIDDLE, LAST with @last, ACK */
static void expect_three_packets(uint32_t psn, const char *const names[3], uint32_t bytes,
				 const uint8_t *data)
{
	const uint8_t *payload;
	uint32_t i, done = 0;

	for (i = 0; i < 3; i++) {
		struct pvr_roce_frame frame = expect(i, names[i], true, psn + i);

		parse(&sent, i, &payload);
		assert_memory_equal(payload, data + done, frame.payload_bytes);
		assert_int_equal(frame.ack_request, i == 2);
		done += frame.payload_bytes;
	}
	assert_int_equal(done, bytes);
	expect(3, "ACKNOWLEDGE", false, psn + 2);
	expect_num(4);
}

TEST(captured, test_write_is_cut_by_the_path_mtu)
{
	static const char *const names[] = { "WRITE_FIRST", "WRITE_MIDDLE", "WRITE_LAST_IMM" };
	uint32_t psn = next_psn(env), mtu = 128u << t_device_qp(&env->a)->attr.path_mtu;

	fg_fill(env->a.mr.va, 3 * mtu, 7);
	t_recv(&env->b, 1, 0, 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE_WITH_IMM, 2, 0, &env->b.mr, 0, 2 * mtu + 5);
	await_written(&env->a, 2);
	expect_three_packets(psn, names, 2 * mtu + 5, env->a.mr.va);
}

TEST(captured, test_send_of_full_packets_with_a_solicited_event)
{
	static const char *const names[] = { "SEND_FIRST", "SEND_MIDDLE", "SEND_LAST_IMM" };
	uint32_t psn = next_psn(env), mtu = 128u << t_device_qp(&env->a)->attr.path_mtu;

	fg_fill(env->a.mr.va, 3 * mtu, 7);
	t_recv(&env->b, 1, 0, 3 * mtu);
	t_post(&env->a, .wr_id = 2, .opcode = PVRDMA_WR_SEND_WITH_IMM, .imm = 0x04030201,
	       .flags = PVR_SEND_SIGNALED | PVR_SEND_SOLICITED, T_SGE(&env->a.mr, 0, 3 * mtu));
	await_sent(&env->a, 2);
	expect_three_packets(psn, names, 3 * mtu, env->a.mr.va);
	assert_memory_equal(expect(2, names[2], true, psn + 2).imm, "\1\2\3\4", 4);
	assert_true(expect(2, names[2], true, psn + 2).solicited);
	assert_false(expect(0, names[0], true, psn).solicited);
}

TEST(captured, test_empty_send)
{
	t_recv(&env->b, 1, 0, 0);
	t_send(&env->a, 2, 0, 0);
	await_sent(&env->a, 2);
	expect_opcodes(&sent, 2, (const char *const[]){ "SEND_ONLY", "ACKNOWLEDGE" });
	assert_int_equal(expect(0, "SEND_ONLY", true, next_psn(env) - 1).payload_bytes, 0);
}

TEST(captured, test_read)
{
	uint32_t psn = next_psn(env), mtu = 128u << t_device_qp(&env->a)->attr.path_mtu;
	struct pvr_roce_frame frame;
	const uint8_t *payload;

	fg_fill(env->b.mr.va, 2 * mtu, 9);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 1, 0, &env->b.mr, 0, mtu + 8);
	await_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	expect_num(3);
	frame = expect(0, "READ_REQUEST", true, psn);
	assert_int_equal(frame.length, mtu + 8);
	expect(1, "READ_RESPONSE_FIRST", false, psn);
	frame = expect(2, "READ_RESPONSE_LAST", false, psn + 1);
	parse(&sent, 2, &payload);
	assert_int_equal(frame.payload_bytes, 8);
	assert_memory_equal(payload, env->b.mr.va + mtu, 8);
}

TEST(captured, test_atomics)
{
	uint64_t *word = (uint64_t *)env->b.mr.va;
	uint32_t psn = next_psn(env);
	struct pvr_roce_frame frame;

	*word = 40;
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	       .flags = PVR_SEND_SIGNALED, .remote_addr = env->b.mr.start, .rkey = env->b.mr.rkey,
	       .compare_add = 2, T_SGE(&env->a.mr, 0, 8));
	await_done(&env->a.scq, 1, PVRDMA_WC_FETCH_ADD);
	t_post(&env->a, .wr_id = 2, .opcode = PVRDMA_WR_ATOMIC_CMP_AND_SWP,
	       .flags = PVR_SEND_SIGNALED, .remote_addr = env->b.mr.start, .rkey = env->b.mr.rkey,
	       .compare_add = 42, .swap = 7, T_SGE(&env->a.mr, 0, 8));
	await_done(&env->a.scq, 2, PVRDMA_WC_COMP_SWAP);
	expect_num(4);
	frame = expect(0, "FETCH_ADD", true, psn);
	assert_int_equal(frame.swap_add, 2);
	assert_int_equal(frame.addr, env->b.mr.start);
	assert_int_equal(expect(1, "ATOMIC_ACKNOWLEDGE", false, psn).original, 40);
	frame = expect(2, "CMP_SWAP", true, psn + 1);
	assert_int_equal(frame.compare, 42);
	assert_int_equal(frame.swap_add, 7);
	assert_int_equal(expect(3, "ATOMIC_ACKNOWLEDGE", false, psn + 1).original, 42);
}

TEST(captured, test_refused_write_has_a_nak)
{
	uint32_t psn = next_psn(env);

	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, .flags = PVR_SEND_SIGNALED,
	       .remote_addr = env->b.mr.start, .rkey = env->b.mr.rkey + 1, T_SGE(&env->a.mr, 0, 8));
	await_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect(0, "WRITE_ONLY", true, psn);
	assert_int_equal(expect(1, "ACKNOWLEDGE", false, psn).syndrome, 0x62);
	expect_num(2);
}

TEST(captured, test_message_without_a_receive_request_has_an_rnr_nak)
{
	uint32_t psn = next_psn(env);
	uint8_t syndrome;

	t_send(&env->a, 1, 0, 8);
	await_no_cqe(&env->a.scq);
	expect(0, "SEND_ONLY", true, psn);
	syndrome = expect(1, "ACKNOWLEDGE", false, psn).syndrome;
	assert_int_equal(syndrome & 0xe0, 0x20);
	assert_int_equal(syndrome & 0x1f, t_device_qp(&env->b)->attr.min_rnr_timer);
}

TEST(captured, test_zeros_replace_payload)
{
	static const uint8_t zero[104];
	const struct pvr_captured *frame = &sent.frames[0];

	start(&sent, env->g[0], false, UINT32_MAX);
	fg_fill(env->a.mr.va, 100, 5);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 100);
	await_written(&env->a, 1);
	assert_int_equal(sent.num, 2);
	assert_int_equal(frame->bytes, frame->original);
	assert_memory_equal(sent.data[0] + frame->bytes - sizeof(zero), zero, sizeof(zero));
	assert_memory_equal(sent.data[0] + MACS, received.data[0] + MACS,
			    frame->bytes - MACS - sizeof(zero));
}

TEST(captured, test_snaplen_cuts_payload)
{
	start(&sent, env->g[0], true, 90);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 100);
	await_written(&env->a, 1);
	assert_int_equal(sent.frames[0].bytes, 90);
}

TEST(captured, test_capture_ends)
{
	pvr_adapter_set_capture(env->g[0]->adapter, NULL);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	await_written(&env->a, 1);
	assert_int_equal(sent.num, 0);
	assert_int_equal(received.num, 2);
	pvr_adapter_set_capture(env->g[1]->adapter, NULL);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &env->b.mr, 0, 8);
	await_written(&env->a, 2);
	assert_int_equal(received.num, 2);
}

T_SETUP(captured_uc, uc_connected)
{
	start(&sent, env->g[0], true, UINT32_MAX);
	start(&received, env->g[1], true, UINT32_MAX);
}

TEST(captured_uc, test_uc_has_no_responses)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 8);
	await_written(&env->a, 1);
	expect_num(1);
	assert_int_equal(expect(0, "WRITE_ONLY", true, next_psn(env) - 1).opcode, 0x2a);
}

T_SETUP(captured_ud, ud_ready)
{
	start(&sent, env->g[0], true, UINT32_MAX);
	start(&received, env->g[1], true, UINT32_MAX);
}

TEST(captured_ud, test_datagram)
{
	struct pvr_roce_frame frame;
	const uint8_t *payload;

	fg_fill(env->a.mr.va, 12, 3);
	t_recv(&env->b, 1, 0, 100);
	t_send_ud(&env->a, &env->b, 2, 0, 12);
	await_sent(&env->a, 2);
	expect_opcodes(&sent, 1, (const char *const[]){ "UD_SEND_ONLY" });
	expect_opcodes(&received, 1, (const char *const[]){ "UD_SEND_ONLY" });
	frame = parse(&sent, 0, &payload);
	assert_true(sent.frames[0].outgoing && !received.frames[0].outgoing);
	assert_int_equal(frame.qkey, FG_QKEY);
	assert_int_equal(frame.src_qpn, env->a.qp.qpn);
	assert_int_equal(frame.dest_qpn, env->b.qp.qpn);
	assert_memory_equal(payload, env->a.mr.va, 12);
}
