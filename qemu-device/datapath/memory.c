/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Scatter/gather lists over memory regions, and copying between them. */
#include "datapath/memory.h"

#include <errno.h>
#include <string.h>

static void sg_add(struct pvr_sg *sg, const struct pvr_mr *mr, uint64_t addr, uint64_t len)
{
	sg->seg[sg->count].mr = mr;
	sg->seg[sg->count].addr = addr;
	sg->seg[sg->count].len = len;
	sg->count++;
	sg->total += len;
}

static void sg_init(struct pvr_sg *sg, struct pvr_adapter *adapter)
{
	sg->adapter = adapter;
	sg->data = NULL;
	sg->total = 0;
	sg->count = 0;
}

int pvr_sg_build(struct pvr_sg *sg, const struct pvr_qp *qp, const struct pvr_pd *pd,
		 const struct pvrdma_sge *sge, uint32_t num_sge, uint32_t access)
{
	const struct pvr_mr *mr;
	uint32_t i;

	sg_init(sg, qp->adapter);
	for (i = 0; i < num_sge; i++) {
		if (!sge[i].length)
			continue;
		mr = pvr_mr_find_local(qp->adapter, pd, sge[i].lkey, sge[i].addr,
				       sge[i].length, access);
		if (!mr)
			return -EFAULT;
		sg_add(sg, mr, sge[i].addr, sge[i].length);
	}
	return 0;
}

void pvr_sg_build_own(struct pvr_sg *sg, const struct pvr_qp *qp, uint8_t *data,
		      uint32_t len)
{
	sg_init(sg, qp->adapter);
	if (!len)
		return;
	sg_add(sg, NULL, 0, len);
	sg->data = data;
}

int pvr_sg_build_remote(struct pvr_sg *sg, const struct pvr_qp *qp, uint32_t rkey,
			uint64_t addr, uint64_t len, uint32_t access)
{
	const struct pvr_mr *mr;

	sg_init(sg, qp->adapter);
	if (!len)
		return 0;
	mr = pvr_mr_find_remote(qp, rkey, addr, len, access);
	if (!mr)
		return -EFAULT;
	sg_add(sg, mr, addr, len);
	return 0;
}

void pvr_cursor_init(struct pvr_cursor *cursor, const struct pvr_sg *sg, uint64_t offset)
{
	uint32_t i = 0;

	while (i < sg->count && offset >= sg->seg[i].len)
		offset -= sg->seg[i++].len;
	*cursor = (struct pvr_cursor){ .sg = sg, .seg = i, .offset = offset };
}

/* What lies in one run behind the cursor, at most @len. NULL: there is nothing. */
static uint8_t *cursor_run(const struct pvr_cursor *cursor, uint64_t len, uint64_t *contig)
{
	const struct pvr_sg *sg = cursor->sg;
	uint64_t room;

	if (cursor->seg >= sg->count)
		return NULL;
	room = sg->seg[cursor->seg].len - cursor->offset;
	if (sg->data) {
		*contig = len < room ? len : room;
		return sg->data + cursor->offset;
	}
	return pvr_mr_run(sg->adapter, sg->seg[cursor->seg].mr,
			  sg->seg[cursor->seg].addr + cursor->offset,
			  len < room ? len : room, contig);
}

static void cursor_move(struct pvr_cursor *cursor, uint64_t len)
{
	cursor->offset += len;
	if (cursor->offset < cursor->sg->seg[cursor->seg].len)
		return;
	cursor->offset = 0;
	cursor->seg++;
}

int pvr_copy(struct pvr_cursor *to, struct pvr_cursor *from, uint64_t len)
{
	uint64_t have, n;
	uint8_t *src, *dst;

	for (; len; len -= n) {
		src = cursor_run(from, len, &have);
		if (!src)
			return -EFAULT;
		dst = cursor_run(to, have, &n);
		if (!dst)
			return -EFAULT;
		/* Not memcpy: one process may name the same memory on both sides. */
		memmove(dst, src, n);
		cursor_move(to, n);
		cursor_move(from, n);
	}
	return 0;
}

int pvr_copy_from(struct pvr_cursor *to, const void *from, uint64_t len)
{
	const uint8_t *src = from;
	uint8_t *dst;
	uint64_t n;

	for (; len; len -= n, src += n) {
		dst = cursor_run(to, len, &n);
		if (!dst)
			return -EFAULT;
		memcpy(dst, src, n);
		cursor_move(to, n);
	}
	return 0;
}

uint64_t *pvr_sg_word(const struct pvr_sg *sg)
{
	struct pvr_cursor cursor;
	uint64_t contig;

	pvr_cursor_init(&cursor, sg, 0);
	/* Aligned, so it lies in one page and in one run. */
	return (uint64_t *)cursor_run(&cursor, sizeof(uint64_t), &contig);
}
