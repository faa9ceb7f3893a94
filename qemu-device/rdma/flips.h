/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Damage of a request by the path of faults: bits of payload that arrive inverted, or a key that
 * the peer refuses.
 */
#ifndef PVR_FLIPS_H
#define PVR_FLIPS_H

#include "core/sg.h"

#define PVR_FLIPS_MAX 64

struct pvr_flips {
	/*
	 * Not 0: the path to another host changes the request, so that the responder refuses it.
	 * REM_INV_REQ_ERR, REM_ACCESS_ERR: with this NAK. LOC_LEN_ERR: the receive request
	 * completes with this status.
	 */
	uint16_t nak;
	uint32_t num;
	uint64_t bits[PVR_FLIPS_MAX]; /* of the payload, ascending */
};

/*
 * Copy @len bytes of the payload @from, from @offset on, with their damage. Return: the copy, for
 * free(); NULL: out of memory, or the payload cannot be read.
 */
uint8_t *pvr_flips_copy(const struct pvr_flips *flips, const struct pvr_sg *from, uint64_t offset,
			uint32_t len);
/* Set @to to a copy that pvr_flips_copy() has made of @from, with the offsets of @from. */
void pvr_flips_build(struct pvr_sg *to, const struct pvr_sg *from, uint64_t offset, uint8_t *copy);
/* Damage @len bytes that have arrived at @to, from @offset on. */
void pvr_flips_apply(const struct pvr_flips *flips, const struct pvr_sg *to, uint64_t offset,
		     uint64_t len);

#endif /* PVR_FLIPS_H */
