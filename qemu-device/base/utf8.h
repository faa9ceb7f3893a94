/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Characters of UTF-8 in text of unknown origin. */
#ifndef PVR_BASE_UTF8_H
#define PVR_BASE_UTF8_H

#include <stddef.h>

/* Return: the number of bytes that a character with this first byte has; 0: no first byte. */
static inline size_t pvr_utf8_expected(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/*
 * @text ends with NUL. Return: the number of bytes of the character at its beginning; 0: the byte is
 * no part of a character. Overlong forms, surrogates and numbers above 0x10ffff are none.
 */
static inline size_t pvr_utf8_len(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t len = pvr_utf8_expected(*at), i;

	for (i = 1; i < len; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] >= 0xa0) ||
	    (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] >= 0x90))
		return 0;
	return len;
}

#endif /* PVR_BASE_UTF8_H */
