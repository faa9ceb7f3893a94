// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Payload that the peer has exposed, on its way to guest memory. */
#include "path/pipe/rndv.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>

/*
 * If guest memory has too many runs, the NIC writes it directly only from this size on.
 */
#define STRAIGHT_MIN (64u << 10)

static_assert(offsetof(struct pvr_rdma_read, use) == 0, "stop() casts");

void pvr_rdma_read_open(struct pvr_rdma_read *rdma_read, const struct pvr_stream_ops *ops,
			void *opaque, enum pvr_ext_dma_kind kind)
{
	*rdma_read = (struct pvr_rdma_read){ .use.kind = kind, .ops = ops, .opaque = opaque };
}

void pvr_rdma_read_stop(struct pvr_rdma_read *rdma_read)
{
	pvr_ext_dma_end(&rdma_read->use);
	rdma_read->busy = false;
}

void pvr_rdma_read_begin(struct pvr_rdma_read *rdma_read, const struct pvr_frame_rndv_seg *rndv,
			 unsigned int parts)
{
	unsigned int i;

	for (i = 0; i < parts; i++)
		rdma_read->part[i] = (struct pvr_rndv_seg){
			.addr = le64toh(rndv[i].addr),
			.rkey = le32toh(rndv[i].rkey),
			.len = le32toh(rndv[i].len),
		};
	rdma_read->parts = parts;
}

/* ------------------------------------------------------------------ what is read */

/* Segments of bytes [@done, @done + @len) of the payload. Return: number of segments. */
static int slice(const struct pvr_rdma_read *rdma_read, uint32_t done, uint32_t len,
		 struct pvr_rndv_seg to[PVR_FRAME_RNDV_SEGS])
{
	unsigned int i;
	uint32_t n;
	int count = 0;

	for (i = 0; i < rdma_read->parts && len; i++) {
		const struct pvr_rndv_seg *part = &rdma_read->part[i];

		if (done >= part->len) {
			done -= part->len;
			continue;
		}
		n = part->len - done < len ? part->len - done : len;
		to[count++] = (struct pvr_rndv_seg){ part->addr + done, part->rkey, n };
		len -= n;
		done = 0;
	}
	return count;
}

static int start(struct pvr_rdma_read *rdma_read, uint32_t done, uint32_t len,
		 const struct iovec *iov, int count)
{
	struct pvr_rndv_seg part[PVR_FRAME_RNDV_SEGS];
	int parts = slice(rdma_read, done, len, part), err;

	err = rdma_read->ops->read(rdma_read->opaque, part, parts, iov, count);
	if (err)
		return err;
	rdma_read->busy = true;
	rdma_read->own = !count;
	rdma_read->len = len;
	return 0;
}

/* ------------------------------------------------------------------ where it goes */

/* Called by a revoke, or at the end of the read. */
static void stop(struct pvr_ext_dma *use)
{
	struct pvr_rdma_read *rdma_read = (struct pvr_rdma_read *)use;

	if (rdma_read->busy)
		rdma_read->ops->rdma_read_cancel(rdma_read->opaque);
}

static uint32_t size_of(const struct iovec *iov, int count)
{
	size_t size = 0;

	for (; count; count--)
		size += iov++->iov_len;
	return (uint32_t)size;
}

/* Return: 0; -ENOMEM if a copy is necessary; -EFAULT; or -errno of the stream. */
static int start_straight(struct pvr_rdma_read *rdma_read, const struct pvr_qp *qp,
			  const struct pvr_sg *to, uint64_t offset, uint32_t done, uint32_t left)
{
	struct iovec iov[PVR_FRAME_RNDV_SEGS];
	int count = pvr_sg_iov(to, offset, left, iov, PVR_FRAME_RNDV_SEGS), err;
	uint32_t len;

	if (count < 0)
		return count;
	len = size_of(iov, count);
	if ((len < left && len < STRAIGHT_MIN) || !pvr_ext_dma_may_write(to->adapter))
		return -ENOMEM;
	rdma_read->use.qp = qp;
	rdma_read->use.stop = stop;
	if (!pvr_ext_dma_begin(&rdma_read->use, to, offset, len))
		return -ENOMEM;
	err = start(rdma_read, done, len, iov, count);
	if (err)
		pvr_ext_dma_end(&rdma_read->use);
	return err;
}

static int start_any(struct pvr_rdma_read *rdma_read, const struct pvr_qp *qp,
		     const struct pvr_sg *to, uint64_t offset, uint32_t done, uint32_t left)
{
	int err = start_straight(rdma_read, qp, to, offset, done, left);

	if (err != -ENOMEM)
		return err;
	return start(rdma_read, done, left < PVR_READ_BUFFER ? left : PVR_READ_BUFFER, NULL, 0);
}

/* Its adapter's lock is held. */
static bool was_revoked(const struct pvr_rdma_read *rdma_read)
{
	return !rdma_read->own && !rdma_read->use.adapter;
}

/* Return: as pvr_rdma_read_recv_payload(). */
static int finish(struct pvr_rdma_read *rdma_read, const struct pvr_sg *to, uint64_t offset)
{
	struct pvr_sg from;
	uint8_t *own = NULL;
	int ret;

	/* Bytes that have arrived are not at the current destination. */
	if (was_revoked(rdma_read))
		return -ECONNABORTED;
	ret = rdma_read->ops->rdma_read_poll(rdma_read->opaque, &own);
	if (ret <= 0)
		return ret;
	if (!rdma_read->own) {
		pvr_rdma_read_stop(rdma_read);
		return (int)rdma_read->len;
	}
	rdma_read->busy = false;
	pvr_sg_build_flat(&from, to->adapter, own, rdma_read->len);
	return pvr_sg_copy(to, offset, &from, 0, rdma_read->len) ? -EFAULT : (int)rdma_read->len;
}

int pvr_rdma_read_recv_payload(struct pvr_rdma_read *rdma_read, const struct pvr_qp *qp,
			       const struct pvr_sg *to, uint64_t offset, uint32_t done,
			       uint32_t left)
{
	int err = rdma_read->busy ? 0 : start_any(rdma_read, qp, to, offset, done, left);

	return err ? err : finish(rdma_read, to, offset);
}

int pvr_rdma_read_drop(struct pvr_rdma_read *rdma_read)
{
	uint8_t *own;
	int ret = rdma_read->busy ? rdma_read->ops->rdma_read_poll(rdma_read->opaque, &own) : 1;

	if (ret > 0)
		pvr_rdma_read_stop(rdma_read);
	return ret;
}
