/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The other guest is in another process, on another machine as a rule: what both have to
 * tell each other goes by a TCP connection beside all that is tested. One end serves, the
 * other one joins. Whatever is wrong with it ends the process.
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
	uint8_t part[sizeof(struct far_news)]; /* of news of which more has to come */
	uint32_t got;
	bool met; /* it has come to its far_meet() already */
};

/* Waits for the other one. */
void far_serve(struct far *far, const char *port);
/* @where: "ADDRESS:PORT". Tries for some time, as the other one may be starting. */
void far_join(struct far *far, const char *where);
void far_close(struct far *far);

/* Tells of our end, and fills in of theirs what peers see: GID, QPN, memory. Then both are here. */
void far_exchange(struct far *far, const struct fg_end *ours, struct fg_end *theirs);
/* Returns when the other one has come to its far_meet(), too; news until then are lost. */
void far_meet(struct far *far);
void far_tell(struct far *far, const struct far_news *news);
/* Return: false if there is nothing new. */
bool far_hear(struct far *far, struct far_news *news);

#endif /* HOSTS_FAR_H */
