/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An ACK that is piggybacked, with requests that go the other way anyway.
 *
 * DOC: piggybacked
 *
 * A frame by itself costs as much as a message. Guests that answer each other ask in both
 * directions, in connections of either host's: so a requester here takes along what a
 * responder here owes to the same host. That is piggybacked only. The ACK follows in its own
 * connection, later and for more messages at once, so nothing depends on a connection that
 * may break with it.
 */
#ifndef PVR_PIGGYBACK_H
#define PVR_PIGGYBACK_H

#include "core/lock.h"
#include "path/pipe/fabric_ids.h"
#include "path/pipe/frame.h"

struct pvr_rsp_conn;

/* Of a host; all zero in the beginning. */
struct pvr_piggyback {
	struct pvr_lock lock; /* inside that of an outgoing connection, and nothing inside it */
	bool waits; /* for somebody who takes it along; read without the lock, too */
	const struct pvr_rsp_conn *from; /* who has offered it; NULL: nobody. Never followed */
	struct pvr_frame_ack frame;
	char fabric[PVR_FRAME_FABRIC_MAX];
};

/* Of several who offer one the last counts. */
void pvr_piggyback_offer(struct pvr_piggyback *piggyback, const struct pvr_rsp_conn *from,
			 const char *fabric, const struct pvr_frame_ack *frame);
/* What @from has offered last is on its way. */
bool pvr_piggyback_is_sent(struct pvr_piggyback *piggyback, const struct pvr_rsp_conn *from);
void pvr_piggyback_withdraw(struct pvr_piggyback *piggyback, const struct pvr_rsp_conn *from);

/* One for a connection with these fabrics. Return: false if there is none. */
bool pvr_piggyback_take(struct pvr_piggyback *piggyback, struct pvr_fabric_ids *fabrics,
			union pvr_any_frame *any);

#endif /* PVR_PIGGYBACK_H */
