// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Texts for etcd's JSON gateway, and parsing of its responses. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "directory/etcd_text.h"

#define JSON_DEPTH 16

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void pvr_base64_encode(char *to, const char *from, size_t len)
{
	const uint8_t *in = (const uint8_t *)from;
	uint32_t bits;
	size_t i;

	for (i = 0; i < len; i += 3) {
		bits = (uint32_t)in[i] << 16;
		bits |= i + 1 < len ? (uint32_t)in[i + 1] << 8 : 0;
		bits |= i + 2 < len ? in[i + 2] : 0;
		*to++ = digits[bits >> 18];
		*to++ = digits[bits >> 12 & 63];
		*to++ = i + 1 < len ? digits[bits >> 6 & 63] : '=';
		*to++ = i + 2 < len ? digits[bits & 63] : '=';
	}
	*to = '\0';
}

/* Decodes four digits with up to two '='; sets the number of bytes. */
static bool decode_four(const char *from, uint32_t *bits, size_t *bytes)
{
	const char *digit;
	size_t i;

	*bits = 0;
	*bytes = from[2] == '=' ? 1 : from[3] == '=' ? 2 : 3;
	for (i = 0; i < 4; i++) {
		digit = i <= *bytes ? memchr(digits, from[i], 64) : digits;
		if (!digit || (i > *bytes && from[i] != '='))
			return false;
		*bits = *bits << 6 | (uint32_t)(digit - digits);
	}
	return true;
}

long pvr_base64_decode(char *to, size_t size, const char *from)
{
	size_t len = strlen(from), done = 0, bytes = 3, i;
	uint32_t bits;

	if (len % 4)
		return -1;
	for (; len; len -= 4, from += 4) {
		if (bytes < 3 || done + 4 > size || !decode_four(from, &bits, &bytes))
			return -1;
		for (i = 0; i < bytes; i++) {
			to[done] = (char)(bits >> (16 - 8 * i));
			if (!to[done++])
				return -1;
		}
	}
	to[done] = '\0';
	return (long)done;
}

/* --------------------------------------------------------------------------- text */

static bool make_room(struct pvr_text *text, size_t more)
{
	size_t size = text->size ? text->size : 1024;
	char *grown;

	while (size <= text->len + more)
		size *= 2;
	if (size == text->size)
		return true;
	grown = realloc(text->data, size);
	if (!grown) {
		text->bad = true;
		return false;
	}
	text->data = grown;
	text->size = size;
	return true;
}

void pvr_text_add(struct pvr_text *text, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0 || !make_room(text, (size_t)len))
		return;
	va_start(ap, fmt);
	vsnprintf(text->data + text->len, text->size - text->len, fmt, ap);
	va_end(ap);
	text->len += (size_t)len;
}

void pvr_text_add_base64(struct pvr_text *text, const char *value)
{
	size_t len = strlen(value), room = PVR_BASE64_SIZE(len);

	if (!make_room(text, room))
		return;
	pvr_base64_encode(text->data + text->len, value, len);
	text->len += room - 1;
}

/* --------------------------------------------------------------------------- JSON */

struct json_object *pvr_json_parse(const char *text, size_t len)
{
	struct json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH);
	struct json_object *object;

	if (!tokener)
		return NULL;
	object = json_tokener_parse_ex(tokener, text, (int)len);
	json_tokener_free(tokener);
	if (json_object_is_type(object, json_type_object))
		return object;
	json_object_put(object);
	return NULL;
}

static struct json_object *member(struct json_object *object, const char *key, enum json_type type)
{
	struct json_object *value;

	if (!json_object_is_type(object, json_type_object) ||
	    !json_object_object_get_ex(object, key, &value) || !json_object_is_type(value, type))
		return NULL;
	return value;
}

struct json_object *pvr_json_object(struct json_object *object, const char *key)
{
	return member(object, key, json_type_object);
}

struct json_object *pvr_json_array(struct json_object *object, const char *key)
{
	return member(object, key, json_type_array);
}

const char *pvr_json_text(struct json_object *object, const char *key)
{
	struct json_object *value = member(object, key, json_type_string);

	return value ? json_object_get_string(value) : NULL;
}

uint64_t pvr_json_number(struct json_object *object, const char *key)
{
	struct json_object *value = member(object, key, json_type_int);
	const char *text = pvr_json_text(object, key);
	unsigned long long number;
	char *end;

	if (value)
		return json_object_get_uint64(value);
	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	number = strtoull(text, &end, 10);
	return *end || errno ? 0 : number;
}

bool pvr_json_true(struct json_object *object, const char *key)
{
	struct json_object *value = member(object, key, json_type_boolean);

	return value && json_object_get_boolean(value);
}

long pvr_json_base64(struct json_object *object, const char *key, char *to, size_t size)
{
	const char *text = pvr_json_text(object, key);

	return text ? pvr_base64_decode(to, size, text) : -1;
}
