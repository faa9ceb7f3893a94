/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The device-wide rings, drained as the stock driver drains them. */
#ifndef FG_EVENT_H
#define FG_EVENT_H

#include "fg_guest.h"

/* Return: entries that this driver has not read yet. */
uint32_t fg_events_pending(const struct fg_guest *guest);
uint32_t fg_cq_events_pending(const struct fg_guest *guest);

/* The next async event; false if there is none. */
bool fg_event_poll(struct fg_guest *guest, struct pvr_eqe *eqe);
/* The next CQ notification. */
bool fg_cq_event_poll(struct fg_guest *guest, uint32_t *cq_handle);

/* Drains the async ring; how many entries were (@type, @info). */
uint32_t fg_events_count(struct fg_guest *guest, uint32_t type, uint32_t info);
/* Drains the CQ notification ring; how many entries named @cq_handle. */
uint32_t fg_cq_events_count(struct fg_guest *guest, uint32_t cq_handle);

/* SET_CQ_RING with any request. */
uint32_t fg_set_cq_ring(struct fg_guest *guest, const struct pvr_cmd_set_cq_ring *req);
/* The request for the ring that lies in @buf. */
struct pvr_cmd_set_cq_ring fg_cq_ring_request(uint32_t comp_vector, const struct fg_buf *buf);
/* Gives a completion vector from 1 up a ring. On failure nothing is left. */
uint32_t fg_vector_open(struct fg_guest *guest, uint32_t comp_vector);

/* As fg_cq_events_pending() and _count(), of a completion vector; 0 is the DSR's. */
uint32_t fg_vector_pending(const struct fg_guest *guest, uint32_t comp_vector);
uint32_t fg_vector_count(struct fg_guest *guest, uint32_t comp_vector, uint32_t cq_handle);

#endif /* FG_EVENT_H */
