/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The world of a fuzzed guest: two hostile guests, and two well-behaved ones with a
 * connected pair, on one fabric. The engine sees the hostile guests' RAM at mappings of its
 * own, so that a fuzzer can unmap them, while the fake guests still reach their memory.
 */
#ifndef FUZZ_WORLD_H
#define FUZZ_WORLD_H

#include "fake_guest.h"
#include "fg_monkey.h"

/*
 * So many pages are unmapped at a time. With fewer pieces each would have a page of the
 * shared region or of a device ring, without which the device fails at once.
 */
#define FUZZ_PIECE_PAGES 64
#define FUZZ_PIECES 24

struct fuzz_piece {
	uint64_t gpa, size;
	uint8_t *guard; /* PROT_NONE around and, while not mapped, instead of the memory */
	size_t guarded;
	uint8_t *va;
	bool mapped, writable;
	uint64_t mapped_size;
};

struct fuzz_world {
	struct fg_host *host;
	struct fg_guest *guest[2];
	struct fuzz_piece piece[2][FUZZ_PIECES];
	struct fg_guest *other[2];
	struct fg_end witness[2];
	struct fg_monkey monkey;
};

struct fuzz_world_options {
	unsigned int workers;
	uint32_t ext[2];
	bool uar_mapped[2];
	bool polls;
};

void fuzz_world_init(struct fuzz_world *w, const struct fuzz_world_options *options);
/*
 * Dies if an object is left, or if a guest that did nothing wrong cannot work. @heals:
 * RAM is mapped again before RESET, else after it.
 */
void fuzz_world_check(struct fuzz_world *w, bool heals);
void fuzz_world_exit(struct fuzz_world *w);

/* All of the piece, or its first @size bytes. */
void fuzz_piece_map(struct fuzz_world *w, int who, int i, uint64_t size, bool writable);
void fuzz_piece_unmap(struct fuzz_world *w, int who, int i);
/* All RAM is mapped again. */
void fuzz_world_heal(struct fuzz_world *w);
/* Return: the piece of writable, mapped RAM that @va is in. */
const struct fuzz_piece *fuzz_piece_of(const struct fuzz_world *w, const void *va);

#endif /* FUZZ_WORLD_H */
