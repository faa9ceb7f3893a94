// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Listening sockets that pass from one process of the daemon to the next one. */
#include "base/inherited.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define INHERITED_MAX 1024

static int kept[INHERITED_MAX];
static size_t num_kept;

static bool is_listening(int fd)
{
	int on = 0;
	socklen_t len = sizeof(on);

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len) && on;
}

void pvr_inherited_add(int fd)
{
	if (num_kept < INHERITED_MAX && is_listening(fd))
		kept[num_kept++] = fd;
	else
		close(fd);
}

static bool is_at(int fd, const struct sockaddr *address, socklen_t len)
{
	struct sockaddr_storage own = { .ss_family = AF_UNSPEC };
	socklen_t own_len = sizeof(own);

	if (getsockname(fd, (struct sockaddr *)&own, &own_len) < 0 ||
	    own.ss_family != address->sa_family)
		return false;
	/* The kernel returns the length of the path, and a caller that of the whole address. */
	if (own.ss_family == AF_UNIX)
		return !strcmp(((struct sockaddr_un *)&own)->sun_path,
			       ((const struct sockaddr_un *)address)->sun_path);
	return own_len == len && !memcmp(&own, address, len);
}

int pvr_inherited_take(const struct sockaddr *address, socklen_t len)
{
	size_t i;
	int fd;

	for (i = 0; i < num_kept; i++) {
		fd = kept[i];
		if (!is_at(fd, address, len))
			continue;
		kept[i] = kept[--num_kept];
		return fd;
	}
	return -1;
}

void pvr_inherited_close(void)
{
	while (num_kept)
		close(kept[--num_kept]);
}

size_t pvr_listening_find(int *fds, size_t max)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	size_t num = 0;
	int fd;

	/* cppcheck-suppress readdirCalled ; this thread alone has the stream, as readdir() requires */
	while (dir && (entry = readdir(dir))) {
		fd = (int)strtol(entry->d_name, NULL, 10);
		if (entry->d_name[0] == '.' || fd == dirfd(dir) || !is_listening(fd))
			continue;
		if (num < max)
			fds[num] = fd;
		num++;
	}
	if (dir)
		closedir(dir);
	return num;
}
