/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The file of pre-shared keys: lines HOST:HEX, one key for each other host, or HEX, for all
 * that have no line of their own. Empty lines and those that begin with # are skipped.
 */
#ifndef PVR_TLS_PSK_H
#define PVR_TLS_PSK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "pipe.h"

#define PVR_PSK_MIN 16
#define PVR_PSK_MAX 64
#define PVR_PSK_KEYS 16384

struct pvr_psk {
	char host[PVR_REMOTE_NAME_MAX]; /* "": all others */
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
/* The key that we share with @host. NULL: none. */
const struct pvr_psk *pvr_psk_find(const struct pvr_psk_file *file, const char *host);

#endif /* PVR_TLS_PSK_H */
