// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Areas of memory that come and go under the device: private, shared, of files, read-only, huge.
 * Their addresses are far from all other memory of the process, so that neither a hole is used by
 * another mapping, nor a request reaches memory that is not part of an area.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "random.h"

#define AREAS 8u
#define AREA_BYTES (512u * 1024)
#define FIRST_AREA 0x100000000000ull
#define DISTANCE (8ull << 20)

uint8_t *safe_memory;

static int file = -1;

static void *area(uint32_t number)
{
	return (void *)(uintptr_t)(FIRST_AREA + number * DISTANCE);
}

static void map_area(struct worker *worker, uint32_t number)
{
	struct chance *chance = &worker->chance;
	int prot = one_in(chance, 5) ? PROT_READ : PROT_READ | PROT_WRITE;
	int flags = MAP_FIXED | (one_in(chance, 2) ? MAP_SHARED : MAP_PRIVATE);
	int fd = one_in(chance, 2) ? file : -1;

	if (one_in(chance, 4))
		flags |= MAP_POPULATE;
	if (fd < 0)
		flags |= MAP_ANONYMOUS;
	if (one_in(chance, 8))
		prot = PROT_NONE;
	count(VERB_map, mmap(area(number), AREA_BYTES, prot, flags, fd, 0) == MAP_FAILED);
}

void memory_init(struct worker *worker)
{
	char path[] = "/tmp/pvr_random.XXXXXX";

	file = mkstemp(path);
	if (file < 0)
		die("%s:", path);
	MUST(unlink(path));
	MUST(ftruncate(file, AREA_BYTES));
	safe_memory = mmap((void *)(FIRST_AREA - DISTANCE), SAFE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (safe_memory == MAP_FAILED)
		die("mmap:");
	for (uint32_t i = 0; i < AREAS; i++)
		map_area(worker, i);
}

uint64_t some_address(struct chance *chance)
{
	uint64_t start = (uintptr_t)area(below(chance, AREAS));

	switch (below(chance, 16)) {
	case 0:
		return below(chance, 2) ? 0 : -(uint64_t)PAGE;
	case 1:
		return 1ull << 47 | draw(chance);
	case 2:
		return (uintptr_t)safe_memory + below(chance, SAFE_BYTES);
	case 3:
		return start + draw(chance) % DISTANCE;
	case 4 ... 9:
		return start + below(chance, AREA_BYTES / PAGE) * PAGE;
	default:
		return start + below(chance, AREA_BYTES);
	}
}

uint64_t some_length(struct chance *chance)
{
	switch (below(chance, 12)) {
	case 0:
		return 0;
	case 1:
		return (uint32_t)odd_number(chance);
	case 2:
		return AREA_BYTES;
	case 3 ... 6:
		return below(chance, AREA_BYTES / 4);
	default:
		return below(chance, 2 * PAGE);
	}
}

/* ------------------------------------------------------------------------ disturbances */

/* A range of pages of an area. */
static void *some_pages(struct chance *chance, size_t *bytes)
{
	uint32_t first = below(chance, AREA_BYTES / PAGE);

	*bytes = (1 + below(chance, AREA_BYTES / PAGE - first)) * PAGE;
	return (char *)area(below(chance, AREAS)) + first * PAGE;
}

static void map(struct worker *worker)
{
	map_area(worker, below(&worker->chance, AREAS));
}

static void unmap(struct worker *worker)
{
	size_t bytes;
	void *pages = some_pages(&worker->chance, &bytes);

	count(VERB_unmap, munmap(pages, bytes));
}

static void move(struct worker *worker)
{
	struct chance *chance = &worker->chance;
	void *from = area(below(chance, AREAS)), *to = area(below(chance, AREAS));
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED | (one_in(chance, 4) ? MREMAP_DONTUNMAP : 0);
	size_t bytes = (1 + below(chance, AREA_BYTES / PAGE)) * PAGE;

	count(VERB_move, mremap(from, bytes, bytes, flags, to) == MAP_FAILED);
}

static void advise(struct worker *worker)
{
	static const int advices[] = { MADV_DONTNEED,  MADV_DONTNEED,	MADV_FREE,
				       MADV_REMOVE,    MADV_PAGEOUT,	MADV_COLD,
				       MADV_HUGEPAGE,  MADV_NOHUGEPAGE, MADV_WILLNEED,
				       MADV_MERGEABLE, MADV_DONTFORK,	MADV_DOFORK,
				       MADV_WIPEONFORK };
	uint32_t which = below(&worker->chance, sizeof(advices) / sizeof(advices[0]));
	size_t bytes;
	void *pages = some_pages(&worker->chance, &bytes);

	count(VERB_advise, madvise(pages, bytes, advices[which]));
}

static void protect(struct worker *worker)
{
	static const int rights[] = { PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
				      PROT_READ | PROT_WRITE };
	size_t bytes;
	void *pages = some_pages(&worker->chance, &bytes);

	count(VERB_protect, mprotect(pages, bytes, rights[below(&worker->chance, 4)]));
}

static void truncate_file(struct worker *worker)
{
	struct chance *chance = &worker->chance;

	if (one_in(chance, 2))
		count(VERB_truncate, ftruncate(file, AREA_BYTES));
	else if (one_in(chance, 2))
		count(VERB_truncate, ftruncate(file, below(chance, AREA_BYTES)));
	else
		count(VERB_truncate, fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					       below(chance, AREA_BYTES), 3 * PAGE));
}

/* By the kernel, which refuses memory that is not there. */
static void touch(struct worker *worker)
{
	size_t bytes;
	void *pages = some_pages(&worker->chance, &bytes);

	count(VERB_touch, getrandom(pages, bytes < 256 ? bytes : 256, 0) < 0);
}

void deed_memory(struct worker *worker)
{
	static deed *const deeds[] = { map,    map,	      map,    unmap,   move,
				       advise, advise,	      advise, protect, protect,
				       touch,  truncate_file, touch,  touch };

	deeds[below(&worker->chance, sizeof(deeds) / sizeof(deeds[0]))](worker);
}
