// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The async event ring and the CQ notification ring. Each really is one page: indices
 * wrap at twice PVR_EQE_SLOTS and PVR_CQNE_SLOTS, whatever num_pages says.
 */
#include "fg_event.h"

static struct pvr_ring *rx_ring(const struct fg_buf *buf)
{
	return &((struct pvr_ring_state *)buf->va)->rx;
}

static uint32_t pending(const struct fg_buf *buf, uint32_t head, uint32_t slots)
{
	uint32_t tail = __atomic_load_n(&rx_ring(buf)->prod_tail, __ATOMIC_ACQUIRE);

	if (tail >= 2 * slots)
		fg_die("device ring index %u of %u slots", tail, slots);
	return (tail - head) & (2 * slots - 1);
}

static void consume(const struct fg_buf *buf, uint32_t *head, uint32_t slots)
{
	*head = (*head + 1) & (2 * slots - 1);
	__atomic_store_n(&rx_ring(buf)->cons_head, *head, __ATOMIC_RELEASE);
}

uint32_t fg_events_pending(const struct fg_guest *guest)
{
	return pending(&guest->async_ring, guest->async_head, PVR_EQE_SLOTS);
}

uint32_t fg_cq_events_pending(const struct fg_guest *guest)
{
	return pending(&guest->cq_ring, guest->cq_head, PVR_CQNE_SLOTS);
}

bool fg_event_poll(struct fg_guest *guest, struct pvr_eqe *eqe)
{
	struct pvr_eqe *ring = (struct pvr_eqe *)(guest->async_ring.va + PVR_PAGE_SIZE);

	if (!fg_events_pending(guest))
		return false;
	*eqe = ring[guest->async_head % PVR_EQE_SLOTS];
	consume(&guest->async_ring, &guest->async_head, PVR_EQE_SLOTS);
	return true;
}

bool fg_cq_event_poll(struct fg_guest *guest, uint32_t *cq_handle)
{
	struct pvr_cqne *ring = (struct pvr_cqne *)(guest->cq_ring.va + PVR_PAGE_SIZE);

	if (!fg_cq_events_pending(guest))
		return false;
	*cq_handle = ring[guest->cq_head % PVR_CQNE_SLOTS].cq_handle;
	consume(&guest->cq_ring, &guest->cq_head, PVR_CQNE_SLOTS);
	return true;
}

uint32_t fg_events_count(struct fg_guest *guest, uint32_t type, uint32_t info)
{
	struct pvr_eqe eqe;
	uint32_t n = 0;

	while (fg_event_poll(guest, &eqe))
		n += eqe.type == type && eqe.info == info;
	return n;
}

uint32_t fg_cq_events_count(struct fg_guest *guest, uint32_t cq_handle)
{
	uint32_t handle, n = 0;

	while (fg_cq_event_poll(guest, &handle))
		n += handle == cq_handle;
	return n;
}
