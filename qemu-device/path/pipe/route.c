// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Routes: the req_conn that a queue pair uses. */
#include "path/pipe/req_conn.h"

#include "core/adapter.h"

/* Minimum time between two calls of want() for a host and DSCP. */
#define WANT_AGAIN_NS 10000000ull

static uint64_t generation_of(const struct pvr_req_conn *out)
{
	return __atomic_load_n(&out->generation, __ATOMIC_ACQUIRE);
}

/*
 * Distributes queue pairs over the slots. If a queue pair's slot is down, the next slot
 * is used.
 */
static struct pvr_req_conn *pick_plain(const struct pvr_host *host, unsigned int kind, uint32_t up,
				       uint32_t qpn)
{
	uint32_t slots = __atomic_load_n(&host->out[kind].slots, __ATOMIC_RELAXED), i, slot;

	for (i = 0; i < slots; i++) {
		slot = (qpn % slots + i) % slots;
		if (up & 1u << slot)
			return pvr_req_conn_find(host, kind, slot);
	}
	/* @slots has changed meanwhile: use any slot that is up. */
	return pvr_req_conn_find(host, kind, (unsigned int)__builtin_ctz(up));
}

/* Return: NULL if no connection has this DSCP. */
static struct pvr_req_conn *pick_class(const struct pvr_host *host, unsigned int kind,
				       uint32_t classed, uint8_t dscp)
{
	struct pvr_req_conn *out;

	for (; classed; classed &= classed - 1) {
		out = pvr_req_conn_find(host, kind, (unsigned int)__builtin_ctz(classed));
		if (__atomic_load_n(&out->dscp, __ATOMIC_RELAXED) == dscp)
			return out;
	}
	return NULL;
}

/* Selects a connection with this DSCP, else a connection without DSCP, else any. */
static struct pvr_req_conn *pick(const struct pvr_host *host, unsigned int kind, uint32_t qpn,
				 uint8_t dscp)
{
	const struct pvr_req_conn_set *set = &host->out[kind];
	uint32_t up = __atomic_load_n(&set->up, __ATOMIC_ACQUIRE);
	uint32_t classed = up & __atomic_load_n(&set->classed, __ATOMIC_RELAXED);
	struct pvr_req_conn *out = dscp ? pick_class(host, kind, classed, dscp) : NULL;

	if (!up || out)
		return out;
	if (up != classed)
		return pick_plain(host, kind, up & ~classed, qpn);
	return pvr_req_conn_find(host, kind, (unsigned int)__builtin_ctz(classed));
}

static struct pvr_req_conn *pick_best(const struct pvr_host *host, uint32_t qpn, uint8_t dscp)
{
	unsigned int kind = PVR_PIPE_KINDS;
	struct pvr_req_conn *out = NULL;

	while (!out && kind--)
		out = pick(host, kind, qpn, dscp);
	return out;
}

/* Return: true if the embedder has to provide a connection. */
static bool needs_connection(const struct pvr_route *route, const struct pvr_req_conn *out)
{
	return !route->generation || (route->dscp && out->kind == PVR_PIPE_TCP &&
				      __atomic_load_n(&out->dscp, __ATOMIC_RELAXED) != route->dscp);
}

/* The connection may never come: call want() at a limited rate, not for each request. */
static void want(struct pvr_host *host, uint8_t dscp)
{
	const struct pvr_pipe *pipe = pvr_host_pipe(host);
	uint64_t now = pvr_now(host->engine), bit = 1ull << dscp;

	if (now - __atomic_load_n(&host->wanted_since, __ATOMIC_RELAXED) >= WANT_AGAIN_NS) {
		__atomic_store_n(&host->wanted_since, now, __ATOMIC_RELAXED);
		__atomic_store_n(&host->wanted, 0, __ATOMIC_RELAXED);
	}
	if (__atomic_load_n(&host->wanted, __ATOMIC_RELAXED) & bit ||
	    __atomic_fetch_or(&host->wanted, bit, __ATOMIC_RELAXED) & bit)
		return;
	if (pipe->ops && pipe->ops->want)
		pipe->ops->want(pipe->opaque, host, dscp);
}

bool pvr_link_route(struct pvr_host *host, uint32_t qpn, uint8_t dscp, struct pvr_route *route)
{
	struct pvr_req_conn *out = pick_best(host, qpn, dscp);

	*route = (struct pvr_route){ .host = host, .dscp = dscp };
	if (out) {
		route->kind = out->kind;
		route->slot = out->slot;
		/*
		 * Read the generation first: a newer chunk then comes with a stale
		 * generation.
		 */
		route->generation = generation_of(out);
		route->chunk = __atomic_load_n(&out->chunk, __ATOMIC_RELAXED);
		route->has_atomic_write =
			__atomic_load_n(&out->atomic_write_agreed, __ATOMIC_RELAXED);
		route->has_xrc = __atomic_load_n(&out->xrc_agreed, __ATOMIC_RELAXED);
		route->has_fault = __atomic_load_n(&out->fault_agreed, __ATOMIC_RELAXED);
		route->has_load = __atomic_load_n(&out->load_agreed, __ATOMIC_RELAXED);
		route->has_refer = __atomic_load_n(&out->refer_agreed, __ATOMIC_RELAXED);
		route->has_tail = __atomic_load_n(&out->tail_agreed, __ATOMIC_RELAXED);
	}
	if (needs_connection(route, out))
		want(host, dscp);
	return route->generation;
}

bool pvr_link_route_changed(const struct pvr_route *route, uint32_t qpn)
{
	const struct pvr_req_conn *out = pick_best(route->host, qpn, route->dscp);

	if (!out)
		return route->generation;
	return out->kind != route->kind || out->slot != route->slot ||
	       generation_of(out) != route->generation;
}
