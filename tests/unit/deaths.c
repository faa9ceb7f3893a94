// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* All ways in which the peer of an RC queue pair stops to answer. */
#include "deaths.h"

void t_unplug_peer(struct t_env *env)
{
	fg_guest_destroy(env->g[1]);
	env->g[1] = NULL;
}

void t_reset_peer(struct t_env *env)
{
	fg_reg_write(env->g[1], PVR_REG_CTL, PVR_CTL_RESET);
}

static void flr(struct t_env *env)
{
	pvr_adapter_reset(env->g[1]->adapter);
}

static void bus_master_off(struct t_env *env)
{
	pvr_adapter_set_bus_master(env->g[1]->adapter, false);
}

static void fail_adapter(struct t_env *env)
{
	pvr_adapter_fail(env->g[1]->adapter, "a test");
}

static void link_down(struct t_env *env)
{
	pvr_adapter_set_link(env->g[1]->adapter, false);
}

static void destroy_qp(struct t_env *env)
{
	expect_ok(fg_qp_destroy(&env->b.qp));
}

static void reset_qp(struct t_env *env)
{
	expect_ok(fg_qp_to_reset(&env->b.qp));
}

static void qp_to_err(struct t_env *env)
{
	expect_ok(fg_qp_to_err(&env->b.qp));
}

const struct t_death t_deaths[T_DEATHS] = {
	{ "peer unplugged", t_unplug_peer },  { "peer reset by its driver", t_reset_peer },
	{ "peer function level reset", flr }, { "peer bus master off", bus_master_off },
	{ "peer failed", fail_adapter },      { "peer link down", link_down },
	{ "peer qp destroyed", destroy_qp },  { "peer qp reset", reset_qp },
	{ "peer qp in error", qp_to_err },
};
