// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Posting by function: ibv_create_qp_ex(3) with send_ops_flags, and the ibv_wr_* calls. */
#include <arpa/inet.h>

#include "fake_kernel.h"

#define RC_OPS                                                                                  \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |              \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)
#define UD_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define LATER_OPS (IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE)
#define EXTENSIONS                                                                            \
	(PVR_EXT_INLINE | PVR_EXT_UC | PVR_EXT_USER_OPS | PVR_EXT_MW | PVR_EXT_ATOMIC_WRITE | \
	 PVR_EXT_FLUSH)

static struct ibv_qp_ex *create(enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.cap = { .max_send_wr = 4, .max_send_sge = 2, .max_inline_data = 48 },
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = ops,
	};
	struct ibv_qp *qp;

	fake.ctx.features = EXTENSIONS;
	qp = fake_create_qp_ex(&attr);
	assert_non_null(qp);
	assert_ptr_equal(ibv_qp_to_qp_ex(qp), &to_pvr_qp(qp)->verbs_qp.qp_ex);
	return ibv_qp_to_qp_ex(qp);
}

static struct ibv_qp_ex *qpx;
static struct ibv_qp *qp;

static void begin(enum ibv_qp_type type, uint64_t ops)
{
	qpx = create(type, ops);
	qp = &qpx->qp_base;
	qpx->wr_start(qpx);
}

static void rc_begin(void)
{
	begin(IBV_QPT_RC, RC_OPS);
}

static void ud_begin(void)
{
	begin(IBV_QPT_UD, UD_OPS);
}

/* Checks that nothing of the batch is left, and that others can post. */
static void assert_nothing_posted(void)
{
	assert_int_equal(fake_sq(qp)->tail, 0);
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
	if (qp->qp_type == IBV_QPT_UD)
		return;
	FAKE_SEND(qp, 0, .wr_id = 77, .opcode = IBV_WR_SEND);
	assert_int_equal(fake_send_wr_id(qp, 0), 77);
	assert_int_not_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
}

/* send_ops: with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, unless 0; mask: further bits of comp_mask. */
static const struct {
	const char *label;
	uint32_t features;
	enum ibv_qp_type type;
	uint64_t send_ops;
	uint32_t mask;
	int err;
	uint32_t create_flags;
} creations[] = {
	{ "RC", 0, IBV_QPT_RC, 0, 0, 0 },
	{ "no create flags", 0, IBV_QPT_RC, 0, IBV_QP_INIT_ATTR_CREATE_FLAGS, 0 },
	{ "create flag", 0, IBV_QPT_UD, 0, IBV_QP_INIT_ATTR_CREATE_FLAGS, EOPNOTSUPP,
	  IBV_QP_CREATE_BLOCK_SELF_MCAST_LB },
	{ "XRC domain", 0, IBV_QPT_RC, 0, IBV_QP_INIT_ATTR_XRCD, EOPNOTSUPP },
	{ "TSO header", 0, IBV_QPT_UD, 0, IBV_QP_INIT_ATTR_MAX_TSO_HEADER, EOPNOTSUPP },
	{ "RSS", 0, IBV_QPT_UD, 0, IBV_QP_INIT_ATTR_RX_HASH, EOPNOTSUPP },
	{ "unknown mask", 0, IBV_QPT_RC, 0, 1u << 30, EOPNOTSUPP },
	{ "UC without extension", 0, IBV_QPT_UC, 0, 0, EOPNOTSUPP },
	{ "UC", EXTENSIONS, IBV_QPT_UC, 0, 0, 0 },
	{ "raw packets", EXTENSIONS, IBV_QPT_RAW_PACKET, 0, 0, EOPNOTSUPP },
	{ "XRC", EXTENSIONS, IBV_QPT_XRC_SEND, 0, 0, EOPNOTSUPP },
	{ "driver QP", EXTENSIONS, IBV_QPT_DRIVER, 0, 0, EOPNOTSUPP },
	{ "all of RC", EXTENSIONS, IBV_QPT_RC, RC_OPS, 0, 0 },
	{ "all of RC, no extensions", 0, IBV_QPT_RC, RC_OPS, 0, EOPNOTSUPP },
	{ "bind without MW", PVR_EXT_USER_OPS, IBV_QPT_RC, IBV_QP_EX_WITH_BIND_MW, 0, EOPNOTSUPP },
	{ "TSO", EXTENSIONS, IBV_QPT_UD, IBV_QP_EX_WITH_TSO, 0, EOPNOTSUPP },
	{ "FLUSH and ATOMIC_WRITE", EXTENSIONS, IBV_QPT_RC, LATER_OPS, 0, 0 },
	{ "FLUSH without extension", EXTENSIONS & ~PVR_EXT_FLUSH, IBV_QPT_RC, IBV_QP_EX_WITH_FLUSH,
	  0, EOPNOTSUPP },
	{ "ATOMIC_WRITE without extension", EXTENSIONS & ~PVR_EXT_ATOMIC_WRITE, IBV_QPT_RC,
	  IBV_QP_EX_WITH_ATOMIC_WRITE, 0, EOPNOTSUPP },
	{ "FLUSH on UC", EXTENSIONS, IBV_QPT_UC, IBV_QP_EX_WITH_FLUSH, 0, EOPNOTSUPP },
	{ "highest bit", EXTENSIONS, IBV_QPT_RC, 1ull << 63, 0, EOPNOTSUPP },
	{ "WRITE on UD", EXTENSIONS, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE, 0, EOPNOTSUPP },
	{ "READ on UC", EXTENSIONS, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ, 0, EOPNOTSUPP },
	{ "WRITE on UC", EXTENSIONS, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_WRITE, 0, 0 },
};

TEST_CASES(fake, test_create_qp_ex, creations)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = row->type,
		.comp_mask = row->mask | (row->send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = row->send_ops,
		.create_flags = row->create_flags,
	};

	fake.ctx.features = row->features;
	if (row->err)
		assert_fails(fake_create_qp_ex(&attr), row->err);
	else
		assert_non_null(fake_create_qp_ex(&attr));
}

TEST(fake, test_create_qp_ex_without_pd_is_refused)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_RC,
					    .send_cq = fake.send_cq,
					    .recv_cq = fake.recv_cq };

	assert_fails(pvr_create_qp_ex(fake.ibctx, &attr), EINVAL);
}

TEST(fake, test_qp_has_only_the_requested_functions)
{
	qpx = create(IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
	assert_non_null(qpx->wr_send);
	assert_null(qpx->wr_send_imm);
	assert_null(qpx->wr_rdma_write);
	assert_null(qpx->wr_bind_mw);
	assert_null(qpx->wr_set_ud_addr);
	assert_null(qpx->wr_send_tso);
}

TEST(fake, test_qp_without_send_ops_has_no_functions)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_RC };

	assert_null(ibv_qp_to_qp_ex(fake_create_qp_ex(&attr)));
}

/* Libraries of the same private ABI. */
static const struct library {
	const char *label;
	size_t mark; /* its place in struct verbs_qp */
	uint64_t absent;
} libraries[] = {
	{ "33", offsetof(struct verbs_qp, qp_ex.wr_atomic_write), LATER_OPS },
	{ "44", offsetof(struct verbs_qp, qp_ex.wr_flush), IBV_QP_EX_WITH_FLUSH },
	{ "56", offsetof(struct verbs_qp, comp_mask), 0 },
};

TEST_CASES(fake, test_qp_of_each_library_has_its_functions, libraries)
{
	fake.qp_ex_mark = row->mark;
	begin(IBV_QPT_RC, RC_OPS | (LATER_OPS & ~row->absent));
	assert_true(row->absent & IBV_QP_EX_WITH_ATOMIC_WRITE || qpx->wr_atomic_write);
	assert_true(row->absent & IBV_QP_EX_WITH_FLUSH || qpx->wr_flush);
	qpx->wr_send(qpx);
	assert_int_equal(qpx->wr_complete(qpx), 0);
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, 1);
}

TEST_CASES(fake, test_functions_that_the_library_lacks_are_refused, libraries)
{
	static const uint64_t ops[] = { IBV_QP_EX_WITH_ATOMIC_WRITE, IBV_QP_EX_WITH_FLUSH };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
	};

	fake.ctx.features = EXTENSIONS;
	fake.qp_ex_mark = row->mark;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		attr.send_ops_flags = ops[i];
		if (ops[i] & row->absent)
			assert_fails(fake_create_qp_ex(&attr), EOPNOTSUPP);
		else
			assert_non_null(fake_create_qp_ex(&attr));
	}
}

TEST(rc, test_complete_publishes_the_batch)
{
	qpx->wr_id = 1;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	qpx->wr_rdma_write_imm(qpx, 0x99, 0x7000, htonl(0xabcd));
	qpx->wr_set_sge_list(qpx, 2, fake_sges);
	qpx->wr_id = 2;
	qpx->wr_flags = IBV_SEND_FENCE | IBV_SEND_SOLICITED;
	qpx->wr_send(qpx);
	qpx->wr_set_sge(qpx, 3, 0x3000, 30);
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
	assert_int_equal(qpx->wr_complete(qpx), 0);
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, 2);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), FAKE_SEND_RUNG(qp));
	FAKE_EXPECT_WQE(qp, 0, fake_sges, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE_WITH_IMM,
			.send_flags = PVR_SEND_SIGNALED, .ex.imm_data = htonl(0xabcd),
			.wr.rdma = { .remote_addr = 0x7000, .rkey = 0x99 }, .num_sge = 2);
	FAKE_EXPECT_WQE(qp, 1, &fake_sges[2], .wr_id = 2, .opcode = PVRDMA_WR_SEND,
			.send_flags = PVR_SEND_FENCE | PVR_SEND_SOLICITED, .num_sge = 1);
}

TEST(rc, test_each_builder_writes_its_element)
{
	struct ibv_mr mr = { .pd = fake.ibpd, .lkey = 0x500 };
	struct ibv_mw mw = { .pd = fake.ibpd, .type = IBV_MW_TYPE_2, .rkey = 0x10 };
	struct ibv_mw_bind_info info = {
		.mr = &mr, .addr = 0x8000, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_READ
	};

	qpx->wr_atomic_cmp_swp(qpx, 0x99, 0x7000, 5, 6);
	qpx->wr_set_sge_list(qpx, 1, fake_sges);
	qpx->wr_atomic_fetch_add(qpx, 0x98, 0x7008, 7);
	qpx->wr_rdma_read(qpx, 0x97, 0x7010);
	qpx->wr_send_imm(qpx, htonl(1));
	assert_int_equal(qpx->wr_complete(qpx), 0);
	FAKE_EXPECT_WQE(
		qp, 0, fake_sges, .opcode = PVRDMA_WR_ATOMIC_CMP_AND_SWP, .num_sge = 1,
		.wr.atomic = { .remote_addr = 0x7000, .rkey = 0x99, .compare_add = 5, .swap = 6 });
	FAKE_EXPECT_WQE(qp, 1, NULL, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
			.wr.atomic = { .remote_addr = 0x7008, .rkey = 0x98, .compare_add = 7 });
	FAKE_EXPECT_WQE(qp, 2, NULL, .opcode = PVRDMA_WR_RDMA_READ,
			.wr.rdma = { .remote_addr = 0x7010, .rkey = 0x97 });
	FAKE_EXPECT_WQE(qp, 3, NULL, .opcode = PVRDMA_WR_SEND_WITH_IMM, .ex.imm_data = htonl(1));

	fake_consume(fake_sq(qp), 4);
	qpx->wr_start(qpx);
	qpx->wr_rdma_write(qpx, 0x96, 0x7020);
	qpx->wr_send_inv(qpx, 0x1234);
	qpx->wr_local_inv(qpx, 0x5678);
	qpx->wr_bind_mw(qpx, &mw, 0x11, &info);
	assert_int_equal(qpx->wr_complete(qpx), 0);
	FAKE_EXPECT_WQE(qp, 0, NULL, .opcode = PVRDMA_WR_RDMA_WRITE,
			.wr.rdma = { .remote_addr = 0x7020, .rkey = 0x96 });
	FAKE_EXPECT_WQE(qp, 1, NULL, .opcode = PVRDMA_WR_SEND_WITH_INV,
			.ex.invalidate_rkey = 0x1234);
	FAKE_EXPECT_WQE(qp, 2, NULL, .opcode = PVRDMA_WR_LOCAL_INV, .ex.invalidate_rkey = 0x5678);
	FAKE_EXPECT_BIND(qp, 3, 0, 0, .addr = 0x8000, .length = 64, .mw_rkey = 0x10,
			 .new_rkey = 0x11, .mr_lkey = 0x500,
			 .access_flags = PVR_ACCESS_REMOTE_READ);
}

TEST(fake, test_atomic_write_and_flush_have_their_operands)
{
	const uint64_t value = 0x1122334455667788;
	const struct pvr_wqe_atomic_write write = { .addr = 0x7000, .rkey = 0x99, .value = value };
	const struct pvr_wqe_flush flush = {
		.addr = 0x7008,
		.length = 5ull << 32,
		.rkey = 0x98,
		.placement = PVR_FLUSH_GLOBAL | PVR_FLUSH_PERSISTENT,
		.level = PVR_FLUSH_MR,
	};

	begin(IBV_QPT_RC, LATER_OPS);
	qpx->wr_atomic_write(qpx, write.rkey, write.addr, &value);
	qpx->wr_flush(qpx, flush.rkey, flush.addr, flush.length,
		      IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
	assert_int_equal(qpx->wr_complete(qpx), 0);
	assert_int_equal(fake_send_wqe(qp, 0)->opcode, PVR_WR_ATOMIC_WRITE);
	assert_memory_equal(&fake_send_wqe(qp, 0)->wr, &write, sizeof(write));
	assert_int_equal(fake_send_wqe(qp, 1)->opcode, PVR_WR_FLUSH);
	assert_memory_equal(&fake_send_wqe(qp, 1)->wr, &flush, sizeof(flush));
	assert_int_equal(fake_send_wqe(qp, 0)->num_sge + fake_send_wqe(qp, 1)->num_sge, 0);
}

/* struct ibv_send_wr has no place for their operands. */
TEST(fake, test_list_of_atomic_write_or_flush_is_refused)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_ATOMIC_WRITE, IBV_WR_FLUSH };
	struct ibv_send_wr wr = {}, *bad;
	size_t i;

	qp = &create(IBV_QPT_RC, LATER_OPS)->qp_base;
	for (i = 0; i < 2; i++) {
		wr.opcode = opcodes[i];
		assert_int_equal(pvr_post_send(qp, &wr, &bad), EOPNOTSUPP);
		assert_ptr_equal(bad, &wr);
	}
	assert_nothing_posted();
}

TEST(ud, test_datagram_has_its_address)
{
	struct pvr_ah ah = { .av = { .port_pd = 0x01234567, .gid_index = 9 } };

	qpx->wr_send(qpx);
	qpx->wr_set_sge(qpx, 3, 0x3000, 30);
	qpx->wr_set_ud_addr(qpx, &ah.ibv_ah, 17, 0x1111);
	assert_int_equal(qpx->wr_complete(qpx), 0);
	FAKE_EXPECT_WQE(qp, 0, &fake_sges[2], .opcode = PVRDMA_WR_SEND, .num_sge = 1,
			.wr.ud = { .remote_qpn = 17, .remote_qkey = 0x1111, .av = ah.av });
}

TEST(rc, test_inline_data_is_copied_at_once)
{
	char text[] = "abcdefgh";
	struct ibv_data_buf bufs[3] = { { text, 3 }, { NULL, 0 }, { text + 4, 2 } };

	qpx->wr_rdma_write(qpx, 1, 2);
	qpx->wr_set_inline_data_list(qpx, 3, bufs);
	qpx->wr_send(qpx);
	qpx->wr_set_inline_data(qpx, text, 8);
	memset(text, 0, sizeof(text));
	assert_int_equal(qpx->wr_complete(qpx), 0);
	FAKE_EXPECT_WQE(qp, 0, NULL, .opcode = PVRDMA_WR_RDMA_WRITE, .send_flags = PVR_SEND_INLINE,
			.total_len = 5, .wr.rdma = { .remote_addr = 2, .rkey = 1 });
	assert_memory_equal(fake_send_wqe(qp, 0) + 1, "abcef", 5);
	FAKE_EXPECT_WQE(qp, 1, NULL, .opcode = PVRDMA_WR_SEND, .send_flags = PVR_SEND_INLINE,
			.total_len = 8);
	assert_memory_equal(fake_send_wqe(qp, 1) + 1, "abcdefgh", 8);
}

TEST(rc, test_abort_drops_the_batch)
{
	qpx->wr_send(qpx);
	qpx->wr_send(qpx);
	qpx->wr_abort(qpx);
	assert_nothing_posted();
}

TEST(rc, test_abort_drops_the_error)
{
	qpx->wr_send(qpx);
	qpx->wr_set_sge_list(qpx, 3, fake_sges);
	qpx->wr_abort(qpx);
	qpx->wr_start(qpx);
	qpx->wr_send(qpx);
	assert_int_equal(qpx->wr_complete(qpx), 0);
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, 1);
}

TEST(rc, test_complete_of_an_empty_batch_does_not_ring)
{
	assert_int_equal(qpx->wr_complete(qpx), 0);
	assert_nothing_posted();
}

TEST(rc, test_lock_is_held_from_start_to_end)
{
	assert_true(pvr_lock_is_held(&fake_sq(qp)->lock));
	qpx->wr_complete(qpx);
	assert_false(pvr_lock_is_held(&fake_sq(qp)->lock));
	qpx->wr_start(qpx);
	assert_true(pvr_lock_is_held(&fake_sq(qp)->lock));
	qpx->wr_abort(qpx);
	assert_false(pvr_lock_is_held(&fake_sq(qp)->lock));
}

static void build(enum ibv_wr_opcode opcode)
{
	struct ibv_mw mw = { .pd = fake.ibpd, .type = IBV_MW_TYPE_1 };
	struct ibv_mr mr = { .pd = fake.ibpd };
	struct ibv_mw_bind_info info = { .mr = &mr };

	if (opcode == IBV_WR_SEND)
		qpx->wr_send(qpx);
	else if (opcode == IBV_WR_RDMA_READ)
		qpx->wr_rdma_read(qpx, 1, 2);
	else if (opcode == IBV_WR_LOCAL_INV)
		qpx->wr_local_inv(qpx, 1);
	else
		qpx->wr_bind_mw(qpx, &mw, 1, &info);
}

/* Mistakes in a batch, between a good request before and after each. */
static const struct {
	const char *label;
	enum ibv_wr_opcode opcode;
	int err;
	size_t num_sge, inline_length; /* not 0: sets such data */
	int requests; /* without data; 0: one */
	unsigned int flags;
} mistakes[] = {
	{ "too many SGEs", IBV_WR_SEND, EINVAL, .num_sge = 3 },
	{ "2^32 SGEs", IBV_WR_SEND, EINVAL, .num_sge = (size_t)1 << 32 },
	{ "too much inline data", IBV_WR_SEND, EINVAL, .inline_length = 49 },
	{ "READ inline", IBV_WR_RDMA_READ, EINVAL, .inline_length = 1 },
	{ "two setters of data", IBV_WR_SEND, EINVAL, .inline_length = 1, .num_sge = 1 },
	{ "data of an invalidation", IBV_WR_LOCAL_INV, EINVAL, .num_sge = 1 },
	{ "unknown flag", IBV_WR_SEND, EINVAL, .flags = IBV_SEND_IP_CSUM },
	{ "too many requests", IBV_WR_SEND, ENOMEM, .requests = 4 },
	{ "window of type 1", IBV_WR_BIND_MW, EINVAL },
};

TEST_CASES(rc, test_complete_returns_an_error_of_the_batch, mistakes)
{
	static char bytes[100];
	int i;

	qpx->wr_send(qpx);
	qpx->wr_flags = row->flags;
	for (i = 0; i < (row->requests ? row->requests : 1); i++)
		build(row->opcode);
	qpx->wr_flags = 0;
	if (row->inline_length)
		qpx->wr_set_inline_data(qpx, bytes, row->inline_length);
	if (row->num_sge)
		qpx->wr_set_sge_list(qpx, row->num_sge, fake_sges);
	qpx->wr_send(qpx);
	qpx->wr_set_sge_list(qpx, 1, fake_sges);
	assert_int_equal(qpx->wr_complete(qpx), row->err);
	assert_nothing_posted();
}

TEST(rc, test_setter_before_any_builder_is_an_error)
{
	qpx->wr_set_sge_list(qpx, 1, fake_sges);
	assert_int_equal(qpx->wr_complete(qpx), EINVAL);
}

TEST(ud, test_datagram_without_address_is_an_error)
{
	struct pvr_ah ah = {};

	qpx->wr_send(qpx);
	qpx->wr_set_sge_list(qpx, 1, fake_sges);
	assert_int_equal(qpx->wr_complete(qpx), EINVAL);
	assert_nothing_posted();
	qpx->wr_start(qpx);
	qpx->wr_send(qpx);
	qpx->wr_send(qpx);
	qpx->wr_set_ud_addr(qpx, &ah.ibv_ah, 1, 2);
	assert_int_equal(qpx->wr_complete(qpx), EINVAL);
	qpx->wr_start(qpx);
	qpx->wr_send(qpx);
	qpx->wr_set_ud_addr(qpx, NULL, 1, 2);
	assert_int_equal(qpx->wr_complete(qpx), EINVAL);
}

TEST(rc, test_batch_needs_a_state_that_sends)
{
	qp->state = IBV_QPS_RTR;
	qpx->wr_send(qpx);
	assert_int_equal(qpx->wr_complete(qpx), EINVAL);
}

TEST(rc, test_batches_wrap)
{
	int i;

	qpx->wr_abort(qpx);
	for (i = 0; i < 20; i++) {
		qpx->wr_start(qpx);
		qpx->wr_id = i;
		qpx->wr_send(qpx);
		qpx->wr_send(qpx);
		qpx->wr_send(qpx);
		if (i % 2) {
			qpx->wr_abort(qpx);
			continue;
		}
		assert_int_equal(qpx->wr_complete(qpx), 0);
		fake_consume(fake_sq(qp), 3);
	}
	assert_int_equal(fake_sq(qp)->ring_shm->prod_tail, 30 % 8);
}
