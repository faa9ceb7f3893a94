/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Guests of two hosts whose RDMA NICs read their memory, with TCP beside. */
#ifndef UNIT_NICS_H
#define UNIT_NICS_H

#include "common.h"

#define NICS_PAGES 320u /* of each end's buffer, as T_BIG_PAGES */
#define NICS_CHUNK (256u << 10)
#define NICS_LEAST 65536u /* what is exposed at least */

/* vm1 and vm3 on host 1, vm2 and vm4 on host 2; a and b, RC, buffers of one run, connected. */
int t_setup_nics(void **state);
/* As that, and a's buffer and b's are of many runs. */
int t_setup_nics_from_scattered(void **state);
int t_setup_nics_to_scattered(void **state);
/* ... and pieces may be as large as the protocol lets them. */
int t_setup_nics_to_scattered_whole(void **state);

/* A pair more, on the g[@on]-th guest and the one behind it. */
void nics_open(struct t_env *env, struct fg_end *a, struct fg_end *b, unsigned int on);
/* Each byte of the end's buffer is @byte. */
void nics_expect_bytes(const struct fg_end *end, uint8_t byte);
/* The end's buffer and region anew: of one run of @pages. */
void nics_in_one_run(struct fg_end *end, uint32_t pages);

/* The connections by which the NICs read; both directions. */
void nics_up(struct t_env *env, bool up);
bool nics_are_up(struct t_env *env);
void nics_hold(struct t_env *env, enum fg_reads reads);
/* Rendezvous of a host that are out. */
uint64_t nics_out(struct t_env *env, unsigned int host);

#endif /* UNIT_NICS_H */
