/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Unreliable datagrams, those of the GSI included. */
#ifndef PVR_UD_H
#define PVR_UD_H

#include "rdma/requester.h"

/* Who waits tries again so much later: how to get there may be known by then. */
#define PVR_UD_LATER_NS 2000000ull

/* A turn of a UD or GSI queue pair: datagrams do not wait for receivers. */
enum pvr_turn pvr_ud_run(struct pvr_qp *qp);

#endif /* PVR_UD_H */
