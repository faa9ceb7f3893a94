/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Send requests that stay at home: they change regions and windows and reach no peer. */
#ifndef PVR_LOCAL_OPS_H
#define PVR_LOCAL_OPS_H

#include "core/wq.h"

/*
 * Adds to @bytes how much copying would have taken as long: page lists are long.
 * Return: 0, or -errno if the request completes with MW_BIND_ERR.
 */
int pvr_local_op(struct pvr_qp *qp, const struct pvr_send_wqe *wqe, uint64_t *bytes);

#endif /* PVR_LOCAL_OPS_H */
