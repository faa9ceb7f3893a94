/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory of rings: how large, where from. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <util/util.h>

#include "pvrdma.h"

/*
 * The pages are written once, now: the kernel pins work queues for reading only although the
 * device writes cons_head into their first page, which must thus be ours alone by then and not
 * the shared page of zeros.
 */
int pvr_buf_alloc(struct pvr_buf *buf, size_t size)
{
	int err;

	size = align(size, PVR_PAGE_SIZE);
	buf->addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf->addr == MAP_FAILED)
		return errno;
	err = ibv_dontfork_range(buf->addr, size);
	if (err) {
		munmap(buf->addr, size);
		return err;
	}
	memset(buf->addr, 0, size);
	buf->size = size;
	return 0;
}

void pvr_buf_free(struct pvr_buf *buf)
{
	if (!buf->size)
		return;
	ibv_dofork_range(buf->addr, buf->size);
	munmap(buf->addr, buf->size);
	buf->size = 0;
}

static uint32_t order_of(size_t size)
{
	uint32_t order = 0;

	while (((size_t)1 << order) < size)
		order++;
	return order;
}

size_t pvr_wq_layout(struct pvr_wq *wq, uint32_t num, uint32_t max_sge, size_t hdr_size,
		     size_t min_stride)
{
	size_t stride = hdr_size + max_sge * sizeof(struct pvrdma_sge);

	wq->num = 1u << order_of(num);
	wq->max_sge = max_sge;
	wq->stride_shift = order_of(stride < min_stride ? min_stride : stride);
	return (size_t)wq->num << wq->stride_shift;
}
