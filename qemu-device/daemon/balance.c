// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The balance of the workers: adapters move from a full worker to one with time. */
#include "daemon/balance.h"

#include <stddef.h>
#include <stdlib.h>

#include "daemon/balance_choice.h"
#include "daemon/daemon.h"
#include "daemon/log.h"

#define PERIOD PVR_SEC
#define STAY 10 /* periods that an adapter stays after a move */
/* The cost of a request, in bytes that are copied in the same time. */
#define REQUEST_COST 2048

/* Of an adapter at the last period. */
struct load {
	const struct pvr_attach *attach;
	uint64_t cost; /* since its creation */
	unsigned int stay; /* periods until it may move again */
};

struct pvr_balance {
	struct pvr_loop_timer timer;
	struct pvr_daemon *daemon;
	uint64_t since;
	uint64_t busy[PVR_MAX_WORKERS]; /* since the start */
	struct load loads[PVR_ADAPTERS_MAX];
	size_t num;
};

static uint64_t cost_of(struct pvr_adapter *adapter)
{
	struct pvr_adapter_stats stats;

	pvr_adapter_get_stats(adapter, &stats);
	return stats.tx_messages * REQUEST_COST + stats.tx_bytes;
}

/* The busy time of each worker since the last period. */
static void measure_workers(struct pvr_balance *balance, uint64_t *busy)
{
	const struct pvr_worker_pool *pool = &balance->daemon->pool;
	uint64_t now;
	unsigned int i;

	for (i = 0; i < pool->num; i++) {
		now = pvr_turns_busy(&pool->threads[i].worker_loop.turns);
		busy[i] = now - balance->busy[i];
		balance->busy[i] = now;
	}
}

/*
 * Adapters are in the order of their creation, so those of the last period are in the same order
 * here, without the removed ones. A new adapter has no cost before the next period.
 */
static void measure_adapters(struct pvr_balance *balance, struct pvr_balance_adapter *adapters)
{
	struct pvr_daemon *daemon = balance->daemon;
	struct load *loads = balance->loads, now;
	size_t i, old = 0;

	for (i = 0; i < daemon->num_adapters; i++) {
		struct pvr_adapter *adapter = pvr_attach_adapter(daemon->adapters[i].attach);

		now = (struct load){ .attach = daemon->adapters[i].attach,
				     .cost = cost_of(adapter) };
		while (old < balance->num && loads[old].attach != now.attach)
			old++;
		adapters[i] = (struct pvr_balance_adapter){
			.worker = pvr_adapter_worker(adapter),
			.stays = daemon->adapters[i].settings->has_worker ||
				 daemon->adapters[i].segment,
		};
		if (old < balance->num && now.cost >= loads[old].cost) {
			adapters[i].cost = now.cost - loads[old].cost;
			now.stay = loads[old].stay - !!loads[old].stay;
			adapters[i].stays |= now.stay > 0;
		}
		loads[i] = now;
	}
	balance->num = daemon->num_adapters;
}

static void move_adapter(struct pvr_balance *balance, const struct pvr_balance_move *move)
{
	struct pvr_daemon *daemon = balance->daemon;
	struct pvr_attach *attach = daemon->adapters[move->adapter].attach;
	const char *name = pvr_adapter_name(pvr_attach_adapter(attach));
	struct pvr_error err;

	balance->loads[move->adapter].stay = STAY;
	if (!pvr_daemon_move_adapter(daemon, attach, move->to, &err)) {
		pvrd_log(PVR_LOG_WARN, name, "stays at worker %u: %s", move->from, err.text);
		return;
	}
	pvrd_log(PVR_LOG_INFO, name,
		 "moved from worker %u, which was busy for %u %% of the time, to worker %u (%u %%)",
		 move->from, move->from_busy, move->to, move->to_busy);
}

static void balance_workers(struct pvr_balance *balance)
{
	static struct pvr_balance_adapter adapters[PVR_ADAPTERS_MAX];
	struct pvr_daemon *daemon = balance->daemon;
	uint64_t busy[PVR_MAX_WORKERS], now = pvr_loop_now(), period = now - balance->since;
	struct pvr_balance_move move;

	balance->since = now;
	measure_workers(balance, busy);
	measure_adapters(balance, adapters);
	/* An upgrade has saved which worker has which adapter. */
	if (!daemon->upgrade && pvr_balance_choose(busy, daemon->pool.num, period, adapters,
						   daemon->num_adapters, &move))
		move_adapter(balance, &move);
}

static void period_over(struct pvr_loop_timer *timer)
{
	struct pvr_balance *balance = (struct pvr_balance *)timer;

	balance_workers(balance);
	pvr_loop_timer_arm(balance->daemon->loop, timer, PERIOD);
}

struct pvr_balance *pvr_balance_start(struct pvr_daemon *daemon)
{
	struct pvr_balance *balance = calloc(1, sizeof(*balance));

	_Static_assert(offsetof(struct pvr_balance, timer) == 0, "period_over() casts");
	if (!balance)
		return NULL;
	balance->daemon = daemon;
	balance->since = pvr_loop_now();
	balance->timer.expired = period_over;
	pvr_loop_timer_arm(daemon->loop, &balance->timer, PERIOD);
	return balance;
}

void pvr_balance_stop(struct pvr_balance *balance)
{
	if (!balance)
		return;
	pvr_loop_timer_disarm(&balance->timer);
	free(balance);
}
