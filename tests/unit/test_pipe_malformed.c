// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Connected queue pairs of two hosts, and invalid frames for them. */
#include "hosts.h"
#include "fg_malformed.h"
#include "core/objects.h"
#include "path/pipe/sq.h"

/* ------------------------------------------------------------------ forged answers */

TEST_EXT(PVR_EXT_UC | PVR_EXT_DB_SUPPRESS)

T_SETUP_HOSTS(hosts, 2)
{
	hosts_connect(env, &env->a, &env->b, FG_END_PAGES);
}

/* a has sent a WRITE and a READ that do not arrive; b's host answers them with forged frames. */
struct forgery {
	struct t_env *env;
	struct pvr_route route;
	struct pvr_frame_ack ack; /* of no PSN yet */
};

static void forgery_init(struct forgery *forgery, struct t_env *env)
{
	struct pvr_qp *qp = t_device_qp(&env->a);

	forgery->env = env;
	fg_fill(env->a.buf.va, env->a.buf.size, 3);
	hosts_hold(env);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 3000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 8192, &env->b.mr, 0, 3000);
	fg_wire_run(env->wire);
	forgery->route = qp->pipe_sq->route;
	forgery->ack = (struct pvr_frame_ack){
		.frame.type = PVR_FRAME_ACK,
		.syndrome = PVR_FRAME_SYN_ACK,
		.epoch = htole32(qp->epoch),
		.qpn = htole32(qp->qpn),
		.psn = htole32(pvr_inflight(qp->pipe_sq, 0)->psn),
	};
	memcpy(forgery->ack.gid, env->a.gid, 16);
}

#define TEST_FORGERY(name) TEST_OBJECT(hosts, struct forgery, forgery, forgery_init, name)

static void expect_ignored(struct forgery *forgery, struct pvr_frame_ack ack)
{
	pvr_pipe_ack(&forgery->route, "default", &ack);
	await_no_cqe(&forgery->env->a.scq);
	expect_state(&forgery->env->a, PVR_QPS_RTS);
}

static struct pvr_frame_ack with_psn(const struct forgery *forgery, uint32_t more)
{
	struct pvr_frame_ack ack = forgery->ack;

	ack.psn = htole32((le32toh(ack.psn) + more) & 0xffffff);
	return ack;
}

TEST_FORGERY(test_forged_acknowledgements_complete_nothing)
{
	struct pvr_frame_ack ack;

	/* In a message, behind the last one, before the first one, half-way round. */
	expect_ignored(forgery, with_psn(forgery, 1));
	expect_ignored(forgery, with_psn(forgery, 7));
	expect_ignored(forgery, with_psn(forgery, 0xffffff));
	expect_ignored(forgery, with_psn(forgery, 0x800000));
	/* More of the message than there is, or all of it. */
	ack = forgery->ack;
	ack.offset = htole64(3000);
	expect_ignored(forgery, ack);
	ack.offset = htole64(1ull << 31);
	expect_ignored(forgery, ack);
	/* Another epoch, queue pair, GID, fabric. */
	ack = with_psn(forgery, 3);
	ack.epoch ^= htole32(1);
	expect_ignored(forgery, ack);
	ack = with_psn(forgery, 3);
	ack.qpn ^= htole32(0x10000);
	expect_ignored(forgery, ack);
	ack = with_psn(forgery, 3);
	ack.gid[15] ^= 1;
	expect_ignored(forgery, ack);
	ack = with_psn(forgery, 3);
	pvr_pipe_ack(&forgery->route, "nowhere", &ack);
	expect_no_cqe(&env->a.scq);
	/* A remote that is not the peer's. */
	forgery->route.host = fg_wire_remote_host(env->wire, 0, 0);
	expect_ignored(forgery, with_psn(forgery, 3));
	forgery->route.host = fg_wire_remote_host(env->wire, 0, 1);
	/* A valid ACK completes the WRITE; the READ has no data yet. */
	ack = with_psn(forgery, 6);
	pvr_pipe_ack(&forgery->route, "default", &ack);
	expect_written(&env->a, 1);
	expect_no_cqe(&env->a.scq);
	hosts_release(env);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_READ);
}

TEST_FORGERY(test_forged_refusals_fail_nothing)
{
	struct pvr_frame_ack ack;

	for (uint8_t syndrome = PVR_FRAME_SYN_RNR; syndrome < PVR_FRAME_SYN_NUM; syndrome++) {
		ack = with_psn(forgery, 4);
		ack.syndrome = syndrome;
		expect_ignored(forgery, ack);
		ack.psn = forgery->ack.psn;
		ack.epoch ^= htole32(1);
		expect_ignored(forgery, ack);
	}
	/* From a connection that is not used any more. */
	forgery->route.generation--;
	for (uint8_t syndrome = PVR_FRAME_SYN_RNR; syndrome < PVR_FRAME_SYN_NUM; syndrome++) {
		if (syndrome == PVR_FRAME_SYN_NAK)
			continue;
		ack = forgery->ack;
		ack.syndrome = syndrome;
		expect_ignored(forgery, ack);
		assert_int_equal(t_device_qp(&env->a)->wait, PVR_QP_RUNNING);
	}
	hosts_release(env);
	expect_written(&env->a, 1);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_READ);
}

TEST_FORGERY(test_unrequested_values_are_ignored)
{
	struct pvr_frame_atomic_ack ack = { .frame.type = PVR_FRAME_ATOMIC_ACK, .value = ~0ull };

	ack.epoch = forgery->ack.epoch;
	ack.qpn = forgery->ack.qpn;
	memcpy(ack.gid, forgery->ack.gid, 16);
	for (uint32_t i = 0; i < 8; i++) {
		ack.psn = htole32((le32toh(forgery->ack.psn) + i) & 0xffffff);
		pvr_pipe_atomic_ack(&forgery->route, "default", &ack);
	}
	expect_no_cqe(&env->a.scq);
	assert_int_equal(fg_mismatch(env->a.buf.va, env->a.buf.size, 3), env->a.buf.size);
}

TEST_FORGERY(test_unrequested_data_is_ignored)
{
	static const struct {
		uint32_t psn, offset, chunk;
	} cases[] = { { 0, 0, 3000 }, { 1, 0, 3000 }, { 3, 1, 2999 },  { 3, 0, 3001 },
		      { 3, 0, 0 },    { 6, 0, 3000 }, { 3, 3000, 10 }, { 3, 2999, 10 } };

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct pvr_frame_read_data data = {
			.frame.type = PVR_FRAME_READ_DATA,
			.epoch = forgery->ack.epoch,
			.qpn = forgery->ack.qpn,
			.psn = htole32((le32toh(forgery->ack.psn) + cases[i].psn) & 0xffffff),
			.offset = htole64(cases[i].offset),
			.chunk = htole32(cases[i].chunk),
		};

		memcpy(data.gid, forgery->ack.gid, 16);
		assert_int_equal(pvr_pipe_read_data(&forgery->route, "default", &data),
				 PVR_HANDLED);
	}
	/* The READ's own ACK completes the WRITE before it, and no more. */
	while (fg_cq_pending(&env->a.scq))
		expect_written(&env->a, 1);
	assert_int_equal(t_device_qp(&env->a)->sq_inflight, 1);
	assert_int_equal(fg_mismatch(env->a.buf.va, env->a.buf.size, 3), env->a.buf.size);
}

/* ------------------------------------------------------------------ forged requests */

static struct pvr_frame_request request_of(struct t_env *env)
{
	struct pvr_qp *qp = t_device_qp(&env->b);
	struct pvr_frame_request frame = {
		.frame = FG_FRAME(PVR_FRAME_REQUEST, sizeof(frame) + 8),
		.frame.flags = PVR_REQUEST_F_LAST,
		.op = PVR_FRAME_OP_WRITE,
		.gid_type = PVR_GID_TYPE_ROCE_V2,
		.epoch = htole32(1),
		.src_qpn = htole32(env->a.qp.qpn),
		.dst_qpn = htole32(env->b.qp.qpn),
		.psn = htole32(qp->rq_psn),
		.psns = htole32(1),
		.rkey = htole32(env->b.mr.rkey),
		.addr = htole64(env->b.mr.start),
		.length = htole64(8),
		.chunk = htole32(8),
	};

	memcpy(frame.sgid, env->a.gid, 16);
	memcpy(frame.dgid, env->b.gid, 16);
	return frame;
}

#define NO_ANSWER (-1)

/* Sends @request with its payload; the reply has this syndrome. */
static void expect_answer(struct fg_malformed *malformed, const struct pvr_frame_request *request,
			  int syndrome)
{
	struct pvr_frame_ack ack;
	size_t size;

	fg_malformed_send(malformed, request, sizeof(*request));
	fg_malformed_send(malformed, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	size = fg_malformed_recv(malformed, &ack, sizeof(ack));
	assert_int_equal(size < sizeof(ack) ? NO_ANSWER : ack.syndrome, syndrome);
}

TEST(hosts, test_forged_requests_write_nothing)
{
	const struct pvr_frame_request good = request_of(env);
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
	struct pvr_frame_request frame;

	fg_malformed_send_fabric(malformed, "default");
	memset(env->b.buf.va, 0, env->b.buf.size);
	/* No such QP; a QP that is connected to another one. */
	frame = good;
	frame.dst_qpn ^= htole32(0x10000);
	expect_answer(malformed, &frame, PVR_FRAME_SYN_NO_QP);
	frame = good;
	frame.src_qpn ^= htole32(0x10000);
	expect_answer(malformed, &frame, PVR_FRAME_SYN_NO_QP);
	/* An absent GID; the other version of RoCE; a GID that is not the sender's. */
	frame = good;
	frame.dgid[15] ^= 0x55;
	expect_answer(malformed, &frame, PVR_FRAME_SYN_NO_GID);
	frame = good;
	frame.gid_type = PVR_GID_TYPE_ROCE_V1;
	expect_answer(malformed, &frame, PVR_FRAME_SYN_NO_QP);
	frame = good;
	memcpy(frame.sgid, env->b.gid, 16);
	expect_answer(malformed, &frame, PVR_FRAME_SYN_NO_QP);
	frame.dgid[15] ^= 0x55;
	expect_answer(malformed, &frame, PVR_FRAME_SYN_NO_QP);
	assert_true(fg_logged(fg_wire_host(env->wire, 1), "a GID that this host does not have"));
	/* A PSN ahead, with one NAK; a PSN before the first request. */
	frame = good;
	frame.psn = htole32((le32toh(good.psn) + 1) & 0xffffff);
	expect_answer(malformed, &frame, PVR_FRAME_SYN_PSN_SEQ_ERR);
	expect_answer(malformed, &frame, NO_ANSWER);
	frame.psn = htole32((le32toh(good.psn) - 1) & 0xffffff);
	expect_answer(malformed, &frame, PVR_FRAME_SYN_NO_QP);
	assert_int_equal(*(uint64_t *)env->b.buf.va, 0);
	/* Then the right one, and the same again: it is done once. */
	expect_answer(malformed, &good, PVR_FRAME_SYN_ACK);
	assert_int_equal(*(uint64_t *)env->b.buf.va, UINT64_MAX);
	*(uint64_t *)env->b.buf.va = 0;
	expect_answer(malformed, &good, PVR_FRAME_SYN_ACK);
	assert_int_equal(*(uint64_t *)env->b.buf.va, 0);
	/* A foreign key fails the queue pair, as between two of one host. */
	frame = request_of(env);
	frame.rkey ^= htole32(0x10000);
	expect_answer(malformed, &frame, PVR_FRAME_SYN_NAK);
	expect_state(&env->b, PVR_QPS_ERR);
	assert_false(fg_malformed_is_closed(malformed));
}

/*
 * The requester's adapter came to the host of its peer before the responses, and that one has left: the
 * requester sends the first request again, and has not sent the others on this path.
 */
TEST(hosts, test_duplicate_is_acknowledged_before_what_was_executed_later)
{
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
	const struct pvr_frame_request first = request_of(env);
	struct pvr_frame_request frame = first;
	struct pvr_frame_ack acks[2];

	fg_malformed_send_fabric(malformed, "default");
	for (unsigned int i = 0; i < 3; i++) {
		frame.psn = htole32((le32toh(first.psn) + i) & 0xffffff);
		expect_answer(malformed, &frame, PVR_FRAME_SYN_ACK);
	}
	fg_malformed_send(malformed, &first, sizeof(first));
	fg_malformed_send(malformed, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	assert_int_equal(fg_malformed_recv(malformed, acks, sizeof(acks)), sizeof(acks));
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(acks[i].syndrome, PVR_FRAME_SYN_ACK);
		assert_int_equal(le32toh(acks[i].psn), (le32toh(first.psn) + 1 + 2 * i) & 0xffffff);
	}
	/* A stopped adapter wants the request again, and not what it expects. */
	fg_stop(env->g[1]);
	fg_malformed_send(malformed, &first, sizeof(first));
	fg_malformed_send(malformed, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	assert_int_equal(fg_malformed_recv(malformed, acks, sizeof(acks)), sizeof(acks[0]));
	assert_int_equal(acks[0].syndrome, PVR_FRAME_SYN_HELD);
	assert_int_equal(acks[0].psn, first.psn);
	assert_int_equal(fg_start(env->g[1]), 0);
}

/* -------------------------------------------------------------------- forged faults */

static struct pvr_frame_request fault_of(struct t_env *env, enum pvr_frame_fault fault)
{
	struct pvr_frame_request frame = request_of(env);

	frame.frame = (struct pvr_frame)FG_FRAME(PVR_FRAME_FAULT, sizeof(frame));
	frame.op = PVR_FRAME_OP_SEND;
	frame.fault = htole16(fault);
	frame.rkey = 0;
	frame.addr = 0;
	frame.length = 0;
	frame.chunk = 0;
	return frame;
}

static void expect_fault_answer(struct fg_malformed *malformed,
				const struct pvr_frame_request *fault, int syndrome)
{
	struct pvr_frame_ack ack;
	size_t size;

	fg_malformed_send(malformed, fault, sizeof(*fault));
	size = fg_malformed_recv(malformed, &ack, sizeof(ack));
	assert_int_equal(size < sizeof(ack) ? NO_ANSWER : ack.syndrome, syndrome);
}

/* Only the peer of a queue pair makes it fail, and only with the next message. */
TEST(hosts, test_forged_faults_fail_nothing)
{
	const struct pvr_frame_request good = fault_of(env, PVR_FRAME_FAULT_OPERATION);
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
	struct pvr_frame_request frame;

	fg_malformed_send_fabric(malformed, "default");
	frame = good;
	frame.dst_qpn ^= htole32(0x10000);
	expect_fault_answer(malformed, &frame, PVR_FRAME_SYN_NO_QP);
	frame = good;
	frame.src_qpn ^= htole32(0x10000);
	expect_fault_answer(malformed, &frame, PVR_FRAME_SYN_NO_QP);
	frame = good;
	memcpy(frame.sgid, env->b.gid, 16);
	expect_fault_answer(malformed, &frame, PVR_FRAME_SYN_NO_QP);
	frame = good;
	frame.psn = htole32((le32toh(good.psn) + 1) & 0xffffff);
	expect_fault_answer(malformed, &frame, PVR_FRAME_SYN_PSN_SEQ_ERR);
	frame.psn = htole32((le32toh(good.psn) - 1) & 0xffffff);
	expect_fault_answer(malformed, &frame, PVR_FRAME_SYN_NO_QP);
	frame = good;
	frame.frame.flags = PVR_REQUEST_F_XRC;
	expect_fault_answer(malformed, &frame, PVR_FRAME_SYN_NO_QP);
	/* Of a receive request that is not posted, and of a datagram. */
	frame = fault_of(env, PVR_FRAME_FAULT_RECV_FATAL);
	expect_fault_answer(malformed, &frame, PVR_FRAME_SYN_RNR);
	frame.frame.flags = PVR_REQUEST_F_UD;
	expect_fault_answer(malformed, &frame, NO_ANSWER);
	expect_state(&env->b, PVR_QPS_RTS);
	expect_fault_answer(malformed, &good, PVR_FRAME_SYN_NAK);
	expect_state(&env->b, PVR_QPS_ERR);
	expect_fault_answer(malformed, &good, PVR_FRAME_SYN_NAK);
	assert_false(fg_malformed_is_closed(malformed));
}

/* An executed message cannot fail any more. */
TEST(hosts, test_fault_of_an_executed_message_is_acknowledged)
{
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
	const struct pvr_frame_request request = request_of(env);
	struct pvr_frame_request frame = fault_of(env, PVR_FRAME_FAULT_ACCESS);

	fg_malformed_send_fabric(malformed, "default");
	expect_answer(malformed, &request, PVR_FRAME_SYN_ACK);
	expect_fault_answer(malformed, &frame, PVR_FRAME_SYN_ACK);
	frame.op = PVR_FRAME_OP_READ;
	expect_fault_answer(malformed, &frame, PVR_FRAME_SYN_ACK);
	expect_state(&env->b, PVR_QPS_RTS);
}

T_SETUP_HOSTS(refusing, 2, .old = true)
{
	hosts_connect(env, &env->a, &env->b, FG_END_PAGES);
}

TEST(refusing, test_fault_that_was_not_negotiated_ends_the_connection)
{
	const struct pvr_frame_request frame = fault_of(env, PVR_FRAME_FAULT_OPERATION);
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);

	fg_malformed_send_fabric(malformed, "default");
	fg_malformed_send(malformed, &frame, sizeof(frame));
	assert_true(fg_malformed_is_closed(malformed));
	expect_state(&env->b, PVR_QPS_RTS);
}
