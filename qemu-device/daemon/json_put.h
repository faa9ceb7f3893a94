/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Short helpers that fill JSON replies. */
#ifndef PVR_DAEMON_JSON_PUT_H
#define PVR_DAEMON_JSON_PUT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A failed allocation leaves the field out: json-c offers no way to undo it. */
static inline void put(struct json_object *obj, const char *key, struct json_object *value)
{
	json_object_object_add(obj, key, value);
}

static inline void put_text(struct json_object *obj, const char *key, const char *value)
{
	put(obj, key, json_object_new_string(value));
}

static inline void put_number(struct json_object *obj, const char *key, uint64_t value)
{
	put(obj, key, json_object_new_uint64(value));
}

static inline void put_bool(struct json_object *obj, const char *key, bool value)
{
	put(obj, key, json_object_new_boolean(value));
}

#define GID_TEXT 40

static inline const char *format_gid(const uint8_t gid[16], char text[GID_TEXT])
{
	size_t i, len = 0;

	for (i = 0; i < 16; i += 2)
		len += (size_t)snprintf(text + len, GID_TEXT - len, "%s%02x%02x", i ? ":" : "",
					gid[i], gid[i + 1]);
	return text;
}

#endif /* PVR_DAEMON_JSON_PUT_H */
