// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Checks the errno of verbs with invalid arguments on one device. Expects those of the
 * man pages: EINVAL for invalid arguments, ENOMEM for full queues, EBUSY for objects in
 * use, EOPNOTSUPP for unsupported features.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "oob.h"
#include "pvr_errno.h"

/* Result of a verb that returns a pointer: errno, or 0 if the pointer is not NULL. */
#define OF_POINTER(call) (errno = 0, (call) ? 0 : errno)

static struct ibv_qp_init_attr init_of(const struct lab *lab, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.send_cq = lab->cq,
		.recv_cq = lab->cq,
		.qp_type = type,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2 },
	};
}

/* ------------------------------------------------------------------ device, PD */

static int query_port(struct lab *lab, const struct check *check)
{
	struct ibv_port_attr attr;

	return ibv_query_port(lab->node.ctx, check->number, &attr);
}

static int dealloc_pd(struct lab *lab, const struct check *check)
{
	(void)check;
	return ibv_dealloc_pd(lab->node.pd);
}

static int open_xrcd(struct lab *lab, const struct check *check)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	(void)check;
	return OF_POINTER(ibv_open_xrcd(lab->node.ctx, &attr));
}

static int alloc_dm(struct lab *lab, const struct check *check)
{
	struct ibv_alloc_dm_attr attr = { .length = check->number };

	return OF_POINTER(ibv_alloc_dm(lab->node.ctx, &attr));
}

const struct check device_checks[] = {
	{ "ibv_query_port", "port 0", query_port, EINVAL, .number = 0 },
	{ "ibv_query_port", "port 2 of 1", query_port, EINVAL, .number = 2 },
	{ "ibv_dealloc_pd", "with a region in it", dealloc_pd, EBUSY },
	{ "ibv_open_xrcd", "there is no XRC", open_xrcd, EOPNOTSUPP },
	{ "ibv_alloc_dm", "no bytes", alloc_dm, EINVAL },
	{}
};

/* ------------------------------------------------------------------ memory */

static char *readonly_page;

static int reg_mr(struct lab *lab, const struct check *check)
{
	return OF_POINTER(ibv_reg_mr(lab->node.pd, lab->memory, check->number, check->flags));
}

static int reg_nothing(struct lab *lab, const struct check *check)
{
	return OF_POINTER(ibv_reg_mr(lab->node.pd, (void *)0x1000, check->number, check->flags));
}

static int reg_past_the_end(struct lab *lab, const struct check *check)
{
	return OF_POINTER(
		ibv_reg_mr(lab->node.pd, (void *)(UINTPTR_MAX - 100), check->number, check->flags));
}

static int reg_read_only(struct lab *lab, const struct check *check)
{
	if (!readonly_page)
		readonly_page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (readonly_page == MAP_FAILED)
		die("mmap:");
	return OF_POINTER(ibv_reg_mr(lab->node.pd, readonly_page, 4096, check->flags));
}

static int reg_iova_that_wraps(struct lab *lab, const struct check *check)
{
	uint64_t iova = (UINT64_MAX & ~0xfffull) | ((uintptr_t)lab->memory & 0xfff);

	return OF_POINTER(
		ibv_reg_mr_iova(lab->node.pd, lab->memory, check->number, iova, check->flags));
}

static int reg_dmabuf(struct lab *lab, const struct check *check)
{
	return OF_POINTER(
		ibv_reg_dmabuf_mr(lab->node.pd, 0, 4096, 0, lab->node.ctx->cmd_fd, check->flags));
}

static int rereg(struct lab *lab, const struct check *check)
{
	return -ibv_rereg_mr(lab->mr, check->flags, NULL, NULL, 0, check->number);
}

static int advise(struct lab *lab, const struct check *check)
{
	struct ibv_sge sge = { .addr = (uintptr_t)lab->memory, .length = 8, .lkey = lab->mr->lkey };

	return ibv_advise_mr(lab->node.pd, check->number, 0, &sge, 1);
}

static int alloc_mw(struct lab *lab, const struct check *check)
{
	return OF_POINTER(ibv_alloc_mw(lab->node.pd, check->number));
}

static int bind_on(struct lab *lab, struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mr *mr,
		   unsigned int access)
{
	struct ibv_mw_bind bind = {
		.bind_info = { .mr = mr,
			       .addr = (uintptr_t)lab->memory,
			       .length = 8,
			       .mw_access_flags = access },
	};

	return ibv_bind_mw(qp, mw, &bind);
}

static int bind_type_2(struct lab *lab, const struct check *check)
{
	(void)check;
	return bind_on(lab, lab->rc, lab->mw2, lab->mr, 0);
}

static int bind_on_ud(struct lab *lab, const struct check *check)
{
	(void)check;
	return bind_on(lab, lab->ud, lab->mw1, lab->mr, 0);
}

static int bind_to_nothing(struct lab *lab, const struct check *check)
{
	(void)check;
	return bind_on(lab, lab->rc, lab->mw1, NULL, 0);
}

static int bind_to_other_pd(struct lab *lab, const struct check *check)
{
	(void)check;
	return bind_on(lab, lab->rc, lab->mw1, lab->other_mr, 0);
}

static int bind_access(struct lab *lab, const struct check *check)
{
	return bind_on(lab, lab->rc, lab->mw1, lab->mr, check->flags);
}

const struct check memory_checks[] = {
	{ "ibv_reg_mr", "length 0", reg_mr, EINVAL },
	{ "ibv_reg_mr", "remote write without local write", reg_mr, EINVAL, .number = 8,
	  .flags = IBV_ACCESS_REMOTE_WRITE },
	{ "ibv_reg_mr", "remote atomic without local write", reg_mr, EINVAL, .number = 8,
	  .flags = IBV_ACCESS_REMOTE_ATOMIC },
	{ "ibv_reg_mr", "unknown access", reg_mr, EINVAL, .number = 8, .flags = 1 << 18 },
	{ "ibv_reg_mr", "on demand paging", reg_mr, EOPNOTSUPP, .number = 8,
	  .flags = IBV_ACCESS_ON_DEMAND },
	{ "ibv_reg_mr", "no memory there", reg_nothing, EFAULT, .number = 8 },
	{ "ibv_reg_mr", "an end that wraps", reg_past_the_end, EINVAL, .number = 4096 },
	{ "ibv_reg_mr", "read-only memory to write to", reg_read_only, EFAULT,
	  .flags = IBV_ACCESS_LOCAL_WRITE },
	{ "ibv_reg_mr_iova", "an end that wraps", reg_iova_that_wraps, EINVAL, .number = 8192 },
	{ "ibv_reg_dmabuf_mr", "there are none", reg_dmabuf, EOPNOTSUPP },
	{ "ibv_rereg_mr", "unknown flag", rereg, -IBV_REREG_MR_ERR_INPUT, .flags = 1 << 20 },
	{ "ibv_rereg_mr", "translation to nothing", rereg, -IBV_REREG_MR_ERR_INPUT,
	  .flags = IBV_REREG_MR_CHANGE_TRANSLATION },
	{ "ibv_rereg_mr", "access without its flag", rereg, -IBV_REREG_MR_ERR_INPUT,
	  .number = IBV_ACCESS_LOCAL_WRITE },
	{ "ibv_rereg_mr", "no PD", rereg, -IBV_REREG_MR_ERR_CMD, .flags = IBV_REREG_MR_CHANGE_PD },
	{ "ibv_advise_mr", "there is none", advise, EOPNOTSUPP,
	  .number = IBV_ADVISE_MR_ADVICE_PREFETCH },
	{ "ibv_alloc_mw", "type 3", alloc_mw, EINVAL, .number = 3 },
	{ "ibv_bind_mw", "type 2", bind_type_2, EINVAL },
	{ "ibv_bind_mw", "on UD", bind_on_ud, EINVAL },
	{ "ibv_bind_mw", "no region", bind_to_nothing, EINVAL },
	{ "ibv_bind_mw", "region of another PD", bind_to_other_pd, EPERM },
	{ "ibv_bind_mw", "the right to bind", bind_access, EINVAL, .flags = IBV_ACCESS_MW_BIND },
	{}
};

/* ------------------------------------------------------------------ CQs, SRQs */

static int create_cq(struct lab *lab, const struct check *check)
{
	return OF_POINTER(ibv_create_cq(lab->node.ctx, check->number, NULL, NULL, check->flags));
}

static int resize_cq(struct lab *lab, const struct check *check)
{
	return ibv_resize_cq(lab->cq, check->number);
}

static int destroy_cq(struct lab *lab, const struct check *check)
{
	(void)check;
	return ibv_destroy_cq(lab->cq);
}

static int create_srq(struct lab *lab, const struct check *check)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = check->number,
						    .max_sge = check->flags } };

	return OF_POINTER(ibv_create_srq(lab->node.pd, &attr));
}

static int modify_srq(struct lab *lab, const struct check *check)
{
	struct ibv_srq_attr attr = { .srq_limit = check->number, .max_wr = check->number };

	return ibv_modify_srq(lab->srq, &attr, check->flags);
}

static int destroy_srq(struct lab *lab, const struct check *check)
{
	(void)check;
	return ibv_destroy_srq(lab->srq);
}

static int post_srq(struct lab *lab, const struct check *check)
{
	struct ibv_sge sges[9] = {};
	struct ibv_recv_wr *bad, wr = { .sg_list = sges, .num_sge = check->number };
	int err = ibv_post_srq_recv(lab->srq, &wr, &bad);

	return err && bad != &wr ? WRONG_BAD_WR : err;
}

static int post_srq_until_full(struct lab *lab, const struct check *check)
{
	struct ibv_recv_wr *bad, wr = {};
	int i, err = 0;

	for (i = 0; i < check->number && !err; i++)
		err = ibv_post_srq_recv(lab->srq, &wr, &bad);
	return err;
}

const struct check queue_checks[] = {
	{ "ibv_create_cq", "no entries", create_cq, EINVAL },
	{ "ibv_create_cq", "-1 entries", create_cq, EINVAL, .number = -1 },
	{ "ibv_create_cq", "2^30 entries", create_cq, EINVAL, .number = 1 << 30 },
	{ "ibv_create_cq", "completion vector 99", create_cq, EINVAL, .number = 1, .flags = 99 },
	{ "ibv_resize_cq", "no entries", resize_cq, EINVAL },
	{ "ibv_resize_cq", "2^30 entries", resize_cq, EINVAL, .number = 1 << 30 },
	{ "ibv_destroy_cq", "with QPs", destroy_cq, EBUSY },
	{ "ibv_create_srq", "no requests", create_srq, EINVAL, .flags = 1 },
	{ "ibv_create_srq", "2^30 requests", create_srq, EINVAL, .number = 1 << 30, .flags = 1 },
	{ "ibv_create_srq", "1000 SGEs", create_srq, EINVAL, .number = 1, .flags = 1000 },
	{ "ibv_modify_srq", "limit above its size", modify_srq, EINVAL, .number = 1 << 20,
	  .flags = IBV_SRQ_LIMIT },
	{ "ibv_modify_srq", "unknown attribute", modify_srq, EINVAL, .number = 1, .flags = 1 << 7 },
	{ "ibv_destroy_srq", "with a QP", destroy_srq, EBUSY },
	{ "ibv_post_srq_recv", "too many SGEs", post_srq, EINVAL, .number = 9 },
	{ "ibv_post_srq_recv", "-1 SGEs", post_srq, EINVAL, .number = -1 },
	{ "ibv_post_srq_recv", "full", post_srq_until_full, ENOMEM, .number = 65536 },
	{}
};

/* ------------------------------------------------------------------ QPs */

static int create_qp(struct lab *lab, const struct check *check)
{
	struct ibv_qp_init_attr attr = init_of(lab, check->number);

	return OF_POINTER(ibv_create_qp(lab->node.pd, &attr));
}

static int create_without_cqs(struct lab *lab, const struct check *check)
{
	struct ibv_qp_init_attr attr = init_of(lab, check->number);

	attr.send_cq = attr.recv_cq = NULL;
	return OF_POINTER(ibv_create_qp(lab->node.pd, &attr));
}

static int create_uc_with_srq(struct lab *lab, const struct check *check)
{
	struct ibv_qp_init_attr attr = init_of(lab, IBV_QPT_UC);

	(void)check;
	attr.srq = lab->srq;
	return OF_POINTER(ibv_create_qp(lab->node.pd, &attr));
}

/* flags: the member of struct ibv_qp_cap to set. */
static int create_with_cap(struct lab *lab, const struct check *check)
{
	struct ibv_qp_init_attr attr = init_of(lab, IBV_QPT_RC);
	uint32_t *cap[] = { &attr.cap.max_send_wr, &attr.cap.max_recv_wr, &attr.cap.max_send_sge,
			    &attr.cap.max_recv_sge, &attr.cap.max_inline_data };

	*cap[check->flags] = check->number;
	return OF_POINTER(ibv_create_qp(lab->node.pd, &attr));
}

static int create_ex(struct lab *lab, const struct check *check)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = lab->cq,
		.recv_cq = lab->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | check->flags,
		.pd = lab->node.pd,
		.create_flags = IBV_QP_CREATE_SCATTER_FCS,
		.send_ops_flags = check->number,
	};

	return OF_POINTER(ibv_create_qp_ex(lab->node.ctx, &attr));
}

/* number: the new state, flags: the mask, of a QP in RESET. */
static int modify_qp(struct lab *lab, const struct check *check)
{
	struct ibv_qp_attr attr = {
		.qp_state = check->number,
		.port_num = 1,
		.qp_access_flags = 0,
		.rate_limit = 1000,
	};

	return ibv_modify_qp(lab->reset, &attr, check->flags);
}

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

static int modify_port(struct lab *lab, const struct check *check)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = check->number };

	return ibv_modify_qp(lab->reset, &attr, TO_INIT);
}

static int modify_pkey(struct lab *lab, const struct check *check)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .pkey_index = check->number };

	return ibv_modify_qp(lab->reset, &attr, TO_INIT);
}

static int to_rtr(struct lab *lab, struct ibv_qp_attr *attr)
{
	attr->qp_state = IBV_QPS_RTR;
	attr->dest_qp_num = 77;
	attr->min_rnr_timer = 12;
	attr->ah_attr.port_num = 1;
	attr->ah_attr.is_global = 1;
	attr->ah_attr.grh.dgid = lab->node.gid;
	attr->ah_attr.grh.hop_limit = 1;
	return ibv_modify_qp(lab->init, attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int modify_mtu(struct lab *lab, const struct check *check)
{
	struct ibv_qp_attr attr = { .path_mtu = check->number,
				    .ah_attr.grh.sgid_index = lab->node.gid_index };

	return to_rtr(lab, &attr);
}

static int modify_gid_index(struct lab *lab, const struct check *check)
{
	struct ibv_qp_attr attr = { .path_mtu = IBV_MTU_1024,
				    .ah_attr.grh.sgid_index = check->number };

	return to_rtr(lab, &attr);
}

static int query_qp(struct lab *lab, const struct check *check)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(lab->rc, &attr, check->flags, &init);
}

static int attach(struct ibv_qp *qp, uint8_t first_byte, bool detach)
{
	union ibv_gid gid = { .raw = { first_byte, 0x0e, [15] = 9 } };

	return detach ? ibv_detach_mcast(qp, &gid, 0) : ibv_attach_mcast(qp, &gid, 0);
}

static int destroy_attached(struct lab *lab, const struct check *check)
{
	int err = attach(lab->ud, 0xff, false);

	(void)check;
	if (err)
		die("ibv_attach_mcast: %s", strerror(err));
	err = ibv_destroy_qp(lab->ud);
	if (attach(lab->ud, 0xff, true))
		die("ibv_detach_mcast");
	return err;
}

static int attach_rc(struct lab *lab, const struct check *check)
{
	(void)check;
	return attach(lab->rc, 0xff, false);
}

static int attach_unicast(struct lab *lab, const struct check *check)
{
	(void)check;
	return attach(lab->ud, 0x20, false);
}

static int detach_unattached(struct lab *lab, const struct check *check)
{
	(void)check;
	return attach(lab->ud, 0xff, true);
}

static int create_ah(struct lab *lab, const struct check *check)
{
	struct ibv_ah_attr attr = {
		.is_global = check->flags,
		.port_num = check->number,
		.grh = { .dgid = lab->node.gid, .sgid_index = lab->node.gid_index },
	};

	return OF_POINTER(ibv_create_ah(lab->node.pd, &attr));
}

#define WITH_FLAGS IBV_QP_INIT_ATTR_CREATE_FLAGS
#define WITH_OPS IBV_QP_INIT_ATTR_SEND_OPS_FLAGS

const struct check qp_checks[] = {
	{ "ibv_create_qp", "raw packets", create_qp, EOPNOTSUPP, .number = IBV_QPT_RAW_PACKET },
	{ "ibv_create_qp", "XRC", create_qp, EOPNOTSUPP, .number = IBV_QPT_XRC_SEND },
	{ "ibv_create_qp", "driver's own", create_qp, EOPNOTSUPP, .number = IBV_QPT_DRIVER },
	{ "ibv_create_qp", "type 77", create_qp, EINVAL, .number = 77 },
	{ "ibv_create_qp", "no CQs", create_without_cqs, EINVAL, .number = IBV_QPT_RC },
	{ "ibv_create_qp", "UC with SRQ", create_uc_with_srq, EINVAL },
	{ "ibv_create_qp", "too many sends", create_with_cap, EINVAL, 1 << 20, 0 },
	{ "ibv_create_qp", "-1 sends", create_with_cap, EINVAL, -1, 0 },
	{ "ibv_create_qp", "too many receives", create_with_cap, EINVAL, 1 << 20, 1 },
	{ "ibv_create_qp", "too many SGEs", create_with_cap, EINVAL, 100, 2 },
	{ "ibv_create_qp", "too many SGEs to receive", create_with_cap, EINVAL, 100, 3 },
	{ "ibv_create_qp", "too much inline data", create_with_cap, EINVAL, 100000, 4 },
	{ "ibv_create_qp_ex", "flags", create_ex, EOPNOTSUPP, .flags = WITH_FLAGS },
	{ "ibv_create_qp_ex", "unknown attribute", create_ex, EOPNOTSUPP, .flags = 1 << 25 },
	{ "ibv_create_qp_ex", "TSO", create_ex, EOPNOTSUPP, IBV_QP_EX_WITH_TSO, WITH_OPS },
	{ "ibv_modify_qp", "RESET to RTS", modify_qp, EINVAL, IBV_QPS_RTS, IBV_QP_STATE },
	{ "ibv_modify_qp", "RESET to RTR", modify_qp, EINVAL, IBV_QPS_RTR, IBV_QP_STATE },
	{ "ibv_modify_qp", "state 99", modify_qp, EINVAL, 99, TO_INIT },
	{ "ibv_modify_qp", "INIT without attributes", modify_qp, EINVAL, IBV_QPS_INIT,
	  IBV_QP_STATE },
	{ "ibv_modify_qp", "INIT with one too many", modify_qp, EINVAL, IBV_QPS_INIT,
	  TO_INIT | IBV_QP_SQ_PSN },
	{ "ibv_modify_qp", "rate limit", modify_qp, EOPNOTSUPP, IBV_QPS_INIT,
	  TO_INIT | IBV_QP_RATE_LIMIT },
	{ "ibv_modify_qp", "port 0", modify_port, EINVAL, .number = 0 },
	{ "ibv_modify_qp", "port 99", modify_port, EINVAL, .number = 99 },
	{ "ibv_modify_qp", "partition key 999", modify_pkey, EINVAL, .number = 999 },
	{ "ibv_modify_qp", "MTU 0", modify_mtu, EINVAL, .number = 0 },
	{ "ibv_modify_qp", "MTU 9", modify_mtu, EINVAL, .number = 9 },
	{ "ibv_modify_qp", "GID 250", modify_gid_index, EINVAL, .number = 250 },
	{ "ibv_query_qp", "unknown attribute", query_qp, EOPNOTSUPP, .flags = IBV_QP_RATE_LIMIT },
	{ "ibv_create_ah", "no GRH", create_ah, EINVAL, 1, 0 },
	{ "ibv_create_ah", "port 0", create_ah, EINVAL, 0, 1 },
	{ "ibv_create_ah", "port 99", create_ah, EINVAL, 99, 1 },
	{ "ibv_attach_mcast", "RC", attach_rc, EINVAL },
	{ "ibv_attach_mcast", "a unicast GID", attach_unicast, EINVAL },
	{ "ibv_detach_mcast", "not attached", detach_unattached, EINVAL },
	{ "ibv_destroy_qp", "in a multicast group", destroy_attached, EBUSY },
	{}
};

/* ------------------------------------------------------------------ run */

static struct ibv_qp *qp_in(struct lab *lab, enum ibv_qp_type type, bool rts)
{
	static const struct retries retries = { .timeout = 14, .retry_cnt = 7, .rnr_retry = 7 };
	struct ibv_qp_init_attr attr = init_of(lab, type);
	struct ibv_qp *qp = qp_create(&lab->node, &attr);
	struct address self = qp_address(&lab->node, qp, 0);

	if (rts && type == IBV_QPT_UD)
		qp_start_ud(qp, 0);
	else if (rts)
		qp_connect(&lab->node, qp, 0, &self, IBV_MTU_1024, &retries);
	return qp;
}

static void open_qps(struct lab *lab)
{
	struct ibv_qp_init_attr attr = init_of(lab, IBV_QPT_RC);
	struct ibv_qp_attr to_error = { .qp_state = IBV_QPS_ERR };

	lab->reset = ibv_create_qp(lab->node.pd, &attr);
	attr.srq = lab->srq;
	lab->with_srq = ibv_create_qp(lab->node.pd, &attr);
	if (!lab->reset || !lab->with_srq)
		die("ibv_create_qp:");
	lab->init = qp_in(lab, IBV_QPT_RC, false);
	lab->rc = qp_in(lab, IBV_QPT_RC, true);
	lab->ud = qp_in(lab, IBV_QPT_UD, true);
	lab->error = qp_in(lab, IBV_QPT_RC, true);
	if (ibv_modify_qp(lab->error, &to_error, IBV_QP_STATE))
		die("modifying a QP to ERR");
}

static void open_lab(struct lab *lab)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 16, .max_sge = 2 } };

	node_open(&lab->node, NULL, -1);
	lab->memory = aligned_alloc(4096, 8192);
	lab->other_pd = ibv_alloc_pd(lab->node.ctx);
	lab->cq = ibv_create_cq(lab->node.ctx, 64, NULL, NULL, 0);
	lab->srq = ibv_create_srq(lab->node.pd, &srq_attr);
	lab->mr = ibv_reg_mr(lab->node.pd, lab->memory, 8192,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	if (!lab->memory || !lab->other_pd || !lab->cq || !lab->srq || !lab->mr)
		die("opening the lab:");
	lab->other_mr = ibv_reg_mr(lab->other_pd, lab->memory, 8192, IBV_ACCESS_MW_BIND);
	lab->mw1 = ibv_alloc_mw(lab->node.pd, IBV_MW_TYPE_1);
	lab->mw2 = ibv_alloc_mw(lab->node.pd, IBV_MW_TYPE_2);
	if (!lab->other_mr || !lab->mw1 || !lab->mw2)
		die("opening the lab's windows:");
	open_qps(lab);
}

static const char *name_of(int err)
{
	return err == WRONG_BAD_WR ? "a wrong bad_wr" : err ? strerrorname_np(err) : "success";
}

/* Returns the number of wrong results. */
static int run(struct lab *lab, const struct check *check)
{
	int err, wrong = 0;

	for (; check->run; check++) {
		err = check->run(lab, check);
		if (err == check->err)
			continue;
		printf("%s, %s: %s (%d), expected %s\n", check->verb, check->what, name_of(err),
		       err, name_of(check->err));
		wrong++;
	}
	return wrong;
}

static int count(const struct check *check)
{
	int num = 0;

	while (check[num].run)
		num++;
	return num;
}

/* Checks that the adapter still works: a message to itself arrives. */
static void check_good(struct lab *lab)
{
	struct ibv_sge sge = { .addr = (uintptr_t)lab->memory,
			       .length = 64,
			       .lkey = lab->mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad, send = { .opcode = IBV_WR_SEND,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_qp *qp = qp_in(lab, IBV_QPT_RC, true);
	double until = now() + 10;
	struct ibv_wc wc;
	int left = 2;

	if (ibv_post_recv(qp, &recv, &bad_recv) || ibv_post_send(qp, &send, &bad))
		die("posting a good request");
	while (left && now() < until)
		if (ibv_poll_cq(lab->cq, 1, &wc) > 0 && wc.qp_num == qp->qp_num) {
			if (wc.status)
				die("a good request: %s", ibv_wc_status_str(wc.status));
			left--;
		}
	if (left)
		die("a good request did not complete");
}

int main(void)
{
	static const struct check *const all[] = { device_checks, memory_checks, queue_checks,
						   qp_checks, post_checks };
	int wrong = 0, total = 0;
	struct lab lab = {};
	size_t i;

	open_lab(&lab);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		total += count(all[i]);
		wrong += run(&lab, all[i]);
	}
	check_good(&lab);
	printf("%d of %d as expected\n", total - wrong, total);
	return wrong ? 1 : 0;
}
