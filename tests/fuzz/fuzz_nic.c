// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A simulated RDMA NIC for a fuzzed stream. */
#include "fuzz_nic.h"

#include <errno.h>
#include <string.h>

#include "fg_ram.h"

#define POLLS 3
/* An address that the NIC refuses to register. */
#define FORBIDDEN 0xbadull

void *fuzz_nic_expose(void *opaque, const struct iovec *iov, int count, struct pvr_rndv_seg *part)
{
	struct fuzz_nic *nic = opaque;

	if (count < 1 || count > (int)PVR_FRAME_RNDV_SEGS || nic->exposed == PVR_FRAME_RNDV_MAX)
		fg_die("a rendezvous of %d parts, beside %u others", count, nic->exposed);
	for (int i = 0; i < count; i++)
		part[i] = (struct pvr_rndv_seg){ (uintptr_t)iov[i].iov_base, 7,
						 (uint32_t)iov[i].iov_len };
	nic->exposed++;
	return nic;
}

void fuzz_nic_revoke(void *opaque, void *rndv)
{
	struct fuzz_nic *nic = opaque;

	if (rndv != nic || !nic->exposed--)
		fg_die("a rendezvous is taken back twice");
}

int fuzz_nic_read(void *opaque, const struct pvr_rndv_seg *part, int parts, const struct iovec *iov,
		  int count)
{
	struct fuzz_nic *nic = opaque;
	size_t size = 0, room = count ? 0 : sizeof(nic->own);

	for (int i = 0; i < parts; i++) {
		if (!part[i].len || part[i].addr + part[i].len < part[i].addr)
			fg_die("a part that is none");
		size += part[i].len;
	}
	for (int i = 0; i < count; i++)
		room += iov[i].iov_len;
	if (parts < 1 || parts > (int)PVR_FRAME_RNDV_SEGS || count > (int)PVR_FRAME_RNDV_SEGS ||
	    (count ? size != room : size > room) || nic->rdma_read)
		fg_die("%zu bytes are read into %zu, %d parts into %d", size, room, parts, count);
	if (nic->broken || part[0].addr == FORBIDDEN)
		return -ECONNRESET;
	memcpy(nic->iov, iov, (size_t)count * sizeof(*iov));
	nic->count = count;
	nic->rdma_read = true;
	nic->polls = POLLS;
	return 0;
}

int fuzz_nic_rdma_read_poll(void *opaque, uint8_t **data)
{
	struct fuzz_nic *nic = opaque;

	*data = nic->own;
	if (nic->broken)
		return -ECONNRESET;
	if (!nic->rdma_read)
		return 1;
	if (nic->polls && nic->polls--)
		return 0;
	for (int i = 0; i < nic->count; i++)
		memset(nic->iov[i].iov_base, 0xab, nic->iov[i].iov_len);
	nic->rdma_read = nic->count;
	return 1;
}

void fuzz_nic_rdma_read_cancel(void *opaque)
{
	struct fuzz_nic *nic = opaque;

	if (!nic->rdma_read)
		fg_die("what does not read is stopped");
	nic->broken |= nic->polls;
	nic->rdma_read = false;
}

void fuzz_nic_check(const struct fuzz_nic *nic)
{
	if (nic->exposed || (nic->rdma_read && nic->count))
		fg_die("%u rendezvous are left, or a read", nic->exposed);
}
