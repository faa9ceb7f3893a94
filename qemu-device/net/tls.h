/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * TLS 1.3: who is there is proved by certificates, or by pre-shared keys.
 *
 * DOC: identity
 *
 * Both ends prove that they are the host that they say to be in HELLO. With certificates:
 * a DNS name among the subject's alternative names is that host's, no wildcards, and the
 * operator's authority has signed it. With pre-shared keys: the key file has a key for
 * each other host, which only the two of them know; the one who dials says its own name
 * as the key's identity. A key without a name is for all hosts that have no line of their
 * own: then each of those could pretend to be another.
 *
 * DOC: new keys
 *
 * Keys are read into a context, of which each session has a reference: so sessions go on
 * with the keys that they were made with while new ones are made with others (rekey.c).
 * No session is ever resumed: servers give no tickets, and take none. So whoever comes
 * back has to prove anew who it is, with keys of that day.
 *
 * DOC: threads
 *
 * A session is used by two threads, one that sends and one that receives; OpenSSL allows
 * one at a time, so a lock is held for one record each.
 */
#ifndef PVR_NET_TLS_H
#define PVR_NET_TLS_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/error.h"

struct pvr_net_settings;
struct pvr_tls_context;
struct pvr_tls;

/* From the files of the settings. NULL with @err filled: which file, which line, why. */
struct pvr_tls_context *pvr_tls_context_create(const struct pvr_net_settings *settings,
					       struct pvr_error *err);
/* Sessions have references of their own. NULL is allowed for put(). */
struct pvr_tls_context *pvr_tls_context_get(struct pvr_tls_context *context);
void pvr_tls_context_put(struct pvr_tls_context *context);
/* Could we talk to this host? There may be no key for it. */
bool pvr_tls_context_knows(const struct pvr_tls_context *context, const char *host,
			   struct pvr_error *err);
/* When they are read anew: is our own certificate valid today? */
bool pvr_tls_context_is_current(const struct pvr_tls_context *context,
				const struct pvr_net_settings *settings, struct pvr_error *err);
/* Would we let ourselves in? Others may have other authorities than we. */
bool pvr_tls_context_trusts_itself(const struct pvr_tls_context *context,
				   const struct pvr_net_settings *settings, struct pvr_error *err);
/* For people: what is in which file. */
void pvr_tls_context_describe(const struct pvr_tls_context *context,
			      const struct pvr_net_settings *settings,
			      void (*say)(void *opaque, const char *file, const char *what),
			      void *opaque);

/* @host: who is dialled, and has to be there; NULL: we have been dialled. NULL: no memory. */
struct pvr_tls *pvr_tls_create(struct pvr_tls_context *context, int fd, const char *host);
/* NULL is allowed. Does not close the socket. */
void pvr_tls_destroy(struct pvr_tls *tls);

enum pvr_tls_result {
	PVR_TLS_DONE,
	PVR_TLS_WAIT,
	PVR_TLS_FAILED,
};

enum pvr_tls_result pvr_tls_handshake(struct pvr_tls *tls, struct pvr_error *err);
/* After the handshake: has the other side proved to be @host? */
bool pvr_tls_is_host(struct pvr_tls *tls, const char *host, struct pvr_error *err);
/*
 * Would @context, which was read later, have let in @host, whose session this is? With a key: it
 * is still one of that host's; with a certificate: the authorities have signed it, and it is valid
 * today. False with @err filled.
 */
bool pvr_tls_is_trusted(struct pvr_tls *tls, const struct pvr_tls_context *context,
			const char *host, struct pvr_error *err);
/* Why functions below have said that the connection is broken; "": TLS has no part in it. */
const char *pvr_tls_error(const struct pvr_tls *tls);
/* For people: which version, cipher and proof. */
const char *pvr_tls_describe(const struct pvr_tls *tls);

/* As pvr_stream_send() and the like. */
ssize_t pvr_tls_send(struct pvr_tls *tls, const struct iovec *iov, int count);
ssize_t pvr_tls_recv(struct pvr_tls *tls, const struct iovec *iov, int count);
bool pvr_tls_is_flushed(struct pvr_tls *tls);
bool pvr_tls_flush(struct pvr_tls *tls);
/* Nothing has been sent for a while: give memory back. */
void pvr_tls_rest(struct pvr_tls *tls);

#endif /* PVR_NET_TLS_H */
