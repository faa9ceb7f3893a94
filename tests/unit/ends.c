// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ends of connections: fixtures, queue pairs, timers, and what is posted to them. */
#include "ends.h"

#include "rdma/path.h"

T_SHARED_SETUP(rc_self, guest)
{
	t_open_self(&env->a, env->g[0]);
}

T_SHARED_SETUP(uc_connected, uc)
{
	fg_end_connect(&env->a, &env->b, NULL);
}

T_SHARED_SETUP(rc_idle, rc_connected)
{
	fg_run(env->host);
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

void t_open_ready(struct fg_end *end, struct fg_guest *guest, enum pvr_qp_type type)
{
	fg_end_open(end, guest, type);
	fg_end_ready(end);
}

void t_open_connected(struct t_env *env, const struct fg_qp_spec *spec, uint32_t pages)
{
	fg_end_open_spec(&env->a, &env->g[0]->kernel, spec, pages);
	fg_end_open_spec(&env->b, &env->g[1]->kernel, spec, pages);
	fg_end_connect(&env->a, &env->b, NULL);
}

void t_open_user(struct fg_end *end, struct fg_ctx *ctx, struct fg_guest *guest,
		 const struct fg_qp_spec *spec)
{
	expect_ok(fg_ctx_create(guest, ctx));
	fg_end_open_spec(end, ctx, spec, FG_END_PAGES);
}

struct fg_qp t_qp_create(struct fg_end *end, struct fg_qp_spec spec)
{
	struct fg_qp qp;

	spec.type = spec.type ? spec.type : end->qp.type;
	spec.pd = spec.pd ? spec.pd : &end->pd;
	spec.scq = spec.scq ? spec.scq : &end->scq;
	spec.rcq = spec.rcq ? spec.rcq : &end->rcq;
	expect_ok(fg_qp_create(&spec, &qp));
	return qp;
}

void t_qp_replace(struct fg_end *end, struct fg_qp_spec spec)
{
	expect_ok(fg_qp_destroy(&end->qp));
	end->qp = t_qp_create(end, spec);
}

void t_srq_use(struct fg_end *end, uint32_t wr, struct fg_srq *srq)
{
	expect_ok(fg_srq_create(&end->pd, wr, 1, srq));
	t_qp_replace(end, (struct fg_qp_spec){ .srq = srq });
}

void t_srq_recv(struct fg_srq *srq, uint64_t wr_id, const struct fg_mr *mr, uint64_t offset,
		uint32_t len)
{
	const struct pvrdma_sge sge = fg_sge(mr, offset, len);

	assert_true(fg_post_srq_recv(srq, wr_id, &sge, 1));
}

void t_qp_set_state(struct fg_end *end, enum pvr_qp_state state)
{
	const struct pvr_qp_attr attr = { .qp_state = state };

	expect_ok(fg_qp_modify(&end->qp, PVR_QPA_STATE, &attr));
}

struct fg_qp_spec end_spec(struct fg_end *end)
{
	return (struct fg_qp_spec){
		.type = end->qp.type, .pd = &end->pd, .scq = &end->scq, .rcq = &end->rcq
	};
}

void end_drain(struct fg_end *end)
{
	fg_cq_drain(&end->scq);
	fg_cq_drain(&end->rcq);
	fg_events_count(end->guest, 0, 0);
}

void t_widen(struct fg_end *end, uint32_t len)
{
	struct fg_mr wide;

	t_wide_mr(end, len / PVR_PAGE_SIZE, &wide);
	end->mr = wide;
}

struct fg_conn t_conn_rnr(uint8_t rnr_retry, uint8_t min_rnr_timer)
{
	struct fg_conn conn = fg_conn_default;

	conn.rnr_retry = rnr_retry;
	conn.min_rnr_timer = min_rnr_timer;
	return conn;
}

struct fg_conn t_conn_ack(uint8_t timeout, uint8_t retry_cnt)
{
	struct fg_conn conn = fg_conn_default;

	conn.timeout = timeout;
	conn.retry_cnt = retry_cnt;
	return conn;
}

void t_put_send(struct fg_end *end, uint64_t wr_id, uint64_t offset, uint32_t len)
{
	const struct fg_wr wr = { .wr_id = wr_id,
				  .opcode = PVRDMA_WR_SEND,
				  .flags = PVR_SEND_SIGNALED,
				  T_SGE(&end->mr, offset, len) };

	assert_true(fg_put_send(&end->qp, &wr));
}

void t_put_recv(struct fg_end *end, uint64_t wr_id, uint64_t offset, uint32_t len)
{
	struct pvrdma_sge sge = fg_sge(&end->mr, offset, len);

	assert_true(fg_put_recv(&end->qp, wr_id, &sge, 1));
}

bool t_try_put_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id)
{
	const struct fg_wr wr = { .wr_id = wr_id,
				  .opcode = PVRDMA_WR_RDMA_WRITE,
				  .flags = PVR_SEND_SIGNALED,
				  T_SGE(&from->mr, 0, 8),
				  T_REMOTE(&to->mr, 0) };

	return fg_put_send(&from->qp, &wr);
}

void t_put_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id)
{
	assert_true(t_try_put_write(from, to, wr_id));
}

void t_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id)
{
	t_rdma(from, PVRDMA_WR_RDMA_WRITE, wr_id, 0, &to->mr, 0, 8);
}

void t_fill_cq(struct t_env *env, uint64_t first, uint32_t n)
{
	for (uint64_t i = first; i < first + n; i++) {
		t_recv(&env->b, i, 0, 0);
		t_send(&env->a, i, 0, 0);
		await_sent(&env->a, i);
	}
}

void t_expect_recvs(struct t_env *env, uint64_t first, uint32_t n)
{
	for (uint64_t i = first; i < first + n; i++)
		expect_recv(&env->b.rcq, i, 0);
}

void expect_path(struct t_env *env, const char *name)
{
	assert_string_equal(pvr_path_current(t_device_qp(&env->a))->name, name);
}

void t_recv_sge(struct fg_end *end, uint64_t wr_id, struct pvrdma_sge sge)
{
	assert_true(fg_post_recv(&end->qp, wr_id, &sge, 1));
}

void t_write_to(struct t_env *env, uint32_t rkey, uint64_t addr, uint32_t len, uint32_t status)
{
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, T_SGE(&env->a.mr, 0, len),
	       .remote_addr = addr, .rkey = rkey);
	await_cqe(&env->a.scq, 1, status);
	if (status != PVRDMA_WC_SUCCESS)
		t_reconnect(env);
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
	await_sent(from, 802);
	expect_recv(&to->rcq, 801, from->qp.type == PVR_QPT_UD ? 50 : 10);
}

void t_expect_send_error(struct t_env *env, uint64_t wr_id, uint32_t status)
{
	struct pvr_qp_attr attr = { .qp_state = PVR_QPS_RTS };

	t_send_to(&env->a, &env->b, 777, 10); /* behind the bad one */
	await_cqe(&env->a.scq, wr_id, status);
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
		await_sent(&env->a, 2);
		expect_no_cqe(&env->b.rcq);
		pvr_adapter_set_link(env->g[i]->adapter, true);
		t_send_to(&env->a, &env->b, 3, 10);
		await_sent(&env->a, 3);
		expect_cqe(&env->b.rcq, 1, PVRDMA_WC_SUCCESS);
	}
}

void t_expect_receiver_fails(struct t_env *env)
{
	t_recv_sge(&env->b, 1, T_BAD_SGE);
	t_recv(&env->b, 2, 0, 200);
	t_send_to(&env->a, &env->b, 3, 10);
	t_send_to(&env->a, &env->b, 4, 10);
	await_sent(&env->a, 3);
	expect_sent(&env->a, 4);
	expect_cqe(&env->b.rcq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_cqe(&env->b.rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_state(&env->b, PVR_QPS_ERR);
}
