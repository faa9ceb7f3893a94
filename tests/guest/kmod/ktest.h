/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A consumer of kernel verbs that tests the ib_device under it. */
#ifndef PVR_KTEST_H
#define PVR_KTEST_H

#include <linux/completion.h>
#include <rdma/ib_verbs.h>

#define KT_PAGES 1024 /* of each end's memory */
#define KT_BYTES (KT_PAGES * PAGE_SIZE)
#define KT_WRS 16 /* of each queue */
#define KT_SLOT 256 /* bytes of a small message; KT_WRS of them fill a page */

struct kt_dev {
	struct ib_device *ibdev;
	struct ib_pd *pd;
	union ib_gid gid;
	u8 gid_index;
	u8 mac[ETH_ALEN];
};

/* A work request: the consumer's end of it. */
struct kt_wr {
	struct ib_cqe cqe;
	struct ib_sge sge;
	struct completion done;
	struct ib_wc wc;
	int times; /* that it completed */
};

/* Virtually contiguous memory, mapped for the device page by page. */
struct kt_mem {
	void *va;
	struct sg_table sgt;
	int mapped; /* segments */
};

/* One of two QPs that are connected to each other. */
struct kt_end {
	struct ib_qp *qp;
	struct kt_mem mem;
	struct ib_mr *mr;
};

struct kt_pair {
	struct kt_dev *dev;
	struct ib_cq *cq;
	struct ib_srq *srq; /* of the second end, or NULL */
	struct kt_end end[2];
	struct kt_wr run; /* of kt_run() */
	struct kt_wr send[KT_WRS]; /* for the tests; gone after the QPs */
	struct kt_wr recv[2 * KT_WRS];
	struct completion event; /* of the CQ; arm.c */
	atomic_t limit_events;
	atomic_t last_wqe_events; /* of the second end */
};

/* Parameters of a test's pair. */
struct kt_need {
	enum ib_poll_context poll;
	bool srq;
};

/* Return: 0, or an error having said what is wrong. */
typedef int kt_test_fn(struct kt_pair *pair);

int kt_failed(const char *what, const char *file, int line);
#define KT_CHECK(cond)                                               \
	do {                                                         \
		if (!(cond))                                         \
			return kt_failed(#cond, __FILE__, __LINE__); \
	} while (0)

/* pair.c */

/* Of a zeroed pair with a device; kt_pair_destroy() follows, also after an error. */
int kt_pair_create(struct kt_pair *pair, const struct kt_need *need);
void kt_pair_destroy(struct kt_pair *pair);
void kt_qp_destroy(struct kt_end *end);

/* Return: 0 if the request completes within some seconds, with any status. */
int kt_wait(struct kt_pair *pair, struct kt_wr *wr);
/* The same with the status of success. */
int kt_wait_ok(struct kt_pair *pair, struct kt_wr *wr);

/* Small messages: slot n of an end's first page. */
void *kt_small(struct kt_end *end, int n);
struct ib_sge kt_sge(struct kt_pair *pair, struct kt_end *end, int n);

/*
 * Requests of one SGE, which is in @wr: to receive into slot @n of the second end, by its
 * QP or SRQ, and to send slot @n of the first end, which the test has filled.
 */
struct ib_recv_wr kt_recv_wr(struct kt_pair *pair, int n, struct kt_wr *wr);
int kt_post_recvs(struct kt_pair *pair, struct ib_recv_wr *first, const struct ib_recv_wr **bad);
int kt_post_recv(struct kt_pair *pair, int n, struct kt_wr *wr);
struct ib_send_wr kt_send_wr(struct kt_pair *pair, int n, struct kt_wr *wr);
int kt_post_send(struct kt_pair *pair, int n, struct kt_wr *wr);

/* Post a request at the first end, wait for it. Return: its status or -errno. */
int kt_run(struct kt_pair *pair, struct kt_end *end, struct ib_send_wr *wr);

/* The tests: reg.c, queues.c, srq.c, arm.c */

kt_test_fn kt_local_dma_lkey, kt_reg_256, kt_reg_1024, kt_reg_too_long;
kt_test_fn kt_local_inv, kt_reg_again, kt_send_with_inv;
kt_test_fn kt_send_recv, kt_drain, kt_shutdown, kt_partial_send, kt_partial_recv, kt_full_queue;
kt_test_fn kt_srq_order, kt_srq_limit, kt_srq_resize, kt_srq_qp_gone, kt_srq_no_recv, kt_srq_vanish;
kt_test_fn kt_no_timestamps, kt_no_recv_cq;
kt_test_fn kt_arm_any, kt_arm_solicited, kt_arm_any_then_solicited, kt_arm_missed, kt_arm_often;

#endif /* PVR_KTEST_H */
