// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RDMA NICs that read guests' memory, with threads for workers and connections: what is sent
 * arrives, and what a guest has got back stays as it is, also while connections break.
 */
#include "crews.h"
#include "core/adapter.h"
#include "nics.h"

#define MESSAGES 200u
#define PAGES 25u
#define LEN (PAGES * PVR_PAGE_SIZE - 17)
#define DEPTH 4u /* receive requests, and messages on their way */
#define CUTS 60
#define MARK 0x77
#define TAKEN_AT 20u /* messages from one time that memory is taken away to the next */
#define GONE_FOR 60u /* turns */

struct side {
	struct fg_end end;
	struct fg_end spare; /* its memory is taken away while it is written to */
	uint32_t sent, received, done;
	uint32_t gone; /* turns since the last one; 0: it has it */
	uint32_t taken; /* times that it was taken away */
};

/* Two guests, one on each host, that one thread uses; both ends send. */
struct pair {
	struct side side[2];
};

struct talkers {
	struct t_crews crews; /* first, for t_crews_teardown() */
	struct pair pair[2]; /* one on each worker */
};

static uint32_t place(uint32_t slot)
{
	return slot * PAGES * PVR_PAGE_SIZE;
}

static void post_recv(struct side *side, uint32_t number)
{
	t_recv(&side->end, number, place(DEPTH + number % DEPTH), LEN);
}

static void open_side(struct side *side, struct fg_guest *guest)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC };

	fg_end_open_spec(&side->end, &guest->kernel, &spec, 1);
	fg_end_open_spec(&side->spare, &guest->kernel, &spec, 1);
	nics_in_one_run(&side->end, 2 * DEPTH * PAGES);
	nics_in_one_run(&side->spare, 2 * PAGES);
}

static int setup(void **state)
{
	struct talkers *talkers = test_calloc(1, sizeof(*talkers));

	t_crews_init_nics(&talkers->crews);
	for (uint32_t i = 0; i < 4; i++)
		open_side(&talkers->pair[i % 2].side[i / 2], talkers->crews.guest[i % 2][i / 2]);
	fg_wire_run(talkers->crews.wire);
	for (uint32_t i = 0; i < 2; i++) {
		struct side *side = talkers->pair[i].side;

		fg_end_connect(&side[0].end, &side[1].end, NULL);
		fg_end_connect(&side[0].spare, &side[1].spare, NULL);
		for (uint32_t k = 0; k < 2 * DEPTH; k++)
			post_recv(&side[k % 2], k / 2);
	}
	t_crews_start(&talkers->crews);
	*state = talkers;
	return 0;
}

/* ----------------------------------------------------------------------- messages */

static void send_some(struct side *side)
{
	while (side->sent < MESSAGES && side->sent - side->done < DEPTH) {
		fg_fill(side->end.mr.va + place(side->sent % DEPTH), LEN, side->sent);
		t_send(&side->end, side->sent, place(side->sent % DEPTH), LEN);
		side->sent++;
	}
}

static void take_completions(struct side *side)
{
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&side->end.scq, &cqe))
		if (cqe.status != PVRDMA_WC_SUCCESS || cqe.wr_id != side->done++)
			fg_die("request %u: status %u", (unsigned int)cqe.wr_id, cqe.status);
}

static void take_messages(struct side *side)
{
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&side->end.rcq, &cqe)) {
		uint32_t n = side->received++;

		if (cqe.status != PVRDMA_WC_SUCCESS || cqe.wr_id != n || cqe.byte_len != LEN)
			fg_die("message %u: status %u, %u bytes", n, cqe.status, cqe.byte_len);
		if (fg_mismatch(side->end.mr.va + place(DEPTH + n % DEPTH), LEN, n) != LEN)
			fg_die("message %u is not what was sent", n);
		post_recv(side, n + DEPTH);
	}
}

/* ------------------------------------------------------------------ memory that goes */

static void must(uint32_t err, const char *what)
{
	if (err)
		fg_die("%s: ERR 0x%x", what, err);
}

/* Half of its memory is written by the other side, half of it lent to that. */
static void take_away(struct side *side, struct side *other)
{
	t_rdma(&other->spare, PVRDMA_WR_RDMA_WRITE, 1, 0, &side->spare.mr, 0, LEN);
	t_rdma(&other->spare, PVRDMA_WR_RDMA_READ, 2, 0, &side->spare.mr, place(1), LEN);
	for (uint32_t i = 0; i < side->taken % 8; i++)
		sched_yield();
	must(fg_mr_destroy(&side->spare.mr), "destroy MR");
	memset(side->spare.buf.va, MARK, side->spare.buf.size);
	side->gone = 1;
	side->taken++;
}

/* The minute for which its payloads would be copied is over. */
static void forgive(struct fg_guest *guest)
{
	pvr_adapter_pause(guest->adapter);
	guest->adapter->nic_not_before = 0;
	pvr_adapter_resume(guest->adapter);
}

static void expect_untouched(struct side *side)
{
	for (size_t i = 0; i < side->spare.buf.size; i++)
		if (side->spare.buf.va[i] != MARK)
			fg_die("memory was written to after it had been taken back");
}

static void give_again(struct side *side, struct side *other)
{
	struct fg_end *ends[] = { &side->spare, &other->spare };
	struct fg_conn conn = fg_conn_default;

	expect_untouched(side);
	must(fg_mr_create(&side->spare.pd, &side->spare.buf, FG_ACCESS_ALL, &side->spare.mr), "MR");
	for (unsigned int i = 0; i < 2; i++) {
		must(fg_qp_to_reset(&ends[i]->qp), "RESET");
		fg_cq_drain(&ends[i]->scq);
		fg_cq_drain(&ends[i]->rcq);
		forgive(ends[i]->guest);
	}
	/* What is still on its way must not pass for a request of the new connection. */
	conn.psn = (side->taken + other->taken) * 0x1000;
	fg_end_connect(ends[0], ends[1], &conn);
	side->gone = 0;
}

static void use_spares(struct side *side, struct side *other)
{
	if (side->gone && side->gone++ == GONE_FOR)
		give_again(side, other);
	else if (!side->gone && !other->gone && side->done / TAKEN_AT > side->taken)
		take_away(side, other);
}

/* -------------------------------------------------------------------------- all of it */

static bool is_done(const struct side *side, bool spares)
{
	if (spares && (side->gone || side->taken < MESSAGES / TAKEN_AT))
		return false;
	return side->done == MESSAGES && side->received == MESSAGES;
}

static bool turn(struct pair *pair, bool spares)
{
	for (unsigned int i = 0; i < 2; i++) {
		send_some(&pair->side[i]);
		take_completions(&pair->side[i]);
		take_messages(&pair->side[i]);
		if (spares)
			use_spares(&pair->side[i], &pair->side[!i]);
	}
	return is_done(&pair->side[0], spares) && is_done(&pair->side[1], spares);
}

static bool talk(void *opaque)
{
	return turn(opaque, false);
}

static bool talk_and_take_away(void *opaque)
{
	return turn(opaque, true);
}

static uint64_t talk_all(struct talkers *talkers, bool (*how)(void *pair), unsigned int cuts)
{
	void *const pairs[] = { &talkers->pair[0], &talkers->pair[1] };

	t_crews_talk(&talkers->crews, how, pairs, cuts);
	return fg_wire_nic(talkers->crews.wire, 0)->lent;
}

TEST_WITH(struct talkers *talkers, setup, t_crews_teardown, test_nics_read_under_the_workers)
{
	assert_int_equal(talk_all(talkers, talk, 0), 2 * MESSAGES);
}

TEST_WITH(struct talkers *talkers, setup, t_crews_teardown,
	  test_nics_connections_break_under_the_workers)
{
	assert_true(talk_all(talkers, talk, CUTS) > MESSAGES);
}

TEST_WITH(struct talkers *talkers, setup, t_crews_teardown,
	  test_memory_is_taken_back_under_the_workers)
{
	assert_true(talk_all(talkers, talk_and_take_away, CUTS) > 20);
}
