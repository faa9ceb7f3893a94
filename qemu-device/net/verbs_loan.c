// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Guest memory that the peer's NIC may read. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/verbs_qp.h"

struct pvr_verbs_loan {
	unsigned int count;
	struct ibv_mr *mr[PVR_WIRE_LOAN_PARTS];
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

static void describe(struct pvr_loan_part *part, const struct ibv_mr *mr)
{
	*part = (struct pvr_loan_part){
		.addr = (uintptr_t)mr->addr,
		.rkey = mr->rkey,
		.len = (uint32_t)mr->length,
	};
}

static void set_errno(struct pvr_verbs *verbs, int err)
{
	__atomic_store_n(&verbs->lend_errno, err, __ATOMIC_RELAXED);
}

void *pvr_verbs_lend(struct pvr_verbs *verbs, const struct iovec *iov, int count,
		     struct pvr_loan_part *part)
{
	struct pvr_verbs_loan *loan = calloc(1, sizeof(*loan));
	unsigned int i;

	assert(count > 0 && count <= (int)PVR_WIRE_LOAN_PARTS);
	if (!loan || !pvr_verbs_register(verbs, iov, count, IBV_ACCESS_REMOTE_READ, loan->mr)) {
		set_errno(verbs, errno);
		free(loan);
		return NULL;
	}
	set_errno(verbs, 0);
	loan->count = (unsigned int)count;
	for (i = 0; i < loan->count; i++)
		describe(&part[i], loan->mr[i]);
	__atomic_add_fetch(&verbs->loans, 1, __ATOMIC_RELAXED);
	return loan;
}

void pvr_verbs_take_back(struct pvr_verbs *verbs, void *opaque)
{
	struct pvr_verbs_loan *loan = opaque;

	pvr_verbs_deregister(verbs, loan->mr, loan->count);
	__atomic_sub_fetch(&verbs->loans, 1, __ATOMIC_RELAXED);
	free(loan);
}

bool pvr_verbs_lend_error(const struct pvr_verbs *verbs, struct pvr_error *why)
{
	int err = __atomic_load_n(&verbs->lend_errno, __ATOMIC_RELAXED);

	if (err)
		pvr_fail(why, "the RDMA NIC cannot register a guest's memory: %s%s", strerror(err),
			 err == ENOMEM ? " (is ulimit -l too small?)" : "");
	return err;
}
