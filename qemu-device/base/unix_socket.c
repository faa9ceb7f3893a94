// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Listening Unix stream sockets. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/inherited.h"
#include "base/unix_socket.h"

#define LISTEN_BACKLOG 16

static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == PVR_SOCKET_PATH_MAX + 1,
	      "PVR_SOCKET_PATH_MAX");

static bool set_address(struct sockaddr_un *addr, const char *path)
{
	size_t len = strlen(path);

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (len > PVR_SOCKET_PATH_MAX)
		return false;
	memcpy(addr->sun_path, path, len + 1);
	return true;
}

static int connect_to(const struct sockaddr_un *addr, int flags)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	int saved;

	if (fd < 0)
		return -1;
	if (!connect(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

int pvr_unix_connect(const char *path)
{
	struct sockaddr_un addr;

	if (!set_address(&addr, path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return connect_to(&addr, 0);
}

bool pvr_unix_peer(int fd, struct ucred *cred)
{
	socklen_t len = sizeof(*cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &len);
}

pid_t pvr_unix_peer_pid(int fd)
{
	struct ucred cred;

	return pvr_unix_peer(fd, &cred) ? cred.pid : 0;
}

static bool in_use(const char *path, int fd, struct pvr_error *err)
{
	pid_t pid = fd >= 0 ? pvr_unix_peer_pid(fd) : 0;

	if (fd >= 0)
		close(fd);
	if (!pid)
		return pvr_fail(err,
				"socket %s is in use by another process: "
				"stop that one or choose another path",
				path);
	return pvr_fail(err,
			"socket %s is in use by process %d: "
			"stop that one or choose another path",
			path, (int)pid);
}

/* Unlinks a stale socket at @path: no process listens there. */
static bool clear_path(const struct sockaddr_un *addr, bool *replaced, struct pvr_error *err)
{
	const char *path = addr->sun_path;
	struct stat st;
	int fd;

	if (lstat(path, &st) < 0)
		return true; /* otherwise bind() reports the error */
	if (!S_ISSOCK(st.st_mode))
		return pvr_fail(err,
				"%s exists and is not a socket: "
				"remove it or choose another path",
				path);
	fd = connect_to(addr, SOCK_NONBLOCK);
	if (fd >= 0 || errno == EAGAIN)
		return in_use(path, fd, err);
	if (errno != ECONNREFUSED)
		return pvr_fail(err, "cannot check whether socket %s is in use: %s", path,
				strerror(errno));
	if (unlink(path) < 0)
		return pvr_fail(err, "cannot remove the stale socket %s: %s", path,
				strerror(errno));
	*replaced = true;
	return true;
}

static bool bind_failed(const char *path, struct pvr_error *err)
{
	const char *slash = strrchr(path, '/');
	const char *folder = slash ? path : ".";
	int len = slash && slash != path ? (int)(slash - path) : 1;

	if (errno == ENOENT || errno == ENOTDIR)
		return pvr_fail(err,
				"cannot make socket %s: there is no folder %.*s: "
				"create it",
				path, len, folder);
	if (errno == EACCES || errno == EROFS || errno == EPERM)
		return pvr_fail(err,
				"cannot make socket %s: folder %.*s is not writable "
				"for user %u: %s",
				path, len, folder, (unsigned int)geteuid(), strerror(errno));
	return pvr_fail(err, "cannot make socket %s: %s", path, strerror(errno));
}

int pvr_unix_listen(const char *path, bool *replaced, struct pvr_error *err)
{
	struct sockaddr_un addr;
	int fd;

	*replaced = false;
	if (!set_address(&addr, path)) {
		pvr_fail(err,
			 "socket path %s has %zu characters, the limit is %d: "
			 "choose a shorter one",
			 path, strlen(path), PVR_SOCKET_PATH_MAX);
		return -1;
	}
	fd = pvr_inherited_take((struct sockaddr *)&addr, sizeof(addr));
	if (fd >= 0)
		return fd;
	if (!clear_path(&addr, replaced, err))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		pvr_fail(err, "cannot make socket %s: %s", path, strerror(errno));
		return -1;
	}
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    listen(fd, LISTEN_BACKLOG) < 0) {
		bind_failed(path, err);
		close(fd);
		return -1;
	}
	return fd;
}
