// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pages of regions on demand in the driver, compiled for user space with the fuzzer's kernel:
 * which pages the device gets, and when it loses them.
 */
#include "odp.h"
#include "test.h"

#define PAGES 8u
#define HANDLE 9
#define RO ODP_READ_ALLOWED_BIT
#define RW (ODP_READ_ALLOWED_BIT | ODP_WRITE_ALLOWED_BIT)
#define BASE 0x10000000ull

static struct {
	struct pvr_dev dev;
	struct pvr_odp_queue queue;
	struct pvr_mr *mr;
	struct ib_umem_odp umem, child;
	struct mm_struct mm;
	dma_addr_t dma_list[PVR_ODP_CHILD_PAGES];
	/* The page tables: the rights of each page, 0 if it is absent, and whether a fault gives RW. */
	u64 pte[PAGES];
	bool changes[PAGES]; /* its word is cleared for a moment, without a notifier */
	bool may_write[PAGES];
	/* At the device. */
	u64 at_device[PAGES];
	u32 cmds;
	u32 queue_puts;
	bool failed;
} w;

/* --------------------------------------------------------- the kernel and other files */

static dma_addr_t address_of(u64 page)
{
	return BASE + page * PAGE_SIZE;
}

int ib_umem_odp_map_dma_and_lock(struct ib_umem_odp *odp, u64 start, u64 size, u64 access,
				 bool fault)
{
	u64 page = (start - ib_umem_start(odp)) / PAGE_SIZE, end = page + size / PAGE_SIZE;

	for (u64 i = page; fault && i < end; i++) {
		if (access & ODP_WRITE_ALLOWED_BIT && !w.may_write[i])
			return -EPERM;
		w.pte[i] |= access;
	}
	mutex_lock(&odp->umem_mutex);
	for (; page < end; page++) {
		if (!w.pte[page] || (w.changes[page] && !fault)) {
			/* A warning of ib_core. */
			assert_int_equal(odp->dma_list[page], 0);
			continue;
		}
		odp->npages += !odp->dma_list[page];
		odp->dma_list[page] = address_of(page) | (fault ? access : w.pte[page]);
	}
	return 0;
}

void ib_umem_odp_unmap_dma_pages(struct ib_umem_odp *odp, u64 start, u64 end)
{
	for (u64 i = start; i < end; i += PAGE_SIZE) {
		u64 page = (i - ib_umem_start(odp)) / PAGE_SIZE;

		odp->npages -= !!odp->dma_list[page];
		odp->dma_list[page] = 0;
	}
}

struct ib_umem_odp *ib_umem_odp_alloc_child(struct ib_umem_odp *root, unsigned long addr,
					    size_t size,
					    const struct mmu_interval_notifier_ops *ops)
{
	(void)ops;
	w.child = (struct ib_umem_odp){
		.umem = { .owning_mm = root->umem.owning_mm,
			  .address = addr,
			  .length = size,
			  .writable = root->umem.writable },
		.dma_list = w.dma_list,
	};
	return &w.child;
}

void ib_umem_odp_release(struct ib_umem_odp *odp)
{
	(void)odp;
}

void pvr_odp_queue_put(struct pvr_odp_queue *queue)
{
	assert_ptr_equal(queue, &w.queue);
	w.queue_puts++;
}

void pvr_dev_fail(struct pvr_dev *dev, const char *why)
{
	(void)dev;
	(void)why;
	w.failed = true;
}

int pvr_cmd(struct pvr_dev *dev, union pvr_cmd_req *req, union pvr_cmd_resp *resp)
{
	const struct pvr_cmd_set_pages *set = &req->set_pages;
	const __le64 *list = w.mr->odp->list.va;

	(void)dev;
	(void)resp;
	assert_int_equal(req->hdr.cmd, PVR_CMD_SET_PAGES);
	assert_int_equal(set->mr_handle, HANDLE);
	assert_in_range(set->first + set->npages, 1, PAGES);
	w.cmds++;
	for (u32 i = 0; i < set->npages; i++)
		w.at_device[set->first + i] = set->state == PVR_PAGES_PRESENT ? le64_to_cpu(list[i])
									      : 0;
	return 0;
}

/* ----------------------------------------------------------------------------- world */

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.mm = (struct mm_struct){ .users = 1, .count = 1 };
	w.umem = (struct ib_umem_odp){
		.umem = { .owning_mm = &w.mm, .address = 0, .length = PAGES * PAGE_SIZE },
		.dma_list = w.dma_list,
	};
	w.dev.pdev = calloc(1, sizeof(*w.dev.pdev));
	w.mr = calloc(1, sizeof(*w.mr));
	w.mr->ibmr.device = &w.dev.ibdev;
	w.mr->handle = HANDLE;
	w.mr->odp = pvr_odp_alloc(&w.dev, &w.queue);
	assert_non_null(w.mr->odp);
	w.mr->odp->mr = w.mr;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pvr_odp_free(w.mr);
	assert_int_equal(w.queue_puts, 1);
	assert_int_equal(w.dev.ibdev.dev.users, 0);
	assert_int_equal(w.mm.count, 1);
	assert_false(w.failed);
	free(w.mr);
	free(w.dev.pdev);
	return 0;
}

#define TEST_ODP(name) TEST_SETUP(set_up, tear_down, name)

static void reg(bool writable, bool implicit)
{
	w.umem.umem.writable = writable;
	w.umem.is_implicit_odp = implicit;
	pvr_odp_set_umem(w.mr, &w.umem.umem);
	if (!implicit)
		pvr_odp_set_private(&w.umem, w.mr);
}

static void set_ptes(u64 rights, bool may_write)
{
	for (u32 i = 0; i < PAGES; i++) {
		w.pte[i] = rights;
		w.may_write[i] = may_write;
	}
}

static void invalidate(u32 first, u32 npages)
{
	struct mmu_notifier_range range = { .start = first * PAGE_SIZE,
					    .end = (first + npages) * PAGE_SIZE,
					    .blockable = true };

	assert_true(pvr_odp_ops.invalidate(&w.umem.notifier, &range, 1));
}

static void expect_at_device(u32 first, u32 npages)
{
	for (u32 i = 0; i < PAGES; i++)
		assert_int_equal(w.at_device[i], i - first < npages ? address_of(i) : 0);
}

/* ----------------------------------------------------------------------------- tests */

TEST_ODP(test_page_without_write_right_stays_absent_in_a_writable_region)
{
	reg(true, false);
	set_ptes(RO, false);
	assert_int_equal(pvr_odp_resolve(w.mr, 0, PAGES, false), 0);
	expect_at_device(0, 0);
	assert_int_equal(w.cmds, 0);
}

TEST_ODP(test_page_without_write_right_stays_absent_in_an_implicit_region)
{
	reg(true, true);
	set_ptes(RO, false);
	assert_int_equal(pvr_odp_resolve(w.mr, 0, PAGES, false), 0);
	expect_at_device(0, 0);
}

TEST_ODP(test_page_without_write_right_is_entered_in_a_read_only_region)
{
	reg(false, false);
	set_ptes(RO, false);
	assert_int_equal(pvr_odp_resolve(w.mr, 0, PAGES, false), 0);
	expect_at_device(0, PAGES);
}

TEST_ODP(test_pages_around_one_without_write_right_are_entered)
{
	reg(true, false);
	set_ptes(RW, true);
	w.pte[3] = RO;
	w.pte[5] = 0;
	assert_int_equal(pvr_odp_resolve(w.mr, 0, PAGES, false), 0);
	for (u32 i = 0; i < PAGES; i++)
		assert_int_equal(w.at_device[i], i == 3 || i == 5 ? 0 : address_of(i));
}

/*
 * hmm_range_fault() reads a page's entry without the lock of the page table, while another thread
 * clears and sets that entry.
 */
TEST_ODP(test_advice_beside_a_change_of_the_page_tables)
{
	reg(true, false);
	set_ptes(RW, true);
	w.pte[4] = 0;
	assert_int_equal(pvr_odp_resolve(w.mr, 0, PAGES, false), 0);
	w.changes[2] = w.changes[6] = true;
	w.pte[4] = RW;
	assert_int_equal(pvr_odp_resolve(w.mr, 0, PAGES, false), 0);
	for (u32 i = 0; i < PAGES; i++)
		assert_int_equal(w.at_device[i], address_of(i));
}

TEST_ODP(test_fault_of_memory_that_must_not_be_written_fails)
{
	reg(true, false);
	set_ptes(RO, false);
	assert_int_equal(pvr_odp_resolve(w.mr, 0, 1, true), -EPERM);
	expect_at_device(0, 0);
}

/* As the zero page, or one that is shared since a fork(). */
TEST_ODP(test_fault_makes_a_page_writable_that_advice_left_absent)
{
	reg(true, false);
	set_ptes(RO, true);
	assert_int_equal(pvr_odp_resolve(w.mr, 2, 2, false), 0);
	expect_at_device(0, 0);
	assert_int_equal(pvr_odp_resolve(w.mr, 2, 2, true), 0);
	expect_at_device(2, 2);
}

TEST_ODP(test_page_that_becomes_read_only_leaves_the_device)
{
	reg(true, false);
	set_ptes(RW, true);
	assert_int_equal(pvr_odp_resolve(w.mr, 0, PAGES, true), 0);
	expect_at_device(0, PAGES);
	invalidate(0, PAGES);
	set_ptes(RO, false);
	expect_at_device(0, 0);
	assert_int_equal(pvr_odp_resolve(w.mr, 0, PAGES, false), 0);
	expect_at_device(0, 0);
}

TEST_ODP(test_region_that_is_gone_sends_no_commands)
{
	reg(true, false);
	set_ptes(RW, true);
	assert_int_equal(pvr_odp_resolve(w.mr, 0, 1, true), 0);
	w.mr->odp->gone = true;
	w.cmds = 0;
	assert_int_equal(pvr_odp_resolve(w.mr, 1, 1, true), -ECANCELED);
	pvr_odp_refuse(w.mr, 1);
	invalidate(0, PAGES);
	assert_int_equal(w.cmds, 0);
	assert_int_equal(w.umem.npages, 0);
}

TEST_ODP(test_implicit_region_keeps_the_mm_of_a_process_that_has_ended)
{
	reg(true, true);
	assert_int_equal(w.mm.count, 2);
	w.mm.users = 0;
	assert_int_equal(pvr_odp_resolve(w.mr, 0, 1, true), -ESRCH);
}
