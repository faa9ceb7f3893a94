/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The parts of pvr_verify. */
#ifndef PVR_VERIFY_H
#define PVR_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "plan.h"
#include "rdma.h"

/* Common parameters: the client's request, limited to the abilities of both devices. */
struct params {
	char magic[8];
	uint64_t seed;
	uint32_t iterations;
	uint32_t bytes_max;
	uint32_t depth;
	uint32_t max_sge;
	uint32_t max_sge_read;
	uint32_t mtu;
	uint32_t events;
	uint32_t offers; /* 1 << enum offer */
	uint32_t inline_max;
	uint32_t cpus; /* the CPUs' own atomics take part */
};

#define PARAMS_MAGIC "pvrvrfy3"

/* Optional features of device, driver and provider. */
enum offer {
	OFFER_UC,
	OFFER_UD,
	OFFER_INLINE,
	OFFER_ATOMICS,
	OFFER_SRQ,
	OFFER_MW1,
	OFFER_MW2,
	OFFER_NUM
};

/* Two regions that meet in the middle of the memory, and one of all of it. */
enum region { REGION_LOW, REGION_HIGH, REGION_ALL, REGION_NUM };

/* One end's parameters for the other; the machine type is the same on both sides. */
struct contact {
	struct address address;
	uint64_t memory;
	uint32_t rkeys[REGION_NUM];
};

/* Operations whose completions an end still waits for, oldest first. */
struct waiting {
	int next, num;
	int ops[PLAN_MAX_OPS];
};

struct end {
	int side; /* 0 or 1: which operations of a plan it posts */
	uint8_t *memory, *expected;
	void *mapping;
	size_t mapped, size;
	uint32_t split; /* offsets from here on belong to the second region */
	struct ibv_mr *mrs[REGION_NUM];
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	bool shares; /* CQ and QP are the other end's */
	struct ibv_ah *ah;
	unsigned int events;
	struct contact peer;
	struct waiting sends, receives;
};

struct run {
	struct node node;
	struct params params;
	struct shape shape;
	struct plan plan;
	const char *phase;
	enum ibv_qp_type type;
	uint64_t round;
	struct ibv_comp_channel *channel; /* of the ends' CQs, or NULL */
	struct end ends[2];
	int first, last; /* the ends in this process: 0 and 1, or one of them */
	int fd; /* to the other process; -1: both ends are here */
	uint64_t operations, bytes;
	uint64_t kinds[KIND_NUM], inlined; /* of the phase's operations */
	int most_sges;
	uint32_t errors;
};

/* A kind of QP and of operations. */
struct phase {
	const char *name;
	enum ibv_qp_type type;
	uint32_t kinds;
	bool edges; /* buffers around the starts of pages */
	bool self; /* one QP, connected to itself */
};

struct options {
	struct params params;
	bool both_ends_here, skip_windows, reliable;
	const char *port, *peer;
};

static inline uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline bool is_here(const struct run *run, int side)
{
	return run->first <= side && side <= run->last;
}

/* options.c: exits with status 2 when they make no sense. */
struct options parse_options(int argc, char **argv);

/* report.c: an error, of which the first ones are printed. */
void complain(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, and the end of the process. */
void fail(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
/* "op 3 (RDMA_READ of 17 bytes from end 0)", until the next call */
const char *describe(const struct run *run, int index);
/* The first wrong byte of an end's memory, and the number of wrong ones. */
void report_memory(struct run *run, const struct end *end);

/* exchange.c; all of these are answered by the same call at the peer */
void agree(struct run *run, bool client);
void introduce_ends(struct run *run);
/* Both sides are at the same place. Tells each what the other has found wrong. */
void meet(struct run *run);
/* Each end here gets in theirs[end] what the other end has in mine[]. */
void trade(struct run *run, const void *const mine[2], void *const theirs[2], size_t len);

/* memory.c */
void open_memory(struct run *run, struct end *end);
void close_memory(struct end *end);
/* A region that an offset in an end's memory, its own or the peer's, belongs to. */
enum region region_of(const struct end *end, uint32_t offset);
/* Where the data is before the round, and where it must be after it. */
void prepare_memory(struct run *run, struct end *end);
/* The data of inline sends may be overwritten as soon as they are posted, and is. */
void spoil_inlined(struct run *run, struct end *end);
void verify_memory(struct run *run, struct end *end);

/* end.c; shared: an end whose queues this one uses, or NULL */
void open_end(struct run *run, int side, struct end *shared);
void connect_end(struct run *run, struct end *end);
void close_end(struct end *end);

/* post.c */
uint64_t work_id(const struct run *run, int side, bool receive, int index);
void post_receives(struct run *run, struct end *end);
void post_sends(struct run *run, struct end *end);

/* complete.c: dies when nothing completes for long. */
void wait_for_all(struct run *run);

/* phase.c */
void run_phase(struct run *run, const struct phase *phase);

/* offers.c: what the device of this node has, as 1 << enum offer. */
uint32_t probe_offers(struct run *run);
bool offered(const struct run *run, enum offer offer);
void print_not_offered(const struct run *run);

/* srq.c, contend.c, windows.c */
void run_srq(struct run *run);
void run_contention(struct run *run);
void run_windows(struct run *run, enum ibv_mw_type type);

#endif
