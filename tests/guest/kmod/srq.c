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
	KT_CHECK(!kt_wait(pair, recv));
	KT_CHECK(recv->wc.status == IB_WC_SUCCESS);
	KT_CHECK(recv->wc.qp == pair->end[1].qp);
	KT_CHECK(recv->times == 1);
	return 0;
}

static int fill(struct kt_pair *pair, int first, int last)
{
	int i;

	get_random_bytes(kt_small(&pair->end[0], 0), KT_WRS * KT_SLOT);
	for (i = first; i < last; i++)
		KT_CHECK(!kt_post_recv(pair, i % KT_WRS, &pair->recv[i]));
	return 0;
}

/* Several times round the ring. */
int kt_srq_order(struct kt_pair *pair)
{
	int i, round, err;

	for (round = 0; round < 3; round++) {
		err = fill(pair, 0, KT_WRS);
		if (err)
			return err;
		KT_CHECK(kt_post_recv(pair, 0, &pair->recv[KT_WRS]) == -ENOMEM);
		for (i = 0; i < KT_WRS && !err; i++)
			err = send_to(pair, i, &pair->recv[i]);
		if (err)
			return err;
		KT_CHECK(!memcmp(kt_small(&pair->end[0], 0), kt_small(&pair->end[1], 0),
				 KT_WRS * KT_SLOT));
	}
	return 0;
}

static int events_come(struct kt_pair *pair, int n)
{
	int i;

	for (i = 0; i < 200 && atomic_read(&pair->limit_events) < n; i++)
		msleep(10);
	return atomic_read(&pair->limit_events) == n ? 0 : -EIO;
}

/* One event when fewer than the limit are left; then it is disarmed. */
int kt_srq_limit(struct kt_pair *pair)
{
	struct ib_srq_attr attr = { .srq_limit = 6 };
	int i, err = fill(pair, 0, 8);

	KT_CHECK(!ib_modify_srq(pair->srq, &attr, IB_SRQ_LIMIT));
	for (i = 0; i < 2 && !err; i++)
		err = send_to(pair, i, &pair->recv[i]);
	if (err)
		return err;
	KT_CHECK(!atomic_read(&pair->limit_events));
	err = send_to(pair, 2, &pair->recv[2]);
	if (err)
		return err;
	KT_CHECK(!events_come(pair, 1));
	memset(&attr, 0xff, sizeof(attr));
	KT_CHECK(!ib_query_srq(pair->srq, &attr));
	KT_CHECK(attr.srq_limit == 0 && attr.max_wr == KT_WRS);
	err = send_to(pair, 3, &pair->recv[3]);
	msleep(50);
	KT_CHECK(atomic_read(&pair->limit_events) == 1);
	return err;
}

int kt_srq_partial(struct kt_pair *pair)
{
	struct ib_sge sge = kt_sge(pair, &pair->end[1], 0);
	const struct ib_recv_wr *bad = NULL;
	struct ib_recv_wr wr[3] = {};
	int i;

	for (i = 0; i < 3; i++) {
		kt_wr_init(&pair->recv[i]);
		wr[i].wr_cqe = &pair->recv[i].cqe;
		wr[i].sg_list = &sge;
		wr[i].num_sge = i == 1 ? 1000 : 1;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	KT_CHECK(!kt_post_send(pair, 0, &pair->send[0]));
	KT_CHECK(ib_post_srq_recv(pair->srq, wr, &bad) == -EINVAL);
	KT_CHECK(bad == &wr[1]);
	KT_CHECK(!kt_wait(pair, &pair->recv[0]));
	KT_CHECK(pair->recv[0].wc.status == IB_WC_SUCCESS);
	KT_CHECK(!pair->recv[1].times && !pair->recv[2].times);
	return 0;
}

/* Requests that wait keep their order; there is room for more behind them. */
static int grow(struct kt_pair *pair)
{
	struct ib_srq_attr attr = { .max_wr = 2 * KT_WRS };
	int i, err;

	err = fill(pair, 0, KT_WRS);
	/* So that they start in the middle of the ring. */
	for (i = 0; i < 3 && !err; i++)
		err = send_to(pair, i, &pair->recv[i]);
	if (err)
		return err;
	KT_CHECK(!ib_modify_srq(pair->srq, &attr, IB_SRQ_MAX_WR));
	KT_CHECK(!ib_query_srq(pair->srq, &attr));
	KT_CHECK(attr.max_wr == 2 * KT_WRS);
	for (i = KT_WRS; i < 2 * KT_WRS; i++)
		KT_CHECK(!kt_post_recv(pair, i % KT_WRS, &pair->recv[i]));
	for (i = 3; i < KT_WRS && !err; i++)
		err = send_to(pair, i, &pair->recv[i]);
	for (i = KT_WRS; i < 2 * KT_WRS - 4 && !err; i++)
		err = send_to(pair, i % KT_WRS, &pair->recv[i]);
	return err;
}

/* Four wait: three are too few for them, four are enough. */
static int shrink(struct kt_pair *pair)
{
	struct ib_srq_attr attr = { .max_wr = 2 };
	int i, err = 0;

	KT_CHECK(ib_modify_srq(pair->srq, &attr, IB_SRQ_MAX_WR) == -EINVAL);
	attr.max_wr = 4;
	KT_CHECK(!ib_modify_srq(pair->srq, &attr, IB_SRQ_MAX_WR));
	KT_CHECK(kt_post_recv(pair, 0, &pair->recv[0]) == -ENOMEM);
	for (i = 2 * KT_WRS - 4; i < 2 * KT_WRS && !err; i++)
		err = send_to(pair, i % KT_WRS, &pair->recv[i]);
	if (!err)
		err = fill(pair, 0, 4);
	for (i = 0; i < 4 && !err; i++)
		err = send_to(pair, i, &pair->recv[i]);
	return err;
}

int kt_srq_resize(struct kt_pair *pair)
{
	int err = grow(pair);

	return err ?: shrink(pair);
}

/* Completions that went with their QP do not take room for ever. */
int kt_srq_qp_gone(struct kt_pair *pair)
{
	int i, err = fill(pair, 0, KT_WRS);

	for (i = 0; i < 4 && !err; i++)
		err = kt_post_send(pair, i, &pair->send[i]);
	if (err)
		return err;
	msleep(500); /* no poll: all eight stay in the CQ */
	kt_qp_destroy(&pair->end[1]);
	for (i = 0; i < 4; i++) {
		KT_CHECK(!kt_wait(pair, &pair->send[i]));
		KT_CHECK(pair->send[i].wc.status == IB_WC_SUCCESS);
		KT_CHECK(!pair->recv[i].times);
	}
	for (i = 0; i < 4; i++)
		KT_CHECK(!kt_post_recv(pair, i, &pair->recv[KT_WRS + i]));
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

static bool ended(struct kt_pair *pair)
{
	int i;

	for (i = 0; i < 3000 && !atomic_read(&pair->last_wqe_events); i++)
		msleep(10);
	return i < 3000;
}

/*
 * The device goes: its QPs will take no more requests, of which their consumer is
 * told once. Those that no QP took are not ended, they are the SRQ's.
 */
int kt_srq_vanish(struct kt_pair *pair)
{
	int i, err = fill(pair, 0, 8);

	for (i = 0; i < 2 && !err; i++)
		err = send_to(pair, i, &pair->recv[i]);
	if (err)
		return err;
	KT_CHECK(!atomic_read(&pair->last_wqe_events));
	pr_info("pvr_ktest: # the device may go\n");
	KT_CHECK(ended(pair));
	KT_CHECK(!kt_post_send(pair, 2, &pair->send[2]));
	KT_CHECK(!kt_wait(pair, &pair->send[2]));
	KT_CHECK(pair->send[2].wc.status == IB_WC_WR_FLUSH_ERR);
	ib_drain_qp(pair->end[1].qp);
	msleep(100);
	for (i = 0; i < 8; i++)
		KT_CHECK(pair->recv[i].times == (i < 2));
	KT_CHECK(atomic_read(&pair->last_wqe_events) == 1);
	return 0;
}
