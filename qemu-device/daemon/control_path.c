// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The default path of the control socket. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/control_path.h"

bool pvr_control_default_path(char *path, size_t size)
{
	const char *env = getenv("PVRDMA_CONTROL");
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int len;

	if (env && *env)
		len = snprintf(path, size, "%s", env);
	else if (geteuid() == 0)
		len = snprintf(path, size, "/run/pvrdma/control");
	else if (runtime && *runtime)
		len = snprintf(path, size, "%s/pvrdma/control", runtime);
	else
		return false;
	return len > 0 && (size_t)len < size;
}
