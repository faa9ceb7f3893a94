/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Pages that a device writes, found by the MMU.
 *
 * The device gets a mapping of its own of a guest's RAM, which is read-only. Its first store to a
 * page causes SIGSEGV, whose handler notes the page and makes it writable.
 */
#ifndef FG_TRAP_H
#define FG_TRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fg_trap;

/* From now on RAM has traps. */
extern bool fg_traps_on;

/*
 * Installs the handler, unless it is. Call it in each phase of a test, because cmocka sets handlers
 * of its own.
 */
void fg_trap_install(void);

/* Maps @size bytes of @fd from @offset on. Dies if that fails. */
struct fg_trap *fg_trap_map(int fd, uint64_t offset, size_t size);
/* @trap may be NULL. */
void fg_trap_unmap(struct fg_trap *trap);
uint8_t *fg_trap_va(const struct fg_trap *trap);

/* Whether the page at @offset was written since the last reset. */
bool fg_trap_was_written(const struct fg_trap *trap, size_t offset);
void fg_trap_reset(struct fg_trap *trap);

#endif /* FG_TRAP_H */
