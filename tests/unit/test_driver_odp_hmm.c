// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pages of regions on demand with Linux 6.16 and later, where hmm_range_fault() and invalidations
 * change the same word of a page.
 */
#include "odp.h"
#include "test.h"

#define HANDLE 9
#define ADDRESS 0x10000000ull

static struct {
	struct pvr_dev dev;
	struct pvr_odp_queue queue;
	struct pvr_mr *mr;
	struct ib_umem_odp umem;
	u64 pfn_list[1];
	dma_addr_t dma_list[1]; /* used with bounce buffers or DMA-API debugging */
	dma_addr_t mapped; /* 0: nothing */
	dma_addr_t next; /* address of the next mapping */
	dma_addr_t at_device; /* 0: nothing */
	void (*before_store)(void); /* another CPU, after hmm_range_fault() has read the word */
} w;

/* --------------------------------------------------------- the kernel and other files */

static void invalidate(void)
{
	struct mmu_notifier_range range = { .start = 0, .end = PAGE_SIZE, .blockable = true };

	assert_true(pvr_odp_ops.invalidate(&w.umem.notifier, &range, 1));
}

int ib_umem_odp_map_dma_and_lock(struct ib_umem_odp *odp, u64 start, u64 size, u64 access,
				 bool fault)
{
	u64 kept = odp->map.pfn_list[0] & HMM_PFN_DMA_MAPPED;

	(void)start;
	(void)size;
	(void)access;
	(void)fault;
	if (w.before_store)
		w.before_store();
	odp->map.pfn_list[0] = kept | HMM_PFN_VALID | HMM_PFN_WRITE;
	mutex_lock(&odp->umem_mutex);
	return 0;
}

dma_addr_t hmm_dma_map_pfn(struct device *dev, struct hmm_dma_map *map, u64 page,
			   struct pci_p2pdma_map_state *p2p)
{
	(void)dev;
	(void)p2p;
	if (!map->dma_list) {
		map->pfn_list[page] |= HMM_PFN_DMA_MAPPED;
		return ADDRESS;
	}
	if (!(map->pfn_list[page] & HMM_PFN_DMA_MAPPED)) {
		assert_int_equal(w.mapped, 0);
		w.mapped = w.next;
		w.next += PAGE_SIZE;
		map->dma_list[page] = w.mapped;
		map->pfn_list[page] |= HMM_PFN_DMA_MAPPED;
	}
	return map->dma_list[page];
}

void ib_umem_odp_unmap_dma_pages(struct ib_umem_odp *odp, u64 start, u64 end)
{
	(void)start;
	(void)end;
	if (odp->map.dma_list && odp->map.pfn_list[0] & HMM_PFN_DMA_MAPPED) {
		assert_int_equal(odp->map.dma_list[0], w.mapped);
		w.mapped = 0;
	}
	odp->npages -= !!(odp->map.pfn_list[0] & HMM_PFN_DMA_MAPPED);
	odp->map.pfn_list[0] = 0;
}

struct ib_umem_odp *ib_umem_odp_alloc_child(struct ib_umem_odp *root, unsigned long addr,
					    size_t size,
					    const struct mmu_interval_notifier_ops *ops)
{
	(void)root;
	(void)addr;
	(void)size;
	(void)ops;
	abort();
}

void ib_umem_odp_release(struct ib_umem_odp *odp)
{
	(void)odp;
}

void pvr_odp_queue_put(struct pvr_odp_queue *queue)
{
	assert_ptr_equal(queue, &w.queue);
}

void pvr_dev_fail(struct pvr_dev *dev, const char *why)
{
	(void)dev;
	(void)why;
	abort();
}

int pvr_cmd(struct pvr_dev *dev, union pvr_cmd_req *req, union pvr_cmd_resp *resp)
{
	(void)dev;
	(void)resp;
	assert_int_equal(req->hdr.cmd, PVR_CMD_SET_PAGES);
	w.at_device = req->set_pages.state == PVR_PAGES_PRESENT
			      ? le64_to_cpu(*(__le64 *)w.mr->odp->list.va)
			      : 0;
	return 0;
}

/* ----------------------------------------------------------------------------- tests */

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.next = ADDRESS;
	w.umem = (struct ib_umem_odp){
		.umem = { .length = PAGE_SIZE, .writable = true },
		.map = { .pfn_list = w.pfn_list },
	};
	w.dev.pdev = calloc(1, sizeof(*w.dev.pdev));
	w.mr = calloc(1, sizeof(*w.mr));
	w.mr->ibmr.device = &w.dev.ibdev;
	w.mr->handle = HANDLE;
	w.mr->odp = pvr_odp_alloc(&w.dev, &w.queue);
	assert_non_null(w.mr->odp);
	w.mr->odp->mr = w.mr;
	pvr_odp_set_umem(w.mr, &w.umem.umem);
	pvr_odp_set_private(&w.umem, w.mr);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pvr_odp_free(w.mr);
	free(w.mr);
	free(w.dev.pdev);
	return 0;
}

TEST_SETUP(set_up, tear_down, test_page_that_is_invalidated_leaves_the_device)
{
	assert_int_equal(pvr_odp_resolve(w.mr, 0, 1, true), 0);
	assert_true(w.at_device);
	invalidate();
	assert_false(w.at_device);
}

/* The kernel frees the page after the second invalidation. */
TEST_SETUP(set_up, tear_down, test_page_that_was_invalidated_during_a_fault_leaves_the_device)
{
	assert_int_equal(pvr_odp_resolve(w.mr, 0, 1, true), 0);
	w.before_store = invalidate;
	assert_int_equal(pvr_odp_resolve(w.mr, 0, 1, true), 0);
	assert_true(w.at_device);
	w.before_store = NULL;
	invalidate();
	assert_false(w.at_device);
}

/* Otherwise the device keeps the address of a page that the kernel has taken. */
TEST_SETUP(set_up, tear_down, test_page_that_was_invalidated_during_a_fault_is_mapped_again)
{
	w.umem.map.dma_list = w.dma_list;
	assert_int_equal(pvr_odp_resolve(w.mr, 0, 1, true), 0);
	assert_int_equal(w.at_device, ADDRESS);
	w.before_store = invalidate;
	assert_int_equal(pvr_odp_resolve(w.mr, 0, 1, true), 0);
	assert_int_equal(w.at_device, ADDRESS + PAGE_SIZE);
	assert_int_equal(w.mapped, ADDRESS + PAGE_SIZE);
}

/* Its flag is there again, but no mapping. */
TEST_SETUP(set_up, tear_down, test_page_that_is_invalidated_twice_is_unmapped_once)
{
	w.umem.map.dma_list = w.dma_list;
	assert_int_equal(pvr_odp_resolve(w.mr, 0, 1, true), 0);
	invalidate();
	w.pfn_list[0] = HMM_PFN_VALID | HMM_PFN_DMA_MAPPED;
	w.mapped = ADDRESS + PAGE_SIZE; /* of another region */
	invalidate();
	assert_int_equal(w.mapped, ADDRESS + PAGE_SIZE);
}
