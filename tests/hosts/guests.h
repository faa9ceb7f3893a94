/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The two guests of a test between hosts. Usually this process has both, so that it can
 * compare their memory. If hosts are machines, each has a process with one guest, see far.h.
 */
#ifndef HOSTS_GUESTS_H
#define HOSTS_GUESTS_H

#include <getopt.h>

#include "fake_guest.h"
#include "far.h"

struct guests {
	struct fg_host *host;
	struct fg_guest *guest[2]; /* NULL: it is elsewhere */
	const char *name[2];
	struct far far;
	const char *serve, *join; /* options, or NULL */
	bool linear; /* option */
};

/* Values of getopt_long() for the options of programs with guests. */
#define GUESTS_SERVE 1000
#define GUESTS_JOIN 1001
#define GUESTS_LINEAR 1002
#define GUESTS_OPTIONS                                            \
	{ "serve", required_argument, NULL, GUESTS_SERVE },       \
		{ "join", required_argument, NULL, GUESTS_JOIN }, \
	{                                                         \
		"linear", no_argument, NULL, GUESTS_LINEAR        \
	}
#define GUESTS_HELP                                                                          \
	"  --serve PORT         the second guest is here, and the first in a process that\n" \
	"                       joins this one, with the same options otherwise\n"           \
	"  --join ADDRESS:PORT  the first guest is here, and the second there\n"             \
	"  --linear             guests' buffers are in one piece, as with huge pages\n"

/*
 * As getopt_long(), but those above are taken, before guests_open(), and "help" ('h') prints
 * @help and ends the process. The others are the caller's.
 */
int guests_next_option(struct guests *guests, int argc, char **argv, const struct option *options,
		       const char *help);
/* Of the specs on the command line: two, or one if the other guest is elsewhere. */
int guests_here(const struct guests *guests);

/*
 * @spec: "NUMBER=SOCKET" each: the guest's number gives its MAC, 52:54:00:12:34:NUMBER in
 * hexadecimal, and its GIDs: the default one at index 0, ::ffff:10.77.0.NUMBER at 1. One
 * for each guest that is here. Returns when both are, wherever that is.
 */
void guests_open(struct guests *guests, const char *const *spec, uint32_t ram_mib);
void guests_close(struct guests *guests);
/*
 * Connects two open ends. An end of all zeroes is in the other process; the parts that
 * peers see are filled in. Both processes connect their ends in the same order.
 */
void guests_connect(struct guests *guests, struct fg_end *a, struct fg_end *b,
		    const struct fg_conn *conn);
/* Returns when the other process, if there is one, has called it, too. */
void guests_meet(struct guests *guests);
/* One more guest. */
struct fg_guest *guests_plug(struct fg_host *host, const char *spec, uint32_t ram_mib);

/* Monotonic seconds. */
double now_s(void);

#endif /* HOSTS_GUESTS_H */
