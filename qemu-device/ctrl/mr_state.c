// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The state of memory regions and windows: records MR, MR_PAGES, MW_BIND. */
#include <errno.h>
#include <inttypes.h>

#include "core/charge.h"
#include "core/demand.h"
#include "core/mr.h"
#include "core/state.h"
#include "ctrl/ctrl.h"

/* Of one record: its size stays far below PVR_STATE_RECORD_MAX. */
#define RUNS_MAX 4096u

#define NO_HANDLE 0u

/* ----------------------------------------------------------------------- MR */

/* A window's own rights are in the record of its binding. */
static uint32_t saved_access(const struct pvr_mr *mr)
{
	return pvr_mr_is_window(mr) ? 0 : mr->access;
}

static void fault_fields(struct pvr_codec *codec, struct pvr_page_fault *fault)
{
	uint32_t state = fault->state;

	pvr_codec_u32_max(codec, "fault state", &state, PVR_FAULT_REFUSED);
	pvr_codec_u64(codec, "fault page", &fault->first);
	pvr_codec_u32(codec, "fault pages", &fault->npages);
	pvr_codec_time(codec, "fault time", &fault->since);
	pvr_codec_time(codec, "fault event time", &fault->sent);
	fault->state = state;
}

static void mr_fields(struct pvr_codec *codec, struct pvr_mr *mr, uint32_t *pd)
{
	uint8_t kind = mr->kind;

	pvr_codec_u32(codec, "handle", &mr->handle);
	pvr_codec_u8_max(codec, "kind", &kind, PVR_MR_WINDOW2);
	pvr_codec_u32(codec, "pd", pd);
	pvr_codec_u32(codec, "key", &mr->key);
	pvr_codec_u64(codec, "start", &mr->start);
	pvr_codec_u64(codec, "length", &mr->length);
	pvr_codec_u64(codec, "offset", &mr->offset);
	pvr_codec_u32(codec, "max_pages", &mr->max_pages);
	pvr_codec_u64(codec, "bytes", &mr->pages.size);
	pvr_codec_bool(codec, "broken", &mr->pages.broken);
	pvr_codec_bool(codec, "on demand", &mr->pages.on_demand);
	mr->kind = kind;
}

void pvr_mr_save(struct pvr_codec *codec, void *object)
{
	struct pvr_mr *mr = object;
	uint32_t pd = mr->pd->handle, access = saved_access(mr);

	mr_fields(codec, mr, &pd);
	pvr_codec_u32(codec, "access", &access);
	if (mr->pages.on_demand)
		fault_fields(codec, &mr->pages.demand->fault);
}

static bool has_pages(const struct pvr_mr *mr)
{
	return mr->kind == PVR_MR_USER || mr->kind == PVR_MR_FAST;
}

static const char *bad_kind(const struct pvr_adapter *adapter, const struct pvr_mr *mr)
{
	uint32_t max = adapter->features & PVR_EXT_LONG_FAST_REG ? PVR_MAX_FAST_REG_PAGES_LONG
								 : PVR_MAX_FAST_REG_PAGES;

	if (pvr_mr_is_window(mr) && !(adapter->features & PVR_EXT_MW))
		return "the driver does not use windows";
	if (mr->pages.on_demand &&
	    (mr->kind != PVR_MR_USER || !(adapter->features & PVR_EXT_ON_DEMAND)))
		return "the driver does not use regions on demand";
	if (mr->kind == PVR_MR_FAST && (!mr->max_pages || mr->max_pages > max))
		return "a fast region has a wrong number of pages";
	if (!has_pages(mr) && (mr->pages.size || mr->pages.broken))
		return "its kind has no pages";
	return NULL;
}

static const char *bad_range(const struct pvr_mr *mr)
{
	uint64_t max = mr->pages.on_demand ? PVR_MAX_MR_SIZE_ON_DEMAND : PVR_MAX_MR_SIZE_LAYOUT;

	if (!has_pages(mr))
		return NULL;
	if (mr->kind == PVR_MR_FAST)
		max = (uint64_t)mr->max_pages * PVR_PAGE_SIZE;
	if (mr->pages.size % PVR_PAGE_SIZE || mr->pages.size > max + PVR_PAGE_SIZE ||
	    (mr->kind == PVR_MR_FAST && mr->pages.size > max))
		return "it has a wrong number of pages";
	/* An invalid fast region keeps the range of its last registration. */
	if (!pvr_mr_is_valid(mr))
		return NULL;
	if (mr->length && !pvr_mr_range_ok(mr->start, mr->length, max))
		return "its range wraps or is too long";
	if (mr->length && (mr->offset > mr->pages.size || mr->length > mr->pages.size - mr->offset))
		return "its range is longer than its pages";
	return NULL;
}

static const char *bad_access(const struct pvr_adapter *adapter, const struct pvr_mr *mr)
{
	uint32_t known = mr->kind == PVR_MR_DMA ? PVR_ACCESS_LOCAL_WRITE
						: pvr_mr_known_access(adapter);

	if (pvr_mr_is_window(mr))
		return mr->access ? "a window that is not bound has rights" : NULL;
	/* A fast region that is not registered has those of its creation, which count for nothing. */
	if (mr->access & ~(known | PVR_MR_VALID) ||
	    (pvr_mr_is_valid(mr) && !pvr_mr_access_ok(mr->access)))
		return "it has rights that a region cannot have";
	if (mr->pages.on_demand && mr->access & (PVR_ACCESS_MW_BIND | PVR_ACCESS_FLUSH_PERSISTENT))
		return "a region on demand has no windows and is not persistent";
	if (mr->kind != PVR_MR_FAST && !pvr_mr_is_valid(mr))
		return "it is not valid";
	return NULL;
}

static void mr_check(struct pvr_codec *codec, const struct pvr_mr *mr, uint32_t pd)
{
	const char *why = bad_kind(codec->adapter, mr);

	if (!why)
		why = bad_range(mr);
	if (!why)
		why = bad_access(codec->adapter, mr);
	if (why)
		pvr_codec_fault(codec, -EINVAL, "region %u: %s", mr->handle, why);
	if (mr->key >> 8 != mr->handle)
		pvr_codec_fault(codec, -EINVAL, "key 0x%x, expected one of handle %u", mr->key,
				mr->handle);
	if (!mr->pd)
		pvr_codec_fault(codec, -EINVAL, "PD %u does not exist", pd);
}

/* Make its pages, none of which is known yet. @from: size and flags. */
static int make_pages(struct pvr_codec *codec, struct pvr_mr *mr, const struct pvr_pages *from,
		      struct pvr_mr_load *load)
{
	struct pvr_adapter *adapter = codec->adapter;
	bool write = mr->access & PVR_ACCESS_LOCAL_WRITE;
	int err = 0;

	if (mr->kind == PVR_MR_FAST)
		err = pvr_pages_reserve(adapter, mr->max_pages, &mr->pages);
	else if (from->on_demand)
		err = pvr_pages_demand(adapter, from->size / PVR_PAGE_SIZE, &mr->pages);
	if (err)
		return err;
	if (!from->on_demand && !from->broken && from->size) {
		err = pvr_walk_begin_runs(&load->walk, adapter, from->size, write, &mr->pages);
		load->walk.persistent = mr->access & PVR_ACCESS_FLUSH_PERSISTENT;
		return err;
	}
	mr->pages.size = from->size;
	mr->pages.broken = from->broken;
	return 0;
}

static void list(struct pvr_codec *codec, struct pvr_mr *mr)
{
	pvr_state_enter(codec, &codec->adapter->mrs, mr, mr->handle);
	if (codec->err)
		return;
	mr->pd->users++;
	codec->adapter->mws += pvr_mr_is_window(mr);
}

void pvr_mr_load(struct pvr_codec *codec, struct pvr_mr_load *load)
{
	struct pvr_adapter *adapter = codec->adapter;
	struct pvr_mr *mr = pvr_state_alloc(codec, sizeof(*mr));
	struct pvr_page_fault fault = { 0 };
	struct pvr_pages from;
	uint32_t pd = 0;

	if (!mr)
		return;
	mr_fields(codec, mr, &pd);
	pvr_codec_u32(codec, "access", &mr->access);
	from = mr->pages;
	mr->pd = pvr_pd_get(adapter, pd);
	if (from.on_demand)
		fault_fields(codec, &fault);
	if (!codec->err)
		mr_check(codec, mr, pd);
	mr->pages = (struct pvr_pages){ 0 };
	mr->where = has_pages(mr) ? &mr->pages : NULL;
	*load = (struct pvr_mr_load){ .mr = mr };
	if (!codec->err && has_pages(mr) && make_pages(codec, mr, &from, load))
		pvr_codec_fault(codec, -ENOMEM,
				"%" PRIu64 " bytes are more than the guest may register",
				from.size);
	if (!codec->err)
		list(codec, mr);
	if (codec->err) {
		*load = (struct pvr_mr_load){ 0 };
		pvr_pages_unmap(adapter, &mr->pages);
		pvr_charge_free(adapter, mr, sizeof(*mr));
		return;
	}
	if (mr->pages.on_demand)
		mr->pages.demand->fault = fault;
}

/* ----------------------------------------------------------------- MR_PAGES */

bool pvr_mr_save_pages(struct pvr_codec *codec, const struct pvr_mr *mr, struct pvr_run_cursor *at)
{
	uint64_t count = mr->pages.size / PVR_PAGE_SIZE, pages = 0;
	uint32_t handle = mr->handle, runs = 0;
	struct pvr_page_run run;

	if (!has_pages(mr) || !pvr_state_next_run(codec->adapter, &mr->pages, at, &run))
		return false;
	pvr_codec_begin(codec, PVR_STATE_MR_PAGES);
	pvr_codec_u32(codec, "handle", &handle);
	do {
		pages += run.npages;
		pvr_codec_run(codec, at, &run, count);
	} while (!codec->err && ++runs < RUNS_MAX && pages < PVR_RUN_PAGES_MAX &&
		 pvr_state_next_run(codec->adapter, &mr->pages, at, &run));
	run.npages = 0;
	pvr_codec_run(codec, at, &run, count);
	pvr_codec_end(codec);
	return true;
}

/* Enter pages of a region on demand. Return: 0 or -errno. */
static int enter_run(struct pvr_adapter *adapter, struct pvr_mr *mr, uint64_t first,
		     const struct pvr_page_run *run)
{
	bool write = mr->access & PVR_ACCESS_LOCAL_WRITE;
	struct pvr_page_range range = { .first = first };
	uint8_t *va[PVR_SET_PAGES_MAX];
	uint64_t done;
	uint32_t i;
	int err = 0;

	for (done = 0; done < run->npages && !err; done += range.npages) {
		range.first = first + done;
		range.npages = run->npages - done < PVR_SET_PAGES_MAX ? run->npages - done
								      : PVR_SET_PAGES_MAX;
		for (i = 0; i < range.npages; i++) {
			va[i] = pvr_ram_page(&adapter->ram,
					     (run->gpa_page + done + i) * PVR_PAGE_SIZE, write);
			if (!va[i])
				return -EFAULT;
		}
		err = pvr_demand_enter(adapter, mr, &range, va);
	}
	return err;
}

static int load_run(struct pvr_adapter *adapter, struct pvr_mr_load *load,
		    const struct pvr_page_run *run)
{
	pvr_job_spend(adapter, run->npages);
	if (load->mr->pages.on_demand)
		return enter_run(adapter, load->mr, load->at.page - run->npages, run);
	if (run->skip)
		return -EINVAL;
	return pvr_walk_add(&load->walk, run->gpa_page * PVR_PAGE_SIZE,
			    run->npages * PVR_PAGE_SIZE);
}

/* Pages that the region must have. */
static uint64_t expected(const struct pvr_mr_load *load)
{
	const struct pvr_mr *mr = load->mr;

	if (mr->pages.on_demand)
		return mr->pages.size / PVR_PAGE_SIZE;
	return load->walk.pages ? load->walk.pdir.size / PVR_PAGE_SIZE : 0;
}

void pvr_mr_load_pages(struct pvr_codec *codec, struct pvr_mr_load *load)
{
	struct pvr_page_run run = { 0 };
	uint32_t handle = 0;
	int err = 0;

	pvr_codec_u32(codec, "handle", &handle);
	if (!load->mr || load->mr->handle != handle || load->mr->pages.broken) {
		pvr_codec_fault(codec, -EINVAL, "it does not follow its region %u", handle);
		return;
	}
	while (!err && !codec->err && pvr_codec_run(codec, &load->at, &run, expected(load)))
		err = load_run(codec->adapter, load, &run);
	if (err)
		pvr_codec_fault(codec, err, "%" PRIu64 " pages at guest page 0x%" PRIx64 " %s",
				run.npages, run.gpa_page,
				err == -ENOMEM ? "need more memory than the guest's limit"
					       : "are not RAM with the rights of the region");
}

void pvr_mr_load_end(struct pvr_codec *codec, struct pvr_mr_load *load)
{
	bool has_walk = load->mr && load->walk.pages;

	if (has_walk && !codec->err && load->at.page != expected(load))
		pvr_codec_fault(codec, -EINVAL,
				"region %u before it has %" PRIu64 " pages, expected %" PRIu64,
				load->mr->handle, load->at.page, expected(load));
	if (has_walk && !codec->err && pvr_walk_end_runs(&load->walk))
		pvr_codec_fault(codec, -ENOMEM, "out of memory");
	*load = (struct pvr_mr_load){ 0 };
}

/* ------------------------------------------------------------------ MW_BIND */

/* The region of whose pages the window has a part. */
static const struct pvr_mr *region_of(const struct pvr_mr *window)
{
	return (const struct pvr_mr *)((const char *)window->where -
				       offsetof(struct pvr_mr, pages));
}

static void bind_fields(struct pvr_codec *codec, uint32_t *window, uint32_t *region, uint32_t *qp,
			uint32_t *access)
{
	pvr_codec_u32(codec, "window", window);
	pvr_codec_u32(codec, "region", region);
	pvr_codec_u32(codec, "qp", qp);
	pvr_codec_u32(codec, "access", access);
}

bool pvr_mw_save_bind(struct pvr_codec *codec, const struct pvr_mr *mr)
{
	uint32_t window = mr->handle, region, qp, access = mr->access;

	if (!pvr_mr_is_window(mr) || !mr->where)
		return false;
	region = region_of(mr)->handle;
	qp = mr->qp ? mr->qp->handle : NO_HANDLE;
	pvr_codec_begin(codec, PVR_STATE_MW_BIND);
	bind_fields(codec, &window, &region, &qp, &access);
	pvr_codec_end(codec);
	return true;
}

static const char *bad_bind(const struct pvr_mr *window, const struct pvr_mr *region,
			    const struct pvr_qp *qp, uint32_t access)
{
	if (!window || !pvr_mr_is_window(window) || window->where)
		return "it is no window that is not bound";
	if (!region || region->kind != PVR_MR_USER || region->pd != window->pd ||
	    !(region->access & PVR_ACCESS_MW_BIND))
		return "its region does not exist or does not permit it";
	if (window->kind == PVR_MR_WINDOW2 ? !qp || qp->pd != window->pd : qp != NULL)
		return "its queue pair does not exist or is of another PD";
	if (access & ~(PVR_MR_REMOTE | PVR_MR_VALID) || !(access & PVR_MR_VALID) ||
	    !pvr_mr_access_ok((access & PVR_MR_REMOTE) | (region->access & PVR_ACCESS_LOCAL_WRITE)))
		return "it has rights that a window cannot have";
	if (window->offset < region->offset || window->length > region->length ||
	    window->offset - region->offset > region->length - window->length)
		return "it is not inside of its region";
	return NULL;
}

void pvr_mw_load_bind(struct pvr_codec *codec)
{
	struct pvr_adapter *adapter = codec->adapter;
	uint32_t handle, region_handle, qp_handle, access;
	struct pvr_mr *window, *region;
	struct pvr_qp *qp;
	const char *why;

	bind_fields(codec, &handle, &region_handle, &qp_handle, &access);
	if (codec->err)
		return;
	window = pvr_table_get(&adapter->mrs, handle);
	region = pvr_table_get(&adapter->mrs, region_handle);
	qp = qp_handle == NO_HANDLE ? NULL : pvr_qp_get(adapter, qp_handle);
	why = bad_bind(window, region, qp, access);
	if (why) {
		pvr_codec_fault(codec, -EINVAL, "window %u: %s", handle, why);
		return;
	}
	window->access = access;
	pvr_mw_attach(window, region, qp);
}
