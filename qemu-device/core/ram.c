/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Guest RAM: bus addresses to pointers. */
#include "core/ram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pvrdma_abi.h"

void pvr_ram_init(struct pvr_ram *ram)
{
	*ram = (struct pvr_ram){ 0 };
}

void pvr_ram_exit(struct pvr_ram *ram)
{
	free(ram->piece);
	pvr_ram_init(ram);
}

/* The first piece that ends behind @gpa; count if there is none. */
static unsigned int ram_find(const struct pvr_ram *ram, uint64_t gpa)
{
	unsigned int lo = 0, hi = ram->count, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (ram->piece[mid].gpa + ram->piece[mid].size - 1 < gpa)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int pvr_ram_add(struct pvr_ram *ram, uint64_t gpa, uint64_t size, void *va, bool writable)
{
	struct pvr_ram_piece *piece;
	unsigned int at;

	if (!size || !va || gpa + size - 1 < gpa)
		return -EINVAL;
	at = ram_find(ram, gpa);
	if (at < ram->count && ram->piece[at].gpa <= gpa + size - 1)
		return -EINVAL;
	if (ram->count == PVR_RAM_MAX_PIECES)
		return -ENOSPC;
	piece = realloc(ram->piece, (ram->count + 1) * sizeof(*piece));
	if (!piece)
		return -ENOMEM;
	ram->piece = piece;
	memmove(&piece[at + 1], &piece[at], (ram->count - at) * sizeof(*piece));
	piece[at] = (struct pvr_ram_piece){ gpa, size, va, writable };
	ram->count++;
	ram->last = at;
	return 0;
}

int pvr_ram_del(struct pvr_ram *ram, uint64_t gpa, uint64_t size, struct pvr_ram_piece *piece)
{
	unsigned int at = ram_find(ram, gpa);

	if (at == ram->count || ram->piece[at].gpa != gpa || ram->piece[at].size != size)
		return -ENOENT;
	*piece = ram->piece[at];
	ram->count--;
	memmove(&ram->piece[at], &ram->piece[at + 1], (ram->count - at) * sizeof(*ram->piece));
	ram->last = 0;
	return 0;
}

uint64_t pvr_ram_size(const struct pvr_ram *ram)
{
	uint64_t size = 0;
	unsigned int i;

	for (i = 0; i < ram->count; i++)
		size += ram->piece[i].size;
	return size;
}

static bool piece_has(const struct pvr_ram_piece *piece, uint64_t gpa)
{
	return gpa - piece->gpa < piece->size;
}

uint8_t *pvr_ram_ptr(struct pvr_ram *ram, uint64_t gpa, uint64_t len, bool write, uint64_t *contig)
{
	const struct pvr_ram_piece *piece;
	unsigned int at = ram->last;
	uint64_t room;

	if (at >= ram->count || !piece_has(&ram->piece[at], gpa)) {
		at = ram_find(ram, gpa);
		if (at == ram->count || !piece_has(&ram->piece[at], gpa))
			return NULL;
		ram->last = at;
	}
	piece = &ram->piece[at];
	if (write && !piece->writable)
		return NULL;
	room = piece->size - (gpa - piece->gpa);
	*contig = len < room ? len : room;
	return piece->va + (gpa - piece->gpa);
}

bool pvr_ram_covers(struct pvr_ram *ram, uint64_t gpa, uint64_t len, bool write)
{
	uint64_t contig;

	if (len && gpa + len - 1 < gpa)
		return false;
	for (; len; len -= contig, gpa += contig)
		if (!pvr_ram_ptr(ram, gpa, len, write, &contig))
			return false;
	return true;
}

void *pvr_ram_page(struct pvr_ram *ram, uint64_t gpa, bool write)
{
	uint64_t contig;
	void *page;

	if (gpa % PVR_PAGE_SIZE)
		return NULL;
	page = pvr_ram_ptr(ram, gpa, PVR_PAGE_SIZE, write, &contig);
	return page && contig == PVR_PAGE_SIZE ? page : NULL;
}
