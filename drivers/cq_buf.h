/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Ring memory of a completion queue: a header page, then the CQEs. */
#ifndef PVR_CQ_BUF_H
#define PVR_CQ_BUF_H

#include "pvrdma.h"

/**
 * pvr_cq_buf_init() - allocate the ring of a kernel CQ, or pin that of a user CQ
 * @dev: the adapter
 * @buf: zeroed by the caller
 * @cqe: number of entries; rounded up to a power of two
 * @udata: address of the provider's buffer, or NULL for a kernel CQ
 *
 * Context: may sleep; for user CQs the process context of the owner.
 * Return: 0, -EINVAL for a size above the device's limit, or -errno. On failure @buf
 * owns nothing.
 */
int pvr_cq_buf_init(struct pvr_dev *dev, struct pvr_cq_buf *buf, u32 cqe,
		    struct ib_udata *udata);

/**
 * pvr_cq_buf_exit() - free or unpin the ring
 * @buf: may be zeroed; the device must not use it any more
 */
void pvr_cq_buf_exit(struct pvr_cq_buf *buf);

#endif /* PVR_CQ_BUF_H */
