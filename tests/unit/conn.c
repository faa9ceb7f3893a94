// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ends of connections with other queue pairs, memory or timers than fg_end_open() gives them. */
#include "conn.h"

int t_setup_rc_idle(void **state)
{
	struct t_env *env;

	t_setup_rc_connected(state);
	env = *state;
	fg_run(env->host);
	return 0;
}

struct fg_qp t_qp_create(const struct fg_end *end, struct fg_qp_spec spec)
{
	struct fg_qp qp;

	spec.type = spec.type ? spec.type : PVR_QPT_RC;
	spec.pd = spec.pd ? spec.pd : &end->pd;
	spec.scq = spec.scq ? spec.scq : (struct fg_cq *)&end->scq;
	spec.rcq = spec.rcq ? spec.rcq : (struct fg_cq *)&end->rcq;
	expect_ok(fg_qp_create(&spec, &qp));
	return qp;
}

void t_qp_replace(struct fg_end *end, struct fg_qp_spec spec)
{
	expect_ok(fg_qp_destroy(&end->qp));
	end->qp = t_qp_create(end, spec);
}

void t_qp_set_state(struct fg_end *end, enum pvr_qp_state state)
{
	const struct pvr_qp_attr attr = { .qp_state = state };

	expect_ok(fg_qp_modify(&end->qp, PVR_QPA_STATE, &attr));
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
