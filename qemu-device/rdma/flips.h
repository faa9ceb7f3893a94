/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Damage of a request by the path of faults: bits of payload that arrive inverted, or an error at
 * a responder of another host.
 */
#ifndef PVR_FLIPS_H
#define PVR_FLIPS_H

#include "core/sg.h"

#define PVR_FLIPS_MAX 64

/* Whether the path to another host has asked its daemon for the error. */
enum pvr_flips_asked {
	PVR_FLIPS_NOT_ASKED,
	PVR_FLIPS_ASKED,
	PVR_FLIPS_REFUSED, /* that host does not allow faults */
};

struct pvr_flips {
	/*
	 * Not 0: an error at the responder, enum pvrdma_wc_status: of the NAK that it sends, or
	 * LOC_*, GENERAL_ERR, FATAL_ERR: of its receive request. If its host refuses that, the
	 * NAK fails the requester alone, and the receive request succeeds.
	 */
	uint16_t far_status;
	uint8_t asked; /* enum pvr_flips_asked; the path sets it */
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
