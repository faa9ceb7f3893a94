// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Frames of several packets: what is merged, how it is cut, lengths and checksums. */
#include "core/objects.h"
#include "roce/crc.h"
#include "roce/gso.h"
#include "roce/icrc.h"
#include "segment.h"

#define MTU 1024u
#define LEN (64u << 10)
#define UDP_BYTES 8u
#define ICRC_MAX (PVR_ROCE_HEADER_MAX + PVR_ROCE_PAYLOAD_MAX + PVR_ROCE_TRAILER_MAX)

/* ------------------------------------------------------------------------------- cutting */

/* What frames are made of. */
static const struct kind {
	const char *label;
	enum pvr_roce_net net;
	uint16_t vlan;
	unsigned int packets;
	uint32_t last; /* bytes of the last packet's payload */
} kinds[] = {
	{ "IPv4", PVR_ROCE_IPV4, 0, 5, MTU },	  { "IPv4 VLAN", PVR_ROCE_IPV4, 7, 5, MTU },
	{ "IPv6", PVR_ROCE_IPV6, 0, 5, MTU },	  { "IPv6 VLAN", PVR_ROCE_IPV6, 7, 5, MTU },
	{ "short last", PVR_ROCE_IPV4, 0, 3, 5 }, { "empty last", PVR_ROCE_IPV6, 0, 3, 0 },
	{ "one", PVR_ROCE_IPV4, 0, 1, MTU },
};

static struct pvr_roce_frame packet_of(const struct kind *kind, unsigned int i)
{
	return (struct pvr_roce_frame){
		.dst_mac = { 2, 1 },
		.src_mac = { 2, 2 },
		.vlan = kind->vlan,
		.net = (uint8_t)kind->net,
		.src_gid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.dst_gid = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
		.hop_limit = 64,
		.ip_id = (uint16_t)i,
		.src_port = 0xc000,
		.opcode = 0x07, /* WRITE_MIDDLE */
		.pkey = 0xffff,
		.dest_qpn = 5,
		.psn = 100 + i,
		.payload_bytes = i + 1 == kind->packets ? kind->last : MTU,
	};
}

/* Packet @i by itself. Return: its bytes. */
static size_t build(uint8_t *buf, const struct kind *kind, unsigned int i)
{
	struct pvr_roce_frame frame = packet_of(kind, i);
	size_t headers = pvr_roce_build(buf, &frame);

	memset(buf + headers, (int)i, frame.payload_bytes);
	return pvr_roce_finish(buf, headers, &frame);
}

static uint8_t to[ICRC_MAX]; /* a copy */

struct merged {
	uint8_t data[PVR_ROCE_GSO_MAX + 64];
	size_t headers, bytes, segment;
};

static void merge(struct merged *merged, const struct kind *kind)
{
	uint8_t buf[ICRC_MAX];
	size_t bytes = build(merged->data, kind, 0);

	merged->headers = pvr_roce_gso_headers(merged->data, bytes);
	assert_int_not_equal(merged->headers, 0);
	merged->segment = bytes - merged->headers;
	for (unsigned int i = 1; i < kind->packets; i++) {
		size_t next = build(buf, kind, i) - merged->headers;

		assert_true(pvr_roce_gso_is_same_flow(merged->data, buf, merged->headers));
		memcpy(merged->data + bytes, buf + merged->headers, next);
		bytes += next;
	}
	pvr_roce_gso_close(merged->data, merged->headers, bytes);
	merged->bytes = bytes;
}

/* Each packet is as if it had been sent alone, but has the checksum of the frame's UDP header. */
TEST_CASES_WITH(void **state, NULL, NULL, test_frame_is_cut_into_its_packets, kinds)
{
	static struct merged merged;
	uint8_t expected[ICRC_MAX], checksum[2];
	struct pvr_roce_frame frame;
	size_t bytes, want, payload, end;
	struct pvr_roce_cut cut;
	uint8_t *packet;

	(void)state;
	merge(&merged, row);
	memcpy(checksum, merged.data + merged.headers - 2, 2);
	assert_true(pvr_roce_cut_begin(&cut, merged.data, merged.bytes, merged.segment));
	for (unsigned int i = 0; i < row->packets; i++) {
		assert_non_null(pvr_roce_cut_peek(&cut, &bytes));
		assert_true(pvr_roce_cut_is_icrc_ok(&cut));
		packet = pvr_roce_cut_next(&cut, &bytes);
		assert_non_null(packet);
		want = build(expected, row, i);
		assert_int_equal(bytes, want);
		assert_int_equal(pvr_roce_parse(packet, bytes, &frame, &payload, &end),
				 PVR_ROCE_OK);
		assert_int_equal(pvr_roce_check_icrc(packet, end), PVR_ROCE_OK);
		assert_memory_equal(packet + merged.headers - 2, checksum, 2);
		memset(packet + merged.headers - 2, 0, 2);
		assert_memory_equal(packet, expected, bytes);
	}
	assert_null(pvr_roce_cut_next(&cut, &bytes));
}

/* Without its headers in the memory of the frame. */
TEST_CASES_WITH(void **state, NULL, NULL, test_icrc_of_each_packet_without_its_headers, kinds)
{
	static struct merged merged;
	struct pvr_roce_cut cut;
	const uint8_t *bth;
	size_t bytes;

	(void)state;
	merge(&merged, row);
	assert_true(pvr_roce_cut_begin(&cut, merged.data, merged.bytes, merged.segment));
	for (unsigned int i = 0; i < row->packets; i++, pvr_roce_cut_skip(&cut)) {
		bth = pvr_roce_cut_peek(&cut, &bytes);
		assert_ptr_equal(bth, merged.data + merged.headers + i * merged.segment);
		assert_true(pvr_roce_cut_is_icrc_ok(&cut));
		merged.data[bth - merged.data + (ptrdiff_t)bytes - 1] ^= 1;
		assert_false(pvr_roce_cut_is_icrc_ok(&cut));
		/* Another place in the frame: another ID. */
		merged.data[bth - merged.data + (ptrdiff_t)bytes - 1] ^= 1;
		cut.index++;
		assert_int_equal(pvr_roce_cut_is_icrc_ok(&cut), row->net == PVR_ROCE_IPV6);
		cut.index--;
	}
	assert_null(pvr_roce_cut_peek(&cut, &bytes));
}

/* The same for packets that have nothing but payload behind their BTH. */
TEST_CASES_WITH(void **state, NULL, NULL, test_icrc_of_each_packet_by_the_head_of_the_first, kinds)
{
	static struct merged merged;
	struct pvr_roce_crc_head head;
	struct pvr_roce_cut cut;
	uint8_t *bth;
	size_t bytes;

	(void)state;
	merge(&merged, row);
	assert_true(pvr_roce_cut_begin(&cut, merged.data, merged.bytes, merged.segment));
	pvr_roce_cut_head(&cut, &head);
	for (unsigned int i = 0; i < row->packets; i++, pvr_roce_cut_skip(&cut)) {
		bth = merged.data + (pvr_roce_cut_peek(&cut, &bytes) - merged.data);
		if (bytes != merged.segment)
			break;
		assert_true(pvr_roce_cut_is_middle_ok(&cut, &head, NULL));
		assert_true(pvr_roce_cut_is_middle_ok(&cut, &head, to));
		/* The PSN, the payload, the ICRC. */
		for (size_t at = 8; at < bytes; at++) {
			bth[at] ^= 1;
			assert_false(pvr_roce_cut_is_middle_ok(&cut, &head, NULL));
			bth[at] ^= 1;
		}
		cut.index++;
		assert_int_equal(pvr_roce_cut_is_middle_ok(&cut, &head, NULL),
				 row->net == PVR_ROCE_IPV6);
		cut.index--;
	}
}

/* And for packets that are sent. */
TEST_CASES_WITH(void **state, NULL, NULL, test_icrc_of_a_copy_by_the_head, kinds)
{
	uint8_t packet[ICRC_MAX], header[ICRC_MAX];
	struct pvr_roce_crc_head head;
	struct pvr_roce_frame frame;
	size_t headers, bytes;

	(void)state;
	for (uint32_t length = 0; length <= PVR_ROCE_PAYLOAD_MAX; length += length < 600 ? 4 : 64) {
		frame = packet_of(row, 0);
		frame.payload_bytes = length;
		frame.ip_id = 0;
		frame.psn = 0;
		headers = pvr_roce_build(header, &frame);
		pvr_roce_frame_head(&head, header, &frame);
		frame.ip_id = 0x1234;
		frame.psn = 0x56789a;
		frame.ack_request = true;
		headers = pvr_roce_build(packet, &frame);
		for (uint32_t i = 0; i < length; i++)
			packet[headers + i] = (uint8_t)(i * 7 + i / 256);
		bytes = pvr_roce_finish(packet, headers, &frame);
		memset(to, 0x55, sizeof(to));
		assert_int_equal(pvr_roce_crc_packet_copy(&head, 0x1234, 0x8056789a, to,
							  packet + headers, length, packet),
				 pvr_roce_icrc_get(packet + bytes - 4));
		assert_memory_equal(to, packet + headers, length);
		assert_int_equal(to[length], 0x55);
		assert_int_equal(pvr_roce_crc_packet(&head, 0x1234, 0x8056789a, packet + headers,
						     length, NULL),
				 pvr_roce_icrc_get(packet + bytes - 4));
	}
}

TEST_PLAIN(test_icrc_of_a_packet_that_ends_in_its_header)
{
	static struct merged merged;
	struct pvr_roce_cut cut;

	merge(&merged, &kinds[0]);
	for (size_t bytes = 1; bytes < 16; bytes++) {
		assert_true(pvr_roce_cut_begin(&cut, merged.data, merged.headers + bytes, MTU));
		assert_false(pvr_roce_cut_is_icrc_ok(&cut));
	}
}

/* The sum over pseudo header and payload is then right with the complement of the whole. */
TEST_CASES_WITH(void **state, NULL, NULL, test_checksum_is_that_of_the_pseudo_header, kinds)
{
	static struct merged merged;
	size_t udp, addresses;
	uint32_t sum;

	(void)state;
	merge(&merged, row);
	udp = merged.headers - UDP_BYTES;
	addresses = row->net == PVR_ROCE_IPV4 ? 8 : 32;
	sum = 17 + (uint32_t)(merged.bytes - udp);
	for (size_t i = udp - addresses; i < udp; i += 2)
		sum += (uint32_t)merged.data[i] << 8 | merged.data[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	assert_int_equal(merged.data[udp + 6] << 8 | merged.data[udp + 7], sum);
}

TEST_PLAIN(test_packets_of_another_flow_are_not_merged)
{
	static const size_t other[] = { 0, 6, 15, 22, 26, 30, 34, 36 }; /* MACs to ports */
	uint8_t a[ICRC_MAX], b[ICRC_MAX];
	size_t headers = pvr_roce_gso_headers(a, build(a, &kinds[0], 0));

	build(b, &kinds[0], 1);
	assert_true(pvr_roce_gso_is_same_flow(a, b, headers));
	for (size_t i = 0; i < COUNT(other); i++) {
		b[other[i]] ^= 1;
		assert_false(pvr_roce_gso_is_same_flow(a, b, headers));
		b[other[i]] ^= 1;
	}
}

/* All reads and writes are in the frame, for any length of a segment. */
TEST_PLAIN(test_frames_that_cannot_be_cut_are_refused)
{
	struct pvr_roce_cut cut;
	uint8_t buf[ICRC_MAX];
	size_t bytes = build(buf, &kinds[0], 0), n;

	for (size_t i = 0; i <= 42; i++)
		assert_false(pvr_roce_cut_begin(&cut, buf, i, 100));
	assert_false(pvr_roce_cut_begin(&cut, buf, bytes, 0));
	assert_true(pvr_roce_cut_begin(&cut, buf, 43, 1));
	assert_non_null(pvr_roce_cut_next(&cut, &n));
	assert_int_equal(n, 43);
	assert_null(pvr_roce_cut_next(&cut, &n));
	buf[23] = 6; /* TCP */
	assert_false(pvr_roce_cut_begin(&cut, buf, bytes, 100));
	buf[12] = 0;
	assert_false(pvr_roce_cut_begin(&cut, buf, bytes, 100));
}

/* A VM may describe a frame as thousands of packets of a few bytes. */
TEST_PLAIN(test_frames_of_too_many_packets_are_refused)
{
	struct pvr_roce_cut cut;
	uint8_t buf[ICRC_MAX];
	size_t bytes = build(buf, &kinds[0], 0), headers = pvr_roce_gso_headers(buf, bytes);
	size_t most = 4 * PVR_ROCE_CUT_MAX, packets = 0, n;

	assert_false(pvr_roce_cut_begin(&cut, buf, headers + most + 1, 4));
	assert_true(pvr_roce_cut_begin(&cut, buf, headers + most, 4));
	while (pvr_roce_cut_next(&cut, &n))
		packets++;
	assert_int_equal(packets, PVR_ROCE_CUT_MAX);
}

/* ------------------------------------------------------------------------------- merging */

T_SETUP(merging, rc_connected)
{
	fg_segment_set_gso(env->segment, true);
}

static void write_all(struct t_env *env, uint32_t len)
{
	fg_fill(env->a.mr.va, len, 3);
	memset(env->b.mr.va, 0, len);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, len);
	fg_settle(env->host, FG_SEC);
	expect_written(&env->a, 1);
	assert_int_equal(fg_mismatch(env->b.mr.va, len, 3), len);
}

static const struct t_case arrivals[] = { { "cut", false }, { "whole", true } };

/* FIRST has a header more, and IP's length has 16 bits: 1, 62 and 1 packets. */
TEST_CASES(merging, test_message_of_64_packets_is_one_frame_of_several, arrivals)
{
	fg_segment_rules(env->segment)->whole = row->value;
	write_all(env, LEN < env->b.mr.length ? LEN : (uint32_t)env->b.mr.length);
	assert_in_range(fg_segment_merged(env->segment, 0), 1, 2);
	assert_int_equal(fg_segment_stats(env->segment, 1).rx_malformed, 0);
	assert_int_equal(fg_segment_stats(env->segment, 1).rx_icrc, 0);
	assert_int_equal(fg_segment_stats(env->segment, 0).tx_frames,
			 fg_segment_stats(env->segment, 1).rx_frames);
}

/* The ICRC of each covers its IPv4 ID, its place in the frame. */
TEST_CASES(merging, test_packets_of_a_frame_over_ipv4, arrivals)
{
	struct fg_conn conn = fg_conn_default;

	fg_segment_rules(env->segment)->whole = row->value;
	conn.sgid_index = 1;
	fg_gid_from_ipv4(env->a.gid, 10, 0, 0, 1);
	fg_gid_from_ipv4(env->b.gid, 10, 0, 0, 2);
	assert_int_equal(fg_bind_gid(env->g[0], 1, env->a.gid), 0);
	assert_int_equal(fg_bind_gid(env->g[1], 1, env->b.gid), 0);
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	fg_end_connect(&env->a, &env->b, &conn);
	write_all(env, 16 * MTU);
	assert_int_equal(fg_segment_stats(env->segment, 1).rx_icrc, 0);
	assert_int_equal(fg_segment_stats(env->segment, 0).retransmits, 0);
}

TEST(merging, test_small_writes_of_a_quantum_are_one_frame)
{
	for (uint32_t i = 0; i < 16; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &env->b.mr, 8 * i, 8);
	fg_run(env->host);
	for (uint32_t i = 0; i < 16; i++)
		expect_written(&env->a, i);
	assert_int_equal(fg_segment_merged(env->segment, 0), 1);
	assert_int_equal(fg_segment_stats(env->segment, 0).tx_frames, 16);
}

TEST(rc_connected, test_packets_are_sent_alone_without_gso)
{
	write_all(env, 8 * MTU);
	assert_int_equal(fg_segment_merged(env->segment, 0), 0);
	assert_int_equal(fg_segment_stats(env->segment, 0).tx_frames, 8);
}

static void ignore(void *opaque, const struct pvr_captured *packet)
{
	(*(unsigned int *)opaque)++;
	assert_true(packet->original <= ICRC_MAX);
}

/* Each packet is captured by itself. */
TEST(merging, test_packets_are_sent_alone_while_they_are_captured)
{
	unsigned int packets = 0;
	struct pvr_capture capture = { .snaplen = 64, .packet = ignore, .opaque = &packets };

	pvr_adapter_set_capture(env->g[0]->adapter, &capture);
	write_all(env, 8 * MTU);
	pvr_adapter_set_capture(env->g[0]->adapter, NULL);
	assert_int_equal(fg_segment_merged(env->segment, 0), 0);
	assert_true(packets >= 9); /* and ACKs */
}

/* What is gathered when the segment is full is sent later, and nothing is sent twice. */
TEST(merging, test_gathered_frames_wait_for_room)
{
	fg_segment_rules(env->segment)->room = 1;
	write_all(env, 16 * MTU);
	assert_true(fg_segment_stats(env->segment, 0).tx_full > 0);
	assert_int_equal(fg_segment_stats(env->segment, 0).retransmits, 0);
}
