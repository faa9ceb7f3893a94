/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The words of PVR_EXT_DB_SUPPRESS as a guest reads them, and a device that polls. */
#ifndef UNIT_DB_SUPPRESS_H
#define UNIT_DB_SUPPRESS_H

#include "ends.h"

static inline uint32_t sq_word(const struct fg_end *end)
{
	return __atomic_load_n(&fg_qp_db_suppress(&end->qp)->sq, __ATOMIC_RELAXED);
}

static inline uint32_t rq_word(const struct fg_end *end)
{
	return __atomic_load_n(&fg_qp_db_suppress(&end->qp)->rq, __ATOMIC_RELAXED);
}

/* Return: whether the device has found work without a doorbell. */
static inline bool poll(struct t_env *env)
{
	return pvr_engine_poll(env->host->engine, 0);
}

/* Return: false if there is new work. */
static inline bool enable_doorbells(struct t_env *env)
{
	return pvr_engine_enable_doorbells(env->host->engine, 0);
}

#endif /* UNIT_DB_SUPPRESS_H */
