/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Fixtures, guests and ends of a kind that only some tests need. */
#ifndef UNIT_ENDS_H
#define UNIT_ENDS_H

#include "common.h"

/* The guests of this program acknowledge these extensions, unless a test sets others. */
#define TEST_EXT(ext)                   \
	TEST_INIT                       \
	{                               \
		fg_default_ext = (ext); \
	}

int t_setup_rc_self(void **state); /* one guest, an RC end that is connected to itself */
int t_setup_uc_connected(void **state);

/*
 * Guest @number, stored in env->g[@number - 1], on the first host: its driver has come and its
 * default GID is bound.
 */
struct fg_guest *t_guest_with_ext(struct t_env *env, uint32_t number, uint32_t ext);
struct fg_guest *t_guest_in_fabric(struct t_env *env, uint32_t number, const char *fabric);
struct fg_guest *t_guest_as(struct t_env *env, uint32_t number,
			    const struct fg_guest_config *config);

/* A UD end in RTS. */
void t_open_ready(struct fg_end *end, struct fg_guest *guest);
/* An end of a new user context of @guest, with buffer pages as FG_END_PAGES. */
void t_open_user(struct fg_end *end, struct fg_ctx *ctx, struct fg_guest *guest,
		 const struct fg_qp_spec *spec);
/* Another QP in the end's place; PD and CQs that @spec does not name are the end's. */
void t_replace_qp(struct fg_end *end, struct fg_qp_spec spec);
/* The same beside the end's QP, which stays. */
void t_add_qp(struct fg_end *end, struct fg_qp_spec spec, struct fg_qp *qp);

/* TEST_OBJECT() for each row of the array @rows; the body also has row, a pointer to its row. */
#define TEST_OBJECT_CASES(fixture, type, var, init, test, rows)                                 \
	static void test##_row(struct t_env *env, type *var, const __typeof__((rows)[0]) *row); \
	TEST_CASES(fixture, test, rows)                                                         \
	{                                                                                       \
		type var;                                                                       \
                                                                                                \
		init(&var, env);                                                                \
		test##_row(env, &var, row);                                                     \
	}                                                                                       \
	static void test##_row(struct t_env *env, type *var, const __typeof__((rows)[0]) *row)

/* A row of TEST_CASES() with one value; T_CASE(): the value's expression is its name. */
struct t_case {
	const char *label;
	uint64_t value;
};
#define T_CASE(value) ((struct t_case){ #value, value })

/* a writes @len bytes of its buffer to @addr by @rkey. After a failure the pair is connected anew. */
void t_write_to(struct t_env *env, uint32_t rkey, uint64_t addr, uint32_t len, uint32_t status);

/* fg_run(), then expect_done(), expect_cqe() or expect_recv() of the end. */
struct pvrdma_cqe t_run_done_at(struct fg_end *end, uint64_t wr_id, uint32_t opcode,
				const char *file, int line);
struct pvrdma_cqe t_run_cqe_at(struct fg_end *end, uint64_t wr_id, uint32_t status,
			       const char *file, int line);
struct pvrdma_cqe t_run_recv_at(struct fg_end *end, uint64_t wr_id, uint32_t len, const char *file,
				int line);
#define run_done(end, wr_id, opcode) t_run_done_at(end, wr_id, opcode, __FILE__, __LINE__)
#define run_cqe(end, wr_id, status) t_run_cqe_at(end, wr_id, status, __FILE__, __LINE__)
#define run_recv(end, wr_id, len) t_run_recv_at(end, wr_id, len, __FILE__, __LINE__)

/* Connects a and b with one attribute, a field of struct fg_conn, that is not the default. */
#define t_connect_with(env, field, value)                      \
	do {                                                   \
		struct fg_conn t_conn = fg_conn_default;       \
                                                               \
		t_conn.field = (value);                        \
		fg_end_connect(&(env)->a, &(env)->b, &t_conn); \
	} while (0)

/* Maps a page of read-only memory, which the caller may write, at this bus address. */
#define T_ROM_GPA 0xf0000000ull
uint8_t *t_map_rom(struct fg_guest *guest);

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
