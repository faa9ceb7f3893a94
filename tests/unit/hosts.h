/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Guests on several hosts that pipes join: fixtures, and connected ends. */
#ifndef UNIT_HOSTS_H
#define UNIT_HOSTS_H

#include "ends.h"
#include "fg_migrate.h"

#define GRH 40u

/*
 * T_SETUP_HOSTS(name, 3, .slots = 4) { ... }: hosts with a guest each; the other arguments are
 * fields of struct fg_wire_config.
 */
#define T_SETUP_HOSTS(name, num, ...)                                                   \
	static void t_fill_##name(struct t_env *env);                                   \
	static int t_setup_##name(void **state)                                         \
	{                                                                               \
		const struct fg_wire_config config = { .hosts = (num), ##__VA_ARGS__ }; \
		struct t_env *env = t_env_of_hosts(state, &config);                     \
                                                                                        \
		fg_wire_run(env->wire);                                                 \
		t_fill_##name(env);                                                     \
		return 0;                                                               \
	}                                                                               \
	static void t_fill_##name(struct t_env *env)

/* An end with a buffer of @pages on the first guest, another on the second; not connected. */
void hosts_open(struct t_env *env, struct fg_end *a, struct fg_end *b, enum pvr_qp_type type,
		uint32_t pages);
/* The same for two RC ends, and connects them. */
void hosts_connect(struct t_env *env, struct fg_end *a, struct fg_end *b, uint32_t pages);

/* The directory is off, and b has a new GID that the cache of a's host does not have. */
void hosts_hide_b(struct t_env *env);

/* Requests of the first host do not arrive at the second one, nor their answers. */
void hosts_hold(struct t_env *env);
/* They do again, and all that is due within a second has happened. */
void hosts_release(struct t_env *env);

/* Plugs the guest in at @host, with this state. Return: the adapter at its source. */
struct pvr_adapter *hosts_load_at(struct t_env *env, struct fg_guest *guest, unsigned int host,
				  const struct fg_state *state);
/* The same with its present state. The adapter at its source is stopped. */
struct pvr_adapter *hosts_send_state(struct t_env *env, struct fg_guest *guest, unsigned int host);
/* Return: as pvr_adapter_start(), when it has an answer, or after 3 s. *ms: until then. */
int hosts_start_in(struct t_env *env, struct fg_guest *guest, unsigned int *ms);

#endif /* UNIT_HOSTS_H */
