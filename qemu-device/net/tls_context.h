/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What is the same for all TLS sessions of this host: its keys. */
#ifndef PVR_TLS_CONTEXT_H
#define PVR_TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "tls_psk.h"

struct pvr_tls_context {
	SSL_CTX *ssl;
	BIO_METHOD *bio; /* of tls.c */
	struct pvr_psk_file *psk; /* NULL: certificates */
	char name[64]; /* this host's */
};

/* tls.c: how a session reads and writes its socket. NULL: no memory. */
BIO_METHOD *pvr_tls_bio_method(void);
/* The session of a callback. */
struct pvr_tls *pvr_tls_of(const SSL *ssl);
/* For callbacks: who is dialled; who has dialled says to be @host; why it will fail. */
const char *pvr_tls_dialled_host(const struct pvr_tls *tls);
void pvr_tls_set_psk_host(struct pvr_tls *tls, const char *host);
__attribute__((format(printf, 2, 3))) void pvr_tls_set_error(struct pvr_tls *tls, const char *fmt,
							     ...);
/* Tells whose certificate is refused, and why. */
int pvr_tls_verify(int ok, X509_STORE_CTX *store);
/* What OpenSSL says was wrong, last. */
void pvr_tls_openssl_error(char *buf, size_t size);

#endif /* PVR_TLS_CONTEXT_H */
