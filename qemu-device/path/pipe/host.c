// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Other hosts' daemons, by name. */
#include "path/pipe/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/adapter.h"
#include "path/pipe/rsp_conn.h"
#include "path/pipe/internal.h"
#include "path/pipe/req_conn.h"

struct pvr_pipe *pvr_pipe_create(void)
{
	struct pvr_pipe *pipe = calloc(1, sizeof(*pipe));
	unsigned int i;

	for (i = 0; pipe && i < PVR_PIPE_BUCKETS; i++)
		LIST_INIT(&pipe->hosts[i]);
	return pipe;
}

static void host_free(struct pvr_host *host, struct pvr_pipe *pipe)
{
	unsigned int kind, slot;

	pvr_qp_gone_queue_exit(&host->qp_gone, pipe);
	for (kind = 0; kind < PVR_PIPE_KINDS; kind++)
		for (slot = 0; slot < PVR_REQ_CONN_MAX; slot++)
			pvr_req_conn_free(host->out[kind].slot[slot]);
	free(host);
}

void pvr_pipe_destroy(struct pvr_pipe *pipe)
{
	struct pvr_host *host;
	unsigned int i;

	for (i = 0; pipe && i < PVR_PIPE_BUCKETS; i++) {
		while ((host = LIST_FIRST(&pipe->hosts[i]))) {
			LIST_REMOVE(host, link);
			host_free(host, pipe);
		}
	}
	free(pipe);
}

static unsigned int bucket_of(const char *name)
{
	unsigned int hash = 0;

	while (*name)
		hash = hash * 31 + (unsigned char)*name++;
	return hash % PVR_PIPE_BUCKETS;
}

/* The net's lock is held, also for host_get(). */
static struct pvr_host *find(struct pvr_engine *engine, const char *name)
{
	struct pvr_host *host;

	LIST_FOREACH(host, &engine->pipe->hosts[bucket_of(name)], link)
		if (!strcmp(host->name, name))
			return host;
	return NULL;
}

static struct pvr_host *host_get(struct pvr_engine *engine, const char *name, bool referred)
{
	struct pvr_pipe *pipe = engine->pipe;
	unsigned int bucket = bucket_of(name);
	struct pvr_host *host = find(engine, name);

	if (host)
		return host;
	if (pipe->num_hosts == PVR_HOSTS_MAX ||
	    (referred && pipe->num_referred == PVR_HOSTS_REFERRED_MAX))
		return NULL;
	host = calloc(1, sizeof(*host));
	if (!host)
		return NULL;
	host->engine = engine;
	strcpy(host->name, name);
	LIST_INIT(&host->ins);
	pvr_qp_gone_queue_init(&host->qp_gone);
	LIST_INSERT_HEAD(&pipe->hosts[bucket], host, link);
	pipe->num_hosts++;
	pipe->num_referred += referred;
	return host;
}

static struct pvr_host *get(struct pvr_engine *engine, const char *name, bool referred)
{
	struct pvr_host *host;

	if (strlen(name) >= PVR_HOST_NAME_MAX)
		return NULL;
	pvr_lock(&engine->pipe->lock);
	host = host_get(engine, name, referred);
	pvr_unlock(&engine->pipe->lock);
	return host;
}

struct pvr_host *pvr_host_get(struct pvr_engine *engine, const char *name)
{
	return get(engine, name, false);
}

struct pvr_host *pvr_host_get_referred(struct pvr_engine *engine, const char *name)
{
	return get(engine, name, true);
}

struct pvr_host *pvr_host_find(struct pvr_engine *engine, const char *name)
{
	struct pvr_host *host;

	pvr_lock(&engine->pipe->lock);
	host = find(engine, name);
	pvr_unlock(&engine->pipe->lock);
	return host;
}

/* Hosts stay, and new ones are the first ones of their buckets. */
struct pvr_host *pvr_host_next(struct pvr_engine *engine, struct pvr_host *host)
{
	struct pvr_pipe *pipe = engine->pipe;
	unsigned int bucket = host ? bucket_of(host->name) + 1 : 0;
	struct pvr_host *next;

	pvr_lock(&pipe->lock);
	next = host ? LIST_NEXT(host, link) : NULL;
	for (; !next && bucket < PVR_PIPE_BUCKETS; bucket++)
		next = LIST_FIRST(&pipe->hosts[bucket]);
	pvr_unlock(&pipe->lock);
	return next;
}

static bool has_unsent(struct pvr_host *host)
{
	struct pvr_req_conn *out;
	unsigned int kind, slot;
	bool blocked = false;

	for (kind = 0; kind < PVR_PIPE_KINDS; kind++) {
		for (slot = 0; slot < PVR_REQ_CONN_MAX && !blocked; slot++) {
			out = pvr_req_conn_find(host, kind, slot);
			if (!out)
				continue;
			pvr_lock(&out->lock);
			blocked = out->generation && out->box.blocked && !out->box.broken;
			pvr_unlock(&out->lock);
		}
	}
	return blocked;
}

bool pvr_engine_has_unsent(struct pvr_engine *engine)
{
	struct pvr_host *host = NULL;

	if (__atomic_load_n(&engine->pipe->qps_gone, __ATOMIC_RELAXED))
		return true;
	while ((host = pvr_host_next(engine, host)))
		if (has_unsent(host))
			return true;
	return false;
}

const char *pvr_host_name(const struct pvr_host *host)
{
	return host->name;
}

/* The same check as by the receiver, which has no use for the zone of a local address. */
static void copy_address(char to[PVR_FRAME_ADDRESS_MAX], const char *address)
{
	bool ok = strlen(address) < PVR_FRAME_ADDRESS_MAX &&
		  pvr_frame_is_address(address, PVR_FRAME_ADDRESS_MAX);

	memset(to, 0, PVR_FRAME_ADDRESS_MAX);
	if (ok)
		strcpy(to, address);
}

void pvr_engine_set_address(struct pvr_engine *engine, const char *address)
{
	copy_address(engine->pipe->address, address);
}

void pvr_host_set_address(struct pvr_host *host, const char *address)
{
	pvr_lock(&host->lock);
	copy_address(host->address, address);
	pvr_unlock(&host->lock);
}

void pvr_host_get_address(struct pvr_host *host, char address[PVR_FRAME_ADDRESS_MAX])
{
	pvr_lock(&host->lock);
	memcpy(address, host->address, sizeof(host->address));
	pvr_unlock(&host->lock);
}

struct pvr_engine *pvr_host_engine(const struct pvr_host *host)
{
	return host->engine;
}

struct pvr_pipe *pvr_host_pipe(const struct pvr_host *host)
{
	return host->engine->pipe;
}

/* ------------------------------------------------------------------ statistics */

void pvr_host_heard(struct pvr_host *host)
{
	__atomic_store_n(&host->heard, pvr_now(host->engine), __ATOMIC_RELAXED);
}

void pvr_host_count_retransmits(struct pvr_host *host, uint64_t n)
{
	__atomic_fetch_add(&host->retransmits, n, __ATOMIC_RELAXED);
}

void pvr_link_count_add(struct pvr_link_count *to, const struct pvr_link_count *from)
{
	to->tx_frames += pvr_stat_get(&from->tx_frames);
	to->tx_bytes += pvr_stat_get(&from->tx_bytes);
	to->rx_frames += pvr_stat_get(&from->rx_frames);
	to->rx_bytes += pvr_stat_get(&from->rx_bytes);
	to->zerocopy_tx_bytes += pvr_stat_get(&from->zerocopy_tx_bytes);
	to->zerocopy_rx_bytes += pvr_stat_get(&from->zerocopy_rx_bytes);
}

/* Its lock is held. */
static void count_connections(struct pvr_host *host, struct pvr_link_count *count)
{
	unsigned int kind, slot;
	struct pvr_rsp_conn *in;

	*count = host->gone;
	LIST_FOREACH(in, &host->ins, link)
		pvr_link_count_add(count, &in->count);
	for (kind = 0; kind < PVR_PIPE_KINDS; kind++)
		for (slot = 0; slot < PVR_REQ_CONN_MAX; slot++)
			if (host->out[kind].slot[slot])
				pvr_link_count_add(count, &host->out[kind].slot[slot]->count);
}

void pvr_host_get_stats(struct pvr_host *host, struct pvr_host_stats *stats)
{
	struct pvr_link_count count;
	unsigned int kind;

	pvr_lock(&host->lock);
	count_connections(host, &count);
	pvr_unlock(&host->lock);
	*stats = (struct pvr_host_stats){
		.name = host->name,
		.rtt_ns = pvr_stat_get(&host->rtt_ns),
		.heard = pvr_stat_get(&host->heard),
		.tx_frames = count.tx_frames,
		.tx_bytes = count.tx_bytes,
		.rx_frames = count.rx_frames,
		.rx_bytes = count.rx_bytes,
		.zerocopy_tx_bytes = count.zerocopy_tx_bytes,
		.zerocopy_rx_bytes = count.zerocopy_rx_bytes,
		.retransmits = pvr_stat_get(&host->retransmits),
	};
	for (kind = 0; kind < PVR_PIPE_KINDS; kind++)
		stats->up[kind] = __atomic_load_n(&host->out[kind].up, __ATOMIC_RELAXED);
}
