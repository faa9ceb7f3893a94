/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The log of dirty pages of a guest's adapter, and the pages that the adapter has written. */
#ifndef FG_DIRTY_H
#define FG_DIRTY_H

#include "fg_guest.h"

/* Starts the log. Dies if that fails. */
void fg_dirty_start(struct fg_guest *guest);
/* Takes the log of all RAM. Return: whether the page at @gpa was in it. */
bool fg_dirty_take(struct fg_guest *guest, uint64_t gpa);
/*
 * Takes the log of all RAM, and dies if a page that the adapter has written lacks. For RAM with
 * traps, see fg_trap.h, else no page was written.
 */
void fg_dirty_check(struct fg_guest *guest);
/* Unmaps a piece of RAM, whose pages thereby leave the log. */
void fg_dirty_unmap(struct fg_guest *guest, const struct fg_ram_region *region);

#endif /* FG_DIRTY_H */
