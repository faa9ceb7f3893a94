/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* User contexts and protection domains of fake guests. */
#ifndef FG_PD_H
#define FG_PD_H

#include "fg_guest.h"

struct fg_pd {
	struct fg_ctx *ctx;
	uint32_t handle;
};

/* CREATE_UC with the next UAR page. */
uint32_t fg_ctx_create(struct fg_guest *guest, struct fg_ctx *ctx);
/* CREATE_UC with any page frame number. */
uint32_t fg_create_uc(struct fg_guest *guest, uint64_t pfn, uint32_t *handle);
uint32_t fg_ctx_destroy(struct fg_ctx *ctx);

uint32_t fg_pd_create(struct fg_ctx *ctx, struct fg_pd *pd);
/* CREATE_PD with any context handle. */
uint32_t fg_create_pd(struct fg_guest *guest, uint32_t ctx_handle, uint32_t *handle);
uint32_t fg_pd_destroy(struct fg_pd *pd);

#endif /* FG_PD_H */
