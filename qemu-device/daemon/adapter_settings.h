/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* One adapter as the operator describes it: on a command line, in a file, in a request. */
#ifndef PVR_DAEMON_ADAPTER_SETTINGS_H
#define PVR_DAEMON_ADAPTER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "engine.h"

#define PVR_PATH_MAX 512 /* longer than a socket path, to tell by how much it is */

/* What follows --adapter and add-adapter. */
#define PVR_ADAPTER_SYNTAX                                                             \
	"name=NAME,socket=PATH,mac=MAC[,fabric=NAME][,hwversion=VERSION][,roce=v1|v2]" \
	"[,async=on|off][,worker=N]"

struct pvr_adapter_settings {
	char name[PVR_NAME_MAX];
	char fabric[PVR_NAME_MAX]; /* "": default */
	char socket[PVR_PATH_MAX];
	uint8_t mac[6];
	bool has_mac;
	const char *hwversion; /* a literal; NULL: latest */
	uint8_t gid_type; /* PVR_GID_TYPE_*; 0: the best that the revision has */
	bool async;
	bool has_worker; /* else whichever has the fewest adapters */
	unsigned int worker;
};

/* As pvr_set_text(), of a path that fits into a socket's address. */
bool pvr_set_socket(char to[PVR_PATH_MAX], const char *key, const char *value,
		    struct pvr_error *err);

/* "name", "socket", "mac", "fabric", "hwversion", "roce", "async" or "worker". */
bool pvr_adapter_settings_set(struct pvr_adapter_settings *adapter, const char *key,
			      const char *value, struct pvr_error *err);
/* Is everything there? */
bool pvr_adapter_settings_check(const struct pvr_adapter_settings *adapter, struct pvr_error *err);
/* Calls @each for each KEY=VALUE of PVR_ADAPTER_SYNTAX, until one returns false. */
bool pvr_adapter_words(const char *text,
		       bool (*each)(void *opaque, const char *key, const char *value,
				    struct pvr_error *err),
		       void *opaque, struct pvr_error *err);
/* All of PVR_ADAPTER_SYNTAX, checked. */
bool pvr_adapter_settings_parse(struct pvr_adapter_settings *adapter, const char *text,
				struct pvr_error *err);

#endif /* PVR_DAEMON_ADAPTER_SETTINGS_H */
