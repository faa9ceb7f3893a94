/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Settings that are text. */
#ifndef PVR_BASE_SETTINGS_TEXT_H
#define PVR_BASE_SETTINGS_TEXT_H

#include <stddef.h>

#include "base/error.h"

/* @value without the zero byte has to fit into @size, and not to be empty. */
bool pvr_set_text(char *to, size_t size, const char *key, const char *value, struct pvr_error *err);
/* The same, but what was set before (an option) stays. */
bool pvr_keep_text(char *to, size_t size, const char *key, const char *value,
		   struct pvr_error *err);
/* Without white space around it; changes what is behind it. */
char *pvr_trim(char *text);

#endif /* PVR_BASE_SETTINGS_TEXT_H */
