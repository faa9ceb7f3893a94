// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* FLUSH: placement of earlier writes. */
#include "ends.h"
#include "hosts.h"

TEST_EXT(PVR_ENGINE_EXT)

#define LENGTH 4096u
#define ACCESS_FLUSH (FG_ACCESS_ALL | PVR_ACCESS_FLUSH_GLOBAL)
#define ACCESS_PERSIST (ACCESS_FLUSH | PVR_ACCESS_FLUSH_PERSISTENT)
#define LONG_PAGES 512u /* more than a step of a flush to persistence */

struct flusher {
	struct t_env *env;
	struct fg_mr mr; /* b's, with the right */
	struct pvr_wqe_flush flush;
};

static void flusher_init(struct flusher *f, struct t_env *env, uint32_t access)
{
	t_connect_with(env, access, access);
	f->env = env;
	expect_ok(fg_mr_create(&env->b.pd, &env->b.buf, ACCESS_FLUSH, &f->mr));
	f->flush = (struct pvr_wqe_flush){ .addr = f->mr.start,
					   .length = LENGTH,
					   .rkey = f->mr.rkey,
					   .placement = PVR_FLUSH_GLOBAL,
					   .level = PVR_FLUSH_RANGE };
}

#define TEST_FLUSH(access, name) TEST_OBJECT(rc, struct flusher, f, flusher_init, name, access)

/* Posts a FLUSH with these entries, which it must not have. */
static void post_with(struct flusher *f, const struct pvrdma_sge *sge, uint32_t num_sge)
{
	struct fg_end *a = &f->env->a;
	const struct fg_wr wr = { .wr_id = 1,
				  .opcode = PVR_WR_FLUSH,
				  .flags = PVR_SEND_SIGNALED,
				  .sge = sge,
				  .num_sge = num_sge };
	struct pvrdma_sq_wqe_hdr *wqe = fg_sq_wqe(&a->qp, a->qp.sq_tail);

	assert_true(fg_put_send(&a->qp, &wr));
	memset(&wqe->wr, 0xee, sizeof(wqe->wr));
	memcpy(&wqe->wr, &f->flush, sizeof(f->flush));
	fg_ring_send(&a->qp);
	fg_run(f->env->host);
}

static void expect_flushed(struct flusher *f)
{
	post_with(f, NULL, 0);
	assert_int_equal(expect_done(&f->env->a.scq, 1, PVR_WC_FLUSH).byte_len, 0);
}

static void expect_error(struct flusher *f, uint32_t status)
{
	struct fg_conn conn = fg_conn_default;

	post_with(f, NULL, 0);
	expect_cqe(&f->env->a.scq, 1, status);
	expect_state(&f->env->a, PVR_QPS_ERR);
	conn.access = ACCESS_FLUSH;
	expect_ok(fg_qp_to_reset(&f->env->a.qp));
	expect_ok(fg_qp_to_reset(&f->env->b.qp));
	fg_end_connect(&f->env->a, &f->env->b, &conn);
}

TEST_FLUSH(ACCESS_FLUSH, test_range_and_whole_region)
{
	expect_flushed(f);
	f->flush.length = 0;
	expect_flushed(f);
	f->flush.level = PVR_FLUSH_MR;
	f->flush.addr = 0x12345;
	f->flush.length = -1ull;
	expect_flushed(f);
	expect_no_cqe(&env->b.rcq);
}

TEST_FLUSH(ACCESS_FLUSH, test_flush_runs_in_its_order)
{
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 5, 0, &env->b.mr, 0, LENGTH);
	post_with(f, NULL, 0);
	t_rdma(&env->a, PVRDMA_WR_RDMA_READ, 6, 0, &env->b.mr, 0, LENGTH);
	fg_run(env->host);
	expect_written(&env->a, 5);
	expect_done(&env->a.scq, 1, PVR_WC_FLUSH);
	expect_done(&env->a.scq, 6, PVRDMA_WC_RDMA_READ);
}

TEST_FLUSH(ACCESS_FLUSH, test_range_outside_the_region_is_refused)
{
	const uint64_t end = FG_END_PAGES * PVR_PAGE_SIZE;
	const uint64_t ranges[][2] = {
		{ 0, end + 1 }, { end, 1 }, { -1ull, 1 }, { 8, -1ull }, { end + 1, 0 }
	};

	for (size_t i = 0; i < COUNT(ranges); i++) {
		f->flush.addr = f->mr.start + ranges[i][0];
		f->flush.length = ranges[i][1];
		expect_error(f, PVRDMA_WC_REM_ACCESS_ERR);
	}
}

TEST_FLUSH(ACCESS_FLUSH, test_wrong_keys_are_refused)
{
	for (int level = PVR_FLUSH_RANGE; level <= PVR_FLUSH_MR; level++) {
		f->flush.level = level;
		f->flush.rkey = f->mr.rkey ^ 0x100;
		expect_error(f, PVRDMA_WC_REM_ACCESS_ERR);
		/* A region without the right. */
		f->flush.rkey = env->b.mr.rkey;
		expect_error(f, PVRDMA_WC_REM_ACCESS_ERR);
	}
}

TEST_FLUSH(ACCESS_FLUSH, test_unknown_placements_and_levels_are_refused)
{
	const uint8_t bad[][2] = { { 0, 0 }, { 4, 0 }, { 0xff, 0 }, { 1, 2 }, { 1, 0xff } };

	for (size_t i = 0; i < COUNT(bad); i++) {
		f->flush.placement = bad[i][0];
		f->flush.level = bad[i][1];
		expect_error(f, PVRDMA_WC_REM_INV_REQ_ERR);
	}
}

/* ------------------------------------------------------------- persistence */

/* All of the guest's RAM is an NVDIMM. */
static void persist_ram(struct fg_guest *guest)
{
	for (int i = 0; i < FG_RAM_REGIONS; i++) {
		const struct fg_ram_region *region = &guest->ram.region[i];

		if (region->size)
			expect_ok(
				pvr_adapter_persist_ram(guest->adapter, region->gpa, region->size));
	}
}

static uint32_t register_pages(struct fg_end *end, uint32_t pages, uint32_t access,
			       struct fg_mr *mr)
{
	struct fg_buf buf;

	fg_buf_init(&buf, &end->guest->ram, pages, FG_SCATTERED);
	return fg_mr_create(&end->pd, &buf, access, mr);
}

/* The flusher's region is persistent and has many pages. */
static void persistent_init(struct flusher *f, struct t_env *env)
{
	flusher_init(f, env, ACCESS_PERSIST);
	persist_ram(env->b.guest);
	expect_ok(register_pages(&env->b, LONG_PAGES, ACCESS_PERSIST, &f->mr));
	f->flush.addr = f->mr.start;
	f->flush.rkey = f->mr.rkey;
	f->flush.placement = PVR_FLUSH_PERSISTENT;
}

#define TEST_PERSISTENT(name) TEST_OBJECT(rc, struct flusher, f, persistent_init, name)

/* Posts a flush of all of it, whose first step runs. */
static void begin_long_flush(struct flusher *f)
{
	f->flush.length = f->mr.length;
	post_with(f, NULL, 0);
	await_no_cqe(&f->env->a.scq);
}

static void end_long_flush(struct flusher *f)
{
	fg_settle(f->env->host, 100 * FG_MS);
	expect_done(&f->env->a.scq, 1, PVR_WC_FLUSH);
}

TEST_PERSISTENT(test_persistent_range_is_flushed)
{
	expect_flushed(f);
	f->flush.placement = PVR_FLUSH_GLOBAL | PVR_FLUSH_PERSISTENT;
	f->flush.addr += 77;
	expect_flushed(f);
	f->flush.length = 0;
	expect_flushed(f);
}

TEST_PERSISTENT(test_long_range_is_flushed_in_steps)
{
	begin_long_flush(f);
	end_long_flush(f);
	f->flush.level = PVR_FLUSH_MR;
	begin_long_flush(f);
	end_long_flush(f);
}

TEST_PERSISTENT(test_region_destroyed_between_the_steps_is_refused)
{
	begin_long_flush(f);
	expect_ok(fg_mr_destroy(&f->mr));
	fg_settle(env->host, 100 * FG_MS);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_PERSISTENT(test_reset_ends_a_flush)
{
	struct fg_conn conn = fg_conn_default;

	begin_long_flush(f);
	conn.access = ACCESS_PERSIST;
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	fg_end_connect(&env->a, &env->b, &conn);
	/* All steps again. */
	begin_long_flush(f);
	end_long_flush(f);
}

TEST_FLUSH(ACCESS_PERSIST, test_volatile_memory_has_no_such_right)
{
	struct fg_mr mr;

	assert_int_equal(register_pages(&env->b, 4, ACCESS_PERSIST, &mr), EOPNOTSUPP);
	f->flush.placement = PVR_FLUSH_PERSISTENT;
	expect_error(f, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_FLUSH(ACCESS_PERSIST, test_partly_persistent_memory_has_no_such_right)
{
	const struct fg_ram_region *region = env->b.guest->ram.region;
	const uint64_t gpa[] = { region[0].gpa, region[1].gpa };
	struct pvr_cmd_create_mr req;
	struct fg_mr mr;

	expect_ok(pvr_adapter_persist_ram(env->b.guest->adapter, region[0].gpa, region[0].size));
	req = fg_layout_request(&env->b.pd, fg_pdir(&env->b.guest->ram, 2, gpa, 2), PVR_PAGE_SHIFT,
				FG_USER_VA, 0, 2 * PVR_PAGE_SIZE);
	req.access_flags = ACCESS_PERSIST;
	assert_int_equal(fg_mr_create_as(&env->b.pd, &req, &mr), EOPNOTSUPP);
	expect_ok(pvr_adapter_persist_ram(env->b.guest->adapter, region[1].gpa, region[1].size));
	expect_ok(fg_mr_create_as(&env->b.pd, &req, &mr));
}

TEST_PERSISTENT(test_region_on_demand_has_no_such_right)
{
	struct pvr_cmd_create_mr req =
		fg_layout_request(&env->b.pd, 0, PVR_PAGE_SHIFT, FG_USER_VA, 0, PVR_PAGE_SIZE);
	struct fg_mr mr;

	req.access_flags = ACCESS_PERSIST;
	req.flags |= PVR_MR_FLAG_ON_DEMAND;
	req.nchunks = 0;
	assert_int_equal(fg_mr_create_as(&env->b.pd, &req, &mr), EOPNOTSUPP);
}

TEST_PERSISTENT(test_persistence_is_of_whole_regions)
{
	const struct fg_ram_region *region = env->b.guest->ram.region;

	assert_int_equal(pvr_adapter_persist_ram(env->b.guest->adapter, region->gpa,
						 region->size - PVR_PAGE_SIZE),
			 -ENOENT);
}

TEST_FLUSH(ACCESS_FLUSH, test_qp_must_permit_persistence)
{
	f->flush.placement = PVR_FLUSH_GLOBAL | PVR_FLUSH_PERSISTENT;
	expect_error(f, PVRDMA_WC_REM_INV_REQ_ERR);
}

T_SETUP_EXT(volatile_only, PVR_ENGINE_EXT & ~PVR_EXT_FLUSH_PERSISTENT, rc_connected)

TEST(volatile_only, test_guest_without_the_extension_has_no_persistence)
{
	struct fg_mr mr;

	persist_ram(env->b.guest);
	assert_int_equal(register_pages(&env->b, 4, ACCESS_PERSIST, &mr), EOPNOTSUPP);
	expect_ok(register_pages(&env->b, 4, ACCESS_FLUSH, &mr));
}

TEST_FLUSH(FG_ACCESS_ALL, test_qp_must_permit_flushes)
{
	expect_error(f, PVRDMA_WC_REM_INV_REQ_ERR);
	expect_flushed(f);
}

TEST_FLUSH(ACCESS_FLUSH, test_flush_with_data_is_refused)
{
	const struct pvrdma_sge sge = fg_sge(&env->a.mr, 0, 8);

	post_with(f, &sge, 1);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_LEN_ERR);
	expect_state(&env->a, PVR_QPS_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
}

T_SETUP_EXT(without_extension, PVR_ENGINE_EXT & ~PVR_EXT_FLUSH, rc_connected)

TEST(without_extension, test_guest_without_the_extension_has_no_flush)
{
	struct flusher f = { .env = env, .flush = { .placement = PVR_FLUSH_GLOBAL } };
	struct fg_mr mr;

	assert_int_equal(fg_mr_create(&env->b.pd, &env->b.buf, ACCESS_FLUSH, &mr), EOPNOTSUPP);
	post_with(&f, NULL, 0);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_QP_OP_ERR);
}

/* ------------------------------------------------------------- between hosts */

T_SETUP_HOSTS(old, 2, .old = true)
{
	t_open_pair(&env->a, env->g[0], &env->b, env->g[1]);
}

TEST(old, test_peers_pvrdmad_without_the_operation_fails_the_request)
{
	struct flusher f = { .env = env, .flush = { .placement = PVR_FLUSH_GLOBAL } };

	t_ping_pong(env->host, &env->a, &env->b);
	post_with(&f, NULL, 0);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_INV_REQ_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
	assert_int_equal(fg_wire_refused(env->wire), 0);
}
