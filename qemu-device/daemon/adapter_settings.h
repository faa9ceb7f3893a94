/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The settings of one adapter, from an option, the configuration file or a request. */
#ifndef PVR_DAEMON_ADAPTER_SETTINGS_H
#define PVR_DAEMON_ADAPTER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "daemon/qos_settings.h"
#include "engine.h"
#include "segment/segment.h"

#define PVR_PATH_MAX 512 /* longer than a socket path: errors give the excess */

/* The syntax of the argument of --adapter and add-adapter. */
#define PVR_ADAPTER_SYNTAX                                                             \
	"name=NAME,socket=PATH,mac=MAC[,fabric=NAME][,hwversion=VERSION][,roce=v1|v2]" \
	"[,uar=mapped|trapped][,memory=SIZE][,object-memory=SIZE]"                     \
	"[,worker=N][,wire=unix:PATH|eth:INTERFACE|tap:NAME][,wire-gso=auto|on|off]"   \
	"[,wire-ecn=on|off][,user=NAME][,interrupts=msix|msi]"                         \
	"[,rate=RATE][,messages=N][,burst=SIZE][,weight=N]"

#define PVR_MEMORY_MAX (16ull << 40) /* of memory= and object-memory= */

struct pvr_adapter_settings {
	char name[PVR_NAME_MAX];
	char fabric[PVR_NAME_MAX]; /* "": the default fabric */
	char socket[PVR_PATH_MAX];
	uint8_t mac[6];
	bool has_mac;
	const char *hwversion; /* a string literal; NULL: the latest */
	uint8_t gid_type; /* PVR_GID_TYPE_*; 0: the best one of the revision */
	bool uar_mapped;
	uint64_t memory; /* limit of the guest's RAM; 0: the RAM of this host */
	uint64_t object_memory; /* see struct pvr_adapter_config */
	bool has_worker; /* false: the worker with the fewest adapters */
	unsigned int worker;
	bool has_user; /* false: QEMUs of all users that can open the socket */
	uid_t user; /* of QEMU */
	bool msi; /* one MSI vector: QEMU 11.1 can unplug the device */
	struct pvr_qos qos;
	char wire[PVR_PATH_MAX + 8]; /* see segment/segment.h; "": none */
	bool wire_ecn;
	enum pvr_segment_gso wire_gso;
};

/* Sets a name of letters, digits, '.', '_' and '-'. @key is for the error. */
bool pvr_set_name(char to[PVR_NAME_MAX], const char *key, const char *value, struct pvr_error *err);
/* Sets the name of a fabric. Return: false with @err filled if it is invalid. */
bool pvr_set_fabric_name(char to[PVR_NAME_MAX], const char *name, struct pvr_error *err);

#define PVR_FABRIC_LIST_MAX 1024

/* Return: the name of the fabric of an adapter whose setting "fabric" is @fabric, maybe "". */
const char *pvr_fabric_or_default(const char *fabric);
/* Sets a list of names of fabrics, with commas or spaces between them. */
bool pvr_set_fabric_list(char to[PVR_FABRIC_LIST_MAX], const char *list, struct pvr_error *err);
/* @list: checked by pvr_set_fabric_list() */
bool pvr_fabric_list_has(const char *list, const char *fabric);
/* As pvr_set_text(), for a path that fits into struct sockaddr_un. */
bool pvr_set_socket(char to[PVR_PATH_MAX], const char *key, const char *value,
		    struct pvr_error *err);

#define PVR_MAC_TEXT 18

/* Return: @text, such as "52:54:00:12:34:56". */
const char *pvr_mac_text(const uint8_t mac[6], char text[PVR_MAC_TEXT]);

/*
 * "name", "socket", "mac", "fabric", "hwversion", "roce", "uar", "memory", "object-memory",
 * "worker", "wire", "wire-gso", "wire-ecn", "user", "interrupts", or a key of pvr_qos_set(). A
 * user's name is looked up, which can load libraries: a process with --seccomp accepts numbers only.
 */
bool pvr_adapter_settings_set(struct pvr_adapter_settings *adapter, const char *key,
			      const char *value, struct pvr_error *err);
/* Return: whether a value of "user" is a number, which needs no look-up. */
bool pvr_adapter_is_user_number(const char *value);
/* Return: false with @err filled if a required setting is missing. */
bool pvr_adapter_settings_check(const struct pvr_adapter_settings *adapter, struct pvr_error *err);
/* Return: the network interface of wire=eth:INTERFACE or tap:NAME, or NULL. */
const char *pvr_adapter_interface(const struct pvr_adapter_settings *adapter);
/* Return: whether it has wire=tap:NAME. */
bool pvr_adapter_has_tap(const struct pvr_adapter_settings *adapter);
/* Calls @each for each KEY=VALUE of PVR_ADAPTER_SYNTAX until it returns false. */
bool pvr_adapter_words(const char *text,
		       bool (*each)(void *opaque, const char *key, const char *value,
				    struct pvr_error *err),
		       void *opaque, struct pvr_error *err);
/* Parses and checks all of PVR_ADAPTER_SYNTAX. */
bool pvr_adapter_settings_parse(struct pvr_adapter_settings *adapter, const char *text,
				struct pvr_error *err);

#endif /* PVR_DAEMON_ADAPTER_SETTINGS_H */
