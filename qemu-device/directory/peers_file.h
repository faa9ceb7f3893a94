/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The peers file: hosts, their addresses, and which GIDs each may have. See pvrdmad.conf(5). */
#ifndef PVR_DIRECTORY_PEERS_FILE_H
#define PVR_DIRECTORY_PEERS_FILE_H

#include "base/address.h"
#include "base/error.h"
#include "directory/key.h"
#include "pipe.h"

#define PVR_PEERS_FILE_HOSTS 256 /* who has more wants etcd: each is asked about each GID */
#define PVR_PEERS_FILE_PINS 1024 /* of a host */

struct pvr_pin {
	char fabric[PVR_NAME_MAX]; /* "": any */
	uint8_t prefix[16];
	unsigned int len; /* bits */
};

struct pvr_peers_host {
	char name[PVR_REMOTE_NAME_MAX];
	char address[PVR_ADDRESS_TEXT];
	size_t line; /* where it begins */
	struct pvr_pin *pins; /* none: it may have any GID */
	size_t num_pins;
};

struct pvr_peers_file {
	struct pvr_peers_host *hosts;
	size_t num;
};

/* False with @err filled, naming file and line; then there is nothing to free. */
bool pvr_peers_file_read(struct pvr_peers_file *file, const char *path, struct pvr_error *err);
void pvr_peers_file_free(struct pvr_peers_file *file);

/* May it have the GID, or be a member of the group? */
bool pvr_peers_host_may_have(const struct pvr_peers_host *host, const struct pvr_key *key);

#endif /* PVR_DIRECTORY_PEERS_FILE_H */
