// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections that a program ends: one end goes to ERR, later both are reset and connected anew. When
 * the verb has returned, the peer and the device use the memory of that end no more: programs that
 * fence a peer rely on it.
 */
#include <string.h>

#include "sim.h"

static uint64_t hash_of(const struct sim *sim, const struct sim_pair *pair)
{
	const struct fg_buf *buf = &pair->end[pair->broken].fg.buf;
	size_t at = sim_flow_at(sim, SIM_TARGET, 0);

	if (!pair->takes_messages)
		return sim_hash(buf->va, buf->size);
	return sim_hash(buf->va + at, sim_flow_at(sim, SIM_TARGET + 1, 0) - at) ^
	       sim_hash(buf->va + sim_flow_word(sim, SIM_ADD), 2 * sizeof(uint64_t));
}

static bool both_run(const struct sim_pair *pair)
{
	return sim_vm_runs(pair->end[0].vm) && sim_vm_runs(pair->end[1].vm);
}

/*
 * The program stores other bytes in its buffer. The peer must not get these bytes, neither as a message
 * nor by a READ.
 */
#define SECRET 0xd5
#define SECRET_RUN 16u

static void fill_area(const struct sim *sim, struct sim_end *end, enum sim_area area, int byte)
{
	memset(end->fg.buf.va + sim_flow_at(sim, area, 0), byte,
	       sim_flow_at(sim, area + 1, 0) - sim_flow_at(sim, area, 0));
}

static void use_buffer(const struct sim *sim, const struct sim_pair *pair, struct sim_end *end)
{
	if (!pair->takes_messages)
		fill_area(sim, end, SIM_OUT, SECRET);
	/* The device may have to make absent pages present first. */
	if (!end->demand.is)
		fill_area(sim, end, SIM_TARGET, SECRET);
}

static void expect_no_secret(struct sim *sim, const struct sim_end *end, const uint8_t *at,
			     const uint8_t *past)
{
	uint8_t secret[SECRET_RUN];

	memset(secret, SECRET, sizeof(secret));
	if (memmem(at, (size_t)(past - at), secret, sizeof(secret)))
		sim_fail(sim, "fence", "vm%u has bytes that its peer stored after the verb",
			 end->vm->number);
}

static void expect_no_secrets(struct sim *sim, const struct sim_end *end)
{
	const uint8_t *va = end->fg.buf.va;

	expect_no_secret(sim, end, va + sim_flow_at(sim, SIM_IN, 0),
			 va + sim_flow_at(sim, SIM_BACK + 1, 0));
	if (end->srq)
		expect_no_secret(sim, end, end->srq->buf.va, end->srq->buf.va + end->srq->buf.size);
}

void sim_break_watch(struct sim *sim, struct sim_pair *pair, unsigned int which,
		     struct sim_rng *rng)
{
	pair->is_broken = true;
	pair->broken = which;
	pair->hash = hash_of(sim, pair);
	/* With the PSNs of before, requests on their way could be taken for new ones. */
	pair->conn.psn = (uint32_t)sim_draw(rng) & 0xffffff;
	pair->due = sim_now(sim) + sim_scale(rng, FG_US, 64 * FG_MS);
	pair->delay = sim_scale(rng, FG_US, 64 * FG_MS);
}

static const struct {
	const char *name;
	void (*happens)(struct sim *sim, struct sim_end *end);
} breaches[SIM_BREACHES] = {
	[SIM_TO_ERR] = { "goes to ERR", sim_end_to_err },
	[SIM_DESTROY] = { "destroys its queue pair", sim_end_destroy },
	[SIM_DEREGISTER] = { "deregisters its region", sim_end_deregister },
	[SIM_CLOSE_WINDOW] = { "takes its window away", sim_window_close },
};

bool sim_break(struct sim *sim, struct sim_rng *rng)
{
	struct sim_pair *pair = &sim->pair[sim_below(rng, sim->config.pairs)];
	unsigned int which = sim_below(rng, 2);
	enum sim_breach breach = (enum sim_breach)sim_below(rng, SIM_BREACHES);
	struct sim_end *end = &pair->end[which];

	if (pair->is_broken || pair->is_half || !sim_vm_runs(end->vm))
		return false;
	if ((breach == SIM_DESTROY && pair->type == SIM_XRC) ||
	    (breach == SIM_CLOSE_WINDOW && !sim_has_windows(sim, pair)))
		breach = SIM_TO_ERR;
	pair->breach = breach;
	pair->takes_messages = breach == SIM_CLOSE_WINDOW;
	breaches[breach].happens(sim, end);
	use_buffer(sim, pair, end);
	sim_break_watch(sim, pair, which, rng);
	sim_trace(&sim->trace, "flow%u: vm%u %s", pair->flow[which].number, end->vm->number,
		  breaches[breach].name);
	return true;
}

/* The verb that destroys a queue pair has returned: the device has no more completions of it. */
static void expect_no_completion(struct sim *sim, const struct sim_pair *pair)
{
	const struct sim_end *end = &pair->end[pair->broken];

	if (sim_end_is_destroyed(end) && (end->fg.scq.ring->prod_tail != end->sends_tail ||
					  end->fg.rcq.ring->prod_tail != end->recvs_tail))
		sim_fail(sim, "fence", "vm%u: a completion after its queue pair was destroyed",
			 end->vm->number);
}

#define TIME_OF_FLUSH (100 * FG_MS)

static bool is_flushed(const struct sim_flow *from, const struct sim_flow *to)
{
	return sim_oracle_unended(from) == from->posted &&
	       (to->to->srq || to->received == to->recvs);
}

/* All requests of a queue pair in ERR are flushed. */
static void expect_flushes(struct sim *sim, struct sim_pair *pair)
{
	struct sim_flow *from = &pair->flow[pair->broken], *to = &pair->flow[!pair->broken];

	if (pair->is_restored || pair->breach != SIM_TO_ERR)
		return;
	for (unsigned int i = 0; i < 2 && !is_flushed(from, to); i++) {
		/* The worker flushes when it runs next, after others of a limited adapter. */
		if (i)
			sim_pass_time(sim, TIME_OF_FLUSH);
		/* The program may sleep. */
		sim_oracle_sent(sim, from);
		sim_oracle_received(sim, to);
	}
	if (!is_flushed(from, to))
		sim_fail(sim, "flush",
			 "vm%u: %lu of %lu requests have ended in ERR, %lu of %lu receive requests",
			 from->from->vm->number, (unsigned long)sim_oracle_unended(from),
			 (unsigned long)from->posted, (unsigned long)to->received,
			 (unsigned long)to->recvs);
}

static void forget(struct sim_flow *flow, const struct sim *sim)
{
	const struct sim_flow blank = {
		.from = flow->from,
		.to = flow->to,
		.pair = flow->pair,
		.number = flow->number,
		.taker = flow->taker,
		.taker_room = flow->taker_room,
	};

	*flow = blank;
	memset(flow->to->fg.buf.va + sim_flow_word(sim, SIM_ADD), 0, 2 * sizeof(uint64_t));
}

/*
 * QP_GONE has no number of its connection: a late frame would end the next connection of the same
 * two queue pairs. A restored VM has the queue pairs of its snapshot. And a UC queue pair takes the
 * first packet of a message with any PSN.
 */
void sim_hear_all(struct sim *sim)
{
	/* The frames may wait for a connection, and that for the address of a host. */
	for (unsigned int i = 0; i < (sim->directories ? 4 : 1); i++) {
		sim_net_mend(sim, true);
		fg_settle(sim_host(sim, 0), SIM_ECHO_NS);
	}
	if (sim->segment)
		fg_segment_end_ghosts(sim->segment);
}

static void connect_half(struct sim *sim, struct sim_pair *pair, unsigned int which)
{
	sim_trace(&sim->trace, "flow%u: vm%u connects to vm%u", pair->flow[which].number,
		  pair->end[which].vm->number, pair->end[!which].vm->number);
	sim_pair_connect(sim, pair, which);
}

/* The other half of the connection, as each program connects its own queue pair. */
static void connect_late(struct sim *sim, struct sim_pair *pair)
{
	if (!pair->is_half || !sim_vm_runs(pair->end[pair->late].vm))
		return;
	pair->is_half = false;
	if (!pair->is_broken)
		connect_half(sim, pair, pair->late);
}

void sim_break_mend(struct sim *sim, struct sim_pair *pair, bool now)
{
	struct sim_end *end = &pair->end[pair->broken];

	if (!now && pair->due > sim_now(sim))
		return;
	connect_late(sim, pair);
	if (!pair->is_broken || !both_run(pair))
		return;
	if (pair->is_restored || pair->type == SIM_UC)
		sim_hear_all(sim);
	expect_no_completion(sim, pair);
	sim_poll_all(sim);
	expect_flushes(sim, pair);
	if (hash_of(sim, pair) != pair->hash)
		sim_fail(sim, "fence", "vm%u: memory has changed after its queue pair went to ERR",
			 end->vm->number);
	/* A restored VM may have its own of before. */
	if (!pair->is_restored)
		expect_no_secrets(sim, &pair->end[!pair->broken]);
	for (unsigned int i = 0; i < 2; i++)
		if (!pair->end[i].demand.is)
			fill_area(sim, &pair->end[i], SIM_TARGET, 0);
	sim_pair_reset(sim, pair);
	for (unsigned int i = 0; i < 2; i++)
		forget(&pair->flow[i], sim);
	pair->is_broken = pair->is_restored = pair->takes_messages = false;
	pair->is_half = true;
	pair->late = pair->broken;
	pair->due = sim_now(sim) + pair->delay;
	connect_half(sim, pair, !pair->late);
	/* A peer gets the key of a window only. */
	if (sim_has_windows(sim, pair))
		connect_late(sim, pair);
	sim->count.checks++;
}
