/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shared by fuzz_driver.c and driver_kernel.c: the input, the device, and the consumer's objects.
 */
#ifndef DRIVER_WORLD_H
#define DRIVER_WORLD_H

#include "pvrdma.h"
#include "srq_wq.h"

#define CQS 2
#define QPS 2
#define REQUESTS 1024 /* posted in a run */

struct driver_irq {
	irq_handler_t *handler;
	irq_handler_t *thread;
	void *data;
};

struct driver_world {
	const uint8_t *data;
	size_t left;
	struct pci_dev pdev;
	struct pvr_dev dev;
	u8 regs[256], uar[PAGE_SIZE];
	u32 version, magic, features, acked;
	bool gone;
	bool runs; /* between pvr_dev_start() and pvr_dev_stop() */
	bool has_objects;
	bool off; /* suspended or in reset */
	u32 starts, restarts;
	unsigned long probed; /* in jiffies */
	struct driver_irq irqs[PVR_VEC_CQ + PVR_CQ_VECTORS_MAX];
	struct pvr_cq cqs[CQS];
	bool has_cq[CQS];
	struct pvr_qp qps[QPS];
	struct pvr_srq srq;
	u64 posted; /* requests */
	bool waits[REQUESTS]; /* posted and not completed */
	u64 ns;
};

extern struct driver_world w;

/* Print @what, and abort: a finding. */
void die(const char *what);

/* Take bytes from the input; zeros behind its end. */
void take(void *to, size_t size);
u8 take_byte(void);
u32 take_word(void);
/* Small numbers are more likely to mean something. */
u32 take_index(void);

#endif
