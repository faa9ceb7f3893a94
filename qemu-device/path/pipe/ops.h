/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The pipe path to adapters of other hosts: frames on byte streams,
 * docs/pipe-protocol.md.
 */
#ifndef PVR_PIPE_OPS_H
#define PVR_PIPE_OPS_H

#include "rdma/path.h"

extern const struct pvr_path_ops pvr_pipe_path_ops;

#endif /* PVR_PIPE_OPS_H */
