// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The driver's memory of an adapter's namespace and name over restarts, in user space. */
#include "pvrdma.h"
#include "test.h"

static struct {
	struct net container, initial;
	struct pvr_place place;
	struct ib_device ibdev;
	struct device dma_dev;
	const char *taken; /* a name that another device has */
	int err; /* of the next registrations */
	u32 registered;
} w;

unsigned long jiffies;

int ib_register_device(struct ib_device *ibdev, const char *name, struct device *dma_dev)
{
	assert_ptr_equal(dma_dev, &w.dma_dev);
	if (w.err)
		return w.err;
	if (w.taken && !strcmp(name, w.taken))
		return -ENFILE;
	strscpy(ibdev->name, name, sizeof(ibdev->name));
	w.registered++;
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.container.refs = 1;
	w.initial.refs = 1;
	w.ibdev.coredev.rdma_net.net = &w.initial;
	return 0;
}

#define TEST_PLACE(name) TEST_SETUP(set_up, NULL, name)

static int start(void)
{
	return pvr_place_register(&w.place, &w.ibdev, &w.dma_dev);
}

/* The next ib_device begins in the initial namespace, without a name. */
static void stop(void)
{
	pvr_place_keep_net(&w.place, &w.ibdev);
	pvr_place_keep_name(&w.place, &w.ibdev);
	memset(&w.ibdev, 0, sizeof(w.ibdev));
	w.ibdev.coredev.rdma_net.net = &w.initial;
}

static void start_in_container(void)
{
	assert_int_equal(start(), 0);
	w.ibdev.coredev.rdma_net.net = &w.container;
	strscpy(w.ibdev.name, "mine", sizeof(w.ibdev.name));
}

TEST_PLACE(test_first_start_takes_any_name_in_the_initial_namespace)
{
	assert_int_equal(start(), 0);
	assert_string_equal(w.ibdev.name, "pvrdma%d");
	assert_ptr_equal(w.ibdev.coredev.rdma_net.net, &w.initial);
}

TEST_PLACE(test_restart_keeps_namespace_and_name)
{
	start_in_container();
	for (int i = 0; i < 3; i++) {
		stop();
		assert_int_equal(w.container.refs, 2);
		assert_int_equal(start(), 0);
		assert_ptr_equal(w.ibdev.coredev.rdma_net.net, &w.container);
		assert_string_equal(w.ibdev.name, "mine");
		assert_int_equal(w.container.refs, 1);
	}
	assert_int_equal(w.registered, 4);
}

TEST_PLACE(test_start_that_fails_keeps_the_place_for_the_next_one)
{
	start_in_container();
	stop();
	w.err = -ENOMEM;
	assert_int_equal(start(), -ENOMEM);
	assert_int_equal(w.container.refs, 2);
	w.err = 0;
	assert_int_equal(start(), 0);
	assert_ptr_equal(w.ibdev.coredev.rdma_net.net, &w.container);
	assert_string_equal(w.ibdev.name, "mine");
}

TEST_PLACE(test_restart_with_a_taken_name_gets_another_one)
{
	start_in_container();
	stop();
	w.taken = "mine";
	assert_int_equal(start(), 0);
	assert_string_equal(w.ibdev.name, "pvrdma%d");
	assert_ptr_equal(w.ibdev.coredev.rdma_net.net, &w.container);
}

TEST_PLACE(test_restart_after_the_end_of_the_namespace_is_in_the_initial_one)
{
	start_in_container();
	w.container.refs = 0;
	stop();
	assert_int_equal(start(), 0);
	assert_ptr_equal(w.ibdev.coredev.rdma_net.net, &w.initial);
	assert_string_equal(w.ibdev.name, "mine");
}

TEST_PLACE(test_forgotten_place_holds_no_namespace)
{
	start_in_container();
	stop();
	pvr_place_forget(&w.place);
	assert_int_equal(w.container.refs, 1);
	assert_int_equal(start(), 0);
	assert_string_equal(w.ibdev.name, "pvrdma%d");
}
