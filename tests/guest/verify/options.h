/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef PVR_VERIFY_OPTIONS_H
#define PVR_VERIFY_OPTIONS_H

#include "verify.h"

struct options {
	struct params params;
	bool both_ends_here;
	const char *device, *port, *peer;
	int gid_index;
};

/* Exits with status 2 when they make no sense. */
struct options parse_options(int argc, char **argv);

#endif
