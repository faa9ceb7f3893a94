// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Locks: marked as held in a process of one thread, taken otherwise. */
#include <pthread.h>
#include <sched.h>
#include <sys/time.h>
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
TEST(fake, test_lock_taken_before_a_thread_is_created_excludes_the_thread)
{
	pthread_t thread;

	pvr_lock_init(&two.lock, false);
	assert_true(PVR_ONE_THREAD);
	pvr_lock(&two.lock);
	assert_int_equal(pthread_create(&thread, NULL, take, NULL), 0);
	assert_false(PVR_ONE_THREAD);
	while (!two.tried)
		sched_yield();
	usleep(10000);
	assert_false(two.got);
	pvr_unlock(&two.lock);
	pthread_join(thread, NULL);
	assert_true(two.got);
	assert_false(pvr_lock_is_held(&two.lock));
}

#define POSTS 50000
#define CPU_SECONDS 60 /* of a deadlock; the test takes less than one */

static struct ibv_qp *qp;
static _Atomic int failed;

static void post_often(uintptr_t number)
{
	struct ibv_send_wr wr = { .wr_id = number, .opcode = IBV_WR_SEND }, *bad;
	int posted = 0, err;

	while (posted < POSTS) {
		err = pvr_post_send(qp, &wr, &bad);
		posted += !err;
		if (err == ENOMEM)
			sched_yield();
		else if (err)
			break;
	}
	failed += posted != POSTS;
}

/*
 * Acts as the device until all threads have posted. Counts the requests of each thread in
 * met.
 */
static void consume_all(int *met)
{
	struct pvr_ring_shm *ring_shm = fake_sq(qp)->ring_shm;
	uint32_t head = 0, num = fake_sq(qp)->num;
	bool running = true;

	while (running) {
		running = fake_threads_running();
		if (atomic_load_explicit(&ring_shm->prod_tail, memory_order_acquire) == head)
			sched_yield();
		while (atomic_load_explicit(&ring_shm->prod_tail, memory_order_acquire) != head) {
			met[fake_send_wr_id(qp, head & (num - 1))]++;
			head = pvr_ring_next(head, num);
			atomic_store_explicit(&ring_shm->cons_head, head, memory_order_release);
			atomic_fetch_add_explicit(&fake_sq(qp)->polled, 1, memory_order_release);
		}
	}
}

/*
 * Without a lock requests are overwritten. The timer ends a deadlock; it counts CPU time,
 * so that other load of the machine does not end the test.
 */
TEST(fake, test_lock_keeps_the_requests_of_posting_threads_apart)
{
	const struct itimerval limit = { .it_value.tv_sec = CPU_SECONDS }, off = {};
	int met[FAKE_THREADS] = {}, i;

	qp = fake_qp(IBV_QPT_RC, 16, 1, 1, 1);
	setitimer(ITIMER_PROF, &limit, NULL);
	fake_threads_start(post_often);
	consume_all(met);
	fake_threads_join();
	setitimer(ITIMER_PROF, &off, NULL);
	assert_int_equal(failed, 0);
	for (i = 0; i < FAKE_THREADS; i++)
		assert_int_equal(met[i], POSTS);
}
