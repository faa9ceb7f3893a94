/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The two guests of a test between hosts. Usually this process has both, so that it can
 * compare their memory. If hosts are machines, each has a process with one guest, see far.h.
 */
#ifndef HOSTS_GUESTS_H
#define HOSTS_GUESTS_H

#include <getopt.h>
#include <stdlib.h>

#include "die.h"
#include "fake_guest.h"
#include "far.h"

struct guests {
	struct fg_host *host;
	struct fg_guest *guest[2]; /* NULL: it is elsewhere */
	struct far far;
	const char *serve, *join; /* options, or NULL */
	bool linear; /* option */
};

/* An option of a program: its value goes to @value, a bool, unsigned int, double or const char *. */
struct guests_option {
	const char *name;
	enum { GUESTS_FLAG, GUESTS_NUMBER, GUESTS_SECONDS, GUESTS_TEXT } kind;
	void *value;
};

#define GUESTS_HELP                                                                          \
	"  --serve PORT         the second guest is here, and the first in a process that\n" \
	"                       joins this one, with the same options otherwise\n"           \
	"  --join ADDRESS:PORT  the first guest is here, and the second there\n"             \
	"  --linear             guests' buffers are in one piece, as with huge pages\n"

/* Of the specs on the command line: two, or one if the other guest is elsewhere. */
int guests_here(const struct guests *guests);

/*
 * Parses options of @rows, which end with a row without a name, and "--help", which prints
 * @help. With @guests those of GUESTS_HELP too. A wrong option ends the process. The rest
 * begins at argv[optind].
 */
void guests_parse(struct guests *guests, const struct guests_option *rows, const char *help,
		  int argc, char **argv);
/* Prints @help on stderr and ends the process with status 2. */
_Noreturn void guests_usage(const char *help);

/*
 * @spec: "NUMBER=SOCKET" each: the guest's number gives its MAC, 52:54:00:12:34:NUMBER in
 * hexadecimal, and its GIDs: the default one at index 0, ::ffff:10.77.0.NUMBER at 1. One
 * for each guest that is here. Returns when both are, wherever that is.
 */
void guests_open(struct guests *guests, const char *const *spec, uint32_t ram_mib);
/*
 * Connects two open ends. An end of all zeroes is in the other process; the parts that
 * peers see are filled in. Both processes connect their ends in the same order.
 */
void guests_connect(struct guests *guests, struct fg_end *a, struct fg_end *b,
		    const struct fg_conn *conn);
/* Returns when the other process, if there is one, has called it, too. */
void guests_meet(struct guests *guests);
/* Opens an end of guest @i with @bytes of buffer, if that guest is here. */
void guests_open_end(struct guests *guests, int i, struct fg_end *end,
		     const struct fg_qp_spec *spec, size_t bytes);
/* One more guest. */
struct fg_guest *guests_plug(struct fg_host *host, const char *spec, uint32_t ram_mib, bool linear);

/*
 * Posts a request with the named members of struct fg_wr; dies if the queue is full.
 * guests_post(&end, .opcode = PVRDMA_WR_SEND, ONE_SGE(&end.mr, 0, 8));
 */
#define guests_post(end, ...) guests_post_wr(end, &(const struct fg_wr){ __VA_ARGS__ })
#define ONE_SGE(mr, offset, len) \
	.sge = (const struct pvrdma_sge[]){ fg_sge(mr, offset, len) }, .num_sge = 1
#define REMOTE(mr, offset) .remote_addr = (mr)->start + (offset), .rkey = (mr)->rkey
void guests_post_wr(struct fg_end *end, const struct fg_wr *wr);
/* The same for a receive request of one SGE in the end's buffer. */
void guests_post_recv(struct fg_end *end, uint64_t wr_id, uint64_t offset, uint32_t len);

/* Of @num values, which are sorted. */
double median(double *values, size_t num);

#endif /* HOSTS_GUESTS_H */
