/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Settings of the directory: options and configuration file. */
#ifndef PVR_DIRECTORY_DIRECTORY_OPTIONS_H
#define PVR_DIRECTORY_DIRECTORY_OPTIONS_H

#include "directory/etcd_settings.h"

#define PVR_DIRECTORY_KEYS                                                            \
	"peers, policy, etcd, etcd-prefix, etcd-ca, etcd-cert, etcd-key, etcd-user, " \
	"etcd-password-file, etcd-lease, advertise"

struct pvr_directory_options {
	char peers_file[512]; /* "": none */
	char policy_file[512]; /* "": none */
	struct pvr_etcd_settings etcd;
	char advertise[96]; /* "": the first address that the daemon listens at */
};

/* Return: whether @key is one of PVR_DIRECTORY_KEYS. */
bool pvr_directory_options_has(const char *key);
/* An earlier value is kept: options override the file. */
bool pvr_directory_options_set(struct pvr_directory_options *options, const char *key,
			       const char *value, struct pvr_error *err);
/* As pvr_etcd_settings_check(). */
bool pvr_directory_options_check(const struct pvr_directory_options *options, bool insecure,
				 struct pvr_error *err);
/* Return: whether a directory is configured. */
bool pvr_directory_options_any(const struct pvr_directory_options *options);

#endif /* PVR_DIRECTORY_DIRECTORY_OPTIONS_H */
