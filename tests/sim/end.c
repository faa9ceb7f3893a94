// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Pairs of queue pairs of each connected type, and the SRQs that they receive from. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static const char *const type_names[SIM_TYPES] = {
	[SIM_RC] = "RC",
	[SIM_RC_SRQ] = "RC with SRQ",
	[SIM_XRC] = "XRC",
	[SIM_UC] = "UC",
};

const char *sim_type_name(enum sim_type type)
{
	return type_names[type];
}

static void must(struct sim *sim, uint32_t err, const struct sim_vm *vm, const char *what)
{
	if (err)
		sim_fail(sim, "command", "vm%u: %s: ERR 0x%x", vm->number, what, err);
}

/* ---------------------------------------------------------------------------- SRQs */

static uint32_t pages_of(size_t bytes)
{
	return (uint32_t)((bytes + 4095) / 4096);
}

static void open_buffer(struct sim *sim, struct sim_vm *vm, struct sim_srq *srq,
			const struct fg_pd *pd)
{
	fg_buf_init(&srq->buf, &vm->guest->ram,
		    pages_of((size_t)SIM_SRQ_SLOTS * sim->config.max_len), vm->guest->config.ends);
	must(sim, fg_mr_create(pd, &srq->buf, PVR_ACCESS_LOCAL_WRITE, &srq->mr), vm, "CREATE_MR");
}

static void open_shared(struct sim *sim, struct sim_end *end)
{
	struct sim_vm *vm = end->vm;

	end->srq = &vm->srq;
	if (vm->srq.buf.view)
		return;
	must(sim, fg_pd_create(&vm->guest->kernel, &vm->pd), vm, "CREATE_PD");
	open_buffer(sim, vm, &vm->srq, &vm->pd);
	must(sim, fg_srq_create(&vm->pd, SIM_SRQ_SLOTS, SIM_MAX_SGE, &vm->srq.fg), vm,
	     "CREATE_SRQ");
}

static void open_xrc(struct sim *sim, struct sim_end *end)
{
	struct sim_vm *vm = end->vm;

	end->srq = &end->xrc;
	if (!vm->xrcd.guest)
		must(sim, fg_xrcd_create(vm->guest, &vm->xrcd), vm, "CREATE_XRCD");
	open_buffer(sim, vm, &end->xrc, &end->fg.pd);
	must(sim,
	     fg_xrc_srq_create(&vm->xrcd, &end->fg.pd, &end->fg.rcq, SIM_SRQ_SLOTS, SIM_MAX_SGE,
			       &end->xrc.fg),
	     vm, "CREATE_SRQ of XRC");
	must(sim, fg_xrc_tgt_create(&vm->xrcd, &end->target), vm, "CREATE_QP of an XRC target");
}

static void close_srq(struct sim_srq *srq)
{
	if (!srq->buf.view)
		return;
	if (fg_srq_destroy(&srq->fg) || fg_mr_destroy(&srq->mr))
		fg_die("an SRQ cannot be destroyed");
	fg_buf_exit(&srq->buf);
}

void sim_srq_close(struct sim_vm *vm)
{
	close_srq(&vm->srq);
	if (vm->pd.ctx && fg_pd_destroy(&vm->pd))
		fg_die("the PD of an SRQ cannot be destroyed");
	if (vm->xrcd.guest && fg_xrcd_destroy(&vm->xrcd))
		fg_die("an XRC domain cannot be destroyed");
}

bool sim_srq_post(struct sim *sim, struct sim_srq *srq, struct sim_rng *rng)
{
	uint32_t slot = (uint32_t)__builtin_ctz(~srq->posted), num;
	struct pvrdma_sge sge[SIM_MAX_SGE];

	if (slot >= SIM_SRQ_SLOTS)
		return false;
	sim_oracle_mark(sim, srq->buf.va + (size_t)slot * sim->config.max_len);
	num = sim_cut(&srq->mr, (size_t)slot * sim->config.max_len, sim->config.max_len, rng, sge);
	if (!fg_post_srq_recv(&srq->fg, slot, sge, num))
		sim_fail(sim, "space", "SRQ %u is full", srq->fg.handle);
	srq->posted |= 1u << slot;
	return true;
}

void sim_srq_take(struct sim *sim, struct sim_srq *srq, uint64_t slot)
{
	if (slot >= SIM_SRQ_SLOTS || !(srq->posted & 1u << slot))
		sim_fail(sim, "twice", "receive request %lu of SRQ %u completes, but is not posted",
			 (unsigned long)slot, srq->fg.handle);
	srq->posted &= ~(1u << slot);
}

void sim_srq_check(struct sim *sim, const struct sim_srq *srq)
{
	uint32_t waiting = (srq->fg.ring->prod_tail - srq->fg.ring->cons_head) &
			   (2 * SIM_SRQ_SLOTS - 1);

	if (waiting != (uint32_t)__builtin_popcount(srq->posted))
		sim_fail(sim, "lost",
			 "SRQ %u: %u receive requests have not completed, but %u wait in its ring",
			 srq->fg.handle, (uint32_t)__builtin_popcount(srq->posted), waiting);
}

/* --------------------------------------------------------------------------- pairs */

static struct fg_qp_spec spec_of(enum sim_type type, struct sim_end *end)
{
	static const enum pvr_qp_type types[SIM_TYPES] = {
		[SIM_RC] = PVR_QPT_RC,
		[SIM_RC_SRQ] = PVR_QPT_RC,
		[SIM_XRC] = PVR_QPT_XRC_INI,
		[SIM_UC] = PVR_QPT_UC,
	};

	return (struct fg_qp_spec){
		.type = types[type],
		.srq = type == SIM_RC_SRQ ? &end->vm->srq.fg : NULL,
	};
}

bool sim_may_flush(const struct sim *sim, const struct sim_pair *pair)
{
	const uint32_t ext = PVR_EXT_ATOMIC_WRITE | PVR_EXT_FLUSH;

	return (sim->config.ext & ext) == ext && !sim->config.on_demand && !sim->config.windows &&
	       !sim->segment && (pair->type == SIM_RC || pair->type == SIM_RC_SRQ);
}

static void register_buffer(struct sim *sim, struct sim_end *end)
{
	const uint32_t access = FG_ACCESS_ALL | (sim->config.windows ? PVR_ACCESS_MW_BIND : 0) |
				(sim->config.ext & PVR_EXT_FLUSH ? PVR_ACCESS_FLUSH_GLOBAL : 0);

	if (sim->config.on_demand)
		sim_demand_open(sim, end);
	else
		must(sim, fg_mr_create(&end->fg.pd, &end->fg.buf, access, &end->fg.mr), end->vm,
		     "CREATE_MR");
}

static void deregister(struct sim *sim, struct sim_end *end)
{
	must(sim, fg_mr_destroy(&end->fg.mr), end->vm, "DESTROY_MR");
	end->fg.mr.length = 0;
}

static void open_end(struct sim *sim, struct sim_pair *pair, unsigned int which)
{
	struct sim_end *end = &pair->end[which];
	struct fg_qp_spec spec;

	if (pair->type == SIM_RC_SRQ)
		open_shared(sim, end);
	spec = spec_of(pair->type, end);
	fg_end_open_spec(&end->fg, &end->vm->guest->kernel, &spec,
			 pages_of(sim_flow_word(sim, SIM_SWAP) + sizeof(uint64_t)));
	deregister(sim, end);
	register_buffer(sim, end);
	if (pair->type == SIM_XRC)
		open_xrc(sim, end);
	pair->flow[which] = (struct sim_flow){
		.from = end,
		.to = &pair->end[!which],
		.pair = pair,
		.number = (uint32_t)(2 * (pair - sim->pair)) + which,
	};
}

void sim_pair_open(struct sim *sim, struct sim_pair *pair, enum sim_type type, struct sim_vm *a,
		   struct sim_vm *b)
{
	pair->type = type;
	pair->conn = fg_conn_default;
	pair->conn.mtu = sim->config.mtu;
	pair->conn.timeout = sim->config.timeout;
	pair->conn.retry_cnt = sim->config.retries;
	pair->conn.access |= sim_may_flush(sim, pair) ? PVR_ACCESS_FLUSH_GLOBAL : 0;
	pair->conn.min_rnr_timer = sim->config.rnr_timer;
	pair->end[0].vm = a;
	pair->end[1].vm = b;
	open_end(sim, pair, 0);
	open_end(sim, pair, 1);
	sim_pair_connect(sim, pair, 0);
	sim_pair_connect(sim, pair, 1);
}

void sim_pair_connect(struct sim *sim, struct sim_pair *pair, unsigned int which)
{
	struct sim_end *end = &pair->end[which], *peer = &pair->end[!which];
	uint32_t qpn = pair->type == SIM_XRC ? peer->target.qpn : peer->fg.qp.qpn;

	if (pair->type == SIM_XRC)
		must(sim, fg_qp_connect(&end->target, &pair->conn, peer->fg.gid, peer->fg.qp.qpn),
		     end->vm, "connect an XRC target");
	must(sim, fg_qp_connect(&end->fg.qp, &pair->conn, peer->fg.gid, qpn), end->vm,
	     "connect a queue pair");
	if (sim_has_windows(sim, pair))
		sim_window_bind(sim, end);
}

bool sim_end_is_late(const struct sim_pair *pair, const struct sim_end *end)
{
	return pair->is_half && end == &pair->end[pair->late];
}

void sim_end_to_err(struct sim *sim, struct sim_end *end)
{
	must(sim, fg_qp_to_err(&end->fg.qp), end->vm, "a queue pair to ERR");
	if (end->target.guest)
		must(sim, fg_qp_to_err(&end->target), end->vm, "an XRC target to ERR");
}

static void empty_cqs(struct sim *sim, struct sim_end *end)
{
	struct pvrdma_cqe cqe;

	fg_cq_drain(&end->fg.scq);
	while (fg_cq_poll(&end->fg.rcq, &cqe))
		if (end->srq)
			sim_srq_take(sim, end->srq, cqe.wr_id);
}

/* A snapshot has the objects of before. */
void sim_end_destroy(struct sim *sim, struct sim_end *end)
{
	/* Else the receive request that a message has taken is lost. */
	if (end->srq)
		sim_end_to_err(sim, end);
	must(sim, fg_qp_destroy(&end->fg.qp), end->vm, "DESTROY_QP");
	end->sends_tail = end->fg.scq.ring->prod_tail;
	end->recvs_tail = end->fg.rcq.ring->prod_tail;
	sim_snapshot_free(end->vm);
}

bool sim_end_is_destroyed(const struct sim_end *end)
{
	return !end->fg.qp.buf.view;
}

void sim_end_deregister(struct sim *sim, struct sim_end *end)
{
	end->demand.is = false;
	end->demand.npages = 0;
	/* A region with a bound window cannot be deregistered. */
	sim_window_close(sim, end);
	deregister(sim, end);
	sim_snapshot_free(end->vm);
}

/* A reset removes no completion, and would lose the receive request that a message has taken. */
static void reset_qps(struct sim *sim, struct sim_end *end)
{
	if (end->srq)
		sim_end_to_err(sim, end);
	must(sim, fg_qp_to_reset(&end->fg.qp), end->vm, "a queue pair to RESET");
	if (end->target.guest)
		must(sim, fg_qp_to_reset(&end->target), end->vm, "an XRC target to RESET");
}

static void create_qp(struct sim *sim, enum sim_type type, struct sim_end *end)
{
	struct fg_qp_spec spec = spec_of(type, end);

	spec.pd = &end->fg.pd;
	spec.scq = &end->fg.scq;
	spec.rcq = &end->fg.rcq;
	must(sim, fg_qp_create(&spec, &end->fg.qp), end->vm, "CREATE_QP");
}

static void reset_end(struct sim *sim, enum sim_type type, struct sim_end *end)
{
	if (sim_end_is_destroyed(end))
		create_qp(sim, type, end);
	else
		reset_qps(sim, end);
	sim_window_close(sim, end);
	if (!end->fg.mr.length)
		register_buffer(sim, end);
	empty_cqs(sim, end);
	end->sends_armed = end->recvs_armed = end->is_drained = false;
}

void sim_pair_reset(struct sim *sim, struct sim_pair *pair)
{
	reset_end(sim, pair->type, &pair->end[0]);
	reset_end(sim, pair->type, &pair->end[1]);
}

void sim_pair_close(struct sim_pair *pair)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct sim_end *end = &pair->end[i];

		if (end->target.guest && fg_qp_destroy(&end->target))
			fg_die("an XRC target cannot be destroyed");
		close_srq(&end->xrc);
		if (end->window.rkey && fg_mr_destroy(&end->window))
			fg_die("a window cannot be destroyed");
		fg_end_close(&end->fg);
		free(pair->flow[i].taker);
	}
}
