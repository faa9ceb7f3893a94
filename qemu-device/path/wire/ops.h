/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The wire path, see path/wire/internal.h. */
#ifndef PVR_PATH_WIRE_OPS_H
#define PVR_PATH_WIRE_OPS_H

#include "rdma/path.h"

extern const struct pvr_path_ops pvr_eth_path_ops;

/* Get the traffic of an adapter to its peer @i. Return: the peer's address; NULL: there are no more. */
const char *pvr_eth_flow(const struct pvr_adapter *adapter, uint32_t i, uint64_t *messages,
			 uint64_t *bytes);

#endif /* PVR_PATH_WIRE_OPS_H */
