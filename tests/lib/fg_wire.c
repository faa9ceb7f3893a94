// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Hosts that are joined by pipes. */
#include "fg_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fg_directory.h"
#include "fg_ram.h"
#include "fg_stream.h"

#define STALL_NS (10 * FG_MS)
#define IDLE_NS 50000

/* A connection: who dialled is @from. Each end is its own host's to use. */
struct link {
	struct fg_wire *wire;
	unsigned int from, to, slot;
	enum pvr_pipe_kind kind;
	struct fg_stream request, answer;
	bool made; /* the streams are */
	/* At @from. */
	bool out_up, out_more;
	bool out_wants; /* atomic: to know when more can be sent */
	/* At @to. */
	struct pvr_in *in; /* NULL: none */
	enum pvr_input in_state;
	bool in_wants; /* ditto */
	uint64_t stalled; /* until then */
};

struct node {
	struct fg_wire *wire;
	unsigned int number;
	struct fg_host *host;
	struct pvr_remote *remote[FG_WIRE_HOSTS];
	unsigned int wants; /* atomic */
	struct fg_located located;
	/* Who pumps its connections holds it; also who cuts and mends them. */
	pthread_mutex_t lock;
	pthread_t thread;
	bool runs; /* the thread does */
};

struct fg_wire {
	struct fg_wire_config config;
	struct fg_weather weather;
	struct node node[FG_WIRE_HOSTS];
	struct link link[FG_WIRE_HOSTS][FG_WIRE_HOSTS][PVR_PIPE_KINDS][FG_WIRE_SLOTS];
	struct fg_directory *directory;
	unsigned int refused; /* atomic */
	char why[200]; /* under refused_lock */
	pthread_mutex_t refused_lock;
	bool stop; /* atomic: the threads */
};

struct fg_forger {
	struct link link;
	bool closed;
};

/* ---------------------------------------------------------------------- net ops */

static void resolve(void *opaque, const char *fabric, const uint8_t gid[16])
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

static void located(void *opaque, struct pvr_remote *remote, const char *fabric,
		    const uint8_t gid[16], uint8_t gid_type)
{
	struct node *node = opaque;

	node->located.count++;
	node->located.remote = remote;
	snprintf(node->located.fabric, sizeof(node->located.fabric), "%s", fabric);
	memcpy(node->located.gid, gid, sizeof(node->located.gid));
	node->located.gid_type = gid_type;
}

static void moved(void *opaque, struct pvr_remote *remote, const char *fabric,
		  const uint8_t gid[16])
{
	struct node *node = opaque;

	(void)remote;
	fg_directory_moved(node->wire->directory, node->number, fabric, gid);
}

static void want(void *opaque, struct pvr_remote *remote, uint8_t dscp)
{
	struct node *node = opaque;

	(void)remote;
	(void)dscp;
	__atomic_fetch_add(&node->wants, 1, __ATOMIC_RELAXED);
}

static const struct pvr_net_ops net_ops = {
	.resolve = resolve,
	.announce = announce,
	.located = located,
	.moved = moved,
	.want = want,
};

/* ------------------------------------------------------------------- stream ops */

static ssize_t out_send(void *opaque, const struct iovec *iov, int count)
{
	return fg_stream_send(&((struct link *)opaque)->request, iov, count);
}

static ssize_t out_recv(void *opaque, const struct iovec *iov, int count)
{
	return fg_stream_recv(&((struct link *)opaque)->answer, iov, count);
}

static void out_want(void *opaque)
{
	__atomic_store_n(&((struct link *)opaque)->out_wants, true, __ATOMIC_RELAXED);
}

static ssize_t in_send(void *opaque, const struct iovec *iov, int count)
{
	return fg_stream_send(&((struct link *)opaque)->answer, iov, count);
}

static ssize_t in_recv(void *opaque, const struct iovec *iov, int count)
{
	return fg_stream_recv(&((struct link *)opaque)->request, iov, count);
}

static void in_want(void *opaque)
{
	__atomic_store_n(&((struct link *)opaque)->in_wants, true, __ATOMIC_RELAXED);
}

static const struct pvr_stream_ops out_ops = {
	.send = out_send,
	.recv = out_recv,
	.want_output = out_want,
};
static const struct pvr_stream_ops in_ops = {
	.send = in_send,
	.recv = in_recv,
	.want_output = in_want,
};

/* ------------------------------------------------------------------ connections */

static struct pvr_remote *remote_at(struct fg_wire *wire, unsigned int host, unsigned int other)
{
	struct pvr_remote **remote = &wire->node[host].remote[other];
	char name[16];

	if (!*remote) {
		snprintf(name, sizeof(name), "host%u", other + 1);
		*remote = pvr_remote_get(wire->node[host].host->engine, name);
	}
	if (!*remote)
		fg_die("no memory for a remote");
	return *remote;
}

static void link_break(struct link *link)
{
	if (!link->made)
		return;
	fg_stream_break(&link->request);
	fg_stream_break(&link->answer);
}

static void refused(struct fg_wire *wire, const struct pvr_input_error *err)
{
	if (err->reason < 0)
		return;
	pthread_mutex_lock(&wire->refused_lock);
	wire->refused++;
	snprintf(wire->why, sizeof(wire->why), "%s", err->why);
	pthread_mutex_unlock(&wire->refused_lock);
}

static void out_close(struct link *link)
{
	struct fg_wire *wire = link->wire;

	link_break(link);
	if (link->out_up)
		pvr_out_down(remote_at(wire, link->from, link->to), link->kind, link->slot);
	link->out_up = false;
}

static void in_close(struct link *link)
{
	link_break(link);
	if (link->in)
		pvr_in_destroy(link->in);
	link->in = NULL;
}

static void streams_make(struct link *link)
{
	size_t room = link->wire->config.buffer;

	fg_stream_init(&link->request, &link->wire->weather, room);
	fg_stream_init(&link->answer, &link->wire->weather, room);
	link->made = true;
}

static void streams_free(struct link *link)
{
	if (!link->made)
		return;
	fg_stream_exit(&link->request);
	fg_stream_exit(&link->answer);
	link->made = false;
}

static void in_open(struct link *link, bool early_acks)
{
	const struct pvr_stream_limits limits = {
		.chunk = link->wire->config.chunk,
		.early_acks = early_acks,
		.left = !link->wire->config.old,
	};
	struct pvr_remote *remote = remote_at(link->wire, link->to, link->from);

	link->in_wants = false;
	link->in_state = PVR_INPUT_IDLE;
	link->in = pvr_in_create(remote, link->kind, 0, &in_ops, link, &limits);
	if (!link->in)
		fg_die("no memory for a connection");
}

static void link_open(struct link *link)
{
	const struct pvr_stream_limits limits = {
		.chunk = link->wire->config.chunk,
		.early_acks = true,
		.left = !link->wire->config.old,
	};

	streams_free(link);
	streams_make(link);
	in_open(link, true);
	link->out_wants = link->out_more = false;
	link->out_up = true;
	pvr_out_up(remote_at(link->wire, link->from, link->to), link->kind, link->slot, &out_ops,
		   link, &limits);
}

/* ---------------------------------------------------------------------- pumping */

static bool take_flag(bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(flag, false, __ATOMIC_RELAXED);
}

static bool out_output(struct link *link)
{
	struct pvr_remote *remote = remote_at(link->wire, link->from, link->to);

	if (!fg_stream_can_send(&link->request) || !take_flag(&link->out_wants))
		return false;
	if (!pvr_out_output(remote, link->kind, link->slot))
		out_close(link);
	return true;
}

/* The requester's end. Return: whether anything was done. */
static bool pump_out(struct link *link)
{
	struct pvr_remote *remote;
	struct pvr_input_error err;
	bool done;

	if (!link->out_up)
		return false;
	done = out_output(link);
	if (!link->out_up || (!link->out_more && !fg_stream_can_recv(&link->answer)))
		return done;
	remote = remote_at(link->wire, link->from, link->to);
	link->out_more = false;
	switch (pvr_out_input(remote, link->kind, link->slot, &err)) {
	case PVR_INPUT_BROKEN:
		refused(link->wire, &err);
		out_close(link);
		break;
	case PVR_INPUT_MORE:
		link->out_more = true;
		break;
	default:
		break;
	}
	return true;
}

static bool in_output(struct link *link)
{
	if (!fg_stream_can_send(&link->answer) || !take_flag(&link->in_wants))
		return false;
	if (!pvr_in_output(link->in))
		in_close(link);
	else if (link->in_state == PVR_INPUT_OUTPUT)
		link->in_state = PVR_INPUT_MORE;
	return true;
}

static uint64_t wire_now(const struct fg_wire *wire)
{
	const struct fg_host *host = wire->node[0].host;

	return host->real_now ? host->real_now() : host->now;
}

static bool in_is_ready(struct link *link)
{
	switch (link->in_state) {
	case PVR_INPUT_MORE:
		return true;
	case PVR_INPUT_OUTPUT:
		return false;
	case PVR_INPUT_STALLED:
		return wire_now(link->wire) >= link->stalled;
	default:
		return fg_stream_can_recv(&link->request);
	}
}

/* The responder's end. */
static bool pump_in(struct link *link)
{
	struct pvr_input_error err;
	bool done;

	if (!link->in)
		return false;
	done = in_output(link);
	if (!link->in || !in_is_ready(link))
		return done;
	link->in_state = pvr_in_input(link->in, &err);
	if (link->in_state == PVR_INPUT_STALLED)
		link->stalled = wire_now(link->wire) + STALL_NS;
	if (link->in_state == PVR_INPUT_BROKEN) {
		refused(link->wire, &err);
		in_close(link);
	}
	return true;
}

#define FOR_EACH_LINK(wire, host, kind, slot)                    \
	for (unsigned int host = 0; host < FG_WIRE_HOSTS; host++) \
		for (int kind = 0; kind < PVR_PIPE_KINDS; kind++)  \
			for (unsigned int slot = 0; slot < FG_WIRE_SLOTS; slot++)

static void wake_stalled(struct node *node)
{
	FOR_EACH_LINK(node->wire, other, kind, slot)
		node->wire->link[other][node->number][kind][slot].stalled = 0;
}

/* Its lock is held. */
static bool tell(struct node *node)
{
	if (!fg_directory_tell(node->wire->directory, node->number, node->host->engine,
			       node->remote))
		return false;
	wake_stalled(node);
	return true;
}

/* Both kinds of ends that a host has. */
static bool pump_host(struct node *node)
{
	struct fg_wire *wire = node->wire;
	bool done;

	pthread_mutex_lock(&node->lock);
	done = tell(node);
	FOR_EACH_LINK(wire, other, kind, slot) {
		done |= pump_out(&wire->link[node->number][other][kind][slot]);
		done |= pump_in(&wire->link[other][node->number][kind][slot]);
	}
	pthread_mutex_unlock(&node->lock);
	return done;
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

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t link_deadline(struct link *link)
{
	uint64_t first = UINT64_MAX;

	if (link->out_up)
		first = sooner(first, fg_stream_deadline(&link->answer));
	if (link->in && link->in_state == PVR_INPUT_STALLED)
		first = sooner(first, link->stalled);
	else if (link->in && link->in_state != PVR_INPUT_OUTPUT)
		first = sooner(first, fg_stream_deadline(&link->request));
	return first;
}

static uint64_t wire_deadline(void *opaque)
{
	struct fg_wire *wire = opaque;
	uint64_t first = UINT64_MAX;

	for (unsigned int i = 0; i < wire->config.hosts; i++) {
		first = sooner(first, fg_host_deadline(wire->node[i].host));
		FOR_EACH_LINK(wire, other, kind, slot)
			first = sooner(first, link_deadline(&wire->link[i][other][kind][slot]));
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

	for (unsigned int i = 0; i < wire->config.hosts; i++) {
		pthread_mutex_lock(&wire->node[i].lock);
		tell(&wire->node[i]);
		pthread_mutex_unlock(&wire->node[i].lock);
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

static void node_make(struct fg_wire *wire, unsigned int number)
{
	struct node *node = &wire->node[number];

	node->wire = wire;
	node->number = number;
	pthread_mutex_init(&node->lock, NULL);
	node->host = fg_host_create_workers(wire->config.workers);
	node->host->neighbours = &neighbours;
	node->host->neighbours_opaque = wire;
	pvr_engine_set_net(node->host->engine, &net_ops, node);
}

static void link_init(struct fg_wire *wire, unsigned int from, unsigned int to, int kind,
		      unsigned int slot)
{
	wire->link[from][to][kind][slot] = (struct link){
		.wire = wire,
		.from = from,
		.to = to,
		.kind = kind,
		.slot = slot,
	};
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
	pthread_mutex_init(&wire->refused_lock, NULL);
	wire->directory = fg_directory_create();
	for (unsigned int from = 0; from < FG_WIRE_HOSTS; from++)
		FOR_EACH_LINK(wire, to, kind, slot)
			link_init(wire, from, to, kind, slot);
	for (unsigned int i = 0; i < wire->config.hosts; i++)
		node_make(wire, i);
	wire->weather.now = &wire->node[0].host->now;
	for (unsigned int from = 0; from < wire->config.hosts; from++)
		for (unsigned int to = 0; to < wire->config.hosts; to++)
			for (unsigned int slot = 0; slot < wire->config.slots && from != to; slot++)
				link_open(&wire->link[from][to][PVR_PIPE_TCP][slot]);
	/* Also those that nothing has been opened to. */
	for (unsigned int i = 0; i < wire->config.hosts; i++)
		for (unsigned int other = 0; other < wire->config.hosts; other++)
			remote_at(wire, i, other);
	return wire;
}

void fg_wire_destroy(struct fg_wire *wire)
{
	for (unsigned int i = 0; i < wire->config.hosts; i++) {
		FOR_EACH_LINK(wire, other, kind, slot) {
			struct link *link = &wire->link[i][other][kind][slot];

			out_close(link);
			in_close(link);
			streams_free(link);
		}
	}
	for (unsigned int i = 0; i < wire->config.hosts; i++)
		fg_host_destroy(wire->node[i].host);
	fg_directory_destroy(wire->directory);
	free(wire);
}

struct fg_host *fg_wire_host(struct fg_wire *wire, unsigned int host)
{
	return wire->node[host].host;
}

struct pvr_remote *fg_wire_remote(struct fg_wire *wire, unsigned int host, unsigned int other)
{
	return wire->node[host].remote[other];
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

/* ------------------------------------------------------------------------ weather */

void fg_wire_limit(struct fg_wire *wire, size_t send, size_t recv)
{
	wire->weather.send_limit = send;
	wire->weather.recv_limit = recv;
}

void fg_wire_delay(struct fg_wire *wire, uint64_t ns)
{
	wire->weather.delay = ns;
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

static void lock_both(struct fg_wire *wire, unsigned int a, unsigned int b)
{
	pthread_mutex_lock(&wire->node[a < b ? a : b].lock);
	pthread_mutex_lock(&wire->node[a < b ? b : a].lock);
}

static void unlock_both(struct fg_wire *wire, unsigned int a, unsigned int b)
{
	pthread_mutex_unlock(&wire->node[a].lock);
	pthread_mutex_unlock(&wire->node[b].lock);
}

static void cut(struct fg_wire *wire, unsigned int from, unsigned int to,
		enum pvr_pipe_kind kind, unsigned int slot)
{
	struct link *link = &wire->link[from][to][kind][slot];

	lock_both(wire, from, to);
	out_close(link);
	in_close(link);
	unlock_both(wire, from, to);
}

static void mend(struct fg_wire *wire, unsigned int from, unsigned int to,
		 enum pvr_pipe_kind kind, unsigned int slot)
{
	struct link *link = &wire->link[from][to][kind][slot];

	lock_both(wire, from, to);
	out_close(link);
	in_close(link);
	link_open(link);
	unlock_both(wire, from, to);
}

void fg_wire_cut(struct fg_wire *wire, unsigned int from, unsigned int to, unsigned int slot)
{
	cut(wire, from, to, PVR_PIPE_TCP, slot);
}

void fg_wire_mend(struct fg_wire *wire, unsigned int from, unsigned int to, unsigned int slot)
{
	mend(wire, from, to, PVR_PIPE_TCP, slot);
}

void fg_wire_verbs(struct fg_wire *wire, unsigned int from, unsigned int to, bool up)
{
	if (up)
		mend(wire, from, to, PVR_PIPE_VERBS, 0);
	else
		cut(wire, from, to, PVR_PIPE_VERBS, 0);
}

bool fg_wire_is_up(struct fg_wire *wire, unsigned int from, unsigned int to, unsigned int slot)
{
	const struct link *link = &wire->link[from][to][PVR_PIPE_TCP][slot];

	return link->out_up && link->in;
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
	return wire->refused;
}

const char *fg_wire_why(const struct fg_wire *wire)
{
	return wire->why;
}

/* ---------------------------------------------------------------------- directory */

void fg_wire_directory(struct fg_wire *wire, bool on)
{
	fg_directory_set_on(wire->directory, on);
}

void fg_wire_lazy(struct fg_wire *wire, bool lazy)
{
	fg_directory_set_lazy(wire->directory, lazy);
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

/* ------------------------------------------------------------------------- forgers */

static struct fg_forger *forger_create(struct fg_wire *wire, unsigned int host,
				       unsigned int other, bool early_acks)
{
	struct fg_forger *forger = calloc(1, sizeof(*forger));

	if (!forger)
		fg_die("no memory for a forger");
	forger->link.wire = wire;
	forger->link.from = other;
	forger->link.to = host;
	streams_make(&forger->link);
	in_open(&forger->link, early_acks);
	return forger;
}

struct fg_forger *fg_forger_create(struct fg_wire *wire, unsigned int host, unsigned int other)
{
	return forger_create(wire, host, other, false);
}

struct fg_forger *fg_forger_create_early(struct fg_wire *wire, unsigned int host,
					 unsigned int other)
{
	return forger_create(wire, host, other, true);
}

void fg_forger_destroy(struct fg_forger *forger)
{
	in_close(&forger->link);
	streams_free(&forger->link);
	free(forger);
}

/* What is there once the host has nothing more to do; what it has said before it closed stays. */
static void forger_pump(struct fg_forger *forger)
{
	struct pvr_input_error err;
	struct link *link = &forger->link;

	do {
		fg_wire_run(link->wire);
		if (!link->in)
			return;
		in_output(link);
		if (!in_is_ready(link))
			return;
		link->in_state = pvr_in_input(link->in, &err);
		if (link->in_state == PVR_INPUT_STALLED)
			link->stalled = wire_now(link->wire) + STALL_NS;
	} while (link->in_state != PVR_INPUT_BROKEN);
	refused(link->wire, &err);
	pvr_in_destroy(link->in);
	link->in = NULL;
	forger->closed = true;
}

void fg_forger_send(struct fg_forger *forger, const void *bytes, size_t size)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, size };

	while (iov.iov_len && !forger->closed) {
		ssize_t n = fg_stream_send(&forger->link.request, &iov, 1);

		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		forger_pump(forger);
		if (!n && !fg_stream_can_send(&forger->link.request))
			return;
	}
}

size_t fg_forger_recv(struct fg_forger *forger, void *bytes, size_t size)
{
	struct iovec iov = { bytes, size };
	ssize_t n;

	if (!forger->closed)
		forger_pump(forger);
	n = fg_stream_recv(&forger->link.answer, &iov, 1);
	return n > 0 ? (size_t)n : 0;
}

bool fg_forger_is_closed(const struct fg_forger *forger)
{
	return forger->closed;
}
