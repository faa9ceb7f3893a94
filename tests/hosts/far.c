// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The connection between two processes with a guest each. */
#include "far.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define JOIN_TRIES 400 /* of 50 ms */
#define MEET 0

/* Both machines are of the same kind. */
struct far_end {
	uint8_t gid[16];
	uint64_t start, length;
	uint32_t qpn, rkey;
};

static void parse_port(struct sockaddr_in *address, const char *text)
{
	unsigned long port = strtoul(text, NULL, 10);

	if (!port || port > UINT16_MAX)
		fg_die("'%s' is no port", text);
	address->sin_port = htons((uint16_t)port);
}

static void use(struct far *far, int fd)
{
	const int one = 1;

	*far = (struct far){ .fd = fd };
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void far_serve(struct far *far, const char *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	const int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM, 0), accepted;

	parse_port(&address, port);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) || listen(fd, 1))
		fg_die("cannot listen on port %s: %s", port, strerror(errno));
	accepted = accept(fd, NULL, NULL);
	if (accepted < 0)
		fg_die("no process joins: %s", strerror(errno));
	close(fd);
	use(far, accepted);
}

void far_join(struct far *far, const char *where)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	char text[INET_ADDRSTRLEN] = "";
	const char *colon = strchr(where, ':');
	int fd, tries;

	if (colon && (size_t)(colon - where) < sizeof(text))
		memcpy(text, where, (size_t)(colon - where));
	if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
		fg_die("'%s' is no ADDRESS:PORT", where);
	parse_port(&address, colon + 1);
	for (tries = 0; tries < JOIN_TRIES; tries++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd >= 0 && !connect(fd, (const struct sockaddr *)&address, sizeof(address))) {
			use(far, fd);
			return;
		}
		close(fd);
		usleep(50000);
	}
	fg_die("cannot join %s: %s", where, strerror(errno));
}

static void put(struct far *far, const void *from, size_t size)
{
	if (send(far->fd, from, size, MSG_NOSIGNAL) != (ssize_t)size)
		fg_die("cannot send to the other process: %s", strerror(errno));
}

static void get(struct far *far, void *to, size_t size)
{
	if (recv(far->fd, to, size, MSG_WAITALL) != (ssize_t)size)
		fg_die("the other process has ended");
}

void far_exchange(struct far *far, const struct fg_end *ours, struct fg_end *theirs)
{
	struct far_end end = {
		.start = ours->mr.start,
		.length = ours->mr.length,
		.qpn = ours->qp.qpn,
		.rkey = ours->mr.rkey,
	};

	memcpy(end.gid, ours->gid, sizeof(end.gid));
	put(far, &end, sizeof(end));
	get(far, &end, sizeof(end));
	memset(theirs, 0, sizeof(*theirs));
	memcpy(theirs->gid, end.gid, sizeof(end.gid));
	theirs->mr.start = end.start;
	theirs->mr.length = end.length;
	theirs->mr.rkey = end.rkey;
	theirs->qp.qpn = end.qpn;
}

void far_tell(struct far *far, const struct far_news *news)
{
	put(far, news, sizeof(*news));
}

bool far_hear(struct far *far, struct far_news *news)
{
	/* News that have come in part stay in the socket. */
	ssize_t n = recv(far->fd, news, sizeof(*news), MSG_DONTWAIT | MSG_PEEK);

	if (!n)
		fg_die("the other process has ended");
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		fg_die("no news from the other process: %s", strerror(errno));
	if (n < (ssize_t)sizeof(*news))
		return false;
	get(far, news, sizeof(*news));
	far->met |= news->what == MEET;
	return news->what != MEET;
}

void far_meet(struct far *far)
{
	struct far_news news = { .what = MEET };

	far_tell(far, &news);
	while (!far->met) {
		get(far, &news, sizeof(news));
		far->met = news.what == MEET;
	}
	far->met = false;
}
