/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the operator says of the directory: options and configuration file. */
#ifndef PVR_DIRECTORY_DIRECTORY_OPTIONS_H
#define PVR_DIRECTORY_DIRECTORY_OPTIONS_H

#include "directory/etcd_settings.h"

#define PVR_DIRECTORY_KEYS                                                    \
	"peers, etcd, etcd-prefix, etcd-ca, etcd-cert, etcd-key, etcd-user, " \
	"etcd-password-file, etcd-lease, advertise"

struct pvr_directory_options {
	char peers_file[512]; /* "": none */
	struct pvr_etcd_settings etcd;
	char advertise[96]; /* "": the first address that it listens at */
};

/* One of PVR_DIRECTORY_KEYS? */
bool pvr_directory_options_has(const char *key);
/* What was set before (an option) stays. */
bool pvr_directory_options_set(struct pvr_directory_options *options, const char *key,
			       const char *value, struct pvr_error *err);
/* Does it fit together? */
bool pvr_directory_options_check(const struct pvr_directory_options *options,
				 struct pvr_error *err);
/* Is there a directory that tells of hosts? */
bool pvr_directory_options_any(const struct pvr_directory_options *options);

#endif /* PVR_DIRECTORY_DIRECTORY_OPTIONS_H */
