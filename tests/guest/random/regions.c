// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions, windows and device memory. */
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "random.h"

#define DMABUF_BYTES (16u * PAGE)
#define ALL_ACCESS 31u

static uint32_t some_access(struct chance *chance)
{
	uint32_t access = one_in(chance, 3) ? ALL_ACCESS : draw(chance) & ALL_ACCESS;

	if (one_in(chance, 2))
		access = (access | IBV_ACCESS_ON_DEMAND) & ~IBV_ACCESS_MW_BIND;
	if (one_in(chance, 12))
		access |= 1u << below(chance, 32);
	return access;
}

/* ------------------------------------------------------------------------------- regions */

/* Open for writing, or only for reading. Return: -1 if the kernel has none. */
static int dmabuf_open(struct chance *chance)
{
	struct udmabuf_create create = { .size = DMABUF_BYTES,
					 .flags = below(chance, 2) ? UDMABUF_FLAGS_CLOEXEC : 0 };
	int device = open("/dev/udmabuf", O_RDWR);
	int memory = memfd_create("pvr_random", MFD_ALLOW_SEALING);
	int fd = -1;

	if (device >= 0 && memory >= 0 && !ftruncate(memory, DMABUF_BYTES) &&
	    !fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK)) {
		create.memfd = memory;
		fd = ioctl(device, UDMABUF_CREATE, &create);
	}
	close(device);
	close(memory);
	return fd;
}

static struct ibv_mr *register_dmabuf(struct worker *worker, struct ibv_pd *pd)
{
	struct chance *chance = &worker->chance;
	int fd = one_in(chance, 4) ? (int)odd_number(chance) : dmabuf_open(chance);
	struct ibv_mr *mr;

	mr = ibv_reg_dmabuf_mr(pd, one_in(chance, 4) ? odd_number(chance) : 0,
			       one_in(chance, 4) ? some_length(chance) : DMABUF_BYTES,
			       some_address(chance), fd, some_access(chance));
	if (fd > 2 && mr)
		close(fd);
	return count_made(VERB_reg_dmabuf_mr, mr);
}

static struct ibv_mr *register_dm(struct worker *worker, struct ibv_pd *pd)
{
	struct chance *chance = &worker->chance;
	struct slot *slot = slot_use(worker, KIND_DM);
	struct ibv_mr *mr = NULL;

	if (slot)
		mr = count_made(VERB_reg_dm_mr,
				ibv_reg_dm_mr(pd, slot->object, mostly_below(chance, 64),
					      mostly_below(chance, 4096),
					      IBV_ACCESS_ZERO_BASED | some_access(chance)));
	slot_put(slot);
	return mr;
}

static struct ibv_mr *register_any(struct worker *worker, struct ibv_pd *pd)
{
	struct chance *chance = &worker->chance;
	void *address = (void *)(uintptr_t)some_address(chance);
	uint32_t access = some_access(chance);

	switch (below(chance, 12)) {
	case 0:
		return register_dmabuf(worker, pd);
	case 1:
		return register_dm(worker, pd);
	case 2:
		return count_made(VERB_reg_mr,
				  ibv_reg_mr_iova(pd, address, some_length(chance),
						  one_in(chance, 2) ? some_address(chance)
								    : odd_number(chance),
						  access));
	case 3:
		return count_made(VERB_reg_mr, ibv_reg_mr(pd, NULL, SIZE_MAX,
							  (access | IBV_ACCESS_ON_DEMAND) &
								  ~IBV_ACCESS_MW_BIND));
	default:
		return count_made(VERB_reg_mr,
				  ibv_reg_mr(pd, address, some_length(chance), access));
	}
}

static void rereg(struct worker *worker, struct ibv_mr *mr)
{
	struct slot *pd = slot_use(worker, KIND_PD);
	struct chance *chance = &worker->chance;

	if (pd)
		count(VERB_rereg_mr, ibv_rereg_mr(mr, mostly_below(chance, 8), pd->object,
						  (void *)(uintptr_t)some_address(chance),
						  some_length(chance), some_access(chance)));
	slot_put(pd);
}

static void change_mr(struct worker *worker)
{
	struct slot *slot = slot_change(worker, KIND_MR), *pd;
	struct ibv_mr *mr;

	if (!slot)
		return;
	mr = slot->object;
	if (!mr) {
		pd = slot_use(worker, KIND_PD);
		slot->object = mr = pd ? register_any(worker, pd->object) : NULL;
		slot_put(pd);
		if (mr)
			place_publish(worker, mr->rkey, (uintptr_t)mr->addr, mr->length);
	} else if (one_in(&worker->chance, 5)) {
		rereg(worker, mr);
	} else if (one_in(&worker->chance, 3) && count(VERB_dereg_mr, ibv_dereg_mr(mr))) {
		slot->object = NULL;
	}
	slot_put(slot);
}

static void advise(struct worker *worker)
{
	struct slot *pd = slot_use(worker, KIND_PD);
	struct chance *chance = &worker->chance;
	struct ibv_sge sges[4];

	for (int i = 0; i < 4; i++)
		sges[i] = some_sge(worker);
	if (pd)
		count(VERB_advise_mr,
		      ibv_advise_mr(pd->object, mostly_below(chance, 3), mostly_below(chance, 2),
				    sges, below(chance, 5)));
	slot_put(pd);
}

/* ------------------------------------------------------------------------------- windows */

static void change_mw(struct worker *worker)
{
	struct slot *slot = slot_change(worker, KIND_MW), *pd;

	if (!slot)
		return;
	if (slot->object) {
		if (one_in(&worker->chance, 3) &&
		    count(VERB_dealloc_mw, ibv_dealloc_mw(slot->object)))
			slot->object = NULL;
	} else if ((pd = slot_use(worker, KIND_PD))) {
		slot->object =
			count_made(VERB_alloc_mw,
				   ibv_alloc_mw(pd->object, 1 + mostly_below(&worker->chance, 2)));
		slot_put(pd);
	}
	slot_put(slot);
}

/* A window of type 1; posts.c binds windows of type 2. */
static void bind(struct worker *worker)
{
	struct slot *mw = slot_use(worker, KIND_MW), *mr = slot_use(worker, KIND_MR);
	struct slot *qp = slot_use(worker, KIND_QP);
	struct chance *chance = &worker->chance;
	struct ibv_mw_bind bind = { .wr_id = draw(chance), .send_flags = draw(chance) & 15 };

	if (mw && mr && qp) {
		bind.bind_info = (struct ibv_mw_bind_info){
			.mr = mr->object,
			.addr = (uintptr_t)((struct ibv_mr *)mr->object)->addr,
			.length = one_in(chance, 4) ? odd_number(chance) : below(chance, 64),
			.mw_access_flags = one_in(chance, 4) ? draw(chance) & 0xff : 14,
		};
		count(VERB_bind_mw, ibv_bind_mw(qp->object, mw->object, &bind));
		place_publish(worker, ((struct ibv_mw *)mw->object)->rkey, bind.bind_info.addr,
			      bind.bind_info.length);
	}
	slot_put(qp);
	slot_put(mr);
	slot_put(mw);
}

/* ------------------------------------------------------------------------- device memory */

static void change_dm(struct worker *worker)
{
	struct slot *slot = slot_change(worker, KIND_DM);
	struct chance *chance = &worker->chance;
	struct ibv_alloc_dm_attr attr = {
		.length = one_in(chance, 4) ? odd_number(chance) : below(chance, 4 * PAGE),
		.log_align_req = mostly_below(chance, 13),
		.comp_mask = one_in(chance, 20) ? draw(chance) : 0,
	};

	if (!slot)
		return;
	if (!slot->object)
		slot->object = count_made(VERB_alloc_dm, ibv_alloc_dm(worker->actor->ctx, &attr));
	else if (one_in(chance, 3) && count(VERB_free_dm, ibv_free_dm(slot->object)))
		slot->object = NULL;
	slot_put(slot);
}

/* The library refuses ranges outside of the memory. */
static void copy_dm(struct worker *worker)
{
	struct slot *slot = slot_use(worker, KIND_DM);
	struct chance *chance = &worker->chance;
	uint64_t offset = one_in(chance, 6) ? odd_number(chance) : below(chance, PAGE);

	if (!slot)
		return;
	if (one_in(chance, 2))
		count(VERB_copy_dm, ibv_memcpy_to_dm(slot->object, offset, safe_memory,
						     below(chance, SAFE_BYTES)));
	else
		count(VERB_copy_dm, ibv_memcpy_from_dm(safe_memory, slot->object, offset,
						       below(chance, SAFE_BYTES)));
	slot_put(slot);
}

void deed_region(struct worker *worker)
{
	static deed *const deeds[] = { change_mr, change_mr, change_mr, change_mr,
				       change_mr, change_mr, advise,	change_mw,
				       change_mw, bind,	     change_dm, copy_dm };

	deeds[below(&worker->chance, sizeof(deeds) / sizeof(deeds[0]))](worker);
}
