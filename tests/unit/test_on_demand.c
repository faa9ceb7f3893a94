// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_ON_DEMAND: regions whose pages are absent until a request touches them. */
#include "core/adapter.h"
#include "core/demand.h"

#include "hosts.h"
#include "rdma/responder_state.h"

TEST_EXT(PVR_EXT_MR_LAYOUT | PVR_EXT_ON_DEMAND | PVR_EXT_MW)

#define PAGES 80 /* more than one fragment */
#define SIZE (PAGES * PVR_PAGE_SIZE)

/* A region on demand of one end, and its pages while the device does not have them. */
struct demand {
	struct t_env *env;
	struct fg_end *end;
	struct fg_guest *g;
	struct pvr_cmd_create_mr req;
	struct fg_mr mr;
	uint32_t page[PAGES];
	uint64_t list_gpa;
};

static void demand_init(struct demand *d, struct t_env *env, struct fg_end *end)
{
	memset(d, 0, sizeof(*d));
	d->env = env;
	d->end = end;
	d->g = end->guest;
	d->req = fg_layout_request(&end->pd, 0, PVR_PAGE_SHIFT, FG_USER_VA, 0, SIZE);
	d->req.flags |= PVR_MR_FLAG_ON_DEMAND;
	d->req.nchunks = 0;
	expect_ok(fg_mr_create_as(&end->pd, &d->req, &d->mr));
	for (uint32_t i = 0; i < PAGES; i++)
		d->page[i] = fg_ram_get_page(&d->g->ram);
	d->list_gpa = fg_page_gpa(&d->g->ram, fg_ram_get_page(&d->g->ram));
}

static void demand_of_a(struct demand *d, struct t_env *env)
{
	demand_init(d, env, &env->a);
}

static void demand_of_b(struct demand *d, struct t_env *env)
{
	demand_init(d, env, &env->b);
}

#define TEST_LOCAL(name) TEST_OBJECT(rc_connected, struct demand, d, demand_of_a, name)
#define TEST_REMOTE(name) TEST_OBJECT(rc_connected, struct demand, d, demand_of_b, name)

static uint32_t set(struct demand *d, uint32_t state, uint64_t first, uint32_t npages)
{
	const struct pvr_cmd_set_pages req = { .hdr = FG_CMD_HDR(PVR_CMD_SET_PAGES),
					       .mr_handle = d->mr.handle,
					       .npages = npages,
					       .first = first,
					       .list_dma = d->list_gpa,
					       .state = state };

	return fg_cmd(d->g, &req, sizeof(req), NULL, 0);
}

static uint32_t present(struct demand *d, uint64_t first, uint32_t npages)
{
	uint64_t *list = fg_gpa_va(&d->g->ram, d->list_gpa);

	for (uint32_t i = 0; i < npages; i++)
		list[i] = fg_page_gpa(&d->g->ram, d->page[first + i]);
	return set(d, PVR_PAGES_PRESENT, first, npages);
}

static uint32_t query(struct demand *d, struct pvr_resp_query_fault *fault)
{
	const struct pvr_cmd_handle req = { .hdr = FG_CMD_HDR(PVR_CMD_QUERY_FAULT),
					    .handle = d->mr.handle };

	return fg_cmd(d->g, &req, sizeof(req), fault, sizeof(*fault));
}

/* The device has reported these pages, once. */
static void expect_fault(struct demand *d, uint64_t first, uint32_t npages)
{
	struct pvr_resp_query_fault fault;

	fg_run(d->env->host);
	expect_one_event(d->g, PVR_EVENT_PAGE_FAULT, d->mr.handle);
	expect_ok(query(d, &fault));
	assert_true(fault.first == first);
	assert_int_equal(fault.npages, npages);
	assert_int_equal(query(d, &fault), ENOENT);
}

/* They become present, and the request is executed. */
static void resolve(struct demand *d, uint64_t first, uint32_t npages)
{
	expect_fault(d, first, npages);
	expect_ok(present(d, first, npages));
	fg_settle(d->env->host, 20 * FG_MS);
}

static uint8_t *byte(struct demand *d, uint64_t at)
{
	return (uint8_t *)fg_page_va(&d->g->ram, d->page[at / PVR_PAGE_SIZE]) + at % PVR_PAGE_SIZE;
}

static void rdma(struct demand *d, enum pvrdma_wr_opcode op, uint64_t at, uint32_t len)
{
	if (d->end == &d->env->b)
		t_rdma(&d->env->a, op, 1, 0, &d->mr, at, len);
	else
		t_post(&d->env->a, .wr_id = 1, .opcode = op, T_SGE(&d->mr, at, len),
		       T_REMOTE(&d->env->b.mr, 0));
}

/* Other hosts; a connection has room for one fragment. */
T_SETUP_HOSTS(full, 2, .buffer = 16384)
{
	hosts_connect(env, &env->a, &env->b, PAGES);
}

/* The answer comes while the next fragment waits for room. Room is no reason to ask again at once. */
TEST_OBJECT(full, struct demand, d, demand_of_b,
	    test_requester_that_waits_for_room_waits_for_a_page)
{
	for (uint64_t i = 0; i < 3; i++)
		t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, i, 0, &d->mr, 0, 60000);
	assert_true(fg_run_bounded(env->host, 10000));
	expect_ok(present(d, 0, PAGES));
	fg_settle(env->host, FG_SEC);
	for (uint64_t i = 0; i < 3; i++)
		expect_written(&env->a, i);
}

TEST_REMOTE(test_write_to_an_absent_page_waits_for_it)
{
	d->env->a.mr.va[0] = 0x5a;
	rdma(d, PVRDMA_WR_RDMA_WRITE, 5 * PVR_PAGE_SIZE, 8);
	await_no_cqe(&env->a.scq);
	resolve(d, 5, 1);
	expect_written(&env->a, 1);
	assert_int_equal(*byte(d, 5 * PVR_PAGE_SIZE), 0x5a);
}

TEST_REMOTE(test_read_of_an_absent_page_waits_for_it)
{
	*byte(d, PVR_PAGE_SIZE + 7) = 0x77;
	rdma(d, PVRDMA_WR_RDMA_READ, PVR_PAGE_SIZE + 7, 1);
	resolve(d, 1, 1);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	assert_int_equal(env->a.mr.va[0], 0x77);
}

TEST_LOCAL(test_write_from_an_absent_page_waits_for_it)
{
	*byte(d, 3) = 0x33;
	rdma(d, PVRDMA_WR_RDMA_WRITE, 3, 1);
	await_no_cqe(&env->a.scq);
	resolve(d, 0, 1);
	expect_written(&env->a, 1);
	assert_int_equal(env->b.mr.va[0], 0x33);
}

TEST_LOCAL(test_read_into_an_absent_page_waits_for_it)
{
	env->b.mr.va[0] = 0x44;
	rdma(d, PVRDMA_WR_RDMA_READ, 0, 1);
	resolve(d, 0, 1);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	assert_int_equal(*byte(d, 0), 0x44);
}

/* b has executed a's next request while one of both was at another host. */
static struct pvr_qp *executed_elsewhere(struct t_env *env, uint64_t original)
{
	struct pvr_qp *qp = t_device_qp(&env->b);

	assert_true(pvr_host_rq_get(qp, NULL, true));
	pvr_replay_record(qp, qp->rq_psn, original);
	qp->rq_psn = (qp->rq_psn + 1) & 0xffffff;
	return qp;
}

TEST_LOCAL(test_read_that_was_executed_elsewhere_waits_for_its_page)
{
	t_one_host_only(env, "both are at one host");
	executed_elsewhere(env, 0);
	env->b.mr.va[0] = 0x45;
	rdma(d, PVRDMA_WR_RDMA_READ, 0, 1);
	resolve(d, 0, 1);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	assert_int_equal(*byte(d, 0), 0x45);
	expect_state(&env->b, PVR_QPS_RTS);
}

TEST_LOCAL(test_atomic_that_was_executed_elsewhere_waits_for_its_page)
{
	t_one_host_only(env, "both are at one host");
	executed_elsewhere(env, 77);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD, T_SGE(&d->mr, 0, 8),
	       T_REMOTE(&env->b.mr, 0), .compare_add = 2);
	resolve(d, 0, 1);
	expect_done(&env->a.scq, 1, PVRDMA_WC_FETCH_ADD);
	assert_true(*(uint64_t *)byte(d, 0) == 77);
	expect_state(&env->b, PVR_QPS_RTS);
}

TEST_LOCAL(test_page_of_a_read_that_was_executed_elsewhere_is_refused)
{
	t_one_host_only(env, "both are at one host");
	executed_elsewhere(env, 0);
	rdma(d, PVRDMA_WR_RDMA_READ, 0, 1);
	expect_fault(d, 0, 1);
	expect_ok(set(d, PVR_PAGES_REFUSED, 0, 1));
	fg_settle(env->host, 20 * FG_MS);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
}

/* On a segment without much room the other queue pair's data need several turns. */
TEST_REMOTE(test_read_that_waits_for_a_page_delays_no_other_queue_pair)
{
	struct fg_end c, other;

	t_open_pair(&c, env->g[0], &other, env->g[1]);
	rdma(d, PVRDMA_WR_RDMA_READ, 0, 1);
	fg_run(env->host);
	/* The wait grows with the age of the fault, to 10 ms. */
	fg_settle(env->host, 20 * FG_MS);
	if (env->segment)
		fg_segment_rules(env->segment)->room = 8;
	t_rdma(&c, PVRDMA_WR_RDMA_READ, 2, 0, &other.mr, 0, FG_END_PAGES * PVR_PAGE_SIZE);
	fg_settle(env->host, 3 * FG_MS);
	expect_done(&c.scq, 2, PVRDMA_WC_RDMA_READ);
	expect_no_cqe(&env->a.scq);
	expect_ok(present(d, 0, 1));
	fg_settle(env->host, 100 * FG_MS);
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
}

TEST_LOCAL(test_send_from_an_absent_page_waits_for_it)
{
	*byte(d, 0) = 0x21;
	t_recv(&env->b, 2, 0, 64);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, T_SGE(&d->mr, 0, 1));
	resolve(d, 0, 1);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 1);
	assert_int_equal(env->b.mr.va[0], 0x21);
}

TEST_REMOTE(test_receive_into_an_absent_page_waits_for_it)
{
	env->a.mr.va[0] = 0x66;
	t_recv_sge(&env->b, 2, fg_sge(&d->mr, 10, 8));
	t_send(&env->a, 1, 0, 8);
	await_no_cqe(&env->b.rcq);
	resolve(d, 0, 1);
	expect_recv(&env->b.rcq, 2, 8);
	expect_sent(&env->a, 1);
	assert_int_equal(*byte(d, 10), 0x66);
}

TEST_REMOTE(test_atomic_on_an_absent_page_executes_once)
{
	*(uint64_t *)byte(d, 8) = 40;
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	       T_SGE(&env->a.mr, 0, 8), T_REMOTE(&d->mr, 8), .compare_add = 2);
	resolve(d, 0, 1);
	expect_done(&env->a.scq, 1, PVRDMA_WC_FETCH_ADD);
	assert_true(*(uint64_t *)byte(d, 8) == 42 && *(uint64_t *)env->a.mr.va == 40);
}

TEST_LOCAL(test_atomic_with_an_absent_result_executes_once)
{
	*(uint64_t *)env->b.mr.va = 40;
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD, T_SGE(&d->mr, 0, 8),
	       T_REMOTE(&env->b.mr, 0), .compare_add = 2);
	resolve(d, 0, 1);
	expect_done(&env->a.scq, 1, PVRDMA_WC_FETCH_ADD);
	assert_true(*(uint64_t *)byte(d, 0) == 40 && *(uint64_t *)env->b.mr.va == 42);
}

/* Both pages of one request are one fault, those that are present are not part of it. */
TEST_REMOTE(test_fault_is_of_the_absent_pages_alone)
{
	expect_ok(present(d, 2, 1));
	rdma(d, PVRDMA_WR_RDMA_WRITE, 2 * PVR_PAGE_SIZE + 100, 3 * PVR_PAGE_SIZE);
	resolve(d, 3, 3);
	expect_written(&env->a, 1);
}

TEST_REMOTE(test_present_pages_need_no_fault)
{
	expect_ok(present(d, 0, PAGES));
	rdma(d, PVRDMA_WR_RDMA_WRITE, 0, 3 * PVR_PAGE_SIZE);
	fg_run(env->host);
	expect_written(&env->a, 1);
	await_no_event(d->g);
}

TEST_REMOTE(test_removed_page_is_not_used_any_more)
{
	expect_ok(present(d, 0, 1));
	expect_ok(set(d, PVR_PAGES_ABSENT, 0, 1));
	*byte(d, 0) = 0x11;
	env->a.mr.va[0] = 0x22;
	rdma(d, PVRDMA_WR_RDMA_WRITE, 0, 1);
	fg_run(env->host);
	assert_int_equal(*byte(d, 0), 0x11);
	d->page[0] = d->page[1]; /* the program has new memory there */
	resolve(d, 0, 1);
	expect_written(&env->a, 1);
	assert_int_equal(*byte(d, 0), 0x22);
}

TEST_REMOTE(test_refused_fault_fails_the_remote_request)
{
	rdma(d, PVRDMA_WR_RDMA_WRITE, 0, 8);
	expect_fault(d, 0, 1);
	expect_ok(set(d, PVR_PAGES_REFUSED, 0, 1));
	fg_settle(env->host, 20 * FG_MS);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

TEST_LOCAL(test_refused_fault_fails_the_own_request_alone)
{
	rdma(d, PVRDMA_WR_RDMA_WRITE, 0, 8);
	expect_fault(d, 0, 1);
	expect_ok(set(d, PVR_PAGES_REFUSED, 0, 1));
	fg_settle(env->host, 20 * FG_MS);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
	expect_state(&env->b, PVR_QPS_RTS);
}

TEST_REMOTE(test_refused_fault_of_a_receive_fails_both_sides)
{
	t_recv_sge(&env->b, 2, fg_sge(&d->mr, 0, 8));
	t_send(&env->a, 1, 0, 8);
	expect_fault(d, 0, 1);
	expect_ok(set(d, PVR_PAGES_REFUSED, 0, 1));
	fg_settle(env->host, 20 * FG_MS);
	expect_cqe(&env->b.rcq, 2, PVRDMA_WC_LOC_PROT_ERR);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_OP_ERR);
}

/* The refused request is gone: the page may exist when the next one comes. */
TEST_REMOTE(test_refusal_does_not_stay)
{
	rdma(d, PVRDMA_WR_RDMA_WRITE, 0, 8);
	expect_fault(d, 0, 1);
	expect_ok(set(d, PVR_PAGES_REFUSED, 0, 1));
	t_reconnect(env);
	fg_advance(env->host, 2 * FG_SEC);
	rdma(d, PVRDMA_WR_RDMA_WRITE, 0, 8);
	resolve(d, 0, 1);
	expect_written(&env->a, 1);
}

TEST_REMOTE(test_guest_that_does_not_respond_is_reminded)
{
	uint32_t before;

	rdma(d, PVRDMA_WR_RDMA_WRITE, 0, 8);
	fg_settle(env->host, FG_SEC);
	before = fg_events_count(d->g, PVR_EVENT_PAGE_FAULT, d->mr.handle);
	assert_in_range(before, 5, 11);
	expect_no_cqe(&env->a.scq);
	expect_state(&env->a, PVR_QPS_RTS);
	expect_ok(present(d, 0, 1));
	fg_settle(env->host, 20 * FG_MS);
	expect_written(&env->a, 1);
}

TEST_REMOTE(test_waiting_queue_pair_and_its_region_can_be_destroyed)
{
	rdma(d, PVRDMA_WR_RDMA_WRITE, 0, 8);
	expect_fault(d, 0, 1);
	expect_ok(fg_mr_destroy(&d->mr));
	expect_refused(present(d, 0, 1));
	fg_settle(env->host, 20 * FG_MS);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
	expect_no_timer(env->host);
}

TEST_REMOTE(test_waiting_queue_pair_can_be_reset)
{
	rdma(d, PVRDMA_WR_RDMA_WRITE, 0, 8);
	expect_fault(d, 0, 1);
	t_reconnect(env);
	fg_run(env->host);
	expect_no_timer(env->host);
	t_ping_pong(env->host, &env->a, &env->b);
}

/* A page of a later fragment is removed after the first fragment. */
TEST_REMOTE(test_page_is_removed_during_a_long_message)
{
	struct fg_mr wide;

	t_wide_mr(&env->a, PAGES, &wide);
	expect_ok(present(d, 0, 64));
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, T_SGE(&wide, 0, SIZE),
	       T_REMOTE(&d->mr, 0));
	expect_fault(d, 64, 16);
	/* Not needed any more, even if the first quantum was one beside another adapter. */
	expect_ok(set(d, PVR_PAGES_ABSENT, 0, 16));
	expect_ok(present(d, 64, 16));
	fg_settle(env->host, 20 * FG_MS);
	expect_written(&env->a, 1);
	await_no_event(d->g);
}

TEST_REMOTE(test_bad_pages_are_refused)
{
	uint64_t *list = fg_gpa_va(&d->g->ram, d->list_gpa);

	assert_int_equal(present(d, 0, 0), EINVAL);
	assert_int_equal(set(d, PVR_PAGES_PRESENT, PAGES, 1), EINVAL);
	assert_int_equal(set(d, PVR_PAGES_PRESENT, PAGES - 1, 2), EINVAL);
	assert_int_equal(set(d, PVR_PAGES_ABSENT, UINT64_MAX, 2), EINVAL);
	assert_int_equal(set(d, PVR_PAGES_NUM, 0, 1), EINVAL);
	assert_int_equal(set(d, PVR_PAGES_REFUSED, 0, 1), EINVAL); /* no fault */
	list[0] = 1ull << 50; /* no RAM */
	assert_int_equal(set(d, PVR_PAGES_PRESENT, 0, 1), EFAULT);
	expect_ok(present(d, 0, 1));
	list[0] = fg_page_gpa(&d->g->ram, d->page[1]);
	assert_int_equal(set(d, PVR_PAGES_PRESENT, 0, 1), EINVAL); /* another page is present */
	d->list_gpa = 1ull << 50;
	assert_int_equal(set(d, PVR_PAGES_PRESENT, 1, 1), EFAULT);
}

TEST_REMOTE(test_other_regions_have_no_such_pages)
{
	d->mr.handle = env->b.mr.handle;
	assert_int_equal(present(d, 0, 1), EINVAL);
}

TEST_REMOTE(test_bad_regions_are_refused)
{
	struct pvr_cmd_create_mr req = d->req;
	struct pvr_resp_create_mr resp;

	req.access_flags |= PVR_ACCESS_MW_BIND;
	assert_int_equal(fg_create_mr(d->g, &req, &resp), EOPNOTSUPP);
	req = d->req;
	req.page_shift = 21;
	assert_int_equal(fg_create_mr(d->g, &req, &resp), EINVAL);
	req = d->req;
	req.nchunks++;
	assert_int_equal(fg_create_mr(d->g, &req, &resp), EINVAL);
	req = d->req;
	req.length = 0;
	assert_int_equal(fg_create_mr(d->g, &req, &resp), EINVAL);
	req.length = (1ull << 47) + 1;
	assert_int_equal(fg_create_mr(d->g, &req, &resp), EINVAL);
	req = d->req;
	req.offset = PVR_PAGE_SIZE;
	assert_int_equal(fg_create_mr(d->g, &req, &resp), EINVAL);
}

TEST_REMOTE(test_pages_of_removed_ram_break_the_region)
{
	uint64_t *list = fg_gpa_va(&d->g->ram, d->list_gpa);

	t_plug_spare(d->g);
	list[0] = T_SPARE_GPA;
	expect_ok(set(d, PVR_PAGES_PRESENT, 0, 1));
	t_unplug_spare(d->g);
	rdma(d, PVRDMA_WR_RDMA_WRITE, 0, 8);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}

/* ------------------------------------------------------------------- datagrams */

/* The queue pairs of @d's test are of UD. */
#define TEST_UD(name, of) TEST_OBJECT(ud_ready, struct demand, d, of, name)

static void send_ud(struct t_env *env, const struct fg_mr *mr)
{
	struct pvrdma_av to_b = fg_av(&env->a.pd, env->b.gid, 0);

	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_SEND, T_UD(&to_b, &env->b),
	       T_SGE(mr, 0, 8));
	t_run_ud(env->host);
}

TEST_UD(test_datagram_from_an_absent_page_waits_for_it, demand_of_a)
{
	*byte(d, 0) = 0x12;
	t_recv(&env->b, 2, 0, 64);
	send_ud(env, &d->mr);
	expect_no_cqe(&env->a.scq);
	resolve(d, 0, 1);
	t_run_ud(env->host);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 40 + 8);
	assert_int_equal(env->b.mr.va[40], 0x12);
}

TEST_UD(test_refused_fault_of_a_datagram_fails_it, demand_of_a)
{
	send_ud(env, &d->mr);
	expect_fault(d, 0, 1);
	expect_ok(set(d, PVR_PAGES_REFUSED, 0, 1));
	fg_settle(env->host, 20 * FG_MS);
	expect_cqe(&env->a.scq, 1, PVRDMA_WC_LOC_PROT_ERR);
}

/* Datagrams are unreliable: the first one brings the page, and its receive request stays. */
TEST_UD(test_datagram_to_an_absent_page_is_lost, demand_of_b)
{
	t_recv_sge(&env->b, 2, fg_sge(&d->mr, 0, 64));
	send_ud(env, &env->a.mr);
	expect_sent(&env->a, 1);
	resolve(d, 0, 1);
	expect_no_cqe(&env->b.rcq);
	send_ud(env, &env->a.mr);
	expect_sent(&env->a, 1);
	expect_recv(&env->b.rcq, 2, 40 + 8);
}

/* ------------------------------------------------------- responses of other hosts */

/* Post, and take page 0 before the response arrives. On one host it has arrived. */
#define TAKEN_MEANWHILE(d, ...)                                    \
	do {                                                       \
		expect_ok(present(d, 0, 1));                       \
		if ((d)->env->wire)                                \
			fg_wire_hold((d)->env->wire, 1, 0, true);  \
		t_post((d)->end, .wr_id = 1, ##__VA_ARGS__);       \
		fg_run((d)->env->host);                            \
		expect_ok(set(d, PVR_PAGES_ABSENT, 0, 1));         \
		if ((d)->env->wire)                                \
			fg_wire_hold((d)->env->wire, 1, 0, false); \
		if ((d)->env->wire)                                \
			resolve(d, 0, 1);                          \
		fg_settle((d)->env->host, 20 * FG_MS);             \
	} while (0)

TEST_LOCAL(test_page_is_taken_before_the_data_of_a_read_arrive)
{
	env->b.mr.va[0] = 0x44;
	TAKEN_MEANWHILE(d, .opcode = PVRDMA_WR_RDMA_READ, T_SGE(&d->mr, 0, 8),
			T_REMOTE(&env->b.mr, 0));
	expect_done(&env->a.scq, 1, PVRDMA_WC_RDMA_READ);
	assert_int_equal(*byte(d, 0), 0x44);
}

TEST_LOCAL(test_page_is_taken_before_the_value_of_an_atomic_arrives)
{
	*(uint64_t *)env->b.mr.va = 40;
	TAKEN_MEANWHILE(d, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD, T_SGE(&d->mr, 0, 8),
			T_REMOTE(&env->b.mr, 0), .compare_add = 2);
	expect_done(&env->a.scq, 1, PVRDMA_WC_FETCH_ADD);
	assert_true(*(uint64_t *)byte(d, 0) == 40 && *(uint64_t *)env->b.mr.va == 42);
}

/* Requests before it are in flight, and those behind it wait. */
TEST_LOCAL(test_absent_page_holds_up_only_what_is_behind_it)
{
	*byte(d, 0) = 0x31;
	env->a.mr.va[8] = 0x32;
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 1, 8, &env->b.mr, 8, 1);
	rdma(d, PVRDMA_WR_RDMA_WRITE, 0, 1);
	t_rdma(&env->a, PVRDMA_WR_RDMA_WRITE, 3, 8, &env->b.mr, 16, 1);
	fg_run(env->host);
	expect_written(&env->a, 1);
	expect_no_cqe(&env->a.scq);
	assert_true(env->b.mr.va[8] == 0x32 && !env->b.mr.va[16]);
	resolve(d, 0, 1);
	expect_written(&env->a, 1);
	expect_written(&env->a, 3);
	assert_true(env->b.mr.va[0] == 0x31 && env->b.mr.va[16] == 0x32);
}

/* A page fault of the responder costs no retry, also on another host. */
TEST_REMOTE(test_page_fault_of_the_responder_costs_no_retry)
{
	struct fg_conn conn = t_conn_rnr(0, 1);

	t_not_on_segment(env, "RoCE has no other answer than an RNR NAK");
	expect_ok(fg_qp_to_reset(&env->a.qp));
	expect_ok(fg_qp_to_reset(&env->b.qp));
	fg_end_connect(&env->a, &env->b, &conn);
	rdma(d, PVRDMA_WR_RDMA_WRITE, 0, 8);
	fg_settle(env->host, 2 * FG_SEC);
	expect_no_cqe(&env->a.scq);
	expect_ok(present(d, 0, 1));
	fg_settle(env->host, 20 * FG_MS);
	expect_written(&env->a, 1);
}

/* ------------------------------------------------------------------ all addresses */

#define EVERYTHING (1ull << 47)
#define LEAF_PAGES 512

static void everything_of_b(struct demand *d, struct t_env *env)
{
	demand_init(d, env, &env->b);
	expect_ok(fg_mr_destroy(&d->mr));
	d->req.start = 0;
	d->req.length = EVERYTHING;
	expect_ok(fg_mr_create_as(&d->end->pd, &d->req, &d->mr));
}

#define TEST_EVERYTHING(name) TEST_OBJECT(rc_connected, struct demand, d, everything_of_b, name)

static uint64_t charged(struct demand *d)
{
	return d->g->adapter->charged;
}

/* Enter page @i of the test's memory as page @first of the region. */
static uint32_t enter_at(struct demand *d, uint64_t first, uint32_t i)
{
	uint64_t *list = fg_gpa_va(&d->g->ram, d->list_gpa);

	list[0] = fg_page_gpa(&d->g->ram, d->page[i]);
	return set(d, PVR_PAGES_PRESENT, first, 1);
}

TEST_EVERYTHING(test_region_of_all_addresses_has_pages_anywhere)
{
	static const uint64_t at[] = { 0, 0x7f1234567000, EVERYTHING - PVR_PAGE_SIZE };

	for (uint32_t i = 0; i < COUNT(at); i++) {
		env->a.mr.va[0] = (uint8_t)(i + 1);
		t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, T_SGE(&env->a.mr, 0, 1),
		       .remote_addr = at[i] + 9, .rkey = d->mr.rkey);
		expect_fault(d, at[i] / PVR_PAGE_SIZE, 1);
		expect_ok(enter_at(d, at[i] / PVR_PAGE_SIZE, i));
		fg_settle(env->host, 20 * FG_MS);
		expect_written(&env->a, 1);
		assert_int_equal(*byte(d, i * PVR_PAGE_SIZE + 9), i + 1);
	}
}

/* Two pages of two nodes are one request. */
TEST_EVERYTHING(test_request_crosses_a_node)
{
	uint64_t first = 7 * LEAF_PAGES - 1;

	memset(env->a.mr.va, 0x5b, 2 * PVR_PAGE_SIZE);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE,
	       T_SGE(&env->a.mr, 0, 2 * PVR_PAGE_SIZE), .remote_addr = first * PVR_PAGE_SIZE,
	       .rkey = d->mr.rkey);
	expect_fault(d, first, 2);
	expect_ok(enter_at(d, first, 0));
	expect_ok(enter_at(d, first + 1, 1));
	fg_settle(env->host, 20 * FG_MS);
	expect_written(&env->a, 1);
	assert_true(*byte(d, 0) == 0x5b && *byte(d, 2 * PVR_PAGE_SIZE - 1) == 0x5b);
}

TEST_EVERYTHING(test_absent_pages_cost_nothing)
{
	uint64_t empty = charged(d);

	assert_in_range(empty, 1 << 20, 3 << 20);
	expect_ok(enter_at(d, 0, 0));
	expect_ok(enter_at(d, EVERYTHING / PVR_PAGE_SIZE - 1, 1));
	assert_in_range(charged(d) - empty, 4 * 4096, 4 * 4096 + 256);
	expect_ok(set(d, PVR_PAGES_ABSENT, 0, PVR_SET_ABSENT_MAX));
	assert_in_range(charged(d) - empty, 2 * 4096, 2 * 4096 + 128);
	expect_ok(set(d, PVR_PAGES_ABSENT, EVERYTHING / PVR_PAGE_SIZE - 16384, 16384));
	assert_true(charged(d) == empty);
}

/* The guest uses one page a node until its limit: the refusal changes nothing. */
TEST_EVERYTHING(test_pages_beyond_the_limit_are_refused)
{
	uint64_t before, first = LEAF_PAGES - 1;
	uint32_t err = 0;

	for (; !err && first < EVERYTHING / PVR_PAGE_SIZE; first += LEAF_PAGES) {
		before = charged(d);
		err = enter_at(d, first, 0);
	}
	assert_int_equal(err, ENOMEM);
	assert_true(charged(d) == before);
	t_ping_pong(env->host, &env->a, &env->b);
	expect_ok(fg_mr_destroy(&d->mr)); /* in steps */
	assert_true(charged(d) < 4 << 20);
}

/* Pages in more nodes than a step frees. */
static void enter_many(struct demand *d)
{
	uint64_t nodes = 2 * PVR_STEP_WORK / PVR_WORK_WINDOW;

	for (uint64_t i = 0; i < nodes; i++)
		expect_ok(enter_at(d, i * LEAF_PAGES, 0));
}

/* A region of four pages. */
static struct pvr_cmd_create_mr smaller(struct demand *d)
{
	struct pvr_cmd_create_mr req;
	struct fg_buf buf;

	fg_buf_init(&buf, &d->g->ram, 4, FG_SCATTERED);
	req = fg_layout_request(&d->end->pd, buf.pdir, PVR_PAGE_SHIFT, FG_USER_VA, 0,
				4 * PVR_PAGE_SIZE);
	req.flags |= PVR_MR_FLAG_REPLACE;
	req.mr_handle = d->mr.handle;
	return req;
}

TEST_EVERYTHING(test_replaced_region_is_freed_in_steps)
{
	struct pvr_cmd_create_mr req = smaller(d);
	struct pvr_resp_create_mr resp;

	enter_many(d);
	d->g->adapter->job.longest = 0;
	fg_cmd_begin(d->g, &req, sizeof(req));
	assert_true(pvr_adapter_busy(d->g->adapter));
	assert_true(charged(d) > 16 << 20);
	expect_ok(fg_cmd_end(d->g, &req, &resp, sizeof(resp)));
	assert_int_equal(resp.rkey, d->mr.rkey);
	assert_in_range(d->g->adapter->job.longest, PVR_STEP_WORK,
			PVR_STEP_WORK + PVR_DEMAND_NODE * PVR_WORK_WINDOW);
	assert_true(charged(d) < 1 << 20);
	t_write_to(env, d->mr.rkey, FG_USER_VA + 4 * PVR_PAGE_SIZE - 64, 64, PVRDMA_WC_SUCCESS);
}

TEST_EVERYTHING(test_reset_frees_the_rest_of_a_replaced_region)
{
	struct pvr_cmd_create_mr req = smaller(d);

	enter_many(d);
	fg_cmd_begin(d->g, &req, sizeof(req));
	assert_true(pvr_adapter_busy(d->g->adapter));
	assert_non_null(d->g->adapter->replaced);
	pvr_adapter_reset(d->g->adapter);
	while (pvr_adapter_busy(d->g->adapter))
		pvr_engine_run(d->g->adapter->engine, 0);
	assert_null(d->g->adapter->replaced);
	assert_true(charged(d) == 0);
}

TEST_EVERYTHING(test_pages_of_removed_ram_are_found_anywhere)
{
	uint64_t *list = fg_gpa_va(&d->g->ram, d->list_gpa);

	t_plug_spare(d->g);
	list[0] = T_SPARE_GPA;
	expect_ok(set(d, PVR_PAGES_PRESENT, EVERYTHING / PVR_PAGE_SIZE - 3, 1));
	t_unplug_spare(d->g);
	t_post(&env->a, .wr_id = 1, .opcode = PVRDMA_WR_RDMA_WRITE, T_SGE(&env->a.mr, 0, 1),
	       .remote_addr = 0, .rkey = d->mr.rkey);
	await_cqe(&env->a.scq, 1, PVRDMA_WC_REM_ACCESS_ERR);
}
