/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The file of pre-shared keys. A line is HOST:HEX, a key for that host, or HEX, a key for
 * all hosts without a line of their own. Empty lines and lines that start with # are
 * skipped.
 *
 * DOC: two keys for a host
 *
 * The first key is presented to that host, the other one is accepted as well. So a key
 * can be replaced without changing all hosts at the same time. The identity is NAME:ID
 * then, so that the dialled host can select the key.
 */
#ifndef PVR_NET_TLS_PSK_H
#define PVR_NET_TLS_PSK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "pipe.h"

#define PVR_PSK_MIN 16
#define PVR_PSK_MAX 64
#define PVR_PSK_KEYS 16384
#define PVR_PSK_ID 17
#define PVR_PSK_IDENTITY (PVR_HOST_NAME_MAX + PVR_PSK_ID)

struct pvr_psk {
	char host[PVR_HOST_NAME_MAX]; /* "": all other hosts */
	char id[PVR_PSK_ID]; /* distinguishes the keys of a host, and reveals nothing of the key */
	uint8_t key[PVR_PSK_MAX];
	size_t len;
	size_t next; /* 1 + index of the next key of the same bucket, in order of the file; 0: none */
};

#define PVR_PSK_BUCKETS 8192

struct pvr_psk_file {
	struct pvr_psk *keys;
	size_t num, size; /* keys; space for keys */
	struct {
		size_t first, last; /* 1 + index in @keys; 0: none */
	} buckets[PVR_PSK_BUCKETS]; /* by host */
	char path[512];
};

/* NULL with @err filled, with file and line. */
struct pvr_psk_file *pvr_psk_file_read(const char *path, struct pvr_error *err);
void pvr_psk_file_free(struct pvr_psk_file *file);
/* Return: the key to present to @host, or NULL. */
const struct pvr_psk *pvr_psk_find(const struct pvr_psk_file *file, const char *host);
/* Formats the identity to present to @host with this key; @name: this host. */
void pvr_psk_identity(const struct pvr_psk_file *file, const struct pvr_psk *psk, const char *host,
		      const char *name, char identity[PVR_PSK_IDENTITY]);
/*
 * Finds the key of an identity. @name: the host, at most PVR_HOST_NAME_MAX - 1 bytes,
 * "?" if it is invalid. Return: NULL without a key.
 */
const struct pvr_psk *pvr_psk_identify(const struct pvr_psk_file *file, const uint8_t *identity,
				       size_t len, char host[PVR_HOST_NAME_MAX]);
/* Return: whether @host has an equal key. @psk may belong to another file. */
bool pvr_psk_accepts(const struct pvr_psk_file *file, const char *host, const struct pvr_psk *psk);

/* Reports why a file could not be read, with errno, and with the user for EACCES. */
void pvr_key_file_error(const char *what, const char *path, int error, struct pvr_error *err);

#endif /* PVR_NET_TLS_PSK_H */
