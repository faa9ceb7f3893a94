// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* How often each verb succeeded, and how often it was refused. */
#include <stdio.h>

#include "random.h"

struct tally *tally;

static const char *const names[VERB_NUM] = {
#define VERB_NAME(name) #name,
	VERBS(VERB_NAME)
#undef VERB_NAME
};

bool count(enum verb verb, int err)
{
	__atomic_add_fetch(err ? &tally->refused[verb] : &tally->ok[verb], 1, __ATOMIC_RELAXED);
	return !err;
}

void *count_made(enum verb verb, void *made)
{
	count(verb, made ? 0 : 1);
	return made;
}

void tally_print(void)
{
	for (int i = 0; i < VERB_NUM; i++)
		printf("%s %llu/%llu%s", names[i], (unsigned long long)tally->ok[i],
		       (unsigned long long)tally->refused[i], i % 8 == 7 ? "\n" : ", ");
	printf("completions %llu/%llu\n", (unsigned long long)tally->completions,
	       (unsigned long long)tally->failures);
}
