/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory regions. */
#include <errno.h>
#include <stdlib.h>

#include "pvrdma.h"

/*
 * The device knows a region by its virtual address only, and nothing on the way tells it
 * another one: so a region asked for at another address is refused, not registered wrongly.
 */
struct ibv_mr *pvr_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length, uint64_t iova, int access)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	struct verbs_mr *vmr;
	int err;

	if (iova != (uintptr_t)addr || (access & IBV_ACCESS_ZERO_BASED)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_mr(ibpd, addr, length, iova, access, vmr, &cmd, sizeof(cmd), &resp,
			     sizeof(resp));
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

int pvr_dereg_mr(struct verbs_mr *vmr)
{
	int err = ibv_cmd_dereg_mr(vmr);

	if (!err)
		free(vmr);
	return err;
}
