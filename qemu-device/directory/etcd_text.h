/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Texts that go to etcd's JSON gateway, and what comes from there. */
#ifndef PVR_DIRECTORY_ETCD_TEXT_H
#define PVR_DIRECTORY_ETCD_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PVR_ETCD_KEY_MAX 256
#define PVR_ETCD_VALUE_MAX 1024
#define PVR_BASE64_SIZE(len) (((len) + 2) / 3 * 4 + 1)

/* @to has room for PVR_BASE64_SIZE(@len). */
void pvr_base64_encode(char *to, const char *from, size_t len);
/* NUL-terminated. Return: the length; -1: it is no base64, has a NUL, or does not fit. */
long pvr_base64_decode(char *to, size_t size, const char *from);

/* A text that grows; without memory it stays short, and says so. */
struct pvr_text {
	char *data;
	size_t len, size;
	bool bad;
};

__attribute__((format(printf, 2, 3))) void pvr_text_add(struct pvr_text *text, const char *fmt,
							...);
/* In base64, without quotes. */
void pvr_text_add_base64(struct pvr_text *text, const char *value);

/* JSON of @len bytes; NULL: it is none, or nested too deep. To be put. */
struct json_object *pvr_json_parse(const char *text, size_t len);
/* Members, or NULL if @object is NULL or has none of that kind. */
struct json_object *pvr_json_object(struct json_object *object, const char *key);
struct json_object *pvr_json_array(struct json_object *object, const char *key);
const char *pvr_json_text(struct json_object *object, const char *key);
/* A number, or one in quotes as the gateway writes those of 64 bits; 0 if there is none. */
uint64_t pvr_json_number(struct json_object *object, const char *key);
bool pvr_json_true(struct json_object *object, const char *key);
/* A member in base64, decoded; -1 if there is none that fits. */
long pvr_json_base64(struct json_object *object, const char *key, char *to, size_t size);

#endif /* PVR_DIRECTORY_ETCD_TEXT_H */
