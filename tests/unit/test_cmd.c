// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The command channel: slots, ERR, acknowledgement, vector 0, answers, long commands. */
#include <pthread.h>
#include <sched.h>

#include "core/adapter.h"
#include "objects.h"
#include "rndv.h"

static uint32_t cmd_vectors(struct t_env *env)
{
	uint32_t n;

	fg_run(env->host);
	n = env->g[0]->irq[PVR_VEC_CMD];
	env->g[0]->irq[PVR_VEC_CMD] = 0;
	return n;
}

static uint32_t run_raw(struct fg_guest *g, uint32_t cmd, uint8_t body)
{
	union pvr_cmd_req req;

	memset(&req, body, sizeof(req));
	req.hdr.response = FG_CMD_COOKIE;
	req.hdr.cmd = cmd;
	req.hdr.reserved = 0;
	return fg_cmd(g, &req, sizeof(req), NULL, 0);
}

static const struct t_case unknown[] = {
	{ "the first unknown", PVR_CMD_NUM },
	{ "the second unknown", PVR_CMD_NUM + 1 },
	{ "2^8", 0x100 },
	{ "2^16", 0x10000 },
	{ "2^31 - 1", 0x7fffffff },
	{ "2^31", 0x80000000 },
	{ "2^31 + 2", 0x80000000 | 2 },
	{ "2^32 - 1", UINT32_MAX },
};

TEST_CASES(guest, test_unknown_commands_are_refused, unknown)
{
	assert_int_equal(run_raw(env->g[0], row->value, 0), ENOSYS);
	assert_int_equal(cmd_vectors(env), 0);
}

TEST_GUEST(guest, test_every_command_survives_a_body_of_ones)
{
	for (uint32_t cmd = 0; cmd < PVR_CMD_NUM; cmd++)
		expect_refused(run_raw(g, cmd, 0xff));
	t_commands_work(g);
}

TEST_GUEST(guest, test_every_command_survives_a_body_of_zeros)
{
	for (uint32_t cmd = 0; cmd < PVR_CMD_NUM; cmd++)
		run_raw(g, cmd, 0);
	t_commands_work(g);
}

TEST_GUEST(guest, test_response_echoes_key_and_acknowledges)
{
	struct pvr_cmd_query_pkey req = {
		.hdr = { .response = 0xfedcba9876543210ull, .cmd = PVR_CMD_QUERY_PKEY },
		.port_num = 1,
	};
	struct pvr_resp_query_pkey resp;

	expect_ok(fg_cmd(g, &req, sizeof(req), &resp, sizeof(resp)));
	assert_true(resp.hdr.response == 0xfedcba9876543210ull);
	assert_int_equal(resp.hdr.ack, PVR_CMD_RESP_ACK | PVR_CMD_QUERY_PKEY);
	assert_int_equal(resp.hdr.err, 0);
	assert_int_equal(resp.hdr.reserved[0] | resp.hdr.reserved[1] | resp.hdr.reserved[2], 0);
}

TEST_GUEST(guest, test_reserved_header_word_is_ignored)
{
	struct pvr_cmd_query_pkey req = {
		.hdr = { .cmd = PVR_CMD_QUERY_PKEY, .reserved = 0xffffffff },
		.port_num = 1,
		.reserved = { 1, 2, 3, 4, 5, 6 },
	};
	struct pvr_resp_query_pkey resp;

	expect_ok(fg_cmd(g, &req, sizeof(req), &resp, sizeof(resp)));
}

TEST_GUEST(guest, test_failure_is_in_err_and_in_the_response)
{
	struct pvr_resp_hdr resp;
	uint32_t pd;

	assert_int_equal(fg_create_pd(g, 12345, &pd), EINVAL);
	memcpy(&resp, g->resp_slot, sizeof(resp));
	assert_int_equal(resp.err, EINVAL);
	assert_int_equal(cmd_vectors(env), 0);
}

TEST_GUEST(guest, test_err_is_cleared_by_the_next_success)
{
	uint32_t pd;

	expect_refused(fg_create_pd(g, 12345, &pd));
	expect_ok(fg_create_pd(g, 0, &pd));
	expect_ok(fg_reg_read(g, PVR_REG_ERR));
}

TEST_GUEST(guest, test_only_commands_with_a_response_raise_vector_0)
{
	struct pvr_port_attr port;
	struct pvr_qp_attr qp_attr;
	struct pvr_srq_attr srq_attr;
	struct fg_ctx ctx;
	struct fg_pd pd;
	struct fg_cq cq;
	struct fg_buf buf;
	struct fg_mr mr;
	struct fg_srq srq;
	struct fg_qp qp;
	struct fg_qp_spec spec = { .pd = &pd, .scq = &cq, .rcq = &cq, .type = PVR_QPT_RC };
	uint16_t pkey;
	uint8_t gid[16];

	cmd_vectors(env);
	fg_gid_from_ipv4(gid, 10, 0, 0, 1);
	fg_buf_init(&buf, &g->ram, 1, FG_SCATTERED);
#define RAISES(n, command)                             \
	do {                                           \
		expect_ok(command);                    \
		assert_int_equal(cmd_vectors(env), n); \
	} while (0)
	RAISES(1, fg_query_port(g, 1, &port));
	RAISES(1, fg_query_pkey(g, 1, 0, &pkey));
	RAISES(1, fg_ctx_create(g, &ctx));
	RAISES(1, fg_pd_create(&ctx, &pd));
	RAISES(1, fg_mr_create(&pd, &buf, 0, &mr));
	RAISES(1, fg_cq_create(&ctx, 16, &cq));
	RAISES(1, fg_srq_create(&pd, 16, 1, &srq));
	RAISES(1, fg_srq_query(&srq, &srq_attr));
	RAISES(1, fg_qp_create(&spec, &qp));
	RAISES(1, fg_qp_to_init(&qp, NULL));
	RAISES(1, fg_qp_query(&qp, &qp_attr));
	RAISES(0, fg_srq_set_limit(&srq, 1));
	RAISES(0, fg_qp_destroy(&qp));
	RAISES(0, fg_srq_destroy(&srq));
	RAISES(0, fg_cq_destroy(&cq));
	RAISES(0, fg_mr_destroy(&mr));
	RAISES(0, fg_pd_destroy(&pd));
	RAISES(0, fg_ctx_destroy(&ctx));
	RAISES(0, fg_bind_gid(g, 1, gid));
	RAISES(0, fg_unbind_gid(g, 1, gid));
#undef RAISES
}

TEST_GUEST(guest, test_failed_commands_raise_no_vector)
{
	cmd_vectors(env);
	for (uint32_t cmd = 0; cmd < PVR_CMD_NUM; cmd++)
		expect_refused(run_raw(g, cmd, 0xff));
	assert_int_equal(cmd_vectors(env), 0);
}

TEST_GUEST(guest, test_response_touches_no_more_than_176_bytes)
{
	uint8_t *tail = (uint8_t *)g->resp_slot + PVR_CMD_RESP_SIZE;
	const size_t len = PVR_PAGE_SIZE - PVR_CMD_RESP_SIZE;

	fg_fill(tail, len, 9);
	for (uint32_t cmd = 0; cmd < PVR_CMD_NUM; cmd++)
		run_raw(g, cmd, cmd == PVR_CMD_QUERY_PORT ? 1 : 0);
	assert_int_equal(fg_mismatch(tail, len, 9), len);
}

TEST_GUEST(guest, test_command_slot_is_not_written)
{
	uint8_t before[PVR_PAGE_SIZE];
	uint32_t pd;

	expect_ok(fg_create_pd(g, 0, &pd));
	memcpy(before, g->cmd_slot, sizeof(before));
	fg_reg_write(g, PVR_REG_REQUEST, 0);
	assert_memory_equal(g->cmd_slot, before, sizeof(before));
}

TEST_GUEST(guest, test_responses_leak_nothing)
{
	struct pvr_cmd_create_pd req = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_PD) };
	struct pvr_resp_create_pd resp;

	const uint8_t *slot = g->resp_slot;

	memset(g->resp_slot, 0xee, PVR_CMD_RESP_SIZE);
	expect_ok(fg_cmd(g, &req, sizeof(req), &resp, sizeof(resp)));
	for (size_t i = 0; i < sizeof(resp.reserved); i++)
		assert_int_equal(resp.reserved[i], 0);
	for (size_t i = sizeof(resp); i < PVR_CMD_RESP_SIZE; i++)
		assert_int_equal(slot[i], 0);
}

TEST_GUEST(guest, test_commands_are_counted)
{
	struct pvr_adapter_stats before = fg_stats(g), after;
	uint32_t pd;

	expect_ok(fg_create_pd(g, 0, &pd));
	expect_refused(fg_create_pd(g, 999, &pd));
	after = fg_stats(g);
	assert_int_equal(after.commands - before.commands, 2);
	assert_int_equal(after.commands_failed - before.commands_failed, 1);
}

static uint64_t lines_logged(const struct fg_host *host)
{
	return host->logged[PVR_LOG_WARN] + host->logged[PVR_LOG_ERR] + host->logged[PVR_LOG_INFO];
}

TEST_GUEST(guest, test_failed_commands_are_logged_at_a_bounded_rate)
{
	uint64_t before = lines_logged(env->host);

	for (int i = 0; i < 100000; i++)
		run_raw(g, UINT32_MAX, 0);
	assert_in_range(lines_logged(env->host) - before, 1, 1000);
}

TEST_GUEST(guest, test_failures_and_resets_are_logged_at_a_bounded_rate)
{
	uint64_t before = lines_logged(env->host);

	for (int i = 0; i < 1000; i++) {
		pvr_adapter_fail(g->adapter, "a test");
		fg_reg_write(g, PVR_REG_CTL, PVR_CTL_RESET);
	}
	assert_in_range(lines_logged(env->host) - before, 1, 100);
}

TEST_GUEST(guest, test_response_slot_that_vanished_fails_the_command)
{
	uint32_t pd;

	for (int i = 0; i < FG_RAM_REGIONS; i++)
		if (g->resp_gpa - g->ram.region[i].gpa < g->ram.region[i].size)
			pvr_adapter_unmap_ram(g->adapter, g->ram.region[i].gpa,
					      g->ram.region[i].size);
	expect_refused(fg_create_pd(g, 0, &pd));
}

/* ------------------------------------------------ PVR_EXT_RESP_POLL: no need to read ERR */

#define COMMANDS 100000
#define SPINS 2000 /* until others get the CPU */

T_SETUP_EXT(answer, PVR_EXT_RESP_POLL, guest)

static struct pvr_resp_hdr answer_to_handle(struct fg_guest *g, uint32_t cmd, uint32_t handle)
{
	struct pvr_cmd_handle req = { .hdr = FG_CMD_HDR(cmd), .handle = handle };
	struct pvr_resp_hdr answer;

	fg_cmd_begin(g, &req, sizeof(req));
	memcpy(&answer, g->resp_slot, sizeof(answer));
	/* For the next one. */
	fg_reg_read(g, PVR_REG_ERR);
	return answer;
}

static void expect_answer(struct pvr_resp_hdr answer, uint32_t cmd, uint8_t err)
{
	assert_true(answer.response == FG_CMD_COOKIE);
	assert_int_equal(answer.ack, PVR_CMD_RESP_ACK | cmd);
	assert_int_equal(answer.err, err);
}

TEST_GUEST(answer, test_commands_without_a_response_are_answered)
{
	uint32_t pd;

	expect_ok(fg_create_pd(g, 0, &pd));
	expect_answer(answer_to_handle(g, PVR_CMD_DESTROY_PD, pd), PVR_CMD_DESTROY_PD, 0);
}

TEST_GUEST(answer, test_answer_has_the_error)
{
	expect_answer(answer_to_handle(g, PVR_CMD_DESTROY_PD, 0xffffff), PVR_CMD_DESTROY_PD,
		      EINVAL);
	expect_answer(answer_to_handle(g, PVR_CMD_QUERY_SRQ, 0xffffff), PVR_CMD_QUERY_SRQ, EINVAL);
}

TEST_GUEST(answer, test_unknown_command_is_not_answered)
{
	struct pvr_resp_hdr answer = answer_to_handle(g, PVR_CMD_NUM, 0);

	assert_true(answer.response != FG_CMD_COOKIE);
	expect_refused(fg_cmd_destroy(g, PVR_CMD_NUM, 0));
}

/* A CPU that watches the slot while another one runs commands, in turns. */
struct watcher {
	struct fg_guest *g;
	uint64_t begun, seen; /* commands */
	uint64_t piggyback; /* keys that were there before the last byte */
};

static void *watch(void *opaque)
{
	struct watcher *watcher = opaque;
	const uint8_t *last = (const uint8_t *)watcher->g->resp_slot + PVR_CMD_RESP_SIZE - 1;
	const uint64_t *key = watcher->g->resp_slot;
	uint64_t i;

	for (i = 1; i <= COMMANDS; i++) {
		while (__atomic_load_n(&watcher->begun, __ATOMIC_ACQUIRE) < i)
			sched_yield();
		for (uint32_t spins = 1; __atomic_load_n(key, __ATOMIC_ACQUIRE) != i; spins++)
			if (spins % SPINS == 0)
				sched_yield();
		watcher->piggyback += __atomic_load_n(last, __ATOMIC_RELAXED) != 0;
		__atomic_store_n(&watcher->seen, i, __ATOMIC_RELEASE);
	}
	return NULL;
}

TEST_GUEST(answer, test_key_is_stored_last)
{
	struct watcher watcher = { .g = g };
	struct pvr_cmd_query_pkey req = { .hdr = FG_CMD_HDR(PVR_CMD_QUERY_PKEY), .port_num = 1 };
	pthread_t thread;

	memset(g->resp_slot, 0xee, PVR_CMD_RESP_SIZE);
	assert_int_equal(pthread_create(&thread, NULL, watch, &watcher), 0);
	for (uint64_t i = 1; i <= COMMANDS; i++) {
		memset(g->resp_slot, 0xee, PVR_CMD_RESP_SIZE);
		req.hdr.response = i;
		memcpy(g->cmd_slot, &req, sizeof(req));
		__atomic_store_n(&watcher.begun, i, __ATOMIC_RELEASE);
		fg_reg_write(g, PVR_REG_REQUEST, 0);
		while (__atomic_load_n(&watcher.seen, __ATOMIC_ACQUIRE) < i)
			sched_yield();
	}
	pthread_join(thread, NULL);
	assert_int_equal(watcher.piggyback, 0);
}

/* --------------------------------------- long commands, which run in several steps */

#define LONG_PAGES 60000u /* of 4 KiB: several steps */

T_SETUP_EXT(long_commands, PVR_EXT_USER_OPS | PVR_EXT_MR_LAYOUT | PVR_EXT_MW, rc_connected)

/* b's guest registers a large region, whose pages are all the same one. */
struct reg {
	struct t_env *env;
	struct fg_guest *g;
	struct pvr_cmd_create_mr req;
	uint32_t page; /* the one that all entries name */
	struct pvr_resp_create_mr resp;
};

static struct pvr_cmd_create_mr long_request(struct fg_end *end, uint32_t *page)
{
	struct pvr_cmd_create_mr req = fg_mr_request(&end->pd, &end->buf, 0, 1, FG_ACCESS_ALL);

	req.nchunks = LONG_PAGES;
	req.length = (uint64_t)LONG_PAGES * PVR_PAGE_SIZE;
	req.pdir_dma = t_wide_pdir(end->guest, LONG_PAGES, page);
	return req;
}

static void reg_init(struct reg *r, struct t_env *env)
{
	*r = (struct reg){ .env = env, .g = env->b.guest };
	r->req = long_request(&env->b, &r->page);
}

#define TEST_REG(name) TEST_OBJECT(long_commands, struct reg, r, reg_init, name)

static void begin(struct reg *r)
{
	fg_cmd_begin(r->g, &r->req, sizeof(r->req));
	assert_true(pvr_adapter_busy(r->g->adapter));
}

static uint32_t end(struct reg *r)
{
	return fg_cmd_end(r->g, &r->req, &r->resp, sizeof(r->resp));
}

/* a writes to the last page of the region. */
static void write_last(struct reg *r, enum pvrdma_wc_status status)
{
	struct fg_end *a = &r->env->a;
	struct fg_mr mr = { .start = r->req.start, .length = r->req.length, .rkey = r->resp.rkey };

	t_rdma(a, PVRDMA_WR_RDMA_WRITE, 1, 0, &mr, mr.length - 64, 64);
	await_cqe(&a->scq, 1, status);
}

TEST_REG(test_long_command_runs_on_in_the_engine)
{
	begin(r);
	fg_run(env->host);
	assert_false(pvr_adapter_busy(r->g->adapter));
	expect_ok(end(r));
	write_last(r, PVRDMA_WC_SUCCESS);
}

TEST_REG(test_long_command_interrupts_at_its_end)
{
	uint32_t before = r->g->irq[PVR_VEC_CMD];

	begin(r);
	assert_int_equal(r->g->irq[PVR_VEC_CMD], before);
	fg_run(env->host);
	assert_int_equal(r->g->irq[PVR_VEC_CMD], before + 1);
}

TEST_REG(test_long_command_lets_other_adapters_run)
{
	begin(r);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 64);
	pvr_engine_run(env->host->engine, 0);
	assert_true(pvr_adapter_busy(r->g->adapter));
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_SUCCESS);
}

TEST_REG(test_long_commands_of_two_adapters_alternate)
{
	struct fg_guest *other = env->a.guest;
	struct pvr_cmd_create_mr req;
	uint32_t page;

	req = long_request(&env->a, &page);
	begin(r);
	fg_cmd_begin(other, &req, sizeof(req));
	while (pvr_adapter_busy(r->g->adapter))
		pvr_engine_run(env->host->engine, 0);
	pvr_engine_run(env->host->engine, 0);
	assert_false(pvr_adapter_busy(other->adapter));
	expect_ok(fg_cmd_end(other, &req, NULL, 0));
}

TEST_REG(test_read_of_err_waits_for_the_end)
{
	begin(r);
	expect_ok(end(r));
	assert_false(pvr_adapter_busy(r->g->adapter));
	write_last(r, PVRDMA_WC_SUCCESS);
}

TEST_REG(test_next_request_waits_for_the_end)
{
	begin(r);
	begin(r);
	expect_ok(end(r));
	/* Both, and that of each end's buffer. */
	assert_int_equal(fg_stats(r->g).mrs, 3);
}

TEST_REG(test_bad_page_in_a_late_step_is_refused)
{
	uint32_t page = fg_ram_get_page(&r->g->ram);
	uint64_t *table = fg_page_va(&r->g->ram, page);
	uint64_t *dir = fg_gpa_va(&r->g->ram, r->req.pdir_dma);

	for (uint32_t i = 0; i < PVR_PDIR_ENTRIES; i++)
		table[i] = fg_page_gpa(&r->g->ram, r->page);
	table[3] = 1ull << 50;
	dir[LONG_PAGES / PVR_PDIR_ENTRIES - 1] = fg_page_gpa(&r->g->ram, page);
	begin(r);
	assert_int_equal(end(r), EFAULT);
	assert_int_equal(fg_stats(r->g).mrs, 1);
	assert_int_equal(fg_stats(r->g).commands_failed, 1);
}

TEST_REG(test_reset_ends_a_long_command)
{
	begin(r);
	pvr_adapter_reset(r->g->adapter);
	assert_false(pvr_adapter_busy(r->g->adapter));
	fg_run(env->host);
	assert_int_equal(fg_stats(r->g).mrs, 0);
}

TEST_REG(test_failure_ends_a_long_command)
{
	begin(r);
	pvr_adapter_fail(r->g->adapter, "a test");
	assert_false(pvr_adapter_busy(r->g->adapter));
	fg_run(env->host);
}

/* The pointers that it has found so far lead there: the region is finished, and broken. */
TEST_REG(test_unmap_of_ram_waits_for_the_end)
{
	uint64_t *dir = fg_gpa_va(&r->g->ram, r->req.pdir_dma);
	uint64_t *table = fg_gpa_va(&r->g->ram, dir[0]); /* of all entries of the directory */

	t_plug_spare(r->g);
	for (uint32_t i = 0; i < PVR_PDIR_ENTRIES; i++)
		table[i] = T_SPARE_GPA;
	begin(r);
	t_unplug_spare(r->g);
	assert_false(pvr_adapter_busy(r->g->adapter));
	expect_ok(end(r));
	write_last(r, PVRDMA_WC_REM_ACCESS_ERR);
}

/* Without DMA it can neither read its directory nor be answered. */
TEST_REG(test_bus_master_off_cancels_a_long_command)
{
	begin(r);
	pvr_adapter_set_bus_master(r->g->adapter, false);
	assert_false(pvr_adapter_busy(r->g->adapter));
	assert_int_equal(fg_stats(r->g).mrs, 1);
	assert_int_equal(fg_reg_read(r->g, PVR_REG_ERR), EIO);
}

#define MANY 5000u /* objects: several steps */

/* b's guest has many regions in a context. */
static uint32_t many_regions(struct reg *r, struct fg_end *neighbor)
{
	struct pvr_cmd_create_mr req = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
					 .flags = PVR_MR_FLAG_DMA };
	struct fg_ctx ctx;
	struct fg_pd pd;

	fg_end_open(neighbor, r->env->a.guest, PVR_QPT_RC);
	fg_end_connect(neighbor, neighbor, NULL);
	expect_ok(fg_ctx_create(r->g, &ctx));
	expect_ok(fg_pd_create(&ctx, &pd));
	req.pd_handle = pd.handle;
	for (uint32_t i = 0; i < MANY; i++)
		expect_ok(fg_cmd(r->g, &req, sizeof(req), NULL, 0));
	return ctx.handle;
}

/* A step may exceed its work by one object. */
static void expect_short_steps(const struct reg *r)
{
	assert_in_range(r->g->adapter->job.longest, 1, PVR_STEP_WORK + PVR_WORK_QP);
}

/* The neighbor is an end of the other adapter of the worker, and sends to itself. */
static void neighbor_makes_progress(struct reg *r, struct fg_end *neighbor, uint32_t regions)
{
	t_rdma(neighbor, PVRDMA_WR_RDMA_WRITE, 1, 0, &neighbor->mr, 0, 64);
	/* A step of the job, and a quantum of the neighbor. */
	pvr_engine_run(r->env->host->engine, 0);
	pvr_engine_run(r->env->host->engine, 0);
	assert_true(pvr_adapter_busy(r->g->adapter));
	expect_cqe(&neighbor->scq, 1, PVRDMA_WC_SUCCESS);
	fg_run(r->env->host);
	assert_false(pvr_adapter_busy(r->g->adapter));
	assert_int_equal(fg_stats(r->g).mrs, regions);
	expect_short_steps(r);
}

TEST_REG(test_destroy_of_a_large_context_runs_in_steps)
{
	struct fg_end neighbor;
	struct pvr_cmd_handle req = { .hdr = FG_CMD_HDR(PVR_CMD_DESTROY_UC),
				      .handle = many_regions(r, &neighbor) };

	fg_cmd_begin(r->g, &req, sizeof(req));
	neighbor_makes_progress(r, &neighbor, 1);
	expect_ok(fg_cmd_end(r->g, &req, NULL, 0));
}

TEST_REG(test_reset_with_many_objects_runs_in_steps)
{
	struct fg_end neighbor;

	many_regions(r, &neighbor);
	pvr_adapter_reset(r->g->adapter);
	neighbor_makes_progress(r, &neighbor, 0);
}

TEST_REG(test_prepared_reset_runs_in_steps_and_keeps_registers)
{
	struct fg_end neighbor;

	many_regions(r, &neighbor);
	fg_reg_write(r->g, PVR_REG_DSRLOW, 0x1000);
	assert_false(pvr_adapter_prepare_reset(r->g->adapter));
	neighbor_makes_progress(r, &neighbor, 0);
	assert_true(pvr_adapter_prepare_reset(r->g->adapter));
	assert_int_equal(fg_reg_read(r->g, PVR_REG_DSRLOW), 0x1000);
}

#define REGIONS 4 /* with LONG_PAGES entries each, all of which are checked */

/* b's guest has a region of the spare RAM behind regions whose check takes several steps. */
static void plug_and_register(struct reg *r, struct pvr_resp_create_mr *spare)
{
	uint64_t *dir = fg_gpa_va(&r->g->ram, r->req.pdir_dma);
	uint64_t *table = fg_gpa_va(&r->g->ram, dir[0]); /* of all entries of the directory */

	for (int i = 0; i < REGIONS; i++) {
		begin(r);
		expect_ok(end(r));
	}
	t_plug_spare(r->g);
	table[0] = T_SPARE_GPA;
	r->req.nchunks = 1;
	r->req.length = PVR_PAGE_SIZE;
	expect_ok(fg_cmd(r->g, &r->req, sizeof(r->req), spare, sizeof(*spare)));
}

/*
 * Between two steps there is no access to the region, requests of peers are repeated
 * without a timeout, and other adapters have quanta.
 */
TEST_REG(test_unmap_of_ram_runs_in_steps)
{
	struct fg_conn conn = fg_conn_default;
	struct pvr_resp_create_mr resp;
	struct fg_end neighbor;
	struct fg_mr mr = { .length = PVR_PAGE_SIZE };

	fg_end_open(&neighbor, env->a.guest, PVR_QPT_RC);
	fg_end_connect(&neighbor, &neighbor, NULL);
	conn.timeout = 1;
	conn.retry_cnt = 0;
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	fg_end_connect(&env->a, &env->b, &conn);
	plug_and_register(r, &resp);
	mr.start = r->req.start;
	mr.rkey = resp.rkey;
	memset(t_spare, 0x11, sizeof(t_spare));
	assert_false(pvr_adapter_prepare_unmap_ram(r->g->adapter, T_SPARE_GPA, sizeof(t_spare)));
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 0, &env->b.mr, 0, 64);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 2, 0, &mr, 0, 64);
	t_rdma(&neighbor, PVRDMA_WR_RDMA_WRITE, 4, 0, &neighbor.mr, 0, 64);
	for (int i = 0; i < 4; i++) {
		env->host->now += FG_SEC;
		pvr_engine_run(env->host->engine, 0);
		assert_true(pvr_adapter_busy(r->g->adapter));
		expect_no_cqe(&env->a.scq);
	}
	expect_cqe(&neighbor.scq, 4, PVRDMA_WC_SUCCESS);
	fg_run(env->host);
	assert_true(pvr_adapter_prepare_unmap_ram(r->g->adapter, T_SPARE_GPA, sizeof(t_spare)));
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_SUCCESS);
	expect_cqe(&env->a.scq, 2, PVRDMA_WC_REM_ACCESS_ERR);
	assert_int_equal(t_spare[0], 0x11);
	expect_short_steps(r);
}

/* A trapped doorbell waits for the end. */
TEST_REG(test_doorbell_during_an_unmap_takes_effect)
{
	struct pvr_resp_create_mr resp;

	plug_and_register(r, &resp);
	assert_false(pvr_adapter_prepare_unmap_ram(r->g->adapter, T_SPARE_GPA, sizeof(t_spare)));
	t_rdma(&env->b, PVRDMA_WR_RDMA_WRITE, 3, 0, &env->a.mr, 0, 64);
	await_cqe(&env->b.scq, 3, PVRDMA_WC_SUCCESS);
	assert_false(pvr_adapter_busy(r->g->adapter));
}

TEST_REG(test_reset_cancels_an_unmap)
{
	struct pvr_resp_create_mr resp;

	plug_and_register(r, &resp);
	assert_false(pvr_adapter_prepare_unmap_ram(r->g->adapter, T_SPARE_GPA, sizeof(t_spare)));
	pvr_adapter_reset(r->g->adapter);
	fg_run(env->host);
	assert_true(pvr_adapter_prepare_unmap_ram(r->g->adapter, T_SPARE_GPA, sizeof(t_spare)));
	assert_int_equal(fg_stats(r->g).mrs, 0);
	expect_ok(fg_guest_boot(r->g));
}

TEST_REG(test_failure_and_bus_mastering_leave_an_unmap_alone)
{
	struct pvr_resp_create_mr resp;

	plug_and_register(r, &resp);
	assert_false(pvr_adapter_prepare_unmap_ram(r->g->adapter, T_SPARE_GPA, sizeof(t_spare)));
	pvr_adapter_set_bus_master(r->g->adapter, false);
	pvr_adapter_set_bus_master(r->g->adapter, true);
	assert_false(pvr_adapter_prepare_unmap_ram(r->g->adapter, T_SPARE_GPA, sizeof(t_spare)));
	pvr_adapter_fail(r->g->adapter, "a test");
	assert_true(pvr_adapter_busy(r->g->adapter));
	fg_run(env->host);
	assert_true(pvr_adapter_prepare_unmap_ram(r->g->adapter, T_SPARE_GPA, sizeof(t_spare)));
}

/* All pages are runs of their own: the extents become a table on the way. */
TEST_REG(test_region_of_scattered_pages_has_short_steps)
{
	begin(r);
	expect_ok(end(r));
	expect_short_steps(r);
}

TEST_REG(test_adapter_can_be_unplugged_during_a_long_command)
{
	begin(r);
	fg_guest_unplug(r->g);
	fg_run(env->host);
}

/* A window that is bound to the old region while the new one is being made. */
TEST_REG(test_window_bound_meanwhile_keeps_the_old_region)
{
	struct expose l;

	expose_init(&l, env, PVR_MR_FLAG_MW2);
	r->req.flags = PVR_MR_FLAG_LAYOUT | PVR_MR_FLAG_REPLACE;
	r->req.mr_handle = l.region.handle;
	r->req.page_shift = PVR_PAGE_SHIFT;
	r->req.pdir_levels = 2;
	r->req.offset = 0;
	begin(r);
	expose_put_bind(l.b, BIND_ID, &l.bind);
	fg_ring_send(&l.b->qp);
	pvr_engine_run(env->host->engine, 0);
	expect_done(&l.b->scq, BIND_ID, PVRDMA_WC_BIND_MW);
	assert_true(pvr_adapter_busy(r->g->adapter));
	assert_int_equal(end(r), EBUSY);
	l.mw.rkey = l.bind.new_rkey;
	expose_all_ok(&l);
}
