/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A connection between two hosts of a wire (fg_wire.h), with the streams that it is made of:
 * one end is the requester's, which dials, the other the responder's.
 */
#ifndef FG_LINK_H
#define FG_LINK_H

#include <pthread.h>
#include <sys/queue.h>

#include "fg_host.h"
#include "fg_nic.h"
#include "fg_stream.h"
#include "pipe.h"

/* Environment that all connections of a wire share. */
struct fg_link_env {
	struct fg_netem netem;
	struct fg_nic_rules nics;
	uint32_t buffer; /* bytes on their way in one direction */
	uint32_t chunk;
	bool old; /* none of the protocol's features */
	bool no_refer; /* no REFERRAL: before PVR_HELLO_F_REFER */
	bool no_address; /* no ADDRESS: before PVR_HELLO_F_ADDRESS */
	bool no_load; /* no numbers of loads: before PVR_HELLO_F_LOAD */
	const struct fg_host *clock;
	LIST_HEAD(, fg_malformed) malformed; /* the peers that tests play */
	pthread_mutex_t lock; /* protects what follows */
	unsigned int refused;
	char why[200]; /* the last one */
};

/* The requester's end or the responder's; used by its own host only. */
struct fg_link_end {
	struct pvr_host *host; /* its record of the other host */
	struct fg_nic_stats *stats; /* of its NICs */
	struct fg_nic *nic;
};

struct fg_link {
	struct fg_link_env *env;
	enum pvr_pipe_kind kind;
	unsigned int slot;
	bool exposes; /* with NICs that read */
	struct fg_stream request, answer;
	struct fg_nic_pair nics; /* the requester's, the responder's */
	bool made; /* streams and NICs exist */
	struct fg_link_end requester, responder;
	bool out_up, out_more; /* the requester's connection */
	struct pvr_rsp_conn *in; /* NULL: none */
	enum pvr_input in_state;
	bool in_read; /* the NIC's read that it waited for is done */
	uint64_t stalled; /* until then */
};

/* Opens both ends, with new streams. @link must be closed. */
void fg_link_open(struct fg_link *link);
/* Closes both ends; bytes in flight are lost. */
void fg_link_close(struct fg_link *link);
/* Closes both ends and frees the streams. */
void fg_link_exit(struct fg_link *link);

/* Does the pending work of one end. Return: whether there was any. */
bool fg_link_pump_out(struct fg_link *link);
bool fg_link_pump_in(struct fg_link *link);
/* Does the pending reads of the NICs, independent of the ends. */
void fg_link_nics_work(struct fg_link *link);
/* Return: the next deadline, UINT64_MAX: none. */
uint64_t fg_link_deadline(struct fg_link *link);

/* ---------------------------------------------------------- one end without an engine */

/* The requester's end only, with new streams. */
void fg_link_open_out(struct fg_link *link);
/* The responder's end only, with new streams. */
void fg_link_open_in(struct fg_link *link, bool piggyback_ack);
/* Sends pending output of the responder. May close its end. */
bool fg_link_in_output(struct fg_link *link);
bool fg_link_in_is_ready(struct fg_link *link);
/* Handles the received frames. Return: false if one is refused; the end stays open. */
bool fg_link_in_take(struct fg_link *link);

#endif /* FG_LINK_H */
