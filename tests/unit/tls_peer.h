/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A TLS session of host a with host b, which is OpenSSL without the limits of pvrdmad. */
#ifndef PVR_TESTS_TLS_PEER_H
#define PVR_TESTS_TLS_PEER_H

#include <openssl/ssl.h>

#include "net/tls.h"
#include "test.h"

#define TLS_PEER_SUITE "TLS_AES_128_GCM_SHA256"

struct session {
	const char *suite; /* the peer's; to be set before init */
	bool by_tcp; /* over loopback, else a pair of Unix sockets; likewise */
	int fd[2];
	struct pvr_tls_context *context;
	struct pvr_tls *tls; /* of host a */
	SSL_CTX *peer_context;
	SSL *peer; /* of host b */
	uint8_t secret[32]; /* of the records that the peer sends, as OpenSSL logs it */
};

/* @session: zero but for suite and by_tcp. */
void tls_peer_init(struct session *session, bool peer_dials);
void tls_peer_shake(struct session *session);
void tls_peer_exit(struct session *session);
/* Derives @len bytes from a secret of SHA-256. */
void tls_peer_expand(const uint8_t *secret, const char *label, uint8_t *out, size_t len);

#endif /* PVR_TESTS_TLS_PEER_H */
