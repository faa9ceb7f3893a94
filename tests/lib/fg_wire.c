// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Hosts that are joined by pipes. */
#include "fg_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fg_directory.h"
#include "fg_link.h"
#include "fg_lock.h"
#include "fg_malformed.h"
#include "fg_ram.h"

#define IDLE_NS 50000

struct node {
	struct fg_wire *wire;
	unsigned int number;
	struct fg_host *host;
	struct pvr_host *peer[FG_WIRE_HOSTS];
	unsigned int wants; /* atomic */
	struct fg_located located;
	struct fg_nic_stats nics;
	/* Held while the host's connections are pumped, cut or mended. */
	pthread_mutex_t lock;
	pthread_t thread;
	bool runs; /* the thread does */
};

struct fg_wire {
	struct fg_wire_config config;
	struct fg_link_env link_env;
	struct node node[FG_WIRE_HOSTS];
	struct fg_link link[FG_WIRE_HOSTS][FG_WIRE_HOSTS][PVR_PIPE_KINDS][FG_WIRE_SLOTS];
	struct fg_directory *directory;
	bool stop; /* atomic: the threads */
};

/* ---------------------------------------------------------------------- net ops */

static void resolve(void *opaque, const char *fabric, const uint8_t gid[16],
		    const struct pvr_host *from)
{
	struct node *node = opaque;

	fg_directory_ask(node->wire->directory, node->number, fabric, gid);
}

static void announce(void *opaque, const char *fabric, const uint8_t gid[16], uint8_t gid_type,
		     const uint8_t mac[6], bool present)
{
	struct node *node = opaque;

	(void)mac;
	fg_directory_announce(node->wire->directory, node->number, fabric, gid, gid_type, present);
}

static void located(void *opaque, struct pvr_host *peer, const char *fabric, const uint8_t gid[16],
		    uint8_t gid_type)
{
	struct node *node = opaque;

	node->located.count++;
	node->located.host = peer;
	snprintf(node->located.fabric, sizeof(node->located.fabric), "%s", fabric);
	memcpy(node->located.gid, gid, sizeof(node->located.gid));
	node->located.gid_type = gid_type;
}

static void moved(void *opaque, struct pvr_host *peer, const char *fabric, const uint8_t gid[16])
{
	struct node *node = opaque;

	(void)peer;
	fg_directory_moved(node->wire->directory, node->number, fabric, gid);
}

static void want(void *opaque, struct pvr_host *peer, uint8_t dscp)
{
	struct node *node = opaque;

	(void)peer;
	(void)dscp;
	__atomic_fetch_add(&node->wants, 1, __ATOMIC_RELAXED);
}

static const struct pvr_gid_ops gid_ops = {
	.resolve = resolve,
	.announce = announce,
	.moved = moved,
};

static const struct pvr_host_ops host_ops = {
	.located = located,
	.want = want,
};

/* ---------------------------------------------------------------------- pumping */

#define FOR_EACH_LINK(wire, host, kind, slot)                            \
	for (unsigned int host = 0; host < (wire)->config.hosts; host++) \
		for (int kind = 0; kind < PVR_PIPE_KINDS; kind++)        \
			for (unsigned int slot = 0; slot < (wire)->config.slots; slot++)

static void wake_stalled(struct node *node)
{
	FOR_EACH_LINK(node->wire, other, kind, slot)
	node->wire->link[other][node->number][kind][slot].stalled = 0;
}

/* Its lock is held. */
static bool tell(struct node *node)
{
	const struct fg_wire_directory *other = node->wire->config.directory;
	bool done = other ? other->step(other->opaque, node->number)
			  : fg_directory_tell(node->wire->directory, node->number,
					      node->host->engine, node->peer);

	if (done)
		wake_stalled(node);
	return done;
}

/* Both kinds of ends that a host has. */
static bool pump_host(struct node *node)
{
	FG_GUARD(&node->lock);
	struct fg_wire *wire = node->wire;
	bool done = tell(node);

	FOR_EACH_LINK(wire, other, kind, slot)
	{
		done |= fg_link_pump_out(&wire->link[node->number][other][kind][slot]);
		done |= fg_link_pump_in(&wire->link[other][node->number][kind][slot]);
	}
	return done;
}

bool fg_wire_pump(struct fg_wire *wire, unsigned int host)
{
	return pump_host(&wire->node[host]);
}

bool fg_wire_step(struct fg_wire *wire)
{
	bool done = false;

	for (unsigned int i = 0; i < wire->config.hosts; i++)
		done |= fg_host_step(wire->node[i].host);
	for (unsigned int i = 0; i < wire->config.hosts; i++)
		done |= pump_host(&wire->node[i]);
	return done;
}

void fg_wire_steps(struct fg_wire *wire, uint32_t n)
{
	while (n--)
		fg_wire_step(wire);
}

static uint64_t wire_deadline(void *opaque)
{
	struct fg_wire *wire = opaque;
	const struct fg_wire_directory *other_directory = wire->config.directory;
	uint64_t first = other_directory ? other_directory->deadline(other_directory->opaque)
					 : UINT64_MAX;

	for (unsigned int i = 0; i < wire->config.hosts; i++) {
		first = fg_sooner(first, fg_host_deadline(wire->node[i].host));
		FOR_EACH_LINK(wire, other, kind, slot)
		first = fg_sooner(first, fg_link_deadline(&wire->link[i][other][kind][slot]));
	}
	return first;
}

static void wire_set_clock(void *opaque, uint64_t now)
{
	struct fg_wire *wire = opaque;

	for (unsigned int i = 0; i < wire->config.hosts; i++)
		wire->node[i].host->now = now;
}

static void wire_tell(void *opaque)
{
	struct fg_wire *wire = opaque;

	/* Another directory takes its time. */
	for (unsigned int i = 0; i < wire->config.hosts && !wire->config.directory; i++) {
		FG_GUARD(&wire->node[i].lock);

		tell(&wire->node[i]);
	}
}

static bool wire_step(void *opaque)
{
	return fg_wire_step(opaque);
}

static const struct fg_neighbours neighbours = {
	.step = wire_step,
	.deadline = wire_deadline,
	.set_clock = wire_set_clock,
	.tell = wire_tell,
};

void fg_wire_run(struct fg_wire *wire)
{
	fg_run(wire->node[0].host);
}

void fg_wire_advance(struct fg_wire *wire, uint64_t ns)
{
	fg_advance(wire->node[0].host, ns);
}

uint64_t fg_wire_settle(struct fg_wire *wire, uint64_t ns)
{
	return fg_settle(wire->node[0].host, ns);
}

/* ------------------------------------------------------------------------- a life */

static void set_pipe(struct node *node)
{
	const struct fg_wire_directory *other = node->wire->config.directory;

	if (other)
		pvr_engine_set_pipe(node->host->engine, other->gid_ops, other->host_ops,
				    other->of_host(other->opaque, node->number));
	else
		pvr_engine_set_pipe(node->host->engine, &gid_ops, &host_ops, node);
}

static void node_make(struct fg_wire *wire, unsigned int number)
{
	struct node *node = &wire->node[number];

	node->wire = wire;
	node->number = number;
	pthread_mutex_init(&node->lock, NULL);
	node->host = fg_host_create_workers(wire->config.workers);
	node->host->neighbours = &neighbours;
	node->host->neighbours_opaque = wire;
	set_pipe(node);
}

static struct pvr_host *host_make(struct fg_host *host, unsigned int other)
{
	struct pvr_host *peer;
	char name[16];

	snprintf(name, sizeof(name), "host%u", other + 1);
	peer = pvr_host_get(host->engine, name);
	if (!peer)
		fg_die("no memory for a remote");
	return peer;
}

/* The last entry of a host is the host itself. */
static void hosts_make(struct fg_wire *wire, struct node *node)
{
	for (unsigned int other = 0; other < wire->config.hosts; other++)
		if (other != node->number)
			node->peer[other] = host_make(node->host, other);
	node->peer[node->number] = host_make(node->host, node->number);
}

static void link_init(struct fg_wire *wire, unsigned int from, unsigned int to, int kind,
		      unsigned int slot)
{
	wire->link[from][to][kind][slot] = (struct fg_link){
		.env = &wire->link_env,
		.kind = kind,
		.slot = slot,
		.exposes = wire->config.exposes && kind == PVR_PIPE_VERBS,
		.requester = { .host = wire->node[from].peer[to], .stats = &wire->node[from].nics },
		.responder = { .host = wire->node[to].peer[from], .stats = &wire->node[to].nics },
	};
}

static void link_env_init(struct fg_wire *wire)
{
	const struct fg_host *clock = wire->node[0].host;

	wire->link_env.netem.now = &clock->now;
	wire->link_env.buffer = wire->config.buffer;
	wire->link_env.chunk = wire->config.chunk;
	wire->link_env.old = wire->config.old;
	wire->link_env.clock = clock;
	pthread_mutex_init(&wire->link_env.lock, NULL);
}

static void fill_in_defaults(struct fg_wire_config *config)
{
	config->hosts = config->hosts ? config->hosts : 2;
	config->slots = config->slots ? config->slots : 1;
	config->workers = config->workers ? config->workers : 1;
	config->chunk = config->chunk ? config->chunk : 65536;
	config->buffer = config->buffer ? config->buffer : 262144;
	if (config->hosts > FG_WIRE_HOSTS || config->slots > FG_WIRE_SLOTS)
		fg_die("too many hosts or slots");
}

struct fg_wire *fg_wire_create(const struct fg_wire_config *config)
{
	struct fg_wire *wire = calloc(1, sizeof(*wire));

	if (!wire)
		fg_die("no memory for a wire");
	if (config)
		wire->config = *config;
	fill_in_defaults(&wire->config);
	wire->directory = fg_directory_create();
	fg_directory_set_slow_to_forget(wire->directory, wire->config.slow_to_forget);
	for (unsigned int i = 0; i < wire->config.hosts; i++)
		node_make(wire, i);
	for (unsigned int i = 0; i < wire->config.hosts; i++)
		hosts_make(wire, &wire->node[i]);
	link_env_init(wire);
	for (unsigned int from = 0; from < wire->config.hosts; from++)
		FOR_EACH_LINK(wire, to, kind, slot)
	link_init(wire, from, to, kind, slot);
	for (unsigned int from = 0; from < wire->config.hosts; from++)
		for (unsigned int to = 0; to < wire->config.hosts; to++)
			for (unsigned int slot = 0; slot < wire->config.slots && from != to; slot++)
				fg_link_open(&wire->link[from][to][PVR_PIPE_TCP][slot]);
	return wire;
}

void fg_wire_destroy(struct fg_wire *wire)
{
	fg_malformed_destroy_all(&wire->link_env);
	for (unsigned int i = 0; i < wire->config.hosts; i++)
		FOR_EACH_LINK(wire, other, kind, slot)
	fg_link_exit(&wire->link[i][other][kind][slot]);
	for (unsigned int i = 0; i < wire->config.hosts; i++)
		fg_host_destroy(wire->node[i].host);
	fg_directory_destroy(wire->directory);
	free(wire);
}

static bool is_up(const struct fg_link *link)
{
	return link->out_up && link->in;
}

/* A new connection in the place of one that has ended, with the records of hosts of now. */
static void link_renew(struct fg_wire *wire, unsigned int from, unsigned int to, int kind,
		       unsigned int slot, bool up)
{
	link_init(wire, from, to, kind, slot);
	if (up)
		fg_link_open(&wire->link[from][to][kind][slot]);
}

void fg_wire_keep_gids(struct fg_wire *wire, unsigned int host, bool keeps)
{
	fg_directory_keep(wire->directory, host, keeps);
}

void fg_wire_renew(struct fg_wire *wire, unsigned int host)
{
	bool out[FG_WIRE_HOSTS][PVR_PIPE_KINDS][FG_WIRE_SLOTS];
	bool in[FG_WIRE_HOSTS][PVR_PIPE_KINDS][FG_WIRE_SLOTS];
	struct node *node = &wire->node[host];

	FOR_EACH_LINK(wire, other, kind, slot)
	{
		out[other][kind][slot] = is_up(&wire->link[host][other][kind][slot]);
		in[other][kind][slot] = is_up(&wire->link[other][host][kind][slot]);
		fg_link_exit(&wire->link[host][other][kind][slot]);
		fg_link_exit(&wire->link[other][host][kind][slot]);
	}
	fg_host_renew(node->host);
	fg_directory_renew(wire->directory, host);
	set_pipe(node);
	hosts_make(wire, node);
	FOR_EACH_LINK(wire, other, kind, slot)
	{
		link_renew(wire, host, other, kind, slot, out[other][kind][slot]);
		link_renew(wire, other, host, kind, slot, in[other][kind][slot]);
	}
}

struct fg_host *fg_wire_host(struct fg_wire *wire, unsigned int host)
{
	return wire->node[host].host;
}

struct fg_link_env *fg_wire_link_env(struct fg_wire *wire)
{
	return &wire->link_env;
}

struct pvr_host *fg_wire_remote_host(struct fg_wire *wire, unsigned int host, unsigned int other)
{
	return wire->node[host].peer[other];
}

/* ------------------------------------------------------------------------ threads */

static void *net_thread(void *opaque)
{
	const struct timespec idle = { .tv_nsec = IDLE_NS };
	struct node *node = opaque;

	while (!__atomic_load_n(&node->wire->stop, __ATOMIC_RELAXED))
		if (!pump_host(node))
			nanosleep(&idle, NULL);
	return NULL;
}

void fg_wire_start(struct fg_wire *wire)
{
	wire->stop = false;
	for (unsigned int i = 0; i < wire->config.hosts; i++) {
		if (pthread_create(&wire->node[i].thread, NULL, net_thread, &wire->node[i]))
			fg_die("cannot make a thread");
		wire->node[i].runs = true;
	}
}

void fg_wire_stop(struct fg_wire *wire)
{
	__atomic_store_n(&wire->stop, true, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < wire->config.hosts; i++) {
		if (wire->node[i].runs)
			pthread_join(wire->node[i].thread, NULL);
		wire->node[i].runs = false;
	}
}

/* ----------------------------------------------------------------------------- faults */

void fg_wire_limit(struct fg_wire *wire, size_t send, size_t recv)
{
	wire->link_env.netem.send_limit = send;
	wire->link_env.netem.recv_limit = recv;
}

void fg_wire_chunk(struct fg_wire *wire, uint32_t chunk)
{
	wire->link_env.chunk = chunk;
}

void fg_wire_delay(struct fg_wire *wire, uint64_t ns)
{
	wire->link_env.netem.delay = ns;
}

void fg_wire_hold(struct fg_wire *wire, unsigned int from, unsigned int to, bool hold)
{
	for (int kind = 0; kind < PVR_PIPE_KINDS; kind++) {
		for (unsigned int slot = 0; slot < FG_WIRE_SLOTS; slot++) {
			if (wire->link[from][to][kind][slot].made)
				fg_stream_hold(&wire->link[from][to][kind][slot].request, hold);
			if (wire->link[to][from][kind][slot].made)
				fg_stream_hold(&wire->link[to][from][kind][slot].answer, hold);
		}
	}
}

/* Closes a connection, and opens another in its place if @up. */
static void set_up(struct fg_wire *wire, unsigned int from, unsigned int to,
		   enum pvr_pipe_kind kind, unsigned int slot, bool up)
{
	pthread_mutex_t *first = &wire->node[from < to ? from : to].lock;
	pthread_mutex_t *second = &wire->node[from < to ? to : from].lock;
	struct fg_link *link = &wire->link[from][to][kind][slot];

	pthread_mutex_lock(first);
	pthread_mutex_lock(second);
	fg_link_close(link);
	if (up)
		fg_link_open(link);
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

void fg_wire_cut(struct fg_wire *wire, unsigned int from, unsigned int to, unsigned int slot)
{
	set_up(wire, from, to, PVR_PIPE_TCP, slot, false);
}

void fg_wire_mend(struct fg_wire *wire, unsigned int from, unsigned int to, unsigned int slot)
{
	set_up(wire, from, to, PVR_PIPE_TCP, slot, true);
}

void fg_wire_verbs(struct fg_wire *wire, unsigned int from, unsigned int to, bool up)
{
	set_up(wire, from, to, PVR_PIPE_VERBS, 0, up);
}

bool fg_wire_verbs_is_up(struct fg_wire *wire, unsigned int from, unsigned int to)
{
	return is_up(&wire->link[from][to][PVR_PIPE_VERBS][0]);
}

struct fg_nic_rules *fg_wire_nics(struct fg_wire *wire)
{
	return &wire->link_env.nics;
}

void fg_wire_nics_work(struct fg_wire *wire)
{
	for (unsigned int i = 0; i < wire->config.hosts; i++)
		FOR_EACH_LINK(wire, other, kind, slot)
	fg_link_nics_work(&wire->link[i][other][kind][slot]);
}

struct fg_nic_stats *fg_wire_nic(struct fg_wire *wire, unsigned int host)
{
	return &wire->node[host].nics;
}

struct fg_nic_stats fg_wire_nic_since(struct fg_wire *wire, unsigned int host)
{
	struct fg_nic_stats *stats = &wire->node[host].nics, since = *stats;

	if (stats->exposed != stats->revoked)
		fg_die("host %u still exposes memory", host + 1);
	*stats = (struct fg_nic_stats){ 0 };
	return since;
}

bool fg_wire_is_up(struct fg_wire *wire, unsigned int from, unsigned int to, unsigned int slot)
{
	return is_up(&wire->link[from][to][PVR_PIPE_TCP][slot]);
}

size_t fg_wire_in_flight(struct fg_wire *wire, unsigned int from, unsigned int to)
{
	size_t sum = 0;

	for (int kind = 0; kind < PVR_PIPE_KINDS; kind++)
		for (unsigned int slot = 0; slot < FG_WIRE_SLOTS; slot++)
			if (wire->link[from][to][kind][slot].made)
				sum += fg_stream_used(&wire->link[from][to][kind][slot].request);
	return sum;
}

unsigned int fg_wire_refused(const struct fg_wire *wire)
{
	return wire->link_env.refused;
}

const char *fg_wire_why(const struct fg_wire *wire)
{
	return wire->link_env.why;
}

/* ---------------------------------------------------------------------- directory */

void fg_wire_directory(struct fg_wire *wire, bool on)
{
	fg_directory_set_on(wire->directory, on);
}

unsigned int fg_wire_resolves(const struct fg_wire *wire, unsigned int host)
{
	return fg_directory_asked(wire->directory, host);
}

unsigned int fg_wire_moves(const struct fg_wire *wire, unsigned int host)
{
	return fg_directory_moves(wire->directory, host);
}

unsigned int fg_wire_wants(const struct fg_wire *wire, unsigned int host)
{
	return __atomic_load_n(&wire->node[host].wants, __ATOMIC_RELAXED);
}

const struct fg_located *fg_wire_located(const struct fg_wire *wire, unsigned int host)
{
	return &wire->node[host].located;
}
