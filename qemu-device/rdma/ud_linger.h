/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Datagrams whose queue pair is gone before it is known how to get to other hosts.
 *
 * DOC: senders that do not wait
 *
 * A program may post its datagrams and destroy its queue pair at once, as mckey does. Then they
 * cannot wait in its ring: what has to go to other hosts is copied, and waits with the adapter.
 */
#ifndef PVR_UD_ORPHAN_H
#define PVR_UD_ORPHAN_H

#include "rdma/ud_recv.h"

int pvr_ud_orphans_init(struct pvr_adapter *adapter);
void pvr_ud_orphans_exit(struct pvr_adapter *adapter);

/*
 * Keeps a copy, until it can be sent or @deadline (pvr_now()) is over: then it goes to those
 * of a group that can be reached. Of an adapter's 64 datagrams or 64 KiB; what is more gets
 * lost.
 */
void pvr_ud_orphan_add(struct pvr_adapter *adapter, uint32_t dst_qpn,
		       const struct pvr_datagram *dgram, uint64_t deadline);
/* All that are left get lost. */
void pvr_ud_orphans_drop(struct pvr_adapter *adapter);

#endif /* PVR_UD_ORPHAN_H */
