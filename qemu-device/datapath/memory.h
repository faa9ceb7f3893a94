/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Scatter/gather lists over memory regions, and copying between them. */
#ifndef PVR_MEMORY_H
#define PVR_MEMORY_H

#include "model/objects.h"

/* Checked: every entry lies in a region that permits the access. */
struct pvr_sg {
	struct pvr_adapter *adapter;
	uint8_t *data; /* not NULL: this memory of ours, and no region */
	uint64_t total; /* bytes */
	uint32_t count;
	struct {
		const struct pvr_mr *mr;
		uint64_t addr, len;
	} seg[PVR_MAX_SGE];
};

/* A place in a list. */
struct pvr_cursor {
	const struct pvr_sg *sg;
	uint32_t seg;
	uint64_t offset; /* in the segment */
};

/**
 * pvr_sg_build() - check a work request's list
 * @pd: of the queue that holds the request
 * @num_sge: at most PVR_MAX_SGE
 * @access: PVR_ACCESS_LOCAL_WRITE, or 0 to read
 *
 * Entries without length are skipped, their key is not looked at.
 *
 * Return: 0, or -EFAULT if any entry is not permitted.
 */
int pvr_sg_build(struct pvr_sg *sg, const struct pvr_qp *qp, const struct pvr_pd *pd,
		 const struct pvrdma_sge *sge, uint32_t num_sge, uint32_t access);

/* IBTA vol. 1, 10.2.9.1: the lkeys of an SRQ's requests are of the SRQ's domain. */
static inline const struct pvr_pd *pvr_recv_pd(const struct pvr_qp *qp)
{
	return qp->srq ? qp->srq->pd : qp->pd;
}

/* The list is @len bytes of our own memory, which must stay where it is. */
void pvr_sg_build_own(struct pvr_sg *sg, const struct pvr_qp *qp, uint8_t *data,
		      uint32_t len);

/* The memory of a remote key: one entry, empty if @len is 0. Return: 0 or -EFAULT. */
int pvr_sg_build_remote(struct pvr_sg *sg, const struct pvr_qp *qp, uint32_t rkey,
			uint64_t addr, uint64_t len, uint32_t access);

void pvr_cursor_init(struct pvr_cursor *cursor, const struct pvr_sg *sg, uint64_t offset);

/*
 * Copy @len bytes, which both lists must have behind their cursors, and move the
 * cursors on. Return: 0, or -EFAULT if guest memory went away meanwhile.
 */
int pvr_copy(struct pvr_cursor *to, struct pvr_cursor *from, uint64_t len);
int pvr_copy_from(struct pvr_cursor *to, const void *from, uint64_t len);

/* The 8 bytes of a list that has one entry of 8, aligned to 8. NULL: they went away. */
uint64_t *pvr_sg_word(const struct pvr_sg *sg);

#endif /* PVR_MEMORY_H */
