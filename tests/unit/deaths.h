/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* All ways in which the peer of an RC queue pair stops to answer. */
#ifndef UNIT_DEATHS_H
#define UNIT_DEATHS_H

#include "common.h"

struct t_death {
	const char *label;
	void (*kill)(struct t_env *env); /* b, or its adapter */
};

#define T_DEATHS 9

/* For TEST_CASES(). */
extern const struct t_death t_deaths[T_DEATHS];

/* Unplugs the adapter of b. */
void t_unplug_peer(struct t_env *env);
/* CTL: a reset by the driver of b. */
void t_reset_peer(struct t_env *env);

#endif /* UNIT_DEATHS_H */
