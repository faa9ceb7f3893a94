// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * insmod pvr_ktest.ko device=NAME gid=INDEX: run the tests of kernel verbs over that device. The kernel log
 * has a line of TAP for each; loading fails if one failed. With vanish=1 there is one test, whose device
 * must be removed while the module is being loaded. With shutdown=1 the tests call the shutdown method of the
 * device's driver, as a kernel does that powers off; the driver must be unloaded next. With reset=1 or 2 there
 * are no tests: the module resets the device.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "ktest.h"

/* Of the interface, docs/abi.rst. */
#define BAR_REGS 1
#define REG_VERSION 0x00
#define REG_CTL 0x0c
#define CTL_RESET 2

static char *device = "pvrdma0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "The ib_device to test");

static uint gid = 1;
module_param(gid, uint, 0444);
MODULE_PARM_DESC(gid, "Index of a GID of port 1");

static bool vanish;
module_param(vanish, bool, 0444);
MODULE_PARM_DESC(vanish, "Wait for the end of the device");

static bool shutdown;
module_param(shutdown, bool, 0444);
MODULE_PARM_DESC(shutdown, "Shut the device down under its consumers");

static uint reset;
module_param(reset, uint, 0444);
MODULE_PARM_DESC(reset,
		 "Reset the device behind its driver's back (1), or with notice (2); no tests");

struct kt_test {
	const char *name;
	kt_test_fn *run;
	struct kt_need need;
};

static const struct kt_test kt_tests[] = {
	{ "local_dma_lkey", kt_local_dma_lkey },
	{ "send-recv-direct-poll", kt_send_recv, { IB_POLL_DIRECT } },
	{ "send-recv-softirq-poll", kt_send_recv, { IB_POLL_SOFTIRQ } },
	{ "send-recv-workqueue-poll", kt_send_recv, { IB_POLL_WORKQUEUE } },
	{ "reg_mr-256-pages", kt_reg_256, { IB_POLL_SOFTIRQ } },
	{ "reg_mr-1024-pages", kt_reg_1024, { IB_POLL_SOFTIRQ } },
	{ "reg_mr-too-long", kt_reg_too_long },
	{ "local_inv", kt_local_inv, { IB_POLL_SOFTIRQ } },
	{ "reg_mr-again-with-new-key", kt_reg_again, { IB_POLL_SOFTIRQ } },
	{ "send_with_inv", kt_send_with_inv, { IB_POLL_SOFTIRQ } },
	{ "drain-direct", kt_drain, { IB_POLL_DIRECT } },
	{ "drain-workqueue", kt_drain, { IB_POLL_WORKQUEUE } },
	{ "partly-accepted-sends", kt_partial_send, { IB_POLL_SOFTIRQ } },
	{ "partly-accepted-recvs", kt_partial_recv, { IB_POLL_SOFTIRQ } },
	{ "full-queue", kt_full_queue },
	{ "cq-with-timestamps-refused", kt_no_timestamps },
	{ "qp-without-recv-cq-refused", kt_no_recv_cq },
	{ "arm-any", kt_arm_any, { IB_POLL_DIRECT } },
	{ "arm-solicited", kt_arm_solicited, { IB_POLL_DIRECT } },
	{ "arm-any-then-solicited", kt_arm_any_then_solicited, { IB_POLL_DIRECT } },
	{ "arm-with-unread", kt_arm_missed, { IB_POLL_DIRECT } },
	{ "arm-often", kt_arm_often, { IB_POLL_DIRECT } },
	{ "srq-order", kt_srq_order, { IB_POLL_SOFTIRQ, true } },
	{ "srq-limit-event", kt_srq_limit, { IB_POLL_SOFTIRQ, true } },
	{ "srq-partly-accepted", kt_partial_recv, { IB_POLL_SOFTIRQ, true } },
	{ "srq-resize", kt_srq_resize, { IB_POLL_SOFTIRQ, true } },
	{ "srq-qp-destroyed", kt_srq_qp_gone, { IB_POLL_DIRECT, true } },
	{ "srq-qp-has-no-rq", kt_srq_no_recv, { IB_POLL_DIRECT, true } },
};

static const struct kt_test kt_vanish_test = {
	.name = "srq-of-a-dead-device",
	.run = kt_srq_vanish,
	.need = { IB_POLL_SOFTIRQ, true },
};

static const struct kt_test kt_shutdown_test = {
	.name = "drain-after-shutdown",
	.run = kt_shutdown,
	.need = { IB_POLL_WORKQUEUE },
};

int kt_failed(const char *what, const char *file, int line)
{
	pr_info("pvr_ktest: # %s:%d: expected %s\n", kbasename(file), line, what);
	return -EIO;
}

static int run_test(struct kt_dev *dev, const struct kt_test *test)
{
	struct kt_pair *pair = kzalloc(sizeof(*pair), GFP_KERNEL);
	int err;

	KT_CHECK(pair);
	pair->dev = dev;
	err = kt_pair_create(pair, &test->need);
	if (!err)
		err = test->run(pair);
	kt_pair_destroy(pair);
	return err;
}

static int run_tests(struct kt_dev *dev, const struct kt_test *tests, int n)
{
	int err, failed = 0;

	pr_info("pvr_ktest: 1..%d\n", n);
	for (int i = 0; i < n; i++) {
		err = run_test(dev, &tests[i]);
		failed += !!err;
		pr_info("pvr_ktest: %sok %d - %s\n", err ? "not " : "", i + 1, tests[i].name);
	}
	return failed ? -EIO : 0;
}

static int find_gid(struct kt_dev *dev)
{
	const struct ib_gid_attr *attr = rdma_get_gid_attr(dev->ibdev, 1, gid);
	int err;

	KT_CHECK(!IS_ERR(attr));
	dev->gid = attr->gid;
	dev->gid_index = gid;
	err = rdma_read_gid_l2_fields(attr, NULL, dev->mac);
	rdma_put_gid_attr(attr);
	return err;
}

static int test_device(struct ib_device *ibdev)
{
	struct kt_dev dev = { .ibdev = ibdev };
	int err;

	KT_CHECK(!find_gid(&dev));
	dev.pd = ib_alloc_pd(ibdev, 0);
	KT_CHECK(!IS_ERR(dev.pd));
	if (vanish)
		err = run_tests(&dev, &kt_vanish_test, 1);
	else if (shutdown)
		err = run_tests(&dev, &kt_shutdown_test, 1);
	else
		err = run_tests(&dev, kt_tests, ARRAY_SIZE(kt_tests));
	ib_dealloc_pd(dev.pd);
	return err;
}

static int result = -ENODEV;
static struct pci_dev *to_reset;

/* As a reset of the PCI function does. */
static int reset_device(struct pci_dev *pdev)
{
	void __iomem *regs = pci_iomap(pdev, BAR_REGS, 0);

	KT_CHECK(regs);
	writel(CTL_RESET, regs + REG_CTL);
	readl(regs + REG_VERSION);
	pci_iounmap(pdev, regs);
	return 0;
}

static int reset_with_notice(struct pci_dev *pdev)
{
	const struct pci_error_handlers *handlers = to_pci_driver(pdev->dev.driver)->err_handler;
	int err;

	KT_CHECK(handlers && handlers->reset_prepare && handlers->reset_done);
	device_lock(&pdev->dev);
	handlers->reset_prepare(pdev);
	KT_CHECK(!pci_enable_device(pdev));
	err = reset_device(pdev);
	pci_disable_device(pdev);
	handlers->reset_done(pdev);
	device_unlock(&pdev->dev);
	return err;
}

/* Called for each device that there is, before kt_init() goes on. */
static int kt_add(struct ib_device *ibdev)
{
	if (!strcmp(dev_name(&ibdev->dev), device) && reset)
		to_reset = pci_dev_get(to_pci_dev(ibdev->dev.parent));
	else if (!strcmp(dev_name(&ibdev->dev), device))
		result = test_device(ibdev);
	return -EOPNOTSUPP; /* nothing to remove */
}

static struct ib_client kt_client = {
	.name = "pvr_ktest",
	.add = kt_add,
};

static int __init kt_init(void)
{
	int err = ib_register_client(&kt_client);

	if (err)
		return err;
	ib_unregister_client(&kt_client);
	if (!to_reset)
		return result;
	err = reset == 1 ? reset_device(to_reset) : reset_with_notice(to_reset);
	pci_dev_put(to_reset);
	return err;
}

static void __exit kt_exit(void)
{
}

module_init(kt_init);
module_exit(kt_exit);
MODULE_DESCRIPTION("Tests of kernel verbs");
MODULE_LICENSE("Dual BSD/GPL");
