/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue of queries and messages from other threads to the directory's thread.
 *
 * DOC: bounds
 *
 * Workers call with locks held, and guests can cause any number of calls. So duplicates
 * are dropped, and each kind is bounded. Dropped items come again: a query is repeated,
 * and a wrong location is reported again. Queries wait in lanes, one chosen by the
 * fabric, which are served round-robin. So a tenant that queries GIDs that do not exist
 * delays others by one query each. Frames of other hosts cause queries, too. These have
 * lanes chosen by the host, each with a rate. Messages of hosts have a bound for each
 * host. So a hostile host takes nothing from guests, or from other hosts. Claims of states are
 * never dropped. There is one per adapter at most.
 */
#ifndef PVR_DIRECTORY_QUEUE_H
#define PVR_DIRECTORY_QUEUE_H

#include <pthread.h>

#include "base/loop.h"
#include "directory/key.h"
#include "pipe.h"

#define PVR_DIR_QUEUE_LANES 64
#define PVR_DIR_QUEUE_LANE_MAX 128 /* queries */
#define PVR_DIR_QUEUE_HOST_BURST 512 /* queries that frames of a host cause */
#define PVR_DIR_QUEUE_HOST_RATE 256 /* the same, per second */
#define PVR_DIR_QUEUE_NEWS_MAX 1024 /* of each kind, from the hosts of a lane */

enum pvr_news_kind {
	PVR_NEWS_LOCATED, /* the host reports the GID with @type; 0: it does not have it */
	PVR_NEWS_MOVED, /* the host reports that it lost the GID */
	PVR_NEWS_HANDED_OVER, /* an adapter here had the GID until the host took it */
	PVR_NEWS_WANTED, /* the host is needed, and no connection is up */
	PVR_NEWS_DOUBT, /* the host sends as the GID, which is located elsewhere */
	PVR_NEWS_REFERRED, /* another host has told @address of the host */
	PVR_NEWS_NEEDED,
	PVR_NEWS_UNNEEDED, /* see pvr_directory_need() */
	PVR_NEWS_KINDS,
};

struct pvr_news {
	enum pvr_news_kind kind;
	char host[PVR_HOST_NAME_MAX];
	struct pvr_key key; /* unused without a GID */
	uint8_t type;
	char address[PVR_FRAME_ADDRESS_MAX]; /* REFERRED */
	TAILQ_ENTRY(pvr_news) link;
};

TAILQ_HEAD(pvr_news_list, pvr_news);

struct pvr_claim_request {
	struct pvr_state_claim claim;
	TAILQ_ENTRY(pvr_claim_request) link;
};

struct pvr_question;
TAILQ_HEAD(pvr_lane, pvr_question);

struct pvr_dir_queue {
	struct pvr_source source; /* an eventfd */
	pthread_mutex_t lock; /* protects the members below; innermost */
	bool signalled;
	struct pvr_key_table questions;
	/* The first half is for guests, by their fabrics; the second for other hosts. */
	struct pvr_lane lanes[2 * PVR_DIR_QUEUE_LANES];
	unsigned int lane_len[2 * PVR_DIR_QUEUE_LANES]; /* also read without the lock */
	unsigned int next_lane;
	struct {
		uint64_t spent, at; /* see may_ask() */
		unsigned int num_news[PVR_NEWS_KINDS];
	} hosts[PVR_DIR_QUEUE_LANES];
	struct pvr_news_list news;
	TAILQ_HEAD(, pvr_claim_request) claims;
	uint64_t dropped; /* atomic */
};

/* @ready: called in @loop's thread when items are queued. Return: 0 or -errno. */
int pvr_dir_queue_init(struct pvr_dir_queue *queue, struct pvr_loop *loop,
		       void (*ready)(struct pvr_source *source, uint32_t events));
void pvr_dir_queue_exit(struct pvr_dir_queue *queue);

/* Any thread. @host: its frames cause the query; NULL: a guest. */
void pvr_dir_queue_lookup(struct pvr_dir_queue *queue, const char *host, const struct pvr_key *key);
void pvr_dir_queue_add_news(struct pvr_dir_queue *queue, enum pvr_news_kind kind, const char *host,
			    const struct pvr_key *key, uint8_t type);
void pvr_dir_queue_refer(struct pvr_dir_queue *queue, const char *host, const char *address);
/* Return: false without memory. */
bool pvr_dir_queue_add_claim(struct pvr_dir_queue *queue, const struct pvr_state_claim *claim);
/* Return: whether both claims are of one adapter, and for the same reason. */
bool pvr_is_same_claimant(const struct pvr_state_claim *a, const struct pvr_state_claim *b);
void pvr_dir_queue_wake(struct pvr_dir_queue *queue);

/* Context of these: the directory's thread. Call before the queue is read. */
void pvr_dir_queue_begin(struct pvr_dir_queue *queue);
/* Takes the next query. Return: false if there is none. */
bool pvr_dir_queue_question(struct pvr_dir_queue *queue, struct pvr_key *key);
bool pvr_dir_queue_news(struct pvr_dir_queue *queue, struct pvr_news *news);
bool pvr_dir_queue_claim(struct pvr_dir_queue *queue, struct pvr_state_claim *claim);

#endif /* PVR_DIRECTORY_QUEUE_H */
