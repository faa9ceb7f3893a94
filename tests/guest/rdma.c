// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rdma.h"

#define STALL_SECONDS 60

void *map_memory(size_t bytes, int flags)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap of %zu bytes:", bytes);
	return memory;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = MUST_HAVE(ibv_get_device_list(NULL));
	struct ibv_context *ctx;
	int i = 0;

	while (list[i] && name && strcmp(ibv_get_device_name(list[i]), name))
		i++;
	if (!list[i])
		die("there is no RDMA device %s", name ? name : "");
	ctx = MUST_HAVE(ibv_open_device(list[i]));
	ibv_free_device_list(list);
	return ctx;
}

void node_open(struct node *node)
{
	const char *index = getenv("GID_INDEX");

	*node = (struct node){
		.ctx = open_device(getenv("RDMA_DEV")),
		.gid_index = index ? atoi(index) : 0,
		.timeout = 18,
		.retry_cnt = 7,
	};
	MUST(ibv_query_device(node->ctx, &node->dev));
	MUST(ibv_query_port(node->ctx, TEST_PORT, &node->port));
	if (node->port.state != IBV_PORT_ACTIVE)
		die("the port is %s, expected active", ibv_port_state_str(node->port.state));
	MUST(ibv_query_gid(node->ctx, TEST_PORT, node->gid_index, &node->gid));
	node->pd = MUST_HAVE(ibv_alloc_pd(node->ctx));
}

void node_close(struct node *node)
{
	MUST(ibv_dealloc_pd(node->pd));
	MUST(ibv_close_device(node->ctx));
}

struct ibv_mr *mr_create(struct node *node, size_t bytes, int access)
{
	return MUST_HAVE(ibv_reg_mr(node->pd, map_memory(bytes, 0), bytes, access));
}

void mr_destroy(struct ibv_mr *mr)
{
	void *memory = mr->addr;
	size_t bytes = mr->length;

	MUST(ibv_dereg_mr(mr));
	MUST(munmap(memory, bytes));
}

static struct ibv_qp *to_init(struct node *node, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = TEST_PORT,
		.qkey = TEST_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	if (qp->qp_type == IBV_QPT_RC)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
	if (qp->qp_type == IBV_QPT_RC && node->dev.atomic_cap != IBV_ATOMIC_NONE)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
	MUST(ibv_modify_qp(qp, &attr, mask));
	return qp;
}

struct ibv_qp *qp_create(struct node *node, struct ibv_qp_init_attr *init)
{
	struct ibv_qp *qp = ibv_create_qp(node->pd, init);

	if (!qp)
		die("ibv_create_qp (%u+%u requests, %u+%u SGEs):", init->cap.max_send_wr,
		    init->cap.max_recv_wr, init->cap.max_send_sge, init->cap.max_recv_sge);
	return to_init(node, qp);
}

struct ibv_qp *qp_create_ex(struct node *node, struct ibv_qp_init_attr_ex *init)
{
	init->comp_mask |= IBV_QP_INIT_ATTR_PD;
	init->pd = node->pd;
	return to_init(node, MUST_HAVE(ibv_create_qp_ex(node->ctx, init)));
}

struct ibv_qp *qp_create_rc(struct node *node, struct ibv_cq *cq, uint32_t depth)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = depth,
			 .max_recv_wr = depth,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	return qp_create(node, &attr);
}

/* Two connected QPs have different PSNs: their numbers differ, or their GIDs. */
struct address qp_address(const struct node *node, const struct ibv_qp *qp)
{
	struct address address = {
		.qpn = qp->qp_num,
		.psn = (qp->qp_num << 8 | node->gid.raw[15]) & 0xffffff,
		.mtu = node->port.active_mtu,
	};

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

static int smaller(int a, int b)
{
	return a < b ? a : b;
}

void qp_connect(struct node *node, struct ibv_qp *qp, const struct address *to)
{
	struct address from = qp_address(node, qp);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = smaller(from.mtu, to->mtu),
		.dest_qp_num = to->qpn,
		.rq_psn = to->psn,
		.sq_psn = from.psn,
		.max_dest_rd_atomic = smaller(node->dev.max_qp_rd_atom, 16),
		.max_rd_atomic = smaller(node->dev.max_qp_init_rd_atom, 16),
		.min_rnr_timer = 12,
		.timeout = node->timeout,
		.retry_cnt = node->retry_cnt,
		.rnr_retry = 7,
		.ah_attr = path_to(node, to),
	};
	int to_rtr = IBV_QP_STATE, to_rts = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type != IBV_QPT_UD)
		to_rtr |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC) {
		to_rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		to_rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			  IBV_QP_MAX_QP_RD_ATOMIC;
	}
	MUST(ibv_modify_qp(qp, &attr, to_rtr));
	attr.qp_state = IBV_QPS_RTS;
	MUST(ibv_modify_qp(qp, &attr, to_rts));
}

void qp_connect_to_itself(struct node *node, struct ibv_qp *qp)
{
	struct address self = qp_address(node, qp);

	qp_connect(node, qp, &self);
}

struct ibv_ah *ah_create(struct node *node, const struct address *to)
{
	struct ibv_ah_attr attr = path_to(node, to);

	return MUST_HAVE(ibv_create_ah(node->pd, &attr));
}

void post_send_wr(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(qp, wr, &bad);

	if (err)
		die("ibv_post_send of opcode %d: %s", bad->opcode, strerror(err));
}

void post_recv_wr(struct ibv_qp *qp, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;
	int err = ibv_post_recv(qp, wr, &bad);

	if (err)
		die("ibv_post_recv of %d SGEs: %s", bad->num_sge, strerror(err));
}

bool cq_poll_for(struct ibv_cq *cq, struct ibv_wc *wc, double seconds)
{
	double until = now() + seconds;
	int num;

	while (!(num = ibv_poll_cq(cq, 1, wc)))
		if (now() > until)
			return false;
	if (num < 0)
		die("ibv_poll_cq returns %d", num);
	return true;
}

struct ibv_wc cq_wait(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (!cq_poll_for(cq, &wc, STALL_SECONDS))
		die("nothing completes for %d s", STALL_SECONDS);
	return wc;
}

void cq_expect(struct ibv_cq *cq, enum ibv_wc_status status, const char *what)
{
	struct ibv_wc wc = cq_wait(cq);

	if (wc.status != status)
		die("%s, request %llu: %s, expected %s", what, (unsigned long long)wc.wr_id,
		    ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
}
