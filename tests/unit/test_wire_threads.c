// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two hosts of two workers each, and one connection each way that all of them share, served
 * by threads of its own: what arrives is whole, also while connections break and come back.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "common.h"
#include "fg_crew.h"

#define MESSAGES 3000
#define LEN 2048u /* a multiple of 8 */
#define DEPTH 16 /* receive requests, and slots of memory for them */
#define SLOT 4096u
#define GRH 40u
#define HANG_SECONDS 60
#define CUTS 30

struct side {
	struct fg_end end;
	uint32_t sent, received;
	bool busy; /* a send has not completed yet */
};

/* Two guests, one on each host, that one thread uses. */
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

static void post_recv(struct side *side, uint32_t slot)
{
	t_recv(&side->end, slot, (1 + slot) * SLOT, LEN + GRH);
}

static int setup(void **state)
{
	const struct fg_wire_config config = { .workers = 2, .buffer = 65536 };
	struct crews *crews = test_calloc(1, sizeof(*crews));

	crews->wire = fg_wire_create(&config);
	for (uint32_t i = 0; i < 4; i++) {
		struct pair *pair = &crews->pair[i % 2];
		struct side *side = &pair->side[i / 2];
		const struct fg_qp_spec spec = { .type = PVR_QPT_UD };

		pair->guest[i / 2] = start_on(fg_wire_host(crews->wire, i / 2), i + 1, i % 2);
		fg_end_open_spec(&side->end, &pair->guest[i / 2]->kernel, &spec, 1 + DEPTH);
		fg_end_ready(&side->end);
		for (uint32_t slot = 0; slot < DEPTH; slot++)
			post_recv(side, slot);
	}
	fg_wire_run(crews->wire);
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

static void *talk(void *opaque)
{
	uint64_t end = now() + HANG_SECONDS * FG_SEC;
	struct pair *pair = opaque;

	while (!is_done(pair)) {
		for (unsigned int i = 0; i < 2; i++) {
			send_next(&pair->side[i], &pair->side[!i]);
			take(&pair->side[i]);
		}
		sched_yield();
		if (now() > end)
			fg_die("no end within %d s", HANG_SECONDS);
	}
	return NULL;
}

static void talk_all(struct crews *crews, bool cut)
{
	const struct timespec while_ = { .tv_nsec = 2000000 };

	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&crews->pair[i].thread, NULL, talk,
						&crews->pair[i]), 0);
	for (unsigned int i = 0; cut && i < CUTS; i++) {
		nanosleep(&while_, NULL);
		fg_wire_cut(crews->wire, i % 2, !(i % 2), 0);
		fg_wire_mend(crews->wire, i % 2, !(i % 2), 0);
	}
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(crews->pair[i].thread, NULL);
	stop(crews);
	fg_wire_run(crews->wire);
	assert_int_equal(fg_wire_refused(crews->wire), 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_in_range(crews->pair[i % 2].side[i / 2].received, MESSAGES / 20, MESSAGES);
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
