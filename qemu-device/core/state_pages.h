/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Runs of guest pages in records of an adapter's state. See DOC: pages in core/state.h. */
#ifndef PVR_STATE_PAGES_H
#define PVR_STATE_PAGES_H

#include "core/adapter.h"
#include "core/state.h"

/* Pages of a run: bounds the work of loading one. */
#define PVR_RUN_PAGES_MAX PVR_STEP_WORK

struct pvr_page_run {
	uint64_t skip; /* absent pages before it */
	uint64_t gpa_page; /* bus address / 4096 */
	uint64_t npages; /* 0: no run follows in this record */
};

/* The position in the pages of an object. Initially zero. */
struct pvr_run_cursor {
	uint64_t page; /* index of the next page */
	uint64_t last; /* guest page behind the last run */
};

/* Find the run at or behind @at. Return: false if there is none. */
bool pvr_state_next_run(struct pvr_adapter *adapter, const struct pvr_pages *pages,
			const struct pvr_run_cursor *at, struct pvr_page_run *run);
/*
 * Write or read a run of an object of @count pages, and move the cursor behind it. Return: false
 * after the last one, or a fault.
 */
bool pvr_codec_run(struct pvr_codec *codec, struct pvr_run_cursor *at, struct pvr_page_run *run,
		   uint64_t count);

#endif /* PVR_STATE_PAGES_H */
