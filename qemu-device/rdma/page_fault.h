/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Page faults of regions whose pages may be absent.
 *
 * DOC: a page fault
 *
 *   device                                  guest driver
 *   a request touches an absent page
 *   PVR_EVENT_PAGE_FAULT, MR handle    ->
 *                                      <-   QUERY_FAULT: first page, number
 *                                           makes the pages resident
 *                                      <-   SET_PAGES: present or refused
 *   the request is executed again, or fails
 *
 * * A region has one fault at a time. Requests that touch other absent pages wait for it, and
 *   then report their own.
 * * The requester waits by its timer: half the age of the fault, between 64 us and 16 ms. So a
 *   guest that does not respond costs few timers, and destruction needs no special case.
 * * A responder for another host tells the requester this time: PVR_FRAME_SYN_PAGE. To a peer
 *   that speaks RoCE, or whose pvrdmad is older, it sends an RNR NAK, which costs a retry.
 * * The event repeats each 100 ms until QUERY_FAULT, as a full ring loses events.
 * * A refusal fails the next request that touches the page, and is void after 1 s: that request
 *   may have been destroyed.
 */
#ifndef PVR_PAGE_FAULT_H
#define PVR_PAGE_FAULT_H

#include "rdma/wr.h"

#define PVR_PAGE_WAIT_MIN_NS 64000u
#define PVR_PAGE_WAIT_MAX_NS 16000000u

enum pvr_page_state {
	PVR_PAGE_FOUND, /* no page is absent */
	PVR_PAGE_ABSENT, /* the guest was asked for it */
	PVR_PAGE_REFUSED,
};

/*
 * Check @len bytes from @offset on for absent pages, and report the first of them to its guest.
 * @wait_ns is raised to the time after which the request is executed again.
 */
enum pvr_page_state pvr_page_fault(const struct pvr_sg *sg, uint64_t offset, uint64_t len,
				   uint32_t *wait_ns);

/*
 * The same for the SGEs of a request of @qp. If a page is absent, the send queue waits.
 * Paths to other hosts use it before they send, so that they never send a part.
 */
enum pvr_page_state pvr_requester_page_fault(struct pvr_qp *qp, const struct pvr_sg *sg,
					     uint64_t offset, uint64_t len);

#endif /* PVR_PAGE_FAULT_H */
