// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* RC messages with scatter/gather, checked byte by byte against a model. */
#include "transfer.h"

#define MAX_PIECES 32
#define GAP 13 /* bytes between the pieces of a list */

struct piece {
	uint32_t offset, len;
};

T_SHARED_SETUP(rc_big, guests)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC,
					 .sq_sge = MAX_PIECES,
					 .rq_sge = MAX_PIECES };

	t_open_connected(env, &spec, T_BIG_PAGES);
}

/* Uneven pieces, the last one first in memory. */
static void split(struct piece *piece, uint32_t n, uint32_t len, uint32_t offset)
{
	uint32_t left = len;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t share = left / (n - i);

		piece[i].len = i + 1 == n ? left : i % 2 ? share / 2 : share;
		left -= piece[i].len;
	}
	for (uint32_t i = n; i--;) {
		piece[i].offset = offset;
		offset += piece[i].len + GAP;
	}
	if (offset > T_BIG_PAGES * PVR_PAGE_SIZE + GAP)
		fg_die("a transfer that does not fit the buffer");
}

static void gather(uint8_t *to, const uint8_t *buf, const struct piece *piece, uint32_t n)
{
	for (uint32_t i = 0; i < n; to += piece[i].len, i++)
		memcpy(to, buf + piece[i].offset, piece[i].len);
}

static void scatter(uint8_t *buf, const struct piece *piece, uint32_t n, const uint8_t *from)
{
	for (uint32_t i = 0; i < n; from += piece[i].len, i++)
		memcpy(buf + piece[i].offset, from, piece[i].len);
}

static void sge_list(struct pvrdma_sge *sge, const struct fg_mr *mr, const struct piece *piece,
		     uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sge[i] = fg_sge(mr, piece[i].offset, piece[i].len);
}

/* The expected contents of both buffers. */
struct model {
	uint8_t *a, *b, *message;
};

static void model_init(struct model *model, struct t_env *env, const struct t_transfer *t,
		       const struct piece *local, uint32_t sges, const struct piece *host,
		       uint32_t remote_sges)
{
	const size_t size = env->a.buf.size;

	fg_fill(env->a.buf.va, size, 1);
	fg_fill(env->b.buf.va, size, 2);
	model->a = test_malloc(size);
	model->b = test_malloc(size);
	model->message = test_malloc(t->len + 1);
	memcpy(model->a, env->a.buf.va, size);
	memcpy(model->b, env->b.buf.va, size);
	if (t->op == PVRDMA_WR_RDMA_READ) {
		gather(model->message, model->b, host, remote_sges);
		scatter(model->a, local, sges, model->message);
	} else {
		gather(model->message, model->a, local, sges);
		scatter(model->b, host, remote_sges, model->message);
	}
}

static void model_check(struct model *model, struct t_env *env)
{
	const size_t size = env->a.buf.size;

	/* Not assert_memory_equal(): it prints every one of a million differences. */
	assert_int_equal(memcmp(model->a, env->a.buf.va, size), 0);
	assert_int_equal(memcmp(model->b, env->b.buf.va, size), 0);
	test_free(model->a);
	test_free(model->b);
	test_free(model->message);
}

static enum pvrdma_wc_opcode wc_opcode(enum pvrdma_wr_opcode op)
{
	switch (op) {
	case PVRDMA_WR_RDMA_WRITE:
	case PVRDMA_WR_RDMA_WRITE_WITH_IMM:
		return PVRDMA_WC_RDMA_WRITE;
	case PVRDMA_WR_RDMA_READ:
		return PVRDMA_WC_RDMA_READ;
	default:
		return PVRDMA_WC_SEND;
	}
}

static bool is_send(enum pvrdma_wr_opcode op)
{
	return op == PVRDMA_WR_SEND || op == PVRDMA_WR_SEND_WITH_IMM;
}

void t_transfer(struct t_env *env, const struct t_transfer *t)
{
	const uint32_t sges = t->sges ? t->sges : 1;
	const uint32_t remote_sges = is_send(t->op) && t->recv_sges ? t->recv_sges : 1;
	struct piece local[MAX_PIECES], host[MAX_PIECES];
	struct pvrdma_sge sge[MAX_PIECES];
	struct model model;

	split(local, sges, t->len, t->offset);
	split(host, remote_sges, t->len, t->remote_offset);
	model_init(&model, env, t, local, sges, host, remote_sges);
	if (is_send(t->op)) {
		sge_list(sge, &env->b.mr, host, remote_sges);
		assert_true(fg_post_recv(&env->b.qp, 2, sge, remote_sges));
	} else if (t->op == PVRDMA_WR_RDMA_WRITE_WITH_IMM) {
		assert_true(fg_post_recv(&env->b.qp, 2, NULL, 0));
	}
	sge_list(sge, &env->a.mr, local, sges);
	t_post(&env->a, .wr_id = 1, .opcode = t->op, .sge = sge, .num_sge = sges, .imm = 0x01020304,
	       T_REMOTE(&env->b.mr, t->remote_offset));
	fg_run(env->host);

	expect_done(&env->a.scq, 1, wc_opcode(t->op));
	if (is_send(t->op))
		expect_recv(&env->b.rcq, 2, t->len);
	else if (t->op == PVRDMA_WR_RDMA_WRITE_WITH_IMM)
		assert_int_equal(expect_done(&env->b.rcq, 2, PVRDMA_WC_RECV_RDMA_WITH_IMM).byte_len,
				 t->len);
	expect_no_cqe(&env->a.scq);
	expect_no_cqe(&env->b.rcq);
	model_check(&model, env);
}

static void transfer_offsets(struct t_env *env, enum pvrdma_wr_opcode op)
{
	static const uint32_t offsets[] = { 0, 1, 7, 2048, 4095, 4096, 4097, 8191, 12289 };
	static const uint32_t lens[] = { 1, 64, 4096, 9000 };

	for (size_t i = 0; i < COUNT(offsets); i++) {
		for (size_t k = 0; k < COUNT(lens); k++) {
			const struct t_transfer t = {
				.op = op,
				.len = lens[k],
				.offset = offsets[i],
				.remote_offset = offsets[(i * 4 + k) % 9],
			};

			t_transfer(env, &t);
		}
	}
}

void t_transfer_lengths(struct t_env *env, enum pvrdma_wr_opcode op)
{
	const uint32_t max = T_BIG_PAGES * PVR_PAGE_SIZE;
	const uint32_t lens[] = { 0,	 1,	2,     3,	8,	 255,		256,
				  257,	 1023,	1024,  1025,	4095,	 4096,		4097,
				  65535, 65536, 65537, 1 << 18, 1 << 20, (1 << 20) + 1, max - 100,
				  max };

	for (size_t i = 0; i < COUNT(lens); i++) {
		uint32_t room = max - lens[i];
		const struct t_transfer t = {
			.op = op,
			.len = lens[i],
			.offset = room < 777 ? room : 777,
			.remote_offset = room < 4090 ? room : 4090,
		};

		t_transfer(env, &t);
	}
}

void t_transfer_lists(struct t_env *env, enum pvrdma_wr_opcode op)
{
	static const uint32_t lens[] = { 0, 5, 1000, 70001, 600001 };

	for (uint32_t sges = 1; sges <= MAX_PIECES; sges += sges < 8 ? 1 : 3) {
		for (size_t k = 0; k < COUNT(lens); k++) {
			const struct t_transfer t = {
				.op = op,
				.len = lens[k], /* the last one is cut into pieces */
				.offset = 4000 + sges,
				.remote_offset = 100 * sges,
				.sges = sges,
				.recv_sges = MAX_PIECES + 1 - sges,
			};

			t_transfer(env, &t);
		}
	}
}

const struct t_transfer_shape t_transfer_shapes[3] = {
	{ "offsets", transfer_offsets },
	{ "lengths", t_transfer_lengths },
	{ "lists", t_transfer_lists },
};
