/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Open RDMA NICs and their ports. */
#ifndef PVR_NET_VERBS_NIC_H
#define PVR_NET_VERBS_NIC_H

#include <infiniband/verbs.h>
#include <sys/queue.h>

#include "net/verbs.h"

struct pvr_verbs_nic {
	LIST_ENTRY(pvr_verbs_nic) link;
	struct pvr_source source; /* asynchronous events */
	struct pvr_verbs_nics *nics;
	struct ibv_context *context;
	uint8_t answers, asks; /* RDMA READs in flight per queue pair: as responder, as requester */
	unsigned int users;
	uint64_t down; /* bitmap of ports that were up once and are down */
	bool gone;
};

struct pvr_verbs_nics {
	LIST_HEAD(, pvr_verbs_nic) list;
	char name[IBV_SYSFS_NAME_MAX];
	bool any;
	struct pvr_loop *loop;
	struct pvr_loop_timer poll_nic; /* runs while there is no NIC */
	const struct pvr_verbs_nics_ops *ops;
	void *opaque;
};

/* The port and GID for a queue pair. */
struct pvr_verbs_place {
	struct pvr_verbs_nic *nic;
	uint8_t port, gid_index;
	union ibv_gid gid;
	uint16_t lid;
	enum ibv_mtu mtu;
};

bool pvr_verbs_find_place(struct pvr_verbs_nics *nics, const struct pvr_address *local,
			  struct pvr_verbs_place *place, struct pvr_error *err);
void pvr_verbs_nic_hold(struct pvr_verbs_nic *nic);
void pvr_verbs_nic_put(struct pvr_verbs_nic *nic);

#endif /* PVR_NET_VERBS_NIC_H */
