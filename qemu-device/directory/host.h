/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Other hosts that the directory knows, as long as something refers to them. */
#ifndef PVR_DIRECTORY_HOST_H
#define PVR_DIRECTORY_HOST_H

#include "directory/key.h"
#include "pipe.h"

#define PVR_DIR_HOST_BUCKETS 256

struct pvr_directory;
struct pvr_entry;

struct pvr_dir_host {
	LIST_ENTRY(pvr_dir_host) link;
	char name[PVR_REMOTE_NAME_MAX];
	size_t refs;
	bool up; /* we are connected */
	LIST_HEAD(, pvr_entry) owns;
	/* The backend's own, zero at first. */
	_Alignas(16) unsigned char private[];
};

struct pvr_dir_hosts {
	LIST_HEAD(, pvr_dir_host) buckets[PVR_DIR_HOST_BUCKETS];
	size_t count;
};

/* Letters, digits, '.', '_' and '-', and not too many. */
bool pvr_dir_host_name_ok(const char *name);
/* NULL: there is none. Takes no reference. */
struct pvr_dir_host *pvr_dir_host_find(struct pvr_directory *directory, const char *name);
/* Made if it is new, and referred to. NULL: a bad name, no memory, or PVR_DIR_HOSTS_MAX. */
struct pvr_dir_host *pvr_dir_host_get(struct pvr_directory *directory, const char *name);
void pvr_dir_host_put(struct pvr_directory *directory, struct pvr_dir_host *host);

#endif /* PVR_DIRECTORY_HOST_H */
