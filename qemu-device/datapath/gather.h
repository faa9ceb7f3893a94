/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requester's own memory that a send request names, or the data that it brings. */
#ifndef PVR_GATHER_H
#define PVR_GATHER_H

#include "datapath/memory.h"
#include "datapath/queue.h"

/**
 * pvr_gather() - find what a send request sends, or where it wants an answer
 * @wqe: must live as long as @sg
 * @access: PVR_ACCESS_LOCAL_WRITE, or 0 to read
 *
 * Return: PVRDMA_WC_SUCCESS, or the status with which the request fails.
 */
enum pvrdma_wc_status pvr_gather(struct pvr_sg *sg, const struct pvr_qp *qp,
				 struct pvr_send_wqe *wqe, uint32_t access);

#endif /* PVR_GATHER_H */
