/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory of small queues.
 *
 * DOC: Pool
 *
 * A page fault costs as much as a third of the creation of a queue pair. So queues get pages
 * of slabs: pages that are present before they are used, and that were those of destroyed
 * queues. The first slab of a context is small. Each later one is a huge page, if the system
 * has them. One slab without a queue is kept, others are unmapped.
 */
#ifndef PVR_POOL_H
#define PVR_POOL_H

#include <stddef.h>

/* Larger queues have a mapping of their own. */
#define PVR_POOL_MAX_PAGES 16u

struct pvr_pool;
struct pvr_slab;

/* Returns NULL without memory. */
struct pvr_pool *pvr_pool_new(void);
/* pool may be NULL. The memory of queues that exist stays mapped. */
void pvr_pool_free(struct pvr_pool *pool);
/*
 * Stores the address of 1 .. PVR_POOL_MAX_PAGES pages that no child of fork() inherits, and the
 * slab that they are from. Their content is that of a former queue, or zero. Returns 0 or an
 * errno.
 */
int pvr_pool_take(struct pvr_pool *pool, unsigned int pages, void **addr, struct pvr_slab **slab);
/* Gives them back. */
void pvr_pool_put(struct pvr_pool *pool, struct pvr_slab *slab, void *addr, unsigned int pages);

#endif /* PVR_POOL_H */
