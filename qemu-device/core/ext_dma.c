// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Guest memory that an RDMA NIC may read or write at this moment. */
#include "core/ext_dma.h"

#include "core/dirty.h"

/* Time without zero copy after a guest has broken a connection. */
#define PENALTY_NS 60000000000ull

bool pvr_ext_dma_is_allowed(const struct pvr_adapter *adapter)
{
	return pvr_now(adapter->engine) >= adapter->nic_not_before;
}

bool pvr_ext_dma_may_write(const struct pvr_adapter *adapter)
{
	return !pvr_dirty_is_on(adapter) && pvr_ext_dma_is_allowed(adapter);
}

/* ------------------------------------------------------------ beginning, ending */

/* Return: false if the array is full. */
static bool add_mr(struct pvr_ext_dma *use, const struct pvr_mr *mr)
{
	unsigned int i;

	for (i = 0; i < PVR_EXT_DMA_MRS; i++) {
		if (use->mr[i] == mr)
			return true;
		if (use->mr[i])
			continue;
		use->mr[i] = mr;
		return true;
	}
	return false;
}

static uint64_t seg_len(const struct pvr_sg *sg, uint32_t i)
{
	return sg->flat ? sg->total : sg->seg[i].len;
}

/* Return: false if there are too many regions, or the memory is not the guest's. */
static bool find_mrs(struct pvr_ext_dma *use, const struct pvr_sg *sg, uint64_t offset,
		     uint64_t len)
{
	uint64_t begin = 0, end;
	uint32_t i;

	memset(use->mr, 0, sizeof(use->mr));
	for (i = 0; i < sg->count; i++, begin = end) {
		end = begin + seg_len(sg, i);
		if (end <= offset || begin >= offset + len)
			continue;
		if (!sg->seg[i].mr || !add_mr(use, sg->seg[i].mr))
			return false;
	}
	return true;
}

static uint32_t *count_of(struct pvr_adapter *adapter, const struct pvr_mr *mr)
{
	return &adapter->num_ext_dmas_of[mr->handle % PVR_EXT_DMA_COUNTS];
}

/* The adapter's nic_lock is held. */
static void count(const struct pvr_ext_dma *use, struct pvr_adapter *adapter, int n)
{
	unsigned int i;

	for (i = 0; i < PVR_EXT_DMA_MRS && use->mr[i]; i++)
		__atomic_add_fetch(count_of(adapter, use->mr[i]), n, __ATOMIC_RELEASE);
	__atomic_add_fetch(&adapter->num_ext_dmas, n, __ATOMIC_RELEASE);
}

bool pvr_ext_dma_begin(struct pvr_ext_dma *use, const struct pvr_sg *sg, uint64_t offset,
		       uint64_t len)
{
	struct pvr_adapter *adapter = sg->adapter;

	if (!find_mrs(use, sg, offset, len))
		return false;
	pvr_lock(&adapter->nic_lock);
	LIST_INSERT_HEAD(&adapter->ext_dmas, use, link);
	count(use, adapter, 1);
	__atomic_store_n(&use->adapter, adapter, __ATOMIC_RELAXED);
	pvr_unlock(&adapter->nic_lock);
	return true;
}

/*
 * The adapter's nic_lock is held. The stores come after stop(): a thread that reads them
 * without the lock may free the memory or @use.
 */
static void end(struct pvr_ext_dma *use)
{
	struct pvr_adapter *adapter = use->adapter;

	LIST_REMOVE(use, link);
	use->stop(use);
	count(use, adapter, -1);
	__atomic_store_n(&use->adapter, NULL, __ATOMIC_RELEASE);
}

void pvr_ext_dma_end(struct pvr_ext_dma *use)
{
	struct pvr_adapter *adapter = __atomic_load_n(&use->adapter, __ATOMIC_ACQUIRE);

	if (!adapter)
		return;
	pvr_lock(&adapter->nic_lock);
	/* A revocation may have ended it before. */
	if (use->adapter)
		end(use);
	pvr_unlock(&adapter->nic_lock);
}

/* --------------------------------------------------------------------- revoking */

struct match {
	const struct pvr_qp *qp;
	const struct pvr_mr *mr;
	const struct pvr_ext_dma *but;
	uint32_t psn;
	bool (*is)(const struct match *match, const struct pvr_ext_dma *use);
};

/* Return: the number of entries that were ended. */
static unsigned int end_matching(struct pvr_adapter *adapter, const struct match *match)
{
	struct pvr_ext_dma *use, *next;
	unsigned int ended = 0;

	if (!__atomic_load_n(match->mr ? count_of(adapter, match->mr) : &adapter->num_ext_dmas,
			     __ATOMIC_ACQUIRE))
		return 0;
	pvr_lock(&adapter->nic_lock);
	for (use = LIST_FIRST(&adapter->ext_dmas); use; use = next) {
		next = LIST_NEXT(use, link);
		if (match->is && !match->is(match, use))
			continue;
		end(use);
		ended++;
	}
	pvr_unlock(&adapter->nic_lock);
	return ended;
}

static void revoke(struct pvr_adapter *adapter, const struct match *match)
{
	unsigned int ended = end_matching(adapter, match);

	if (!ended)
		return;
	adapter->nic_not_before = pvr_now(adapter->engine) + PENALTY_NS;
	pvr_info_guest(
		adapter,
		"guest freed memory during a transfer of an RDMA NIC: its data is copied for "
		"%llu s",
		PENALTY_NS / 1000000000);
}

static bool is_of_mr(const struct match *match, const struct pvr_ext_dma *use)
{
	unsigned int i;

	for (i = 0; i < PVR_EXT_DMA_MRS; i++)
		if (use->mr[i] == match->mr)
			return true;
	return false;
}

static bool is_of_qp(const struct match *match, const struct pvr_ext_dma *use)
{
	return use->qp == match->qp;
}

static bool rdma_read_is_busy(const struct match *match, const struct pvr_ext_dma *use)
{
	return use->qp == match->qp && use->kind == match->but->kind && use != match->but;
}

static bool is_of_request(const struct match *match, const struct pvr_ext_dma *use)
{
	return use->qp == match->qp && use->kind == PVR_EXT_DMA_REQ_SRC && use->psn == match->psn;
}

static bool is_write(const struct match *match, const struct pvr_ext_dma *use)
{
	return use->kind == PVR_EXT_DMA_RESP_DST || use->kind == PVR_EXT_DMA_REQ_DST;
}

void pvr_ext_dma_revoke_mr(const struct pvr_mr *mr)
{
	revoke(mr->pd->uc->adapter, &(struct match){ .mr = mr, .is = is_of_mr });
}

void pvr_ext_dma_revoke_qp(const struct pvr_qp *qp)
{
	revoke(qp->adapter, &(struct match){ .qp = qp, .is = is_of_qp });
}

/* The queue pair's own requests need none of its rights. */
static bool is_of_responder(const struct match *match, const struct pvr_ext_dma *use)
{
	return use->qp == match->qp &&
	       (use->kind == PVR_EXT_DMA_RESP_SRC || use->kind == PVR_EXT_DMA_RESP_DST);
}

void pvr_ext_dma_revoke_responder(const struct pvr_qp *qp)
{
	revoke(qp->adapter, &(struct match){ .qp = qp, .is = is_of_responder });
}

void pvr_ext_dma_revoke_dst(const struct pvr_qp *qp, const struct pvr_ext_dma *but)
{
	/*
	 * No penalty: a connection has broken without a fault of the guest, perhaps
	 * before the other connection detects it.
	 */
	end_matching(qp->adapter, &(struct match){ .qp = qp, .but = but, .is = rdma_read_is_busy });
}

void pvr_ext_dma_revoke_writes(struct pvr_adapter *adapter)
{
	end_matching(adapter, &(struct match){ .is = is_write });
}

void pvr_ext_dma_revoke_all(struct pvr_adapter *adapter)
{
	revoke(adapter, &(struct match){ 0 });
}

void pvr_nic_request_done(const struct pvr_qp *qp, uint32_t psn)
{
	end_matching(qp->adapter, &(struct match){ .qp = qp, .psn = psn, .is = is_of_request });
}
