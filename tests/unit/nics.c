// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Guests of two hosts whose RDMA NICs read their memory, with TCP beside. */
#include "nics.h"

void nics_in_one_run(struct fg_end *end, uint32_t pages)
{
	expect_ok(fg_mr_destroy(&end->mr));
	fg_buf_exit(&end->buf);
	fg_buf_init(&end->buf, &end->guest->ram, pages, FG_LINEAR);
	expect_ok(fg_mr_create(&end->pd, &end->buf, FG_ACCESS_ALL, &end->mr));
}

void nics_expect_bytes(const struct fg_end *end, uint8_t byte)
{
	for (size_t i = 0; i < end->buf.size; i++)
		assert_int_equal(end->buf.va[i], byte);
}

static void open_end(struct fg_end *end, struct fg_guest *guest, bool scattered)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC, .sq_sge = 32, .rq_sge = 32 };

	fg_end_open_spec(end, &guest->kernel, &spec, scattered ? NICS_PAGES : 1);
	if (!scattered)
		nics_in_one_run(end, NICS_PAGES);
}

void nics_open(struct t_env *env, struct fg_end *a, struct fg_end *b, unsigned int on)
{
	open_end(a, env->g[on], false);
	open_end(b, env->g[on + 1], false);
	fg_end_connect(a, b, NULL);
	fg_wire_run(env->wire);
}

static int setup(void **state, bool scattered_a, bool scattered_b, uint32_t chunk)
{
	const struct fg_wire_config two_hosts = {
		.hosts = 2, .chunk = chunk, .buffer = 4u << 20, .exposes = true
	};
	struct t_env *env = t_env_of_hosts(state, &two_hosts);

	for (uint32_t i = 2; i < T_GUESTS; i++)
		env->g[i] = fg_guest_start(fg_wire_host(env->wire, i % 2), i + 1);
	fg_wire_run(env->wire);
	nics_up(env, true);
	open_end(&env->a, env->g[0], scattered_a);
	open_end(&env->b, env->g[1], scattered_b);
	fg_end_connect(&env->a, &env->b, NULL);
	fg_wire_run(env->wire);
	return 0;
}

int t_setup_nics(void **state)
{
	return setup(state, false, false, NICS_CHUNK);
}

int t_setup_nics_from_scattered(void **state)
{
	return setup(state, true, false, NICS_CHUNK);
}

int t_setup_nics_to_scattered(void **state)
{
	return setup(state, false, true, NICS_CHUNK);
}

int t_setup_nics_to_scattered_whole(void **state)
{
	return setup(state, false, true, PVR_FRAME_CHUNK_MAX);
}

uint64_t nics_out(struct t_env *env, unsigned int host)
{
	const struct fg_nic_stats *stats = fg_wire_nic(env->wire, host);

	return stats->exposed - stats->revoked;
}

void nics_up(struct t_env *env, bool up)
{
	fg_wire_verbs(env->wire, 0, 1, up);
	fg_wire_verbs(env->wire, 1, 0, up);
	fg_wire_run(env->wire);
}

bool nics_are_up(struct t_env *env)
{
	return fg_wire_verbs_is_up(env->wire, 0, 1) && fg_wire_verbs_is_up(env->wire, 1, 0);
}

void nics_hold(struct t_env *env, enum fg_reads reads)
{
	fg_wire_nics(env->wire)->reads = reads;
}
