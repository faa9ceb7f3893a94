// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two hosts of two workers each, which share one connection each way, with threads for workers
 * and connections: messages arrive whole and, unless they are datagrams, once and in order, also
 * while connections break and come back.
 */
#include "hosts.h"
#include "pools.h"
#include "core/adapter.h"
#include "nics.h"

#define MARK 0x77
#define TAKEN_AT 20u /* messages from one time that memory is taken away to the next */
#define GONE_FOR 60u /* turns */
#define RNDV_SLOT (25 * PVR_PAGE_SIZE)
#define ANY UINT64_MAX

static const struct load {
	const char *label;
	enum pvr_qp_type type;
	uint32_t messages, len;
	uint32_t slot; /* bytes of memory for each message */
	uint32_t flights, depth; /* sends and receive requests at a time */
	bool counts; /* an atomic behind each message counts it; slot 0 is for that */
	bool nics; /* RDMA NICs read the payloads */
	bool spares; /* memory is taken away while it is written and read */
	unsigned int cuts;
	uint64_t exposed[2]; /* payloads that NICs read: at least and at most */
} loads[] = {
	{ "datagrams", PVR_QPT_UD, 3000, 2048, 4096, 1, 16, .cuts = 0 },
	{ "datagrams, connections break", PVR_QPT_UD, 3000, 2048, 4096, 1, 16, .cuts = 30 },
	{ "messages", PVR_QPT_RC, 2000, 4096, 4096, 8, 32, .counts = true },
	{ "messages, connections break", PVR_QPT_RC, 2000, 4096, 4096, 8, 32, .counts = true,
	  .cuts = 40 },
	{ "nics", PVR_QPT_RC, 200, RNDV_SLOT - 17, RNDV_SLOT, 4, 4, .nics = true,
	  .exposed = { 400, 400 } },
	{ "nics, connections break", PVR_QPT_RC, 200, RNDV_SLOT - 17, RNDV_SLOT, 4, 4, .nics = true,
	  .cuts = 60, .exposed = { 201, ANY } },
	{ "nics, memory is taken back", PVR_QPT_RC, 200, RNDV_SLOT - 17, RNDV_SLOT, 4, 4,
	  .nics = true, .spares = true, .cuts = 60, .exposed = { 21, ANY } },
};

struct side {
	const struct load *load;
	struct fg_end end;
	struct fg_end spare; /* its memory is taken away while it is written to */
	uint32_t sent, received, done;
	uint32_t gone; /* turns since its memory went; 0: it is there */
	uint32_t taken; /* times that it was taken away */
};

/* Two guests, one on each host, that one thread uses; both ends send. */
struct pair {
	struct side side[2];
};

struct talkers {
	struct t_pools pools; /* first, for t_pools_teardown() */
	struct pair pair[2]; /* one on each worker */
};

static uint32_t sent_at(const struct load *load, uint32_t number)
{
	return (load->counts + number % load->flights) * load->slot;
}

static uint32_t received_at(const struct load *load, uint32_t number)
{
	return (load->counts + load->flights + number % load->depth) * load->slot;
}

static uint32_t grh_of(const struct load *load)
{
	return load->type == PVR_QPT_UD ? GRH : 0;
}

static void post_recv(struct side *side, uint32_t number)
{
	t_recv(&side->end, number, received_at(side->load, number),
	       side->load->len + grh_of(side->load));
}

static void open_side(struct side *side, struct fg_guest *guest, const struct load *load)
{
	const struct fg_qp_spec spec = { .type = load->type };
	uint32_t pages = (load->counts + load->flights + load->depth) * load->slot / PVR_PAGE_SIZE;

	side->load = load;
	fg_end_open_spec(&side->end, &guest->kernel, &spec, load->nics ? 1 : pages);
	if (load->nics) {
		fg_end_open_spec(&side->spare, &guest->kernel, &spec, 1);
		nics_in_one_run(&side->end, pages);
		nics_in_one_run(&side->spare, 2 * RNDV_SLOT / PVR_PAGE_SIZE);
	}
	memset(side->end.mr.va, 0, load->slot);
}

static void connect_pair(struct pair *pair, const struct load *load)
{
	struct side *side = pair->side;

	if (load->type == PVR_QPT_UD) {
		fg_end_ready(&side[0].end);
		fg_end_ready(&side[1].end);
	} else {
		fg_end_connect(&side[0].end, &side[1].end, NULL);
	}
	if (load->nics)
		fg_end_connect(&side[0].spare, &side[1].spare, NULL);
	for (uint32_t i = 0; i < 2 * load->depth; i++)
		post_recv(&side[i % 2], i / 2);
}

static int setup(void **state)
{
	struct talkers *talkers = test_calloc(1, sizeof(*talkers));
	const struct load *load = t_row();

	if (load->nics)
		t_pools_init_nics(&talkers->pools);
	else
		t_pools_init(&talkers->pools);
	for (uint32_t i = 0; i < 4; i++)
		open_side(&talkers->pair[i % 2].side[i / 2], talkers->pools.guest[i % 2][i / 2],
			  load);
	fg_wire_run(talkers->pools.wire);
	for (uint32_t i = 0; i < 2; i++)
		connect_pair(&talkers->pair[i], load);
	t_pools_start(&talkers->pools);
	*state = talkers;
	return 0;
}

/* ----------------------------------------------------------------------- messages */

static void post_count(struct side *side, const struct side *to, uint32_t number)
{
	uint32_t at = 64 + 8 * (number % side->load->flights);

	t_post(&side->end, .wr_id = number, .opcode = PVRDMA_WR_ATOMIC_FETCH_AND_ADD,
	       T_SGE(&side->end.mr, at, 8), T_REMOTE(&to->end.mr, 0), .compare_add = 1);
}

/* The seed of a message's pattern is its number; a datagram also begins with it. */
static void send_some(struct side *side, const struct side *to)
{
	const struct load *load = side->load;

	while (side->sent < load->messages && side->sent - side->done < load->flights) {
		uint32_t at = sent_at(load, side->sent);

		fg_fill(side->end.mr.va + at, load->len, side->sent);
		if (load->type == PVR_QPT_UD) {
			memcpy(side->end.mr.va + at, &side->sent, 4);
			t_send_ud(&side->end, &to->end, side->sent, at, load->len);
		} else {
			t_send(&side->end, side->sent, at, load->len);
		}
		if (load->counts)
			post_count(side, to, side->sent);
		side->sent++;
	}
}

static void take_completions(struct side *side)
{
	const uint64_t *was = (const uint64_t *)(side->end.mr.va + 64);
	const struct load *load = side->load;
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&side->end.scq, &cqe)) {
		if (cqe.status != PVRDMA_WC_SUCCESS || cqe.wr_id != side->done)
			fg_die("request %u: status %u", (unsigned int)cqe.wr_id, cqe.status);
		if (load->counts && cqe.opcode != PVRDMA_WC_FETCH_ADD)
			continue;
		if (load->counts && was[side->done % load->flights] != side->done)
			fg_die("count %u was %u", side->done,
			       (unsigned int)was[side->done % load->flights]);
		side->done++;
	}
}

/* The number of the message at @at, which must be whole. */
static void check(const struct load *load, uint8_t *at, uint32_t number)
{
	uint8_t first[4];

	if (load->type == PVR_QPT_UD) {
		memcpy(&number, at, 4);
		if (number >= load->messages)
			fg_die("datagram %u was not sent", number);
		fg_fill(first, 4, number);
		memcpy(at, first, 4);
	}
	if (fg_mismatch(at, load->len, number) != load->len)
		fg_die("message %u is not what was sent", number);
}

static void take_messages(struct side *side)
{
	const struct load *load = side->load;
	const uint32_t grh = grh_of(load);
	struct pvrdma_cqe cqe;

	while (fg_cq_poll(&side->end.rcq, &cqe)) {
		uint32_t n = side->received++;

		if (cqe.status != PVRDMA_WC_SUCCESS || cqe.wr_id != n ||
		    cqe.byte_len != load->len + grh)
			fg_die("message %u: status %u, %u bytes", n, cqe.status, cqe.byte_len);
		check(load, side->end.mr.va + received_at(load, n) + grh, n);
		post_recv(side, n + load->depth);
	}
}

/* ------------------------------------------------------------------ memory that goes */

static void must(uint32_t err, const char *what)
{
	if (err)
		fg_die("%s: ERR 0x%x", what, err);
}

/* Deregisters memory while the other side writes one half and reads the other half. */
static void take_away(struct side *side, struct side *other)
{
	const uint32_t len = side->load->len;

	t_rdma(&other->spare, PVRDMA_WR_RDMA_WRITE, 1, 0, &side->spare.mr, 0, len);
	t_rdma(&other->spare, PVRDMA_WR_RDMA_READ, 2, 0, &side->spare.mr, RNDV_SLOT, len);
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
	/* Frames in flight must not be taken for requests of the new connection. */
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

static bool is_done(const struct side *side)
{
	const struct load *load = side->load;

	if (load->spares && (side->gone || side->taken < load->messages / TAKEN_AT))
		return false;
	return side->done == load->messages &&
	       (load->type == PVR_QPT_UD || side->received == load->messages);
}

static bool turn(void *opaque)
{
	struct side *side = ((struct pair *)opaque)->side;

	for (unsigned int i = 0; i < 2; i++) {
		send_some(&side[i], &side[!i]);
		take_completions(&side[i]);
		take_messages(&side[i]);
		if (side->load->spares)
			use_spares(&side[i], &side[!i]);
	}
	return is_done(&side[0]) && is_done(&side[1]);
}

TEST_CASES_WITH(struct talkers *talkers, setup, t_pools_teardown,
		test_messages_arrive_under_the_workers, loads)
{
	void *const pairs[] = { &talkers->pair[0], &talkers->pair[1] };

	t_pools_talk(&talkers->pools, turn, pairs, row->cuts);
	for (unsigned int i = 0; i < 4; i++) {
		const struct side *side = &talkers->pair[i % 2].side[i / 2];

		if (row->type == PVR_QPT_UD)
			assert_in_range(side->received, row->messages / 20, row->messages);
		if (row->counts)
			assert_int_equal(*(uint64_t *)side->end.mr.va, row->messages);
	}
	if (row->nics)
		assert_in_range(fg_wire_nic(talkers->pools.wire, 0)->exposed, row->exposed[0],
				row->exposed[1]);
}
