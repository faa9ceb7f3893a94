// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory of objects that the device refused to destroy. */
#include <linux/list.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "pvrdma.h"
#include "verbs.h"

struct pvr_kept {
	struct list_head entry;
	struct pvr_pdir pdir;
	struct ib_umem *umem;
};

void pvr_keep(struct pvr_dev *dev, struct pvr_pdir *pdir, struct ib_umem **umem)
{
	struct pvr_kept *kept = kzalloc(sizeof(*kept), GFP_KERNEL);

	if (!kept) {
		pvr_dev_fail(dev, "no memory to keep what it may still use");
		return;
	}
	swap(kept->umem, *umem);
	swap(kept->pdir, *pdir);
	spin_lock(&dev->kept_lock);
	list_add(&kept->entry, &dev->kept);
	spin_unlock(&dev->kept_lock);
}

bool pvr_is_kept(struct pvr_dev *dev, struct ib_umem *umem)
{
	struct pvr_kept *kept;
	bool found = false;

	spin_lock(&dev->kept_lock);
	list_for_each_entry(kept, &dev->kept, entry)
		found |= kept->umem && pvr_umem_is_same(kept->umem, umem);
	spin_unlock(&dev->kept_lock);
	return found;
}

void pvr_kept_free(struct pvr_dev *dev)
{
	struct pvr_kept *kept, *next;

	list_for_each_entry_safe(kept, next, &dev->kept, entry) {
		list_del(&kept->entry);
		pvr_pdir_exit(&kept->pdir);
		ib_umem_release(kept->umem);
		kfree(kept);
	}
}
