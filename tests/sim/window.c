// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows: a peer has the key of a window of type 2, which the end has bound to its region, in
 * place of the region's own key. When a program has taken the window away, the peer's WRITEs and
 * atomics change nothing any more.
 */
#include <string.h>

#include "sim.h"

#define BIND_ID (UINT64_MAX - 1)

bool sim_has_windows(const struct sim *sim, const struct sim_pair *pair)
{
	/* An XRC target, not the queue pair that binds, executes the peer's requests. */
	return sim->config.windows && pair->type != SIM_XRC;
}

uint32_t sim_rkey(const struct sim_end *end)
{
	return end->window.rkey ? end->window.rkey : end->fg.mr.rkey;
}

void sim_window_close(struct sim *sim, struct sim_end *end)
{
	if (!end->window.rkey)
		return;
	if (fg_mr_destroy(&end->window))
		sim_fail(sim, "command", "vm%u: DESTROY_MR of a window", end->vm->number);
	end->window = (struct fg_mr){ 0 };
	sim_snapshot_free(end->vm);
}

static void put_bind(struct sim_end *end, const struct pvr_wqe_bind_mw *bind)
{
	const struct fg_wr wr = { .wr_id = BIND_ID,
				  .opcode = PVRDMA_WR_BIND_MW,
				  .flags = PVR_SEND_SIGNALED };
	struct pvrdma_sq_wqe_hdr *wqe = fg_sq_wqe(&end->fg.qp, end->fg.qp.sq_tail);

	if (!fg_put_send(&end->fg.qp, &wr))
		fg_die("no room for the first request");
	memcpy(&wqe->wr, bind, sizeof(*bind));
	fg_ring_send(&end->fg.qp);
}

void sim_window_bind(struct sim *sim, struct sim_end *end)
{
	struct pvr_wqe_bind_mw bind = {
		.addr = end->fg.mr.start,
		.length = end->fg.mr.length,
		.mr_lkey = end->fg.mr.lkey,
		.access_flags = FG_ACCESS_ALL & ~PVR_ACCESS_LOCAL_WRITE,
	};
	struct pvrdma_cqe cqe = { 0 };

	if (fg_mw_create(&end->fg.pd, PVR_MR_FLAG_MW2, &end->window))
		sim_fail(sim, "command", "vm%u: CREATE_MR of a window", end->vm->number);
	sim_snapshot_free(end->vm);
	bind.mw_rkey = end->window.rkey;
	bind.new_rkey = end->window.rkey ^ 0x55;
	put_bind(end, &bind);
	/* A limited adapter takes its time. */
	for (int ms = 0; ms < 1000 && !fg_cq_pending(&end->fg.scq); ms++)
		sim_pass_time(sim, FG_MS);
	if (!fg_cq_poll(&end->fg.scq, &cqe) || cqe.wr_id != BIND_ID || cqe.status)
		sim_fail(sim, "command", "vm%u: BIND_MW: status %u", end->vm->number, cqe.status);
	end->window.rkey = bind.new_rkey;
}
