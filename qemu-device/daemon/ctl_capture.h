/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* pvrdmactl capture: packets of an adapter to a file. */
#ifndef PVR_DAEMON_CTL_CAPTURE_H
#define PVR_DAEMON_CTL_CAPTURE_H

#include <stdbool.h>

#include "base/error.h"

struct pvr_capture_options {
	const char *control; /* path of the control socket */
	const char *adapter;
	const char *file; /* "-": standard output */
	unsigned int snaplen; /* 0: the default of pvrdmad */
	bool payload;
};

/* Return: false with @err filled. */
bool pvr_capture_parse_snaplen(const char *text, unsigned int *snaplen, struct pvr_error *err);

/* Capture until SIGINT or SIGTERM, or until pvrdmad ends it. Return: false with @err filled. */
bool pvr_ctl_capture(const struct pvr_capture_options *options, struct pvr_error *err);

#endif /* PVR_DAEMON_CTL_CAPTURE_H */
