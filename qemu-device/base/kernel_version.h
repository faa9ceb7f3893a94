/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The version of the running kernel, for what it says in no other way. */
#ifndef PVR_BASE_KERNEL_VERSION_H
#define PVR_BASE_KERNEL_VERSION_H

#include <stdbool.h>
#include <stdlib.h>
#include <sys/utsname.h>

/* Return: false also if it is not known. */
static inline bool pvr_kernel_is_at_least(unsigned long major, unsigned long minor)
{
	unsigned long has_major, has_minor;
	struct utsname name;
	char *end;

	if (uname(&name) < 0)
		return false;
	has_major = strtoul(name.release, &end, 10);
	has_minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
	return has_major > major || (has_major == major && has_minor >= minor);
}

#endif /* PVR_BASE_KERNEL_VERSION_H */
