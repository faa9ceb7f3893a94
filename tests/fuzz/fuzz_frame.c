// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * libFuzzer target: the bytes that another daemon sends, on an incoming or outgoing
 * connection, to an engine with a guest and queue pairs of all types.
 *
 * The first bytes of an input are options: FEED_* flags, the maximum number of bytes per
 * read, how many bytes of the responses the peer accepts, and for FEED_BOTH the number of
 * bytes of the first stream, in units of SPLIT_UNIT. The rest is the stream, or both.
 * EPOCH in it is replaced by the epoch of our queue pair's requests, which differs
 * between inputs.
 *
 * With FUZZ_SEEDS=FOLDER in the environment it writes the seeds there and exits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/adapter.h"
#include "fake_guest.h"
#include "fuzz_nic.h"
#include "pipe.h"
#include "path/pipe/frame.h"

#define FEED_ANSWERS 0x01 /* on our outgoing connection */
#define FEED_SRQ 0x02 /* with posted receive requests */
#define FEED_TIME 0x04 /* time passes after the input */
#define FEED_NIC 0x08 /* the stream has an RDMA NIC */
#define FEED_BOTH 0x10 /* both connections: requests, then answers */
#define FEED_STOPPED 0x20 /* the adapter is stopped meanwhile */
#define FEED_HEAD 4 /* bytes before the stream */
#define SPLIT_UNIT 8u
#define EPOCH 0xfee1deadu
#define TOKEN 0x7c /* each byte */
#define CHUNK 65536u
#define PEER_QPN 0x123u
#define CANARY 0x5a
#define ROUNDS 4000
#define PAGES 32 /* of each end's buffer */
#define PENALTY_NS (60 * FG_SEC) /* after an error of the connection */
#define RECVS 16

static const uint8_t group[16] = { 0xff, 0x12, [15] = 7 };

/* The stream's opaque pointer. */
struct feed {
	struct fuzz_nic nic; /* first: operations of its NIC take the same pointer */
	const uint8_t *data;
	size_t left, limit;
	size_t room; /* bytes that the peer accepts; SIZE_MAX: all */
	bool wants;
	uint32_t epoch; /* of the last frame sent */
	bool exposes;
};

static const struct pvr_gid_ops gid_ops = { 0 };
static const struct pvr_host_ops host_ops = { 0 };

static struct {
	struct fg_host *host;
	struct fg_guest *guest;
	struct pvr_host *peer_host;
	struct fg_end rc, uc, ud;
	struct fg_buf canary, run;
	struct fg_mr exposed; /* run */
	uint8_t peer[16];
} w;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* ------------------------------------------------------------------------ the stream */

static ssize_t feed_recv(void *opaque, const struct iovec *iov, int count)
{
	struct feed *feed = opaque;
	size_t max = feed->limit ? feed->limit : SIZE_MAX, done = 0, n;

	for (int i = 0; i < count && feed->left && done < max; i++) {
		n = iov[i].iov_len < feed->left ? iov[i].iov_len : feed->left;
		n = n < max - done ? n : max - done;
		memcpy(iov[i].iov_base, feed->data, n);
		feed->data += n;
		feed->left -= n;
		done += n;
	}
	return (ssize_t)done;
}

/* The first fragment sent begins with a frame, if nothing was pending. */
static void read_epoch(struct feed *feed, const struct iovec *iov)
{
	const uint8_t *bytes = iov->iov_base;
	struct pvr_frame_request request;

	for (size_t at = 0; at + sizeof(request) <= iov->iov_len; at += request.frame.size) {
		memcpy(&request, bytes + at, sizeof(request));
		if (request.frame.type == PVR_FRAME_REQUEST)
			feed->epoch = request.epoch;
		if (request.frame.size < sizeof(request.frame))
			break;
	}
}

static ssize_t feed_send(void *opaque, const struct iovec *iov, int count)
{
	struct feed *feed = opaque;
	size_t done = 0, n;

	read_epoch(feed, iov);
	for (int i = 0; i < count && feed->room; i++) {
		n = iov[i].iov_len < feed->room ? iov[i].iov_len : feed->room;
		if (feed->room != SIZE_MAX)
			feed->room -= n;
		done += n;
	}
	return (ssize_t)done;
}

static void feed_want(void *opaque)
{
	((struct feed *)opaque)->wants = true;
}

static const struct pvr_stream_ops plain_ops = {
	.send = feed_send,
	.recv = feed_recv,
	.want_output = feed_want,
};
static const struct pvr_stream_ops nic_ops = {
	.send = feed_send,
	.recv = feed_recv,
	.want_output = feed_want,
	.expose = fuzz_nic_expose,
	.revoke = fuzz_nic_revoke,
	.read = fuzz_nic_read,
	.rdma_read_poll = fuzz_nic_rdma_read_poll,
	.rdma_read_cancel = fuzz_nic_rdma_read_cancel,
};
static const struct pvr_stream_limits limits = { .chunk = CHUNK,
						 .piggyback_ack = true,
						 .qp_gone = true,
						 .atomic_write = true,
						 .xrc = true,
						 .page = true,
						 .fault = true,
						 .move = true,
						 .address = true,
						 .refer = true };

static const struct pvr_stream_ops *ops_of(const struct feed *feed)
{
	return feed->exposes ? &nic_ops : &plain_ops;
}

/* The stream ends, and its NIC completes nothing more. */
static bool is_over(const struct feed *feed)
{
	return !feed->left && !feed->nic.rdma_read;
}

/* ------------------------------------------------------------------------- the guest */

static void connect_end(struct fg_end *end)
{
	struct fg_conn conn = fg_conn_default;

	conn.mtu = PVR_MTU_4096;
	if (fg_qp_to_reset(&end->qp) || fg_qp_connect(&end->qp, &conn, w.peer, PEER_QPN))
		fg_die("cannot connect a queue pair");
}

static void post_recvs(struct fg_end *end)
{
	for (uint32_t i = 0; i < RECVS; i++) {
		const struct pvrdma_sge sge = fg_sge(&end->mr, i * 4096, 8192);

		fg_post_recv(&end->qp, i, &sge, 1);
	}
}

/* A request that the stream may respond to. */
static void post_requests(bool exposed)
{
	const struct pvrdma_sge sge = fg_sge(exposed ? &w.exposed : &w.rc.mr, 0, 70000);
	const struct pvrdma_sge word = fg_sge(&w.rc.mr, 0, 8);
	const struct {
		enum pvrdma_wr_opcode opcode;
		const struct pvrdma_sge *sge;
	} requests[] = {
		{ PVRDMA_WR_SEND, &sge },
		{ PVRDMA_WR_RDMA_READ, &sge },
		{ PVRDMA_WR_ATOMIC_CMP_AND_SWP, &word },
		{ PVRDMA_WR_RDMA_WRITE, &sge },
	};

	for (uint32_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		const struct fg_wr wr = {
			.wr_id = i,
			.opcode = requests[i].opcode,
			.flags = PVR_SEND_SIGNALED,
			.sge = requests[i].sge,
			.num_sge = 1,
			.remote_addr = 0x1000,
			.rkey = 0x1234,
		};

		fg_post_send(&w.rc.qp, &wr);
	}
	fg_run(w.host);
}

static void prepare(bool recvs)
{
	struct fg_end *const ends[] = { &w.rc, &w.uc, &w.ud };

	/* A response may have reported that the peer is gone. */
	if (pvr_engine_set_gid(w.host->engine, "default", w.peer, PVR_GID_TYPE_ROCE_V2,
			       PVR_GID_AT_HOST, w.peer_host))
		fg_die("cannot set a GID");
	connect_end(&w.rc);
	connect_end(&w.uc);
	if (fg_qp_to_reset(&w.ud.qp))
		fg_die("cannot reset a queue pair");
	fg_end_ready(&w.ud);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		fg_cq_drain(&ends[i]->scq);
		fg_cq_drain(&ends[i]->rcq);
		if (recvs)
			post_recvs(ends[i]);
	}
}

/* Only registered memory was written. */
static void check_canary(void)
{
	for (size_t i = 0; i < 4096; i++)
		if (w.canary.va[i] != CANARY)
			fg_die("memory that no key names was written to");
}

static void end_open(struct fg_end *end, enum pvr_qp_type type)
{
	fg_end_open_spec(end, &w.guest->kernel, &(struct fg_qp_spec){ .type = type }, PAGES);
}

static void world_make(void)
{
	struct fg_guest_config config;
	fg_default_ext = PVR_EXT_UC | PVR_EXT_MCAST;
	w.host = fg_host_create();
	pvr_engine_set_pipe(w.host->engine, &gid_ops, &host_ops, NULL);
	fg_guest_config_init(&config, 1);
	w.guest = fg_guest_start(w.host, 1);
	w.peer_host = pvr_host_get(w.host->engine, "peer");
	config.mac[5] = 9;
	fg_gid_from_mac(w.peer, config.mac);
	end_open(&w.rc, PVR_QPT_RC);
	end_open(&w.uc, PVR_QPT_UC);
	end_open(&w.ud, PVR_QPT_UD);
	fg_qp_attach(&w.ud.qp, group);
	fg_buf_init(&w.canary, &w.guest->ram, 1, FG_SCATTERED);
	memset(w.canary.va, CANARY, 4096);
	fg_buf_init(&w.run, &w.guest->ram, PAGES, FG_LINEAR);
	if (fg_mr_create(&w.rc.pd, &w.run, FG_ACCESS_ALL, &w.exposed))
		fg_die("cannot make a region");
}

/* --------------------------------------------------------------------------- a run */

static struct pvr_rsp_conn *open_responder(struct feed *feed)
{
	struct pvr_rsp_conn *in =
		pvr_rsp_conn_create(w.peer_host, PVR_PIPE_TCP, 0, ops_of(feed), feed, &limits);

	if (!in)
		fg_die("no memory");
	return in;
}

/* One call of input. Return: whether another can move more. */
static bool step_responder(struct pvr_rsp_conn *in, struct feed *feed, enum pvr_input *result)
{
	struct pvr_input_error err;

	if (*result == PVR_INPUT_BROKEN || (*result == PVR_INPUT_IDLE && is_over(feed)))
		return false;
	/* The embedder waits; here the time is already over. */
	if (*result == PVR_INPUT_STALLED)
		w.host->now += 100 * FG_MS;
	*result = pvr_rsp_conn_input(in, &err);
	if (*result != PVR_INPUT_OUTPUT)
		return true;
	feed->room = SIZE_MAX;
	*result = pvr_rsp_conn_output(in) ? PVR_INPUT_MORE : PVR_INPUT_BROKEN;
	return *result == PVR_INPUT_MORE;
}

static void feed_requests(struct feed *feed)
{
	struct pvr_rsp_conn *in = open_responder(feed);
	enum pvr_input result = PVR_INPUT_MORE;

	for (int i = 0; i < ROUNDS && step_responder(in, feed, &result); i++)
		;
	pvr_rsp_conn_destroy(in);
}

static void patch_epoch(uint8_t *data, size_t size, uint32_t epoch)
{
	const uint32_t magic = EPOCH;

	for (size_t i = 0; i + 4 <= size; i++)
		if (!memcmp(data + i, &magic, 4))
			memcpy(data + i, &epoch, 4);
}

/* The stream begins after our requests, whose epoch it repeats. */
static void open_requester(struct feed *feed, uint8_t *data)
{
	size_t size = feed->left;

	feed->left = 0;
	pvr_req_conn_up(w.peer_host, PVR_PIPE_TCP, 0, ops_of(feed), feed, &limits);
	post_requests(feed->exposes);
	/* Two of its frames may be GID_REPLY or REFERRAL. */
	for (int i = 0; i < 2; i++)
		pvr_req_conn_gid_query(w.peer_host, PVR_PIPE_TCP, 0, "default", w.peer);
	patch_epoch(data, size, feed->epoch);
	feed->left = size;
}

static bool step_requester(struct feed *feed, enum pvr_input *result)
{
	struct pvr_input_error err;

	if (*result == PVR_INPUT_BROKEN || (*result == PVR_INPUT_IDLE && is_over(feed)))
		return false;
	*result = pvr_req_conn_input(w.peer_host, PVR_PIPE_TCP, 0, &err);
	if (feed->wants) {
		feed->wants = false;
		feed->room = SIZE_MAX;
		pvr_req_conn_output(w.peer_host, PVR_PIPE_TCP, 0);
	}
	return true;
}

static void close_requester(void)
{
	fg_run(w.host);
	pvr_req_conn_down(w.peer_host, PVR_PIPE_TCP, 0);
}

static void feed_answers(struct feed *feed, uint8_t *data)
{
	enum pvr_input result = PVR_INPUT_MORE;

	open_requester(feed, data);
	for (int i = 0; i < ROUNDS && step_requester(feed, &result); i++)
		;
	close_requester();
}

/* Both connections at a time: the first @split bytes are requests, the others answers. */
static void feed_both(struct feed *requests, struct feed *answers, size_t split)
{
	enum pvr_input responder = PVR_INPUT_MORE, requester = PVR_INPUT_MORE;
	size_t all = requests->left;
	struct pvr_rsp_conn *in;
	bool more = true;

	split = split < all ? split : all;
	*answers = *requests;
	requests->left = split;
	answers->data += split;
	answers->left = all - split;
	in = open_responder(requests);
	open_requester(answers, (uint8_t *)(uintptr_t)answers->data);
	for (int i = 0; i < ROUNDS && more; i++) {
		more = step_responder(in, requests, &responder);
		more |= step_requester(answers, &requester);
		fg_run_bounded(w.host, 100);
	}
	close_requester();
	pvr_rsp_conn_destroy(in);
}

/* A state with the token TOKEN has been read. */
static void stop_adapter(void)
{
	struct pvr_adapter *adapter = w.guest->adapter;

	if (pvr_adapter_stop(adapter))
		fg_die("the adapter does not stop");
	memset(adapter->move.token, TOKEN, sizeof(adapter->move.token));
	adapter->move.ran = false;
}

/* The peer may have taken it. */
static void start_adapter(void)
{
	struct pvr_adapter *adapter = w.guest->adapter;

	if (pvr_adapter_run_state(adapter) == PVR_RUN_MOVED && pvr_adapter_reclaim(adapter))
		fg_die("the adapter cannot be reclaimed");
	if (pvr_adapter_start(adapter))
		fg_die("the adapter does not start");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct feed feed, answers;
	uint8_t *copy;

	if (size < FEED_HEAD)
		return 0;
	copy = malloc(size);
	if (!copy)
		fg_die("no memory");
	memcpy(copy, data, size);
	memset(&feed, 0, sizeof(feed));
	memset(&answers, 0, sizeof(answers));
	feed.room = SIZE_MAX;
	feed.exposes = copy[0] & FEED_NIC;
	if (feed.exposes)
		w.host->now += PENALTY_NS;
	feed.data = copy + FEED_HEAD;
	feed.left = size - FEED_HEAD;
	feed.limit = copy[1];
	if (copy[2])
		feed.room = copy[2] * 64u;
	prepare(copy[0] & FEED_SRQ);
	if (copy[0] & FEED_STOPPED)
		stop_adapter();
	if (copy[0] & FEED_BOTH)
		feed_both(&feed, &answers, copy[3] * SPLIT_UNIT);
	else if (copy[0] & FEED_ANSWERS)
		feed_answers(&feed, copy + FEED_HEAD);
	else
		feed_requests(&feed);
	if (copy[0] & FEED_STOPPED)
		start_adapter();
	if (copy[0] & FEED_TIME)
		fg_settle(w.host, FG_SEC);
	fg_run(w.host);
	fuzz_nic_check(&feed.nic);
	fuzz_nic_check(&answers.nic);
	check_canary();
	free(copy);
	return 0;
}

/* ---------------------------------------------------------------------------- seeds */

/* The one that is being written. */
static struct {
	uint8_t data[70000];
	size_t size;
} seed;

/* The header of @frame_, in the fabric that seed_begin() declares, or in none. */
#define HEAD(frame_, type_) .frame = { .size = sizeof(frame_), .type = PVR_FRAME_##type_ }
#define FABRIC_HEAD(frame_, type_) \
	.frame = { .size = sizeof(frame_), .type = PVR_FRAME_##type_, .fabric = 1 }
#define ADD(frame) add(&(frame), sizeof(frame))

static void add(const void *bytes, size_t size)
{
	if (size > sizeof(seed.data) - seed.size)
		fg_die("a seed that is too long");
	memcpy(seed.data + seed.size, bytes, size);
	seed.size += size;
}

static void seed_begin(uint8_t flags)
{
	const struct pvr_frame_fabric fabric = { FABRIC_HEAD(fabric, FABRIC), .name = "default" };

	memset(&seed, 0, sizeof(seed));
	seed.data[0] = flags;
	seed.size = FEED_HEAD;
	if (!(flags & FEED_ANSWERS))
		ADD(fabric);
}

/* In the file "<kind>" or, unless @name is NULL, "<kind>-<name>". */
static void save(const char *kind, const char *name)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), name ? "%s/%s-%s" : "%s/%s", getenv("FUZZ_SEEDS"), kind, name);
	file = fopen(path, "wb");
	if (!file || fwrite(seed.data, seed.size, 1, file) != 1 || fclose(file))
		fg_die("cannot write %s", path);
}

static struct pvr_frame_request request(const struct fg_end *to, uint8_t op, uint32_t psn,
					uint32_t len)
{
	struct pvr_frame_request request = {
		FABRIC_HEAD(request, REQUEST),
		.op = op,
		.gid_type = PVR_GID_TYPE_ROCE_V2,
		.epoch = 1,
		.src_qpn = PEER_QPN,
		.dst_qpn = to->qp.qpn,
		.psn = psn,
		.psns = 1,
		.rkey = to->mr.rkey,
		.addr = to->mr.start,
		.length = len,
		.chunk = op >= PVR_FRAME_OP_CMP_SWAP ? 0 : len,
	};

	request.frame.flags = PVR_REQUEST_F_LAST | (to == &w.uc ? PVR_REQUEST_F_UC : 0);
	if (op == PVR_FRAME_OP_FLUSH)
		request.swap = htole64(PVR_FLUSH_GLOBAL | PVR_FLUSH_MR << 8);
	if (op <= PVR_FRAME_OP_WRITE_IMM)
		request.frame.size += len;
	memcpy(request.sgid, w.peer, 16);
	memcpy(request.dgid, to->gid, 16);
	return request;
}

static void add_request(const struct fg_end *to, uint8_t op, uint32_t psn, uint32_t len)
{
	static const uint8_t payload[8192];
	const struct pvr_frame_request frame = request(to, op, psn, len);

	ADD(frame);
	if (op <= PVR_FRAME_OP_WRITE_IMM)
		add(payload, len);
}

static uint32_t length_of(uint8_t op)
{
	if (op < PVR_FRAME_OP_CMP_SWAP)
		return 64;
	return op < PVR_FRAME_OP_ATOMIC_WRITE ? 8 : 0;
}

static void seeds_of_requests(uint32_t psn)
{
	static const char *const names[] = { "send",	     "send-imm", "send-inv", "write",
					     "write-imm",    "read",	 "cmp-swap", "fetch-add",
					     "atomic-write", "flush" };

	static_assert(sizeof(names) / sizeof(names[0]) == PVR_FRAME_OP_NUM, "a name is missing");
	for (uint32_t op = 0; op < PVR_FRAME_OP_NUM; op++) {
		seed_begin(FEED_SRQ);
		for (uint32_t i = 0; i < 3; i++)
			add_request(&w.rc, op, psn + i, length_of(op));
		save("request", names[op]);
	}
	seed_begin(FEED_SRQ);
	add_request(&w.uc, PVR_FRAME_OP_SEND, psn, 64);
	add_request(&w.uc, PVR_FRAME_OP_WRITE, psn + 1, 5000);
	save("request", "uc");
	/* First without posted requests, then a fragment out of order. */
	seed_begin(0);
	add_request(&w.rc, PVR_FRAME_OP_SEND, psn, 64);
	add_request(&w.rc, PVR_FRAME_OP_SEND, psn + 5, 64);
	save("request", "rnr");
	seed_begin(FEED_SRQ);
	seed.data[1] = 100;
	add_request(&w.rc, PVR_FRAME_OP_SEND, psn, 8192);
	save("request", "in-bits");
	/* The second fragment gets no response. */
	seed_begin(FEED_SRQ | FEED_STOPPED);
	add_request(&w.rc, PVR_FRAME_OP_SEND, psn, 64);
	add_request(&w.rc, PVR_FRAME_OP_READ, psn + 1, 64);
	save("request", "held");
	/* Responses that the peer does not accept at once. */
	seed_begin(FEED_SRQ | FEED_TIME);
	seed.data[2] = 1;
	for (uint32_t i = 0; i < 4; i++)
		add_request(&w.rc, PVR_FRAME_OP_READ, psn + 2 * i, 8192);
	save("request", "blocked");
}

static void add_exposed(uint8_t op, uint32_t psn, uint32_t rkey, uint32_t parts)
{
	struct pvr_frame_request frame = request(&w.rc, op, psn, 8192);
	const struct pvr_frame_rndv_seg rndv = { 0x10000, 7, 8192 / parts };

	frame.frame.size = (uint32_t)(sizeof(frame) + parts * sizeof(rndv));
	frame.frame.flags |= PVR_FRAME_F_RNDV;
	frame.rkey = rkey;
	ADD(frame);
	for (uint32_t i = 0; i < parts; i++)
		ADD(rndv);
}

static void add_rndv_done(uint32_t count)
{
	const struct pvr_frame_rndv_done frame = { HEAD(frame, RNDV_DONE), .count = count };

	ADD(frame);
}

/* Into one contiguous range, into several, and into one that the NIC refuses. */
static void seeds_of_rndvs(uint32_t psn)
{
	struct pvr_frame_request read = request(&w.rc, PVR_FRAME_OP_READ, psn, CHUNK);
	struct pvr_frame_rndv_seg rndv = { 0xbad, 7, 8192 };

	seed_begin(FEED_SRQ | FEED_NIC);
	add_exposed(PVR_FRAME_OP_WRITE, psn, w.exposed.rkey, 1);
	add_exposed(PVR_FRAME_OP_WRITE, psn + 1, w.rc.mr.rkey, 8);
	add_exposed(PVR_FRAME_OP_SEND, psn + 2, 0, 2);
	add_exposed(PVR_FRAME_OP_SEND, psn + 2, 0, 2);
	add_exposed(PVR_FRAME_OP_SEND, psn + 7, 0, 1);
	save("request", "lent");
	add_exposed(PVR_FRAME_OP_WRITE, psn + 3, w.exposed.rkey, 1);
	memcpy(seed.data + seed.size - sizeof(rndv), &rndv, sizeof(rndv));
	save("request", "lent-forbidden");
	/* The response is sent by rendezvous. */
	seed_begin(FEED_NIC);
	read.rkey = w.exposed.rkey;
	ADD(read);
	add_rndv_done(1);
	save("request", "read-lent");
	add_rndv_done(1);
	save("returned-twice", NULL);
}

static void add_fault(const struct fg_end *to, uint8_t flags, enum pvr_frame_fault fault,
		      uint32_t psn)
{
	struct pvr_frame_request frame = request(to, PVR_FRAME_OP_SEND, psn, 0);

	frame.frame.type = PVR_FRAME_FAULT;
	frame.frame.flags = flags;
	frame.fault = htole16(fault);
	frame.addr = 0;
	frame.rkey = to == &w.ud ? FG_QKEY : 0;
	ADD(frame);
}

static void seeds_of_faults(uint32_t psn)
{
	seed_begin(FEED_SRQ);
	add_request(&w.rc, PVR_FRAME_OP_SEND, psn, 64);
	add_fault(&w.rc, 0, PVR_FRAME_FAULT_OPERATION, psn + 1);
	add_fault(&w.rc, 0, PVR_FRAME_FAULT_OPERATION, psn + 1);
	save("fault", NULL);
	seed_begin(FEED_SRQ);
	add_fault(&w.rc, 0, PVR_FRAME_FAULT_RECV_PROTECTION, psn);
	add_fault(&w.uc, PVR_REQUEST_F_UC, PVR_FRAME_FAULT_RECV_LENGTH, psn);
	add_fault(&w.ud, PVR_REQUEST_F_UD, PVR_FRAME_FAULT_RECV_FATAL, 0);
	save("fault", "recv");
}

static void seeds_of_datagrams(void)
{
	struct pvr_frame_datagram dgram = {
		FABRIC_HEAD(dgram, DATAGRAM),	  .has_imm = 1,
		.gid_type = PVR_GID_TYPE_ROCE_V2, .src_qpn = 5,
		.dst_qpn = w.ud.qp.qpn,		  .qkey = FG_QKEY,
	};

	memcpy(dgram.sgid, w.peer, 16);
	memcpy(dgram.dgid, w.ud.gid, 16);
	seed_begin(FEED_SRQ);
	ADD(dgram);
	dgram.dst_qpn = 0xffffff;
	memcpy(dgram.dgid, group, 16);
	ADD(dgram);
	save("datagram", NULL);
}

static void seeds_of_questions(void)
{
	const struct pvr_frame_ping ping = { HEAD(ping, PING) };
	struct pvr_frame_gid_query where = { FABRIC_HEAD(where, GID_REPLY) };
	const struct pvr_frame_close close = { HEAD(close, CLOSE), .text = "over" };

	seed_begin(FEED_ANSWERS | FEED_TIME);
	ADD(where);
	save("answer", "here");
	where.frame.type = PVR_FRAME_GID_QUERY;
	memcpy(where.gid, w.rc.gid, 16);
	seed_begin(0);
	ADD(ping);
	ADD(where);
	ADD(close);
	save("questions", NULL);
}

/* Valid, but belongs to the handshake. */
static void seeds_of_queue_pairs(void)
{
	const struct pvr_frame_verbs_qp qp = {
		HEAD(qp, VERBS_QP),
		.gid = { 0xfe, 0x80, [15] = 1 },
		.qpn = 17,
		.psn = 0xffffff,
		.mtu = 3,
		.buffers = 16,
		.buffer_size = 65536,
	};

	seed_begin(0);
	ADD(qp);
	save("queue-pair", NULL);
	seed_begin(FEED_ANSWERS);
	ADD(qp);
	save("answer", "queue-pair");
}

/* QP_GONE of a connected peer, and of an unknown one. */
static void seed_of_qp_gone(void)
{
	struct pvr_frame_qp_gone left = {
		FABRIC_HEAD(left, QP_GONE),
		.src_qpn = PEER_QPN,
		.dst_qpn = w.rc.qp.qpn,
		.gid_type = PVR_GID_TYPE_ROCE_V2,
	};

	memcpy(left.sgid, w.peer, 16);
	memcpy(left.dgid, w.rc.gid, 16);
	seed_begin(0);
	ADD(left);
	left.src_qpn++;
	ADD(left);
	save("left", NULL);
}

/* The peer gives away what it has, and takes what it asks for. */
static void seeds_of_moves(void)
{
	struct pvr_frame_moved moved = {
		FABRIC_HEAD(moved, MOVED),
		.gid_type = PVR_GID_TYPE_ROCE_V2,
	};
	struct pvr_frame_referral referral = {
		FABRIC_HEAD(referral, REFERRAL),
		.gid_type = PVR_GID_TYPE_ROCE_V2,
		.name = "host3",
		.address = "192.0.2.3:7471",
	};
	struct pvr_frame_address address = { FABRIC_HEAD(address, ADDRESS),
					     .address = "192.0.2.3:7471" };
	struct pvr_frame_take take = { FABRIC_HEAD(take, TAKE) };

	memcpy(moved.gid, w.peer, 16);
	seed_begin(0);
	ADD(moved);
	save("moved", NULL);
	memcpy(referral.gid, w.peer, 16);
	seed_begin(FEED_ANSWERS | FEED_TIME);
	ADD(referral);
	ADD(referral);
	save("answer", "referral");
	memcpy(take.mac, w.guest->config.mac, sizeof(take.mac));
	memset(take.token, TOKEN, sizeof(take.token));
	seed_begin(FEED_STOPPED);
	ADD(address);
	ADD(take);
	take.bound = 1;
	ADD(take);
	take.token[0] ^= 1;
	ADD(take);
	save("take", NULL);
	take.frame.type = PVR_FRAME_TAKEN;
	take.bound = 0;
	take.answer = PVR_FRAME_TAKE_YES;
	seed_begin(FEED_ANSWERS);
	ADD(take);
	save("answer", "taken");
}

/* Of frames to the RC queue pair: the same members, in three types. */
#define TO_RC(frame_, type_, psn_) \
	FABRIC_HEAD(frame_, type_), .epoch = EPOCH, .qpn = w.rc.qp.qpn, .psn = (psn_)

static void add_ack(uint8_t syndrome, uint32_t psn)
{
	struct pvr_frame_ack frame = {
		TO_RC(frame, ACK, psn),
		.syndrome = syndrome,
		.rnr_ns = syndrome == PVR_FRAME_SYN_RNR ? 1000 : 0,
	};

	memcpy(frame.gid, w.rc.gid, 16);
	ADD(frame);
}

static void seeds_of_syndromes(uint32_t psn)
{
	static const char *const names[] = { "ack",    "rnr",  "nak",  "sequence",
					     "nobody", "gone", "page", "held" };

	for (uint32_t syndrome = 0; syndrome < PVR_FRAME_SYN_NUM; syndrome++) {
		seed_begin(FEED_ANSWERS);
		add_ack(syndrome, psn + (syndrome == PVR_FRAME_SYN_ACK));
		save("answer", names[syndrome]);
	}
}

/* Of the READ: @size bytes of @payload, which are data or where they are. */
static void add_read_data(uint32_t psn, uint8_t flags, uint32_t chunk, const void *payload,
			  uint32_t size)
{
	struct pvr_frame_read_data data = { TO_RC(data, READ_DATA, psn), .chunk = chunk };

	data.frame.size += size;
	data.frame.flags = flags;
	memcpy(data.gid, w.rc.gid, 16);
	ADD(data);
	add(payload, size);
}

/* The requests of post_requests() use 18 PSNs for 70000 bytes. */
static void seed_of_data(uint32_t psn)
{
	static const uint8_t payload[4096];
	struct pvr_frame_atomic_ack atomic = { TO_RC(atomic, ATOMIC_ACK, psn + 36), .value = 7 };

	memcpy(atomic.gid, w.rc.gid, 16);
	seed_begin(FEED_ANSWERS);
	add_ack(PVR_FRAME_SYN_ACK, psn + 18);
	add_read_data(psn + 18, 0, sizeof(payload), payload, sizeof(payload));
	ADD(atomic);
	save("answer", "data");
}

/* Of post_requests() with all rendezvous: a fragment of the SEND, and one of the WRITE. */
static void seed_of_rndv_data(uint32_t psn)
{
	const struct pvr_frame_rndv_seg rndv = { 0x10000, 7, CHUNK };

	seed_begin(FEED_ANSWERS | FEED_NIC);
	add_rndv_done(1);
	add_ack(PVR_FRAME_SYN_ACK, psn + 18);
	add_read_data(psn + 18, PVR_FRAME_F_RNDV, CHUNK, &rndv, sizeof(rndv));
	add_rndv_done(2);
	save("answer", "lent");
}

/* The peer sends requests, and answers ours meanwhile. */
static void seeds_of_both(uint32_t rq_psn, uint32_t sq_psn)
{
	seed_begin(FEED_BOTH | FEED_SRQ);
	add_request(&w.rc, PVR_FRAME_OP_SEND, rq_psn, 64);
	add_request(&w.rc, PVR_FRAME_OP_WRITE, rq_psn + 1, 64);
	seed.data[3] = (uint8_t)((seed.size - FEED_HEAD) / SPLIT_UNIT);
	add_ack(PVR_FRAME_SYN_ACK, sq_psn + 18);
	save("both", NULL);
	seed.data[0] |= FEED_NIC;
	seed.data[1] = 60;
	save("both", "in-bits");
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct pvr_qp_attr attr;

	(void)argc;
	(void)argv;
	world_make();
	if (!getenv("FUZZ_SEEDS"))
		return 0;
	prepare(false);
	if (fg_qp_query(&w.rc.qp, &attr))
		fg_die("cannot query a queue pair");
	seeds_of_requests(attr.rq_psn);
	seeds_of_faults(attr.rq_psn);
	seeds_of_datagrams();
	seeds_of_questions();
	seeds_of_queue_pairs();
	seed_of_qp_gone();
	seeds_of_moves();
	seeds_of_syndromes(attr.sq_psn);
	seed_of_data(attr.sq_psn);
	seeds_of_rndvs(attr.rq_psn);
	seed_of_rndv_data(attr.sq_psn);
	seeds_of_both(attr.rq_psn, attr.sq_psn);
	exit(0);
}
