// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Guest memory that the peer's NIC may read. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/verbs_qp.h"

struct pvr_verbs_exposed {
	unsigned int count;
	struct ibv_mr *mr[PVR_FRAME_RNDV_SEGS];
};

bool pvr_verbs_register(struct pvr_verbs *verbs, const struct iovec *iov, int count, int access,
			struct ibv_mr **mr)
{
	int i, err;

	for (i = 0; i < count; i++) {
		mr[i] = ibv_reg_mr(verbs->pd, iov[i].iov_base, iov[i].iov_len, access);
		if (mr[i])
			continue;
		err = errno;
		pvr_verbs_deregister(verbs, mr, (unsigned int)i);
		errno = err;
		return false;
	}
	return true;
}

void pvr_verbs_deregister(struct pvr_verbs *verbs, struct ibv_mr **mr, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		/*
		 * A queue pair in the error state accesses no memory, registered or not.
		 */
		if (ibv_dereg_mr(mr[i]))
			pvr_verbs_break(verbs, "the RDMA NIC does not let go of memory");
	}
}

static void describe(struct pvr_rndv_seg *part, const struct ibv_mr *mr)
{
	*part = (struct pvr_rndv_seg){
		.addr = (uintptr_t)mr->addr,
		.rkey = mr->rkey,
		.len = (uint32_t)mr->length,
	};
}

static void set_errno(struct pvr_verbs *verbs, int err)
{
	__atomic_store_n(&verbs->expose_errno, err, __ATOMIC_RELAXED);
}

void *pvr_verbs_expose(struct pvr_verbs *verbs, const struct iovec *iov, int count,
		       struct pvr_rndv_seg *part)
{
	struct pvr_verbs_exposed *rndv = calloc(1, sizeof(*rndv));
	unsigned int i;

	assert(count > 0 && count <= (int)PVR_FRAME_RNDV_SEGS);
	if (!rndv || !pvr_verbs_register(verbs, iov, count, IBV_ACCESS_REMOTE_READ, rndv->mr)) {
		set_errno(verbs, errno);
		free(rndv);
		return NULL;
	}
	set_errno(verbs, 0);
	rndv->count = (unsigned int)count;
	for (i = 0; i < rndv->count; i++)
		describe(&part[i], rndv->mr[i]);
	__atomic_add_fetch(&verbs->rndvs, 1, __ATOMIC_RELAXED);
	return rndv;
}

void pvr_verbs_revoke(struct pvr_verbs *verbs, void *opaque)
{
	struct pvr_verbs_exposed *rndv = opaque;

	pvr_verbs_deregister(verbs, rndv->mr, rndv->count);
	__atomic_sub_fetch(&verbs->rndvs, 1, __ATOMIC_RELAXED);
	free(rndv);
}

bool pvr_verbs_zerocopy_error(const struct pvr_verbs *verbs, struct pvr_error *why)
{
	int err = __atomic_load_n(&verbs->expose_errno, __ATOMIC_RELAXED);

	if (err)
		pvr_fail(why, "the RDMA NIC cannot register a guest's memory: %s%s", strerror(err),
			 err == ENOMEM ? " (is ulimit -l too small?)" : "");
	return err;
}
