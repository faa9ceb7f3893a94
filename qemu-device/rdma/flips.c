// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Damage of payload: in a copy before it is sent, or where it has arrived. */
#include "rdma/flips.h"

#include <stdlib.h>

static uint8_t mask_of(uint64_t bit)
{
	return (uint8_t)(1u << bit % 8);
}

uint8_t *pvr_flips_copy(const struct pvr_flips *flips, const struct pvr_sg *from, uint64_t offset,
			uint32_t len)
{
	uint8_t *copy = malloc(len);
	struct pvr_sg to;
	uint32_t i;

	if (!copy)
		return NULL;
	pvr_sg_build_flat(&to, from->adapter, copy, len);
	if (pvr_sg_copy(&to, 0, from, offset, len)) {
		free(copy);
		return NULL;
	}
	for (i = 0; i < flips->num; i++)
		if (flips->bits[i] / 8 >= offset && flips->bits[i] / 8 < offset + len)
			copy[flips->bits[i] / 8 - offset] ^= mask_of(flips->bits[i]);
	return copy;
}

/* No byte before @offset is read. */
void pvr_flips_build(struct pvr_sg *to, const struct pvr_sg *from, uint64_t offset, uint8_t *copy)
{
	pvr_sg_build_flat(to, from->adapter, (uint8_t *)((uintptr_t)copy - offset),
			  (uint32_t)from->total);
}

void pvr_flips_apply(const struct pvr_flips *flips, const struct pvr_sg *to, uint64_t offset,
		     uint64_t len)
{
	struct iovec byte;
	uint64_t at;
	uint32_t i;

	for (i = 0; i < flips->num; i++) {
		at = flips->bits[i] / 8;
		if (at < offset || at >= offset + len || pvr_sg_iov(to, at, 1, &byte, 1) != 1)
			continue;
		*(uint8_t *)byte.iov_base ^= mask_of(flips->bits[i]);
		pvr_dirty(to->adapter, byte.iov_base, 1);
	}
}
