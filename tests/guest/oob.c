// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "oob.h"

void die(const char *format, ...)
{
	size_t len = strlen(format);
	int err = errno;
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (len && format[len - 1] == ':')
		fprintf(stderr, " %s", strerror(err));
	fputc('\n', stderr);
	exit(1);
}

static void set_no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static struct addrinfo *resolve(const char *host, const char *port, int family, int flags)
{
	struct addrinfo hints = { .ai_family = family,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = flags };
	struct addrinfo *found;
	int err = getaddrinfo(host, port, &hints, &found);

	if (err)
		die("%s port %s: %s", host ? host : "any address", port, gai_strerror(err));
	return found;
}

int oob_accept(const char *port)
{
	struct addrinfo *addr = resolve(NULL, port, AF_INET6, AI_PASSIVE);
	int one = 1, off = 0, listener, fd;

	listener = socket(addr->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0)
		die("socket:");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(listener, addr->ai_addr, addr->ai_addrlen) || listen(listener, 1))
		die("listening on port %s:", port);
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		die("accept:");
	close(listener);
	freeaddrinfo(addr);
	set_no_delay(fd);
	return fd;
}

int oob_connect(const char *host, const char *port, int seconds)
{
	struct addrinfo *addr = resolve(host, port, AF_UNSPEC, 0);
	int tries = seconds * 10, fd;

	for (;;) {
		fd = socket(addr->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			die("socket:");
		if (!connect(fd, addr->ai_addr, addr->ai_addrlen))
			break;
		close(fd);
		if (!tries--)
			die("connecting to %s port %s:", host, port);
		usleep(100000);
	}
	freeaddrinfo(addr);
	set_no_delay(fd);
	return fd;
}

static void send_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("sending to the peer:");
		data += n;
		len -= n;
	}
}

static void receive_all(int fd, char *data, size_t len)
{
	while (len) {
		ssize_t n = recv(fd, data, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die("receiving from the peer:");
		if (!n)
			die("the peer has closed the connection");
		data += n;
		len -= n;
	}
}

void oob_exchange(int fd, const void *mine, void *theirs, size_t len)
{
	send_all(fd, mine, len);
	receive_all(fd, theirs, len);
}
