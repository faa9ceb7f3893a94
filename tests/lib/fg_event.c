// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The async event ring and the CQ notification rings. Each really is one page: indices
 * wrap at twice PVR_EQE_SLOTS and PVR_CQNE_SLOTS, independent of num_pages.
 */
#include "fg_event.h"

#include <string.h>

#include "fg_cmd.h"

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

static bool cqne_poll(const struct fg_buf *buf, uint32_t *head, uint32_t *cq_handle)
{
	struct pvr_cqne *ring = (struct pvr_cqne *)(buf->va + PVR_PAGE_SIZE);

	if (!pending(buf, *head, PVR_CQNE_SLOTS))
		return false;
	*cq_handle = ring[*head % PVR_CQNE_SLOTS].cq_handle;
	consume(buf, head, PVR_CQNE_SLOTS);
	return true;
}

bool fg_cq_event_poll(struct fg_guest *guest, uint32_t *cq_handle)
{
	return cqne_poll(&guest->cq_ring, &guest->cq_head, cq_handle);
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

uint32_t fg_set_cq_ring(struct fg_guest *guest, const struct pvr_cmd_set_cq_ring *req)
{
	return fg_cmd(guest, req, sizeof(*req), NULL, 0);
}

struct pvr_cmd_set_cq_ring fg_cq_ring_request(uint32_t comp_vector, const struct fg_buf *buf)
{
	return (struct pvr_cmd_set_cq_ring){
		.hdr = FG_CMD_HDR(PVR_CMD_SET_CQ_RING),
		.comp_vector = comp_vector,
		.ring = { .num_pages = buf->npages, .pdir_dma = buf->pdir },
	};
}

uint32_t fg_vector_open(struct fg_guest *guest, uint32_t comp_vector)
{
	struct fg_cq_ring *ring = &guest->vector[comp_vector];
	struct pvr_cmd_set_cq_ring req;
	uint32_t err;

	memset(ring, 0, sizeof(*ring));
	fg_buf_init(&ring->buf, &guest->ram, guest->config.ring_pages, guest->config.rings);
	req = fg_cq_ring_request(comp_vector, &ring->buf);
	err = fg_set_cq_ring(guest, &req);
	if (err)
		fg_buf_exit(&ring->buf);
	return err;
}

uint32_t fg_vector_pending(const struct fg_guest *guest, uint32_t comp_vector)
{
	const struct fg_cq_ring *ring = &guest->vector[comp_vector];

	if (!comp_vector)
		return fg_cq_events_pending(guest);
	return pending(&ring->buf, ring->head, PVR_CQNE_SLOTS);
}

uint32_t fg_vector_count(struct fg_guest *guest, uint32_t comp_vector, uint32_t cq_handle)
{
	struct fg_cq_ring *ring = &guest->vector[comp_vector];
	uint32_t handle, n = 0;

	if (!comp_vector)
		return fg_cq_events_count(guest, cq_handle);
	while (cqne_poll(&ring->buf, &ring->head, &handle))
		n += handle == cq_handle;
	return n;
}
