/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Datagrams whose queue pair is gone before it is known how to get to other hosts. */

#include <stddef.h>
#include <stdlib.h>

#include "rdma/path.h"
#include "rdma/ud.h"
#include "gid/resolve.h"

#define ORPHANS_MAX 64
#define BYTES_MAX (64u << 10)

struct pvr_ud_orphan {
	TAILQ_ENTRY(pvr_ud_orphan) link;
	uint64_t deadline; /* ns */
	struct pvr_datagram dgram; /* of what follows, but for its payload */
	struct pvrdma_av av;
	uint8_t sgid[16];
	uint32_t dst_qpn;
	uint32_t size; /* of data */
	uint8_t data[];
};

static void look(struct pvr_timer *timer);

int pvr_ud_orphans_init(struct pvr_adapter *adapter)
{
	TAILQ_INIT(&adapter->orphans.list);
	return pvr_timer_init(&adapter->timers, &adapter->orphans.timer, look);
}

void pvr_ud_orphans_exit(struct pvr_adapter *adapter)
{
	pvr_ud_orphans_drop(adapter);
	pvr_timer_exit(&adapter->timers, &adapter->orphans.timer);
}

static void look_later(struct pvr_adapter *adapter)
{
	pvr_timer_set(&adapter->timers, &adapter->orphans.timer,
		      pvr_now(adapter->engine) + PVR_UD_LATER_NS);
}

static void drop(struct pvr_adapter *adapter, struct pvr_ud_orphan *orphan)
{
	struct pvr_ud_orphans *orphans = &adapter->orphans;

	TAILQ_REMOVE(&orphans->list, orphan, link);
	orphans->count--;
	orphans->bytes -= orphan->size;
	free(orphan);
}

void pvr_ud_orphans_drop(struct pvr_adapter *adapter)
{
	while (!TAILQ_EMPTY(&adapter->orphans.list))
		drop(adapter, TAILQ_FIRST(&adapter->orphans.list));
	pvr_timer_cancel(&adapter->timers, &adapter->orphans.timer);
}

/* ------------------------------------------------------------------------ adding */

/* Return: NULL without memory, that of the guest included. */
static struct pvr_ud_orphan *copy(struct pvr_adapter *adapter, const struct pvr_datagram *dgram)
{
	uint32_t size = (uint32_t)dgram->payload->total;
	struct pvr_ud_orphan *orphan = malloc(sizeof(*orphan) + size);
	struct pvr_sg to;

	if (!orphan)
		return NULL;
	orphan->size = size;
	pvr_sg_build_flat(&to, adapter, orphan->data, size);
	if (pvr_sg_copy(&to, 0, dgram->payload, 0, size)) {
		free(orphan);
		return NULL;
	}
	orphan->dgram = *dgram;
	orphan->av = *dgram->av;
	memcpy(orphan->sgid, dgram->sgid, sizeof(orphan->sgid));
	orphan->dgram.av = &orphan->av;
	orphan->dgram.sgid = orphan->sgid;
	return orphan;
}

void pvr_ud_orphan_add(struct pvr_adapter *adapter, uint32_t dst_qpn,
		       const struct pvr_datagram *dgram, uint64_t deadline)
{
	struct pvr_ud_orphans *orphans = &adapter->orphans;
	struct pvr_ud_orphan *orphan;

	if (orphans->count == ORPHANS_MAX || dgram->payload->total > BYTES_MAX - orphans->bytes)
		return;
	orphan = copy(adapter, dgram);
	if (!orphan)
		return;
	orphan->dst_qpn = dst_qpn;
	orphan->deadline = deadline;
	TAILQ_INSERT_TAIL(&orphans->list, orphan, link);
	orphans->count++;
	orphans->bytes += orphan->size;
	if (!pvr_timer_is_set(&orphans->timer))
		look_later(adapter);
}

/* ----------------------------------------------------------------------- sending */

/* Return: whether it was sent, or lost; else it has to wait. */
static bool send(struct pvr_adapter *adapter, struct pvr_ud_orphan *orphan, bool late)
{
	const struct pvr_datagram *dgram = &orphan->dgram;
	struct pvr_remote_group group;

	if (!dgram->multicast)
		return pvr_path_ud_send(adapter, orphan->dst_qpn, dgram) == PVR_UD_RESULT_SENT ||
		       late;
	if (!pvr_path_mcast_targets(adapter, dgram, &group) && !late)
		return false;
	pvr_path_mcast_send(adapter, dgram, &group);
	return true;
}

static void look(struct pvr_timer *timer)
{
	struct pvr_ud_orphans *orphans =
		(struct pvr_ud_orphans *)((char *)timer - offsetof(struct pvr_ud_orphans, timer));
	struct pvr_adapter *adapter =
		(struct pvr_adapter *)((char *)orphans - offsetof(struct pvr_adapter, orphans));
	struct pvr_ud_orphan *orphan, *next;
	uint64_t now = pvr_now(adapter->engine);
	struct pvr_sg payload;

	for (orphan = TAILQ_FIRST(&orphans->list); orphan; orphan = next) {
		next = TAILQ_NEXT(orphan, link);
		pvr_sg_build_flat(&payload, adapter, orphan->data, orphan->size);
		orphan->dgram.payload = &payload;
		if (!adapter->link_up || send(adapter, orphan, now >= orphan->deadline))
			drop(adapter, orphan);
	}
	if (!TAILQ_EMPTY(&orphans->list))
		look_later(adapter);
}
