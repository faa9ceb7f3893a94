// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Counters of the port and of QPs, as shown by "rdma statistic". */
#include <rdma/ib_verbs.h>

#include "pvrdma.h"

/*
 * DOC: Counters of QPs
 *
 * ib_core binds QPs to counters. The work of a bound QP counts in its counter and not at
 * the port. ib_core adds all counters, including freed ones, to the port's values.
 *
 * The device counts per QP and, always, per adapter. So the value of a counter is the sum
 * over its QPs of their increase since they were bound. The port's own value is the
 * adapter's value less all counters.
 */

static const struct rdma_stat_desc descs[] = {
	[PVR_STAT_TX_MSGS].name = "tx_messages",
	[PVR_STAT_TX_BYTES].name = "tx_bytes",
	[PVR_STAT_RX_MSGS].name = "rx_messages",
	[PVR_STAT_RX_BYTES].name = "rx_bytes",
	[PVR_STAT_TX_READS].name = "tx_reads",
	[PVR_STAT_TX_ATOMICS].name = "tx_atomics",
	[PVR_STAT_TX_MCAST].name = "tx_multicast",
	[PVR_STAT_RX_MCAST].name = "rx_multicast",
	[PVR_STAT_RNR_NAKS].name = "rnr_naks_sent",
	[PVR_STAT_ACK_TIMEOUTS].name = "ack_timeouts",
	[PVR_STAT_RETRIES_EXCEEDED].name = "retries_exceeded",
	[PVR_STAT_ACCESS_ERRORS].name = "access_errors",
	[PVR_STAT_REQUEST_ERRORS].name = "request_errors",
	[PVR_STAT_UD_DROPPED].name = "ud_dropped",
	[PVR_STAT_CQ_OVERFLOWS].name = "cq_overflows",
	[PVR_STAT_DOORBELLS].name = "doorbells",
	[PVR_STAT_DOORBELLS_IGNORED].name = "doorbells_ignored",
	[PVR_STAT_LOCAL_BYTES].name = "local_bytes",
	[PVR_STAT_RDMA_BYTES].name = "rdma_bytes",
	[PVR_STAT_TCP_BYTES].name = "tcp_bytes",
};

static_assert(ARRAY_SIZE(descs) == PVR_STAT_NUM);

/*
 * The value is past + last - before. A read of the port, or of one counter, makes ib_core
 * update each counter once per descs, so the device is not asked again within FRESH.
 */
struct pvr_counter {
	struct list_head qps; /* pvr_counted.entry */
	u64 past[PVR_STAT_NUM]; /* of QPs that are no longer bound */
	u64 before[PVR_STAT_NUM]; /* of the bound QPs, when they were bound */
	u64 last[PVR_STAT_NUM]; /* of the bound QPs, at the last refresh */
	unsigned long fresh_until; /* in jiffies, if fresh */
	bool fresh;
};

#define FRESH (HZ / 10)

/* A QP that is bound to a counter. */
struct pvr_counted {
	struct list_head entry;
	struct pvr_counter *counter;
	u32 qp_handle;
	u64 before[PVR_STAT_NUM]; /* values when the QP was bound */
};

void pvr_stats_init(struct pvr_stats *stats)
{
	mutex_init(&stats->lock);
	xa_init_flags(&stats->counters, XA_FLAGS_ALLOC1);
}

void pvr_stats_exit(struct pvr_stats *stats)
{
	WARN_ON(!xa_empty(&stats->counters));
	xa_destroy(&stats->counters);
	mutex_destroy(&stats->lock);
}

static void stats_from_dev(u64 stat[PVR_STAT_NUM],
			   const struct pvr_resp_query_stats *from)
{
	int i;

	for (i = 0; i < PVR_STAT_NUM; i++)
		stat[i] = le64_to_cpu(from->stat[i]);
}

int pvr_stats_query(struct pvr_dev *dev, u32 qp_handle, u64 stat[PVR_STAT_NUM])
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	int err;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_QUERY_STATS);
	req.query_stats.qp_handle = cpu_to_le32(qp_handle);
	err = pvr_cmd(dev, &req, &resp);
	if (!err)
		stats_from_dev(stat, &resp.query_stats);
	return err;
}

static void add(u64 *sum, const u64 *more)
{
	int i;

	for (i = 0; i < PVR_STAT_NUM; i++)
		sum[i] += more[i];
}

static void subtract(u64 *sum, const u64 *less)
{
	int i;

	for (i = 0; i < PVR_STAT_NUM; i++)
		sum[i] -= less[i];
}

/* Some QPs, whose counters are added to @sum. */
struct batch {
	u32 count;
	u32 qp_handle[PVR_SUM_STATS_MAX];
	u64 *sum;
};

static int sum_by_one_command(struct pvr_dev *dev, const struct batch *batch)
{
	union pvr_cmd_req req = {};
	union pvr_cmd_resp resp;
	u64 stat[PVR_STAT_NUM];
	int err;
	u32 i;

	req.hdr.cmd = cpu_to_le32(PVR_CMD_SUM_STATS);
	req.sum_stats.count = cpu_to_le32(batch->count);
	for (i = 0; i < batch->count; i++)
		req.sum_stats.qp_handle[i] = cpu_to_le32(batch->qp_handle[i]);
	err = pvr_cmd(dev, &req, &resp);
	if (err)
		return err;
	stats_from_dev(stat, &resp.query_stats);
	add(batch->sum, stat);
	return 0;
}

static int sum_one_by_one(struct pvr_dev *dev, const struct batch *batch)
{
	u64 stat[PVR_STAT_NUM];
	int err = 0;
	u32 i;

	for (i = 0; i < batch->count && !err; i++) {
		err = pvr_stats_query(dev, batch->qp_handle[i], stat);
		if (!err)
			add(batch->sum, stat);
	}
	return err;
}

/* Query the QPs of @batch, and empty it. */
static int batch_end(struct pvr_dev *dev, struct batch *batch)
{
	int err;

	if (batch->count && (dev->features & PVR_EXT_SUM_STATS))
		err = sum_by_one_command(dev, batch);
	else
		err = sum_one_by_one(dev, batch);
	batch->count = 0;
	return err;
}

static int batch_add(struct pvr_dev *dev, struct batch *batch, u32 qp_handle)
{
	batch->qp_handle[batch->count++] = qp_handle;
	return batch->count == PVR_SUM_STATS_MAX ? batch_end(dev, batch) : 0;
}

/* If the device is dead, the last values stay. */
static void counter_refresh_locked(struct pvr_dev *dev,
				   struct pvr_counter *counter)
{
	u64 now[PVR_STAT_NUM] = {};
	struct batch batch = { .sum = now };
	struct pvr_counted *counted;

	lockdep_assert_held(&dev->stats.lock);
	list_for_each_entry(counted, &counter->qps, entry)
		if (batch_add(dev, &batch, counted->qp_handle))
			return;
	if (batch_end(dev, &batch))
		return;
	memcpy(counter->last, now, sizeof(now));
	counter->fresh = true;
	counter->fresh_until = jiffies + FRESH;
}

static bool is_fresh(const struct pvr_counter *counter)
{
	return counter->fresh && time_before(jiffies, counter->fresh_until);
}

/* Add the last values of @counter to @sum. */
static void counter_add_locked(struct pvr_dev *dev,
			       const struct pvr_counter *counter, u64 *sum)
{
	lockdep_assert_held(&dev->stats.lock);
	add(sum, counter->past);
	add(sum, counter->last);
	subtract(sum, counter->before);
}

static struct rdma_hw_stats *alloc_stats(void)
{
	return rdma_alloc_hw_stats_struct(descs, PVR_STAT_NUM,
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static struct rdma_hw_stats *pvr_alloc_port_stats(struct ib_device *ibdev,
						  u32 port)
{
	return alloc_stats();
}

/*
 * Query the counters before the adapter. The adapter's values then include all of theirs,
 * and the differences cannot be negative.
 */
static int port_stats_locked(struct pvr_dev *dev, u64 *port)
{
	u64 elsewhere[PVR_STAT_NUM] = {};
	struct pvr_counter *counter;
	unsigned long id;
	int err;

	lockdep_assert_held(&dev->stats.lock);
	add(elsewhere, dev->stats.history);
	xa_for_each(&dev->stats.counters, id, counter) {
		counter_refresh_locked(dev, counter);
		counter_add_locked(dev, counter, elsewhere);
	}
	err = pvr_stats_query(dev, 0, port);
	if (!err)
		subtract(port, elsewhere);
	return err;
}

static int pvr_get_port_stats(struct ib_device *ibdev,
			      struct rdma_hw_stats *stats, u32 port, int index)
{
	struct pvr_dev *dev = to_pvr_dev(ibdev);
	u64 stat[PVR_STAT_NUM];
	int err;

	if (port != 1)
		return -EINVAL;
	mutex_lock(&dev->stats.lock);
	err = port_stats_locked(dev, stat);
	mutex_unlock(&dev->stats.lock);
	if (err)
		return err;
	memcpy(stats->value, stat, sizeof(stat));
	return PVR_STAT_NUM;
}

static struct rdma_hw_stats *pvr_counter_alloc_stats(struct rdma_counter *core)
{
	return alloc_stats();
}

/* A counter gets its id and its struct pvr_counter with its first QP. */
static struct pvr_counter *counter_get_locked(struct pvr_dev *dev,
					      struct rdma_counter *core)
{
	struct pvr_counter *counter;
	u32 id;
	int err;

	if (core->id)
		return xa_load(&dev->stats.counters, core->id)
			       ?: ERR_PTR(-EINVAL);
	counter = kzalloc(sizeof(*counter), GFP_KERNEL);
	if (!counter)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&counter->qps);
	err = xa_alloc(&dev->stats.counters, &id, counter, xa_limit_31b,
		       GFP_KERNEL);
	if (err) {
		kfree(counter);
		return ERR_PTR(err);
	}
	core->id = id;
	return counter;
}

/* The first query has filled @counted. */
static int bind_locked(struct pvr_dev *dev, struct rdma_counter *core,
		       struct pvr_qp *qp, struct pvr_counted *counted)
{
	struct pvr_counter *counter;

	lockdep_assert_held(&dev->stats.lock);
	if (qp->counted)
		return -EBUSY;
	counter = counter_get_locked(dev, core);
	if (IS_ERR(counter))
		return PTR_ERR(counter);
	counted->counter = counter;
	list_add_tail(&counted->entry, &counter->qps);
	add(counter->before, counted->before);
	add(counter->last, counted->before);
	qp->counted = counted;
	qp->ibqp.counter = core; /* marks the QP as bound for ib_core */
	return 0;
}

static int pvr_counter_bind_qp(struct rdma_counter *core,
			       struct ib_qp *ibqp PVR_COUNTER_PORT_PARAM)
{
	struct pvr_dev *dev = to_pvr_dev(ibqp->device);
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	struct pvr_counted *counted;
	int err;

	counted = kzalloc(sizeof(*counted), GFP_KERNEL);
	if (!counted)
		return -ENOMEM;
	counted->qp_handle = qp->handle;
	err = pvr_stats_query(dev, qp->handle, counted->before);
	mutex_lock(&dev->stats.lock);
	if (!err)
		err = bind_locked(dev, core, qp, counted);
	mutex_unlock(&dev->stats.lock);
	if (err)
		kfree(counted);
	return err;
}

/*
 * Move the work of a QP to the past. The counter's value does not change here: that would
 * be a decrease if the last refresh is older than the end of the QP.
 */
static void counted_end_locked(struct pvr_dev *dev, struct pvr_counted *counted)
{
	struct pvr_counter *counter = counted->counter;
	u64 now[PVR_STAT_NUM];
	bool known;

	lockdep_assert_held(&dev->stats.lock);
	known = !pvr_stats_query(dev, counted->qp_handle, now);
	if (!known)
		memcpy(now, counted->before, sizeof(now));
	add(counter->past, now);
	subtract(counter->past, counted->before);
	subtract(counter->last, now);
	subtract(counter->before, counted->before);
	counter->fresh = false;
	list_del(&counted->entry);
	if (!list_empty(&counter->qps))
		return;
	/* Without QPs the past is all, unless the device is dead. */
	if (!known)
		add(counter->past, counter->last);
	memset(counter->last, 0, sizeof(counter->last));
}

/* ib_core also calls this before it destroys a bound QP. */
static int pvr_counter_unbind_qp(struct ib_qp *ibqp PVR_COUNTER_PORT_PARAM)
{
	struct pvr_dev *dev = to_pvr_dev(ibqp->device);
	struct pvr_qp *qp = to_pvr_qp(ibqp);
	struct pvr_counted *counted;

	mutex_lock(&dev->stats.lock);
	counted = qp->counted;
	qp->counted = NULL;
	ibqp->counter = NULL;
	if (counted)
		counted_end_locked(dev, counted);
	mutex_unlock(&dev->stats.lock);
	kfree(counted);
	return 0;
}

/*
 * No QP is bound any more. The counter's values stay subtracted from the port's, because
 * ib_core adds them.
 */
static int pvr_counter_dealloc(struct rdma_counter *core)
{
	struct pvr_dev *dev = to_pvr_dev(core->device);
	struct pvr_counter *counter;

	mutex_lock(&dev->stats.lock);
	counter = xa_erase(&dev->stats.counters, core->id);
	if (counter)
		add(dev->stats.history, counter->past);
	mutex_unlock(&dev->stats.lock);
	kfree(counter);
	return 0;
}

static int pvr_counter_update_stats(struct rdma_counter *core)
{
	struct pvr_dev *dev = to_pvr_dev(core->device);
	struct pvr_counter *counter;
	u64 sum[PVR_STAT_NUM] = {};

	mutex_lock(&dev->stats.lock);
	counter = xa_load(&dev->stats.counters, core->id);
	if (counter && !is_fresh(counter))
		counter_refresh_locked(dev, counter);
	if (counter)
		counter_add_locked(dev, counter, sum);
	mutex_unlock(&dev->stats.lock);
	if (!counter)
		return -EINVAL;
	memcpy(core->stats->value, sum, sizeof(sum));
	return 0;
}

const struct ib_device_ops pvr_stats_ops = {
	.alloc_hw_port_stats = pvr_alloc_port_stats,
	.counter_alloc_stats = pvr_counter_alloc_stats,
	.counter_bind_qp = pvr_counter_bind_qp,
	.counter_dealloc = pvr_counter_dealloc,
	.counter_unbind_qp = pvr_counter_unbind_qp,
	.counter_update_stats = pvr_counter_update_stats,
	.get_hw_stats = pvr_get_port_stats,
	.process_mad = pvr_process_mad,

	PVR_COUNTER_OBJ
};
