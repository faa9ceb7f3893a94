// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: RoCE frames from an Ethernet segment to an adapter with queue pairs of all
 * types.
 *
 * The first byte of an input has options, FEED_*. Records follow, each a struct record: a frame
 * whose addresses and queue pair are right, so that input gets past them. With REC_RAW the record's
 * payload bytes are the frame itself, and follow in the input.
 *
 * With FUZZ_SEEDS=FOLDER in the environment it writes the seeds there and exits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/objects.h"
#include "fake_guest.h"
#include "fg_segment.h"
#include "roce/frame.h"
#include "roce/gso.h"
#include "roce/opcode.h"

#define FEED_RECVS 0x01 /* with posted receive requests */
#define FEED_REQUESTS 0x02 /* with requests in flight */
#define FEED_TIME 0x04 /* time passes after the input */
#define FEED_MTU 0x08 /* a path MTU of 256 */
#define FEED_WHOLE 0x10 /* packets that are equally long share a frame */

#define REC_END 0x03 /* index of the end */
#define REC_ACK 0x04 /* asks for an ACK */
#define REC_SOLICITED 0x08
#define REC_RAW 0x10
#define REC_WAIT 0x20 /* time passes after the frame */
#define REC_ICRC 0x40 /* is wrong */
#define REC_LAST_REGION 0x80 /* the key is that of a region without rights */

/* In the syndrome of a datagram: it is to the group of the UD queue pair. */
#define TO_GROUP 1

struct record {
	uint8_t opcode, flags, syndrome, msn; /* syndrome and msn: of an AETH, else below */
	int16_t psn; /* from the first of the connection on */
	uint16_t payload; /* bytes */
	uint32_t length; /* of a RETH */
	uint64_t value; /* offset of an address, operand, original value, immediate data */
} __attribute__((packed));

static const uint8_t group[16] = { 0xff, 0x12, [12] = 1, 2, 3, 7 };
static const uint8_t group_mac[6] = { 0x33, 0x33, 1, 2, 3, 7 };

#define RECORDS_MAX 200
#define PEER_QPN 0x123u
#define PEER_MAC 9
#define CANARY 0x5a
#define PAGES 8 /* of each end's buffer */
#define RECVS 16
#define ROUNDS 100000 /* until the engine must rest */
#define GRH_BYTES 40

enum { RC, UC, UD, GSI, ENDS };

static struct {
	struct fg_segment *segment;
	struct fg_host *host;
	struct fg_guest *guest;
	struct fg_end end[ENDS];
	struct fg_buf canary;
	struct fg_mr local; /* canary, without remote access */
	uint8_t peer[16], peer_mac[6];
	uint32_t psn; /* the first one */
	bool whole;
	/* The frame that takes more packets; @count: of these */
	uint8_t frame[PVR_ROCE_GSO_MAX];
	size_t bytes, headers, segment_bytes;
	unsigned int count;
} w;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* ------------------------------------------------------------------------- the guest */

static void connect_end(struct fg_end *end, bool small)
{
	struct fg_conn conn = fg_conn_default;

	conn.mtu = small ? PVR_MTU_256 : PVR_MTU_4096;
	conn.timeout = 8;
	conn.retry_cnt = 2;
	conn.rnr_retry = 1;
	if (fg_qp_to_reset(&end->qp) || fg_qp_connect(&end->qp, &conn, w.peer, PEER_QPN))
		fg_die("cannot connect a queue pair");
}

static void post_recvs(struct fg_end *end)
{
	for (uint32_t i = 0; i < RECVS; i++) {
		const struct pvrdma_sge sge = fg_sge(&end->mr, i * 512, 8192);

		fg_post_recv(&end->qp, i, &sge, 1);
	}
}

static void post(enum pvrdma_wr_opcode opcode, uint32_t length)
{
	const struct pvrdma_sge sge = fg_sge(&w.end[RC].mr, 0, length);
	const struct fg_wr wr = {
		.wr_id = opcode,
		.opcode = opcode,
		.flags = PVR_SEND_SIGNALED,
		.sge = &sge,
		.num_sge = 1,
		.remote_addr = 0x1000,
		.rkey = 0x1234,
	};

	fg_post_send(&w.end[RC].qp, &wr);
}

/* 3 + 1 + 3 + 1 PSNs with the large path MTU. */
static void post_requests(void)
{
	post(PVRDMA_WR_SEND, 9000);
	post(PVRDMA_WR_ATOMIC_FETCH_AND_ADD, 8);
	post(PVRDMA_WR_RDMA_READ, 12000);
	post(PVRDMA_WR_RDMA_WRITE, 100);
	fg_run(w.host);
}

static void prepare(uint8_t options)
{
	connect_end(&w.end[RC], options & FEED_MTU);
	connect_end(&w.end[UC], options & FEED_MTU);
	for (int i = UD; i < ENDS; i++) {
		if (fg_qp_to_reset(&w.end[i].qp))
			fg_die("cannot reset a queue pair");
		fg_end_ready(&w.end[i]);
	}
	for (int i = 0; i < ENDS; i++) {
		fg_cq_drain(&w.end[i].scq);
		fg_cq_drain(&w.end[i].rcq);
		if (options & FEED_RECVS)
			post_recvs(&w.end[i]);
	}
	if (options & FEED_REQUESTS)
		post_requests();
}

/* Only memory that a key permits was written. */
static void check_canary(void)
{
	for (size_t i = 0; i < 4096; i++)
		if (w.canary.va[i] != CANARY)
			fg_die("memory without remote access was written to");
}

static void world_make(void)
{
	static const enum pvr_qp_type types[ENDS] = { PVR_QPT_RC, PVR_QPT_UC, PVR_QPT_UD,
						      PVR_QPT_GSI };
	struct fg_guest_config config;

	fg_default_ext = PVR_EXT_UC | PVR_EXT_MCAST;
	w.segment = fg_segment_create();
	fg_segment_rules(w.segment)->cut = true;
	w.host = fg_segment_host(w.segment, 0);
	w.guest = fg_guest_start(w.host, 1);
	fg_guest_config_init(&config, 1);
	config.mac[5] = PEER_MAC;
	memcpy(w.peer_mac, config.mac, sizeof(w.peer_mac));
	fg_gid_from_mac(w.peer, config.mac);
	for (int i = 0; i < ENDS; i++)
		fg_end_open_spec(&w.end[i], &w.guest->kernel,
				 &(struct fg_qp_spec){ .type = types[i] }, PAGES);
	if (fg_qp_attach(&w.end[UD].qp, group))
		fg_die("cannot attach a queue pair to a group");
	fg_buf_init(&w.canary, &w.guest->ram, 1, FG_SCATTERED);
	memset(w.canary.va, CANARY, 4096);
	if (fg_mr_create(&w.end[RC].pd, &w.canary, 0, &w.local))
		fg_die("cannot make a region");
	connect_end(&w.end[RC], false);
	w.psn = pvr_qp_get(w.guest->adapter, w.end[RC].qp.handle)->rq_psn;
}

/* ------------------------------------------------------------------------- the frames */

static struct pvr_roce_frame frame_of(const struct record *record)
{
	const struct fg_end *end = &w.end[record->flags & REC_END];
	const struct fg_mr *mr = record->flags & REC_LAST_REGION ? &w.local : &end->mr;
	struct pvr_roce_frame frame = {
		.net = PVR_ROCE_IPV6,
		.hop_limit = 64,
		.src_port = 0xc000,
		.opcode = record->opcode,
		.solicited = record->flags & REC_SOLICITED,
		.ack_request = record->flags & REC_ACK,
		.pkey = 0xffff,
		.dest_qpn = end->qp.qpn,
		.psn = (w.psn + (uint32_t)record->psn) & 0xffffff,
		.qkey = (record->flags & REC_END) == GSI ? FG_GSI_QKEY : FG_QKEY,
		.src_qpn = (record->flags & REC_END) == GSI ? 1 : PEER_QPN,
		.addr = mr->start + record->value,
		.rkey = mr->rkey,
		.length = record->length,
		.swap_add = record->value,
		.compare = record->value >> 8,
		.syndrome = record->syndrome,
		.msn = record->msn,
		.original = record->value,
		.inv_rkey = mr->rkey,
		.payload_bytes = record->payload,
	};

	memcpy(frame.dst_mac, w.guest->config.mac, sizeof(frame.dst_mac));
	memcpy(frame.src_mac, w.peer_mac, sizeof(frame.src_mac));
	memcpy(frame.src_gid, w.peer, sizeof(frame.src_gid));
	memcpy(frame.dst_gid, end->gid, sizeof(frame.dst_gid));
	memcpy(frame.imm, &record->value, sizeof(frame.imm));
	if (record->syndrome == TO_GROUP && pvr_roce_transport(record->opcode) == PVR_ROCE_UD) {
		memcpy(frame.dst_mac, group_mac, sizeof(frame.dst_mac));
		memcpy(frame.dst_gid, group, sizeof(frame.dst_gid));
		frame.dest_qpn = 0xffffff;
	}
	return frame;
}

/* The frame that is gathered arrives. */
static void flush(void)
{
	if (w.count > 1) {
		pvr_roce_gso_close(w.frame, w.headers, w.bytes);
		fg_segment_inject_whole(w.segment, 0, w.frame, w.bytes, (uint16_t)w.segment_bytes);
	} else if (w.count) {
		fg_segment_inject(w.segment, 0, w.frame, w.bytes);
	}
	w.count = 0;
}

/* Adds a packet to the frame that is gathered, or begins another one. */
static void gather(const uint8_t *packet, size_t bytes)
{
	size_t headers = pvr_roce_gso_headers(packet, bytes), segment = bytes - headers;

	if (w.count && (segment != w.segment_bytes || w.count == PVR_ROCE_GSO_SEGMENTS ||
			w.bytes + segment > sizeof(w.frame) ||
			!pvr_roce_gso_is_same_flow(w.frame, packet, headers)))
		flush();
	if (!w.count) {
		memcpy(w.frame, packet, headers);
		w.bytes = headers;
		w.headers = headers;
		w.segment_bytes = segment;
	}
	memcpy(w.frame + w.bytes, packet + headers, segment);
	w.bytes += segment;
	w.count++;
	if (!w.whole)
		flush();
}

static void inject(const struct record *record)
{
	uint8_t buf[PVR_ROCE_HEADER_MAX + PVR_ROCE_PAYLOAD_MAX + PVR_ROCE_TRAILER_MAX];
	const struct pvr_roce_opcode *op = pvr_roce_opcode(record->opcode);
	struct pvr_roce_frame frame = frame_of(record);
	size_t headers, bytes;

	if (!op || frame.payload_bytes > PVR_ROCE_PAYLOAD_MAX)
		return;
	if (!op->payload)
		frame.payload_bytes = 0;
	/* The mark of a router. */
	if (!(op->ext & PVR_ROCE_AETH))
		frame.traffic_class = record->msn & PVR_ROCE_ECN;
	headers = pvr_roce_build(buf, &frame);
	memset(buf + headers, 0xa5, frame.payload_bytes);
	bytes = pvr_roce_finish(buf, headers, &frame);
	if (record->flags & REC_ICRC)
		buf[bytes - 1] ^= 1;
	gather(buf, bytes);
}

/* Return: bytes of the raw frame behind the record. */
static size_t inject_raw(const struct record *record, const uint8_t *data, size_t size)
{
	size_t bytes = record->payload < size ? record->payload : size;
	uint8_t *copy = malloc(bytes + 1);

	if (!copy)
		fg_die("no memory");
	memcpy(copy, data, bytes);
	/* An exact size: a read behind its end is seen. */
	if (bytes)
		fg_segment_inject(w.segment, 0, copy, bytes);
	free(copy);
	return bytes;
}

static void rest(void)
{
	if (!fg_run_bounded(w.host, ROUNDS))
		fg_die("the engine does not rest after %d rounds", ROUNDS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t options = size ? data[0] : 0;
	size_t at = 1;

	prepare(options);
	w.whole = options & FEED_WHOLE;
	for (int i = 0; i < RECORDS_MAX && at + sizeof(struct record) <= size; i++) {
		struct record record;

		memcpy(&record, data + at, sizeof(record));
		at += sizeof(record);
		if (record.flags & REC_RAW)
			at += inject_raw(&record, data + at, size - at);
		else
			inject(&record);
		if (!(record.flags & REC_WAIT)) {
			rest();
			continue;
		}
		flush();
		fg_settle(w.host, FG_MS);
	}
	flush();
	if (options & FEED_TIME)
		fg_settle(w.host, FG_SEC);
	rest();
	check_canary();
	return 0;
}

/* ---------------------------------------------------------------------------- seeds */

static void save(const char *name, uint8_t options, const struct record *records, size_t num)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", getenv("FUZZ_SEEDS"), name);
	file = fopen(path, "wb");
	if (!file || fputc(options, file) == EOF ||
	    fwrite(records, sizeof(*records), num, file) != num || fclose(file))
		fg_die("cannot write %s", path);
}

#define SAVE(name, options, ...)                                                       \
	do {                                                                           \
		static const struct record records_[] = { __VA_ARGS__ };               \
		save(name, options, records_, sizeof(records_) / sizeof(records_[0])); \
	} while (0)

static void seeds_of_requests(void)
{
	SAVE("send", FEED_RECVS, { .opcode = 0x00, .payload = 4096 },
	     { .opcode = 0x01, .psn = 1, .payload = 4096 },
	     { .opcode = 0x03, .flags = REC_ACK, .psn = 2, .payload = 9 });
	SAVE("send-invalidate", FEED_RECVS, { .opcode = 0x17, .flags = REC_ACK, .payload = 9 });
	SAVE("send-rnr", FEED_TIME, { .opcode = 0x04, .flags = REC_ACK, .payload = 9 });
	SAVE("write", FEED_RECVS, { .opcode = 0x06, .payload = 4096, .length = 8193 },
	     { .opcode = 0x07, .psn = 1, .payload = 4096 },
	     { .opcode = 0x09, .flags = REC_ACK, .psn = 2, .payload = 1 });
	SAVE("write-refused", 0,
	     { .opcode = 0x0a, .flags = REC_LAST_REGION, .payload = 8, .length = 8 });
	SAVE("write-gap", 0,
	     { .opcode = 0x0a, .flags = REC_ACK, .psn = 3, .payload = 8, .length = 8 });
	SAVE("write-twice", 0, { .opcode = 0x0a, .flags = REC_ACK, .payload = 8, .length = 8 },
	     { .opcode = 0x0a, .flags = REC_ACK, .payload = 8, .length = 8 });
	SAVE("read", 0, { .opcode = 0x0c, .flags = REC_ACK, .length = 20000 },
	     { .opcode = 0x0c, .flags = REC_ACK, .psn = 2, .length = 100, .value = 8192 });
	SAVE("read-small-mtu", FEED_MTU, { .opcode = 0x0c, .flags = REC_ACK, .length = 30000 });
	SAVE("atomic", 0, { .opcode = 0x13, .flags = REC_ACK, .value = 8 },
	     { .opcode = 0x14, .flags = REC_ACK, .psn = 1, .value = 16 },
	     { .opcode = 0x14, .flags = REC_ACK, .psn = 1, .value = 16 });
	SAVE("flush", 0, { .opcode = 0x1c, .flags = REC_ACK, .length = 8 });
	SAVE("uc", FEED_RECVS, { .opcode = 0x20, .flags = UC, .payload = 4096 },
	     { .opcode = 0x22, .flags = UC, .psn = 1, .payload = 1 },
	     { .opcode = 0x2a, .flags = UC, .psn = 3, .payload = 8, .length = 8 });
	SAVE("ud", FEED_RECVS, { .opcode = 0x64, .flags = UD, .payload = 500 },
	     { .opcode = 0x65, .flags = UD | REC_SOLICITED, .payload = 0 },
	     { .opcode = 0x64, .flags = GSI, .payload = 256 });
	SAVE("send-whole", FEED_RECVS | FEED_MTU | FEED_WHOLE, { .opcode = 0x00, .payload = 256 },
	     { .opcode = 0x01, .psn = 1, .payload = 256 },
	     { .opcode = 0x01, .psn = 2, .payload = 256 },
	     { .opcode = 0x01, .psn = 3, .payload = 256 },
	     { .opcode = 0x01, .psn = 3, .payload = 256 },
	     { .opcode = 0x01, .flags = REC_ACK, .psn = 4, .payload = 256 });
	SAVE("write-whole", FEED_MTU | FEED_WHOLE,
	     { .opcode = 0x06, .payload = 256, .length = 2000 },
	     { .opcode = 0x07, .psn = 1, .payload = 256 },
	     { .opcode = 0x07, .psn = 2, .payload = 256 },
	     { .opcode = 0x07, .flags = REC_ICRC, .psn = 3, .payload = 256 },
	     { .opcode = 0x07, .psn = 4, .payload = 256 });
	SAVE("icrc", FEED_RECVS, { .opcode = 0x04, .flags = REC_ICRC, .payload = 9 });
}

static void seeds_of_congestion(void)
{
	SAVE("cnp", 0, { .opcode = 0x81 });
	SAVE("cnp-requester", FEED_REQUESTS | FEED_TIME, { .opcode = 0x81, .flags = REC_WAIT },
	     { .opcode = 0x81, .flags = REC_WAIT }, { .opcode = 0x81 },
	     { .opcode = 0x11, .psn = 2, .syndrome = 0x1f });
	SAVE("cnp-responder", FEED_MTU | FEED_TIME,
	     { .opcode = 0x0c, .flags = REC_ACK, .length = 30000 }, { .opcode = 0x81 },
	     { .opcode = 0x0c, .flags = REC_ACK, .psn = 118, .length = 30000 },
	     { .opcode = 0x81, .flags = REC_WAIT }, { .opcode = 0x81 });
	SAVE("cnp-uc", 0, { .opcode = 0x81, .flags = UC }, { .opcode = 0x81, .flags = UD });
	SAVE("marked", FEED_RECVS,
	     { .opcode = 0x0a, .flags = REC_ACK | REC_WAIT, .msn = 3, .payload = 8, .length = 8 },
	     { .opcode = 0x0a, .flags = REC_ACK, .msn = 3, .psn = 1, .payload = 8, .length = 8 },
	     { .opcode = 0x2a, .flags = UC, .msn = 3, .payload = 8, .length = 8 },
	     { .opcode = 0x64, .flags = UD, .msn = 3, .payload = 8 });
}

static void seeds_of_groups(void)
{
	SAVE("group", FEED_RECVS,
	     { .opcode = 0x64, .flags = UD, .syndrome = TO_GROUP, .payload = 500 },
	     { .opcode = 0x64, .flags = UD, .syndrome = TO_GROUP, .payload = 500 },
	     { .opcode = 0x65, .flags = UD, .syndrome = TO_GROUP, .psn = 1, .payload = 0 });
	SAVE("group-without-recvs", 0,
	     { .opcode = 0x64, .flags = UD, .syndrome = TO_GROUP, .payload = 4096 });
	SAVE("group-icrc", FEED_RECVS,
	     { .opcode = 0x64, .flags = UD | REC_ICRC, .syndrome = TO_GROUP, .payload = 9 });
	SAVE("group-gsi", FEED_RECVS,
	     { .opcode = 0x64, .flags = GSI, .syndrome = TO_GROUP, .payload = 256 });
}

static void seeds_of_answers(void)
{
	SAVE("ack", FEED_REQUESTS, { .opcode = 0x11, .psn = 1, .syndrome = 0x1f },
	     { .opcode = 0x11, .psn = 2, .syndrome = 0x1f },
	     { .opcode = 0x12, .psn = 3, .syndrome = 0x1f, .value = 77 },
	     { .opcode = 0x0d, .psn = 4, .syndrome = 0x1f, .payload = 4096 },
	     { .opcode = 0x0e, .psn = 5, .payload = 4096 },
	     { .opcode = 0x0f, .psn = 6, .syndrome = 0x1f, .payload = 3808 },
	     { .opcode = 0x11, .psn = 7, .syndrome = 0x1f });
	SAVE("read-data-whole", FEED_REQUESTS | FEED_MTU | FEED_WHOLE,
	     { .opcode = 0x12, .psn = 36, .syndrome = 0x1f, .value = 77 },
	     { .opcode = 0x0d, .psn = 37, .syndrome = 0x1f, .payload = 256 },
	     { .opcode = 0x0e, .psn = 38, .payload = 256 },
	     { .opcode = 0x0e, .psn = 39, .payload = 256 },
	     { .opcode = 0x0e, .psn = 40, .payload = 256 });
	SAVE("ack-of-all", FEED_REQUESTS | FEED_TIME,
	     { .opcode = 0x11, .psn = 7, .syndrome = 0x1f });
	SAVE("nak-sequence", FEED_REQUESTS | FEED_TIME,
	     { .opcode = 0x11, .psn = 1, .syndrome = 0x60 });
	SAVE("nak-access", FEED_REQUESTS, { .opcode = 0x11, .psn = 0, .syndrome = 0x62 });
	SAVE("rnr", FEED_REQUESTS | FEED_TIME, { .opcode = 0x11, .psn = 0, .syndrome = 0x2c });
	SAVE("silence", FEED_REQUESTS | FEED_TIME, { .opcode = 0x11, .psn = -1, .syndrome = 0x1f });
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	world_make();
	if (getenv("FUZZ_SEEDS")) {
		seeds_of_requests();
		seeds_of_answers();
		seeds_of_congestion();
		seeds_of_groups();
		exit(0);
	}
	return 0;
}
