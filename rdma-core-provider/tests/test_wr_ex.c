// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Posting by function: ibv_create_qp_ex(3) with send_ops_flags, and the ibv_wr_* calls. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "fake_kernel.h"

#define RC_OPS                                                                                  \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |              \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)
#define UD_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define WITH_OPS (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
#define EXTENSIONS (PVR_EXT_INLINE | PVR_EXT_UC | PVR_EXT_USER_OPS | PVR_EXT_MW)

static struct ibv_sge sges[3] = {
	{ .addr = 0x1000, .length = 10, .lkey = 1 },
	{ .addr = 0x2000, .length = 20, .lkey = 2 },
	{ .addr = 0x3000, .length = 30, .lkey = 3 },
};

static struct ibv_qp_init_attr_ex init_attr(enum ibv_qp_type type, uint64_t ops)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = fake.send_cq,
		.recv_cq = fake.recv_cq,
		.qp_type = type,
		.cap = { .max_send_wr = 4, .max_send_sge = 2, .max_inline_data = 48 },
		.comp_mask = WITH_OPS,
		.pd = &fake.pd.ibv_pd,
		.send_ops_flags = ops,
	};
}

static struct ibv_qp *create(struct ibv_qp_init_attr_ex attr)
{
	return pvr_create_qp_ex(&fake.ctx.ibv_ctx.context, &attr);
}

static struct ibv_qp_ex *start(enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp *qp;

	fake.ctx.features = EXTENSIONS;
	qp = create(init_attr(type, ops));
	assert_non_null(qp);
	qp->state = IBV_QPS_RTS;
	assert_ptr_equal(ibv_qp_to_qp_ex(qp), &to_pvr_qp(qp)->verbs_qp.qp_ex);
	to_pvr_qp(qp)->verbs_qp.qp_ex.wr_start(&to_pvr_qp(qp)->verbs_qp.qp_ex);
	return &to_pvr_qp(qp)->verbs_qp.qp_ex;
}

static struct pvr_wq *sq_of(struct ibv_qp_ex *qpx)
{
	return &to_pvr_qp(&qpx->qp_base)->sq;
}

/* Checks that nothing of the batch is left, and that others can post. */
static void assert_nothing_posted(struct ibv_qp_ex *qpx)
{
	struct ibv_send_wr *bad, wr = { .wr_id = 77, .opcode = IBV_WR_SEND };

	assert_int_equal(sq_of(qpx)->tail, 0);
	assert_int_equal(sq_of(qpx)->ring_shm->prod_tail, 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
	if (qpx->qp_base.qp_type == IBV_QPT_UD)
		return;
	assert_int_equal(pvr_post_send(&qpx->qp_base, &wr, &bad), 0);
	assert_int_equal(fake_send_wqe(&qpx->qp_base, 0)->wr_id, 77);
	assert_int_not_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
}

/* send_ops: with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, unless 0; mask: further bits of comp_mask. */
static const struct {
	const char *what;
	uint32_t features;
	enum ibv_qp_type type;
	uint64_t send_ops;
	uint32_t mask;
	int err;
} creations[] = {
	{ "RC", 0, IBV_QPT_RC, 0, 0, 0 },
	{ "no create flags", 0, IBV_QPT_RC, 0, IBV_QP_INIT_ATTR_CREATE_FLAGS, 0 },
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
	{ "FLUSH", EXTENSIONS, IBV_QPT_RC, IBV_QP_EX_WITH_FLUSH, 0, EOPNOTSUPP },
	{ "highest bit", EXTENSIONS, IBV_QPT_RC, 1ull << 63, 0, EOPNOTSUPP },
	{ "WRITE on UD", EXTENSIONS, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE, 0, EOPNOTSUPP },
	{ "READ on UC", EXTENSIONS, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ, 0, EOPNOTSUPP },
	{ "WRITE on UC", EXTENSIONS, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_WRITE, 0, 0 },
};

TEST(fake, test_create_qp_ex)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(creations); i++) {
		struct ibv_qp_init_attr_ex attr =
			init_attr(creations[i].type, creations[i].send_ops);
		struct ibv_qp *qp;

		attr.cap = (struct ibv_qp_cap){};
		attr.comp_mask = IBV_QP_INIT_ATTR_PD | creations[i].mask;
		if (creations[i].send_ops)
			attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		fake.ctx.features = creations[i].features;
		errno = 0;
		qp = create(attr);
		fake_check_err(creations[i].what, errno, creations[i].err);
		if (!qp != !!creations[i].err)
			fail_msg("%s: returned %p", creations[i].what, (void *)qp);
		if (qp)
			fake_destroy_qp(qp);
	}
}

TEST(fake, test_create_qp_ex_refuses)
{
	struct ibv_qp_init_attr_ex attr = init_attr(IBV_QPT_RC, 0);

	attr.comp_mask = 0;
	assert_fails(create(attr), EINVAL);
	attr = init_attr(IBV_QPT_UD, 0);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	assert_fails(create(attr), EOPNOTSUPP);
}

TEST(fake, test_only_what_was_asked_for_is_there)
{
	struct ibv_qp_ex *qpx = start(IBV_QPT_RC, IBV_QP_EX_WITH_SEND);

	assert_non_null(qpx->wr_send);
	assert_null(qpx->wr_send_imm);
	assert_null(qpx->wr_rdma_write);
	assert_null(qpx->wr_bind_mw);
	assert_null(qpx->wr_set_ud_addr);
	assert_null(qpx->wr_send_tso);
	qpx->wr_abort(qpx);
}

TEST(fake, test_without_send_ops_there_are_no_functions)
{
	struct ibv_qp_init_attr_ex attr = init_attr(IBV_QPT_RC, 0);

	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	assert_null(ibv_qp_to_qp_ex(create(attr)));
}

TEST(fake, test_old_libraries_find_the_functions_too)
{
	struct ibv_qp_ex *qpx;

	fake.short_qp_ex = true;
	qpx = start(IBV_QPT_RC, RC_OPS);
	assert_int_equal(to_pvr_qp(&qpx->qp_base)->verbs_qp.comp_mask, 0);
	qpx->wr_send(qpx);
	assert_int_equal(qpx->wr_complete(qpx), 0);
	fake.short_qp_ex = false;
	qpx = start(IBV_QPT_RC, RC_OPS);
	assert_null(qpx->wr_atomic_write);
	assert_null(qpx->wr_flush);
	qpx->wr_abort(qpx);
}

TEST(fake, test_nothing_is_seen_before_complete)
{
	struct ibv_qp_ex *qpx = start(IBV_QPT_RC, RC_OPS);
	struct pvrdma_sq_wqe_hdr *hdr;

	qpx->wr_id = 1;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	qpx->wr_rdma_write_imm(qpx, 0x99, 0x7000, htonl(0xabcd));
	qpx->wr_set_sge_list(qpx, 2, sges);
	qpx->wr_id = 2;
	qpx->wr_flags = IBV_SEND_FENCE | IBV_SEND_SOLICITED;
	qpx->wr_send(qpx);
	qpx->wr_set_sge(qpx, 3, 0x3000, 30);
	assert_int_equal(sq_of(qpx)->ring_shm->prod_tail, 0);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET), 0);
	assert_int_equal(qpx->wr_complete(qpx), 0);
	assert_int_equal(sq_of(qpx)->ring_shm->prod_tail, 2);
	assert_int_equal(fake_rung(PVRDMA_UAR_QP_OFFSET),
			 PVR_DB_QP_SEND | to_pvr_qp(&qpx->qp_base)->handle);

	hdr = fake_send_wqe(&qpx->qp_base, 0);
	assert_int_equal(hdr->wr_id, 1);
	assert_int_equal(hdr->opcode, PVRDMA_WR_RDMA_WRITE_WITH_IMM);
	assert_int_equal(hdr->send_flags, PVR_SEND_SIGNALED);
	assert_int_equal(hdr->ex.imm_data, htonl(0xabcd));
	assert_int_equal(hdr->wr.rdma.remote_addr, 0x7000);
	assert_int_equal(hdr->wr.rdma.rkey, 0x99);
	assert_int_equal(hdr->num_sge, 2);
	assert_memory_equal(hdr + 1, sges, 2 * sizeof(sges[0]));
	hdr = fake_send_wqe(&qpx->qp_base, 1);
	assert_int_equal(hdr->wr_id, 2);
	assert_int_equal(hdr->opcode, PVRDMA_WR_SEND);
	assert_int_equal(hdr->send_flags, PVR_SEND_FENCE | PVR_SEND_SOLICITED);
	assert_int_equal(hdr->num_sge, 1);
	assert_memory_equal(hdr + 1, &sges[2], sizeof(sges[2]));
}

TEST(fake, test_each_builder_writes_its_element)
{
	struct ibv_mr mr = { .pd = &fake.pd.ibv_pd, .lkey = 0x500 };
	struct ibv_mw mw = { .pd = &fake.pd.ibv_pd, .type = IBV_MW_TYPE_2, .rkey = 0x10 };
	struct ibv_mw_bind_info info = {
		.mr = &mr, .addr = 0x8000, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_READ
	};
	struct ibv_qp_ex *qpx = start(IBV_QPT_RC, RC_OPS);
	struct ibv_qp *qp = &qpx->qp_base;
	struct pvr_wqe_bind_mw bind;

	qpx->wr_atomic_cmp_swp(qpx, 0x99, 0x7000, 5, 6);
	qpx->wr_set_sge_list(qpx, 1, sges);
	qpx->wr_atomic_fetch_add(qpx, 0x98, 0x7008, 7);
	qpx->wr_rdma_read(qpx, 0x97, 0x7010);
	qpx->wr_send_imm(qpx, htonl(1));
	assert_int_equal(qpx->wr_complete(qpx), 0);
	assert_int_equal(fake_send_wqe(qp, 0)->opcode, PVRDMA_WR_ATOMIC_CMP_AND_SWP);
	assert_int_equal(fake_send_wqe(qp, 0)->wr.atomic.remote_addr, 0x7000);
	assert_int_equal(fake_send_wqe(qp, 0)->wr.atomic.rkey, 0x99);
	assert_int_equal(fake_send_wqe(qp, 0)->wr.atomic.compare_add, 5);
	assert_int_equal(fake_send_wqe(qp, 0)->wr.atomic.swap, 6);
	assert_int_equal(fake_send_wqe(qp, 1)->opcode, PVRDMA_WR_ATOMIC_FETCH_AND_ADD);
	assert_int_equal(fake_send_wqe(qp, 1)->wr.atomic.compare_add, 7);
	assert_int_equal(fake_send_wqe(qp, 1)->wr.atomic.rkey, 0x98);
	assert_int_equal(fake_send_wqe(qp, 2)->opcode, PVRDMA_WR_RDMA_READ);
	assert_int_equal(fake_send_wqe(qp, 2)->wr.rdma.remote_addr, 0x7010);
	assert_int_equal(fake_send_wqe(qp, 3)->opcode, PVRDMA_WR_SEND_WITH_IMM);
	assert_int_equal(fake_send_wqe(qp, 3)->ex.imm_data, htonl(1));

	fake_consume(sq_of(qpx), 4);
	qpx->wr_start(qpx);
	qpx->wr_rdma_write(qpx, 0x96, 0x7020);
	qpx->wr_send_inv(qpx, 0x1234);
	qpx->wr_local_inv(qpx, 0x5678);
	qpx->wr_bind_mw(qpx, &mw, 0x11, &info);
	assert_int_equal(qpx->wr_complete(qpx), 0);
	assert_int_equal(fake_send_wqe(qp, 0)->opcode, PVRDMA_WR_RDMA_WRITE);
	assert_int_equal(fake_send_wqe(qp, 0)->wr.rdma.rkey, 0x96);
	assert_int_equal(fake_send_wqe(qp, 1)->opcode, PVRDMA_WR_SEND_WITH_INV);
	assert_int_equal(fake_send_wqe(qp, 1)->ex.invalidate_rkey, 0x1234);
	assert_int_equal(fake_send_wqe(qp, 2)->opcode, PVRDMA_WR_LOCAL_INV);
	assert_int_equal(fake_send_wqe(qp, 2)->ex.invalidate_rkey, 0x5678);
	assert_int_equal(fake_send_wqe(qp, 3)->opcode, PVRDMA_WR_BIND_MW);
	memcpy(&bind, &fake_send_wqe(qp, 3)->wr, sizeof(bind));
	assert_int_equal(bind.addr, 0x8000);
	assert_int_equal(bind.length, 64);
	assert_int_equal(bind.mw_rkey, 0x10);
	assert_int_equal(bind.new_rkey, 0x11);
	assert_int_equal(bind.mr_lkey, 0x500);
	assert_int_equal(bind.access_flags, PVR_ACCESS_REMOTE_READ);
}

TEST(fake, test_a_datagram_gets_its_address)
{
	struct pvr_ah ah = { .av = { .port_pd = 0x01234567, .gid_index = 9 } };
	struct ibv_qp_ex *qpx = start(IBV_QPT_UD, UD_OPS);
	struct pvrdma_sq_wqe_hdr *hdr = fake_send_wqe(&qpx->qp_base, 0);

	qpx->wr_send(qpx);
	qpx->wr_set_sge(qpx, 3, 0x3000, 30);
	qpx->wr_set_ud_addr(qpx, &ah.ibv_ah, 17, 0x1111);
	assert_int_equal(qpx->wr_complete(qpx), 0);
	assert_int_equal(hdr->wr.ud.remote_qpn, 17);
	assert_int_equal(hdr->wr.ud.remote_qkey, 0x1111);
	assert_memory_equal(&hdr->wr.ud.av, &ah.av, sizeof(ah.av));
}

TEST(fake, test_inline_data_is_copied_at_once)
{
	struct ibv_qp_ex *qpx = start(IBV_QPT_RC, RC_OPS);
	struct pvrdma_sq_wqe_hdr *hdr = fake_send_wqe(&qpx->qp_base, 0);
	char text[] = "abcdefgh";
	struct ibv_data_buf bufs[3] = { { text, 3 }, { NULL, 0 }, { text + 4, 2 } };

	qpx->wr_rdma_write(qpx, 1, 2);
	qpx->wr_set_inline_data_list(qpx, 3, bufs);
	qpx->wr_send(qpx);
	qpx->wr_set_inline_data(qpx, text, 8);
	memset(text, 0, sizeof(text));
	assert_int_equal(qpx->wr_complete(qpx), 0);
	assert_int_equal(hdr->send_flags, PVR_SEND_INLINE);
	assert_int_equal(hdr->total_len, 5);
	assert_int_equal(hdr->num_sge, 0);
	assert_memory_equal(hdr + 1, "abcef", 5);
	hdr = fake_send_wqe(&qpx->qp_base, 1);
	assert_int_equal(hdr->total_len, 8);
	assert_memory_equal(hdr + 1, "abcdefgh", 8);
}

TEST(fake, test_abort_rewinds_everything)
{
	struct ibv_qp_ex *qpx = start(IBV_QPT_RC, RC_OPS);

	qpx->wr_send(qpx);
	qpx->wr_send(qpx);
	qpx->wr_abort(qpx);
	assert_nothing_posted(qpx);
}

TEST(fake, test_abort_forgets_the_error)
{
	struct ibv_qp_ex *qpx = start(IBV_QPT_RC, RC_OPS);

	qpx->wr_send(qpx);
	qpx->wr_set_sge_list(qpx, 3, sges);
	qpx->wr_abort(qpx);
	qpx->wr_start(qpx);
	qpx->wr_send(qpx);
	assert_int_equal(qpx->wr_complete(qpx), 0);
	assert_int_equal(sq_of(qpx)->ring_shm->prod_tail, 1);
}

TEST(fake, test_complete_of_nothing_rings_no_doorbell)
{
	struct ibv_qp_ex *qpx = start(IBV_QPT_RC, RC_OPS);

	assert_int_equal(qpx->wr_complete(qpx), 0);
	assert_nothing_posted(qpx);
}

TEST(fake, test_the_lock_is_held_between)
{
	struct ibv_qp_ex *qpx = start(IBV_QPT_RC, RC_OPS);

	assert_true(pvr_lock_is_held(&sq_of(qpx)->lock));
	qpx->wr_complete(qpx);
	assert_false(pvr_lock_is_held(&sq_of(qpx)->lock));
	qpx->wr_start(qpx);
	assert_true(pvr_lock_is_held(&sq_of(qpx)->lock));
	qpx->wr_abort(qpx);
	assert_false(pvr_lock_is_held(&sq_of(qpx)->lock));
}

/* Mistakes in a batch, between a good request before and after each. */
static char bytes[100];

static void too_many_sges(struct ibv_qp_ex *qpx)
{
	qpx->wr_send(qpx);
	qpx->wr_set_sge_list(qpx, 3, sges);
}

static void absurdly_many_sges(struct ibv_qp_ex *qpx)
{
	qpx->wr_send(qpx);
	qpx->wr_set_sge_list(qpx, (size_t)1 << 32, sges);
}

static void too_much_inline(struct ibv_qp_ex *qpx)
{
	qpx->wr_send(qpx);
	qpx->wr_set_inline_data(qpx, bytes, 49);
}

static void inline_read(struct ibv_qp_ex *qpx)
{
	qpx->wr_rdma_read(qpx, 1, 2);
	qpx->wr_set_inline_data(qpx, bytes, 1);
}

static void two_data_setters(struct ibv_qp_ex *qpx)
{
	qpx->wr_send(qpx);
	qpx->wr_set_inline_data(qpx, bytes, 1);
	qpx->wr_set_sge_list(qpx, 1, sges);
}

static void data_of_an_invalidation(struct ibv_qp_ex *qpx)
{
	qpx->wr_local_inv(qpx, 1);
	qpx->wr_set_sge_list(qpx, 1, sges);
}

static void unknown_flag(struct ibv_qp_ex *qpx)
{
	qpx->wr_flags = IBV_SEND_IP_CSUM;
	qpx->wr_send(qpx);
	qpx->wr_flags = 0;
}

static void too_many_requests(struct ibv_qp_ex *qpx)
{
	int i;

	for (i = 0; i < 4; i++)
		qpx->wr_send(qpx);
}

static void bind_type_1(struct ibv_qp_ex *qpx)
{
	struct ibv_mw mw = { .pd = &fake.pd.ibv_pd, .type = IBV_MW_TYPE_1 };
	struct ibv_mr mr = { .pd = &fake.pd.ibv_pd };
	struct ibv_mw_bind_info info = { .mr = &mr };

	qpx->wr_bind_mw(qpx, &mw, 1, &info);
}

static const struct {
	const char *what;
	void (*run)(struct ibv_qp_ex *qpx);
	int err;
} mistakes[] = {
	{ "too many SGEs", too_many_sges, EINVAL },
	{ "2^32 SGEs", absurdly_many_sges, EINVAL },
	{ "too much inline data", too_much_inline, EINVAL },
	{ "READ inline", inline_read, EINVAL },
	{ "two setters of data", two_data_setters, EINVAL },
	{ "data of an invalidation", data_of_an_invalidation, EINVAL },
	{ "unknown flag", unknown_flag, EINVAL },
	{ "too many requests", too_many_requests, ENOMEM },
	{ "window of type 1", bind_type_1, EINVAL },
};

TEST(fake, test_an_error_stays_until_complete)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mistakes); i++) {
		struct ibv_qp_ex *qpx = start(IBV_QPT_RC, RC_OPS);
		int err;

		qpx->wr_send(qpx);
		mistakes[i].run(qpx);
		qpx->wr_send(qpx);
		qpx->wr_set_sge_list(qpx, 1, sges);
		err = qpx->wr_complete(qpx);
		fake_check_err(mistakes[i].what, err, mistakes[i].err);
		assert_nothing_posted(qpx);
		fake_destroy_qp(&qpx->qp_base);
	}
}

TEST(fake, test_setter_before_any_builder_is_an_error)
{
	struct ibv_qp_ex *qpx = start(IBV_QPT_RC, RC_OPS);

	qpx->wr_set_sge_list(qpx, 1, sges);
	assert_int_equal(qpx->wr_complete(qpx), EINVAL);
}

TEST(fake, test_datagram_without_address_is_an_error)
{
	struct pvr_ah ah = {};
	struct ibv_qp_ex *qpx = start(IBV_QPT_UD, UD_OPS);

	qpx->wr_send(qpx);
	qpx->wr_set_sge_list(qpx, 1, sges);
	assert_int_equal(qpx->wr_complete(qpx), EINVAL);
	assert_nothing_posted(qpx);
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

TEST(fake, test_needs_a_state_that_sends)
{
	struct ibv_qp_ex *qpx = start(IBV_QPT_RC, RC_OPS);

	qpx->qp_base.state = IBV_QPS_RTR;
	qpx->wr_send(qpx);
	assert_int_equal(qpx->wr_complete(qpx), EINVAL);
}

TEST(fake, test_batches_wrap)
{
	struct ibv_qp_ex *qpx = start(IBV_QPT_RC, RC_OPS);
	int i;

	qpx->wr_abort(qpx);
	for (i = 0; i < 20; i++) {
		qpx->wr_start(qpx);
		qpx->wr_id = i;
		qpx->wr_send(qpx);
		qpx->wr_send(qpx);
		qpx->wr_send(qpx);
		if (i % 2)
			qpx->wr_abort(qpx);
		else
			assert_int_equal(qpx->wr_complete(qpx), 0);
		if (i % 2 == 0)
			fake_consume(sq_of(qpx), 3);
	}
	assert_int_equal(sq_of(qpx)->ring_shm->prod_tail, 30 % 8);
}
