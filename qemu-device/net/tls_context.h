/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What is the same for all TLS sessions of this host: its keys. */
#ifndef PVR_NET_TLS_CONTEXT_H
#define PVR_NET_TLS_CONTEXT_H

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "net/tls_psk.h"

struct pvr_tls_context {
	unsigned int refs; /* the net's, and one for each session */
	SSL_CTX *ssl;
	BIO_METHOD *bio; /* of tls.c */
	struct pvr_psk_file *psk; /* NULL: certificates */
	char name[64]; /* this host's */
};

/* tls.c: how a session reads and writes its socket. NULL: no memory. */
BIO_METHOD *pvr_tls_bio_method(void);
/* The session of a callback. */
struct pvr_tls *pvr_tls_of(const SSL *ssl);
const struct pvr_tls_context *pvr_tls_context_of(const struct pvr_tls *tls);
/*
 * For callbacks: who is dialled; the key, and who has dialled us with it ("": we have);
 * where the identity that we show can stay, PVR_PSK_IDENTITY bytes; why it will fail.
 */
const char *pvr_tls_dialled_host(const struct pvr_tls *tls);
void pvr_tls_set_psk(struct pvr_tls *tls, const struct pvr_psk *psk, const char *host);
char *pvr_tls_identity(struct pvr_tls *tls);
__attribute__((format(printf, 2, 3))) void pvr_tls_set_error(struct pvr_tls *tls, const char *fmt,
							     ...);
/* How the other side has proved who it is; for pvr_tls_put_proof(). */
struct pvr_tls_proof {
	const struct pvr_psk *psk; /* NULL: by no key */
	X509 *cert; /* NULL: by no certificate */
	STACK_OF(X509) * chain; /* what else it has shown */
	const char *purpose; /* what the certificate has to be for */
};

void pvr_tls_get_proof(struct pvr_tls *tls, struct pvr_tls_proof *proof);
void pvr_tls_put_proof(struct pvr_tls_proof *proof);
/* Tells whose certificate is refused, and why. */
int pvr_tls_verify(int ok, X509_STORE_CTX *store);
/* What OpenSSL says was wrong, last. */
void pvr_tls_openssl_error(char *buf, size_t size);

#endif /* PVR_NET_TLS_CONTEXT_H */
