// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PVR_EXT_ANSWER: who watches the response slot knows how a command has ended, and need not read ERR. */
#include <pthread.h>
#include <sched.h>

#include "common.h"

#define COMMANDS 100000
#define SPINS 2000 /* until others get the CPU */

TEST_INIT
{
	fg_default_ext = PVR_EXT_ANSWER;
}

static struct pvr_resp_hdr answer_of(struct fg_guest *g, const void *req, size_t len)
{
	struct pvr_resp_hdr answer;

	fg_cmd_begin(g, req, len);
	memcpy(&answer, g->resp_slot, sizeof(answer));
	/* For the next one. */
	fg_reg_read(g, PVR_REG_ERR);
	return answer;
}

static struct pvr_resp_hdr answer_to_handle(struct fg_guest *g, uint32_t cmd, uint32_t handle)
{
	struct pvr_cmd_handle req = { .hdr = FG_CMD_HDR(cmd), .handle = handle };

	return answer_of(g, &req, sizeof(req));
}

static void expect_answer(struct pvr_resp_hdr answer, uint32_t cmd, uint8_t err)
{
	assert_true(answer.response == FG_CMD_COOKIE);
	assert_int_equal(answer.ack, PVR_CMD_RESP_ACK | cmd);
	assert_int_equal(answer.err, err);
}

TEST(guest, test_commands_without_a_response_are_answered)
{
	struct fg_pd pd;

	expect_ok(fg_pd_create(&env->g[0]->kernel, &pd));
	expect_answer(answer_to_handle(env->g[0], PVR_CMD_DESTROY_PD, pd.handle),
		      PVR_CMD_DESTROY_PD, 0);
}

TEST(guest, test_answer_has_the_error)
{
	expect_answer(answer_to_handle(env->g[0], PVR_CMD_DESTROY_PD, 0xffffff), PVR_CMD_DESTROY_PD,
		      EINVAL);
	expect_answer(answer_to_handle(env->g[0], PVR_CMD_QUERY_SRQ, 0xffffff), PVR_CMD_QUERY_SRQ,
		      EINVAL);
}

TEST(guest, test_what_is_no_command_is_not_answered)
{
	struct pvr_resp_hdr answer = answer_to_handle(env->g[0], PVR_CMD_NUM, 0);

	assert_true(answer.response != FG_CMD_COOKIE);
	expect_refused(fg_cmd_destroy(env->g[0], PVR_CMD_NUM, 0));
}

/* A CPU that watches the slot while another one runs commands, in turns. */
struct watcher {
	struct fg_guest *g;
	uint64_t begun, seen; /* commands */
	uint64_t early; /* keys that were there before the last byte */
};

static void *watch(void *opaque)
{
	struct watcher *watcher = opaque;
	const uint8_t *last = (const uint8_t *)watcher->g->resp_slot + PVR_CMD_RESP_SIZE - 1;
	const uint64_t *key = watcher->g->resp_slot;
	uint64_t i;

	for (i = 1; i <= COMMANDS; i++) {
		while (__atomic_load_n(&watcher->begun, __ATOMIC_ACQUIRE) < i)
			sched_yield();
		for (uint32_t looks = 1; __atomic_load_n(key, __ATOMIC_ACQUIRE) != i; looks++)
			if (looks % SPINS == 0)
				sched_yield();
		watcher->early += __atomic_load_n(last, __ATOMIC_RELAXED) != 0;
		__atomic_store_n(&watcher->seen, i, __ATOMIC_RELEASE);
	}
	return NULL;
}

TEST(guest, test_key_is_stored_last)
{
	struct watcher watcher = { .g = env->g[0] };
	struct pvr_cmd_query_pkey req = { .hdr = FG_CMD_HDR(PVR_CMD_QUERY_PKEY), .port_num = 1 };
	struct fg_guest *g = env->g[0];
	pthread_t thread;

	memset(g->resp_slot, 0xee, PVR_CMD_RESP_SIZE);
	assert_int_equal(pthread_create(&thread, NULL, watch, &watcher), 0);
	for (uint64_t i = 1; i <= COMMANDS; i++) {
		memset(g->resp_slot, 0xee, PVR_CMD_RESP_SIZE);
		req.hdr.response = i;
		memcpy(g->cmd_slot, &req, sizeof(req));
		__atomic_store_n(&watcher.begun, i, __ATOMIC_RELEASE);
		fg_reg_write(g, PVR_REG_REQUEST, 0);
		while (__atomic_load_n(&watcher.seen, __ATOMIC_ACQUIRE) < i)
			sched_yield();
	}
	pthread_join(thread, NULL);
	assert_int_equal(watcher.early, 0);
}
