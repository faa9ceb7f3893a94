// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory of the process that one guest makes the engine allocate. */
#include "core/charge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "core/adapter.h"

/* malloc() needs a word for each block and aligns blocks to 16 bytes. */
static uint64_t real_size(size_t bytes)
{
	return ((uint64_t)bytes + sizeof(size_t) + 15) & ~15ull;
}

uint64_t pvr_charge_ram(const struct pvr_adapter *adapter)
{
	uint64_t mapped = pvr_ram_size(&adapter->ram);

	return mapped < adapter->ram_counted ? mapped : adapter->ram_counted;
}

uint64_t pvr_charge_limit(const struct pvr_adapter *adapter)
{
	if (adapter->charge_limit)
		return adapter->charge_limit;
	return PVR_CHARGE_FLOOR + pvr_charge_ram(adapter) / PVR_CHARGE_RAM_SHARE;
}

int pvr_charge(struct pvr_adapter *adapter, uint64_t bytes)
{
	uint64_t limit = pvr_charge_limit(adapter);

	if (adapter->charged <= limit && bytes <= limit - adapter->charged) {
		adapter->charged += bytes;
		return 0;
	}
	pvr_log_guest(adapter,
		      "the guest's objects, regions and connections use %" PRIu64
		      " of at most %" PRIu64 " KiB of this process, %" PRIu64
		      " bytes more are refused: see object-memory= in pvrdmad(8)",
		      adapter->charged >> 10, limit >> 10, bytes);
	return -ENOMEM;
}

void pvr_uncharge(struct pvr_adapter *adapter, uint64_t bytes)
{
	adapter->charged -= bytes;
}

void *pvr_charge_alloc(struct pvr_adapter *adapter, size_t bytes)
{
	void *object;

	if (pvr_charge(adapter, real_size(bytes)))
		return NULL;
	object = calloc(1, bytes);
	if (!object)
		pvr_uncharge(adapter, real_size(bytes));
	return object;
}

void pvr_charge_free(struct pvr_adapter *adapter, void *object, size_t bytes)
{
	if (!object)
		return;
	pvr_uncharge(adapter, real_size(bytes));
	free(object);
}
