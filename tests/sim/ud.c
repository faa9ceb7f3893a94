// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Datagrams: any UD queue pair sends to any other one. Each message has a name, so that its receiver
 * can tell that it is whole, that it was sent to it, and that it has not come before. Messages may be
 * lost, but not for ever between two that nothing disturbs. A network that repeats frames repeats
 * datagrams.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "rdma/ud.h"
#include "sim.h"

#define GRH 40u
#define MAX_LEN 1024u /* the MTU of an address */
#define TO_GROUP UINT32_MAX /* in a name */

static const uint8_t group[16] = { 0xff, 0x12, [15] = 7 };
static_assert(SIM_UDS <= 8, "a bit for each receiver");

/* At the start of each message. The rest is filled by its name. */
struct name {
	uint32_t from, to, life, number, len;
};

static uint32_t seed_of(const struct name *name)
{
	return name->from * 64 + name->life * 1024 + name->number * 8192;
}

static size_t at(enum sim_area area, uint32_t slot)
{
	return ((size_t)area * SIM_SLOTS + slot) * (GRH + MAX_LEN);
}

void sim_ud_open(struct sim *sim, struct sim_ud *ud, struct sim_vm *vm)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_UD };

	ud->number = (uint32_t)(ud - sim->ud);
	ud->end.vm = vm;
	fg_end_open_spec(&ud->end.fg, &vm->guest->kernel, &spec,
			 (uint32_t)(at(SIM_TARGET, 0) / 4096 + 1));
	fg_end_ready(&ud->end.fg);
	sim_trace(&sim->trace, "ud%u: vm%u", ud->number, vm->number);
}

void sim_ud_restore(struct sim *sim, struct sim_ud *ud)
{
	struct fg_end *end = &ud->end.fg;

	if (fg_qp_to_reset(&end->qp))
		sim_fail(sim, "command", "ud%u does not go to RESET", ud->number);
	fg_cq_drain(&end->scq);
	fg_cq_drain(&end->rcq);
	*ud = (struct sim_ud){ .end = ud->end, .number = ud->number, .life = ud->life + 1 };
	ud->end.sends_armed = ud->end.recvs_armed = false;
	fg_end_ready(end);
}

/* ------------------------------------------------------------------------ requests */

bool sim_ud_post(struct sim *sim, struct sim_ud *ud, const struct sim_ud *to, struct sim_rng *rng)
{
	struct fg_end *end = &ud->end.fg;
	const struct pvrdma_av av = fg_av(&end->pd, to ? to->end.fg.gid : group, 0);
	struct pvrdma_sge sge[SIM_MAX_SGE];
	struct fg_wr wr = {
		.wr_id = ud->posted,
		.opcode = PVRDMA_WR_SEND,
		.flags = PVR_SEND_SIGNALED,
		.sge = sge,
		.av = &av,
		.remote_qpn = to ? to->end.fg.qp.qpn : PVR_MULTICAST_QPN,
		.remote_qkey = FG_QKEY,
	};
	struct name name = { ud->number, to ? to->number : TO_GROUP, ud->life, ud->posted, 0 };
	size_t offset = at(SIM_OUT, ud->posted % SIM_SLOTS);
	uint8_t *va = end->buf.va + offset;

	if (ud->posted - ud->done == SIM_SLOTS || ud->posted == SIM_DATAGRAMS)
		return false;
	name.len = (uint32_t)sim_scale(rng, sizeof(name), MAX_LEN);
	memcpy(va, &name, sizeof(name));
	fg_fill(va + sizeof(name), name.len - sizeof(name), seed_of(&name));
	wr.num_sge = sim_cut(&end->mr, offset, name.len, rng, sge);
	sim_trace(&sim->trace, "ud%u to ud%d %u: %u bytes", ud->number, (int)name.to, ud->posted,
		  name.len);
	ud->posted++;
	if (!fg_post_send(&end->qp, &wr))
		sim_fail(sim, "space", "ud%u: the send queue is full", ud->number);
	return true;
}

bool sim_ud_post_recv(struct sim *sim, struct sim_ud *ud, struct sim_rng *rng)
{
	struct fg_end *end = &ud->end.fg;
	struct pvrdma_sge sge[SIM_MAX_SGE];
	uint32_t num;

	if (ud->recvs - ud->received == SIM_SLOTS)
		return false;
	num = sim_cut(&end->mr, at(SIM_IN, ud->recvs % SIM_SLOTS), GRH + MAX_LEN, rng, sge);
	if (!fg_post_recv(&end->qp, ud->recvs, sge, num))
		sim_fail(sim, "space", "ud%u: the receive queue is full", ud->number);
	ud->recvs++;
	return true;
}

/* -------------------------------------------------------------------------- oracle */

static void expect_next(struct sim *sim, const struct sim_ud *ud, const char *what,
			const struct pvrdma_cqe *cqe, uint32_t expected)
{
	if (cqe->wr_id != expected || cqe->status)
		sim_fail(sim, "order",
			 "ud%u: %s completion of %" PRIu64 " with status %u, expected %u",
			 ud->number, what, (uint64_t)cqe->wr_id, cqe->status, expected);
}

static void take_sent(struct sim *sim, void *of)
{
	struct sim_ud *ud = of;
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&ud->end.fg.scq, &cqe)) {
		if (ud->done == ud->posted)
			sim_fail(sim, "twice", "ud%u: a completion of no request", ud->number);
		expect_next(sim, ud, "a send", &cqe, ud->done);
		ud->done++;
		sim->count.checks++;
	}
}

static bool is_addressed(const struct sim_ud *ud, const struct name *name)
{
	return name->to == TO_GROUP ? ud->end.is_member : name->to == ud->number;
}

/*
 * A network may repeat a datagram. One to a group is delivered to members at this host, then to other
 * hosts when they are known: if a VM has migrated meanwhile, it may come again.
 */
static bool may_come_again(const struct sim *sim, const struct sim_ud *ud, const struct name *name)
{
	return sim->segment ||
	       (name->to == TO_GROUP && (ud->end.vm->loaded || sim->ud[name->from].end.vm->loaded));
}

/* A message of an earlier life of the sender may still come; it is no more known which were sent. */
static void expect_datagram(struct sim *sim, struct sim_ud *ud, const struct pvrdma_cqe *cqe)
{
	const uint8_t *va = ud->end.fg.buf.va + at(SIM_IN, ud->received % SIM_SLOTS) + GRH;
	struct sim_ud *from;
	struct name name;
	uint32_t rest;

	memcpy(&name, va, sizeof(name));
	if (cqe->byte_len < GRH + sizeof(name) || cqe->byte_len != GRH + name.len ||
	    name.from >= sim->config.uds)
		sim_fail(sim, "data", "ud%u: a datagram of %u bytes has no name", ud->number,
			 cqe->byte_len);
	from = &sim->ud[name.from];
	rest = name.len - (uint32_t)sizeof(name);
	if (fg_mismatch(va + sizeof(name), rest, seed_of(&name)) < rest)
		sim_fail(sim, "data", "ud%u: a datagram of %u bytes is not as it was sent",
			 ud->number, name.len);
	if (!is_addressed(ud, &name) || cqe->src_qp != from->end.fg.qp.qpn)
		sim_fail(sim, "addressed",
			 "ud%u: a datagram of ud%u to ud%d, from queue pair %u, expected %u",
			 ud->number, name.from, (int)name.to, cqe->src_qp, from->end.fg.qp.qpn);
	/* The GRH. */
	if (memcmp(va - GRH + 8, from->end.fg.gid, 16) ||
	    memcmp(va - GRH + 24, name.to == TO_GROUP ? group : ud->end.fg.gid, 16))
		sim_fail(sim, "addressed", "ud%u: the GRH of a datagram of ud%u names others",
			 ud->number, name.from);
	if (name.life != from->life)
		return;
	if (name.number >= from->posted ||
	    (!may_come_again(sim, ud, &name) && from->arrived[name.number] & 1u << ud->number))
		sim_fail(sim, "twice", "ud%u: datagram %u of ud%u comes again", ud->number,
			 name.number, name.from);
	from->arrived[name.number] |= (uint8_t)(1u << ud->number);
	if (from->probes && name.number >= from->probe)
		from->has_reached = true;
}

static void take_received(struct sim *sim, void *of)
{
	struct sim_ud *ud = of;
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&ud->end.fg.rcq, &cqe)) {
		sim_trace(&sim->trace, "ud%u receive %" PRIu64 ": status %u, %u bytes", ud->number,
			  (uint64_t)cqe.wr_id, cqe.status, cqe.byte_len);
		if (ud->received == ud->recvs)
			sim_fail(sim, "twice", "ud%u: a completion of no receive request",
				 ud->number);
		expect_next(sim, ud, "a receive", &cqe, ud->received);
		expect_datagram(sim, ud, &cqe);
		ud->received++;
		sim->count.checks++;
	}
}

void sim_ud_poll(struct sim *sim, struct sim_ud *ud)
{
	struct sim_end *end = &ud->end;

	sim_poll_cq(sim, end->vm, &end->fg.scq, &end->sends_armed, take_sent, ud);
	sim_poll_cq(sim, end->vm, &end->fg.rcq, &end->recvs_armed, take_received, ud);
}

/* ------------------------------------------------------------------------- groups */

bool sim_ud_group(struct sim *sim, struct sim_rng *rng)
{
	struct sim_ud *ud = sim->config.uds ? &sim->ud[sim_below(rng, sim->config.uds)] : NULL;
	struct fg_qp *qp;
	uint32_t err;

	if (!ud || !(sim->config.ext & PVR_EXT_MCAST) || !sim_vm_runs(ud->end.vm))
		return false;
	qp = &ud->end.fg.qp;
	err = ud->end.is_member ? fg_qp_detach(qp, group) : fg_qp_attach(qp, group);
	if (err)
		sim_fail(sim, "command", "ud%u: %s: ERR 0x%x", ud->number,
			 ud->end.is_member ? "DETACH_MCAST" : "ATTACH_MCAST", err);
	/* What has arrived until the verb returned is no error. */
	take_received(sim, ud);
	ud->end.is_member = !ud->end.is_member;
	sim_trace(&sim->trace, "ud%u %s the group", ud->number,
		  ud->end.is_member ? "joins" : "leaves");
	return true;
}

/* ----------------------------------------------------------------------- liveness */

const struct sim_ud *sim_ud_next(const struct sim *sim, const struct sim_ud *ud)
{
	return &sim->ud[(ud->number + 1) % sim->config.uds];
}

bool sim_ud_has_reached(const struct sim_ud *ud, uint32_t number, const struct sim_ud *at)
{
	return ud->arrived[number] & 1u << at->number;
}

/* Without a directory none learns where a VM has gone that has no connection to it. */
static bool may_reach(const struct sim *sim, const struct sim_ud *ud)
{
	return !ud->has_reached && !sim->directory.is;
}

void sim_ud_probe(struct sim *sim, struct sim_ud *ud, struct sim_rng *rng)
{
	if (!ud->probes) {
		ud->probes = true;
		ud->probe = ud->posted;
	}
	if (may_reach(sim, ud) && ud->done == ud->posted && sim_vm_runs(ud->end.vm))
		sim_ud_post(sim, ud, sim_ud_next(sim, ud), rng);
}

bool sim_ud_is_idle(const struct sim *sim, const struct sim_ud *ud)
{
	return !may_reach(sim, ud) && ud->done == ud->posted;
}
