/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The transport between adapters of one engine: a memcpy. */
#ifndef PVR_LOCAL_H
#define PVR_LOCAL_H

#include "datapath/request.h"

/*
 * The queue pair that @qp, of type RC or UC, is connected to: it exists, is reachable, is
 * connected back to @qp and in a state that can respond. NULL if not.
 */
struct pvr_qp *pvr_local_peer(struct pvr_qp *qp);

struct pvr_answer pvr_local_send(const struct pvr_request *request);

#endif /* PVR_LOCAL_H */
