/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The other guest is in another process, often on another machine. Both processes exchange
 * their data by a TCP connection that is no part of the test. One end serves, the other one
 * joins. Any error of the connection ends the process.
 */
#ifndef HOSTS_FAR_H
#define HOSTS_FAR_H

#include <stdbool.h>
#include <stdint.h>

#include "fg_end.h"

struct far_news {
	uint32_t what; /* the program's own numbers, from 1 up */
	uint32_t stream;
	uint64_t value;
};

struct far {
	int fd; /* -1: both guests are here */
	bool met; /* the other process has called far_meet() */
};

/* Connects to the process that serves at @where, "ADDRESS:PORT", as oob_open() does. */
void far_join(struct far *far, const char *where);

/* Sends @ours, and fills in the parts of @theirs that peers see: GID, QPN, memory. */
void far_exchange(struct far *far, const struct fg_end *ours, struct fg_end *theirs);
/* Returns when the other process has called far_meet(), too; news until then are lost. */
void far_meet(struct far *far);
void far_tell(struct far *far, const struct far_news *news);
/* Return: false if there is no news. */
bool far_hear(struct far *far, struct far_news *news);

#endif /* HOSTS_FAR_H */
