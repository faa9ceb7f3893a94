// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable connections of two hosts with two workers each, over one connection that all
 * share: each message arrives once and in order, also while connections break and come back.
 */
#include "crews.h"

#define MESSAGES 2000u
#define LEN 4096u
#define DEPTH 32u /* receive requests */
#define FLIGHTS 8u /* of each kind */
#define WORD 0u /* at both ends; what is sent and received is behind it */
#define CUTS 40

struct side {
	struct fg_end end;
	uint32_t sent, done, received;
};

/* Two guests, one on each host, that one thread uses; both ends send. */
struct pair {
	struct side side[2];
};

struct talkers {
	struct t_crews crews; /* first, for t_crews_teardown() */
	struct pair pair[2]; /* one on each worker */
};

static uint32_t slot_of(uint32_t number)
{
	return (1 + number % FLIGHTS) * LEN;
}

static void post_recv(struct side *side, uint32_t number)
{
	t_recv(&side->end, number, (1 + FLIGHTS + number % DEPTH) * LEN, LEN);
}

static void open_side(struct side *side, struct fg_guest *guest)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_RC };

	fg_end_open_spec(&side->end, &guest->kernel, &spec, 1 + FLIGHTS + DEPTH);
	memset(side->end.mr.va, 0, LEN);
}

static int setup(void **state)
{
	struct talkers *talkers = test_calloc(1, sizeof(*talkers));

	t_crews_init(&talkers->crews);
	for (uint32_t i = 0; i < 4; i++)
		open_side(&talkers->pair[i % 2].side[i / 2], talkers->crews.guest[i % 2][i / 2]);
	fg_wire_run(talkers->crews.wire);
	for (uint32_t i = 0; i < 2; i++) {
		struct side *side = talkers->pair[i].side;

		fg_end_connect(&side[0].end, &side[1].end, NULL);
		for (uint32_t k = 0; k < 2 * DEPTH; k++)
			post_recv(&side[k % 2], k / 2);
	}
	t_crews_start(&talkers->crews);
	*state = talkers;
	return 0;
}

static void post_count(struct side *side, const struct side *to, uint32_t number)
{
	struct pvrdma_sge sge = fg_sge(&side->end.mr, 64 + 8 * (number % FLIGHTS), 8);
	struct fg_wr wr = {
		.wr_id = number,
		.opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
		.flags = PVR_SEND_SIGNALED,
		.sge = &sge,
		.num_sge = 1,
		.remote_addr = to->end.mr.start + WORD,
		.rkey = to->end.mr.rkey,
		.compare_add = 1,
	};

	assert_true(fg_post_send(&side->end.qp, &wr));
}

/* A message, and a count of it behind it. */
static void send_some(struct side *side, const struct side *to)
{
	while (side->sent < MESSAGES && side->sent - side->done < FLIGHTS) {
		fg_fill(side->end.mr.va + slot_of(side->sent), LEN, side->sent);
		t_send(&side->end, side->sent, slot_of(side->sent), LEN);
		post_count(side, to, side->sent);
		side->sent++;
	}
}

static void take_completions(struct side *side)
{
	const uint64_t *was = (const uint64_t *)(side->end.mr.va + 64);
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&side->end.scq, &cqe)) {
		if (cqe.status != PVRDMA_WC_SUCCESS || cqe.wr_id != side->done)
			fg_die("request %u: status %u", (unsigned int)cqe.wr_id, cqe.status);
		if (cqe.opcode != PVRDMA_WC_FETCH_ADD)
			continue;
		if (was[side->done % FLIGHTS] != side->done)
			fg_die("count %u was %u", side->done,
			       (unsigned int)was[side->done % FLIGHTS]);
		side->done++;
	}
}

static void take_messages(struct side *side)
{
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&side->end.rcq, &cqe)) {
		uint32_t n = side->received++;

		if (cqe.status != PVRDMA_WC_SUCCESS || cqe.wr_id != n || cqe.byte_len != LEN)
			fg_die("message %u: status %u, %u bytes", n, cqe.status, cqe.byte_len);
		if (fg_mismatch(side->end.mr.va + (1 + FLIGHTS + n % DEPTH) * LEN, LEN, n) != LEN)
			fg_die("message %u is not what was sent", n);
		post_recv(side, n + DEPTH);
	}
}

static bool is_done(const struct side *side)
{
	return side->done == MESSAGES && side->received == MESSAGES;
}

static bool turn(void *opaque)
{
	struct pair *pair = opaque;

	for (unsigned int i = 0; i < 2; i++) {
		send_some(&pair->side[i], &pair->side[!i]);
		take_completions(&pair->side[i]);
		take_messages(&pair->side[i]);
	}
	return is_done(&pair->side[0]) && is_done(&pair->side[1]);
}

static void talk_all(struct talkers *talkers, unsigned int cuts)
{
	void *const pairs[] = { &talkers->pair[0], &talkers->pair[1] };

	t_crews_talk(&talkers->crews, turn, pairs, cuts);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(*(uint64_t *)talkers->pair[i % 2].side[i / 2].end.mr.va, MESSAGES);
}

TEST_WITH(struct talkers *talkers, setup, t_crews_teardown, test_workers_share_a_connection)
{
	talk_all(talkers, 0);
}

TEST_WITH(struct talkers *talkers, setup, t_crews_teardown,
	  test_connections_break_under_the_workers)
{
	talk_all(talkers, CUTS);
}
