/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Tables of nonsense, and the objects that it is done to. */
#ifndef PVR_ERRNO_H
#define PVR_ERRNO_H

#include "rdma.h"

/* More than any errno: the call failed, but named another request than the bad one. */
#define WRONG_BAD_WR 10000

struct lab {
	struct node node;
	struct ibv_pd *other_pd;
	char *memory;
	struct ibv_mr *mr, *other_mr; /* of the memory, in node.pd and other_pd */
	struct ibv_mw *mw1, *mw2;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *reset, *init; /* RC, in these states */
	struct ibv_qp *with_srq; /* RC, in RESET */
	struct ibv_qp *rc, *ud; /* in RTS; the RC QP is its own peer */
	struct ibv_qp *error; /* RC, in this state: takes requests and flushes them */
};

struct check {
	const char *verb;
	const char *what;
	int (*run)(struct lab *lab, const struct check *check);
	int err; /* what it has to return */
	long number; /* for run(), as is the next */
	unsigned int flags;
};

/* Each ends with a check without run(). */
extern const struct check device_checks[];
extern const struct check memory_checks[];
extern const struct check queue_checks[];
extern const struct check qp_checks[];
extern const struct check post_checks[];

#endif
