// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Directory of the test's hosts: announced GIDs, open queries, and each host's replies.
 */
#include "fg_directory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/gid.h"
#include "fg_ram.h"
#include "fg_wire.h"

/* One GID at one host, or a question about one. */
struct fact {
	struct fact *next;
	char fabric[PVR_NAME_MAX];
	uint8_t gid[16], gid_type;
	unsigned int owner;
	bool present;
	bool told[FG_WIRE_HOSTS]; /* what that host believes */
};

struct question {
	struct question *next;
	char fabric[PVR_NAME_MAX];
	uint8_t gid[16];
	unsigned int host;
	bool open; /* a reply is due, even if the GID is absent */
};

struct fg_directory {
	pthread_mutex_t lock; /* protects what follows */
	struct fact *facts;
	struct question *questions;
	bool on, lazy;
	unsigned int asked[FG_WIRE_HOSTS], moves[FG_WIRE_HOSTS];
};

struct fg_directory *fg_directory_create(void)
{
	struct fg_directory *dir = calloc(1, sizeof(*dir));

	if (!dir)
		fg_die("no memory for a directory");
	pthread_mutex_init(&dir->lock, NULL);
	dir->on = true;
	return dir;
}

void fg_directory_destroy(struct fg_directory *dir)
{
	for (struct fact *fact = dir->facts, *next; fact; fact = next) {
		next = fact->next;
		free(fact);
	}
	for (struct question *question = dir->questions, *next; question; question = next) {
		next = question->next;
		free(question);
	}
	free(dir);
}

static bool is_same(const char *fabric_a, const uint8_t a[16], const char *fabric_b,
		    const uint8_t b[16])
{
	return !memcmp(a, b, 16) && !strcmp(fabric_a, fabric_b);
}

static struct fact *fact_get(struct fg_directory *dir, unsigned int host, const char *fabric,
			     const uint8_t gid[16], uint8_t gid_type)
{
	struct fact *fact;

	for (fact = dir->facts; fact; fact = fact->next)
		if (fact->owner == host && fact->gid_type == gid_type &&
		    is_same(fact->fabric, fact->gid, fabric, gid))
			return fact;
	fact = calloc(1, sizeof(*fact));
	if (!fact)
		fg_die("no memory for a fact");
	snprintf(fact->fabric, sizeof(fact->fabric), "%s", fabric);
	memcpy(fact->gid, gid, sizeof(fact->gid));
	fact->gid_type = gid_type;
	fact->owner = host;
	fact->next = dir->facts;
	dir->facts = fact;
	return fact;
}

static struct question *question_find(struct fg_directory *dir, unsigned int host,
				      const char *fabric, const uint8_t gid[16])
{
	struct question *question;

	for (question = dir->questions; question; question = question->next)
		if (question->host == host && is_same(question->fabric, question->gid, fabric, gid))
			return question;
	return NULL;
}

void fg_directory_announce(struct fg_directory *dir, unsigned int host, const char *fabric,
			   const uint8_t gid[16], uint8_t gid_type, bool present)
{
	pthread_mutex_lock(&dir->lock);
	fact_get(dir, host, fabric, gid, gid_type)->present = present;
	pthread_mutex_unlock(&dir->lock);
}

void fg_directory_ask(struct fg_directory *dir, unsigned int host, const char *fabric,
		      const uint8_t gid[16])
{
	struct question *question;

	pthread_mutex_lock(&dir->lock);
	dir->asked[host]++;
	question = question_find(dir, host, fabric, gid);
	if (!question) {
		question = calloc(1, sizeof(*question));
		if (!question)
			fg_die("no memory for a question");
		snprintf(question->fabric, sizeof(question->fabric), "%s", fabric);
		memcpy(question->gid, gid, sizeof(question->gid));
		question->host = host;
		question->next = dir->questions;
		dir->questions = question;
	}
	question->open = true;
	pthread_mutex_unlock(&dir->lock);
}

void fg_directory_moved(struct fg_directory *dir, unsigned int host, const char *fabric,
			const uint8_t gid[16])
{
	pthread_mutex_lock(&dir->lock);
	dir->moves[host]++;
	for (struct fact *fact = dir->facts; fact; fact = fact->next)
		if (is_same(fact->fabric, fact->gid, fabric, gid))
			fact->told[host] = false;
	pthread_mutex_unlock(&dir->lock);
}

/* ------------------------------------------------------------------------ telling */

static bool is_due(struct fg_directory *dir, const struct fact *fact, unsigned int host)
{
	return fact->owner != host && fact->told[host] != fact->present &&
	       (!dir->lazy || fact->told[host] ||
		question_find(dir, host, fact->fabric, fact->gid));
}

/* The first thing that a host should be told; its going comes before its coming elsewhere. */
static struct fact *next_fact(struct fg_directory *dir, unsigned int host)
{
	struct fact *fact, *coming = NULL;

	for (fact = dir->facts; fact; fact = fact->next) {
		if (!is_due(dir, fact, host))
			continue;
		if (!fact->present)
			return fact;
		coming = fact;
	}
	return coming;
}

static bool exists(const struct fg_directory *dir, const struct question *question,
		   uint8_t gid_type)
{
	const struct fact *fact;

	for (fact = dir->facts; fact; fact = fact->next)
		if (fact->present && fact->owner != question->host && fact->gid_type == gid_type &&
		    is_same(fact->fabric, fact->gid, question->fabric, question->gid))
			return true;
	return false;
}

/*
 * Return: true if no other host has the GID; for a group, also if members of one RoCE
 * version are missing. @gid_type: the missing version, 0 for both.
 */
static bool is_missing(const struct fg_directory *dir, const struct question *question,
		       uint8_t *gid_type)
{
	bool v1 = exists(dir, question, PVR_GID_TYPE_ROCE_V1);
	bool v2 = exists(dir, question, PVR_GID_TYPE_ROCE_V2);

	*gid_type = v1 ? PVR_GID_TYPE_ROCE_V2 : v2 ? PVR_GID_TYPE_ROCE_V1 : 0;
	return (!v1 && !v2) || (v1 != v2 && pvr_gid_is_multicast(question->gid));
}

static bool next_question(struct fg_directory *dir, unsigned int host, struct question *copy,
			  uint8_t *gid_type)
{
	struct question *question;

	for (question = dir->questions; question; question = question->next) {
		if (question->host != host || !question->open)
			continue;
		question->open = false;
		if (!is_missing(dir, question, gid_type))
			continue;
		*copy = *question;
		return true;
	}
	return false;
}

static bool tell_fact(struct fg_directory *dir, unsigned int host, struct pvr_engine *engine,
		      struct pvr_host *const *peer)
{
	struct fact *fact, copy;

	pthread_mutex_lock(&dir->lock);
	fact = dir->on ? next_fact(dir, host) : NULL;
	if (fact) {
		fact->told[host] = fact->present;
		copy = *fact;
	}
	pthread_mutex_unlock(&dir->lock);
	if (!fact)
		return false;
	if (pvr_engine_set_gid(engine, copy.fabric, copy.gid, copy.gid_type,
			       copy.present ? PVR_GID_AT_HOST : PVR_GID_LEFT_HOST,
			       peer[copy.owner]))
		fg_die("an engine cannot remember a GID");
	return true;
}

static bool tell_nobody(struct fg_directory *dir, unsigned int host, struct pvr_engine *engine)
{
	struct question copy;
	uint8_t gid_type;
	bool found;

	pthread_mutex_lock(&dir->lock);
	found = dir->on && next_question(dir, host, &copy, &gid_type);
	pthread_mutex_unlock(&dir->lock);
	if (found &&
	    pvr_engine_set_gid(engine, copy.fabric, copy.gid, gid_type, PVR_GID_ABSENT, NULL))
		fg_die("an engine cannot remember a GID");
	return found;
}

bool fg_directory_tell(struct fg_directory *dir, unsigned int host, struct pvr_engine *engine,
		       struct pvr_host *const *peer)
{
	bool done = false;

	while (tell_fact(dir, host, engine, peer))
		done = true;
	while (tell_nobody(dir, host, engine))
		done = true;
	return done;
}

/* ----------------------------------------------------------------------- for tests */

void fg_directory_set_on(struct fg_directory *dir, bool on)
{
	pthread_mutex_lock(&dir->lock);
	dir->on = on;
	pthread_mutex_unlock(&dir->lock);
}

void fg_directory_set_lazy(struct fg_directory *dir, bool lazy)
{
	pthread_mutex_lock(&dir->lock);
	dir->lazy = lazy;
	pthread_mutex_unlock(&dir->lock);
}

unsigned int fg_directory_asked(struct fg_directory *dir, unsigned int host)
{
	unsigned int asked;

	pthread_mutex_lock(&dir->lock);
	asked = dir->asked[host];
	pthread_mutex_unlock(&dir->lock);
	return asked;
}

unsigned int fg_directory_moves(struct fg_directory *dir, unsigned int host)
{
	unsigned int moves;

	pthread_mutex_lock(&dir->lock);
	moves = dir->moves[host];
	pthread_mutex_unlock(&dir->lock);
	return moves;
}
