// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Scatter/gather lists over memory regions, and copying between them. */
#include "core/sg.h"

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
		mr = pvr_mr_find_local(sg->adapter, pd, sge[i].lkey, sge[i].addr, sge[i].length,
				       access);
		if (!mr)
			return -EFAULT;
		add(sg, mr, sge[i].addr, sge[i].length);
	}
	return 0;
}

void pvr_sg_build_flat(struct pvr_sg *sg, struct pvr_adapter *adapter, uint8_t *data, uint32_t len)
{
	sg->adapter = adapter;
	pvr_sg_empty(sg);
	if (!len)
		return;
	sg->flat = data;
	sg->seg[0].mr = NULL;
	sg->count = 1;
	sg->total = len;
}

/* A position in a list, and the run at this position. */
struct sg_cursor {
	const struct pvr_sg *sg;
	uint32_t seg;
	uint64_t left; /* remaining bytes of the segment, from @run on */
	uint8_t *run;
	uint64_t contig; /* bytes of @run; 0: unknown */
	uint8_t *const *page; /* table entry of the page after @run; NULL: no table */
};

static uint64_t seg_len(const struct pvr_sg *sg, uint32_t i)
{
	return sg->flat ? sg->total : sg->seg[i].len;
}

static void cursor_init(struct sg_cursor *cursor, const struct pvr_sg *sg, uint64_t offset)
{
	uint32_t i = 0;

	while (i < sg->count && offset >= seg_len(sg, i))
		offset -= seg_len(sg, i++);
	*cursor = (struct sg_cursor){ .sg = sg, .seg = i };
	if (i < sg->count)
		cursor->left = seg_len(sg, i) - offset;
}

/* Find the run at the cursor, at most @limit bytes. Return: false: memory was removed. */
static bool find_run(struct sg_cursor *cursor, uint64_t limit)
{
	const struct pvr_sg *sg = cursor->sg;
	uint64_t done = seg_len(sg, cursor->seg) - cursor->left, addr;
	const struct pvr_mr *mr;

	if (sg->flat) {
		cursor->run = sg->flat + done;
		cursor->contig = limit;
		return true;
	}
	mr = sg->seg[cursor->seg].mr;
	addr = sg->seg[cursor->seg].addr + done;
	cursor->run = pvr_mr_run(sg->adapter, mr, addr, limit, &cursor->contig);
	cursor->page = pvr_mr_page(mr, addr + cursor->contig);
	return cursor->run;
}

/* Take the whole next page by the table: the usual case of a large message. */
static pvr_always_inline void take_page(struct sg_cursor *cursor)
{
	cursor->run = *cursor->page++;
	cursor->contig = cursor->left < PVR_PAGE_SIZE ? cursor->left : PVR_PAGE_SIZE;
}

/*
 * Return: the run at the cursor, *contig bytes, at most @len; NULL: end of the list, or
 * memory was removed.
 */
static pvr_always_inline uint8_t *cursor_run(struct sg_cursor *cursor, uint64_t len,
					     uint64_t *contig)
{
	if (!cursor->contig) {
		if (!cursor->left)
			return NULL;
		if (cursor->page)
			take_page(cursor);
		else if (!find_run(cursor, len < cursor->left ? len : cursor->left))
			return NULL;
	}
	*contig = len < cursor->contig ? len : cursor->contig;
	return cursor->run;
}

static pvr_always_inline void cursor_move(struct sg_cursor *cursor, uint64_t len)
{
	cursor->run += len;
	cursor->contig -= len;
	cursor->left -= len;
	if (cursor->left)
		return;
	cursor->page = NULL;
	cursor->seg++;
	if (cursor->seg < cursor->sg->count)
		cursor->left = seg_len(cursor->sg, cursor->seg);
}

/* A run that is contiguous at both ends. */
struct run {
	uint8_t *to;
	const uint8_t *from;
	uint64_t len;
};

/* Take the next fragment, at most @len bytes. Return: false if memory was removed. */
static pvr_always_inline bool next_fragment(struct sg_cursor *to, struct sg_cursor *from,
					    uint64_t len, struct run *run)
{
	uint64_t have;

	run->from = cursor_run(from, len, &have);
	if (!run->from)
		return false;
	run->to = cursor_run(to, have, &run->len);
	if (!run->to)
		return false;
	cursor_move(to, run->len);
	cursor_move(from, run->len);
	return true;
}

/* Prefetch the next fragment: the CPU's own prefetcher stops at the end of a page. */
static void prefetch_next(const struct run *next)
{
	__builtin_prefetch(next->from);
	__builtin_prefetch(next->from + 64);
	__builtin_prefetch(next->from + 128);
	__builtin_prefetch(next->from + 192);
}

static bool overlaps(const struct run *to, const struct run *from)
{
	uintptr_t a = (uintptr_t)to->to, b = (uintptr_t)from->from;

	return a - b < from->len || b - a < to->len;
}

/* A guest may use the same memory at both ends. */
static bool any_overlap(const struct run runs[PVR_COPY_LANES])
{
	unsigned int i, j;

	for (i = 0; i < PVR_COPY_LANES; i++)
		for (j = 0; j < PVR_COPY_LANES; j++)
			if (overlaps(&runs[i], &runs[j]))
				return true;
	return false;
}

/* Return: the bytes that all runs have, in whole blocks; 0: they are too few. */
static uint64_t lane_bytes(const struct run runs[PVR_COPY_LANES])
{
	uint64_t least = runs[0].len;
	unsigned int i;

	for (i = 1; i < PVR_COPY_LANES; i++)
		least = runs[i].len < least ? runs[i].len : least;
	return least / PVR_COPY_BLOCK * PVR_COPY_BLOCK;
}

/* Copy the first bytes of each run. Return: their number, the same for all. */
static uint64_t copy_lanes(const struct pvr_copy *copy, const struct run runs[PVR_COPY_LANES])
{
	uint64_t len = any_overlap(runs) ? 0 : lane_bytes(runs);
	const void *from[PVR_COPY_LANES];
	void *to[PVR_COPY_LANES];
	unsigned int i;

	for (i = 0; i < PVR_COPY_LANES; i++) {
		to[i] = runs[i].to;
		from[i] = runs[i].from;
	}
	if (len)
		copy->lanes(to, from, len);
	return len;
}

/* Copy the runs from their byte @done on. */
static void copy_rests(const struct pvr_copy_impl *impl, const struct run *runs, unsigned int num,
		       uint64_t done)
{
	unsigned int i;

	for (i = 0; i < num; i++)
		if (runs[i].len > done)
			pvr_copy_run(impl, runs[i].to + done, runs[i].from + done,
				     runs[i].len - done);
}

/* Copy the last runs of a message, and store its last bytes last. */
static void copy_last_runs(const struct pvr_copy *copy, const struct pvr_copy_impl *impl,
			   struct run runs[PVR_COPY_LANES], unsigned int num)
{
	struct run *last = &runs[num - 1];
	uint64_t done = 0;

	if (num == PVR_COPY_LANES) {
		last->len--; /* something is left of it */
		done = copy_lanes(copy, runs);
		last->len++;
	}
	copy_rests(impl, runs, num - 1, done);
	pvr_copy_last(impl, last->to + done, last->from + done, last->len - done);
}

/* Copy to memory that is in no cache. @run: the first one; @len: with it */
static pvr_noinline int copy_cold(const struct pvr_copy *copy, const struct pvr_copy_impl *impl,
				  struct sg_cursor *dst, struct sg_cursor *src, struct run run,
				  uint64_t len)
{
	struct run runs[PVR_COPY_LANES];
	unsigned int num = 0;

	for (;;) {
		runs[num++] = run;
		len -= run.len;
		if (!len)
			break;
		if (num == PVR_COPY_LANES) {
			copy_rests(impl, runs, num, copy_lanes(copy, runs));
			num = 0;
		}
		if (!next_fragment(dst, src, len, &run))
			return -EFAULT;
	}
	copy_last_runs(copy, impl, runs, num);
	return 0;
}

void pvr_sg_mark(const struct pvr_sg *sg, uint64_t offset, uint64_t len)
{
	struct sg_cursor cursor;
	uint8_t *run;
	uint64_t n;

	for (cursor_init(&cursor, sg, offset); len; len -= n) {
		run = cursor_run(&cursor, len, &n);
		if (!run)
			return;
		pvr_dirty_mark_run(sg->adapter, run, n);
		cursor_move(&cursor, n);
	}
}

/* @mark: the log of dirty pages is on */
static pvr_always_inline int copy_runs(const struct pvr_sg *to, uint64_t to_offset,
				       const struct pvr_sg *from, uint64_t from_offset,
				       uint64_t len, bool mark)
{
	const struct pvr_copy *copy = &to->adapter->engine->copy;
	const struct pvr_copy_impl *impl = pvr_copy_impl_for(copy, len);
	struct sg_cursor dst, src;
	struct run run, next;

	if (!len)
		return 0;
	cursor_init(&dst, to, to_offset);
	cursor_init(&src, from, from_offset);
	if (!next_fragment(&dst, &src, len, &run))
		return -EFAULT;
	if (len > PVR_COPY_SHORT && copy->lanes &&
	    !pvr_copy_note(&to->adapter->copy_recent, run.to)) {
		if (mark)
			pvr_sg_mark(to, to_offset, len);
		return copy_cold(copy, impl, &dst, &src, run, len);
	}
	for (;;) {
		if (mark)
			pvr_dirty_mark_run(to->adapter, run.to, run.len);
		len -= run.len;
		if (!len)
			break;
		if (!next_fragment(&dst, &src, len, &next))
			return -EFAULT;
		prefetch_next(&next);
		pvr_copy_run(impl, run.to, run.from, run.len);
		run = next;
	}
	pvr_copy_last(impl, run.to, run.from, run.len);
	return 0;
}

static pvr_noinline int copy_marked(const struct pvr_sg *to, uint64_t to_offset,
				    const struct pvr_sg *from, uint64_t from_offset, uint64_t len)
{
	return copy_runs(to, to_offset, from, from_offset, len, true);
}

int pvr_sg_copy_runs(const struct pvr_sg *to, uint64_t to_offset, const struct pvr_sg *from,
		     uint64_t from_offset, uint64_t len)
{
	if (pvr_dirty_is_on(to->adapter))
		return copy_marked(to, to_offset, from, from_offset, len);
	return copy_runs(to, to_offset, from, from_offset, len, false);
}

void pvr_sg_copy_flat(const struct pvr_sg *to, uint64_t to_offset, const struct pvr_sg *from,
		      uint64_t from_offset, uint64_t len)
{
	pvr_copy_last(pvr_copy_impl_for(&to->adapter->engine->copy, len), to->flat + to_offset,
		      from->flat + from_offset, len);
}

int pvr_sg_write(const struct pvr_sg *to, const void *from, uint64_t len)
{
	const uint8_t *src = from;
	struct sg_cursor cursor;
	uint8_t *dst;
	uint64_t n;

	cursor_init(&cursor, to, 0);
	for (; len; len -= n, src += n) {
		dst = cursor_run(&cursor, len, &n);
		if (!dst)
			return -EFAULT;
		memcpy(dst, src, n);
		pvr_dirty(to->adapter, dst, n);
		cursor_move(&cursor, n);
	}
	return 0;
}

int pvr_sg_iov(const struct pvr_sg *sg, uint64_t offset, uint64_t len, struct iovec *iov, int max)
{
	struct sg_cursor cursor;
	uint8_t *run;
	uint64_t n;
	int count;

	cursor_init(&cursor, sg, offset);
	for (count = 0; len && count < max; count++, len -= n) {
		run = cursor_run(&cursor, len, &n);
		if (!run)
			return -EFAULT;
		iov[count] = (struct iovec){ run, n };
		cursor_move(&cursor, n);
	}
	return count;
}

uint64_t *pvr_sg_word(const struct pvr_sg *sg)
{
	struct sg_cursor cursor;
	uint64_t contig;

	cursor_init(&cursor, sg, 0);
	/* Aligned, so it lies in one page and in one run. */
	return (uint64_t *)cursor_run(&cursor, sizeof(uint64_t), &contig);
}
