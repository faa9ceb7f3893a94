/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* pvrdmactl domain-xml: what a libvirt domain needs for an adapter. */
#ifndef PVR_DAEMON_CTL_DOMAIN_H
#define PVR_DAEMON_CTL_DOMAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct pvr_domain_options {
	const char *control; /* path of the control socket */
	const char *adapter; /* a name, or settings as those of add-adapter */
	const char *file; /* the domain to change; "-": standard input to output; NULL: print one */
	bool json; /* print a JSON object with the XML as text */
	bool posted_writes;
	bool migratable; /* with QEMU's device pvrdma */
	bool unplugged; /* without the device, as before it is plugged in */
};

/* Read @file to its end. Return: the caller's text, free(); or NULL with @err filled. */
char *pvr_domain_read_all(FILE *file, const char *source, size_t *len, struct pvr_error *err);

/* Return: false with @err filled; the file is unchanged then. */
bool pvr_ctl_domain_xml(const struct pvr_domain_options *options, struct pvr_error *err);

#endif /* PVR_DAEMON_CTL_DOMAIN_H */
