/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Ends of connections with other queue pairs, memory or timers than fg_end_open() gives them. */
#ifndef UNIT_CONN_H
#define UNIT_CONN_H

#include "common.h"

/* As t_setup_rc_connected(); the device has polled the send queues after RTS. */
int t_setup_rc_idle(void **state);

#define T_RNR_FOREVER 7 /* an rnr_retry */
#define T_RNR_LONGEST 0 /* a min_rnr_timer: 655 ms */

/* Another queue pair on the PD and the CQs of @end, unless @spec names others; RC by default. */
struct fg_qp t_qp_create(const struct fg_end *end, struct fg_qp_spec spec);
/* It takes the place of the end's queue pair. */
void t_qp_replace(struct fg_end *end, struct fg_qp_spec spec);
/* MODIFY_QP with the state alone. */
void t_qp_set_state(struct fg_end *end, enum pvr_qp_state state);
/* The end's MR becomes one of @len bytes without a va, see t_wide_mr(). */
void t_widen(struct fg_end *end, uint32_t len);

/* fg_conn_default with these limits for RNR NAKs, or for requests without response. */
struct fg_conn t_conn_rnr(uint8_t rnr_retry, uint8_t min_rnr_timer);
struct fg_conn t_conn_ack(uint8_t timeout, uint8_t retry_cnt);

/* As t_send() and t_recv(), without the doorbell. */
void t_put_send(struct fg_end *end, uint64_t wr_id, uint64_t offset, uint32_t len);
void t_put_recv(struct fg_end *end, uint64_t wr_id, uint64_t offset, uint32_t len);
/* A signaled RDMA WRITE of 8 bytes without the doorbell. Return: false if the queue is full. */
bool t_try_put_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id);
void t_put_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id);
/* With the doorbell. */
void t_write(struct fg_end *from, const struct fg_end *to, uint64_t wr_id);
#define expect_written(end, wr_id) expect_done(&(end)->scq, wr_id, PVRDMA_WC_RDMA_WRITE)
#define expect_sent(end, wr_id) expect_done(&(end)->scq, wr_id, PVRDMA_WC_SEND)

/* Empty messages from a to b, numbered from @first, whose CQEs at b stay unread. */
void t_fill_cq(struct t_env *env, uint64_t first, uint32_t n);
/* Such messages are the next completions of the receive CQ of b. */
void t_expect_recvs(struct t_env *env, uint64_t first, uint32_t n);

/* As expect_*(), after the device has run until it has nothing to do. */
#define await_cqe(cq, wr_id, status)            \
	do {                                    \
		fg_run((cq)->ctx->guest->host); \
		expect_cqe(cq, wr_id, status);  \
	} while (0)
#define await_recv(cq, wr_id, len)              \
	do {                                    \
		fg_run((cq)->ctx->guest->host); \
		expect_recv(cq, wr_id, len);    \
	} while (0)
#define await_sent(end, wr_id)              \
	do {                                \
		fg_run((end)->guest->host); \
		expect_sent(end, wr_id);    \
	} while (0)
#define await_written(end, wr_id)           \
	do {                                \
		fg_run((end)->guest->host); \
		expect_written(end, wr_id); \
	} while (0)
#define await_no_cqe(cq)                        \
	do {                                    \
		fg_run((cq)->ctx->guest->host); \
		expect_no_cqe(cq);              \
	} while (0)
#define expect_no_timer(host) assert_true(pvr_engine_deadline((host)->engine, 0) == UINT64_MAX)

#endif /* UNIT_CONN_H */
