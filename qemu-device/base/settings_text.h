/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Settings whose value is text. */
#ifndef PVR_BASE_SETTINGS_TEXT_H
#define PVR_BASE_SETTINGS_TEXT_H

#include <stddef.h>

#include "base/error.h"

/*
 * Copies @value. Return: false with @err filled if it is empty or longer than @size - 1
 * bytes.
 */
bool pvr_set_text(char *to, size_t size, const char *key, const char *value, struct pvr_error *err);
/* As pvr_set_text(), but keeps an earlier value: options override the file. */
bool pvr_keep_text(char *to, size_t size, const char *key, const char *value,
		   struct pvr_error *err);
/* Removes leading and trailing white space; overwrites trailing white space with NUL. */
char *pvr_trim(char *text);

#endif /* PVR_BASE_SETTINGS_TEXT_H */
