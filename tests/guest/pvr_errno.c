// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Checks the errno of verbs with invalid arguments on one device. Expects those of the
 * man pages: EINVAL for invalid arguments, ENOMEM for full queues, EBUSY for objects in
 * use, EOPNOTSUPP for unsupported features.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma.h"

#define BYTES 8192

/* More than any errno: the call failed, but named another request than the bad one. */
#define WRONG_BAD_WR 10000

/* The objects that invalid verbs are applied to. */
struct lab {
	struct node node;
	char *memory;
	struct ibv_mr *mr; /* of the memory */
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *reset, *init; /* RC, in these states */
	struct ibv_qp *with_srq; /* RC, in RESET */
	struct ibv_qp *rc, *ud; /* in RTS; the RC QP is its own peer */
};

static int total, wrong;

static const char *name_of(int err)
{
	return err == WRONG_BAD_WR ? "a wrong bad_wr" : err ? strerrorname_np(err) : "success";
}

static void expect(int err, const char *what, int got, const char *call)
{
	total++;
	if (got == err)
		return;
	printf("%s: %s (%d), expected %s: %s\n", what, name_of(got), got, name_of(err), call);
	wrong++;
}

/* Expect an errno of a verb that returns it, or of one that returns a pointer. */
#define EXPECT(err, what, call) expect(err, what, call, #call)
#define EXPECT_NULL(err, what, call) expect(err, what, (errno = 0, (call) ? 0 : errno), #call)

/* ------------------------------------------------------------------ device, PD */

static void check_device(struct lab *lab)
{
	struct ibv_context *ctx = lab->node.ctx;
	struct ibv_alloc_dm_attr dm = {};
	struct ibv_port_attr port;

	EXPECT(EINVAL, "port 0", ibv_query_port(ctx, 0, &port));
	EXPECT(EINVAL, "port 2 of 1", ibv_query_port(ctx, 2, &port));
	EXPECT(EBUSY, "PD with a region in it", ibv_dealloc_pd(lab->node.pd));
	EXPECT_NULL(EINVAL, "device memory of no bytes", ibv_alloc_dm(ctx, &dm));
}

static struct ibv_xrcd *open_xrcd(struct lab *lab, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return ibv_open_xrcd(lab->node.ctx, &attr);
}

static void check_xrcds(struct lab *lab)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	struct ibv_xrcd *xrcd;

	EXPECT_NULL(EBADF, "XRC domain of no file", open_xrcd(lab, 9999, O_CREAT));
	EXPECT_NULL(EAGAIN, "XRC domain that nobody created", open_xrcd(lab, fd, 0));
	xrcd = MUST_HAVE(open_xrcd(lab, fd, O_CREAT));
	EXPECT_NULL(EINVAL, "XRC domain created twice", open_xrcd(lab, fd, O_CREAT | O_EXCL));
	MUST(ibv_close_xrcd(xrcd));
	close(fd);
}

/* ------------------------------------------------------------------ memory */

static void check_reg(struct lab *lab)
{
	struct ibv_pd *pd = lab->node.pd;
	char *memory = lab->memory, *readonly = map_memory(4096, 0);
	uint64_t last_page = (UINT64_MAX & ~0xfffull) | ((uintptr_t)memory & 0xfff);

	MUST(mprotect(readonly, 4096, PROT_READ));
	EXPECT_NULL(EINVAL, "length 0", ibv_reg_mr(pd, memory, 0, 0));
	EXPECT_NULL(EINVAL, "remote write without local write",
		    ibv_reg_mr(pd, memory, 8, IBV_ACCESS_REMOTE_WRITE));
	EXPECT_NULL(EINVAL, "remote atomic without local write",
		    ibv_reg_mr(pd, memory, 8, IBV_ACCESS_REMOTE_ATOMIC));
	EXPECT_NULL(EINVAL, "unknown access", ibv_reg_mr(pd, memory, 8, 1 << 18));
	EXPECT_NULL(EOPNOTSUPP, "windows of memory on demand",
		    ibv_reg_mr(pd, memory, 8, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_MW_BIND));
	EXPECT_NULL(EINVAL, "length 0 on demand", ibv_reg_mr(pd, memory, 0, IBV_ACCESS_ON_DEMAND));
	EXPECT_NULL(EINVAL, "all addresses by another iova",
		    ibv_reg_mr_iova(pd, NULL, SIZE_MAX, 4096, IBV_ACCESS_ON_DEMAND));
	EXPECT_NULL(EFAULT, "no memory there", ibv_reg_mr(pd, (void *)0x1000, 8, 0));
	EXPECT_NULL(EINVAL, "an end that wraps",
		    ibv_reg_mr(pd, (void *)(UINTPTR_MAX - 100), 4096, 0));
	EXPECT_NULL(EFAULT, "read-only memory to write to",
		    ibv_reg_mr(pd, readonly, 4096, IBV_ACCESS_LOCAL_WRITE));
	EXPECT_NULL(EINVAL, "an iova whose end wraps",
		    ibv_reg_mr_iova(pd, memory, BYTES, last_page, 0));
	EXPECT_NULL(EINVAL, "a file that is no dma-buf",
		    ibv_reg_dmabuf_mr(pd, 0, 4096, 0, lab->node.ctx->cmd_fd, 0));
}

static void check_rereg(struct lab *lab)
{
	struct ibv_sge sge = { .addr = (uintptr_t)lab->memory, .length = 8, .lkey = lab->mr->lkey };

	EXPECT(-IBV_REREG_MR_ERR_INPUT, "unknown flag",
	       -ibv_rereg_mr(lab->mr, 1 << 20, NULL, NULL, 0, 0));
	EXPECT(-IBV_REREG_MR_ERR_INPUT, "translation to nothing",
	       -ibv_rereg_mr(lab->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 0, 0));
	EXPECT(-IBV_REREG_MR_ERR_INPUT, "access without its flag",
	       -ibv_rereg_mr(lab->mr, 0, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
	EXPECT(-IBV_REREG_MR_ERR_CMD, "no PD",
	       -ibv_rereg_mr(lab->mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0));
	EXPECT(EINVAL, "advice on a region that is pinned",
	       ibv_advise_mr(lab->node.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
}

/* ------------------------------------------------------------------ CQs, SRQs */

static void check_cqs(struct lab *lab)
{
	struct ibv_context *ctx = lab->node.ctx;

	EXPECT_NULL(EINVAL, "no entries", ibv_create_cq(ctx, 0, NULL, NULL, 0));
	EXPECT_NULL(EINVAL, "-1 entries", ibv_create_cq(ctx, -1, NULL, NULL, 0));
	EXPECT_NULL(EINVAL, "2^30 entries", ibv_create_cq(ctx, 1 << 30, NULL, NULL, 0));
	EXPECT_NULL(EINVAL, "completion vector 99", ibv_create_cq(ctx, 1, NULL, NULL, 99));
	EXPECT(EINVAL, "resize to no entries", ibv_resize_cq(lab->cq, 0));
	EXPECT(EINVAL, "resize to 2^30 entries", ibv_resize_cq(lab->cq, 1 << 30));
	EXPECT(EBUSY, "CQ with QPs", ibv_destroy_cq(lab->cq));
}

static struct ibv_srq *create_srq(struct lab *lab, uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };

	return ibv_create_srq(lab->node.pd, &attr);
}

static int modify_srq(struct lab *lab, int mask, uint32_t value)
{
	struct ibv_srq_attr attr = { .srq_limit = value, .max_wr = value };

	return ibv_modify_srq(lab->srq, &attr, mask);
}

static int post_srq(struct lab *lab, int num_sge)
{
	struct ibv_sge sges[9] = {};
	struct ibv_recv_wr *bad, wr = { .sg_list = sges, .num_sge = num_sge };
	int err = ibv_post_srq_recv(lab->srq, &wr, &bad);

	return err && bad != &wr ? WRONG_BAD_WR : err;
}

static int post_srq_until_full(struct lab *lab)
{
	int err = 0;

	for (int i = 0; i < 65536 && !err; i++)
		err = post_srq(lab, 0);
	return err;
}

static void check_srqs(struct lab *lab)
{
	EXPECT_NULL(EINVAL, "no requests", create_srq(lab, 0, 1));
	EXPECT_NULL(EINVAL, "2^30 requests", create_srq(lab, 1 << 30, 1));
	EXPECT_NULL(EINVAL, "1000 SGEs", create_srq(lab, 1, 1000));
	EXPECT(EINVAL, "limit above its size", modify_srq(lab, IBV_SRQ_LIMIT, 1 << 20));
	EXPECT(EINVAL, "unknown attribute of an SRQ", modify_srq(lab, 1 << 7, 1));
	EXPECT(EBUSY, "SRQ with a QP", ibv_destroy_srq(lab->srq));
	EXPECT(EINVAL, "too many SGEs for an SRQ", post_srq(lab, 9));
	EXPECT(EINVAL, "-1 SGEs for an SRQ", post_srq(lab, -1));
	EXPECT(ENOMEM, "full SRQ", post_srq_until_full(lab));
}

/* ------------------------------------------------------------------ QPs */

static struct ibv_qp_init_attr init_of(const struct lab *lab, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.send_cq = lab->cq,
		.recv_cq = lab->cq,
		.qp_type = type,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2 },
	};
}

static struct ibv_qp *create_with_cap(struct lab *lab, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr attr = init_of(lab, IBV_QPT_RC);

	attr.cap = cap;
	return ibv_create_qp(lab->node.pd, &attr);
}

/* Sizes above the limits of ibv_query_device(). */
static void check_create_qp(struct lab *lab)
{
	static const struct {
		const char *what;
		struct ibv_qp_cap cap;
	} caps[] = {
		{ "too many sends", { 1 << 20, 4, 2, 2 } },
		{ "-1 sends", { -1, 4, 2, 2 } },
		{ "too many receives", { 4, 1 << 20, 2, 2 } },
		{ "too many SGEs", { 4, 4, 100, 2 } },
		{ "too many SGEs to receive", { 4, 4, 2, 100 } },
		{ "too much inline data", { 4, 4, 2, 2, 100000 } },
	};

	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++)
		EXPECT_NULL(EINVAL, caps[i].what, create_with_cap(lab, caps[i].cap));
}

/* The QP in RESET; other members are those of a valid change to INIT. */
static int modify(struct lab *lab, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = TEST_PORT, .rate_limit = 1000 };

	return ibv_modify_qp(lab->reset, &attr, mask);
}

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

static int to_init(struct lab *lab, int port, int pkey_index)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = port,
		.pkey_index = pkey_index,
	};

	return ibv_modify_qp(lab->reset, &attr, TO_INIT);
}

static int to_rtr(struct lab *lab, enum ibv_mtu mtu, int gid_index)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = 77,
		.min_rnr_timer = 12,
		.ah_attr = {
			.port_num = TEST_PORT,
			.is_global = 1,
			.grh = { .dgid = lab->node.gid, .sgid_index = gid_index, .hop_limit = 1 },
		},
	};

	return ibv_modify_qp(lab->init, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int migrate(struct lab *lab, enum ibv_mig_state state)
{
	struct ibv_qp_attr attr = { .path_mig_state = state };

	return ibv_modify_qp(lab->rc, &attr, IBV_QP_PATH_MIG_STATE);
}

static int set_alternate_path(struct lab *lab)
{
	struct ibv_qp_attr attr = { .alt_port_num = TEST_PORT,
				    .alt_ah_attr = { .is_global = 1, .port_num = TEST_PORT } };

	return ibv_modify_qp(lab->rc, &attr, IBV_QP_ALT_PATH);
}

static void check_migration(struct lab *lab)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { .path_mig_state = IBV_MIG_ARMED };

	EXPECT(0, "migration state MIGRATED", migrate(lab, IBV_MIG_MIGRATED));
	EXPECT(EINVAL, "migration state REARM", migrate(lab, IBV_MIG_REARM));
	EXPECT(EINVAL, "migration state ARMED", migrate(lab, IBV_MIG_ARMED));
	EXPECT(EINVAL, "alternate path on RoCE", set_alternate_path(lab));
	EXPECT(0, "migration state to query",
	       ibv_query_qp(lab->rc, &attr, IBV_QP_PATH_MIG_STATE, &init));
	EXPECT(IBV_MIG_MIGRATED, "migration state", attr.path_mig_state);
}

static void check_modify_qp(struct lab *lab)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int gid_index = lab->node.gid_index;

	EXPECT(EINVAL, "RESET to RTS", modify(lab, IBV_QPS_RTS, IBV_QP_STATE));
	EXPECT(EINVAL, "RESET to RTR", modify(lab, IBV_QPS_RTR, IBV_QP_STATE));
	EXPECT(EINVAL, "state 99", modify(lab, 99, TO_INIT));
	EXPECT(EINVAL, "INIT without attributes", modify(lab, IBV_QPS_INIT, IBV_QP_STATE));
	EXPECT(EINVAL, "INIT with one too many",
	       modify(lab, IBV_QPS_INIT, TO_INIT | IBV_QP_SQ_PSN));
	EXPECT(EOPNOTSUPP, "rate limit", modify(lab, IBV_QPS_INIT, TO_INIT | IBV_QP_RATE_LIMIT));
	EXPECT(EINVAL, "port 0", to_init(lab, 0, 0));
	EXPECT(EINVAL, "port 99", to_init(lab, 99, 0));
	EXPECT(EINVAL, "partition key 999", to_init(lab, TEST_PORT, 999));
	EXPECT(EINVAL, "MTU 0", to_rtr(lab, 0, gid_index));
	EXPECT(EINVAL, "MTU 9", to_rtr(lab, 9, gid_index));
	EXPECT(EINVAL, "GID 250", to_rtr(lab, IBV_MTU_1024, 250));
	EXPECT(EOPNOTSUPP, "unknown attribute to query",
	       ibv_query_qp(lab->rc, &attr, IBV_QP_RATE_LIMIT, &init));
}

static struct ibv_ah *create_ah(struct lab *lab, int port, bool is_global)
{
	struct ibv_ah_attr attr = {
		.is_global = is_global,
		.port_num = port,
		.grh = { .dgid = lab->node.gid, .sgid_index = lab->node.gid_index },
	};

	return ibv_create_ah(lab->node.pd, &attr);
}

static void check_addresses(struct lab *lab)
{
	const union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 9 } };
	const union ibv_gid unicast = { .raw = { 0x20, 0x0e, [15] = 9 } };

	EXPECT_NULL(EINVAL, "no GRH", create_ah(lab, TEST_PORT, false));
	EXPECT_NULL(EINVAL, "address of port 0", create_ah(lab, 0, true));
	EXPECT_NULL(EINVAL, "address of port 99", create_ah(lab, 99, true));
	EXPECT(EINVAL, "RC in a multicast group", ibv_attach_mcast(lab->rc, &group, 0));
	EXPECT(EINVAL, "a unicast GID", ibv_attach_mcast(lab->ud, &unicast, 0));
	EXPECT(EINVAL, "not attached", ibv_detach_mcast(lab->ud, &group, 0));
	MUST(ibv_attach_mcast(lab->ud, &group, 0));
	EXPECT(EBUSY, "QP in a multicast group", ibv_destroy_qp(lab->ud));
	MUST(ibv_detach_mcast(lab->ud, &group, 0));
}

/* ------------------------------------------------------------------ work requests */

static int post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(qp, wr, &bad);

	return err && bad != wr ? WRONG_BAD_WR : err;
}

#define POST(qp, ...) post(qp, &(struct ibv_send_wr){ __VA_ARGS__ })
#define INLINE(bytes)                                                                      \
	.sg_list = &(struct ibv_sge){ .addr = (uintptr_t)lab->memory, .length = (bytes) }, \
	.num_sge = 1, .send_flags = IBV_SEND_INLINE

static int post_recv_in(struct ibv_qp *qp)
{
	struct ibv_recv_wr *bad = NULL, wr = {};
	int err = ibv_post_recv(qp, &wr, &bad);

	return err && bad != &wr ? WRONG_BAD_WR : err;
}

/* The provider refuses these; rdma-core-provider/tests/test_errno.c has many more. */
static void check_requests(struct lab *lab)
{
	EXPECT(EINVAL, "in RESET", POST(lab->reset, .opcode = IBV_WR_SEND));
	EXPECT(EINVAL, "in INIT", POST(lab->init, .opcode = IBV_WR_SEND));
	EXPECT(EINVAL, "flag 1 << 20", POST(lab->rc, .opcode = IBV_WR_SEND, .send_flags = 1 << 20));
	EXPECT(EINVAL, "too much inline data", POST(lab->rc, .opcode = IBV_WR_SEND, INLINE(BYTES)));
	EXPECT(EINVAL, "READ of inline data", POST(lab->rc, .opcode = IBV_WR_RDMA_READ, INLINE(8)));
	EXPECT(EINVAL, "atomic on UD", POST(lab->ud, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD));
	EXPECT(EINVAL, "receive in RESET", post_recv_in(lab->reset));
	EXPECT(EINVAL, "receive with an SRQ", post_recv_in(lab->with_srq));
}

/* ------------------------------------------------------------------ run */

static struct ibv_qp *qp_in(struct lab *lab, enum ibv_qp_type type, bool rts)
{
	struct ibv_qp_init_attr attr = init_of(lab, type);
	struct ibv_qp *qp = qp_create(&lab->node, &attr);

	if (rts)
		qp_connect_to_itself(&lab->node, qp);
	return qp;
}

static void open_qps(struct lab *lab)
{
	struct ibv_qp_init_attr attr = init_of(lab, IBV_QPT_RC);

	lab->reset = MUST_HAVE(ibv_create_qp(lab->node.pd, &attr));
	attr.srq = lab->srq;
	lab->with_srq = MUST_HAVE(ibv_create_qp(lab->node.pd, &attr));
	lab->init = qp_in(lab, IBV_QPT_RC, false);
	lab->rc = qp_in(lab, IBV_QPT_RC, true);
	lab->ud = qp_in(lab, IBV_QPT_UD, true);
}

static void open_lab(struct lab *lab)
{
	node_open(&lab->node);
	lab->cq = MUST_HAVE(ibv_create_cq(lab->node.ctx, 64, NULL, NULL, 0));
	lab->srq = MUST_HAVE(create_srq(lab, 16, 2));
	lab->mr = mr_create(&lab->node, BYTES, IBV_ACCESS_LOCAL_WRITE);
	lab->memory = lab->mr->addr;
	open_qps(lab);
}

/* Checks that the adapter still works: a message to itself arrives. */
static void check_good(struct lab *lab)
{
	struct ibv_cq *cq = MUST_HAVE(ibv_create_cq(lab->node.ctx, 2, NULL, NULL, 0));
	struct ibv_qp *qp = qp_create_rc(&lab->node, cq, 1);

	qp_connect_to_itself(&lab->node, qp);
	post_recv(qp, ONE_SGE(lab->mr, lab->memory, 64));
	post_send(qp, .opcode = IBV_WR_SEND, ONE_SGE(lab->mr, lab->memory, 64));
	cq_expect(cq, IBV_WC_SUCCESS, "a good request");
	cq_expect(cq, IBV_WC_SUCCESS, "a good request");
}

int main(void)
{
	struct lab lab = {};

	open_lab(&lab);
	check_device(&lab);
	check_xrcds(&lab);
	check_reg(&lab);
	check_rereg(&lab);
	check_cqs(&lab);
	check_srqs(&lab);
	check_create_qp(&lab);
	check_modify_qp(&lab);
	check_migration(&lab);
	check_addresses(&lab);
	check_requests(&lab);
	check_good(&lab);
	printf("%d of %d as expected\n", total - wrong, total);
	return wrong ? 1 : 0;
}
