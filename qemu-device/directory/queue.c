// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue of queries and messages from other threads to the directory's thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "directory/queue.h"

struct pvr_question {
	struct pvr_key_node node;
	unsigned int lane;
	TAILQ_ENTRY(pvr_question) link;
};

int pvr_dir_queue_init(struct pvr_dir_queue *queue, struct pvr_loop *loop,
		       void (*ready)(struct pvr_source *source, uint32_t events))
{
	size_t i;

	memset(queue, 0, sizeof(*queue));
	pthread_mutex_init(&queue->lock, NULL);
	TAILQ_INIT(&queue->news);
	TAILQ_INIT(&queue->claims);
	for (i = 0; i < 2 * PVR_DIR_QUEUE_LANES; i++)
		TAILQ_INIT(&queue->lanes[i]);
	queue->source.ready = ready;
	queue->source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (queue->source.fd < 0)
		return -errno;
	if (!pvr_key_table_init(&queue->questions, 1024))
		return -ENOMEM;
	return pvr_loop_add(loop, &queue->source, EPOLLIN);
}

void pvr_dir_queue_exit(struct pvr_dir_queue *queue)
{
	struct pvr_state_claim claim;
	struct pvr_news news;
	struct pvr_key key;

	if (!queue->source.ready)
		return;
	while (pvr_dir_queue_claim(queue, &claim))
		;
	while (queue->questions.buckets && pvr_dir_queue_question(queue, &key))
		;
	while (pvr_dir_queue_news(queue, &news))
		;
	pvr_loop_remove(&queue->source);
	if (queue->source.fd >= 0)
		close(queue->source.fd);
	pvr_key_table_exit(&queue->questions);
	pthread_mutex_destroy(&queue->lock);
}

static void wake_locked(struct pvr_dir_queue *queue)
{
	const uint64_t one = 1;

	if (!queue->signalled)
		queue->signalled = write(queue->source.fd, &one, sizeof(one)) == sizeof(one);
}

void pvr_dir_queue_wake(struct pvr_dir_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	wake_locked(queue);
	pthread_mutex_unlock(&queue->lock);
}

static unsigned int lane_of(const char *name)
{
	unsigned int hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash % PVR_DIR_QUEUE_LANES;
}

static void drop(struct pvr_dir_queue *queue)
{
	__atomic_fetch_add(&queue->dropped, 1, __ATOMIC_RELAXED);
}

/* Also called without the lock: then the lane may have room again, or none any more. */
static bool is_full(const struct pvr_dir_queue *queue, unsigned int lane)
{
	return __atomic_load_n(&queue->lane_len[lane], __ATOMIC_RELAXED) >= PVR_DIR_QUEUE_LANE_MAX;
}

/* The lock is held. */
static void count(struct pvr_dir_queue *queue, unsigned int lane, int n)
{
	__atomic_store_n(&queue->lane_len[lane], queue->lane_len[lane] + n, __ATOMIC_RELAXED);
}

/* A token bucket. Return: whether the hosts of the lane may cause one more query. */
static bool may_ask(struct pvr_dir_queue *queue, unsigned int lane)
{
	const uint64_t gap = PVR_SEC / PVR_DIR_QUEUE_HOST_RATE;
	uint64_t now = pvr_loop_now(), passed = (now - queue->hosts[lane].at) / gap;

	if (passed) {
		queue->hosts[lane].at = now;
		queue->hosts[lane].spent -=
			passed < queue->hosts[lane].spent ? passed : queue->hosts[lane].spent;
	}
	if (queue->hosts[lane].spent == PVR_DIR_QUEUE_HOST_BURST)
		return false;
	queue->hosts[lane].spent++;
	return true;
}

static void request_locked(struct pvr_dir_queue *queue, const struct pvr_key *key,
			   unsigned int lane, bool host)
{
	struct pvr_question *question = NULL;

	if (pvr_key_find(&queue->questions, key))
		return;
	if (!host || may_ask(queue, lane)) {
		lane += host ? PVR_DIR_QUEUE_LANES : 0;
		if (!is_full(queue, lane))
			question = malloc(sizeof(*question));
	}
	if (!question) {
		drop(queue);
		return;
	}
	question->node.key = *key;
	question->lane = lane;
	pvr_key_insert(&queue->questions, &question->node);
	TAILQ_INSERT_TAIL(&queue->lanes[lane], question, link);
	count(queue, lane, 1);
	wake_locked(queue);
}

void pvr_dir_queue_lookup(struct pvr_dir_queue *queue, const char *host, const struct pvr_key *key)
{
	unsigned int lane = lane_of(host ? host : key->fabric);

	/*
	 * A guest may look up ever new GIDs at any rate. The queue is common to all tenants, so
	 * a look-up that it would drop does not take its lock.
	 */
	if (is_full(queue, host ? lane + PVR_DIR_QUEUE_LANES : lane)) {
		drop(queue);
		return;
	}
	pthread_mutex_lock(&queue->lock);
	request_locked(queue, key, lane, host);
	pthread_mutex_unlock(&queue->lock);
}

/* Compares only the newest few: repeated messages come in quick succession. */
static bool is_news(const struct pvr_dir_queue *queue, const struct pvr_news *news)
{
	const struct pvr_news *other = TAILQ_LAST(&queue->news, pvr_news_list);
	int i;

	for (i = 0; i < 8 && other; i++, other = TAILQ_PREV(other, pvr_news_list, link)) {
		if (other->kind == news->kind && other->type == news->type &&
		    !strcmp(other->host, news->host) && pvr_key_equal(&other->key, &news->key))
			return false;
	}
	return true;
}

static void add_news_locked(struct pvr_dir_queue *queue, const struct pvr_news *news)
{
	unsigned int *num = &queue->hosts[lane_of(news->host)].num_news[news->kind];
	struct pvr_news *copy;

	/* Those of a host that is needed are counted. */
	if (news->kind < PVR_NEWS_NEEDED && !is_news(queue, news))
		return;
	copy = *num < PVR_DIR_QUEUE_NEWS_MAX ? malloc(sizeof(*copy)) : NULL;
	if (!copy) {
		drop(queue);
		return;
	}
	*copy = *news;
	TAILQ_INSERT_TAIL(&queue->news, copy, link);
	(*num)++;
	wake_locked(queue);
}

void pvr_dir_queue_add_news(struct pvr_dir_queue *queue, enum pvr_news_kind kind, const char *host,
			    const struct pvr_key *key, uint8_t type)
{
	struct pvr_news news = { .kind = kind, .type = type };

	if (strlen(host) >= sizeof(news.host))
		return;
	strcpy(news.host, host);
	if (key)
		news.key = *key;
	pthread_mutex_lock(&queue->lock);
	add_news_locked(queue, &news);
	pthread_mutex_unlock(&queue->lock);
}

void pvr_dir_queue_refer(struct pvr_dir_queue *queue, const char *host, const char *address)
{
	struct pvr_news news = { .kind = PVR_NEWS_REFERRED };

	if (strlen(host) >= sizeof(news.host) || strlen(address) >= sizeof(news.address))
		return;
	strcpy(news.host, host);
	strcpy(news.address, address);
	pthread_mutex_lock(&queue->lock);
	add_news_locked(queue, &news);
	pthread_mutex_unlock(&queue->lock);
}

bool pvr_is_same_claimant(const struct pvr_state_claim *a, const struct pvr_state_claim *b)
{
	return !memcmp(a->mac, b->mac, sizeof(a->mac)) && !strcmp(a->fabric, b->fabric) &&
	       a->runs_on == b->runs_on;
}

static bool add_claim_locked(struct pvr_dir_queue *queue, const struct pvr_state_claim *claim)
{
	struct pvr_claim_request *request;

	TAILQ_FOREACH(request, &queue->claims, link)
		if (pvr_is_same_claimant(&request->claim, claim))
			break;
	if (!request) {
		request = malloc(sizeof(*request));
		if (!request)
			return false;
		TAILQ_INSERT_TAIL(&queue->claims, request, link);
	}
	request->claim = *claim;
	wake_locked(queue);
	return true;
}

bool pvr_dir_queue_add_claim(struct pvr_dir_queue *queue, const struct pvr_state_claim *claim)
{
	bool ok;

	pthread_mutex_lock(&queue->lock);
	ok = add_claim_locked(queue, claim);
	pthread_mutex_unlock(&queue->lock);
	return ok;
}

void pvr_dir_queue_begin(struct pvr_dir_queue *queue)
{
	uint64_t count;

	pthread_mutex_lock(&queue->lock);
	queue->signalled = false;
	if (read(queue->source.fd, &count, sizeof(count)) < 0)
		count = 0; /* called without an event */
	pthread_mutex_unlock(&queue->lock);
}

/* Takes a query from the next lane that has one. */
static struct pvr_question *next_locked(struct pvr_dir_queue *queue)
{
	struct pvr_question *question = NULL;
	unsigned int i, lane;

	for (i = 0; i < 2 * PVR_DIR_QUEUE_LANES && !question; i++) {
		lane = queue->next_lane++ % (2 * PVR_DIR_QUEUE_LANES);
		question = TAILQ_FIRST(&queue->lanes[lane]);
	}
	if (!question)
		return NULL;
	TAILQ_REMOVE(&queue->lanes[question->lane], question, link);
	count(queue, question->lane, -1);
	pvr_key_remove(&queue->questions, &question->node);
	return question;
}

bool pvr_dir_queue_question(struct pvr_dir_queue *queue, struct pvr_key *key)
{
	struct pvr_question *question;

	pthread_mutex_lock(&queue->lock);
	question = next_locked(queue);
	pthread_mutex_unlock(&queue->lock);
	if (!question)
		return false;
	*key = question->node.key;
	free(question);
	return true;
}

bool pvr_dir_queue_news(struct pvr_dir_queue *queue, struct pvr_news *news)
{
	struct pvr_news *first;

	pthread_mutex_lock(&queue->lock);
	first = TAILQ_FIRST(&queue->news);
	if (first) {
		TAILQ_REMOVE(&queue->news, first, link);
		queue->hosts[lane_of(first->host)].num_news[first->kind]--;
	}
	pthread_mutex_unlock(&queue->lock);
	if (!first)
		return false;
	*news = *first;
	free(first);
	return true;
}

bool pvr_dir_queue_claim(struct pvr_dir_queue *queue, struct pvr_state_claim *claim)
{
	struct pvr_claim_request *first;

	pthread_mutex_lock(&queue->lock);
	first = TAILQ_FIRST(&queue->claims);
	if (first)
		TAILQ_REMOVE(&queue->claims, first, link);
	pthread_mutex_unlock(&queue->lock);
	if (!first)
		return false;
	*claim = first->claim;
	free(first);
	return true;
}
