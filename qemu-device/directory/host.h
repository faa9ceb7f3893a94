/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Other hosts that the directory refers to, with reference counts. */
#ifndef PVR_DIRECTORY_HOST_H
#define PVR_DIRECTORY_HOST_H

#include "base/ratelimit.h"
#include "directory/key.h"
#include "pipe.h"

#define PVR_DIR_HOST_BUCKETS 256

struct pvr_directory;
struct pvr_entry;

struct pvr_dir_host {
	LIST_ENTRY(pvr_dir_host) link;
	char name[PVR_HOST_NAME_MAX];
	size_t refs;
	size_t needs; /* references of pvr_directory_need() */
	bool up; /* a connection is up */
	struct pvr_ratelimit refusals; /* of log lines about its refused claims */
	LIST_HEAD(, pvr_entry) owns;
	/* Private to the backend; zero-initialized. */
	_Alignas(16) unsigned char private[];
};

struct pvr_dir_hosts {
	LIST_HEAD(, pvr_dir_host) buckets[PVR_DIR_HOST_BUCKETS];
	size_t count;
};

/* Return: whether it has only letters, digits, '.', '_' and '-', and is not too long. */
bool pvr_dir_host_name_ok(const char *name);
/* Return: the host without a new reference, or NULL. */
struct pvr_dir_host *pvr_dir_host_find(struct pvr_directory *directory, const char *name);
/*
 * Finds or creates the host and takes a reference. Return: NULL if the name is invalid,
 * there is no memory, or there are PVR_DIR_HOSTS_MAX hosts.
 */
struct pvr_dir_host *pvr_dir_host_get(struct pvr_directory *directory, const char *name);
void pvr_dir_host_put(struct pvr_directory *directory, struct pvr_dir_host *host);
/* Drops the references of pvr_directory_need(). */
void pvr_dir_hosts_exit(struct pvr_directory *directory);

#endif /* PVR_DIRECTORY_HOST_H */
