/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Protection domains. */
#include <errno.h>
#include <stdlib.h>

#include "pvrdma.h"
#include "uverbs_abi.h"

struct ibv_pd *pvr_alloc_pd(struct ibv_context *ibctx)
{
	struct pvr_uverbs_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd = {};
	struct pvr_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	err = ibv_cmd_alloc_pd(ibctx, &pd->ibv_pd, &cmd, sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	pd->handle = resp.pdn;
	return &pd->ibv_pd;
}

int pvr_dealloc_pd(struct ibv_pd *ibpd)
{
	int err = ibv_cmd_dealloc_pd(ibpd);

	if (!err)
		free(to_pvr_pd(ibpd));
	return err;
}
