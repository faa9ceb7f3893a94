// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Driver details of objects for "rdma resource show -dd", and their attributes as the
 * device reports them for "rdma resource show -r".
 */
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "pvrdma.h"

struct detail {
	const char *name;
	u32 val;
};

static int put_details(struct sk_buff *msg, const struct detail *details, int n)
{
	struct nlattr *table;
	int i;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < n; i++) {
		if (rdma_nl_put_driver_u32(msg, details[i].name,
					   details[i].val)) {
			nla_nest_cancel(msg, table);
			return -EMSGSIZE;
		}
	}
	nla_nest_end(msg, table);
	return 0;
}

int pvr_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	const struct pvr_qp *qp = to_pvr_qp(ibqp);
	const struct detail details[] = {
		{ "handle", qp->handle },
		{ "pages", qp->pdir.npages },
		{ "max_inline", qp->max_inline },
	};

	return put_details(msg, details, ARRAY_SIZE(details));
}

int pvr_fill_res_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	const struct detail details[] = {
		{ "handle", cq->handle },
		{ "comp_vector", cq->vector },
	};

	return put_details(msg, details, ARRAY_SIZE(details));
}

int pvr_fill_res_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	const struct pvr_mr *mr = to_pvr_mr(ibmr);
	const struct detail details[] = {
		{ "handle", mr->handle },
		{ "pages", mr->pdir.npages },
	};

	return put_details(msg, details, ARRAY_SIZE(details));
}

int pvr_fill_res_srq(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	const struct pvr_srq *srq = to_pvr_srq(ibsrq);
	const struct detail details[] = {
		{ "handle", srq->handle },
		{ "max_sge", srq->max_sge },
	};

	return put_details(msg, details, ARRAY_SIZE(details));
}

/* struct pvr_qp_attr */
int pvr_fill_res_qp_raw(struct sk_buff *msg, struct ib_qp *ibqp)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_QUERY_QP);
	req.query_qp.qp_handle = cpu_to_le32(to_pvr_qp(ibqp)->handle);
	req.query_qp.attr_mask = cpu_to_le32(IB_QP_ATTR_STANDARD_BITS);
	err = pvr_cmd(to_pvr_dev(ibqp->device), &req, &resp);
	if (err)
		return err;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW,
		       sizeof(resp.query_qp.attrs), &resp.query_qp.attrs);
}

/* struct pvr_srq_attr */
int pvr_fill_res_srq_raw(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_QUERY_SRQ);
	req.handle.handle = cpu_to_le32(to_pvr_srq(ibsrq)->handle);
	err = pvr_cmd(to_pvr_dev(ibsrq->device), &req, &resp);
	if (err)
		return err;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW,
		       sizeof(resp.query_srq.attrs), &resp.query_srq.attrs);
}
