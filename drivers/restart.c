// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A PCI function: its adapter starts, stops, and restarts after a failure. */
#include <linux/delay.h>
#include <linux/module.h>

#include "pvrdma.h"

/*
 * DOC: Restarts
 *
 * A device that fails loses all objects at its reset, and ib_core has no way to give
 * them new handles. So a restart unregisters the ib_device, which ends its consumers and
 * the contexts of programs, and registers a new one at the same place, see place.h. The
 * same happens at a suspend and at a reset of the PCI function.
 *
 * Consumers of the kernel close their queue pairs when these are flushed, and some of them
 * then try again until they reach a device: an NVMe host does, unless it still has queue
 * pairs when the ib_device goes. So the end waits for them, for up to CLOSE_TIMEOUT.
 *
 * A device that fails again and again is restarted only RESTARTS_MAX times within
 * RESTART_WINDOW, and later each time.
 *
 * A device that was removed from the bus is unregistered likewise, but not started. Its
 * addresses then belong to the device in its place.
 *
 * A QEMU that cannot migrate the device restores a VM with a new device in the same slot,
 * whose BARs are unmapped. The restart maps them.
 */
#define RESTARTS_MAX 5
#define RESTART_WINDOW (600 * HZ)
#define RESTART_DELAY_MAX 5 /* log2 of seconds */
#define CLOSE_TIMEOUT (5 * HZ)
#define CLOSE_POLL (HZ / 10)
/* A shutdown of the system waits so long for a start or stop. */
#define SHUTDOWN_POLLS 50
#define SHUTDOWN_POLL_MS 100

static uint restarts = RESTARTS_MAX;
module_param(restarts, uint, 0644);
MODULE_PARM_DESC(
	restarts,
	"Restarts of a failed device within 10 minutes (0: none; default: 5)");

void pvr_restart_queue(struct pvr_pci *pci)
{
	u32 shift = min_t(u32, READ_ONCE(pci->restarts), RESTART_DELAY_MAX);
	unsigned long delay = HZ << shift;

	WRITE_ONCE(pci->close_timeout, jiffies + delay + CLOSE_TIMEOUT);
	queue_delayed_work(system_long_wq, &pci->restart_work, delay);
}

static int start_locked(struct pvr_pci *pci)
{
	struct pvr_dev *dev;

	lockdep_assert_held(&pci->lock);
	if (READ_ONCE(pci->off))
		return -ESHUTDOWN;
	dev = pvr_dev_start(pci);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	pci->dev = dev;
	return 0;
}

static void stop_locked(struct pvr_pci *pci)
{
	lockdep_assert_held(&pci->lock);
	if (pci->dev) /* NULL if a start failed */
		pvr_dev_stop(pci->dev);
	pci->dev = NULL;
}

static bool may_restart_locked(struct pvr_pci *pci)
{
	u32 max = READ_ONCE(restarts);

	if (time_after(jiffies, pci->window + RESTART_WINDOW)) {
		pci->window = jiffies;
		pci->restarts = 0;
	}
	if (pci->restarts >= max) {
		pci_err(pci->pdev,
			"no restart: %u of at most %u within %d minutes are done; reload the driver to use the device again\n",
			pci->restarts, max, RESTART_WINDOW / (60 * HZ));
		if (!pci->dev)
			pvr_place_forget(&pci->place);
		return false;
	}
	WRITE_ONCE(pci->restarts, pci->restarts + 1);
	pci_info(pci->pdev, "restart %u of at most %u within %d minutes\n",
		 pci->restarts, max, RESTART_WINDOW / (60 * HZ));
	return true;
}

static void restart_locked(struct pvr_pci *pci)
{
	if (pci->dev && pvr_dev_gone(pci->dev)) {
		stop_locked(pci);
		if (!pvr_pci_remap(pci)) {
			pvr_place_forget(&pci->place);
			return;
		}
	}
	if (!may_restart_locked(pci))
		return;
	stop_locked(pci);
	if (start_locked(pci))
		pvr_restart_queue(pci);
}

/*
 * A consumer frees its other objects after its last queue pair, so wait once more after
 * that.
 */
static bool consumers_close_locked(struct pvr_pci *pci)
{
	bool used = pci->dev && atomic_read(&pci->dev->kernel_qps);
	bool waits = used || pci->was_used;

	lockdep_assert_held(&pci->lock);
	pci->was_used = used;
	return waits && time_before(jiffies, READ_ONCE(pci->close_timeout));
}

static void restart_work(struct work_struct *work)
{
	struct pvr_pci *pci =
		container_of(work, struct pvr_pci, restart_work.work);

	mutex_lock(&pci->lock);
	if (READ_ONCE(pci->off) || (pci->dev && !pvr_dev_dead(pci->dev)))
		; /* stopped, or nothing has failed since the start */
	else if (consumers_close_locked(pci))
		queue_delayed_work(system_long_wq, &pci->restart_work,
				   CLOSE_POLL);
	else
		restart_locked(pci);
	mutex_unlock(&pci->lock);
}

static void pci_free(struct pvr_pci *pci)
{
	cancel_delayed_work_sync(&pci->restart_work);
	pvr_place_forget(&pci->place);
	pvr_odp_queues_exit(&pci->odp_queues);
	pvr_pci_forget_config(pci);
	mutex_destroy(&pci->lock);
	kfree(pci);
}

int pvr_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct pvr_pci *pci = kzalloc(sizeof(*pci), GFP_KERNEL);
	int err;

	if (!pci)
		return -ENOMEM;
	pci->pdev = pdev;
	pci->window = jiffies;
	mutex_init(&pci->lock);
	INIT_DELAYED_WORK(&pci->restart_work, restart_work);
	pvr_odp_queues_init(&pci->odp_queues);
	pvr_pci_keep_config(pci);
	mutex_lock(&pci->lock);
	err = start_locked(pci);
	WRITE_ONCE(pci->off, err);
	mutex_unlock(&pci->lock);
	if (err)
		pci_free(pci);
	else
		pci_set_drvdata(pdev, pci);
	return err;
}

/* Stop the adapter. It does not start again before pvr_pci_on(). */
static void pci_off(struct pvr_pci *pci)
{
	mutex_lock(&pci->lock);
	WRITE_ONCE(pci->off, true);
	stop_locked(pci);
	mutex_unlock(&pci->lock);
}

static int pci_on(struct pvr_pci *pci)
{
	int err;

	mutex_lock(&pci->lock);
	WRITE_ONCE(pci->off, false);
	err = start_locked(pci);
	if (err)
		pvr_restart_queue(pci);
	mutex_unlock(&pci->lock);
	return err;
}

void pvr_pci_remove(struct pci_dev *pdev)
{
	struct pvr_pci *pci = pci_get_drvdata(pdev);

	pci_off(pci);
	pci_set_drvdata(pdev, NULL);
	pci_free(pci);
}

/*
 * One side at least sees the other's access:
 *
 *	start				shutdown
 *	set bus mastering		off = true
 *	full barrier			full barrier
 *	read off			clear bus mastering
 */
int pvr_pci_begin_dma(struct pvr_pci *pci)
{
	pci_set_master(pci->pdev);
	smp_mb();
	if (!READ_ONCE(pci->off))
		return 0;
	pci_clear_master(pci->pdev);
	return -ESHUTDOWN;
}

/*
 * A restart that waits for a consumer holds the lock, maybe for ever. It must not keep the
 * system from its shutdown. Once it goes on, it finds pci->off, which is read without the
 * lock, and does not start the device again.
 */
static bool lock_soon(struct pvr_pci *pci)
{
	int i;

	for (i = 0; i < SHUTDOWN_POLLS; i++) {
		if (mutex_trylock(&pci->lock))
			return true;
		msleep(SHUTDOWN_POLL_MS);
	}
	return false;
}

void pvr_pci_shutdown(struct pci_dev *pdev)
{
	struct pvr_pci *pci = pci_get_drvdata(pdev);

	WRITE_ONCE(pci->off, true);
	if (lock_soon(pci)) {
		if (pci->dev)
			pvr_dev_shutdown(pci->dev);
		mutex_unlock(&pci->lock);
	} else {
		pci_warn(
			pdev,
			"a restart does not end: shut down without it; some program keeps the device\n");
	}
	/*
	 * Ends all DMA also of a device that has no driver at the moment. The barrier pairs with
	 * that of pvr_pci_begin_dma().
	 */
	smp_mb();
	pci_clear_master(pdev);
}

/*
 * The device loses its objects when the VM is suspended or the function is reset, and
 * they cannot be restored. So both are a hot unplug for programs that use the device.
 */
static int pvr_suspend(struct device *device)
{
	pci_off(dev_get_drvdata(device));
	return 0;
}

static int pvr_resume(struct device *device)
{
	return pci_on(dev_get_drvdata(device));
}

/* Hibernation uses the same methods. */
DEFINE_SIMPLE_DEV_PM_OPS(pvr_pm_ops, pvr_suspend, pvr_resume);

static void reset_prepare(struct pci_dev *pdev)
{
	pci_off(pci_get_drvdata(pdev));
}

static void reset_done(struct pci_dev *pdev)
{
	pci_on(pci_get_drvdata(pdev));
}

const struct pci_error_handlers pvr_pci_errors = {
	.reset_prepare = reset_prepare,
	.reset_done = reset_done,
};
