// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RoCE packets: vectors, all opcodes, refused frames, ICRC. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roce/frame.h"
#include "roce/icrc.h"
#include "roce/opcode.h"
#include "test.h"

#define FRAME_MAX (PVR_ROCE_HEADER_MAX + PVR_ROCE_PAYLOAD_MAX + PVR_ROCE_TRAILER_MAX)
#define IPV4_BYTES 20

/* ------------------------------------------------------------------------- vectors */

/* From a capture: a CNP of a ConnectX-4 Lx. */
static const char cnp[] =
	"e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a00120100001" /**/
	"2b7002800008100ffff400001180000000000000000000000000000000000000000"
	"82fd002a";
/* RC WRITE_ONLY of "hello" from QPN 0x030005 to 0x11, its ACK, a UD SEND of "ping". */
static const char write_only[] = "5254007700025254007700010800450200440000400040"
				 "11260b0a4d00010a4d0002c05a12b7003000000a70ffff000000118043acd2"
				 "00007f0012345678000012340000000568656c6c6f000000fb4dff21";
static const char ack[] =
	"525400770001525400770002080045020030000040004011261f0a4d00020a4d0001c05a12b7001c0000"
	"1140ffff000300050043acd21f000001167aa221";
static const char ud_send[] =
	"52540077000252540077000186dd6000000000241140fd770000000000000000000000000001"
	"fd770000000000000000000000000002c05a12b7002400006440ffff0000001100000001"
	"1111111100030005"
	"70696e67ae180659";

static size_t from_hex(const char *hex, uint8_t *buf)
{
	size_t bytes = 0;
	unsigned int value;

	for (; *hex; hex += 2) {
		assert_int_equal(sscanf(hex, "%2x", &value), 1);
		buf[bytes++] = (uint8_t)value;
	}
	return bytes;
}

static struct pvr_roce_frame ours(void)
{
	struct pvr_roce_frame frame = {
		.dst_mac = { 0x52, 0x54, 0, 0x77, 0, 2 },
		.src_mac = { 0x52, 0x54, 0, 0x77, 0, 1 },
		.net = PVR_ROCE_IPV4,
		.src_gid = { [10] = 0xff, 0xff, 10, 77, 0, 1 },
		.dst_gid = { [10] = 0xff, 0xff, 10, 77, 0, 2 },
		.traffic_class = 2,
		.hop_limit = 64,
		.src_port = 0xc05a,
		.opcode = 0x0a,
		.migrated = true,
		.pkey = 0xffff,
		.dest_qpn = 0x11,
		.ack_request = true,
		.psn = 0x43acd2,
		.addr = 0x7f0012345678,
		.rkey = 0x1234,
		.length = 5,
		.payload_bytes = 5,
	};

	return frame;
}

static struct pvr_roce_frame our_ack(void)
{
	struct pvr_roce_frame frame = ours(), copy = frame;

	memcpy(frame.dst_mac, copy.src_mac, 6);
	memcpy(frame.src_mac, copy.dst_mac, 6);
	memcpy(frame.dst_gid, copy.src_gid, 16);
	memcpy(frame.src_gid, copy.dst_gid, 16);
	frame.opcode = PVR_ROCE_OP_ACK;
	frame.dest_qpn = 0x030005;
	frame.ack_request = false;
	frame.addr = frame.rkey = frame.length = frame.payload_bytes = 0;
	frame.syndrome = 0x1f;
	frame.msn = 1;
	return frame;
}

static struct pvr_roce_frame our_datagram(void)
{
	struct pvr_roce_frame frame = ours();
	static const uint8_t gid[16] = { 0xfd, 0x77, [15] = 1 };

	frame.net = PVR_ROCE_IPV6;
	memcpy(frame.src_gid, gid, 16);
	memcpy(frame.dst_gid, gid, 16);
	frame.dst_gid[15] = 2;
	frame.traffic_class = 0;
	frame.opcode = 0x64;
	frame.ack_request = false;
	frame.psn = 1;
	frame.addr = frame.rkey = frame.length = 0;
	frame.payload_bytes = 4;
	frame.qkey = 0x11111111;
	frame.src_qpn = 0x030005;
	return frame;
}

/* Build @frame, whose payload counts from @first. Return: its bytes. */
static size_t build(uint8_t *buf, const struct pvr_roce_frame *frame, const void *payload)
{
	size_t headers = pvr_roce_build(buf, frame);

	assert_true(headers <= PVR_ROCE_HEADER_MAX);
	if (frame->payload_bytes)
		memcpy(buf + headers, payload, frame->payload_bytes);
	return pvr_roce_finish(buf, headers, frame);
}

static void assert_builds(struct pvr_roce_frame frame, const char *payload, const char *hex)
{
	uint8_t want[FRAME_MAX], got[FRAME_MAX];
	size_t bytes = from_hex(hex, want);

	assert_int_equal(build(got, &frame, payload), bytes);
	assert_memory_equal(got, want, bytes);
}

/* Parse a frame. What was parsed builds the same frame again, so no field got lost. */
static void assert_round_trip(const uint8_t *buf, size_t bytes)
{
	struct pvr_roce_frame got;
	uint8_t again[FRAME_MAX];
	size_t payload, end;

	assert_int_equal(pvr_roce_parse(buf, bytes, &got, &payload, &end), PVR_ROCE_OK);
	assert_int_equal(pvr_roce_check_icrc(buf, end), PVR_ROCE_OK);
	assert_int_equal(end + PVR_ROCE_ICRC_BYTES, bytes);
	assert_int_equal(build(again, &got, buf + payload), bytes);
	assert_memory_equal(again, buf, bytes);
}

static void assert_parses(const char *hex)
{
	uint8_t buf[FRAME_MAX];

	assert_round_trip(buf, from_hex(hex, buf));
}

TEST_PLAIN(test_vectors_are_built)
{
	assert_builds(ours(), "hello", write_only);
	assert_builds(our_ack(), "", ack);
	assert_builds(our_datagram(), "ping", ud_send);
}

TEST_PLAIN(test_vectors_are_parsed)
{
	assert_parses(write_only);
	assert_parses(ack);
	assert_parses(ud_send);
	assert_parses(cnp);
}

TEST_PLAIN(test_congestion_packet_of_a_nic)
{
	static const uint8_t src[16] = { [10] = 0xff, 0xff, 10, 0, 17, 1 };
	struct pvr_roce_frame frame;
	uint8_t buf[FRAME_MAX];
	size_t bytes = from_hex(cnp, buf), payload, end;

	assert_int_equal(pvr_roce_parse(buf, bytes, &frame, &payload, &end), PVR_ROCE_OK);
	assert_int_equal(pvr_roce_check_icrc(buf, end), PVR_ROCE_OK);
	assert_int_equal(frame.opcode, PVR_ROCE_OP_CNP);
	assert_true(frame.becn && !frame.fecn && !frame.migrated && !frame.ack_request);
	assert_int_equal(frame.dest_qpn, 0x118);
	assert_int_equal(frame.traffic_class, 48 << 2 | 2);
	assert_int_equal(frame.src_port, 0);
	assert_memory_equal(frame.src_gid, src, 16);
	assert_int_equal(frame.payload_bytes, 0);
}

TEST_PLAIN(test_source_port_of_the_vectors)
{
	assert_int_equal(pvr_roce_src_port(0, 0x030005, 0x11), 0xc05a);
	/* Both directions have one, so a switch keeps them together. */
	assert_int_equal(pvr_roce_src_port(0, 0x11, 0x030005), 0xc05a);
	assert_int_equal(pvr_roce_src_port(0x12345, 1, 2), 0xc000 | (0x2345 ^ 0x12345 >> 14));
}

/* ------------------------------------------------------------------------- opcodes */

TEST_PLAIN(test_opcode_of_is_the_inverse)
{
	unsigned int opcode, defined = 0;

	for (opcode = 0; opcode < 256; opcode++) {
		const struct pvr_roce_opcode *op = pvr_roce_opcode((uint8_t)opcode);
		uint16_t last = op ? op->ext & (PVR_ROCE_IMM | PVR_ROCE_IETH) : 0;

		if (!op)
			continue;
		defined++;
		assert_int_equal(pvr_roce_opcode_of(pvr_roce_transport((uint8_t)opcode), op->kind,
						    op->begins, op->ends, last),
				 opcode);
	}
	/* RC 25, UC 12, UD 2, CNP */
	assert_int_equal(defined, 40);
}

TEST_PLAIN(test_undefined_packets_have_no_opcode)
{
	assert_int_equal(pvr_roce_opcode_of(PVR_ROCE_UC, PVR_ROCE_READ_REQUEST, true, true, 0), -1);
	assert_int_equal(pvr_roce_opcode_of(PVR_ROCE_UD, PVR_ROCE_SEND, true, false, 0), -1);
	assert_int_equal(pvr_roce_opcode_of(PVR_ROCE_RC, PVR_ROCE_WRITE, true, true, PVR_ROCE_IETH),
			 -1);
}

/* -------------------------------------------------------------------- all headers */

/* A frame with a value of its own in each field that its opcode has. */
static struct pvr_roce_frame full(uint8_t opcode, enum pvr_roce_net net, uint32_t payload_bytes)
{
	uint16_t ext = pvr_roce_opcode(opcode)->ext;
	struct pvr_roce_frame frame = ours();

	frame.net = net;
	if (net != PVR_ROCE_IPV4)
		memset(frame.src_gid, 0xfe, 16), memset(frame.dst_gid, 0xfd, 16);
	frame.traffic_class = 0xa9;
	frame.hop_limit = 7;
	frame.flow_label = net == PVR_ROCE_IPV4 ? 0 : 0xabcde;
	frame.ip_id = net == PVR_ROCE_IPV4 ? 0x1357 : 0;
	frame.src_port = net == PVR_ROCE_V1 ? 0 : 0xd00d;
	frame.vlan = 0x6007;
	frame.opcode = opcode;
	frame.solicited = frame.fecn = true;
	frame.dest_qpn = 0xfedcba;
	frame.psn = 0xffffff;
	frame.qkey = ext & PVR_ROCE_DETH ? 0x80010000 : 0;
	frame.src_qpn = ext & PVR_ROCE_DETH ? 0xabcdef : 0;
	frame.flush = ext & PVR_ROCE_FETH ? 0x11 : 0;
	if (!(ext & (PVR_ROCE_RETH | PVR_ROCE_ATOMIC_ETH)))
		frame.addr = frame.rkey = 0;
	frame.length = ext & PVR_ROCE_RETH ? 0x87654321 : 0;
	frame.swap_add = ext & PVR_ROCE_ATOMIC_ETH ? 0x0123456789abcdef : 0;
	frame.compare = ext & PVR_ROCE_ATOMIC_ETH ? 0xfedcba9876543210 : 0;
	frame.syndrome = ext & PVR_ROCE_AETH ? 0x62 : 0;
	frame.msn = ext & PVR_ROCE_AETH ? 0x876543 : 0;
	frame.original = ext & PVR_ROCE_ATOMIC_ACK_ETH ? 0x1122334455667788 : 0;
	if (ext & PVR_ROCE_IMM)
		memcpy(frame.imm, "\1\2\3\4", 4);
	frame.inv_rkey = ext & PVR_ROCE_IETH ? 0xdeadbeef : 0;
	frame.payload_bytes = pvr_roce_opcode(opcode)->payload ? payload_bytes : 0;
	return frame;
}

static void for_each_frame(void (*check)(const struct pvr_roce_frame *want))
{
	unsigned int opcode, net, bytes;

	for (opcode = 0; opcode < 256; opcode++) {
		for (net = 0; pvr_roce_opcode((uint8_t)opcode) && net < 3; net++) {
			for (bytes = 0; bytes < 6; bytes++) {
				struct pvr_roce_frame want = full((uint8_t)opcode, net, bytes);

				check(&want);
			}
		}
	}
}

static void assert_all_fields(const struct pvr_roce_frame *want)
{
	uint8_t buf[FRAME_MAX];

	assert_round_trip(buf, build(buf, want, "abcdef"));
}

TEST_PLAIN(test_frames_of_all_opcodes_and_networks)
{
	for_each_frame(assert_all_fields);
}

/* Memory behind the frame is not readable, so a sanitizer reports a read beyond it. */
static void assert_truncated(const struct pvr_roce_frame *want)
{
	struct pvr_roce_frame got;
	uint8_t buf[FRAME_MAX];
	size_t bytes = build(buf, want, "abcdef"), cut, payload, end;

	for (cut = 0; cut < bytes; cut++) {
		uint8_t *copy = malloc(cut ? cut : 1);

		assert_non_null(copy);
		memcpy(copy, buf, cut);
		assert_int_not_equal(pvr_roce_parse(copy, cut, &got, &payload, &end), PVR_ROCE_OK);
		free(copy);
	}
}

TEST_PLAIN(test_frames_cut_at_each_byte)
{
	for_each_frame(assert_truncated);
}

TEST_PLAIN(test_padding_of_ethernet_is_ignored)
{
	struct pvr_roce_frame frame = our_ack(), got;
	uint8_t buf[FRAME_MAX];
	size_t bytes = build(buf, &frame, ""), payload, end;

	memset(buf + bytes, 0xaa, 6);
	assert_int_equal(pvr_roce_parse(buf, bytes + 6, &got, &payload, &end), PVR_ROCE_OK);
	assert_int_equal(end + PVR_ROCE_ICRC_BYTES, bytes);
}

/* ------------------------------------------------------------------- refused frames */

struct change {
	const char *what;
	int offset; /* from the IP header of the frame "write_only" */
	uint8_t value;
	enum pvr_roce_drop drop;
};

/* Repair the checksum of the IPv4 header, so that only the change counts. */
static void repair_ipv4(uint8_t *ip)
{
	uint32_t sum = 0;
	int i;

	ip[10] = ip[11] = 0;
	for (i = 0; i < IPV4_BYTES; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~(sum + (sum >> 16)) & 0xffff;
	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

TEST_PLAIN(test_refused_headers)
{
	static const struct change changes[] = {
		{ "Ethertype ARP", -1, 0x06, PVR_ROCE_DROP_TYPE },
		{ "IP options", 0, 0x46, PVR_ROCE_DROP_IP },
		{ "IP version", 0, 0x65, PVR_ROCE_DROP_IP },
		{ "total length below a header", 3, 19, PVR_ROCE_DROP_IP },
		{ "total length beyond the frame", 2, 1, PVR_ROCE_DROP_IP },
		{ "more fragments", 6, 0x20, PVR_ROCE_DROP_IP },
		{ "fragment offset", 7, 1, PVR_ROCE_DROP_IP },
		{ "TCP", 9, 6, PVR_ROCE_DROP_TYPE },
		{ "UDP port", 23, 0xb8, PVR_ROCE_DROP_TYPE },
		{ "UDP length below its header", 25, 7, PVR_ROCE_DROP_UDP },
		{ "UDP length beyond the packet", 25, 0x31, PVR_ROCE_DROP_UDP },
		{ "UDP length that cuts the ICRC", 25, 0x2f, PVR_ROCE_DROP_BTH },
		{ "TVer", 29, 0x71, PVR_ROCE_DROP_BTH },
		{ "P_Key", 30, 0x7f, PVR_ROCE_OK },
		{ "P_Key of another partition", 30, 0xfe, PVR_ROCE_DROP_BTH },
		{ "opcode of RC", 28, 0x15, PVR_ROCE_DROP_OPCODE },
		{ "opcode of UC", 28, 0x2c, PVR_ROCE_DROP_OPCODE },
		{ "opcode of RD", 28, 0x40, PVR_ROCE_DROP_OPCODE },
		{ "opcode with longer headers", 28, 0x13, PVR_ROCE_DROP_SHORT },
		{ "opcode without payload", 28, 0x0c, PVR_ROCE_DROP_BTH },
	};
	struct pvr_roce_frame got;
	uint8_t buf[FRAME_MAX];
	size_t bytes, payload, end, i;

	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		print_message("%s\n", changes[i].what);
		bytes = from_hex(write_only, buf);
		buf[14 + changes[i].offset] = changes[i].value;
		if (changes[i].offset > 0)
			repair_ipv4(buf + 14);
		assert_int_equal(pvr_roce_parse(buf, bytes, &got, &payload, &end), changes[i].drop);
	}
}

TEST_PLAIN(test_checksum_of_ipv4)
{
	struct pvr_roce_frame got;
	uint8_t buf[FRAME_MAX];
	size_t bytes = from_hex(write_only, buf), payload, end;

	buf[14 + 8]--; /* as a router that forgets the checksum */
	assert_int_equal(pvr_roce_parse(buf, bytes, &got, &payload, &end), PVR_ROCE_DROP_IP);
}

/* With the option that each IGMP message has. */
TEST_PLAIN(test_other_protocols_with_ip_options_are_no_malformed_roce)
{
	struct pvr_roce_frame got;
	uint8_t buf[FRAME_MAX];
	size_t bytes = from_hex(write_only, buf), payload, end;

	buf[14] = 0x46;
	buf[14 + 9] = 2; /* IGMP */
	assert_int_equal(pvr_roce_parse(buf, bytes, &got, &payload, &end), PVR_ROCE_DROP_TYPE);
}

TEST_PLAIN(test_padding_longer_than_the_payload)
{
	struct pvr_roce_frame got;
	uint8_t buf[FRAME_MAX];
	size_t bytes = from_hex(ack, buf), payload, end;

	buf[14 + 29] |= 0x30;
	assert_int_equal(pvr_roce_parse(buf, bytes, &got, &payload, &end), PVR_ROCE_DROP_BTH);
}

TEST_PLAIN(test_each_drop_has_a_name)
{
	int drop;

	for (drop = 0; drop < PVR_ROCE_DROPS; drop++)
		assert_non_null(pvr_roce_drop_name(drop));
}

/* ---------------------------------------------------------------------------- ICRC */

/* IBTA 7.8.1: one bit at a time. */
static uint32_t slow_crc(uint32_t crc, const uint8_t *p, size_t bytes)
{
	int bit;

	while (bytes--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

TEST_PLAIN(test_icrc_of_all_lengths_and_alignments)
{
	static uint8_t memory[8 + 40 + 12 + 4200];
	static const uint8_t ones[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	size_t length, align, i;

	for (i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7 + (i >> 8));
	for (length = 0; length <= 4200; length += length < 300 ? 1 : 97) {
		for (align = 0; align < 8; align++) {
			uint8_t *net = memory + align, saved[52];
			uint32_t crc;

			memcpy(saved, net, sizeof(saved));
			net[0] |= 0x0f;
			memset(net + 1, 0xff, 3);
			net[7] = net[44] = 0xff;
			crc = slow_crc(~0u, ones, 8);
			crc = ~slow_crc(crc, net, 52 + length);
			memcpy(net, saved, sizeof(saved));
			assert_int_equal(pvr_roce_icrc(net, 40, 0, 52 + length), crc);
		}
	}
}

/* Offsets from the IP header that routers and NICs on the way may change. */
static bool is_variant(const struct pvr_roce_frame *frame, size_t offset)
{
	size_t udp = frame->net == PVR_ROCE_IPV4 ? IPV4_BYTES : 40;
	size_t bth = udp + (frame->net == PVR_ROCE_V1 ? 0 : 8);
	bool checksum = frame->net != PVR_ROCE_V1 && (offset == udp + 6 || offset == udp + 7);

	if (checksum || offset == bth + 4)
		return true;
	if (frame->net == PVR_ROCE_IPV4)
		return offset == 1 || offset == 8 || offset == 10 || offset == 11;
	return offset <= 3 || offset == 7;
}

TEST_PLAIN(test_icrc_covers_each_byte_but_the_variant_ones)
{
	unsigned int net;

	for (net = 0; net < 3; net++) {
		struct pvr_roce_frame frame = full(0x0b, net, 5);
		uint8_t buf[FRAME_MAX];
		size_t bytes = build(buf, &frame, "abcde"), i;

		for (i = 18; i < bytes; i++) {
			enum pvr_roce_drop want = is_variant(&frame, i - 18) ? PVR_ROCE_OK
									     : PVR_ROCE_DROP_ICRC;

			buf[i] ^= 1;
			assert_int_equal(pvr_roce_check_icrc(buf, bytes - PVR_ROCE_ICRC_BYTES),
					 want);
			buf[i] ^= 1;
		}
	}
}
