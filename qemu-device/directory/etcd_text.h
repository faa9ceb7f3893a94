/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Texts for etcd's JSON gateway, and parsing of its responses. */
#ifndef PVR_DIRECTORY_ETCD_TEXT_H
#define PVR_DIRECTORY_ETCD_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PVR_ETCD_KEY_MAX 256
#define PVR_ETCD_VALUE_MAX 1024
#define PVR_BASE64_SIZE(len) (((len) + 2) / 3 * 4 + 1)

/* @to must have PVR_BASE64_SIZE(@len) bytes. */
void pvr_base64_encode(char *to, const char *from, size_t len);
/*
 * Decodes and adds a NUL. Return: the length; -1: invalid base64, contains NUL, or too
 * long.
 */
long pvr_base64_decode(char *to, size_t size, const char *from);

/* A growing text. Without memory it is truncated and marked as failed. */
struct pvr_text {
	char *data;
	size_t len, size;
	bool bad;
};

__attribute__((format(printf, 2, 3))) void pvr_text_add(struct pvr_text *text, const char *fmt,
							...);
/* Adds base64 without quotes. */
void pvr_text_add_base64(struct pvr_text *text, const char *value);

/*
 * Parses @len bytes of JSON. Return: an object to put; NULL if invalid or nested too
 * deep.
 */
struct json_object *pvr_json_parse(const char *text, size_t len);
/* Return: the member, or NULL if @object is NULL or has none of this type. */
struct json_object *pvr_json_object(struct json_object *object, const char *key);
struct json_object *pvr_json_array(struct json_object *object, const char *key);
const char *pvr_json_text(struct json_object *object, const char *key);
/*
 * Return: a number, also one in quotes as the gateway writes 64-bit numbers; 0 without
 * one.
 */
uint64_t pvr_json_number(struct json_object *object, const char *key);
bool pvr_json_true(struct json_object *object, const char *key);
/* Decodes a member in base64. Return: the length; -1 without a member that fits. */
long pvr_json_base64(struct json_object *object, const char *key, char *to, size_t size);

#endif /* PVR_DIRECTORY_ETCD_TEXT_H */
