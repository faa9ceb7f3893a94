// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Checks timestamps of completions, raw and by the wall clock, and ibv_query_rt_values_ex(3).
 * One device talks to itself.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "rdma.h"

#define TIMES (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define BITS 48
#define MS 1000000ull /* ns */
#define SLACK_MS 100 /* of the wall clock, on a machine with much load */

struct lab {
	struct node node;
	struct ibv_mr *mr;
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
};

static void check_device(struct lab *lab)
{
	struct ibv_device_attr_ex attr = {};

	MUST(ibv_query_device_ex(lab->node.ctx, NULL, &attr));
	if (attr.completion_timestamp_mask != (1ull << BITS) - 1 || attr.hca_core_clock != 1000000)
		die("timestamps with mask %#" PRIx64 " of %" PRIu64
		    " kHz, expected %d bits of 1 GHz",
		    attr.completion_timestamp_mask, attr.hca_core_clock, BITS);
}

static uint64_t raw_now(struct lab *lab)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	MUST(ibv_query_rt_values_ex(lab->node.ctx, &values));
	if (values.comp_mask != IBV_VALUES_MASK_RAW_CLOCK || values.raw_clock.tv_sec)
		die("the raw clock has %lld s and mask %#x, expected 0 and %#x",
		    (long long)values.raw_clock.tv_sec, values.comp_mask,
		    IBV_VALUES_MASK_RAW_CLOCK);
	return values.raw_clock.tv_nsec;
}

static uint64_t wallclock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000 * MS + now.tv_nsec;
}

static void check_clock_runs(struct lab *lab)
{
	uint64_t before = raw_now(lab), passed;

	usleep(50000);
	passed = raw_now(lab) - before;
	if (passed < 45 * MS || passed > 60000 * MS)
		die("the clock passed %" PRIu64 " ns in a sleep of 50 ms", passed);
}

static void expect_between(const char *what, uint64_t from, uint64_t value, uint64_t to)
{
	if (value < from || value > to)
		die("%s is %" PRIu64 ", expected %" PRIu64 " to %" PRIu64, what, value, from, to);
}

static void check_write(struct lab *lab)
{
	uint64_t raw = raw_now(lab), wallclock = wallclock_now(), raw_ts, wallclock_ts;
	struct ibv_poll_cq_attr attr = {};
	int err;

	post_send(lab->qp, .opcode = IBV_WR_RDMA_WRITE, ONE_SGE(lab->mr, lab->mr->addr, 8),
		  .wr.rdma = { .remote_addr = (uintptr_t)lab->mr->addr, .rkey = lab->mr->rkey });
	while ((err = ibv_start_poll(lab->cq, &attr)) == ENOENT)
		;
	MUST(err);
	if (lab->cq->status != IBV_WC_SUCCESS)
		die("WRITE: %s", ibv_wc_status_str(lab->cq->status));
	raw_ts = ibv_wc_read_completion_ts(lab->cq);
	wallclock_ts = ibv_wc_read_completion_wallclock_ns(lab->cq);
	ibv_end_poll(lab->cq);
	expect_between("the timestamp", raw, raw_ts, raw_now(lab));
	expect_between("the wall clock", wallclock - SLACK_MS * MS, wallclock_ts,
		       wallclock_now() + SLACK_MS * MS);
}

int main(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 64, .wc_flags = TIMES };
	struct lab lab = {};

	node_open(&lab.node);
	check_device(&lab);
	check_clock_runs(&lab);
	lab.mr = mr_create(&lab.node, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	lab.cq = MUST_HAVE(ibv_create_cq_ex(lab.node.ctx, &attr));
	lab.qp = qp_create_rc(&lab.node, ibv_cq_ex_to_cq(lab.cq), 32);
	qp_connect_to_itself(&lab.node, lab.qp);
	check_write(&lab);
	usleep(1200000); /* the provider reads the clocks again */
	check_write(&lab);
	check_write(&lab);
	puts("timestamps: work");
	MUST(ibv_destroy_qp(lab.qp));
	MUST(ibv_destroy_cq(ibv_cq_ex_to_cq(lab.cq)));
	mr_destroy(lab.mr);
	node_close(&lab.node);
	return 0;
}
