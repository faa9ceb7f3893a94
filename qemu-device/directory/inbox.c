// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What other threads tell the directory: it is noted, and read by the directory's thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "directory/inbox.h"

struct pvr_question {
	struct pvr_key_node node;
	unsigned int lane;
	TAILQ_ENTRY(pvr_question) link;
};

int pvr_inbox_init(struct pvr_inbox *inbox, struct pvr_loop *loop,
		   void (*ready)(struct pvr_source *source, uint32_t events))
{
	size_t i;

	memset(inbox, 0, sizeof(*inbox));
	pthread_mutex_init(&inbox->lock, NULL);
	TAILQ_INIT(&inbox->news);
	for (i = 0; i < PVR_INBOX_LANES; i++)
		TAILQ_INIT(&inbox->lanes[i]);
	inbox->source.ready = ready;
	inbox->source.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (inbox->source.fd < 0)
		return -errno;
	if (!pvr_key_table_init(&inbox->questions, 1024))
		return -ENOMEM;
	return pvr_loop_add(loop, &inbox->source, EPOLLIN);
}

void pvr_inbox_exit(struct pvr_inbox *inbox)
{
	struct pvr_news news;
	struct pvr_key key;

	if (!inbox->source.ready)
		return;
	while (inbox->questions.buckets && pvr_inbox_question(inbox, &key))
		;
	while (pvr_inbox_news(inbox, &news))
		;
	pvr_loop_remove(&inbox->source);
	if (inbox->source.fd >= 0)
		close(inbox->source.fd);
	pvr_key_table_exit(&inbox->questions);
	pthread_mutex_destroy(&inbox->lock);
}

static void wake_locked(struct pvr_inbox *inbox)
{
	const uint64_t one = 1;

	if (!inbox->signalled)
		inbox->signalled = write(inbox->source.fd, &one, sizeof(one)) == sizeof(one);
}

void pvr_inbox_wake(struct pvr_inbox *inbox)
{
	pthread_mutex_lock(&inbox->lock);
	wake_locked(inbox);
	pthread_mutex_unlock(&inbox->lock);
}

static unsigned int lane_of(const char *fabric)
{
	unsigned int hash = 5381;

	while (*fabric)
		hash = hash * 33 + (unsigned char)*fabric++;
	return hash % PVR_INBOX_LANES;
}

static void ask_locked(struct pvr_inbox *inbox, const struct pvr_key *key, unsigned int lane)
{
	struct pvr_question *question;

	if (pvr_key_find(&inbox->questions, key))
		return;
	question = inbox->lane_len[lane] < PVR_INBOX_LANE_MAX ? malloc(sizeof(*question)) : NULL;
	if (!question) {
		inbox->dropped++;
		return;
	}
	question->node.key = *key;
	question->lane = lane;
	pvr_key_insert(&inbox->questions, &question->node);
	TAILQ_INSERT_TAIL(&inbox->lanes[lane], question, link);
	inbox->lane_len[lane]++;
	wake_locked(inbox);
}

void pvr_inbox_ask(struct pvr_inbox *inbox, const struct pvr_key *key)
{
	unsigned int lane = lane_of(key->fabric);

	pthread_mutex_lock(&inbox->lock);
	ask_locked(inbox, key, lane);
	pthread_mutex_unlock(&inbox->lock);
}

/* Only the newest few are compared: what comes again comes at once. */
static bool is_news(const struct pvr_inbox *inbox, const struct pvr_news *news)
{
	const struct pvr_news *other = TAILQ_LAST(&inbox->news, pvr_news_list);
	int i;

	for (i = 0; i < 8 && other; i++, other = TAILQ_PREV(other, pvr_news_list, link)) {
		if (other->kind == news->kind && other->type == news->type &&
		    !strcmp(other->host, news->host) && pvr_key_equal(&other->key, &news->key))
			return false;
	}
	return true;
}

static void tell_locked(struct pvr_inbox *inbox, const struct pvr_news *news)
{
	struct pvr_news *copy;

	if (!is_news(inbox, news))
		return;
	copy = inbox->num_news[news->kind] < PVR_INBOX_NEWS_MAX ? malloc(sizeof(*copy)) : NULL;
	if (!copy) {
		inbox->dropped++;
		return;
	}
	*copy = *news;
	TAILQ_INSERT_TAIL(&inbox->news, copy, link);
	inbox->num_news[news->kind]++;
	wake_locked(inbox);
}

void pvr_inbox_tell(struct pvr_inbox *inbox, enum pvr_news_kind kind, const char *host,
		    const struct pvr_key *key, uint8_t type)
{
	struct pvr_news news = { .kind = kind, .type = type };

	if (strlen(host) >= sizeof(news.host))
		return;
	strcpy(news.host, host);
	if (key)
		news.key = *key;
	pthread_mutex_lock(&inbox->lock);
	tell_locked(inbox, &news);
	pthread_mutex_unlock(&inbox->lock);
}

void pvr_inbox_begin(struct pvr_inbox *inbox)
{
	uint64_t count;

	pthread_mutex_lock(&inbox->lock);
	inbox->signalled = false;
	if (read(inbox->source.fd, &count, sizeof(count)) < 0)
		count = 0; /* called without having been woken */
	pthread_mutex_unlock(&inbox->lock);
}

/* Of the next lane that has one. */
static struct pvr_question *next_locked(struct pvr_inbox *inbox)
{
	struct pvr_question *question = NULL;
	unsigned int i, lane;

	for (i = 0; i < PVR_INBOX_LANES && !question; i++) {
		lane = inbox->next_lane++ % PVR_INBOX_LANES;
		question = TAILQ_FIRST(&inbox->lanes[lane]);
	}
	if (!question)
		return NULL;
	TAILQ_REMOVE(&inbox->lanes[question->lane], question, link);
	inbox->lane_len[question->lane]--;
	pvr_key_remove(&inbox->questions, &question->node);
	return question;
}

bool pvr_inbox_question(struct pvr_inbox *inbox, struct pvr_key *key)
{
	struct pvr_question *question;

	pthread_mutex_lock(&inbox->lock);
	question = next_locked(inbox);
	pthread_mutex_unlock(&inbox->lock);
	if (!question)
		return false;
	*key = question->node.key;
	free(question);
	return true;
}

bool pvr_inbox_news(struct pvr_inbox *inbox, struct pvr_news *news)
{
	struct pvr_news *first;

	pthread_mutex_lock(&inbox->lock);
	first = TAILQ_FIRST(&inbox->news);
	if (first) {
		TAILQ_REMOVE(&inbox->news, first, link);
		inbox->num_news[first->kind]--;
	}
	pthread_mutex_unlock(&inbox->lock);
	if (!first)
		return false;
	*news = *first;
	free(first);
	return true;
}
