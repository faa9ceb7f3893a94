// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queues of page faults by the driver, in user space. */
#include "odp.h"
#include "test.h"

#define QUEUES 32 /* of one user */
#define CONTEXTS 1023

struct user_namespace init_user_ns;

static struct {
	struct pvr_pci pci;
	struct pvr_dev dev;
	kuid_t user;
	u32 workqueues;
} w;

struct user_namespace *current_user_ns(void)
{
	return &init_user_ns;
}

kuid_t current_uid(void)
{
	return w.user;
}

struct workqueue_struct *alloc_workqueue(const char *name, unsigned int flags, int max_active)
{
	(void)name;
	assert_int_equal(flags, WQ_UNBOUND);
	assert_int_equal(max_active, 4);
	w.workqueues++;
	return (void *)&w;
}

void destroy_workqueue(struct workqueue_struct *wq)
{
	assert_ptr_equal(wq, &w);
	w.workqueues--;
}

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.user.val = 1000;
	w.dev.pci = &w.pci;
	pvr_odp_queues_init(&w.pci.odp_queues);
	return 0;
}

/* All contexts have ended. */
static int tear_down(void **state)
{
	(void)state;
	if (w.pci.odp_queues.free_work.queued)
		w.pci.odp_queues.free_work.run(&w.pci.odp_queues.free_work);
	assert_int_equal(w.workqueues, 0);
	pvr_odp_queues_exit(&w.pci.odp_queues);
	return 0;
}

#define TEST_QUEUES(name) TEST_SETUP(set_up, tear_down, name)

static void get(struct pvr_odp_queue **queues, int num)
{
	for (int i = 0; i < num; i++) {
		queues[i] = pvr_odp_queue_get(&w.dev);
		assert_false(IS_ERR(queues[i]));
	}
}

static void end(struct pvr_odp_queue **queues, int num)
{
	for (int i = 0; i < num; i++)
		pvr_odp_queue_end(queues[i]);
}

/* Each queue may keep some threads of the kernel waiting. */
TEST_QUEUES(test_contexts_of_one_user_have_a_limited_number_of_queues)
{
	struct pvr_odp_queue *queues[CONTEXTS];

	get(queues, CONTEXTS);
	assert_int_equal(w.workqueues, QUEUES);
	for (int i = 0; i < CONTEXTS; i++)
		assert_in_range(queues[i]->contexts, CONTEXTS / QUEUES, CONTEXTS / QUEUES + 1);
	end(queues, CONTEXTS);
}

TEST_QUEUES(test_contexts_of_another_user_share_no_queue)
{
	struct pvr_odp_queue *queues[CONTEXTS], *other;

	get(queues, CONTEXTS);
	w.user.val = 1001;
	get(&other, 1);
	assert_int_equal(other->contexts, 1);
	assert_int_equal(w.workqueues, QUEUES + 1);
	end(&other, 1);
	end(queues, CONTEXTS);
}

/* Its other contexts go on, and it counts as ended only without any. */
TEST_QUEUES(test_shared_queue_ends_with_its_last_context)
{
	struct pvr_odp_queue *queues[2 * QUEUES];

	get(queues, 2 * QUEUES);
	end(queues, QUEUES);
	assert_false(w.pci.odp_queues.free_work.queued);
	end(queues + QUEUES, QUEUES);
	assert_true(w.pci.odp_queues.free_work.queued);
}
