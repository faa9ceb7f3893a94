// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Whose queues complete in a CQ: they hold it, and it takes them with it when it fails. */
#include "ends.h"

struct users {
	struct fg_end end;
	struct fg_cq cq; /* has one entry */
	struct fg_cq *other;
};

static void users_init(struct users *u, struct t_env *env)
{
	fg_end_open(&u->end, env->g[0], PVR_QPT_RC);
	expect_ok(fg_qp_destroy(&u->end.qp));
	expect_ok(fg_cq_create(&env->g[0]->kernel, 1, &u->cq));
	u->other = &u->end.rcq;
}

#define TEST_USERS(name) TEST_OBJECT(guest, struct users, u, users_init, name)

static struct fg_qp open_qp(struct users *u, struct fg_cq *scq, struct fg_cq *rcq)
{
	struct fg_qp qp = t_qp_create(&u->end, (struct fg_qp_spec){ .scq = scq, .rcq = rcq });

	expect_ok(fg_qp_to_init(&qp, NULL));
	return qp;
}

/* Two requests are flushed to a CQ with room for one. */
static void overflow(struct t_env *env, struct users *u)
{
	struct fg_qp qp = open_qp(u, u->other, &u->cq);

	assert_true(fg_post_recv(&qp, 1, NULL, 0));
	assert_true(fg_post_recv(&qp, 2, NULL, 0));
	expect_ok(fg_qp_to_err(&qp));
	fg_run(env->host);
}

TEST_USERS(test_each_role_holds_the_cq)
{
	struct fg_qp qp = open_qp(u, &u->cq, u->other);

	assert_int_equal(fg_cq_destroy(&u->cq), EBUSY);
	assert_int_equal(fg_cq_destroy(u->other), EBUSY);
	expect_ok(fg_qp_destroy(&qp));
	qp = open_qp(u, &u->cq, &u->cq);
	assert_int_equal(fg_cq_destroy(&u->cq), EBUSY);
	expect_ok(fg_cq_destroy(u->other));
	expect_ok(fg_qp_destroy(&qp));
	expect_ok(fg_cq_destroy(&u->cq));
}

TEST_USERS(test_failed_cq_takes_senders_and_receivers_along)
{
	struct fg_qp sender = open_qp(u, &u->cq, u->other);
	struct fg_qp receiver = open_qp(u, u->other, &u->cq);
	struct fg_qp both = open_qp(u, &u->cq, &u->cq);
	struct fg_qp neither = open_qp(u, u->other, u->other);
	struct pvr_eqe eqe;

	overflow(env, u);
	assert_int_equal(fg_qp_state(&sender), PVR_QPS_ERR);
	assert_int_equal(fg_qp_state(&receiver), PVR_QPS_ERR);
	assert_int_equal(fg_qp_state(&both), PVR_QPS_ERR);
	assert_int_equal(fg_qp_state(&neither), PVR_QPS_INIT);
	/* Each once, and the CQ before them. */
	assert_true(fg_event_poll(env->g[0], &eqe));
	assert_int_equal(eqe.type, PVR_EVENT_CQ_ERR);
	assert_int_equal(eqe.info, u->cq.handle);
	for (int i = 0; i < 3; i++) {
		assert_true(fg_event_poll(env->g[0], &eqe));
		assert_int_equal(eqe.type, PVR_EVENT_QP_FATAL);
	}
	expect_no_event(env->g[0]);
}

static const struct {
	const char *label;
	int gone;
} users_gone[] = {
	{ "the first", 0 },
	{ "one in the middle", 1 },
	{ "the last", 2 },
};

TEST_CASES(guest, test_failed_cq_skips_destroyed_users, users_gone)
{
	struct fg_qp qp[3];
	struct users u;

	users_init(&u, env);
	for (int i = 0; i < 3; i++)
		qp[i] = open_qp(&u, &u.cq, i % 2 ? u.other : &u.cq);
	expect_ok(fg_qp_destroy(&qp[row->gone]));
	overflow(env, &u);
	for (int i = 0; i < 3; i++)
		if (i != row->gone)
			assert_int_equal(fg_qp_state(&qp[i]), PVR_QPS_ERR);
}
