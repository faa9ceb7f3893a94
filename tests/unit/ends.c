// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Fixtures, guests and ends of a kind that only some tests need. */
#include "ends.h"

int t_setup_rc_self(void **state)
{
	struct t_env *env;

	t_setup_guest(state);
	env = *state;
	fg_end_open(&env->a, env->g[0], PVR_QPT_RC);
	fg_end_connect(&env->a, &env->a, NULL);
	return 0;
}

int t_setup_uc_connected(void **state)
{
	struct t_env *env;

	t_setup_uc(state);
	env = *state;
	fg_end_connect(&env->a, &env->b, NULL);
	return 0;
}

struct fg_guest *t_guest_as(struct t_env *env, uint32_t number,
			    const struct fg_guest_config *config)
{
	struct fg_guest *guest = fg_guest_create(env->host, config);
	uint8_t gid[16];

	env->g[number - 1] = guest;
	expect_ok(fg_guest_boot(guest));
	fg_gid_from_mac(gid, config->mac);
	expect_ok(fg_bind_gid(guest, 0, gid));
	return guest;
}

struct fg_guest *t_guest_with_ext(struct t_env *env, uint32_t number, uint32_t ext)
{
	struct fg_guest_config config;

	fg_guest_config_init(&config, number);
	config.ext = ext;
	return t_guest_as(env, number, &config);
}

struct fg_guest *t_guest_in_fabric(struct t_env *env, uint32_t number, const char *fabric)
{
	struct fg_guest_config config;

	fg_guest_config_init(&config, number);
	config.fabric = fabric;
	return t_guest_as(env, number, &config);
}

void t_open_ready(struct fg_end *end, struct fg_guest *guest)
{
	fg_end_open(end, guest, PVR_QPT_UD);
	fg_end_ready(end);
}

void t_open_user(struct fg_end *end, struct fg_ctx *ctx, struct fg_guest *guest,
		 const struct fg_qp_spec *spec)
{
	expect_ok(fg_ctx_create(guest, ctx));
	fg_end_open_spec(end, ctx, spec, FG_END_PAGES);
}

void t_add_qp(struct fg_end *end, struct fg_qp_spec spec, struct fg_qp *qp)
{
	spec.pd = spec.pd ? spec.pd : &end->pd;
	spec.scq = spec.scq ? spec.scq : &end->scq;
	spec.rcq = spec.rcq ? spec.rcq : &end->rcq;
	expect_ok(fg_qp_create(&spec, qp));
}

void t_replace_qp(struct fg_end *end, struct fg_qp_spec spec)
{
	expect_ok(fg_qp_destroy(&end->qp));
	t_add_qp(end, spec, &end->qp);
}

uint8_t *t_map_rom(struct fg_guest *guest)
{
	static uint8_t rom[PVR_PAGE_SIZE] __attribute__((aligned(PVR_PAGE_SIZE)));

	memset(rom, 0, sizeof(rom));
	expect_ok(
		(uint32_t)pvr_adapter_map_ram(guest->adapter, T_ROM_GPA, sizeof(rom), rom, false));
	return rom;
}

void t_recv_sge(struct fg_end *end, uint64_t wr_id, struct pvrdma_sge sge)
{
	assert_true(fg_post_recv(&end->qp, wr_id, &sge, 1));
}

void t_write_to(struct t_env *env, uint32_t rkey, uint64_t addr, uint32_t len, uint32_t status)
{
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, T_SGE(&env->a.mr, 0, len),
	       .remote_addr = addr, .rkey = rkey);
	fg_run(env->host);
	expect_cqe(&env->a.scq, 1, status);
	if (status != PVRDMA_WC_SUCCESS)
		t_reconnect(env);
}

struct pvrdma_cqe t_run_done_at(struct fg_end *end, uint64_t wr_id, uint32_t opcode,
				const char *file, int line)
{
	fg_run(end->guest->host);
	return t_cqe_ok_at(&end->scq, wr_id, opcode, UINT32_MAX, file, line);
}

struct pvrdma_cqe t_run_cqe_at(struct fg_end *end, uint64_t wr_id, uint32_t status,
			       const char *file, int line)
{
	fg_run(end->guest->host);
	return t_cqe_at(&end->scq, wr_id, status, file, line);
}

struct pvrdma_cqe t_run_recv_at(struct fg_end *end, uint64_t wr_id, uint32_t len, const char *file,
				int line)
{
	fg_run(end->guest->host);
	return t_cqe_ok_at(&end->rcq, wr_id, PVRDMA_WC_RECV, len, file, line);
}

void t_send_to(struct fg_end *from, const struct fg_end *to, uint64_t wr_id, uint32_t len)
{
	if (from->qp.type == PVR_QPT_UD)
		t_send_ud(from, to, wr_id, 0, len);
	else
		t_send(from, wr_id, 0, len);
}

/* A message from @from arrives. */
static void exchange(struct fg_end *from, struct fg_end *to)
{
	t_recv(to, 801, 2000, 200);
	t_send_to(from, to, 802, 10);
	run_done(from, 802, PVRDMA_WC_SEND);
	expect_recv(&to->rcq, 801, from->qp.type == PVR_QPT_UD ? 50 : 10);
}

void t_expect_send_error(struct t_env *env, uint64_t wr_id, uint32_t status)
{
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_RTS };

	t_send_to(&env->a, &env->b, 777, 10); /* behind the bad one */
	run_cqe(&env->a, wr_id, status);
	expect_cqe(&env->a.scq, 777, PVRDMA_WC_WR_FLUSH_ERR);
	expect_no_cqe(&env->b.rcq);
	expect_state(&env->a, PVR_QPS_SQE);
	expect_state(&env->b, PVR_QPS_RTS);
	exchange(&env->b, &env->a);
	expect_ok(fg_qp_modify(&env->a.qp, PVR_QPA_STATE, &attr));
	exchange(&env->a, &env->b);
	exchange(&env->b, &env->a);
}

void t_expect_link_needed(struct t_env *env)
{
	for (int i = 0; i < 2; i++) {
		pvr_adapter_set_link(env->g[i]->adapter, false);
		t_recv(&env->b, 1, 0, 200);
		t_send_to(&env->a, &env->b, 2, 10);
		run_done(&env->a, 2, PVRDMA_WC_SEND);
		expect_no_cqe(&env->b.rcq);
		pvr_adapter_set_link(env->g[i]->adapter, true);
		t_send_to(&env->a, &env->b, 3, 10);
		run_done(&env->a, 3, PVRDMA_WC_SEND);
		expect_cqe(&env->b.rcq, 1, PVRDMA_WC_SUCCESS);
	}
}

void t_expect_receiver_fails(struct t_env *env)
{
	t_recv_sge(&env->b, 1, T_BAD_SGE);
	t_recv(&env->b, 2, 0, 200);
	t_send_to(&env->a, &env->b, 3, 10);
	t_send_to(&env->a, &env->b, 4, 10);
	run_done(&env->a, 3, PVRDMA_WC_SEND);
	expect_done(&env->a.scq, 4, PVRDMA_WC_SEND);
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_cqe(&env->b.rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_state(&env->b, PVR_QPS_ERR);
}
