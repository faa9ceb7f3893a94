// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Datagrams to other hosts that outlive their queue pair. */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/path.h"
#include "rdma/ud.h"
#include "gid/resolve.h"

#define LINGER_MAX 64
#define BYTES_MAX (64u << 10)

struct pvr_ud_linger {
	TAILQ_ENTRY(pvr_ud_linger) link;
	uint64_t deadline; /* ns */
	struct pvr_datagram dgram; /* its pointers: to av and sgid below */
	struct pvrdma_av av;
	uint8_t sgid[16];
	uint32_t dst_qpn;
	uint32_t size; /* of data */
	uint8_t data[];
};

static void run(struct pvr_timer *timer);

int pvr_ud_linger_init(struct pvr_adapter *adapter)
{
	TAILQ_INIT(&adapter->lingering_list.list);
	return pvr_timer_init(&adapter->timers, &adapter->lingering_list.timer, run);
}

void pvr_ud_linger_exit(struct pvr_adapter *adapter)
{
	pvr_ud_linger_drop(adapter);
	pvr_timer_exit(&adapter->timers, &adapter->lingering_list.timer);
}

static void run_later(struct pvr_adapter *adapter)
{
	pvr_timer_set(&adapter->timers, &adapter->lingering_list.timer,
		      pvr_now(adapter->engine) + PVR_UD_LATER_NS);
}

static void drop(struct pvr_adapter *adapter, struct pvr_ud_linger *lingering)
{
	struct pvr_ud_linger_list *lingering_list = &adapter->lingering_list;

	TAILQ_REMOVE(&lingering_list->list, lingering, link);
	lingering_list->count--;
	lingering_list->bytes -= lingering->size;
	free(lingering);
}

void pvr_ud_linger_drop(struct pvr_adapter *adapter)
{
	while (!TAILQ_EMPTY(&adapter->lingering_list.list))
		drop(adapter, TAILQ_FIRST(&adapter->lingering_list.list));
	pvr_timer_cancel(&adapter->timers, &adapter->lingering_list.timer);
}

/* ------------------------------------------------------------------------ adding */

/* Return: NULL without host memory, or if the guest's memory was unplugged. */
static struct pvr_ud_linger *copy(struct pvr_adapter *adapter, const struct pvr_datagram *dgram)
{
	uint32_t size = (uint32_t)dgram->payload->total;
	struct pvr_ud_linger *lingering = malloc(sizeof(*lingering) + size);
	struct pvr_sg to;

	if (!lingering)
		return NULL;
	lingering->size = size;
	pvr_sg_build_flat(&to, adapter, lingering->data, size);
	if (pvr_sg_copy(&to, 0, dgram->payload, 0, size)) {
		free(lingering);
		return NULL;
	}
	lingering->dgram = *dgram;
	lingering->av = *dgram->av;
	memcpy(lingering->sgid, dgram->sgid, sizeof(lingering->sgid));
	lingering->dgram.av = &lingering->av;
	lingering->dgram.sgid = lingering->sgid;
	return lingering;
}

void pvr_ud_linger_add(struct pvr_adapter *adapter, uint32_t dst_qpn,
		       const struct pvr_datagram *dgram, uint64_t deadline)
{
	struct pvr_ud_linger_list *lingering_list = &adapter->lingering_list;
	struct pvr_ud_linger *lingering;

	if (lingering_list->count == LINGER_MAX ||
	    dgram->payload->total > BYTES_MAX - lingering_list->bytes)
		return;
	lingering = copy(adapter, dgram);
	if (!lingering)
		return;
	lingering->dst_qpn = dst_qpn;
	lingering->deadline = deadline;
	TAILQ_INSERT_TAIL(&lingering_list->list, lingering, link);
	lingering_list->count++;
	lingering_list->bytes += lingering->size;
	if (!pvr_timer_is_set(&lingering_list->timer))
		run_later(adapter);
}

/* ----------------------------------------------------------------------- sending */

/* Return: true if the datagram was sent or is lost, false if it must wait. */
static bool send(struct pvr_adapter *adapter, struct pvr_ud_linger *lingering, bool late)
{
	const struct pvr_datagram *dgram = &lingering->dgram;
	struct pvr_host_group group;

	if (!dgram->multicast)
		return pvr_path_ud_send(adapter, lingering->dst_qpn, dgram) == PVR_UD_RESULT_SENT ||
		       late;
	if (!pvr_path_mcast_targets(adapter, dgram, &group) && !late)
		return false;
	pvr_path_mcast_send(adapter, dgram, &group);
	return true;
}

/* Return: the oldest datagram to @dgid, or NULL. */
static struct pvr_ud_linger *oldest_to(const struct pvr_adapter *adapter, const uint8_t dgid[16])
{
	struct pvr_ud_linger *lingering;

	TAILQ_FOREACH(lingering, &adapter->lingering_list.list, link) {
		if (!memcmp(lingering->av.dgid, dgid, sizeof(lingering->av.dgid)))
			return lingering;
	}
	return NULL;
}

/* A destination can become reachable during the loop: a datagram stays behind an older one. */
static void send_ready(struct pvr_adapter *adapter)
{
	uint64_t now = pvr_now(adapter->engine);
	struct pvr_ud_linger *lingering, *next;
	struct pvr_sg payload;

	for (lingering = TAILQ_FIRST(&adapter->lingering_list.list); lingering; lingering = next) {
		next = TAILQ_NEXT(lingering, link);
		pvr_sg_build_flat(&payload, adapter, lingering->data, lingering->size);
		lingering->dgram.payload = &payload;
		if (!adapter->link_up || (oldest_to(adapter, lingering->av.dgid) == lingering &&
					  send(adapter, lingering, now >= lingering->deadline)))
			drop(adapter, lingering);
	}
}

bool pvr_ud_linger_goes_first(struct pvr_adapter *adapter, const uint8_t dgid[16])
{
	if (TAILQ_EMPTY(&adapter->lingering_list.list))
		return false;
	send_ready(adapter);
	return oldest_to(adapter, dgid);
}

static void run(struct pvr_timer *timer)
{
	struct pvr_ud_linger_list *lingering_list =
		(struct pvr_ud_linger_list *)((char *)timer -
					      offsetof(struct pvr_ud_linger_list, timer));
	struct pvr_adapter *adapter =
		(struct pvr_adapter *)((char *)lingering_list -
				       offsetof(struct pvr_adapter, lingering_list));

	send_ready(adapter);
	if (!TAILQ_EMPTY(&lingering_list->list))
		run_later(adapter);
}
