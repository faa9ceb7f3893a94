/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Ends of connections: fixtures, queue pairs, timers, and what is posted to them. */
#ifndef UNIT_ENDS_H
#define UNIT_ENDS_H

#include "common.h"

int t_setup_rc_self(void **state); /* one guest, an RC end that is connected to itself */
int t_setup_uc_connected(void **state);
/* As t_setup_rc_connected(); the device has polled the send queues after RTS. */
int t_setup_rc_idle(void **state);

/*
 * Guest @number, stored in env->g[@number - 1], on the first host: its driver has come and its
 * default GID is bound.
 */
struct fg_guest *t_guest_with_ext(struct t_env *env, uint32_t number, uint32_t ext);
struct fg_guest *t_guest_in_fabric(struct t_env *env, uint32_t number, const char *fabric);
struct fg_guest *t_guest_as(struct t_env *env, uint32_t number,
			    const struct fg_guest_config *config);

/* An end of a UD or GSI QP in RTS. */
void t_open_ready(struct fg_end *end, struct fg_guest *guest, enum pvr_qp_type type);
/* Opens a and b in the kernel contexts, with buffers of @pages, and connects them. */
void t_open_connected(struct t_env *env, const struct fg_qp_spec *spec, uint32_t pages);
/* An end of a new user context of @guest, with buffer pages as FG_END_PAGES. */
void t_open_user(struct fg_end *end, struct fg_ctx *ctx, struct fg_guest *guest,
		 const struct fg_qp_spec *spec);
/* Another QP beside the end's; type, PD and CQs that @spec does not name are the end's. */
struct fg_qp t_qp_create(struct fg_end *end, struct fg_qp_spec spec);
/* It takes the place of the end's QP. */
void t_qp_replace(struct fg_end *end, struct fg_qp_spec spec);
/* MODIFY_QP with the state alone. */
void t_qp_set_state(struct fg_end *end, enum pvr_qp_state state);
/* A new SRQ of @wr requests of one SGE on the end's PD, and a new QP that receives from it. */
void t_srq_use(struct fg_end *end, uint32_t wr, struct fg_srq *srq);
/* Posts a request of one SGE and rings the doorbell. */
void t_srq_recv(struct fg_srq *srq, uint64_t wr_id, const struct fg_mr *mr, uint64_t offset,
		uint32_t len);
/* For a QP of @end's type on its PD and CQs. */
struct fg_qp_spec end_spec(struct fg_end *end);
/* Empties the CQs of @end and the event ring of its guest. */
void end_drain(struct fg_end *end);
/* The end's MR becomes one of @len bytes without a va, see t_wide_mr(). */
void t_widen(struct fg_end *end, uint32_t len);

/* a writes @len bytes of its buffer to @addr by @rkey. After a failure the pair is connected anew. */
void t_write_to(struct t_env *env, uint32_t rkey, uint64_t addr, uint32_t len, uint32_t status);

#define T_RNR_FOREVER 7 /* an rnr_retry */
#define T_RNR_LONGEST 0 /* a min_rnr_timer: 655 ms */

/* fg_conn_default with these limits for RNR NAKs, or for requests without response. */
struct fg_conn t_conn_rnr(uint8_t rnr_retry, uint8_t min_rnr_timer);
struct fg_conn t_conn_ack(uint8_t timeout, uint8_t retry_cnt);

/* Connects a and b with one attribute, a field of struct fg_conn, that is not the default. */
#define t_connect_with(env, field, value)                      \
	do {                                                   \
		struct fg_conn t_conn = fg_conn_default;       \
                                                               \
		t_conn.field = (value);                        \
		fg_end_connect(&(env)->a, &(env)->b, &t_conn); \
	} while (0)

/* As t_send() and t_recv(), without the doorbell. */
void t_put_send(struct fg_end *end, uint64_t wr_id, uint64_t offset, uint32_t len);
void t_put_recv(struct fg_end *end, uint64_t wr_id, uint64_t offset, uint32_t len);
/* A signaled RDMA WRITE of 8 bytes without the doorbell. Return: false if the queue is full. */
bool t_try_put_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id);
void t_put_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id);
/* With the doorbell. */
void t_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id);

/* Empty messages from a to b, numbered from @first, whose CQEs at b stay unread. */
void t_fill_cq(struct t_env *env, uint64_t first, uint32_t n);
/* Such messages are the next completions of the receive CQ of b. */
void t_expect_recvs(struct t_env *env, uint64_t first, uint32_t n);

/* The name of the path that a's QP takes. */
void expect_path(struct t_env *env, const char *name);

#define expect_no_timer(host) assert_true(pvr_engine_deadline((host)->engine, 0) == UINT64_MAX)

/* A message of @len bytes, by a datagram if the ends have UD QPs. */
void t_send_to(struct fg_end *from, const struct fg_end *to, uint64_t wr_id, uint32_t len);
/*
 * a's request fails its send queue alone (SQE): the next request is flushed, receives go on, and
 * RTS starts the queue again.
 */
void t_expect_send_error(struct t_env *env, uint64_t wr_id, uint32_t status);

/* No message arrives while the link of a or of b is down; afterwards messages arrive again. */
void t_expect_link_needed(struct t_env *env);
/* A receive request fails b alone: a's request succeeds, b is in ERR. */
void t_expect_receiver_fails(struct t_env *env);

/* An SGE by which a receive request fails. */
#define T_BAD_SGE ((struct pvrdma_sge){ FG_USER_VA, 200, 0xbad })
void t_recv_sge(struct fg_end *end, uint64_t wr_id, struct pvrdma_sge sge);

#endif /* UNIT_ENDS_H */
