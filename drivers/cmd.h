/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The command channel. */
#ifndef PVR_CMD_H
#define PVR_CMD_H

#include <linux/completion.h>
#include <linux/mutex.h>

#include "pdir.h"
#include "pvrdma_abi_cmd.h"

struct pvr_dev;

struct pvr_cmd_chan {
	struct mutex lock; /* one command at a time; protects this struct */
	struct completion done; /* vector 0, maybe of an earlier command */
	struct pvr_page req; /* command slot */
	struct pvr_page resp; /* response slot */
	u64 cookie; /* key of the last command */
	bool is_posted; /* the last command's response was not taken yet */
	u32 posted_handle; /* the QP of that command */
};

/* cmd.c */

int pvr_cmd_init(struct pvr_dev *dev);
void pvr_cmd_exit(struct pvr_dev *dev);

/**
 * pvr_cmd() - run one command and wait for its end
 * @dev: the adapter
 * @req: zeroed and filled by the caller; this function sets the key in the header
 * @resp: private copy of the response, or NULL for commands that have none
 *
 * Waits uninterruptibly for at most 10 s, so that driver and device always agree on which
 * objects exist. A device that takes longer is declared dead.
 *
 * Context: may sleep.
 * Return: 0, the status of the command as -errno, or -EIO if the device is dead.
 */
int pvr_cmd(struct pvr_dev *dev, union pvr_cmd_req *req,
	    union pvr_cmd_resp *resp);

/**
 * pvr_cmd_post_modify_qp() - start a MODIFY_QP that cannot fail, without waiting for its end
 * @dev: the adapter
 * @req: as for pvr_cmd(); the device has no reason to refuse it, unless the QP has failed
 *
 * Without PVR_EXT_RESP_POLL this is pvr_cmd(). A device that refuses the command although
 * the QP has not failed is declared dead.
 *
 * Context: may sleep.
 * Return: 0, or -EIO if the device is dead.
 */
int pvr_cmd_post_modify_qp(struct pvr_dev *dev, union pvr_cmd_req *req);

/**
 * pvr_cmd_settle() - take the response of a posted command
 * @dev: the adapter; the caller holds cmd.lock
 *
 * Context: may sleep.
 */
void pvr_cmd_settle(struct pvr_dev *dev);

/**
 * pvr_cmd_destroy() - run a DESTROY_* command that names only a handle
 * @dev: the adapter
 * @cmd: enum pvr_cmd
 * @handle: an object that no program can keep busy at the device
 *
 * Context: may sleep.
 * Return: 0: the device no longer has the object, or is dead, so the caller may free the
 * memory; or an error: pvr_cmd_refused().
 */
int pvr_cmd_destroy(struct pvr_dev *dev, enum pvr_cmd cmd, u32 handle);

/**
 * pvr_cmd_try_destroy() - destroy an object that a program may keep busy
 * @dev: the adapter
 * @cmd: enum pvr_cmd
 * @handle: the object
 *
 * Like pvr_cmd_destroy(), except that an answer that a program can cause is no refusal:
 * nothing has changed. See status.h.
 *
 * Context: may sleep.
 * Return: as pvr_cmd_destroy(), or the answer, which is -EBUSY.
 */
int pvr_cmd_try_destroy(struct pvr_dev *dev, enum pvr_cmd cmd, u32 handle);

/**
 * pvr_cmd_refused() - the device did not destroy an object, and only a defect explains that
 * @dev: the adapter
 * @cmd: enum pvr_cmd, of the command
 * @handle: the object
 * @err: its answer
 *
 * A refusal is logged. It costs this object only: the device may still use the memory,
 * which the caller passes to pvr_keep(). A device that refuses too often is declared
 * dead.
 *
 * Context: may sleep.
 * Return: @err, or 0 if the device is dead.
 */
int pvr_cmd_refused(struct pvr_dev *dev, enum pvr_cmd cmd, u32 handle, int err);

/**
 * pvr_cmd_ctl() - write the CTL register and read the status
 * @dev: the adapter
 * @ctl: enum pvr_ctl, except RESET
 *
 * Context: may sleep.
 * Return: as pvr_cmd().
 */
int pvr_cmd_ctl(struct pvr_dev *dev, enum pvr_ctl ctl);

#endif /* PVR_CMD_H */
