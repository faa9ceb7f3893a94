// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The kernel and the device of fuzz_driver.c: registers and command responses as the input says,
 * the kernel's functions that the driver's files call, and the functions of driver files that are
 * not compiled here.
 */
#include <stdio.h>

#include "driver_world.h"

#define UAR_PAGES 16

/* How the device answers a command. */
enum answer {
	ANSWER_REGULAR,
	ANSWER_BODY, /* with any body */
	ANSWER_ANY, /* any bytes */
	ANSWER_LATE, /* only the interrupt comes */
	ANSWER_NUM,
};

unsigned long jiffies;
struct driver_world w;

void die(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

void take(void *to, size_t size)
{
	size_t n = size < w.left ? size : w.left;

	memset(to, 0, size);
	if (n)
		memcpy(to, w.data, n);
	w.data += n;
	w.left -= n;
}

u8 take_byte(void)
{
	u8 byte;

	take(&byte, 1);
	return byte;
}

u32 take_word(void)
{
	u32 word;

	take(&word, sizeof(word));
	return word;
}

u32 take_index(void)
{
	u8 byte = take_byte();

	return byte < 0xf0 ? byte & 31 : take_word();
}

/* ------------------------------------------------------------------- the device's registers */

static void fill_caps(void)
{
	struct pvr_dsr *dsr = w.dev.dsr.va;
	u8 changes = take_byte() & 3;

	dsr->caps = (struct pvr_caps){
		.max_mr_size = 1 << 30,
		.max_qp = 16,
		.max_qp_wr = 64,
		.max_sge = 4,
		.max_sge_rd = 4,
		.max_cq = 16,
		.max_cqe = 64,
		.max_mr = 16,
		.max_pd = 16,
		.max_srq = 4,
		.max_srq_wr = 64,
		.max_srq_sge = 4,
		.max_uar = UAR_PAGES,
		.gid_tbl_len = 16,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
		.mode = PVR_MODE_ROCE,
		.gid_types = PVR_GID_TYPE_ROCE_V2,
		.max_fast_reg_page_list_len = 128,
	};
	while (changes--) {
		u8 at = take_byte();

		if (at < sizeof(dsr->caps) - 4)
			take((u8 *)&dsr->caps + at, 4);
	}
}

static void regular_answer(const union pvr_cmd_req *req, union pvr_cmd_resp *resp)
{
	memset(resp, 0, sizeof(*resp));
	resp->hdr.response = req->hdr.response;
	resp->hdr.ack = PVR_CMD_RESP_ACK | req->hdr.cmd;
	if (req->hdr.cmd != PVR_CMD_CREATE_CQ)
		return;
	resp->create_cq.cq_handle = take_byte();
	resp->create_cq.cqe = req->create_cq.cqe;
}

static void run_command(void)
{
	const union pvr_cmd_req *req = w.dev.cmd.req.va;
	union pvr_cmd_resp resp;

	regular_answer(req, &resp);
	switch (take_byte() % 16) {
	case ANSWER_BODY:
		take((u8 *)&resp + sizeof(resp.hdr), sizeof(resp) - sizeof(resp.hdr));
		resp.hdr.err = take_byte();
		break;
	case ANSWER_ANY:
		take(&resp, sizeof(resp));
		break;
	case ANSWER_LATE:
		complete(&w.dev.cmd.done);
		return;
	}
	memcpy(w.dev.cmd.resp.va, &resp, sizeof(resp));
	complete(&w.dev.cmd.done);
}

u32 readl(const void *reg)
{
	size_t offset = (size_t)((const u8 *)reg - w.regs);

	if (w.gone)
		return U32_MAX;
	switch (offset) {
	case PVR_REG_VERSION:
		return w.version;
	case PVR_REG_EXT_MAGIC:
		return w.magic;
	case PVR_REG_EXT_FEATURES:
		return w.features;
	case PVR_REG_EXT_ACK:
		return w.acked;
	case PVR_REG_ERR:
		return take_byte() % 16 == 1 ? take_word() : 0;
	default:
		return take_word();
	}
}

void writel(u32 value, void *reg)
{
	size_t offset = (size_t)((u8 *)reg - w.regs);

	if (offset >= sizeof(w.regs))
		return; /* a doorbell */
	if (offset == PVR_REG_EXT_ACK)
		w.acked = value;
	if (offset == PVR_REG_DSRHIGH)
		fill_caps();
	if (offset == PVR_REG_REQUEST)
		run_command();
}

/* ------------------------------------------------------------------------- the kernel */

u64 ktime_get_ns(void)
{
	w.ns += 10 * NSEC_PER_USEC;
	return w.ns;
}

void usleep_range(unsigned long least, unsigned long most)
{
	if (w.dev.cmd.lock.lock.held && most >= least)
		w.ns += most * NSEC_PER_USEC;
	else
		die("a sleep outside of a command");
}

unsigned long wait_for_completion_timeout(struct completion *completion, unsigned long time)
{
	jiffies += time;
	if (!completion->done)
		return 0;
	completion->done = false;
	return 1;
}

u32 get_random_u32(void)
{
	return 4;
}

u64 pci_resource_start(const struct pci_dev *pdev, int bar)
{
	(void)pdev;
	(void)bar;
	return 1ull << 31;
}

u64 pci_resource_len(const struct pci_dev *pdev, int bar)
{
	(void)pdev;
	return bar == PVR_BAR_UAR ? UAR_PAGES * PAGE_SIZE : sizeof(w.regs);
}

int pci_alloc_irq_vectors(struct pci_dev *pdev, int least, int most, int flags)
{
	u8 byte;
	int n;

	(void)pdev;
	if (flags == PCI_IRQ_MSI)
		return least;
	byte = take_byte();
	n = least + byte % 4;
	if (byte & 0x80)
		return -ENOSPC; /* a device with MSI */
	return n < most ? n : most;
}

int pci_request_irq(struct pci_dev *pdev, uint nr, irq_handler_t *handler, irq_handler_t *thread,
		    void *data, const char *format, ...)
{
	(void)pdev;
	(void)format;
	if (nr >= ARRAY_SIZE(w.irqs))
		die("an interrupt beyond the last");
	w.irqs[nr] = (struct driver_irq){ handler ? handler : thread, thread, data };
	return 0;
}

void pci_free_irq(struct pci_dev *pdev, uint nr, void *data)
{
	(void)pdev;
	(void)data;
	w.irqs[nr].handler = NULL;
}

void ib_dispatch_event(const struct ib_event *event)
{
	if (event->element.port_num != 1)
		die("an event of another port");
}

int ib_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	return pvr_query_port(ibdev, port, attr);
}

/* ------------------------------------------------- of files that are not compiled here */

const char *pvr_dev_gone(const struct pvr_dev *dev)
{
	u32 version = pvr_reg_read(dev, PVR_REG_VERSION);

	return version == U32_MAX || !version ? "gone" : NULL;
}

void pvr_pci_keep_config(struct pvr_pci *pci)
{
	(void)pci;
}

void pvr_pci_forget_config(struct pvr_pci *pci)
{
	(void)pci;
}

bool pvr_pci_remap(struct pvr_pci *pci)
{
	if (w.runs)
		die("new BARs for a device that runs");
	(void)pci;
	return take_byte() & 1;
}

void pvr_dev_fail(struct pvr_dev *dev, const char *why)
{
	(void)why;
	if (test_and_set_bit(PVR_DEV_DEAD, &dev->flags))
		return;
	complete(&dev->cmd.done);
	dev->flush_work.queued = true;
	pvr_restart_queue(dev->pci);
	pvr_port_kick(dev);
}

void pvr_dev_shutdown(struct pvr_dev *dev)
{
	test_and_set_bit(PVR_DEV_DEAD, &dev->flags);
}

/* The lock of a PCI function is free. */
void msleep(unsigned int ms)
{
	(void)ms;
	abort();
}

void pci_clear_master(struct pci_dev *pdev)
{
	(void)pdev;
}

void pci_set_master(struct pci_dev *pdev)
{
	(void)pdev;
}

/* Registration is not compiled: see pvr_ib_register(). */
int ib_register_device(struct ib_device *ibdev, const char *name, struct device *dma_dev)
{
	(void)ibdev;
	(void)name;
	(void)dma_dev;
	abort();
}

bool pvr_netdev_ready(struct pvr_dev *dev)
{
	(void)dev;
	return take_byte() & 1;
}

u32 pvr_udata_ctx(struct ib_udata *udata)
{
	if (udata)
		die("a consumer of user space");
	return 0;
}

u32 pvr_udata_features(struct ib_udata *udata)
{
	(void)udata;
	abort();
}

int pvr_udata_in(struct ib_udata *udata, void *dst, size_t size)
{
	(void)udata;
	(void)dst;
	(void)size;
	abort();
}

int pvr_udata_out(struct ib_udata *udata, const void *src, size_t size)
{
	(void)udata;
	(void)src;
	(void)size;
	abort();
}

struct ib_umem *pvr_umem_get(struct pvr_dev *dev, u64 addr, u32 size, u64 min_size)
{
	(void)dev;
	(void)addr;
	(void)size;
	(void)min_size;
	abort();
}
