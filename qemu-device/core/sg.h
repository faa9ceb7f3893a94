/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Scatter/gather lists over memory regions, and copying between them. */
#ifndef PVR_SG_H
#define PVR_SG_H

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "core/compiler.h"
#include "core/dirty.h"
#include "core/mr.h"

/* A checked list: every entry lies in a region that permits the access. */
struct pvr_sg {
	struct pvr_adapter *adapter;
	uint64_t total; /* bytes */
	uint8_t *flat; /* address of all bytes if they are known to be one run; else NULL */
	uint32_t count;
	struct {
		const struct pvr_mr *mr; /* NULL: memory of this process, and flat is set */
		uint64_t addr, len; /* valid if flat is NULL */
	} seg[PVR_MAX_SGE];
};

static inline void pvr_sg_empty(struct pvr_sg *sg)
{
	sg->total = 0;
	sg->flat = NULL;
	sg->count = 0;
}

/* Set the list to one entry. */
static inline void pvr_sg_one(struct pvr_sg *sg, const struct pvr_mr *mr, uint64_t addr,
			      uint64_t len)
{
	sg->count = 1;
	sg->total = len;
	sg->seg[0].mr = mr;
	sg->flat = pvr_mr_flat(mr, addr, len);
	if (sg->flat)
		return;
	sg->seg[0].addr = addr;
	sg->seg[0].len = len;
}

/* pvr_sg_build() for any number of entries. */
int pvr_sg_build_many(struct pvr_sg *sg, const struct pvr_pd *pd, const struct pvrdma_sge *sge,
		      uint32_t num_sge, uint32_t access);

/**
 * pvr_sg_build() - check the list of a work request
 * @pd: of the queue that holds the request
 * @num_sge: at most PVR_MAX_SGE
 * @access: PVR_ACCESS_LOCAL_WRITE, or 0 for a read
 *
 * Entries of length 0 are skipped without a check of their key.
 *
 * Return: 0, or -EFAULT if any entry is not permitted.
 */
static inline int pvr_sg_build(struct pvr_sg *sg, const struct pvr_qp *qp, const struct pvr_pd *pd,
			       const struct pvrdma_sge *sge, uint32_t num_sge, uint32_t access)
{
	const struct pvr_mr *mr;

	sg->adapter = qp->adapter;
	if (num_sge != 1 || !sge->length)
		return pvr_sg_build_many(sg, pd, sge, num_sge, access);
	/* Most requests have one entry. */
	mr = pvr_mr_find_local(sg->adapter, pd, sge->lkey, sge->addr, sge->length, access);
	if (!mr)
		return -EFAULT;
	pvr_sg_one(sg, mr, sge->addr, sge->length);
	return 0;
}

/* IBTA 10.2.9.1: the lkeys of requests of an SRQ belong to the PD of the SRQ. */
static inline const struct pvr_pd *pvr_recv_pd(const struct pvr_qp *qp)
{
	return qp->srq ? qp->srq->pd : qp->pd;
}

/* Set the list to @len bytes of this process, which must stay at this address. */
void pvr_sg_build_flat(struct pvr_sg *sg, struct pvr_adapter *adapter, uint8_t *data, uint32_t len);

/* Set the list to memory of a remote key; empty if @len is 0. Return: 0 or -EFAULT. */
static pvr_always_inline int pvr_sg_build_remote(struct pvr_sg *sg, const struct pvr_qp *qp,
						 uint32_t rkey, uint64_t addr, uint64_t len,
						 uint32_t access)
{
	const struct pvr_mr *mr;

	sg->adapter = qp->adapter;
	if (!len) {
		pvr_sg_empty(sg);
		return 0;
	}
	mr = pvr_mr_find_remote(qp, rkey, addr, len, access);
	if (!mr)
		return -EFAULT;
	pvr_sg_one(sg, mr, addr, len);
	return 0;
}

/*
 * Copy 8 to 16 bytes. A guest may use the same memory at both ends, so both loads come
 * before the stores. The last bytes are stored last, see pvr_copy_last().
 */
static inline void pvr_move_short(void *to, const void *from, uint64_t len)
{
	uint64_t first, last;

	memcpy(&first, from, sizeof(first));
	memcpy(&last, from + len - sizeof(last), sizeof(last));
	memcpy(to, &first, sizeof(first));
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(to + len - sizeof(last), &last, sizeof(last));
}

/*
 * While the log of dirty pages is on: mark @len bytes from @offset on, as far as they have
 * memory.
 */
void pvr_sg_mark(const struct pvr_sg *sg, uint64_t offset, uint64_t len);

/* pvr_sg_copy() of two flat lists, without a mark. */
void pvr_sg_copy_flat(const struct pvr_sg *to, uint64_t to_offset, const struct pvr_sg *from,
		      uint64_t from_offset, uint64_t len);
/* pvr_sg_copy() of lists that are not both flat, run by run. */
int pvr_sg_copy_runs(const struct pvr_sg *to, uint64_t to_offset, const struct pvr_sg *from,
		     uint64_t from_offset, uint64_t len);

/*
 * Copy @len bytes, which both lists must have from their offsets on. The lists may
 * overlap. Return: 0, or -EFAULT if guest memory was removed meanwhile.
 */
static inline int pvr_sg_copy(const struct pvr_sg *to, uint64_t to_offset,
			      const struct pvr_sg *from, uint64_t from_offset, uint64_t len)
{
	/* Loaded before the stores, which may change everything for the compiler. */
	struct pvr_adapter *adapter = to->adapter;
	uint8_t *at;

	if (!to->flat || !from->flat)
		return pvr_sg_copy_runs(to, to_offset, from, from_offset, len);
	at = to->flat + to_offset;
	if (len >= sizeof(uint64_t) && len <= 2 * sizeof(uint64_t))
		pvr_move_short(at, from->flat + from_offset, len);
	else
		pvr_sg_copy_flat(to, to_offset, from, from_offset, len);
	pvr_dirty(adapter, at, len);
	return 0;
}

/* Copy @len bytes of this process to the beginning of a list. Return: the same. */
int pvr_sg_write(const struct pvr_sg *to, const void *from, uint64_t len);

/*
 * Get the runs of @len bytes from @offset on, at most @max runs. Return: the number of
 * runs, or -EFAULT if guest memory was removed. After a store to them, call pvr_sg_mark().
 */
int pvr_sg_iov(const struct pvr_sg *sg, uint64_t offset, uint64_t len, struct iovec *iov, int max);

/*
 * Return: the address of the 8 bytes of a list with one entry of 8 bytes, aligned to 8;
 * NULL if guest memory was removed. After a store to it, call pvr_dirty().
 */
uint64_t *pvr_sg_word(const struct pvr_sg *sg);

#endif /* PVR_SG_H */
