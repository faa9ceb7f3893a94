// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static struct ibv_context *ibctx;

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

static int parent_domain_setup(void **state)
{
	if (fake_setup(state))
		return -1;
	memset(&app, 0, sizeof(app));
	ibctx = &fake.ctx.ibv_ctx.context;
	attr = (struct ibv_parent_domain_init_attr){
		.pd = &fake.pd.ibv_pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = app_alloc,
		.free = app_free,
		.pd_context = &app,
	};
	return 0;
}
#define parent_domain_teardown fake_teardown

static struct ibv_pd *parent_domain(void)
{
	struct ibv_pd *parent = pvr_alloc_parent_domain(ibctx, &attr);

	assert_non_null(parent);
	return parent;
}

static struct ibv_cq *create_cq(struct ibv_pd *parent)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 8,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent,
	};
	struct ibv_cq_ex *cq = pvr_create_cq_ex(ibctx, &cq_attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

TEST(parent_domain, test_a_parent_domain_stands_for_its_pd)
{
	struct ibv_pd *pd = pvr_alloc_pd(ibctx), *parent;

	attr.pd = pd;
	parent = parent_domain();
	assert_ptr_equal(parent->context, ibctx);
	assert_int_equal(parent->handle, pd->handle);
	assert_int_equal(to_pvr_pd(parent)->handle, FAKE_PD_HANDLE);
	assert_int_equal(pvr_dealloc_pd(pd), EBUSY);
	assert_int_equal(pvr_dealloc_pd(parent), 0);
	assert_int_equal(fake.pds, 1);
	assert_int_equal(pvr_dealloc_pd(pd), 0);
	assert_int_equal(fake.pds, 0);
}

TEST(parent_domain, test_a_parent_domain_of_a_parent_domain)
{
	struct ibv_pd *inner = parent_domain(), *outer;

	attr.pd = inner;
	outer = parent_domain();
	assert_int_equal(to_pvr_pd(outer)->handle, FAKE_PD_HANDLE);
	assert_int_equal(pvr_dealloc_pd(inner), EBUSY);
	assert_int_equal(pvr_dealloc_pd(outer), 0);
	assert_int_equal(pvr_dealloc_pd(inner), 0);
}

static void refused(void)
{
	assert_fails(pvr_alloc_parent_domain(ibctx, &attr), EINVAL);
	assert_int_equal(fake.pd.users, 0);
}

TEST(parent_domain, test_bad_attributes_are_refused)
{
	struct ibv_parent_domain_init_attr good = attr;
	struct ibv_context other = {};
	struct ibv_pd foreign = { .context = &other };

	attr.pd = NULL;
	refused();
	attr.pd = &foreign;
	refused();
	attr = good;
	attr.comp_mask |= 1 << 5;
	refused();
	attr = good;
	attr.free = NULL;
	refused();
	attr = good;
	attr.alloc = NULL;
	refused();
}

TEST(parent_domain, test_a_thread_domain_in_use_stays)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = pvr_alloc_td(ibctx, &td_attr);
	struct ibv_pd *parent;

	attr.td = td;
	parent = parent_domain();
	assert_int_equal(pvr_dealloc_td(td), EBUSY);
	assert_int_equal(pvr_dealloc_pd(parent), 0);
	assert_int_equal(pvr_dealloc_td(td), 0);
	td_attr.comp_mask = 1;
	assert_fails(pvr_alloc_td(ibctx, &td_attr), EINVAL);
}

TEST(parent_domain, test_a_cq_of_a_thread_domain_takes_no_lock)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_pd *parent = parent_domain(), *threaded;
	struct ibv_cq *cq;

	attr.td = pvr_alloc_td(ibctx, &td_attr);
	threaded = parent_domain();
	cq = create_cq(threaded);
	assert_true(to_pvr_cq(cq)->single_threaded);
	pvr_destroy_cq(cq);
	cq = create_cq(parent);
	assert_false(to_pvr_cq(cq)->single_threaded);
	pvr_destroy_cq(cq);
	assert_int_equal(
		pvr_dealloc_pd(threaded) | pvr_dealloc_pd(parent) | pvr_dealloc_td(attr.td), 0);
}

TEST(parent_domain, test_a_cq_needs_a_parent_domain_for_a_pd)
{
	assert_fails(create_cq(&fake.pd.ibv_pd), EINVAL);
	assert_fails(create_cq(NULL), EINVAL);
}

TEST(parent_domain, test_memory_is_the_applications)
{
	struct ibv_pd *parent = parent_domain();
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
	assert_int_equal(pvr_dealloc_pd(parent), 0);
}

TEST(parent_domain, test_queues_are_too)
{
	struct ibv_qp_init_attr qp_attr = { .send_cq = fake.send_cq,
					    .recv_cq = fake.recv_cq,
					    .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_pd *parent = parent_domain();
	struct ibv_srq *srq = pvr_create_srq(parent, &srq_attr);
	struct ibv_qp *qp;

	assert_int_equal(app.type, PVR_RES_SRQ);
	pvr_destroy_srq(srq);
	assert_int_equal(app.frees, 1);
	qp = pvr_create_qp(parent, &qp_attr);
	assert_int_equal(app.type, PVR_RES_QP);
	assert_int_equal(app.allocs, 3);
	pvr_destroy_qp(qp);
	assert_int_equal(app.frees, 3);
	assert_int_equal(pvr_dealloc_pd(parent), 0);
}

TEST(parent_domain, test_a_new_ring_is_from_the_same_allocator)
{
	struct ibv_pd *parent = parent_domain();
	struct ibv_cq *cq = create_cq(parent);

	fake.ctx.features = PVR_EXT_RESIZE;
	assert_int_equal(pvr_resize_cq(cq, 16), 0);
	assert_int_equal(app.allocs, 2);
	assert_int_equal(app.frees, 1);
	pvr_destroy_cq(cq);
	assert_int_equal(app.frees, 2);
	assert_int_equal(pvr_dealloc_pd(parent), 0);
}

TEST(parent_domain, test_an_allocator_may_leave_it_to_us)
{
	struct ibv_pd *parent = parent_domain();
	struct ibv_cq *cq;

	app.mode = USE_DEFAULT;
	cq = create_cq(parent);
	assert_non_null(cq);
	assert_int_equal(app.type, PVR_RES_CQ);
	pvr_destroy_cq(cq);
	assert_int_equal(app.frees, 0);
	assert_int_equal(pvr_dealloc_pd(parent), 0);
}

TEST(parent_domain, test_an_allocator_that_fails)
{
	struct ibv_pd *parent = parent_domain();

	app.mode = FAIL;
	assert_fails(create_cq(parent), ENOMEM);
	app.mode = MISALIGN;
	assert_fails(create_cq(parent), EINVAL);
	assert_int_equal(app.frees, 1);
	app.mode = GIVE;
	fake.fail = ENOSPC;
	assert_null(create_cq(parent));
	assert_int_equal(app.frees, 2);
	assert_int_equal(pvr_dealloc_pd(parent), 0);
}
