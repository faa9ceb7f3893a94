// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Connected queue pairs of two hosts, and invalid frames for them. */
#include <endian.h>
#include <stdlib.h>

#include "common.h"
#include "fg_malformed.h"
#include "fg_wire.h"
#include "core/objects.h"
#include "path/pipe/sq.h"

/* ------------------------------------------------------------------ forged answers */

TEST_INIT
{
	fg_default_ext = PVR_EXT_UC | PVR_EXT_DB_SUPPRESS;
	setenv("FG_WIRE", "1", 1);
}

/* A request of a's is on its way, and this comes for it from b's host. */
struct forgery {
	struct t_env *env;
	struct pvr_route route;
	struct pvr_frame_ack ack;
};

static void forge(struct forgery *forgery, struct t_env *env)
{
	struct pvr_qp *qp;

	forgery->env = env;
	fg_wire_hold(env->wire, 0, 1, true);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 3000);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 2, 8192, &env->b.mr, 0, 3000);
	fg_wire_run(env->wire);
	qp = t_device_qp(&env->a);
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

static void say(struct forgery *forgery, struct pvr_frame_ack ack)
{
	pvr_pipe_ack(&forgery->route, "default", &ack);
	fg_wire_run(forgery->env->wire);
	expect_no_cqe(&forgery->env->a.scq);
	expect_state(&forgery->env->a, PVR_QPS_RTS);
}

static struct pvr_frame_ack with_psn(const struct forgery *forgery, uint32_t more)
{
	struct pvr_frame_ack ack = forgery->ack;

	ack.psn = htole32((le32toh(ack.psn) + more) & 0xffffff);
	return ack;
}

TEST(rc_connected, test_forged_acknowledgements_complete_nothing)
{
	struct forgery forgery;
	struct pvr_frame_ack ack;

	forge(&forgery, env);
	/* In a message, behind the last one, before the first one, half-way round. */
	say(&forgery, with_psn(&forgery, 1));
	say(&forgery, with_psn(&forgery, 7));
	say(&forgery, with_psn(&forgery, 0xffffff));
	say(&forgery, with_psn(&forgery, 0x800000));
	/* More of the message than there is, or all of it. */
	ack = forgery.ack;
	ack.offset = htole64(3000);
	say(&forgery, ack);
	ack.offset = htole64(1ull << 31);
	say(&forgery, ack);
	/* Another epoch, queue pair, GID, fabric. */
	ack = with_psn(&forgery, 3);
	ack.epoch ^= htole32(1);
	say(&forgery, ack);
	ack = with_psn(&forgery, 3);
	ack.qpn ^= htole32(0x10000);
	say(&forgery, ack);
	ack = with_psn(&forgery, 3);
	ack.gid[15] ^= 1;
	say(&forgery, ack);
	ack = with_psn(&forgery, 3);
	pvr_pipe_ack(&forgery.route, "nowhere", &ack);
	expect_no_cqe(&env->a.scq);
	/* A remote that is not the peer's. */
	forgery.route.host = fg_wire_remote_host(env->wire, 0, 0);
	say(&forgery, with_psn(&forgery, 3));
	forgery.route.host = fg_wire_remote_host(env->wire, 0, 1);
	/* It would have been believed otherwise; and the READ has no data yet. */
	ack = with_psn(&forgery, 6);
	pvr_pipe_ack(&forgery.route, "default", &ack);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	expect_no_cqe(&env->a.scq);
	fg_wire_hold(env->wire, 0, 1, false);
	fg_wire_settle(env->wire, FG_SEC);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_READ);
}

TEST(rc_connected, test_forged_refusals_fail_nothing)
{
	struct forgery forgery;
	struct pvr_frame_ack ack;

	forge(&forgery, env);
	for (uint8_t syndrome = PVR_FRAME_SYN_RNR; syndrome < PVR_FRAME_SYN_NUM; syndrome++) {
		ack = with_psn(&forgery, 4);
		ack.syndrome = syndrome;
		say(&forgery, ack);
		ack.psn = forgery.ack.psn;
		ack.epoch ^= htole32(1);
		say(&forgery, ack);
	}
	/* From a connection that is not used any more. */
	forgery.route.generation--;
	for (uint8_t syndrome = PVR_FRAME_SYN_RNR; syndrome < PVR_FRAME_SYN_NUM; syndrome++) {
		if (syndrome == PVR_FRAME_SYN_NAK)
			continue;
		ack = forgery.ack;
		ack.syndrome = syndrome;
		say(&forgery, ack);
		assert_int_equal(t_device_qp(&env->a)->wait, PVR_QP_RUNNING);
	}
	fg_wire_hold(env->wire, 0, 1, false);
	fg_wire_settle(env->wire, FG_SEC);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	expect_done(&env->a.scq, 2, PVRDMA_WC_RDMA_READ);
}

TEST(rc_connected, test_unrequested_values_are_ignored)
{
	struct forgery forgery;
	struct pvr_frame_atomic_ack ack = { .frame.type = PVR_FRAME_ATOMIC_ACK, .value = ~0ull };

	fg_fill(env->a.buf.va, env->a.buf.size, 3);
	forge(&forgery, env);
	ack.epoch = forgery.ack.epoch;
	ack.qpn = forgery.ack.qpn;
	memcpy(ack.gid, forgery.ack.gid, 16);
	for (uint32_t i = 0; i < 8; i++) {
		ack.psn = htole32((le32toh(forgery.ack.psn) + i) & 0xffffff);
		pvr_pipe_atomic_ack(&forgery.route, "default", &ack);
	}
	expect_no_cqe(&env->a.scq);
	assert_int_equal(fg_mismatch(env->a.buf.va, env->a.buf.size, 3), env->a.buf.size);
}

TEST(rc_connected, test_unrequested_data_is_ignored)
{
	static const struct {
		uint32_t psn, offset, chunk;
	} cases[] = { { 0, 0, 3000 }, { 1, 0, 3000 }, { 3, 1, 2999 },  { 3, 0, 3001 },
		      { 3, 0, 0 },    { 6, 0, 3000 }, { 3, 3000, 10 }, { 3, 2999, 10 } };
	struct forgery forgery;

	fg_fill(env->a.buf.va, env->a.buf.size, 3);
	forge(&forgery, env);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct pvr_frame_read_data data = {
			.frame.type = PVR_FRAME_READ_DATA,
			.epoch = forgery.ack.epoch,
			.qpn = forgery.ack.qpn,
			.psn = htole32((le32toh(forgery.ack.psn) + cases[i].psn) & 0xffffff),
			.offset = htole64(cases[i].offset),
			.chunk = htole32(cases[i].chunk),
		};

		memcpy(data.gid, forgery.ack.gid, 16);
		assert_int_equal(pvr_pipe_read_data(&forgery.route, "default", &data), PVR_HANDLED);
	}
	/* The READ's own ACK completes the WRITE before it, and no more. */
	while (fg_cq_pending(&env->a.scq))
		expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_WRITE);
	assert_int_equal(t_device_qp(&env->a)->sq_inflight, 1);
	assert_int_equal(fg_mismatch(env->a.buf.va, env->a.buf.size, 3), env->a.buf.size);
}

/* ------------------------------------------------------------------ forged requests */

static struct pvr_frame_request request_of(struct t_env *env)
{
	struct pvr_qp *qp = t_device_qp(&env->b);
	struct pvr_frame_request frame = {
		.frame.type = PVR_FRAME_REQUEST,
		.frame.flags = PVR_REQUEST_F_LAST,
		.frame.fabric = htole16(1),
		.frame.size = htole32(sizeof(frame) + 8),
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

/* Sends @frame. Return: the syndrome of the reply, -1 without a reply. */
static int ask(struct t_env *env, struct fg_malformed *malformed,
	       const struct pvr_frame_request *frame)
{
	struct pvr_frame_ack ack;

	fg_malformed_send(malformed, frame, sizeof(*frame));
	fg_malformed_send(malformed, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	fg_wire_run(env->wire);
	if (fg_malformed_recv(malformed, &ack, sizeof(ack)) < sizeof(ack))
		return -1;
	return ack.syndrome;
}

static struct fg_malformed *malformed_create(struct t_env *env)
{
	struct fg_malformed *malformed = fg_malformed_create(env->wire, 1, 0);
	struct pvr_frame_fabric fabric = {
		.frame.type = PVR_FRAME_FABRIC,
		.frame.fabric = htole16(1),
		.frame.size = htole32(sizeof(fabric)),
		.name = "default",
	};

	fg_malformed_send(malformed, &fabric, sizeof(fabric));
	return malformed;
}

TEST(rc_connected, test_forged_requests_write_nothing)
{
	struct pvr_frame_request good, frame;
	struct fg_malformed *malformed;

	malformed = malformed_create(env);
	memset(env->b.buf.va, 0, env->b.buf.size);
	good = request_of(env);
	/* No such QP; a QP that is connected to another one. */
	frame = good;
	frame.dst_qpn ^= htole32(0x10000);
	assert_int_equal(ask(env, malformed, &frame), PVR_FRAME_SYN_NO_QP);
	frame = good;
	frame.src_qpn ^= htole32(0x10000);
	assert_int_equal(ask(env, malformed, &frame), PVR_FRAME_SYN_NO_QP);
	/* An absent GID; the other version of RoCE; a GID that is not the sender's. */
	frame = good;
	frame.dgid[15] ^= 0x55;
	assert_int_equal(ask(env, malformed, &frame), PVR_FRAME_SYN_NO_GID);
	frame = good;
	frame.gid_type = PVR_GID_TYPE_ROCE_V1;
	assert_int_equal(ask(env, malformed, &frame), PVR_FRAME_SYN_NO_QP);
	frame = good;
	memcpy(frame.sgid, env->b.gid, 16);
	assert_int_equal(ask(env, malformed, &frame), PVR_FRAME_SYN_NO_QP);
	frame.dgid[15] ^= 0x55;
	assert_int_equal(ask(env, malformed, &frame), PVR_FRAME_SYN_NO_QP);
	assert_true(fg_logged(fg_wire_host(env->wire, 1), "a GID that it has not been given"));
	/* A PSN ahead, with one NAK; a PSN before the first request. */
	frame = good;
	frame.psn = htole32((le32toh(good.psn) + 1) & 0xffffff);
	assert_int_equal(ask(env, malformed, &frame), PVR_FRAME_SYN_PSN_SEQ_ERR);
	assert_int_equal(ask(env, malformed, &frame), -1);
	frame.psn = htole32((le32toh(good.psn) - 1) & 0xffffff);
	assert_int_equal(ask(env, malformed, &frame), PVR_FRAME_SYN_NO_QP);
	assert_int_equal(*(uint64_t *)env->b.buf.va, 0);
	/* Then the right one, and the same again: it is done once. */
	assert_int_equal(ask(env, malformed, &good), PVR_FRAME_SYN_ACK);
	assert_int_equal(*(uint64_t *)env->b.buf.va, UINT64_MAX);
	*(uint64_t *)env->b.buf.va = 0;
	assert_int_equal(ask(env, malformed, &good), PVR_FRAME_SYN_ACK);
	assert_int_equal(*(uint64_t *)env->b.buf.va, 0);
	/* A foreign key fails the queue pair, as between two of one host. */
	frame = request_of(env);
	frame.rkey ^= htole32(0x10000);
	assert_int_equal(ask(env, malformed, &frame), PVR_FRAME_SYN_NAK);
	expect_state(&env->b, PVR_QPS_ERR);
	assert_false(fg_malformed_is_closed(malformed));
	fg_malformed_destroy(malformed);
}
