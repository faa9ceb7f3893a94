// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The command channel: one request slot, one response slot, one interrupt.
 *
 * DOC: Posted commands
 *
 * A change of a QP that the device cannot refuse is posted, unless peers notice it: the
 * caller does not wait for its end. The device executes writes of registers and doorbells
 * in order, so each later doorbell finds the change done. The next command waits for the
 * posted one first. Its response is taken then, or by the health check.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/math64.h>

#include "pvrdma.h"
#include "status.h"

#define CMD_TIMEOUT (10 * HZ)
#define CMD_LOOK (HZ / 2) /* interval of checks for a removed device */
/* Times of polling the response slot, in ns. */
#define CMD_SPIN (50 * NSEC_PER_USEC) /* without sleep */
#define CMD_POLL (2 * NSEC_PER_SEC) /* then ERR is read */

static const char *const cmd_names[] = {
	[PVR_CMD_QUERY_PORT] = "QUERY_PORT",
	[PVR_CMD_QUERY_PKEY] = "QUERY_PKEY",
	[PVR_CMD_CREATE_PD] = "CREATE_PD",
	[PVR_CMD_DESTROY_PD] = "DESTROY_PD",
	[PVR_CMD_CREATE_MR] = "CREATE_MR",
	[PVR_CMD_DESTROY_MR] = "DESTROY_MR",
	[PVR_CMD_CREATE_CQ] = "CREATE_CQ",
	[PVR_CMD_RESIZE_CQ] = "RESIZE_CQ",
	[PVR_CMD_DESTROY_CQ] = "DESTROY_CQ",
	[PVR_CMD_CREATE_QP] = "CREATE_QP",
	[PVR_CMD_MODIFY_QP] = "MODIFY_QP",
	[PVR_CMD_QUERY_QP] = "QUERY_QP",
	[PVR_CMD_DESTROY_QP] = "DESTROY_QP",
	[PVR_CMD_CREATE_UC] = "CREATE_UC",
	[PVR_CMD_DESTROY_UC] = "DESTROY_UC",
	[PVR_CMD_CREATE_BIND] = "CREATE_BIND",
	[PVR_CMD_DESTROY_BIND] = "DESTROY_BIND",
	[PVR_CMD_CREATE_SRQ] = "CREATE_SRQ",
	[PVR_CMD_MODIFY_SRQ] = "MODIFY_SRQ",
	[PVR_CMD_QUERY_SRQ] = "QUERY_SRQ",
	[PVR_CMD_DESTROY_SRQ] = "DESTROY_SRQ",
	[PVR_CMD_SET_CQ_RING] = "SET_CQ_RING",
	[PVR_CMD_ATTACH_MCAST] = "ATTACH_MCAST",
	[PVR_CMD_DETACH_MCAST] = "DETACH_MCAST",
	[PVR_CMD_QUERY_STATS] = "QUERY_STATS",
	[PVR_CMD_SUM_STATS] = "SUM_STATS",
	[PVR_CMD_MODIFY_CQ] = "MODIFY_CQ",
	[PVR_CMD_CREATE_XRCD] = "CREATE_XRCD",
	[PVR_CMD_DESTROY_XRCD] = "DESTROY_XRCD",
	[PVR_CMD_QUERY_FAULT] = "QUERY_FAULT",
	[PVR_CMD_SET_PAGES] = "SET_PAGES",
};

static_assert(ARRAY_SIZE(cmd_names) == PVR_CMD_NUM, "a name for each command");

static const char *cmd_name(u32 cmd)
{
	return cmd < PVR_CMD_NUM ? cmd_names[cmd] : "?";
}

/*
 * The device reports positive x86 errno values. A value that no verb may return becomes
 * -EIO.
 */
static int code_to_errno(u32 code)
{
	switch (code) {
	case 0:
	case EPERM:
	case ENOENT:
	case EAGAIN:
	case ENOMEM:
	case EACCES:
	case EFAULT:
	case EBUSY:
	case EEXIST:
	case EINVAL:
	case ENOSPC:
	case ERANGE:
	case ENOSYS:
	case EMSGSIZE:
	case EOPNOTSUPP:
	case EADDRINUSE:
	case EADDRNOTAVAIL:
		return -(int)code;
	default:
		return -EIO;
	}
}

static bool fail_if_gone(struct pvr_dev *dev)
{
	const char *gone = pvr_dev_gone(dev);

	if (gone)
		pvr_dev_fail(dev, gone);
	return gone;
}

/* Read the status of the last write to DSRHIGH, CTL or REQUEST. */
static int verdict_locked(struct pvr_dev *dev)
{
	u32 code;

	lockdep_assert_held(&dev->cmd.lock);
	code = pvr_reg_read(dev, PVR_REG_ERR);
	if (code == U32_MAX && fail_if_gone(dev))
		return -EIO;
	return code_to_errno(code);
}

static bool answered(const struct pvr_cmd_chan *chan)
{
	const struct pvr_resp_hdr *hdr_shm = chan->resp.va;

	return le64_to_cpu(READ_ONCE(hdr_shm->response)) == chan->cookie;
}

/* Copy the response once and use only the copy. */
static int take_response_locked(struct pvr_dev *dev, u32 cmd,
				union pvr_cmd_resp *resp)
{
	struct pvr_cmd_chan *chan = &dev->cmd;
	u64 key;
	u32 ack;

	dma_rmb(); /* the device writes the body before the key */
	memcpy(resp, chan->resp.va, sizeof(*resp));
	key = le64_to_cpu(resp->hdr.response);
	ack = le32_to_cpu(resp->hdr.ack);
	if (key != chan->cookie || ack != (PVR_CMD_RESP_ACK | cmd)) {
		dev_err(&dev->pdev->dev,
			"%s: response has ack %#x, key %#llx, expected %#x, %#llx\n",
			cmd_name(cmd), ack, key, PVR_CMD_RESP_ACK | cmd,
			chan->cookie);
		pvr_dev_fail(dev, "wrong response to a command");
		return -EIO;
	}
	return code_to_errno(resp->hdr.err);
}

/*
 * Sleep for an eighth of the time that the command has taken, so that the end is noticed
 * soon after it.
 */
static void sleep_between_polls(u64 waited)
{
	u32 us = clamp_t(u64, div_u64(waited, 8 * NSEC_PER_USEC), 20, 1000);

	usleep_range(us, us + us / 4);
}

/*
 * The device completes most commands within a few microseconds, and a registration of
 * many pages within many milliseconds. A read of ERR stops this CPU until then, so ERR is
 * read only if a response is overdue. The device does not respond to a command that it
 * cannot execute at all, for example after a reset.
 * Return: whether the response is in the slot.
 */
static bool poll_response_locked(struct pvr_dev *dev)
{
	u64 start, waited = 0;

	if (!(dev->features & PVR_EXT_RESP_POLL))
		return false;
	start = ktime_get_ns();
	while (!answered(&dev->cmd)) {
		if (waited >= CMD_POLL || pvr_dev_dead(dev))
			return false;
		if (waited < CMD_SPIN)
			cpu_relax();
		else
			sleep_between_polls(waited);
		waited = ktime_get_ns() - start;
	}
	return true;
}

/*
 * A device with extensions has written the response when the read of ERR returns, and its
 * command interrupt is masked. Other devices raise the interrupt. A late interrupt of an
 * earlier command is harmless: only the key in the slot ends the wait.
 */
static int wait_response_locked(struct pvr_dev *dev, u32 cmd,
				union pvr_cmd_resp *resp,
				unsigned long deadline)
{
	struct pvr_cmd_chan *chan = &dev->cmd;
	bool look = dev->has_ext;

	do {
		if (look && answered(chan))
			return take_response_locked(dev, cmd, resp);
		look = true;
		if (!wait_for_completion_timeout(&chan->done, CMD_LOOK))
			fail_if_gone(dev);
		if (pvr_dev_dead(dev))
			return -EIO;
	} while (time_before(jiffies, deadline));

	dev_err(&dev->pdev->dev, "%s: no response within %d s\n", cmd_name(cmd),
		CMD_TIMEOUT / HZ);
	pvr_dev_fail(dev, "command timed out");
	return -EIO;
}

/* Write the request and start the command. */
static void start_locked(struct pvr_dev *dev, union pvr_cmd_req *req)
{
	struct pvr_cmd_chan *chan = &dev->cmd;

	lockdep_assert_held(&chan->lock);
	req->hdr.response = cpu_to_le64(++chan->cookie);
	memcpy(chan->req.va, req, sizeof(*req));
	memset(chan->resp.va, 0, sizeof(struct pvr_resp_hdr));
	reinit_completion(&chan->done);
	pvr_reg_write(dev, PVR_REG_REQUEST, 0);
}

static int finish_locked(struct pvr_dev *dev, u32 cmd, union pvr_cmd_resp *resp,
			 unsigned long deadline)
{
	union pvr_cmd_resp unused;
	int err;

	if (poll_response_locked(dev))
		return take_response_locked(dev, cmd, resp ?: &unused);
	if (pvr_dev_dead(dev))
		return -EIO;
	err = verdict_locked(dev);
	/* ERR of a device without mapped BARs reads as success. */
	if (!err && dev->has_ext && !answered(&dev->cmd) && fail_if_gone(dev))
		return -EIO;
	if (err || !resp)
		return err;
	return wait_response_locked(dev, cmd, resp, deadline);
}

static int run_alone_locked(struct pvr_dev *dev, union pvr_cmd_req *req,
			    union pvr_cmd_resp *resp)
{
	unsigned long deadline = jiffies + CMD_TIMEOUT;

	if (pvr_dev_dead(dev))
		return -EIO;
	start_locked(dev, req);
	return finish_locked(dev, le32_to_cpu(req->hdr.cmd), resp, deadline);
}

/*
 * Whether a refused change of a QP says nothing about the device: the host has taken its
 * memory away, or it is being destroyed. Once its memory is gone, the device refuses all
 * changes except those to RESET and ERR.
 */
static bool is_lost(struct pvr_dev *dev, u32 handle, int refusal)
{
	bool by_host = pvr_status_cause(PVR_CMD_MODIFY_QP, -refusal) ==
		       PVR_CAUSE_HOST;
	struct pvr_qp *qp;
	unsigned long flags;
	bool lost;

	xa_lock_irqsave(&dev->qps, flags);
	qp = xa_load(&dev->qps, handle);
	if (qp && by_host)
		WRITE_ONCE(qp->is_lost, true);
	lost = !qp || qp->is_lost;
	xa_unlock_irqrestore(&dev->qps, flags);
	return lost;
}

/*
 * The device refused a posted change of a QP, which the driver had checked. So the QP has
 * failed before, as after a lost connection: its event and its completions report that. Or
 * its memory is gone. No other reason is valid.
 */
static void check_refusal_locked(struct pvr_dev *dev, u32 handle, int refusal)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	if (is_lost(dev, handle, refusal))
		return;
	req.hdr.cmd = cpu_to_le32(PVR_CMD_QUERY_QP);
	req.query_qp.qp_handle = cpu_to_le32(handle);
	err = run_alone_locked(dev, &req, &resp);
	if (!err && le32_to_cpu(resp.query_qp.attrs.qp_state) == PVR_QPS_ERR)
		return;
	if (!pvr_dev_dead(dev))
		dev_err(&dev->pdev->dev,
			"MODIFY_QP of handle %u refused: %pe, expected success or a QP in the error state\n",
			handle, ERR_PTR(refusal));
	pvr_dev_fail(dev, "it refused a valid change of a QP");
}

/* Take the response of the posted command, if there is one. */
static void settle_locked(struct pvr_dev *dev)
{
	struct pvr_cmd_chan *chan = &dev->cmd;
	union pvr_cmd_resp resp;
	int err;

	lockdep_assert_held(&chan->lock);
	if (!chan->is_posted)
		return;
	chan->is_posted = false;
	err = finish_locked(dev, PVR_CMD_MODIFY_QP, &resp,
			    jiffies + CMD_TIMEOUT);
	if (err && !pvr_dev_dead(dev))
		check_refusal_locked(dev, chan->posted_handle, err);
}

static int run_locked(struct pvr_dev *dev, union pvr_cmd_req *req,
		      union pvr_cmd_resp *resp)
{
	settle_locked(dev);
	return run_alone_locked(dev, req, resp);
}

static int post_locked(struct pvr_dev *dev, union pvr_cmd_req *req)
{
	struct pvr_cmd_chan *chan = &dev->cmd;

	settle_locked(dev);
	if (pvr_dev_dead(dev))
		return -EIO;
	chan->posted_handle = le32_to_cpu(req->modify_qp.qp_handle);
	start_locked(dev, req);
	chan->is_posted = true;
	return 0;
}

int pvr_cmd_post_modify_qp(struct pvr_dev *dev, union pvr_cmd_req *req)
{
	union pvr_cmd_resp resp;
	int err;

	if (!(dev->features & PVR_EXT_RESP_POLL))
		return pvr_cmd(dev, req, &resp);
	mutex_lock(&dev->cmd.lock);
	err = post_locked(dev, req);
	mutex_unlock(&dev->cmd.lock);
	return err;
}

void pvr_cmd_settle(struct pvr_dev *dev)
{
	lockdep_assert_held(&dev->cmd.lock);
	if (!pvr_dev_dead(dev))
		settle_locked(dev);
}

int pvr_cmd(struct pvr_dev *dev, union pvr_cmd_req *req,
	    union pvr_cmd_resp *resp)
{
	int err;

	mutex_lock(&dev->cmd.lock);
	err = run_locked(dev, req, resp);
	mutex_unlock(&dev->cmd.lock);
	if (err)
		dev_dbg(&dev->pdev->dev, "%s: %pe\n",
			cmd_name(le32_to_cpu(req->hdr.cmd)), ERR_PTR(err));
	return err;
}

static int cmd_handle(struct pvr_dev *dev, enum pvr_cmd cmd, u32 handle)
{
	union pvr_cmd_req req = {};

	req.hdr.cmd = cpu_to_le32(cmd);
	req.handle.handle = cpu_to_le32(handle);
	return pvr_cmd(dev, &req, NULL);
}

/* Objects that a device may refuse to destroy. Their memory stays pinned. */
#define REFUSALS_MAX 32

int pvr_cmd_refused(struct pvr_dev *dev, enum pvr_cmd cmd, u32 handle, int err)
{
	if (pvr_dev_dead(dev))
		return 0;
	dev_err(&dev->pdev->dev,
		"%s of handle %u refused: %pe; its memory is kept until the device is reset\n",
		cmd_name(cmd), handle, ERR_PTR(err));
	if (atomic_inc_return(&dev->refusals) >= REFUSALS_MAX)
		pvr_dev_fail(dev, "it refused to destroy too many objects");
	return pvr_dev_dead(dev) ? 0 : err;
}

int pvr_cmd_destroy(struct pvr_dev *dev, enum pvr_cmd cmd, u32 handle)
{
	int err = cmd_handle(dev, cmd, handle);

	return err ? pvr_cmd_refused(dev, cmd, handle, err) : 0;
}

int pvr_cmd_try_destroy(struct pvr_dev *dev, enum pvr_cmd cmd, u32 handle)
{
	int err = cmd_handle(dev, cmd, handle);

	if (!err || pvr_status_cause(cmd, -err) == PVR_CAUSE_PROGRAM)
		return err;
	return pvr_cmd_refused(dev, cmd, handle, err);
}

int pvr_cmd_ctl(struct pvr_dev *dev, enum pvr_ctl ctl)
{
	int err = -EIO;

	mutex_lock(&dev->cmd.lock);
	settle_locked(dev);
	if (!pvr_dev_dead(dev)) {
		pvr_reg_write(dev, PVR_REG_CTL, ctl);
		err = verdict_locked(dev);
	}
	mutex_unlock(&dev->cmd.lock);
	return err;
}

int pvr_cmd_init(struct pvr_dev *dev)
{
	struct pvr_cmd_chan *chan = &dev->cmd;
	struct device *dma_dev = &dev->pdev->dev;

	mutex_init(&chan->lock);
	init_completion(&chan->done);
	chan->cookie = (u64)get_random_u32() << 32;
	chan->req.va = dma_alloc_coherent(dma_dev, PVR_PAGE_SIZE,
					  &chan->req.dma, GFP_KERNEL);
	if (!chan->req.va)
		return -ENOMEM;
	chan->resp.va = dma_alloc_coherent(dma_dev, PVR_PAGE_SIZE,
					   &chan->resp.dma, GFP_KERNEL);
	if (!chan->resp.va) {
		dma_free_coherent(dma_dev, PVR_PAGE_SIZE, chan->req.va,
				  chan->req.dma);
		return -ENOMEM;
	}
	return 0;
}

void pvr_cmd_exit(struct pvr_dev *dev)
{
	struct pvr_cmd_chan *chan = &dev->cmd;

	dma_free_coherent(&dev->pdev->dev, PVR_PAGE_SIZE, chan->resp.va,
			  chan->resp.dma);
	dma_free_coherent(&dev->pdev->dev, PVR_PAGE_SIZE, chan->req.va,
			  chan->req.dma);
	mutex_destroy(&chan->lock);
}
