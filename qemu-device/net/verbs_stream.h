/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Bytes over a reliable connection of an RDMA NIC, by SEND and RECEIVE.
 *
 * DOC: credits
 *
 * Each message fills one receive buffer of the other side, which says how many there are.
 * All messages bring, as immediate data, how many messages with bytes in them their sender
 * has taken out of its buffers so far: so many more may come. Who has nothing to send, and
 * half of its buffers to give back, sends a message without bytes, a note; notes need no
 * credit, there are buffers to spare for them. A note that gives nothing back makes no
 * sense, so there are never more of them than messages.
 *
 * DOC: threads
 *
 * As pvr_stream: one sends, one receives, at the same time. Who sends looks for credits,
 * too, since who receives may be the one that waits for room.
 */
#ifndef PVR_NET_VERBS_STREAM_H
#define PVR_NET_VERBS_STREAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define PVR_VERBS_BUFFERS 16u /* each way */
#define PVR_VERBS_BUFFER (64u << 10)
#define PVR_VERBS_NOTES 4u /* on their way at once */
#define PVR_VERBS_RECEIVES (PVR_VERBS_BUFFERS + PVR_VERBS_NOTES)
#define PVR_VERBS_SENDS (PVR_VERBS_BUFFERS + PVR_VERBS_NOTES)
#define PVR_VERBS_TX_SIZE ((size_t)PVR_VERBS_BUFFERS * PVR_VERBS_BUFFER)
#define PVR_VERBS_RX_SIZE ((size_t)PVR_VERBS_RECEIVES * PVR_VERBS_BUFFER)

/* A request of ours that the NIC is done with. */
struct pvr_verbs_done {
	bool received;
	uint32_t slot; /* of what was received */
	uint32_t len; /* bytes; sent: 0 for a note */
	uint32_t taken; /* immediate data of what was received */
};

/* The queue pair. Any thread. 0 or -errno. */
struct pvr_verbs_qp_ops {
	/* From transmit buffer @slot; @len 0: a note. */
	int (*send)(void *qp, uint32_t slot, uint32_t len, uint32_t taken);
	int (*receive)(void *qp, uint32_t slot);
	/* Return: how many are in @done, 0 if no more are there now; -errno: it is broken. */
	int (*poll)(void *qp, struct pvr_verbs_done *done, int max);
	/* Tell once when there is something to poll: of @sends, too. */
	int (*arm)(void *qp, bool sends);
};

struct pvr_verbs_stream {
	const struct pvr_verbs_qp_ops *ops;
	void *qp;
	uint8_t *tx, *rx; /* buffers */
	uint32_t limit, size; /* what the other side takes: messages, bytes of one */

	pthread_mutex_t tx_lock; /* taken first; protects what is sent and the next two */
	uint32_t told; /* what the other side knows of taken */
	uint32_t notes; /* sent */
	uint32_t sent; /* messages; read by any thread */

	uint32_t taken; /* who receives writes it */
	uint32_t used; /* bytes of the oldest message received; ditto */

	pthread_mutex_t lock; /* protects the following; any thread reads what is one word */
	uint32_t sent_done, notes_done;
	uint32_t credited; /* messages that the other side has taken */
	uint32_t head, tail;
	struct {
		uint32_t slot, len;
	} got[PVR_VERBS_RECEIVES];
	int error;
};

/* @tx, @rx: PVR_VERBS_TX_SIZE, PVR_VERBS_RX_SIZE bytes. */
void pvr_verbs_stream_init(struct pvr_verbs_stream *stream, const struct pvr_verbs_qp_ops *ops,
			   void *qp, uint8_t *tx, uint8_t *rx);
void pvr_verbs_stream_exit(struct pvr_verbs_stream *stream);
/* All buffers to receive in, before the queue pair can. 0 or -errno. */
int pvr_verbs_stream_post(struct pvr_verbs_stream *stream);
/* What the other side has said. */
void pvr_verbs_stream_set_peer(struct pvr_verbs_stream *stream, uint32_t buffers, uint32_t size);

/* As those of pvr_stream_ops. When nothing is received, the next news are told of. */
ssize_t pvr_verbs_stream_send(struct pvr_verbs_stream *stream, const struct iovec *iov, int count);
ssize_t pvr_verbs_stream_recv(struct pvr_verbs_stream *stream, const struct iovec *iov, int count);
/* Has the other side's NIC got anything? 1, 0 if not yet, which will be told of, or -errno. */
int pvr_verbs_stream_is_proved(struct pvr_verbs_stream *stream);
/*
 * What the queue pair has news of is taken, whatever it is; if @wait, the next are told of.
 * Return: 0, or -errno if it is broken. Any thread.
 */
int pvr_verbs_stream_look(struct pvr_verbs_stream *stream, bool wait);
/* Nothing is moved any more. Any thread. */
void pvr_verbs_stream_break(struct pvr_verbs_stream *stream, int err);
/*
 * Return: true if send() takes something, or fails, by now; else it will be told of, unless
 * somebody receives the news before.
 */
bool pvr_verbs_stream_has_room(struct pvr_verbs_stream *stream);

#endif /* PVR_NET_VERBS_STREAM_H */
