/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* State shared by all TLS sessions of this host: its keys. */
#ifndef PVR_NET_TLS_CONTEXT_H
#define PVR_NET_TLS_CONTEXT_H

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "net/tls_psk.h"

struct pvr_tls_context {
	unsigned int refs; /* one for the net and one per session */
	SSL_CTX *ssl;
	BIO_METHOD *bio; /* of tls.c */
	struct pvr_psk_file *psk; /* NULL: certificates */
	char name[64]; /* of this host */
};

/* In tls.c: socket access of a session. NULL without memory. */
BIO_METHOD *pvr_tls_bio_method(void);
/* In tls.c: a message callback of OpenSSL, which counts messages without payload. */
void pvr_tls_message(int write, int version, int type, const void *data, size_t len, SSL *ssl,
		     void *opaque);
/* In tls.c: a line of OpenSSL's key log. */
void pvr_tls_log_key(const SSL *ssl, const char *line);
/* The session of an OpenSSL callback. */
struct pvr_tls *pvr_tls_of(const SSL *ssl);
const struct pvr_tls_context *pvr_tls_context_of(const struct pvr_tls *tls);
/*
 * For callbacks: the dialled host; set the key and the incoming host ("": outgoing);
 * storage of PVR_PSK_IDENTITY bytes for the own identity; set the reason of a failure.
 */
const char *pvr_tls_dialled_host(const struct pvr_tls *tls);
void pvr_tls_set_psk(struct pvr_tls *tls, const struct pvr_psk *psk, const char *host);
char *pvr_tls_identity(struct pvr_tls *tls);
/* Return: the number of identities that the peer has presented, with this one. */
unsigned int pvr_tls_count_identity(struct pvr_tls *tls);
__attribute__((format(printf, 2, 3))) void pvr_tls_set_error(struct pvr_tls *tls, const char *fmt,
							     ...);
/* The proof of the peer's identity; for pvr_tls_put_proof(). */
struct pvr_tls_proof {
	const struct pvr_psk *psk; /* NULL: no key */
	X509 *cert; /* NULL: no certificate */
	STACK_OF(X509) * chain; /* further certificates of the peer */
	const char *purpose; /* required purpose of the certificate */
};

void pvr_tls_get_proof(struct pvr_tls *tls, struct pvr_tls_proof *proof);
void pvr_tls_put_proof(struct pvr_tls_proof *proof);
/*
 * Return: whether a DNS name among the subject's alternative names is exactly @host. Case
 * counts, and wildcards and suffixes match nothing: each spelling is a host of its own, with
 * GIDs and connections. @cert: or NULL.
 */
bool pvr_tls_names(const X509 *cert, const char *host);
/* Return: the first expiry in a chain, in seconds since 1970. @chain: NULL: none, INT64_MAX. */
int64_t pvr_tls_chain_expires(const STACK_OF(X509) * chain);
/* Records which certificate is refused, and why. */
int pvr_tls_verify(int ok, X509_STORE_CTX *store);
/* Formats the last error of OpenSSL. */
void pvr_tls_openssl_error(char *buf, size_t size);

#endif /* PVR_NET_TLS_CONTEXT_H */
