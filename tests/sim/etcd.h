/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A simulated etcd of one member: keys with revisions, transactions, leases, watches, its history and
 * compaction, and its JSON. Only what pvrdmad calls: anything else ends the run.
 *
 * It executes at once what it gets. See web.h for delays and losses.
 */
#ifndef SIM_ETCD_H
#define SIM_ETCD_H

#include <stddef.h>
#include <stdint.h>

#include "directory/etcd_text.h"
#include "loop.h"

struct sim;
struct sim_etcd;
struct sim_etcd_stream; /* of watches */

/* @loop: for the end of leases */
struct sim_etcd *sim_etcd_create(struct sim *sim, struct pvr_loop *loop);
void sim_etcd_destroy(struct sim_etcd *etcd);

/* Executes a POST. @answer: gets the body, to be freed. Return: the status of HTTP. */
long sim_etcd_post(struct sim_etcd *etcd, const char *path, const char *body, size_t len,
		   struct pvr_text *answer);

/* @line: called for each line of etcd, which ends with a newline. */
struct sim_etcd_stream *
sim_etcd_stream_open(struct sim_etcd *etcd,
		     void (*line)(void *opaque, const char *text, size_t len), void *opaque);
/* A line of the client. */
void sim_etcd_stream_take(struct sim_etcd_stream *stream, const char *line, size_t len);
void sim_etcd_stream_close(struct sim_etcd_stream *stream);

/* No lease ends meanwhile. All streams are closed. */
void sim_etcd_stop(struct sim_etcd *etcd);
/* It has a new leader, so each lease has its whole time again. */
void sim_etcd_start(struct sim_etcd *etcd);
/* While it is stopped: it loses all data, or takes the last backup in their place if it has one. */
void sim_etcd_empty(struct sim_etcd *etcd, bool same_cluster);
void sim_etcd_back_up(struct sim_etcd *etcd);
bool sim_etcd_restore(struct sim_etcd *etcd, bool same_cluster);
/* Return: whether data were lost so far, or a lease ended. */
bool sim_etcd_has_lost(const struct sim_etcd *etcd);
/* Forgets its history. */
void sim_etcd_compact(struct sim_etcd *etcd);

#endif /* SIM_ETCD_H */
