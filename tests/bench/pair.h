/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Two fake guests with a connected queue pair each, and a buffer at both ends. */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include "fake_guest.h"

/* Extensions of all benchmarks: all of them. */
#define BENCH_EXT PVR_ENGINE_EXT

struct bench_pair_config {
	enum pvr_qp_type type;
	enum fg_buf_kind kind; /* access rights of both buffers */
	uint32_t pages; /* bytes of each buffer; 0: 16 */
	uint32_t spare_pages; /* bytes of additional contiguous memory of the guests */
	uint32_t depth; /* depth of the queues; 0: 256, at most FG_END_CQE */
	uint32_t first; /* number of the first guest; 0: 1 */
	uint32_t max_inline; /* of the send queue */
	unsigned int worker[2]; /* of both adapters */
	struct fg_host *host; /* shared with others; NULL: one of its own */
};

struct bench_pair {
	struct fg_host *host;
	bool own_host;
	struct fg_guest *guest[2];
	struct fg_end a, b;
	struct fg_buf src, dst;
	struct fg_mr src_mr, dst_mr; /* all of src, a's; all of dst, b's */
};

void bench_pair_open(struct bench_pair *pair, const struct bench_pair_config *config);
void bench_pair_close(struct bench_pair *pair);

#endif /* BENCH_PAIR_H */
