/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The queue pair of an RDMA NIC by which a peer is reached, beside TCP.
 *
 * It is wanted while a TCP connection to the peer is up, which has told whether the peer
 * knows of this. Whatever is wrong with it is no news for the log, as TCP does as well:
 * pvrdmactl tells. It is tried again, after 100 ms at first, up to 10 s; at once when a
 * NIC of ours has come back, or the peer has reached us by its own.
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
	bool lend; /* both sides know of that; whether their NICs can is another matter */
	struct pvr_conn *conn; /* dialling or up */
	uint64_t backoff, not_before; /* pauses: of ours; of either side, see connect() */
	struct pvr_loop_timer retry;
	struct pvr_error error; /* why it is not up */
};

void pvr_verbs_peer_init(struct pvr_verbs_peer *verbs, struct pvr_net *net, struct pvr_peer *peer,
			 const char *name, const struct pvr_address *address);
/* TCP is up: @features are those of the answer. */
void pvr_verbs_peer_want(struct pvr_verbs_peer *verbs, uint32_t features);
/* It is not wanted any more. A connection that is up stays; close() ends it. */
void pvr_verbs_peer_forget(struct pvr_verbs_peer *verbs);
void pvr_verbs_peer_close(struct pvr_verbs_peer *verbs, const char *why);
/* It is worth while to try at once; what does not work any more is closed. */
void pvr_verbs_peer_changed(struct pvr_verbs_peer *verbs, const char *what);
/*
 * pvr_verbs_connect(), whoever has dialled. The kernel may look for the other NIC's address
 * meanwhile, for a second where nobody has it, so a peer gets a tenth of our time at most.
 */
bool pvr_verbs_peer_connect(struct pvr_verbs_peer *verbs, struct pvr_verbs *qp,
			    const union pvr_any_frame *theirs, struct pvr_error *err);
/* Its worker has given it back. */
void pvr_verbs_peer_lost(struct pvr_conn *conn);
/* The NIC's name; NULL: it is not up. */
const char *pvr_verbs_peer_device(const struct pvr_verbs_peer *verbs);
/* While it is up: is payload lent? If not, or if that has failed just now, @why tells. */
bool pvr_verbs_peer_lends(const struct pvr_verbs_peer *verbs, struct pvr_error *why);

#endif /* PVR_NET_VERBS_PEER_H */
