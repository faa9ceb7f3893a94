// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A guest that arms and reads the receive CQ of b, step by step, and the notifications it gets. */
#include "cq_steps.h"
#include "ends.h"

/* Of a doorbell, of the arm record, ns, or completions. */
static const uint64_t values[] = {
	[ARM] = PVR_DB_CQ_ARM,
	[ARM_SOLICITED] = PVR_DB_CQ_ARM_SOL,
	[ARM_BOTH] = PVR_DB_CQ_ARM | PVR_DB_CQ_ARM_SOL | PVR_DB_CQ_POLL,
	[POLL_BELL] = PVR_DB_CQ_POLL,
	[NEARLY_LATE] = T_LATE - 1,
	[ONE_NS] = 1,
	[LATE] = T_LATE,
	[MUCH_LATER] = 1000 * FG_SEC,
	[MODERATE_THREE] = 3,
	[MODERATE_PERIOD] = 0,
	[MODERATE_NOT] = UINT64_MAX,
	[WORD_ANY] = PVR_CQ_ARM_ANY,
	[WORD_SOLICITED] = PVR_CQ_ARM_SOLICITED,
	[WORD_BOTH] = PVR_CQ_ARM_ANY | PVR_CQ_ARM_SOLICITED,
	[WORD_NONE] = 0,
};

/* Messages have numbers from 0. */
struct progress {
	uint32_t sent, read;
};

static void send(struct t_env *env, struct progress *p, uint32_t flags)
{
	t_recv(&env->b, p->sent, 0, 0);
	t_post(&env->a, .wr_id = p->sent, .opcode = PVRDMA_WR_SEND,
	       .flags = PVR_SEND_SIGNALED | flags);
	await_sent(&env->a, p->sent++);
}

static void read_one(struct t_env *env, struct progress *p)
{
	expect_recv(&env->b.rcq, p->read++, 0);
}

static void send_and_read_many(struct t_env *env, struct progress *p)
{
	for (int i = 0; i < 40; i++) {
		send(env, p, 0);
		read_one(env, p);
	}
}

static void read_all(struct t_env *env, struct progress *p)
{
	t_expect_recvs(env, p->read, p->sent - p->read);
	p->read = p->sent;
	expect_no_cqe(&env->b.rcq);
}

static void flush(struct t_env *env)
{
	t_recv(&env->b, 1, 0, 0);
	expect_ok(fg_qp_to_err(&env->b.qp));
	await_cqe(&env->b.rcq, 1, PVRDMA_WC_WR_FLUSH_ERR);
}

static void arm_word(struct t_env *env, uint32_t kind)
{
	bool unread = fg_cq_pending(&env->b.rcq) > 0;
	uint64_t doorbells = fg_stats(env->g[1]).doorbells;

	assert_int_equal(fg_cq_arm_in_memory(&env->b.rcq, kind), unread);
	assert_int_equal(fg_stats(env->g[1]).doorbells, doorbells + unread);
}

static void resize(struct fg_cq *cq)
{
	expect_ok(fg_cq_resize(cq, 16));
	assert_int_equal(*fg_cq_arm_dbrec(cq), 0);
}

static void moderate(struct t_env *env, uint64_t count)
{
	const bool on = count != UINT64_MAX;

	expect_ok(fg_modify_cq(env->g[1], env->b.rcq.handle, on ? count : 0,
			       on ? T_LATE / FG_US : 0));
}

static void run_step(struct t_env *env, struct progress *p, enum t_cq_step step)
{
	struct fg_cq *cq = &env->b.rcq;

	switch (step) {
	case END:
	case NOTIFIES:
		break;
	case ARM:
	case ARM_SOLICITED:
	case ARM_BOTH:
	case POLL_BELL:
		fg_cq_ring(cq, values[step]);
		break;
	case LOST_ARM:
		fg_cq_arm(cq);
		fg_cq_ring(cq, PVR_DB_CQ_POLL);
		break;
	case ARM_LOST_TO_OTHER:
		fg_cq_arm(cq);
		fg_cq_ring(&env->b.scq, PVR_DB_CQ_POLL);
		break;
	case OTHER_POLL_BELL:
		fg_cq_ring(&env->b.scq, PVR_DB_CQ_POLL);
		break;
	case NEARLY_LATE:
	case ONE_NS:
	case LATE:
	case MUCH_LATER:
		fg_advance(env->host, values[step]);
		break;
	case WORD_ANY:
	case WORD_SOLICITED:
	case WORD_BOTH:
	case WORD_NONE:
		arm_word(env, values[step]);
		break;
	case MESSAGE:
		send(env, p, 0);
		break;
	case SOLICITED:
		send(env, p, PVR_SEND_SOLICITED);
		break;
	case FLUSHED:
		flush(env);
		break;
	case MANY_READ:
		send_and_read_many(env, p);
		break;
	case READ_ONE:
		read_one(env, p);
		break;
	case READ_ALL:
		read_all(env, p);
		break;
	case RESIZE:
		resize(cq);
		break;
	case BAD_RESIZE:
		assert_int_equal(fg_cq_resize(cq, 2), EINVAL);
		break;
	case MODERATE_THREE:
	case MODERATE_PERIOD:
	case MODERATE_NOT:
		moderate(env, values[step]);
		break;
	case IS_NOTIFIED:
		assert_true(fg_cq_notified(cq));
		break;
	case IS_NOT_NOTIFIED:
		assert_false(fg_cq_notified(cq));
		break;
	}
	fg_run(env->host);
}

void t_run_cq_case(struct t_env *env, const struct t_cq_case *row)
{
	uint32_t irqs = 0, notifications;
	struct progress p = { 0 };

	for (size_t i = 0; row->steps[i] != END; i++) {
		run_step(env, &p, row->steps[i]);
		notifications = row->steps[i + 1] == NOTIFIES;
		if (fg_cq_events_pending(env->g[1]) != notifications)
			print_error("after step %zu:\n", i + 1);
		assert_int_equal(fg_cq_events_pending(env->g[1]), notifications);
		assert_int_equal(fg_cq_events_count(env->g[1], env->b.rcq.handle), notifications);
		irqs += notifications;
		assert_int_equal(env->g[1]->irq[PVR_VEC_CQ], irqs);
		assert_int_equal(fg_cq_events_pending(env->g[0]), 0);
		assert_int_equal(env->g[0]->irq[PVR_VEC_CQ], 0);
		i += notifications;
	}
}
