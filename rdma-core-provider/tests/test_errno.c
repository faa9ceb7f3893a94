// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Invalid arguments that the provider refuses, with the errno of the verb's man page.
 * tests/guest/pvr_errno.c tests in a VM those that kernel and device refuse.
 */
#include <limits.h>

#include "fake_kernel.h"

#define ALL (PVR_EXT_INLINE | PVR_EXT_UC | PVR_EXT_USER_OPS | PVR_EXT_MW | PVR_EXT_MR_LAYOUT)

static struct ibv_mr mr, foreign_mr;
static struct ibv_mw mw1 = { .type = IBV_MW_TYPE_1, .rkey = 0x100 };
static struct ibv_mw mw2 = { .type = IBV_MW_TYPE_2, .rkey = 0x200 };
static struct pvr_pd foreign_pd = { .ibv_pd.handle = 99 };

static void errno_begin(void)
{
	mr.pd = mw1.pd = mw2.pd = fake.ibpd;
	foreign_mr.pd = &foreign_pd.ibv_pd;
}

/* A refused request must not reach the device. */
static void assert_not_posted(struct ibv_qp *qp)
{
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, 0);
	assert_int_equal(fake_rq(qp)->ring_shm->prod_tail, 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
}

#define BIND(mw, key, ...)                                                        \
	{                                                                         \
		.opcode = IBV_WR_BIND_MW, .bind_mw = { mw, key, { __VA_ARGS__ } } \
	}
#define LIST(num) .opcode = IBV_WR_SEND, FAKE_SGES(num)

/* state: RTS if 0; absent: features of ALL that are not negotiated. */
static const struct {
	const char *label;
	enum ibv_qp_type type;
	struct ibv_send_wr wr;
	int err;
	enum ibv_qp_state state;
	uint32_t absent;
} sends[] = {
	{ "INIT", IBV_QPT_RC, { .opcode = IBV_WR_SEND }, EINVAL, IBV_QPS_INIT },
	{ "RTR", IBV_QPT_UC, { .opcode = IBV_WR_SEND }, EINVAL, IBV_QPS_RTR },
	{ "opcode -1", IBV_QPT_RC, { .opcode = -1 }, EINVAL },
	{ "opcode 999", IBV_QPT_RC, { .opcode = 999 }, EINVAL },
	{ "opcode INT_MAX", IBV_QPT_RC, { .opcode = INT_MAX }, EINVAL },
	{ "opcode after the last", IBV_QPT_RC, { .opcode = IBV_WR_ATOMIC_WRITE + 1 }, EINVAL },
	{ "TSO", IBV_QPT_UD, { .opcode = IBV_WR_TSO }, EOPNOTSUPP },
	{ "DRIVER1", IBV_QPT_RC, { .opcode = IBV_WR_DRIVER1 }, EOPNOTSUPP },
	{ "FLUSH", IBV_QPT_RC, { .opcode = IBV_WR_FLUSH }, EOPNOTSUPP },
	{ "ATOMIC_WRITE", IBV_QPT_RC, { .opcode = IBV_WR_ATOMIC_WRITE }, EOPNOTSUPP },
	{ "LOCAL_INV", IBV_QPT_RC, { .opcode = IBV_WR_LOCAL_INV }, EOPNOTSUPP, 0, ALL },
	{ "SEND_WITH_INV", IBV_QPT_RC, { .opcode = IBV_WR_SEND_WITH_INV }, EOPNOTSUPP, 0, ALL },
	{ "BIND_MW", IBV_QPT_RC, { .opcode = IBV_WR_BIND_MW }, EOPNOTSUPP, 0, ALL },
	{ "WRITE on UD", IBV_QPT_UD, { .opcode = IBV_WR_RDMA_WRITE }, EINVAL },
	{ "READ on UC", IBV_QPT_UC, { .opcode = IBV_WR_RDMA_READ }, EINVAL },
	{ "CMP_SWAP on UC", IBV_QPT_UC, { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP }, EINVAL },
	{ "FETCH_ADD on UC", IBV_QPT_UC, { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD }, EINVAL },
	{ "LOCAL_INV on UD", IBV_QPT_UD, { .opcode = IBV_WR_LOCAL_INV }, EINVAL },
	{ "SEND_WITH_INV on UD", IBV_QPT_UD, { .opcode = IBV_WR_SEND_WITH_INV }, EINVAL },
	{ "all flags", IBV_QPT_RC, { .send_flags = ~0u }, EINVAL },
	{ "IP checksum", IBV_QPT_RC, { LIST(0), .send_flags = IBV_SEND_IP_CSUM }, EINVAL },
	{ "too many SGEs", IBV_QPT_RC, { LIST(3) }, EINVAL },
	{ "-1 SGEs", IBV_QPT_RC, { LIST(-1) }, EINVAL },
	{ "INT_MIN SGEs", IBV_QPT_RC, { LIST(INT_MIN) }, EINVAL },
	{ "-1 SGEs inline", IBV_QPT_RC, { LIST(-1), .send_flags = IBV_SEND_INLINE }, EINVAL },
	{ "no address handle", IBV_QPT_UD, { .opcode = IBV_WR_SEND }, EINVAL },
	{ "type 1", IBV_QPT_RC, BIND(&mw1, 0x101, .mr = &mr), EINVAL },
	{ "no window", IBV_QPT_RC, BIND(NULL, 0x101, .mr = &mr), EINVAL },
	{ "no region", IBV_QPT_RC, BIND(&mw2, 0x201), EINVAL },
	{ "index of another key", IBV_QPT_RC, BIND(&mw2, 0x301, .mr = &mr), EINVAL },
	{ "another PD", IBV_QPT_RC, BIND(&mw2, 0x201, .mr = &foreign_mr), EPERM },
	{ "access", IBV_QPT_RC, BIND(&mw2, 0x201, .mr = &mr, .mw_access_flags = ~0u), EINVAL },
	{ "no MW", IBV_QPT_RC, BIND(&mw2, 0x201, .mr = &mr), EOPNOTSUPP, 0,
	  ALL & ~PVR_EXT_USER_OPS },
};

TEST_CASES(errno, test_post_send, sends)
{
	struct ibv_send_wr wr = row->wr;
	struct ibv_qp *qp;

	fake.ctx.features = (ALL & ~row->absent) | PVR_EXT_UC;
	qp = fake_qp(row->type, 4, 2, 1, 1);
	qp->state = row->state ? row->state : IBV_QPS_RTS;
	assert_int_equal(fake_post_send(qp, &wr), row->err);
	assert_not_posted(qp);
}

static const struct {
	const char *label;
	enum ibv_qp_state state;
	int num_sge, err;
} recvs[] = {
	{ "RESET", IBV_QPS_RESET, 0, EINVAL },
	{ "too many SGEs", IBV_QPS_INIT, 2, EINVAL },
	{ "-1 SGEs", IBV_QPS_RTS, -1, EINVAL },
	{ "INT_MIN SGEs", IBV_QPS_RTS, INT_MIN, EINVAL },
};

TEST_CASES(errno, test_post_recv, recvs)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);

	qp->state = row->state;
	FAKE_RECV(qp, row->err, FAKE_SGES(row->num_sge));
	assert_not_posted(qp);
}

/*
 * The list ends at the bad request: those before it are posted, those behind it are
 * ignored.
 */
TEST(errno, test_bad_wr_is_the_bad_one)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 8, 1, 8, 1);
	struct ibv_recv_wr recv[3] = {
		{ .next = &recv[1] }, { .next = &recv[2], .num_sge = 7 }, { .num_sge = 9 },
	}, *bad_recv = NULL;
	struct ibv_send_wr send[3] = {
		{ .opcode = IBV_WR_SEND, .next = &send[1] },
		{ .opcode = IBV_WR_TSO, .next = &send[2] },
		{ .opcode = -1 },
	}, *bad_send = NULL;

	assert_int_equal(pvr_post_send(qp, send, &bad_send), EOPNOTSUPP);
	assert_ptr_equal(bad_send, &send[1]);
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, 1);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), FAKE_SEND_RUNG(qp));
	assert_int_equal(pvr_post_recv(qp, recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv[1]);
	assert_int_equal(fake_rq(qp)->ring_shm->prod_tail, 1);
}

TEST(errno, test_post_send_in_reset)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 4, 1, 1, 1);

	qp->state = IBV_QPS_RESET;
	FAKE_SEND(qp, EINVAL, .opcode = IBV_WR_SEND);
	assert_not_posted(qp);
}

TEST(errno, test_full_queues)
{
	struct ibv_qp *qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);

	FAKE_SEND(qp, 0, .opcode = IBV_WR_SEND);
	FAKE_SEND(qp, ENOMEM, .opcode = IBV_WR_SEND);
	fake_take(fake_sq(qp), 1);
	FAKE_SEND(qp, ENOMEM, .opcode = IBV_WR_SEND);
	FAKE_RECV(qp, 0);
	FAKE_RECV(qp, ENOMEM);
}

static const struct {
	const char *label;
	struct ibv_qp_init_attr attr;
	int err;
	uint32_t absent; /* features of ALL that are not negotiated */
	int fail; /* errno of the kernel */
} creations[] = {
	{ "UC without the extension", { .qp_type = IBV_QPT_UC }, EOPNOTSUPP, PVR_EXT_UC },
	{ "the kernel fails", { .qp_type = IBV_QPT_RC }, ENOSPC, 0, ENOSPC },
	{ "rounded sends", { .qp_type = IBV_QPT_RC, .cap.max_send_wr = 0x80000001 }, EINVAL },
	{ "1000 SGEs to receive", { .qp_type = IBV_QPT_RC, .cap.max_recv_sge = 1000 }, EINVAL },
	{ "raw packets", { .qp_type = IBV_QPT_RAW_PACKET }, EOPNOTSUPP },
	{ "XRC", { .qp_type = IBV_QPT_XRC_RECV }, EOPNOTSUPP },
	{ "the GSI", { .qp_type = 1 }, EINVAL },
	{ "type -1", { .qp_type = -1 }, EINVAL },
	{ "sends", { .qp_type = IBV_QPT_RC, .cap.max_send_wr = UINT32_MAX }, EINVAL },
	{ "receives", { .qp_type = IBV_QPT_RC, .cap.max_recv_wr = UINT32_MAX }, EINVAL },
	{ "SGEs to send", { .qp_type = IBV_QPT_UD, .cap.max_send_sge = UINT32_MAX }, EINVAL },
	{ "SGEs to receive", { .qp_type = IBV_QPT_UC, .cap.max_recv_sge = UINT32_MAX }, EINVAL },
	{ "inline data", { .qp_type = IBV_QPT_RC, .cap.max_inline_data = UINT32_MAX }, EINVAL },
};

TEST_CASES(errno, test_create_qp, creations)
{
	struct ibv_qp_init_attr attr = row->attr;

	fake.ctx.features = ALL & ~row->absent;
	fake.fail = row->fail;
	assert_fails(fake_create_qp(&attr), row->err);
}

TEST(errno, test_create_qp_without_a_cq)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .send_cq = fake.send_cq };

	assert_fails(pvr_create_qp(fake.ibpd, &attr), EINVAL);
}

TEST(errno, test_create_qp_of_uc_with_an_srq)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UC, .srq = fake_srq(1, 1) };

	fake.ctx.features = ALL;
	assert_fails(fake_create_qp(&attr), EINVAL);
}

TEST(errno, test_create_qp_with_a_handle_beyond_the_table)
{
	fake.next_handle = FAKE_QP_TBL_SIZE;
	assert_fails(fake_create_qp(&(struct ibv_qp_init_attr){ .qp_type = IBV_QPT_RC }), EPROTO);
}
