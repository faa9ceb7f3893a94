/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What a connection has lent to the other side. */
#include "path/pipe/rndv_tx.h"

#include <endian.h>
#include <stdlib.h>

struct pvr_loans *pvr_loans_create(const struct pvr_stream_ops *ops, void *opaque)
{
	struct pvr_loans *loans = calloc(1, sizeof(*loans));

	if (!loans)
		return NULL;
	loans->ops = ops;
	loans->opaque = opaque;
	return loans;
}

static struct pvr_loan *loan_at(struct pvr_loans *loans, uint32_t number)
{
	return &loans->loan[number % PVR_WIRE_LOANS];
}

static void give_back(struct pvr_loans *loans, uint32_t count)
{
	for (; count; count--, loans->returned++)
		pvr_nic_use_end(&loan_at(loans, loans->returned)->use);
}

void pvr_loans_destroy(struct pvr_loans *loans)
{
	if (!loans)
		return;
	give_back(loans, loans->lent - loans->returned);
	free(loans);
}

static void take_back(struct pvr_nic_use *use)
{
	struct pvr_loan *loan = (struct pvr_loan *)use;

	loan->of->ops->take_back(loan->of->opaque, loan->handle);
}

static_assert(offsetof(struct pvr_loan, use) == 0, "take_back() casts");

static void fill_use(struct pvr_nic_use *use, const struct pvr_qp *qp,
		     const union pvr_any_frame *header)
{
	bool request = header->frame.type == PVR_FRAME_REQUEST;

	use->qp = qp;
	use->kind = request ? PVR_NIC_LENDS : PVR_NIC_ANSWERS;
	use->psn = le32toh(request ? header->request.psn : header->read_data.psn);
	use->stop = take_back;
}

/* Return: how many runs there are; 0 if too many. */
static int find_runs(const struct pvr_sg *payload, uint64_t offset, uint32_t len,
		     struct iovec iov[PVR_WIRE_LOAN_PARTS])
{
	int count = pvr_sg_iov(payload, offset, len, iov, PVR_WIRE_LOAN_PARTS), i;

	for (i = 0; i < count; i++)
		len -= (uint32_t)iov[i].iov_len;
	return count > 0 && !len ? count : 0;
}

static void fill_wire(struct pvr_wire_loan *wire, const struct pvr_loan_part *part, int count)
{
	for (; count; count--, wire++, part++)
		*wire = (struct pvr_wire_loan){
			.addr = htole64(part->addr),
			.rkey = htole32(part->rkey),
			.len = htole32(part->len),
		};
}

unsigned int pvr_loans_lend(struct pvr_loans *loans, const struct pvr_qp *qp,
			    const union pvr_any_frame *header, const struct pvr_sg *payload,
			    uint64_t offset, uint32_t len,
			    struct pvr_wire_loan wire[PVR_WIRE_LOAN_PARTS])
{
	struct pvr_loan *loan = loan_at(loans, loans->lent);
	struct pvr_loan_part part[PVR_WIRE_LOAN_PARTS];
	struct iovec iov[PVR_WIRE_LOAN_PARTS];
	int count;

	if (loans->lent - loans->returned == PVR_WIRE_LOANS || !pvr_nic_may_use(payload->adapter))
		return 0;
	count = find_runs(payload, offset, len, iov);
	if (!count)
		return 0;
	loan->handle = loans->ops->lend(loans->opaque, iov, count, part);
	if (!loan->handle)
		return 0;
	loan->of = loans;
	fill_use(&loan->use, qp, header);
	if (!pvr_nic_use_begin(&loan->use, payload, offset, len)) {
		take_back(&loan->use);
		return 0;
	}
	loans->lent++;
	fill_wire(wire, part, count);
	return (unsigned int)count;
}

const char *pvr_loans_returned(struct pvr_loans *loans, const struct pvr_frame_returned *frame)
{
	uint32_t count;

	if (!loans)
		return "a loan is returned, and there can be none";
	count = le32toh(frame->count) - loans->returned;
	if (!count || count > loans->lent - loans->returned)
		return "loans are returned that were not made";
	give_back(loans, count);
	return NULL;
}
