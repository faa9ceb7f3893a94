/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a connection has lent to the other side: payload that its NIC reads by itself. */
#ifndef PVR_LOANS_H
#define PVR_LOANS_H

#include "pipe.h"
#include "core/ext_dma.h"

struct pvr_loans;

struct pvr_loan {
	struct pvr_nic_use use;
	struct pvr_loans *of;
	void *handle; /* the stream's */
};

struct pvr_loans {
	const struct pvr_stream_ops *ops;
	void *opaque;
	uint32_t lent, returned; /* counted */
	struct pvr_loan loan[PVR_WIRE_LOANS];
};

/* NULL: no memory. */
struct pvr_loans *pvr_loans_create(const struct pvr_stream_ops *ops, void *opaque);
/* All end. NULL is allowed. */
void pvr_loans_destroy(struct pvr_loans *loans);

/*
 * @qp: whose payload it is, with its adapter's lock held. @header: of the REQUEST or READ_DATA
 * that will bring it. Return: how many parts are in @wire; 0: it is to be copied.
 */
unsigned int pvr_loans_lend(struct pvr_loans *loans, const struct pvr_qp *qp,
			    const union pvr_any_frame *header, const struct pvr_sg *payload,
			    uint64_t offset, uint32_t len,
			    struct pvr_wire_loan wire[PVR_WIRE_LOAN_PARTS]);
/* RETURNED has come. Return: NULL, or what is wrong. */
const char *pvr_loans_returned(struct pvr_loans *loans, const struct pvr_frame_returned *frame);

#endif /* PVR_LOANS_H */
