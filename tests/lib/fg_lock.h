/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Mutexes that are released at the end of a block. */
#ifndef FG_LOCK_H
#define FG_LOCK_H

#include <pthread.h>

static inline pthread_mutex_t *fg_lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}

static inline void fg_unlock(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* A declaration: holds @mutex to the end of the block; a returned value is computed before. */
#define FG_GUARD(mutex) \
	__attribute__((cleanup(fg_unlock), unused)) pthread_mutex_t *fg_guard = fg_lock(mutex)

#endif /* FG_LOCK_H */
