/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Hosts that are joined by pipes: engines in one process, streams of bytes between them in
 * memory, and a directory. One thread runs all of it: fg_run() of one host runs all, and
 * their clocks go together.
 *
 * A stream is as a socket is: what was sent is there later, a bounded amount of it is on
 * its way, it takes and gives parts. Tests can make it take and give little at a time, slow
 * it down, hold it up, and cut it; then what is on its way gets lost.
 */
#ifndef FG_WIRE_H
#define FG_WIRE_H

#include "fg_guest.h"
#include "fg_nic.h"
#include "pipe.h"

#define FG_WIRE_HOSTS 5
#define FG_WIRE_SLOTS 4 /* outgoing connections from each host to each other one */

struct fg_link_env;
struct fg_wire;

/* A directory of the test, in place of the one that tells each host at once. */
struct fg_wire_directory {
	const struct pvr_gid_ops *gid_ops;
	const struct pvr_host_ops *host_ops;
	/* Return: the opaque argument of these for @host. */
	void *(*of_host)(void *opaque, unsigned int host);
	/* Return: whether there was anything to do for @host. */
	bool (*step)(void *opaque, unsigned int host);
	uint64_t (*deadline)(void *opaque); /* of all hosts */
	void *opaque;
};

struct fg_wire_config {
	unsigned int hosts; /* 0: 2 */
	unsigned int slots; /* 0: 1 */
	unsigned int workers; /* of each host; 0: 1 */
	uint32_t chunk; /* 0: 65536 */
	bool old; /* none of the protocol's features */
	bool exposes; /* those of PVR_PIPE_VERBS have NICs that read */
	bool slow_to_forget; /* see fg_directory.h */
	uint32_t buffer; /* bytes on their way in one direction; 0: 262144 */
	const struct fg_wire_directory *directory; /* stays valid; NULL: fg_directory.h */
};

/* Hosts named "host1" .., all connections up. NULL: the defaults. */
struct fg_wire *fg_wire_create(const struct fg_wire_config *config);
void fg_wire_destroy(struct fg_wire *wire);
struct fg_host *fg_wire_host(struct fg_wire *wire, unsigned int host);
/* Environment of its connections, for connections that tests create (fg_malformed.c). */
struct fg_link_env *fg_wire_link_env(struct fg_wire *wire);
/* Return: host @host's record of host @other. */
struct pvr_host *fg_wire_remote_host(struct fg_wire *wire, unsigned int host, unsigned int other);

/* See fg_directory_keep(). */
void fg_wire_keep_gids(struct fg_wire *wire, unsigned int host, bool keeps);
/*
 * Replace the host's engine by a new one without a name and without adapters. All connections of
 * the host end; the host and its peers connect again where a connection was up.
 */
void fg_wire_renew(struct fg_wire *wire, unsigned int host);

/* Runs engines and streams until all are idle. Never moves the clocks. */
void fg_wire_run(struct fg_wire *wire);
/* One round: each host's workers, then each connection once. Return: whether anything was done. */
bool fg_wire_step(struct fg_wire *wire);
void fg_wire_steps(struct fg_wire *wire, uint32_t n);
/* The connections of one host once, and what the directory tells it. Return: as above. */
bool fg_wire_pump(struct fg_wire *wire, unsigned int host);
/* As fg_advance() and fg_settle(), for all hosts. */
void fg_wire_advance(struct fg_wire *wire, uint64_t ns);
uint64_t fg_wire_settle(struct fg_wire *wire, uint64_t ns);

/*
 * With threads: one of each host serves its connections, beside a worker pool for its
 * workers (fg_worker_pool.h), which is started before and stopped after. Meanwhile connections may
 * be cut and mended; nothing else of this may be called.
 */
void fg_wire_start(struct fg_wire *wire);
void fg_wire_stop(struct fg_wire *wire);

/* ---------------------------------------------------------------------- streams */

/* Limits the bytes of one send or receive call; 0: limited by room only. */
void fg_wire_limit(struct fg_wire *wire, size_t send, size_t recv);
/* Of connections that are opened from now on. */
void fg_wire_chunk(struct fg_wire *wire, uint32_t chunk);
/* Bytes arrive @ns after they are sent. */
void fg_wire_delay(struct fg_wire *wire, uint64_t ns);
/* While @hold, no byte from @from arrives at @to, neither requests nor answers. */
void fg_wire_hold(struct fg_wire *wire, unsigned int from, unsigned int to, bool hold);

/*
 * The outgoing connection of @from to @to breaks, and both ends are closed. Bytes in flight
 * are lost, also received bytes that are unread. fg_wire_mend() opens a new connection.
 */
void fg_wire_cut(struct fg_wire *wire, unsigned int from, unsigned int to, unsigned int slot);
void fg_wire_mend(struct fg_wire *wire, unsigned int from, unsigned int to, unsigned int slot);
bool fg_wire_is_up(struct fg_wire *wire, unsigned int from, unsigned int to, unsigned int slot);
/*
 * Adds or removes another kind of pipe (PVR_PIPE_VERBS) of @from to @to, in slot 0. The pipe
 * uses the same streams; tests check by its kind which path is chosen.
 */
void fg_wire_verbs(struct fg_wire *wire, unsigned int from, unsigned int to, bool up);
bool fg_wire_verbs_is_up(struct fg_wire *wire, unsigned int from, unsigned int to);
/* The rules of its NICs, and the counters of a host's NICs. */
struct fg_nic_rules *fg_wire_nics(struct fg_wire *wire);
struct fg_nic_stats *fg_wire_nic(struct fg_wire *wire, unsigned int host);
/* Starts the reads that were requested, without waiting for their end. */
void fg_wire_nics_work(struct fg_wire *wire);
/* Counters since the last call. Nothing may be exposed, and no thread may run. */
struct fg_nic_stats fg_wire_nic_since(struct fg_wire *wire, unsigned int host);
/* Bytes in flight of requests from @from to @to, of all slots. */
size_t fg_wire_in_flight(struct fg_wire *wire, unsigned int from, unsigned int to);
/* Connections that an engine has closed because of invalid input. */
unsigned int fg_wire_refused(const struct fg_wire *wire);
/* The reason of the last one. */
const char *fg_wire_why(const struct fg_wire *wire);

/* -------------------------------------------------------------------- directory */

/*
 * Each host receives the announcements of the others at once. While off, no host does:
 * resolve() is counted but gets no reply until the directory is on again.
 */
void fg_wire_directory(struct fg_wire *wire, bool on);
/* Counters of a host: queries, reported moves, requested connections. */
unsigned int fg_wire_resolves(const struct fg_wire *wire, unsigned int host);
unsigned int fg_wire_moves(const struct fg_wire *wire, unsigned int host);
unsigned int fg_wire_wants(const struct fg_wire *wire, unsigned int host);

struct fg_located {
	unsigned int count;
	struct pvr_host *host;
	char fabric[PVR_NAME_MAX];
	uint8_t gid[16];
	uint8_t gid_type;
};

/* The last answer to GID_QUERY that a host has got. */
const struct fg_located *fg_wire_located(const struct fg_wire *wire, unsigned int host);

#endif /* FG_WIRE_H */
