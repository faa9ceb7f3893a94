// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <stdlib.h>

#include "fake_kernel.h"

/* The last call of the application's allocators, and their mode. */
static struct {
	int allocs, frees;
	struct ibv_pd *pd;
	void *pd_context;
	size_t size, alignment;
	uint64_t type;
	enum { GIVE, USE_DEFAULT, FAIL, MISALIGN } mode;
} app;

static void *app_alloc(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t type)
{
	char *mem;

	app.pd = pd;
	app.pd_context = pd_context;
	app.size = size;
	app.alignment = alignment;
	app.type = type;
	if (app.mode == USE_DEFAULT)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (app.mode == FAIL)
		return NULL;
	app.allocs++;
	mem = aligned_alloc(alignment, size + alignment);
	memset(mem, 0xaa, size + alignment);
	return app.mode == MISALIGN ? mem + 64 : mem;
}

static void app_free(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t type)
{
	assert_ptr_equal(pd, app.pd);
	assert_ptr_equal(pd_context, app.pd_context);
	assert_int_equal(type, app.type);
	app.frees++;
	free((void *)((uintptr_t)ptr & -app.alignment));
}

static struct ibv_parent_domain_init_attr attr;
static struct ibv_pd *parent; /* with the allocators */

static struct ibv_pd *parent_domain(void)
{
	struct ibv_pd *pd = pvr_alloc_parent_domain(fake.ibctx, &attr);

	assert_non_null(pd);
	return pd;
}

/* Fails if an object of the domain is left. */
static void dealloc_parent(void)
{
	assert_int_equal(pvr_dealloc_pd(parent), 0);
}

static void parent_domain_begin(void)
{
	memset(&app, 0, sizeof(app));
	attr = (struct ibv_parent_domain_init_attr){
		.pd = fake.ibpd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = app_alloc,
		.free = app_free,
		.pd_context = &app,
	};
	parent = parent_domain();
	fake.end = dealloc_parent;
}

static struct ibv_td *thread_domain(void)
{
	return pvr_alloc_td(fake.ibctx, &(struct ibv_td_init_attr){});
}

static struct ibv_cq *create_cq(struct ibv_pd *domain)
{
	struct ibv_cq_ex *cq = FAKE_CQ_EX(.cqe = 8, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					  .parent_domain = domain);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_srq *create_srq(struct ibv_pd *domain)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 8, .max_sge = 1 } };

	return pvr_create_srq(domain, &srq_attr);
}

static struct ibv_qp *create_qp(struct ibv_pd *domain)
{
	struct ibv_qp_init_attr qp_attr = { .send_cq = fake.send_cq,
					    .recv_cq = fake.recv_cq,
					    .qp_type = IBV_QPT_RC };

	return pvr_create_qp(domain, &qp_attr);
}

static struct ibv_cq *create_large_cq(uint32_t cqe)
{
	struct ibv_cq_ex *cq = FAKE_CQ_EX(.cqe = cqe, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					  .parent_domain = parent);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

static struct ibv_srq *create_large_srq(uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = wr, .max_sge = sge } };

	return pvr_create_srq(parent, &srq_attr);
}

static struct ibv_qp *create_large_qp(struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr qp_attr = {
		.send_cq = fake.send_cq, .recv_cq = fake.recv_cq, .qp_type = IBV_QPT_RC, .cap = cap
	};

	return pvr_create_qp(parent, &qp_attr);
}

static const struct {
	const char *label;
	uint32_t more; /* than the limit of the device */
} above[] = {
	{ "one more", 1 },
	{ "2^22 more", 1u << 22 },
	{ "2^29 more", 1u << 29 },
};

TEST_CASES(parent_domain, test_size_above_the_limit_allocates_nothing, above)
{
	uint32_t wr = FAKE_MAX_WR + row->more, sge = FAKE_MAX_SGE + row->more;

	assert_fails(create_large_cq(FAKE_MAX_CQE + row->more), EINVAL);
	assert_fails(create_large_srq(wr, 1), EINVAL);
	assert_fails(create_large_srq(1, sge), EINVAL);
	assert_fails(create_large_qp((struct ibv_qp_cap){ .max_send_wr = wr }), EINVAL);
	assert_fails(create_large_qp((struct ibv_qp_cap){ .max_recv_wr = wr }), EINVAL);
	assert_fails(create_large_qp((struct ibv_qp_cap){ .max_send_sge = sge }), EINVAL);
	assert_fails(create_large_qp((struct ibv_qp_cap){ .max_recv_sge = sge }), EINVAL);
	assert_int_equal(app.allocs, 0);
}

TEST(parent_domain, test_largest_sizes_are_accepted)
{
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	cq = create_large_cq(FAKE_MAX_CQE);
	assert_non_null(cq);
	assert_int_equal(pvr_destroy_cq(cq), 0);
	srq = create_large_srq(FAKE_MAX_WR, FAKE_MAX_SGE);
	assert_non_null(srq);
	assert_int_equal(pvr_destroy_srq(srq), 0);
	qp = create_large_qp((struct ibv_qp_cap){ FAKE_MAX_WR, FAKE_MAX_WR, 1, 1 });
	assert_non_null(qp);
	assert_int_equal(pvr_destroy_qp(qp), 0);
}

TEST(parent_domain, test_resize_above_the_limit_allocates_nothing)
{
	struct ibv_srq_attr srq_attr = { .max_wr = FAKE_MAX_WR + 1 };
	struct ibv_srq *srq;
	struct ibv_cq *cq;

	fake.ctx.features = PVR_EXT_RESIZE;
	cq = create_cq(parent);
	assert_int_equal(pvr_resize_cq(cq, FAKE_MAX_CQE + 1), EINVAL);
	assert_int_equal(app.allocs, 1);
	assert_int_equal(pvr_destroy_cq(cq), 0);
	srq = create_srq(parent);
	assert_int_equal(pvr_modify_srq(srq, &srq_attr, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(app.allocs, 2);
	assert_int_equal(pvr_destroy_srq(srq), 0);
}

TEST(parent_domain, test_device_without_srqs)
{
	fake.ctx.limits.srq_wr = 0;
	assert_fails(create_srq(parent), EOPNOTSUPP);
}

TEST(parent_domain, test_parent_domain_has_the_handles_of_its_pd)
{
	struct ibv_pd *pd = pvr_alloc_pd(fake.ibctx), *domain;

	attr.pd = pd;
	domain = parent_domain();
	assert_ptr_equal(domain->context, fake.ibctx);
	assert_int_equal(domain->handle, pd->handle);
	assert_int_equal(to_pvr_pd(domain)->handle, FAKE_PD_HANDLE);
	assert_int_equal(pvr_dealloc_pd(pd), EBUSY);
	assert_int_equal(pvr_dealloc_pd(domain), 0);
	assert_int_equal(fake.pds, 1);
	assert_int_equal(pvr_dealloc_pd(pd), 0);
	assert_int_equal(fake.pds, 0);
}

TEST(parent_domain, test_parent_domain_of_a_parent_domain_has_its_handle)
{
	struct ibv_pd *outer;

	attr.pd = parent;
	outer = parent_domain();
	assert_int_equal(to_pvr_pd(outer)->handle, FAKE_PD_HANDLE);
	assert_int_equal(pvr_dealloc_pd(parent), EBUSY);
	assert_int_equal(pvr_dealloc_pd(outer), 0);
}

static struct ibv_context other;
static struct ibv_pd foreign = { .context = &other };

static const struct {
	const char *label;
	struct ibv_pd *pd;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t type);
	uint32_t mask; /* further bits of comp_mask */
} refused[] = {
	{ "no PD", NULL, app_alloc, app_free, 0 },
	{ "PD of another context", &foreign, app_alloc, app_free, 0 },
	{ "unknown mask", &fake.pd.ibv_pd, app_alloc, app_free, 1 << 5 },
	{ "no free", &fake.pd.ibv_pd, app_alloc, NULL, 0 },
	{ "no alloc", &fake.pd.ibv_pd, NULL, app_free, 0 },
};

TEST_CASES(parent_domain, test_parent_domain_refuses, refused)
{
	attr.pd = row->pd;
	attr.alloc = row->alloc;
	attr.free = row->free;
	attr.comp_mask |= row->mask;
	assert_fails(pvr_alloc_parent_domain(fake.ibctx, &attr), EINVAL);
	assert_int_equal(fake.pd.users, 1); /* parent */
}

TEST(parent_domain, test_thread_domain_in_use_cannot_be_deallocated)
{
	struct ibv_pd *domain;

	attr.td = thread_domain();
	domain = parent_domain();
	assert_int_equal(pvr_dealloc_td(attr.td), EBUSY);
	assert_int_equal(pvr_dealloc_pd(domain), 0);
	assert_int_equal(pvr_dealloc_td(attr.td), 0);
	assert_fails(pvr_alloc_td(fake.ibctx, &(struct ibv_td_init_attr){ .comp_mask = 1 }),
		     EINVAL);
}

/* Whether CQs, SRQs and QPs of a domain take no lock. */
static void expect_alone(struct ibv_pd *domain, bool alone)
{
	struct ibv_cq *cq = create_cq(domain);
	struct ibv_srq *srq = create_srq(domain);
	struct ibv_qp *qp = create_qp(domain);

	assert_int_equal(to_pvr_cq(cq)->single_threaded, alone);
	assert_int_equal(to_pvr_srq(srq)->wq.lock.alone, alone);
	assert_int_equal(fake_sq(qp)->lock.alone, alone);
	assert_int_equal(fake_rq(qp)->lock.alone, alone);
	assert_int_equal(pvr_destroy_qp(qp) | pvr_destroy_srq(srq) | pvr_destroy_cq(cq), 0);
}

TEST(parent_domain, test_objects_of_a_thread_domain_take_no_lock)
{
	struct ibv_pd *threaded;

	app.mode = USE_DEFAULT;
	attr.td = thread_domain();
	threaded = parent_domain();
	expect_alone(threaded, true);
	expect_alone(parent, false);
	assert_int_equal(pvr_dealloc_pd(threaded) | pvr_dealloc_td(attr.td), 0);
}

TEST(parent_domain, test_cq_refuses_a_pd_that_is_no_parent_domain)
{
	assert_fails(create_cq(fake.ibpd), EINVAL);
	assert_fails(create_cq(NULL), EINVAL);
}

TEST(parent_domain, test_cq_uses_memory_of_the_application)
{
	struct ibv_cq *cq = create_cq(parent);
	struct ibv_wc wc;

	assert_non_null(cq);
	assert_int_equal(app.allocs, 1);
	assert_ptr_equal(app.pd, parent);
	assert_ptr_equal(app.pd_context, &app);
	assert_int_equal(app.size, to_pvr_cq(cq)->buf.size);
	assert_int_equal(app.alignment, PVR_PAGE_SIZE);
	assert_int_equal(app.type, PVR_RES_CQ);
	/* ... and zeroed */
	assert_int_equal(pvr_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(pvr_dealloc_pd(parent), EBUSY);
	pvr_destroy_cq(cq);
	assert_int_equal(app.frees, 1);
}

TEST(parent_domain, test_queues_use_memory_of_the_application)
{
	struct ibv_srq *srq = create_srq(parent);
	struct ibv_qp *qp;

	assert_int_equal(app.type, PVR_RES_SRQ);
	pvr_destroy_srq(srq);
	assert_int_equal(app.frees, 1);
	qp = create_qp(parent);
	assert_int_equal(app.type, PVR_RES_QP);
	assert_int_equal(app.allocs, 2);
	pvr_destroy_qp(qp);
	assert_int_equal(app.frees, 2);
}

TEST(parent_domain, test_resized_cq_uses_memory_of_the_application)
{
	struct ibv_cq *cq = create_cq(parent);

	fake.ctx.features = PVR_EXT_RESIZE;
	assert_int_equal(pvr_resize_cq(cq, 16), 0);
	assert_int_equal(app.allocs, 2);
	assert_int_equal(app.frees, 1);
	pvr_destroy_cq(cq);
	assert_int_equal(app.frees, 2);
}

TEST(parent_domain, test_allocator_may_select_the_default)
{
	struct ibv_cq *cq;

	app.mode = USE_DEFAULT;
	cq = create_cq(parent);
	assert_non_null(cq);
	assert_int_equal(app.type, PVR_RES_CQ);
	pvr_destroy_cq(cq);
	assert_int_equal(app.frees, 0);
}

TEST(parent_domain, test_failure_returns_the_memory_of_the_application)
{
	app.mode = FAIL;
	assert_fails(create_cq(parent), ENOMEM);
	app.mode = MISALIGN;
	assert_fails(create_cq(parent), EINVAL);
	assert_int_equal(app.frees, 1);
	app.mode = GIVE;
	fake.fail = ENOSPC;
	assert_null(create_cq(parent));
	assert_int_equal(app.frees, 2);
}
