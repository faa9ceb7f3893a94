// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Resizing of completion queues. */
#include "cq_buf.h"

/*
 * DOC: Resizing
 *
 * The device moves the unread completions while it runs RESIZE_CQ. Neither ring may be
 * read during that time. A provider keeps its own pollers out. Pollers of a kernel CQ
 * hold a spinlock, under which the command cannot sleep. So freeze() makes the CQ look
 * empty to them, and thaw() calls the completion handler if the CQ was polled or armed
 * meanwhile. resize_lock excludes another resize and purges, which may sleep.
 */

/*
 * Taking the lock waits for running pollers, which store cons_head before they release
 * it.
 */
static void freeze(struct pvr_cq *cq)
{
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->frozen = true;
	cq->missed = false;
	spin_unlock_irqrestore(&cq->lock, flags);
}

/* Switch to @buf, unless it is NULL, and let pollers in again. */
static void thaw(struct pvr_cq *cq, const struct pvr_cq_buf *buf)
{
	unsigned long flags;
	bool missed;

	spin_lock_irqsave(&cq->lock, flags);
	if (buf) {
		cq->buf = *buf;
		cq->head = 0;
		cq->ibcq.cqe = buf->n;
	}
	cq->frozen = false;
	missed = cq->missed;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (missed && cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

static int resize_cq(struct pvr_dev *dev, struct pvr_cq *cq,
		     struct pvr_cq_buf *buf)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_RESIZE_CQ);
	req.resize_cq.cq_handle = cpu_to_le32(cq->handle);
	req.resize_cq.cqe = cpu_to_le32(buf->n);
	req.resize_cq.pdir_dma = cpu_to_le64(buf->pdir.dir.dma);
	req.resize_cq.nchunks = cpu_to_le32(buf->pdir.npages);
	err = pvr_cmd(dev, &req, &resp);
	if (!err && le32_to_cpu(resp.resize_cq.cqe) != buf->n) {
		pvr_dev_fail(dev, "it changed the size of a CQ");
		err = -EIO;
	}
	if (!err)
		pvr_pdir_was_read(dev, &buf->pdir);
	return err;
}

/* On success @buf is the former ring, which the caller frees. */
static int move_locked(struct pvr_dev *dev, struct pvr_cq *cq,
		       struct pvr_cq_buf *buf)
{
	struct pvr_cq_buf old = cq->buf;
	int err;

	lockdep_assert_held(&cq->resize_lock);
	freeze(cq);
	err = resize_cq(dev, cq, buf);
	thaw(cq, err ? NULL : buf);
	if (!err)
		*buf = old;
	return err;
}

int pvr_resize_cq(struct ib_cq *ibcq, PVR_RESIZE_CQE cqe,
		  struct ib_udata *udata)
{
	struct pvr_dev *dev = to_pvr_dev(ibcq->device);
	struct pvr_cq *cq = to_pvr_cq(ibcq);
	struct pvr_cq_buf buf = {};
	int err;

	if (udata && !(pvr_udata_features(udata) & PVR_EXT_RESIZE))
		return -EOPNOTSUPP;
	err = pvr_cq_buf_init(dev, &buf, cqe, udata);
	if (err)
		return err;
	mutex_lock(&cq->resize_lock);
	err = move_locked(dev, cq, &buf);
	mutex_unlock(&cq->resize_lock);
	pvr_cq_buf_exit(&buf);
	return err;
}
