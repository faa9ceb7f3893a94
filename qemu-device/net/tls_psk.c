// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The file of pre-shared keys. */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_settings.h"
#include "tls_psk.h"

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool read_hex(struct pvr_psk *psk, const char *hex, struct pvr_error *err)
{
	size_t len = strlen(hex), i;
	int high, low;

	if (len % 2 || len / 2 < PVR_PSK_MIN || len / 2 > PVR_PSK_MAX)
		return pvr_fail(err, "a key of %zu hexadecimal digits, expected %d to %d: make one "
				     "by 'openssl rand -hex 32'",
				len, 2 * PVR_PSK_MIN, 2 * PVR_PSK_MAX);
	for (i = 0; i < len / 2; i++) {
		high = hex_value(hex[2 * i]);
		low = hex_value(hex[2 * i + 1]);
		if (high < 0 || low < 0)
			return pvr_fail(err, "a key with characters other than hexadecimal digits");
		psk->key[i] = (uint8_t)(high << 4 | low);
	}
	psk->len = len / 2;
	return true;
}

/* @line has no white space at its ends. */
static bool read_line(struct pvr_psk *psk, char *line, struct pvr_error *err)
{
	char *colon = strchr(line, ':');

	memset(psk, 0, sizeof(*psk));
	if (!colon)
		return read_hex(psk, line, err);
	*colon = '\0';
	if (!pvr_host_name_check(line, err))
		return false;
	strcpy(psk->host, line);
	return read_hex(psk, colon + 1, err);
}

static bool add(struct pvr_psk_file *file, const struct pvr_psk *psk, struct pvr_error *err)
{
	struct pvr_psk *grown;
	size_t i;

	for (i = 0; i < file->num; i++) {
		if (!strcmp(file->keys[i].host, psk->host))
			return pvr_fail(err, "a second key for %s",
					psk->host[0] ? psk->host : "all hosts");
	}
	if (file->num == PVR_PSK_KEYS)
		return pvr_fail(err, "more than %d keys", PVR_PSK_KEYS);
	grown = realloc(file->keys, (file->num + 1) * sizeof(*grown));
	if (!grown)
		return pvr_fail(err, "out of memory");
	grown[file->num++] = *psk;
	file->keys = grown;
	return true;
}

static bool read_lines(struct pvr_psk_file *file, FILE *stream, struct pvr_error *err)
{
	struct pvr_error why = { "" };
	size_t size = 0, number = 0;
	char *line = NULL, *text;
	struct pvr_psk psk;
	bool ok = true;

	while (ok && getline(&line, &size, stream) >= 0) {
		number++;
		text = line + strspn(line, " \t");
		text[strcspn(text, " \t\r\n")] = '\0';
		if (*text && *text != '#')
			ok = read_line(&psk, text, &why) && add(file, &psk, &why);
	}
	OPENSSL_cleanse(&psk, sizeof(psk));
	if (line)
		OPENSSL_cleanse(line, size);
	free(line);
	if (!ok)
		return pvr_fail(err, "%s:%zu: %.300s", file->path, number, why.text);
	return file->num || pvr_fail(err, "%s: there is no key in it", file->path);
}

struct pvr_psk_file *pvr_psk_file_read(const char *path, struct pvr_error *err)
{
	struct pvr_psk_file *file = calloc(1, sizeof(*file));
	FILE *stream = file ? fopen(path, "re") : NULL;
	bool ok = false;

	if (stream) {
		snprintf(file->path, sizeof(file->path), "%s", path);
		ok = read_lines(file, stream, err);
		fclose(stream);
	} else {
		pvr_fail(err, "cannot read the key file %s: %s", path, strerror(errno));
	}
	if (ok)
		return file;
	pvr_psk_file_free(file);
	return NULL;
}

void pvr_psk_file_free(struct pvr_psk_file *file)
{
	if (!file)
		return;
	if (file->keys)
		OPENSSL_cleanse(file->keys, file->num * sizeof(*file->keys));
	free(file->keys);
	free(file);
}

const struct pvr_psk *pvr_psk_find(const struct pvr_psk_file *file, const char *host)
{
	const struct pvr_psk *all = NULL;
	size_t i;

	for (i = 0; i < file->num; i++) {
		if (!strcmp(file->keys[i].host, host))
			return &file->keys[i];
		if (!file->keys[i].host[0])
			all = &file->keys[i];
	}
	return all;
}
