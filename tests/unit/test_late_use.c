// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Uses of objects whose RAM is gone. A guest has an object of each kind, with everything that can
 * wait: notifications, timers, requesters. One page after the other is unplugged, with the shared
 * region and the rings of the device among them. Then each command, doorbell and request follows.
 */
#include <string.h>
#include <sys/mman.h>

#include "ends.h"
#include "fg_cmd.h"
#include "fg_event.h"
#include "fg_gid.h"
#include "fg_migrate.h"
#include "fg_xrc.h"
#include "slots.h"

#define ENDS 4
#define FAST_PAGES 2
#define VIEWS 3

TEST_EXT(PVR_ENGINE_EXT)

enum which { RC, SHARED, UD, XRC };

struct world {
	struct t_env *env;
	struct fg_guest *g; /* whose RAM goes */
	struct fg_end end[ENDS]; /* of @g; XRC: without a use of its queue pair */
	struct fg_end peer[ENDS]; /* RC, RC, UD, an XRC initiator */
	struct fg_end other; /* of a third guest */
	struct fg_xrcd xrcd;
	struct fg_qp target;
	struct fg_srq srq, xrc_srq;
	struct fg_cq vector_cq; /* on vector 1, and timestamps */
	struct fg_mr fast, demand, bindable, window[2];
	struct fg_buf pages; /* of these regions */
	struct fg_buf spare; /* a ring may move here */
	uint64_t list_gpa; /* of SET_PAGES */
	uint32_t list_page;
	uint32_t shared_page[VIEWS]; /* shared region, command slots */
	void *view[VIEWS]; /* the guest's */
};

/* ----------------------------------------------------------------------------- world */

T_SETUP(late, host)
{
	env->g[0] = t_split_guest(env->host, 1);
	env->g[1] = fg_guest_start(t_other_host(env), 2);
	env->g[2] = fg_guest_start(env->host, 3);
}

static void *view_of(struct world *w, uint32_t page)
{
	void *va = mmap(NULL, PVR_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, w->g->ram.fd,
			(off_t)page << PVR_PAGE_SHIFT);

	assert_ptr_not_equal(va, MAP_FAILED);
	return va;
}

/* Shared region and rings of the device move to slots. The guest sees them by other addresses. */
static void move_shared(struct world *w)
{
	struct fg_guest *g = w->g;
	uint64_t *const gpa[VIEWS] = { &g->dsr_gpa, &g->cmd_gpa, &g->resp_gpa };

	fg_buf_exit(&g->async_ring);
	fg_buf_exit(&g->cq_ring);
	t_prefer_slots(&g->ram, true);
	for (int i = 0; i < VIEWS; i++) {
		w->shared_page[i] = fg_ram_get_page(&g->ram);
		*gpa[i] = fg_page_gpa(&g->ram, w->shared_page[i]);
		w->view[i] = view_of(w, w->shared_page[i]);
	}
	g->dsr = w->view[0];
	g->cmd_slot = w->view[1];
	g->resp_slot = w->view[2];
	fg_buf_init(&g->async_ring, &g->ram, g->config.ring_pages, FG_SCATTERED);
	fg_buf_init(&g->cq_ring, &g->ram, g->config.ring_pages, FG_SCATTERED);
	t_prefer_slots(&g->ram, false);
}

static void world_init(struct world *w, struct t_env *env)
{
	static const enum pvr_qp_type types[ENDS] = { PVR_QPT_RC, PVR_QPT_RC, PVR_QPT_UD,
						      PVR_QPT_XRC_INI };

	t_slots_init();
	memset(w, 0, sizeof(*w));
	w->env = env;
	w->g = env->g[0];
	move_shared(w);
	for (int i = 0; i < ENDS; i++)
		fg_end_open(&w->peer[i], env->g[1], types[i]);
	t_open_self(&w->other, env->g[2]);
}

/* ---------------------------------------------------------------------------- objects */

static struct fg_end open_end(struct world *w, enum pvr_qp_type type)
{
	const struct fg_qp_spec spec = { .type = type, .sq_wr = 16, .rq_wr = 16 };
	struct fg_end end;

	fg_end_open_spec(&end, &w->g->kernel, &spec, 1);
	return end;
}

static uint32_t set_page(struct world *w, uint32_t state)
{
	const struct pvr_cmd_set_pages req = { .hdr = FG_CMD_HDR(PVR_CMD_SET_PAGES),
					       .mr_handle = w->demand.handle,
					       .npages = 1,
					       .list_dma = w->list_gpa,
					       .state = state };

	*(uint64_t *)fg_gpa_va(&w->g->ram, w->list_gpa) = fg_buf_gpa(&w->pages, 0);
	return fg_cmd(w->g, &req, sizeof(req), NULL, 0);
}

static void bind(struct world *w, int i)
{
	struct fg_wr wr = { .wr_id = 300, .opcode = PVRDMA_WR_BIND_MW };
	struct pvr_wqe_bind_mw bind = { .addr = w->bindable.start,
					.length = 64,
					.mr_lkey = w->bindable.lkey,
					.mw_rkey = w->window[i].rkey,
					.new_rkey = w->window[i].rkey,
					.access_flags = PVR_ACCESS_REMOTE_WRITE };
	struct pvrdma_sq_wqe_hdr *hdr =
		fg_sq_wqe(&w->end[RC].qp, w->end[RC].qp.sq_tail & (w->end[RC].qp.sq_wr - 1));

	if (!fg_put_send(&w->end[RC].qp, &wr))
		return;
	memcpy(&hdr->wr, &bind, sizeof(bind));
	fg_ring_send(&w->end[RC].qp);
}

static void fast_register(struct world *w)
{
	struct fg_wr wr = { .wr_id = 301, .opcode = PVRDMA_WR_FAST_REG_MR };
	struct fg_qp *qp = &w->end[RC].qp;
	struct pvrdma_sq_wqe_hdr *hdr = fg_sq_wqe(qp, qp->sq_tail & (qp->sq_wr - 1));

	if (!fg_put_send(qp, &wr))
		return;
	hdr->wr.fast_reg.iova_start = FG_USER_VA;
	hdr->wr.fast_reg.pl_pdir_dma = w->pages.pdir;
	hdr->wr.fast_reg.page_shift = PVR_PAGE_SHIFT;
	hdr->wr.fast_reg.page_list_len = FAST_PAGES;
	hdr->wr.fast_reg.length = FAST_PAGES * PVR_PAGE_SIZE;
	hdr->wr.fast_reg.access_flags = FG_ACCESS_ALL;
	hdr->wr.fast_reg.rkey = w->fast.rkey;
	fg_ring_send(qp);
}

static void open_regions(struct world *w)
{
	const struct fg_pd *pd = &w->end[RC].pd;
	struct pvr_cmd_create_mr req = { .hdr = FG_CMD_HDR(PVR_CMD_CREATE_MR),
					 .pd_handle = pd->handle,
					 .flags = PVR_MR_FLAG_FRMR,
					 .nchunks = FAST_PAGES };

	fg_buf_init(&w->pages, &w->g->ram, FAST_PAGES, FG_SCATTERED);
	expect_ok(fg_mr_create_as(pd, &req, &w->fast));
	req = fg_layout_request(pd, 0, PVR_PAGE_SHIFT, FG_USER_VA, 0, FAST_PAGES * PVR_PAGE_SIZE);
	req.flags |= PVR_MR_FLAG_ON_DEMAND;
	req.nchunks = 0;
	expect_ok(fg_mr_create_as(pd, &req, &w->demand));
	expect_ok(set_page(w, PVR_PAGES_PRESENT));
	expect_ok(fg_mr_create(pd, &w->pages, FG_ACCESS_ALL | PVR_ACCESS_MW_BIND, &w->bindable));
	expect_ok(fg_mw_create(pd, PVR_MR_FLAG_MW1, &w->window[0]));
	expect_ok(fg_mw_create(pd, PVR_MR_FLAG_MW2, &w->window[1]));
}

static void open_objects(struct world *w)
{
	static const enum pvr_qp_type types[ENDS] = { PVR_QPT_RC, PVR_QPT_RC, PVR_QPT_UD,
						      PVR_QPT_RC };

	w->list_page = fg_ram_get_page(&w->g->ram);
	w->list_gpa = fg_page_gpa(&w->g->ram, w->list_page);
	t_prefer_slots(&w->g->ram, true);
	expect_ok(fg_vector_open(w->g, 1));
	for (int i = 0; i < ENDS; i++)
		w->end[i] = open_end(w, types[i]);
	t_srq_use(&w->end[SHARED], 16, &w->srq);
	expect_ok(fg_xrcd_create(w->g, &w->xrcd));
	expect_ok(
		fg_xrc_srq_create(&w->xrcd, &w->end[XRC].pd, &w->end[XRC].rcq, 16, 1, &w->xrc_srq));
	expect_ok(fg_xrc_tgt_create(&w->xrcd, &w->target));
	expect_ok(fg_cq_create_on(&w->g->kernel, 1, 64, &w->vector_cq));
	open_regions(w);
	fg_buf_init(&w->spare, &w->g->ram, 8, FG_SCATTERED);
	t_prefer_slots(&w->g->ram, false);
}

static void connect_peer(struct world *w, enum which i, const struct fg_qp *own)
{
	struct fg_qp *peer = &w->peer[i].qp;

	if (fg_qp_state(peer) != PVR_QPS_RESET)
		expect_ok(fg_qp_to_reset(peer));
	fg_cq_drain(&w->peer[i].scq);
	fg_cq_drain(&w->peer[i].rcq);
	expect_ok(fg_qp_connect(peer, NULL, w->end[i].gid, own->qpn));
}

static void connect(struct world *w, enum which i, struct fg_qp *own)
{
	connect_peer(w, i, own);
	expect_ok(fg_qp_connect(own, NULL, w->peer[i].gid, w->peer[i].qp.qpn));
}

/* A queue pair without memory stays in its state. */
static void connect_again(struct world *w, enum which i)
{
	struct fg_qp *own = &w->end[i].qp;

	connect_peer(w, i, own);
	fg_qp_to_reset(own);
	fg_qp_connect(own, NULL, w->peer[i].gid, w->peer[i].qp.qpn);
}

/* --------------------------------------------------------------------------- requests */

static void peer_sends(struct world *w)
{
	t_send(&w->peer[RC], 1, 0, 64);
	t_send(&w->peer[SHARED], 1, 0, 64);
	t_send_ud(&w->peer[UD], &w->end[UD], 1, 0, 64);
	t_post(&w->peer[XRC], .wr_id = 1, .opcode = PVRDMA_WR_SEND, .srqn = w->xrc_srq.handle,
	       T_SGE(&w->peer[XRC].mr, 0, 64));
}

static void recvs(struct world *w)
{
	t_recv(&w->end[RC], 2, 0, 64);
	t_recv(&w->end[UD], 2, 0, 128);
	t_srq_recv(&w->srq, 2, &w->end[SHARED].mr, 0, 64);
	t_srq_recv(&w->xrc_srq, 2, &w->end[XRC].mr, 0, 64);
}

static void moderate(struct world *w)
{
	fg_modify_cq(w->g, w->vector_cq.handle, 100, 1000);
	for (int i = 0; i < ENDS; i++) {
		fg_modify_cq(w->g, w->end[i].scq.handle, 100, 1000);
		fg_modify_cq(w->g, w->end[i].rcq.handle, 100, 1000);
	}
}

static void arm(struct world *w)
{
	fg_cq_arm(&w->vector_cq);
	for (int i = 0; i < ENDS; i++) {
		fg_cq_arm(&w->end[i].scq);
		fg_cq_arm(&w->end[i].rcq);
	}
}

/* Each queue has completed a request, each notification waits, and so does each requester. */
static void fill(struct world *w)
{
	connect(w, RC, &w->end[RC].qp);
	connect(w, SHARED, &w->end[SHARED].qp);
	connect(w, UD, &w->end[UD].qp);
	connect(w, XRC, &w->target);
	moderate(w);
	arm(w);
	expect_ok(fg_srq_set_limit(&w->srq, 1));
	fast_register(w);
	bind(w, 0);
	bind(w, 1);
	recvs(w);
	peer_sends(w);
	for (int i = RC; i <= SHARED; i++)
		t_rdma(&w->end[i], PVRDMA_WR_RDMA_READ, 3, 0, &w->peer[i].mr, 0, 64);
	fg_run(w->env->host);
	peer_sends(w);
	t_send(&w->end[RC], 4, 0, 64);
	fg_run(w->env->host);
}

static void world_open(struct world *w)
{
	uint8_t gid[16];

	expect_ok(fg_guest_boot(w->g));
	fg_gid_from_mac(gid, w->g->config.mac);
	expect_ok(fg_bind_gid(w->g, 0, gid));
	open_objects(w);
	fill(w);
}

static void end_drop(struct fg_end *end)
{
	fg_qp_drop(&end->qp);
	fg_buf_exit(&end->scq.buf);
	fg_buf_exit(&end->rcq.buf);
	fg_buf_exit(&end->buf);
}

/* The device has been reset. */
static void world_drop(struct world *w)
{
	for (int i = 0; i < ENDS; i++)
		end_drop(&w->end[i]);
	fg_qp_drop(&w->target);
	fg_buf_exit(&w->srq.buf);
	fg_buf_exit(&w->xrc_srq.buf);
	fg_buf_exit(&w->vector_cq.buf);
	fg_buf_exit(&w->g->vector[1].buf);
	memset(&w->g->vector[1], 0, sizeof(w->g->vector[1]));
	fg_buf_exit(&w->pages);
	fg_buf_exit(&w->spare);
	fg_ram_put_page(&w->g->ram, w->list_page);
}

/* --------------------------------------------------------------------------- commands */

/* Each sends the command for all objects. The result is that of an object with or without RAM. */

static void query_port(struct world *w)
{
	struct pvr_port_attr attr;

	fg_query_port(w->g, 1, &attr);
}

static void query_pkey(struct world *w)
{
	uint16_t pkey;

	fg_query_pkey(w->g, 1, 0, &pkey);
}

static void create_pd(struct world *w)
{
	struct fg_pd pd;

	if (!fg_pd_create(&w->g->kernel, &pd))
		fg_pd_destroy(&pd);
}

static void destroy_pd(struct world *w)
{
	for (int i = 0; i < ENDS; i++)
		fg_pd_destroy(&w->end[i].pd);
}

static void create_mr(struct world *w)
{
	const struct fg_pd *pd = &w->end[RC].pd;
	struct pvr_cmd_create_mr req =
		fg_layout_request(pd, w->pages.pdir, PVR_PAGE_SHIFT, FG_USER_VA, 0, 4096);
	struct fg_mr *const old[] = { &w->demand, &w->bindable, &w->end[RC].mr };
	struct pvr_resp_create_mr resp;

	for (size_t i = 0; i < COUNT(old); i++) {
		req.flags |= PVR_MR_FLAG_REPLACE;
		req.mr_handle = old[i]->handle;
		fg_create_mr(w->g, &req, &resp);
	}
	req.flags &= ~PVR_MR_FLAG_REPLACE;
	fg_create_mr(w->g, &req, &resp);
}

static void destroy_mr(struct world *w)
{
	struct fg_mr *const mrs[] = { &w->bindable,  &w->window[0], &w->window[1],
				      &w->bindable,  &w->fast,	    &w->demand,
				      &w->end[0].mr, &w->end[1].mr, &w->end[2].mr };

	for (size_t i = 0; i < COUNT(mrs); i++)
		fg_mr_destroy(mrs[i]);
}

static void create_cq(struct world *w)
{
	struct pvr_cmd_create_cq req = fg_cq_request(&w->g->kernel, &w->spare, 256);
	struct pvr_resp_create_cq resp;

	fg_create_cq(w->g, &req, &resp);
}

static void resize_cq_of(struct world *w, const struct fg_cq *cq)
{
	const struct fg_buf *const to[] = { &w->spare, &cq->buf };
	struct pvr_cmd_resize_cq req;
	struct pvr_resp_resize_cq resp;

	for (size_t i = 0; i < COUNT(to); i++) {
		req = fg_cq_resize_request(cq, to[i], 64);
		fg_resize_cq(w->g, &req, &resp);
	}
}

static void resize_cq(struct world *w)
{
	resize_cq_of(w, &w->vector_cq);
	for (int i = 0; i < ENDS; i++) {
		resize_cq_of(w, &w->end[i].scq);
		resize_cq_of(w, &w->end[i].rcq);
	}
}

static void destroy(struct world *w, uint32_t cmd, uint32_t handle)
{
	fg_cmd_destroy(w->g, cmd, handle);
}

static void destroy_cq(struct world *w)
{
	destroy(w, PVR_CMD_DESTROY_CQ, w->vector_cq.handle);
	for (int i = 0; i < ENDS; i++) {
		destroy(w, PVR_CMD_DESTROY_CQ, w->end[i].scq.handle);
		destroy(w, PVR_CMD_DESTROY_CQ, w->end[i].rcq.handle);
	}
}

static void create_qp(struct world *w)
{
	struct fg_qp_spec spec = { .type = PVR_QPT_RC,
				   .pd = &w->end[RC].pd,
				   .scq = &w->end[RC].scq,
				   .rcq = &w->end[RC].rcq };
	struct fg_qp qp;

	if (!fg_qp_create(&spec, &qp))
		fg_qp_destroy(&qp);
}

static struct fg_qp *qp_at(struct world *w, int i)
{
	return i < ENDS ? &w->end[i].qp : &w->target;
}

static void modify_qp(struct world *w)
{
	static const enum pvr_qp_state states[] = { PVR_QPS_SQD, PVR_QPS_RTS, PVR_QPS_ERR,
						    PVR_QPS_RESET };
	struct pvr_qp_attr attr = { 0 };

	for (int i = 0; i <= ENDS; i++) {
		for (size_t n = 0; n < COUNT(states); n++) {
			attr.qp_state = states[n];
			fg_qp_modify(qp_at(w, i), PVR_QPA_STATE, &attr);
			fg_run_bounded(w->env->host, 3);
		}
		fg_qp_to_init(qp_at(w, i), NULL);
		fg_qp_to_rtr(qp_at(w, i), NULL, w->peer[RC].gid, w->peer[RC].qp.qpn);
		fg_qp_to_rts(qp_at(w, i), NULL);
	}
}

static void query_qp(struct world *w)
{
	struct pvr_qp_attr attr;

	for (int i = 0; i <= ENDS; i++)
		fg_qp_query(qp_at(w, i), &attr);
}

static void destroy_qp(struct world *w)
{
	for (int i = 0; i <= ENDS; i++)
		destroy(w, PVR_CMD_DESTROY_QP, qp_at(w, i)->handle);
}

static void create_uc(struct world *w)
{
	struct fg_ctx ctx;

	fg_ctx_create(w->g, &ctx);
}

/* The contexts of create_uc(). */
static void destroy_uc(struct world *w)
{
	for (uint32_t i = 1; i < 4; i++)
		destroy(w, PVR_CMD_DESTROY_UC, i);
}

static const uint8_t second_gid[16] = { 0xfe, 0x80, [15] = 0x77 };

static void create_bind(struct world *w)
{
	fg_bind_gid(w->g, 1, second_gid);
}

static void destroy_bind(struct world *w)
{
	fg_unbind_gid(w->g, 1, second_gid);
}

static void create_srq(struct world *w)
{
	struct pvr_cmd_create_srq req = fg_srq_request(&w->end[RC].pd, &w->spare, 16, 1);
	struct pvr_resp_create_srq resp;

	fg_create_srq(w->g, &req, &resp);
}

static void modify_srq(struct world *w)
{
	struct fg_srq *const srqs[] = { &w->srq, &w->xrc_srq };
	struct pvr_cmd_modify_srq req;

	for (size_t i = 0; i < COUNT(srqs); i++) {
		fg_srq_set_limit(srqs[i], 2);
		req = fg_srq_resize_request(srqs[i], &w->spare, 32);
		fg_cmd(w->g, &req, sizeof(req), NULL, 0);
		req = fg_srq_resize_request(srqs[i], &srqs[i]->buf, 16);
		fg_cmd(w->g, &req, sizeof(req), NULL, 0);
	}
}

static void query_srq(struct world *w)
{
	struct pvr_srq_attr attr;

	fg_srq_query(&w->srq, &attr);
	fg_srq_query(&w->xrc_srq, &attr);
}

static void destroy_srq(struct world *w)
{
	destroy(w, PVR_CMD_DESTROY_SRQ, w->srq.handle);
	destroy(w, PVR_CMD_DESTROY_SRQ, w->xrc_srq.handle);
}

static void set_cq_ring(struct world *w)
{
	for (uint32_t i = 1; i < 3; i++) {
		const struct pvr_cmd_set_cq_ring req = fg_cq_ring_request(i, &w->spare);

		fg_set_cq_ring(w->g, &req);
	}
}

static const uint8_t group[16] = { 0xff, 0x0e, [15] = 9 };

static void attach_mcast(struct world *w)
{
	fg_qp_attach(&w->end[UD].qp, group);
}

static void detach_mcast(struct world *w)
{
	fg_qp_detach(&w->end[UD].qp, group);
}

static void query_stats(struct world *w)
{
	uint64_t stat[PVR_STAT_NUM];

	for (int i = 0; i <= ENDS; i++)
		fg_qp_stats(qp_at(w, i), stat);
}

static void sum_stats(struct world *w)
{
	const uint32_t handles[] = { w->end[RC].qp.handle, w->target.handle };
	uint64_t stat[PVR_STAT_NUM];

	fg_sum_stats(w->g, handles, COUNT(handles), stat);
}

/* The wait of each notification ends, and another one begins. */
static void modify_cq(struct world *w)
{
	fg_modify_cq(w->g, w->vector_cq.handle, 0, 0);
	for (int i = 0; i < ENDS; i++) {
		fg_modify_cq(w->g, w->end[i].scq.handle, 0, 0);
		fg_modify_cq(w->g, w->end[i].rcq.handle, 0, 0);
	}
	moderate(w);
}

static void create_xrcd(struct world *w)
{
	struct fg_xrcd xrcd;

	if (!fg_xrcd_create(w->g, &xrcd))
		fg_xrcd_destroy(&xrcd);
}

static void destroy_xrcd(struct world *w)
{
	fg_xrcd_destroy(&w->xrcd);
}

static void query_fault(struct world *w)
{
	const struct pvr_cmd_handle req = { .hdr = FG_CMD_HDR(PVR_CMD_QUERY_FAULT),
					    .handle = w->demand.handle };
	struct pvr_resp_query_fault fault;

	fg_cmd(w->g, &req, sizeof(req), &fault, sizeof(fault));
}

static void set_pages(struct world *w)
{
	set_page(w, PVR_PAGES_PRESENT);
	set_page(w, PVR_PAGES_ABSENT);
	set_page(w, PVR_PAGES_PRESENT);
}

/* A new command needs its line here. */
static void (*const commands[PVR_CMD_NUM])(struct world *w) = {
	[PVR_CMD_QUERY_PORT] = query_port,     [PVR_CMD_QUERY_PKEY] = query_pkey,
	[PVR_CMD_CREATE_PD] = create_pd,       [PVR_CMD_DESTROY_PD] = destroy_pd,
	[PVR_CMD_CREATE_MR] = create_mr,       [PVR_CMD_DESTROY_MR] = destroy_mr,
	[PVR_CMD_CREATE_CQ] = create_cq,       [PVR_CMD_RESIZE_CQ] = resize_cq,
	[PVR_CMD_DESTROY_CQ] = destroy_cq,     [PVR_CMD_CREATE_QP] = create_qp,
	[PVR_CMD_MODIFY_QP] = modify_qp,       [PVR_CMD_QUERY_QP] = query_qp,
	[PVR_CMD_DESTROY_QP] = destroy_qp,     [PVR_CMD_CREATE_UC] = create_uc,
	[PVR_CMD_DESTROY_UC] = destroy_uc,     [PVR_CMD_CREATE_BIND] = create_bind,
	[PVR_CMD_DESTROY_BIND] = destroy_bind, [PVR_CMD_CREATE_SRQ] = create_srq,
	[PVR_CMD_MODIFY_SRQ] = modify_srq,     [PVR_CMD_QUERY_SRQ] = query_srq,
	[PVR_CMD_DESTROY_SRQ] = destroy_srq,   [PVR_CMD_SET_CQ_RING] = set_cq_ring,
	[PVR_CMD_ATTACH_MCAST] = attach_mcast, [PVR_CMD_DETACH_MCAST] = detach_mcast,
	[PVR_CMD_QUERY_STATS] = query_stats,   [PVR_CMD_SUM_STATS] = sum_stats,
	[PVR_CMD_MODIFY_CQ] = modify_cq,       [PVR_CMD_CREATE_XRCD] = create_xrcd,
	[PVR_CMD_DESTROY_XRCD] = destroy_xrcd, [PVR_CMD_QUERY_FAULT] = query_fault,
	[PVR_CMD_SET_PAGES] = set_pages,
};

/* Users before what they use. */
static const enum pvr_cmd destructions[] = {
	PVR_CMD_DESTROY_QP, PVR_CMD_DESTROY_SRQ,  PVR_CMD_DESTROY_MR, PVR_CMD_DESTROY_CQ,
	PVR_CMD_DESTROY_PD, PVR_CMD_DESTROY_XRCD, PVR_CMD_DESTROY_UC,
};

static bool destroys(uint32_t cmd)
{
	for (size_t i = 0; i < COUNT(destructions); i++)
		if (destructions[i] == cmd)
			return true;
	return false;
}

/* ------------------------------------------------------------------------------- uses */

static void settle(struct world *w)
{
	fg_run_bounded(w->env->host, 100);
	fg_settle(w->env->host, 100 * FG_MS);
}

static void use_commands(struct world *w)
{
	for (uint32_t cmd = 0; cmd < PVR_CMD_NUM; cmd++)
		if (!destroys(cmd))
			commands[cmd](w);
	settle(w);
}

static void use_commands_backwards(struct world *w)
{
	for (uint32_t cmd = PVR_CMD_NUM; cmd-- > 0;)
		if (!destroys(cmd))
			commands[cmd](w);
	settle(w);
}

static void use_doorbells(struct world *w)
{
	for (int i = 0; i <= ENDS; i++) {
		fg_ring_send(qp_at(w, i));
		fg_ring_recv(qp_at(w, i));
	}
	fg_ring_srq(&w->srq);
	fg_ring_srq(&w->xrc_srq);
	for (int i = 0; i < ENDS; i++) {
		fg_cq_arm_solicited(&w->end[i].rcq);
		fg_cq_arm_in_memory(&w->end[i].scq, PVR_CQ_ARM_ANY);
	}
	arm(w);
	settle(w);
}

static void use_requests(struct world *w)
{
	fast_register(w);
	bind(w, 1);
	for (int i = RC; i <= SHARED; i++) {
		t_send(&w->end[i], 5, 0, 64);
		t_rdma(&w->end[i], PVRDMA_WR_RDMA_READ, 6, 0, &w->peer[i].mr, 0, 64);
	}
	t_send_ud(&w->end[UD], &w->peer[UD], 7, 0, 64);
	w->env->host->polls = true;
	fg_run_bounded(w->env->host, 100);
	w->env->host->polls = false;
	pvr_engine_enable_doorbells(w->env->host->engine, 0);
	settle(w);
}

/* To each region and window, and to the receive queues. */
static void use_by_peers(struct world *w)
{
	/* The second window is bound until RESET. */
	const struct fg_mr *const to[] = { &w->window[1], &w->window[0], &w->end[RC].mr,
					   &w->fast,	  &w->demand,	 &w->bindable };

	peer_sends(w);
	settle(w);
	for (size_t i = 0; i < COUNT(to); i++) {
		t_rdma(&w->peer[RC], PVRDMA_WR_RDMA_WRITE, 8, 0, to[i], 0, 8);
		t_rdma(&w->peer[RC], PVRDMA_WR_RDMA_READ, 9, 0, to[i], 0, 8);
		t_post(&w->peer[RC], .wr_id = 10, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
		       T_SGE(&w->peer[RC].mr, 0, 8), T_REMOTE(to[i], 0));
		settle(w);
		connect_again(w, RC);
	}
}

static void use_time(struct world *w)
{
	fg_settle(w->env->host, FG_SEC);
}

static void use_destructions(struct world *w)
{
	for (size_t i = 0; i < COUNT(destructions); i++)
		commands[destructions[i]](w);
	settle(w);
}

static void use_reset(struct world *w)
{
	fg_ctl(w->g, PVR_CTL_RESET);
	settle(w);
}

/* Doorbells while it is stopped, and its state. */
static void use_stop(struct world *w)
{
	struct fg_state state;

	if (pvr_adapter_stop(w->g->adapter) == 0) {
		use_doorbells(w);
		if (!fg_state_save(w->g, &state))
			fg_state_free(&state);
		fg_start(w->g);
	}
	pvr_adapter_set_bus_master(w->g->adapter, false);
	use_doorbells(w);
	pvr_adapter_set_bus_master(w->g->adapter, true);
	pvr_adapter_set_link(w->g->adapter, false);
	pvr_adapter_set_link(w->g->adapter, true);
	settle(w);
}

static const struct use {
	const char *label;
	void (*first)(struct world *w);
} uses[] = {
	{ "commands", use_commands },
	{ "commands in reverse order", use_commands_backwards },
	{ "doorbells", use_doorbells },
	{ "requests of the guest", use_requests },
	{ "requests of peers", use_by_peers },
	{ "time", use_time },
	{ "stop and start", use_stop },
	{ "destruction", use_destructions },
	{ "reset", use_reset },
};

/* Return: whether an object or a ring of the device has the page. */
static bool lose(struct world *w, uint32_t page, const struct use *use)
{
	bool used;

	world_open(w);
	used = t_slot_is_used(&w->g->ram, page);
	if (used) {
		t_unplug_slot(w->g, page);
		use->first(w);
		use_doorbells(w);
		use_commands(w);
		use_destructions(w);
	}
	fg_ctl(w->g, PVR_CTL_RESET);
	settle(w);
	if (used)
		t_plug_slot(w->g, page);
	world_drop(w);
	return used;
}

static void views_exit(struct world *w)
{
	for (int i = 0; i < VIEWS; i++) {
		munmap(w->view[i], PVR_PAGE_SIZE);
		fg_ram_put_page(&w->g->ram, w->shared_page[i]);
	}
	w->g->dsr = NULL;
}

TEST_OBJECT_CASES(late, struct world, w, world_init, test_use_of_objects_without_memory, uses)
{
	const uint32_t first = t_first_slot(&w->g->ram);
	uint32_t page, lost = 0;

	/* Equal objects have equal pages each time, so each of these pages gets its turn. */
	for (page = first; page < first + T_SLOTS; page++)
		lost += lose(w, page, row);
	/* Else some object would lie elsewhere. */
	assert_in_range(lost, T_SLOTS / 2, T_SLOTS - 1);
	t_ping_pong(env->host, &w->other, &w->other);
	views_exit(w);
}
