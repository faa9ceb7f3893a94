/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the parts of the network share. */
#ifndef PVR_NET_STATE_H
#define PVR_NET_STATE_H

#include "base/ratelimit.h"
#include "net/conn.h"
#include "net/listener.h"
#include "net/net.h"
#include "net/tls.h"
#include "net/traffic.h"
#include "net/verbs.h"

/* Connections that queue pairs want; more of them ask again later. */
#define PVR_DIAL_REQUESTS_MAX 64

struct pvr_dial_request {
	struct pvr_remote *remote;
	uint8_t dscp;
};

struct pvr_dial_requests {
	struct pvr_work work;
	pthread_mutex_t lock; /* protects what follows */
	struct pvr_dial_request list[PVR_DIAL_REQUESTS_MAX];
	unsigned int num;
};

struct pvr_net {
	struct pvr_net_env env;
	struct pvr_net_settings settings; /* its peers are the caller's */
	uint64_t instance, last_id;
	struct pvr_tls_context *tls; /* NULL: off */
	struct pvr_tls_context *tls_before; /* while keys are read again, see rekey.c */
	struct pvr_verbs_nics *nics; /* NULL: they are not used */
	struct pvr_error no_nics; /* why */
	struct pvr_workq workq; /* of the first thread */
	struct pvr_traffic *traffic; /* of each worker */
	struct pvr_listener listeners[PVR_LISTEN_MAX];
	unsigned int num_listeners;
	struct pvr_peers *peers;
	struct pvr_dial_requests dial_requests;
	/* Who has dialled us and is not up yet, the oldest last. */
	LIST_HEAD(pvr_conn_list, pvr_conn) handshakes;
	unsigned int num_handshakes;
	struct pvr_ratelimit unauthenticated; /* what is said of them */
	uint64_t accepted, refused;
	bool ending; /* nobody is dialled any more */
};

__attribute__((format(printf, 3, 4))) void
pvr_net_log(struct pvr_net *net, enum pvr_log_level level, const char *fmt, ...);
/* The same, unless @ratelimit suppresses it. */
__attribute__((format(printf, 4, 5))) void pvr_net_log_limited(struct pvr_net *net,
							       struct pvr_ratelimit *ratelimit,
							       enum pvr_log_level level,
							       const char *fmt, ...);

/* What we offer, and take, of PVR_HELLO_F_* by TCP. */
static inline uint32_t pvr_net_features(const struct pvr_net *net)
{
	uint32_t lend = net->settings.rdma_lend ? PVR_HELLO_F_LEND : 0;

	return PVR_HELLO_F_EARLY_ACKS | PVR_HELLO_F_LEFT |
	       (net->nics ? PVR_HELLO_F_RDMA | lend : 0);
}

/* incoming.c: a socket was accepted. */
void pvr_incoming_accept(struct pvr_net *net, int fd, const struct pvr_address *address);

/* peers.c, peer.c */
struct pvr_peers *pvr_peers_create(struct pvr_net *net);
void pvr_peers_destroy(struct pvr_peers *peers);
/* A connection that the peer has dialled is up, or ends (its worker has given it back). */
bool pvr_peers_admit(struct pvr_peers *peers, struct pvr_conn *conn, enum pvr_bye *reason,
		     struct pvr_error *why);
void pvr_peers_add_incoming(struct pvr_conn *conn);
void pvr_peers_lost(struct pvr_conn *conn);
/* As pvr_peers_dial(); and a connection for this class of traffic, if there is room for one. */
bool pvr_peers_dial_class(struct pvr_peers *peers, const char *name, uint8_t dscp);
/* Has the right host given the right answer? Then: what both agree upon. */
bool pvr_peers_check_answer(const struct pvr_conn *conn, struct pvr_error *why);
void pvr_peers_agree(struct pvr_conn *conn);
/* Of a peer that was admitted. */
struct pvr_verbs_peer *pvr_peers_verbs(struct pvr_peers *peers, const char *name);
/* Something has happened to an RDMA NIC. */
void pvr_peers_nics_changed(struct pvr_peers *peers, const char *what);
/* There are new keys: whoever they would not let in is cut off. */
void pvr_peers_review(struct pvr_peers *peers, const struct pvr_reload_ops *ops, void *opaque);
/* A connection is about to be up: by keys that are still good? */
bool pvr_peers_trust(const struct pvr_conn *conn, const char *host, struct pvr_error *why);
/* Nothing was sent on it for long. */
void pvr_peers_idle(struct pvr_conn *conn);

#endif /* PVR_NET_STATE_H */
