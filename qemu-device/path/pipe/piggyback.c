// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* An ACK that is told ahead, with requests that go the other way anyway. */
#include "path/pipe/piggyback.h"

#include <endian.h>
#include <string.h>

static void set_waits(struct pvr_early *early, bool waits)
{
	__atomic_store_n(&early->waits, waits, __ATOMIC_RELAXED);
}

void pvr_early_offer(struct pvr_early *early, const struct pvr_in *from, const char *fabric,
		     const struct pvr_frame_ack *frame)
{
	pvr_lock(&early->lock);
	early->from = from;
	early->frame = *frame;
	strncpy(early->fabric, fabric, sizeof(early->fabric) - 1);
	set_waits(early, true);
	pvr_unlock(&early->lock);
}

bool pvr_early_is_told(struct pvr_early *early, const struct pvr_in *from)
{
	bool told;

	if (__atomic_load_n(&early->waits, __ATOMIC_RELAXED))
		return false;
	pvr_lock(&early->lock);
	told = early->from == from && !early->waits;
	pvr_unlock(&early->lock);
	return told;
}

void pvr_early_withdraw(struct pvr_early *early, const struct pvr_in *from)
{
	pvr_lock(&early->lock);
	if (early->from == from) {
		early->from = NULL;
		set_waits(early, false);
	}
	pvr_unlock(&early->lock);
}

bool pvr_early_take(struct pvr_early *early, struct pvr_declared *fabrics, union pvr_any_frame *any)
{
	unsigned int number = 0;

	if (!__atomic_load_n(&early->waits, __ATOMIC_RELAXED))
		return false;
	pvr_lock(&early->lock);
	if (early->waits)
		number = pvr_declared_find(fabrics, 0, early->fabric);
	if (number) {
		any->ack = early->frame;
		any->frame.fabric = htole16((uint16_t)number);
		set_waits(early, false);
	}
	pvr_unlock(&early->lock);
	return number;
}
