// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Atomics under contention. At each end there are two words that three parties work on at the same time: the other
 * end, this end through a QP that is connected to itself, and this end's CPUs with C11 atomics.
 *
 * One word counts: everybody adds 1 and notes what was there before, so all notes differ and none is missing. The
 * other is a row of tickets: everybody swaps N for N + 1, so each N has one winner.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "verify.h"

#define ROUNDS 400
#define ADDS 4 /* per round, and one swap */
#define CPU_MOST (1u << 20)
#define PAUSE 256

/* Far from each other, as programs would have them. */
struct words {
	_Atomic uint64_t count;
	uint64_t pad[15];
	_Atomic uint64_t ticket;
};

/* Results of one party; the machine type is the same on both sides. */
struct tally {
	uint32_t added, won;
	uint32_t before[ROUNDS * ADDS];
	uint32_t tickets[ROUNDS];
};

/* A QP that works on some words. */
struct agent {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct place place;
	uint64_t *results; /* ADDS + 1 */
	struct ibv_mr *mr;
	uint64_t guess;
	struct tally tally;
};

enum { AGENT_REMOTE, AGENT_LOCAL, AGENT_NUM };

struct cpu {
	pthread_t thread;
	struct words *words;
	_Atomic bool stop;
	uint32_t added, won;
	uint32_t before[CPU_MOST], tickets[CPU_MOST / PAUSE];
};

struct arena {
	struct words *words;
	struct ibv_mr *mr;
	struct agent agents[AGENT_NUM];
	struct cpu cpu;
	struct place mine, peer;
	struct tally theirs; /* of the other end's remote agent */
};

/* --- CPUs --- */

static void *hammer(void *argument)
{
	struct cpu *cpu = argument;
	uint64_t guess;

	while (!atomic_load(&cpu->stop) && cpu->added < CPU_MOST) {
		cpu->before[cpu->added++] = atomic_fetch_add(&cpu->words->count, 1);
		if (cpu->added % PAUSE)
			continue;
		/* Seldom, as a CPU that tries all the time would win all tickets. */
		guess = atomic_load(&cpu->words->ticket);
		if (atomic_compare_exchange_strong(&cpu->words->ticket, &guess, guess + 1))
			cpu->tickets[cpu->won++] = guess;
		sched_yield();
	}
	return NULL;
}

static void start_cpu(struct cpu *cpu, struct words *words)
{
	cpu->words = words;
	MUST(pthread_create(&cpu->thread, NULL, hammer, cpu));
}

static void stop_cpu(struct cpu *cpu)
{
	atomic_store(&cpu->stop, true);
	pthread_join(cpu->thread, NULL);
}

/* --- agents --- */

static void open_agent(struct run *run, struct agent *agent)
{
	agent->cq = MUST_HAVE(ibv_create_cq(run->node.ctx, ADDS + 1, NULL, NULL, 0));
	agent->qp = qp_create_rc(&run->node, agent->cq, ADDS + 1);
	agent->mr =
		mr_create(&run->node, (ADDS + 1) * sizeof(*agent->results), IBV_ACCESS_LOCAL_WRITE);
	agent->results = agent->mr->addr;
}

static void close_agent(struct agent *agent)
{
	MUST(ibv_destroy_qp(agent->qp));
	MUST(ibv_destroy_cq(agent->cq));
	mr_destroy(agent->mr);
}

static void post_atomics(struct agent *agent)
{
	uint64_t words = agent->place.memory;
	uint32_t rkey = agent->place.rkey;

	for (int i = 0; i < ADDS; i++)
		post_send(agent->qp, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			  ONE_SGE(agent->mr, &agent->results[i], 8),
			  .wr.atomic = { .remote_addr = words, .rkey = rkey, .compare_add = 1 });
	post_send(agent->qp, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		  ONE_SGE(agent->mr, &agent->results[ADDS], 8),
		  .wr.atomic = { .remote_addr = words + offsetof(struct words, ticket),
				 .rkey = rkey,
				 .compare_add = agent->guess,
				 .swap = agent->guess + 1 });
}

static void take_results(struct agent *agent)
{
	struct tally *tally = &agent->tally;

	for (int i = 0; i <= ADDS; i++)
		cq_expect(agent->cq, IBV_WC_SUCCESS, "an atomic");
	for (int i = 0; i < ADDS; i++)
		tally->before[tally->added++] = agent->results[i];
	if (agent->results[ADDS] == agent->guess)
		tally->tickets[tally->won++] = agent->guess++;
	else
		agent->guess = agent->results[ADDS];
}

/*
 * With both ends in one process a device that keeps to the order would let the same one
 * win each ticket: so the ends take turns in being first.
 */
static void agents_round(struct run *run, struct arena *arenas, int round)
{
	int side;

	for (int n = 0; n < 2; n++) {
		side = (n + round) % 2;
		for (int a = 0; is_here(run, side) && a < AGENT_NUM; a++)
			post_atomics(&arenas[side].agents[a]);
	}
	for (side = run->first; side <= run->last; side++)
		for (int a = 0; a < AGENT_NUM; a++)
			take_results(&arenas[side].agents[a]);
}

/* --- sums --- */

/* Notes each number once. Returns how many were there before, or too large. */
static uint32_t mark(uint8_t *seen, uint64_t size, const uint32_t *numbers, uint32_t num)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < num; i++)
		if (numbers[i] >= size || seen[numbers[i]]++)
			wrong++;
	return wrong;
}

static void check_word(struct run *run, const char *what, uint64_t value,
		       const uint32_t *const lists[3], const uint32_t nums[3])
{
	uint64_t total = (uint64_t)nums[0] + nums[1] + nums[2];
	uint8_t *seen = calloc(total + 1, 1);
	uint32_t wrong = 0;

	if (value != total)
		complain(run, "%s is %llu, expected %u + %u + %u", what, (unsigned long long)value,
			 nums[0], nums[1], nums[2]);
	for (int i = 0; i < 3; i++)
		wrong += mark(seen, total, lists[i], nums[i]);
	if (wrong)
		complain(run, "%s: %u of %llu were had twice or never", what, wrong,
			 (unsigned long long)total);
	free(seen);
}

static void check_arena(struct run *run, struct arena *arena)
{
	const struct tally *local = &arena->agents[AGENT_LOCAL].tally, *remote = &arena->theirs;
	const struct cpu *cpu = &arena->cpu;

	check_word(run, "the count", atomic_load(&arena->words->count),
		   (const uint32_t *[]){ local->before, remote->before, cpu->before },
		   (uint32_t[]){ local->added, remote->added, cpu->added });
	check_word(run, "the ticket", atomic_load(&arena->words->ticket),
		   (const uint32_t *[]){ local->tickets, remote->tickets, cpu->tickets },
		   (uint32_t[]){ local->won, remote->won, cpu->won });
	printf("verify: contention: added %u here, %u by the peer, %u by CPUs; won %u, %u, %u tickets\n",
	       local->added, remote->added, cpu->added, local->won, remote->won, cpu->won);
	run->operations += local->added + local->won + remote->added + remote->won;
}

/* --- the phase --- */

static void open_arena(struct run *run, struct arena *arena)
{
	arena->mr =
		mr_create(&run->node, PLAN_PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	arena->words = arena->mr->addr;
	for (int i = 0; i < AGENT_NUM; i++)
		open_agent(run, &arena->agents[i]);
	arena->mine = (struct place){
		.address = qp_address(&run->node, arena->agents[AGENT_REMOTE].qp),
		.memory = (uintptr_t)arena->words,
		.rkey = arena->mr->rkey,
	};
}

static void connect_arena(struct run *run, struct arena *arena)
{
	struct agent *local = &arena->agents[AGENT_LOCAL], *remote = &arena->agents[AGENT_REMOTE];

	local->place = arena->mine;
	remote->place = arena->peer;
	qp_connect_to_itself(&run->node, local->qp);
	qp_connect(&run->node, remote->qp, &remote->place.address);
}

static void close_arena(struct arena *arena)
{
	for (int i = 0; i < AGENT_NUM; i++)
		close_agent(&arena->agents[i]);
	mr_destroy(arena->mr);
}

static void open_arenas(struct run *run, struct arena *arenas)
{
	for (int side = run->first; side <= run->last; side++)
		open_arena(run, &arenas[side]);
	trade(run, (const void *[]){ &arenas[0].mine, &arenas[1].mine },
	      (void *[]){ &arenas[0].peer, &arenas[1].peer }, sizeof(struct place));
	for (int side = run->first; side <= run->last; side++)
		connect_arena(run, &arenas[side]);
}

static void work(struct run *run, struct arena *arenas)
{
	bool cpus = run->params.cpus;

	for (int side = run->first; cpus && side <= run->last; side++)
		start_cpu(&arenas[side].cpu, arenas[side].words);
	for (int i = 0; i < ROUNDS; i++)
		agents_round(run, arenas, i);
	for (int side = run->first; cpus && side <= run->last; side++)
		stop_cpu(&arenas[side].cpu);
}

void run_contention(struct run *run)
{
	static struct arena arenas[2];
	const void *mine[] = { &arenas[0].agents[AGENT_REMOTE].tally,
			       &arenas[1].agents[AGENT_REMOTE].tally };
	void *theirs[] = { &arenas[0].theirs, &arenas[1].theirs };

	run->phase = "contention";
	run->round++;
	open_arenas(run, arenas);
	meet(run);
	work(run, arenas);
	trade(run, mine, theirs, sizeof(struct tally));
	for (int side = run->first; side <= run->last; side++)
		check_arena(run, &arenas[side]);
	meet(run);
	for (int side = run->first; side <= run->last; side++)
		close_arena(&arenas[side]);
	fflush(stdout);
}
