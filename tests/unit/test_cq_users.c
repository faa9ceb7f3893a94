// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Whose queues complete in a CQ: they hold it, and it takes them with it when it fails. */
#include "conn.h"

struct users {
	struct t_env *env;
	struct fg_guest *g;
	struct fg_pd pd;
	struct fg_cq cq, other; /* cq has one entry */
};

static void users_init(struct users *u, struct t_env *env)
{
	memset(u, 0, sizeof(*u));
	u->env = env;
	u->g = u->env->g[0];
	expect_ok(fg_pd_create(&u->g->kernel, &u->pd));
	expect_ok(fg_cq_create(&u->g->kernel, 1, &u->cq));
	expect_ok(fg_cq_create(&u->g->kernel, 64, &u->other));
}

static void open_qp(struct users *u, struct fg_cq *scq, struct fg_cq *rcq, struct fg_qp *qp)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC, .pd = &u->pd, .scq = scq, .rcq = rcq };

	expect_ok(fg_qp_create(&spec, qp));
	expect_ok(fg_qp_to_init(qp, NULL));
}

/* Two requests are flushed to a CQ with room for one. */
static void overflow(struct users *u)
{
	struct fg_qp qp;

	open_qp(u, &u->other, &u->cq, &qp);
	assert_true(fg_post_recv(&qp, 1, NULL, 0));
	assert_true(fg_post_recv(&qp, 2, NULL, 0));
	expect_ok(fg_qp_to_err(&qp));
	fg_run(u->env->host);
}

TEST(guest, test_each_role_holds_the_cq)
{
	struct users u;
	struct fg_qp qp;

	users_init(&u, env);
	open_qp(&u, &u.cq, &u.other, &qp);
	assert_int_equal(fg_cq_destroy(&u.cq), EBUSY);
	assert_int_equal(fg_cq_destroy(&u.other), EBUSY);
	expect_ok(fg_qp_destroy(&qp));
	open_qp(&u, &u.cq, &u.cq, &qp);
	assert_int_equal(fg_cq_destroy(&u.cq), EBUSY);
	expect_ok(fg_cq_destroy(&u.other));
	expect_ok(fg_qp_destroy(&qp));
	expect_ok(fg_cq_destroy(&u.cq));
}

TEST(guest, test_failed_cq_takes_senders_and_receivers_along)
{
	struct fg_qp sender, receiver, both, neither;
	struct pvr_eqe eqe;
	uint32_t fatal = 0;
	struct users u;

	users_init(&u, env);
	open_qp(&u, &u.cq, &u.other, &sender);
	open_qp(&u, &u.other, &u.cq, &receiver);
	open_qp(&u, &u.cq, &u.cq, &both);
	open_qp(&u, &u.other, &u.other, &neither);
	overflow(&u);
	assert_int_equal(fg_qp_state(&sender), PVR_QPS_ERR);
	assert_int_equal(fg_qp_state(&receiver), PVR_QPS_ERR);
	assert_int_equal(fg_qp_state(&both), PVR_QPS_ERR);
	assert_int_equal(fg_qp_state(&neither), PVR_QPS_INIT);
	/* Each once, and the CQ before them. */
	assert_true(fg_event_poll(u.g, &eqe));
	assert_int_equal(eqe.type, PVR_EVENT_CQ_ERR);
	while (fg_event_poll(u.g, &eqe)) {
		assert_int_equal(eqe.type, PVR_EVENT_QP_FATAL);
		fatal++;
	}
	assert_int_equal(fatal, 3);
}

TEST(guest, test_failed_cq_skips_destroyed_users)
{
	struct fg_qp qp[3];
	struct users u;

	for (int gone = 0; gone < 3; gone++) {
		if (gone)
			env = t_renew(t_setup_guest);
		users_init(&u, env);
		for (int i = 0; i < 3; i++)
			open_qp(&u, &u.cq, i % 2 ? &u.other : &u.cq, &qp[i]);
		expect_ok(fg_qp_destroy(&qp[gone]));
		overflow(&u);
		for (int i = 0; i < 3; i++)
			if (i != gone)
				assert_int_equal(fg_qp_state(&qp[i]), PVR_QPS_ERR);
	}
}
