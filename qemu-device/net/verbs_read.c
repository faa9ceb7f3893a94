// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RDMA READ of memory that the peer exposes, into guest memory or an own buffer.
 *
 * The work requests of one pvr_verbs_read() are posted together. Only the last one is
 * signaled: they complete in order, and a failure is always signaled.
 */
#include <errno.h>

#include "net/verbs_qp.h"

struct requests {
	unsigned int num;
	struct ibv_send_wr wr[PVR_VERBS_READS];
	struct ibv_sge sge[PVR_VERBS_READS];
};

/* ---------------------------------------------------------------------- requests */

/* Return: false if the parts are empty or do not fit into @room. */
static bool fits(const struct pvr_rndv_seg *part, int parts, size_t room, bool exactly)
{
	size_t len = 0;
	int i;

	for (i = 0; i < parts; i++)
		len += part[i].len;
	return len && (exactly ? len == room : len <= room);
}

static size_t length(const struct iovec *iov, int count)
{
	size_t len = 0;

	while (count--)
		len += iov++->iov_len;
	return len;
}

static void add(struct requests *to, const struct pvr_rndv_seg *part, size_t part_pos,
		const struct iovec *iov, size_t pos, const struct ibv_mr *mr, size_t len)
{
	struct ibv_send_wr *wr = &to->wr[to->num];
	struct ibv_sge *sge = &to->sge[to->num];

	*sge = (struct ibv_sge){
		.addr = (uintptr_t)iov->iov_base + pos,
		.length = (uint32_t)len,
		.lkey = mr->lkey,
	};
	*wr = (struct ibv_send_wr){
		.wr_id = PVR_VERBS_ID_READ,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = { .remote_addr = part->addr + part_pos, .rkey = part->rkey },
	};
	if (to->num++)
		wr[-1].next = wr;
}

/* One request per overlap of the two lists: up to the next end of an entry in either. */
static void fill(struct requests *to, const struct pvr_rndv_seg *part, int parts,
		 const struct iovec *iov, int count, struct ibv_mr *const *mr)
{
	size_t part_pos = 0, pos = 0, part_left, left, len;

	to->num = 0;
	while (parts && count) {
		part_left = part->len - part_pos;
		left = iov->iov_len - pos;
		len = part_left < left ? part_left : left;
		if (len)
			add(to, part, part_pos, iov, pos, *mr, len);
		part_pos = part_left > len ? part_pos + len : 0;
		pos = left > len ? pos + len : 0;
		if (!part_pos)
			part++, parts--;
		if (!pos)
			iov++, mr++, count--;
	}
	to->wr[to->num - 1].send_flags = IBV_SEND_SIGNALED;
}

/* ----------------------------------------------------------------------- reading */

static bool is_going(const struct pvr_verbs *verbs)
{
	return __atomic_load_n(&verbs->rdma_read.going, __ATOMIC_ACQUIRE);
}

static uint8_t *own_buffer(const struct pvr_verbs *verbs)
{
	return verbs->memory + PVR_VERBS_READ_OFFSET;
}

static void let_go(struct pvr_verbs *verbs)
{
	struct pvr_verbs_rdma_read *rdma_read = &verbs->rdma_read;

	pvr_verbs_deregister(verbs, rdma_read->mr, rdma_read->mrs);
	rdma_read->mrs = 0;
}

/* Requests before the refused one are posted. */
static int post(struct pvr_verbs *verbs, struct requests *requests)
{
	struct ibv_send_wr *bad;

	/* A poll may clear it before this function returns. */
	__atomic_store_n(&verbs->rdma_read.going, true, __ATOMIC_RELEASE);
	if (!ibv_post_send(verbs->qp, requests->wr, &bad))
		return 0;
	pvr_verbs_break(verbs, "the RDMA NIC refuses to read");
	let_go(verbs);
	return -ECONNRESET;
}

static int read_into_buffer(struct pvr_verbs *verbs, const struct pvr_rndv_seg *part, int parts)
{
	const struct iovec iov = { .iov_base = own_buffer(verbs), .iov_len = PVR_READ_BUFFER };
	struct requests requests;

	if (!fits(part, parts, PVR_READ_BUFFER, false))
		return -EINVAL;
	fill(&requests, part, parts, &iov, 1, &verbs->mr);
	return post(verbs, &requests);
}

int pvr_verbs_read(struct pvr_verbs *verbs, const struct pvr_rndv_seg *part, int parts,
		   const struct iovec *iov, int count)
{
	struct pvr_verbs_rdma_read *rdma_read = &verbs->rdma_read;
	struct requests requests;

	if (parts > (int)PVR_FRAME_RNDV_SEGS || count > (int)PVR_FRAME_RNDV_SEGS || is_going(verbs))
		return -EINVAL;
	if (!count)
		return read_into_buffer(verbs, part, parts);
	if (!fits(part, parts, length(iov, count), true))
		return -EINVAL;
	if (!pvr_verbs_register(verbs, iov, count, IBV_ACCESS_LOCAL_WRITE, rdma_read->mr))
		return -ENOMEM;
	rdma_read->mrs = (unsigned int)count;
	fill(&requests, part, parts, iov, count, rdma_read->mr);
	return post(verbs, &requests);
}

void pvr_verbs_rdma_read_is_done(struct pvr_verbs *verbs)
{
	__atomic_store_n(&verbs->rdma_read.going, false, __ATOMIC_RELEASE);
}

int pvr_verbs_rdma_read_poll(struct pvr_verbs *verbs, uint8_t **data)
{
	int err = 0;

	*data = own_buffer(verbs);
	if (is_going(verbs))
		err = pvr_verbs_stream_poll(&verbs->stream, false);
	if (is_going(verbs) && !err)
		err = pvr_verbs_stream_poll(&verbs->stream, true);
	return is_going(verbs) ? err : 1;
}

/* A transfer of a NIC can only be stopped by breaking the queue pair. */
void pvr_verbs_rdma_read_cancel(struct pvr_verbs *verbs)
{
	if (is_going(verbs))
		pvr_verbs_stream_poll(&verbs->stream, false);
	if (is_going(verbs))
		pvr_verbs_break(verbs, "memory was taken back that the RDMA NIC was writing to");
	let_go(verbs);
}
