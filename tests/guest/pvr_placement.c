// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Usage: pvr_placement [PEER]
 *
 * ATOMIC WRITE and FLUSH between two programs. The client writes data to the server,
 * flushes them, and announces each round by an ATOMIC WRITE. The server polls that word and
 * checks the data. Then requests that the server must refuse.
 *
 * Needs libibverbs 1.14.45 or later. On Linux before 6.2 no region can have the right to
 * FLUSH; the program says so, and runs without it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "oob.h"
#include "rdma.h"

#define PORT "18602"
#define DATA 8192
#define ROUNDS 2000
#define WORD DATA /* offset of the word behind the data */
#define BYTES (DATA + 64)
#define DEPTH 16
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

struct end {
	struct node node;
	struct ibv_mr *mr, *flushed; /* the same memory; flushed: with the right, or NULL */
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	int fd;
	uint32_t flush_rkey; /* the peer's; 0: none */
	struct place peer;
};

static struct ibv_qp *create_qp(struct end *end)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.pd = end->node.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = TEST_PORT,
		.qp_access_flags = ACCESS | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT,
	};
	struct ibv_qp *qp;

	if (end->flushed)
		attr.send_ops_flags |= IBV_QP_EX_WITH_FLUSH;
	qp = MUST_HAVE(ibv_create_qp_ex(end->node.ctx, &attr));
	MUST(ibv_modify_qp(qp, &init,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	return qp;
}

static void connect_ends(struct end *end)
{
	struct place mine = {
		.address = qp_address(&end->node, end->qp),
		.memory = (uintptr_t)end->mr->addr,
		.rkey = end->mr->rkey,
	};
	uint32_t key = end->flushed ? end->flushed->rkey : 0;

	oob_exchange(end->fd, &mine, &end->peer, sizeof(mine));
	oob_exchange(end->fd, &key, &end->flush_rkey, sizeof(key));
	qp_connect(&end->node, end->qp, &end->peer.address);
	oob_exchange(end->fd, &key, &key, sizeof(key));
}

/* The VM's RAM is volatile. */
static void check_volatile(struct end *end)
{
	if (ibv_reg_mr(end->node.pd, end->mr->addr, BYTES, ACCESS | IBV_ACCESS_FLUSH_PERSISTENT) ||
	    errno != EOPNOTSUPP)
		die("region with the right to flush it to persistence: %s, expected %s",
		    strerror(errno), strerror(EOPNOTSUPP));
}

static void open_end(struct end *end, const char *peer)
{
	node_open(&end->node);
	end->mr = mr_create(&end->node, BYTES, ACCESS);
	end->flushed =
		ibv_reg_mr(end->node.pd, end->mr->addr, BYTES, ACCESS | IBV_ACCESS_FLUSH_GLOBAL);
	if (!end->flushed)
		printf("placement: no FLUSH: %s\n", strerror(errno));
	else
		check_volatile(end);
	end->cq = MUST_HAVE(ibv_create_cq(end->node.ctx, DEPTH, NULL, NULL, 0));
	end->qp = create_qp(end);
	end->fd = oob_open(peer, PORT);
	connect_ends(end);
}

static uint8_t pattern(uint64_t round, size_t i)
{
	return (uint8_t)(round * 31 + i * 7);
}

static void post_round(struct end *end, uint64_t round)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(end->qp);
	uint8_t *data = end->mr->addr;

	for (size_t i = 0; i < DATA; i++)
		data[i] = pattern(round, i);
	ibv_wr_start(qpx);
	ibv_wr_rdma_write(qpx, end->peer.rkey, end->peer.memory);
	ibv_wr_set_sge(qpx, end->mr->lkey, (uintptr_t)data, DATA);
	if (end->flush_rkey)
		ibv_wr_flush(qpx, end->flush_rkey, end->peer.memory, DATA, IBV_FLUSH_GLOBAL,
			     round % 2 ? IBV_FLUSH_RANGE : IBV_FLUSH_MR);
	qpx->wr_id = round;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qpx, end->peer.rkey, end->peer.memory + WORD, &round);
	qpx->wr_flags = 0;
	MUST(ibv_wr_complete(qpx));
}

/* The client waits for the server between rounds: the data of a round must stay. */
static void send_rounds(struct end *end)
{
	struct ibv_wc wc;
	char go;

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		post_round(end, round);
		wc = cq_wait(end->cq);
		if (wc.status != IBV_WC_SUCCESS || wc.wr_id != round ||
		    wc.opcode != IBV_WC_ATOMIC_WRITE)
			die("round %llu: %s, opcode %d", (unsigned long long)round,
			    ibv_wc_status_str(wc.status), wc.opcode);
		oob_exchange(end->fd, &go, &go, 1);
	}
}

static void take_rounds(struct end *end)
{
	const uint8_t *data = end->mr->addr;
	const uint64_t *word = (const void *)(data + WORD);
	char go = 0;

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		double limit = now() + 60;

		while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != round)
			if (now() > limit)
				die("round %llu did not come", (unsigned long long)round);
		for (size_t i = 0; i < DATA; i++)
			if (data[i] != pattern(round, i))
				die("round %llu: byte %zu is wrong", (unsigned long long)round, i);
		oob_exchange(end->fd, &go, &go, 1);
	}
}

struct refusal {
	const char *what;
	uint8_t flush; /* placement; 0: ATOMIC WRITE */
	uint64_t offset;
	bool wrong_rkey;
	enum ibv_wc_status status;
};

static const struct refusal refusals[] = {
	{ "ATOMIC WRITE, unaligned", .offset = 4, .status = IBV_WC_REM_INV_REQ_ERR },
	{ "ATOMIC WRITE, wrong rkey", .wrong_rkey = true, .status = IBV_WC_REM_ACCESS_ERR },
	{ "ATOMIC WRITE, out of range", .offset = 1 << 20, .status = IBV_WC_REM_ACCESS_ERR },
	{ "FLUSH, wrong rkey", IBV_FLUSH_GLOBAL, .wrong_rkey = true,
	  .status = IBV_WC_REM_ACCESS_ERR },
	{ "FLUSH, out of range", IBV_FLUSH_GLOBAL, 1 << 20, .status = IBV_WC_REM_ACCESS_ERR },
	{ "FLUSH, persistent", IBV_FLUSH_PERSISTENT, .status = IBV_WC_REM_ACCESS_ERR },
};

static void try_refused(struct end *end, const struct refusal *refusal)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(end->qp);
	uint32_t key =
		(refusal->flush ? end->flush_rkey : end->peer.rkey) + 256 * refusal->wrong_rkey;
	uint64_t addr = end->peer.memory + refusal->offset, value = 0;

	ibv_wr_start(qpx);
	qpx->wr_flags = IBV_SEND_SIGNALED;
	if (refusal->flush)
		ibv_wr_flush(qpx, key, addr, 8, refusal->flush, IBV_FLUSH_RANGE);
	else
		ibv_wr_atomic_write(qpx, key, addr, &value);
	MUST(ibv_wr_complete(qpx));
	cq_expect(end->cq, refusal->status, refusal->what);
}

/* Each refusal ends the connection, so each has a new one. */
static unsigned int check_refusals(struct end *end, bool client)
{
	unsigned int done = 0;

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		if (refusals[i].flush && !end->flush_rkey)
			continue;
		MUST(ibv_destroy_qp(end->qp));
		end->qp = create_qp(end);
		connect_ends(end);
		if (client)
			try_refused(end, &refusals[i]);
		oob_exchange(end->fd, &done, &done, sizeof(done));
		done++;
	}
	return done;
}

int main(int argc, char **argv)
{
	struct end end = {};

	open_end(&end, argv[1]);
	if (argc == 2)
		send_rounds(&end);
	else
		take_rounds(&end);
	printf("placement: %d rounds, %u refusals%s\n", ROUNDS, check_refusals(&end, argc == 2),
	       end.flush_rkey ? ", with FLUSH" : "");
	MUST(ibv_destroy_qp(end.qp));
	MUST(ibv_destroy_cq(end.cq));
	if (end.flushed)
		MUST(ibv_dereg_mr(end.flushed));
	mr_destroy(end.mr);
	node_close(&end.node);
	return 0;
}
