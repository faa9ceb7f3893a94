// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Settings whose value is text. */
#include "base/settings_text.h"

#include <ctype.h>
#include <string.h>

bool pvr_set_text(char *to, size_t size, const char *key, const char *value, struct pvr_error *err)
{
	if (!*value)
		return pvr_fail(err, "%s is empty", key);
	if (strlen(value) >= size)
		return pvr_fail(err, "%s has %zu characters, the limit is %zu", key, strlen(value),
				size - 1);
	strcpy(to, value);
	return true;
}

bool pvr_keep_text(char *to, size_t size, const char *key, const char *value, struct pvr_error *err)
{
	return *to || pvr_set_text(to, size, key, value, err);
}

char *pvr_trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return text;
}
