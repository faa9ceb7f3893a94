/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RAM of which single pages, the slots, can be unplugged. They are unmapped in this process, too:
 * any later access of the device is a fault.
 */
#ifndef UNIT_SLOTS_H
#define UNIT_SLOTS_H

#include "common.h"

#define T_SLOTS 192

/* In each test: a fault ends the program. After cmocka's handler an adapter would stay locked. */
void t_slots_init(void);
/* Guest @number, booted, with its default GID. */
struct fg_guest *t_split_guest(struct fg_host *host, uint32_t number);
uint32_t t_first_slot(const struct fg_ram *ram);
/* The next buffers of the guest lie in the slots, in an order of their own, or in other pages. */
void t_prefer_slots(struct fg_ram *ram, bool prefer);
/* Whether a buffer, or other memory of the guest, lies in this page. */
bool t_slot_is_used(const struct fg_ram *ram, uint32_t page);
/* The guest keeps views of its own, as those of buffers. */
void t_unplug_slot(struct fg_guest *g, uint32_t page);
/* The page is RAM again, with its contents. */
void t_plug_slot(struct fg_guest *g, uint32_t page);

#endif /* UNIT_SLOTS_H */
