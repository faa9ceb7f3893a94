// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Timestamps of completions, and the clock of the device.
 *
 * Both are in nanoseconds. To convert a timestamp to the wall clock, the CQ keeps a reading
 * of both clocks. The kernel makes it, so that no system call lies between the two. The
 * clocks drift apart, because those of guest and host are corrected differently. So the CQ
 * reads them again after a second.
 */
#include <errno.h>
#include <time.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/ib_user_ioctl_cmds.h>

#include "cq.h"

#define READING_MSEC 1000 /* until a reading is repeated */
#define READING_NSEC (READING_MSEC * 1000000ll)
#define SPARE_BITS (64 - PVR_TIMESTAMP_BITS)

uint64_t pvr_now_msec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

static uint64_t wallclock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static int query(struct ibv_context *ibctx, struct pvr_clock_query_resp *resp)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE, PVR_METHOD_CLOCK_QUERY, 1);

	fill_attr_out_ptr(cmd, PVR_ATTR_CLOCK_QUERY_RESP, resp);
	return execute_ioctl(ibctx, cmd);
}

/* As in other providers, tv_nsec has the value of the clock and tv_sec is 0. */
int pvr_query_rt_values(struct ibv_context *ibctx, struct ibv_values_ex *values)
{
	uint32_t known = values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK;
	struct pvr_clock_query_resp resp = {};
	int err;

	if (!(to_pvr_context(ibctx)->features & PVR_EXT_CQ_TIMESTAMP))
		return EOPNOTSUPP;
	if (known) {
		err = query(ibctx, &resp);
		if (err)
			return err;
		values->raw_clock = (struct timespec){
			.tv_nsec = resp.clock << SPARE_BITS >> SPARE_BITS,
		};
	}
	values->comp_mask = known;
	return 0;
}

int pvr_cq_read_clocks(struct pvr_cq *cq)
{
	cq->clocks_until = pvr_now_msec() + READING_MSEC;
	return query(cq->verbs_cq.cq.context, &cq->clocks);
}

static struct pvr_cq *of_ex(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct pvr_cq, verbs_cq.cq_ex);
}

static uint64_t timestamp(const struct pvr_cq *cq)
{
	__le64 timestamp = 0;

	memcpy(&timestamp, cq->cqe.reserved2, sizeof(cq->cqe.reserved2));
	return le64toh(timestamp);
}

/* Negative if the current completion is older than the reading of the clocks. */
static int64_t since_reading(const struct pvr_cq *cq)
{
	return (int64_t)((timestamp(cq) - cq->clocks.clock) << SPARE_BITS) >> SPARE_BITS;
}

/* Those that the provider writes for a dead device have the timestamp 0. */
static uint64_t read_timestamp(struct ibv_cq_ex *ex)
{
	return timestamp(of_ex(ex));
}

/*
 * If the clocks cannot be read, the device has just died, and the last reading is still
 * close. The age by the clock of the process alone does not suffice: that clock stops while
 * the guest is suspended.
 */
static uint64_t read_wallclock_ns(struct ibv_cq_ex *ex)
{
	struct pvr_cq *cq = of_ex(ex);

	if (unlikely(cq->own_ring))
		return wallclock_now();
	if (unlikely(pvr_now_msec() >= cq->clocks_until || since_reading(cq) > READING_NSEC))
		pvr_cq_read_clocks(cq);
	return cq->clocks.wallclock_ns + since_reading(cq);
}

void pvr_cq_set_clock_calls(struct pvr_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->verbs_cq.cq_ex;

	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_timestamp;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_wallclock_ns;
}
