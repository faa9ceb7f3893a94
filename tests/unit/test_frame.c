// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Frames of the pipe protocol: which are in order, and each way in which one is not. */
#include <endian.h>

#include "common.h"
#include "pipe.h"
#include "path/pipe/frame.h"

#define CHUNK 65536u
#define BOTH 2 /* a role: either */

/* A valid frame, and the length of its payload by its header. */
struct sample {
	const char *name;
	enum pvr_frame_type type;
	int receiver; /* enum pvr_frame_role, or BOTH */
	size_t header, payload;
	union pvr_any_frame any;
};

#define ANY(type_, name_, header_, payload_, flags_, fabric_, ...) \
	{                                                          \
		.name_ = {                                         \
			.frame = { .size = (header_) + (payload_), \
				   .type = (type_),                \
				   .flags = (flags_),              \
				   .fabric = (fabric_) },          \
			__VA_ARGS__                                \
		}                                                  \
	}
#define SAMPLE(label, type_, receiver_, name_, header_, payload_, flags_, fabric_, ...)         \
	{                                                                                       \
		.name = (label), .type = (type_), .receiver = (receiver_), .header = (header_), \
		.payload = (payload_),                                                          \
		.any = ANY(type_, name_, header_, payload_, flags_, fabric_, __VA_ARGS__)       \
	}
#define REQUEST(label, op_, payload_, flags_, ...)                                               \
	SAMPLE(label, PVR_FRAME_REQUEST, PVR_FRAME_RESPONDER, request, 120, payload_, flags_, 1, \
	       .op = (op_), .gid_type = PVR_GID_TYPE_ROCE_V2, .src_qpn = 0xffffff, .dst_qpn = 2, \
	       .psn = 0xffffff, __VA_ARGS__)

static const struct sample samples[] = {
	SAMPLE("hello", PVR_FRAME_HELLO, BOTH, hello, 104, 0, 0, 0, .magic = PVR_FRAME_MAGIC,
	       .version_min = 1, .version_max = 3, .chunk = CHUNK, .index = 1, .count = 2,
	       .name = "host-1.example"),
	SAMPLE("close", PVR_FRAME_CLOSE, BOTH, close, 136, 0, 0, 0, .reason = PVR_CLOSE_LIMIT,
	       .text = "out of range"),
	SAMPLE("ping", PVR_FRAME_PING, BOTH, ping, 16, 0, 0, 0, .cookie = 1),
	SAMPLE("pong", PVR_FRAME_PONG, BOTH, ping, 16, 0, 0, 0, .cookie = 1),
	SAMPLE("queue pair", PVR_FRAME_VERBS_QP, BOTH, verbs_qp, 48, 0, 0, 0, .gid = { 1 },
	       .qpn = 0xffffff, .psn = 0xffffff, .mtu = 5, .reads = 16, .buffers = 1024,
	       .buffer_size = 4096),
	SAMPLE("RNDV_DONE", PVR_FRAME_RNDV_DONE, BOTH, rndv_done, 16, 0, 0, 0, .count = UINT32_MAX),
	SAMPLE("fabric", PVR_FRAME_FABRIC, PVR_FRAME_RESPONDER, fabric, 40, 0, 0, PVR_FRAME_FABRICS,
	       .name = "tenant_7"),
	SAMPLE("gid query", PVR_FRAME_GID_QUERY, PVR_FRAME_RESPONDER, gid_query, 32, 0, 0, 1,
	       .gid = { 1 }),
	REQUEST("send", PVR_FRAME_OP_SEND, CHUNK, 0, .psns = 1u << 23, .length = 1u << 31,
		.offset = 4096, .chunk = CHUNK),
	REQUEST("empty send", PVR_FRAME_OP_SEND_IMM, 0,
		PVR_REQUEST_F_LAST | PVR_REQUEST_F_SOLICITED | PVR_REQUEST_F_UC, .psns = 1),
	REQUEST("write", PVR_FRAME_OP_WRITE, 100, PVR_REQUEST_F_LAST, .psns = 1, .length = 300,
		.offset = 200, .chunk = 100),
	REQUEST("exposed write", PVR_FRAME_OP_WRITE, 32, PVR_REQUEST_F_LAST | PVR_FRAME_F_RNDV,
		.psns = 16, .length = CHUNK, .chunk = CHUNK),
	REQUEST("read", PVR_FRAME_OP_READ, 0, 0, .psns = 10, .length = 9000, .chunk = 4096),
	REQUEST("atomic", PVR_FRAME_OP_CMP_SWAP, 0, PVR_REQUEST_F_LAST, .psns = 1, .length = 8,
		.compare_add = 5, .swap = 6),
	SAMPLE("datagram", PVR_FRAME_DATAGRAM, PVR_FRAME_RESPONDER, datagram, 64, 4096,
	       PVR_REQUEST_F_SOLICITED, 1, .has_imm = 1, .gid_type = PVR_GID_TYPE_ROCE_V1,
	       .flow_label = 0xfffff, .src_qpn = 1, .dst_qpn = 0xffffff),
	SAMPLE("left", PVR_FRAME_QP_GONE, PVR_FRAME_RESPONDER, qp_gone, 56, 0, 0, 1, .gid_type = 2,
	       .src_qpn = 0xffffff, .dst_qpn = 0xffffff),
	SAMPLE("moved", PVR_FRAME_MOVED, PVR_FRAME_RESPONDER, moved, 32, 0, 0, 1, .gid_type = 1),
	SAMPLE("take", PVR_FRAME_TAKE, PVR_FRAME_RESPONDER, take, 32, 0, 0, 1, .token = { 1 }),
	SAMPLE("taken", PVR_FRAME_TAKEN, PVR_FRAME_REQUESTER, take, 32, 0, 0, 1,
	       .answer = PVR_FRAME_TAKE_STALE),
	SAMPLE("referral", PVR_FRAME_REFERRAL, PVR_FRAME_REQUESTER, referral, 160, 0, 0, 1,
	       .gid_type = 2, .name = "host-2.rack_1", .address = "[2001:db8::1]:7471"),
	SAMPLE("address", PVR_FRAME_ADDRESS, PVR_FRAME_RESPONDER, address, 72, 0, 0, 1,
	       .address = "[2001:db8::1]:7471"),
	SAMPLE("fault", PVR_FRAME_FAULT, PVR_FRAME_RESPONDER, request, 120, 0, 0, 1,
	       .op = PVR_FRAME_OP_WRITE_IMM, .gid_type = 2, .fault = PVR_FRAME_FAULT_RECV_FATAL,
	       .src_qpn = 0xffffff, .dst_qpn = 0xffffff, .psn = 0xffffff, .psns = 1u << 23),
	SAMPLE("here", PVR_FRAME_GID_REPLY, PVR_FRAME_REQUESTER, gid_query, 32, 0, 0, 1,
	       .gid_type = PVR_GID_TYPE_ROCE_V2),
	SAMPLE("GID is absent", PVR_FRAME_GID_REPLY, PVR_FRAME_REQUESTER, gid_query, 32, 0, 0, 1,
	       .gid = { 1 }),
	SAMPLE("ack", PVR_FRAME_ACK, PVR_FRAME_REQUESTER, ack, 56, 0, 0, 1,
	       .syndrome = PVR_FRAME_SYN_ACK, .epoch = 1, .qpn = 2, .psn = 3, .offset = 1u << 31),
	SAMPLE("rnr", PVR_FRAME_ACK, PVR_FRAME_REQUESTER, ack, 56, 0, 0, 1,
	       .syndrome = PVR_FRAME_SYN_RNR, .rnr_ns = PVR_FRAME_RNR_MAX_NS),
	SAMPLE("nak", PVR_FRAME_ACK, PVR_FRAME_REQUESTER, ack, 56, 0, 0, 1,
	       .syndrome = PVR_FRAME_SYN_NAK, .nak = PVR_FRAME_NAK_OPERATION),
	SAMPLE("atomic ack", PVR_FRAME_ATOMIC_ACK, PVR_FRAME_REQUESTER, atomic_ack, 48, 0, 0, 1,
	       .value = UINT64_MAX),
	SAMPLE("read data", PVR_FRAME_READ_DATA, PVR_FRAME_REQUESTER, read_data, 48, 4096, 0, 1,
	       .chunk = 4096, .offset = 4096),
	SAMPLE("exposed data", PVR_FRAME_READ_DATA, PVR_FRAME_REQUESTER, read_data, 48, 128,
	       PVR_FRAME_F_RNDV, 1, .chunk = CHUNK, .offset = CHUNK),
};

static const struct sample *find(const char *name)
{
	for (size_t i = 0; i < COUNT(samples); i++)
		if (!strcmp(samples[i].name, name))
			return &samples[i];
	fail_msg("no sample %s", name);
	return NULL;
}

/* As a receiver does it: NULL, or what is wrong. */
static const char *refusal(const union pvr_any_frame *any, enum pvr_frame_role receiver)
{
	const char *why = NULL;
	size_t payload = 0;
	size_t header = pvr_frame_header_size(&any->frame, receiver, CHUNK, &why);

	if (!header)
		return why ? why : "no reason";
	if (pvr_frame_check(any, header, &payload, &why))
		return NULL;
	return why ? why : "no reason";
}

static enum pvr_frame_role receiver_of(const struct sample *sample)
{
	return sample->receiver == BOTH ? PVR_FRAME_REQUESTER
					: (enum pvr_frame_role)sample->receiver;
}

static void expect_refusal(const char *name, const union pvr_any_frame *any, const char *text)
{
	const char *why = refusal(any, receiver_of(find(name)));

	if (!why)
		fail_msg("%s is taken, and not refused for %s", name, text);
	if (!strstr(why, text))
		fail_msg("%s is refused for %s, and not for %s", name, why, text);
}

/* Changes one field of a sample: it is refused, with this reason. */
#define REFUSED(name, change, text)                      \
	do {                                             \
		union pvr_any_frame f = find(name)->any; \
		change;                                  \
		expect_refusal(name, &f, text);          \
	} while (0)
#define ACCEPTED(name, change)                                     \
	do {                                                       \
		union pvr_any_frame f = find(name)->any;           \
		change;                                            \
		assert_null(refusal(&f, receiver_of(find(name)))); \
	} while (0)

TEST_PLAIN(test_frame_is_accepted_by_its_receiver_only)
{
	for (size_t i = 0; i < COUNT(samples); i++) {
		const struct sample *sample = &samples[i];

		for (int role = 0; role < BOTH; role++) {
			const char *why = NULL;
			bool may = sample->receiver == BOTH || sample->receiver == role;
			size_t payload = SIZE_MAX;
			size_t header = pvr_frame_header_size(
				&sample->any.frame, (enum pvr_frame_role)role, CHUNK, &why);

			assert_int_equal(header, may ? sample->header : 0);
			if (!may) {
				assert_string_equal(why, "frame type of the other direction");
				continue;
			}
			assert_true(pvr_frame_check(&sample->any, header, &payload, &why));
			assert_int_equal(payload, sample->payload);
		}
	}
}

TEST_PLAIN(test_requester_with_piggyback_takes_acks_too)
{
	for (size_t i = 0; i < COUNT(samples); i++) {
		const struct pvr_frame *frame = &samples[i].any.frame;
		const char *why = NULL;
		bool may = frame->type == PVR_FRAME_ACK ||
			   pvr_frame_header_size(frame, PVR_FRAME_RESPONDER, CHUNK, &why);
		size_t header =
			pvr_frame_header_size(frame, PVR_FRAME_RESPONDER_PIGGYBACK, CHUNK, &why);

		assert_int_equal(header, may ? samples[i].header : 0);
	}
}

TEST_PLAIN(test_every_type_has_a_sample)
{
	for (unsigned int type = 0; type < 256; type++) {
		const struct pvr_frame frame = { .size = 160, .type = (uint8_t)type };
		bool known = false;
		const char *why;

		for (size_t i = 0; i < COUNT(samples); i++)
			known |= samples[i].type == type;
		for (int role = 0; role < BOTH; role++) {
			pvr_frame_header_size(&frame, (enum pvr_frame_role)role, CHUNK, &why);
			assert_int_equal(why && !strcmp(why, "unknown frame type"), !known);
		}
	}
}

TEST_PLAIN(test_truncated_frames_are_refused)
{
	for (size_t i = 0; i < COUNT(samples); i++) {
		REFUSED(samples[i].name, f.frame.size = samples[i].header - 1, "too short");
		REFUSED(samples[i].name, f.frame.size = sizeof(struct pvr_frame), "too short");
		REFUSED(samples[i].name, f.frame.size = 0, "too short");
	}
}

/* By one byte more than the type may have, and by as much as the field can hold. */
TEST_PLAIN(test_oversized_frames_are_refused)
{
	for (size_t i = 0; i < COUNT(samples); i++) {
		const struct sample *sample = &samples[i];
		uint32_t max = (uint32_t)sample->header;

		if (sample->type == PVR_FRAME_REQUEST || sample->type == PVR_FRAME_READ_DATA)
			max += CHUNK;
		if (sample->type == PVR_FRAME_DATAGRAM)
			max += PVR_FRAME_DATAGRAM_MAX;
		if (sample->type == PVR_FRAME_TAKE)
			max += sizeof(__le64);
		REFUSED(sample->name, f.frame.size = max + 1, "too long");
		REFUSED(sample->name, f.frame.size = UINT32_MAX, "too long");
	}
}

TEST_PLAIN(test_unknown_flags_are_refused)
{
	for (size_t i = 0; i < COUNT(samples); i++) {
		uint8_t known = 0;

		if (samples[i].type == PVR_FRAME_REQUEST)
			known = 0xf | PVR_FRAME_F_RNDV;
		if (samples[i].type == PVR_FRAME_READ_DATA)
			known = PVR_FRAME_F_RNDV;
		if (samples[i].type == PVR_FRAME_DATAGRAM)
			known = PVR_REQUEST_F_SOLICITED;
		if (samples[i].type == PVR_FRAME_FAULT)
			known = PVR_REQUEST_F_UC | PVR_REQUEST_F_XRC | PVR_REQUEST_F_UD;
		for (int bit = 0; bit < 8; bit++)
			if (!(known & 1 << bit))
				REFUSED(samples[i].name, f.frame.flags |= (uint8_t)(1 << bit),
					"flag");
	}
}

TEST_PLAIN(test_fabric_numbers_out_of_range_are_refused)
{
	for (size_t i = 0; i < COUNT(samples); i++) {
		if (samples[i].any.frame.fabric) {
			ACCEPTED(samples[i].name, f.frame.fabric = PVR_FRAME_FABRICS);
			REFUSED(samples[i].name, f.frame.fabric = 0, "fabric");
		} else {
			REFUSED(samples[i].name, f.frame.fabric = 1, "fabric");
		}
		REFUSED(samples[i].name, f.frame.fabric = PVR_FRAME_FABRICS + 1, "fabric");
		REFUSED(samples[i].name, f.frame.fabric = UINT16_MAX, "fabric");
	}
}

TEST_PLAIN(test_hello_with_a_wrong_field_is_refused)
{
	REFUSED("hello", f.hello.magic = PVR_FRAME_MAGIC + 1, "not a pvrdma daemon");
	REFUSED("hello", f.hello.version_min = 4, "version");
	REFUSED("hello", f.hello.chunk = PVR_FRAME_CHUNK_MIN - 1, "chunk");
	REFUSED("hello", f.hello.chunk = PVR_FRAME_CHUNK_MAX + 1, "chunk");
	REFUSED("hello", f.hello.count = 0, "index");
	REFUSED("hello", f.hello.index = 2, "index");
	REFUSED("hello", f.hello.count = PVR_REQ_CONN_MAX + 1, "index");
	REFUSED("hello", f.hello.dscp = PVR_DSCP_MAX + 1, "DSCP");
	REFUSED("hello", f.hello.reserved = 1, "DSCP");
	REFUSED("hello", f.hello.name[0] = 0, "name");
	REFUSED("hello", memset(f.hello.name, 'a', sizeof(f.hello.name)), "name");
	REFUSED("hello", f.hello.name[2] = '\n', "name");
	REFUSED("hello", f.hello.name[2] = '/', "name");
	ACCEPTED("hello", memset(f.hello.name, 'a', sizeof(f.hello.name) - 1));
	ACCEPTED("hello", f.hello.features = UINT32_MAX);
}

TEST_PLAIN(test_close_with_a_wrong_field_is_refused)
{
	REFUSED("queue pair", f.verbs_qp.qpn = 1 << 24, "24 bits");
	REFUSED("queue pair", f.verbs_qp.psn = 1 << 24, "24 bits");
	REFUSED("queue pair", f.verbs_qp.mtu = 0, "MTU");
	REFUSED("queue pair", f.verbs_qp.mtu = 6, "MTU");
	REFUSED("queue pair", f.verbs_qp.buffers = 1, "number of buffers");
	REFUSED("queue pair", f.verbs_qp.buffers = 1025, "number of buffers");
	REFUSED("queue pair", f.verbs_qp.buffer_size = 4095, "buffer size");
	REFUSED("queue pair", f.verbs_qp.buffer_size = (1 << 20) + 1, "buffer size");
	REFUSED("queue pair", f.verbs_qp.reserved2 = 1, "reserved");
	REFUSED("close", f.close.reason = PVR_CLOSE_NUM, "reason");
	REFUSED("close", f.close.reserved = 1, "reserved");
	REFUSED("close", f.close.text[3] = '\033', "printed");
	REFUSED("close", memset(f.close.text, 'a', sizeof(f.close.text)), "printed");
	ACCEPTED("close", f.close.text[0] = 0);
}

TEST_PLAIN(test_fabric_with_a_wrong_name_is_refused)
{
	REFUSED("fabric", f.fabric.name[0] = 0, "name");
	REFUSED("fabric", f.fabric.name[3] = ' ', "name");
	REFUSED("fabric", memset(f.fabric.name, 'a', sizeof(f.fabric.name)), "name");
	ACCEPTED("fabric", memset(f.fabric.name, 'a', sizeof(f.fabric.name) - 1));
}

TEST_PLAIN(test_gid_query_and_reply_with_a_wrong_field_are_refused)
{
	REFUSED("gid query", f.gid_query.gid_type = PVR_GID_TYPE_ROCE_V2, "reserved");
	REFUSED("gid query", f.gid_query.reserved[6] = 1, "reserved");
	REFUSED("here", f.gid_query.reserved[0] = 1, "reserved");
	REFUSED("here", f.gid_query.gid_type = 3, "GID");
	REFUSED("here", f.gid_query.gid_type = 4, "GID");
}

TEST_PLAIN(test_referral_with_a_wrong_field_is_refused)
{
	REFUSED("referral", f.referral.gid_type = 3, "GID");
	REFUSED("referral", f.referral.reserved[6] = 1, "reserved");
	REFUSED("referral", f.referral.name[0] = 0, "name");
	REFUSED("referral", f.referral.name[2] = '/', "name");
	REFUSED("referral", memset(f.referral.name, 'a', sizeof(f.referral.name)), "name");
	REFUSED("referral", f.referral.address[2] = '%', "address");
	REFUSED("referral", memset(f.referral.address, '1', sizeof(f.referral.address)), "address");
	ACCEPTED("referral", f.referral.address[0] = 0);
}

TEST_PLAIN(test_address_that_is_none_is_refused)
{
	REFUSED("address", f.address.address[0] = 0, "address");
	REFUSED("address", f.address.address[2] = '%', "address");
	REFUSED("address", memset(f.address.address, '1', sizeof(f.address.address)), "address");
}

TEST_PLAIN(test_request_with_a_wrong_field_is_refused)
{
	REFUSED("send", f.request.op = PVR_FRAME_OP_NUM, "unknown operation");
	REFUSED("send", f.request.op = 255, "unknown operation");
	REFUSED("send", f.request.gid_type = 0, "GID");
	REFUSED("send", f.request.gid_type = 3, "GID");
	REFUSED("send", f.request.fault = 1, "reserved");
	REFUSED("send", f.request.srqn = 1, "without the XRC flag");
	REFUSED("send", f.request.src_qpn = 1u << 24, "24 bits");
	REFUSED("send", f.request.dst_qpn = 1u << 24, "24 bits");
	REFUSED("send", f.request.psn = 1u << 24, "24 bits");
	REFUSED("send", f.request.psns = 0, "PSNs");
	REFUSED("send", f.request.psns = (1u << 23) + 1, "PSNs");
}

TEST_PLAIN(test_fragment_outside_its_message_is_refused)
{
	REFUSED("send", f.request.length = (1ull << 31) + 1, "too long");
	REFUSED("send", f.request.length = UINT64_MAX, "too long");
	REFUSED("send", f.request.offset = (1ull << 31) - CHUNK + 1,
		"beyond the end of its message");
	REFUSED("send", f.request.offset = (1ull << 31) + 1, "beyond the end of its message");
	/* Offset and chunk together wrap. */
	REFUSED("send", f.request.offset = UINT64_MAX - CHUNK + 1, "beyond the end of its message");
	REFUSED("read", f.request.chunk = 9001, "beyond the end of its message");
	REFUSED("read", f.request.chunk = UINT32_MAX, "beyond the end of its message");
	REFUSED("read", f.request.chunk = 0, "empty");
}

TEST_PLAIN(test_frame_of_another_length_than_its_fragment_is_refused)
{
	REFUSED("write", f.request.chunk = 99, "length does not match its chunk");
	REFUSED("write", f.frame.size += 1, "length does not match its chunk");
	REFUSED("empty send", f.frame.size += 1, "length does not match its chunk");
	REFUSED("read", f.frame.size += 4096, "length does not match its chunk");
	REFUSED("atomic", f.frame.size += 8, "length does not match its chunk");
	REFUSED("read data", f.read_data.chunk = 0, "length does not match its chunk");
}

TEST_PLAIN(test_last_flag_matches_the_end_of_the_message)
{
	REFUSED("write", f.frame.flags = 0, "LAST flag");
	REFUSED("empty send", f.frame.flags = 0, "LAST flag");
	REFUSED("send", f.frame.flags = PVR_REQUEST_F_LAST, "LAST flag");
	REFUSED("read", f.frame.flags = PVR_REQUEST_F_LAST, "LAST flag");
	ACCEPTED("read", f.request.offset = 9000 - 4096; f.frame.flags = PVR_REQUEST_F_LAST);
}

TEST_PLAIN(test_zero_length_and_odd_atomics_are_refused)
{
	REFUSED("atomic", f.request.length = 0, "8 bytes");
	REFUSED("atomic", f.request.length = 4, "8 bytes");
	REFUSED("atomic", f.request.length = 16, "8 bytes");
	REFUSED("atomic", f.request.offset = 8, "8 bytes");
	REFUSED("atomic", f.request.chunk = 8, "8 bytes");
	REFUSED("atomic", f.frame.flags = 0, "8 bytes");
	ACCEPTED("atomic", f.request.op = PVR_FRAME_OP_FETCH_ADD);
}

TEST_PLAIN(test_atomic_write_and_flush_with_bytes_are_refused)
{
	static const enum pvr_frame_op ops[] = { PVR_FRAME_OP_ATOMIC_WRITE, PVR_FRAME_OP_FLUSH };

	for (size_t i = 0; i < COUNT(ops); i++) {
		ACCEPTED("atomic", f.request.op = ops[i]; f.request.length = 0);
		REFUSED("atomic", f.request.op = ops[i], "of a message with bytes");
	}
}

TEST_PLAIN(test_reads_and_atomics_on_uc_are_refused)
{
	REFUSED("read", f.frame.flags |= PVR_REQUEST_F_UC, "with a response on UC");
	REFUSED("send", f.frame.flags |= PVR_REQUEST_F_UC | PVR_REQUEST_F_XRC, "XRC flag on UC");
	REFUSED("atomic", f.frame.flags |= PVR_REQUEST_F_UC, "with a response on UC");
	REFUSED("atomic", f.request.op = PVR_FRAME_OP_FETCH_ADD;
		f.frame.flags |= PVR_REQUEST_F_UC, "with a response on UC");
	ACCEPTED("write", f.frame.flags |= PVR_REQUEST_F_UC);
}

TEST_PLAIN(test_rndv_with_a_wrong_field_is_refused)
{
	static const char *const exposed[] = { "exposed write", "exposed data" };

	for (size_t i = 0; i < COUNT(exposed); i++) {
		uint32_t header = (uint32_t)find(exposed[i])->header;

		for (uint32_t parts = 1; parts <= PVR_FRAME_RNDV_SEGS; parts++)
			ACCEPTED(exposed[i], f.frame.size = header + 16 * parts);
		REFUSED(exposed[i], f.frame.size = header, "rendezvous segments out of range");
		REFUSED(exposed[i], f.frame.size = header + 16 * (PVR_FRAME_RNDV_SEGS + 1),
			"out of range");
		REFUSED(exposed[i], f.frame.size = header + 16 + 15,
			"rendezvous segments out of range");
		REFUSED(exposed[i], f.frame.size = header + 8, "rendezvous segments out of range");
		REFUSED(exposed[i], f.frame.flags &= (uint8_t)~PVR_FRAME_F_RNDV,
			"length does not match its chunk");
	}
	/* The limits of a fragment hold for rendezvous, too. */
	REFUSED("exposed write", f.request.chunk = CHUNK + 1, "beyond the end of its message");
	REFUSED("exposed write", f.request.chunk = 0, "empty fragment");
	REFUSED("exposed write", f.request.length = f.request.chunk = PVR_FRAME_CHUNK_MAX + 1,
		"too large");
	REFUSED("exposed data", f.read_data.chunk = PVR_FRAME_CHUNK_MAX + 1, "too large");
	REFUSED("exposed data", f.read_data.offset = (1ull << 31) - CHUNK + 1,
		"beyond the end of a message");
	/* Unreliable requests have no RNDV_DONE, and these types have no payload. */
	REFUSED("exposed write", f.frame.flags |= PVR_REQUEST_F_UC, "RNDV flag");
	REFUSED("read", f.frame.flags |= PVR_FRAME_F_RNDV; f.frame.size += 16, "RNDV flag");
	REFUSED("atomic", f.frame.flags |= PVR_FRAME_F_RNDV; f.frame.size += 16, "RNDV flag");
	REFUSED("RNDV_DONE", f.rndv_done.reserved = 1, "reserved");
	ACCEPTED("RNDV_DONE", f.rndv_done.count = 0);
}

static void expect_rndvs(const struct pvr_frame_rndv_seg *rndv, size_t count, uint32_t chunk,
			 const char *text)
{
	const char *why = "nothing";
	bool ok = pvr_frame_check_rndv(rndv, count, chunk, &why);

	assert_int_equal(ok, !text);
	if (text && !strstr(why, text))
		fail_msg("refused for %s, and not for %s", why, text);
	assert_true(text || !why);
}

TEST_PLAIN(test_rndvs_make_up_their_fragment)
{
	static const char part[] = "segment is empty", sum[] = "length does not match its chunk";
	struct pvr_frame_rndv_seg rndv[PVR_FRAME_RNDV_SEGS];

	for (size_t i = 0; i < COUNT(rndv); i++)
		rndv[i] = (struct pvr_frame_rndv_seg){ .addr = htole64(~0ull << 16),
						       .len = htole32(100) };
	for (size_t count = 1; count <= COUNT(rndv); count++) {
		expect_rndvs(rndv, count, (uint32_t)(100 * count), NULL);
		expect_rndvs(rndv, count, (uint32_t)(100 * count) - 1, sum);
		expect_rndvs(rndv, count, (uint32_t)(100 * count) + 1, sum);
	}
	for (size_t i = 0; i < COUNT(rndv); i++) {
		rndv[i].len = 0;
		expect_rndvs(rndv, COUNT(rndv), 700, part);
		rndv[i].len = htole32(100);
		rndv[i].addr = htole64(UINT64_MAX - 98);
		expect_rndvs(rndv, COUNT(rndv), 800, part);
		rndv[i].addr = 0;
	}
	/* A sum that wraps is none. */
	rndv[0].len = rndv[1].len = htole32(1u << 31);
	expect_rndvs(rndv, 2, 0, sum);
}

TEST_PLAIN(test_fragment_is_as_long_as_it_says_wherever_it_is)
{
	assert_int_equal(pvr_frame_chunk(&find("write")->any), 100);
	assert_int_equal(pvr_frame_chunk(&find("exposed write")->any), CHUNK);
	assert_int_equal(pvr_frame_chunk(&find("read data")->any), 4096);
	assert_int_equal(pvr_frame_chunk(&find("exposed data")->any), CHUNK);
}

TEST_PLAIN(test_datagram_with_a_wrong_field_is_refused)
{
	REFUSED("datagram", f.datagram.has_imm = 2, "has_imm");
	REFUSED("datagram", f.datagram.gid_type = 0, "GID");
	REFUSED("datagram", f.datagram.flow_label = 1u << 20, "flow label");
	REFUSED("datagram", f.datagram.src_qpn = 1u << 24, "24 bits");
	REFUSED("datagram", f.datagram.dst_qpn = 1u << 24, "24 bits");
	ACCEPTED("datagram", f.frame.size = 64);
}

TEST_PLAIN(test_qp_gone_with_a_wrong_field_is_refused)
{
	REFUSED("left", f.qp_gone.gid_type = 0, "GID");
	REFUSED("left", f.qp_gone.gid_type = 3, "GID");
	REFUSED("left", f.qp_gone.src_qpn = 1u << 24, "24 bits");
	REFUSED("left", f.qp_gone.dst_qpn = 1u << 24, "24 bits");
	REFUSED("left", f.qp_gone.reserved[6] = 1, "reserved");
}

TEST_PLAIN(test_fault_with_a_wrong_field_is_refused)
{
	REFUSED("fault", f.request.op = PVR_FRAME_OP_NUM, "unknown operation");
	REFUSED("fault", f.request.fault = 0, "unknown fault");
	REFUSED("fault", f.request.fault = PVR_FRAME_FAULT_NUM, "unknown fault");
	REFUSED("fault", f.request.fault = 0xffff, "unknown fault");
	REFUSED("fault", f.request.gid_type = 0, "GID");
	REFUSED("fault", f.request.src_qpn = 1u << 24, "24 bits");
	REFUSED("fault", f.request.dst_qpn = 1u << 24, "24 bits");
	REFUSED("fault", f.request.psn = 1u << 24, "24 bits");
	REFUSED("fault", f.request.psns = 0, "PSNs");
	REFUSED("fault", f.request.srqn = 1, "without the XRC flag");
	REFUSED("fault", f.frame.flags = PVR_REQUEST_F_LAST, "unknown flag");
	REFUSED("fault", f.frame.size = 121, "too long");
	REFUSED("fault", f.request.imm[3] = 1, "reserved");
	REFUSED("fault", f.request.rkey = 1, "reserved");
	REFUSED("fault", f.request.addr = 1, "reserved");
	REFUSED("fault", f.request.length = 1, "reserved");
	REFUSED("fault", f.request.offset = 1, "reserved");
	REFUSED("fault", f.request.chunk = 1, "reserved");
	REFUSED("fault", f.request.compare_add = 1, "reserved");
	REFUSED("fault", f.request.swap = 1, "reserved");
	ACCEPTED("fault", f.frame.flags = PVR_REQUEST_F_UC);
	ACCEPTED("fault", f.frame.flags = PVR_REQUEST_F_UD; f.request.rkey = 1);
}

/* A NAK is of reliable connections; a receive request is not used by each message. */
TEST_PLAIN(test_fault_that_the_queue_pair_cannot_have_is_refused)
{
	REFUSED("fault", f.frame.flags = PVR_REQUEST_F_UC | PVR_REQUEST_F_UD, "two types");
	REFUSED("fault", f.frame.flags = PVR_REQUEST_F_UC | PVR_REQUEST_F_XRC, "two types");
	REFUSED("fault", f.request.op = PVR_FRAME_OP_WRITE, "does not have");
	REFUSED("fault", f.request.op = PVR_FRAME_OP_READ, "does not have");
	REFUSED("fault", f.request.fault = PVR_FRAME_FAULT_ACCESS;
		f.frame.flags = PVR_REQUEST_F_UC, "without a reliable connection");
	REFUSED("fault", f.request.fault = PVR_FRAME_FAULT_OPERATION;
		f.frame.flags = PVR_REQUEST_F_UD, "without a reliable connection");
	ACCEPTED("fault", f.request.fault = PVR_FRAME_FAULT_OPERATION;
		 f.frame.flags = PVR_REQUEST_F_XRC; f.request.srqn = 5);
	ACCEPTED("fault", f.request.fault = PVR_FRAME_FAULT_INVALID_REQUEST;
		 f.request.op = PVR_FRAME_OP_FLUSH);
}

TEST_PLAIN(test_number_of_a_load_has_8_bytes)
{
	for (uint32_t size = 1; size < sizeof(__le64); size++)
		REFUSED("take", f.frame.size = htole32((uint32_t)sizeof(f.take) + size), "8 bytes");
	ACCEPTED("take", f.frame.size = htole32((uint32_t)(sizeof(f.take) + sizeof(__le64))));
}

TEST_PLAIN(test_frames_of_a_move_with_a_wrong_field_are_refused)
{
	REFUSED("moved", f.moved.gid_type = 0, "GID type");
	REFUSED("moved", f.moved.gid_type = 3, "GID type");
	REFUSED("moved", f.moved.reserved[6] = 1, "reserved");
	REFUSED("take", f.take.answer = PVR_FRAME_TAKE_YES, "reserved");
	REFUSED("take", f.take.bound = 2, "neither 0 nor 1");
	ACCEPTED("take", f.take.bound = 1);
	REFUSED("taken", f.take.answer = PVR_FRAME_TAKE_NUM, "answer");
	REFUSED("taken", f.take.bound = 1, "reserved");
}

TEST_PLAIN(test_ack_with_a_wrong_field_is_refused)
{
	REFUSED("ack", f.ack.syndrome = PVR_FRAME_SYN_NUM, "syndrome");
	REFUSED("nak", f.ack.nak = PVR_FRAME_NAK_NUM, "NAK code");
	REFUSED("ack", f.ack.nak = PVR_FRAME_NAK_ACCESS, "NAK code");
	REFUSED("rnr", f.ack.rnr_ns = PVR_FRAME_RNR_MAX_NS + 1, "time");
	REFUSED("ack", f.ack.rnr_ns = 1, "time");
	REFUSED("ack", f.ack.offset = (1ull << 31) + 1, "offset");
	REFUSED("ack", f.ack.syndrome = PVR_FRAME_SYN_NO_QP, "offset");
	REFUSED("ack", f.ack.syndrome = PVR_FRAME_SYN_NO_GID, "offset");
	REFUSED("ack", f.ack.reserved = 1, "reserved");
	REFUSED("ack", f.ack.qpn = 1u << 24, "24 bits");
	REFUSED("ack", f.ack.psn = 1u << 24, "24 bits");
	ACCEPTED("ack", f.ack.syndrome = PVR_FRAME_SYN_PSN_SEQ_ERR);
	ACCEPTED("rnr", f.ack.rnr_ns = 0);
	ACCEPTED("rnr", f.ack.syndrome = PVR_FRAME_SYN_HELD);
	ACCEPTED("rnr", f.ack.syndrome = PVR_FRAME_SYN_PAGE);
}

TEST_PLAIN(test_answer_with_a_wrong_field_is_refused)
{
	REFUSED("atomic ack", f.atomic_ack.reserved = 1, "reserved");
	REFUSED("atomic ack", f.atomic_ack.qpn = 1u << 24, "24 bits");
	REFUSED("atomic ack", f.atomic_ack.psn = 1u << 24, "24 bits");
	REFUSED("read data", f.read_data.qpn = 1u << 24, "24 bits");
	REFUSED("read data", f.read_data.psn = 1u << 24, "24 bits");
	REFUSED("read data", f.read_data.offset = (1ull << 31) - 4095,
		"beyond the end of a message");
	REFUSED("read data", f.read_data.offset = UINT64_MAX, "beyond the end of a message");
}
