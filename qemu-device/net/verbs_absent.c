// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Stub for a build without libibverbs: there are no RDMA NICs. */
#include <errno.h>
#include <string.h>

#include "net/verbs.h"

struct pvr_verbs_nics *pvr_verbs_nics_create(const char *name, struct pvr_loop *loop,
					     const struct pvr_verbs_nics_ops *ops, void *opaque,
					     struct pvr_error *err)
{
	pvr_fail(err, "this pvrdmad was built without libibverbs");
	return NULL;
}

void pvr_verbs_nics_destroy(struct pvr_verbs_nics *nics)
{
}

bool pvr_verbs_nics_any(const struct pvr_verbs_nics *nics)
{
	return false;
}

struct pvr_verbs *pvr_verbs_create(struct pvr_verbs_nics *nics, const struct pvr_address *local,
				   bool expose, struct pvr_error *err)
{
	pvr_fail(err, "this pvrdmad was built without libibverbs");
	return NULL;
}

/* No queue pair is ever created, so the following functions are never called. */

void pvr_verbs_destroy(struct pvr_verbs *verbs)
{
}

void pvr_verbs_fill(const struct pvr_verbs *verbs, union pvr_any_frame *any)
{
	memset(any, 0, sizeof(*any));
}

bool pvr_verbs_connect(struct pvr_verbs *verbs, const union pvr_any_frame *theirs,
		       struct pvr_error *err)
{
	return pvr_fail(err, "this pvrdmad was built without libibverbs");
}

bool pvr_verbs_has_rndv(const struct pvr_verbs *verbs)
{
	return false;
}

bool pvr_verbs_zerocopy_error(const struct pvr_verbs *verbs, struct pvr_error *why)
{
	return false;
}

void *pvr_verbs_expose(struct pvr_verbs *verbs, const struct iovec *iov, int count,
		       struct pvr_rndv_seg *part)
{
	return NULL;
}

void pvr_verbs_revoke(struct pvr_verbs *verbs, void *rndv)
{
}

int pvr_verbs_read(struct pvr_verbs *verbs, const struct pvr_rndv_seg *part, int parts,
		   const struct iovec *iov, int count)
{
	return -ENODEV;
}

int pvr_verbs_rdma_read_poll(struct pvr_verbs *verbs, uint8_t **data)
{
	return -ENODEV;
}

void pvr_verbs_rdma_read_cancel(struct pvr_verbs *verbs)
{
}

bool pvr_verbs_works(const struct pvr_verbs *verbs)
{
	return false;
}

const char *pvr_verbs_device(const struct pvr_verbs *verbs)
{
	return "";
}

const char *pvr_verbs_error(const struct pvr_verbs *verbs)
{
	return "";
}

int pvr_verbs_watch(struct pvr_verbs *verbs, struct pvr_loop *loop, void (*ready)(void *opaque),
		    void *opaque)
{
	return -ENODEV;
}

void pvr_verbs_unwatch(struct pvr_verbs *verbs)
{
}

ssize_t pvr_verbs_send(struct pvr_verbs *verbs, const struct iovec *iov, int count)
{
	return -ENODEV;
}

ssize_t pvr_verbs_recv(struct pvr_verbs *verbs, const struct iovec *iov, int count)
{
	return -ENODEV;
}

int pvr_verbs_is_proved(struct pvr_verbs *verbs)
{
	return -ENODEV;
}

void pvr_verbs_want_output(struct pvr_verbs *verbs)
{
}
