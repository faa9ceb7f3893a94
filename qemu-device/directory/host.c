// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Other hosts that the directory refers to, with reference counts. */
#include <stdlib.h>
#include <string.h>

#include "directory/backend.h"

bool pvr_dir_host_name_ok(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strlen(name);

	return len && len < PVR_HOST_NAME_MAX && strspn(name, allowed) == len;
}

static unsigned int bucket_of(const char *name)
{
	unsigned int hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash % PVR_DIR_HOST_BUCKETS;
}

struct pvr_dir_host *pvr_dir_host_find(struct pvr_directory *directory, const char *name)
{
	struct pvr_dir_host *host;

	LIST_FOREACH(host, &directory->hosts.buckets[bucket_of(name)], link) {
		if (!strcmp(host->name, name))
			break;
	}
	return host;
}

static struct pvr_dir_host *make(struct pvr_directory *directory, const char *name)
{
	struct pvr_dir_host *host;

	if (!pvr_dir_host_name_ok(name) || directory->hosts.count == PVR_DIR_HOSTS_MAX)
		return NULL;
	host = calloc(1, sizeof(*host) + directory->ops->host_size);
	if (!host)
		return NULL;
	strcpy(host->name, name);
	host->up = directory->env.is_up(directory->env.opaque, name);
	LIST_INIT(&host->owns);
	LIST_INSERT_HEAD(&directory->hosts.buckets[bucket_of(name)], host, link);
	directory->hosts.count++;
	return host;
}

struct pvr_dir_host *pvr_dir_host_get(struct pvr_directory *directory, const char *name)
{
	struct pvr_dir_host *host = pvr_dir_host_find(directory, name);

	if (!host)
		host = make(directory, name);
	if (host)
		host->refs++;
	return host;
}

void pvr_dir_host_put(struct pvr_directory *directory, struct pvr_dir_host *host)
{
	if (--host->refs)
		return;
	if (directory->ops->host_gone)
		directory->ops->host_gone(directory, host);
	LIST_REMOVE(host, link);
	directory->hosts.count--;
	free(host);
}

void pvr_dir_hosts_exit(struct pvr_directory *directory)
{
	struct pvr_dir_host *host, *next;
	size_t i;

	for (i = 0; i < PVR_DIR_HOST_BUCKETS; i++) {
		for (host = LIST_FIRST(&directory->hosts.buckets[i]); host; host = next) {
			next = LIST_NEXT(host, link);
			for (; host->needs > 1; host->needs--)
				host->refs--;
			if (host->needs)
				pvr_dir_host_put(directory, host);
		}
	}
}
