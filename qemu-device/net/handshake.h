/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The handshake of a connection: connect, TLS, HELLO and its answer, each followed by a
 * VERBS_QP if the HELLO announces one. No later byte is read: it is for the engine.
 */
#ifndef PVR_NET_HANDSHAKE_H
#define PVR_NET_HANDSHAKE_H

#include "net/hello.h"
#include "net/stream.h"

enum pvr_handshake_result {
	PVR_HANDSHAKE_GO_ON, /* private */
	PVR_HANDSHAKE_WAIT, /* for an event of the socket */
	PVR_HANDSHAKE_HELLO, /* incoming: HELLO is here, call pvr_handshake_answer() */
	PVR_HANDSHAKE_DONE,
	PVR_HANDSHAKE_FAILED,
};

enum pvr_handshake_step {
	PVR_STEP_CONNECT,
	PVR_STEP_SECURE,
	PVR_STEP_SEND,
	PVR_STEP_READ,
	PVR_STEP_DECIDE,
	PVR_STEP_DONE,
	PVR_STEPS,
};

struct pvr_handshake {
	bool outgoing;
	enum pvr_handshake_step step;
	size_t pos; /* bytes sent or read of the current frame */
	unsigned int num_out, num_sent, num_got; /* numbers of frames */
	union pvr_any_frame out[2], in[2];
};

/* @hello: sent first; NULL for the side that receives HELLO first. */
void pvr_handshake_init(struct pvr_handshake *handshake, const struct pvr_hello *hello);
/* Runs until it would block. PVR_HANDSHAKE_FAILED: @err is filled. */
enum pvr_handshake_result pvr_handshake_run(struct pvr_handshake *handshake,
					    struct pvr_stream *stream, struct pvr_error *err);
void pvr_handshake_answer(struct pvr_handshake *handshake, const struct pvr_hello *hello);
/*
 * Adds a frame behind HELLO; call after pvr_handshake_init() or before
 * pvr_handshake_answer().
 */
void pvr_handshake_add(struct pvr_handshake *handshake, const union pvr_any_frame *frame);
/* Return: the peer's VERBS_QP, or NULL. */
const union pvr_any_frame *pvr_handshake_queue_pair(const struct pvr_handshake *handshake);
const char *pvr_handshake_step_name(enum pvr_handshake_step step);

#endif /* PVR_NET_HANDSHAKE_H */
