/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The file of pre-shared keys: lines HOST:HEX, keys for each other host, or HEX, for all
 * that have no line of their own. Empty lines and those that begin with # are skipped.
 *
 * DOC: two keys for a host
 *
 * The first is the one that is shown to that host, the other one is accepted as well. So
 * a key can be replaced without an hour at which all hosts have to do it. Who is dialled
 * has to know which of them is meant, so the identity then is NAME:ID.
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
#define PVR_PSK_IDENTITY (PVR_REMOTE_NAME_MAX + PVR_PSK_ID)

struct pvr_psk {
	char host[PVR_REMOTE_NAME_MAX]; /* "": all others */
	char id[PVR_PSK_ID]; /* tells it from others, and nothing of what it is */
	uint8_t key[PVR_PSK_MAX];
	size_t len;
};

struct pvr_psk_file {
	struct pvr_psk *keys;
	size_t num;
	char path[512];
};

/* NULL with @err filled: it names the file and the line. */
struct pvr_psk_file *pvr_psk_file_read(const char *path, struct pvr_error *err);
void pvr_psk_file_free(struct pvr_psk_file *file);
/* The key that we share with @host, and show it. NULL: none. */
const struct pvr_psk *pvr_psk_find(const struct pvr_psk_file *file, const char *host);
/* What @host, which is to be called @name, is told of it. */
void pvr_psk_identity(const struct pvr_psk_file *file, const struct pvr_psk *psk, const char *host,
		      const char *name, char identity[PVR_PSK_IDENTITY]);
/*
 * Who shows this identity: its name (never longer than PVR_REMOTE_NAME_MAX - 1, and "?" if it is none),
 * and the key. NULL: we have none.
 */
const struct pvr_psk *pvr_psk_identify(const struct pvr_psk_file *file, const uint8_t *identity,
				       size_t len, char host[PVR_REMOTE_NAME_MAX]);
/* Is it one of those of @host? It may be from another file. */
bool pvr_psk_accepts(const struct pvr_psk_file *file, const char *host, const struct pvr_psk *psk);

/* Why a file could not be read, for people: what errno says, and who we are if it is access. */
void pvr_key_file_error(const char *what, const char *path, int error, struct pvr_error *err);

#endif /* PVR_NET_TLS_PSK_H */
