/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the test programs have in common: a device, QPs, requests, and the end in case of an error. */
#ifndef PVR_TEST_RDMA_H
#define PVR_TEST_RDMA_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#include "die.h"

struct node {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr dev;
	struct ibv_port_attr port;
	int gid_index;
	union ibv_gid gid;
	/* The retry budget of RC QPs; node_open() sets 1 s and 7. */
	uint8_t timeout; /* 4.096 us << timeout */
	uint8_t retry_cnt;
};

/* How to reach a QP; travels over TCP between machines of one kind. */
struct address {
	uint32_t qpn;
	uint32_t psn;
	uint32_t mtu;
	uint8_t gid[16];
};

/* A QP and memory that its peer uses; travels the same way. */
struct place {
	struct address address;
	uint64_t memory;
	uint32_t rkey;
};

#define TEST_QKEY 0x11111111u
#define TEST_PORT 1

/* Anonymous memory; @flags for mmap(). This and all functions below die on failure. */
void *map_memory(size_t bytes, int flags);

/* The device is $RDMA_DEV, else the first; the GID is that of index $GID_INDEX, else 0. */
void node_open(struct node *node);
void node_close(struct node *node);

/* A region of new memory, which is all zeroes. mr_destroy() also frees the memory. */
struct ibv_mr *mr_create(struct node *node, size_t bytes, int access);
void mr_destroy(struct ibv_mr *mr);

/* A QP in INIT, which takes receives. */
struct ibv_qp *qp_create(struct node *node, struct ibv_qp_init_attr *attr);
/* The same by ibv_create_qp_ex(); adds the PD. */
struct ibv_qp *qp_create_ex(struct node *node, struct ibv_qp_init_attr_ex *attr);
/* The same of type RC, with one CQ, @depth requests of one SGE each way, and all sends signaled. */
struct ibv_qp *qp_create_rc(struct node *node, struct ibv_cq *cq, uint32_t depth);
struct address qp_address(const struct node *node, const struct ibv_qp *qp);
/* From INIT to RTS, with the smaller MTU of both ends. */
void qp_connect(struct node *node, struct ibv_qp *qp, const struct address *to);
void qp_connect_to_itself(struct node *node, struct ibv_qp *qp);
struct ibv_ah *ah_create(struct node *node, const struct address *to);

/* Members of a work request: one SGE. */
#define ONE_SGE(mr, at, bytes)                                                                     \
	.sg_list = &(                                                                              \
		struct ibv_sge){ .addr = (uintptr_t)(at), .length = (bytes), .lkey = (mr)->lkey }, \
	.num_sge = 1
/* post_send(qp, .opcode = IBV_WR_SEND, ONE_SGE(mr, memory, 8)) */
#define post_send(qp, ...) post_send_wr(qp, &(struct ibv_send_wr){ __VA_ARGS__ })
#define post_recv(qp, ...) post_recv_wr(qp, &(struct ibv_recv_wr){ __VA_ARGS__ })
void post_send_wr(struct ibv_qp *qp, struct ibv_send_wr *wr);
void post_recv_wr(struct ibv_qp *qp, struct ibv_recv_wr *wr);

/* Return: false if no completion comes within @seconds. */
bool cq_poll_for(struct ibv_cq *cq, struct ibv_wc *wc, double seconds);
/* The next completion, of any status; dies after a minute without one. */
struct ibv_wc cq_wait(struct ibv_cq *cq);
/* Dies unless the next completion has this status. */
void cq_expect(struct ibv_cq *cq, enum ibv_wc_status status, const char *what);

#endif
