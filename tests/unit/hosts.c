// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Guests on several hosts that pipes join. */
#include <errno.h>

#include "hosts.h"

void hosts_open(struct t_env *env, struct fg_end *a, struct fg_end *b, enum pvr_qp_type type,
		uint32_t pages)
{
	const struct fg_qp_spec spec = { .type = type };

	fg_end_open_spec(a, &env->g[0]->kernel, &spec, pages);
	fg_end_open_spec(b, &env->g[1]->kernel, &spec, pages);
}

void hosts_connect(struct t_env *env, struct fg_end *a, struct fg_end *b, uint32_t pages)
{
	hosts_open(env, a, b, PVR_QPT_RC, pages);
	fg_end_connect(a, b, NULL);
	fg_wire_run(env->wire);
}

void hosts_hide_b(struct t_env *env)
{
	fg_wire_directory(env->wire, false);
	expect_ok(fg_unbind_gid(env->g[1], 0, env->b.gid));
	fg_gid_from_ipv4(env->b.gid, 10, 0, 0, 2);
	expect_ok(fg_bind_gid(env->g[1], 0, env->b.gid));
}

void hosts_hold(struct t_env *env)
{
	fg_wire_hold(env->wire, 0, 1, true);
}

void hosts_release(struct t_env *env)
{
	fg_wire_hold(env->wire, 0, 1, false);
	fg_wire_settle(env->wire, FG_SEC);
}

struct pvr_adapter *hosts_load_at(struct t_env *env, struct fg_guest *guest, unsigned int host,
				  const struct fg_state *state)
{
	struct pvr_adapter *source = guest->adapter;

	LIST_REMOVE(guest, of_host);
	guest->host = fg_wire_host(env->wire, host);
	LIST_INSERT_HEAD(&guest->host->guests, guest, of_host);
	assert_true(fg_guest_plug(guest));
	assert_int_equal(fg_state_load(guest, state), 0);
	return source;
}

struct pvr_adapter *hosts_send_state(struct t_env *env, struct fg_guest *guest, unsigned int host)
{
	struct pvr_adapter *source;
	struct fg_state state;

	fg_stop(guest);
	assert_int_equal(fg_state_save(guest, &state), 0);
	source = hosts_load_at(env, guest, host, &state);
	fg_state_free(&state);
	return source;
}

int hosts_start_in(struct t_env *env, struct fg_guest *guest, unsigned int *ms)
{
	int err = pvr_adapter_start(guest->adapter);

	for (*ms = 0; err == -EINPROGRESS && *ms < 3000; ++*ms) {
		fg_wire_advance(env->wire, FG_MS);
		err = pvr_adapter_start(guest->adapter);
	}
	return err;
}
