/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Guests that move among daemons while they send. */
#ifndef HOSTS_TRAVEL_H
#define HOSTS_TRAVEL_H

#include "guests.h"

#define TRAVEL_PLACES 8

/* Where a guest can be: adapters with its MAC. */
struct travel_places {
	const char *path[TRAVEL_PLACES];
	unsigned int num, now; /* a guest with one place stays there */
};

struct travel {
	struct travel_places places[2]; /* of each guest */
	unsigned int moves; /* to be made */
	unsigned int done, cancelled, both, failed;
	bool may_fail; /* daemons die: a move that fails is none */
	const char *from; /* NULL, or no move before there is this file */
	double next, gap; /* seconds: the time of the next move, and between two */
	uint32_t seed;
};

/* @spec: "NUMBER=SOCKET,SOCKET...". Return: the spec with the first socket alone. */
char *travel_parse(struct travel_places *places, const char *spec);
/* Moves one guest or both, if it is time. Dies if a daemon refuses, unless moves may fail. */
void travel_go(struct travel *travel, struct guests *guests);

#endif /* HOSTS_TRAVEL_H */
