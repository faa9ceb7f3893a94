// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The file of pre-shared keys. */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/net_settings.h"
#include "net/tls_psk.h"

#define KEYS_PER_HOST 2

void pvr_key_file_error(const char *what, const char *path, int error, struct pvr_error *err)
{
	if (error == EACCES || error == EPERM)
		pvr_fail(
			err,
			"cannot read the %s %.300s: %s: pvrdmad runs as user %u of group %u, which must be able to",
			what, path, strerror(error), (unsigned int)geteuid(),
			(unsigned int)getegid());
	else
		pvr_fail(err, "cannot read the %s %.300s: %s", what, path, strerror(error));
}

/* ---------------------------------------------------------------------- a line */

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

static bool fill_id(struct pvr_psk *psk)
{
	static const unsigned char label[] = { 'p', 'v', 'r', 'd', 'm', 'a', ' ', 'k', 'e', 'y' };
	uint8_t digest[EVP_MAX_MD_SIZE];
	size_t i;

	if (!HMAC(EVP_sha256(), psk->key, (int)psk->len, label, sizeof(label), digest, NULL))
		return false;
	for (i = 0; i < PVR_PSK_ID / 2; i++)
		snprintf(psk->id + 2 * i, PVR_PSK_ID - 2 * i, "%02x", digest[i]);
	return true;
}

static bool read_hex(struct pvr_psk *psk, const char *hex, struct pvr_error *err)
{
	size_t len = strlen(hex), i;
	int high, low;

	if (len % 2 || len / 2 < PVR_PSK_MIN || len / 2 > PVR_PSK_MAX)
		return pvr_fail(err,
				"a key of %zu hexadecimal digits, expected %d to %d: make one "
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
	return fill_id(psk) || pvr_fail(err, "OpenSSL lacks HMAC-SHA-256");
}

/* @line: without white space at its ends. */
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

static bool is_equal(const struct pvr_psk *a, const struct pvr_psk *b)
{
	return a->len == b->len && !CRYPTO_memcmp(a->key, b->key, a->len);
}

/* ---------------------------------------------------------------------- a file */

/* -------------------------------------------------------------------- the table */

static size_t bucket_of(const char *host)
{
	uint32_t hash = 2166136261u;

	while (*host)
		hash = (hash ^ (uint8_t)*host++) * 16777619u;
	return hash % PVR_PSK_BUCKETS;
}

/* Return: the next key in the lines of @name after @at; NULL: the first. */
static const struct pvr_psk *next_line(const struct pvr_psk_file *file, const char *name,
				       const struct pvr_psk *at)
{
	size_t i = at ? at->next : file->buckets[bucket_of(name)].first;

	while (i && strcmp(file->keys[i - 1].host, name))
		i = file->keys[i - 1].next;
	return i ? &file->keys[i - 1] : NULL;
}

/* Adds the last key to its bucket. */
static void link_last(struct pvr_psk_file *file)
{
	size_t bucket = bucket_of(file->keys[file->num - 1].host);

	if (file->buckets[bucket].last)
		file->keys[file->buckets[bucket].last - 1].next = file->num;
	else
		file->buckets[bucket].first = file->num;
	file->buckets[bucket].last = file->num;
}

static bool check_new(const struct pvr_psk_file *file, const struct pvr_psk *psk,
		      struct pvr_error *err)
{
	const char *whose = psk->host[0] ? psk->host : "all hosts";
	const struct pvr_psk *at = NULL;
	size_t num = 0;

	while ((at = next_line(file, psk->host, at))) {
		if (is_equal(at, psk))
			return pvr_fail(err, "the same key for %s a second time", whose);
		if (++num == KEYS_PER_HOST)
			return pvr_fail(err,
					"a third key for %s: there can be two, the one to "
					"use and another to accept",
					whose);
	}
	return true;
}

static bool grow(struct pvr_psk_file *file)
{
	size_t size = file->size ? 2 * file->size : 16;
	struct pvr_psk *grown = calloc(size, sizeof(*grown));

	if (!grown)
		return false;
	if (file->num) {
		memcpy(grown, file->keys, file->num * sizeof(*grown));
		OPENSSL_cleanse(file->keys, file->num * sizeof(*grown));
	}
	free(file->keys);
	file->keys = grown;
	file->size = size;
	return true;
}

static bool add(struct pvr_psk_file *file, const struct pvr_psk *psk, struct pvr_error *err)
{
	if (!check_new(file, psk, err))
		return false;
	if (file->num == PVR_PSK_KEYS)
		return pvr_fail(err, "more than %d keys", PVR_PSK_KEYS);
	if (file->num == file->size && !grow(file))
		return pvr_fail(err, "out of memory");
	file->keys[file->num++] = *psk;
	link_last(file);
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
	if (ok && ferror(stream)) {
		pvr_key_file_error("key file", file->path, errno, err);
		return false;
	}
	if (!ok)
		return pvr_fail(err, "%s:%zu: %.300s", file->path, number, why.text);
	return file->num || pvr_fail(err, "%s: the file has no key", file->path);
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
		pvr_key_file_error("key file", path, errno, err);
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

/* ----------------------------------------------------------- keys of a host */

/* Return: the name in the lines that apply to @host. */
static const char *line_name(const struct pvr_psk_file *file, const char *host)
{
	return next_line(file, host, NULL) ? host : "";
}

/* Return: the next key of @host after @at; NULL: the first. */
static const struct pvr_psk *next_key(const struct pvr_psk_file *file, const char *host,
				      const struct pvr_psk *at)
{
	return next_line(file, line_name(file, host), at);
}

const struct pvr_psk *pvr_psk_find(const struct pvr_psk_file *file, const char *host)
{
	return next_key(file, host, NULL);
}

bool pvr_psk_accepts(const struct pvr_psk_file *file, const char *host, const struct pvr_psk *psk)
{
	const struct pvr_psk *at = NULL;

	while ((at = next_key(file, host, at))) {
		if (is_equal(at, psk))
			return true;
	}
	return false;
}

void pvr_psk_identity(const struct pvr_psk_file *file, const struct pvr_psk *psk, const char *host,
		      const char *name, char identity[PVR_PSK_IDENTITY])
{
	bool several = next_key(file, host, next_key(file, host, NULL)) != NULL;

	snprintf(identity, PVR_PSK_IDENTITY, "%.*s%s%s", PVR_HOST_NAME_MAX - 1, name,
		 several ? ":" : "", several ? psk->id : "");
}

const struct pvr_psk *pvr_psk_identify(const struct pvr_psk_file *file, const uint8_t *identity,
				       size_t len, char host[PVR_HOST_NAME_MAX])
{
	const uint8_t *colon = len ? memchr(identity, ':', len) : NULL;
	size_t name = colon ? (size_t)(colon - identity) : len;
	const struct pvr_psk *at = NULL;
	struct pvr_error why;

	memset(host, 0, PVR_HOST_NAME_MAX);
	if (name < PVR_HOST_NAME_MAX)
		memcpy(host, identity, name);
	if (strlen(host) != name || !pvr_host_name_check(host, &why)) {
		strcpy(host, "?");
		return NULL;
	}
	while ((at = next_key(file, host, at))) {
		if (!colon ||
		    (len - name == PVR_PSK_ID && !memcmp(at->id, colon + 1, PVR_PSK_ID - 1)))
			break;
	}
	return at;
}
