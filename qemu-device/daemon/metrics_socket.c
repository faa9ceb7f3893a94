// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The listening socket of the metrics: an IP address with a port, or a path. */
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/unix_socket.h"
#include "daemon/log.h"
#include "daemon/metrics_socket.h"
#include "net/stream.h"

/* Return: the path in @text; NULL: @text is an IP address. */
static const char *path_of(const char *text)
{
	static const char prefix[] = "unix:";

	return strncmp(text, prefix, strlen(prefix)) ? NULL : text + strlen(prefix);
}

/* There is no default port: that of other hosts is in use. */
static bool has_port(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && (*text == '[' ? colon[-1] == ']' : strchr(text, ':') == colon);
}

bool pvr_metrics_address_check(const char *text, struct pvr_error *err)
{
	const char *path = path_of(text);
	struct pvr_address address;
	struct pvr_error why;

	if (path && *path != '/')
		return pvr_fail(err, "metrics: the path '%.200s' is not absolute", path);
	if (path && strlen(path) > PVR_SOCKET_PATH_MAX)
		return pvr_fail(err,
				"metrics: the path %.200s has %zu characters, the limit is %d: "
				"choose a shorter one",
				path, strlen(path), PVR_SOCKET_PATH_MAX);
	if (path)
		return true;
	if (!has_port(text))
		return pvr_fail(err,
				"metrics '%.200s' is neither ADDRESS:PORT, such as 127.0.0.1:9471 "
				"or [::1]:9471, nor unix:PATH",
				text);
	return pvr_address_parse(&address, text, &why) ||
	       pvr_fail(err, "metrics: %.500s", why.text);
}

static int listen_at_path(const char *path, struct pvr_error *err)
{
	struct pvr_error why;
	bool replaced;
	int fd = pvr_unix_listen(path, &replaced, &why);

	if (fd < 0)
		pvr_fail(err, "metrics: %.500s", why.text);
	else if (replaced)
		pvrd_log(PVR_LOG_INFO, NULL, "replaced stale socket %s", path);
	return fd;
}

int pvr_metrics_listen(const char *text, struct pvr_error *err)
{
	struct pvr_address address;
	struct pvr_error why;
	int fd;

	if (path_of(text))
		return listen_at_path(path_of(text), err);
	if (!pvr_address_parse(&address, text, err))
		return -1;
	fd = pvr_socket_listen(&address, &why);
	if (fd < 0)
		pvr_fail(err, "metrics: %.500s", why.text);
	return fd;
}

void pvr_metrics_unlink(const char *text)
{
	if (path_of(text))
		unlink(path_of(text));
}
