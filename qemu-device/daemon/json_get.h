/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Short helpers that read JSON replies. An absent field reads as "?", 0, false or an empty list. */
#ifndef PVR_DAEMON_JSON_GET_H
#define PVR_DAEMON_JSON_GET_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

static inline const char *text_of(struct json_object *obj, const char *key)
{
	struct json_object *value;
	const char *text = NULL;

	if (json_object_object_get_ex(obj, key, &value))
		text = json_object_get_string(value);
	return text ? text : "?";
}

static inline uint64_t number_of(struct json_object *obj, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(obj, key, &value) ? json_object_get_uint64(value) : 0;
}

static inline bool truth_of(struct json_object *obj, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(obj, key, &value) && json_object_get_boolean(value);
}

static inline struct json_object *list_of(struct json_object *obj, const char *key, size_t *len)
{
	struct json_object *list = NULL;

	*len = 0;
	if (json_object_object_get_ex(obj, key, &list) &&
	    json_object_is_type(list, json_type_array))
		*len = json_object_array_length(list);
	return list;
}

#endif /* PVR_DAEMON_JSON_GET_H */
