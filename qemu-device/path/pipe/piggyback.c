// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Piggybacked ACKs: sent with requests to the same host. */
#include "path/pipe/piggyback.h"

#include <endian.h>
#include <string.h>

static void set_waits(struct pvr_piggyback *piggyback, bool waits)
{
	__atomic_store_n(&piggyback->waits, waits, __ATOMIC_RELAXED);
}

void pvr_piggyback_offer(struct pvr_piggyback *piggyback, const struct pvr_rsp_conn *from,
			 const char *fabric, const struct pvr_frame_ack *frame)
{
	pvr_lock(&piggyback->lock);
	piggyback->from = from;
	piggyback->frame = *frame;
	strncpy(piggyback->fabric, fabric, sizeof(piggyback->fabric) - 1);
	set_waits(piggyback, true);
	pvr_unlock(&piggyback->lock);
}

bool pvr_piggyback_is_sent(struct pvr_piggyback *piggyback, const struct pvr_rsp_conn *from)
{
	bool told;

	if (__atomic_load_n(&piggyback->waits, __ATOMIC_RELAXED))
		return false;
	pvr_lock(&piggyback->lock);
	told = piggyback->from == from && !piggyback->waits;
	pvr_unlock(&piggyback->lock);
	return told;
}

void pvr_piggyback_withdraw(struct pvr_piggyback *piggyback, const struct pvr_rsp_conn *from)
{
	pvr_lock(&piggyback->lock);
	if (piggyback->from == from) {
		piggyback->from = NULL;
		set_waits(piggyback, false);
	}
	pvr_unlock(&piggyback->lock);
}

bool pvr_piggyback_take(struct pvr_piggyback *piggyback, struct pvr_fabric_ids *fabrics,
			union pvr_any_frame *any)
{
	unsigned int number = 0;

	if (!__atomic_load_n(&piggyback->waits, __ATOMIC_RELAXED))
		return false;
	pvr_lock(&piggyback->lock);
	if (piggyback->waits)
		number = pvr_fabric_ids_find(fabrics, 0, piggyback->fabric);
	if (number) {
		any->ack = piggyback->frame;
		any->frame.fabric = htole16((uint16_t)number);
		set_waits(piggyback, false);
	}
	pvr_unlock(&piggyback->lock);
	return number;
}
