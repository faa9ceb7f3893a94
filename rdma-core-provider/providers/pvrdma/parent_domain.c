// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Thread domains and parent domains. Both exist only in the provider. A parent domain has
 * the handles of its PD, plus a thread domain and allocators.
 */
#include <errno.h>
#include <stdlib.h>

#include "pvrdma.h"

#define COMP_MASK_KNOWN \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

struct ibv_td *pvr_alloc_td(struct ibv_context *ibctx, struct ibv_td_init_attr *attr)
{
	struct pvr_td *td;

	if (attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv_td.context = ibctx;
	return &td->ibv_td;
}

int pvr_dealloc_td(struct ibv_td *ibtd)
{
	struct pvr_td *td = to_pvr_td(ibtd);

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}

static int check_attr(const struct ibv_context *ibctx,
		      const struct ibv_parent_domain_init_attr *attr)
{
	if (attr->comp_mask & ~COMP_MASK_KNOWN)
		return EINVAL;
	if (!attr->pd || attr->pd->context != ibctx || (attr->td && attr->td->context != ibctx))
		return EINVAL;
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (!attr->alloc || !attr->free))
		return EINVAL;
	return 0;
}

static void init_parent(struct pvr_parent_domain *parent,
			const struct ibv_parent_domain_init_attr *attr)
{
	ibv_initialize_parent_domain(&parent->pd.ibv_pd, attr->pd);
	parent->pd.handle = to_pvr_pd(attr->pd)->handle;
	parent->pd.base = to_pvr_pd(attr->pd);
	if (attr->td)
		parent->td = to_pvr_td(attr->td);
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		parent->alloc = attr->alloc;
		parent->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		parent->pd_context = attr->pd_context;
}

struct ibv_pd *pvr_alloc_parent_domain(struct ibv_context *ibctx,
				       struct ibv_parent_domain_init_attr *attr)
{
	struct pvr_parent_domain *parent;
	int err;

	err = check_attr(ibctx, attr);
	if (err) {
		errno = err;
		return NULL;
	}
	parent = calloc(1, sizeof(*parent));
	if (!parent)
		return NULL;
	init_parent(parent, attr);
	atomic_fetch_add(&parent->pd.base->users, 1);
	if (parent->td)
		atomic_fetch_add(&parent->td->users, 1);
	return &parent->pd.ibv_pd;
}

void pvr_free_parent_domain(struct pvr_parent_domain *parent)
{
	if (parent->td)
		atomic_fetch_sub(&parent->td->users, 1);
	atomic_fetch_sub(&parent->pd.base->users, 1);
	free(parent);
}
