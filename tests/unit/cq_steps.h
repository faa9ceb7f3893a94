/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A guest that arms and reads the receive CQ of b, step by step, and the notifications it gets. */
#ifndef UNIT_CQ_STEPS_H
#define UNIT_CQ_STEPS_H

#include "common.h"

#define T_CQ_STEPS 20
#define T_LATE \
	(50 * FG_US) /* until an unread completion is notified that may have been armed for */

enum t_cq_step {
	END,
	/* Doorbells. */
	ARM,
	ARM_SOLICITED,
	ARM_BOTH,
	POLL_BELL,
	/* Stored to a mapped UAR, and overwritten before the device reads it. */
	LOST_ARM, /* by a poll of the same CQ */
	ARM_LOST_TO_OTHER, /* by a poll of the send CQ */
	OTHER_POLL_BELL,
	/* PVR_EXT_CQ_ARM_DBREC; a doorbell follows if something is unread, and only then. */
	WORD_ANY,
	WORD_SOLICITED,
	WORD_BOTH,
	WORD_NONE,
	/* Completions at b. */
	MESSAGE,
	SOLICITED,
	FLUSHED, /* ends the connection */
	MANY_READ, /* 40 messages, each of which the guest reads */
	/* Reads one completion, or all, in their order. */
	READ_ONE,
	READ_ALL,
	/* To 16 entries; refused as too small for what is unread. */
	RESIZE,
	BAD_RESIZE,
	/* PVR_EXT_CQ_MODERATION: three completions or T_LATE; any number and T_LATE; none. */
	MODERATE_THREE,
	MODERATE_PERIOD,
	MODERATE_NOT,
	/* The clock. */
	NEARLY_LATE, /* T_LATE - 1 */
	ONE_NS,
	LATE,
	MUCH_LATER,
	/* Whether the arm record says that all completions were notified. */
	IS_NOTIFIED,
	IS_NOT_NOTIFIED,
	/* The step before has caused one notification. No other step may cause any. */
	NOTIFIES,
};

struct t_cq_case {
	const char *label;
	enum t_cq_step steps[T_CQ_STEPS];
};

/* The ends are connected, and have exchanged nothing. */
void t_run_cq_case(struct t_env *env, const struct t_cq_case *row);

#endif /* UNIT_CQ_STEPS_H */
