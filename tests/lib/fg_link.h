/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A connection between two hosts of a wire (fg_wire.h), with the streams that it is made of:
 * one end is the requester's, which dials, the other the responder's.
 */
#ifndef FG_LINK_H
#define FG_LINK_H

#include <pthread.h>

#include "fg_host.h"
#include "fg_nic.h"
#include "fg_stream.h"
#include "pipe.h"

/* What all connections of a wire have in common. */
struct fg_link_env {
	struct fg_weather weather;
	struct fg_nic_rules nics;
	uint32_t buffer; /* bytes on their way in one direction */
	uint32_t chunk;
	bool old; /* none of the protocol's features */
	const struct fg_host *clock;
	pthread_mutex_t lock; /* protects what follows */
	unsigned int refused;
	char why[200]; /* the last one */
};

/* Each end is its own host's to use. */
struct fg_link {
	struct fg_link_env *env;
	enum pvr_pipe_kind kind;
	unsigned int slot;
	bool exposes; /* it has NICs that read */
	struct fg_stream request, answer;
	struct fg_nic_pair nics; /* the requester's, the responder's */
	bool made; /* the streams are, and the NICs */
	/* At the requester. */
	struct pvr_host *out_host; /* the responder, as it knows it */
	struct fg_nic_stats *out_nics; /* of its host */
	bool out_up, out_more;
	bool out_wants; /* atomic: to know when more can be sent */
	/* At the responder. */
	struct pvr_host *in_host;
	struct fg_nic_stats *in_nics;
	struct pvr_rsp_conn *in; /* NULL: none */
	enum pvr_input in_state;
	bool in_wants; /* ditto */
	bool in_read; /* what it has waited for by its NIC */
	uint64_t stalled; /* until then */
};

/* Both ends, with new streams. It must be closed. */
void fg_link_open(struct fg_link *link);
/* Both ends see that; what is on its way is lost. */
void fg_link_close(struct fg_link *link);
/* ... and the streams are freed. */
void fg_link_exit(struct fg_link *link);

/* What is to be done at an end. Return: whether anything was. */
bool fg_link_pump_out(struct fg_link *link);
bool fg_link_pump_in(struct fg_link *link);
/* What it does without its ends. */
void fg_link_nics_work(struct fg_link *link);
/* When there is something to be done next; UINT64_MAX: not by time alone. */
uint64_t fg_link_deadline(struct fg_link *link);

/* ---------------------------------------------------------- one end without an engine */

/* The requester's end only, with new streams. */
void fg_link_open_out(struct fg_link *link);
/* The responder's end only, with new streams. */
void fg_link_open_in(struct fg_link *link, bool piggyback_ack);
/* What the responder has to say and did not get rid of yet. May close its end. */
bool fg_link_in_output(struct fg_link *link);
bool fg_link_in_is_ready(struct fg_link *link);
/* It takes what came. Return: false if that was refused; the end is not closed yet. */
bool fg_link_in_take(struct fg_link *link);

#endif /* FG_LINK_H */
