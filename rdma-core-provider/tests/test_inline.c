// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Inline data in send queue elements (PVR_EXT_INLINE). */
#include "fake_kernel.h"

static uint8_t data[2000];
static struct ibv_sge sge = { .addr = (uintptr_t)data, .length = 48 };

static void inline_begin(void)
{
	fake.ctx.features = PVR_EXT_INLINE;
}

static struct ibv_qp *create(uint32_t sge, uint32_t inline_data, struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = sge, .max_inline_data = inline_data },
	};
	struct ibv_qp *qp = fake_create_qp(&attr);

	*cap = attr.cap;
	return qp;
}

static struct ibv_qp *qp_with_inline(uint32_t inline_data)
{
	struct ibv_qp_cap cap;
	struct ibv_qp *qp = create(3, inline_data, &cap);

	assert_non_null(qp);
	return qp;
}

static int post_inline(struct ibv_qp *qp)
{
	return fake_post_send(qp, &(struct ibv_send_wr){ .opcode = IBV_WR_SEND,
							 .send_flags = IBV_SEND_INLINE,
							 .num_sge = 1,
							 .sg_list = &sge });
}

static const struct {
	const char *label;
	uint32_t sge, asked, got, stride;
} sizes[] = {
	{ "1 SGE, 0 bytes", 1, 0, 48, 128 },
	{ "1 SGE, 48 bytes", 1, 48, 48, 128 },
	{ "1 SGE, 49 bytes", 1, 49, 176, 256 },
	{ "11 SGEs, 0 bytes", 11, 0, 176, 256 },
	{ "12 SGEs, 100 bytes", 12, 100, 432, 512 },
	{ "1 SGE, 220 bytes", 1, 220, 432, 512 },
	{ "1 SGE, 256 bytes", 1, 256, 432, 512 },
	{ "1 SGE, 433 bytes", 1, 433, 944, 1024 },
	{ "1 SGE, the maximum", 1, PVR_MAX_INLINE, 944, 1024 },
	{ "64 SGEs, 1 byte", 64, 1, 944, 2048 },
};

TEST_CASES(inline, test_create_qp_returns_the_room_of_the_stride, sizes)
{
	struct ibv_qp_cap cap;
	struct ibv_qp *qp = create(row->sge, row->asked, &cap);

	assert_non_null(qp);
	assert_int_equal(cap.max_inline_data, row->got);
	assert_int_equal(cap.max_send_sge, row->sge);
	assert_int_equal(fake_sq(qp)->stride, row->stride);
	assert_int_equal(to_pvr_qp(qp)->send_size % 4096, 0);
	assert_true(to_pvr_qp(qp)->send_size >= 4096 + 4 * row->stride);
	/* Driver and device compute the stride from these two numbers. */
	assert_int_equal(fake.asked.max_inline_data, row->got);
	assert_int_equal(fake.asked.max_send_sge, row->sge);
}

TEST(inline, test_create_qp_refuses_more_than_an_element_holds)
{
	struct ibv_qp_cap cap;

	assert_fails(create(1, PVR_MAX_INLINE + 1, &cap), EINVAL);
}

TEST(inline, test_qp_without_the_extension_has_no_inline_data)
{
	struct ibv_qp_cap cap;
	struct ibv_qp *qp;

	fake.ctx.features = 0;
	qp = create(1, 5000, &cap);
	assert_non_null(qp);
	assert_int_equal(cap.max_inline_data, 0);
	assert_int_equal(fake.asked.max_inline_data, 0);
	assert_int_equal(fake_sq(qp)->stride, 128);
	assert_int_equal(post_inline(qp), EINVAL);
}

TEST(inline, test_send_gathers_the_data_into_the_element)
{
	struct ibv_qp *qp = qp_with_inline(100);
	uint8_t *element = (uint8_t *)(fake_send_wqe(qp, 0) + 1);
	struct ibv_sge sges[3] = {
		{ .addr = (uintptr_t)data + 10, .length = 7, .lkey = 0xbad },
		{ .addr = 1, .length = 0, .lkey = 0xbad },
		{ .addr = (uintptr_t)data + 500, .length = 93, .lkey = 0xbad },
	};
	size_t i;

	for (i = 0; i < sizeof(data); i++)
		data[i] = i * 7;
	FAKE_SEND(qp, 0, .opcode = IBV_WR_RDMA_WRITE, .num_sge = 3, .sg_list = sges,
		  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		  .wr.rdma = { .remote_addr = 0x1234, .rkey = 0x99 });
	FAKE_EXPECT_WQE(qp, 0, NULL, .total_len = 100, .opcode = PVRDMA_WR_RDMA_WRITE,
			.send_flags = PVR_SEND_INLINE | PVR_SEND_SIGNALED,
			.wr.rdma = { .remote_addr = 0x1234, .rkey = 0x99 });
	assert_memory_equal(element, data + 10, 7);
	assert_memory_equal(element + 7, data + 500, 93);
	/* The application may reuse its buffer at once. */
	memset(data, 0, sizeof(data));
	assert_int_equal(element[1], (uint8_t)(11 * 7));
}

TEST(inline, test_next_request_of_the_slot_has_no_inline_data)
{
	struct ibv_qp *qp = qp_with_inline(48);
	int i;

	for (i = 0; i < 4; i++) {
		assert_int_equal(post_inline(qp), 0);
		fake_consume(fake_sq(qp), 1);
	}
	FAKE_SEND(qp, 0, .opcode = IBV_WR_SEND, .num_sge = 1, .sg_list = &sge);
	FAKE_EXPECT_WQE(qp, 0, &sge, .opcode = PVRDMA_WR_SEND, .num_sge = 1);
}

/* A full element does not write beyond its slot. */
TEST(inline, test_full_element_stays_in_its_slot)
{
	struct ibv_qp *qp = qp_with_inline(48);

	assert_int_equal(to_pvr_qp(qp)->cap.max_inline_data, 48);
	memset(data, 0xee, sizeof(data));
	assert_int_equal(post_inline(qp), 0);
	assert_int_equal(((uint8_t *)fake_send_wqe(qp, 0))[127], 0xee);
	assert_int_equal(((uint8_t *)fake_send_wqe(qp, 1))[0], 0);
}

static const struct {
	const char *label;
	enum ibv_wr_opcode opcode;
	uint32_t length[2];
	int err;
} lengths[] = {
	{ "one byte too many", IBV_WR_SEND, { 49, 0 }, EINVAL },
	{ "a sum too large", IBV_WR_SEND, { 24, 25 }, EINVAL },
	{ "a sum that wraps", IBV_WR_SEND, { 8, UINT32_MAX - 3 }, EINVAL },
	{ "READ", IBV_WR_RDMA_READ, { 1, 0 }, EINVAL },
	{ "READ of nothing", IBV_WR_RDMA_READ, { 0, 0 }, EINVAL },
	{ "atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, { 8, 0 }, EINVAL },
	{ "just fits", IBV_WR_SEND, { 24, 24 }, 0 },
};

TEST_CASES(inline, test_send_checks_opcode_and_length, lengths)
{
	struct ibv_qp *qp = qp_with_inline(48);
	struct ibv_sge sges[2] = {
		{ .addr = (uintptr_t)data, .length = row->length[0] },
		{ .addr = (uintptr_t)data, .length = row->length[1] },
	};

	FAKE_SEND(qp, row->err, .opcode = row->opcode, .num_sge = 2, .sg_list = sges,
		  .send_flags = IBV_SEND_INLINE);
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, row->err ? 0 : 1);
}
