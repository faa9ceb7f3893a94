/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Two hostile guests that do anything, at random but repeatably.
 *
 * Each has an end that is mostly connected to the other's, and creates and destroys more
 * objects around it. Seven of eight values are plausible: otherwise the guests would not
 * get far. The guests may acknowledge any extensions. Requests for an extension that is not
 * acknowledged must be refused.
 */
#ifndef FG_MONKEY_H
#define FG_MONKEY_H

#include "fake_guest.h"

#define FG_MONKEY_OBJECTS 8

enum fg_kind {
	FG_KIND_UC,
	FG_KIND_PD,
	FG_KIND_MR,
	FG_KIND_CQ,
	FG_KIND_QP,
	FG_KIND_SRQ,
	FG_KIND_NUM,
};

struct fg_monkey {
	struct fg_host *host;
	struct fg_guest *guest[2];
	struct fg_end end[2];
	uint64_t rnd;
	/* Of a fuzzer: choices come from its input instead; NULL: from rnd. */
	uint32_t (*draw)(void *opaque);
	void *opaque;
	bool keeps_ends; /* fg_monkey_step() never begins with new ends */
	bool has_srq; /* the ends receive through these */
	struct fg_srq srq[2];
	uint32_t handle[2][FG_KIND_NUM][FG_MONKEY_OBJECTS]; /* some are stale */
	uint32_t fast_key[2]; /* of a region for fast registration */
	uint32_t window_key[2];
	uint32_t demand_key[2]; /* of a region whose pages come and go; 0: none */
	struct fg_buf buf[2];
};

/* The guests are booted. The memory of @m belongs to the caller, its buffers to the guests. */
void fg_monkey_init(struct fg_monkey *m, struct fg_host *host, struct fg_guest *first,
		    struct fg_guest *second, uint64_t seed);
/*
 * Boots both drivers anew and opens ends of @type, with or without SRQs. Dies if the
 * device refuses.
 */
void fg_monkey_open(struct fg_monkey *m, enum pvr_qp_type type, bool has_srq);
/* One random action. Dies if the device does not come to rest. */
void fg_monkey_step(struct fg_monkey *m);
/*
 * Resets both devices, and connects RC ends anew. Dies if the device refuses: no earlier
 * action may have an effect on that.
 */
void fg_monkey_recover(struct fg_monkey *m);

#endif /* FG_MONKEY_H */
