// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A guest that rewrites what the device is reading: a second thread scribbles over one
 * piece of shared memory while the first keeps the device at work. With any result of
 * the race, memory stays safe and the other pair of guests continues. Meant for ASan; the races
 * are the guest's, so not for TSan.
 */
#include <pthread.h>

#include "objects.h"

#define ROUNDS 2000

struct scribbler {
	pthread_t thread;
	volatile uint64_t *target;
	size_t words;
	bool indices; /* small numbers rather than random bits */
	uint32_t stop;
};

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 16 ^ *state << 24;
}

static void *scribble(void *opaque)
{
	struct scribbler *s = opaque;
	uint64_t rnd = 12345, original = s->target[0];

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		uint64_t r = next_random(&rnd);
		size_t word = r % s->words;

		if (s->indices)
			s->target[word] = (r >> 8 & 0xff) | (r >> 16 & 0xff) << 32;
		else if (r & 1 << 20)
			s->target[word] = next_random(&rnd);
		else
			s->target[word] = original + (r & 7);
	}
	return NULL;
}

static void scribbler_start(struct scribbler *s, void *target, size_t len)
{
	s->target = target;
	s->words = len / 8;
	s->stop = 0;
	if (pthread_create(&s->thread, NULL, scribble, s))
		fg_die("no thread");
}

static void scribbler_stop(struct scribbler *s)
{
	__atomic_store_n(&s->stop, 1, __ATOMIC_RELAXED);
	pthread_join(s->thread, NULL);
}

/* vm3 and vm4, which the scribbler does not touch. */
struct bystanders {
	struct fg_end c, d;
};

static void bystanders_open(struct bystanders *by, struct t_env *env)
{
	env->g[2] = fg_guest_start(env->host, 3);
	env->g[3] = fg_guest_start(env->host, 4);
	t_open_pair(&by->c, env->g[2], &by->d, env->g[3]);
	t_ping_pong(env->host, &by->c, &by->d);
}

#define TEST_BYSTANDERS(fixture, name) \
	TEST_OBJECT(fixture, struct bystanders, by, bystanders_open, name)

/* The library has views of the rings that a scribbler has made worthless. */
static void write_tail(struct pvr_ring *ring, uint32_t tail)
{
	__atomic_store_n(&ring->prod_tail, tail, __ATOMIC_RELEASE);
}

/* Set before the fixture boots the guests. */
T_SETUP_EXT(extensions, PVR_ENGINE_EXT, rc)

TEST_GUEST(extensions, test_command_slot_rewritten_while_commands_run)
{
	struct scribbler s = { 0 };
	struct pvr_cmd_create_mr req = fg_mr_request(&env->a.pd, &env->a.buf, 0, 8192, 0);

	for (uint32_t cmd = 0; cmd < PVR_CMD_NUM; cmd++) {
		req.hdr.cmd = cmd;
		memcpy(g->cmd_slot, &req, sizeof(req));
		scribbler_start(&s, (uint8_t *)g->cmd_slot + 8, PVR_CMD_REQ_SIZE - 8);
		for (int i = 0; i < ROUNDS; i++) {
			fg_reg_write(g, PVR_REG_REQUEST, 0);
			fg_reg_read(g, PVR_REG_ERR);
		}
		scribbler_stop(&s);
	}
	fg_run(env->host);
	expect_ok(fg_guest_boot(g));
	fg_end_connect(&env->b, &env->b, NULL);
	t_ping_pong(env->host, &env->b, &env->b);
}

TEST_GUEST(unprobed, test_dsr_rewritten_while_it_is_read)
{
	struct scribbler s = { 0 };

	fg_dsr_fill(g);
	scribbler_start(&s, g->dsr, 72);
	for (int i = 0; i < ROUNDS; i++) {
		fg_dsr_write(g, g->dsr_gpa);
		fg_ctl(g, PVR_CTL_ACTIVATE);
		fg_reg_write(g, PVR_REG_REQUEST, 0);
		if (i % 16 == 0) {
			/* Give it something that can be accepted again. */
			scribbler_stop(&s);
			fg_dsr_fill(g);
			scribbler_start(&s, g->dsr, 72);
		}
	}
	scribbler_stop(&s);
	expect_ok(fg_guest_boot(g));
}

TEST_GUEST(rc, test_page_table_rewritten_while_it_is_walked)
{
	struct pvr_cmd_create_mr req;
	struct pvr_resp_create_mr resp;
	struct scribbler s = { 0 };
	struct fg_buf buf;

	fg_buf_init(&buf, &g->ram, 600, FG_LINEAR);
	req = fg_mr_request(&env->a.pd, &buf, 0, buf.size, FG_ACCESS_ALL);
	for (int which = 0; which < 2; which++) {
		uint64_t *target = which ? fg_buf_dir(&buf) : fg_buf_table(&buf, 0);
		uint64_t good = target[0];

		scribbler_start(&s, target, 8);
		for (int i = 0; i < ROUNDS / 4; i++) {
			if (fg_create_mr(g, &req, &resp))
				continue;
			expect_ok(fg_cmd_destroy(g, PVR_CMD_DESTROY_MR, resp.mr_handle));
		}
		scribbler_stop(&s);
		target[0] = good;
	}
	expect_ok(fg_create_mr(g, &req, &resp));
}

/* Connects again, and posts 16 messages, which have not run. */
static void post_messages(struct t_env *env)
{
	t_reconnect(env);
	for (int i = 0; i < 16; i++) {
		t_recv(&env->b, 1, 0, 4096);
		t_send(&env->a, 1, 0, 4096);
	}
}

static void drain(struct t_env *env)
{
	end_drain(&env->a);
	end_drain(&env->b);
}

TEST_BYSTANDERS(rc, test_send_requests_rewritten_while_they_run)
{
	struct scribbler s = { 0 };

	for (int i = 0; i < ROUNDS / 4; i++) {
		post_messages(env);
		scribbler_start(&s, env->a.qp.sq, 16 * env->a.qp.sq_stride);
		fg_run(env->host);
		write_tail(&env->a.qp.ring->tx, 16);
		fg_ring_send(&env->a.qp);
		fg_advance(env->host, FG_MS);
		scribbler_stop(&s);
		drain(env);
	}
	t_ping_pong(env->host, &by->c, &by->d);
}

TEST_BYSTANDERS(rc, test_ring_indices_rewritten_while_they_are_used)
{
	struct scribbler s = { .indices = true };
	struct fg_buf *shared[] = { &env->a.qp.buf,  &env->b.qp.buf,	     &env->a.scq.buf,
				    &env->b.rcq.buf, &env->g[0]->async_ring, &env->g[1]->cq_ring };

	for (size_t which = 0; which < COUNT(shared); which++) {
		scribbler_start(&s, shared[which]->va, 16);
		for (int i = 0; i < ROUNDS; i++) {
			fg_ring_send(&env->a.qp);
			fg_ring_recv(&env->b.qp);
			fg_cq_arm(&env->a.scq);
			fg_cq_arm(&env->b.rcq);
			pvr_adapter_set_link(env->g[0]->adapter, i % 2);
			env->host->now += FG_MS;
			/* What is flushed can be for ever "full" again: bounded turns only. */
			fg_run_bounded(env->host, 4);
			if (i % 64 == 0) {
				fg_qp_to_reset(&env->a.qp);
				fg_qp_to_reset(&env->b.qp);
				fg_qp_connect(&env->a.qp, NULL, env->b.gid, env->b.qp.qpn);
				fg_qp_connect(&env->b.qp, NULL, env->a.gid, env->a.qp.qpn);
			}
		}
		scribbler_stop(&s);
		fg_run(env->host);
		t_ping_pong(env->host, &by->c, &by->d);
	}
}

TEST_BYSTANDERS(rc, test_receive_requests_rewritten_while_they_are_used)
{
	struct scribbler s = { 0 };

	for (int i = 0; i < ROUNDS / 4; i++) {
		post_messages(env);
		scribbler_start(&s, env->b.qp.rq, 16 * env->b.qp.rq_stride);
		fg_run(env->host);
		fg_advance(env->host, FG_MS);
		scribbler_stop(&s);
		drain(env);
	}
	t_ping_pong(env->host, &by->c, &by->d);
}

static uint32_t resize_cq_at(struct t_env *env, uint32_t cons_head, uint32_t cqe)
{
	struct pvr_cmd_resize_cq req = fg_cq_resize_request(&env->a.scq, &env->a.scq.buf, cqe);
	struct pvr_resp_resize_cq resp;

	__atomic_store_n(&env->a.scq.ring->cons_head, cons_head, __ATOMIC_RELAXED);
	return fg_resize_cq(env->g[0], &req, &resp);
}

static uint32_t resize_srq_at(struct fg_guest *g, struct fg_srq *srq, uint32_t prod_tail,
			      uint32_t max_wr)
{
	struct pvr_cmd_modify_srq req = fg_srq_resize_request(srq, &srq->buf, max_wr);

	write_tail(srq->ring, prod_tail);
	return fg_cmd(g, &req, sizeof(req), NULL, 0);
}

/*
 * Only the indices decide how much is copied: they go wild while it is. Which of the moves
 * succeed is up to the scheduler and not asserted. When the scribbler is
 * gone, one of all indices there are is that of an empty ring, and then a move must.
 */
TEST_BYSTANDERS(extensions, test_cq_ring_rewritten_while_it_is_resized)
{
	struct scribbler s = { .indices = true };
	uint32_t i;

	scribbler_start(&s, env->a.scq.buf.va, 16);
	for (i = 0; i < ROUNDS; i++) {
		resize_cq_at(env, i, i % 2 ? 64 : 256);
		fg_cq_arm(&env->a.scq);
	}
	scribbler_stop(&s);
	for (i = 0; i < 2 * 256 && resize_cq_at(env, i, 256); i++)
		;
	assert_in_range(i, 0, 2 * 256 - 1);
	t_ping_pong(env->host, &by->c, &by->d);
}

TEST_BYSTANDERS(extensions, test_srq_ring_rewritten_while_it_is_resized)
{
	struct scribbler s = { .indices = true };
	struct fg_srq srq;
	uint32_t i;

	expect_ok(fg_srq_create(&env->a.pd, 64, 1, &srq));
	scribbler_start(&s, srq.buf.va, 16);
	for (i = 0; i < ROUNDS; i++)
		resize_srq_at(env->g[0], &srq, i % 32, i % 2 ? 32 : 64);
	scribbler_stop(&s);
	for (i = 0; i < 2 * 64 && resize_srq_at(env->g[0], &srq, i, 64); i++)
		;
	assert_in_range(i, 0, 2 * 64 - 1);
	t_ping_pong(env->host, &by->c, &by->d);
}

TEST_GUEST(extensions, test_directory_of_a_vector_rewritten_while_it_is_walked)
{
	struct scribbler s = { 0 };
	struct fg_buf buf;

	fg_buf_init(&buf, &g->ram, 4, FG_SCATTERED);
	scribbler_start(&s, fg_buf_table(&buf, 0), 32);
	for (int i = 0; i < ROUNDS; i++) {
		struct pvr_cmd_set_cq_ring req = fg_cq_ring_request(1 + i % 7, &buf);
		struct pvr_cmd_resize_cq resize = fg_cq_resize_request(&env->a.scq, &buf, 64);
		struct pvr_resp_resize_cq resp;

		fg_set_cq_ring(g, &req);
		fg_resize_cq(g, &resize, &resp);
		if (i % 16 == 15) {
			/* Or all vectors have their rings. */
			expect_ok(fg_guest_boot(g));
			expect_ok(fg_cq_create(&g->kernel, 64, &env->a.scq));
		}
	}
	scribbler_stop(&s);
	expect_ok(fg_guest_boot(g));
}
