/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * TLS records that the kernel makes (kTLS).
 *
 * DOC: which half
 *
 * OpenSSL executes the handshake and receives. The kernel encrypts what is sent, straight from
 * guest memory to its socket buffers: without it, OpenSSL encrypts to a buffer of pvrdmad, which the
 * kernel copies. The receiving half stays with OpenSSL, because a peer chooses those records:
 * tls_input.h bounds their work, and the kernel has no such bound.
 *
 * DOC: keys
 *
 * The keys are derived from the secret that OpenSSL logs for this side (RFC 8446, 7.1 to 7.3). A
 * new one follows after PVR_TLS_RECORDS_PER_KEY records, and when the peer asks for it. The kernel
 * can take a new key since Linux 6.14; older ones are not used. From start() on, no record of
 * OpenSSL may leave: it would have the number, and so the nonce, of one of the kernel.
 *
 * DOC: the kernel module
 *
 * It is "tls". Only a process with CAP_NET_ADMIN loads it by its first use: else the operator
 * does. Without it nothing changes.
 *
 * Source: Linux, Documentation/networking/tls.rst.
 */
#ifndef PVR_NET_TLS_KERNEL_H
#define PVR_NET_TLS_KERNEL_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* RFC 8446, 5.5: AES-GCM should encrypt at most 2^24.5 records per key. */
#define PVR_TLS_RECORDS_PER_KEY (1u << 23)
#define PVR_TLS_SECRET_MAX 48 /* bytes: of SHA-384 */

struct pvr_tls_cipher;

struct pvr_tls_kernel {
	const struct pvr_tls_cipher *cipher; /* NULL: the kernel is not used */
	uint8_t secret[PVR_TLS_SECRET_MAX]; /* of the current key */
	size_t secret_bytes;
	uint32_t records; /* at most so many, since the last key */
	bool wants_key; /* atomic; the peer has asked for a new one */
};

/* A line of OpenSSL's key log. Keeps the secret if it is the one of this side's payload. */
void pvr_tls_kernel_log(struct pvr_tls_kernel *kernel, bool is_server, const char *line);
/*
 * The handshake is done, and all of its records are sent. @fd: connected. Return: whether the kernel
 * makes the records from now on; else the socket is as before. A second call changes nothing.
 */
bool pvr_tls_kernel_start(struct pvr_tls_kernel *kernel, int fd, const SSL *ssl);
static inline bool pvr_tls_kernel_is_on(const struct pvr_tls_kernel *kernel)
{
	return kernel->cipher;
}
/* As pvr_stream_send(). One thread at a time. */
ssize_t pvr_tls_kernel_send(struct pvr_tls_kernel *kernel, int fd, const struct iovec *iov,
			    int count);
/* Any thread: the next record has a new key. */
void pvr_tls_kernel_want_key(struct pvr_tls_kernel *kernel);
/* Wipes the secret. */
void pvr_tls_kernel_end(struct pvr_tls_kernel *kernel);

#endif /* PVR_NET_TLS_KERNEL_H */
