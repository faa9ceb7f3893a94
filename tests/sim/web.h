/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What is between hosts and etcd: http.h of the directory, whose requests and answers take time and
 * get lost. A request that has left its host may be executed after the host has given it up, and an
 * answer may get lost after the execution.
 */
#ifndef SIM_WEB_H
#define SIM_WEB_H

#include "directory/http.h"
#include "etcd.h"
#include "fg_wire.h"
#include "rng.h"

struct sim_web_rules {
	uint64_t delay, jitter; /* ns, one way */
	/* Of 1,000 requests: not executed; executed, and the answer is lost; the same with status 503. */
	uint32_t lose_requests, lose_answers, refuse;
	bool down; /* etcd does not run */
	bool silent; /* nothing arrives, and no error comes back */
	bool cut[FG_WIRE_HOSTS]; /* hosts that do not reach it */
};

struct sim_web {
	struct sim *sim;
	struct sim_etcd *etcd;
	struct pvr_loop *loop; /* of etcd */
	struct sim_web_rules rules, calm; /* of now, and without a disturbance */
	struct sim_rng rng;
	LIST_HEAD(, pvr_http) clients;
	LIST_HEAD(, sim_web_request) requests; /* on their way to etcd */
};

/* The owner of a loop that pvr_http_create() gets. */
struct sim_web_end {
	struct sim_web *web;
	unsigned int host;
};

void sim_web_init(struct sim_web *web, struct sim *sim);
/* There are no clients. */
void sim_web_exit(struct sim_web *web);
/* All connections of this host, or of all if it is FG_WIRE_HOSTS, end: streams, and POSTs without an answer. */
void sim_web_end_connections(struct sim_web *web, unsigned int host);

#endif /* SIM_WEB_H */
