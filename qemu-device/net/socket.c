// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* TCP sockets: dial, listen, and options for payload. */
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/inherited.h"
#include "net/stream.h"

#define LISTEN_BACKLOG 128
/*
 * In bytes. Unsent data delays frames that another queue pair sends behind it, by 0.1 ms
 * at 100 Gb/s. With a lower limit the sender waits for events of the socket too often.
 */
#define NOTSENT_LOWAT (1024 << 10)

static int make_socket(const struct pvr_address *address)
{
	return socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		      IPPROTO_TCP);
}

static void set(int fd, int level, int option, int value)
{
	/* Each option is for speed or early errors only: failure is no problem. */
	if (setsockopt(fd, level, option, &value, sizeof(value)) < 0)
		return;
}

void pvr_socket_set_dscp(int fd, const struct pvr_address *address, uint8_t dscp)
{
	if (address->any.sa_family == AF_INET6)
		set(fd, IPPROTO_IPV6, IPV6_TCLASS, dscp << 2);
	else
		set(fd, IPPROTO_IP, IP_TOS, dscp << 2);
}

int pvr_socket_dial(const struct pvr_address *address, uint8_t dscp, struct pvr_error *err)
{
	int fd = make_socket(address);

	if (fd < 0) {
		pvr_fail(err, "cannot make a socket: %s", strerror(errno));
		return -1;
	}
	if (dscp)
		pvr_socket_set_dscp(fd, address, dscp);
	if (connect(fd, &address->any, address->len) == 0 || errno == EINPROGRESS)
		return fd;
	pvr_fail(err, "%s", strerror(errno));
	close(fd);
	return -1;
}

bool pvr_socket_local(const struct pvr_address *to, struct pvr_address *local,
		      struct pvr_error *err)
{
	int fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok;

	local->len = sizeof(local->storage);
	ok = fd >= 0 && !connect(fd, &to->any, to->len) &&
	     !getsockname(fd, &local->any, &local->len);
	if (!ok)
		pvr_fail(err, "%s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return ok;
}

int pvr_socket_error(int fd)
{
	socklen_t len = sizeof(int);
	int error = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? errno : error;
}

static int listen_failed(int fd, const char *text, struct pvr_error *err)
{
	const char *hint = errno == EADDRINUSE ? ": another daemon is there; choose another port"
			   : errno == EADDRNOTAVAIL ? ": this host has no such address"
						    : "";

	pvr_fail(err, "cannot listen at %s: %s%s", text, strerror(errno), hint);
	if (fd >= 0)
		close(fd);
	return -1;
}

int pvr_socket_listen(const struct pvr_address *address, struct pvr_error *err)
{
	char text[PVR_ADDRESS_TEXT];
	int fd = pvr_inherited_take(&address->any, address->len);

	if (fd >= 0)
		return fd;
	fd = make_socket(address);
	pvr_address_format(address, text);
	if (fd < 0)
		return listen_failed(fd, text, err);
	set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/* IPV6_V6ONLY, so that 0.0.0.0 and [::] can both be listened at. */
	if (address->any.sa_family == AF_INET6)
		set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (bind(fd, &address->any, address->len) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
		return listen_failed(fd, text, err);
	return fd;
}

/* Return: false with errno. */
static bool set_congestion(int fd, const char *name)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
}

/* Linux's errors: ENOENT for an unknown one, EPERM for one that needs the capability. */
bool pvr_socket_check_congestion(const char *name, struct pvr_error *err)
{
	int fd, error;

	if (!*name)
		return true;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd < 0)
		return pvr_fail(err, "cannot make a socket: %s", strerror(errno));
	error = set_congestion(fd, name) ? 0 : errno;
	close(fd);
	if (error == EPERM)
		return pvr_fail(
			err,
			"congestion '%s' needs the capability CAP_NET_ADMIN here: expected one of /proc/sys/net/ipv4/tcp_allowed_congestion_control, which root can extend",
			name);
	return !error ||
	       pvr_fail(
		       err,
		       "congestion '%s': %s: expected one of /proc/sys/net/ipv4/tcp_available_congestion_control",
		       name, strerror(error));
}

void pvr_socket_tune(int fd, uint32_t keepalive_ms, const char *congestion)
{
	int seconds = (int)(keepalive_ms / 1000);

	/* It was possible when the daemon started. Otherwise the kernel's default works, too. */
	if (*congestion)
		(void)set_congestion(fd, congestion);
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOTSENT_LOWAT);
	/* PING detects dead peers; this covers the handshake. */
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds ? seconds : 1);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds ? seconds : 1);
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)keepalive_ms);
}
