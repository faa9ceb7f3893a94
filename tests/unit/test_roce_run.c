// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets of a frame that are handled at once: the middle of a message. Each case has the effect that
 * its packets have one by one.
 */
#include "core/objects.h"
#include "path/wire/internal.h"
#include "roce/gso.h"
#include "segment.h"

#define MTU 1024u
#define PACKETS 16u /* of the message */
#define NONE 100u
#define FRAME_MAX (64u << 10)

enum {
	SEND_FIRST = 0x00,
	SEND_MIDDLE = 0x01,
	WRITE_FIRST = 0x06,
	WRITE_MIDDLE = 0x07,
	READ_REQUEST = 0x0c,
	READ_FIRST = 0x0d,
	READ_MIDDLE = 0x0e,
};

/* Packet 0 begins the message, the others are its middle. */
static const struct run {
	const char *label;
	unsigned int before; /* packets that have arrived one by one after packet 0 */
	unsigned int first, count; /* packets of the frame */
	unsigned int damaged, repeated; /* in the frame, from 0 on; NONE */
	uint32_t length; /* of the message */
	unsigned int done; /* packets that have an effect */
	bool is_refused; /* the one behind them */
	bool is_gap; /* it is missing */
} runs[] = {
	{ "whole", 0, 1, 12, NONE, NONE, PACKETS *MTU, 13, false, false },
	{ "damaged", 0, 1, 12, 8, NONE, PACKETS *MTU, 9, false, true },
	{ "damaged second", 0, 1, 12, 1, NONE, PACKETS *MTU, 2, false, true },
	{ "damaged last", 0, 1, 12, 11, NONE, PACKETS *MTU, 12, false, false },
	{ "duplicates first", 4, 1, 12, NONE, NONE, PACKETS *MTU, 13, false, false },
	{ "duplicates only", 12, 1, 12, NONE, NONE, PACKETS *MTU, 13, false, false },
	{ "behind a gap", 0, 3, 8, NONE, NONE, PACKETS *MTU, 1, false, true },
	{ "repeated", 0, 1, 12, NONE, 5, PACKETS *MTU, 12, false, false },
	{ "instead of the last one", 0, 1, 6, NONE, NONE, 6 * MTU + 10, 6, true, false },
	{ "beyond the length", 0, 1, 12, NONE, NONE, 6 * MTU + 10, 6, true, false },
};

/* Packet @i of the message whose packet 0 is @first. */
static struct segment_frame packet_of(const struct segment_frame *first, uint8_t opcode,
				      unsigned int i)
{
	struct segment_frame packet = *first;

	packet.frame.opcode = opcode;
	packet.frame.psn = pvr_eth_psn_add(first->frame.psn, i);
	packet.frame.payload_bytes = MTU;
	packet.frame.ack_request = false;
	memset(packet.payload, (int)(0x40 + i), MTU);
	return packet;
}

static size_t build(uint8_t *buf, const struct segment_frame *packet)
{
	size_t headers = pvr_roce_build(buf, &packet->frame);

	memcpy(buf + headers, packet->payload, packet->frame.payload_bytes);
	return pvr_roce_finish(buf, headers, &packet->frame);
}

/* The frame of @run arrives at @host. */
static void inject_run(struct t_env *env, unsigned int host, const struct run *run,
		       const struct segment_frame *first, uint8_t opcode)
{
	static uint8_t data[FRAME_MAX], buf[2 * MTU];
	size_t bytes = 0, headers = 0, segment = 0;

	for (unsigned int i = 0, at = run->first; i < run->count; i++, at++) {
		struct segment_frame packet;

		at -= i == run->repeated;
		packet = packet_of(first, opcode, at);
		packet.frame.ip_id = (uint16_t)i;
		segment = build(buf, &packet);
		buf[segment - 1] ^= i == run->damaged;
		headers = pvr_roce_gso_headers(buf, segment);
		segment -= headers;
		if (!i)
			memcpy(data, buf, headers);
		memcpy(data + headers + bytes, buf + headers, segment);
		bytes += segment;
	}
	pvr_roce_gso_close(data, headers, headers + bytes);
	fg_segment_inject_whole(env->segment, host, data, headers + bytes, (uint16_t)segment);
	fg_run(env->host);
}

static void inject_all(struct t_env *env, unsigned int host, const struct run *run,
		       const struct segment_frame *first, uint8_t opcode)
{
	fg_segment_rules(env->segment)->cut = true;
	segment_inject(env, host, first);
	for (unsigned int i = 1; i <= run->before; i++) {
		struct segment_frame packet = packet_of(first, opcode, i);

		segment_inject(env, host, &packet);
	}
	inject_run(env, host, run, first, opcode);
}

static void expect_stored(const uint8_t *va, unsigned int packets)
{
	for (unsigned int i = 0; i < PACKETS * MTU; i++)
		assert_int_equal(va[i], i / MTU < packets ? 0x40 + i / MTU : 0);
}

TEST_CASES(written, test_requests, runs)
{
	struct segment_frame first = segment_next_write(env), answer;
	uint64_t bad = fg_segment_stats(env->segment, 1).rx_icrc;
	uint32_t psn = first.frame.psn;

	memset(env->b.mr.va, 0, PACKETS * MTU);
	first = packet_of(&first, WRITE_FIRST, 0);
	first.frame.length = row->length;
	inject_all(env, 1, row, &first, WRITE_MIDDLE);
	expect_stored(env->b.mr.va, row->done);
	assert_int_equal(fg_segment_stats(env->segment, 1).rx_icrc - bad, row->damaged != NONE);
	if (!row->is_refused && !row->is_gap)
		return;
	answer = segment_last(env, 1);
	assert_int_equal(answer.frame.opcode, PVR_ROCE_OP_ACK);
	assert_int_equal(answer.frame.syndrome,
			 row->is_gap ? PVR_ETH_NAK_SEQUENCE : PVR_ETH_NAK_INVALID);
	assert_int_equal(answer.frame.psn, pvr_eth_psn_add(psn, row->done));
}

static struct pvr_eth_sq *requester(struct t_env *env)
{
	return pvr_eth_sq(pvr_qp_find(env->g[0]->adapter, env->a.qp.qpn));
}

/* The data of a READ of a, which b does not get. */
static struct segment_frame first_data(struct t_env *env, uint32_t length)
{
	struct segment_frame first;

	fg_segment_rules(env->segment)->cut = true;
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 0, &env->b.mr, 0, length);
	fg_run(env->host);
	first = segment_last(env, 0);
	assert_int_equal(first.frame.opcode, READ_REQUEST);
	memcpy(first.frame.dst_mac, env->g[0]->config.mac, 6);
	memcpy(first.frame.src_mac, env->g[1]->config.mac, 6);
	memcpy(first.frame.src_gid, env->b.gid, 16);
	memcpy(first.frame.dst_gid, env->a.gid, 16);
	first.frame.dest_qpn = env->a.qp.qpn;
	return packet_of(&first, READ_FIRST, 0);
}

TEST_CASES(written, test_read_data, runs)
{
	struct segment_frame first, again;
	uint64_t bad = fg_segment_stats(env->segment, 0).rx_icrc;

	memset(env->a.mr.va, 0, PACKETS * MTU);
	first = first_data(env, row->length);
	inject_all(env, 0, row, &first, READ_MIDDLE);
	expect_stored(env->a.mr.va, row->done);
	assert_int_equal(fg_segment_stats(env->segment, 0).rx_icrc - bad, row->damaged != NONE);
	assert_int_equal(requester(env)->una, pvr_eth_psn_add(first.frame.psn, row->done));
	if (!row->is_gap)
		return;
	again = segment_last(env, 0);
	assert_int_equal(again.frame.opcode, READ_REQUEST);
	assert_int_equal(again.frame.psn, pvr_eth_psn_add(first.frame.psn, row->done));
}

/* A READ asks for its parts one after the other. */
TEST(written, test_read_data_of_the_next_part_are_dropped)
{
	struct segment_frame first;

	memset(env->a.mr.va, 0, PACKETS * MTU);
	first = first_data(env, PACKETS * MTU);
	requester(env)->high = pvr_eth_psn_add(first.frame.psn, 4);
	inject_all(env, 0, &runs[0], &first, READ_MIDDLE);
	expect_stored(env->a.mr.va, 4);
	assert_int_equal(requester(env)->una, pvr_eth_psn_add(first.frame.psn, 4));
}

#define ENTRY 5000u /* bytes of each entry of a receive request */
#define ENTRIES 3u
#define GAP 100u

/* The memory of a receive request is in several places, and not at the ends of packets. */
TEST(written, test_packets_to_a_receive_of_several_entries)
{
	static const struct run run = { .first = 1, .count = 12, .damaged = NONE, .repeated = NONE };
	struct segment_frame first = segment_next_write(env);
	const uint8_t *va = env->b.mr.va;
	struct pvrdma_sge sge[ENTRIES];

	for (unsigned int i = 0; i < ENTRIES; i++)
		sge[i] = fg_sge(&env->b.mr, i * (ENTRY + GAP), ENTRY);
	assert_true(fg_post_recv(&env->b.qp, 1, sge, ENTRIES));
	memset(env->b.mr.va, 0, PACKETS * MTU + ENTRIES * GAP);
	first = packet_of(&first, SEND_FIRST, 0);
	inject_all(env, 1, &run, &first, SEND_MIDDLE);
	for (unsigned int i = 0; i < 13 * MTU; i++)
		assert_int_equal(va[i + i / ENTRY * GAP], 0x40 + i / MTU);
	for (unsigned int i = 0; i < GAP; i++)
		assert_int_equal(va[ENTRY + i], 0);
}

/* A VM that moves takes the pages along that a run has filled. */
TEST(written, test_pages_are_in_the_log_of_dirty_pages)
{
	struct segment_frame first = segment_next_write(env);

	first = packet_of(&first, WRITE_FIRST, 0);
	first.frame.length = PACKETS * MTU;
	fg_segment_rules(env->segment)->cut = true;
	segment_inject(env, 1, &first);
	assert_int_equal(pvr_adapter_start_dirty_log(env->g[1]->adapter), 0);
	inject_run(env, 1, &runs[0], &first, WRITE_MIDDLE);
	for (unsigned int page = 0; page < 5; page++) {
		uint64_t gpa = fg_buf_gpa(&env->b.buf, page * PVR_PAGE_SIZE), bitmap = 0;

		assert_int_equal(
			pvr_adapter_take_dirty_log(env->g[1]->adapter, gpa, PVR_PAGE_SIZE, &bitmap),
			0);
		assert_int_equal(bitmap, page * PVR_PAGE_SIZE < 13 * MTU);
	}
}
