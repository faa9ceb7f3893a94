// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Runs of guest pages in records of an adapter's state. */
#include "core/state_pages.h"

#include <errno.h>
#include <inttypes.h>

#include "core/demand.h"

#define GUEST_PAGES (UINT64_MAX / PVR_PAGE_SIZE)

/* For broken pages: their owner computes addresses, but uses none. */
static uint8_t no_page[PVR_PAGE_SIZE];

bool pvr_state_next_run(struct pvr_adapter *adapter, const struct pvr_pages *pages,
			const struct pvr_run_cursor *at, struct pvr_page_run *run)
{
	uint64_t first = at->page, count = pages->size / PVR_PAGE_SIZE, contig, room, gpa;
	const uint8_t *va;

	*run = (struct pvr_page_run){ 0 };
	if (pages->on_demand)
		first = pvr_demand_next(pages->demand, first, count);
	if (first >= count || pages->broken)
		return false;
	va = pvr_pages_run(pages, first * PVR_PAGE_SIZE, (count - first) * PVR_PAGE_SIZE, &contig);
	if (!va || !pvr_ram_gpa(&adapter->ram, va, &gpa, &room))
		return false;
	if (contig > room)
		contig = room;
	if (contig > (uint64_t)PVR_RUN_PAGES_MAX * PVR_PAGE_SIZE)
		contig = (uint64_t)PVR_RUN_PAGES_MAX * PVR_PAGE_SIZE;
	run->skip = first - at->page;
	run->gpa_page = gpa / PVR_PAGE_SIZE;
	run->npages = contig / PVR_PAGE_SIZE;
	return run->npages;
}

/* Small differences of both signs become small numbers. */
static uint64_t zigzag(int64_t n)
{
	return (uint64_t)n << 1 ^ (n < 0 ? UINT64_MAX : 0);
}

static int64_t unzigzag(uint64_t n)
{
	return (int64_t)(n >> 1 ^ (n & 1 ? UINT64_MAX : 0));
}

/* @count: pages of the object. Sums of numbers below GUEST_PAGES do not wrap. */
static void check_run(struct pvr_codec *codec, const struct pvr_run_cursor *at,
		      const struct pvr_page_run *run, uint64_t count)
{
	if (run->npages > PVR_RUN_PAGES_MAX)
		pvr_codec_fault(codec, -EINVAL, "a run has %" PRIu64 " pages, expected at most %u",
				run->npages, PVR_RUN_PAGES_MAX);
	else if (run->gpa_page > GUEST_PAGES || run->skip > GUEST_PAGES)
		pvr_codec_fault(codec, -EINVAL, "a run of pages is at no bus address");
	else if (at->page + run->skip + run->npages > count)
		pvr_codec_fault(codec, -EINVAL,
				"a run ends behind page %" PRIu64 ", the last page of the object",
				count);
}

bool pvr_codec_run(struct pvr_codec *codec, struct pvr_run_cursor *at, struct pvr_page_run *run,
		   uint64_t count)
{
	uint64_t difference = zigzag((int64_t)(run->gpa_page - at->last));

	pvr_codec_varint(codec, "pages of a run", &run->npages);
	if (!run->npages || codec->err)
		return false;
	pvr_codec_varint(codec, "absent pages", &run->skip);
	pvr_codec_varint(codec, "guest page", &difference);
	if (codec->loads)
		run->gpa_page = at->last + (uint64_t)unzigzag(difference);
	check_run(codec, at, run, count);
	if (codec->err)
		return false;
	at->page += run->skip + run->npages;
	at->last = run->gpa_page + run->npages;
	return true;
}

/* -------------------------------------------------------------------- rings */

static void save_ring(struct pvr_codec *codec, struct pvr_pages *pages)
{
	uint64_t count = pages->size / PVR_PAGE_SIZE;
	struct pvr_run_cursor at = { 0 };
	struct pvr_page_run run;

	while (pvr_state_next_run(codec->adapter, pages, &at, &run))
		if (!pvr_codec_run(codec, &at, &run, count))
			return;
	pvr_codec_run(codec, &at, &run, count);
	if (!pages->broken && at.page != count)
		pvr_codec_fault(codec, -EFAULT, "a ring lies in no RAM");
}

static void load_run(struct pvr_codec *codec, struct pvr_walk *walk, const struct pvr_page_run *run)
{
	int err = run->skip ? -EINVAL
			    : pvr_walk_add(walk, run->gpa_page * PVR_PAGE_SIZE,
					   run->npages * PVR_PAGE_SIZE);

	if (err)
		pvr_codec_fault(codec, err, "%" PRIu64 " pages at guest page 0x%" PRIx64 " %s",
				run->npages, run->gpa_page,
				err == -ENOMEM ? "need more memory than the adapter may use"
					       : "are no writable RAM");
}

static void load_ring(struct pvr_codec *codec, struct pvr_pages *pages, uint32_t count)
{
	uint64_t size = (uint64_t)count * PVR_PAGE_SIZE;
	struct pvr_run_cursor at = { 0 };
	struct pvr_page_run run = { 0 };
	struct pvr_walk walk;
	int err;

	err = pvr_walk_begin_runs(&walk, codec->adapter, size, true, pages);
	if (err)
		pvr_codec_fault(codec, err, "%" PRIu32 " pages are too many", count);
	while (pvr_codec_run(codec, &at, &run, count))
		load_run(codec, &walk, &run);
	if (!codec->err && at.page != count)
		pvr_codec_fault(codec, -EINVAL, "%" PRIu64 " pages, expected %" PRIu32, at.page,
				count);
	if (!codec->err && pvr_walk_end_runs(&walk))
		pvr_codec_fault(codec, -ENOMEM, "out of memory");
	if (codec->err)
		pvr_pages_unmap(codec->adapter, pages);
}

void pvr_codec_ring_pages(struct pvr_codec *codec, struct pvr_pages *pages, uint32_t count)
{
	bool broken = pages->broken;

	pvr_codec_bool(codec, "broken", &broken);
	if (!codec->loads) {
		save_ring(codec, pages);
	} else if (broken) {
		*pages = (struct pvr_pages){ .size = (uint64_t)count * PVR_PAGE_SIZE,
					     .base = no_page,
					     .broken = true };
		pvr_codec_run(codec, &(struct pvr_run_cursor){ 0 }, &(struct pvr_page_run){ 0 }, 0);
	} else if (!codec->err) {
		load_ring(codec, pages, count);
	}
}
