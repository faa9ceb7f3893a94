/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * sys/queue.h for clang-tidy. The *_REMOVE() macros change the head by a pointer in the
 * element. The analyzer does not connect this pointer with the head, and reports that the
 * head's first element was freed. In this model, each access to the head reads another
 * unknown pointer.
 */
#include <sys/queue.h>

void *pvr_model_first(void);

#undef LIST_FIRST
#undef LIST_EMPTY
#undef TAILQ_FIRST
#undef TAILQ_EMPTY
#undef LIST_FOREACH
#undef TAILQ_FOREACH

#define LIST_FIRST(head) ((void)(head), (__typeof__((head)->lh_first))pvr_model_first())
#define LIST_EMPTY(head) (!LIST_FIRST(head))
#define TAILQ_FIRST(head) ((void)(head), (__typeof__((head)->tqh_first))pvr_model_first())
#define TAILQ_EMPTY(head) (!TAILQ_FIRST(head))
#define LIST_FOREACH(var, head, field) \
	for ((var) = LIST_FIRST(head); (var); (var) = LIST_NEXT(var, field))
#define TAILQ_FOREACH(var, head, field) \
	for ((var) = TAILQ_FIRST(head); (var); (var) = TAILQ_NEXT(var, field))
