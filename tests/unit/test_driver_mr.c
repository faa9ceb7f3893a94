// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The driver's regions and windows, and how it judges the answers of a device, compiled for user
 * space with the fuzzer's kernel. Other threads act while a command waits for the command slot.
 */
#include "pvrdma.h"
#include "test.h"

#define ROUNDS 40 /* more than the refusals that a device is allowed */
#define HANDLE 7
#define ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_MW_BIND)

static struct {
	struct pci_dev pdev;
	struct pvr_dev dev;
	u8 regs[256];
	struct pvr_pd pd;
	struct pvr_mw mw;
	struct ib_umem umem;
	u32 busy; /* answers of EBUSY to DESTROY_MR of the region */
	void (*meanwhile)(void); /* another thread has the slot before the next DESTROY_MR */
	u32 destroyed, kept_umems, pins;
	const char *failed; /* the reason of pvr_dev_fail(), or NULL */
} w;

unsigned long jiffies;

/* ------------------------------------------------------------- the kernel and the device */

u64 ktime_get_ns(void)
{
	return 0;
}

void usleep_range(unsigned long least, unsigned long most)
{
	(void)least;
	(void)most;
}

unsigned long wait_for_completion_timeout(struct completion *completion, unsigned long time)
{
	(void)completion;
	(void)time;
	abort();
}

u32 get_random_u32(void)
{
	return 1;
}

u32 readl(const void *reg)
{
	(void)reg;
	return 0;
}

/* The slot is as the waiting command will fill it, when that one gets it. */
static void let_others_act(void)
{
	struct pvr_cmd_chan *chan = &w.dev.cmd;
	void (*act)(void) = w.meanwhile;
	union pvr_cmd_req waiting;
	u64 cookie = chan->cookie;

	memcpy(&waiting, chan->req.va, sizeof(waiting));
	w.meanwhile = NULL;
	mutex_unlock(&chan->lock);
	act();
	mutex_lock(&chan->lock);
	chan->cookie = cookie;
	memcpy(chan->req.va, &waiting, sizeof(waiting));
}

static u32 answer_destroy(const union pvr_cmd_req *req)
{
	if (req->handle.handle == HANDLE && w.busy) {
		w.busy--;
		return EBUSY;
	}
	w.destroyed++;
	return 0;
}

void writel(u32 value, void *reg)
{
	const union pvr_cmd_req *req = w.dev.cmd.req.va;
	union pvr_cmd_resp *resp = w.dev.cmd.resp.va;

	(void)value;
	if ((size_t)((u8 *)reg - w.regs) != PVR_REG_REQUEST)
		return;
	if (req->hdr.cmd == PVR_CMD_DESTROY_MR && w.meanwhile)
		let_others_act();
	memset(resp, 0, sizeof(*resp));
	resp->hdr.ack = PVR_CMD_RESP_ACK | req->hdr.cmd;
	if (req->hdr.cmd == PVR_CMD_DESTROY_MR)
		resp->hdr.err = answer_destroy(req);
	else if (req->create_mr.flags & (PVR_MR_FLAG_MW1 | PVR_MR_FLAG_MW2))
		resp->create_mr.mr_handle = HANDLE + 1;
	else
		resp->create_mr.mr_handle = HANDLE;
	resp->hdr.response = req->hdr.response;
}

/* --------------------------------------------------- files of the driver that are not here */

const char *pvr_dev_gone(const struct pvr_dev *dev)
{
	(void)dev;
	return NULL;
}

void pvr_dev_fail(struct pvr_dev *dev, const char *why)
{
	w.failed = why;
	test_and_set_bit(PVR_DEV_DEAD, &dev->flags);
}

void pvr_keep(struct pvr_dev *dev, struct pvr_pdir *pdir, struct ib_umem **umem)
{
	(void)dev;
	(void)pdir;
	*umem = NULL;
	w.kept_umems++;
}

struct ib_umem *pvr_umem_pin(struct pvr_dev *dev, u64 addr, u64 size, int access)
{
	(void)dev;
	w.pins++;
	w.umem = (struct ib_umem){
		.address = addr,
		.length = size,
		.writable = ib_access_writable(access),
	};
	return &w.umem;
}

struct ib_umem *pvr_umem_dmabuf_pin(struct pvr_dev *dev, u64 offset, u64 size, int fd, int access)
{
	struct ib_umem *umem = pvr_umem_pin(dev, offset, size, access);

	(void)fd;
	umem->is_dmabuf = true;
	return umem;
}

struct ib_mr *pvr_odp_reg(struct ib_pd *ibpd, u64 start, u64 length, u64 iova, int access,
			  struct ib_udata *udata)
{
	(void)ibpd;
	(void)start;
	(void)length;
	(void)iova;
	(void)access;
	(void)udata;
	abort();
}

void pvr_odp_destroy(struct pvr_mr *mr)
{
	(void)mr;
	abort();
}

void pvr_odp_exit(struct pvr_mr *mr)
{
	(void)mr;
}

/* ------------------------------------------------------------------------------- tests */

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.dev.regs = w.regs;
	w.dev.features = PVR_EXT_RESP_POLL | PVR_EXT_MW | PVR_EXT_MR_LAYOUT;
	w.dev.has_ext = true;
	w.dev.pdev = &w.pdev;
	w.dev.caps.max_mr_size = 1 << 30;
	w.pd.ibpd.device = &w.dev.ibdev;
	w.mw.ibmw.device = &w.dev.ibdev;
	w.mw.ibmw.pd = &w.pd.ibpd;
	w.mw.ibmw.type = IB_MW_TYPE_2;
	pvr_page_cache_init(&w.dev.dir_pages, &w.pdev.dev);
	return pvr_cmd_init(&w.dev);
}

static int tear_down(void **state)
{
	(void)state;
	pvr_page_cache_exit(&w.dev.dir_pages);
	pvr_cmd_exit(&w.dev);
	return 0;
}

#define TEST_DEVICE(name) TEST_SETUP(set_up, tear_down, name)

/* As ib_core does. */
static struct ib_mr *owned(struct ib_mr *ibmr)
{
	assert_false(IS_ERR(ibmr));
	ibmr->device = &w.dev.ibdev;
	ibmr->pd = &w.pd.ibpd;
	return ibmr;
}

static struct ib_mr *reg(void)
{
	return owned(pvr_reg_user_mr(&w.pd.ibpd, 0, PAGE_SIZE, 0, ACCESS, NULL));
}

static struct ib_mr *reg_dm(void)
{
	static const dma_addr_t dma;

	return owned(pvr_mr_of_pages(&w.pd.ibpd, &dma, 0, PAGE_SIZE, ACCESS));
}

/* Programs bind windows by work requests, which no lock of the driver orders. */
static void bind_a_window(void)
{
	assert_int_equal(pvr_alloc_mw(&w.mw.ibmw, NULL), 0);
	w.busy = 1;
}

static void bind_and_free_a_window(void)
{
	bind_a_window();
	assert_int_equal(pvr_dealloc_mw(&w.mw.ibmw), 0);
}

static void check_no_harm(void)
{
	assert_null(w.failed);
	assert_int_equal(w.kept_umems, 0);
	assert_int_equal(atomic_read(&w.dev.refusals), 0);
}

static void check_dereg(struct ib_mr *ibmr, void (*meanwhile)(void))
{
	w.meanwhile = meanwhile;
	assert_int_equal(pvr_dereg_mr(ibmr, NULL), -EBUSY);
	check_no_harm();
	assert_int_equal(pvr_dereg_mr(ibmr, NULL), 0);
	check_no_harm();
}

TEST_DEVICE(test_region_whose_window_is_bound_meanwhile_is_busy)
{
	for (int i = 0; i < ROUNDS; i++) {
		memset(&w.pd, 0, sizeof(w.pd));
		w.pd.ibpd.device = &w.dev.ibdev;
		check_dereg(reg(), bind_a_window);
	}
}

/* After the answer no window is left, but there was one. */
TEST_DEVICE(test_region_whose_window_is_freed_meanwhile_is_busy)
{
	for (int i = 0; i < ROUNDS; i++) {
		memset(&w.pd, 0, sizeof(w.pd));
		w.pd.ibpd.device = &w.dev.ibdev;
		check_dereg(reg(), bind_and_free_a_window);
	}
}

TEST_DEVICE(test_device_memory_whose_window_is_bound_meanwhile_is_busy)
{
	check_dereg(reg_dm(), bind_a_window);
}

/* Nothing but a defect of the device keeps it busy. */
TEST_DEVICE(test_busy_region_of_a_pd_without_windows_is_kept)
{
	struct ib_mr *ibmr = reg();

	w.busy = 1;
	assert_int_equal(pvr_dereg_mr(ibmr, NULL), 0);
	assert_null(w.failed);
	assert_int_equal(w.kept_umems, 1);
	assert_int_equal(atomic_read(&w.dev.refusals), 1);
}

static long rereg(struct ib_mr *ibmr, int flags, u64 start, int access)
{
	return PTR_ERR(
		pvr_rereg_user_mr(ibmr, flags, start, PAGE_SIZE, 0, access, &w.pd.ibpd, NULL));
}

/* The addresses of such a region are offsets in the buffer, and not those of a process. */
TEST_DEVICE(test_rereg_of_a_read_only_dmabuf_for_writing_is_refused)
{
	struct ib_mr *ibmr = owned(pvr_reg_user_mr_dmabuf(&w.pd.ibpd, 0, PAGE_SIZE, 0, 3, 0, NULL));

	assert_int_equal(rereg(ibmr, IB_MR_REREG_ACCESS, 0, ACCESS), -EOPNOTSUPP);
	assert_int_equal(w.pins, 1);
	assert_int_equal(pvr_dereg_mr(ibmr, NULL), 0);
}

TEST_DEVICE(test_rereg_of_a_dmabuf_keeps_its_pages)
{
	struct ib_mr *ibmr =
		owned(pvr_reg_user_mr_dmabuf(&w.pd.ibpd, 0, PAGE_SIZE, 0, 3, ACCESS, NULL));

	assert_int_equal(rereg(ibmr, IB_MR_REREG_ACCESS, 0, 0), 0);
	assert_int_equal(rereg(ibmr, IB_MR_REREG_ACCESS, 0, ACCESS), 0);
	assert_int_equal(rereg(ibmr, IB_MR_REREG_PD, 0, 0), 0);
	assert_int_equal(w.pins, 1);
	assert_int_equal(pvr_dereg_mr(ibmr, NULL), 0);
}

/* A program that gives an address means memory of its own. */
TEST_DEVICE(test_rereg_of_a_dmabuf_with_an_address_pins_memory_there)
{
	struct ib_mr *ibmr = owned(pvr_reg_user_mr_dmabuf(&w.pd.ibpd, 0, PAGE_SIZE, 0, 3, 0, NULL));

	assert_int_equal(rereg(ibmr, IB_MR_REREG_TRANS, 2 * PAGE_SIZE, 0), 0);
	assert_int_equal(w.pins, 2);
	assert_int_equal(w.umem.address, 2 * PAGE_SIZE);
	assert_int_equal(pvr_dereg_mr(ibmr, NULL), 0);
}
