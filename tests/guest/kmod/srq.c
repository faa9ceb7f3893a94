// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Tests of shared receive queues. */
#include <linux/delay.h>
#include <linux/random.h>

#include "ktest.h"

/* Send slot @n; it must arrive where @recv was posted for. */
static int send_to(struct kt_pair *pair, int n, struct kt_wr *recv)
{
	KT_CHECK(!kt_post_send(pair, n, &pair->send[n]));
	KT_CHECK(!kt_wait(pair, &pair->send[n]));
	KT_CHECK(!kt_wait_ok(pair, recv));
	KT_CHECK(recv->wc.qp == pair->end[1].qp);
	KT_CHECK(recv->times == 1);
	return 0;
}

/* Messages that use receive requests @first to @last - 1. */
static int send_range(struct kt_pair *pair, int first, int last)
{
	for (int i = first; i < last; i++)
		KT_CHECK(!send_to(pair, i % KT_WRS, &pair->recv[i]));
	return 0;
}

static int post_range(struct kt_pair *pair, int first, int last)
{
	for (int i = first; i < last; i++)
		KT_CHECK(!kt_post_recv(pair, i % KT_WRS, &pair->recv[i]));
	return 0;
}

static int fill(struct kt_pair *pair, int num)
{
	get_random_bytes(kt_small(&pair->end[0], 0), KT_WRS * KT_SLOT);
	return post_range(pair, 0, num);
}

/* Several times round the ring. */
int kt_srq_order(struct kt_pair *pair)
{
	for (int round = 0; round < 3; round++) {
		KT_CHECK(!fill(pair, KT_WRS));
		KT_CHECK(kt_post_recv(pair, 0, &pair->recv[KT_WRS]) == -ENOMEM);
		KT_CHECK(!send_range(pair, 0, KT_WRS));
		KT_CHECK(!memcmp(kt_small(&pair->end[0], 0), kt_small(&pair->end[1], 0),
				 KT_WRS * KT_SLOT));
	}
	return 0;
}

static bool come(const atomic_t *events, int n, int seconds)
{
	for (int i = 0; i < seconds * 100 && atomic_read(events) < n; i++)
		msleep(10);
	return atomic_read(events) == n;
}

/* One event when fewer than the limit are left; then it is disarmed. */
int kt_srq_limit(struct kt_pair *pair)
{
	struct ib_srq_attr attr = { .srq_limit = 6 };

	KT_CHECK(!fill(pair, 8));
	KT_CHECK(!ib_modify_srq(pair->srq, &attr, IB_SRQ_LIMIT));
	KT_CHECK(!send_range(pair, 0, 2));
	KT_CHECK(!atomic_read(&pair->limit_events));
	KT_CHECK(!send_range(pair, 2, 3));
	KT_CHECK(come(&pair->limit_events, 1, 2));
	memset(&attr, 0xff, sizeof(attr));
	KT_CHECK(!ib_query_srq(pair->srq, &attr));
	KT_CHECK(attr.srq_limit == 0 && attr.max_wr == KT_WRS);
	KT_CHECK(!send_range(pair, 3, 4));
	msleep(50);
	KT_CHECK(atomic_read(&pair->limit_events) == 1);
	return 0;
}

/* Requests that wait keep their order; there is room for more behind them. */
static int grow(struct kt_pair *pair)
{
	struct ib_srq_attr attr = { .max_wr = 2 * KT_WRS };

	KT_CHECK(!fill(pair, KT_WRS));
	/* So that they start in the middle of the ring. */
	KT_CHECK(!send_range(pair, 0, 3));
	KT_CHECK(!ib_modify_srq(pair->srq, &attr, IB_SRQ_MAX_WR));
	KT_CHECK(!ib_query_srq(pair->srq, &attr));
	KT_CHECK(attr.max_wr == 2 * KT_WRS);
	KT_CHECK(!post_range(pair, KT_WRS, 2 * KT_WRS));
	return send_range(pair, 3, 2 * KT_WRS - 4);
}

/* Four wait: three are too few for them, four are enough. */
static int shrink(struct kt_pair *pair)
{
	struct ib_srq_attr attr = { .max_wr = 2 };

	KT_CHECK(ib_modify_srq(pair->srq, &attr, IB_SRQ_MAX_WR) == -EINVAL);
	attr.max_wr = 4;
	KT_CHECK(!ib_modify_srq(pair->srq, &attr, IB_SRQ_MAX_WR));
	KT_CHECK(kt_post_recv(pair, 0, &pair->recv[0]) == -ENOMEM);
	KT_CHECK(!send_range(pair, 2 * KT_WRS - 4, 2 * KT_WRS));
	KT_CHECK(!fill(pair, 4));
	return send_range(pair, 0, 4);
}

int kt_srq_resize(struct kt_pair *pair)
{
	int err = grow(pair);

	return err ?: shrink(pair);
}

/* Completions that went with their QP do not take room for ever. */
int kt_srq_qp_gone(struct kt_pair *pair)
{
	KT_CHECK(!fill(pair, KT_WRS));
	for (int i = 0; i < 4; i++)
		KT_CHECK(!kt_post_send(pair, i, &pair->send[i]));
	msleep(500); /* no poll: all eight stay in the CQ */
	kt_qp_destroy(&pair->end[1]);
	for (int i = 0; i < 4; i++) {
		KT_CHECK(!kt_wait_ok(pair, &pair->send[i]));
		KT_CHECK(!pair->recv[i].times);
	}
	KT_CHECK(!post_range(pair, KT_WRS, KT_WRS + 4));
	KT_CHECK(kt_post_recv(pair, 0, &pair->recv[2 * KT_WRS - 1]) == -ENOMEM);
	return 0;
}

int kt_srq_no_recv(struct kt_pair *pair)
{
	struct ib_recv_wr wr = {};
	const struct ib_recv_wr *bad = NULL;

	KT_CHECK(ib_post_recv(pair->end[1].qp, &wr, &bad) == -EINVAL);
	KT_CHECK(bad == &wr);
	return 0;
}

/*
 * The device goes: its QPs take no more requests, and their consumer gets one event.
 * Requests that no QP took are not ended, they are the SRQ's.
 */
int kt_srq_vanish(struct kt_pair *pair)
{
	KT_CHECK(!fill(pair, 8));
	KT_CHECK(!send_range(pair, 0, 2));
	KT_CHECK(!atomic_read(&pair->last_wqe_events));
	pr_info("pvr_ktest: # the device may go\n");
	KT_CHECK(come(&pair->last_wqe_events, 1, 30));
	KT_CHECK(!kt_post_send(pair, 2, &pair->send[2]));
	KT_CHECK(!kt_wait(pair, &pair->send[2]));
	KT_CHECK(pair->send[2].wc.status == IB_WC_WR_FLUSH_ERR);
	ib_drain_qp(pair->end[1].qp);
	msleep(100);
	for (int i = 0; i < 8; i++)
		KT_CHECK(pair->recv[i].times == (i < 2));
	KT_CHECK(atomic_read(&pair->last_wqe_events) == 1);
	return 0;
}
