/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The outgoing queue pair of an RDMA NIC to a peer, beside TCP.
 *
 * It is enabled while a TCP connection to the peer is up whose HELLO supports it. Its
 * errors are not logged, because TCP still works: pvrdmactl shows them. It is retried
 * after 100 ms at first, up to 10 s; at once when a NIC of this host works again, or the
 * peer has connected by its own NIC.
 *
 * Context: the first thread.
 */
#ifndef PVR_NET_VERBS_PEER_H
#define PVR_NET_VERBS_PEER_H

#include "net/conn.h"

struct pvr_verbs_peer {
	struct pvr_net *net;
	struct pvr_peer *peer;
	const char *name;
	const struct pvr_address *address;
	bool wanted;
	bool expose; /* both sides support exposure; their NICs may not */
	struct pvr_conn *conn; /* in a handshake or up */
	uint64_t backoff, not_before; /* own backoff; earliest connect() of either side */
	struct pvr_loop_timer retry;
	struct pvr_error error; /* why it is not up */
	struct pvr_ratelimit ratelimit; /* for messages about it */
};

void pvr_verbs_peer_init(struct pvr_verbs_peer *verbs, struct pvr_net *net, struct pvr_peer *peer,
			 const char *name, const struct pvr_address *address);
/* TCP is up. @features: those of the answer to HELLO. */
void pvr_verbs_peer_request(struct pvr_verbs_peer *verbs, uint32_t features);
/* Disables it. A connection that is up stays; pvr_verbs_peer_close() ends it. */
void pvr_verbs_peer_forget(struct pvr_verbs_peer *verbs);
void pvr_verbs_peer_close(struct pvr_verbs_peer *verbs, const char *why);
/* Retries at once; closes a queue pair that does not work any more. */
void pvr_verbs_peer_changed(struct pvr_verbs_peer *verbs, const char *what);
/*
 * Calls pvr_verbs_connect(), for both directions. The kernel may resolve the NIC's
 * address meanwhile, for a second if it gets no reply. So a peer gets at most a tenth of
 * the time.
 */
bool pvr_verbs_peer_connect(struct pvr_verbs_peer *verbs, struct pvr_verbs *qp,
			    const union pvr_any_frame *theirs, struct pvr_error *err);
/* The worker has passed the connection back. */
void pvr_verbs_peer_lost(struct pvr_conn *conn);
/* Return: the NIC's name, or NULL if the queue pair is not up. */
const char *pvr_verbs_peer_device(const struct pvr_verbs_peer *verbs);
/*
 * Return: whether payload is exposed while it is up. @why: why not, or why it failed just
 * now.
 */
bool pvr_verbs_peer_has_rndv(const struct pvr_verbs_peer *verbs, struct pvr_error *why);

#endif /* PVR_NET_VERBS_PEER_H */
