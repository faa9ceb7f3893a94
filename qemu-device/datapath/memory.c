/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Scatter/gather lists over memory regions, and copying between them. */
#include "datapath/memory.h"

static void add(struct pvr_sg *sg, const struct pvr_mr *mr, uint64_t addr, uint64_t len)
{
	sg->seg[sg->count].mr = mr;
	sg->seg[sg->count].addr = addr;
	sg->seg[sg->count].len = len;
	sg->count++;
	sg->total += len;
}

int pvr_sg_build_many(struct pvr_sg *sg, const struct pvr_pd *pd, const struct pvrdma_sge *sge,
		      uint32_t num_sge, uint32_t access)
{
	const struct pvr_mr *mr;
	uint32_t i;

	pvr_sg_empty(sg);
	for (i = 0; i < num_sge; i++) {
		if (!sge[i].length)
			continue;
		mr = pvr_mr_find_local(sg->adapter, pd, sge[i].lkey, sge[i].addr,
				       sge[i].length, access);
		if (!mr)
			return -EFAULT;
		add(sg, mr, sge[i].addr, sge[i].length);
	}
	return 0;
}

void pvr_sg_build_own(struct pvr_sg *sg, const struct pvr_qp *qp, uint8_t *data,
		      uint32_t len)
{
	sg->adapter = qp->adapter;
	pvr_sg_empty(sg);
	if (!len)
		return;
	sg->flat = data;
	sg->count = 1;
	sg->total = len;
}

/* A place in a list. */
struct cursor {
	const struct pvr_sg *sg;
	uint32_t seg;
	uint64_t offset; /* in the segment */
};

static uint64_t seg_len(const struct pvr_sg *sg, uint32_t i)
{
	return sg->flat ? sg->total : sg->seg[i].len;
}

static void cursor_init(struct cursor *cursor, const struct pvr_sg *sg, uint64_t offset)
{
	uint32_t i = 0;

	while (i < sg->count && offset >= seg_len(sg, i))
		offset -= seg_len(sg, i++);
	*cursor = (struct cursor){ .sg = sg, .seg = i, .offset = offset };
}

/* What lies in one run behind the cursor, at most @len. NULL: there is nothing. */
static uint8_t *cursor_run(const struct cursor *cursor, uint64_t len, uint64_t *contig)
{
	const struct pvr_sg *sg = cursor->sg;
	uint64_t room;

	if (cursor->seg >= sg->count)
		return NULL;
	room = seg_len(sg, cursor->seg) - cursor->offset;
	if (sg->flat) {
		*contig = len < room ? len : room;
		return sg->flat + cursor->offset;
	}
	return pvr_mr_run(sg->adapter, sg->seg[cursor->seg].mr,
			  sg->seg[cursor->seg].addr + cursor->offset,
			  len < room ? len : room, contig);
}

static void cursor_move(struct cursor *cursor, uint64_t len)
{
	cursor->offset += len;
	if (cursor->offset < seg_len(cursor->sg, cursor->seg))
		return;
	cursor->offset = 0;
	cursor->seg++;
}

int pvr_sg_copy_runs(const struct pvr_sg *to, uint64_t to_offset, const struct pvr_sg *from,
		     uint64_t from_offset, uint64_t len)
{
	struct cursor dst_at, src_at;
	uint64_t have, n;
	uint8_t *src, *dst;

	cursor_init(&dst_at, to, to_offset);
	cursor_init(&src_at, from, from_offset);
	for (; len; len -= n) {
		src = cursor_run(&src_at, len, &have);
		if (!src)
			return -EFAULT;
		dst = cursor_run(&dst_at, have, &n);
		if (!dst)
			return -EFAULT;
		pvr_move(dst, src, n);
		cursor_move(&dst_at, n);
		cursor_move(&src_at, n);
	}
	return 0;
}

int pvr_sg_write(const struct pvr_sg *to, const void *from, uint64_t len)
{
	const uint8_t *src = from;
	struct cursor cursor;
	uint8_t *dst;
	uint64_t n;

	cursor_init(&cursor, to, 0);
	for (; len; len -= n, src += n) {
		dst = cursor_run(&cursor, len, &n);
		if (!dst)
			return -EFAULT;
		memcpy(dst, src, n);
		cursor_move(&cursor, n);
	}
	return 0;
}

uint64_t *pvr_sg_word(const struct pvr_sg *sg)
{
	struct cursor cursor = { .sg = sg };
	uint64_t contig;

	/* Aligned, so it lies in one page and in one run. */
	return (uint64_t *)cursor_run(&cursor, sizeof(uint64_t), &contig);
}
