// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <netdb.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "die.h"
#include "oob.h"

#define CONNECT_TRIES 600 /* of 100 ms */

static int open_socket(const struct addrinfo *addr)
{
	int fd = socket(addr->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket:");
	return fd;
}

static int accept_one(const struct addrinfo *addr)
{
	int one = 1, off = 0, listener = open_socket(addr), fd;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	MUST(bind(listener, addr->ai_addr, addr->ai_addrlen));
	MUST(listen(listener, 1));
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		die("accept:");
	close(listener);
	return fd;
}

static int connect_to(const struct addrinfo *addr)
{
	int fd;

	for (int tries = 0; tries < CONNECT_TRIES; tries++) {
		fd = open_socket(addr);
		if (!connect(fd, addr->ai_addr, addr->ai_addrlen))
			return fd;
		close(fd);
		usleep(100000);
	}
	die("connecting to the peer:");
}

int oob_open(const char *peer, const char *port)
{
	struct addrinfo hints = {
		.ai_family = peer ? AF_UNSPEC : AF_INET6,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = peer ? 0 : AI_PASSIVE,
	};
	int fd, one = 1, err;
	struct addrinfo *addr;

	err = getaddrinfo(peer, port, &hints, &addr);
	if (err)
		die("%s port %s: %s", peer ? peer : "any address", port, gai_strerror(err));
	fd = peer ? connect_to(addr) : accept_one(addr);
	freeaddrinfo(addr);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

void oob_exchange(int fd, const void *mine, void *theirs, size_t len)
{
	if (send(fd, mine, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("sending to the peer:");
	if (recv(fd, theirs, len, MSG_WAITALL) != (ssize_t)len)
		die("the peer has closed the connection");
}
