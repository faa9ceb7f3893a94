// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Inline data in send queue elements (PVR_EXT_INLINE). */
#include <errno.h>
#include <string.h>

#include "fake_kernel.h"

static uint8_t data[2000];

static struct ibv_qp *create(enum ibv_qp_type type, uint32_t sge, uint32_t inline_data,
			     struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = fake.send_cq,
		.recv_cq = fake.recv_cq,
		.qp_type = type,
		.cap = { .max_send_wr = 4, .max_send_sge = sge, .max_inline_data = inline_data },
	};
	struct ibv_qp *qp = pvr_create_qp(&fake.pd.ibv_pd, &attr);

	*cap = attr.cap;
	if (qp)
		qp->state = IBV_QPS_RTS;
	return qp;
}

static struct ibv_qp *qp_with_inline(uint32_t inline_data)
{
	struct ibv_qp_cap cap;
	struct ibv_qp *qp;

	fake.ctx.features = PVR_EXT_INLINE;
	qp = create(IBV_QPT_RC, 3, inline_data, &cap);
	assert_non_null(qp);
	return qp;
}

static const struct {
	uint32_t sge, asked, got, stride;
} sizes[] = {
	{ 1, 0, 48, 128 },    { 1, 48, 48, 128 },    { 1, 49, 176, 256 },
	{ 11, 0, 176, 256 },  { 12, 100, 432, 512 }, { 1, 220, 432, 512 },
	{ 1, 256, 432, 512 }, { 1, 433, 944, 1024 }, { 1, PVR_MAX_INLINE, 944, 1024 },
	{ 64, 1, 944, 2048 },
};

TEST(fake, test_create_qp_gives_what_the_stride_holds)
{
	struct ibv_qp_cap cap;
	struct ibv_qp *qp;
	size_t i;

	fake.ctx.features = PVR_EXT_INLINE;
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		qp = create(IBV_QPT_RC, sizes[i].sge, sizes[i].asked, &cap);
		assert_non_null(qp);
		assert_int_equal(cap.max_inline_data, sizes[i].got);
		assert_int_equal(cap.max_send_sge, sizes[i].sge);
		assert_int_equal(1 << to_pvr_qp(qp)->sq.stride_shift, sizes[i].stride);
		assert_int_equal(to_pvr_qp(qp)->sbuf.size % 4096, 0);
		assert_true(to_pvr_qp(qp)->sbuf.size >= 4096 + 4 * sizes[i].stride);
		/* Driver and device compute the stride from these two numbers. */
		assert_int_equal(fake.asked.max_inline_data, sizes[i].got);
		assert_int_equal(fake.asked.max_send_sge, sizes[i].sge);
		fake_destroy_qp(qp);
	}
}

TEST(fake, test_create_qp_refuses_more_than_an_element_holds)
{
	struct ibv_qp_cap cap;

	fake.ctx.features = PVR_EXT_INLINE;
	assert_fails(create(IBV_QPT_RC, 1, PVR_MAX_INLINE + 1, &cap), EINVAL);
}

TEST(fake, test_without_the_extension_there_is_none)
{
	struct ibv_qp_cap cap;
	struct ibv_qp *qp = create(IBV_QPT_RC, 1, 5000, &cap);
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = 1 };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE, .num_sge = 1, .sg_list = &sge
	};

	assert_non_null(qp);
	assert_int_equal(cap.max_inline_data, 0);
	assert_int_equal(fake.asked.max_inline_data, 0);
	assert_int_equal(1 << to_pvr_qp(qp)->sq.stride_shift, 128);
	assert_int_equal(pvr_post_send(qp, &wr, &bad), EINVAL);
}

TEST(fake, test_data_is_gathered_into_the_element)
{
	struct ibv_qp *qp = qp_with_inline(100);
	struct pvrdma_sq_wqe_hdr *hdr = fake_send_wqe(qp, 0);
	struct ibv_sge sges[3] = {
		{ .addr = (uintptr_t)data + 10, .length = 7, .lkey = 0xbad },
		{ .addr = 1, .length = 0, .lkey = 0xbad },
		{ .addr = (uintptr_t)data + 500, .length = 93, .lkey = 0xbad },
	};
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.num_sge = 3,
		.sg_list = sges,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = 0x1234, .rkey = 0x99 },
	};
	size_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = i * 7;
	assert_int_equal(pvr_post_send(qp, &wr, &bad), 0);
	assert_int_equal(hdr->num_sge, 0);
	assert_int_equal(hdr->total_len, 100);
	assert_int_equal(hdr->send_flags, PVR_SEND_INLINE | PVR_SEND_SIGNALED);
	assert_int_equal(hdr->opcode, PVRDMA_WR_RDMA_WRITE);
	assert_int_equal(hdr->wr.rdma.rkey, 0x99);
	assert_memory_equal(hdr + 1, data + 10, 7);
	assert_memory_equal((uint8_t *)(hdr + 1) + 7, data + 500, 93);
	/* The application may reuse its buffer at once. */
	memset(data, 0, sizeof(data));
	assert_int_equal(((uint8_t *)(hdr + 1))[1], (uint8_t)(11 * 7));
}

TEST(fake, test_the_next_request_has_no_data_of_this_one)
{
	struct ibv_qp *qp = qp_with_inline(48);
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = 48 };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND, .num_sge = 1, .sg_list = &sge, .send_flags = IBV_SEND_INLINE
	};
	int i;

	for (i = 0; i < 4; i++) {
		assert_int_equal(pvr_post_send(qp, &wr, &bad), 0);
		fake_consume(&to_pvr_qp(qp)->sq, 1);
	}
	wr.send_flags = 0;
	assert_int_equal(pvr_post_send(qp, &wr, &bad), 0);
	assert_int_equal(fake_send_wqe(qp, 0)->total_len, 0);
	assert_int_equal(fake_send_wqe(qp, 0)->send_flags, 0);
	assert_int_equal(fake_send_wqe(qp, 0)->num_sge, 1);
}

/* A full element does not write beyond its slot. */
TEST(fake, test_a_full_element_stays_in_its_slot)
{
	struct ibv_qp *qp = qp_with_inline(48);
	struct pvr_qp *pqp = to_pvr_qp(qp);
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = 48 };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND, .num_sge = 1, .sg_list = &sge, .send_flags = IBV_SEND_INLINE
	};

	assert_int_equal(pqp->cap.max_inline_data, 48);
	memset(data, 0xee, sizeof(data));
	assert_int_equal(pvr_post_send(qp, &wr, &bad), 0);
	assert_int_equal(((uint8_t *)fake_send_wqe(qp, 0))[127], 0xee);
	assert_int_equal(((uint8_t *)fake_send_wqe(qp, 1))[0], 0);
}

static const struct {
	const char *what;
	enum ibv_wr_opcode opcode;
	uint32_t length[2];
	int err;
} refused[] = {
	{ "one byte too many", IBV_WR_SEND, { 49, 0 }, EINVAL },
	{ "a sum too large", IBV_WR_SEND, { 24, 25 }, EINVAL },
	{ "a sum that wraps", IBV_WR_SEND, { 8, UINT32_MAX - 3 }, EINVAL },
	{ "READ", IBV_WR_RDMA_READ, { 1, 0 }, EINVAL },
	{ "READ of nothing", IBV_WR_RDMA_READ, { 0, 0 }, EINVAL },
	{ "atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, { 8, 0 }, EINVAL },
	{ "just fits", IBV_WR_SEND, { 24, 24 }, 0 },
};

TEST(fake, test_refuses)
{
	struct ibv_qp *qp = qp_with_inline(48);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(refused); i++) {
		struct ibv_sge sges[2] = {
			{ .addr = (uintptr_t)data, .length = refused[i].length[0] },
			{ .addr = (uintptr_t)data, .length = refused[i].length[1] },
		};
		struct ibv_send_wr *bad = NULL, wr = { .opcode = refused[i].opcode,
						       .num_sge = 2,
						       .sg_list = sges,
						       .send_flags = IBV_SEND_INLINE };
		int err = pvr_post_send(qp, &wr, &bad);

		fake_check_err(refused[i].what, err, refused[i].err);
		assert_ptr_equal(bad, err ? &wr : NULL);
	}
	assert_int_equal(to_pvr_qp(qp)->sq.ring_shm->prod_tail, 1);
}
