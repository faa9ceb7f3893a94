/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the test programs have in common about verbs: a device, and QPs brought up by hand. */
#ifndef PVR_TEST_RDMA_H
#define PVR_TEST_RDMA_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

struct node {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr dev;
	struct ibv_port_attr port;
	int gid_index;
	union ibv_gid gid;
};

/* How to reach a QP; travels over TCP between machines of one kind. */
struct address {
	uint32_t qpn;
	uint32_t psn;
	uint8_t gid[16];
};

/* The retry budget of an RC QP. */
struct retries {
	uint8_t timeout; /* 4.096 us << timeout */
	uint8_t retry_cnt;
	uint8_t rnr_retry;
};

#define TEST_QKEY 0x11111111u
#define TEST_PORT 1

/* name NULL: $RDMA_DEV, else the first. gid_index < 0: $GID_INDEX, else 0. Dies on failure. */
void node_open(struct node *node, const char *name, int gid_index);
void node_close(struct node *node);

/* A QP in INIT, which takes receives. Dies on failure. */
struct ibv_qp *qp_create(struct node *node, struct ibv_qp_init_attr *attr);
struct address qp_address(const struct node *node, const struct ibv_qp *qp, uint32_t psn);
/* From INIT to RTS. Dies on failure. */
void qp_connect(struct node *node, struct ibv_qp *qp, uint32_t psn, const struct address *to,
		enum ibv_mtu mtu, const struct retries *retries);
void qp_start_ud(struct ibv_qp *qp, uint32_t psn);
struct ibv_ah *ah_create(struct node *node, const struct address *to);

/* Seconds of a clock that does not jump. */
double now(void);

#endif
