/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The memory of a completion queue: a header page, then the entries. */
#ifndef PVR_CQ_BUF_H
#define PVR_CQ_BUF_H

#include "pvrdma.h"

/**
 * pvr_cq_buf_init() - make the pages of a CQ, or pin those that a provider made
 * @dev: the adapter
 * @buf: zeroed by the caller
 * @cqe: entries wanted; rounded up to a power of two
 * @udata: holds where the provider's buffer is, or NULL for a kernel CQ
 *
 * Context: may sleep; process context of the owner.
 * Return: 0 or -errno, -EINVAL for a size that the device does not have; @buf owns
 * nothing on failure.
 */
int pvr_cq_buf_init(struct pvr_dev *dev, struct pvr_cq_buf *buf, u32 cqe,
		    struct ib_udata *udata);

/**
 * pvr_cq_buf_exit() - free or unpin the pages
 * @buf: unknown to the device by now
 */
void pvr_cq_buf_exit(struct pvr_cq_buf *buf);

#endif /* PVR_CQ_BUF_H */
