/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A buffer of a fake guest: pages of its RAM, their directory, and a view of them. */
#ifndef FG_BUF_H
#define FG_BUF_H

#include "fg_ram.h"

enum fg_buf_kind {
	FG_SCATTERED, /* no two pages are neighbours, but by chance */
	FG_LINEAR, /* consecutive bus addresses */
};

/* Memory of an fg_buf in this process; freed with the RAM at the latest. */
struct fg_view {
	LIST_ENTRY(fg_view) link;
	void *va; /* NULL: the RAM itself is in this order */
	size_t size;
	uint32_t page[]; /* data pages, then table pages */
};

struct fg_buf {
	struct fg_ram *ram;
	struct fg_view *view; /* NULL: no buffer */
	uint8_t *va; /* contiguous, as the guest's program sees it */
	size_t size; /* bytes, whole pages */
	uint32_t npages;
	uint32_t *page; /* numbers of the data pages */
	uint64_t pdir; /* bus address of the page directory */
	uint32_t dir_page;
	uint32_t ntables;
	uint32_t *table_page;
};

void fg_buf_init(struct fg_buf *buf, struct fg_ram *ram, uint32_t npages, enum fg_buf_kind kind);
/* The device must not use the buffer any more. A zeroed one is fine. */
void fg_buf_exit(struct fg_buf *buf);
void fg_view_free_all(struct fg_ram *ram);

/* Bus address of a byte of the buffer. */
uint64_t fg_buf_gpa(const struct fg_buf *buf, size_t offset);

/* The directory's and a table's entries, for tests that damage them. */
uint64_t *fg_buf_dir(const struct fg_buf *buf);
uint64_t *fg_buf_table(const struct fg_buf *buf, uint32_t table);

/* A pattern that differs from byte to byte and from seed to seed. */
void fg_fill(void *va, size_t len, uint32_t seed);
/* Offset of the first byte that is not as fg_fill() left it, or @len. */
size_t fg_mismatch(const void *va, size_t len, uint32_t seed);

#endif /* FG_BUF_H */
