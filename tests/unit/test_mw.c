// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_MW: memory windows of type 1 and 2B (IBTA vol. 1, 10.6.7). */
#include "common.h"

#define BOUND_FROM 5000u /* the part of the region that windows lend */
#define BOUND_LEN 9000u
#define BIND_ID 900

/* b lends its region to a. */
struct lend {
	struct t_env *env;
	struct fg_end *a, *b;
	struct fg_mr region; /* all of b's buffer, with the right to bind */
	struct fg_mr mw;
	struct pvr_wqe_bind_mw bind; /* valid: part of the region, all rights */
};

static void lend_init(struct lend *l, void **state, uint32_t flag)
{
	memset(l, 0, sizeof(*l));
	l->env = *state;
	l->a = &l->env->a;
	l->b = &l->env->b;
	expect_ok(fg_mr_create(&l->b->pd, &l->b->buf, FG_ACCESS_ALL | PVR_ACCESS_MW_BIND,
			       &l->region));
	expect_ok(fg_mw_create(&l->b->pd, flag, &l->mw));
	l->bind = (struct pvr_wqe_bind_mw){
		.addr = l->region.start + BOUND_FROM,
		.length = BOUND_LEN,
		.mw_rkey = l->mw.rkey,
		.new_rkey = l->mw.rkey ^ 0x55,
		.mr_lkey = l->region.lkey,
		.access_flags = FG_ACCESS_ALL & ~PVR_ACCESS_LOCAL_WRITE,
	};
}

static struct pvrdma_sq_wqe_hdr *put(struct fg_end *end, uint64_t wr_id, enum pvrdma_wr_opcode op,
				     uint32_t key)
{
	struct fg_wr wr = { .wr_id = wr_id, .opcode = op, .flags = PVR_SEND_SIGNALED, .imm = key };
	uint32_t index = end->qp.sq_tail;

	assert_true(fg_put_send(&end->qp, &wr));
	return fg_sq_wqe(&end->qp, index);
}

static struct pvrdma_sq_wqe_hdr *put_bind(struct fg_end *end, uint64_t wr_id,
					  const struct pvr_wqe_bind_mw *bind)
{
	struct pvrdma_sq_wqe_hdr *wqe = put(end, wr_id, PVRDMA_WR_BIND_MW, 0);

	memset(&wqe->wr, 0xee, sizeof(wqe->wr));
	memcpy(&wqe->wr, bind, sizeof(*bind));
	return wqe;
}

static void run(struct lend *l, struct fg_end *end)
{
	fg_ring_send(&end->qp);
	fg_run(l->env->host);
}

static void bind(struct lend *l)
{
	put_bind(l->b, BIND_ID, &l->bind);
	run(l, l->b);
	expect_done(&l->b->scq, BIND_ID, PVRDMA_WC_BIND_MW);
	/* As drivers do: the key of next time. */
	l->mw.rkey = l->bind.new_rkey;
	l->bind.mw_rkey = l->bind.new_rkey;
	l->bind.new_rkey ^= 0x0f;
}

static void reconnect(struct lend *l)
{
	expect_ok(fg_qp_to_reset(&l->a->qp));
	expect_ok(fg_qp_to_reset(&l->b->qp));
	fg_end_connect(l->a, l->b, NULL);
}

/* The request as it stands must fail; afterwards both are connected anew. */
static void bind_refused(struct lend *l)
{
	put_bind(l->b, BIND_ID, &l->bind);
	run(l, l->b);
	expect_cqe(&l->b->scq, BIND_ID, PVRDMA_WC_MW_BIND_ERR);
	expect_state(l->b, PVR_QPS_ERR);
	reconnect(l);
}

static void invalidate(struct lend *l, struct fg_end *end, uint32_t key)
{
	put(end, 901, PVRDMA_WR_LOCAL_INV, key);
	run(l, end);
}

static void invalidated(struct lend *l)
{
	invalidate(l, l->b, l->mw.rkey);
	expect_done(&l->b->scq, 901, PVRDMA_WC_LOCAL_INV);
}

static void access_at(struct lend *l, enum pvrdma_wr_opcode op, uint32_t rkey, uint64_t addr,
		      uint32_t len)
{
	struct pvrdma_sge sge = fg_sge(&l->a->mr, 0, len);
	struct fg_wr wr = { .wr_id = 1,
			    .opcode = op,
			    .flags = PVR_SEND_SIGNALED,
			    .sge = &sge,
			    .num_sge = 1,
			    .remote_addr = addr,
			    .rkey = rkey };

	assert_true(fg_post_send(&l->a->qp, &wr));
	fg_run(l->env->host);
}

/* a writes to [addr, addr + len) through the window, which is byte @at of the buffer. */
static void write_ok(struct lend *l, uint64_t addr, uint32_t at, uint32_t len)
{
	fg_fill(l->a->mr.va, len, at);
	memset(l->b->buf.va, 0, l->b->buf.size);
	access_at(l, PVRDMA_WR_RDMA_WRITE, l->mw.rkey, addr, len);
	expect_done(&l->a->scq, 1, PVRDMA_WC_RDMA_WRITE);
	assert_int_equal(fg_mismatch(l->b->buf.va + at, len, at), len);
	assert_int_equal(l->b->buf.va[at - 1], 0);
	assert_int_equal(l->b->buf.va[at + len], 0);
}

static void all_ok(struct lend *l)
{
	write_ok(l, l->region.start + BOUND_FROM, BOUND_FROM, BOUND_LEN);
}

static void refused(struct lend *l, enum pvrdma_wr_opcode op, uint32_t rkey, uint64_t addr,
		    uint32_t len)
{
	access_at(l, op, rkey, addr, len);
	expect_cqe(&l->a->scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect_state(l->b, PVR_QPS_ERR);
}

/* The window's first byte cannot be reached; the pair is left in ERR. */
static void all_refused(struct lend *l)
{
	refused(l, PVRDMA_WR_RDMA_WRITE, l->mw.rkey, l->region.start + BOUND_FROM, 1);
}

/* ------------------------------------------------------------------- bounds */

static void test_window_lends_its_part_and_no_more(void **state)
{
	static const uint32_t flags[] = { PVR_MR_FLAG_MW1, PVR_MR_FLAG_MW2 };

	for (size_t i = 0; i < 2; i++) {
		uint64_t first, end;
		struct lend l;

		lend_init(&l, state, flags[i]);
		reconnect(&l);
		first = l.bind.addr;
		end = first + BOUND_LEN;
		bind(&l);
		all_ok(&l);
		write_ok(&l, end - 1, BOUND_FROM + BOUND_LEN - 1, 1);
		refused(&l, PVRDMA_WR_RDMA_WRITE, l.mw.rkey, first - 1, 2);
		reconnect(&l);
		bind(&l);
		refused(&l, PVRDMA_WR_RDMA_WRITE, l.mw.rkey, end - 1, 2);
		reconnect(&l);
		bind(&l);
		refused(&l, PVRDMA_WR_RDMA_WRITE, l.mw.rkey, UINT64_MAX, 2);
		expect_ok(fg_mr_destroy(&l.mw));
		expect_ok(fg_mr_destroy(&l.region));
	}
}

static void test_new_window_is_not_bound(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	refused(&l, PVRDMA_WR_RDMA_READ, l.mw.rkey, 0, 1);
}

static void test_zero_based_window(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	l.bind.access_flags |= PVR_ACCESS_ZERO_BASED;
	bind(&l);
	write_ok(&l, 0, BOUND_FROM, BOUND_LEN);
	write_ok(&l, BOUND_LEN - 1, BOUND_FROM + BOUND_LEN - 1, 1);
	refused(&l, PVRDMA_WR_RDMA_WRITE, l.mw.rkey, BOUND_LEN, 1);
	reconnect(&l);
	bind(&l);
	all_refused(&l);
}

static void test_window_of_a_region_whose_address_is_free(void **state)
{
	const uint64_t iova = 0x1000;
	struct pvr_cmd_create_mr req;
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	req = fg_layout_request(&l.b->pd, l.b->buf.pdir, PVR_PAGE_SHIFT, iova, 100,
				l.b->buf.size - 100);
	req.access_flags |= PVR_ACCESS_MW_BIND;
	expect_ok(fg_mr_create_as(&l.b->pd, &req, &l.region));
	l.bind.addr = iova + 50;
	l.bind.mr_lkey = l.region.lkey;
	bind(&l);
	write_ok(&l, iova + 60, 160, 8000);
}

static void test_rights_are_the_windows_own(void **state)
{
	static const struct {
		uint32_t access;
		enum pvrdma_wr_opcode allowed, refused;
	} cases[] = {
		{ PVR_ACCESS_REMOTE_READ, PVRDMA_WR_RDMA_READ, PVRDMA_WR_RDMA_WRITE },
		{ PVR_ACCESS_REMOTE_WRITE, PVRDMA_WR_RDMA_WRITE, PVRDMA_WR_RDMA_READ },
		{ PVR_ACCESS_REMOTE_ATOMIC, PVRDMA_WR_ATOMIC_FETCH_AND_ADD, PVRDMA_WR_RDMA_READ },
		{ PVR_ACCESS_REMOTE_READ, PVRDMA_WR_RDMA_READ, PVRDMA_WR_ATOMIC_FETCH_AND_ADD },
	};
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		l.bind.access_flags = cases[i].access;
		bind(&l);
		access_at(&l, cases[i].allowed, l.mw.rkey, l.bind.addr, 8);
		expect_cqe(&l.a->scq, 1, PVRDMA_WC_SUCCESS);
		refused(&l, cases[i].refused, l.mw.rkey, l.bind.addr, 8);
		reconnect(&l);
	}
}

static void test_window_has_no_lkey(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	bind(&l);
	l.b->mr.lkey = l.mw.rkey;
	l.b->mr.start = l.bind.addr;
	t_send(l.b, 3, 0, 8);
	fg_run(l.env->host);
	expect_cqe(&l.b->scq, 3, PVRDMA_WC_LOC_PROT_ERR);
}

/* -------------------------------------------------------------------- type 1 */

static void test_type_1_is_bound_anew_at_will(void **state)
{
	struct lend l;
	uint32_t old;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	bind(&l);
	old = l.mw.rkey;
	l.bind.addr += BOUND_LEN;
	bind(&l);
	write_ok(&l, l.bind.addr, BOUND_FROM + BOUND_LEN, BOUND_LEN);
	refused(&l, PVRDMA_WR_RDMA_WRITE, l.mw.rkey, l.bind.addr - 1, 1);
	reconnect(&l);
	refused(&l, PVRDMA_WR_RDMA_WRITE, old, l.bind.addr, 1);
}

static void test_type_1_is_unbound_by_length_0(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	bind(&l);
	l.bind.length = 0;
	l.bind.mr_lkey = 0;
	bind(&l);
	all_refused(&l);
	reconnect(&l);
	expect_ok(fg_mr_destroy(&l.region));
	expect_ok(fg_mr_create(&l.b->pd, &l.b->buf, FG_ACCESS_ALL | PVR_ACCESS_MW_BIND,
			       &l.region));
	l.bind.length = BOUND_LEN;
	l.bind.mr_lkey = l.region.lkey;
	bind(&l);
	all_ok(&l);
}

static void test_type_1_is_everybodys_of_its_domain(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	bind(&l);
	/* Neither does it go when the QP goes that bound it. */
	reconnect(&l);
	all_ok(&l);
}

static void test_type_1_cannot_be_invalidated(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	bind(&l);
	invalidate(&l, l.b, l.mw.rkey);
	expect_cqe(&l.b->scq, 901, PVRDMA_WC_MW_BIND_ERR);
	reconnect(&l);
	t_recv(l.b, 2, 0, 8);
	put(l.a, 1, PVRDMA_WR_SEND_WITH_INV, l.mw.rkey);
	run(&l, l.a);
	expect_cqe(&l.a->scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect_cqe(&l.b->rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	reconnect(&l);
	all_ok(&l);
}

/* ------------------------------------------------------------------- type 2B */

static void test_type_2_is_invalidated_by_its_owner(void **state)
{
	struct lend l;
	uint32_t old;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	bind(&l);
	all_ok(&l);
	invalidated(&l);
	old = l.mw.rkey;
	bind(&l);
	all_ok(&l);
	refused(&l, PVRDMA_WR_RDMA_WRITE, old, l.bind.addr, 1);
	reconnect(&l);
	bind(&l);
	invalidated(&l);
	all_refused(&l);
}

static void test_type_2_is_invalidated_by_a_peer(void **state)
{
	struct pvrdma_cqe cqe;
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	bind(&l);
	t_recv(l.b, 2, 0, 8);
	put(l.a, 1, PVRDMA_WR_SEND_WITH_INV, l.mw.rkey);
	run(&l, l.a);
	expect_done(&l.a->scq, 1, PVRDMA_WC_SEND);
	cqe = expect_recv(&l.b->rcq, 2, 0);
	assert_true(cqe.wc_flags & PVRDMA_WC_WITH_INVALIDATE);
	assert_memory_equal(&cqe.imm_data, &l.mw.rkey, sizeof(l.mw.rkey));
	all_refused(&l);
}

/* Its key is its user's, who may go on naming it by the first one. */
static void test_type_2_is_named_by_its_index(void **state)
{
	struct lend l;
	uint32_t first;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	first = l.mw.rkey;
	bind(&l);
	put(l.b, 1, PVRDMA_WR_LOCAL_INV, l.mw.rkey);
	run(&l, l.b);
	expect_done(&l.b->scq, 1, PVRDMA_WC_LOCAL_INV);
	assert_int_not_equal(l.mw.rkey, first);
	l.bind.mw_rkey = first;
	bind(&l);
	all_ok(&l);
}

static void test_type_2_must_be_invalid_to_be_bound(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	bind(&l);
	bind_refused(&l);
}

static void test_type_2_is_not_unbound_by_length_0(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	l.bind.length = 0;
	bind_refused(&l);
}

static void test_type_2_that_is_not_bound_cannot_be_invalidated(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	invalidate(&l, l.b, l.mw.rkey);
	expect_cqe(&l.b->scq, 901, PVRDMA_WC_MW_BIND_ERR);
	expect_state(l.b, PVR_QPS_ERR);
}

/* Another QP of the same PD, connected to one of a's guest. */
static void other_pair(struct lend *l, struct fg_end *near, struct fg_end *far)
{
	struct fg_qp_spec spec = {
		.type = PVR_QPT_RC, .pd = &l->b->pd, .scq = &l->b->scq, .rcq = &l->b->rcq
	};

	fg_end_open(far, l->a->guest, PVR_QPT_RC);
	*near = *l->b;
	expect_ok(fg_qp_create(&spec, &near->qp));
	fg_end_connect(near, far, NULL);
}

static void test_type_2_is_its_queue_pairs_alone(void **state)
{
	struct fg_end near, far;
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	other_pair(&l, &near, &far);
	bind(&l);
	l.region.rkey = l.mw.rkey;
	t_rdma(&far, PVRDMA_WR_RDMA_WRITE, 7, 0, &l.region, BOUND_FROM, 8);
	fg_run(l.env->host);
	expect_cqe(&far.scq, 7, PVRDMA_WC_REM_ACCESS_ERR);
	expect_ok(fg_qp_to_reset(&near.qp));
	expect_ok(fg_qp_to_reset(&far.qp));
	fg_end_connect(&near, &far, NULL);
	invalidate(&l, &near, l.mw.rkey);
	expect_cqe(&l.b->scq, 901, PVRDMA_WC_MW_BIND_ERR);
	all_ok(&l);
	/* Once free it may be the other one's. */
	invalidated(&l);
	expect_ok(fg_qp_to_reset(&near.qp));
	expect_ok(fg_qp_to_reset(&far.qp));
	fg_end_connect(&near, &far, NULL);
	put_bind(&near, BIND_ID, &l.bind);
	run(&l, &near);
	expect_done(&l.b->scq, BIND_ID, PVRDMA_WC_BIND_MW);
	l.region.rkey = l.bind.new_rkey;
	t_rdma(&far, PVRDMA_WR_RDMA_WRITE, 7, 0, &l.region, BOUND_FROM, 8);
	fg_run(l.env->host);
	expect_done(&far.scq, 7, PVRDMA_WC_RDMA_WRITE);
	expect_ok(fg_qp_destroy(&near.qp));
}

static void test_reset_frees_windows_of_type_2(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	bind(&l);
	assert_int_equal(fg_mr_destroy(&l.region), EBUSY);
	reconnect(&l);
	all_refused(&l);
	expect_ok(fg_mr_destroy(&l.region));
}

static void test_destroyed_queue_pair_frees_its_windows(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	bind(&l);
	expect_ok(fg_qp_destroy(&l.b->qp));
	expect_ok(fg_mr_destroy(&l.region));
	expect_ok(fg_mr_destroy(&l.mw));
}

static void test_queue_pair_in_error_keeps_its_windows(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	bind(&l);
	expect_ok(fg_qp_to_err(&l.b->qp));
	assert_int_equal(fg_mr_destroy(&l.region), EBUSY);
}

/* --------------------------------------------------------------- bad requests */

static void test_region_must_allow_windows(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	l.bind.mr_lkey = l.b->mr.lkey; /* all access but that */
	bind_refused(&l);
}

static void test_writing_windows_need_local_write_of_the_region(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	expect_ok(fg_mr_create(&l.b->pd, &l.b->buf, PVR_ACCESS_MW_BIND, &l.region));
	l.bind.mr_lkey = l.region.lkey;
	l.bind.access_flags = PVR_ACCESS_REMOTE_WRITE;
	bind_refused(&l);
	l.bind.access_flags = PVR_ACCESS_REMOTE_ATOMIC;
	bind_refused(&l);
	l.bind.access_flags = PVR_ACCESS_REMOTE_READ;
	bind(&l);
	access_at(&l, PVRDMA_WR_RDMA_READ, l.mw.rkey, l.bind.addr, 8);
	expect_done(&l.a->scq, 1, PVRDMA_WC_RDMA_READ);
}

/* One field of the request is wrong; nothing must be bound then. */
#define EXPECT_BAD_BIND(l, field, value)                                             \
	do {                                                                         \
		const struct pvr_wqe_bind_mw good = (l)->bind;                       \
                                                                                     \
		(l)->bind.field = (value);                                           \
		bind_refused(l);                                                     \
		(l)->bind = good;                                                    \
		assert_int_equal(fg_stats((l)->b->guest).mws, 1);                    \
		refused(l, PVRDMA_WR_RDMA_READ, good.new_rkey, good.addr, 1);        \
		reconnect(l);                                                        \
	} while (0)

static void expect_bad_binds(struct lend *l)
{
	const uint64_t start = l->region.start, length = l->region.length;
	struct fg_mr dma;

	EXPECT_BAD_BIND(l, addr, start - 1);
	EXPECT_BAD_BIND(l, addr, start + length - BOUND_LEN + 1);
	EXPECT_BAD_BIND(l, addr, start + length);
	EXPECT_BAD_BIND(l, addr, 0);
	EXPECT_BAD_BIND(l, addr, UINT64_MAX);
	EXPECT_BAD_BIND(l, length, length - BOUND_FROM + 1);
	EXPECT_BAD_BIND(l, length, UINT64_MAX);
	EXPECT_BAD_BIND(l, length, -(uint64_t)BOUND_FROM);
	EXPECT_BAD_BIND(l, mw_rkey, l->mw.rkey ^ 0x100);
	EXPECT_BAD_BIND(l, mw_rkey, l->region.rkey);
	EXPECT_BAD_BIND(l, mw_rkey, 0);
	EXPECT_BAD_BIND(l, new_rkey, l->bind.new_rkey ^ 0x100);
	EXPECT_BAD_BIND(l, new_rkey, 0);
	EXPECT_BAD_BIND(l, mr_lkey, l->region.lkey ^ 1);
	EXPECT_BAD_BIND(l, mr_lkey, l->mw.rkey);
	EXPECT_BAD_BIND(l, mr_lkey, UINT32_MAX);
	EXPECT_BAD_BIND(l, access_flags, PVR_ACCESS_LOCAL_WRITE);
	EXPECT_BAD_BIND(l, access_flags, PVR_ACCESS_MW_BIND);
	EXPECT_BAD_BIND(l, access_flags, 1u << 31);
	expect_ok(fg_mr_create_dma(&l->b->pd, &dma));
	EXPECT_BAD_BIND(l, mr_lkey, dma.lkey);
}

static void test_bad_binds_of_type_1_fail(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	expect_bad_binds(&l);
	EXPECT_BAD_BIND(&l, mw_rkey, l.mw.rkey ^ 1);
	bind(&l);
	all_ok(&l);
}

static void test_bad_binds_of_type_2_fail(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	expect_bad_binds(&l);
	bind(&l);
	all_ok(&l);
}

static void test_bind_in_another_domain_fails(void **state)
{
	struct fg_mr region, mw;
	struct fg_pd pd;
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	expect_ok(fg_pd_create(&l.b->guest->kernel, &pd));
	expect_ok(fg_mr_create(&pd, &l.b->buf, FG_ACCESS_ALL | PVR_ACCESS_MW_BIND, &region));
	expect_ok(fg_mw_create(&pd, PVR_MR_FLAG_MW1, &mw));
	l.bind.mr_lkey = region.lkey;
	bind_refused(&l);
	l.bind.mr_lkey = l.region.lkey;
	l.bind.mw_rkey = mw.rkey;
	l.bind.new_rkey = mw.rkey;
	bind_refused(&l);
}

static void test_key_of_a_region_is_no_windows(void **state)
{
	struct pvr_cmd_create_mr req = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
					 .flags = PVR_MR_FLAG_FRMR,
					 .nchunks = 4 };
	struct fg_mr fast;
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	/* As if the bind were within it and permitted. */
	req.pd_handle = l.b->pd.handle;
	req.start = l.region.start;
	req.length = l.region.length;
	req.access_flags = FG_ACCESS_ALL | PVR_ACCESS_MW_BIND;
	expect_ok(fg_mr_create_as(&l.b->pd, &req, &fast));
	l.bind.mw_rkey = l.bind.new_rkey = l.b->mr.rkey;
	bind_refused(&l);
	l.bind.mw_rkey = l.bind.new_rkey = fast.rkey;
	bind_refused(&l);
	/* Nor is a window a region to bind to, or one that has no memory of its own yet. */
	l.bind.mw_rkey = l.bind.new_rkey = l.mw.rkey;
	l.bind.mr_lkey = fast.lkey;
	bind_refused(&l);
	l.bind.mr_lkey = l.mw.rkey;
	bind_refused(&l);
	/* The region is what it was. */
	l.bind.mr_lkey = l.region.lkey;
	l.region.rkey = l.b->mr.rkey;
	t_rdma(l.a, PVRDMA_WR_RDMA_WRITE, 7, 0, &l.region, 0, 8);
	fg_run(l.env->host);
	expect_done(&l.a->scq, 7, PVRDMA_WC_RDMA_WRITE);
}

static void test_window_of_another_domain_is_refused(void **state)
{
	static const uint32_t flags[] = { PVR_MR_FLAG_MW1, PVR_MR_FLAG_MW2 };
	struct fg_end near, far;
	struct lend l;

	fg_end_open(&near, ((struct t_env *)*state)->g[1], PVR_QPT_RC);
	fg_end_open(&far, ((struct t_env *)*state)->g[0], PVR_QPT_RC);
	for (size_t i = 0; i < 2; i++) {
		lend_init(&l, state, flags[i]);
		bind(&l);
		fg_end_connect(&far, &near, NULL);
		l.region.rkey = l.mw.rkey;
		t_rdma(&far, PVRDMA_WR_RDMA_WRITE, 7, 0, &l.region, BOUND_FROM, 8);
		fg_run(l.env->host);
		expect_cqe(&far.scq, 7, PVRDMA_WC_REM_ACCESS_ERR);
		expect_ok(fg_qp_to_reset(&near.qp));
		expect_ok(fg_qp_to_reset(&far.qp));
		all_ok(&l);
	}
}

static void test_failed_bind_leaves_type_1_as_it_was(void **state)
{
	struct pvr_wqe_bind_mw good;
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	bind(&l);
	good = l.bind;
	l.bind.length = UINT64_MAX;
	bind_refused(&l);
	l.bind = good;
	all_ok(&l);
}

/* IBTA vol. 1, table 38: UC binds. What it does not do is say that an access was refused. */
static void test_unreliable_connections_bind_windows(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	bind(&l);
	all_ok(&l);
	memset(l.b->buf.va, 0, l.b->buf.size);
	l.a->mr.va[0] = 1;
	access_at(&l, PVRDMA_WR_RDMA_WRITE, l.mw.rkey, l.region.start + BOUND_FROM - 1, 1);
	expect_done(&l.a->scq, 1, PVRDMA_WC_RDMA_WRITE);
	assert_int_equal(l.b->buf.va[BOUND_FROM - 1], 0);
	invalidated(&l);
	access_at(&l, PVRDMA_WR_RDMA_WRITE, l.mw.rkey, l.region.start + BOUND_FROM, 1);
	expect_done(&l.a->scq, 1, PVRDMA_WC_RDMA_WRITE);
	assert_int_equal(l.b->buf.va[BOUND_FROM], 0);
	expect_state(l.b, PVR_QPS_RTS);
}

static int t_setup_uc_connected(void **state)
{
	struct t_env *env;

	t_setup_uc(state);
	env = *state;
	fg_end_connect(&env->a, &env->b, NULL);
	return 0;
}

static void test_datagram_queue_pairs_bind_nothing(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	put_bind(l.b, BIND_ID, &l.bind);
	run(&l, l.b);
	expect_cqe(&l.b->scq, BIND_ID, PVRDMA_WC_LOC_QP_OP_ERR);
}

/* --------------------------------------------------------------------- life */

static void test_region_with_windows_is_busy(void **state)
{
	struct fg_mr second;
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	expect_ok(fg_mw_create(&l.b->pd, PVR_MR_FLAG_MW2, &second));
	bind(&l);
	l.bind.mw_rkey = second.rkey;
	l.bind.new_rkey = second.rkey;
	put_bind(l.b, BIND_ID, &l.bind);
	run(&l, l.b);
	expect_done(&l.b->scq, BIND_ID, PVRDMA_WC_BIND_MW);
	assert_int_equal(fg_mr_destroy(&l.region), EBUSY);
	expect_ok(fg_mr_destroy(&l.mw));
	assert_int_equal(fg_mr_destroy(&l.region), EBUSY);
	expect_ok(fg_mr_destroy(&second));
	expect_ok(fg_mr_destroy(&l.region));
}

static void test_destroyed_window_is_gone(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	bind(&l);
	expect_ok(fg_mr_destroy(&l.mw));
	assert_int_equal(fg_mr_destroy(&l.mw), EINVAL);
	all_refused(&l);
}

static void test_windows_hold_their_domain(void **state)
{
	struct fg_mr mw;
	struct fg_pd pd;
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	expect_ok(fg_pd_create(&l.b->guest->kernel, &pd));
	expect_ok(fg_mw_create(&pd, PVR_MR_FLAG_MW1, &mw));
	assert_int_equal(fg_pd_destroy(&pd), EBUSY);
	expect_ok(fg_mr_destroy(&mw));
	expect_ok(fg_pd_destroy(&pd));
}

static void test_windows_are_counted_apart(void **state)
{
	struct pvr_adapter_stats before, after;
	struct fg_mr mw;
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	before = fg_stats(l.b->guest);
	expect_ok(fg_mw_create(&l.b->pd, PVR_MR_FLAG_MW2, &mw));
	after = fg_stats(l.b->guest);
	assert_int_equal(after.mws, before.mws + 1);
	assert_int_equal(after.mrs, before.mrs);
	expect_ok(fg_mr_destroy(&mw));
	assert_int_equal(fg_stats(l.b->guest).mws, before.mws);
	assert_int_equal(fg_stats(l.b->guest).mrs, before.mrs);
}

static void test_unplugged_memory_cannot_be_reached_by_windows(void **state)
{
	static uint8_t piece[PVR_PAGE_SIZE] __attribute__((aligned(PVR_PAGE_SIZE)));
	const uint64_t gpa = 0x40000000;
	struct pvr_cmd_create_mr req;
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	expect_ok((uint32_t)pvr_adapter_map_ram(l.b->guest->adapter, gpa, sizeof(piece), piece,
						true));
	req = fg_layout_request(&l.b->pd, fg_pdir(&l.b->guest->ram, 2, &gpa, 1), PVR_PAGE_SHIFT, 0,
				0, sizeof(piece));
	req.access_flags |= PVR_ACCESS_MW_BIND;
	expect_ok(fg_mr_create_as(&l.b->pd, &req, &l.region));
	l.bind.mr_lkey = l.region.lkey;
	l.bind.addr = 100;
	l.bind.length = 200;
	bind(&l);
	l.a->mr.va[0] = 7;
	access_at(&l, PVRDMA_WR_RDMA_WRITE, l.mw.rkey, 100, 1);
	expect_done(&l.a->scq, 1, PVRDMA_WC_RDMA_WRITE);
	assert_int_equal(piece[100], 7);
	pvr_adapter_unmap_ram(l.b->guest->adapter, gpa, sizeof(piece));
	refused(&l, PVRDMA_WR_RDMA_WRITE, l.mw.rkey, 100, 1);
	reconnect(&l);
	l.bind.new_rkey = l.mw.rkey;
	bind_refused(&l);
}

static void test_requests_are_bound_in_order(void **state)
{
	struct lend l;

	lend_init(&l, state, PVR_MR_FLAG_MW2);
	put_bind(l.b, 1, &l.bind)->send_flags = PVR_SEND_FENCE;
	put(l.b, 2, PVRDMA_WR_LOCAL_INV, l.bind.new_rkey);
	l.bind.mw_rkey = l.bind.new_rkey;
	l.bind.new_rkey ^= 3;
	put_bind(l.b, 3, &l.bind);
	t_recv(l.a, 4, 0, 8);
	t_send(l.b, 5, 0, 8);
	run(&l, l.b);
	/* The first was not signaled. */
	expect_done(&l.b->scq, 2, PVRDMA_WC_LOCAL_INV);
	expect_done(&l.b->scq, 3, PVRDMA_WC_BIND_MW);
	expect_done(&l.b->scq, 5, PVRDMA_WC_SEND);
	l.mw.rkey = l.bind.new_rkey;
	all_ok(&l);
}

static void test_user_space_binds_windows(void **state)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_RC, .flags = PVR_QP_USER_OPS };
	struct t_env *env = *state;
	struct fg_ctx ctx;
	struct lend l;

	expect_ok(fg_ctx_create(env->g[1], &ctx));
	fg_end_close(&env->b);
	fg_end_open_spec(&env->b, &ctx, &spec, FG_END_PAGES);
	lend_init(&l, state, PVR_MR_FLAG_MW2);
	fg_end_connect(l.a, l.b, NULL);
	bind(&l);
	all_ok(&l);
	invalidated(&l);
	bind(&l);
	/* The process dies with the window bound. */
	expect_ok(fg_ctx_destroy(&ctx));
	assert_int_equal(fg_stats(env->g[1]).mws, 0);
	assert_int_equal(fg_stats(env->g[1]).mrs, 0);
}

static void test_windows_need_the_extension(void **state)
{
	struct t_env *env = *state;
	struct fg_guest_config config;
	struct fg_guest *stock;
	struct fg_end end;
	struct lend l;
	struct fg_mr mw;
	uint8_t gid[16];

	lend_init(&l, state, PVR_MR_FLAG_MW1);
	assert_int_equal(env->g[0]->dsr->caps.max_mw, env->g[0]->dsr->caps.max_mr);
	fg_guest_config_init(&config, 3);
	config.ext = PVR_EXT_ALL & ~PVR_EXT_MW;
	env->g[2] = stock = fg_guest_create(env->host, &config);
	expect_ok(fg_guest_boot(stock));
	assert_int_equal(stock->dsr->caps.max_mw, 0);
	fg_gid_from_mac(gid, config.mac);
	expect_ok(fg_bind_gid(stock, 0, gid));
	fg_end_open(&end, stock, PVR_QPT_RC);
	assert_int_equal(fg_mw_create(&end.pd, PVR_MR_FLAG_MW1, &mw), EINVAL);
	assert_int_equal(fg_mw_create(&end.pd, PVR_MR_FLAG_MW2, &mw), EINVAL);
	fg_end_connect(&end, &end, NULL);
	put_bind(&end, BIND_ID, &l.bind);
	run(&l, &end);
	assert_int_equal(expect_cqe(&end.scq, BIND_ID, PVRDMA_WC_LOC_QP_OP_ERR).opcode,
			 PVRDMA_WC_SEND);
}

static void test_window_is_of_one_type(void **state)
{
	struct t_env *env = *state;
	struct fg_mr mw;

	assert_int_equal(fg_mw_create(&env->b.pd, PVR_MR_FLAG_MW1 | PVR_MR_FLAG_MW2, &mw), EINVAL);
	assert_int_equal(fg_mw_create(&env->b.pd, PVR_MR_FLAG_MW1 | PVR_MR_FLAG_LAYOUT, &mw),
			 EINVAL);
	assert_int_equal(fg_mw_create(&env->b.pd, PVR_MR_FLAG_MW2 | PVR_MR_FLAG_FRMR, &mw),
			 EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_window_lends_its_part_and_no_more, rc_connected),
		T(test_new_window_is_not_bound, rc_connected),
		T(test_zero_based_window, rc_connected),
		T(test_window_of_a_region_whose_address_is_free, rc_connected),
		T(test_rights_are_the_windows_own, rc_connected),
		T(test_window_has_no_lkey, rc_connected),
		T(test_type_1_is_bound_anew_at_will, rc_connected),
		T(test_type_1_is_unbound_by_length_0, rc_connected),
		T(test_type_1_is_everybodys_of_its_domain, rc_connected),
		T(test_type_1_cannot_be_invalidated, rc_connected),
		T(test_type_2_is_invalidated_by_its_owner, rc_connected),
		T(test_type_2_is_invalidated_by_a_peer, rc_connected),
		T(test_type_2_is_named_by_its_index, rc_connected),
		T(test_type_2_must_be_invalid_to_be_bound, rc_connected),
		T(test_type_2_is_not_unbound_by_length_0, rc_connected),
		T(test_type_2_that_is_not_bound_cannot_be_invalidated, rc_connected),
		T(test_type_2_is_its_queue_pairs_alone, rc_connected),
		T(test_reset_frees_windows_of_type_2, rc_connected),
		T(test_destroyed_queue_pair_frees_its_windows, rc_connected),
		T(test_queue_pair_in_error_keeps_its_windows, rc_connected),
		T(test_region_must_allow_windows, rc_connected),
		T(test_writing_windows_need_local_write_of_the_region, rc_connected),
		T(test_bad_binds_of_type_1_fail, rc_connected),
		T(test_bad_binds_of_type_2_fail, rc_connected),
		T(test_bind_in_another_domain_fails, rc_connected),
		T(test_key_of_a_region_is_no_windows, rc_connected),
		T(test_window_of_another_domain_is_refused, rc_connected),
		T(test_failed_bind_leaves_type_1_as_it_was, rc_connected),
		T(test_unreliable_connections_bind_windows, uc_connected),
		T(test_datagram_queue_pairs_bind_nothing, ud_ready),
		T(test_region_with_windows_is_busy, rc_connected),
		T(test_destroyed_window_is_gone, rc_connected),
		T(test_windows_hold_their_domain, rc_connected),
		T(test_windows_are_counted_apart, rc_connected),
		T(test_unplugged_memory_cannot_be_reached_by_windows, rc_connected),
		T(test_requests_are_bound_in_order, rc_connected),
		T(test_user_space_binds_windows, rc),
		T(test_windows_need_the_extension, rc_connected),
		T(test_window_is_of_one_type, rc_connected),
	};

	fg_default_ext = PVR_EXT_MW | PVR_EXT_USER_OPS | PVR_EXT_MR_LAYOUT;
	return T_MAIN(tests);
}
