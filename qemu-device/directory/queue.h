/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What other threads tell the directory: it is noted, and read by the directory's thread.
 *
 * DOC: bounds
 *
 * Workers call in with locks held, and guests can make them do so as often as they like:
 * each of these notes is kept once however often it comes, of each kind there is a bound,
 * and what is beyond is dropped. It comes again: who asks for a GID goes on asking, who
 * was told a wrong place is told again. Questions wait in one of several lanes, by their
 * fabric, and the lanes take turns, so that a tenant that asks for GIDs that do not exist
 * delays others no more than one question each.
 */
#ifndef PVR_DIRECTORY_QUEUE_H
#define PVR_DIRECTORY_QUEUE_H

#include <pthread.h>

#include "base/loop.h"
#include "directory/key.h"
#include "pipe.h"

#define PVR_DIR_QUEUE_LANES 64
#define PVR_DIR_QUEUE_LANE_MAX 128 /* questions */
#define PVR_DIR_QUEUE_NEWS_MAX 4096 /* of each other kind */

enum pvr_news_kind {
	PVR_NEWS_LOCATED, /* the host says that it has it, as type, or not: 0 */
	PVR_NEWS_MOVED, /* the host says that it has it no more */
	PVR_NEWS_WANTED, /* the host is needed, and no connection is up */
	PVR_NEWS_KINDS,
};

struct pvr_news {
	enum pvr_news_kind kind;
	char host[PVR_REMOTE_NAME_MAX];
	struct pvr_key key; /* of no meaning for WANTED */
	uint8_t type;
	TAILQ_ENTRY(pvr_news) link;
};

TAILQ_HEAD(pvr_news_list, pvr_news);

struct pvr_question;
TAILQ_HEAD(pvr_lane, pvr_question);

struct pvr_dir_queue {
	struct pvr_source source; /* an eventfd */
	pthread_mutex_t lock; /* protects what follows; nothing is taken inside it */
	bool signalled;
	struct pvr_key_table questions;
	struct pvr_lane lanes[PVR_DIR_QUEUE_LANES];
	unsigned int lane_len[PVR_DIR_QUEUE_LANES], next_lane;
	struct pvr_news_list news;
	unsigned int num_news[PVR_NEWS_KINDS];
	uint64_t dropped;
};

/* @ready: in @loop's thread, when there is something. Return: 0 or -errno. */
int pvr_dir_queue_init(struct pvr_dir_queue *queue, struct pvr_loop *loop,
		       void (*ready)(struct pvr_source *source, uint32_t events));
void pvr_dir_queue_exit(struct pvr_dir_queue *queue);

/* From any thread. */
void pvr_dir_queue_ask(struct pvr_dir_queue *queue, const struct pvr_key *key);
void pvr_dir_queue_tell(struct pvr_dir_queue *queue, enum pvr_news_kind kind, const char *host,
			const struct pvr_key *key, uint8_t type);
void pvr_dir_queue_wake(struct pvr_dir_queue *queue);

/* In the directory's thread: before it looks at what there is. */
void pvr_dir_queue_begin(struct pvr_dir_queue *queue);
/* The next question. False: there is none. */
bool pvr_dir_queue_question(struct pvr_dir_queue *queue, struct pvr_key *key);
bool pvr_dir_queue_news(struct pvr_dir_queue *queue, struct pvr_news *news);

#endif /* PVR_DIRECTORY_QUEUE_H */
