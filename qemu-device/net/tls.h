/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * TLS 1.3, authenticated by certificates or by pre-shared keys.
 *
 * DOC: identity
 *
 * Both ends prove the host name in their HELLO. With certificates: the name is a DNS name
 * among the subject's alternative names, without wildcards, and the operator's authority
 * has signed the certificate. With pre-shared keys: the key file has a key for each other
 * host, which only these two hosts share; the dialling side sends its own name as the
 * identity of the key. A key without a name is for all hosts without a line of their own:
 * each of those could impersonate another.
 *
 * DOC: new keys
 *
 * Keys are read into a context, of which each session holds a reference. So sessions keep
 * their keys while new sessions use others (rekey.c). Sessions are never resumed: servers
 * issue no tickets and accept none. So each new connection is authenticated by the
 * current keys.
 *
 * DOC: threads
 *
 * One thread sends and one receives. OpenSSL allows one thread at a time, so a lock is
 * held for one record each, or for a bounded number of records without payload.
 *
 * DOC: limits of a peer
 *
 * A call handles at most PVR_TLS_RECORDS_PER_CALL records and those that OpenSSL holds. A
 * peer that sends key updates or session tickets without end is disconnected.
 */
#ifndef PVR_NET_TLS_H
#define PVR_NET_TLS_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"

struct pvr_net_settings;
struct pvr_tls_context;
struct pvr_tls;

/* Reads the files of the settings. NULL with @err filled: file, line and reason. */
struct pvr_tls_context *pvr_tls_context_create(const struct pvr_net_settings *settings,
					       struct pvr_error *err);
/* Sessions hold references of their own. NULL is allowed for put(). */
struct pvr_tls_context *pvr_tls_context_get(struct pvr_tls_context *context);
void pvr_tls_context_put(struct pvr_tls_context *context);
/* Return: whether there is a key for this host. */
bool pvr_tls_context_knows(const struct pvr_tls_context *context, const char *host,
			   struct pvr_error *err);
/*
 * For a reload: whether the own certificate is valid today, and there are revocation lists, if
 * any are configured, which are.
 */
bool pvr_tls_context_is_current(const struct pvr_tls_context *context,
				const struct pvr_net_settings *settings, struct pvr_error *err);
/*
 * Return: true if the context would accept its own certificate. Hosts may use different
 * authorities.
 */
bool pvr_tls_context_trusts_itself(const struct pvr_tls_context *context,
				   const struct pvr_net_settings *settings, struct pvr_error *err);
/* Return: the end of the own certificate, in seconds since 1970; INT64_MAX: there is none. */
int64_t pvr_tls_context_expires(const struct pvr_tls_context *context);
/* Describes the contents of each file. */
void pvr_tls_context_describe(const struct pvr_tls_context *context,
			      const struct pvr_net_settings *settings,
			      void (*say)(void *opaque, const char *file, const char *what),
			      void *opaque);

/*
 * @host: the dialled host, which the peer must prove to be; NULL: incoming. NULL without
 * memory.
 */
struct pvr_tls *pvr_tls_create(struct pvr_tls_context *context, int fd, const char *host);
/* NULL is allowed. Does not close the socket. */
void pvr_tls_destroy(struct pvr_tls *tls);

enum pvr_tls_result {
	PVR_TLS_DONE,
	PVR_TLS_WAIT,
	PVR_TLS_FAILED,
};

enum pvr_tls_result pvr_tls_handshake(struct pvr_tls *tls, struct pvr_error *err);
/* After the handshake: whether the peer has proved to be @host. */
bool pvr_tls_is_host(struct pvr_tls *tls, const char *host, struct pvr_error *err);
/*
 * Return: true if @context, read later, would accept @host, the peer of this session. A
 * key must still be one of that host's. A certificate must be signed by an authority and
 * be valid today. False: @err is filled.
 */
bool pvr_tls_is_trusted(struct pvr_tls *tls, const struct pvr_tls_context *context,
			const char *host, struct pvr_error *err);
/* Any thread, after the handshake. Return: true if a certificate of the peer has expired. */
bool pvr_tls_is_expired(const struct pvr_tls *tls);
/* Why a function below reported a broken connection; "": not because of TLS. */
const char *pvr_tls_error(const struct pvr_tls *tls);
/* Describes version, cipher and proof. */
const char *pvr_tls_describe(const struct pvr_tls *tls);

/* As pvr_stream_send() and so on. */
ssize_t pvr_tls_send(struct pvr_tls *tls, const struct iovec *iov, int count);
ssize_t pvr_tls_recv(struct pvr_tls *tls, const struct iovec *iov, int count);
/*
 * For the receiving thread. Return: true if the last handshake() or recv() has stopped at its
 * limit of records: call it again, as the socket may raise no event.
 */
bool pvr_tls_has_more(const struct pvr_tls *tls);
bool pvr_tls_is_flushed(struct pvr_tls *tls);
bool pvr_tls_flush(struct pvr_tls *tls);
/* Nothing was sent for a while: frees the buffer. */
void pvr_tls_rest(struct pvr_tls *tls);

#endif /* PVR_NET_TLS_H */
