/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Internal interface of this folder: commands, destruction of objects, registers, reset.
 */
#ifndef PVR_CTRL_H
#define PVR_CTRL_H

#include "core/objects.h"
#include "core/state_pages.h"

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

/*
 * A reset of which peers are told nothing: its state goes on elsewhere, or in this adapter if
 * @reloads: then the kept bytes are loaded at its end.
 */
void pvr_adapter_empty(struct pvr_adapter *adapter, bool reloads);

/* ctrl/run_state.c. Return: as pvr_adapter_start(). */
int pvr_adapter_do_start(struct pvr_adapter *adapter);
int pvr_adapter_do_stay_stopped(struct pvr_adapter *adapter);
void pvr_adapter_set_run_state(struct pvr_adapter *adapter, enum pvr_run_state state);

/* ctrl/migrate.c: begin to apply the pushed bytes to an empty adapter. */
void pvr_load_begin(struct pvr_adapter *adapter);
/* RAM was unmapped from a LOADED adapter. */
void pvr_load_ram_gone(struct pvr_adapter *adapter);
/* Give its GIDs to the fabric, once. Return: 0, or why one cannot be bound. */
int pvr_load_bind(struct pvr_adapter *adapter);
/* The start of a LOADED adapter. Return: 0, or -EINPROGRESS: it is loaded again. */
int pvr_load_prepare(struct pvr_adapter *adapter);
/* It starts: the state is not needed any more. */
void pvr_load_done(struct pvr_adapter *adapter);
void pvr_load_free(struct pvr_adapter *adapter);

/* ctrl/move.c. Makes the engine's origin. */
void pvr_move_init(struct pvr_engine *engine);
/* The state is read from now on. */
void pvr_move_new_token(struct pvr_adapter *adapter);
/* The same, but the state can be the one that was read last. */
void pvr_move_keep_token(struct pvr_adapter *adapter);
/* Part of the record HEAD. */
struct pvr_codec;
void pvr_move_state(struct pvr_codec *codec);
/* Ask the source of the state for the LOADED adapter. Return: 0, -EINPROGRESS or -EPERM. */
int pvr_move_take(struct pvr_adapter *adapter);
/*
 * The adapter starts with the loaded state. Return: whether its connections end, because its peers
 * have gone on without it.
 */
bool pvr_move_note_start(struct pvr_adapter *adapter);
/* A new load begins. */
void pvr_move_new_load(struct pvr_adapter *adapter);
/* The adapter runs on: no other host may start the state that was read last. */
void pvr_move_void_token(struct pvr_adapter *adapter);
/* The source has refused, or another host has the adapter: fail it. */
void pvr_move_refused(struct pvr_adapter *adapter);
int pvr_move_reclaim(struct pvr_adapter *adapter);
struct pvr_adapter *pvr_move_find(struct pvr_engine *engine, const char *fabric,
				  const uint8_t mac[6]);
/*
 * The connection to the source is needed from the end of the load on: it takes time, and the
 * directory may forget a host without GIDs.
 */
void pvr_move_need_source(struct pvr_adapter *adapter, bool needs);
/* As in struct pvr_move_ops. */
enum pvr_take pvr_move_give(struct pvr_engine *engine, const struct pvr_taker *taker);
void pvr_move_taken(struct pvr_engine *engine, const char *fabric, const uint8_t mac[6],
		    const uint8_t token[PVR_TOKEN_BYTES], struct pvr_host *from,
		    enum pvr_take answer);

/* ctrl/lone_start.c. The adapter's lock is held. */
int pvr_lone_start_init(struct pvr_adapter *adapter);
void pvr_lone_start_exit(struct pvr_adapter *adapter);
/* It has started, perhaps without its source. */
void pvr_lone_start_begin(struct pvr_adapter *adapter);
/* Its life ends, or its source knows. */
void pvr_lone_start_end(struct pvr_adapter *adapter);
void pvr_lone_start_answered(struct pvr_adapter *adapter, enum pvr_take answer);

/* Its VM goes to another host, or ends here after its state was read. */
void pvr_move_keep_gids(struct pvr_adapter *adapter);
/* Return: whether host @to may have the GIDs of the adapter. */
bool pvr_move_may_have(const struct pvr_adapter *adapter, struct pvr_host *to);

/*
 * ctrl/rivals.c: without claims, destinations of one state ask each other while its source does not
 * respond, by TAKE with the token of the state. The lock is held.
 */
void pvr_rivals_ask(struct pvr_adapter *adapter, uint64_t now);
/* The response to host @from. NO: the adapter runs here with this state, or is about to. */
enum pvr_take pvr_rivals_answer(const struct pvr_adapter *adapter, const char *from);
void pvr_rivals_answered(struct pvr_adapter *adapter, const char *from, enum pvr_take answer);

/* ctrl/elsewhere.c, see struct pvr_elsewhere. The lock is held. The response of this host. */
enum pvr_take pvr_elsewhere_answer(const struct pvr_adapter *adapter);
/* That of host @from. */
void pvr_elsewhere_answered(struct pvr_adapter *adapter, const char *from, enum pvr_take answer);

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

/* --------------------------------------------------------------------- state */

struct pvr_codec;

/*
 * Write an object to its record, or create the object that a record describes. A fault is
 * that of the codec; then nothing is created. Loading touches no guest memory.
 */
typedef void pvr_state_save_fn(struct pvr_codec *codec, void *object);
typedef void pvr_state_load_fn(struct pvr_codec *codec);
pvr_state_save_fn pvr_uc_save, pvr_pd_save, pvr_xrcd_save, pvr_cq_save, pvr_srq_save, pvr_mr_save;
pvr_state_save_fn pvr_qp_save;
pvr_state_load_fn pvr_uc_load, pvr_pd_load, pvr_xrcd_load, pvr_cq_load, pvr_srq_load;
pvr_state_load_fn pvr_qp_load;

/* ctrl/regs_state.c. Those that write and read one record. */
void pvr_head_state(struct pvr_codec *codec);
void pvr_regs_state(struct pvr_codec *codec);
/* Each writes the records of one index or object. Return: false if the index is out of range. */
bool pvr_ring_save(struct pvr_codec *codec, uint32_t i);
bool pvr_gid_save(struct pvr_codec *codec, uint32_t i);
bool pvr_cq_events_save(struct pvr_codec *codec, uint32_t vector);
void pvr_eqes_save(struct pvr_codec *codec);
void pvr_mcast_save(struct pvr_codec *codec, struct pvr_qp *qp);
pvr_state_load_fn pvr_ring_load, pvr_gid_load, pvr_cq_event_load, pvr_eqes_load, pvr_mcast_load;

/* Return: charged and zeroed memory; NULL: a fault. */
void *pvr_state_alloc(struct pvr_codec *codec, size_t size);
/* Enter a loaded object at its handle. */
void pvr_state_enter(struct pvr_codec *codec, struct pvr_table *table, void *object,
		     uint32_t handle);
/* Return: the context of a loaded object; NULL: a fault. */
struct pvr_uc *pvr_state_get_uc(struct pvr_codec *codec, uint32_t handle);

/*
 * Regions, whose pages are in records of their own. @at is the position, initially 0.
 * pvr_mr_save_pages() returns whether a record was written: there are no more otherwise.
 */
bool pvr_mr_save_pages(struct pvr_codec *codec, const struct pvr_mr *mr, struct pvr_run_cursor *at);
/* A region whose pages are being loaded, and its position. Initially all zero. */
struct pvr_mr_load {
	struct pvr_mr *mr; /* NULL: none */
	struct pvr_walk walk;
	struct pvr_run_cursor at;
};
void pvr_mr_load(struct pvr_codec *codec, struct pvr_mr_load *load);
void pvr_mr_load_pages(struct pvr_codec *codec, struct pvr_mr_load *load);
/* The next record is of another kind or region: all pages of the last one must be there. */
void pvr_mr_load_end(struct pvr_codec *codec, struct pvr_mr_load *load);
/* The binding of a window, if it has one. Return: whether a record was written. */
bool pvr_mw_save_bind(struct pvr_codec *codec, const struct pvr_mr *mr);
void pvr_mw_load_bind(struct pvr_codec *codec);
/* ctrl/mr_cmd.c: the rights that a registration may request of this adapter */
uint32_t pvr_mr_known_access(const struct pvr_adapter *adapter);
/* Free adapter->replaced. Return: false if it needs more steps. */
bool pvr_mr_free_replaced(struct pvr_adapter *adapter);

/* ctrl/qp_cmd.c: the parts of CREATE_QP, for a queue pair that is loaded */
int pvr_qp_check_create(struct pvr_adapter *adapter, const struct pvr_cmd_create_qp *cmd);
/* Also which of its requests complete with a CQE, and which a program may post. */
void pvr_qp_set_type(struct pvr_qp *qp, const struct pvr_cmd_create_qp *cmd);
int pvr_qp_resolve(struct pvr_adapter *adapter, const struct pvr_cmd_create_qp *cmd,
		   struct pvr_qp *qp);
void pvr_qp_use_rings(struct pvr_qp *qp, const struct pvr_cmd_create_qp *cmd);
void pvr_qp_link(struct pvr_qp *qp);
void pvr_qp_free(struct pvr_qp *qp);
/* Return: the first attribute that MODIFY_QP would have refused, or NULL. */
const char *pvr_qp_bad_attr(const struct pvr_qp *qp);

/* ------------------------------------------------------- contexts, GIDs, registers */

void pvr_uc_destroy_all(struct pvr_adapter *adapter);
/*
 * Execute a doorbell of the page of @uc. @offset may have any value. The adapter may do
 * DMA.
 */
void pvr_uar_ring(const struct pvr_uc *uc, uint32_t offset, uint32_t value);

/* ctrl/gid_cmd.c */
/* Return: whether it may be the address of an adapter. */
bool pvr_gid_is_usable(const uint8_t gid[16]);
void pvr_gid_unbind_all(struct pvr_adapter *adapter);
/* Clear GIDs that the fabric has given to their owners, and send the guest GID_CHANGE. */
void pvr_gid_forget_lost(struct pvr_adapter *adapter);

/* ctrl/regs.c: reset all registers. All objects must be destroyed. */
void pvr_regs_reset(struct pvr_adapter *adapter);

/* ctrl/query.c */
void pvr_caps_fill(const struct pvr_adapter *adapter, struct pvr_caps *caps);

#endif /* PVR_CTRL_H */
