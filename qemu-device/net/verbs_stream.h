/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A byte stream over an RC queue pair, by SEND and RECEIVE.
 *
 * DOC: credits
 *
 * Each message fills one receive buffer of the peer, which announces their number. The
 * immediate data of each message is the number of data messages that its sender has
 * consumed so far; the peer may send as many more. A side with no data to send and half
 * of its buffers to return sends a message without data, a note (credit update). Notes
 * need no credit: there are spare buffers for them. A note is only sent to return
 * buffers, so there are never more notes than messages.
 *
 * DOC: threads
 *
 * As pvr_stream: one thread sends while one receives. The sender polls for credits, too,
 * since the receiver may be the thread that waits for space.
 */
#ifndef PVR_NET_VERBS_STREAM_H
#define PVR_NET_VERBS_STREAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define PVR_VERBS_BUFFERS 16u /* per direction */
#define PVR_VERBS_BUFFER (64u << 10)
#define PVR_VERBS_NOTES 4u /* in flight at the same time */
#define PVR_VERBS_RECEIVES (PVR_VERBS_BUFFERS + PVR_VERBS_NOTES)
#define PVR_VERBS_SENDS (PVR_VERBS_BUFFERS + PVR_VERBS_NOTES)
#define PVR_VERBS_TX_SIZE ((size_t)PVR_VERBS_BUFFERS * PVR_VERBS_BUFFER)
#define PVR_VERBS_RX_SIZE ((size_t)PVR_VERBS_RECEIVES * PVR_VERBS_BUFFER)

/* A completed work request. */
struct pvr_verbs_done {
	bool received;
	uint32_t slot; /* slot of a received message */
	uint32_t len; /* in bytes; sent: 0 for a note */
	uint32_t taken; /* immediate data of a received message */
};

/* Operations of the queue pair. Any thread. Return: 0 or -errno. */
struct pvr_verbs_qp_ops {
	/* Sends transmit buffer @slot; @len 0: a note. */
	int (*send)(void *qp, uint32_t slot, uint32_t len, uint32_t taken);
	int (*receive)(void *qp, uint32_t slot);
	/* Return: completions in @done; 0: none; -errno: broken. */
	int (*poll)(void *qp, struct pvr_verbs_done *done, int max);
	/* Requests one event at the next completion; @sends: also of sends. */
	int (*arm)(void *qp, bool sends);
};

struct pvr_verbs_stream {
	const struct pvr_verbs_qp_ops *ops;
	void *qp;
	uint8_t *tx, *rx; /* buffers */
	uint32_t limit, size; /* limits of the peer: messages, bytes per message */

	pthread_mutex_t tx_lock; /* taken before lock; protects sending and the next two members */
	uint32_t told; /* value of taken last reported to the peer */
	uint32_t notes; /* number sent */
	uint32_t sent; /* messages; read by any thread */

	uint32_t taken; /* written by the receiver */
	uint32_t used; /* bytes consumed of the oldest message; written by the receiver */

	pthread_mutex_t lock; /* protects the members below; any thread reads single words */
	uint32_t sent_done, notes_done;
	uint32_t credited; /* messages that the peer has consumed */
	uint32_t head, tail;
	struct {
		uint32_t slot, len;
	} got[PVR_VERBS_RECEIVES];
	int error;
};

/* @tx, @rx: PVR_VERBS_TX_SIZE and PVR_VERBS_RX_SIZE bytes. */
void pvr_verbs_stream_init(struct pvr_verbs_stream *stream, const struct pvr_verbs_qp_ops *ops,
			   void *qp, uint8_t *tx, uint8_t *rx);
void pvr_verbs_stream_exit(struct pvr_verbs_stream *stream);
/* Posts all receive buffers, before the queue pair can receive. 0 or -errno. */
int pvr_verbs_stream_post(struct pvr_verbs_stream *stream);
/* Sets the limits that the peer has announced. */
void pvr_verbs_stream_set_peer(struct pvr_verbs_stream *stream, uint32_t buffers, uint32_t size);

/*
 * As those of pvr_stream_ops. If nothing is received, the next completion raises an
 * event.
 */
ssize_t pvr_verbs_stream_send(struct pvr_verbs_stream *stream, const struct iovec *iov, int count);
ssize_t pvr_verbs_stream_recv(struct pvr_verbs_stream *stream, const struct iovec *iov, int count);
/* Return: 1 if a message has arrived at the peer; 0 if not, an event follows; or -errno. */
int pvr_verbs_stream_is_proved(struct pvr_verbs_stream *stream);
/*
 * Polls completions; with @wait the next one raises an event. Return: 0, or -errno if
 * broken. Any thread.
 */
int pvr_verbs_stream_poll(struct pvr_verbs_stream *stream, bool wait);
/* Ends all transfers. Any thread. */
void pvr_verbs_stream_break(struct pvr_verbs_stream *stream, int err);
/*
 * Return: true if send() would take data or fail now; else an event follows, unless
 * another thread polls the completion.
 */
bool pvr_verbs_stream_has_room(struct pvr_verbs_stream *stream);

#endif /* PVR_NET_VERBS_STREAM_H */
