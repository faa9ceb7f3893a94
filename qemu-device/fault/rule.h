/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Faults on demand: the rules of the operator, and their effects on a message.
 *
 * This folder has no queue pairs and no paths: path/fault/ applies the results.
 */
#ifndef PVR_FAULT_RULE_H
#define PVR_FAULT_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "base/error.h"

#define PVR_FAULT_TEXT_MAX 256 /* of a rule, final NUL included */
#define PVR_FAULT_NAME_MAX 64 /* of an adapter, fabric or host, final NUL included */

enum pvr_fault_kind {
	PVR_FAULT_DROP,
	PVR_FAULT_DELAY,
	PVR_FAULT_ERROR,
	PVR_FAULT_RNR,
	PVR_FAULT_RATE,
	PVR_FAULT_CQ_OVERFLOW,
	PVR_FAULT_NAK,
	PVR_FAULT_REORDER,
	PVR_FAULT_DUPLICATE,
	PVR_FAULT_PORT_DOWN,
	PVR_FAULT_STALL,
	PVR_FAULT_CORRUPT,
	PVR_FAULT_RECV_ERROR,
	PVR_FAULT_KINDS,
};

/* The messages that a rule matches. An empty name and QPN 0 match all. */
struct pvr_fault_match {
	char fabric[PVR_FAULT_NAME_MAX];
	char from[PVR_FAULT_NAME_MAX]; /* the requester's adapter */
	char to[PVR_FAULT_NAME_MAX]; /* the responder's adapter, or its host if that is another one */
	uint32_t qpn; /* the requester's */
};

struct pvr_fault_rule {
	struct pvr_fault_match match;
	uint32_t kinds; /* bits 1 << enum pvr_fault_kind */
	uint64_t seed;
	uint32_t drop_ppm; /* of a million tries of a message, so many get lost */
	uint32_t reorder_ppm, duplicate_ppm; /* likewise of a million datagrams */
	double corrupt; /* the probability that a bit of payload is inverted; 0: none */
	uint64_t delay_ns, jitter_ns; /* a delay lies between delay - jitter and delay + jitter */
	uint16_t status; /* enum pvrdma_wc_status of the error */
	uint16_t recv_status; /* likewise of the responder's receive request */
	uint64_t after; /* messages of a queue pair before the error, overflow, stall or port-down */
	uint64_t port_down_ns; /* the requester's port is down so long */
	uint64_t rnr_every; /* of so many messages with a receive, one gets an RNR NAK; 0: none */
	bool rnr_always; /* each try of each such message gets one */
	uint64_t nak_every; /* of so many messages, one gets a sequence NAK; 0: none */
	bool nak_always; /* each try of each message gets one */
	uint64_t rate; /* bits per second of a queue pair; 0: no limit */
	char text[PVR_FAULT_TEXT_MAX]; /* as given, for lists */
};

/**
 * pvr_fault_parse() - read a rule
 * @text: words KEY=VALUE with a space between them, see pvrdmactl(8)
 *
 * Return: false with @err filled: a word is unknown, has a bad value, occurs twice or
 * contradicts another one, or the rule has no kind of fault.
 */
bool pvr_fault_parse(struct pvr_fault_rule *rule, const char *text, struct pvr_error *err);

/* @message: with all members set. Return: whether @rule matches it. */
bool pvr_fault_matches(const struct pvr_fault_match *rule, const struct pvr_fault_match *message);
/* Return: whether both match the same messages. */
bool pvr_fault_match_equal(const struct pvr_fault_match *a, const struct pvr_fault_match *b);

/* The messages and random numbers of one queue pair under one rule. */
struct pvr_fault_state {
	uint64_t random;
	uint64_t messages, recvs, requests;
	uint64_t intact; /* bits of payload before the next one that is inverted */
	uint64_t free_at; /* end of the messages so far at the rate, in ns */
};

/*
 * The random numbers depend on the rule and @qpn only, so a program that is run again on
 * the same queue pair numbers gets the same faults.
 */
void pvr_fault_state_init(struct pvr_fault_state *state, const struct pvr_fault_rule *rule,
			  uint32_t qpn);
/*
 * Count a message. Return: whether @rule->after messages came before it. With an error, an
 * overflow or a stall of the rule all later ones have it too, the port goes down once.
 */
bool pvr_fault_is_due(struct pvr_fault_state *state, const struct pvr_fault_rule *rule);
/* Return: whether something happens that happens @ppm times in a million. */
bool pvr_fault_happens(struct pvr_fault_state *state, uint32_t ppm);
/* Return: whether a try of a message gets lost. */
bool pvr_fault_drops(struct pvr_fault_state *state, const struct pvr_fault_rule *rule);
/* Return: the next delay in nanoseconds. */
uint64_t pvr_fault_delay(struct pvr_fault_state *state, const struct pvr_fault_rule *rule);
/* Count a message that consumes a receive request. Return: whether it gets an RNR NAK. */
bool pvr_fault_rnr(struct pvr_fault_state *state, const struct pvr_fault_rule *rule);
/* Count a message of RC. Return: whether its next try gets a NAK for a sequence error. */
bool pvr_fault_seq_nak(struct pvr_fault_state *state, const struct pvr_fault_rule *rule);
/*
 * Add a message of @length bytes to those at the rate of the rule. Return: the time in ns
 * before which it is not sent, or 0. Bursts of up to 100 us are not held.
 */
uint64_t pvr_fault_rate(struct pvr_fault_state *state, const struct pvr_fault_rule *rule,
			uint64_t now, uint64_t length);

/*
 * Count a message of @bits of payload. Set @at to the bits that are inverted, ascending. Return:
 * their number, at most @max; further ones of the message are not.
 */
uint32_t pvr_fault_corrupt(struct pvr_fault_state *state, const struct pvr_fault_rule *rule,
			   uint64_t bits, uint64_t *at, uint32_t max);

#endif /* PVR_FAULT_RULE_H */
