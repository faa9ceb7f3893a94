// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Locks: marked as held in a process of one thread, taken otherwise. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "fake_kernel.h"

static struct {
	struct pvr_lock lock;
	_Atomic bool tried, got;
} two;

static void *take(void *arg)
{
	two.tried = true;
	pvr_lock(&two.lock);
	two.got = true;
	pvr_unlock(&two.lock);
	return NULL;
}

/*
 * Must be the first test: PVR_ONE_THREAD never becomes true again after a thread was
 * created.
 */
TEST(fake, test_a_thread_that_is_created_finds_the_lock_taken)
{
	pthread_t thread;

	pvr_lock_init(&two.lock, false);
	assert_true(PVR_ONE_THREAD);
	pvr_lock(&two.lock);
	assert_int_equal(pthread_create(&thread, NULL, take, NULL), 0);
	assert_false(PVR_ONE_THREAD);
	while (!two.tried)
		;
	usleep(10000);
	assert_false(two.got);
	pvr_unlock(&two.lock);
	pthread_join(thread, NULL);
	assert_true(two.got);
	assert_false(pvr_lock_is_held(&two.lock));
}

#define THREADS 4
#define POSTS 50000

static struct ibv_qp *qp;
static pthread_barrier_t start;

static void *post_often(void *arg)
{
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)arg, .opcode = IBV_WR_SEND }, *bad;
	int posted = 0, err;

	pthread_barrier_wait(&start);
	while (posted < POSTS) {
		err = pvr_post_send(qp, &wr, &bad);
		if (err && err != ENOMEM)
			return &start;
		posted += !err;
	}
	return NULL;
}

/*
 * Acts as the device until all posts are consumed. Counts the requests of each poster in
 * met.
 */
static void consume_all(int *met)
{
	struct pvr_ring_shm *ring_shm = to_pvr_qp(qp)->sq.ring_shm;
	uint32_t head = 0, num = to_pvr_qp(qp)->sq.num;
	int left = THREADS * POSTS;

	while (left) {
		if (atomic_load_explicit(&ring_shm->prod_tail, memory_order_acquire) == head)
			continue;
		met[fake_send_wqe(qp, head & (num - 1))->wr_id]++;
		head = pvr_ring_next(head, num);
		atomic_store_explicit(&ring_shm->cons_head, head, memory_order_release);
		left--;
	}
}

/* Without a lock requests are overwritten, and the device waits forever. */
TEST(fake, test_threads_that_post_do_not_meet)
{
	pthread_t threads[THREADS];
	int met[THREADS] = {};
	void *failed;
	uintptr_t i;

	qp = fake_qp(IBV_QPT_RC, 16, 1, 1, 1);
	pthread_barrier_init(&start, NULL, THREADS);
	alarm(60);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, post_often, (void *)i), 0);
	consume_all(met);
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
		assert_int_equal(met[i], POSTS);
	}
	alarm(0);
	pthread_barrier_destroy(&start);
}

TEST(fake, test_queues_of_a_thread_domain_take_no_lock)
{
	struct ibv_context *ibctx = &fake.ctx.ibv_ctx.context;
	struct ibv_td_init_attr td_attr = {};
	struct ibv_parent_domain_init_attr attr = { .pd = &fake.pd.ibv_pd,
						    .td = pvr_alloc_td(ibctx, &td_attr) };
	struct ibv_pd *parent = pvr_alloc_parent_domain(ibctx, &attr);
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4 } };
	struct ibv_qp_init_attr qp_attr = {
		.send_cq = fake.send_cq,
		.recv_cq = fake.recv_cq,
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_srq *srq = pvr_create_srq(parent, &srq_attr);
	struct ibv_qp *threaded = pvr_create_qp(parent, &qp_attr);

	assert_true(to_pvr_srq(srq)->wq.lock.alone);
	assert_true(to_pvr_qp(threaded)->sq.lock.alone && to_pvr_qp(threaded)->rq.lock.alone);
	qp = fake_qp(IBV_QPT_RC, 1, 1, 1, 1);
	assert_false(to_pvr_qp(qp)->sq.lock.alone || to_pvr_qp(qp)->rq.lock.alone);
	pvr_destroy_qp(threaded);
	pvr_destroy_srq(srq);
	assert_int_equal(pvr_dealloc_pd(parent) | pvr_dealloc_td(attr.td), 0);
}
