// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Tests of posting to queue pairs, and of the ends of what was posted. */
#include <linux/pci.h>
#include <linux/random.h>
#include <rdma/ib_user_verbs.h>

#include "ktest.h"

int kt_send_recv(struct kt_pair *pair)
{
	get_random_bytes(kt_small(&pair->end[0], 0), KT_WRS * KT_SLOT);
	for (int i = 0; i < KT_WRS; i++)
		KT_CHECK(!kt_post_recv(pair, i, &pair->recv[i]));
	for (int i = 0; i < KT_WRS; i++)
		KT_CHECK(!kt_post_send(pair, i, &pair->send[i]));
	for (int i = 0; i < KT_WRS; i++) {
		KT_CHECK(!kt_wait_ok(pair, &pair->send[i]));
		KT_CHECK(!kt_wait_ok(pair, &pair->recv[i]));
		KT_CHECK(pair->recv[i].wc.byte_len == KT_SLOT);
		KT_CHECK(pair->recv[i].wc.qp == pair->end[1].qp);
		KT_CHECK(pair->recv[i].times == 1);
	}
	KT_CHECK(!memcmp(kt_small(&pair->end[0], 0), kt_small(&pair->end[1], 0), KT_WRS * KT_SLOT));
	return 0;
}

/* Returns when all posted requests have completed and were handled. */
int kt_drain(struct kt_pair *pair)
{
	for (int i = 0; i < KT_WRS - 1; i++)
		KT_CHECK(!kt_post_recv(pair, i, &pair->recv[i]));
	ib_drain_qp(pair->end[1].qp);
	for (int i = 0; i < KT_WRS - 1; i++) {
		KT_CHECK(pair->recv[i].times == 1);
		KT_CHECK(pair->recv[i].wc.status == IB_WC_WR_FLUSH_ERR);
	}
	ib_drain_qp(pair->end[0].qp);
	return 0;
}

/* Kernel consumers cannot read them. */
int kt_no_timestamps(struct kt_pair *pair)
{
	struct ib_cq_init_attr attr = {
		.cqe = 16,
		.flags = IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION,
	};
	struct ib_cq *cq = ib_create_cq(pair->dev->ibdev, NULL, NULL, NULL, &attr);

	KT_CHECK(PTR_ERR(cq) == -EOPNOTSUPP);
	return 0;
}

/* ib_core lets a kernel consumer create one. */
int kt_no_recv_cq(struct kt_pair *pair)
{
	struct ib_qp_init_attr init = {
		.send_cq = pair->cq,
		.qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	KT_CHECK(PTR_ERR(ib_create_qp(pair->dev->pd, &init)) == -EINVAL);
	return 0;
}

static void shut_down(struct kt_dev *dev)
{
	struct pci_dev *pdev = to_pci_dev(dev->ibdev->dev.parent);

	device_lock(&pdev->dev);
	to_pci_driver(pdev->dev.driver)->shutdown(pdev);
	device_unlock(&pdev->dev);
}

/* Consumers disconnect when a VM powers off, and the device may be shut down before. */
int kt_shutdown(struct kt_pair *pair)
{
	for (int i = 0; i < KT_WRS - 2; i++)
		KT_CHECK(!kt_post_recv(pair, i, &pair->recv[i]));
	shut_down(pair->dev);
	KT_CHECK(!kt_post_recv(pair, 0, &pair->recv[KT_WRS - 2]));
	KT_CHECK(!kt_wait(pair, &pair->recv[KT_WRS - 2]));
	ib_drain_qp(pair->end[1].qp);
	for (int i = 0; i < KT_WRS - 1; i++) {
		KT_CHECK(pair->recv[i].times == 1);
		KT_CHECK(pair->recv[i].wc.status == IB_WC_WR_FLUSH_ERR);
	}
	KT_CHECK(!kt_post_send(pair, 0, &pair->send[0]));
	ib_drain_qp(pair->end[0].qp);
	KT_CHECK(pair->send[0].times == 1);
	KT_CHECK(pair->send[0].wc.status == IB_WC_WR_FLUSH_ERR);
	return 0;
}

/* A chain whose third request cannot be posted: the first two are executed. */
int kt_partial_send(struct kt_pair *pair)
{
	const struct ib_send_wr *bad = NULL;
	struct ib_send_wr wr[4];

	for (int i = 0; i < 4; i++) {
		KT_CHECK(!kt_post_recv(pair, i, &pair->recv[i]));
		wr[i] = kt_send_wr(pair, 0, &pair->send[i]);
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	wr[2].num_sge = 1000;
	KT_CHECK(ib_post_send(pair->end[0].qp, wr, &bad) == -EINVAL);
	KT_CHECK(bad == &wr[2]);
	for (int i = 0; i < 2; i++) {
		KT_CHECK(!kt_wait(pair, &pair->send[i]));
		KT_CHECK(!kt_wait_ok(pair, &pair->recv[i]));
	}
	/* The next one uses the receive request that the bad one did not. */
	KT_CHECK(!kt_post_send(pair, 0, &pair->send[4]));
	KT_CHECK(!kt_wait(pair, &pair->recv[2]));
	KT_CHECK(!pair->send[2].times && !pair->send[3].times);
	return 0;
}

/* Of a QP or an SRQ. */
int kt_partial_recv(struct kt_pair *pair)
{
	const struct ib_recv_wr *bad = NULL;
	struct ib_recv_wr wr[3];

	for (int i = 0; i < 3; i++) {
		wr[i] = kt_recv_wr(pair, 0, &pair->recv[i]);
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	wr[1].num_sge = 1000;
	/* It waits, so that only a doorbell can bring it on. */
	KT_CHECK(!kt_post_send(pair, 0, &pair->send[0]));
	KT_CHECK(kt_post_recvs(pair, wr, &bad) == -EINVAL);
	KT_CHECK(bad == &wr[1]);
	KT_CHECK(!kt_wait_ok(pair, &pair->recv[0]));
	KT_CHECK(!pair->recv[1].times && !pair->recv[2].times);
	return 0;
}

/* A full queue refuses a request, and accepts one after a completion was polled. */
int kt_full_queue(struct kt_pair *pair)
{
	for (int i = 0; i < KT_WRS; i++)
		KT_CHECK(!kt_post_recv(pair, i, &pair->recv[i]));
	KT_CHECK(kt_post_recv(pair, 0, &pair->recv[KT_WRS]) == -ENOMEM);
	KT_CHECK(!kt_post_send(pair, 0, &pair->send[0]));
	KT_CHECK(!kt_wait(pair, &pair->recv[0]));
	KT_CHECK(!kt_post_recv(pair, 0, &pair->recv[KT_WRS]));
	KT_CHECK(kt_post_recv(pair, 0, &pair->recv[KT_WRS + 1]) == -ENOMEM);
	return 0;
}
