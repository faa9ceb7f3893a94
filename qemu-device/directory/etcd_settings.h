/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Settings of etcd. */
#ifndef PVR_DIRECTORY_ETCD_SETTINGS_H
#define PVR_DIRECTORY_ETCD_SETTINGS_H

#include "base/error.h"

#define PVR_ETCD_URLS_MAX 8
#define PVR_ETCD_PREFIX_MAX 64
#define PVR_ETCD_PATH_MAX 512

struct pvr_etcd_settings {
	char urls[PVR_ETCD_URLS_MAX][256];
	size_t num_urls; /* 0: no etcd */
	char prefix[PVR_ETCD_PREFIX_MAX]; /* "": "pvrdma/" */
	char ca[PVR_ETCD_PATH_MAX], cert[PVR_ETCD_PATH_MAX], key[PVR_ETCD_PATH_MAX];
	char user[64], password_file[PVR_ETCD_PATH_MAX];
	unsigned int lease; /* in seconds; 0: 10 */
};

/*
 * @key: "etcd", "etcd-prefix", "etcd-ca", "etcd-cert", "etcd-key", "etcd-user",
 * "etcd-password-file" or "etcd-lease". An earlier value is kept. False with @err filled.
 */
bool pvr_etcd_settings_set(struct pvr_etcd_settings *settings, const char *key, const char *value,
			   struct pvr_error *err);
/*
 * Checks the settings against each other. @insecure: http to other machines is allowed.
 * False with @err filled.
 */
bool pvr_etcd_settings_check(const struct pvr_etcd_settings *settings, bool insecure,
			     struct pvr_error *err);

#endif /* PVR_DIRECTORY_ETCD_SETTINGS_H */
