/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* An error message of one line: what failed, on which object, and what to do. */
#ifndef PVR_BASE_ERROR_H
#define PVR_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

struct pvr_error {
	char text[1024]; /* a list of all settings fits */
};

/* Fills @err and returns false, so that a caller can write: return pvr_fail(...). */
__attribute__((format(printf, 2, 3))) static inline bool pvr_fail(struct pvr_error *err,
								  const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return false;
}

#endif /* PVR_BASE_ERROR_H */
