// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Event rings, async events, CQ notifications and interrupts.
 *
 * The guest rings no doorbell when it consumes an event. So events that find a full ring
 * wait in a backlog, and a timer retries them. The producer index is private: the guest
 * sees a copy, and its writes to the copy have no effect.
 */
#include "rdma/event.h"

#include <errno.h>
#include <string.h>

#include "rdma/cq.h"
#include "core/compiler.h"
#include "core/dirty.h"
#include "core/objects.h"
#include "rdma/worker.h"

static void retry_expired(struct pvr_timer *timer);

int pvr_events_init(struct pvr_adapter *adapter)
{
	uint32_t i;

	for (i = 0; i < PVR_CQ_VECTORS_MAX; i++)
		TAILQ_INIT(&adapter->events.cq[i].backlog);
	adapter->events.retry_ns = PVR_EVENT_RETRY_MIN_NS;
	return pvr_timer_init(&adapter->timers, &adapter->events.retry, retry_expired);
}

void pvr_events_exit(struct pvr_adapter *adapter)
{
	pvr_timer_exit(&adapter->timers, &adapter->events.retry);
}

/* Map the header page and the one page of slots in use (see PVR_EQE_SLOTS). */
static int ring_attach(struct pvr_adapter *adapter, const struct pvr_ring_pages *desc,
		       uint32_t slots, struct pvr_event_ring *ring)
{
	struct pvr_ring_state *state_shm;
	struct pvr_pages pages;
	int err;

	if (desc->num_pages < 2 || desc->num_pages > PVR_PDIR_ENTRIES)
		return -EINVAL;
	err = pvr_pages_map(adapter, desc->pdir_dma, desc->num_pages, true, &pages);
	if (err)
		return err;
	state_shm = (struct pvr_ring_state *)pvr_pages_ptr(&pages, 0);
	ring->shm = &state_shm->rx;
	ring->slots_shm = pvr_pages_ptr(&pages, PVR_PAGE_SIZE);
	ring->slots = slots;
	ring->prod = 0;
	pvr_pages_unmap(adapter, &pages);
	return 0;
}

int pvr_events_attach(struct pvr_adapter *adapter, const struct pvr_dsr *dsr)
{
	int err;

	err = ring_attach(adapter, &dsr->async_ring, PVR_EQE_SLOTS, &adapter->events.async);
	if (!err)
		err = ring_attach(adapter, &dsr->cq_ring, PVR_CQNE_SLOTS,
				  &adapter->events.cq[0].ring);
	if (err)
		pvr_events_detach(adapter);
	return err;
}

void pvr_events_detach(struct pvr_adapter *adapter)
{
	struct pvr_event_rings *events = &adapter->events;
	struct pvr_cq *cq;
	uint32_t i;

	for (i = 0; i < PVR_CQ_VECTORS_MAX; i++) {
		while ((cq = TAILQ_FIRST(&events->cq[i].backlog)))
			pvr_event_forget_cq(adapter, cq);
		memset(&events->cq[i].ring, 0, sizeof(events->cq[i].ring));
	}
	pvr_timer_cancel(&adapter->timers, &events->retry);
	events->backlog_count = 0;
	events->retry_ns = PVR_EVENT_RETRY_MIN_NS;
	memset(&events->async, 0, sizeof(events->async));
}

bool pvr_events_have_vector(const struct pvr_adapter *adapter, uint32_t comp_vector)
{
	return comp_vector < PVR_CQ_VECTORS_MAX && adapter->events.cq[comp_vector].ring.shm;
}

int pvr_events_attach_vector(struct pvr_adapter *adapter, uint32_t comp_vector,
			     const struct pvr_ring_pages *info)
{
	return ring_attach(adapter, info, PVR_CQNE_SLOTS, &adapter->events.cq[comp_vector].ring);
}

static bool ring_lies_in(const struct pvr_event_ring *ring, const struct pvr_ram_region *region)
{
	return pvr_ram_contains(region, ring->shm) || pvr_ram_contains(region, ring->slots_shm);
}

bool pvr_events_lie_in(const struct pvr_adapter *adapter, const struct pvr_ram_region *region)
{
	uint32_t i;

	for (i = 0; i < PVR_CQ_VECTORS_MAX; i++)
		if (ring_lies_in(&adapter->events.cq[i].ring, region))
			return true;
	return ring_lies_in(&adapter->events.async, region);
}

static bool ring_has_room(const struct pvr_event_ring *ring)
{
	uint32_t cons = __atomic_load_n(&ring->shm->cons_head, __ATOMIC_ACQUIRE);

	/* The mask bounds the distance for a consumer index out of range, too. */
	return ((ring->prod - cons) & (2 * ring->slots - 1)) < ring->slots;
}

/* While the log of dirty pages is on. */
static pvr_noinline void mark_ring(struct pvr_adapter *adapter, const struct pvr_event_ring *ring)
{
	pvr_dirty_mark(adapter, ring->slots_shm, PVR_PAGE_SIZE);
	pvr_dirty_mark(adapter, ring->shm, sizeof(*ring->shm));
}

/* Pairs with the guest's load of prod_tail: the slot becomes visible before the index. */
static void ring_publish(struct pvr_adapter *adapter, struct pvr_event_ring *ring)
{
	ring->prod = (ring->prod + 1) & (2 * ring->slots - 1);
	__atomic_store_n(&ring->shm->prod_tail, ring->prod, __ATOMIC_RELEASE);
	if (pvr_dirty_is_on(adapter))
		mark_ring(adapter, ring);
}

/* The bit of ICR and IMR. */
static uint32_t register_bit(uint32_t vector)
{
	return 1u << (vector < PVR_ICR_LAST ? vector : PVR_ICR_LAST);
}

static void set_pending(struct pvr_adapter *adapter, uint32_t vector)
{
	adapter->pending[vector / 64] |= 1ull << vector % 64;
}

static void interrupt_later(struct pvr_adapter *adapter, uint32_t vector)
{
	adapter->icr |= register_bit(vector);
	set_pending(adapter, vector);
	adapter->has_interrupts = true;
}

/*
 * A worker delays interrupts of its own adapters: more events may come for the same
 * vectors.
 */
void pvr_interrupt_hand_over(struct pvr_adapter *adapter, struct pvr_worker *runner)
{
	if (!runner) {
		pvr_worker_queue(adapter);
		return;
	}
	adapter->has_interrupts = false;
	if (runner != adapter->worker) {
		pvr_interrupt_flush(adapter);
	} else if (!adapter->is_interrupting) {
		adapter->is_interrupting = true;
		SLIST_INSERT_HEAD(&runner->interrupting, adapter, interrupting);
	}
}

static void push_eqe(struct pvr_adapter *adapter, const struct pvr_eqe *eqe)
{
	struct pvr_event_ring *ring = &adapter->events.async;
	struct pvr_eqe *slots_shm = ring->slots_shm;

	slots_shm[ring->prod & (ring->slots - 1)] = *eqe;
	ring_publish(adapter, ring);
	interrupt_later(adapter, PVR_VEC_ASYNC);
}

static void push_cqne(struct pvr_adapter *adapter, const struct pvr_cq *cq)
{
	struct pvr_event_ring *ring = &adapter->events.cq[cq->comp_vector].ring;
	struct pvr_cqne *slots_shm = ring->slots_shm;

	slots_shm[ring->prod & (ring->slots - 1)].cq_handle = cq->handle;
	ring_publish(adapter, ring);
	interrupt_later(adapter, PVR_VEC_CQ + cq->comp_vector);
}

static void retry_later(struct pvr_adapter *adapter)
{
	if (!pvr_timer_is_set(&adapter->events.retry))
		pvr_timer_set(&adapter->timers, &adapter->events.retry,
			      pvr_now(adapter->engine) + adapter->events.retry_ns);
}

static bool events_wait(const struct pvr_event_rings *events)
{
	return events->backlog_count || events->cqs_waiting;
}

static void push_cq_backlog(struct pvr_adapter *adapter, struct pvr_cq_vector *vector)
{
	struct pvr_cq *cq;

	while ((cq = TAILQ_FIRST(&vector->backlog)) && ring_has_room(&vector->ring)) {
		adapter->events.retry_ns = PVR_EVENT_RETRY_MIN_NS;
		pvr_event_forget_cq(adapter, cq);
		push_cqne(adapter, cq);
	}
}

void pvr_events_push_backlog(struct pvr_adapter *adapter)
{
	struct pvr_event_rings *events = &adapter->events;
	uint32_t i;

	if (!events_wait(events) || !pvr_adapter_dma_ok(adapter))
		return;
	while (events->backlog_count && ring_has_room(&events->async)) {
		events->retry_ns = PVR_EVENT_RETRY_MIN_NS;
		push_eqe(adapter, &events->backlog[events->backlog_head]);
		events->backlog_head = (events->backlog_head + 1) % PVR_EQE_BACKLOG;
		events->backlog_count--;
	}
	for (i = 0; i < PVR_CQ_VECTORS_MAX; i++)
		push_cq_backlog(adapter, &events->cq[i]);
}

static void retry_expired(struct pvr_timer *timer)
{
	struct pvr_event_rings *events =
		(struct pvr_event_rings *)((char *)timer - offsetof(struct pvr_event_rings, retry));
	struct pvr_adapter *adapter =
		(struct pvr_adapter *)((char *)events - offsetof(struct pvr_adapter, events));

	pvr_events_push_backlog(adapter);
	if (!events_wait(events))
		return;
	events->retry_ns *= 2;
	if (events->retry_ns > PVR_EVENT_RETRY_MAX_NS)
		events->retry_ns = PVR_EVENT_RETRY_MAX_NS;
	retry_later(adapter);
}

void pvr_event_async(struct pvr_adapter *adapter, enum pvr_eqe_type type, uint32_t info)
{
	struct pvr_event_rings *events = &adapter->events;
	struct pvr_eqe eqe = { .type = type, .info = info };

	if (!events->async.shm)
		return;
	/* Completions before the event must be visible before it. */
	pvr_publish(adapter);
	pvr_events_push_backlog(adapter);
	if (!events->backlog_count && pvr_adapter_dma_ok(adapter) &&
	    ring_has_room(&events->async)) {
		push_eqe(adapter, &eqe);
		return;
	}
	if (events->backlog_count == PVR_EQE_BACKLOG) {
		pvr_log_guest(adapter, "async event %u for %u lost: the guest has left %u unread",
			      type, info, PVR_EQE_SLOTS + PVR_EQE_BACKLOG);
		return;
	}
	events->backlog[(events->backlog_head + events->backlog_count++) % PVR_EQE_BACKLOG] = eqe;
	retry_later(adapter);
}

void pvr_event_cq(struct pvr_adapter *adapter, struct pvr_cq *cq)
{
	struct pvr_event_rings *events = &adapter->events;
	struct pvr_cq_vector *vector = &events->cq[cq->comp_vector];

	if (!vector->ring.shm || cq->in_backlog)
		return;
	pvr_events_push_backlog(adapter);
	if (TAILQ_EMPTY(&vector->backlog) && pvr_adapter_dma_ok(adapter) &&
	    ring_has_room(&vector->ring)) {
		push_cqne(adapter, cq);
		return;
	}
	cq->in_backlog = true;
	events->cqs_waiting++;
	TAILQ_INSERT_TAIL(&vector->backlog, cq, backlog);
	retry_later(adapter);
}

void pvr_event_forget_cq(struct pvr_adapter *adapter, struct pvr_cq *cq)
{
	if (!cq->in_backlog)
		return;
	cq->in_backlog = false;
	adapter->events.cqs_waiting--;
	TAILQ_REMOVE(&adapter->events.cq[cq->comp_vector].backlog, cq, backlog);
}

static bool ring_has_unread(const struct pvr_event_ring *ring)
{
	return ring->shm && __atomic_load_n(&ring->shm->cons_head, __ATOMIC_RELAXED) != ring->prod;
}

void pvr_event_raise_unread(struct pvr_adapter *adapter)
{
	uint32_t i;

	if (ring_has_unread(&adapter->events.async))
		interrupt_later(adapter, PVR_VEC_ASYNC);
	for (i = 0; i < PVR_CQ_VECTORS_MAX; i++)
		if (ring_has_unread(&adapter->events.cq[i].ring))
			interrupt_later(adapter, PVR_VEC_CQ + i);
}

static bool masked(const struct pvr_adapter *adapter, uint32_t vector)
{
	return adapter->imr & register_bit(vector);
}

static void raise_vector(struct pvr_adapter *adapter, uint32_t vector)
{
	adapter->stats.interrupts++;
	adapter->ops->raise(adapter->host, vector);
}

void pvr_interrupt(struct pvr_adapter *adapter, uint32_t vector)
{
	adapter->icr |= register_bit(vector);
	if (masked(adapter, vector))
		set_pending(adapter, vector);
	else
		raise_vector(adapter, vector);
}

static void flush_word(struct pvr_adapter *adapter, uint32_t word)
{
	uint64_t left = adapter->pending[word];
	uint32_t vector;

	for (; left; left &= left - 1) {
		vector = word * 64 + (uint32_t)__builtin_ctzll(left);
		if (masked(adapter, vector))
			continue;
		adapter->pending[word] &= ~(1ull << vector % 64);
		raise_vector(adapter, vector);
	}
}

void pvr_interrupt_flush(struct pvr_adapter *adapter)
{
	uint32_t word;

	for (word = 0; word < PVR_VEC_WORDS; word++)
		flush_word(adapter, word);
}
