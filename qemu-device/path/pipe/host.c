/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Other daemons, by name. */
#include "path/pipe/host.h"

#include <stdlib.h>
#include <string.h>

#include "core/adapter.h"
#include "path/pipe/rsp_conn.h"
#include "path/pipe/internal.h"
#include "path/pipe/req_conn.h"
#include "path/pipe/net.h"

struct pvr_pipe *pvr_pipe_create(void)
{
	struct pvr_pipe *pipe = calloc(1, sizeof(*pipe));
	unsigned int i;

	for (i = 0; pipe && i < PVR_PIPE_BUCKETS; i++)
		LIST_INIT(&pipe->remotes[i]);
	return pipe;
}

static void remote_free(struct pvr_remote *remote)
{
	unsigned int kind, slot;

	for (kind = 0; kind < PVR_PIPE_KINDS; kind++)
		for (slot = 0; slot < PVR_OUT_MAX; slot++)
			pvr_out_free(remote->out[kind].slot[slot]);
	free(remote);
}

void pvr_pipe_destroy(struct pvr_pipe *pipe)
{
	struct pvr_remote *remote;
	unsigned int i;

	for (i = 0; pipe && i < PVR_PIPE_BUCKETS; i++) {
		while ((remote = LIST_FIRST(&pipe->remotes[i]))) {
			LIST_REMOVE(remote, link);
			remote_free(remote);
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

/* The net's lock is held. */
static struct pvr_remote *remote_get(struct pvr_engine *engine, const char *name)
{
	unsigned int bucket = bucket_of(name);
	struct pvr_remote *remote;

	LIST_FOREACH(remote, &engine->pipe->remotes[bucket], link)
	if (!strcmp(remote->name, name))
		return remote;
	remote = calloc(1, sizeof(*remote));
	if (!remote)
		return NULL;
	remote->engine = engine;
	strcpy(remote->name, name);
	LIST_INIT(&remote->ins);
	LIST_INSERT_HEAD(&engine->pipe->remotes[bucket], remote, link);
	return remote;
}

struct pvr_remote *pvr_remote_get(struct pvr_engine *engine, const char *name)
{
	struct pvr_remote *remote;

	if (strlen(name) >= PVR_REMOTE_NAME_MAX)
		return NULL;
	pvr_lock(&engine->pipe->lock);
	remote = remote_get(engine, name);
	pvr_unlock(&engine->pipe->lock);
	return remote;
}

const char *pvr_remote_name(const struct pvr_remote *remote)
{
	return remote->name;
}

struct pvr_engine *pvr_remote_engine(const struct pvr_remote *remote)
{
	return remote->engine;
}

struct pvr_pipe *pvr_host_pipe(const struct pvr_remote *remote)
{
	return remote->engine->pipe;
}

/* ------------------------------------------------------------------ statistics */

void pvr_remote_heard(struct pvr_remote *remote)
{
	__atomic_store_n(&remote->heard, pvr_now(remote->engine), __ATOMIC_RELAXED);
}

void pvr_remote_count_retransmits(struct pvr_remote *remote, uint64_t n)
{
	__atomic_fetch_add(&remote->retransmits, n, __ATOMIC_RELAXED);
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
static void count_connections(struct pvr_remote *remote, struct pvr_link_count *count)
{
	unsigned int kind, slot;
	struct pvr_in *in;

	*count = remote->gone;
	LIST_FOREACH(in, &remote->ins, link)
	pvr_link_count_add(count, &in->count);
	for (kind = 0; kind < PVR_PIPE_KINDS; kind++)
		for (slot = 0; slot < PVR_OUT_MAX; slot++)
			if (remote->out[kind].slot[slot])
				pvr_link_count_add(count, &remote->out[kind].slot[slot]->count);
}

void pvr_remote_get_stats(struct pvr_remote *remote, struct pvr_remote_stats *stats)
{
	struct pvr_link_count count;
	unsigned int kind;

	pvr_lock(&remote->lock);
	count_connections(remote, &count);
	pvr_unlock(&remote->lock);
	*stats = (struct pvr_remote_stats){
		.name = remote->name,
		.rtt_ns = pvr_stat_get(&remote->rtt_ns),
		.heard = pvr_stat_get(&remote->heard),
		.tx_frames = count.tx_frames,
		.tx_bytes = count.tx_bytes,
		.rx_frames = count.rx_frames,
		.rx_bytes = count.rx_bytes,
		.zerocopy_tx_bytes = count.zerocopy_tx_bytes,
		.zerocopy_rx_bytes = count.zerocopy_rx_bytes,
		.retransmits = pvr_stat_get(&remote->retransmits),
	};
	for (kind = 0; kind < PVR_PIPE_KINDS; kind++)
		stats->up[kind] = __atomic_load_n(&remote->out[kind].up, __ATOMIC_RELAXED);
}
