// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Checks of keys: PD, range and rights, at the sender, the receiver and remotely. */
#include "ends.h"

#define LEN 5000u /* crosses a page */
#define SIZE (FG_END_PAGES * PVR_PAGE_SIZE) /* of each end's region */

struct keys_env {
	struct t_env *env;
	struct fg_end *a, *b;
	/* The request that is tried: a's entry, b's entry (SEND), or b's range (RDMA). */
	struct pvrdma_sge local, recv;
	uint64_t remote_addr;
	uint32_t rkey;
};

static void keys_init(struct keys_env *k, struct t_env *env)
{
	*k = (struct keys_env){ .env = env, .a = &env->a, .b = &env->b };
	k->local = fg_sge(&k->a->mr, 100, LEN);
	k->recv = fg_sge(&k->b->mr, 200, LEN);
	k->remote_addr = k->b->mr.start + 300;
	k->rkey = k->b->mr.rkey;
	fg_fill(k->a->buf.va, k->a->buf.size, 1);
	fg_fill(k->b->buf.va, k->b->buf.size, 2);
}

#define TEST_KEYS(name) TEST_OBJECT(rc_connected, struct keys_env, k, keys_init, name)

#define TEST_KEYS_CASES(fixture, name, rows) \
	TEST_OBJECT_CASES(fixture, struct keys_env, k, keys_init, name, rows)

static void post(struct keys_env *k, enum pvrdma_wr_opcode op)
{
	if (op == PVRDMA_WR_SEND)
		t_recv_sge(k->b, 2, k->recv);
	t_post(k->a, .wr_id = 1, .opcode = op, .sge = &k->local, .num_sge = 1,
	       .remote_addr = k->remote_addr, .rkey = k->rkey);
	fg_run(k->env->host);
}

/* Makes the ends as new, for the next request. */
static void reconnect(struct keys_env *k)
{
	t_reconnect(k->env);
	fg_run(k->env->host);
	end_drain(k->a);
	end_drain(k->b);
	keys_init(k, k->env);
}

static void expect_good_send(struct keys_env *k, struct pvrdma_sge sge)
{
	k->local = sge;
	post(k, PVRDMA_WR_SEND);
	expect_sent(k->a, 1);
	expect_recv(&k->b->rcq, 2, sge.length);
}

/* Neither buffer may have changed. */
static void expect_untouched(struct keys_env *k)
{
	assert_int_equal(fg_mismatch(k->a->buf.va, k->a->buf.size, 1), k->a->buf.size);
	assert_int_equal(fg_mismatch(k->b->buf.va, k->b->buf.size, 2), k->b->buf.size);
}

/* The sender's own fault: the peer gets nothing of it. */
static void expect_local_error(struct keys_env *k, enum pvrdma_wr_opcode op, struct pvrdma_sge sge)
{
	k->local = sge;
	post(k, op);
	expect_cqe(&k->a->scq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_state(k->a, PVR_QPS_ERR);
	expect_state(k->b, PVR_QPS_RTS);
	expect_no_cqe(&k->b->rcq);
	expect_no_event(k->env->g[1]);
	expect_untouched(k);
	reconnect(k);
}

/* The receiver's fault: both ends fail. */
static void expect_receiver_error(struct keys_env *k, struct pvrdma_sge sge)
{
	k->recv = sge;
	post(k, PVRDMA_WR_SEND);
	expect_cqe(&k->b->rcq, 2, PVRDMA_WC_LOC_PROT_ERR);
	expect_cqe(&k->a->scq, 1, PVRDMA_WC_REM_OP_ERR);
	expect_state(k->a, PVR_QPS_ERR);
	expect_state(k->b, PVR_QPS_ERR);
	expect_untouched(k);
	reconnect(k);
}

static void expect_remote_error(struct keys_env *k, enum pvrdma_wr_opcode op, uint32_t rkey)
{
	k->rkey = rkey;
	post(k, op);
	expect_cqe(&k->a->scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect_state(k->a, PVR_QPS_ERR);
	expect_state(k->b, PVR_QPS_ERR);
	expect_one_event(k->env->g[1], PVR_EVENT_QP_ACCESS_ERR, k->b->qp.handle);
	expect_no_event(k->env->g[0]);
	expect_untouched(k);
	reconnect(k);
}

/* A region of the end's buffer. */
static struct fg_mr mr_with(struct fg_end *end, uint32_t access)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create(&end->pd, &end->buf, access, &mr));
	return mr;
}

/* Regions whose keys requests of the end cannot use. */
static struct fg_mr no_mr(struct fg_end *end)
{
	return (struct fg_mr){ .guest = end->guest };
}

static struct fg_mr mr_of_another_pd(struct fg_end *end)
{
	struct fg_end other;

	fg_end_open(&other, end->guest, PVR_QPT_RC);
	return other.mr;
}

static struct fg_mr stale_mr(struct fg_end *end)
{
	struct fg_mr mr = mr_with(end, FG_ACCESS_ALL);

	expect_ok(fg_mr_destroy(&mr));
	return mr;
}

static struct fg_mr dma_mr(struct fg_end *end)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create_dma(&end->pd, &mr));
	return mr;
}

TEST_KEYS(test_valid_requests_succeed)
{
	expect_good_send(k, k->local);
	post(k, PVRDMA_WR_RDMA_WRITE);
	expect_written(k->a, 1);
	post(k, PVRDMA_WR_RDMA_READ);
	expect_done(&k->a->scq, 1, PVRDMA_WC_RDMA_READ);
}

static const struct t_case wrong_bits[] = {
	T_CASE(1),	 T_CASE(0x10),	   T_CASE(0x80),      T_CASE(0x100),	  T_CASE(0x1000),
	T_CASE(0x10000), T_CASE(0x100000), T_CASE(0x1000000), T_CASE(0x10000000), T_CASE(0x80000000)
};

TEST_KEYS_CASES(rc_connected, test_send_with_wrong_lkeys, wrong_bits)
{
	k->local.lkey ^= row->value;
	expect_local_error(k, PVRDMA_WR_SEND, k->local);
}

TEST_KEYS(test_keys_of_all_zeros_or_ones)
{
	struct pvrdma_sge sge = k->local;

	sge.lkey = 0;
	expect_local_error(k, PVRDMA_WR_SEND, sge);
	expect_local_error(k, PVRDMA_WR_RDMA_READ, sge);
	sge.lkey = UINT32_MAX;
	expect_local_error(k, PVRDMA_WR_RDMA_WRITE, sge);
}

TEST_KEYS(test_send_from_an_mr_of_another_pd)
{
	k->local.lkey = mr_of_another_pd(k->a).lkey;
	expect_local_error(k, PVRDMA_WR_SEND, k->local);
}

TEST_KEYS(test_send_from_an_mr_of_another_guest)
{
	for (int i = 0; i < 10; i++)
		k->local.lkey = mr_with(k->b, FG_ACCESS_ALL).lkey;
	expect_local_error(k, PVRDMA_WR_SEND, k->local);
}

TEST_KEYS(test_send_with_a_stale_lkey)
{
	const struct pvrdma_sge stale = k->local;

	expect_ok(fg_mr_destroy(&k->a->mr));
	k->a->mr.length = 0;
	expect_local_error(k, PVRDMA_WR_SEND, stale);
	mr_with(k->a, FG_ACCESS_ALL);
	expect_local_error(k, PVRDMA_WR_SEND, stale);
}

static const struct {
	const char *label;
	uint64_t offset;
	uint32_t len;
} bad_ranges[] = { { "byte before", -1ull, 1 },
		   { "from the byte before", -1ull, LEN },
		   { "byte behind", SIZE, 1 },
		   { "to the byte behind", SIZE - 10, 11 },
		   { "one byte too long", 0, SIZE + 1 },
		   { "longest", 0, UINT32_MAX },
		   { "32 bits higher", 1ull << 32, 1 },
		   { "63 bits higher", 1ull << 63, 1 },
		   { "address 0", -FG_USER_VA, 1 },
		   { "wraps", -FG_USER_VA - 1, 2 },
		   { "wraps, longest", -FG_USER_VA - 1, UINT32_MAX } };

TEST_KEYS_CASES(rc_connected, test_send_outside_the_mr, bad_ranges)
{
	expect_local_error(k, PVRDMA_WR_SEND, fg_sge(&k->a->mr, row->offset, row->len));
}

TEST_KEYS(test_send_of_the_last_byte)
{
	expect_good_send(k, fg_sge(&k->a->mr, SIZE - 1, 1));
}

TEST_KEYS(test_mr_bounds_are_bytes_not_pages)
{
	struct fg_mr mr;

	expect_ok(fg_mr_create_part(&k->a->pd, &k->a->buf, 77, 5000, FG_ACCESS_ALL, &mr));
	expect_good_send(k, fg_sge(&mr, 0, 5000));
	reconnect(k);
	expect_local_error(k, PVRDMA_WR_SEND, fg_sge(&mr, -1ull, 1));
	expect_local_error(k, PVRDMA_WR_SEND, fg_sge(&mr, 5000, 1));
	expect_local_error(k, PVRDMA_WR_SEND, fg_sge(&mr, 4999, 2));
}

TEST_KEYS(test_send_from_read_only_mr_is_fine)
{
	struct fg_mr mr = mr_with(k->a, 0);

	expect_good_send(k, fg_sge(&mr, 0, LEN));
}

TEST_KEYS(test_read_into_read_only_mr_fails)
{
	struct fg_mr mr = mr_with(k->a, PVR_ACCESS_REMOTE_READ);

	expect_local_error(k, PVRDMA_WR_RDMA_READ, fg_sge(&mr, 0, LEN));
}

TEST_KEYS(test_receive_into_read_only_mr_fails)
{
	struct fg_mr mr = mr_with(k->b, PVR_ACCESS_REMOTE_READ);

	expect_receiver_error(k, fg_sge(&mr, 0, LEN));
}

static const struct {
	const char *label;
	struct fg_mr (*mr)(struct fg_end *end);
} other_mrs[] = { { "no region", no_mr },
		  { "region of another PD", mr_of_another_pd },
		  { "destroyed region", stale_mr } };

TEST_KEYS(test_receive_with_a_wrong_lkey)
{
	k->recv.lkey ^= 0x100;
	expect_receiver_error(k, k->recv);
}

TEST_KEYS_CASES(rc_connected, test_receive_with_bad_lkeys, other_mrs)
{
	k->recv.lkey = row->mr(&env->b).lkey;
	expect_receiver_error(k, k->recv);
}

static const struct t_case bad_offsets[] = {
	{ "from the byte before", -1ull },	   { "behind the region", SIZE },
	{ "to the byte behind", SIZE - LEN + 1 },  { "32 bits higher", 1ull << 32 },
	{ "63 bits higher", 1ull << 63 },	   { "address 0", -FG_USER_VA },
	{ "wraps after a byte", -FG_USER_VA - 1 }, { "wraps after 11 bytes", -FG_USER_VA - 11 },
	{ "wraps at the end", -FG_USER_VA - LEN }
};

TEST_KEYS_CASES(rc_connected, test_receive_with_bad_ranges, bad_offsets)
{
	expect_receiver_error(k, fg_sge(&k->b->mr, row->value, LEN));
}

/* Both requests from @addr of b's memory by @rkey fail. */
static void expect_no_access(struct t_env *env, uint64_t addr, uint32_t rkey)
{
	struct keys_env k;

	keys_init(&k, env);
	k.remote_addr = addr;
	expect_remote_error(&k, PVRDMA_WR_RDMA_WRITE, rkey);
	k.remote_addr = addr;
	expect_remote_error(&k, PVRDMA_WR_RDMA_READ, rkey);
}

TEST_CASES(rc_connected, test_write_and_read_need_a_good_range, bad_offsets)
{
	expect_no_access(env, env->b.mr.start + row->value, env->b.mr.rkey);
}

TEST_CASES(rc_connected, test_write_and_read_need_a_good_rkey, wrong_bits)
{
	expect_no_access(env, env->b.mr.start, env->b.mr.rkey ^ row->value);
}

TEST_CASES(rc_connected, test_write_and_read_need_the_rkey_of_a_region_of_the_pd, other_mrs)
{
	expect_no_access(env, env->b.mr.start, row->mr(&env->b).rkey);
}

TEST(rc_connected, test_dma_mr_is_for_local_use)
{
	expect_no_access(env, fg_buf_gpa(&env->b.buf, 0), dma_mr(&env->b).rkey);
}

TEST_KEYS(test_remote_rights_of_the_mr)
{
	const uint32_t local = mr_with(k->b, PVR_ACCESS_LOCAL_WRITE).rkey;

	expect_remote_error(k, PVRDMA_WR_RDMA_WRITE, mr_with(k->b, PVR_ACCESS_REMOTE_READ).rkey);
	expect_remote_error(k, PVRDMA_WR_RDMA_READ,
			    mr_with(k->b, PVR_ACCESS_LOCAL_WRITE | PVR_ACCESS_REMOTE_WRITE).rkey);
	expect_remote_error(k, PVRDMA_WR_RDMA_READ, local);
	expect_remote_error(k, PVRDMA_WR_RDMA_WRITE, local);
}

/* The QP's own permission comes first. */
static const struct {
	const char *label;
	enum pvrdma_wr_opcode op;
	uint32_t right;
} qp_rights[] = {
	{ "WRITE", PVRDMA_WR_RDMA_WRITE, PVR_ACCESS_REMOTE_WRITE },
	{ "WRITE_WITH_IMM", PVRDMA_WR_RDMA_WRITE_WITH_IMM, PVR_ACCESS_REMOTE_WRITE },
	{ "READ", PVRDMA_WR_RDMA_READ, PVR_ACCESS_REMOTE_READ },
};

TEST_KEYS_CASES(rc, test_rdma_needs_permission_of_the_qp, qp_rights)
{
	t_connect_with(env, access, fg_conn_default.access & ~row->right);
	t_recv(k->b, 2, 0, 0);
	post(k, row->op);
	expect_cqe(&k->a->scq, 1, PVRDMA_WC_REM_INV_REQ_ERR);
	expect_cqe(&k->b->rcq, 2, PVRDMA_WC_WR_FLUSH_ERR);
	expect_state(k->b, PVR_QPS_ERR);
	expect_one_event(k->env->g[1], PVR_EVENT_QP_REQ_ERR, k->b->qp.handle);
	expect_untouched(k);
}

TEST_KEYS(test_pages_are_translated_at_registration)
{
	memset(fg_buf_table(&k->b->buf, 0), 0xff, PVR_PAGE_SIZE);
	memset(fg_buf_dir(&k->b->buf), 0xff, PVR_PAGE_SIZE);
	post(k, PVRDMA_WR_RDMA_WRITE);
	expect_written(k->a, 1);
	assert_memory_equal(k->b->buf.va + 300, k->a->buf.va + 100, LEN);
}

TEST_KEYS(test_dma_mr_reaches_all_of_ram_and_nothing_else)
{
	const struct fg_mr dma = dma_mr(k->a);

	for (int i = 0; i < FG_RAM_REGIONS; i++) {
		const struct fg_ram_region *region = &env->g[0]->ram.region[i];
		const uint64_t end = region->gpa + region->size;

		expect_good_send(k, fg_sge(&dma, end - 10, 10));
		reconnect(k);
		expect_local_error(k, PVRDMA_WR_SEND, fg_sge(&dma, end - 10, 11));
		expect_local_error(k, PVRDMA_WR_SEND, fg_sge(&dma, region->gpa - 1, 2));
	}
	expect_local_error(k, PVRDMA_WR_SEND, fg_sge(&dma, FG_MMIO_HOLE, 10));
	expect_local_error(k, PVRDMA_WR_SEND, fg_sge(&dma, FG_BAR2_GPA, 10));
	expect_local_error(k, PVRDMA_WR_SEND, fg_sge(&dma, UINT64_MAX, 10));
}

TEST_KEYS(test_dma_mr_respects_read_only_memory)
{
	const struct fg_mr dma = dma_mr(k->a);
	uint8_t *rom = t_map_rom(env->g[0]);

	fg_fill(rom, PVR_PAGE_SIZE, 5);
	expect_good_send(k, fg_sge(&dma, T_ROM_GPA, 4096));
	assert_int_equal(fg_mismatch(k->b->mr.va + 200, 4096, 5), 4096);
	reconnect(k);
	expect_local_error(k, PVRDMA_WR_RDMA_READ, fg_sge(&dma, T_ROM_GPA, 4096));
	assert_int_equal(fg_mismatch(rom, PVR_PAGE_SIZE, 5), PVR_PAGE_SIZE);
}
