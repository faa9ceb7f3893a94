// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Directory of the test's hosts: announced GIDs, open queries, and each host's replies.
 */
#include "fg_directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "core/gid.h"
#include "fg_lock.h"
#include "fg_ram.h"
#include "fg_wire.h"

/* A GID of a fabric. */
struct name {
	char fabric[PVR_NAME_MAX];
	uint8_t gid[16];
};

/* One GID at one host. */
struct fact {
	LIST_ENTRY(fact) link;
	struct name name;
	uint8_t gid_type;
	unsigned int owner;
	bool present;
	bool delivered[FG_WIRE_HOSTS]; /* the last announcement that the host received: present */
};

/* A query of one host about one GID. */
struct question {
	LIST_ENTRY(question) link;
	struct name name;
	unsigned int host;
	bool open; /* a reply is due, even if the GID is absent */
};

struct fg_directory {
	pthread_mutex_t lock; /* protects what follows */
	LIST_HEAD(, fact) facts;
	LIST_HEAD(, question) questions;
	bool on;
	bool slow_to_forget;
	bool keeps[FG_WIRE_HOSTS]; /* entries of the host stay */
	unsigned int asked[FG_WIRE_HOSTS], moves[FG_WIRE_HOSTS];
};

static void *new_object(size_t size)
{
	void *object = calloc(1, size);

	if (!object)
		fg_die("no memory for a directory");
	return object;
}

struct fg_directory *fg_directory_create(void)
{
	struct fg_directory *dir = new_object(sizeof(*dir));

	pthread_mutex_init(&dir->lock, NULL);
	dir->on = true;
	return dir;
}

void fg_directory_destroy(struct fg_directory *dir)
{
	struct fact *fact;
	struct question *question;

	while ((fact = LIST_FIRST(&dir->facts))) {
		LIST_REMOVE(fact, link);
		free(fact);
	}
	while ((question = LIST_FIRST(&dir->questions))) {
		LIST_REMOVE(question, link);
		free(question);
	}
	free(dir);
}

static struct name name_of(const char *fabric, const uint8_t gid[16])
{
	struct name name = { 0 };

	snprintf(name.fabric, sizeof(name.fabric), "%s", fabric);
	memcpy(name.gid, gid, sizeof(name.gid));
	return name;
}

static bool is_same(const struct name *a, const struct name *b)
{
	return !memcmp(a, b, sizeof(*a));
}

void fg_directory_announce(struct fg_directory *dir, unsigned int host, const char *fabric,
			   const uint8_t gid[16], uint8_t gid_type, bool present)
{
	const struct name name = name_of(fabric, gid);
	FG_GUARD(&dir->lock);
	struct fact *fact;

	if (!present && dir->keeps[host])
		return;
	LIST_FOREACH(fact, &dir->facts, link)
		if (fact->owner == host && fact->gid_type == gid_type &&
		    is_same(&fact->name, &name))
			break;
	if (!fact) {
		fact = new_object(sizeof(*fact));
		fact->name = name;
		fact->gid_type = gid_type;
		fact->owner = host;
		LIST_INSERT_HEAD(&dir->facts, fact, link);
	}
	fact->present = present;
}

void fg_directory_ask(struct fg_directory *dir, unsigned int host, const char *fabric,
		      const uint8_t gid[16])
{
	const struct name name = name_of(fabric, gid);
	FG_GUARD(&dir->lock);
	struct question *question;
	struct fact *fact;

	dir->asked[host]++;
	/* It may have forgotten what it was told. */
	LIST_FOREACH(fact, &dir->facts, link)
		if (fact->present && is_same(&fact->name, &name))
			fact->delivered[host] = false;
	LIST_FOREACH(question, &dir->questions, link)
		if (question->host == host && is_same(&question->name, &name))
			break;
	if (!question) {
		question = new_object(sizeof(*question));
		question->name = name;
		question->host = host;
		LIST_INSERT_HEAD(&dir->questions, question, link);
	}
	question->open = true;
}

void fg_directory_moved(struct fg_directory *dir, unsigned int host, const char *fabric,
			const uint8_t gid[16])
{
	const struct name name = name_of(fabric, gid);
	FG_GUARD(&dir->lock);
	struct fact *fact;

	dir->moves[host]++;
	LIST_FOREACH(fact, &dir->facts, link)
		if (is_same(&fact->name, &name))
			fact->delivered[host] = false;
}

void fg_directory_keep(struct fg_directory *dir, unsigned int host, bool keeps)
{
	FG_GUARD(&dir->lock);

	dir->keeps[host] = keeps;
}

void fg_directory_set_slow_to_forget(struct fg_directory *dir, bool slow)
{
	FG_GUARD(&dir->lock);

	dir->slow_to_forget = slow;
}

void fg_directory_renew(struct fg_directory *dir, unsigned int host)
{
	FG_GUARD(&dir->lock);
	struct question *question;
	struct fact *fact;

	LIST_FOREACH(fact, &dir->facts, link)
		fact->delivered[host] = false;
	LIST_FOREACH(question, &dir->questions, link)
		if (question->host == host)
			question->open = false;
}

/* ---------------------------------------------------------------------- delivering */

static bool is_elsewhere(const struct fg_directory *dir, const struct fact *left)
{
	const struct fact *fact;

	LIST_FOREACH(fact, &dir->facts, link)
		if (fact->present && is_same(&fact->name, &left->name))
			return true;
	return false;
}

static bool is_told_late(const struct fg_directory *dir, const struct fact *left)
{
	return dir->slow_to_forget && !pvr_gid_is_multicast(left->name.gid) &&
	       !is_elsewhere(dir, left);
}

/* The first due announcement for a host; a departure precedes an arrival elsewhere. */
static struct fact *next_fact(struct fg_directory *dir, unsigned int host)
{
	struct fact *fact, *arrival = NULL;

	LIST_FOREACH(fact, &dir->facts, link) {
		if (fact->owner == host || fact->delivered[host] == fact->present)
			continue;
		if (fact->present)
			arrival = fact;
		else if (!is_told_late(dir, fact))
			return fact;
	}
	return arrival;
}

static bool exists(const struct fg_directory *dir, const struct question *question,
		   uint8_t gid_type)
{
	const struct fact *fact;

	LIST_FOREACH(fact, &dir->facts, link)
		if (fact->present && fact->owner != question->host && fact->gid_type == gid_type &&
		    is_same(&fact->name, &question->name))
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
	return (!v1 && !v2) || (v1 != v2 && pvr_gid_is_multicast(question->name.gid));
}

/* What an engine receives. */
struct news {
	struct name name;
	uint8_t gid_type;
	enum pvr_gid_state state;
	unsigned int owner;
};

static bool next_news(struct fg_directory *dir, unsigned int host, struct news *news)
{
	FG_GUARD(&dir->lock);
	struct question *question;
	struct fact *fact;

	if (!dir->on)
		return false;
	fact = next_fact(dir, host);
	if (fact) {
		fact->delivered[host] = fact->present;
		*news = (struct news){ fact->name, fact->gid_type,
				       fact->present ? PVR_GID_AT_HOST : PVR_GID_LEFT_HOST,
				       fact->owner };
		return true;
	}
	LIST_FOREACH(question, &dir->questions, link) {
		if (question->host != host || !question->open)
			continue;
		question->open = false;
		*news = (struct news){ .name = question->name, .state = PVR_GID_ABSENT };
		if (is_missing(dir, question, &news->gid_type))
			return true;
	}
	return false;
}

bool fg_directory_tell(struct fg_directory *dir, unsigned int host, struct pvr_engine *engine,
		       struct pvr_host *const *peer)
{
	struct news news;
	bool done = false;

	for (; next_news(dir, host, &news); done = true)
		if (pvr_engine_set_gid(engine, news.name.fabric, news.name.gid, news.gid_type,
				       news.state,
				       news.state == PVR_GID_ABSENT ? NULL : peer[news.owner]))
			fg_die("an engine cannot remember a GID");
	return done;
}

/* ----------------------------------------------------------------------- for tests */

void fg_directory_set_on(struct fg_directory *dir, bool on)
{
	FG_GUARD(&dir->lock);

	dir->on = on;
}

unsigned int fg_directory_asked(struct fg_directory *dir, unsigned int host)
{
	FG_GUARD(&dir->lock);

	return dir->asked[host];
}

unsigned int fg_directory_moves(struct fg_directory *dir, unsigned int host)
{
	FG_GUARD(&dir->lock);

	return dir->moves[host];
}
