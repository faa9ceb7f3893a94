/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A connection's first steps: connect, TLS, HELLO and its answer, each with a QUEUE_PAIR behind
 * it if the HELLO says so. Not a byte more than that
 * is read, as what follows is the engine's.
 */
#ifndef PVR_NET_HANDSHAKE_H
#define PVR_NET_HANDSHAKE_H

#include "net/hello.h"
#include "net/stream.h"

enum pvr_handshake_result {
	PVR_HANDSHAKE_GO_ON, /* private */
	PVR_HANDSHAKE_WAIT, /* for the socket */
	PVR_HANDSHAKE_HELLO, /* who dialled has said HELLO: pvr_handshake_answer(), or refuse */
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
	size_t pos; /* bytes of the frame that is being sent or read */
	unsigned int num_out, num_sent, num_got; /* frames */
	union pvr_any_frame out[2], in[2];
};

/* @hello: what we say; NULL for who waits for the other's first. */
void pvr_handshake_init(struct pvr_handshake *handshake, const struct pvr_hello *hello);
/* As far as it goes without waiting. FAILED: with @err filled. */
enum pvr_handshake_result pvr_handshake_run(struct pvr_handshake *handshake,
					    struct pvr_stream *stream, struct pvr_error *err);
void pvr_handshake_answer(struct pvr_handshake *handshake, const struct pvr_hello *hello);
/* To be sent behind the HELLO; after init() or before answer(). */
void pvr_handshake_add(struct pvr_handshake *handshake, const union pvr_any_frame *frame);
/* The other side's QUEUE_PAIR; NULL: it has none. */
const union pvr_any_frame *pvr_handshake_queue_pair(const struct pvr_handshake *handshake);
const char *pvr_handshake_step_name(enum pvr_handshake_step step);

#endif /* PVR_NET_HANDSHAKE_H */
