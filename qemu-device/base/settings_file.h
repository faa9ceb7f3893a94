/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Files of KEY = VALUE lines and [KIND NAME] sections; a line that begins with '#' is a
 * comment, white space around keys, values and names means nothing.
 */
#ifndef PVR_BASE_SETTINGS_FILE_H
#define PVR_BASE_SETTINGS_FILE_H

#include <stddef.h>

#include "base/error.h"

/* Each fills @err and returns false if that does not make sense. */
struct pvr_settings_file_ops {
	const char *what; /* the file is: "configuration file" */
	const char *kind; /* of sections: "adapter" */
	/* Before the first section. NULL: nothing may be there. */
	bool (*set)(void *opaque, const char *key, char *value, struct pvr_error *err);
	bool (*begin)(void *opaque, const char *name, size_t line, struct pvr_error *err);
	bool (*set_in_section)(void *opaque, char *key, char *value, struct pvr_error *err);
	/* Behind the last line of a section; the mistake is shown at its first line. */
	bool (*end)(void *opaque, struct pvr_error *err);
};

/* False: @err names the file, and the line if there is a mistake on one. */
bool pvr_settings_file_read(const char *path, const struct pvr_settings_file_ops *ops, void *opaque,
			    struct pvr_error *err);

#endif /* PVR_BASE_SETTINGS_FILE_H */
