// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* An etcd that is down, slow, loses what it is sent, its history or its data, or is cut off from a host. */
#include "sim.h"

#include "gid/resolve.h"
#include "rdma/worker.h"

/* Longer than the shortest lease. All of a run together are shorter than the retries of queue pairs. */
#define MAX_OUTAGE (4 * FG_SEC)
#define MAX_OUTAGES (8 * FG_SEC)

static void lose_some(struct sim_web_rules *rules, struct sim_rng *rng)
{
	rules->lose_requests = sim_one_in(rng, 2) ? 0 : (uint32_t)sim_scale(rng, 1, 512);
	rules->lose_answers = sim_one_in(rng, 2) ? 0 : (uint32_t)sim_scale(rng, 1, 512);
	rules->refuse = sim_one_in(rng, 2) ? 0 : (uint32_t)sim_scale(rng, 1, 512);
}

/* It comes back with less than it had. */
static void lose_data(struct sim *sim, struct sim_etcd *etcd, struct sim_rng *rng)
{
	bool same_cluster = sim_one_in(rng, 2);
	bool restored = sim_one_in(rng, 2) && sim_etcd_restore(etcd, same_cluster);

	if (!restored)
		sim_etcd_empty(etcd, same_cluster);
	sim_snapshot_lose_claims(sim, true);
	sim->data_lost_at = sim_now(sim);
	sim_trace(&sim->trace, "etcd %s, %s cluster",
		  restored ? "is restored from its backup" : "has lost its data",
		  same_cluster ? "the same" : "another");
}

/* Then only its claim tells whether its state was started before. */
static bool is_any_alone(const struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if (sim->vm[i].is_alone)
			return true;
	return false;
}

static void go_down(struct sim *sim, struct sim_web *web, struct sim_rng *rng)
{
	web->rules.down = true;
	web->rules.silent = sim_one_in(rng, 2);
	sim_trace(&sim->trace, "etcd is down%s", web->rules.silent ? ", and its host too" : "");
	sim_etcd_stop(web->etcd);
	if (sim_one_in(rng, 4) && !is_any_alone(sim))
		lose_data(sim, web->etcd, rng);
	if (!web->rules.silent)
		sim_web_end_connections(web, FG_WIRE_HOSTS);
}

static void draw_fault(struct sim *sim, struct sim_web *web, struct sim_rng *rng)
{
	unsigned int host = sim_below(rng, sim->config.hosts);

	switch (sim->config.loses_directory ? 0 : sim_below(rng, 4)) {
	case 0:
		go_down(sim, web, rng);
		break;
	case 1:
		web->rules.cut[host] = true;
		sim_trace(&sim->trace, "host%u does not reach etcd", host + 1);
		break;
	case 2:
		web->rules.delay = sim_scale(rng, FG_MS, 512 * FG_MS);
		web->rules.jitter = sim_scale(rng, FG_MS, 512 * FG_MS);
		sim_trace(&sim->trace, "etcd is slow");
		break;
	default:
		lose_some(&web->rules, rng);
		sim_trace(&sim->trace,
			  "of 1000 requests to etcd %u get lost, %u answers, %u get 503",
			  web->rules.lose_requests, web->rules.lose_answers, web->rules.refuse);
	}
}

/* A VM starts at a host that does not reach its source without etcd. */
static bool needs_etcd(const struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.vms; i++) {
		const struct sim_vm *vm = &sim->vm[i];

		if (vm->restores ? !sim_snapshot_is_claimed(sim, vm)
				 : vm->phase != SIM_HOME &&
					   (vm->is_alone || !sim_directory_knows(sim->directories,
										 vm->to, vm->from)))
			return true;
	}
	return false;
}

static bool knows(struct sim *sim, const struct sim_end *from, const struct sim_end *to)
{
	struct pvr_adapter *adapter = from->vm->guest->adapter;
	struct pvr_host *host;

	if (from->vm->host == to->vm->host)
		return true;
	pvr_adapter_lock(adapter);
	host = pvr_gid_find_host(adapter, to->fg.gid);
	pvr_adapter_unlock(adapter);
	return host && sim_directory_knows(sim->directories, from->vm->host, to->vm->host);
}

/* What is unknown when etcd is lost stays so. */
static bool is_all_known(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->config.vms; i++)
		if (sim->vm[i].phase != SIM_HOME)
			return false;
	for (unsigned int i = 0; i < 2 * sim->config.pairs; i++)
		if (!knows(sim, sim_flow_of(sim, i)->from, sim_flow_of(sim, i)->to))
			return false;
	return true;
}

bool sim_outage(struct sim *sim, struct sim_rng *rng)
{
	struct sim_web *web = sim_directory_web(sim->directories);
	uint64_t ns = sim_scale(rng, FG_MS, MAX_OUTAGE);

	if (!web || sim->outages + ns > MAX_OUTAGES)
		return false;
	if (needs_etcd(sim) || (sim->config.loses_directory && !is_all_known(sim)))
		return false;
	sim_snapshot_lose_claims(sim, false);
	sim->outages += ns;
	sim->outage_at = sim_now(sim);
	sim->directory.is = true;
	sim->directory.until = sim_now(sim) + ns;
	draw_fault(sim, web, rng);
	return true;
}

bool sim_outage_is_over(const struct sim *sim)
{
	return sim_directory_web(sim->directories) && !sim->directory.is &&
	       sim_now(sim) >= sim->calm_at;
}

void sim_outage_end(struct sim *sim)
{
	struct sim_web *web = sim_directory_web(sim->directories);

	if (web->rules.down) {
		/* Streams of a host that was off are none that it knows. */
		sim_web_end_connections(web, FG_WIRE_HOSTS);
		sim_etcd_start(web->etcd);
	}
	web->rules = web->calm;
	sim->calm_at = sim_now(sim) + SIM_ETCD_PAUSE;
	sim_trace(&sim->trace, "etcd responds");
}

/* What the operator of etcd does, or a network, in a moment. */
bool sim_outage_moment(struct sim *sim, struct sim_rng *rng)
{
	struct sim_web *web = sim_directory_web(sim->directories);
	unsigned int host = sim_below(rng, sim->config.hosts);

	if (!web)
		return false;
	switch (sim_below(rng, 3)) {
	case 0:
		sim_trace(&sim->trace, "etcd forgets its history");
		sim_etcd_compact(web->etcd);
		break;
	case 1:
		sim_trace(&sim->trace, "etcd has a backup");
		sim_etcd_back_up(web->etcd);
		break;
	default:
		sim_trace(&sim->trace, "the watches of host%u break", host + 1);
		sim_web_end_connections(web, host);
	}
	return true;
}
