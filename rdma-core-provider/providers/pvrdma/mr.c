// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory regions. */
#include <errno.h>
#include <stdlib.h>

#include "pvrdma.h"

/*
 * Stock devices address a region only by its virtual address, and stock drivers ignore
 * another iova. So another iova needs PVR_EXT_MR_LAYOUT. So do zero-based regions. The
 * driver sets their iova to 0: the kernel core accepts only an iova with the page offset
 * of the address.
 */
static bool has_other_address(const void *addr, uint64_t iova, int access)
{
	return iova != (uintptr_t)addr || (access & IBV_ACCESS_ZERO_BASED);
}

/*
 * Kernels before 6.2 fail on-demand paging with EINVAL, which programs interpret as their
 * mistake.
 */
static bool is_offered(const struct pvr_context *ctx, const void *addr, uint64_t iova, int access)
{
	if (access & IBV_ACCESS_ON_DEMAND && !(ctx->features & PVR_EXT_ON_DEMAND))
		return false;
	return (ctx->features & PVR_EXT_MR_LAYOUT) || !has_other_address(addr, iova, access);
}

#define SIGNALS_MAX 100

/*
 * The first region on demand of a process waits for the kernel's lock of all its mappings, and
 * each signal ends that wait with EINTR. A program that handles signals must not notice.
 */
static int reg_in_kernel(struct ibv_pd *ibpd, void *addr, size_t length, uint64_t iova, int access,
			 struct verbs_mr *vmr)
{
	struct ib_uverbs_reg_mr_resp resp;
	struct ibv_reg_mr cmd;
	int err, tries = access & IBV_ACCESS_ON_DEMAND ? SIGNALS_MAX : 1;

	do {
		err = ibv_cmd_reg_mr(ibpd, addr, length, iova, access, vmr, &cmd, sizeof(cmd),
				     &resp, sizeof(resp));
	} while (err == EINTR && --tries);
	return err;
}

struct ibv_mr *pvr_reg_mr(struct ibv_pd *ibpd, void *addr, size_t length, uint64_t iova, int access)
{
	struct verbs_mr *vmr;
	int err;

	if (!is_offered(to_pvr_context(ibpd->context), addr, iova, access)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	err = reg_in_kernel(ibpd, addr, length, iova, access, vmr);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

/* Old drivers have no such command: EOPNOTSUPP. */
struct ibv_mr *pvr_reg_dmabuf_mr(struct ibv_pd *ibpd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int err;

	if (!vmr)
		return NULL;
	/* libibverbs 44 has the same private ABI and ignores the last argument. */
	err = ibv_cmd_reg_dmabuf_mr(ibpd, offset, length, iova, fd, access, vmr, NULL);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

int pvr_advise_mr(struct ibv_pd *ibpd, enum ibv_advise_mr_advice advice, uint32_t flags,
		  struct ibv_sge *sge, uint32_t num_sge)
{
	return ibv_cmd_advise_mr(ibpd, advice, flags, sge, num_sge);
}

/*
 * libibverbs has checked the flags and their arguments. The kernel refuses changes of a
 * region with bound windows.
 */
int pvr_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibpd, void *addr, size_t length,
		 int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct ibv_rereg_mr cmd;
	int err = 0;

	if ((flags & IBV_REREG_MR_CHANGE_PD) && (!ibpd || ibpd->context != vmr->ibv_mr.context))
		err = EINVAL;
	if (!err)
		err = ibv_cmd_rereg_mr(vmr, flags, addr, length, (uintptr_t)addr, access, ibpd,
				       &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (!err && (flags & IBV_REREG_MR_CHANGE_ACCESS))
		vmr->access = access;
	if (err)
		errno = err;
	return err;
}

int pvr_dereg_mr(struct verbs_mr *vmr)
{
	int err = ibv_cmd_dereg_mr(vmr);

	if (!err)
		free(vmr);
	return err;
}

struct ibv_mr *pvr_import_mr(struct ibv_pd *ibpd, uint32_t handle)
{
	struct verbs_mr *vmr;
	int err;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr)
		return NULL;
	err = ibv_cmd_query_mr(ibpd, vmr, handle);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}

void pvr_unimport_mr(struct ibv_mr *ibmr)
{
	free(verbs_get_mr(ibmr));
}
