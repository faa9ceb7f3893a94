/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Settings files: lines KEY = VALUE and [KIND NAME] sections. A line that starts with '#'
 * is a comment. White space around keys, values and names is ignored.
 */
#ifndef PVR_BASE_SETTINGS_FILE_H
#define PVR_BASE_SETTINGS_FILE_H

#include <stddef.h>

#include "base/error.h"

/* Each returns false with @err filled if the value is invalid. */
struct pvr_settings_file_ops {
	const char *what; /* name of the file in messages: "configuration file" */
	const char *const *kinds; /* of the sections: "adapter", ...; the last one is NULL */
	/* A setting before the first section. NULL: none is allowed. */
	bool (*set)(void *opaque, const char *key, char *value, struct pvr_error *err);
	/* @kind: index of the section's kind */
	bool (*begin)(void *opaque, unsigned int kind, const char *name, size_t line,
		      struct pvr_error *err);
	bool (*set_in_section)(void *opaque, char *key, char *value, struct pvr_error *err);
	/*
	 * After the last line of a section. Its error is reported with the section's
	 * first line.
	 */
	bool (*end)(void *opaque, struct pvr_error *err);
};

/*
 * Return: true, or false; then @err names the file and, for an invalid line, its number.
 */
bool pvr_settings_file_read(const char *path, const struct pvr_settings_file_ops *ops, void *opaque,
			    struct pvr_error *err);

#endif /* PVR_BASE_SETTINGS_FILE_H */
