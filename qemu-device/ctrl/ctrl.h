/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Internal interface of this folder: commands, destruction of objects, registers, reset.
 */
#ifndef PVR_CTRL_H
#define PVR_CTRL_H

#include "core/objects.h"

/* --------------------------------------------------------------- commands */

/*
 * One function per command. @req: a private copy; @resp: zeroed; the caller sets its
 * header.
 * Return: 0, -errno, or -EINPROGRESS for a command that continues in steps, see
 * pvr_cmd_begin().
 */
typedef int pvr_cmd_fn(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		       union pvr_cmd_resp *resp);
pvr_cmd_fn pvr_cmd_query_port, pvr_cmd_query_pkey;
pvr_cmd_fn pvr_cmd_create_uc, pvr_cmd_destroy_uc;
pvr_cmd_fn pvr_cmd_create_pd, pvr_cmd_destroy_pd;
pvr_cmd_fn pvr_cmd_create_mr, pvr_cmd_destroy_mr;
pvr_cmd_fn pvr_cmd_create_cq, pvr_cmd_resize_cq, pvr_cmd_destroy_cq;
pvr_cmd_fn pvr_cmd_set_cq_ring;
pvr_cmd_fn pvr_cmd_create_qp, pvr_cmd_modify_qp, pvr_cmd_query_qp, pvr_cmd_destroy_qp;
pvr_cmd_fn pvr_cmd_create_srq, pvr_cmd_modify_srq, pvr_cmd_query_srq, pvr_cmd_destroy_srq;
pvr_cmd_fn pvr_cmd_create_bind, pvr_cmd_destroy_bind;
pvr_cmd_fn pvr_cmd_attach_mcast, pvr_cmd_detach_mcast;
pvr_cmd_fn pvr_cmd_query_stats;
pvr_cmd_fn pvr_cmd_sum_stats;
pvr_cmd_fn pvr_cmd_modify_cq;
pvr_cmd_fn pvr_cmd_query_fault;
pvr_cmd_fn pvr_cmd_set_pages;
pvr_cmd_fn pvr_cmd_create_xrcd, pvr_cmd_destroy_xrcd;

/*
 * ctrl/cmd.c: execute the command in the request slot. A long command continues in steps
 * from pvr_engine_run(). Before each access to its result, and each change of memory or
 * state that it uses, call pvr_cmd_finish(), which executes the remaining steps at once.
 */
void pvr_cmd_run(struct pvr_adapter *adapter);
void pvr_cmd_finish(struct pvr_adapter *adapter);
/*
 * Begin a command that may need several steps, and execute the first one. @execute and
 * @cancel: members run and cancel of struct pvr_job. Return: that of @execute.
 */
int pvr_cmd_begin(struct pvr_adapter *adapter, const union pvr_cmd_req *req,
		  int (*execute)(struct pvr_adapter *adapter, union pvr_cmd_resp *resp),
		  void (*cancel)(struct pvr_adapter *adapter), union pvr_cmd_resp *resp);
/* The function @cancel of commands with a ring that moves. */
void pvr_cmd_cancel_move(struct pvr_adapter *adapter);
/* Cancel a long command: at reset, at failure, and when bus mastering ends. */
void pvr_cmd_cancel(struct pvr_adapter *adapter);

/**
 * pvr_qp_check_modify() - check the attributes of MODIFY_QP (IBTA 11.2.5.2)
 * @mask: PVR_QPA_*
 * @next: receives the resulting state
 *
 * Return: 0 or -EINVAL, with the reason in @why.
 */
int pvr_qp_check_modify(const struct pvr_qp *qp, uint32_t mask, const struct pvr_qp_attr *attr,
			enum pvr_qp_state *next, const char **why);

/* ------------------------------------------------------------- destruction of objects */

void pvr_pd_destroy(struct pvr_adapter *adapter, struct pvr_pd *pd);
void pvr_xrcd_destroy(struct pvr_adapter *adapter, struct pvr_xrcd *xrcd);
/* The windows of regions and queue pairs must be unbound. */
void pvr_mr_destroy(struct pvr_adapter *adapter, struct pvr_mr *mr);
void pvr_cq_destroy(struct pvr_adapter *adapter, struct pvr_cq *cq);
/* No XRC target may have it, see pvr_xrc_release_some(). */
void pvr_srq_destroy(struct pvr_adapter *adapter, struct pvr_srq *srq);
void pvr_qp_destroy(struct pvr_qp *qp);

/* ctrl/adapter.c: the public functions without their locking; the lock is held */
/* Executes the first step of a reset; pvr_cmd_finish() executes the rest at once. */
void pvr_adapter_do_reset(struct pvr_adapter *adapter);
void pvr_adapter_do_fail(struct pvr_adapter *adapter, const char *why);

/* ctrl/run_state.c. Return: false if it runs already. */
bool pvr_adapter_do_start(struct pvr_adapter *adapter);

/*
 * ctrl/reset.c: destroy objects of context @uc, or of all contexts if NULL, as many as
 * this step may. The job's members table and handle are the position, initially 0.
 * Return: whether none is left.
 */
bool pvr_adapter_destroy_some(struct pvr_adapter *adapter, const struct pvr_uc *uc);

/* ctrl/ram_gone.c: suspend DMA between the steps of a job, or end that. */
void pvr_adapter_suspend(struct pvr_adapter *adapter, bool suspended);
/* Return: whether the job is a removal of RAM. Only a reset cancels it. */
bool pvr_adapter_is_unmapping(const struct pvr_adapter *adapter);

/* ------------------------------------------------------- contexts, GIDs, registers */

void pvr_uc_destroy_all(struct pvr_adapter *adapter);
/*
 * Execute a doorbell of the page of @uc. @offset may have any value. The adapter may do
 * DMA.
 */
void pvr_uar_ring(const struct pvr_uc *uc, uint32_t offset, uint32_t value);

/* ctrl/gid_cmd.c */
void pvr_gid_unbind_all(struct pvr_adapter *adapter);
/* Clear GIDs that the fabric has given to their owners, and send the guest GID_CHANGE. */
void pvr_gid_forget_lost(struct pvr_adapter *adapter);

/* ctrl/regs.c: reset all registers. All objects must be destroyed. */
void pvr_regs_reset(struct pvr_adapter *adapter);

/* ctrl/query.c */
void pvr_caps_fill(const struct pvr_adapter *adapter, struct pvr_caps *caps);

#endif /* PVR_CTRL_H */
