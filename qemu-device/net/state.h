/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The state that the files of net/ share. */
#ifndef PVR_NET_STATE_H
#define PVR_NET_STATE_H

#include "base/ratelimit.h"
#include "net/conn.h"
#include "net/listener.h"
#include "net/net.h"
#include "net/tls.h"
#include "net/traffic.h"
#include "net/verbs.h"

#define PVR_DIAL_BUCKETS 1024

/* None is lost, because a queue pair without a timeout does not repeat it. */
struct pvr_dial_request {
	struct pvr_host *host; /* lives as long as the engine, and so does this */
	uint64_t dscps; /* bitmap; 0: nothing is requested */
	LIST_ENTRY(pvr_dial_request) by_host;
	TAILQ_ENTRY(pvr_dial_request) link;
};

struct pvr_dial_requests {
	struct pvr_work work;
	pthread_mutex_t lock; /* protects the members below */
	bool queued; /* the work item */
	LIST_HEAD(, pvr_dial_request) hosts[PVR_DIAL_BUCKETS];
	TAILQ_HEAD(, pvr_dial_request) pending;
};

/*
 * TLS handshakes per address, because each takes about a millisecond of the first thread.
 * Addresses share the entries of a table by a hash that they cannot predict.
 */
#define PVR_TLS_RATES 256

struct pvr_tls_rate {
	uint32_t used; /* handshakes */
	uint64_t counted; /* when @used was last reduced, ns */
};

struct pvr_net {
	struct pvr_net_env env;
	struct pvr_net_settings settings; /* without the peers, which stay the caller's */
	uint64_t instance, last_id;
	struct pvr_tls_context *tls; /* NULL: off */
	struct pvr_tls_context *tls_before; /* the earlier keys during a reload, see rekey.c */
	struct pvr_verbs_nics *nics; /* NULL: NICs are not used */
	struct pvr_error no_nics; /* the reason */
	struct pvr_workq workq; /* in the first thread */
	struct pvr_traffic *traffic; /* one per worker */
	struct pvr_listener listeners[PVR_LISTEN_MAX];
	unsigned int num_listeners;
	struct pvr_peers *peers;
	struct pvr_dial_requests dial_requests;
	/* Incoming connections in a handshake, the newest first. */
	LIST_HEAD(pvr_conn_list, pvr_conn) handshakes;
	unsigned int num_handshakes;
	struct pvr_tls_rate tls_rates[PVR_TLS_RATES];
	struct pvr_ratelimit too_many; /* for messages about them */
	struct pvr_ratelimit unauthenticated; /* for messages about them */
	uint64_t accepted, refused;
	bool ending; /* no more dialling */
};

__attribute__((format(printf, 3, 4))) void
pvr_net_log(struct pvr_net *net, enum pvr_log_level level, const char *fmt, ...);
/* The same for a line about @host, unless @ratelimit suppresses it. */
__attribute__((format(printf, 5, 6))) void
pvr_net_log_host(struct pvr_net *net, struct pvr_ratelimit *ratelimit, const char *host,
		 enum pvr_log_level level, const char *fmt, ...);
/* As pvr_net_log(), unless @ratelimit suppresses the line. */
__attribute__((format(printf, 4, 5))) void pvr_net_log_limited(struct pvr_net *net,
							       struct pvr_ratelimit *ratelimit,
							       enum pvr_log_level level,
							       const char *fmt, ...);

/* The PVR_HELLO_F_* of frames that any connection of this host offers and accepts. */
static inline uint32_t pvr_net_frame_features(const struct pvr_net *net)
{
	return PVR_HELLO_F_QP_GONE | PVR_HELLO_F_ATOMIC_WRITE | PVR_HELLO_F_XRC | PVR_HELLO_F_PAGE |
	       PVR_HELLO_F_MOVE | PVR_HELLO_F_LOAD | PVR_HELLO_F_TAIL | PVR_HELLO_F_REFER |
	       PVR_HELLO_F_ADDRESS | (net->env.faults_allowed ? PVR_HELLO_F_FAULT : 0);
}

/* Those of TCP connections. */
static inline uint32_t pvr_net_features(const struct pvr_net *net)
{
	uint32_t expose = net->settings.rdma_zerocopy ? PVR_HELLO_F_RNDV : 0;

	return PVR_HELLO_F_PIGGYBACK_ACK | pvr_net_frame_features(net) |
	       (net->nics ? PVR_HELLO_F_RDMA | expose : 0);
}

/* --------------------------------------------------------------- incoming.c */
void pvr_incoming_accept(struct pvr_net *net, int fd, const struct pvr_address *address);

/* ---------------------------------------------------------- peers.c, peer.c */
struct pvr_peers *pvr_peers_create(struct pvr_net *net);
void pvr_peers_destroy(struct pvr_peers *peers);
/* An incoming connection: may it come up? It is up; it was passed back by its worker. */
bool pvr_peers_admit(struct pvr_peers *peers, struct pvr_conn *conn, enum pvr_close_reason *reason,
		     struct pvr_error *why);
void pvr_peers_add_incoming(struct pvr_conn *conn);
/* An incoming connection does not come up, whether it was admitted or not. */
void pvr_peers_leave(struct pvr_conn *conn);
void pvr_peer_gone_lost(struct pvr_conn *conn);
/* As pvr_peers_dial(), and adds a connection of this DSCP if there is a free slot. */
bool pvr_peers_dial_class(struct pvr_peers *peers, const char *name, uint8_t dscp);
/* Checks the answer to HELLO; applies what both sides have negotiated. */
bool pvr_peers_check_answer(const struct pvr_conn *conn, struct pvr_error *why);
void pvr_peers_agree(struct pvr_conn *conn);
/* Only of an admitted peer. */
struct pvr_verbs_peer *pvr_peers_verbs(struct pvr_peers *peers, const char *name);
/* A port of an RDMA NIC has changed its state. */
void pvr_peers_nics_changed(struct pvr_peers *peers, const char *what);
/* After a reload of keys: disconnects hosts that the new keys exclude. */
void pvr_peer_gone_review(struct pvr_peers *peers, const struct pvr_reload_ops *ops, void *opaque);
/* Checks by the current keys a connection that is about to come up. */
bool pvr_peers_trust(const struct pvr_conn *conn, const char *host, struct pvr_error *why);
/* The connection was not used for the idle timeout. */
void pvr_peer_gone_idle(struct pvr_conn *conn);

#endif /* PVR_NET_STATE_H */
