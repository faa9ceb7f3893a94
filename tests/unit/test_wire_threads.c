// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two hosts of two workers each, and one connection each way that all of them share, served
 * by threads of its own: what arrives is whole, also while connections break and come back.
 */
#include "crews.h"

#define MESSAGES 3000
#define LEN 2048u /* a multiple of 8 */
#define DEPTH 16 /* receive requests, and slots of memory for them */
#define SLOT 4096u
#define GRH 40u
#define CUTS 30

struct side {
	struct fg_end end;
	uint32_t sent, received;
	bool busy; /* a send has not completed yet */
};

/* Two guests, one on each host, that one thread uses. */
struct pair {
	struct side side[2];
};

struct talkers {
	struct t_crews crews; /* first, for t_crews_teardown() */
	struct pair pair[2]; /* one on each worker */
};

static void post_recv(struct side *side, uint32_t slot)
{
	t_recv(&side->end, slot, (1 + slot) * SLOT, LEN + GRH);
}

static void open_side(struct side *side, struct fg_guest *guest)
{
	const struct fg_qp_spec spec = { .type = PVR_QPT_UD };

	fg_end_open_spec(&side->end, &guest->kernel, &spec, 1 + DEPTH);
	fg_end_ready(&side->end);
	for (uint32_t slot = 0; slot < DEPTH; slot++)
		post_recv(side, slot);
}

static int setup(void **state)
{
	struct talkers *talkers = test_calloc(1, sizeof(*talkers));

	t_crews_init(&talkers->crews);
	for (uint32_t i = 0; i < 4; i++)
		open_side(&talkers->pair[i % 2].side[i / 2], talkers->crews.guest[i % 2][i / 2]);
	t_crews_start(&talkers->crews);
	*state = talkers;
	return 0;
}

static void fill(uint8_t *at, uint32_t number)
{
	uint64_t *word = (uint64_t *)at;

	for (uint32_t i = 0; i < LEN / 8; i++)
		word[i] = (uint64_t)number * 1000003 + i;
}

static void check(const uint8_t *at)
{
	uint64_t word[LEN / 8];

	memcpy(word, at, sizeof(word));
	for (uint32_t i = 1; i < LEN / 8; i++)
		if (word[i] != word[0] + i)
			fg_die("word %u of a datagram is 0x%llx", i, (unsigned long long)word[i]);
	if (word[0] % 1000003 || word[0] / 1000003 >= MESSAGES)
		fg_die("a datagram that nobody has sent");
}

static void take(struct side *side)
{
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&side->end.rcq, &cqe)) {
		if (cqe.status != PVRDMA_WC_SUCCESS || cqe.byte_len != LEN + GRH)
			fg_die("status %u, %u bytes", cqe.status, cqe.byte_len);
		check(side->end.mr.va + (1 + cqe.wr_id) * SLOT + GRH);
		side->received++;
		post_recv(side, (uint32_t)cqe.wr_id);
	}
}

static void send_next(struct side *side, const struct side *to)
{
	struct pvrdma_cqe cqe;

	if (side->busy && !fg_cq_poll(&side->end.scq, &cqe))
		return;
	side->busy = side->sent < MESSAGES;
	if (!side->busy)
		return;
	fill(side->end.mr.va, side->sent++);
	t_send_ud(&side->end, &to->end, 0, 0, LEN);
}

static bool is_done(const struct pair *pair)
{
	return pair->side[0].sent == MESSAGES && pair->side[1].sent == MESSAGES &&
	       !pair->side[0].busy && !pair->side[1].busy;
}

static bool turn(void *opaque)
{
	struct pair *pair = opaque;

	for (unsigned int i = 0; i < 2; i++) {
		send_next(&pair->side[i], &pair->side[!i]);
		take(&pair->side[i]);
	}
	return is_done(pair);
}

static void talk_all(struct talkers *talkers, unsigned int cuts)
{
	void *const pairs[] = { &talkers->pair[0], &talkers->pair[1] };

	t_crews_talk(&talkers->crews, turn, pairs, cuts);
	for (unsigned int i = 0; i < 4; i++)
		assert_in_range(talkers->pair[i % 2].side[i / 2].received, MESSAGES / 20, MESSAGES);
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
