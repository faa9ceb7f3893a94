/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Rules of faults on demand, for the tests of faults. */
#ifndef UNIT_FAULTS_H
#define UNIT_FAULTS_H

#include "fault/rule.h"
#include "hosts.h"

static inline uint32_t add(struct t_env *env, const char *text)
{
	struct pvr_fault_rule rule;
	struct pvr_error err;
	uint32_t id = 0;

	assert_true(pvr_fault_parse(&rule, text, &err));
	expect_ok(pvr_engine_add_fault(env->host->engine, &rule, &id));
	return id;
}

static inline void keep(void *opaque, const struct pvr_fault_info *info)
{
	*(struct pvr_fault_info *)opaque = *info;
}

/* The last rule. */
static inline struct pvr_fault_info last(struct t_env *env)
{
	struct pvr_fault_info info = { 0 };

	pvr_engine_for_each_fault(env->host->engine, keep, &info);
	return info;
}

#endif /* UNIT_FAULTS_H */
