// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Guests that move among daemons while they send. */
#include "travel.h"

#include <string.h>
#include <unistd.h>

#include "plug.h"

char *travel_parse(struct travel_places *places, const char *spec)
{
	char *first = strdup(spec), *rest = strchr(first, '='), *path;

	if (!rest)
		fg_die("'%s' is no NUMBER=SOCKET", spec);
	rest++;
	for (path = strtok(rest, ","); path; path = strtok(NULL, ",")) {
		if (places->num == TRAVEL_PLACES)
			fg_die("'%s': more than %u sockets", spec, TRAVEL_PLACES);
		places->path[places->num++] = path;
	}
	return first;
}

static uint32_t draw(struct travel *travel, uint32_t below)
{
	travel->seed = travel->seed * 1664525u + 1013904223u;
	return (travel->seed >> 16) % below;
}

static unsigned int other_place(struct travel *travel, const struct travel_places *places)
{
	return (places->now + 1 + draw(travel, places->num - 1)) % places->num;
}

static bool check(struct travel *travel, bool ok, const struct fg_guest *guest, const char *what)
{
	if (!ok && !travel->may_fail)
		fg_die("%s: %s failed", guest->name, what);
	travel->failed += !ok;
	return ok;
}

/* A guest whose source is dead, too, is lost. */
static void go_back(struct travel *travel, struct fg_guest *guest)
{
	check(travel, plug_cancel(guest->adapter), guest, "the start at the source");
}

/* One move of ten is cancelled. The source's client ends before the start or after it. */
static void arrive(struct travel *travel, struct travel_places *places, struct fg_guest *guest,
		   unsigned int to)
{
	bool early;

	if (!draw(travel, 10)) {
		go_back(travel, guest);
		travel->cancelled++;
		return;
	}
	early = draw(travel, 2);
	if (early)
		plug_leave(guest->adapter);
	travel->done += check(travel, plug_start(guest->adapter), guest, "the start");
	if (!early)
		plug_leave(guest->adapter);
	places->now = to;
}

static void move(struct travel *travel, struct guests *guests, unsigned int first, unsigned int num)
{
	static struct plug_state state[2];
	bool saved[2] = { false }, loaded[2] = { false };
	unsigned int to[2], k, i;
	struct fg_guest *guest;

	for (k = 0; k < num; k++) {
		i = (first + k) % 2;
		guest = guests->guest[i];
		if (travel->places[i].num < 2)
			continue;
		to[i] = other_place(travel, &travel->places[i]);
		saved[i] = check(travel, plug_save(guest->adapter, &state[i]), guest, "save");
	}
	for (k = 0; k < num; k++) {
		i = (first + k) % 2;
		guest = guests->guest[i];
		if (!saved[i])
			continue;
		loaded[i] = check(
			travel, plug_load(guest->adapter, travel->places[i].path[to[i]], &state[i]),
			guest, "load");
		if (!loaded[i])
			go_back(travel, guest);
	}
	for (k = 0; k < num; k++) {
		i = (first + k) % 2;
		if (loaded[i])
			arrive(travel, &travel->places[i], guests->guest[i], to[i]);
	}
	travel->both += num == 2;
}

void travel_go(struct travel *travel, struct guests *guests)
{
	unsigned int first;

	if (travel->done >= travel->moves || now() < travel->next ||
	    (travel->from && access(travel->from, F_OK)))
		return;
	first = draw(travel, 2);
	move(travel, guests, first, draw(travel, 3) ? 1 : 2);
	travel->next = now() + travel->gap * (1 + draw(travel, 100)) / 100;
}
