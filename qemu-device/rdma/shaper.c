// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Quality of service: limits of the traffic of adapters and fabrics, and weights. */
#include "rdma/shaper.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/requester.h"
#include "rdma/worker.h"
#include "gid/fabric.h"

/* A limit permits the traffic of one quantum in this time, and no timer is shorter. */
#define QUANTUM_NS 1000000ull
/* The default burst: 1 % of a second, and longer than a worker sleeps too long. */
#define BURST_NS 10000000ull
/* A fragment of a message has a multiple of this, which is the largest MTU. */
#define FRAGMENT_STEP 4096u
/* The last datagrams of a QP may take bytes and messages that are paid for in this time. */
#define OVERDRAFT_NS 100000000ull
/* The weight of an adapter that runs one quantum per visit. */
#define WEIGHT_ONE PVR_QOS_WEIGHT

/* ------------------------------------------------------------------------ limits */

static uint64_t clamp(uint64_t value, uint64_t min, uint64_t max)
{
	if (value < min)
		return min;
	return value < max ? value : max;
}

static uint64_t depth_of(const struct pvr_qos *qos)
{
	if (!qos->rate || !qos->burst)
		return BURST_NS;
	return qos->burst / qos->rate * PVR_BUCKET_SEC +
	       qos->burst % qos->rate * PVR_BUCKET_SEC / qos->rate;
}

/* Begin with empty buckets. */
static void limit_init(struct pvr_limit *limit, const struct pvr_qos *qos, uint64_t now)
{
	uint64_t bytes = qos->rate / (PVR_BUCKET_SEC / QUANTUM_NS);
	uint64_t messages = qos->messages / (PVR_BUCKET_SEC / QUANTUM_NS);

	*limit = (struct pvr_limit){
		.qos = *qos,
		.bytes = { .rate = qos->rate, .depth = depth_of(qos), .next = now },
		.messages = { .rate = qos->messages, .depth = BURST_NS, .next = now },
		.quantum_bytes = PVR_QUANTUM_BYTES,
		.quantum_messages = PVR_QUANTUM_REQUESTS,
	};
	if (qos->rate)
		limit->quantum_bytes = (uint32_t)clamp(bytes / FRAGMENT_STEP * FRAGMENT_STEP,
						       FRAGMENT_STEP, PVR_QUANTUM_BYTES);
	if (qos->messages)
		limit->quantum_messages = (uint32_t)clamp(messages, 1, PVR_QUANTUM_REQUESTS);
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool is_limited(const struct pvr_limit *limit)
{
	return limit && (limit->qos.rate || limit->qos.messages);
}

/* Return: the time from which @bytes and @messages may be used. */
static uint64_t limit_take(struct pvr_limit *limit, uint64_t now, uint64_t bytes, uint64_t messages)
{
	uint64_t start = 0;

	if (!is_limited(limit))
		return 0;
	pvr_lock(&limit->lock);
	if (limit->qos.rate)
		start = pvr_bucket_take(&limit->bytes, now, bytes);
	if (limit->qos.messages)
		start = later(start, pvr_bucket_take(&limit->messages, now, messages));
	pvr_unlock(&limit->lock);
	return start;
}

static void limit_give_back(struct pvr_limit *limit, uint64_t bytes, uint64_t messages)
{
	if (!is_limited(limit))
		return;
	pvr_lock(&limit->lock);
	if (limit->qos.rate)
		pvr_bucket_give_back(&limit->bytes, bytes);
	if (limit->qos.messages)
		pvr_bucket_give_back(&limit->messages, messages);
	pvr_unlock(&limit->lock);
}

/* Lower *@bytes and *@messages to what is saved. */
static void limit_saved(struct pvr_limit *limit, uint64_t now, uint64_t *bytes, uint64_t *messages)
{
	if (!is_limited(limit))
		return;
	pvr_lock(&limit->lock);
	if (limit->qos.rate)
		*bytes = pvr_bucket_saved(&limit->bytes, now, *bytes);
	if (limit->qos.messages)
		*messages = pvr_bucket_saved(&limit->messages, now, *messages);
	pvr_unlock(&limit->lock);
}

/* Return: whether so much is owed that not even a last quantum may run. */
static bool is_overdrawn(struct pvr_limit *limit, uint64_t now)
{
	uint64_t next = 0;

	if (!is_limited(limit))
		return false;
	pvr_lock(&limit->lock);
	if (limit->qos.rate)
		next = limit->bytes.next;
	if (limit->qos.messages)
		next = later(next, limit->messages.next);
	pvr_unlock(&limit->lock);
	return next > now + OVERDRAFT_NS;
}

/* ------------------------------------------------------------------ reservations */

static uint32_t least(const struct pvr_limit *fabric, uint32_t own, uint32_t of_fabric)
{
	return is_limited(fabric) && of_fabric < own ? of_fabric : own;
}

static void reserve(struct pvr_shaper *shaper, uint64_t now)
{
	struct pvr_limit *own = &shaper->own, *fabric = shaper->fabric;

	if (shaper->has_reserved)
		return;
	shaper->has_reserved = true;
	shaper->bytes = own->quantum_bytes;
	shaper->messages = own->quantum_messages;
	if (fabric) {
		shaper->bytes = least(fabric, shaper->bytes, fabric->quantum_bytes);
		shaper->messages = least(fabric, shaper->messages, fabric->quantum_messages);
	}
	shaper->start = later(limit_take(own, now, shaper->bytes, shaper->messages),
			      limit_take(fabric, now, shaper->bytes, shaper->messages));
}

/* The quantum begins now: reserve what both limits have saved, up to a full quantum. */
static void extend(struct pvr_shaper *shaper, uint64_t now)
{
	uint64_t bytes = PVR_QUANTUM_BYTES - shaper->bytes;
	uint64_t messages = PVR_QUANTUM_REQUESTS - shaper->messages;

	limit_saved(&shaper->own, now, &bytes, &messages);
	limit_saved(shaper->fabric, now, &bytes, &messages);
	bytes = bytes / FRAGMENT_STEP * FRAGMENT_STEP;
	limit_take(&shaper->own, now, bytes, messages);
	limit_take(shaper->fabric, now, bytes, messages);
	shaper->bytes += (uint32_t)bytes;
	shaper->messages += (uint32_t)messages;
}

static void give_back(struct pvr_shaper *shaper, uint64_t bytes, uint64_t messages)
{
	limit_give_back(&shaper->own, bytes, messages);
	limit_give_back(shaper->fabric, bytes, messages);
}

static void cancel_reservation(struct pvr_shaper *shaper)
{
	if (!shaper->has_reserved)
		return;
	shaper->has_reserved = false;
	give_back(shaper, shaper->bytes, shaper->messages);
}

static void begin_wait(struct pvr_shaper *shaper, uint64_t now)
{
	if (shaper->is_waiting)
		return;
	shaper->is_waiting = true;
	shaper->waiting_since = now;
	shaper->adapter->stats.qos_waits++;
	pvr_timer_set(&shaper->adapter->timers, &shaper->timer, shaper->start);
}

static void end_wait(struct pvr_shaper *shaper, uint64_t now)
{
	if (!shaper->is_waiting)
		return;
	shaper->is_waiting = false;
	shaper->adapter->stats.qos_wait_ns += now - shaper->waiting_since;
	pvr_timer_cancel(&shaper->adapter->timers, &shaper->timer);
}

static void expired(struct pvr_timer *timer)
{
	struct pvr_shaper *shaper =
		(struct pvr_shaper *)((char *)timer - offsetof(struct pvr_shaper, timer));

	end_wait(shaper, pvr_now(shaper->adapter->engine));
	if (!TAILQ_EMPTY(&shaper->adapter->ready))
		pvr_worker_queue(shaper->adapter);
	else
		cancel_reservation(shaper);
}

static void set_quantum(struct pvr_adapter *adapter, uint32_t bytes, uint32_t requests)
{
	adapter->quantum_bytes = bytes;
	adapter->quantum_requests = requests;
}

bool pvr_shaper_begin(struct pvr_shaper *shaper, const struct pvr_qp *qp)
{
	uint64_t now;

	if (!is_limited(&shaper->own) && !is_limited(shaper->fabric))
		return true;
	if (pvr_shaper_is_free(qp)) {
		set_quantum(shaper->adapter, FRAGMENT_STEP, 0);
		return true;
	}
	now = pvr_now(shaper->adapter->engine);
	reserve(shaper, now);
	if (shaper->start > now) {
		begin_wait(shaper, now);
		return false;
	}
	end_wait(shaper, now);
	extend(shaper, now);
	set_quantum(shaper->adapter, shaper->bytes, shaper->messages);
	return true;
}

/* A free quantum keeps the reservation of the next one that sends. */
void pvr_shaper_end(struct pvr_shaper *shaper)
{
	uint64_t bytes = shaper->sent_bytes, messages = shaper->sent_messages, now;

	shaper->sent_bytes = 0;
	shaper->sent_messages = 0;
	if (!is_limited(&shaper->own) && !is_limited(shaper->fabric))
		return;
	set_quantum(shaper->adapter, PVR_QUANTUM_BYTES, PVR_QUANTUM_REQUESTS);
	if (!shaper->is_waiting)
		cancel_reservation(shaper);
	if (!bytes && !messages)
		return;
	now = pvr_now(shaper->adapter->engine);
	limit_take(&shaper->own, now, bytes, messages);
	limit_take(shaper->fabric, now, bytes, messages);
}

void pvr_shaper_rest(struct pvr_shaper *shaper)
{
	end_wait(shaper, pvr_now(shaper->adapter->engine));
	cancel_reservation(shaper);
}

bool pvr_shaper_may_end_qp(struct pvr_shaper *shaper)
{
	uint64_t now = pvr_now(shaper->adapter->engine);

	return !is_overdrawn(&shaper->own, now) && !is_overdrawn(shaper->fabric, now);
}

/* ------------------------------------------------------------------------ counting */

void pvr_shaper_start_count(struct pvr_shaper *shaper, const struct pvr_qp *qp)
{
	shaper->tx_bytes = shaper->adapter->stat[PVR_STAT_TX_BYTES];
	shaper->tx_messages = shaper->adapter->stat[PVR_STAT_TX_MSGS];
	shaper->sq_offset = qp->sq_offset;
}

/* The counters have whole messages; @sq_offset has the part of the one at the head. */
void pvr_shaper_count(struct pvr_shaper *shaper, const struct pvr_qp *qp)
{
	uint64_t bytes = shaper->adapter->stat[PVR_STAT_TX_BYTES] - shaper->tx_bytes;
	uint64_t messages = shaper->adapter->stat[PVR_STAT_TX_MSGS] - shaper->tx_messages;

	bytes += qp->sq_offset;
	/* A queue pair that has failed has no offset any more. */
	bytes -= shaper->sq_offset < bytes ? shaper->sq_offset : bytes;
	pvr_shaper_sent(shaper, bytes, messages);
	pvr_shaper_start_count(shaper, qp);
}

/* ------------------------------------------------------------------------- weights */

bool pvr_shaper_take_turn(struct pvr_shaper *shaper)
{
	if (shaper->turns < WEIGHT_ONE)
		shaper->turns += shaper->own.qos.weight;
	if (shaper->turns < WEIGHT_ONE)
		return false;
	shaper->turns -= WEIGHT_ONE;
	return true;
}

bool pvr_shaper_has_turn(const struct pvr_shaper *shaper)
{
	return shaper->turns >= WEIGHT_ONE;
}

/* -------------------------------------------------------------------------- changes */

static struct pvr_fabric_limit *find_limit(const struct pvr_engine *engine, const char *fabric)
{
	struct pvr_fabric_limit *limit;

	LIST_FOREACH(limit, &engine->fabric_limits, link)
		if (!strcmp(limit->fabric, fabric))
			return limit;
	return NULL;
}

static struct pvr_shaper *shaper_new(struct pvr_adapter *adapter)
{
	struct pvr_shaper *shaper = calloc(1, sizeof(*shaper));

	if (!shaper)
		return NULL;
	shaper->adapter = adapter;
	if (!pvr_timer_init(&adapter->timers, &shaper->timer, expired))
		return shaper;
	free(shaper);
	return NULL;
}

static void shaper_free(struct pvr_adapter *adapter)
{
	struct pvr_shaper *shaper = adapter->shaper;

	if (!shaper)
		return;
	cancel_reservation(shaper);
	pvr_timer_exit(&adapter->timers, &shaper->timer);
	free(shaper);
	adapter->shaper = NULL;
	set_quantum(adapter, PVR_QUANTUM_BYTES, PVR_QUANTUM_REQUESTS);
}

static bool is_default(const struct pvr_qos *qos)
{
	return !qos->rate && !qos->messages && qos->weight == PVR_QOS_WEIGHT;
}

/* The adapter's lock is held. */
static int apply(struct pvr_adapter *adapter, const struct pvr_qos *qos)
{
	struct pvr_fabric_limit *of_fabric = find_limit(adapter->engine, adapter->fabric->name);
	struct pvr_limit *fabric = of_fabric ? &of_fabric->limit : NULL;
	struct pvr_shaper *shaper = adapter->shaper;
	uint64_t now = pvr_now(adapter->engine);

	if (is_default(qos) && !is_limited(fabric)) {
		shaper_free(adapter);
		return 0;
	}
	if (!shaper)
		shaper = shaper_new(adapter);
	if (!shaper)
		return -ENOMEM;
	pvr_shaper_rest(shaper);
	limit_init(&shaper->own, qos, now);
	shaper->fabric = fabric;
	shaper->turns = 0;
	adapter->shaper = shaper;
	return 0;
}

static struct pvr_qos normal(const struct pvr_qos *qos)
{
	struct pvr_qos result = *qos;

	if (!result.weight)
		result.weight = PVR_QOS_WEIGHT;
	return result;
}

int pvr_shaper_join(struct pvr_adapter *adapter, const struct pvr_qos *qos)
{
	struct pvr_qos own = normal(qos);

	return apply(adapter, &own);
}

void pvr_shaper_leave(struct pvr_adapter *adapter)
{
	shaper_free(adapter);
}

void pvr_shaper_exit(struct pvr_engine *engine)
{
	struct pvr_fabric_limit *limit;

	while ((limit = LIST_FIRST(&engine->fabric_limits))) {
		LIST_REMOVE(limit, link);
		free(limit);
	}
}

/* Apply the limits to the ready queue pairs. */
static void run_again(struct pvr_adapter *adapter)
{
	if (!TAILQ_EMPTY(&adapter->ready))
		pvr_worker_queue(adapter);
}

int pvr_adapter_set_qos(struct pvr_adapter *adapter, const struct pvr_qos *qos)
{
	struct pvr_qos own = normal(qos);
	int err;

	pvr_adapter_lock(adapter);
	err = apply(adapter, &own);
	run_again(adapter);
	pvr_adapter_unlock(adapter);
	return err;
}

void pvr_adapter_get_qos(const struct pvr_adapter *adapter, struct pvr_qos *qos)
{
	static const struct pvr_qos none = { .weight = PVR_QOS_WEIGHT };

	*qos = adapter->shaper ? adapter->shaper->own.qos : none;
}

/* Return: the limit of the fabric, which is created if it is missing; NULL if out of memory. */
static struct pvr_fabric_limit *get_limit(struct pvr_engine *engine, const char *fabric)
{
	struct pvr_fabric_limit *limit = find_limit(engine, fabric);

	if (limit)
		return limit;
	limit = calloc(1, sizeof(*limit));
	if (!limit)
		return NULL;
	strncpy(limit->fabric, fabric, sizeof(limit->fabric) - 1);
	LIST_INSERT_HEAD(&engine->fabric_limits, limit, link);
	return limit;
}

/* No reservation with the limits of before may be left. */
static void cancel_all(struct pvr_engine *engine, const char *fabric)
{
	struct pvr_adapter *adapter;

	LIST_FOREACH(adapter, &engine->adapters, link) {
		if (strcmp(adapter->fabric->name, fabric) || !adapter->shaper)
			continue;
		pvr_adapter_lock(adapter);
		pvr_shaper_rest(adapter->shaper);
		pvr_adapter_unlock(adapter);
	}
}

int pvr_engine_set_fabric_qos(struct pvr_engine *engine, const char *fabric,
			      const struct pvr_qos *qos)
{
	struct pvr_fabric_limit *limit;
	struct pvr_qos settings = normal(qos), own;
	struct pvr_adapter *adapter;
	int err = 0;

	if (strlen(fabric) >= sizeof(limit->fabric))
		return -EINVAL;
	limit = get_limit(engine, fabric);
	if (!limit)
		return -ENOMEM;
	cancel_all(engine, fabric);
	limit_init(&limit->limit, &settings, pvr_now(engine));
	LIST_FOREACH(adapter, &engine->adapters, link) {
		if (strcmp(adapter->fabric->name, fabric))
			continue;
		pvr_adapter_get_qos(adapter, &own);
		if (pvr_adapter_set_qos(adapter, &own))
			err = -ENOMEM;
	}
	return err;
}

bool pvr_engine_get_fabric_qos(const struct pvr_engine *engine, const char *fabric,
			       struct pvr_qos *qos)
{
	const struct pvr_fabric_limit *limit = find_limit(engine, fabric);

	if (limit)
		*qos = limit->limit.qos;
	return limit;
}

void pvr_engine_for_each_fabric_qos(const struct pvr_engine *engine,
				    void (*fn)(void *opaque, const char *fabric,
					       const struct pvr_qos *qos),
				    void *opaque)
{
	const struct pvr_fabric_limit *limit;

	LIST_FOREACH(limit, &engine->fabric_limits, link)
		fn(opaque, limit->fabric, &limit->limit.qos);
}
