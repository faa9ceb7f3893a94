/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A path between adapters of one engine that loses and delays requests.
 *
 * It stands before the local path in the engine's table. Its rules and counters are global: a program of unit
 * tests has one engine at a time, and struct pvr_path_ops has no pointer for its owner.
 */
#ifndef UNIT_LOSSY_PATH_H
#define UNIT_LOSSY_PATH_H

#include "rdma/path.h"

struct lossy_path {
	/* Rules. */
	unsigned int lose_every; /* every Nth request, or piece of one, is lost; 0: none */
	unsigned int delay_every; /* ditto, is executed delay_ns later */
	uint64_t delay_ns;
	bool unreachable; /* resolve() returns PVR_RESOLVE_NO */
	bool keeps_qps; /* detach() returns false */
	bool busy; /* run_sq() returns PVR_QUANTUM_BUSY, without a try of a lock */
	/* Counters. */
	unsigned int sent, lost, delayed; /* requests, or pieces of requests */
	unsigned int rnr; /* RNR NAKs */
	unsigned int detached, stopped, closed; /* calls of these functions */
};

extern struct lossy_path lossy_path;

/*
 * Reset lossy_path and put this path before the others of @engine. Call it before the first
 * adapter is created.
 */
void lossy_path_install(struct pvr_engine *engine);

#endif /* UNIT_LOSSY_PATH_H */
