/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Bytes from the socket to OpenSSL, a bounded number of TLS records at a time.
 *
 * DOC: why records are counted
 *
 * SSL_read() returns only with payload, or when no bytes are left. Records without payload
 * cost time, and a peer can send them without end: key updates, session tickets, empty
 * records. Records of one byte cost the same. So a call here ends within a record budget:
 * the bytes behind the budget are withheld until the next call.
 */
#ifndef PVR_NET_TLS_INPUT_H
#define PVR_NET_TLS_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Records per call. A record has at most 16 KiB of payload. */
#define PVR_TLS_RECORDS_PER_CALL 32

struct pvr_tls_input {
	unsigned int budget; /* records that may still be passed on in this call */
	bool has_more; /* bytes may be left behind the budget */
	uint64_t records; /* passed on since the session began */
	uint8_t header[5]; /* of the current record */
	size_t header_len; /* bytes of @header that have arrived */
	size_t left; /* bytes of the current record that have not arrived */
	uint8_t *withheld; /* bytes read from the socket behind the budget; NULL: none */
	size_t begin, end; /* of the bytes in @withheld */
};

/* Starts a call: renews the budget. */
void pvr_tls_input_begin(struct pvr_tls_input *input);
/*
 * Return: bytes read, whose last record may be incomplete; 0: would block, or the budget is
 * used up; -errno; -ECONNRESET at the end of the stream.
 */
ssize_t pvr_tls_input_read(struct pvr_tls_input *input, int fd, uint8_t *data, size_t len);
void pvr_tls_input_free(struct pvr_tls_input *input);

#endif /* PVR_NET_TLS_INPUT_H */
