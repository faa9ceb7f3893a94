// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Tests of arming: each requested event comes, and no other. */
#include <linux/delay.h>

#include "ktest.h"

#define WAIT_MS 10000
#define QUIET_MS 100 /* an event would have come by then */
#define WAKEUPS 2000

/* A directly polled CQ has no handler: the test installs this one. */
static void event(struct ib_cq *cq, void *context)
{
	struct kt_pair *pair = context;

	complete(&pair->event);
}

static void take_over(struct kt_pair *pair)
{
	init_completion(&pair->event);
	pair->cq->cq_context = pair;
	pair->cq->comp_handler = event;
}

static bool got_event(struct kt_pair *pair)
{
	return wait_for_completion_timeout(&pair->event, msecs_to_jiffies(WAIT_MS));
}

static bool got_none(struct kt_pair *pair)
{
	return !wait_for_completion_timeout(&pair->event, msecs_to_jiffies(QUIET_MS));
}

/* One message; its receive request completes, and nothing else. KT_WRS of them at most. */
static int message(struct kt_pair *pair, int flags)
{
	struct ib_send_wr wr = kt_send_wr(pair, 0, &pair->send[0]);

	wr.send_flags = flags;
	KT_CHECK(!kt_post_recv(pair, 0, &pair->recv[0]));
	return ib_post_send(pair->end[0].qp, &wr, NULL);
}

static int read_it(struct kt_pair *pair)
{
	return kt_wait_ok(pair, &pair->recv[0]);
}

int kt_arm_any(struct kt_pair *pair)
{
	take_over(pair);
	KT_CHECK(!message(pair, 0) && !read_it(pair));
	KT_CHECK(got_none(pair));
	KT_CHECK(ib_req_notify_cq(pair->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) == 0);
	KT_CHECK(got_none(pair));
	KT_CHECK(!message(pair, 0) && got_event(pair) && !read_it(pair));
	KT_CHECK(!message(pair, 0) && got_none(pair));
	return read_it(pair);
}

int kt_arm_solicited(struct kt_pair *pair)
{
	take_over(pair);
	KT_CHECK(ib_req_notify_cq(pair->cq, IB_CQ_SOLICITED) == 0);
	KT_CHECK(!message(pair, 0) && got_none(pair) && !read_it(pair));
	KT_CHECK(!message(pair, IB_SEND_SOLICITED) && got_event(pair));
	return read_it(pair);
}

/* Arming for solicited events does not cancel an earlier arming for all events. */
int kt_arm_any_then_solicited(struct kt_pair *pair)
{
	take_over(pair);
	KT_CHECK(ib_req_notify_cq(pair->cq, IB_CQ_NEXT_COMP) == 0);
	KT_CHECK(ib_req_notify_cq(pair->cq, IB_CQ_SOLICITED) == 0);
	KT_CHECK(!message(pair, 0) && got_event(pair) && !read_it(pair));
	/* That event ended both armings: arm for solicited events only. */
	KT_CHECK(ib_req_notify_cq(pair->cq, IB_CQ_SOLICITED) == 0);
	KT_CHECK(!message(pair, 0) && got_none(pair) && !read_it(pair));
	KT_CHECK(!message(pair, IB_SEND_SOLICITED) && got_event(pair));
	return read_it(pair);
}

/* A completion that is unread while arming: reported by an event or by the return value. */
int kt_arm_missed(struct kt_pair *pair)
{
	take_over(pair);
	KT_CHECK(!message(pair, 0) && got_none(pair));
	KT_CHECK(ib_req_notify_cq(pair->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
	KT_CHECK(!read_it(pair));
	KT_CHECK(!message(pair, 0) && got_event(pair) && !read_it(pair));
	KT_CHECK(!message(pair, 0) && got_none(pair));
	KT_CHECK(ib_req_notify_cq(pair->cq, IB_CQ_NEXT_COMP) == 0);
	KT_CHECK(got_event(pair) && got_none(pair));
	/* A notified, unread completion gives no second event; the next completion does. */
	KT_CHECK(ib_req_notify_cq(pair->cq, IB_CQ_NEXT_COMP) == 0);
	KT_CHECK(got_none(pair) && !read_it(pair));
	KT_CHECK(!message(pair, 0) && got_event(pair));
	return read_it(pair);
}

/* The event comes before, while or after the thread arms again. */
int kt_arm_often(struct kt_pair *pair)
{
	take_over(pair);
	for (int i = 0; i < WAKEUPS; i++) {
		KT_CHECK(ib_req_notify_cq(pair->cq, IB_CQ_NEXT_COMP) == 0);
		KT_CHECK(!kt_post_recv(pair, 0, &pair->recv[0]));
		KT_CHECK(!kt_post_send(pair, 0, &pair->send[0]));
		KT_CHECK(got_event(pair));
		KT_CHECK(!kt_wait(pair, &pair->send[0]) && !read_it(pair));
		cond_resched();
	}
	return 0;
}
