// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "oob.h"
#include "rdma.h"

static struct ibv_context *open_by_name(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	if (!list || !list[0])
		die("there is no RDMA device");
	for (i = 0; list[i] && !ctx; i++) {
		if (name && strcmp(ibv_get_device_name(list[i]), name))
			continue;
		ctx = ibv_open_device(list[i]);
		if (!ctx)
			die("opening %s:", ibv_get_device_name(list[i]));
	}
	if (!ctx)
		die("there is no RDMA device %s", name);
	ibv_free_device_list(list);
	return ctx;
}

void node_open(struct node *node, const char *name, int gid_index)
{
	const char *env = getenv("GID_INDEX");
	int err;

	node->ctx = open_by_name(name ? name : getenv("RDMA_DEV"));
	node->gid_index = gid_index >= 0 ? gid_index : env ? atoi(env) : 0;
	err = ibv_query_device(node->ctx, &node->dev);
	if (!err)
		err = ibv_query_port(node->ctx, TEST_PORT, &node->port);
	if (err)
		die("querying the device: %s", strerror(err));
	if (node->port.state != IBV_PORT_ACTIVE)
		die("the port is %s, expected active", ibv_port_state_str(node->port.state));
	if (ibv_query_gid(node->ctx, TEST_PORT, node->gid_index, &node->gid))
		die("querying GID %d:", node->gid_index);
	node->pd = ibv_alloc_pd(node->ctx);
	if (!node->pd)
		die("ibv_alloc_pd:");
}

void node_close(struct node *node)
{
	int err = ibv_dealloc_pd(node->pd);

	if (err)
		die("ibv_dealloc_pd: %s", strerror(err));
	if (ibv_close_device(node->ctx))
		die("ibv_close_device:");
}

struct ibv_qp *qp_create(struct node *node, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = TEST_PORT,
		.qkey = TEST_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	struct ibv_qp *qp = ibv_create_qp(node->pd, init);
	int err;

	if (!qp)
		die("ibv_create_qp (%u+%u requests, %u+%u SGEs):", init->cap.max_send_wr,
		    init->cap.max_recv_wr, init->cap.max_send_sge, init->cap.max_recv_sge);
	mask |= init->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	if (init->qp_type == IBV_QPT_RC)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	if (init->qp_type == IBV_QPT_RC && node->dev.atomic_cap != IBV_ATOMIC_NONE)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
	err = ibv_modify_qp(qp, &attr, mask);
	if (err)
		die("modifying the QP to INIT: %s", strerror(err));
	return qp;
}

struct address qp_address(const struct node *node, const struct ibv_qp *qp, uint32_t psn)
{
	struct address address = { .qpn = qp->qp_num, .psn = psn };

	memcpy(address.gid, node->gid.raw, sizeof(address.gid));
	return address;
}

static struct ibv_ah_attr path_to(const struct node *node, const struct address *to)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = TEST_PORT,
		.grh = { .sgid_index = node->gid_index, .hop_limit = 64 },
	};

	memcpy(attr.grh.dgid.raw, to->gid, sizeof(to->gid));
	return attr;
}

static uint8_t less(int a, int b)
{
	return a < b ? a : b;
}

static void to_rtr(struct node *node, struct ibv_qp *qp, const struct address *to, enum ibv_mtu mtu)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = to->qpn,
		.rq_psn = to->psn,
		.max_dest_rd_atomic = less(node->dev.max_qp_rd_atom, 16),
		.min_rnr_timer = 12,
		.ah_attr = path_to(node, to),
	};
	int err,
		mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	err = ibv_modify_qp(qp, &attr, mask);
	if (err)
		die("modifying the QP to RTR: %s", strerror(err));
}

static void to_rts(struct node *node, struct ibv_qp *qp, uint32_t psn,
		   const struct retries *retries)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = retries->timeout,
		.retry_cnt = retries->retry_cnt,
		.rnr_retry = retries->rnr_retry,
		.max_rd_atomic = less(node->dev.max_qp_init_rd_atom, 16),
	};
	int err, mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	err = ibv_modify_qp(qp, &attr, mask);
	if (err)
		die("modifying the QP to RTS: %s", strerror(err));
}

void qp_connect(struct node *node, struct ibv_qp *qp, uint32_t psn, const struct address *to,
		enum ibv_mtu mtu, const struct retries *retries)
{
	to_rtr(node, qp, to, mtu);
	to_rts(node, qp, psn, retries);
}

void qp_start_ud(struct ibv_qp *qp, uint32_t psn)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .sq_psn = psn };
	int err = ibv_modify_qp(qp, &attr, IBV_QP_STATE);

	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (err)
		die("modifying the UD QP to RTS: %s", strerror(err));
}

struct ibv_ah *ah_create(struct node *node, const struct address *to)
{
	struct ibv_ah_attr attr = path_to(node, to);
	struct ibv_ah *ah = ibv_create_ah(node->pd, &attr);

	if (!ah)
		die("ibv_create_ah:");
	return ah;
}

double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}
