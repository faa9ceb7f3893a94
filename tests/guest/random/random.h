/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The parts of pvr_random. */
#ifndef PVR_RANDOM_H
#define PVR_RANDOM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <infiniband/verbs.h>

#include "die.h"

/* ------------------------------------------------------------------------------ chance.c */

struct chance {
	uint64_t state;
};

struct chance chance_of(uint64_t seed, uint64_t stream);
uint64_t draw(struct chance *chance);
/* Return: 0 to @n - 1. */
uint32_t below(struct chance *chance, uint32_t n);
bool one_in(struct chance *chance, uint32_t n);
/* A number that is zero, small, at a boundary, or any. */
uint64_t odd_number(struct chance *chance);
/* Mostly 0 to @n - 1, sometimes an odd number. */
uint32_t mostly_below(struct chance *chance, uint32_t n);

/* ------------------------------------------------------------------------------- verbs.c */

/* Calls with counters, in the order of the report. */
/* clang-format off */
#define VERBS(X) \
	X(open_device) X(import_device) X(import_pd) X(import_mr) X(query) X(alloc_pd) \
	X(dealloc_pd) X(create_channel) X(destroy_channel) X(create_cq) X(resize_cq) \
	X(modify_cq) X(req_notify_cq) X(poll_cq) X(get_cq_event) X(destroy_cq) \
	X(create_srq) X(modify_srq) X(query_srq) X(post_srq_recv) X(destroy_srq) \
	X(open_xrcd) X(close_xrcd) X(create_qp) X(open_qp) X(modify_qp) X(query_qp) \
	X(post_send) X(post_recv) X(wr_complete) X(destroy_qp) X(attach_mcast) \
	X(detach_mcast) X(reg_mr) X(reg_dmabuf_mr) X(reg_dm_mr) X(rereg_mr) X(dereg_mr) \
	X(advise_mr) X(alloc_mw) X(bind_mw) X(dealloc_mw) X(create_ah) X(destroy_ah) \
	X(alloc_dm) X(copy_dm) X(free_dm) X(get_async_event) X(raw_write) X(raw_ioctl) \
	X(map) X(unmap) X(move) X(advise) X(protect) X(truncate) X(touch) X(share) X(fork)
/* clang-format on */

enum verb {
#define VERB_ENUM(name) VERB_##name,
	VERBS(VERB_ENUM)
#undef VERB_ENUM
		VERB_NUM
};

/* What all processes share. */
struct tally {
	uint64_t ok[VERB_NUM], refused[VERB_NUM];
	uint64_t completions, failures; /* requests that completed with success, or an error */
	uint32_t qpns[64]; /* of any process, for peers */
	struct {
		uint32_t rkey;
		uint32_t bytes;
		uint64_t address;
	} places[64]; /* of any process, which is at the same addresses */
};

extern struct tally *tally; /* shared memory */

/* Return: whether @err is 0. */
bool count(enum verb verb, int err);
/* For calls that return a pointer. */
void *count_made(enum verb verb, void *made);
void tally_print(void);

/* ------------------------------------------------------------------------------- actor.c */

enum kind {
	KIND_PD,
	KIND_CHANNEL,
	KIND_CQ,
	KIND_SRQ,
	KIND_XRCD,
	KIND_QP,
	KIND_MR,
	KIND_MW,
	KIND_AH,
	KIND_DM,
	KIND_NUM
};

#define SLOTS 4

/* An object of libibverbs, which its users read-lock: it must not be freed meanwhile. */
struct slot {
	pthread_rwlock_t lock;
	void *object;
	uint32_t extra; /* of a QP: its type; of a CQ: whether it has a channel */
};

/*
 * A process with a context and some threads. A hostile one also mutates commands, forks and shares
 * its context. That breaks its own libibverbs, so only a hostile process may crash.
 */
struct actor {
	struct ibv_device *device;
	struct ibv_context *ctx;
	struct ibv_device_attr dev;
	union ibv_gid gid;
	int gid_index;
	struct slot slots[KIND_NUM][SLOTS];
	bool is_hostile, is_child;
	bool is_over;
	uint32_t children;
	int mail; /* a socket that carries contexts */
};

struct worker {
	struct actor *actor;
	struct chance chance;
	pthread_t thread;
};

/* The worker of this thread, or NULL. */
extern _Thread_local struct worker *me;

/* $RDMA_DEV, else the first. Found once, because that loads the providers. */
struct ibv_device *device_find(void);
/* Run as the process number @number until SIGKILL, or @seconds are over. */
void actor_run(struct ibv_device *device, uint64_t seed, uint64_t number, double seconds, int mail)
	__attribute__((noreturn));

/* Return: a read-locked object, to be put back; NULL if there is none. */
struct slot *slot_use(struct worker *worker, enum kind kind);
/* Return: a write-locked slot, with or without an object; NULL if it is in use. */
struct slot *slot_change(struct worker *worker, enum kind kind);
void slot_put(struct slot *slot); /* NULL: nothing */

/* --------------------------------------------------------- what workers do, each with a table */

typedef void deed(struct worker *worker);

void deed_domain(struct worker *worker); /* domains.c: PDs, XRC domains, AHs, queries, events */
void deed_queue(struct worker *worker); /* queues.c: channels, CQs, SRQs */
void deed_pair(struct worker *worker); /* pairs.c: QPs but for their requests */
void deed_post(struct worker *worker); /* posts.c: requests */
void deed_region(struct worker *worker); /* regions.c: MRs, MWs, device memory */
void deed_memory(struct worker *worker); /* memory.c */
void deed_share(struct worker *worker); /* sharing.c: fork, contexts of others */
void deed_raw(struct worker *worker); /* raw.c: commands */

/* ------------------------------------------------------------------------------ memory.c */

#define PAGE 4096u

void memory_init(struct worker *worker);
/* An address in an area, or sometimes elsewhere, where no program has memory. */
uint64_t some_address(struct chance *chance);
/* Most often within one area. */
uint64_t some_length(struct chance *chance);
/* Memory that is always there, of SAFE_BYTES, below all areas. */
#define SAFE_BYTES 16384u
extern uint8_t *safe_memory;

/* ------------------------------------------------------------------------------- posts.c */

/* Mostly in a region of this process. */
struct ibv_sge some_sge(struct worker *worker);
/* Let peers find memory; a region of all addresses has any. */
void place_publish(struct worker *worker, uint32_t rkey, uint64_t address, uint64_t bytes);

/* ------------------------------------------------------------------------------ domains.c */

void some_path(struct worker *worker, struct ibv_ah_attr *attr);

/* ------------------------------------------------------------------------------- raw.c */

/* Until it is set, no command is mutated. */
extern int raw_fd;

/* ----------------------------------------------------------------------------- sharing.c */

/* Return: a context that another process has sent, or NULL. */
struct ibv_context *context_receive(struct worker *worker);

#endif
