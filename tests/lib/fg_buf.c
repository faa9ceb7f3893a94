// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Buffers of a fake guest: scattered pages with a page directory and a view. */
#include "fg_buf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct fg_view *view_alloc(uint32_t npages)
{
	size_t size = sizeof(struct fg_view) + npages * sizeof(uint32_t);
	struct fg_view *view = calloc(1, size);

	if (!view)
		fg_die("out of memory");
	return view;
}

static void view_free(struct fg_view *view)
{
	LIST_REMOVE(view, link);
	if (view->va)
		munmap(view->va, view->size);
	free(view);
}

void fg_view_free_all(struct fg_ram *ram)
{
	while (!LIST_EMPTY(&ram->views))
		view_free(LIST_FIRST(&ram->views));
}

static void view_map(struct fg_buf *buf)
{
	buf->va = mmap(NULL, buf->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		       0);
	if (buf->va == MAP_FAILED)
		fg_die("no address space for a buffer of %u pages", buf->npages);
	buf->view->va = buf->va;
	buf->view->size = buf->size;
	for (uint32_t i = 0, run; i < buf->npages; i += run) {
		void *va;

		for (run = 1; i + run < buf->npages; run++)
			if (buf->page[i + run] != buf->page[i] + run)
				break;
		va = mmap(buf->va + ((size_t)i << PVR_PAGE_SHIFT), (size_t)run << PVR_PAGE_SHIFT,
			  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, buf->ram->fd,
			  (off_t)buf->page[i] << PVR_PAGE_SHIFT);
		if (va == MAP_FAILED)
			fg_die("cannot map page %u of a buffer", i);
	}
}

static void pdir_build(struct fg_buf *buf)
{
	buf->dir_page = fg_ram_get_page(buf->ram);
	buf->pdir = fg_page_gpa(buf->ram, buf->dir_page);
	for (uint32_t t = 0; t < buf->ntables; t++) {
		buf->table_page[t] = fg_ram_get_page(buf->ram);
		fg_buf_dir(buf)[t] = fg_page_gpa(buf->ram, buf->table_page[t]);
	}
	for (uint32_t i = 0; i < buf->npages; i++)
		fg_buf_table(buf, i / PVR_PDIR_ENTRIES)[i % PVR_PDIR_ENTRIES] =
			fg_page_gpa(buf->ram, buf->page[i]);
}

void fg_buf_init(struct fg_buf *buf, struct fg_ram *ram, uint32_t npages, enum fg_buf_kind kind)
{
	memset(buf, 0, sizeof(*buf));
	if (!npages || npages > PVR_PDIR_MAX_PAGES)
		fg_die("a buffer of %u pages", npages);
	buf->ram = ram;
	buf->npages = npages;
	buf->size = (size_t)npages << PVR_PAGE_SHIFT;
	buf->ntables = (npages + PVR_PDIR_ENTRIES - 1) / PVR_PDIR_ENTRIES;
	buf->view = view_alloc(npages + buf->ntables);
	buf->page = buf->view->page;
	buf->table_page = buf->page + npages;
	LIST_INSERT_HEAD(&ram->views, buf->view, link);
	if (kind == FG_LINEAR) {
		uint32_t first = fg_ram_get_run(ram, npages);

		for (uint32_t i = 0; i < npages; i++)
			buf->page[i] = first + i;
		buf->va = fg_page_va(ram, first);
	} else {
		for (uint32_t i = 0; i < npages; i++)
			buf->page[i] = fg_ram_get_page(ram);
		view_map(buf);
	}
	pdir_build(buf);
}

void fg_buf_exit(struct fg_buf *buf)
{
	if (!buf->view)
		return;
	for (uint32_t i = 0; i < buf->npages; i++)
		fg_ram_put_page(buf->ram, buf->page[i]);
	for (uint32_t t = 0; t < buf->ntables; t++)
		fg_ram_put_page(buf->ram, buf->table_page[t]);
	fg_ram_put_page(buf->ram, buf->dir_page);
	view_free(buf->view);
	memset(buf, 0, sizeof(*buf));
}

uint64_t fg_buf_gpa(const struct fg_buf *buf, size_t offset)
{
	if (offset >= buf->size)
		fg_die("offset %zu of a buffer of %zu", offset, buf->size);
	return fg_page_gpa(buf->ram, buf->page[offset >> PVR_PAGE_SHIFT]) + offset % PVR_PAGE_SIZE;
}

uint64_t *fg_buf_dir(const struct fg_buf *buf)
{
	return fg_page_va(buf->ram, buf->dir_page);
}

uint64_t *fg_buf_table(const struct fg_buf *buf, uint32_t table)
{
	return fg_page_va(buf->ram, buf->table_page[table]);
}

/* Position and seed, mixed so that a shift by any power of two shows. */
static uint8_t pattern(size_t pos, uint32_t seed)
{
	uint32_t x = (uint32_t)pos * 2654435761u + seed * 40503u;

	return (uint8_t)(x >> 24 ^ x >> 11);
}

void fg_fill(void *va, size_t len, uint32_t seed)
{
	uint8_t *p = va;

	for (size_t i = 0; i < len; i++)
		p[i] = pattern(i, seed);
}

size_t fg_mismatch(const void *va, size_t len, uint32_t seed)
{
	const uint8_t *p = va;

	for (size_t i = 0; i < len; i++)
		if (p[i] != pattern(i, seed))
			return i;
	return len;
}
