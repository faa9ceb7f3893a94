/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What is the same for all TLS sessions of this host: its keys. */
#ifndef PVR_TLS_CONTEXT_H
#define PVR_TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "tls_psk.h"

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
/* Tells whose certificate is refused, and why. */
int pvr_tls_verify(int ok, X509_STORE_CTX *store);
/* What OpenSSL says was wrong, last. */
void pvr_tls_openssl_error(char *buf, size_t size);

#endif /* PVR_TLS_CONTEXT_H */
