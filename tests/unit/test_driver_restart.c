// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A PCI function that stops and restarts, with the driver's restart.c in user space. */
#include "pvrdma.h"
#include "test.h"

static struct {
	struct pci_dev pdev;
	struct pvr_dev dev;
	u32 starts, stops, shutdowns, masters_cleared;
	u64 slept; /* ms */
	bool (*at_sleep)(void); /* whether another thread gives the lock now */
	void (*in_stop)(void), (*before_master)(void);
	bool is_master;
	int start_err;
} w;

unsigned long jiffies;

/* ------------------------------------------------------------- the kernel and the device */

void msleep(unsigned int ms)
{
	w.slept += ms;
	if (w.at_sleep && w.at_sleep())
		mutex_unlock(&((struct pvr_pci *)pci_get_drvdata(&w.pdev))->lock);
}

void pci_clear_master(struct pci_dev *pdev)
{
	assert_ptr_equal(pdev, &w.pdev);
	w.masters_cleared++;
	w.is_master = false;
}

void pci_set_master(struct pci_dev *pdev)
{
	assert_ptr_equal(pdev, &w.pdev);
	if (w.before_master)
		w.before_master();
	w.is_master = true;
}

void pvr_pci_keep_config(struct pvr_pci *pci)
{
	(void)pci;
}

void pvr_pci_forget_config(struct pvr_pci *pci)
{
	(void)pci;
}

void pvr_odp_queues_init(struct pvr_odp_queues *queues)
{
	(void)queues;
}

void pvr_odp_queues_exit(struct pvr_odp_queues *queues)
{
	(void)queues;
}

bool pvr_pci_remap(struct pvr_pci *pci)
{
	(void)pci;
	return false;
}

struct pvr_dev *pvr_dev_start(struct pvr_pci *pci)
{
	w.starts++;
	memset(&w.dev, 0, sizeof(w.dev));
	w.dev.pci = pci;
	return w.start_err ? ERR_PTR(w.start_err) : &w.dev;
}

void pvr_dev_stop(struct pvr_dev *dev)
{
	assert_ptr_equal(dev, &w.dev);
	w.stops++;
	if (w.in_stop)
		w.in_stop();
}

void pvr_dev_shutdown(struct pvr_dev *dev)
{
	test_and_set_bit(PVR_DEV_DEAD, &dev->flags);
	w.shutdowns++;
}

const char *pvr_dev_gone(const struct pvr_dev *dev)
{
	(void)dev;
	return NULL;
}

int ib_register_device(struct ib_device *ibdev, const char *name, struct device *dma_dev)
{
	(void)ibdev;
	(void)name;
	(void)dma_dev;
	abort();
}

/* ------------------------------------------------------------------------------- tests */

static struct pvr_pci *pci(void)
{
	return pci_get_drvdata(&w.pdev);
}

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	return pvr_pci_probe(&w.pdev, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	w.in_stop = NULL;
	pvr_pci_remove(&w.pdev);
	return 0;
}

#define TEST_PCI(name) TEST_SETUP(set_up, tear_down, name)

static void fail_device(void)
{
	test_and_set_bit(PVR_DEV_DEAD, &w.dev.flags);
	pvr_restart_queue(pci());
}

static void run_restart(void)
{
	struct delayed_work *work = &pci()->restart_work;

	work->work.queued = false;
	work->run(&work->work);
}

TEST_PCI(test_failed_device_is_started_again)
{
	fail_device();
	run_restart();
	assert_int_equal(w.stops, 1);
	assert_int_equal(w.starts, 2);
}

TEST_PCI(test_shutdown_ends_all_dma)
{
	pvr_pci_shutdown(&w.pdev);
	assert_int_equal(w.shutdowns, 1);
	assert_int_equal(w.masters_cleared, 1);
	assert_int_equal(w.slept, 0);
	fail_device();
	run_restart();
	assert_int_equal(w.starts, 1);
}

/* As when a program that the kernel cannot end holds the adapter. */
TEST_PCI(test_shutdown_does_not_wait_for_a_stuck_restart)
{
	fail_device();
	mutex_lock(&pci()->lock);
	pvr_pci_shutdown(&w.pdev);
	mutex_unlock(&pci()->lock);
	assert_int_equal(w.shutdowns, 0);
	assert_int_equal(w.masters_cleared, 1);
	assert_in_range(w.slept, 1000, 10000);
}

static bool third_time(void)
{
	return w.slept == 300;
}

TEST_PCI(test_shutdown_waits_for_a_restart_that_ends)
{
	w.at_sleep = third_time;
	mutex_lock(&pci()->lock);
	pvr_pci_shutdown(&w.pdev);
	assert_int_equal(w.shutdowns, 1);
	assert_int_equal(w.slept, 300);
}

static void shut_down_now(void)
{
	w.in_stop = NULL;
	pvr_pci_shutdown(&w.pdev);
}

TEST_PCI(test_restart_that_outlasts_the_shutdown_starts_nothing)
{
	fail_device();
	w.in_stop = shut_down_now;
	run_restart();
	assert_int_equal(w.stops, 1);
	assert_int_equal(w.starts, 1);
}

TEST_PCI(test_start_begins_dma)
{
	assert_int_equal(pvr_pci_begin_dma(pci()), 0);
	assert_true(w.is_master);
}

/* It has found that the system runs, and was then stuck for longer than the shutdown waits. */
TEST_PCI(test_start_that_the_shutdown_has_overtaken_begins_no_dma)
{
	mutex_lock(&pci()->lock);
	w.before_master = shut_down_now;
	assert_int_equal(pvr_pci_begin_dma(pci()), -ESHUTDOWN);
	assert_false(w.is_master);
	mutex_unlock(&pci()->lock);
}
