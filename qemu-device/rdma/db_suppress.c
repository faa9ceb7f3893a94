// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Doorbell suppression, and polling of the send queues whose doorbells are suppressed. */
#include "rdma/db_suppress.h"

#include "core/dirty.h"
#include "core/wq.h"
#include "rdma/requester.h"
#include "rdma/sched.h"
#include "rdma/worker.h"

/* Polled queues of an adapter: bounds the time of a poll. */
#define POLLED_MAX 64
/* A queue that stays empty for so many quanta of others is polled no longer. */
#define IDLE_QUANTA 1024

/* ------------------------------------------------------------------ words */

static struct pvr_db_suppress *words_shm(const struct pvr_pages *pages)
{
	return (struct pvr_db_suppress *)(pvr_pages_ptr(pages, 0) + PVR_DB_SUPPRESS_OFFSET);
}

static bool may_write(const struct pvr_adapter *adapter, const struct pvr_pages *pages)
{
	return pvr_adapter_dma_ok(adapter) && !pages->broken;
}

/* @word: the private copy of the word, which the guest cannot change. */
static void set_word(struct pvr_adapter *adapter, uint32_t *word_shm, bool *word, bool db_suppress)
{
	if (*word == db_suppress)
		return;
	*word = db_suppress;
	/*
	 * After cons_head: a guest that sees the 0 sees the effect of its last doorbell.
	 */
	__atomic_store_n(word_shm, db_suppress, __ATOMIC_RELEASE);
	pvr_dirty(adapter, word_shm, sizeof(*word_shm));
}

static void set_sq_word(struct pvr_qp *qp, bool db_suppress)
{
	if (may_write(qp->adapter, &qp->pages))
		set_word(qp->adapter, &qp->db_suppress_shm->sq, &qp->sq_db_suppressed, db_suppress);
}

void pvr_db_init_qp(struct pvr_qp *qp)
{
	if (!(qp->adapter->features & PVR_EXT_DB_SUPPRESS))
		return;
	qp->db_suppress_shm = words_shm(&qp->pages);
	__atomic_store_n(&qp->db_suppress_shm->sq, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&qp->db_suppress_shm->rq, 0, __ATOMIC_RELAXED);
	pvr_dirty(qp->adapter, qp->db_suppress_shm, sizeof(*qp->db_suppress_shm));
}

void pvr_db_attach_qp(struct pvr_qp *qp)
{
	if (qp->adapter->features & PVR_EXT_DB_SUPPRESS)
		qp->db_suppress_shm = words_shm(&qp->pages);
}

void pvr_db_attach_srq(struct pvr_srq *srq)
{
	if (srq->adapter->features & PVR_EXT_DB_SUPPRESS)
		srq->db_suppress_shm = words_shm(&srq->pages);
}

/* --------------------------------------------------------- receive queues */

static bool awaits_recv(const struct pvr_qp *qp)
{
	return qp->rnr_nak_sent || qp->state == PVR_QPS_RESET || qp->state == PVR_QPS_ERR;
}

void pvr_db_update_rq(struct pvr_qp *qp)
{
	if (!qp->db_suppress_shm)
		return;
	if (qp->srq) {
		pvr_db_update_srq(qp->srq);
		return;
	}
	if (!may_write(qp->adapter, &qp->pages))
		return;
	set_word(qp->adapter, &qp->db_suppress_shm->rq, &qp->rq_db_suppressed, !awaits_recv(qp));
	if (!qp->rq_db_suppressed)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void pvr_db_update_srq(struct pvr_srq *srq)
{
	if (!srq->db_suppress_shm || !may_write(srq->adapter, &srq->pages))
		return;
	set_word(srq->adapter, &srq->db_suppress_shm->rq, &srq->db_suppress,
		 !srq->error && TAILQ_EMPTY(&srq->waiting));
	if (!srq->db_suppress)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void pvr_db_init_srq(struct pvr_srq *srq)
{
	if (!(srq->adapter->features & PVR_EXT_DB_SUPPRESS))
		return;
	srq->db_suppress_shm = words_shm(&srq->pages);
	srq->db_suppress = false;
	__atomic_store_n(&srq->db_suppress_shm->rq, 0, __ATOMIC_RELAXED);
	pvr_dirty(srq->adapter, srq->db_suppress_shm, sizeof(*srq->db_suppress_shm));
	pvr_db_update_srq(srq);
}

/* ------------------------------------------------------------ send queues */

/* pvr_db_has_nothing() reads it without the lock. */
static void set_count(struct pvr_polled *polled, uint32_t count)
{
	__atomic_store_n(&polled->count, count, __ATOMIC_RELAXED);
}

static void set_on(struct pvr_polled *polled, bool on)
{
	__atomic_store_n(&polled->on, on, __ATOMIC_RELAXED);
}

static void polled_remove(struct pvr_qp *qp)
{
	struct pvr_polled *polled = &qp->adapter->polled;

	qp->is_polled = false;
	set_count(polled, polled->count - 1);
	TAILQ_REMOVE(&polled->qps, qp, polled);
}

/* A clock in quanta. It stops while the worker is idle: then polling ends anyway. */
static uint64_t quanta(const struct pvr_adapter *adapter)
{
	return __atomic_load_n(&adapter->worker->stats.quanta, __ATOMIC_RELAXED);
}

static void polled_add(struct pvr_qp *qp)
{
	struct pvr_polled *polled = &qp->adapter->polled;

	qp->is_polled = true;
	qp->polled_since = quanta(qp->adapter);
	set_count(polled, polled->count + 1);
	TAILQ_INSERT_TAIL(&polled->qps, qp, polled);
}

void pvr_db_disable(struct pvr_qp *qp)
{
	if (!qp->db_suppress_shm)
		return;
	if (qp->is_polled)
		polled_remove(qp);
	set_sq_word(qp, true);
}

void pvr_db_reset(struct pvr_qp *qp)
{
	if (!qp->db_suppress_shm)
		return;
	if (qp->is_polled)
		polled_remove(qp);
	set_sq_word(qp, false);
}

void pvr_db_exit_qp(struct pvr_qp *qp)
{
	if (qp->is_polled)
		polled_remove(qp);
	qp->db_suppress_shm = NULL;
}

/*
 * cons_head has not passed requests in flight to another host. With a 0 the guest would
 * take them for requests that its last doorbell still announces. So the word stays 1:
 * each response gives the queue pair a quantum.
 */
static bool has_unanswered(const struct pvr_qp *qp)
{
	return qp->sq_inflight;
}

/*
 * Set the word to 0. Return: true if a request was posted before the guest could see the
 * 0.
 */
static bool enable_sq(struct pvr_qp *qp)
{
	if (has_unanswered(qp))
		return pvr_requester_has_work(qp);
	set_sq_word(qp, false);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return pvr_requester_has_work(qp);
}

static bool evict(struct pvr_qp *qp)
{
	bool found;

	polled_remove(qp);
	found = enable_sq(qp);
	if (found)
		pvr_sched_kick(qp);
	return found;
}

bool pvr_db_idle(struct pvr_qp *qp)
{
	struct pvr_polled *polled = &qp->adapter->polled;

	if (!qp->db_suppress_shm || qp->is_ready || qp->wait != PVR_QP_RUNNING)
		return false;
	if (!may_write(qp->adapter, &qp->pages))
		return false;
	if (!polled->on || qp->state != PVR_QPS_RTS)
		return enable_sq(qp);
	if (polled->count == POLLED_MAX)
		evict(TAILQ_FIRST(&polled->qps));
	polled_add(qp);
	return false;
}

/* ---------------------------------------------------------------- polling */

/* Return: true if @qp gets a quantum. */
static bool poll_qp(struct pvr_qp *qp)
{
	bool found = pvr_requester_has_work(qp);

	if (found)
		pvr_sched_kick(qp);
	return found;
}

/* The list is ordered by the time of insertion, the oldest first. */
static bool evict_idle(struct pvr_adapter *adapter)
{
	uint64_t now = quanta(adapter);
	bool found = false;
	struct pvr_qp *qp;

	while ((qp = TAILQ_FIRST(&adapter->polled.qps)) && now - qp->polled_since > IDLE_QUANTA)
		found |= evict(qp);
	return found;
}

bool pvr_db_poll(struct pvr_adapter *adapter)
{
	struct pvr_polled *polled = &adapter->polled;
	struct pvr_qp *qp, *next;
	bool found = false;

	set_on(polled, true);
	if (!pvr_adapter_dma_ok(adapter))
		return false;
	for (qp = TAILQ_FIRST(&polled->qps); qp; qp = next) {
		next = TAILQ_NEXT(qp, polled);
		found |= poll_qp(qp);
	}
	return evict_idle(adapter) || found;
}

bool pvr_db_enable_all(struct pvr_adapter *adapter)
{
	struct pvr_polled *polled = &adapter->polled;
	bool found = false, dma = pvr_adapter_dma_ok(adapter);
	struct pvr_qp *qp;

	set_on(polled, false);
	TAILQ_FOREACH(qp, &polled->qps, polled)
		if (!has_unanswered(qp))
			set_sq_word(qp, false);
	/* One barrier for all queues. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	while ((qp = TAILQ_FIRST(&polled->qps))) {
		polled_remove(qp);
		if (!dma || !pvr_requester_has_work(qp))
			continue;
		found = true;
		pvr_sched_kick(qp);
	}
	return !found;
}
