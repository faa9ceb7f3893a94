/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Piggybacked ACKs: sent with requests to the same host.
 *
 * DOC: piggybacked ACKs
 *
 * * A frame of its own costs as much as a message. Guests that exchange messages send
 *   requests in both directions, by connections of both hosts.
 * * A req_conn that sends requests also carries the pending ACK of a rsp_conn of the same
 *   host.
 * * The ACK is sent again by its own rsp_conn, later and for more messages at once. So
 *   nothing is lost if the req_conn breaks.
 *
 *    host A                                   host B
 *    req_conn  -- REQUEST ------------------> rsp_conn
 *    rsp_conn <-- REQUEST, piggybacked ACK -- req_conn
 *    req_conn <-- ACK, cumulative ----------- rsp_conn
 */
#ifndef PVR_PIGGYBACK_H
#define PVR_PIGGYBACK_H

#include "core/lock.h"
#include "path/pipe/fabric_ids.h"
#include "path/pipe/frame.h"

struct pvr_rsp_conn;

/* State of a host. Initially all zero. */
struct pvr_piggyback {
	struct pvr_lock lock; /* taken inside the lock of a req_conn; no lock is taken inside it */
	bool waits; /* an ACK waits for a req_conn; also read without the lock */
	const struct pvr_rsp_conn *from; /* rsp_conn that offered the ACK, or NULL; compared only */
	struct pvr_frame_ack frame;
	char fabric[PVR_FRAME_FABRIC_MAX];
};

/* Offers an ACK. It replaces the ACK of an earlier offer. */
void pvr_piggyback_offer(struct pvr_piggyback *piggyback, const struct pvr_rsp_conn *from,
			 const char *fabric, const struct pvr_frame_ack *frame);
/* Return: true if the last ACK that @from offered has been sent. */
bool pvr_piggyback_is_sent(struct pvr_piggyback *piggyback, const struct pvr_rsp_conn *from);
void pvr_piggyback_withdraw(struct pvr_piggyback *piggyback, const struct pvr_rsp_conn *from);

/*
 * Takes the ACK for a connection with these fabric IDs. Return: false if there is no ACK,
 * or its fabric is not declared.
 */
bool pvr_piggyback_take(struct pvr_piggyback *piggyback, struct pvr_fabric_ids *fabrics,
			union pvr_any_frame *any);

#endif /* PVR_PIGGYBACK_H */
