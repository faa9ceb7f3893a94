// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The wait of the driver for the end of a command, compiled for user space with the fuzzer's
 * kernel. The clock is the test's: only reads of it, sleeps and reads of ERR take time.
 */
#include "pvrdma.h"
#include "test.h"

#define US 1000ull
#define MS (1000 * US)
#define NEVER UINT64_MAX
#define QP 7 /* its handle */

static struct {
	struct pci_dev pdev;
	struct pvr_dev dev;
	u8 regs[256];
	u64 now; /* ns */
	u64 asleep, held; /* ns: the CPU is free; it waits in a read of ERR */
	u64 work; /* ns that the device needs for a command */
	u64 done_at; /* end of the current command */
	u64 fails_at; /* the driver declares the device dead */
	u32 err; /* the register */
	u32 err_reads;
	u32 requests;
	struct pvr_qp qp;
	u32 refusal; /* errno of MODIFY_QP */
	u32 qp_state; /* of each QP */
	bool is_unmapped; /* the device has no BARs: all registers read as 0 */
} w;

unsigned long jiffies;

static void device_responds(void)
{
	const union pvr_cmd_req *req = w.dev.cmd.req.va;
	union pvr_cmd_resp *resp = w.dev.cmd.resp.va;

	resp->hdr.ack = PVR_CMD_RESP_ACK | req->hdr.cmd;
	resp->hdr.err = req->hdr.cmd == PVR_CMD_MODIFY_QP ? w.refusal : 0;
	if (req->hdr.cmd == PVR_CMD_QUERY_QP)
		resp->query_qp.attrs.qp_state = w.qp_state;
	resp->hdr.response = req->hdr.response;
}

static void pass(u64 ns)
{
	w.now += ns;
	if (w.now >= w.done_at)
		device_responds();
	if (w.now >= w.fails_at)
		pvr_dev_fail(&w.dev, "the test");
}

/* ------------------------------------------------------------- the kernel and the device */

u64 ktime_get_ns(void)
{
	pass(US);
	return w.now;
}

void usleep_range(unsigned long least, unsigned long most)
{
	assert_true(least <= most && least > 0);
	w.asleep += most * US;
	pass(most * US);
}

unsigned long wait_for_completion_timeout(struct completion *completion, unsigned long time)
{
	(void)completion;
	jiffies += time;
	return 0;
}

u32 get_random_u32(void)
{
	return 1;
}

u32 readl(const void *reg)
{
	size_t offset = (size_t)((const u8 *)reg - w.regs);

	if (offset != PVR_REG_ERR)
		return 0;
	w.err_reads++;
	if (w.done_at != NEVER && w.done_at > w.now) {
		w.held += w.done_at - w.now;
		pass(w.done_at - w.now);
	}
	return w.err;
}

void writel(u32 value, void *reg)
{
	(void)value;
	if ((size_t)((u8 *)reg - w.regs) != PVR_REG_REQUEST)
		return;
	w.requests++;
	w.done_at = w.work == NEVER ? NEVER : w.now + w.work;
}

const char *pvr_dev_gone(const struct pvr_dev *dev)
{
	(void)dev;
	return w.is_unmapped ? "registers read zeros" : NULL;
}

void pvr_dev_fail(struct pvr_dev *dev, const char *why)
{
	(void)why;
	test_and_set_bit(PVR_DEV_DEAD, &dev->flags);
}

/* ------------------------------------------------------------------------------- tests */

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.dev.regs = w.regs;
	w.dev.features = PVR_EXT_RESP_POLL;
	w.dev.has_ext = true;
	w.fails_at = NEVER;
	w.done_at = NEVER;
	w.dev.pdev = &w.pdev;
	xa_init_flags(&w.dev.qps, XA_FLAGS_LOCK_IRQ);
	assert_int_equal(xa_insert_irq(&w.dev.qps, QP, &w.qp, GFP_KERNEL), 0);
	return pvr_cmd_init(&w.dev);
}

static int tear_down(void **state)
{
	(void)state;
	pvr_cmd_exit(&w.dev);
	return 0;
}

#define TEST_DEVICE(name) TEST_SETUP(set_up, tear_down, name)

static int create_pd(void)
{
	union pvr_cmd_req req = { .hdr.cmd = PVR_CMD_CREATE_PD };
	union pvr_cmd_resp resp;

	return pvr_cmd(&w.dev, &req, &resp);
}

static int destroy_pd(void)
{
	union pvr_cmd_req req = { .hdr.cmd = PVR_CMD_DESTROY_PD };

	return pvr_cmd(&w.dev, &req, NULL);
}

TEST_DEVICE(test_short_command_needs_no_sleep)
{
	w.work = 20 * US;
	assert_int_equal(create_pd(), 0);
	assert_int_equal(w.asleep, 0);
	assert_int_equal(w.err_reads, 0);
	assert_in_range(w.now, 20 * US, 25 * US);
}

/* A registration of 16 GiB of scattered pages takes 32 ms. */
TEST_DEVICE(test_long_command_leaves_the_cpu)
{
	w.work = 32 * MS;
	assert_int_equal(create_pd(), 0);
	assert_int_equal(w.held, 0);
	assert_int_equal(w.err_reads, 0);
	assert_in_range(w.now - w.asleep, 0, 200 * US);
}

TEST_DEVICE(test_end_is_noticed_soon)
{
	static const u64 works[] = { 60 * US, 100 * US, 1 * MS, 5 * MS, 32 * MS, 1900 * MS };
	u64 begin;

	for (int i = 0; i < ARRAY_SIZE(works); i++) {
		begin = w.now;
		w.work = works[i];
		assert_int_equal(destroy_pd(), 0);
		assert_in_range(w.now - begin - works[i], 0, works[i] / 5 + 30 * US);
		assert_in_range(w.now - begin - works[i], 0, 2 * MS);
	}
}

TEST_DEVICE(test_overdue_response_has_its_reason_in_err)
{
	w.work = NEVER;
	w.err = ENOSYS;
	assert_int_equal(create_pd(), -ENOSYS);
	assert_int_equal(w.err_reads, 1);
	assert_in_range(w.now, 2000 * MS, 2010 * MS);
}

TEST_DEVICE(test_dead_device_ends_the_wait)
{
	w.work = NEVER;
	w.fails_at = 5 * MS;
	assert_int_equal(create_pd(), -EIO);
	assert_int_equal(w.err_reads, 0);
	assert_in_range(w.now, 5 * MS, 7 * MS);
}

/* ERR reads 0, which would be success. */
TEST_DEVICE(test_command_of_an_unmapped_device_fails)
{
	w.work = NEVER;
	w.is_unmapped = true;
	assert_int_equal(destroy_pd(), -EIO);
	assert_true(pvr_dev_dead(&w.dev));
	assert_int_equal(w.err_reads, 1);
	assert_in_range(w.now, 2000 * MS, 2010 * MS);
}

TEST_DEVICE(test_command_of_an_unmapped_device_without_polling_fails)
{
	w.dev.features = 0;
	w.work = NEVER;
	w.is_unmapped = true;
	assert_int_equal(destroy_pd(), -EIO);
	assert_true(pvr_dev_dead(&w.dev));
}

TEST_DEVICE(test_device_without_polling_is_asked_at_once)
{
	w.dev.features = 0;
	w.work = 32 * MS;
	assert_int_equal(create_pd(), 0);
	assert_int_equal(w.err_reads, 1);
	assert_int_equal(w.asleep, 0);
}

static int post(void)
{
	union pvr_cmd_req req = { .hdr.cmd = PVR_CMD_MODIFY_QP };

	req.modify_qp.qp_handle = QP;
	return pvr_cmd_post_modify_qp(&w.dev, &req);
}

static void settle(void)
{
	mutex_lock(&w.dev.cmd.lock);
	pvr_cmd_settle(&w.dev);
	mutex_unlock(&w.dev.cmd.lock);
}

TEST_DEVICE(test_posted_command_is_not_waited_for)
{
	w.work = 20 * US;
	assert_int_equal(post(), 0);
	assert_int_equal(w.requests, 1);
	assert_int_equal(w.now, 0);
}

/* The request slot must not be written before the device has read it. */
TEST_DEVICE(test_next_command_waits_for_the_posted_one)
{
	w.work = 20 * US;
	assert_int_equal(post(), 0);
	assert_int_equal(create_pd(), 0);
	assert_int_equal(w.requests, 2);
	assert_in_range(w.now, 40 * US, 45 * US);
}

TEST_DEVICE(test_next_posted_command_waits_for_the_posted_one)
{
	w.work = 20 * US;
	assert_int_equal(post(), 0);
	assert_int_equal(post(), 0);
	assert_int_equal(w.requests, 2);
	assert_in_range(w.now, 20 * US, 25 * US);
}

TEST_DEVICE(test_posted_command_of_a_failed_qp_may_be_refused)
{
	w.refusal = EINVAL;
	w.qp_state = PVR_QPS_ERR;
	assert_int_equal(post(), 0);
	assert_int_equal(create_pd(), 0);
	assert_int_equal(w.requests, 3);
	assert_false(pvr_dev_dead(&w.dev));
}

TEST_DEVICE(test_posted_command_of_a_working_qp_may_not_be_refused)
{
	w.refusal = EINVAL;
	w.qp_state = PVR_QPS_RTR;
	assert_int_equal(post(), 0);
	settle();
	assert_true(pvr_dev_dead(&w.dev));
	assert_int_equal(create_pd(), -EIO);
	assert_int_equal(w.requests, 2);
}

/*
 * The host took the memory of the QP away, and then a program resets it: the device refuses the
 * change to INIT, and then each change that begins in INIT.
 */
TEST_DEVICE(test_posted_command_of_a_qp_without_memory_may_be_refused)
{
	w.refusal = EIO;
	w.qp_state = PVR_QPS_RESET;
	assert_int_equal(post(), 0);
	settle();
	assert_false(pvr_dev_dead(&w.dev));
	assert_true(w.qp.is_lost);
	w.refusal = EINVAL;
	assert_int_equal(post(), 0);
	settle();
	assert_false(pvr_dev_dead(&w.dev));
}

/* The driver erases a QP before it destroys it, and the destruction takes the response. */
TEST_DEVICE(test_posted_command_of_a_destroyed_qp_may_be_refused)
{
	w.refusal = EINVAL;
	w.qp_state = PVR_QPS_RESET;
	assert_int_equal(post(), 0);
	xa_erase_irq(&w.dev.qps, QP);
	assert_int_equal(destroy_pd(), 0);
	assert_false(pvr_dev_dead(&w.dev));
}

TEST_DEVICE(test_settled_command_is_settled_once)
{
	assert_int_equal(post(), 0);
	settle();
	settle();
	assert_int_equal(w.requests, 1);
	assert_int_equal(w.err_reads, 0);
}

TEST_DEVICE(test_posted_command_without_response_is_found_by_the_next_one)
{
	w.work = NEVER;
	w.fails_at = 5 * MS;
	assert_int_equal(post(), 0);
	assert_int_equal(create_pd(), -EIO);
	assert_int_equal(w.requests, 1);
}

TEST_DEVICE(test_dead_device_takes_no_posted_command)
{
	pvr_dev_fail(&w.dev, "the test");
	assert_int_equal(post(), -EIO);
	assert_int_equal(w.requests, 0);
}

TEST_DEVICE(test_device_without_polling_gets_no_posted_command)
{
	w.dev.features = 0;
	w.work = 20 * US;
	w.refusal = EINVAL;
	assert_int_equal(post(), -EINVAL);
	assert_int_equal(w.err_reads, 1);
}
