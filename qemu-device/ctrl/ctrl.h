/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What the files of this folder share: commands, registers, objects' ends, reset. */
#ifndef PVR_CTRL_H
#define PVR_CTRL_H

#include "core/objects.h"

/* --------------------------------------------------------------- commands */

/*
 * One function per command. The request is a private copy; the response is zeroed
 * and its header is filled in by the caller. Return: 0 or -errno.
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

/*
 * ctrl/cmd.c: REQUEST runs the command in the slot. One that takes long goes on in steps
 * from pvr_engine_run(); whoever looks at what it does, or changes what it uses, lets it
 * finish first. Registers, RAM and state may then be looked at as if it had never waited.
 */
void pvr_cmd_run(struct pvr_adapter *adapter);
void pvr_cmd_finish(struct pvr_adapter *adapter);
/* The driver is forgotten, and with it what it asked for. */
void pvr_cmd_cancel(struct pvr_adapter *adapter);

/**
 * pvr_qp_check_modify() - may these attributes be set now (IBTA vol. 1, 11.2.5.2)
 * @mask: PVR_QPA_*
 * @next: the state that results
 *
 * Return: 0 or -EINVAL, with the reason in @why.
 */
int pvr_qp_check_modify(const struct pvr_qp *qp, uint32_t mask, const struct pvr_qp_attr *attr,
			enum pvr_qp_state *next, const char **why);

/*
 * Go on with the CREATE_MR that is the adapter's job. Return: as pvr_cmd_fn, and
 * -EINPROGRESS if that was not all.
 */
int pvr_mr_create_step(struct pvr_adapter *adapter, union pvr_cmd_resp *resp);
void pvr_mr_create_cancel(struct pvr_adapter *adapter);

/* ------------------------------------------------------------------ the objects' ends */

void pvr_pd_destroy(struct pvr_adapter *adapter, struct pvr_pd *pd);
void pvr_mr_destroy(struct pvr_adapter *adapter, struct pvr_mr *mr);
void pvr_cq_destroy(struct pvr_adapter *adapter, struct pvr_cq *cq);
void pvr_srq_destroy(struct pvr_adapter *adapter, struct pvr_srq *srq);
void pvr_qp_destroy(struct pvr_qp *qp);

/* ctrl/adapter.c: what the public functions do, with the lock held */
void pvr_adapter_do_reset(struct pvr_adapter *adapter);
void pvr_adapter_do_fail(struct pvr_adapter *adapter, const char *why);

/* ctrl/adapter.c: destroys all objects of a context, of all contexts if NULL */
void pvr_adapter_destroy_objects(struct pvr_adapter *adapter, const struct pvr_uc *uc);

/* ------------------------------------------------------- contexts, GIDs, registers */

void pvr_uc_destroy_all(struct pvr_adapter *adapter);
/* A doorbell in the page of @uc, at any offset; DMA is allowed now. */
void pvr_uar_ring(const struct pvr_uc *uc, uint32_t offset, uint32_t value);

/* ctrl/gid_cmd.c */
void pvr_gid_unbind_all(struct pvr_adapter *adapter);
/* The fabric has given GIDs to their owners: clear them, and tell the guest. */
void pvr_gid_forget_lost(struct pvr_adapter *adapter);

/* ctrl/regs.c: forget the driver; objects must be gone. */
void pvr_regs_reset(struct pvr_adapter *adapter);

/* ctrl/query.c */
void pvr_caps_fill(const struct pvr_adapter *adapter, struct pvr_caps *caps);

#endif /* PVR_CTRL_H */
