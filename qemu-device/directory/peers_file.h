/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The peers file: hosts, their addresses, and the GIDs that each may have. See
 * pvrdmad.conf(5).
 */
#ifndef PVR_DIRECTORY_PEERS_FILE_H
#define PVR_DIRECTORY_PEERS_FILE_H

#include "base/address.h"
#include "base/error.h"
#include "directory/key.h"
#include "pipe.h"

#define PVR_PEERS_FILE_HOSTS 256 /* each host is queried for each GID: larger sites need etcd */
#define PVR_PEERS_FILE_PINS 1024 /* per host */
#define PVR_POLICY_HOSTS 16384

struct pvr_pin {
	char fabric[PVR_NAME_MAX]; /* "": any */
	uint8_t prefix[16];
	unsigned int len; /* bits */
};

struct pvr_peers_host {
	char name[PVR_HOST_NAME_MAX];
	char address[PVR_ADDRESS_TEXT];
	size_t line; /* of the section's start */
	struct pvr_pin *pins; /* none: any GID is allowed */
	size_t num_pins;
};

struct pvr_peers_file {
	struct pvr_peers_host *hosts;
	size_t num;
};

/*
 * The hosts are sorted by name. Return: false with @err filled, with file and line; there is
 * nothing to free then.
 */
bool pvr_peers_file_read(struct pvr_peers_file *file, const char *path, struct pvr_error *err);
/*
 * As pvr_peers_file_read(), of a policy: without addresses. The name "*" stands for all other
 * hosts.
 */
bool pvr_policy_file_read(struct pvr_peers_file *file, const char *path, struct pvr_error *err);
void pvr_peers_file_free(struct pvr_peers_file *file);

/* Return: whether the host may have the GID, or be a member of the group. */
bool pvr_peers_host_may_have(const struct pvr_peers_host *host, const struct pvr_key *key);
/* The same by the peers file @file. A host that is not in it may have any. */
bool pvr_peers_file_allows(const struct pvr_peers_file *file, const char *host,
			   const struct pvr_key *key);
/* The same by the policy @file. A host that is not in it may have nothing. */
bool pvr_policy_allows(const struct pvr_peers_file *file, const char *host,
		       const struct pvr_key *key);

#endif /* PVR_DIRECTORY_PEERS_FILE_H */
