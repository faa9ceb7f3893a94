/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Payload that the other side has exposed, on its way to guest memory. */
#include "path/pipe/rndv_rx.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>

/* Of guest memory that lies in many runs, so much at least for the NIC to go there itself. */
#define STRAIGHT_MIN (64u << 10)

static_assert(offsetof(struct pvr_reading, use) == 0, "stop() casts");

void pvr_reading_open(struct pvr_reading *reading, const struct pvr_stream_ops *ops, void *opaque,
		      enum pvr_nic_use_kind kind)
{
	*reading = (struct pvr_reading){ .use.kind = kind, .ops = ops, .opaque = opaque };
}

void pvr_reading_stop(struct pvr_reading *reading)
{
	pvr_nic_use_end(&reading->use);
	reading->busy = false;
}

void pvr_reading_begin(struct pvr_reading *reading, const struct pvr_frame_rndv_seg *rndv,
		       unsigned int parts)
{
	unsigned int i;

	for (i = 0; i < parts; i++)
		reading->part[i] = (struct pvr_rndv_seg){
			.addr = le64toh(rndv[i].addr),
			.rkey = le32toh(rndv[i].rkey),
			.len = le32toh(rndv[i].len),
		};
	reading->parts = parts;
}

/* ------------------------------------------------------------------ what is read */

/* Parts of [@done, @done + @len) of the payload. Return: how many. */
static int slice(const struct pvr_reading *reading, uint32_t done, uint32_t len,
		 struct pvr_rndv_seg to[PVR_FRAME_RNDV_SEGS])
{
	unsigned int i;
	uint32_t n;
	int count = 0;

	for (i = 0; i < reading->parts && len; i++) {
		const struct pvr_rndv_seg *part = &reading->part[i];

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

static int start(struct pvr_reading *reading, uint32_t done, uint32_t len, const struct iovec *iov,
		 int count)
{
	struct pvr_rndv_seg part[PVR_FRAME_RNDV_SEGS];
	int parts = slice(reading, done, len, part), err;

	err = reading->ops->read(reading->opaque, part, parts, iov, count);
	if (err)
		return err;
	reading->busy = true;
	reading->own = !count;
	reading->len = len;
	return 0;
}

/* ------------------------------------------------------------------ where it goes */

/* By whoever revokes it, or when it is done. */
static void stop(struct pvr_nic_use *use)
{
	struct pvr_reading *reading = (struct pvr_reading *)use;

	if (reading->busy)
		reading->ops->stop_reading(reading->opaque);
}

static uint32_t size_of(const struct iovec *iov, int count)
{
	size_t size = 0;

	for (; count; count--)
		size += iov++->iov_len;
	return (uint32_t)size;
}

/* Return: 0, -ENOMEM if it has to be copied, -EFAULT, or -errno of the stream. */
static int start_straight(struct pvr_reading *reading, const struct pvr_qp *qp,
			  const struct pvr_sg *to, uint64_t offset, uint32_t done, uint32_t left)
{
	struct iovec iov[PVR_FRAME_RNDV_SEGS];
	int count = pvr_sg_iov(to, offset, left, iov, PVR_FRAME_RNDV_SEGS), err;
	uint32_t len;

	if (count < 0)
		return count;
	len = size_of(iov, count);
	if ((len < left && len < STRAIGHT_MIN) || !pvr_nic_may_use(to->adapter))
		return -ENOMEM;
	reading->use.qp = qp;
	reading->use.stop = stop;
	if (!pvr_nic_use_begin(&reading->use, to, offset, len))
		return -ENOMEM;
	err = start(reading, done, len, iov, count);
	if (err)
		pvr_nic_use_end(&reading->use);
	return err;
}

static int start_any(struct pvr_reading *reading, const struct pvr_qp *qp, const struct pvr_sg *to,
		     uint64_t offset, uint32_t done, uint32_t left)
{
	int err = start_straight(reading, qp, to, offset, done, left);

	if (err != -ENOMEM)
		return err;
	return start(reading, done, left < PVR_READ_BUFFER ? left : PVR_READ_BUFFER, NULL, 0);
}

/* Its adapter's lock is held. */
static bool was_revoked(const struct pvr_reading *reading)
{
	return !reading->own && !reading->use.adapter;
}

/* Return: as pvr_reading_pull(). */
static int finish(struct pvr_reading *reading, const struct pvr_sg *to, uint64_t offset)
{
	struct pvr_sg from;
	uint8_t *own = NULL;
	int ret;

	/* What has arrived, if anything, is not where it is wanted now. */
	if (was_revoked(reading))
		return -ECONNABORTED;
	ret = reading->ops->has_read(reading->opaque, &own);
	if (ret <= 0)
		return ret;
	if (!reading->own) {
		pvr_reading_stop(reading);
		return (int)reading->len;
	}
	reading->busy = false;
	pvr_sg_build_flat(&from, to->adapter, own, reading->len);
	return pvr_sg_copy(to, offset, &from, 0, reading->len) ? -EFAULT : (int)reading->len;
}

int pvr_reading_pull(struct pvr_reading *reading, const struct pvr_qp *qp, const struct pvr_sg *to,
		     uint64_t offset, uint32_t done, uint32_t left)
{
	int err = reading->busy ? 0 : start_any(reading, qp, to, offset, done, left);

	return err ? err : finish(reading, to, offset);
}

int pvr_reading_drop(struct pvr_reading *reading)
{
	uint8_t *own;
	int ret = reading->busy ? reading->ops->has_read(reading->opaque, &own) : 1;

	if (ret > 0)
		pvr_reading_stop(reading);
	return ret;
}
