/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Shared receive queues. */
#include <errno.h>
#include <stdlib.h>

#include "pvrdma.h"
#include "uverbs_abi.h"

static int init_queue(struct pvr_srq *srq, struct ibv_srq_attr *attr)
{
	struct pvr_ring_state_shm *state_shm;
	size_t size;
	int err;

	size = pvr_wq_layout(&srq->wq, attr->max_wr, attr->max_sge ? attr->max_sge : 1,
			     sizeof(struct pvrdma_rq_wqe_hdr), PVR_RQ_STRIDE_MIN);
	err = pvr_buf_alloc(&srq->buf, PVR_PAGE_SIZE + size);
	if (err)
		return err;
	state_shm = srq->buf.addr;
	srq->wq.ring_shm = &state_shm->rx;
	srq->wq.wqes = (uint8_t *)srq->buf.addr + PVR_PAGE_SIZE;
	pthread_spin_init(&srq->wq.lock, PTHREAD_PROCESS_PRIVATE);
	return 0;
}

static void exit_queue(struct pvr_srq *srq)
{
	pthread_spin_destroy(&srq->wq.lock);
	pvr_buf_free(&srq->buf);
}

static int create_in_kernel(struct pvr_srq *srq, struct ibv_pd *ibpd,
			    const struct ibv_srq_init_attr *attr)
{
	struct pvr_uverbs_create_srq cmd = {
		.drv_payload = { .buf_addr = (uintptr_t)srq->buf.addr, .buf_size = srq->buf.size },
	};
	struct pvr_uverbs_create_srq_resp resp = {};
	struct ibv_srq_init_attr rounded = *attr;
	int err;

	rounded.attr.max_wr = srq->wq.num;
	rounded.attr.max_sge = srq->wq.max_sge;
	err = ibv_cmd_create_srq(ibpd, &srq->verbs_srq.srq, &rounded, &cmd.ibv_cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
	srq->handle = resp.srqn;
	return err;
}

struct ibv_srq *pvr_create_srq(struct ibv_pd *ibpd, struct ibv_srq_init_attr *attr)
{
	struct pvr_srq *srq;
	int err = EINVAL;

	if (!attr->attr.max_wr || attr->attr.max_wr > PVR_MAX_ELEMENTS ||
	    attr->attr.max_sge > PVR_MAX_SGE)
		goto err_errno;
	err = ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		goto err_errno;
	err = init_queue(srq, &attr->attr);
	if (err)
		goto err_free;
	err = create_in_kernel(srq, ibpd, attr);
	if (err)
		goto err_exit_queue;
	attr->attr.max_wr = srq->wq.num;
	attr->attr.max_sge = srq->wq.max_sge;
	return &srq->verbs_srq.srq;

err_exit_queue:
	exit_queue(srq);
err_free:
	free(srq);
err_errno:
	errno = err;
	return NULL;
}

int pvr_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int attr_mask)
{
	struct ibv_modify_srq cmd;

	return ibv_cmd_modify_srq(ibsrq, attr, attr_mask, &cmd, sizeof(cmd));
}

int pvr_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

int pvr_destroy_srq(struct ibv_srq *ibsrq)
{
	struct pvr_srq *srq = to_pvr_srq(ibsrq);
	int err = ibv_cmd_destroy_srq(ibsrq);

	if (err)
		return err;
	exit_queue(srq);
	free(srq);
	return 0;
}
