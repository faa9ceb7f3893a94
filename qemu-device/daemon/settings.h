/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Settings of the operator: options, configuration file, requests to add an adapter. */
#ifndef PVR_DAEMON_SETTINGS_H
#define PVR_DAEMON_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/adapter_settings.h"
#include "daemon/confine.h"
#include "daemon/poll_policy.h"
#include "daemon/worker_settings.h"
#include "directory/directory_options.h"
#include "net/net_settings.h"

#define PVR_ADAPTERS_MAX 256

struct pvr_fabric_settings {
	char name[PVR_NAME_MAX];
	struct pvr_qos qos;
};

#define PVR_HOLD_MAX_S 86400u

struct pvr_settings {
	struct pvr_adapter_settings *adapters;
	size_t num_adapters;
	struct pvr_fabric_settings *fabrics; /* those with settings of their own */
	size_t num_fabrics;
	char control[PVR_PATH_MAX]; /* "": the default path */
	char user[64]; /* "": do not change the user */
	enum pvr_log_level log_level;
	bool log_level_set;
	enum pvr_poll_mode poll;
	uint32_t poll_us; /* window of PVR_POLL_ALWAYS in µs */
	bool poll_set;
	enum pvr_seccomp_mode seccomp;
	bool seccomp_set;
	bool faults_allowed, faults_set;
	char served_fabrics[PVR_FABRIC_LIST_MAX]; /* "": all */
	uint32_t hold; /* seconds; 0: the default */
	bool needs_source, silent_source_set;
	char metrics[PVR_PATH_MAX]; /* ADDRESS:PORT or unix:PATH; "": no metrics */
	struct pvr_worker_settings workers;
	struct pvr_net_settings net;
	struct pvr_directory_options directory;
	bool timestamps;
	bool json_log, log_format_set;
};

/*
 * @key: "control", "user", "log-level", "poll", "seccomp", "workers", "worker-cpus",
 * "numa-node", "faults", "fabrics", "hold", "silent-source", "metrics", "log-format", or one of PVR_NET_KEYS
 * or PVR_DIRECTORY_KEYS. An earlier value is kept: options override the file.
 */
bool pvr_settings_set(struct pvr_settings *settings, const char *key, const char *value,
		      struct pvr_error *err);
/*
 * Copies a checked adapter. Return: false with @err filled if it collides with an earlier
 * one.
 */
bool pvr_settings_add_adapter(struct pvr_settings *settings,
			      const struct pvr_adapter_settings *adapter, struct pvr_error *err);
/* The same for a fabric with settings. */
bool pvr_settings_add_fabric(struct pvr_settings *settings,
			     const struct pvr_fabric_settings *fabric, struct pvr_error *err);
/* Adds the settings of a configuration file, see pvrdmad.conf(5). */
bool pvr_settings_read_file(struct pvr_settings *settings, const char *path, struct pvr_error *err);
void pvr_settings_free(struct pvr_settings *settings);

#endif /* PVR_DAEMON_SETTINGS_H */
