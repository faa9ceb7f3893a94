// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The embedder's interface of the log of dirty pages. */
#include "core/dirty.h"

#include <errno.h>

#include "core/ext_dma.h"
#include "rdma/throttle.h"
#include "rdma/worker.h"

int pvr_adapter_start_dirty_log(struct pvr_adapter *adapter)
{
	int err;

	pvr_adapter_lock(adapter);
	err = pvr_ram_start_dirty(&adapter->ram);
	/* Their bytes would arrive without a mark. */
	if (!err)
		pvr_ext_dma_revoke_writes(adapter);
	pvr_adapter_unlock(adapter);
	return err;
}

void pvr_adapter_stop_dirty_log(struct pvr_adapter *adapter)
{
	pvr_adapter_lock(adapter);
	pvr_ram_stop_dirty(&adapter->ram);
	pvr_throttle_set(adapter, 0);
	pvr_adapter_unlock(adapter);
}

bool pvr_adapter_has_dirty_log(struct pvr_adapter *adapter)
{
	bool on;

	pvr_adapter_lock(adapter);
	on = adapter->ram.dirty_on;
	pvr_adapter_unlock(adapter);
	return on;
}

int pvr_adapter_take_dirty_log(struct pvr_adapter *adapter, uint64_t gpa, uint64_t len,
			       uint64_t *bitmap)
{
	int err = 0;

	if (!len || gpa + len - 1 < gpa || (gpa | len) % PVR_PAGE_SIZE)
		return -EINVAL;
	pvr_adapter_lock(adapter);
	if (!adapter->ram.dirty_on)
		err = -ENOENT;
	else if (adapter->ram.dirty_lost)
		err = -ENOBUFS;
	else
		pvr_dirty_take(&adapter->ram, gpa, len, bitmap);
	pvr_adapter_unlock(adapter);
	return err;
}

int pvr_adapter_throttle(struct pvr_adapter *adapter, unsigned int percent)
{
	int err = 0;

	if (percent > PVR_THROTTLE_MAX)
		return -EINVAL;
	pvr_adapter_lock(adapter);
	if (adapter->ram.dirty_on)
		pvr_throttle_set(adapter, percent);
	else if (percent)
		err = -ENOENT;
	pvr_adapter_unlock(adapter);
	return err;
}
