// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The connection between two processes with a guest each. */
#include "far.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "oob.h"

#define MEET 0

/* Both machines are of the same kind. */
struct far_end {
	uint8_t gid[16];
	uint64_t start, length;
	uint32_t qpn, rkey;
};

void far_join(struct far *far, const char *where)
{
	const char *colon = strrchr(where, ':');
	char host[64];

	if (!colon || colon - where >= (ptrdiff_t)sizeof(host))
		fg_die("'%s' is no ADDRESS:PORT", where);
	snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
	far->fd = oob_open(host, colon + 1);
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
	oob_exchange(far->fd, &end, &end, sizeof(end));
	memset(theirs, 0, sizeof(*theirs));
	memcpy(theirs->gid, end.gid, sizeof(end.gid));
	theirs->mr.start = end.start;
	theirs->mr.length = end.length;
	theirs->mr.rkey = end.rkey;
	theirs->qp.qpn = end.qpn;
}

void far_tell(struct far *far, const struct far_news *news)
{
	if (send(far->fd, news, sizeof(*news), MSG_NOSIGNAL) != sizeof(*news))
		fg_die("cannot send to the other process: %s", strerror(errno));
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
