/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A consumer of kernel verbs that tests the ib_device under it. */
#ifndef PVR_KTEST_H
#define PVR_KTEST_H

#include <linux/completion.h>
#include <rdma/ib_verbs.h>

#define KT_PAGES 1024 /* of each end's memory */
#define KT_BYTES (KT_PAGES * PAGE_SIZE)
#define KT_WRS 16 /* of each queue */
#define KT_SLOT 256 /* bytes of a small message */

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
	void *small; /* KT_WRS messages of KT_SLOT bytes */
	u64 small_dma;
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
typedef int (*kt_test_fn)(struct kt_pair *pair);

int kt_failed(const char *what, const char *file, int line);
#define KT_CHECK(cond)                                               \
	do {                                                         \
		if (!(cond))                                         \
			return kt_failed(#cond, __FILE__, __LINE__); \
	} while (0)

/* pair.c */

struct kt_pair *kt_pair_create(struct kt_dev *dev, const struct kt_need *need);
void kt_pair_destroy(struct kt_pair *pair);
void kt_qp_destroy(struct kt_end *end);
void kt_wr_init(struct kt_wr *wr);

/* Return: 0 if the request completes within some seconds, with any status. */
int kt_wait(struct kt_pair *pair, struct kt_wr *wr);

/* Small messages: slot n of an end's memory. */
void *kt_small(struct kt_end *end, int n);
struct ib_sge kt_sge(struct kt_pair *pair, struct kt_end *end, int n);
int kt_post_recv(struct kt_pair *pair, int n, struct kt_wr *wr);
int kt_post_send(struct kt_pair *pair, int n, struct kt_wr *wr);

/* Post a request at the first end, wait for it. Return: its status or -errno. */
int kt_run(struct kt_pair *pair, struct kt_end *end, struct ib_send_wr *wr);

/* The tests: reg.c, queues.c, srq.c, arm.c */

int kt_local_dma_lkey(struct kt_pair *pair);
int kt_reg_256(struct kt_pair *pair);
int kt_reg_1024(struct kt_pair *pair);
int kt_reg_too_long(struct kt_pair *pair);
int kt_local_inv(struct kt_pair *pair);
int kt_reg_again(struct kt_pair *pair);
int kt_send_with_inv(struct kt_pair *pair);
int kt_send_recv(struct kt_pair *pair);
int kt_drain(struct kt_pair *pair);
int kt_partial_send(struct kt_pair *pair);
int kt_partial_recv(struct kt_pair *pair);
int kt_full_queue(struct kt_pair *pair);
int kt_srq_order(struct kt_pair *pair);
int kt_srq_limit(struct kt_pair *pair);
int kt_srq_partial(struct kt_pair *pair);
int kt_srq_resize(struct kt_pair *pair);
int kt_srq_qp_gone(struct kt_pair *pair);
int kt_srq_no_recv(struct kt_pair *pair);
int kt_srq_vanish(struct kt_pair *pair);
int kt_arm_any(struct kt_pair *pair);
int kt_arm_solicited(struct kt_pair *pair);
int kt_arm_any_then_solicited(struct kt_pair *pair);
int kt_arm_missed(struct kt_pair *pair);
int kt_arm_often(struct kt_pair *pair);

#endif /* PVR_KTEST_H */
