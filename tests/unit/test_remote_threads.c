// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Reliable connections of two hosts with two workers each, over one connection that all
 * share: each message arrives once and in order, also while connections break and come back.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "common.h"
#include "fg_crew.h"
#include "fg_wire.h"

#define MESSAGES 2000u
#define LEN 4096u
#define DEPTH 32u /* receive requests */
#define FLIGHTS 8u /* of each kind */
#define WORD 0u /* at both ends; what is sent and received is behind it */
#define HANG_SECONDS 60
#define CUTS 40

struct side {
	struct fg_end end;
	uint32_t sent, done, received;
};

/* Two guests, one on each host, that one thread uses; both ends send. */
struct pair {
	struct fg_guest *guest[2];
	struct side side[2];
	pthread_t thread;
};

struct crews {
	struct fg_wire *wire;
	struct fg_crew *crew[2];
	struct pair pair[2]; /* one on each worker */
};

static struct fg_guest *start_on(struct fg_host *host, uint32_t number, unsigned int worker)
{
	struct fg_guest_config config;
	struct fg_guest *guest;
	uint8_t gid[16];

	fg_guest_config_init(&config, number);
	config.worker = worker;
	guest = fg_guest_create(host, &config);
	expect_ok(fg_guest_boot(guest));
	fg_gid_from_mac(gid, guest->config.mac);
	expect_ok(fg_bind_gid(guest, 0, gid));
	return guest;
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * FG_SEC + (uint64_t)ts.tv_nsec;
}

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
	const struct fg_wire_config config = { .workers = 2, .buffer = 65536 };
	struct crews *crews = test_calloc(1, sizeof(*crews));

	crews->wire = fg_wire_create(&config);
	for (uint32_t i = 0; i < 4; i++) {
		struct pair *pair = &crews->pair[i % 2];

		pair->guest[i / 2] = start_on(fg_wire_host(crews->wire, i / 2), i + 1, i % 2);
		open_side(&pair->side[i / 2], pair->guest[i / 2]);
	}
	fg_wire_run(crews->wire);
	for (uint32_t i = 0; i < 2; i++) {
		struct side *side = crews->pair[i].side;

		fg_end_connect(&side[0].end, &side[1].end, NULL);
		for (uint32_t k = 0; k < 2 * DEPTH; k++)
			post_recv(&side[k % 2], k / 2);
	}
	/* Crews change what the clock is, which the wire's threads look at. */
	for (unsigned int i = 0; i < 2; i++)
		crews->crew[i] = fg_crew_start(fg_wire_host(crews->wire, i));
	fg_wire_start(crews->wire);
	*state = crews;
	return 0;
}

static void stop(struct crews *crews)
{
	fg_wire_stop(crews->wire);
	for (unsigned int i = 0; i < 2; i++) {
		if (crews->crew[i])
			fg_crew_stop(crews->crew[i]);
		crews->crew[i] = NULL;
	}
}

static int teardown(void **state)
{
	struct crews *crews = *state;

	stop(crews);
	for (unsigned int i = 0; i < 4; i++)
		fg_guest_destroy(crews->pair[i % 2].guest[i / 2]);
	fg_wire_destroy(crews->wire);
	test_free(crews);
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

static void *talk(void *opaque)
{
	uint64_t end = now() + HANG_SECONDS * FG_SEC;
	struct pair *pair = opaque;

	while (!is_done(&pair->side[0]) || !is_done(&pair->side[1])) {
		for (unsigned int i = 0; i < 2; i++) {
			send_some(&pair->side[i], &pair->side[!i]);
			take_completions(&pair->side[i]);
			take_messages(&pair->side[i]);
		}
		sched_yield();
		if (now() > end)
			fg_die("no end within %d s", HANG_SECONDS);
	}
	return NULL;
}

static void talk_all(struct crews *crews, bool cut)
{
	const struct timespec pause = { .tv_nsec = 2000000 };

	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&crews->pair[i].thread, NULL, talk,
						&crews->pair[i]), 0);
	for (unsigned int i = 0; cut && i < CUTS; i++) {
		nanosleep(&pause, NULL);
		fg_wire_cut(crews->wire, i % 2, !(i % 2), 0);
		fg_wire_mend(crews->wire, i % 2, !(i % 2), 0);
	}
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(crews->pair[i].thread, NULL);
	stop(crews);
	fg_wire_run(crews->wire);
	assert_int_equal(fg_wire_refused(crews->wire), 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(*(uint64_t *)crews->pair[i % 2].side[i / 2].end.mr.va, MESSAGES);
}

static void test_workers_share_a_connection(void **state)
{
	talk_all(*state, false);
}

static void test_connections_break_under_the_workers(void **state)
{
	talk_all(*state, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_workers_share_a_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(test_connections_break_under_the_workers, setup,
						teardown),
	};

	return T_MAIN(tests);
}
