/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A simulated RDMA NIC for a fuzzed stream: it executes RDMA READs with a delay. */
#ifndef FUZZ_NIC_H
#define FUZZ_NIC_H

#include "pipe.h"

struct fuzz_nic {
	uint32_t exposed; /* in progress */
	uint32_t polls; /* until its data arrive */
	bool rdma_read, broken;
	int count;
	struct iovec iov[PVR_FRAME_RNDV_SEGS];
	uint8_t own[PVR_READ_BUFFER];
};

/* Operations of pvr_stream_ops; the opaque pointer is the NIC. A call that the engine must not make ends the process. */
void *fuzz_nic_expose(void *opaque, const struct iovec *iov, int count, struct pvr_rndv_seg *part);
void fuzz_nic_revoke(void *opaque, void *rndv);
int fuzz_nic_read(void *opaque, const struct pvr_rndv_seg *part, int parts, const struct iovec *iov,
		  int count);
int fuzz_nic_rdma_read_poll(void *opaque, uint8_t **data);
void fuzz_nic_rdma_read_cancel(void *opaque);
/* The connection is closed: frees its state. */
void fuzz_nic_check(const struct fuzz_nic *nic);

#endif /* FUZZ_NIC_H */
