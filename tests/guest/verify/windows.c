// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows. End 1 has a region and binds a window to the middle of it; end 0 goes through the window, and
 * beside it. A refused access takes both QPs down, so each case has new ones.
 */
#include <stdio.h>
#include <string.h>

#include "verify.h"

#define REGION_BYTES 12288
#define WINDOW_FIRST 4001 /* neither begins nor ends with a page */
#define WINDOW_BYTES 4100
#define ACCESS_BYTES 64
#define RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Actions of end 1 on the window, after its bind and before end 0 uses it. */
enum deed {
	DEED_NONE,
	DEED_UNBIND, /* type 1: bound to no bytes */
	DEED_LOCAL_INV,
	DEED_REMOTE_INV, /* by end 0's SEND_WITH_INV */
	DEED_REBIND, /* end 0 uses the old key */
	DEED_REBIND_NEW_KEY,
	DEED_DEALLOC,
	DEED_OTHER_QP, /* type 2B: bound at a QP that end 0 does not use */
};

static const struct window_case {
	const char *name;
	int types; /* 1 << enum ibv_mw_type */
	int offset; /* of ACCESS_BYTES, in the window */
	enum ibv_wc_status status;
	enum deed deed;
	int rights; /* of the window; 0: RIGHTS */
	enum ibv_wr_opcode opcode; /* 0: IBV_WR_RDMA_WRITE */
} cases[] = {
#define FIRST (1 << IBV_MW_TYPE_1)
#define SECOND (1 << IBV_MW_TYPE_2)
#define BOTH (FIRST | SECOND)
#define LAST (WINDOW_BYTES - ACCESS_BYTES)
#define REFUSED IBV_WC_REM_ACCESS_ERR
#define READ .opcode = IBV_WR_RDMA_READ
	{ "write inside", BOTH, 100 },
	{ "write to the first bytes", BOTH, 0 },
	{ "write to the last bytes", BOTH, LAST },
	{ "read inside", BOTH, 100, READ },
	{ "write from a byte before", BOTH, -1, REFUSED },
	{ "write to a byte behind", BOTH, LAST + 1, REFUSED },
	{ "read to a byte behind", BOTH, LAST + 1, REFUSED, READ },
	{ "read without the right", BOTH, 100, REFUSED, .rights = IBV_ACCESS_REMOTE_WRITE, READ },
	{ "write without the right", BOTH, 100, REFUSED, .rights = IBV_ACCESS_REMOTE_READ },
	{ "write after unbinding", FIRST, 100, REFUSED, DEED_UNBIND },
	{ "write after local invalidation", SECOND, 100, REFUSED, DEED_LOCAL_INV },
	{ "write after SEND_WITH_INV", SECOND, 100, REFUSED, DEED_REMOTE_INV },
	{ "write with the key before rebinding", BOTH, 100, REFUSED, DEED_REBIND },
	{ "write after rebinding", BOTH, 100, IBV_WC_SUCCESS, DEED_REBIND_NEW_KEY },
	{ "write after deallocation", BOTH, 100, REFUSED, DEED_DEALLOC },
	{ "write through another QP", SECOND, 100, REFUSED, DEED_OTHER_QP },
};

struct window_end {
	struct ibv_cq *cq;
	struct ibv_qp *qp, *other;
	struct ibv_mr *mr;
	uint8_t *memory, expected[REGION_BYTES];
	struct ibv_mw *mw;
	uint32_t rkey;
	struct place mine, peer; /* memory and key of the window; end 0 has none */
};

/* --- both ends --- */

static void open_window_end(struct run *run, int side, struct window_end *end)
{
	struct op op = { .key = run->params.seed + side + run->round };

	*end = (struct window_end){
		.cq = MUST_HAVE(ibv_create_cq(run->node.ctx, 16, NULL, NULL, 0)),
		.mr = mr_create(&run->node, REGION_BYTES,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND),
	};
	end->memory = end->mr->addr;
	end->qp = qp_create_rc(&run->node, end->cq, 4);
	end->mine.address = qp_address(&run->node, end->qp);
	op_data(&op, 0, end->memory, REGION_BYTES);
	memcpy(end->expected, end->memory, REGION_BYTES);
}

static void close_window_end(struct window_end *end)
{
	if (end->mw)
		MUST(ibv_dealloc_mw(end->mw));
	MUST(ibv_destroy_qp(end->qp));
	if (end->other)
		MUST(ibv_destroy_qp(end->other));
	MUST(ibv_destroy_cq(end->cq));
	mr_destroy(end->mr);
}

static struct ibv_wc complete(struct run *run, struct window_end *end, const char *what,
			      enum ibv_wc_status status)
{
	struct ibv_wc wc = cq_wait(end->cq);

	if (wc.status != status)
		complain(run, "%s: %s, expected %s", what, ibv_wc_status_str(wc.status),
			 ibv_wc_status_str(status));
	return wc;
}

/* --- end 1, whose memory it is --- */

static void bind_window(struct run *run, struct window_end *end, struct ibv_qp *qp, int rights,
			uint32_t length)
{
	struct ibv_mw_bind_info info = {
		.mr = end->mr,
		.addr = (uintptr_t)end->memory + WINDOW_FIRST,
		.length = length,
		.mw_access_flags = rights,
	};
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED, .bind_info = info };
	uint32_t rkey = ibv_inc_rkey(end->mw->rkey);

	if (end->mw->type == IBV_MW_TYPE_2) {
		post_send(qp, .opcode = IBV_WR_BIND_MW,
			  .bind_mw = { .mw = end->mw, .rkey = rkey, .bind_info = info });
		end->mw->rkey = rkey;
	} else {
		MUST(ibv_bind_mw(qp, end->mw, &bind));
	}
	complete(run, end, "binding", IBV_WC_SUCCESS);
	end->rkey = end->mw->rkey;
}

static void invalidate(struct run *run, struct window_end *end)
{
	post_send(end->qp, .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = end->rkey);
	complete(run, end, "LOCAL_INV", IBV_WC_SUCCESS);
}

/* Type 2 windows are rebound when they are invalid, type 1 at any time. */
static void rebind(struct run *run, struct window_end *end, int rights)
{
	if (end->mw->type == IBV_MW_TYPE_2)
		invalidate(run, end);
	bind_window(run, end, end->qp, rights, WINDOW_BYTES);
}

static void do_deed(struct run *run, struct window_end *end, const struct window_case *c)
{
	int rights = c->rights ? c->rights : RIGHTS;
	uint32_t old = end->rkey;

	switch (c->deed) {
	case DEED_UNBIND:
		bind_window(run, end, end->qp, 0, 0);
		end->rkey = old;
		break;
	case DEED_LOCAL_INV:
		invalidate(run, end);
		break;
	case DEED_REMOTE_INV:
		post_recv(end->qp, .num_sge = 0);
		break;
	case DEED_REBIND:
		rebind(run, end, rights);
		end->rkey = old;
		break;
	case DEED_REBIND_NEW_KEY:
		rebind(run, end, rights);
		break;
	case DEED_DEALLOC:
		MUST(ibv_dealloc_mw(end->mw));
		end->mw = NULL;
		break;
	case DEED_OTHER_QP:
	case DEED_NONE:
		break;
	}
}

static void prepare_window(struct run *run, struct window_end *end, enum ibv_mw_type type,
			   const struct window_case *c)
{
	end->mw = MUST_HAVE(ibv_alloc_mw(run->node.pd, type));
	if (c->deed == DEED_OTHER_QP) {
		/* A QP binds when it is ready to send. */
		end->other = qp_create_rc(&run->node, end->cq, 4);
		qp_connect_to_itself(&run->node, end->other);
	}
	bind_window(run, end, end->other ? end->other : end->qp, c->rights ? c->rights : RIGHTS,
		    WINDOW_BYTES);
	do_deed(run, end, c);
	end->mine.memory = (uintptr_t)end->memory + WINDOW_FIRST;
	end->mine.rkey = end->rkey;
}

static void check_invalidated(struct run *run, struct window_end *end)
{
	struct ibv_wc wc = complete(run, end, "the receive", IBV_WC_SUCCESS);

	if (!(wc.wc_flags & IBV_WC_WITH_INV) || wc.invalidated_rkey != end->rkey)
		complain(run, "SEND_WITH_INV shows flags 0x%x, key 0x%x, expected WITH_INV, 0x%x",
			 wc.wc_flags, wc.invalidated_rkey, end->rkey);
}

/* --- end 0, which uses the window --- */

static void use_window(struct run *run, struct window_end *end, const struct window_case *c)
{
	const struct place *peer = &end->peer;

	if (c->deed == DEED_REMOTE_INV) {
		post_send(end->qp, .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = peer->rkey);
		complete(run, end, "SEND_WITH_INV", IBV_WC_SUCCESS);
	}
	post_send(end->qp, .opcode = c->opcode, ONE_SGE(end->mr, end->memory, ACCESS_BYTES),
		  .wr.rdma = { .remote_addr = peer->memory + c->offset, .rkey = peer->rkey });
	complete(run, end, c->name, c->status);
	run->operations++;
}

/* --- cases --- */

static void expect_data(struct run *run, struct window_end *ends, const struct window_case *c)
{
	uint8_t data[2][REGION_BYTES];

	if (c->status != IBV_WC_SUCCESS)
		return;
	for (int side = 0; side < 2; side++) {
		struct op op = { .key = run->params.seed + side + run->round };

		op_data(&op, 0, data[side], REGION_BYTES);
	}
	if (c->opcode == IBV_WR_RDMA_WRITE)
		memcpy(ends[1].expected + WINDOW_FIRST + c->offset, data[0], ACCESS_BYTES);
	else
		memcpy(ends[0].expected, data[1] + WINDOW_FIRST + c->offset, ACCESS_BYTES);
}

static void check_window_memory(struct run *run, int side, const struct window_end *end,
				const char *name)
{
	if (memcmp(end->memory, end->expected, REGION_BYTES))
		complain(run, "%s: the memory of end %d is not as expected", name, side);
}

static void run_case(struct run *run, enum ibv_mw_type type, const struct window_case *c)
{
	static struct window_end ends[2];
	const void *mine[] = { &ends[0].mine, &ends[1].mine };
	void *theirs[] = { &ends[0].peer, &ends[1].peer };

	run->round++;
	for (int side = run->first; side <= run->last; side++)
		open_window_end(run, side, &ends[side]);
	trade(run, mine, theirs, sizeof(struct place));
	for (int side = run->first; side <= run->last; side++)
		qp_connect(&run->node, ends[side].qp, &ends[side].peer.address);
	if (is_here(run, 1))
		prepare_window(run, &ends[1], type, c);
	trade(run, mine, theirs, sizeof(struct place));
	if (is_here(run, 0))
		use_window(run, &ends[0], c);
	meet(run);
	if (is_here(run, 1) && c->deed == DEED_REMOTE_INV)
		check_invalidated(run, &ends[1]);
	expect_data(run, ends, c);
	for (int side = run->first; side <= run->last; side++) {
		check_window_memory(run, side, &ends[side], c->name);
		close_window_end(&ends[side]);
	}
}

/* Type 2A windows may be used through all QPs of a PD. */
static bool applies(const struct run *run, enum ibv_mw_type type, const struct window_case *c)
{
	if (c->deed == DEED_OTHER_QP &&
	    !(run->node.dev.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B))
		return false;
	return c->types & 1 << type;
}

void run_windows(struct run *run, enum ibv_mw_type type)
{
	int num = 0;

	run->phase = type == IBV_MW_TYPE_1 ? "windows of type 1" : "windows of type 2";
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!applies(run, type, &cases[i]))
			continue;
		run_case(run, type, &cases[i]);
		num++;
	}
	meet(run);
	printf("verify: %s: %d cases\n", run->phase, num);
	fflush(stdout);
}
