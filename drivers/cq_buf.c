// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Ring memory of completion queues. */
#include <rdma/ib_umem.h>

#include "cq_buf.h"

/* user_pages() reads the buffer's address from either command. */
static_assert(sizeof(struct pvrdma_create_cq) ==
		      sizeof(struct pvrdma_resize_cq) &&
	      offsetof(struct pvrdma_create_cq, buf_size) ==
		      offsetof(struct pvrdma_resize_cq, buf_size));

static u32 num_pages(const struct pvr_cq_buf *buf)
{
	return 1 + DIV_ROUND_UP(buf->n * sizeof(struct pvr_cqe), PVR_PAGE_SIZE);
}

static int kernel_pages(struct pvr_dev *dev, struct pvr_cq_buf *buf)
{
	struct pvr_ring_state *state_shm;
	int err;

	err = pvr_pdir_init(&buf->pdir, &dev->dir_pages, num_pages(buf), true);
	if (err)
		return err;
	state_shm = pvr_pdir_at(&buf->pdir, 0);
	buf->ring_shm = &state_shm->rx;
	if (dev->features & PVR_EXT_CQ_ARM_DBREC)
		buf->arm_dbrec = (void *)state_shm + PVR_CQ_ARM_DBREC_OFFSET;
	return 0;
}

static int user_pages(struct pvr_dev *dev, struct pvr_cq_buf *buf,
		      struct ib_udata *udata)
{
	struct pvrdma_create_cq cmd;
	int err;

	err = pvr_udata_in(udata, &cmd, sizeof(cmd));
	if (err)
		return err;
	buf->umem = pvr_umem_get(dev, cmd.buf_addr, cmd.buf_size,
				 (u64)num_pages(buf) * PVR_PAGE_SIZE);
	if (IS_ERR(buf->umem)) {
		err = PTR_ERR(buf->umem);
		buf->umem = NULL;
		return err;
	}
	err = pvr_pdir_init(&buf->pdir, &dev->dir_pages,
			    ib_umem_num_dma_blocks(buf->umem, PVR_PAGE_SIZE),
			    false);
	if (!err)
		pvr_pdir_set_umem(&buf->pdir, 0, buf->umem, PVR_PAGE_SIZE);
	return err;
}

int pvr_cq_buf_init(struct pvr_dev *dev, struct pvr_cq_buf *buf, u32 cqe,
		    struct ib_udata *udata)
{
	int err;

	if (!cqe || cqe > dev->caps.max_cqe)
		return -EINVAL;
	buf->n = roundup_pow_of_two(cqe);
	if (buf->n > dev->caps.max_cqe)
		return -EINVAL;
	err = udata ? user_pages(dev, buf, udata) : kernel_pages(dev, buf);
	if (err)
		pvr_cq_buf_exit(buf);
	return err;
}

void pvr_cq_buf_exit(struct pvr_cq_buf *buf)
{
	pvr_pdir_exit(&buf->pdir);
	ib_umem_release(buf->umem);
	memset(buf, 0, sizeof(*buf));
}
